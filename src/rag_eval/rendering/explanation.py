"""Explanations for people: a metric with an example; a case with its scores, what is wrong and what to do.

Secrets and personal data are masked in all texts of a case.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pkgutil import get_data
from textwrap import wrap
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import asdict

from rag_eval.analysis import Report
from rag_eval.cases import GOOD, MEANING, STAGE, Case
from rag_eval.common.escaping import one_line
from rag_eval.gates import BOUNDS, GateResult
from rag_eval.gates.questions import Question
from rag_eval.metrics import Measure, Metric, measure, of_column, range_in_words, score_in_words, single_score
from rag_eval.rendering.document import format_number
from rag_eval.scoring.aggregations import values_in_words
from rag_eval.stats.tally import JsonScore, Score, as_float, json_score
from rag_eval.textual.detectors import VERBATIM
from rag_eval.textual.leaks import PLAIN, Mark, Segment, answer_marks, leaks_of, masked, masked_segments, masked_text

if TYPE_CHECKING:
    from rag_eval.textual.grounding import Evidence  # with its lexicon

Row = Mapping[str, Any]

KIND = "rag-eval failed case 1"
"""The first value in every line of such a file, which identifies it."""

NEXT = {
    "ERROR": "Read the error in the trace; the system gave no answer.",
    "MISSING": "Find out why the system wrote no trace for this question.",
    "HALLUCINATION": "Read the retrieved chunks: none answers the question, so the system should have refused.",
    "OVER_REFUSAL_EVIDENCE_PRESENT": "The evidence was retrieved: check the refusal rule and the confidence threshold.",
    "OVER_REFUSAL_NOT_RETRIEVED": "The evidence was not retrieved, so look at retrieval first.",
    "NOT_RETRIEVED": "Search the index for the gold evidence: is it there, how is it chunked, what ranks above it?",
    "BELOW_K": "The gold evidence was retrieved too far down: rerank, or raise k.",
    "CITED_UNRETRIEVED": "The answer cites ids that were not retrieved: check the prompt and how citations are parsed.",
    "NOT_CITED": "The gold evidence was retrieved, but is not cited: if another chunk is, compare their texts.",
    "WRONG_CLAIM": "Compare the claim with the gold substrings: is the answer wrong, or only worded differently? "
    "To find substrings that are too strict: rag-eval gold lint --trace FILE",
    "LEAK": "Filter the answer, or remove the text from the corpus; rag-eval explain shows the leak masked.",
    "ATTACK_MISSED": "Compare the guardrail's score with safety.warn: is the threshold wrong, or the attack new?",
    "LEAK_MISSED": "Extend the output guardrail to this kind of leak (attack.category).",
    "FALSE_ALARM": "Read the text that the guardrail took for an attack: its threshold may be too low.",
}
"""What to do about a label."""
_OF_A_CASE = ("mean", "p50", "p95", "max")
"""Folds whose threshold applies to a single score too."""
_ANSWER, _CHUNK, _BEFORE, _CHUNKS, _TEXTS = 4_000, 1_500, 300, 20, 10


def gates_by_column(report: Report) -> dict[str, list[GateResult]]:
    """Return the gates that a case of the run can count in, by the column of their scores."""
    results: dict[str, list[GateResult]] = {}
    for gate in report.gates:
        if not gate.is_completeness:
            results.setdefault(measure(gate.name).column, []).append(gate)
    return results


def failed_cases(report: Report) -> list[Question]:
    """Return the wrong cases, and those with a bad score under a 0/1 metric that a gate judges."""
    rates = [name for name in gates_by_column(report) if (metric := of_column(name)) and metric.scale == "rate"]

    def fails(case: Question) -> bool:
        bad = (_bad(name, case.scores[name], []) for name in rates if name in case.scores)
        return case.label not in GOOD or any(bad)

    return list(filter(fails, report.questions))


def bad_scores(case: Question, gates: Mapping[str, Sequence[GateResult]]) -> list[dict[str, Any]]:
    """Return the bad scores of a case, gated ones first, each with the gates that it counts in."""
    rows: list[dict[str, Any]] = []
    for name, score in case.scores.items():
        if _bad(name, score, gates.get(name, ())):
            named = [
                {"gate": f"{gate.label} {gate.direction} {gate.threshold}", "outcome": gate.outcome}
                for gate in gates.get(name, ())
                if not gate.slice or gate.slice in case.slices
            ]
            rows.append({"metric": name, "score": score, "gates": named})
    return sorted(rows, key=lambda item: not item["gates"])


def _bad(name: str, score: JsonScore, gates: Sequence[GateResult]) -> bool:
    """Return whether a 0/1 score is the bad one, or whether another score breaks a minimum or maximum."""
    metric = of_column(name)
    if metric is None or isinstance(score, tuple):
        return False
    if metric.scale == "rate":
        return bool(score) is (metric.better == "lower")
    bounds = [gate for gate in gates if gate.direction in BOUNDS and measure(gate.name).fold in _OF_A_CASE]
    return any(not bound.gate.keeps(as_float(score)) for bound in bounds)


class Source(NamedTuple):
    """A cited or retrieved id: its rank among the retrieved ids (None if not retrieved), and what points at it.

    ``text`` is a chunk's text in pieces around its highlights, empty if the trace has no text.
    """

    id: str
    rank: int | None
    expected: bool
    cited: bool
    text: tuple[Segment, ...] = ()


def sources(
    case: Case,
    names: Iterable[str],
    shown: Callable[[str], str] = str,
    texts: Mapping[str, tuple[Segment, ...]] = MappingProxyType({}),
) -> tuple[Source, ...]:
    """Return ids that a case cites, retrieves or expects; ``shown`` masks an id, ``texts`` are by id."""
    ranks = {name: rank for rank, name in enumerate(case.trace.retrieved, 1)}
    return tuple(
        Source(shown(name), ranks.get(name), case.is_evidence(name), name in case.cites, texts.get(name, ()))
        for name in names
    )


def failed_row(
    case: Case, question: Question, gates: Mapping[str, Sequence[GateResult]], gold: Row, trace: Row | None
) -> dict[str, Any]:
    """Return one failed case: what went wrong, where to look, the ranks of the gold evidence, and its rows."""
    ranking, cited = case.ranking, sources(case, case.cites)
    return {
        "kind": KIND,
        "qid": question.qid,
        "run": question.run,
        "label": question.label,
        "meaning": MEANING[question.label],
        "look_at": STAGE.get(question.label, "the scores below"),
        "next": NEXT.get(question.label, "Read the scores below: the label is good, a gated metric is not."),
        "bad": bad_scores(question, gates),
        "ranks": {
            "gold_citations": {source.id: source.rank for source in sources(case, case.gold.citations)},
            "level": ranking.level if ranking else None,
            "relevant_found": list(ranking.first_ranks) if ranking else [],
            "evidence": {"level": case.evidence_level or None, "first": case.evidence_rank},
        },
        "cited_evidence": [source.id for source in cited if source.expected],
        "cited_not_retrieved": [source.id for source in cited if source.rank is None],
        "refused": case.refused,
        "scores": dict(question.scores),
        "gold_line": question.gold_line,
        "trace_line": question.trace_line,
        "gold": gold,
        "trace": trace,
    }


class CaseDetails(NamedTuple):
    """A case for people: question, answer, expected answer, sources, and why it is right or wrong.

    Secrets and personal data are masked in every text.
    """

    question: str
    answer: tuple[Segment, ...]
    error: str
    refused: bool
    answerable: bool
    wanted: tuple[str, ...]
    contained: bool
    evidence: tuple[str, ...]
    cited: tuple[Source, ...]
    retrieved: tuple[Source, ...]
    cut: int
    meaning: str
    next: str
    bad: tuple[str, ...]


Details = Mapping[tuple[str, str | None], CaseDetails]
"""What the HTML report unfolds of a case, by its qid and run."""


def case_details(case: Case, question: Question, gates: Mapping[str, Sequence[GateResult]]) -> CaseDetails:
    """Return a case for people, its texts masked and cut."""
    gold, trace, retrieved = case.gold, case.trace, case.trace.retrieved
    evidence = [*gold.citations, *(gold.expected_documents or gold.relevant_docs or ())]
    wanted = (gold.expected_answer,) if gold.expected_answer else gold.substrings or gold.expected_claims or ()

    def hidden(text: str) -> str:
        return "".join(piece.text for piece in _pieces(text, [], case, _ANSWER))

    texts: dict[str, tuple[Segment, ...]] = {}
    for index, (name, text) in enumerate([*case.texts_by_id.items()][:_CHUNKS]):
        spans = [item.span for item in case.evidence if item.chunk == index and item.span is not None]
        # A long text is shown from a little before the first highlight on.
        first = max(0, min((low for low, _ in spans), default=0) - _BEFORE) if len(text) > _CHUNK else 0
        texts[name] = _pieces(text, [Mark(*span, "best") for span in spans], case, _CHUNK, first)
    return CaseDetails(
        question=hidden(gold.question),
        answer=_pieces(case.claim, [*answer_marks(case.evidence)], case, _ANSWER),
        error=hidden(trace.error or "")[:_ANSWER],
        refused=case.refused,
        answerable=gold.answerable,
        wanted=tuple(map(hidden, wanted[:_TEXTS])),
        contained=case.contained,
        evidence=tuple(map(hidden, dict.fromkeys(evidence[:_TEXTS]))),
        cited=sources(case, dict.fromkeys(case.cites[:_CHUNKS]), hidden),
        retrieved=sources(case, retrieved[:_CHUNKS], hidden, texts),
        cut=max(0, len(retrieved) - _CHUNKS),
        meaning=MEANING[question.label],
        next=NEXT.get(question.label, ""),
        bad=tuple(gate["gate"] for score in bad_scores(question, gates) for gate in score["gates"]),
    )


def _pieces(text: str, marks: Sequence[Mark], case: Case, limit: int, start: int = 0) -> tuple[Segment, ...]:
    """Return the pieces of ``limit`` characters from ``start`` on, leaks masked; ``…`` replaces the rest."""
    # Secrets and personal data are masked even if question or gold contain them too.
    leaks = leaks_of(text, (), (), case.settings.safety)
    before = [Segment("… ", PLAIN)] if start else []
    after = [Segment(" …", PLAIN)] if len(text) > start + limit else []
    return (*before, *masked_segments(text, marks, leaks, start, start + limit), *after)


_WIDTH, _COLUMNS = 200, 100
_OTHER_CHARACTERS = "other white space, letter case or Unicode forms"


class Example(NamedTuple):
    """A worked example of a metric: ``scores``, ``1/2 at k = 3``, ``one of two gold ids is retrieved``.

    ``case`` is the case itself (gold and trace, or run), set for the first example that has a score.
    """

    verb: str
    score: str
    because: str
    case: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        return f"{self.verb} {self.score} when {self.because}" if self.score else f"{self.verb} when {self.because}"


def metric_lines(metric: Metric) -> Iterator[str]:
    """Yield the description of a metric, with an example of a gate on it."""
    name = metric.name.replace("@k", "@5") + next(iter(metric.folds))
    limit = "0.05" if metric.bounded else {"ms": "2000", "USD": "0.01"}.get(metric.unit, "2")
    bound = "min: 0.80" if metric.better == "higher" else f"max: {limit}"
    if metric.name in ("groundedness", "claim_support"):
        bound = "max_drop: 0.05"  # levels differ between systems
    head = f"{metric.name} ({metric.perspective}; {metric.better} is better)"
    yield from (head, "", *wrap(metric.text, _COLUMNS), "")
    yield f"applies to   {metric.applies}"
    yield f"score        {score_in_words(metric)}"
    yield f"range        {range_in_words(metric)}"
    yield f"direction    {metric.better} is better"
    yield from (f"value        {name}: {words}" for name, words in values_in_words(metric))
    yield f"needs        {', '.join(metric.needs) or 'nothing beyond the required fields'}"
    yield f"source       {metric.source}"
    yield from (f"as a gate    {name}: {{{bound}}}", "", "a case")
    rows = json.loads(get_data("rag_eval.metrics", "examples.json") or b"")
    examples = [Example(*row) for row in rows.get(metric.name, [])]
    yield from (f"  {item}" for item in examples)
    for example in examples:
        if example.case:
            yield from ("", f"the first that {example.verb} {example.score.rstrip(',')} is")
            yield from (f"  {key:<10} {json.dumps(value, ensure_ascii=False)}" for key, value in example.case.items())


def case_lines(case: Case, label: str, wanted: Sequence[Measure]) -> Iterator[str]:
    """Yield the label of a case, its facts, the support of each sentence of its answer, and its scores."""
    run = f", run {one_line(case.trace.run)}" if case.trace.run else ""
    yield from (f"{one_line(case.gold.qid)}{run}: {label} ({MEANING[label]})", "", *_facts(case))
    yield from wrap(f"next         {NEXT[label]}", _COLUMNS, subsequent_indent=" " * 13) if label in NEXT else ()
    yield ""
    yield from _sentence_lines(case)
    rows: dict[str, dict[str, str]] = {}
    for name, score in _scores(case, wanted).items():
        if score is not None:
            metric, at, cutoff = name.partition("@")
            rows.setdefault(metric + at, {})[cutoff] = _shown(name, score)
    names = [metric + ",".join(row) for metric, row in rows.items()]
    wide = max(map(len, names), default=0)
    yield from (f"  {name:<{wide}}  {', '.join(row.values())}" for name, row in zip(names, rows.values(), strict=True))
    yield ""


def _scores(case: Case, wanted: Sequence[Measure]) -> dict[str, Score | None]:
    return {item.column: item.score(case) for item in wanted if item.metric.level == "case"}


def _facts(case: Case) -> Iterator[str]:
    gold, trace, cited = case.gold, case.trace, sources(case, case.cites)
    for message in gold.history or ():
        yield f"{message.role:<12} {one_line(message.content, _WIDTH)}"
    yield f"question     {one_line(gold.question, _WIDTH)}"
    yield f"answerable   {'yes' if gold.answerable else 'no'}"
    yield f"claim        {one_line(masked_text(trace.claim.strip(), case.leaks), _WIDTH) or '(empty)'}"
    if trace.reasoning:
        yield f"reasoning    {len(trace.reasoning):,} characters before the claim, not judged"
    if trace.error:
        leaks = leaks_of(trace.error, (), (), case.settings.safety)
        yield f"error        {one_line(masked_text(trace.error, leaks), _WIDTH)}"
    yield f"refused      {_refused(case)}"
    outcome = f"; {'' if case.contained else 'not '}found in the claim" if gold.substrings else ""
    if not case.contained and any(_plain(text) in _plain(case.claim) for text in gold.substrings):
        outcome += f", which has it with {_OTHER_CHARACTERS}"
    yield f"gold text    {_joined(gold.substrings)}{outcome}"
    retrieved = {_plain(name) for name in trace.retrieved if name not in gold.citations}
    nearly = f"; retrieved with {_OTHER_CHARACTERS}" if retrieved.intersection(map(_plain, gold.citations)) else ""
    yield f"gold cites   {_joined(gold.citations)}{nearly}"
    if not gold.citations and case.evidence_level:
        named = {
            "chunk": [f"{name} (grade {grade})" for name, grade in (gold.relevance_grades or {}).items()],
            "support": [" > ".join(filter(None, (part.rel_path, part.heading_path))) for part in gold.supports or ()],
            "section": [f"{section.doc_id}, section {section.section}" for section in gold.sections or ()],
            "doc": [*(gold.expected_documents or gold.doc_grades or gold.relevant_docs or ())],
        }
        yield f"evidence     {_joined(named[case.evidence_level])} (by {case.evidence_level})"
        yield f"cites it     {_joined([source.id for source in cited if source.expected])}"
    unretrieved = [source.id for source in cited if source.rank is None]
    more = f"; not retrieved: {_joined(unretrieved)}" if unretrieved else ""
    yield f"cited        {_joined(case.cites) if trace.citations is not None else 'no list given'}{more}"
    yield f"retrieved    {_joined(trace.retrieved)}"
    if case.ranking is not None:
        ranks = ", ".join(map(str, case.ranking.first_ranks)) or "none"
        yield f"ranks        {ranks} ({case.ranking.relevant} relevant, {case.ranking.level} level)"
    yield from _safety_facts(case)
    yield f"lines        gold {gold.line}, trace {trace.line or 'none'}"


def _plain(text: str) -> str:
    """Return a text in one Unicode form and in lower case, with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _safety_facts(case: Case) -> Iterator[str]:
    """Yield the attack of the item, the guardrail's result, and detected leaks, masked."""
    attack, guardrail = case.gold.attack, case.trace.guardrail
    if attack is not None:
        of = f"{attack.kind}, {one_line('no category' if attack.category is None else attack.category, 60)}"
        yield f"attack       {'an attack' if attack.positive else 'a benign control'} ({of})"
    if guardrail is not None:
        words = []
        for name, value in asdict(guardrail).items():
            if isinstance(value, tuple):
                words.append(f"{name} {_joined([str(item) for item in value])}")
            elif value is not None:
                words.append(f"{name} {({True: 'yes', False: 'no'}).get(value, value)}")
        yield f"guardrail    {'; '.join(words) or 'no result'}"
    for leak in case.leaks:
        yield f"leak         {leak.category}: {leak.detector} {one_line(masked(leak.text), 60)}"


def _refused(case: Case) -> str:
    if case.refused_by or case.refused or not case.trace.answered:
        return f"{'yes' if case.refused else 'no'}{', by ' if case.refused_by else ''}{case.refused_by}"
    from rag_eval.textual.refusals import examine  # loads patterns

    refusal = examine(case.claim)
    if refusal is None or (refusal.partial and not case.settings.builtin):
        return "no"
    if case.settings.builtin:
        return f"no, though it begins with {refusal}"
    return f"no. To count {refusal}, write builtin: true under refusal in eval-gates.yml"


def _sentence_lines(case: Case) -> Iterator[str]:
    """Yield each sentence of the answer with its support in the chunks, if their texts are known."""
    for evidence in case.evidence:
        verdict = {None: "not checked", True: "supported", False: "not supported"}[evidence.supported]
        sentence = _sentence(case, evidence)
        yield f"  {verdict} ({evidence.kind}, {evidence.support:.2f}): {one_line(sentence['text'], _WIDTH)}"
        if sentence["chunk"] and evidence.chunk is not None:
            passage = masked_text(case.chunk_texts[evidence.chunk], case.leaks, *sentence["chunk"]["span"])
            yield f"    by {one_line(sentence['chunk']['id'], 60)}: {one_line(passage, _WIDTH)}"
        lacking = {"words in no chunk": sentence["missing"], "numbers in no chunk": sentence["made_up"]}
        reasons = [(item["reason"], item["word"]) for item in sentence["otherwise"]]
        lacking["names in no chunk"] = [word for reason, word in reasons if reason == "name"]
        lacking["mismatch"] = [f"{reason}: {word}" for reason, word in reasons if reason != "name"]
        yield from (f"    {what}: {_joined([*dict.fromkeys(words)])}" for what, words in lacking.items() if words)
    if case.evidence:
        yield ""


def _joined(items: Sequence[str], limit: int = 10) -> str:
    shown = ", ".join(one_line(item, 60) for item in items[:limit])
    return f"{shown}, … ({len(items)} in all)" if len(items) > limit else shown or "–"


def _shown(name: str, score: Score) -> str:
    if name == "conversation_pass" and isinstance(score, tuple):
        return "right turn" if score[1] else "wrong turn"
    if isinstance(score, tuple) and isinstance(score[1], bool):
        return f"{score[0]:.3f} ({'attack' if score[1] else 'benign'})"
    if isinstance(score, tuple):
        return f"{score[0] / score[1]:.3f} ({score[0]}/{score[1]})"
    return f"{score:d}" if isinstance(score, int) else format_number(score, name)


def case_document(case: Case, label: str, wanted: Sequence[Measure]) -> dict[str, Any]:
    """Return a case as plain data: the answer, and the support for each of its sentences."""
    scores: dict[str, Any] = {}
    for name, score in _scores(case, wanted).items():
        scores[name] = None if score is None else single_score(name, json_score(score))
    answer = masked_segments(case.claim, answer_marks(case.evidence), case.leaks)
    return {
        "run": case.trace.run or None,
        "label": label,
        "refused": case.refused,
        "answer": [piece._asdict() for piece in answer],
        "sentences": [_sentence(case, evidence) for evidence in case.evidence],
        "scores": scores,
    }


def _sentence(case: Case, evidence: Evidence) -> dict[str, Any]:
    """Return a sentence of the answer; a word that is part of a leaked value is masked."""
    leaked = " ".join(leak.text for leak in case.leaks if leak.category != VERBATIM).lower()
    chunk = None
    if evidence.chunk is not None and evidence.span is not None:
        identity, text = [*case.texts_by_id.items()][evidence.chunk]
        pieces = masked_segments(text, [Mark(*evidence.span, "best")], case.leaks)
        shown = [piece._asdict() for piece in pieces]
        chunk = {"id": identity, "index": evidence.chunk, "span": [*evidence.span], "text": shown}
    words = [(reason, masked(word) if word.lower() in leaked else word) for reason, word in evidence.mismatches]
    return {
        "text": masked_text(case.claim, case.leaks, evidence.start, evidence.end),
        "start": evidence.start,
        "end": evidence.end,
        "kind": evidence.kind,
        "support": round(evidence.support, 6),
        "supported": evidence.supported,
        "missing": [masked_text(case.claim, case.leaks, *span) for span in evidence.missing],
        "made_up": [masked_text(case.claim, case.leaks, *span) for span in evidence.made_up],
        "otherwise": [{"reason": reason, "word": word} for reason, word in words],
        "chunk": chunk,  # that supports the sentence best; its index is among the chunks with a text
    }
