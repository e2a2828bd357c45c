"""The report as Markdown, for the pull request comment and the job summary."""

from __future__ import annotations

import json

from rag_eval.labels import GOOD, MEANING, STAGE
from rag_eval.metrics import PERSPECTIVES
from rag_eval.renderers import change, judged, moved, sections, words
from rag_eval.renderers.marks import VOICE, bullets, escaped, folded, glued, name, table
from rag_eval.safe import markdown as safe
from rag_eval.safe import prose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rag_eval.errors import InputError
    from rag_eval.gates import Judged
    from rag_eval.report import Report
    from rag_eval.results import Question

_QUESTIONS = 200
_NOTES = 10
_PROBLEMS = 20
_FAILING = 10
_CUT = "Metrics, questions and provenance do not fit here; report.json has all."
_QID_WIDTH, _RUN_WIDTH = 40, 24


def render(report: Report) -> str:
    """The whole report; failing questions first, at most two hundred questions."""
    return _render(report, judged.gates(report), _QUESTIONS, whole=True)


def within(report: Report, most: int, size: Callable[[str], int]) -> str:
    """The report in at most ``most`` units of ``size``: questions go first, then all that is folded, then details.

    Verdict and failed gates always stay.
    """
    gates = judged.gates(report)  # on thousands of slices a table takes its time
    tries = [(questions, True) for questions in (_QUESTIONS, 100, 50, 20)]
    for questions, whole in [*tries, (0, False)]:
        text = _render(report, gates, questions, whole=whole)
        if size(text) <= most:
            return text
    return _least(report, most, size)


def problems_within(error: InputError, most: int, size: Callable[[str], int]) -> str:
    """Why a run cannot be judged, in at most ``most`` units of ``size``."""
    total = len(error.problems) + error.more
    head = f"## 🚫 Cannot be judged: {total} problem{'s' if total != 1 else ''} in the input\n\n"
    for shown in (_PROBLEMS, 5, 0):
        lines = [f"- {safe(str(problem), 300)}\n" for problem in error.problems[:shown]]
        more = f"\n{total - len(lines)} more are not shown; the log has them.\n" if total > len(lines) else ""
        text = head + "".join(lines) + more
        if size(text) <= most:
            return text
    return head if size(head) <= most else ""


def reason_within(reason: str, most: int, size: Callable[[str], int]) -> str:
    """Why nothing could be judged, in at most ``most`` units of ``size``."""
    head = "## 🚫 Cannot be judged\n"
    text = f"{head}\n{safe(reason, 1_000)}\n"
    return next((each for each in (text, head) if size(each) <= most), "")


def _render(report: Report, gates: str, questions: int, *, whole: bool) -> str:
    parts = [
        _head(report),
        change.authority(report),
        gates,
        change.findings(report),
        _changed(report, whole=whole),
        change.policy(report),
        change.gold(report) if whole else change.counted(report) if report.gold_changes else "",
        moved.effects(report) if whole else "",
        f"**Completeness.** {words.completeness(report)}",
        *_notes(report),
        moved.worst(report) if whole else "",
        *_diagnosis(report),
    ]
    parts += _folds(report, questions) if whole else [_CUT]
    return "\n\n".join(part for part in parts if part) + "\n"


def _folds(report: Report, questions: int) -> list[str]:
    return [
        folded("All metrics", _metrics(report)),
        *([folded(f"Slices ({len(report.slices)})", moved.slices(report))] if report.slices else []),
        folded(f"Questions ({len(report.questions)})", _questions(report, questions)),
        folded("Provenance", _provenance(report)),
    ]


def _least(report: Report, most: int, size: Callable[[str], int]) -> str:
    """Verdict, broken gates and errors, as many as fit; the others are counted."""
    lines = [f"\n- {words.reason(report, gate, VOICE)}" for gate in _gravest(report)]
    lines += [f"\n- `{finding.code}` {safe(finding.message)}" for finding in report.errors]
    text, room = _head(report) + "\n", len(f"\n- … and {len(lines)} more".encode())
    shown = 0
    while shown < len(lines) and size(text + lines[shown]) + room <= most:
        text += lines[shown]
        shown += 1
    text += f"\n- … and {len(lines) - shown} more" if shown < len(lines) else ""
    return text if size(text) <= most else ""


def _gravest(report: Report) -> list[Judged]:
    """The broken gates, those that fail the run first."""
    return sorted((gate for gate in report.gates if gate.broken), key=lambda gate: not gate.blocks)


def _head(report: Report) -> str:
    part = report.scope is not None and report.passed
    sign = judged.SIGNS["inconclusive" if part else report.verdict]
    return f"## {sign} RAG evaluation {report.verdict}{' in part' if part else ''}\n\n{words.headline(report, VOICE)}"


def _changed(report: Report, *, whole: bool) -> str:
    """What flipped since the baseline; without one, the first failing questions. The folded table has all."""
    failing = [question for question in report.questions if question.label not in GOOD]
    if report.baseline is not None:
        return moved.changed(report, len(failing)) if whole else moved.headed(report, len(failing))
    if not failing or not whole:
        return ""
    several = _several_runs(report)
    shown = table(_columns(several), (_question(question, several) for question in failing[:_FAILING]))
    more = f"\n\n… and {len(failing) - _FAILING} more." if len(failing) > _FAILING else ""
    fail = "fails" if len(failing) == 1 else "fail"
    return f"**{len(failing)} of {words.cases(report)} {fail}.**\n\n{shown}{more}"


def _notes(report: Report) -> list[str]:
    if not report.notes:
        return []
    lines = [
        f"- {safe(_place(note.file, note.line), 200)}: {safe(note.message, 200)}{_times(note.times)}"
        for note in report.notes[:_NOTES]
    ]
    cut = len(report.notes) - _NOTES
    return ["**Notes on the input**\n\n" + "\n".join([*lines, f"- and {cut} more"] if cut > 0 else lines)]


def _diagnosis(report: Report) -> list[str]:
    if not report.diagnosis:
        return []
    lines = (
        f"**{escaped(cause.cause)}** ({escaped(cause.evidence)}) {escaped(cause.next)}" for cause in report.diagnosis
    )
    return [f"**Diagnosis**\n\n{bullets(lines)}"]


def _metrics(report: Report) -> str:
    """All metrics, a section a perspective; those with a cutoff in a table of their own."""
    parts = [part for one in sections.perspectives(report) for part in _section(report, one)]
    return "\n\n".join(part for part in (*parts, escaped(sections.without_cases(report))) if part)


def _section(report: Report, perspective: str) -> list[str]:
    title = f"**{prose(perspective.capitalize())}**: {escaped(PERSPECTIVES.get(perspective, ''))}"
    return [title, *(_of_metrics(*each) for each in sections.tables(report, perspective))]


def _of_metrics(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    shown = ([name(metric), *map(glued, cells)] for metric, *cells in rows)
    return table([escaped(header[:1].upper() + header[1:]) for header in headers], shown)


def _questions(report: Report, most: int) -> str:
    ordered, several = words.by_urgency(report.questions), _several_runs(report)
    shown = table(_columns(several), (_question(question, several) for question in ordered[:most]))
    cut = len(ordered) - most
    more = f"\n\n{cut} more questions are not shown; failing ones come first. report.json has all." if cut > 0 else ""
    used = sorted({question.label for question in ordered}, key=list(MEANING).index)
    legend = "; ".join(f"`{label}` {MEANING[label]}" for label in used)
    return f"{shown}{more}\n\n{legend}."


def _several_runs(report: Report) -> bool:
    return len(words.runs_of(report)) > 1


def _columns(several: bool) -> list[str]:
    return ["Question", *(["Run"] if several else []), "Label", "Look at", "Text"]


def _question(question: Question, several: bool) -> list[str]:
    run = [safe(question.run or "", _RUN_WIDTH)] if several else []
    return [
        safe(question.qid, _QID_WIDTH),
        *run,
        question.label,
        STAGE.get(question.label, "–"),
        safe(question.question),
    ]


def _provenance(report: Report) -> str:
    rows = [[prose(each.role), safe(each.path, 200), safe(each.sha256)] for each in report.inputs]
    refusal = f"Refusal token {safe(str(report.refusal['token']))}, {len(report.refusal['phrases'])} refusal phrases"
    if "builtin" in report.refusal:
        refusal += f", built-in refusals (version {report.refusal['builtin']})"
    settings = f"{refusal}; labels at k = {report.k}; rag-eval {prose(report.version)}."
    return "\n\n".join([table(["Input", "Path", "sha256"], rows), *_run(report), settings])


def _run(report: Report) -> list[str]:
    """What run.json says, a row a field; the digest of the gold set has been compared and says no more."""
    said = {name: value for name, value in (report.run or {}).items() if name != "gold_sha256"}
    rows = [
        [safe(name), safe(json.dumps(value, ensure_ascii=False, sort_keys=True), 200)] for name, value in said.items()
    ]
    return [table(["Run", ""], rows)] if rows else []


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if line else file


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""
