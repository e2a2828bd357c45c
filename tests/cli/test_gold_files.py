"""`rag-eval gold lint`, `gold stats` and `gold freeze`: what they print and write, and the exit code they end with."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
from functools import partial

import jsonschema
import pytest

from cases import ROOT, gold_row, write_rows
from garbage.kinds import KINDS
from gitrepo import SOURCE, Repo, command_on_path
from rag_eval.cli._shared import repository_root
from rag_eval.gold.signoff import TAG, manifest_digest
from reading import gold as good_gold
from reading import jsonl
from reading import trace as good_trace

QUICKSTART = ROOT / "examples" / "quickstart"
SCHEMA = json.loads((ROOT / "schemas" / "freeze.schema.json").read_text(encoding="utf-8"))
GOLD = "eval/gold.jsonl"
MANIFEST = "eval/gold.frozen/v1.json"
EXISTS = f"{MANIFEST}: exists already, and a tag is frozen only once. The gold set is compared with it\n"
ONE = gold_row(qid="A1", question="How long is it kept?", gold_claim_substr=["30 days"], gold_citations=["a"])
TWO = gold_row(qid="A2", question="Who made it?", answerable=False)


@pytest.fixture
def rag(command):
    """Run `rag-eval gold` in this process: exit code, stdout, stderr."""
    return partial(command, "gold")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- lint ------------------------------------------------------------------------------------------------------------


def forty(changes):
    rows = [
        gold_row(qid=f"A{n:04d}", question=f"What is part {n}?", gold_claim_substr=["30 days"], gold_citations=["a"])
        for n in range(1, 33)
    ]
    rows += [gold_row(qid=f"U{n:04d}", question=f"Who is man {n}?", answerable=False) for n in range(8)]
    return [{**row, **changes.get(row["qid"], {})} for row in rows]


def test_lint_prints_what_the_docs_show(rag, folder):
    write_rows(folder / GOLD, forty({"A0003": {"question": "Is it 30 days?"}}))
    trace = {"retrieved_ids": ["a"], "answer_json": {"claim": "It is.", "citations": ["a"]}}
    write_rows(folder / "runs/trace.jsonl", [{"qid": "A0001", **trace}])
    page = (ROOT / "docs" / "gold.md").read_text(encoding="utf-8")
    shown = page.split("$ rag-eval gold lint --trace runs/trace.jsonl\n")[1].split("```")[0]
    assert rag("lint", "--trace", "runs/trace.jsonl") == (0, shown, "")


def test_lint_ends_with_1_only_when_it_is_asked_to_and_there_is_something(rag, folder):
    arguments = ["--gold", QUICKSTART / "gold.jsonl", "--strict"]
    assert rag("lint", *arguments)[0] == 1
    (folder / "gates.yml").write_text("version: 1\ngates:\n  precision: {min: 0.80}\n", encoding="utf-8")
    code, out, err = rag("lint", *arguments, "--gates", "gates.yml", "--trace", QUICKSTART / "good.jsonl")
    assert (code, out, err) == (0, "0 findings in 14 items.\n", "")


def test_lint_shows_a_hundred_findings_and_counts_the_rest(rag, folder):
    rows = [{**ONE, "qid": f"A{n:03d}", "question": f"Is part x{n} 30 days?"} for n in range(130)]
    write_rows(folder / GOLD, rows)
    lines = rag("lint")[1].splitlines()
    assert sum("[substr-in-question]" in line for line in lines) == 98  # after balance and gate-without-items
    assert lines[-2] == "… and 32 more findings not shown. To see all: --format json"
    assert lines[-1].startswith("132 findings in 130 items: 130 substr-in-question, 1 ")


def test_lint_as_json_has_everything_and_is_sorted(rag, folder):
    write_rows(folder / GOLD, [{**ONE, "qid": f"A{n:03d}", "question": f"Is part x{n} 30 days?"} for n in range(130)])
    value = json.loads(rag("lint", "--format", "json")[1])
    assert (value["gold"], value["items"], value["counts"]["substr-in-question"]) == (GOLD, 130, 130)
    assert sum(value["counts"].values()) == len(value["findings"]) == 132
    assert [item["line"] for item in value["findings"]] == [0, 0, *range(1, 131)]
    assert set(value["findings"][5]) == {"code", "qid", "line", "message", "hint"}


def test_lint_takes_several_traces_and_the_policy_of_the_gates_file(rag, folder):
    write_rows(folder / "g.jsonl", [ONE, {**ONE, "qid": "A3", "question": "Where?", "gold_citations": ["b"]}])
    (folder / "eval-gates.yml").write_text("version: 1\ngold: g.jsonl\nrefusal: {token: it is 30 days}\n", "utf-8")
    for name in "ab":
        row = {"qid": "A1", "retrieved_ids": [name], "answer": "So it is."}
        write_rows(folder / f"{name}.jsonl", [row])
    item = rag("lint", "--trace", "a.jsonl")[1]
    both = rag("lint", "--trace", "a.jsonl", "--trace", "b.jsonl")[1]
    assert ("[citation-unseen]" in item, "[citation-unseen]" in both) == (True, False)
    assert "g.jsonl:1: [substr-refusal] 'A1': the substring '30 days' is part of the refusal token" in both


def test_lint_and_stats_read_a_gold_set_that_is_an_array(rag, folder):
    rows = [{"qid": f"A{n}", "q": f"What is {n}?", "answerable": True, "gold_ids": ["a"]} for n in range(2)]
    (folder / "gold.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    assert "gold.json: [no-substr] no substring in 2 of 2 answerable items" in rag("lint", "--gold", "gold.json")[1]
    assert "gold.json: 2 items, 2 answerable, 0 unanswerable.\n" in rag("stats", "--gold", "gold.json")[1]


def test_what_is_printed_is_no_command_to_a_workflow_runner(rag, folder):
    hostile = "##[error]x\n::error::y\x1b[31m"
    row = {**ONE, "qid": hostile, "gold_claim_substr": [], "category": hostile, "gold_citations": []}
    write_rows(folder / GOLD, [row])
    for words in (["lint"], ["stats"], ["lint", "--format", "json"], ["stats", "--format", "json"]):
        code, out, err = rag(*words)
        output = out + err
        assert (code, "##[" in output, "\x1b" in output, re.search(r"(?m)^\s*::", output)) == (0, False, False, None)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.role in ("gold", "trace")], ids=lambda kind: kind.name)
def test_garbage_ends_with_2_and_no_findings(rag, folder, kind):
    files = {"gold": jsonl(good_gold()), "trace": jsonl(good_trace())} | {kind.role: kind.content}
    for role, content in files.items():
        path = folder / f"{role}.jsonl"
        content(path) if callable(content) else path.write_bytes(content)
    commands = [["lint", "--gold", "gold.jsonl", "--trace", "trace.jsonl"]]
    commands += (
        [["stats", "--gold", "gold.jsonl"], ["freeze", "v1", "--gold", "gold.jsonl"]] if kind.role == "gold" else []
    )
    for words in commands:
        code, out, err = rag(*words)
        assert (code, out) == (2, ""), words
        assert f"{kind.role}.jsonl" in err
        assert len(err.splitlines()) <= 102


# --- stats -----------------------------------------------------------------------------------------------------------

MIXED = [
    {
        **ONE,
        "category": "time",
        "query_type": "fact",
        "multi_hop": True,
        "tags": ["x", "y", "x"],
        "meta": {"vault": "hr", "old": True},
        "gold_citations": ["a", "b"],
    },
    {**TWO, "category": "time", "difficulty": "hard", "tags": ["x"], "meta": {"vault": 7}, "expected_answer": "No."},
    {**ONE, "qid": "A3", "category": "space", "gold_claim_substr": ["30 days", "a month"]},
    {**ONE, "qid": "A4", "attack": {"kind": "input", "positive": True}},
]


def test_stats_count_what_is_there(rag, folder):
    write_rows(folder / GOLD, MIXED)
    value = json.loads(rag("stats", "--format", "json")[1])
    assert [value[name] for name in ("items", "answerable", "unanswerable", "attacks")] == [4, 2, 1, 1]
    assert list(value["slices"]) == [
        "category",
        "difficulty",
        "query_type",
        "multi_hop",
        "tags",
        "meta.old",
        "meta.vault",
    ]
    assert value["slices"]["category"] == {
        "time": {"items": 2, "answerable": 1},
        "space": {"items": 1, "answerable": 1},
    }
    assert value["slices"]["multi_hop"] == {"true": {"items": 1, "answerable": 1}}
    assert value["slices"]["tags"] == {"x": {"items": 2, "answerable": 1}, "y": {"items": 1, "answerable": 1}}
    assert value["slices"]["meta.vault"] == {"7": {"items": 1, "answerable": 0}, "hr": {"items": 1, "answerable": 1}}
    assert (value["fields"]["qid"], value["fields"]["tags"], value["fields"]["attack"]) == (4, 2, 1)


def test_stats_do_not_hang_on_the_order_of_lines(rag, folder):
    write_rows(folder / GOLD, MIXED)
    first = rag("stats")
    write_rows(folder / GOLD, random.Random(1).sample(MIXED, len(MIXED)))
    assert rag("stats") == first


def test_stats_as_text_are_tables_that_say_when_they_are_cut(rag, folder):
    write_rows(folder / GOLD, [{**ONE, "qid": f"A{n}", "category": f"kind {n:02d}"} for n in range(25)])
    lines = rag("stats")[1].splitlines()
    assert lines[0] == f"{GOLD}: 25 items, 25 answerable, 0 unanswerable."
    assert lines[2].split() == ["category", "items", "answerable", "unanswerable"]
    assert lines[4].split() == ["kind", "00", "1", "1", "0"]
    assert "… and 5 more. To see all: --format json" in lines
    write_rows(folder / GOLD, [{**ONE, "qid": f"A{n}", "category": f"kind {n:02d}"} for n in range(20)])
    assert "more. To see all" not in rag("stats")[1]


def test_stats_as_text_show_values_as_they_are_up_to_a_width(rag, folder):
    values = ["007", "1.50", "1e3", "x" * 60, "y" * 61]
    write_rows(folder / GOLD, [{**ONE, "qid": f"A{n}", "category": value} for n, value in enumerate(values)])
    shown = [line.split()[0] for line in rag("stats")[1].splitlines()[4:9]]
    assert sorted(shown)[:4] == sorted(values[:4])
    assert (sorted(shown)[4][:50], len(sorted(shown)[4])) == ("y" * 50, 60)


def test_stats_as_text_have_every_count(rag, folder):
    write_rows(folder / GOLD, MIXED)
    assert (
        rag("stats")[1]
        == """\
eval/gold.jsonl: 4 items, 2 answerable, 1 unanswerable, 1 safety case.

category      items    answerable    unanswerable
----------  -------  ------------  --------------
time              2             1               1
space             1             1               0

difficulty      items    answerable    unanswerable
------------  -------  ------------  --------------
hard                1             0               1

query_type      items    answerable    unanswerable
------------  -------  ------------  --------------
fact                1             1               0

multi_hop      items    answerable    unanswerable
-----------  -------  ------------  --------------
true               1             1               0

tags      items    answerable    unanswerable
------  -------  ------------  --------------
x             2             1               1
y             1             1               0

meta.old      items    answerable    unanswerable
----------  -------  ------------  --------------
true              1             1               0

meta.vault      items    answerable    unanswerable
------------  -------  ------------  --------------
7                   1             0               1
hr                  1             1               0

field                items
-----------------  -------
answerable               4
gold_citations           4
gold_claim_substr        4
qid                      4
question                 4
category                 3
meta                     2
tags                     2
attack                   1
difficulty               1
expected_answer          1
multi_hop                1
query_type               1
"""
    )


# --- freeze ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def repo(tmp_path, monkeypatch):
    """A repository whose first commit holds signed gold."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "PRE_COMMIT"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("PATH", f"{command_on_path(tmp_path / 'bin')}{os.pathsep}{os.environ['PATH']}")
    repo = Repo.create(tmp_path / "repo", None)
    repo.signed(ONE, TWO)
    return repo


def manifest(repo, path=MANIFEST):
    return json.loads((repo.path / path).read_text(encoding="utf-8"))


def test_freeze_writes_what_sign_off_signed(repo):
    code, output = repo.gold("freeze", "v1")
    assert (code, output) == (0, f"Wrote {MANIFEST}: 2 items, 2 of 2 signed, frozen as v1.\n")
    value = manifest(repo)
    jsonschema.Draft202012Validator(SCHEMA).validate(value)
    record = json.loads((repo.path / "eval/gold.signoff" / repo.records()[0]).read_text(encoding="utf-8"))
    assert value["items"] == {change["qid"]: change["to"] for change in record["changes"]}
    assert value["counts"] == {"items": 2, "answerable": 1, "unanswerable": 1}
    assert [item["name"] for item in value["records"]] == repo.records()
    assert value["records"][0]["sha256"][:8] == repo.records()[0][-13:-5]
    assert value["sha256"] == hashlib.sha256((repo.path / GOLD).read_bytes()).hexdigest()
    assert value["digest"] == manifest_digest(value["items"].values())
    assert repo.run("rag-eval", "validate", MANIFEST) == (0, f"{MANIFEST}: valid, a freeze file\n")


@pytest.mark.parametrize(
    ("items", "last"), [(100, "the current state of 'A099'."), (102, "… and 2 more lines not shown.")]
)
def test_a_hundred_unsigned_items_are_listed_and_no_more(repo, items, last):
    repo.stage(*({**ONE, "qid": f"A{number:03}"} for number in range(items)))
    code, output = repo.gold("freeze", "v1")
    lines = output.splitlines()
    end = next(index for index, line in enumerate(lines) if "Nothing was frozen." in line)
    assert (code, end) == (1, min(items, 100) + (items > 100))
    assert last in lines[end - 1]


def test_the_same_gold_gives_the_same_bytes_and_the_tag_is_kept(repo):
    repo.gold("freeze", "v1")
    first = (repo.path / MANIFEST).read_bytes()
    code, output = repo.gold("freeze", "v1")
    assert (code, output) == (0, f"{EXISTS}No differences: the gold set has the 2 items of v1.\n")
    repo.stage(ONE, TWO, {**ONE, "qid": "A3", "question": "Why?"})
    repo.sign()
    code, output = repo.gold("freeze", "v1")
    assert (code, "1 difference from" in output, "under a new tag" in output) == (1, True, True)
    assert (repo.path / MANIFEST).read_bytes() == first
    assert repo.gold("freeze", "v1", "--out", "again.json")[0] == 0
    assert manifest(repo, "again.json")["counts"]["items"] == 3


def test_what_check_calls_as_frozen_is_frozen_already(repo):
    repo.gold("freeze", "v1")
    first = (repo.path / MANIFEST).read_bytes()
    lines = (repo.path / GOLD).read_bytes().splitlines()
    repo.write(GOLD, b"\r\n\r\n".join(reversed(lines)) + b"\r\n")
    assert repo.gold("freeze", "v1", "--check")[0] == 0
    code, output = repo.gold("freeze", "v1")
    assert (code, output) == (0, f"{EXISTS}No differences: the gold set has the 2 items of v1.\n")
    assert (repo.path / MANIFEST).read_bytes() == first


@pytest.mark.parametrize(
    ("spoil", "ends"),
    [
        (lambda _: "{}", 2),
        (lambda _: "no JSON", 2),
        (lambda _: "", 2),
        (lambda text: text.replace('"v1"', '"v2"'), 2),
        (lambda text: text.replace('"digest": "sha256:', '"digest": "sha256:0')[:-1], 2),
        (lambda text: text.replace('"A1": "sha256:', '"A0": "sha256:'), 1),  # the manifest of another gold set
    ],
)
def test_what_is_no_manifest_of_the_tag_and_gold_is_refused_and_stays(repo, spoil, ends):
    repo.gold("freeze", "v1")
    path = repo.path / MANIFEST
    path.write_text(spoil(path.read_text("utf-8")), "utf-8")
    before = path.read_bytes()
    code, output = repo.gold("freeze", "v1")
    assert (code, output.startswith(EXISTS), path.read_bytes()) == (ends, True, before), output


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_in_the_place_of_the_manifest_is_left_alone(rag, folder, make):
    write_rows(folder / GOLD, [ONE])
    make(folder / "out.json")
    code, out, err = rag("freeze", "v1", "--unsigned", "--out", "out.json")
    assert (code, out, err.startswith("out.json: ")) == (2, "", True)


def test_unsigned_items_are_refused_and_the_way_that_is_shown_mends_it(repo):
    repo.stage(ONE, {**TWO, "tags": ["x"]})
    code, output = repo.gold("freeze", "v1")
    assert (code, output.splitlines()[0]) == (1, f"{GOLD}:2: no record signs the current state of 'A2'.")
    assert not (repo.path / MANIFEST).exists()
    assert repo.gold("freeze", "v0", "--unsigned")[0] == 0
    assert manifest(repo, "eval/gold.frozen/v0.json")["signed"] == "1 of 2"
    assert "  rag-eval gold signoff --baseline --reason '…'" in output.splitlines()
    assert repo.gold("signoff", "--baseline", "--reason", "reviewed")[0] == 0
    assert repo.gold("freeze", "v1")[0] == 0
    assert manifest(repo)["signed"] == "2 of 2"


def test_check_goes_by_items_not_by_lines(repo):
    repo.gold("freeze", "v1")
    assert repo.gold("freeze", "v1", "--check") == (0, "No differences: the gold set has the 2 items of v1.\n")
    lines = (repo.path / GOLD).read_bytes().splitlines()
    repo.write(GOLD, b"\xef\xbb\xbf" + b"\r\n\r\n".join(reversed(lines)) + b"\r\n")
    assert repo.gold("freeze", "--check", "v1") == (0, "No differences: the gold set has the 2 items of v1.\n")


def test_check_lists_what_was_added_changed_and_removed(repo):
    repo.gold("freeze", "v1")
    write_rows(repo.path / GOLD, [{**ONE, "tags": ["x"]}, {**ONE, "qid": "A3", "question": "Why?"}])
    code, output = repo.gold("freeze", "v1", "--check")
    assert (code, output.splitlines()[:3]) == (1, ["changed 'A1'", "removed 'A2'", "added 'A3'"])
    assert output.splitlines()[3].startswith(f"3 differences from {MANIFEST}.")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda value: value["items"].popitem(), "was edited: its digest does not match its items"),
        (lambda value: value.update(tag="v2"), "is the manifest of another tag, 'v2'"),
        (lambda value: value.update(v=2), "/v"),
        (lambda value: value.pop("records"), "records"),
        (lambda value: value["items"].update(A1="sha256:0"), "/items/A1"),
    ],
)
def test_check_refuses_a_manifest_that_was_edited(repo, change, said):
    repo.gold("freeze", "v1")
    value = manifest(repo)
    change(value)
    repo.write(MANIFEST, json.dumps(value))
    code, answer = repo.gold("freeze", "v1", "--check")
    assert (code, answer.startswith(f"{MANIFEST}: "), said in answer) == (2, True, True), answer


def test_check_of_a_tag_that_was_never_frozen_ends_with_2(repo):
    code, output = repo.gold("freeze", "v9", "--check")
    assert (code, output.startswith("eval/gold.frozen/v9.json: no such file.")) == (2, True)


def test_freeze_works_from_a_folder_below_and_by_the_policy_of_the_gates_file(repo):
    gates = "version: 1\nsignoff: {dataset: other, gold: eval/gold.jsonl}\n"
    repo.write("eval-gates.yml", gates.replace("version: 1\n", ""))
    below = Repo(repo.path / "eval")
    code, output = below.gold("freeze", "v1")
    assert (code, output.splitlines()[0]) == (1, f"{GOLD}:1: no record signs the current state of 'A1'.")
    assert below.gold("freeze", "v1", "--unsigned")[0] == 0
    assert (manifest(repo)["dataset"], manifest(repo)["records"]) == ("other", [])
    (repo.path / "eval-gates.yml").unlink()
    assert below.gold("freeze", "v1", "--check") == (0, "No differences: the gold set has the 2 items of v1.\n")


def test_records_that_do_not_count_are_left_out(repo):
    record = repo.path / "eval/gold.signoff" / repo.records()[0]
    repo.write("eval/gold.signoff/2026-01-01-00000000.json", record.read_bytes())
    repo.write("eval/gold.signoff/broken.json", "{")
    assert repo.gold("freeze", "v1")[0] == 0
    assert [item["name"] for item in manifest(repo)["records"]] == [record.name]


def test_a_gold_set_that_is_an_array_is_frozen_too_and_a_packed_one_is_not(rag, folder):
    import gzip

    rows = [{"qid": "A1", "q": "What?", "answerable": True, "gold_ids": ["a"]}]
    (folder / "gold.json").write_text(json.dumps(rows), encoding="utf-8")
    assert rag("freeze", "v1", "--unsigned", "--gold", "gold.json")[0] == 0
    value = json.loads((folder / "gold.frozen/v1.json").read_text(encoding="utf-8"))
    assert value["items"] == {"A1": f"sha256:{hashlib.sha256(json.dumps(rows[0]).encode()).hexdigest()}"}
    (folder / "gold.jsonl.gz").write_bytes(gzip.compress(jsonl(ONE, TWO)))
    code, _, err = rag("freeze", "v1", "--unsigned", "--gold", "gold.jsonl.gz")
    assert (code, "is compressed" in err) == (2, True)


@pytest.mark.parametrize("tag", ["", ".", "..", "a..b", "a.", ".a", "a/b", "a\\b", "-a", "a b", "ä", "a" * 65, "v1\n"])
def test_a_tag_that_is_no_plain_name_is_refused_and_writes_nothing(rag, folder, tag):
    write_rows(folder / GOLD, [ONE])
    assert rag("freeze", "--unsigned", "--", tag)[0] == 2
    assert [path.name for path in folder.rglob("*.json")] == []


@pytest.mark.parametrize("tag", ["v1", "1.0.0", "2026-11-21", "a_b-c.d", "a" * 64])
def test_plain_tags_are_taken_by_the_command_and_by_the_schema(tag):
    assert re.fullmatch(TAG, tag)
    jsonschema.validate(tag, SCHEMA["properties"]["tag"])


def test_the_digest_does_not_hang_on_the_order_of_items():
    hashes = [f"sha256:{n:064x}" for n in range(5)]
    assert manifest_digest(hashes) == manifest_digest(hashes[::-1]) != manifest_digest(hashes[1:])


def test_freeze_loads_nothing_heavy(tmp_path):
    write_rows(tmp_path / GOLD, [ONE])
    code = (
        "import sys; from rag_eval import cli; cli.main(['gold', 'freeze', 'v1', '--unsigned']); "
        "print(sorted({'tabulate', 'jsonschema'} & sys.modules.keys()))"
    )
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_the_root_is_that_of_git(repo):
    assert repository_root(str(repo.path / "eval")) == repo.git("rev-parse", "--show-toplevel")


def test_a_record_that_is_a_link_is_refused(repo):
    (repo.path / "eval/gold.signoff/link.json").symlink_to(repo.path / GOLD)
    code, output = repo.gold("freeze", "v1")
    assert (code, "link.json: is a symbolic link" in output) == (2, True)


def test_without_a_repository_the_root_is_the_current_folder(folder):
    (folder / "deep").mkdir()
    assert repository_root("deep") == os.path.realpath(folder / "deep")
