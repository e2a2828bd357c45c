"""Pairing of a trace with its gold item: by qid, q_id, case_id, conversation and turn, or the same question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rag_eval.common.escaping import quoted
from rag_eval.contract import Gold, Trace

_IDS = ("qid", "q_id", "case_id")


class QuestionIndex:
    """The qids of each question of a gold set, collected when the first trace without an id appears.

    ``golds`` has ``items()``, like a dict of gold items by qid.
    """

    def __init__(self, golds: Any) -> None:
        self._golds = golds
        self._qids: dict[str, list[str]] | None = None
        self._turns: dict[tuple[str | None, int | None], str] | None = None

    def pair(self, trace: Trace, note: Callable[[int, str], None]) -> tuple[str | None, str]:
        """Return the qid of the gold item that a trace answers, or None and what is wrong; differing ids are notes."""
        (name, qid), *others = [(name, qid) for name in _IDS if (qid := getattr(trace, name))] or [("", "")]
        for other, value in others:
            if value != qid:
                note(trace.line, f"'{other}' differs from '{name}'; '{name}' is used")
        if qid:
            return qid, ""
        if trace.conversation:
            if self._turns is None:
                self._turns = {(gold.conversation, gold.turn): qid for qid, gold in self._golds.items()}
            match = None if trace.turn is None else self._turns.get((trace.conversation, trace.turn))
            return match, "" if match else f"no gold item is turn {trace.turn} of {quoted(trace.conversation)}"
        return self._by_question(trace.q or trace.question)

    def _by_question(self, question: str) -> tuple[str | None, str]:
        if not question:
            return None, UNNAMED
        if self._qids is None:
            self._qids = {}
            for qid, gold in self._golds.items():
                self._qids.setdefault(gold.question, []).append(qid)
        qids = self._qids.get(question, [])
        if len(qids) == 1:
            return qids[0], ""
        if not qids:
            return None, f"no gold question is {quoted(question)} to the letter"
        return None, f"{len(qids)} gold items ask {quoted(question)}"


UNNAMED = "the trace has neither an id nor a question"


def is_named(trace: Trace) -> bool:
    """Return whether a trace has an id or a question, whatever the gold set."""
    return bool(trace.qid or trace.q_id or trace.case_id or trace.q or trace.question or trace.conversation)


def plain_question(text: str) -> str:
    """Return a question without case, punctuation and repeated blanks, for comparison."""
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())


def other_question(trace: Trace, golds: Mapping[str, Gold]) -> str | None:
    """Return the qid of a trace whose question differs from that of its gold item."""
    gold = golds.get(trace.qid or trace.q_id or trace.case_id)
    asked = trace.q or trace.question
    if gold is None or not asked or asked == gold.question:
        return None
    return None if plain_question(asked) == plain_question(gold.question) else gold.qid
