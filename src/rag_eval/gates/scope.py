"""What a narrowed run is about: some perspectives, or a part of the questions. A report says what that leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.common.escaping import quoted
from rag_eval.errors import UsageError
from rag_eval.gates.policy import FULL
from rag_eval.metrics import measure

if TYPE_CHECKING:
    from rag_eval.contract import Gold
    from rag_eval.gates.policy import Gate, Policy

SMOKE = "smoke"
_SUITE = re.compile("smoke(?::([1-9][0-9]{0,5}))?", re.ASCII)
_USUAL_SIZE = 50


class Scope(NamedTuple):
    """What a run was narrowed to.

    ``perspectives`` are those that were measured, none for all. ``questions`` of the ``of`` questions of the gold set
    are in the ``suite``. ``left_out_gates`` were not judged, for they are of other perspectives.
    """

    perspectives: tuple[str, ...]
    suite: str
    questions: int
    of: int
    left_out_gates: tuple[str, ...]


def scope_of(policies: Sequence[Policy], questions: int, of: int) -> Scope | None:
    """What a run under these policies was narrowed to, None for a whole one."""
    policy = policies[0]
    if not policy.perspectives and policy.suite == FULL:
        return None
    gates = [gate for each in policies for gate in each.gates if not within(gate, each)]
    return Scope(policy.perspectives, policy.suite, questions, of, tuple(dict.fromkeys(gate.label for gate in gates)))


def asked(policy: Policy) -> tuple[Gate, ...]:
    """The gates of a policy that are to be judged."""
    return tuple(gate for gate in policy.gates if within(gate, policy)) if policy.perspectives else policy.gates


def within(gate: Gate, policy: Policy) -> bool:
    """Whether a gate is of the perspectives that are asked for."""
    return not policy.perspectives or measure(gate.name).metric.perspective in policy.perspectives


def suite_named(text: str) -> str:
    """``full``, ``smoke`` or ``smoke:30`` as it is; UsageError for anything else."""
    if text == FULL or _SUITE.fullmatch(text):
        return text
    raise UsageError(f"unknown suite {quoted(text, 40)}. There are: full, smoke, and smoke:N for a sample of N")


def in_suite(golds: Mapping[str, Gold], suite: str) -> Mapping[str, Gold]:
    """The items of a suite, in the order of the gold set; all of them for ``full``.

    ``smoke`` are the items tagged so. Where none is, and for ``smoke:N``, it is a sample.
    """
    named = _SUITE.fullmatch(suite)
    if named is None:
        return golds
    tagged = () if named[1] else tuple(qid for qid, gold in golds.items() if SMOKE in (gold.tags or ()))
    chosen = frozenset(tagged or sample(golds.values(), int(named[1] or _USUAL_SIZE)))
    return {qid: gold for qid, gold in golds.items() if qid in chosen}


def sample(golds: Iterable[Gold], size: int) -> list[str]:
    """The qids of ``size`` items, or of all where there are no more.

    Answerable, unanswerable and attack items are in it by their shares, each kind at least once; of each kind those
    whose qid has the smallest hash. So a question more in the gold set changes few members, the order of lines none.
    """
    kinds: dict[str, list[str]] = {}
    for gold in golds:
        kinds.setdefault("attack" if gold.attack else f"{gold.answerable}", []).append(gold.qid)
    parts = _shares({kind: len(qids) for kind, qids in kinds.items()}, size)
    return [qid for kind, qids in sorted(kinds.items()) for qid in sorted(qids, key=_rank)[: parts[kind]]]


def _rank(qid: str) -> tuple[str, str]:
    return sha256(qid.encode("utf-8", "surrogatepass")).hexdigest(), qid


def _shares(counts: Mapping[str, int], size: int) -> dict[str, int]:
    """``size`` over kinds by their counts: whole shares first, at least one each, then by the largest remainder."""
    total = sum(counts.values())
    size = min(size, total)
    parts = {kind: max(1, size * count // total) for kind, count in counts.items()}
    while sum(parts.values()) < size:
        short = {kind: counts[kind] * size - parts[kind] * total for kind in counts if parts[kind] < counts[kind]}
        parts[max(sorted(short), key=short.__getitem__)] += 1
    while sum(parts.values()) > size and max(parts.values()) > 1:
        over = {kind: parts[kind] * total - counts[kind] * size for kind in counts if parts[kind] > 1}
        parts[max(sorted(over), key=over.__getitem__)] -= 1
    return parts
