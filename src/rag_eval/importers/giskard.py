"""Test sets of Giskard's RAGET as gold rows; its reports, which have an agent's answers too, are tables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_eval.importers import Row, unwrap
from rag_eval.importers.conversion import Conversion

_READ = ("id", "question", "reference_answer", "reference_context", "conversation_history", "metadata")
_JUDGED = ("correctness", "correctness_reason")
_DOCUMENT = re.compile(r"(?:^|\n\n)Document [^\s:]{1,100}: ")


def golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each question; one out of scope is not answerable, its context is only similar to it."""
    for sample in conversion.records("a question"):
        question = conversion.question(sample.get("question"), sample)
        if question is None:
            conversion.problem("", "has no question", "Save the test set whole: testset.save(PATH)")
            continue
        metadata = unwrap.scalars(unwrap.decoded(sample.get("metadata")))
        in_scope = metadata.get("question_type") != "out of scope"
        texts = [text for text in _DOCUMENT.split(str(sample.get("reference_context") or "")) if text.strip()]
        history = [message for message in unwrap.decoded(sample.get("conversation_history")) or () if message]
        conversion.drop_unread(sample, _READ, "", _JUDGED)
        yield conversion.gold_row(
            unwrap.as_id(sample.get("id")) or unwrap.question_id("giskard", question),
            question,
            unwrap.as_id(sample.get("reference_answer")),
            conversion.reference_ids(texts) if in_scope else [],
            answerable=in_scope,
            history=history,
            meta=metadata,
        )
