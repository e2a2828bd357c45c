from __future__ import annotations

import pytest

from rag_eval.gold.signoff_identity import LEVELS, SignoffPolicy, proves
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


KEYS = "name the file with their keys: allowed_signers: PATH"
NAMES = "name them: signers: {bob@example.org: {github: bob}}"
SECTION = 'Write signoff: {dataset: "7b0c4e", records: eval/gold.signoff, require: record}'
ADDRESS = "Write one e-mail address, without wildcards, lists or quotes."


@each_row(
    ("section", "line", "says"),
    [
        ("require: signatures", 3, "'record', 'review', 'signature'. Did you mean 'signature'?"),
        ("require: signature", 3, f"but 'allowed_signers' lists none. Also {KEYS}"),
        ("require: signature\n  " + BOB, 3, f"but 'allowed_signers' lists none. Also {KEYS}"),
        ("require: review", 3, f"but 'signers' lists none. Also {NAMES}"),
        ("gold: a\n  four_eyes: true", 4, f"but 'signers' lists none. Also {NAMES}"),
        ("four_eyes: true\n  signers: {}", 4, "/signoff/signers: the object is empty."),
        ("four_eyes: 'true'", 3, "/signoff/four_eyes: 'true' is not true or false. Write four_eyes: true"),
        ("four_eyes: 1", 3, "is not true or false. Write four_eyes: true"),
        ("allowed_signers: [a]", 3, 'is not a string. Write allowed_signers: ".github/gold-signers"'),
        ("allowed_signers: ../../a", 0, "is not a path inside the repository. Write it relative to this file."),
        ("allowed_signers: ''", 3, "/signoff/allowed_signers: the text is empty."),
        ("signers: bob@example.org", 3, "is not a mapping. Write signers: {bob@example.org: {github: bob}}"),
        ("signers: [bob@example.org]", 3, "is not a mapping. Write signers: {bob@example.org: {github: bob}}"),
        ("signers: {bob: {github: bob}}", 3, f"'bob' is not a valid signer. {ADDRESS}"),
        ("signers: {'*@example.org': {github: bob}}", 3, f"'*@example.org' is not a valid signer. {ADDRESS}"),
        ("signers: {'a@x,b@x': {github: bob}}", 3, f"'a@x,b@x' is not a valid signer. {ADDRESS}"),
        ("signers: {bob@example.org: bob}", 3, "is not a mapping. Write bob@example.org: {github: bob}"),
        ("signers: {bob@example.org: }", 3, "/signoff/signers/bob@example.org: null is not a mapping."),
        ("signers: {bob@example.org: {}}", 3, "'github' is missing. Add the field, such as github: bob"),
        ("signers: {bob@example.org: {github: bob, gitlab: bob}}", 3, "unknown key 'gitlab'"),
        ("signers: {bob@example.org: {github: 12}}", 3, "12 is not a string. Write github: bob"),
        (
            "signers: {bob@example.org: {github: 'dependabot[bot]'}}",
            3,
            "Write the login of a person, such as bob: a bot signs nothing.",
        ),
        ("signers: {bob@example.org: {github: ''}}", 3, "/signoff/signers/bob@example.org/github: the text is empty."),
        ("eyes: 4", 2, "/signoff: unknown key 'eyes'."),
        ("dataset: a b", 3, "/signoff/dataset: 'a b' has a character that is not allowed."),
        ("dataset: .a", 3, "'.a' is not a valid dataset. Begin it with a letter or digit."),
        ("record", 2, f"/signoff: 'record' is not a mapping. {SECTION}"),
        ("[record]", 2, f"is not a mapping. {SECTION}"),
    ],
)
def test_what_is_refused_is_said_with_its_line_and_what_to_do(section, line, says):
    with pytest.raises(InputError) as refused:
        read(section)
    problem = refused.value.problems[0]
    assert (problem.line, says in str(problem)) == (line, True), problem


HINT = "Check indentation, quotes and colons on this line."


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"[]", (1, "", "expected 'name: value' pairs", "Write it like: signoff: {require: record}")),
        (b"a: 1\nb: c: d", (2, "column 5", "not valid YAML: mapping values are not allowed in this context", HINT)),
        (b"a: \xff", (1, "column 4", "byte 0xff is not valid UTF-8", "Save the file as UTF-8.")),
        (b"gold: 5", (1, "/gold", "5 is not a string", "Write gold: eval/gold.jsonl")),
        (b"#" * ((1 << 20) + 1), (0, "", "larger than 1 MiB", "A gates file is short: check the path.")),
    ],
    ids=["a list", "no YAML", "no UTF-8", "gold is no path", "too large"],
)
def test_a_file_that_is_no_gates_file_is_refused(data, problem):
    with pytest.raises(InputError) as refused:
        signoff_policy(data, "eval-gates.yml")
    assert [tuple(found) for found in refused.value.problems] == [("eval-gates.yml", *problem)]


def test_a_gates_file_of_a_mebibyte_is_read():
    text = b"signoff: {dataset: d}\n"
    assert signoff_policy(text + b"#" * ((1 << 20) - len(text)), "eval-gates.yml").dataset == "d"


@pytest.mark.parametrize(
    ("text", "gold", "records"),
    [
        ("gold: a/b.jsonl", "eval/a/b.jsonl", "eval/a/b.signoff"),
        ("signoff: {gold: c.jsonl}\ngold: a.jsonl", "eval/c.jsonl", "eval/c.signoff"),
        ("signoff: {records: ../r}", "eval/eval/gold.jsonl", "r"),
        ("signoff:", "eval/eval/gold.jsonl", "eval/eval/gold.signoff"),
    ],
)
def test_the_gold_of_the_section_goes_before_that_of_the_file(text, gold, records):
    policy = signoff_policy(text.encode(), "eval/eval-gates.yml")
    assert (policy.gold, policy.records, policy.stated) == (gold, records, "signoff" in text)


@pytest.mark.parametrize(("login", "known"), [("a" * 100, True), ("a" * 101, False), ("-a", False), ("a_b-c", True)])
def test_a_login_has_a_hundred_letters_at_most(login, known):
    section = f"signers: {{bob@example.org: {{github: '{login}'}}}}"
    if known:
        assert read(section).signers == {"bob@example.org": login}
    else:
        with pytest.raises(InputError, match="does not match the pattern"):
            read(section)


def test_what_is_proven_is_said_for_every_level():
    output = {level: proves(SignoffPolicy(require=level)) for level in LEVELS}
    assert len(set(output.values())) == len(LEVELS)
    nobody = "nobody's identity"
    assert output == {
        "record": f"A record proves {nobody}: anyone who can commit can write one in any name.",
        "review": f"The approving review proves the account of a signer; the records by themselves prove {nobody}.",
        "signature": "Each new record is signed with a key that the base branch lists for its signer.",
    }
    more = " Signers and authors are different accounts; authors are those that the commits name."
    assert proves(SignoffPolicy(four_eyes=True)) == output["record"] + more
    assert all(proves(SignoffPolicy(require=level, four_eyes=True)).startswith(output[level] + " ") for level in LEVELS)


def test_a_new_place_is_held_to_the_rules_of_the_base():
    head = SignoffPolicy("new", "other.jsonl", "other.signoff")
    base = SignoffPolicy("old", require="signature", four_eyes=True, allowed_signers="a", signers={"b@x": "b"})
    assert head.at_least_as_strict_as(base) == SignoffPolicy(
        "new", "other.jsonl", "other.signoff", "signature", True, "a", {"b@x": "b"}
    )
