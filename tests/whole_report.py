"""One report.json with something in every field, the places that its schema leaves free, and how it is shown."""

from __future__ import annotations

import json

from cases import ROOT
from hostile import replaced, strings_of
from rag_eval.analysis.judging import rejudge_same_gates
from rag_eval.readers.strict_json import pointer
from seams import Contract, from_json, render

SCHEMA = Contract("report")
METRICS = ("precision", "chr", "under_refusal", "recall_all@3", "recall_all@7", "containment")
SIGNED = {
    "level": "signature",
    "enforced": True,
    "proves": "Signed by somebody.",
    "unchecked": ["four eyes", "reviews"],
}


CI = {"repository": "octo/help-desk", "branch": "rerank", "commit": "9f2c1ab", "pull_request": 42, "run": 17}


def report_of(name):
    return json.loads((ROOT / "tests" / "expected" / name / "report.json").read_text("utf-8"))


def whole():
    """One report with something in every field."""
    moved, compared, sliced = map(report_of, ("moved", "compared", "sliced"))
    parts = {name: compared[name] for name in ("baseline", "flips", "effects", "diagnosis", "metrics", "questions")}
    slices = {"slices": sliced["slices"][:3], "min_n": 9}
    parts["questions"] = compared["questions"][:5]
    parts["metrics"] = {name: compared["metrics"][name] for name in METRICS}
    notes = [{"file": "gold.jsonl", "line": 3, "message": "an unknown field", "times": 2}]
    about = {"system_commit": "abc", "models": {"embedder": ["one", "two"]}}
    return {**moved, **parts, **slices, "notes": notes, "signed_at": SIGNED, "run": about, "ci": CI}


def accepted(paths, text):
    """The places that the schema lets hold a text, asked about all of them at once."""
    accepted = set(paths)
    while faults := {error.where for error in SCHEMA.faults(replaced(REPORT, accepted, [text]))}:
        refused = {path for path in accepted if any(pointer(path[:end]) in faults for end in range(len(path) + 1))}
        assert refused, faults
        accepted -= refused
    return accepted


def kind_of(path):
    return tuple("*" if isinstance(key, int) else key for key in path)


REPORT = whole()
PLACES = {kind_of(path): path for path in strings_of(REPORT)}
KINDS = {kind_of(path) for path in accepted(PLACES.values(), "<b>@octocat\n::error::x")}
FREE = {path for path in strings_of(REPORT) if kind_of(path) in KINDS}
BOUND = [path for kind, path in PLACES.items() if kind not in KINDS]


def shown(value, form="markdown"):
    """Render a report.json after its gates were evaluated again."""
    return render(rejudge_same_gates(from_json(value)), form)
