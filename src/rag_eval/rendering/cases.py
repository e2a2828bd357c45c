"""The cases of a report: counts, failing ones, flips since the baseline, questions and conversations; questions.csv."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rag_eval.analysis.report import Report
from rag_eval.cases import GOOD, MEANING, STAGE
from rag_eval.common.escaping import csv_text, quantity, some, spreadsheet
from rag_eval.gates.evidence import count_questions, has_several_runs
from rag_eval.gates.results import Question, score_splitter
from rag_eval.metrics import METRICS, column_of, single_score
from rag_eval.rendering.document import (
    COMMIT,
    PLAIN,
    Block,
    Paragraph,
    Table,
    TextFormatter,
    bullets,
    format_signed,
    more,
    paragraphs,
)

_FAILING, _CONVERSATIONS, _NAMED, _DIGITS = 10, 20, 5, 15
_QID, _RUN, _TEXT = 40, 24, 80


def count_cases(report: Report) -> str:
    """Return the number of cases: ``14 questions``, ``28 cases (14 questions, 2 runs)``."""
    n, runs = count_questions(report.questions), {question.run for question in report.questions}
    questions = quantity(n, "question")
    return questions if len(runs) <= 1 else f"{len(report.questions)} cases ({questions}, {len(runs)} runs)"


def by_urgency(report: Report, limit: int | None = None) -> list[Question]:
    """Return the first cases, failures first, each group in the order of the report."""
    return sorted(report.questions, key=lambda question: question.label in GOOD)[:limit]


def labels(questions: Iterable[Question]) -> list[str]:
    """Return the labels that some case has, in the order of their meanings."""
    return sorted({question.label for question in questions}, key=list(MEANING).index)


def signed_label(text: str, formatter: TextFormatter) -> str:
    """Return a label with a sign for right or wrong; an unknown label is untrusted input."""
    return f"{formatter.sign('passed' if text in GOOD else 'failed')} {_label(text, formatter)}"


def _label(text: str, formatter: TextFormatter) -> str:
    return text if text in MEANING or not text else formatter.code(text)


def failing(report: Report, formatter: TextFormatter, limit: int = _FAILING, *, brief: bool = False) -> list[Block]:
    """List the failing cases, newly broken ones first, then half as many newly fixed ones.

    If ``brief``, only count them.
    """
    counts = [text for text in (count_flips(report), _count_failing(report)) if text]
    if not counts:
        return []
    head = " ".join([formatter.strong(counts[0]), *counts[1:]])
    if brief:
        return [Paragraph(head)]
    was = {(flip.qid, flip.run): flip.before for flip in report.flips}
    wrong = sorted(report.questions.failing, key=lambda item: (item.qid, item.run) not in was)
    right = [item for item in report.questions if (item.qid, item.run) in was and item.label in GOOD]
    shown = [*wrong[:limit], *right[: limit // 2]]
    return [
        Paragraph(f"{head} {compared_with(report, formatter)}".rstrip()),
        *([_table(report, shown, formatter, was)] if shown else []),
        *more(len(wrong) + len(right) - len(shown), formatter.whole),
        *_meanings(labels(wrong[:limit]), formatter),
    ]


def _count_failing(report: Report) -> str:
    n = len(report.questions.failing)
    return f"{n} of {count_cases(report)} {'fails' if n == 1 else 'fail'}." if n else ""


def questions(report: Report, formatter: TextFormatter, limit: int) -> list[Block]:
    """List the first cases, failing ones first, with the meanings of their labels."""
    cut = len(report.questions) - limit
    count = f"{quantity(cut, 'more question')} {'is' if cut == 1 else 'are'} not shown"
    left_out = f"{count}; failing ones come first. report.json has all." if cut > 0 else ""
    about = _meanings(labels(report.questions), formatter)
    return [_table(report, by_urgency(report, limit), formatter, {}), *paragraphs(left_out), *about]


def _meanings(names: Iterable[str], formatter: TextFormatter) -> list[Block]:
    """Explain labels."""
    return bullets([f"{formatter.code(label)}: {MEANING[label]}" for label in names])


def _table(
    report: Report, chosen: Iterable[Question], formatter: TextFormatter, was: Mapping[tuple[str, str | None], str]
) -> Table:
    """Return a table of cases; ``was`` has the label that a case had in the baseline, if it flipped."""
    several = has_several_runs(report.questions)
    rows = [
        [
            formatter.code(question.qid, _QID),
            *([formatter.code(question.run or "", _RUN)] if several else []),
            *([_label(was.get((question.qid, question.run), ""), formatter)] if was else []),
            question.label,
            STAGE.get(question.label, "–"),
            formatter.text(question.question, _TEXT),
        ]
        for question in chosen
    ]
    headers = ["Question", *(["Run"] if several else []), *(["Was"] if was else []), "Label", "Look at", "Text"]
    return Table("Cases", headers, rows)


def conversations(report: Report, formatter: TextFormatter) -> list[Block]:
    """Return a table of the conversations with a wrong turn, those with the most wrong ones first."""
    by_conversation: dict[tuple[str, str | None], list[Question]] = {}
    if report.statistics.cluster != "conversation":
        return []
    for question in report.questions:
        for part in question.slices:
            if part.startswith("conversation="):
                by_conversation.setdefault((part.partition("=")[2], question.run), []).append(question)
    rows = []
    for (name, _), turns in by_conversation.items():
        wrong = sorted((item for item in turns if item.label not in GOOD), key=_turn)
        if wrong:
            code, right, first = formatter.code(name, _QID), len(turns) - len(wrong), wrong[0]
            turn = f"{formatter.code(first.qid, _QID)} {first.label}"
            cells = [code, f"{right} of {len(turns)}", turn, formatter.text(first.question, _TEXT)]
            rows.append((right / len(turns), code, cells))
    if not rows:
        return []
    rows.sort(key=lambda row: row[:2])
    of = quantity(len(by_conversation), "conversation")
    about = f"{len(rows)} of {of} {'has' if len(rows) == 1 else 'have'} a wrong turn"
    headers = ["Conversation", "Right turns", "First wrong turn", "Text"]
    table = Table(about, headers, [cells for _, _, cells in rows[:_CONVERSATIONS]])
    return [Paragraph(formatter.strong(f"{about}.")), table, *more(len(rows) - _CONVERSATIONS, formatter.whole)]


def _turn(question: Question) -> tuple[int, int]:
    """Return the position of a question in its conversation: its turn, otherwise its line."""
    named = (part.partition("=")[2] for part in question.slices if part.startswith("turn="))
    turn = next(named, "")
    return int(turn) if turn.isdecimal() and len(turn) <= _DIGITS else 0, question.gold_line


def compared_with(report: Report, formatter: TextFormatter = PLAIN) -> str:
    """Describe the baseline: its file, where it was read, its commit, and how many cases are comparable."""
    baseline = report.baseline
    if baseline is None:
        return ""
    details = [f"system commit {formatter.code(baseline.commit[:COMMIT])}"] if baseline.commit else []
    if baseline.commits_ago is not None and baseline.days_ago is not None:  # the base has moved since it was written
        details.append(f"{quantity(baseline.commits_ago, 'commit')} and {quantity(baseline.days_ago, 'day')} old")
    details += ["traces scored again"] if baseline.rescored else []
    where = f" of {formatter.code(baseline.ref)}" if baseline.ref else ""
    what = f"{formatter.code(baseline.path)}{where}" + (f" ({', '.join(details)})" if details else "")
    rest = [
        (baseline.unpaired, "of them without a run of the same name"),
        (baseline.changed, "with a changed gold item"),
        (baseline.gone, "removed"),
        (baseline.new, "new"),
    ]
    shared = f"{quantity(baseline.cases, 'question')} in both with the same gold item"
    text = f"Compared with {what}: {', '.join([shared, *(f'{count} {text}' for count, text in rest if count)])}."
    if baseline.new_runs:
        names = some([name or "(no name)" for name in baseline.new_runs], _NAMED, formatter.code)
        text += f" Runs that the baseline lacks, which are not compared: {names}."
    if baseline.incomparable:
        names = some(baseline.incomparable, _NAMED, formatter.code)
        text += f" Not comparable (not measured there, or defined differently): {names}."
    return text


def count_flips(report: Report) -> str:
    """Return ``Newly broken (3), newly fixed (1).``; empty without a baseline."""
    baseline = report.baseline
    if baseline is None:
        return ""
    if baseline.cases + (baseline.changed if baseline.rescored else 0) == baseline.unpaired:
        return "No case to compare."
    if not report.flips:
        where = " in the runs that both have" if baseline.new_runs else ""
        return f"Nothing newly broken, nothing newly fixed{where}."
    n = sum(flip.is_fixed for flip in report.flips)
    return f"Newly broken ({len(report.flips) - n}), newly fixed ({n})."


def effects(report: Report, formatter: TextFormatter) -> list[Block]:
    """Split the change of each gated metric into the system's part and the gold's part, if the gold contributed."""
    baseline, changes = report.baseline, [effect for effect in report.effects if effect.system or effect.gold]
    if baseline is None or not changes:
        return []
    if not (baseline.changed or baseline.gone or baseline.new or any(effect.gold for effect in changes)):
        return []
    rows = []
    for effect in changes:  # unknown if the traces of the baseline are missing
        parts = (effect.system, effect.gold)
        texts = ["unknown" if number is None else format_signed(number, effect.name) for number in parts]
        rows.append([formatter.named(effect.name, ""), *texts])
    headers = ["Change since the baseline", "Due to the system", "Due to the gold"]
    return [Table("Why metrics changed since the baseline", headers, rows)]


def render_csv(report: Report) -> str:
    """Return CSV by RFC 4180: rows are questions, columns metrics; a cell is empty if the metric does not apply.

    With a baseline, a column shows which questions flipped. Text that a spreadsheet would run as a formula gets an
    apostrophe.
    """
    named = map(column_of, report.metrics)  # several values of a metric share one column
    names = list(dict.fromkeys(name for name in named if name not in METRICS or METRICS[name].level == "case"))
    changes = {(flip.qid, flip.run): "fixed" if flip.is_fixed else "broken" for flip in report.flips}
    flip = ["flip"] if report.baseline is not None else []
    slices = ["slices"] if any(question.slices for question in report.questions) else []
    columns = ["qid", "run", "question", "answerable", "label", "coarse_label", *flip, "gold_line", "trace_line"]
    positions = {name: index for index, name in enumerate(names)}
    split = score_splitter(lambda shared: [str(shared.get(name, "")) for name in names])

    def row(question: Question) -> list[object]:
        shared, others = split(question.scores)
        cells: list[object] = [*shared]
        for name in others.keys() & positions:
            cells[positions[name]] = single_score(name, others[name])
        return [
            *(spreadsheet(text) for text in (question.qid, question.run or "", question.question)),
            "true" if question.answerable else "false",
            question.label,
            question.coarse_label,
            *([changes.get((question.qid, question.run), "")] if flip else []),
            question.gold_line,
            question.trace_line,
            *([spreadsheet("; ".join(question.slices))] if slices else []),
            *cells,
        ]

    return csv_text([*columns, *slices, *names], map(row, report.questions))
