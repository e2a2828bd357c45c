from __future__ import annotations

import pytest

from rag_eval.gold.signoff.identity import LEVELS, SignoffPolicy, proves
from seams import InputError, signoff_policy
from table import each_row

BOB = "signers: {bob@example.org: {github: Bob-1}}"


def read(section, file="eval/eval-gates.yml"):
    return signoff_policy(f"version: 1\nsignoff:\n  {section}\n".encode(), file)


def test_all_that_it_may_say():
    policy = read(f"require: signature\n  four_eyes: true\n  allowed_signers: ../.github/signers\n  {BOB}")
    assert policy == SignoffPolicy(
        "default",
        "eval/eval/gold.jsonl",
        "eval/eval/gold.signoff",
        "signature",
        True,
        ".github/signers",
        {"bob@example.org": "Bob-1"},
        stated=True,
    )


def test_whether_it_is_stated_is_no_setting():
    assert not signoff_policy(b"version: 1\n", "eval-gates.yml").stated
    with pytest.raises(InputError, match="problem"):
        read("stated: true")


FIXES = {
    "is not a known level": "Choose one of: record, review, signature.",
    "'allowed_signers' lists none": "Also name the file with their keys: allowed_signers: PATH",
    "'signers' lists none": "Also name them: signers: {bob@example.org: {github: bob}}",
    "not true or false": "Write true or false, without quotes.",
    "not a text": "Put it in quotes.",
    "is not a path inside the repository": "Write it relative to this file.",
    "not a mapping": "Write each signer as: bob@example.org: {github: bob}",
    "which is not one e-mail address": "Write one address, without wildcards, lists or quotes.",
    "'bob@example.org' has no account": "Write bob@example.org: {github: LOGIN}, with the login of the account, "
    "in quotes if it is a number.",
    "is not a setting of 'signoff' in this version": "Remove it.",
    "has no settings": "Write it like: signoff: {require: record}",
    "'dataset' is not a valid name": "Use up to 64 letters, digits, dots, dashes and underscores.",
}


@each_row(
    ("section", "line", "says"),
    [
        ("require: signatures", 3, "Choose one of: record, review, signature."),
        ("require: signature", 3, "allowed_signers: PATH"),
        ("require: signature\n  " + BOB, 3, "allowed_signers: PATH"),
        ("require: review", 3, "bob@example.org: {github: bob}"),
        ("gold: a\n  four_eyes: true", 4, "bob@example.org: {github: bob}"),
        ("four_eyes: true\n  signers: {}", 3, "bob@example.org: {github: bob}"),
        ("four_eyes: 'true'", 3, "not true or false. Write true or false, without quotes."),
        ("four_eyes: 1", 3, "not true or false"),
        ("allowed_signers: [a]", 3, "not a text"),
        ("allowed_signers: ../../a", 0, "is not a path inside the repository"),
        ("allowed_signers: ''", 0, "is not a path inside the repository"),
        ("signers: bob@example.org", 3, "not a mapping. Write each signer as"),
        ("signers: [bob@example.org]", 3, "not a mapping"),
        ("signers: {bob: {github: bob}}", 3, "'bob', which is not one e-mail address"),
        ("signers: {'*@example.org': {github: bob}}", 3, "not one e-mail address"),
        ("signers: {'a@x,b@x': {github: bob}}", 3, "not one e-mail address"),
        ("signers: {bob@example.org: bob}", 3, "has no account"),
        ("signers: {bob@example.org: }", 3, "has no account"),
        ("signers: {bob@example.org: {}}", 3, "has no account"),
        ("signers: {bob@example.org: {github: bob, gitlab: bob}}", 3, "has no account"),
        ("signers: {bob@example.org: {github: 12}}", 3, "in quotes if it is a number"),
        ("signers: {bob@example.org: {github: 'dependabot[bot]'}}", 3, "has no account"),
        ("signers: {bob@example.org: {github: ''}}", 3, "has no account"),
        ("eyes: 4", 3, "'eyes' is not a setting"),
        ("dataset: a b", 3, "'dataset' is not a valid name: 'a b'"),
        ("record", 2, "'signoff' has no settings"),
        ("[record]", 2, "'signoff' has no settings"),
    ],
)
def test_what_is_refused_is_said_with_its_line_and_what_to_do(section, line, says):
    with pytest.raises(InputError) as refused:
        read(section)
    (problem,) = refused.value.problems
    assert (problem.line, says in str(problem)) == (line, True), problem
    assert [fix for wrong, fix in FIXES.items() if wrong in problem.message] == [problem.hint]


def test_what_is_proven_is_said_for_every_level():
    output = {level: proves(SignoffPolicy(require=level)) for level in LEVELS}
    assert len(set(output.values())) == len(LEVELS)
    assert "nobody's identity" in output["record"]
    assert all(proves(SignoffPolicy(require=level, four_eyes=True)).startswith(output[level] + " ") for level in LEVELS)


def test_a_new_place_is_held_to_the_rules_of_the_base():
    head = SignoffPolicy("new", "other.jsonl", "other.signoff")
    base = SignoffPolicy("old", require="signature", four_eyes=True, allowed_signers="a", signers={"b@x": "b"})
    assert head.at_least_as_strict_as(base) == SignoffPolicy(
        "new", "other.jsonl", "other.signoff", "signature", True, "a", {"b@x": "b"}
    )
