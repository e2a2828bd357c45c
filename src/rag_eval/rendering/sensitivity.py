"""FORMS: a probe as a table for the terminal, as Markdown and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from tabulate import tabulate

from rag_eval.common.escaping import markdown as safe
from rag_eval.common.escaping import one_line
from rag_eval.rendering.json_values import json_text, plain
from rag_eval.rendering.number_format import number, unit
from rag_eval.rendering.terminal import bulleted, grid, page, wrapped

if TYPE_CHECKING:
    from rag_eval.analysis.sensitivity import Catch, Errors, Move, Probe, Probed, Rate

_MOVES, _IDLE, _NAME = 6, 20, 120
_NOTHING = "no gate stops it"
_DAMAGE = ["perturbation", "effect on the run", "cases", "stopped from", "by"]
_ERRORS = ["gate", "test", "n", "noise", "fails unchanged", "fails at 3/4 of the margin", "misses a drop"]
_CATCHES = ["gate or finding", "perturbation", "caught from", "effect"]


def table(probe: Probe) -> str:
    """Return plain text for a terminal."""
    return page(bulleted(part) if "\n" in part else wrapped(part) for part in _parts(probe, _plain, "simple", ""))


def markdown(probe: Probe) -> str:
    """Return GitHub's Markdown, for a comment or a job summary."""
    return "\n\n".join(_parts(probe, _code, "github", "## ")) + "\n"


def as_json(probe: Probe) -> str:
    """Return everything as JSON, two spaces for each level."""
    kinds = [{**plain(kind), "passes": kind.passes} for kind in probe.kinds]
    return json_text({**plain(probe), "kinds": kinds, "idle": probe.idle})


FORMS: dict[str, Callable[[Probe], str]] = {"table": table, "markdown": markdown, "json": as_json}


def _parts(probe: Probe, name: Callable[[str], str], style: str, head: str) -> Iterator[str]:
    """Yield the parts of a page; ``name`` formats a name, ``style`` is tabulate's, ``head`` begins the first line."""
    if probe.exit_code:
        yield head + "A failing run cannot be probed"
        yield from _refused(probe, name)
        yield from _error_rates(probe, name, style)
        return
    passing = [kind for kind in probe.kinds if kind.passes]
    yield head + _headline(probe, passing)
    yield _compared(probe, name)
    yield _table(_DAMAGE, [_damage(kind, name) for kind in probe.kinds], style)
    rows = list(_caught(probe, name))
    yield _table(_CATCHES, rows, style) if rows else "No gate caught any perturbation."
    yield from _error_rates(probe, name, style)
    yield from _unguarded(probe, name)
    if probe.idle:
        more = f" and {len(probe.idle) - _IDLE} more" if len(probe.idle) > _IDLE else ""
        yield f"Caught no perturbation: {', '.join(map(name, probe.idle[:_IDLE]))}{more}."


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]], style: str) -> str:
    return grid(headers, rows) if style == "simple" else tabulate(rows, headers, style, disable_numparse=True)


def _error_rates(probe: Probe, name: Callable[[str], str], style: str) -> Iterator[str]:
    if probe.errors:
        yield "Error rates of each regression gate, with the noise estimated from the run and its baseline:"
        yield _table(_ERRORS, [_errors(error, name) for error in probe.errors], style)


def _errors(errors: Errors, name: Callable[[str], str]) -> list[str]:
    rates = [f"{rate:.1%}" for rate in (errors.noise, errors.unchanged, errors.permitted)]
    return [name(errors.gate), errors.test, str(errors.n), *rates, f"{errors.missed:.1%} at {errors.drop:.3g}"]


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
        last = max(tried, key=_share)
        latest = f"{last.kind} last, from {_at(last.stops, last)} cases" if last.stops else ""
        return f"Probed {probe.cases} cases: all {len(tried)} perturbations are stopped, {latest}."
    return f"Probed {probe.cases} cases: no gate stops {len(passing)} of {len(tried)} perturbations."


def _share(kind: Probed) -> float:
    return kind.stops.cases / kind.cases if kind.stops else 1.0


def _compared(probe: Probe, name: Callable[[str], str]) -> str:
    against = f"the baseline {name(probe.against)}" if probe.against else "the unchanged run"
    passed = "The unchanged run passes, also with itself as the baseline (A/A)."
    return f"{passed} Regression gates compare with {against}. Perturbation rates in percent: {', '.join(probe.doses)}."


def _damage(kind: Probed, name: Callable[[str], str]) -> list[str]:
    cells = [kind.kind, kind.text, str(kind.cases)]
    if not kind.cases:
        return [*cells, "–", "applies to no case"]
    if not kind.read:
        return [*cells, "–", "no metric uses it"]
    if kind.stops is None:
        return [*cells, "–", _NOTHING]
    by = [catch.by for catch in kind.catches if catch.stops == kind.stops]
    more = f" and {len(by) - 2} more" if len(by) > 2 else ""
    return [*cells, _at(kind.stops, kind), ", ".join(map(name, by[:2])) + more]


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


def _unguarded(probe: Probe, name: Callable[[str], str]) -> Iterator[str]:
    lines = [f"- {kind.kind}: {_moved(kind.unguarded, name)}" for kind in probe.kinds if kind.unguarded]
    if lines:
        yield "Metrics that moved at the highest rate and have no gate:\n\n" + "\n".join(lines)


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


def _plain(text: str) -> str:
    return one_line(text, _NAME)


def _code(text: str) -> str:
    return safe(text, _NAME)
