"""Hostile strings through the whole action: gold, traces, names of files and branches, to log, summary and comment."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import gold_row, write_rows
from depth import examples
from e2e.runner import parse_outputs
from hostile import PIECES, TEXTS, complaints, foreign_commands
from seams import Comment, action

HEAD = "a" * 40


class Pages:
    """GitHub's comments, in memory."""

    def __init__(self):
        self.bodies = {}

    def login(self):
        return "github-actions[bot]"

    def comments(self, number):
        return [Comment(position, self.login(), body, "https://example.org") for position, body in self.bodies.items()]

    def open_pulls(self, owner, branch):
        return []

    def create_comment(self, number, body, already):
        return self.update_comment(len(self.bodies), body)

    def update_comment(self, comment_id, body):
        self.bodies[comment_id] = body
        return Comment(comment_id, self.login(), body, "https://example.org")


def file_name(text):
    """``text`` as a name that a file can have here."""
    name = text.replace("/", "\u2215").replace("\0", "").encode("utf-8", "surrogateescape").decode("utf-8", "ignore")
    return name[:60].strip(". ") or "x"


GATES = """\
version: 1
gates: {precision: {min: 0.9}, chr: {min: 0.9, severity: warning}, section_accuracy: {min: 0.5}}
slices:
  by: [category, tags, meta.team]
  min_n: 1
  gates: {"category=*": {precision: {min: 0.5}}}
"""


class Runner:
    """A workspace in which every string is one of ``texts``."""

    def __init__(self, folder, texts):
        self.folder, self.texts, self.pages = folder / "work", texts, Pages()
        self.folder.mkdir()
        self.files = {name: folder / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        self.refused = {name: folder / name.lower() for name in ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE")}
        for file in (*self.files.values(), *self.refused.values()):
            file.write_text("")
        self.event, self.said = folder / "event.json", None

    def text(self, place):
        return self.texts[place % len(self.texts)]

    def write(self, trace=""):
        qids = [f"{self.text(index)}{index}" for index in range(4)]
        golds = [
            gold_row(
                qid=qid,
                question=self.text(index + 1),
                answerable=index != 3,
                gold_citations=[self.text(index + 2)] if index != 3 else [],
                category=self.text(index),
                tags=[self.text(index), "all"],
                meta={"team": self.text(3)},
            )
            for index, qid in enumerate(qids)
        ]
        rows = [
            {
                "qid": qid,
                "retrieved_ids": [self.text(index + 2)],
                "models": {self.text(1): self.text(2)},
                "answer_json": {"claim": self.text(index), "citations": [self.text(index)]},
                self.text(0): 1,
            }
            for index, qid in enumerate(qids[:3])
        ]
        write_rows(self.folder / "gold.jsonl", golds)
        (self.folder / "eval-gates.yml").write_text(GATES)
        name = trace or file_name(self.text(0)) + ".jsonl"
        write_rows(self.folder / name, rows)
        return name

    def run(self, trace, **inputs):
        branch = {"ref": self.text(0), "sha": HEAD, "label": self.text(1)}
        pull = {"number": 2, "head": branch, "base": {"ref": self.text(2)}, "title": self.text(3), "body": self.text(0)}
        output = {"pull_request": pull, "sender": {"login": self.text(1)}} if self.said is None else self.said
        self.event.write_text(json.dumps(output))
        given = {"gold": "gold.jsonl", "trace": trace, "gates": "eval-gates.yml", "github-token": "t0ken", **inputs}
        environ = {f"INPUT_{name.upper()}": value for name, value in given.items()}
        environ |= {name: str(file) for name, file in {**self.files, **self.refused}.items()}
        environ |= {"GITHUB_HEAD_REF": self.text(0), "GITHUB_BASE_REF": self.text(1), "GITHUB_REF": self.text(2)}
        environ |= {"GITHUB_WORKSPACE": str(self.folder), "GITHUB_EVENT_PATH": str(self.event)}
        environ |= {"GITHUB_REPOSITORY": "octo/hello", "GITHUB_API_URL": "https://api.github.test"}
        return action(environ, lambda *_: self.pages)

    def keeps_the_rules(self, log):
        assert foreign_commands(log) == []
        assert [file.read_text() for file in self.refused.values()] == ["", "", ""]
        outputs = parse_outputs(self.files["GITHUB_OUTPUT"].read_text("utf-8"))
        assert outputs["verdict"] in ("failed", "invalid")
        assert all("\n" not in value for value in outputs.values())
        assert complaints(self.files["GITHUB_STEP_SUMMARY"].read_text("utf-8")) == []
        for body in self.pages.bodies.values():
            marker, _, rest = body.partition("\n")
            assert marker == f"<!-- rag-eval-action id=rag-eval head={HEAD} run=0 failed -->"
            assert complaints(rest) == []


@pytest.fixture
def place_of(tmp_path_factory, monkeypatch):
    def place_of(texts):
        position = Runner(tmp_path_factory.mktemp("run"), texts)
        monkeypatch.chdir(position.folder)
        return position

    return place_of


@pytest.mark.deep
@pytest.mark.parametrize("piece", PIECES, ids=ascii)
def test_one_hostile_text_everywhere(place_of, capsys, piece):
    position = place_of([f"a{piece}b", piece, f" {piece} "])
    code = position.run(position.write())
    position.keeps_the_rules(capsys.readouterr().out)
    assert code == 1


@given(st.lists(TEXTS, min_size=1, max_size=4))
@examples(75)
def test_hostile_texts_everywhere(tmp_path_factory, texts):
    from contextlib import chdir, redirect_stdout
    from io import StringIO

    position, log = Runner(tmp_path_factory.mktemp("run"), texts), StringIO()
    with chdir(position.folder), redirect_stdout(log):
        position.run(position.write())
    position.keeps_the_rules(log.getvalue())


@pytest.mark.parametrize("piece", PIECES, ids=ascii)
def test_what_cannot_be_judged_is_said_as_safely(place_of, capsys, piece):
    position = place_of([piece])
    name = position.write()
    lines = [
        f'{{"qid": {json.dumps(piece)}, {json.dumps(piece)}: {{',
        piece,
        json.dumps({"qid": [piece], piece: piece}),
    ]
    (position.folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogatepass")
    assert position.run(name) == 2
    position.keeps_the_rules(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["gold", "gates", "k", "comment", "comment-id", "report-dir", "fail-on", "signoff"])
@pytest.mark.parametrize(
    "piece", ["::error::x", "\n::set-output name=a::b", "##[add-mask]x", "<b>@octocat", "a\x1b[1m"]
)
def test_hostile_inputs_are_said_as_safely(place_of, capsys, name, piece):
    position = place_of(["x"])
    code = position.run(position.write(), **{name: piece})
    assert code in (1, 2)
    assert foreign_commands(capsys.readouterr().out) == []
    assert not any(file.read_text() for file in position.refused.values())
    assert complaints(position.files["GITHUB_STEP_SUMMARY"].read_text("utf-8")) == []


NAMES = ["pull_request", "number", "head", "base", "sha", "ref", "repo", "user", "login", "workflow_run", "head_sha"]
NAMES += ["head_repository", "owner", "head_branch", "run_number", "repository", "default_branch", "before"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**70) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(NAMES), JSON, max_size=5), st.sampled_from(["", "handed/report.json"]))
@examples(100)
def test_an_event_of_any_shape_does_no_harm(tmp_path_factory, event, report):
    from contextlib import chdir, redirect_stdout
    from io import StringIO

    position, log = Runner(tmp_path_factory.mktemp("run"), ["x", "y"]), StringIO()
    name = position.write()
    position.said = event
    with chdir(position.folder), redirect_stdout(log):
        code = position.run(name, report=report)
    assert code in ((2,) if report else (1, 2))
    assert foreign_commands(log.getvalue()) == []
    assert all(complaints(body.partition("\n")[2]) == [] for body in position.pages.bodies.values())
