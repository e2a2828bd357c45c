"""Integrity checks that read traces again: the texts of answers, retrieved lists and ids, injected instructions.

Answers may be copied, hidden, padded or constant ones, or doubtful refusals. None of these signs is proof of deceit, so
most only warn. docs/limits.md names what the checks cannot see.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import accumulate, chain

from msgspec.structs import replace

from rag_eval.cases import PHRASE_LIMIT, Case, refused_in_words
from rag_eval.cases.ranking import evidence_ids
from rag_eval.common.escaping import quoted, some
from rag_eval.contract import Answer, Gold, Settings
from rag_eval.errors import Finding, Level
from rag_eval.gates import MARGINS, Policy
from rag_eval.gates.integrity import ALMOST_ALL, FEWEST_CASES, HALF, guards, is_tenth
from rag_eval.metrics import measure
from rag_eval.scoring import is_other_question
from rag_eval.stats.sampling import sample_positions
from rag_eval.textual.hidden import is_shown, visible
from rag_eval.textual.tokens import holds_any, tokens

_SHOWN = 3
_PROBES = 40  # items whose expected text is searched in other answers
_PADDED = 0.5  # share of the expected answers of other questions
_SIMILARITY = 0.6  # share of the words of two claims
_FEW_WORDS = 3
_LONGEST_HIDDEN = 4_000  # characters of a text that is searched for hidden parts
_LONG_ANSWER = 10  # words; a shorter expected answer may be repeated by chance
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")  # as JSON writes letters
_FACT = r"\d+|(?<=[a-z,] )[A-Z][a-z]+"
_THINK_TAGS = re.compile(r"</?think(?:ing)?>|<answer>|\s")
_UNSEEN = "no reader sees it, such as in a comment of HTML or the reasoning of a model"
_LEAST_POOL = 20  # honest systems also retrieve all of a shorter list
_TURNOVER, _ONE_SIDED = 0.8, 0.1  # share of the baseline's ids, and of the gold's
_UNRANKED = ("union_recall", "first_evidence_hop", "wasted_hops", "hop_recall@")
_UNCUT = r"(?:recall|recall_all|recall_any)@([0-9]+)"
_FIELD = {"chunk": "id", "support": "rel_path", "section": "section", "doc": "doc_id"}


def _of_a_tenth(qids: Sequence[str], answers: Sequence[Case], finding: Finding) -> Iterator[Finding]:
    """Yield the finding about some answers, with their number and first qids, if they are a tenth of all."""
    if is_tenth(len(qids), len(answers)):
        shown = some(sorted({*qids}), _SHOWN, quoted)  # of any run, in any order of lines
        yield finding._replace(message=f"{len(qids)} of {len(answers)} {finding.message}: {shown}")


def hidden_answers(answers: Sequence[Case]) -> Iterator[Finding]:
    """Find answers that have their expected substring only in text that HTML and Markdown do not show."""
    texts = ((answer.gold, answer.claim.lower()) for answer in answers)
    right = ((gold, claim) for gold, claim in texts if holds_any(gold.substrings, claim))
    unseen = [gold.qid for gold, claim in right if not any(is_shown(text, claim) for text in gold.substrings)]
    what = f"right answers have the expected text only where {_UNSEEN}"
    return _of_a_tenth(unseen, answers, Finding("hidden-answers", "error", what, "Write the answer as plain text."))


def _shown(answer: Case) -> str:
    """Return the claim as its readers see it; a long one is not searched for hidden text."""
    return visible(answer.claim) if len(answer.claim) <= _LONGEST_HIDDEN else answer.claim


def hidden_support(answers: Sequence[Case]) -> Iterator[Finding]:
    """Find answers whose supported sentences are all in text that HTML and Markdown do not show."""
    unseen = []
    for answer in answers:
        shown = _shown(answer)
        if shown != answer.claim and any(answer.verdicts):
            trace = replace(answer.trace, answer_json=Answer(shown, answer.trace.citations))
            unseen += [] if any(Case(answer.gold, trace, answer.settings).verdicts) else [answer.gold.qid]
    what = f"answers have a supported sentence only where {_UNSEEN}"
    return _of_a_tenth(unseen, answers, Finding("hidden-answers", "error", what, "Write the answer as plain text."))


def hidden_refusals(refusals: Sequence[Case]) -> Iterator[Finding]:
    """Find refusals that refuse only in text that HTML and Markdown do not show: readers see an answer, or nothing."""
    unseen = []
    for case in refusals:
        if case.claim and not (case.is_refusal_token or case.blocked or case.trace.abstained):
            is_phrase_seen = any(is_shown(phrase, case.claim.lower()) for phrase in case.settings.phrases)
            is_seen = is_phrase_seen or refused_in_words(_shown(case), case.settings)
            unseen += [] if is_seen else [case.gold.qid]
    what = f"refusals refuse only where {_UNSEEN}"
    return _of_a_tenth(unseen, refusals, Finding("hidden-answers", "error", what, "Write the refusal as plain text."))


def ignored_reasoning(answers: Sequence[Case], before: Iterable[Case], level: Level) -> Iterator[Finding]:
    """Find answers behind the reasoning of a model, which is not judged, although any text may be marked as such.

    It is only a warning if as many answers ``before``, in the traces of the baseline, had reasoning.
    """
    reasoned = list(filter(_has_reasoning, answers))
    if not reasoned:
        return
    earlier = list(map(_has_reasoning, before))
    if sum(earlier) * len(answers) >= len(reasoned) * len(earlier) > 0:
        level = "warning"
    message = f"{len(reasoned)} of {len(answers)} answers begin with the reasoning of a model, which is not judged"
    empty = sum(not case.claim for case in reasoned)
    message += f", and {empty} of them are empty, because nothing follows it" if empty else ""
    fix = "Record what users see: remove the reasoning if they do not see it, otherwise its tags. To keep it in the"
    verb, state = ("first merge into", "warning") if level == "error" else ("write in", '"off"')
    fix += f" traces, {verb} the gates file: integrity: {{ignored-reasoning: {state}}}"
    yield Finding("ignored-reasoning", level, message, fix)


def _has_reasoning(case: Case) -> bool:
    """Return whether an answer follows reasoning other than an empty pair of tags."""
    return bool(_THINK_TAGS.sub("", case.trace.reasoning))


def constant_answers(answers: Sequence[Case]) -> Iterator[Finding]:
    """Find nearly the same claim as the right answer to questions that expect different answers.

    Otherwise find different claims that are each right for the same questions; fewer than half of them only warn.
    """
    groups = [group for group in _group_similar(answers) if _count_different(group) >= FEWEST_CASES]
    if is_similar := is_tenth(sum(map(len, groups)), len(answers)):
        item = "the same claim" if len(groups) == 1 else f"one of {len(groups)} claims"
    else:
        groups = [group for group in _group_interchangeable(answers) if _count_different(group) >= FEWEST_CASES]
        item = "right for each other's questions"
    same = sum(map(len, groups))
    if not is_tenth(same, len(answers)):
        return
    largest = max(groups, key=len)
    qids = ", ".join(answer.gold.qid for answer in largest[:FEWEST_CASES])
    message = f"{same} of {len(answers)} right answers are {item}, although their questions expect different answers"
    wanted = any(answer.gold.substrings for group in groups for answer in group)
    is_half = 2 * same >= len(answers) and any(len(tokens(group[0].claim)) >= _FEW_WORDS for group in groups)
    fix = "Answer the question that is asked"
    fix += "." if wanted else ", and write the right answers into gold_claim_substr."
    level: Level = "error" if (is_similar and wanted) or is_half else "warning"
    yield Finding("constant-answers", level, f"{message}: {quoted(qids, 60)}", fix)


def _group_similar(answers: Iterable[Case]) -> list[list[Case]]:
    """Return the answers in groups of nearly the same claim, each of which also answers the first one's question."""
    groups: list[tuple[str, frozenset[str], list[Case]]] = []
    for answer in answers:
        shown, texts = _shown(answer), answer.gold.substrings
        shown = shown if holds_any(texts, shown.lower()) else answer.claim  # the address of a link may be the answer
        claim, words = shown.lower(), frozenset(tokens(shown))
        for first, known, group in groups:
            answers_both = holds_any(group[0].gold.substrings, claim) and holds_any(texts, first)
            if words == known or (answers_both and _SIMILARITY * len(words | known) <= len(words & known)):
                group.append(answer)
                break
        else:
            if words:
                groups.append((claim, words, [answer]))
    return [group for *_, group in groups]


def _group_interchangeable(answers: Iterable[Case]) -> list[list[Case]]:
    """Return the answers in groups that have the expected texts of all their questions, and share them with few others.

    Words of the subject occur in many honest answers, so each text may occur in twice as many answers as its group has.
    """
    answers = [answer for answer in answers if answer.gold.substrings]
    claims = [_shown(answer).lower() for answer in answers]
    found = {
        index: holding for index, holding in enumerate(_answers_with(answers, claims)) if len(holding) >= FEWEST_CASES
    }
    groups: list[list[int]] = []
    for index, holding in found.items():
        for group in groups:
            if holding.issuperset(group) and all(index in found[other] for other in group):
                group.append(index)
                break
        else:
            groups.append([index])
    groups = [group for group in groups if all(len(found[index]) <= 2 * len(group) for index in group)]
    return [[answers[index] for index in group] for group in groups if len(group) >= FEWEST_CASES]


def _answers_with(answers: Iterable[Case], claims: Sequence[str]) -> Iterator[set[int]]:
    """Yield for each answer the indexes of the claims that have one of its expected texts, and its own."""
    ends = list(accumulate(len(claim) + 1 for claim in claims))
    joined = "\0".join(claims)
    for own, answer in enumerate(answers):
        holding = {own}
        for text in answer.gold.substrings:
            position = joined.find(text)
            while position >= 0:
                index = bisect_right(ends, position)
                holding.add(index)
                position = joined.find(text, ends[index])
        yield holding


def _count_different(answers: Iterable[Case]) -> int:
    """Count the items of some answers that differ in expected substrings and in evidence."""
    count, texts, cited = 0, set[str](), set[str]()
    for gold in (answer.gold for answer in answers):
        wants = set(gold.substrings or ([gold.expected_answer.lower()] if gold.expected_answer else [f"#{gold.qid}"]))
        evidence = {*gold.citations, *(gold.relevance_grades or ()), *(gold.relevant_docs or ())}
        evidence |= {*(gold.doc_grades or ()), *(f"{row.doc_id} {row.section}" for row in gold.sections or ())}
        evidence |= {f"{support.rel_path} > {support.heading_path}" for support in gold.supports or ()}
        if texts.isdisjoint(wants) and cited.isdisjoint(evidence):
            count, texts, cited = count + 1, texts | wants, cited | evidence
    return count


def padded_answers(answers: Sequence[Case], golds: Iterable[Gold], seed: str) -> Iterator[Finding]:
    """Find answers that also contain the expected substrings of many other questions.

    A tenth of the right answers in a sample is enough. :func:`rag_eval.gates.integrity.degenerate_findings` makes the
    same finding of the scorer's marks, which all answers have: so it also finds padding if no gate judges texts, or if
    no answer is right because its evidence was not retrieved.
    """
    if not answers:
        return
    answerable = [gold for gold in golds if gold.answerable and gold.attack is None and gold.substrings]
    positions = sample_positions(len(answerable), _PROBES, seed)
    probes = [frozenset(answerable[position].substrings) for position in positions]
    padded = 0
    for answer in answers:
        lowered, expected = answer.claim.lower(), answer.gold.substrings
        others = [texts for texts in probes if texts.isdisjoint(expected)]
        count = sum([holds_any(texts, lowered) for texts in others])
        padded += count >= FEWEST_CASES and count >= len(others) * _PADDED
    if is_tenth(padded, len(answers)):
        message = f"{padded} of {len(answers)} right answers also contain the expected text of many other questions"
        yield Finding("padded-answers", "error", message, "Answer the question that is asked.")


def copied_answers(answers: Sequence[Case], policies: Sequence[Policy], words: int) -> Iterator[Finding]:
    """Find answers that repeat at least so many words of a chunk.

    It is an error if most of them repeat a chunk that is no evidence and lacks their expected text; extractive systems
    quote the other ones.
    A gate on such passages decides instead.
    """
    if {"leakage", "leakage_verbatim"} & guards(policies):
        return
    with_texts = [answer for answer in answers if answer.chunk_texts]
    copies = [answer for answer in with_texts if any(leak.category == "verbatim" for leak in answer.leaks)]
    if is_tenth(len(copies), len(answers)):
        ids = defaultdict[str | None, set[str]](set)
        for chunk in chain.from_iterable(answer.ranked_chunks for answer in with_texts):
            ids[chunk.text].add(chunk.id)
        # The same text under several ids is no evidence for one question.
        unique = {text for text, names in ids.items() if text is not None and len(names) == 1}
        padded = sum(_repeats_other_chunk(answer, words, unique) for answer in copies)
        message = f"{len(copies)} of {len(answers)} answers repeat {words} words or more of a chunk"
        message += f": {some([answer.gold.qid for answer in copies], _SHOWN, quoted)}"
        fix = "Answer in own words. If answers quote on purpose, write in the gates file: "
        fix += 'integrity: {copied-answers: "off"}'
        level: Level = "error" if padded >= max(FEWEST_CASES, HALF * len(answers)) else "warning"
        yield Finding("copied-answers", level, message, fix)


def _repeats_other_chunk(answer: Case, words: int, unique: Container[str]) -> bool:
    """Return whether an answer repeats a passage that only chunks without its expected text have.

    The evidence of the gold item may be quoted too, if its text is ``unique``: a computed answer is not in it.
    """
    from rag_eval.textual.leaks import first_run  # loads detectors

    expected, evidence = answer.gold.substrings, evidence_ids(answer.gold)
    quotable = [text for text in answer.chunk_texts if holds_any(expected, " ".join(text.lower().split()))]
    evidence_texts = [chunk.text for chunk in answer.ranked_chunks if chunk.id in evidence and chunk.text is not None]
    quotable += [text for text in evidence_texts if text in unique]
    others = [tokens(text) for text in answer.chunk_texts if expected and text not in quotable]
    return first_run(answer.claim, others, words, quotable) is not None


def answers_from_gold(answers: Sequence[Case]) -> Iterator[Finding]:
    """Find answers that contain the expected answer of their gold item word for word, unless it is from a chunk."""
    copies = []
    for answer in answers:
        expected = tokens(answer.gold.expected_answer or "")
        is_copy = len(expected) >= _LONG_ANSWER and _has_words(answer.claim, expected)
        if is_copy and not any(_has_words(text, expected) for text in answer.chunk_texts):
            copies.append(answer.gold.qid)
    fix = "Make sure that the system cannot read the gold set, and that its answers do not become expected answers."
    fix += " If the expected answers are texts of the documents, write chunks[].text to the traces."
    what = "answers contain the expected_answer of their gold item word for word"
    return _of_a_tenth(copies, answers, Finding("answers-from-gold", "error", what, fix))


def _has_words(text: str, words: Sequence[str]) -> bool:
    return f" {' '.join(words)} " in f" {' '.join(tokens(text))} "


def other_questions(answers: Sequence[Case], file: str) -> Iterator[Finding]:
    """Find traces with another question than their gold item, as in files that number their questions differently."""
    others = [answer.gold.qid for answer in answers if is_other_question(answer.trace, answer.gold)]
    what = "traces were asked another question than the gold has"
    fix = "Check that a qid means the same question in both files. In a trace, q is the question that was asked."
    return _of_a_tenth(others, answers, Finding("other-question", "warning", what, fix, file))


def other_answers(answers: Sequence[Case]) -> Iterator[Finding]:
    """Find traces with two answers, of which neither the scored one (``answer_json``) nor the other has the other.

    They are also two if only the scored one has the expected text, and the other says something else.
    """
    judged = [answer for answer in answers if answer.counts and not answer.blocked]
    for kind, refused in (("answers", False), ("refusals", True)):
        group = [answer for answer in judged if answer.refused == refused]
        others = [answer.gold.qid for answer in group if _is_another_answer(answer)]
        what = f"{kind} have another text in answer than in answer_json, which is scored"
        fix = "Write one of the two: the answer that users get."
        yield from _of_a_tenth(others, group, Finding("other-answer", "error", what, fix))


def _is_another_answer(case: Case) -> bool:
    if case.trace.answer_json is None or case.trace.answer is None:
        return False
    text = _ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), case.trace.answer)
    scored, other = set(tokens(case.claim)), set(tokens(text))
    differs = len(scored & other) < HALF * min(len(scored), len(other))
    if case.refused:  # systems also replace the words of a refusal with the token
        return differs and _states_fact(text, case) and not refused_in_words(text, replace(case.settings, builtin=True))
    expected = case.gold.substrings
    only_here = holds_any(expected, case.claim.lower()) and not holds_any(expected, text.lower())
    return differs or (only_here and not other <= scored)


def marked_refusals(refusals: Sequence[Case], settings: Settings) -> Iterator[Finding]:
    """Find refusals of failures, and those by ``abstained: true`` whose text states a number or a name instead.

    So refusals in other languages, questions and fixed texts do not count. The built-in patterns recognise nine in ten
    refusals of two public sets; so half of them may be unrecognised.
    """
    failed = [case.gold.qid for case in refusals if case.trace.error or case.trace.timed_out or case.trace.ok is False]
    if is_tenth(len(failed), len(refusals)):
        message = f"{len(failed)} of {len(refusals)} refusals come with an error, which gates on refusals do not count"
        fix = "Leave the answer out of the traces of failures."
        yield Finding("marked-refusals", "error", f"{message}: {some(failed, _SHOWN, quoted)}", fix)
    worded = (case for case in refusals if case.claim and not case.is_refusal_token and not case.blocked)
    marked = [case for case in worded if case.trace.abstained]
    if len(marked) < FEWEST_CASES:
        return
    builtin = replace(settings, builtin=True)
    texts = [(_shown(case), case) for case in marked]
    answers = [case for text, case in texts if _states_fact(text, case) and not refused_in_words(text, builtin)]
    if len(answers) >= max(FEWEST_CASES, HALF * len(marked)):
        message = f"{len(answers)} of {len(marked)} texts that their traces mark with abstained do not read as refusals"
        message += f": {quoted(min(answers, key=lambda case: len(case.claim)).claim, 60)}"
        fix = "Set abstained only for refusals: users get these answers, and no metric of answers counts them."
        fix += " If a text does refuse, such as a handover, write a part of it into refusal.phrases of the gates file."
        yield Finding("marked-refusals", "error", message, fix)


def _states_fact(text: str, case: Case) -> bool:
    """Return whether a text has a number, or a name within a sentence, that the question does not have."""
    return any(fact not in case.gold.question for fact in re.findall(_FACT, text))


def unrecognised_refusals(answers: Sequence[Case], file: str, *, is_builtin: bool) -> Iterator[Finding]:
    """Find answers that read as refusals, but count as answers: for their words, or because their trace says so.

    One to an unanswerable item is enough. Long answers are not searched, because that costs much and they rarely
    refuse. ``file`` is that of the traces. With ``is_builtin``, other words are recognised.
    """
    if not answers:
        return
    from rag_eval.textual.refusals import recognise  # loads patterns

    refusals, counts = list[Case](), list[str]()
    for kind, is_answerable in (("unanswerable", False), ("answerable", True)):
        group = [case for case in answers if case.counts and case.is_answerable == is_answerable]
        if is_answerable and not any(case.claim.strip() for case in group):
            continue  # a search engine gives no answers
        short = [case for case in group if len(case.claim) <= PHRASE_LIMIT]
        uncounted = [case for case in short if case.trace.abstained is False or not is_builtin]
        refusing = [case for case in uncounted if case.is_refusal_token or recognise(case.claim)]
        if refusing and (is_tenth(len(refusing), len(group)) or not is_answerable):
            refusals += refusing
            counts.append(f"{len(refusing)} of {len(group)} answers to {kind} questions")
    if not refusals:
        return
    is_marked = all(case.trace.abstained is False for case in refusals)
    message = f"{' and '.join(counts)} refuse in other words than the token"
    fix = "To count refusals in other words, write builtin: true under refusal in the gates file."
    if is_marked:
        message = f"{' and '.join(counts)} refuse, but their traces say abstained: false"
        fix = "Leave abstained out of the traces of refusals, or write true."
    worded = [case.claim for case in refusals if case.claim.strip()]
    message += f": {quoted(min(worded, key=len), 60) if worded else 'they are empty'}"
    yield Finding("unrecognised-refusals", "warning", message, fix, file)


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
    cutoffs = {name: int(cut[1]) for name in severe if (cut := re.fullmatch(_UNCUT, name))}
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
            fix = "If the documents were split again, update the ids: rag-eval gold relink. If not, check the index."
            if field != "id":
                fix = f"Write the same {field} in the items and in the chunks of the traces, or check the index."
            elif not seen[field]:
                fix = "Record them in the traces: t.retrieved(chunks), or chunks in the map of collect --request."
            elif documents.issuperset(strangers):
                fix = "They are the doc_id of chunks, not their ids. Move them from gold_citations to relevant_docs."
            elif all(name.startswith("text:") for name in strangers):
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
    hint = "The gold set has these ids. First merge a pull request that only renews the baseline."
    if after < then:
        hint = "Update the ids of the gold set: rag-eval gold relink. Then renew the baseline."
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
