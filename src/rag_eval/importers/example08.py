"""Example 08's question set, one JSON array, as gold rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag_eval.importers import Inputs, Numbered
    from rag_eval.importers._account import Account

    Row = dict[str, Any]

_NAMES = {"q": "question", "gold_ids": "gold_citations", "gold_claim": "expected_answer"}


def rows(inputs: Inputs, account: Account) -> Numbered:
    """Line and gold row of each question."""
    for line, element in inputs.elements(inputs.paths[0], "gold-array"):
        for field in element:
            if field in _NAMES:
                account.renamed(field, _NAMES[field])
        yield line, converted(element)


def converted(element: Row) -> Row:
    """The gold row of a valid element. Any claim will do for it: the form has no substrings."""
    row = {
        "qid": element["qid"],
        "question": element["q"],
        "answerable": element["answerable"],
        "gold_claim_substr": [],
        "gold_citations": list(element["gold_ids"]),
    }
    # An answerable question without a claim counts 0 in containment there: no answer contains nothing.
    claim = element.get("gold_claim", "" if element["answerable"] else None)
    return row if claim is None else row | {"expected_answer": claim}
