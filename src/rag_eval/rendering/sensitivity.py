"""FORMS: a probe as a table for the terminal, as Markdown and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rag_eval.common.escaping import json_text, some
from rag_eval.rendering import markdown, terminal
from rag_eval.rendering.document import PLAIN, Block, Paragraph, Section, Table, bullets, paragraphs, table_of
from rag_eval.rendering.number_format import number

if TYPE_CHECKING:
    from rag_eval.analysis.sensitivity import Move, Probe, Probed, Rate

    Name = Callable[[str], str]

_MOVES, _IDLE, _NAME = 6, 20, 120
_PERTURBATIONS = ["perturbation", "effect on the run", "cases", "stopped from", "by"]
_ERRORS = ["gate", "test", "n", "noise", "fails unchanged", "fails at 3/4 of the margin", "misses a drop"]
_CATCHES = ["gate or finding", "perturbation", "caught from", "effect"]


def as_table(probe: Probe) -> str:
    """Return plain text for a terminal."""
    title, blocks = _section(probe, partial(PLAIN.code, limit=_NAME))
    return terminal.write_page([Section("", [Paragraph(title), *blocks])])


def as_markdown(probe: Probe) -> str:
    """Return GitHub's Markdown, for a comment or a job summary."""
    return markdown.write_page([_section(probe, partial(markdown.FORMATTER.code, limit=_NAME))])


def as_json(probe: Probe) -> str:
    """Return everything as JSON, two spaces for each level."""
    kinds = [{**kind._asdict(), "passes": kind.passes} for kind in probe.kinds]
    return json_text({**probe._asdict(), "kinds": kinds, "idle": probe.idle})


FORMS: dict[str, Callable[[Probe], str]] = {"table": as_table, "markdown": as_markdown, "json": as_json}


def _section(probe: Probe, name: Name) -> Section:
    errors = _errors(probe, name)
    if probe.exit_code:
        reasons = []
        if probe.unequal:
            gates = ", ".join(map(name, probe.unequal))
            reasons.append(
                f"The A/A run failed: with the run as its own baseline, these regression gates fail: {gates}."
            )
        if probe.failing:
            gates = ", ".join(map(name, probe.failing))
            reasons.append(f"The unchanged run does not pass: {gates}. Fix it first; rag-eval score shows the reasons.")
        return Section("A failing run cannot be probed", [*paragraphs(*reasons), *errors])
    against = f"the baseline {name(probe.against)}" if probe.against else "the unchanged run"
    passed = "The unchanged run passes, also with itself as the baseline (A/A)."
    rates = f"Perturbation rates in percent: {', '.join(probe.doses)}."
    blocks = [
        Paragraph(f"{passed} Regression gates compare with {against}. {rates}"),
        Table("Perturbations", _PERTURBATIONS, [_perturbation(kind, name) for kind in probe.kinds]),
        *(table_of("Catches", _CATCHES, _catches(probe, name)) or paragraphs("No gate caught any perturbation.")),
        *errors,
    ]
    if unguarded := [f"{kind.kind}: {_moves(kind.unguarded, name)}" for kind in probe.kinds if kind.unguarded]:
        blocks += [Paragraph("Metrics that moved at the highest rate and have no gate:"), *bullets(unguarded)]
    if probe.idle:
        blocks.append(Paragraph(f"Caught no perturbation: {some(probe.idle, _IDLE, name)}."))
    return Section(_headline(probe), blocks)


def _errors(probe: Probe, name: Name) -> list[Block]:
    rows = [
        [
            name(error.gate),
            error.test,
            str(error.n),
            *(f"{rate:.1%}" for rate in (error.noise, error.unchanged, error.permitted)),
            f"{error.missed:.1%} at {error.drop:.3g}",
        ]
        for error in probe.errors
    ]
    about = "Error rates of each regression gate, with the noise estimated from the run and its baseline:"
    return [Paragraph(about), Table("Error rates", _ERRORS, rows)] if rows else []


def _headline(probe: Probe) -> str:
    tried = [kind for kind in probe.kinds if kind.cases and kind.read]
    passing = sum(kind.passes for kind in probe.kinds)
    head = f"Probed {probe.cases} cases"
    if not tried:
        return f"{head}: no perturbation applies to them."
    if passing:
        return f"{head}: no gate stops {passing} of {len(tried)} perturbations."
    last = max(tried, key=lambda kind: kind.stops.cases / kind.cases if kind.stops else 1.0)
    latest = f"{last.kind} last, from {_at(last.stops, last)} cases" if last.stops else ""
    return f"{head}: all {len(tried)} perturbations are stopped, {latest}."


def _perturbation(kind: Probed, name: Name) -> list[str]:
    at, by = "–", "no gate stops it"
    if not kind.cases or not kind.read:
        by = "no metric uses it" if kind.cases else "applies to no case"
    elif kind.stops is not None:
        at = _at(kind.stops, kind)
        by = some([catch.by for catch in kind.catches if catch.stops == kind.stops], 2, name)
    return [kind.kind, kind.text, str(kind.cases), at, by]


def _catches(probe: Probe, name: Name) -> list[list[str]]:
    """Return the catches, those of the gates first, by gate or finding."""
    catchers = dict.fromkeys([*probe.gates, *(catch.by for kind in probe.kinds for catch in kind.catches)])
    rows = []
    for by in catchers:
        for kind in probe.kinds:
            for catch in kind.catches:
                if catch.by == by:
                    effect = "warns only" if catch.stops is None else "fails the run"
                    if catch.stops not in (None, catch.seen):
                        effect += f" from {_at(catch.stops, kind)}"
                    rows.append([name(by), kind.kind, _at(catch.seen, kind), effect])
    return rows


def _moves(moves: Sequence[Move], name: Name) -> str:
    """Return the metrics that changed; of those with a cutoff or several values, the one that changed most."""

    def distance(move: Move) -> float:
        return 1.0 if move.before is None or move.after is None else abs(move.after - move.before)

    furthest: dict[str, Move] = {}
    for move in sorted(moves, key=distance, reverse=True):
        furthest.setdefault(re.split("[@.]", move.metric)[0], move)
    shown = [move for move in moves if move in furthest.values()][:_MOVES]
    texts = [
        f"{name(move.metric)} {number(move.before, move.metric)} → {number(move.after, move.metric)}" for move in shown
    ]
    more = f" and {len(moves) - len(shown)} more" if len(moves) > len(shown) else ""
    return ", ".join(texts) + more


def _at(at: Rate, kind: Probed) -> str:
    """Return a rate as a number of cases: one percent of ten cases is one case."""
    return f"{at.cases} of {kind.cases}"
