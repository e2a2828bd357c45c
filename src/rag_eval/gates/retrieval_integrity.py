"""Integrity checks of retrieved chunks: lists that are too long, ids that do not match, and injected instructions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from rag_eval.cases import Case
from rag_eval.common.escaping import quoted
from rag_eval.contract import Gold
from rag_eval.errors import Finding
from rag_eval.gates.integrity import ALMOST_ALL, FEWEST_CASES
from rag_eval.gates.policy import MARGINS, Policy
from rag_eval.metrics import measure

_LEAST_POOL = 20  # honest systems also retrieve all of a shorter list
_TURNOVER, _ONE_SIDED = 0.8, 0.1  # share of the baseline's ids, and of the gold's
_UNRANKED = ("union_recall", "first_evidence_hop", "wasted_hops", "hop_recall@")
_UNCUT = re.compile(r"(?:recall|recall_all|recall_any)@([0-9]+)")
_FIELD = {"chunk": "id", "support": "rel_path", "section": "section", "doc": "doc_id"}


def padded_retrieval(cases: Sequence[Case], policies: Sequence[Policy]) -> Iterator[Finding]:
    """Find that almost all questions retrieve almost the same long list.

    It is an error if a gate ignores the order of the list.
    """
    lists = [frozenset(case.trace.retrieved) for case in cases]
    counts = Counter(chain.from_iterable(lists))
    common = {name for name, count in counts.items() if count >= len(lists) * ALMOST_ALL}
    padded = sum(len(names) > _LEAST_POOL and len(names & common) >= len(names) * ALMOST_ALL for names in lists)
    if len(common) <= _LEAST_POOL or padded < max(FEWEST_CASES, len(lists) * ALMOST_ALL):
        return
    severe = sorted({gate.name for policy in policies for gate in policy.gates if gate.severity == "error"})
    cutoffs = {name: int(cut[1]) for name in severe if (cut := _UNCUT.fullmatch(name))}
    blind = [name for name in severe if cutoffs.get(name, 0) >= len(common) or name.startswith(_UNRANKED)]
    message = f"{padded} of {len(lists)} questions retrieve almost the same {len(common)} chunks"
    message += f", so {', '.join(blind)} can hardly fail" if blind else ""
    fix = "Write the ranked list that the answer is made from."
    yield Finding("padded-retrieval", "error" if blind else "warning", message, fix)


def unmatched_ids(cases: Iterable[Case], file: str) -> Iterator[Finding]:
    """Find that the gold, in ``file``, and traces name evidence differently, as after a new chunking."""
    gold: dict[str, set[str]] = {}
    seen: dict[str, set[str]] = {}
    documents: set[str | None] = set()
    for case in cases:
        if case.is_answerable:
            field = _FIELD[case.evidence_level]
            chunks = case.trace.chunks or ()
            documents.update(chunk.doc_id for chunk in chunks)
            values = case.trace.retrieved if field == "id" else [getattr(chunk, field) for chunk in chunks]
            gold.setdefault(field, set()).update(_named(case.gold, field))
            seen.setdefault(field, set()).update(filter(None, values))
    for field, names in gold.items():
        strangers = sorted(names - seen[field])
        if len(strangers) >= FEWEST_CASES and 2 * len(strangers) > len(names):
            what = "chunk ids" if field == "id" else f"values of {field}"
            other = f"traces have {quoted(min(seen[field]), 60)}" if seen[field] else f"no trace has any {field}"
            message = f"{len(strangers)} of {len(names)} {what} of the gold occur in no trace: the gold has "
            message += f"{quoted(strangers[0], 60)}, {other}"
            fix = "If the documents were re-chunked, label the items again, or use supports. If not, check the index."
            if field == "id" and documents.issuperset(strangers):
                fix = "They are the doc_id of chunks, not their ids. Move them from gold_citations to relevant_docs."
            elif field == "id" and all(name.startswith("text:") for name in strangers):
                fix = "These ids are made of texts. Import the traces with --by-text too."
            yield Finding("unmatched-ids", "warning", message, fix, file)


def changed_ids(pairs: Iterable[tuple[Sequence[str], Case]], policies: Sequence[Policy]) -> Iterator[Finding]:
    """Find that chunks have other ids than in the baseline; ``pairs`` are a case and the ids that it retrieved then.

    Two signs distinguish new ids from another retriever: almost no id of the baseline was retrieved again, and the ids
    of the gold occur on only one side. It is an error if a regression gate compares ids.
    """
    old, new, gold = set[str](), set[str](), set[str]()
    for ids, case in pairs:
        old.update(ids)
        new.update(case.trace.retrieved)
        gold.update(_named(case.gold, "id"))
    gone, then, after = old - new, len(gold & old), len(gold & new)
    one_sided = max(then, after) >= FEWEST_CASES and min(then, after) <= _ONE_SIDED * max(then, after)
    if not one_sided or len(gone) < _TURNOVER * len(old):
        return
    message = f"{len(gone)} of {len(old)} chunk ids that the baseline retrieved occur in no trace of this run, such as "
    message += f"{quoted(min(gone), 60)}: the ids changed, so regressions of metrics that compare ids cannot be judged"
    hint = "The gold set has these ids. First merge a pull request that only renews the baseline: docs/relink.md"
    if after < then:
        hint = "Update the ids of the gold set: rag-eval gold relink. Then renew the baseline: docs/relink.md"
    gates = [gate for item in policies for gate in item.gates if gate.direction in MARGINS]
    metrics = [measure(gate.name).metric for gate in gates if gate.severity == "error"]
    by_id = any(metric.perspective in ("retrieval", "citations") or "precision" in metric.name for metric in metrics)
    yield Finding("ids-changed", "error" if by_id else "warning", message, hint)


def injected_instructions(cases: Iterable[Case], file: str) -> Iterator[Finding]:
    """Find retrieved chunks of the traces in ``file`` that address a language model.

    The message has their ids, but not their text.
    """
    from rag_eval.textual.instructions import instruction  # loads patterns

    seen: set[str] = set()
    texts: dict[str, tuple[str, int]] = {}
    for case in cases:
        for chunk in case.trace.chunks or ():
            if chunk.text and chunk.text not in seen:
                seen.add(chunk.text)
                if kind := instruction(chunk.text):
                    texts.setdefault(chunk.id, (kind.kind, case.trace.line))
    if not texts:
        return
    shown = [f"{quoted(name, 60)} ({kind}, line {line})" for name, (kind, line) in [*texts.items()][:FEWEST_CASES]]
    what = f"{len(texts)} of {len(seen)} retrieved texts read like instructions to a language model"
    fix = "Check the source of these chunks. This check is not a guardrail: it misses most attacks."
    first = min(line for _, line in texts.values())
    yield Finding("injected-instructions", "error", f"{what}: {', '.join(shown)}", fix, file, first)


def _named(gold: Gold, field: str) -> Iterable[str]:
    if field == "id":
        return gold.citations or [name for name, grade in (gold.relevance_grades or {}).items() if grade]
    if field == "rel_path":
        return [support.rel_path for support in gold.supports or ()]
    if field == "section":
        return [section.section for section in gold.sections or ()]
    return gold.expected_documents or gold.doc_grades or gold.relevant_docs or ()
