"""Explanations: a metric with a worked example, and a question with its scores; leaked values are masked."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import asdict

from rag_eval.analysis.case_details import NEXT, sources
from rag_eval.cases import MEANING, Case
from rag_eval.common.escaping import one_line
from rag_eval.metrics import Measure, Metric, range_in_words, score_in_words, single_score
from rag_eval.rendering.document import format_number
from rag_eval.scoring.aggregations import values_in_words
from rag_eval.stats.tally import Score, json_score
from rag_eval.textual.detectors import VERBATIM
from rag_eval.textual.leaks import Mark, answer_marks, leaks_of, masked, masked_segments, masked_text
from rag_eval.textual.refusals import examine

if TYPE_CHECKING:
    from rag_eval.textual.grounding import Evidence  # with its lexicon

_WIDTH, _COLUMNS = 200, 100
_CUTOFF = re.compile(r"@\d+$")
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
    rows = json.loads(files("rag_eval.metrics").joinpath("examples.json").read_text(encoding="utf-8"))
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
    scores = _scores(case, wanted)
    wide = max(map(len, scores), default=0)
    yield from (f"  {name:<{wide}} {_shown(name, score)}" for name, score in scores.items() if score is not None)
    missing = dict.fromkeys(_CUTOFF.sub("@k", name) for name, score in scores.items() if score is None)
    yield from wrap(f"  does not apply: {', '.join(missing) or '–'}", _COLUMNS, subsequent_indent="    ")
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
