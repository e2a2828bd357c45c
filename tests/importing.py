"""What the tests of imports share: the examples, and what reading and importing make of them."""

from cases import ROOT
from reading import reader, said
from seams import read_gold

HERE = ROOT / "tests" / "imports"
LABELS, CASES, RUN = HERE / "labels", "cases.jsonl", HERE / "eval_run.json"


def golds(path):
    """The items of a gold set, its problems and its notes."""
    result = reader()
    items = read_gold(result, str(path))
    return items, said(result.ledger, str(path)), [note.message for note in result.ledger.notes]


def problems(path):
    return golds(path)[1]
