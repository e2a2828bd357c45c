"""The checks of ``rag-eval gold lint``, among them those of a whole set: rare classes, and gates beyond its size.

They need no git, clock or model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from rag_eval.cases import Case
from rag_eval.common.escaping import quantity, quoted
from rag_eval.contract import Answer, Chunk, Gold, Scope, Settings, Trace
from rag_eval.gates import BOUNDS, Gate
from rag_eval.gates.selection import expand_slice, first_document, slices_of
from rag_eval.gold import item_checks
from rag_eval.gold.item_checks import GoldSample, LintNote, Seen
from rag_eval.metrics import Measure, measure
from rag_eval.scoring.aggregations import FOLDS
from rag_eval.stats.tally import Value, as_fraction, tally

_GIVEN = frozenset({"trace.citations", "trace.chunks.text", "trace.scope"})  # fields that the ideal trace has
_OTHERS = (Chunk("any", ""), Chunk("any other", ""))
"""Chunks behind what is relevant: some metrics are about what several of them have in common."""
LEAST_SHARE = Fraction(1, 10)
LEAST_ITEMS, LEAST_SLICE = 10, 20  # a smaller set, or a smaller slice of it, is not asked for balance
_FEWEST_CLUSTERS, _CORRELATION, _DESIGN_EFFECT = 10, 0.2, 1.3

_BALANCE = {
    "answerable": "A system that refuses everything would look good. Add questions that the corpus answers.",
    "unanswerable": "A system that never refuses would look good. Add questions that the corpus does not answer.",
}


def balance(sample: GoldSample) -> Iterator[LintNote]:
    """Find a class of items with less than a tenth of the set."""
    n, answerable = len(sample.items), len(sample.answerable)
    counts = {"answerable": answerable, "unanswerable": n - answerable}
    for name, count in counts.items() if n >= LEAST_ITEMS else ():
        if count < LEAST_SHARE * n:
            yield f"less than a tenth of the items are {name}: {count} of {n}", _BALANCE[name], None


def one_class(sample: GoldSample) -> Iterator[LintNote]:
    """Find categories and tags whose items are all answerable or all unanswerable."""
    if {gold.answerable for gold in sample.items} != {True, False}:
        return
    slices: dict[tuple[str, str], list[bool]] = {}
    for gold in sample.items:
        named = [("category", gold.category)] if gold.category is not None else []
        for label in {*named, *(("tag", tag) for tag in gold.tags or ())}:
            slices.setdefault(label, []).append(gold.answerable)
    for (kind, value), classes in sorted(slices.items()):
        if len(classes) >= LEAST_SLICE and len(set(classes)) == 1 and len(classes) < len(sample.items):
            only = "answerable" if classes[0] else "unanswerable"
            message = f"all {len(classes)} items of {kind} {quoted(value)} are {only}"
            otherwise = "Otherwise a fixed behaviour answers all of these correctly."
            yield message, f"Add items of the other class. {otherwise}", None


def coarse(sample: GoldSample) -> Iterator[LintNote]:
    """Find gates on rates that fail with a single failed case, although their threshold allows a share to fail."""
    for gate, measured, ideal in _judged(sample):
        limit = Fraction(Decimal(gate.threshold))
        slack = 1 - limit if gate.direction == "min" else limit
        if measured.is_rate and ideal.n and 0 < slack < Fraction(1, ideal.n):
            step = float(Fraction(1, ideal.n))
            effect = f"one failed item moves the value by {step:.3g}, so none may fail"
            fix = f"Add items, or set the limit to {1 if gate.direction == 'min' else 0}."
            message = f"the gate {gate.written} applies to {quantity(ideal.n, 'item')}: {effect}"
            yield message, f"With {-(-1 // slack)} such items one may fail. {fix}", None


def clustered(sample: GoldSample) -> Iterator[LintNote]:
    """Find many questions of the same documents, although intervals assume independent ones.

    The design effect is that at an intra-class correlation of 0.2, which is usual for questions of one page.
    """
    sizes = Counter(first_document(gold) or f"qid {gold.qid}" for gold in sample.items)
    n = sizes.total()
    if sample.policy.statistics.cluster or len(sizes) < _FEWEST_CLUSTERS:
        return
    effect = 1 + _CORRELATION * (sum(size * size for size in sizes.values()) / n - 1)
    if effect >= _DESIGN_EFFECT:
        width = f"intervals should be up to {effect**0.5:.2f} times as wide"
        fix = "Group the questions by document in the gates file: statistics: {cluster: document}."
        yield f"{n} questions are about {len(sizes)} documents: {width}", fix, None


def without_items(sample: GoldSample) -> Iterator[LintNote]:
    """Find gates that apply to no item."""
    for gate, measured, ideal in _judged(sample):
        if not ideal.n and gate.when_no_data == "fail":
            message = f"the gate {gate.written} has no items to judge: it applies to {measured.metric.applies}"
            yield message, "Add such items, remove the gate, or set when_no_data: skip.", None


def out_of_reach(sample: GoldSample) -> Iterator[LintNote]:
    """Find gates on retrieval that even an ideal run fails, which finds exactly the relevant chunks, best first."""
    if any(gold.supports for gold in sample.items):
        return  # one chunk may match several supports, so the gold does not determine the ideal
    for gate, measured, ideal in _judged(sample):
        if measured.metric.depends_on == "ranking" and ideal.number is not None and not gate.keeps(ideal.number):
            message = f"the gate {gate.written} cannot pass: even an ideal run, with all relevant chunks ranked first, "
            yield f"{message}gets {float(ideal.number):.3g}", "Lower the limit, change k, or label more chunks.", None


@lru_cache(maxsize=1)  # for the checks of gates
def _judged(sample: GoldSample) -> list[tuple[Gate, Measure, Value]]:
    """Return the gates on values, those on each value of a field once for each, with measure and ideal value."""
    # Metrics of rank prefer citations first, metrics of gain the highest grades: the better of the two is ideal.
    orders = [[_ideal(gold, sample.settings, by_grade=order) for gold in sample.items] for order in (False, True)]
    runs = [[Case(*pair, sample.settings) for pair in zip(sample.items, traces, strict=True)] for traces in orders]
    present = {name for gold in sample.items for name in slices_of(gold, sample.policy.fields)}
    bounds = [gate for gate in sample.policy.gates if gate.direction in BOUNDS and not gate.slice.startswith("attack.")]
    gates = [replace(gate, slice=part) for gate in bounds for part in expand_slice(gate.slice, present)]
    results = []
    for gate in gates:
        measured = measure(gate.name)
        needs = measured.metric.needs
        if "gold.attack" in needs or not all(name in _GIVEN or name.startswith("gold.") for name in needs):
            continue  # a sample contains no attacks, and the gold has no trace fields
        if measured.metric.perspective == "judge":
            continue  # verdicts are recorded separately from the gold
        field, values = [gate.slice.partition("=")[0]], []
        for cases in runs:
            judged = [case for case in cases if not gate.slice or gate.slice in slices_of(case.gold, field)]
            values.append(FOLDS[measured.fold].value(tally([measured.score(case) for case in judged])))
        results.append((gate, measured, max(values, key=lambda value: as_fraction(value.number or 0))))
    return results


def _ideal(gold: Gold, settings: Settings, *, by_grade: bool) -> Trace:
    """Return the trace of a run that fulfils all requirements of the item, so that every possible metric applies."""
    chunks = [*_chunks(gold, by_grade=by_grade), *_OTHERS]
    ids = tuple([chunk.id for chunk in chunks])
    facts = " ".join([fact.fact for fact in gold.facts or ()])
    chunks[0] = replace(chunks[0], text=f"{chunks[0].text} {facts}")
    claim = (gold.expected_answer or "as the corpus has it") if gold.answerable else settings.token
    cites = (gold.citations or ids[: -len(_OTHERS)]) if gold.answerable else ()
    return Trace(
        gold.qid,
        retrieved_ids=ids,
        answer_json=Answer(claim, cites),
        abstained=not gold.answerable,
        chunks=tuple(chunks),
        scope=Scope("on", ("",)),
        latency=gold.latency_budget,
        line=1,
    )


def _chunks(gold: Gold, *, by_grade: bool) -> list[Chunk]:
    """Return the relevant chunks, best first: citations or graded ones, otherwise supports, sections, documents."""
    grades = {**dict.fromkeys(gold.citations, 1), **(gold.relevance_grades or {})}
    cited = set(gold.citations)
    wanted = (name for name, grade in grades.items() if grade or name in cited)
    ids = sorted(wanted, key=lambda name: (0 if by_grade else name not in cited, -grades[name]))
    if ids:
        return [Chunk(name, "") for name in ids]
    if gold.supports:
        chunks = []
        for index, one in enumerate(gold.supports):
            name, text = f"{one.rel_path}#{index}", next(iter(one.snippets), "")
            chunks.append(Chunk(name, text, rel_path=one.rel_path, heading_path=one.heading_path))
        return chunks
    docs = dict.fromkeys((*(gold.relevant_docs or ()), *(gold.expected_documents or ())), 1) | (gold.doc_grades or {})
    ranked = sorted((name for name, grade in docs.items() if grade), key=lambda name: -docs[name])
    sections = [(section.doc_id, section.section) for section in gold.sections or ()]
    chunks = [Chunk(f"{doc}#{name}", "", doc, section=name) for doc, name in sections]
    return [*chunks, *[Chunk(name, "", name) for name in ranked]]


def watch(golds: Mapping[str, Gold], traces: Iterable[Trace], settings: Settings) -> Seen:
    """Collect answers and retrieved ids from traces, without refusals and failures."""
    answers: dict[str, set[str]] = {}
    ids: set[str] = set()
    for trace in traces:
        ids.update(trace.retrieved, [chunk.id for chunk in trace.chunks or ()])
        gold = golds.get(trace.qid)
        if gold and trace.claim.strip() and not Case(gold, trace, settings).refused:
            answers.setdefault(trace.qid, set()).add(trace.claim.strip().lower())
    return Seen({qid: frozenset(claims) for qid, claims in answers.items()}, frozenset(ids))


CHECKS: dict[str, Callable[[GoldSample], Iterable[LintNote]]] = {
    "no-substr": item_checks.none,
    "substr-white-space": item_checks.white_space,
    "substr-character": item_checks.character,
    "substr-long": item_checks.long,
    "substr-refusal": item_checks.refusal,
    "substr-in-question": item_checks.in_question,
    "substr-stop-words": item_checks.stop_words,
    "substr-in-citation": item_checks.in_citation,
    "substr-common": item_checks.common,
    "substr-near-miss": item_checks.near_miss,
    "no-citation": item_checks.no_citation,
    "citation-variant": item_checks.citation_variant,
    "citation-ungraded": item_checks.citation_ungraded,
    "citation-unseen": item_checks.citation_unseen,
    "expected-without-substr": item_checks.missing_in_answer,
    "question-blank": item_checks.blank,
    "question-contradiction": item_checks.contradiction,
    "question-duplicate": item_checks.duplicate,
    "question-near-duplicate": item_checks.near_duplicate,
    "balance": balance,
    "one-class": one_class,
    "clustered-questions": clustered,
    "gate-coarse": coarse,
    "gate-without-items": without_items,
    "gate-out-of-reach": out_of_reach,
}
"""Every check by the code of its findings. Codes are stable: people filter by them."""


class GoldFinding(NamedTuple):
    """A weakness of a gold set; ``line`` 0 and an empty ``qid`` mean the whole set."""

    line: int
    code: str
    qid: str
    message: str
    hint: str


def lint(sample: GoldSample) -> list[GoldFinding]:
    """Return the findings of all checks, sorted by line."""
    findings = []
    for code, check in CHECKS.items():
        for message, hint, gold in check(sample):
            findings.append(GoldFinding(gold.line if gold else 0, code, gold.qid if gold else "", message, hint))
    return sorted(findings)
