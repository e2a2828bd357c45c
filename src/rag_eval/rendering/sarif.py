"""The report as SARIF 2.1.0 for code scanning: failed gates, findings and wrong answers on their lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rag_eval.cases.labels import MEANING
from rag_eval.common.escaping import one_line
from rag_eval.rendering import phrases
from rag_eval.rendering.annotations import all_of, in_repository
from rag_eval.rendering.data_text import json_text

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.rendering.annotations import Pointer

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LONGEST = 1000
_ODD = re.compile(rb"[^A-Za-z0-9._~/-]")
_BRACKET = re.compile(r"[\\\[\]]")
_FINGERPRINT = "ragEval/v1"
"""What a result is told by from run to run; another rule to make it is another name."""


def render(report: Report) -> str:
    """Return one run of one tool. The wrong answers of a run that passed are notes, because nothing has to be done."""
    pointers = all_of(report)
    rules = {}
    for pointer in pointers:
        texts = {"gate": f"the gate on {pointer.code}", "finding": f"the finding {pointer.code}"}
        text = texts.get(pointer.kind) or MEANING[pointer.code]
        rules[pointer.rule] = {"id": pointer.rule, "shortDescription": _text(text)}
    indexes = {name: index for index, name in enumerate(rules)}
    results = [_result(pointer, indexes, report) for pointer in pointers]
    driver = {"name": "rag-eval", "semanticVersion": report.version, "rules": list(rules.values())}
    properties = {"verdict": report.verdict, "summary": one_line(phrases.headline(report), _LONGEST)}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results, "properties": properties}
    return json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _result(pointer: Pointer, indexes: dict[str, int], report: Report) -> dict[str, Any]:
    is_note = pointer.kind == "question" and report.passed
    return {
        "ruleId": pointer.rule,
        "ruleIndex": indexes[pointer.rule],
        "level": "note" if is_note else pointer.level,
        "message": _text(pointer.text),
        "locations": [{"physicalLocation": _place(pointer, report)}],
        "partialFingerprints": {_FINGERPRINT: pointer.fingerprint},
    }


def _place(pointer: Pointer, report: Report) -> dict[str, Any]:
    """Return the position; code scanning accepts only files of the repository, so others point at the gates file."""
    file, line = in_repository(pointer.file, pointer.line, report.gates_file)
    written = _ODD.sub(lambda odd: b"%%%02X" % odd[0][0], file.encode(errors="replace")).decode()
    location: dict[str, Any] = {"artifactLocation": {"uri": written, "uriBaseId": "%SRCROOT%"}}
    return {**location, "region": {"startLine": line}} if line else location


def _text(text: str) -> dict[str, str]:
    """Return a message. Brackets in it are escaped, so that untrusted input cannot make links."""
    return {"text": _BRACKET.sub(r"\\\g<0>", one_line(text, _LONGEST))}
