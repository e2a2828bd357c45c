"""The parts of a run that are judged: suites, metric groups and slices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from rag_eval.common.escaping import quoted
from rag_eval.contract import Gold
from rag_eval.errors import UsageError
from rag_eval.gates import FULL, WHOLE_RUN_CHECKS, Policy
from rag_eval.gates.questions import Question
from rag_eval.metrics import Measure, measures, perspectives_of
from rag_eval.stats.sampling import hash_order, proportional_counts

DEFAULT_CUTOFFS = (1, 3, 5, 10)
_SUITE = re.compile("smoke(?::([1-9][0-9]{0,5}))?", re.ASCII)
_USUAL_SIZE = 50
FIELDS = tuple(
    "category difficulty tags query_type multi_hop answerable doc_type document attack.category attack.kind"
    " conversation turn".split()
)
"""The fields of slices, besides ``meta.NAME``.

``doc_type`` is the ending of the gold's documents: ``md``, ``pdf``. ``document`` is the one of the first gold citation.
"""
_ENDING = r"[^./\\]\.([a-zA-Z][a-zA-Z0-9]{0,9})$"


class RunScope(NamedTuple):
    """The metric groups and questions of a partial run.

    ``perspectives`` are the measured metric groups, empty for all. ``questions`` of the ``of`` questions of the gold
    set are in the ``suite``. ``left_out_gates`` were not judged, because they are of other metric groups.
    """

    perspectives: tuple[str, ...]
    suite: str
    questions: int
    of: int
    left_out_gates: tuple[str, ...]


def scope_of(policies: Sequence[Policy], questions: int, of: int) -> RunScope | None:
    """Return the scope of a partial run under these policies, None for a whole run."""
    policy = policies[0]
    if not policy.perspectives and policy.suite == FULL:
        return None
    left_out = (gate.label for policy in policies for gate in policy.gates if gate not in policy.selected_gates)
    return RunScope(policy.perspectives, policy.suite, questions, of, tuple(dict.fromkeys(left_out)))


def suite_named(text: str) -> str:
    """Return ``full``, ``smoke`` or ``smoke:30`` unchanged; raise UsageError for anything else."""
    if text == FULL or _SUITE.fullmatch(text):
        return text
    raise UsageError(f"unknown suite {quoted(text, 40)}. Choose from: full, smoke, and smoke:N for a sample of N")


def in_suite(golds: Mapping[str, Gold], suite: str) -> Mapping[str, Gold]:
    """Return the items of a suite, in the order of the gold set; all of them for ``full``.

    ``smoke`` are the items with this tag. Without such items, and for ``smoke:N``, it is a sample.
    """
    named = _SUITE.fullmatch(suite)
    if named is None:
        return golds
    tagged = () if named[1] else tuple(qid for qid, gold in golds.items() if "smoke" in (gold.tags or ()))
    chosen = frozenset(tagged or sample(golds.values(), int(named[1] or _USUAL_SIZE)))
    return {qid: gold for qid, gold in golds.items() if qid in chosen}


def sample(golds: Iterable[Gold], size: int) -> list[str]:
    """Return the qids of ``size`` items, or of all if there are no more.

    Answerable, unanswerable and attack items are in it by their shares, each kind at least once.
    """
    kinds: dict[str, list[str]] = {}
    for gold in golds:
        kinds.setdefault("attack" if gold.attack else f"{gold.answerable}", []).append(gold.qid)
    counts = proportional_counts(kinds, size)
    return [qid for kind, qids in sorted(kinds.items()) for qid in hash_order(qids)[: counts[kind]]]


def restrict_policy(policy: Policy, perspectives: Sequence[str], suite: str) -> Policy:
    """Return the policy for a part of the run, unchanged if no part is named; raise UsageError for an invalid part.

    A part of the questions may refuse everything by chance, so integrity checks of the whole run only warn.
    """
    if suite != policy.suite:
        warned = {code: "off" if policy.integrity.get(code) == "off" else "warning" for code in WHOLE_RUN_CHECKS}
        policy = replace(policy, suite=suite_named(suite), integrity={**policy.integrity, **warned})
    return replace(policy, perspectives=perspectives_of(perspectives)) if perspectives else policy


def select_measures(cutoffs: Sequence[int], *policies: Policy) -> tuple[Measure, ...]:
    """Return what to measure in the first policy's metric groups: for the cutoffs, for the gates, and for the labels.

    Without ``cutoffs`` these are the usual ones. Metrics of a judge are left out if no policy names verdicts.
    """
    gates = [gate.name for policy in policies for gate in policy.gates]
    labels = [f"recall_all@{policy.k}" for policy in policies]
    groups, has_verdicts = policies[0].perspectives, any(policy.verdicts for policy in policies)
    selected = []
    for item in measures(cutoffs or DEFAULT_CUTOFFS, gates + labels):
        group = item.metric.perspective
        is_judged = group != "judge" or has_verdicts or item.name in gates
        if is_judged and (not groups or group in groups):
            selected.append(item)
    return tuple(selected)


def by_conversation(policy: Policy, golds: Mapping[str, Gold]) -> Policy:
    """Return a policy with slices by turn and statistics by conversation, if the gold has conversations."""
    if all(gold.conversation is None for gold in golds.values()):
        return policy
    slices = replace(policy.slices, by=tuple(dict.fromkeys([*policy.slices.by, "turn"])))
    statistics = replace(policy.statistics, cluster=policy.statistics.cluster or "conversation")
    return replace(policy, slices=slices, statistics=statistics)


def is_field(name: str) -> bool:
    """Return whether slices can use the field ``name``."""
    return name in FIELDS or (name.startswith("meta.") and len(name) > len("meta."))


def is_slice(name: str) -> bool:
    """Return whether ``name`` is a slice: a field, ``=`` and a value."""
    field, equals, value = name.partition("=")
    return is_field(field) and bool(equals) and bool(value)


def gold_fields(stated: Iterable[str]) -> tuple[str, ...]:
    """Return the gold fields of some names: ``tag`` is ``tags``, and an unknown name is a field of ``meta``."""
    plain = ["tags" if item == "tag" else item for item in stated]
    if "" in plain:
        raise UsageError("a field to split by is empty. Write a gold field, such as difficulty")
    if "meta." in plain:
        raise UsageError("'meta.' lacks the name of a field. Write meta.NAME, such as meta.team")
    resolved = [item if is_field(item) else f"meta.{item}" for item in plain]
    return tuple(dict.fromkeys(resolved))


def slices_of(gold: Gold, fields: Sequence[str]) -> tuple[str, ...]:
    """Return the slices of ``fields`` that an item is in; a list such as tags gives one for each entry."""
    return tuple(dict.fromkeys(f"{field}={_text(value)}" for field in fields for value in field_values(gold, field)))


def expand_slice(pattern: str, present: Iterable[str]) -> list[str]:
    """Return the slices of a gate on ``category=*``, sorted; a slice without ``*`` is its only one.

    Without any the pattern itself is returned. No case is in it, so its gates have no data, but they do not disappear.
    """
    field, _, value = pattern.partition("=")
    if value != "*":
        return [pattern]
    return sorted({name for name in present if name.startswith(f"{field}=")}) or [pattern]


def field_values(gold: Gold, field: str) -> list[Any]:
    """Return the values of a field of a gold item, by which questions are grouped; an absent field has none."""
    value: Any
    noun, _, name = field.partition(".")
    if field == "doc_type":
        endings = (re.search(_ENDING, name) for name in _documents(gold))
        value = sorted({match[1].lower() for match in endings if match})
    elif field == "document":
        value = first_document(gold)
    elif not name:
        value = getattr(gold, noun)
    else:
        parent = getattr(gold, noun)
        value = parent.get(name) if isinstance(parent, dict) else getattr(parent, name, None)
    return [item for item in (value if isinstance(value, (list, tuple)) else [value]) if item is not None]


def first_document(gold: Gold) -> str | None:
    """Return the document of the first gold citation, its id up to ``#``; otherwise the gold's first document."""
    if gold.citations:
        return gold.citations[0].partition("#")[0] or gold.citations[0]
    return next(iter(_documents(gold)), None)


def _documents(gold: Gold) -> list[str]:
    return [
        *(support.rel_path for support in gold.supports or ()),
        *(section.doc_id for section in gold.sections or ()),
        *(gold.relevant_docs or ()),
        *(gold.doc_grades or ()),
        *(gold.expected_documents or ()),
    ]


def clusters(cases: Iterable[Question], field: str) -> list[str]:
    """Return the cluster of each case: its value of the field if there is one, otherwise its own qid."""
    if not field:
        return [case.qid for case in cases]
    start = f"{field}="
    return [next((part for part in case.slices if part.startswith(start)), case.qid) for case in cases]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
