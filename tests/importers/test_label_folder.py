"""A folder of label files as gold: what its cases come to, and what is said where the files are wrong."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cases import write_rows
from importing import CASES, HERE, LABELS, golds, problems
from project import Project, apart, gates
from rag_eval import api
from rag_eval.contract import LABEL_FILES
from rag_eval.importers import Account, written
from rag_eval.importers.frameworks import joined_labels as joined
from rag_eval.readers.gold_file import read_entries
from rag_eval.readers.import_inputs import foreign_gold
from reading import reader
from seams import Contract, Gold, read_gold

GOLD = Contract("gold")


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(LABELS, tmp_path / "labels")


LABELS_OF_OTHERS = [
    *("attack", "facts", "expected_claims", "forbidden_claims", "expected_outcome", "required_flags"),
    *("forbidden_flags", "min_citations", "latency_budget", "line"),
]


def test_a_case_takes_its_labels_from_every_file():
    items, wrong, _ = golds(LABELS)
    assert wrong == []
    assert items["k01"] == Gold(
        qid="k01",
        question="How long does a parcel to Iceland take?",
        answerable=True,
        substrings=(),
        citations=("delivery-4",),
        relevance_grades={"delivery-4": 3, "delivery-1": 1},
        relevant_docs=("delivery",),
        doc_grades={"delivery": 3},
        query_type="faq",
        expected_documents=("delivery",),
        **{name: getattr(items["k01"], name) for name in LABELS_OF_OTHERS},
    )


def test_grades_without_a_prefix_are_of_documents_and_those_with_one_of_chunks():
    row = joined(
        {"case_id": "a", "query": "?"},
        {"retrieval_labels.jsonl": {"relevance_grades": {"doc": 2}, "chunk_relevance_grades": {"chunk": 3}}},
        Account(),
    )
    assert (row["doc_grades"], row["relevance_grades"]) == ({"doc": 2}, {"chunk": 3})


@pytest.mark.parametrize(
    ("retrieval", "expected"),
    [({}, ["x"]), ({"relevant_chunks": []}, ["x"]), ({"relevant_chunks": ["r"]}, ["r"])],
)
def test_expected_chunks_are_citations_where_no_chunk_is_labelled_relevant(retrieval, expected):
    labels = {"retrieval_labels.jsonl": retrieval, "context_labels.jsonl": {"expected_chunks": ["x"]}}
    assert joined({"case_id": "a", "query": "?"}, labels, Account())["gold_citations"] == expected


@pytest.mark.parametrize(
    ("outcome", "answerable"),
    [(None, True), ("success", True), ("uncertain", True), ("no_results", False), ("blocked", False)],
)
def test_what_ends_without_results_or_blocked_is_not_answerable(outcome, answerable):
    labels = {
        "retrieval_labels.jsonl": {"relevant_chunks": ["c"]},
        "pipeline_labels.jsonl": {"expected_outcome": outcome} if outcome else {},
    }
    row = joined({"case_id": "a", "query": "?"}, labels, Account())
    assert (row["answerable"], row["gold_citations"]) == (answerable, ["c"] if answerable else [])


@pytest.mark.parametrize(
    ("given_budget", "kept"),
    [
        ({"p95": 5}, {"total": 5}),
        ({"p95": 5, "p50": 1}, {"total": 5}),
        ({"p95": 5, "total": 4, "generate": 3}, {"total": 4, "generate": 3}),
        ({"p99": 9}, {}),
        *(({stage: 1}, {stage: 1}) for stage in ("retrieve", "generate", "folder_select", "judge", "total")),
        *(({stage: 1}, {stage: 1}) for stage in ("guardrail_input", "guardrail_output")),
        ({}, {}),
    ],
)
def test_the_95th_percentile_of_a_latency_budget_is_the_total(given_budget, kept):
    labels = {"pipeline_labels.jsonl": {"latency_budget_ms": given_budget}}
    assert joined({"case_id": "a", "query": "?"}, labels, Account())["latency_budget_ms"] == kept


def test_what_is_left_out_is_a_note_and_what_is_renamed_is_not():
    notes = golds(LABELS)[2]
    assert "left out: user_roles of cases.jsonl (no metric uses the role of the user), 3 times" in notes
    assert [note for note in notes if "read as" in note] == []


def test_rows_are_kept_as_the_joined_ones():
    entries = read_entries(reader(), str(LABELS))
    assert [row["qid"] for _, row in entries] == ["k01", "k02", "k03", "k04", "k05"]
    assert entries[1][1]["expected_documents"] == ["customs"]


def test_files_of_other_names_are_noted_and_hidden_ones_are_not(folder):
    (folder / "retreival_labels.jsonl").write_text("{}")
    (folder / ".keep").write_text("")
    notes = golds(folder)[2]
    assert [note for note in notes if "not a label file" in note] == [
        "left out: retreival_labels.jsonl (it is not a label file)"
    ]


def test_only_the_cases_have_to_be_there(folder):
    for name in LABEL_FILES:
        if name != CASES:
            (folder / name).unlink()
    items, wrong, _ = golds(folder)
    assert ([*items], wrong) == (["k01", "k02", "k03", "k04", "k05"], [])
    (folder / CASES).unlink()
    (line,) = problems(folder)
    assert line.startswith(
        "FILE: is a folder without cases.jsonl. A folder of labels has its questions in cases.jsonl."
    )


def test_an_empty_set_of_cases_is_no_gold(folder):
    for name in LABEL_FILES:
        (folder / name).write_text("")
    assert problems(folder)[0].startswith("FILE: has no gold items.")


GARBAGE = [
    pytest.param(CASES, '{"case_id": "k01", "query": "Again?"}\n', ["/case_id", "'k01' is already used on line 1"]),
    pytest.param(CASES, '{"case_id": 7, "query": "?"}\n', ["/case_id", "7 is not a string"]),
    pytest.param(CASES, '{"case_id": "", "query": "?"}\n', ["/case_id", "the text is empty"]),
    pytest.param(CASES, '{"case_id": "k09"}\n', ["'query' is missing"]),
    pytest.param(CASES, '{"qid": "A", "question": "?", "answerable": true, "gold_citations": []}\n', ["gold file"]),
    pytest.param(CASES, "[]\n", ["an empty list is not an object"]),
    pytest.param(CASES, "not json\n", ["column 1"]),
    pytest.param(CASES, b"\xff\xfe{}\n", ["UTF-8"]),
    pytest.param(
        "retrieval_labels.jsonl",
        '{"case_id": "k77"}\n',
        ["/case_id", "cases.jsonl has no case 'k77'. Add the case to cases.jsonl, or"],
    ),
    pytest.param("retrieval_labels.jsonl", '{"case_id": "k01"}\n', ["'k01' is already used on line 1"]),
    pytest.param(
        "retrieval_labels.jsonl",
        '{"case_id": "k04", "relevance_grades": {"d": 1.5}}\n',
        ["/relevance_grades/d", "1.5 is not a whole number"],
    ),
    pytest.param(
        "retrieval_labels.jsonl", '{"case_id": "k04", "relevant_docs": null}\n', ["/relevant_docs", "is not a list"]
    ),
    pytest.param(
        "context_labels.jsonl", '{"case_id": "k02", "gold_facts": ["15 days"]}\n', ["/gold_facts/0", "not an object"]
    ),
    pytest.param("context_labels.jsonl", '{"case_id": "k02", "gold_facts": [], "gold_facts": []}\n', ["occurs twice"]),
    pytest.param(
        "groundedness_labels.jsonl", '{"case_id": "k03", "expected_citations": "d"}\n', ["/expected_citations"]
    ),
    pytest.param(
        "pipeline_labels.jsonl",
        '{"case_id": "k02", "expected_outcome": "sucess"}\n',
        ["/expected_outcome", "Did you mean 'success'?"],
    ),
    pytest.param("pipeline_labels.jsonl", '{"case_id": "k02", "min_citations": -1}\n', ["/min_citations"]),
    pytest.param("pipeline_labels.jsonl", '{"case_id": "k02", "latency_budget_ms": {"p95": NaN}}\n', ["NaN"]),
]


@pytest.mark.parametrize(("name", "more", "words"), GARBAGE)
def test_what_is_wrong_is_said_on_its_line_of_its_label_file(folder, name, more, words):
    path = folder / name
    count = len(path.read_bytes().splitlines())
    path.write_bytes(path.read_bytes() + (more if isinstance(more, bytes) else more.encode()))
    (line,) = problems(folder)
    assert line.startswith(f"FILE/{name}:{count + 1}:")
    assert [word for word in words if word not in line] == []


def test_all_problems_of_all_files_are_said_at_once(folder):
    for name in LABEL_FILES:
        with (folder / name).open("a") as file:
            file.write('{"case_id": 1}\n')
    assert [line.partition(":")[0] for line in problems(folder) if "is not a string" in line] == [
        f"FILE/{name}" for name in LABEL_FILES
    ]


def test_against_half_of_the_cases_no_label_is_missed(folder):
    with (folder / CASES).open("a") as file:
        file.write('{"case_id": "k06"}\n')
    write_rows(folder / "pipeline_labels.jsonl", [{"case_id": "k06", "min_citations": 1}])
    assert [line for line in problems(folder) if "has no case" in line] == []


def test_links_out_of_the_folder_devices_and_pointers_are_refused(folder, tmp_path):
    def refused(name):
        (line,) = [line for line in problems(folder) if name in line]
        return line

    outside = (folder / CASES).rename(tmp_path / "outside.jsonl")
    (folder / CASES).symlink_to(outside)
    assert "leads out of its folder" in refused(CASES)
    (folder / CASES).unlink()
    os.mkfifo(folder / CASES)
    assert "is a device or a pipe" in refused(CASES)
    (folder / CASES).unlink()
    (folder / CASES).mkdir()
    assert "is a folder, not a file" in refused(CASES)
    (folder / CASES).rmdir()
    outside.rename(folder / CASES)
    (folder / "context_labels.jsonl").write_text("version https://git-lfs.github.com/spec/v1\n")
    assert "git lfs pull" in refused("context_labels.jsonl")


def test_a_link_inside_the_workspace_leads_to_the_files_and_one_out_of_it_does_not(folder, tmp_path):
    space = tmp_path / "space"
    space.mkdir()
    (space / "out").symlink_to(folder)
    inside = reader(root=str(space))
    assert read_gold(inside, str(space / "out")) == {}
    assert "leads out of the workspace" in str(inside.ledger.problems[0])
    shutil.copytree(folder, space / "own")
    (space / "link").symlink_to(space / "own")
    assert len(read_gold(reader(root=str(space)), str(space / "link"))) == 5


def test_a_packed_label_file_is_read_as_others_are(folder):
    whole = golds(folder)[0]
    path = folder / "retrieval_labels.jsonl"
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert golds(folder)[0] == whole


def sum_of(folder):
    """What ``sha256sum`` of the label files, by name, comes to under ``sha256sum``."""
    lines = [
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n"
        for name in sorted(LABEL_FILES)
        if (folder / name).exists()
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def test_the_digest_of_a_folder_is_that_of_the_sums_of_its_files(folder):
    def digest():
        result = hashlib.sha256()
        read_gold(reader(), str(folder), result)
        return result.hexdigest()

    first = digest()
    assert first == sum_of(folder)
    (folder / "notes.txt").write_text("not read")
    assert digest() == first
    (folder / "context_labels.jsonl").unlink()
    assert digest() == sum_of(folder) != first


def test_a_run_that_answered_another_folder_is_stale(folder, tmp_path):
    trace = shutil.copy(HERE / "labels-trace.jsonl", tmp_path / "trace.jsonl")
    (tmp_path / "run.json").write_text(json.dumps({"gold_sha256": sum_of(folder)}))
    assert [finding.code for finding in api.score(folder, trace).findings if finding.code == "other-gold"] == []
    (folder / "context_labels.jsonl").unlink()
    assert [finding.code for finding in api.score(folder, trace).findings if finding.code == "other-gold"] == [
        "other-gold"
    ]


names = st.sampled_from(["a", "b", "c", "d"])
texts = st.lists(st.sampled_from(["x", "y", "Zürich ##[x"]), max_size=2)
LABEL = {
    "retrieval_labels.jsonl": {
        "relevant_docs": st.lists(names, max_size=2),
        "relevance_grades": st.dictionaries(names, st.integers(0, 3), max_size=2),
        "relevant_chunks": st.lists(names, max_size=2),
        "chunk_relevance_grades": st.dictionaries(names, st.integers(0, 3), max_size=2),
    },
    "context_labels.jsonl": {
        "gold_facts": st.lists(st.fixed_dictionaries({"fact": names}, optional={"aliases": texts}), max_size=2),
        "expected_chunks": st.lists(names, max_size=2),
    },
    "groundedness_labels.jsonl": {
        "expected_claims": texts,
        "expected_citations": st.lists(names, max_size=2),
        "forbidden_claims": texts,
    },
    "pipeline_labels.jsonl": {
        "expected_outcome": st.sampled_from(["success", "blocked", "no_results", "uncertain"]),
        "required_flags": texts,
        "forbidden_flags": texts,
        "min_citations": st.integers(0, 3),
        "latency_budget_ms": st.dictionaries(
            st.sampled_from(["p50", "p95", "total", "generate"]), st.integers(0, 9) | st.floats(0, 9), max_size=3
        ),
    },
}
case_rows = st.fixed_dictionaries(
    {"query": st.text(max_size=8)}, optional={"user_roles": texts, "query_type": st.sampled_from(["faq", "research"])}
)
labelled = st.fixed_dictionaries({}, optional={n: st.fixed_dictionaries({}, optional=f) for n, f in LABEL.items()})
folders = st.dictionaries(names, st.tuples(case_rows, labelled), min_size=1)


@given(folders, st.randoms(use_true_random=False))
def test_any_split_of_rows_into_files_joins_to_the_rows(tmp_path_factory, cases, random):
    """The labels of a case are its own wherever their lines stand, and an item keeps our contract."""
    folder = tmp_path_factory.mktemp("split")
    write_rows(folder / CASES, [{"case_id": name, **case} for name, (case, _) in cases.items()])
    for file in LABEL:
        result = [{"case_id": name, **local[file]} for name, (_, local) in cases.items() if file in local]
        random.shuffle(result)
        if result:
            write_rows(folder / file, result)
    quiet = reader()
    made = {row["qid"]: row for _, row in foreign_gold(quiet, str(folder), "labels")}
    assert quiet.ledger.problems == []
    assert list(made) == list(cases)
    once = folder / "imported.jsonl"
    once.write_text("".join(f"{written(row)}\n" for row in made.values()), encoding="utf-8")
    direct, again = (read_gold(reader(), str(path)) for path in (folder, once))
    assert [replace(item, line=0) for item in direct.values()] == [replace(item, line=0) for item in again.values()]
    for name, (case, ours) in cases.items():
        assert made[name] == joined({"case_id": name, **case}, ours, Account())
        assert list(GOLD.faults(made[name])) == []
        assert written(made[name]).count("\n") == 0
        assert json.loads(written(made[name])) == made[name]


# --- sign-off ---------------------------------------------------------------------------------------------------------

NO_ITEMS = "'eval/labels' is a folder, but sign-off needs one file"
MEND = "rag-eval import labels eval/labels --out eval/gold.jsonl"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose gold is a folder of labels, and whose run answers it."""
    apart(monkeypatch)
    made = Project.made(tmp_path / "repo", gates("gold: eval/labels\n", precision="", **{"recall@5": "{min: 0.1}"}))
    shutil.copytree(LABELS, made.path / "eval/labels")
    made.put(gold=None, trace=(HERE / "labels-trace.jsonl").read_text("utf-8"))
    made.done("labels")
    monkeypatch.chdir(made.path)
    return made


@pytest.mark.parametrize(
    "words",
    [
        ["gold", "check"],
        ["gold", "diff"],
        ["gold", "signoff", "--reason", "x", "--signer", "a@b.c"],
        ["gold", "freeze", "v1"],
    ],
)
def test_sign_off_says_of_a_folder_what_it_needs(project, command, words):
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert NO_ITEMS in err
    assert MEND in err


def test_a_change_is_scored_against_a_base_and_its_gold_is_said_to_be_unseen(project, command):
    project.write("eval/labels/context_labels.jsonl", "")
    report = json.loads(command("score", "--base", "main", "--format", "json", "--quiet")[1])
    (result,) = [item for item in report["findings"] if item["code"] == "gold-not-in-items"]
    assert (result["level"], NO_ITEMS in result["message"], MEND in result["fix"]) == ("warning", True, True)
    assert report["verdict"] == "passed"


def test_where_sign_off_is_asked_for_a_folder_is_not_judged(project, command):
    with (project.path / "eval-gates.yml").open("a") as file:
        file.write("signoff: {require: record, gold: eval/labels}\n")
    project.done("signoff")
    code, out, err = command("score", "--base", "main")
    assert (code, out, NO_ITEMS in err) == (2, "", True)


def test_a_gold_file_that_becomes_a_folder_in_a_change_does_not_slip_through_sign_off(tmp_path, monkeypatch, command):
    apart(monkeypatch)
    project = Project.made(
        tmp_path / "repo", gates("signoff: {require: record}\n", precision="", **{"recall@5": "{min: 0}"})
    )
    project.branch("pr")
    project.put(gold=None, trace=(HERE / "labels-trace.jsonl").read_text("utf-8"))
    shutil.copytree(LABELS, project.path / "eval/gold.jsonl")
    project.done("a folder in its place")
    monkeypatch.chdir(project.path)
    code, out, err = command("score", "--base", "main")
    assert (code, out, "is a folder" in err) == (2, "", True)
