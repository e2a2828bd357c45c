"""Test sets of Giskard's RAGET as gold rows; its reports, which have an agent's answers too, are tables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_eval.importers import Row, unwrap
from rag_eval.importers.conversion import Conversion

_READ = ("id", "question", "reference_answer", "reference_context", "conversation_history", "metadata")
_DOCUMENT = re.compile(r"(?:^|\n\n)Document [^\s:]{1,100}: ")


def golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each question; one out of scope is not answerable, its context is only similar to it."""
    for sample in conversion.records("a question"):
        metadata = unwrap.as_dict(unwrap.decoded(sample.get("metadata")))
        in_scope = metadata.get("question_type") != "out of scope"
        texts = [text for text in _DOCUMENT.split(str(sample.get("reference_context") or "")) if text.strip()]
        expected = {"answer": sample.get("reference_answer"), "answerable": in_scope}
        if in_scope:
            expected["contexts"] = texts
        more = {"history": unwrap.decoded(sample.get("conversation_history")) or []}
        item, asked = {**sample, "metadata": metadata}, sample.get("question")
        yield from conversion.dataset_item(item, asked, expected, _READ, "/question", "giskard", **more)
