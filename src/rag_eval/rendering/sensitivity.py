"""FORMS: a probe as a table for the terminal, as Markdown and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rag_eval.common.escaping import json_text, some
from rag_eval.rendering import markdown_writer, terminal
from rag_eval.rendering.blocks import PageSection, Paragraph, Table, bullets, paragraphs, table_of
from rag_eval.rendering.number_format import number, unit
from rag_eval.rendering.phrases import PLAIN

if TYPE_CHECKING:
    from rag_eval.analysis.sensitivity import Catch, Move, Probe, Probed, Rate
    from rag_eval.rendering.blocks import Block
    from rag_eval.rendering.phrases import TextFormatter

_MOVES, _IDLE, _NAME = 6, 20, 120
_NOTHING = "no gate stops it"
_DAMAGE = ["perturbation", "effect on the run", "cases", "stopped from", "by"]
_ERRORS = ["gate", "test", "n", "noise", "fails unchanged", "fails at 3/4 of the margin", "misses a drop"]
_CATCHES = ["gate or finding", "perturbation", "caught from", "effect"]


def table(probe: Probe) -> str:
    """Return plain text for a terminal."""
    title, blocks = _section(probe, PLAIN)
    return terminal.page([terminal.wrapped(title), terminal.laid(blocks)])


def markdown(probe: Probe) -> str:
    """Return GitHub's Markdown, for a comment or a job summary."""
    return markdown_writer.written([_section(probe, markdown_writer.FORMATTER)])


def as_json(probe: Probe) -> str:
    """Return everything as JSON, two spaces for each level."""
    kinds = [{**kind._asdict(), "passes": kind.passes} for kind in probe.kinds]
    return json_text({**probe._asdict(), "kinds": kinds, "idle": probe.idle})


FORMS: dict[str, Callable[[Probe], str]] = {"table": table, "markdown": markdown, "json": as_json}


def _section(probe: Probe, formatter: TextFormatter) -> PageSection:
    def name(text: str) -> str:
        return formatter.code(text, _NAME)

    errors: list[Block] = []
    if probe.errors:
        rows = []
        for error in probe.errors:
            rates = [f"{rate:.1%}" for rate in (error.noise, error.unchanged, error.permitted)]
            missed = f"{error.missed:.1%} at {error.drop:.3g}"
            rows.append([name(error.gate), error.test, str(error.n), *rates, missed])
        about = "Error rates of each regression gate, with the noise estimated from the run and its baseline:"
        errors = [Paragraph(about), Table("Error rates", _ERRORS, rows)]
    if probe.exit_code:
        return PageSection("A failing run cannot be probed", [*paragraphs(*_refused(probe, name)), *errors])
    against = f"the baseline {name(probe.against)}" if probe.against else "the unchanged run"
    passed = "The unchanged run passes, also with itself as the baseline (A/A)."
    rates_text = f"Perturbation rates in percent: {', '.join(probe.doses)}."
    blocks = [
        Paragraph(f"{passed} Regression gates compare with {against}. {rates_text}"),
        Table("Perturbations", _DAMAGE, [_damage(kind, name) for kind in probe.kinds]),
        *(table_of("Catches", _CATCHES, list(_caught(probe, name))) or paragraphs("No gate caught any perturbation.")),
        *errors,
    ]
    if unguarded := [f"{kind.kind}: {_moved(kind.unguarded, name)}" for kind in probe.kinds if kind.unguarded]:
        blocks += [Paragraph("Metrics that moved at the highest rate and have no gate:"), *bullets(unguarded)]
    if probe.idle:
        blocks.append(Paragraph(f"Caught no perturbation: {some(probe.idle, _IDLE, name)}."))
    return PageSection(_headline(probe, [kind for kind in probe.kinds if kind.passes]), blocks)


def _refused(probe: Probe, name: Callable[[str], str]) -> Iterator[str]:
    if probe.unequal:
        gates = ", ".join(map(name, probe.unequal))
        yield f"The A/A run failed: with the run as its own baseline, these regression gates fail: {gates}."
    if probe.failing:
        reasons = ", ".join(map(name, probe.failing))
        yield f"The unchanged run does not pass: {reasons}. Fix it first; rag-eval score shows the reasons."


def _headline(probe: Probe, passing: Sequence[Probed]) -> str:
    tried = [kind for kind in probe.kinds if kind.cases and kind.read]
    if not tried:
        return f"Probed {probe.cases} cases: no perturbation applies to them."
    if not passing:
        last = max(tried, key=lambda kind: kind.stops.cases / kind.cases if kind.stops else 1.0)
        latest = f"{last.kind} last, from {_at(last.stops, last)} cases" if last.stops else ""
        return f"Probed {probe.cases} cases: all {len(tried)} perturbations are stopped, {latest}."
    return f"Probed {probe.cases} cases: no gate stops {len(passing)} of {len(tried)} perturbations."


def _damage(kind: Probed, name: Callable[[str], str]) -> list[str]:
    cells = [kind.kind, kind.text, str(kind.cases)]
    if not kind.cases:
        return [*cells, "–", "applies to no case"]
    if not kind.read:
        return [*cells, "–", "no metric uses it"]
    if kind.stops is None:
        return [*cells, "–", _NOTHING]
    by = [catch.by for catch in kind.catches if catch.stops == kind.stops]
    return [*cells, _at(kind.stops, kind), some(by, 2, name)]


def _caught(probe: Probe, name: Callable[[str], str]) -> Iterator[list[str]]:
    counts = {catch.by: 0 for kind in probe.kinds for catch in kind.catches}
    for by in [*(gate for gate in probe.gates if gate in counts), *(by for by in counts if by not in probe.gates)]:
        for kind in probe.kinds:
            for catch in kind.catches:
                if catch.by == by:
                    yield [name(by), kind.kind, _at(catch.seen, kind), _effect(catch, kind)]


def _effect(catch: Catch, kind: Probed) -> str:
    if catch.stops is None:
        return "warns only"
    return "fails the run" if catch.stops == catch.seen else f"fails the run from {_at(catch.stops, kind)}"


def _moved(moves: Sequence[Move], name: Callable[[str], str]) -> str:
    """Return the metrics that changed; of those with a cutoff or several values, the one that changed most."""
    furthest: dict[str, Move] = {}
    for move in sorted(moves, key=_distance, reverse=True):
        furthest.setdefault(re.split("[@.]", move.metric)[0], move)
    shown = [move for move in moves if move in furthest.values()][:_MOVES]
    texts = [
        f"{name(move.metric)} {_number(move.before, move.metric)} → {_number(move.after, move.metric)}"
        for move in shown
    ]
    more = f" and {len(moves) - len(shown)} more" if len(moves) > len(shown) else ""
    return ", ".join(texts) + more


def _distance(move: Move) -> float:
    return 1.0 if move.before is None or move.after is None else abs(move.after - move.before)


def _at(at: Rate, kind: Probed) -> str:
    """Return a rate as a number of cases: one percent of ten cases is one case."""
    return f"{at.cases} of {kind.cases}"


def _number(value: float | None, metric: str) -> str:
    return number(value, metric) if unit(metric) or value is None else f"{value:.3f}"
