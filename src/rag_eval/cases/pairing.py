"""Which gold item a trace answers: by qid, q_id, case_id, by conversation and turn, or else by the same question."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rag_eval.common.escaping import quoted
from rag_eval.contract import Gold, Trace

_IDS = ("qid", "q_id", "case_id")


class Questions:
    """The qids of each question of a gold set; gathered when a trace without an id is met, for most have one."""

    def __init__(self, golds: Mapping[str, Gold]) -> None:
        self._golds = golds
        self._qids: dict[str, list[str]] | None = None
        self._turns: dict[tuple[str | None, int | None], str] | None = None

    def qids(self, question: str) -> list[str]:
        """The gold items that ask a question to the letter."""
        if self._qids is None:
            self._qids = self._gathered()
        return self._qids.get(question, [])

    def turn(self, conversation: str, turn: int | None) -> str | None:
        """The gold item of a turn; None if there is none."""
        if self._turns is None:
            self._turns = {(gold.conversation, gold.turn): gold.qid for gold in self._golds.values()}
        return self._turns.get((conversation, turn)) if turn is not None else None

    def _gathered(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for gold in self._golds.values():
            found.setdefault(gold.question, []).append(gold.qid)
        return found


UNNAMED = "the trace has neither an id nor a question"


def is_named(trace: Trace) -> bool:
    """Whether a trace says which question it answers, whatever the gold set."""
    return bool(trace.qid or trace.q_id or trace.case_id or trace.q or trace.question or trace.conversation)


def plain_question(text: str) -> str:
    """Return a question without case, punctuation and repeated blanks, to compare it with another."""
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())


def asks_another(trace: Trace, golds: Mapping[str, Gold]) -> str | None:
    """Return the qid of a trace that says that another question was asked than its gold item asks."""
    gold = golds.get(trace.qid or trace.q_id or trace.case_id)
    asked = trace.q or trace.question
    if gold is None or not asked or asked == gold.question:
        return None
    return None if plain_question(asked) == plain_question(gold.question) else gold.qid


class Pairing:
    """Finds the qid of traces in one gold set, whose ``questions`` may be shared."""

    def __init__(
        self, golds: Mapping[str, Gold], note: Callable[[int, str], None], questions: Questions | None = None
    ) -> None:
        self._questions, self._note = questions or Questions(golds), note

    def qid(self, trace: Trace) -> tuple[str | None, str]:
        """Return the qid, or None and what is wrong."""
        given = [(name, qid) for name in _IDS if (qid := getattr(trace, name))]
        if not given and trace.conversation:
            found = self._questions.turn(trace.conversation, trace.turn)
            return found, "" if found else f"no gold item is turn {trace.turn} of {quoted(trace.conversation)}"
        if not given:
            return self._match_question(trace.q or trace.question)
        (name, qid), *others = given
        for other, value in others:
            if value != qid:
                self._note(trace.line, f"'{other}' differs from '{name}'; '{name}' is taken")
        return qid, ""

    def _match_question(self, question: str) -> tuple[str | None, str]:
        if not question:
            return None, UNNAMED
        found = self._questions.qids(question)
        if len(found) == 1:
            return found[0], ""
        if not found:
            return None, f"no gold question is {quoted(question)} to the letter"
        return None, f"{len(found)} gold items ask {quoted(question)}"
