"""The report as SARIF 2.1.0, which code scanning reads: broken gates, findings and wrong answers on their lines."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from rag_eval.cases.labels import MEANING
from rag_eval.common.escaping import one_line
from rag_eval.common.paths import GATES_FILES
from rag_eval.rendering import phrases
from rag_eval.rendering.annotations import of_findings, of_gates, of_questions
from rag_eval.rendering.json_values import json_text

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
    """One run of one tool. The wrong answers of a run that passed are notes: nothing has to be done about them."""
    pointers = [*of_gates(report), *of_findings(report), *of_questions(report)]
    rules = {_name(one): _rule(one) for one in pointers}
    places = {name: place for place, name in enumerate(rules)}
    results = [_result(one, places, report) for one in pointers]
    driver = {"name": "rag-eval", "semanticVersion": report.version, "rules": list(rules.values())}
    told = {"verdict": report.verdict, "summary": one_line(phrases.headline(report), _LONGEST)}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results, "properties": told}
    return json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _name(one: Pointer) -> str:
    return f"{one.kind}/{one.code}"


def _rule(one: Pointer) -> dict[str, Any]:
    said = {"gate": f"the gate on {one.code}", "finding": f"the finding {one.code}"}
    return {"id": _name(one), "shortDescription": _text(said.get(one.kind) or MEANING[one.code])}


def _result(one: Pointer, places: dict[str, int], report: Report) -> dict[str, Any]:
    quiet = one.kind == "question" and report.passed
    return {
        "ruleId": _name(one),
        "ruleIndex": places[_name(one)],
        "level": "note" if quiet else one.level,
        "message": _text(one.text),
        "locations": [{"physicalLocation": _place(one, report)}],
        "partialFingerprints": {_FINGERPRINT: _digest(one)},
    }


def _place(one: Pointer, report: Report) -> dict[str, Any]:
    """Return where it stands; code scanning takes only files of the repository, so others point at the gates file."""
    file = _inside(one.file)
    address = file or _inside(report.gates_file) or GATES_FILES[0]
    written = _ODD.sub(lambda odd: b"%%%02X" % odd[0][0], address.encode(errors="replace")).decode()
    found: dict[str, Any] = {"artifactLocation": {"uri": written, "uriBaseId": "%SRCROOT%"}}
    return {**found, "region": {"startLine": one.line}} if file and one.line else found


def _inside(path: str) -> str:
    """Return a path from the root of the repository, with forward slashes; empty if it is absolute or leads out."""
    parts: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == ".." and not parts:
            return ""
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "" if path.startswith(("/", "\\")) or path[1:2] == ":" else "/".join(parts)


def _text(text: str) -> dict[str, str]:
    """A message. Brackets in it are no link: whoever names a question does not write what a reviewer clicks on."""
    return {"text": _BRACKET.sub(r"\\\g<0>", one_line(text, _LONGEST))}


def _digest(one: Pointer) -> str:
    """The same for the same gate, finding or question in every run, wherever it stands."""
    return sha256("\n".join([_name(one), one.subject]).encode(errors="replace")).hexdigest()[:32]
