"""The baseline: where it is read, and its traces scored again under the gold in use.

The base's file decides, as with gates: to replace the baseline in the same change moves no goalposts.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from rag_eval.errors import InputError
from rag_eval.files.ledger import Ledger
from rag_eval.files.report_file import read_report
from rag_eval.finding import Finding
from rag_eval.renderers.json_file import from_json
from rag_eval.report import Earlier
from rag_eval.trees import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_eval.authority import Authority
    from rag_eval.files.source import Reader
    from rag_eval.report import Report


class _Held(NamedTuple):
    """A file's bytes, and where they are from."""

    data: bytes
    ref: str


def read_baseline(
    reader: Reader,
    path: str,
    trace: str,
    authority: Authority | None,
    rescored: Callable[[str, bytes], Report | None],
) -> tuple[Earlier | None, list[Finding]]:
    """The baseline of ``path`` and what there is to say of it; InputError where it is no report.json.

    Where its traces are at hand (``trace``), ``rescored`` gives their report under the gold in use.
    """
    held = _at_base(authority, path) or _at_hand(reader, path)
    if held is None:
        return None, [
            Finding("no-baseline", "warning", "there is no baseline yet", "Commit a report.json there.", path)
        ]
    recorded = _recorded(reader, path, held)
    traces = (_at_base(authority, trace) or _at_hand(reader, trace)) if trace else None
    again = rescored(trace, traces.data) if traces else None
    now = again or recorded
    earlier = Earlier(recorded, now.questions, now.contracts, path, sha256(held.data).hexdigest(), held.ref)
    return earlier, _said(reader, path, held, authority)


def _at_base(authority: Authority | None, path: str) -> _Held | None:
    inside = authority.inside(path) if authority else None
    data = read(authority.gates, inside) if authority and authority.gates and inside else None
    return _Held(data, authority.ref) if authority and data is not None else None


def _at_hand(reader: Reader, path: str) -> _Held | None:
    quiet = Ledger()
    source = reader._replace(ledger=quiet).open(path)
    if source is None:
        return None
    with source:
        data = source.whole()
    return _Held(data, "") if data is not None else None


def _recorded(reader: Reader, path: str, held: _Held) -> Report:
    ledger = Ledger()
    value = read_report(reader._replace(ledger=ledger, held={path: held.data}), path)
    if value is None:
        hint = "A baseline is the report.json of an earlier run of this version: score that run again."
        where = f"{path} of {held.ref}" if held.ref else path
        raise InputError([each._replace(file=where, hint=f"{each.hint} {hint}".strip()) for each in ledger.problems])
    return from_json(value)


def _said(reader: Reader, path: str, held: _Held, authority: Authority | None) -> list[Finding]:
    if authority is None or authority.gates is None:
        return []
    if not held.ref:
        message = "the base has no baseline of this name, so the one at hand was taken"
        return [Finding("baseline-from-head", "warning", message, "It decides once it is merged.", path)]
    own = _at_hand(reader, path)
    if own is not None and own.data == held.data:
        return []
    verb = "replaced" if own else "removed"
    message = f"the baseline is {verb} by this change; the base's was compared with"
    return [Finding("baseline-changed", "warning", message, "Change it in a change of its own.", path)]
