"""Expected answers that do not fit the rest of their item."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rag_eval.common.escaping import quoted
from rag_eval.gold.lint._sample import LintNote, fold
from rag_eval.metrics.answers import phrases

if TYPE_CHECKING:
    from rag_eval.gold.lint._sample import Sample


def without_substring(sample: Sample) -> Iterator[LintNote]:
    """Expected answers that would not count as right themselves."""
    for gold in sample.answerable:
        answer = (gold.expected_answer or "").lower()
        if answer.strip() and gold.substrings and not any(text in answer for text in gold.substrings):
            nearly = any((plain := fold(text)) and plain in fold(answer) for text in gold.substrings)
            but = ", but for white space, quotes, dashes or marks" if nearly else ""
            message = f"expected_answer holds none of its {len(gold.substrings)} substring(s){but}"
            yield LintNote(message, "Correct the answer, or add a substring that is in it.", gold)


def without_phrase(sample: Sample) -> Iterator[LintNote]:
    """Expected answers of which the metric containment can find nothing, whatever is answered."""
    for gold in sample.answerable:
        if gold.expected_answer is not None and not phrases(gold.expected_answer):
            message = f"expected_answer {quoted(gold.expected_answer, 40)} has no phrase that containment could find"
            yield LintNote(message, "Write a run of five letters a-z or digits, or leave the field out.", gold)
