"""Which gold item a trace answers: by qid, q_id, case_id, or else by an exact match of the question."""

from __future__ import annotations

from rag_eval.safe import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rag_eval.model import Gold

    Row = dict[str, Any]

_IDS = ("qid", "q_id", "case_id")


class Questions:
    """The qids of each question of a gold set; gathered when a trace without an id is met, for most have one."""

    def __init__(self, golds: Mapping[str, Gold]) -> None:
        self._golds = golds
        self._qids: dict[str, list[str]] | None = None

    def qids(self, question: str) -> list[str]:
        """The gold items that ask a question to the letter."""
        if self._qids is None:
            self._qids = self._gathered()
        return self._qids.get(question, [])

    def _gathered(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for gold in self._golds.values():
            found.setdefault(gold.question, []).append(gold.qid)
        return found


UNNAMED = "the trace has neither an id nor a question"


def is_named(row: Row) -> bool:
    """Whether a trace row says which question it answers, whatever the gold set."""
    return any(row.get(name) for name in (*_IDS, "q", "question"))


def plain_question(text: str) -> str:
    """Return a question without case, punctuation and repeated blanks, to compare it with another."""
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())


def asks_another(row: Row, golds: Mapping[str, Gold]) -> str | None:
    """Return the qid of a trace row that says that another question was asked than its gold item asks."""
    qid = next((row[name] for name in _IDS if row.get(name)), None)
    gold = golds.get(qid) if isinstance(qid, str) else None
    asked = row.get("q") or row.get("question")
    if gold is None or not isinstance(asked, str) or asked == gold.question:
        return None
    return None if plain_question(asked) == plain_question(gold.question) else gold.qid


class Pairing:
    """Finds the qid of trace rows against one gold set, whose ``questions`` may be shared."""

    def __init__(
        self, golds: Mapping[str, Gold], note: Callable[[int, str], None], questions: Questions | None = None
    ) -> None:
        self._questions, self._note = questions or Questions(golds), note

    def qid(self, row: Row, line: int) -> tuple[str | None, str]:
        """The qid, or None and what is wrong."""
        given = [(name, row[name]) for name in _IDS if row.get(name)]
        if not given:
            return self._match_question(row)
        (name, qid), *others = given
        for other, value in others:
            if value != qid:
                self._note(line, f"'{other}' differs from '{name}'; '{name}' is taken")
        return qid, ""

    def _match_question(self, row: Row) -> tuple[str | None, str]:
        question = row.get("q") or row.get("question")
        if not question:
            return None, UNNAMED
        found = self._questions.qids(question)
        if len(found) == 1:
            return found[0], ""
        if not found:
            return None, f"no gold question is {quoted(question)} to the letter"
        return None, f"{len(found)} gold items ask {quoted(question)}"
