"""Checks of single items and pairs: citations, repeated and empty questions."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from rag_eval.cases.ranking import evidence_level
from rag_eval.common.escaping import quantity, quoted
from rag_eval.textual.tokens import tokens

if TYPE_CHECKING:
    from rag_eval.contract import Gold
    from rag_eval.gold.lint import GoldSample, LintNote

    Stems = frozenset[str]

SHARED = 4, 5
"""Of all distinct words of two near-duplicates, so many are in both: four in five."""

_STEM = 5
_FILLERS = frozenset(
    (
        "a an the of in on at for to is are was were be been do does did has have had can could will would may i you "
        "we they he she it me us my your our their his her its this that these those there with by as from and please "
    ).split()
)


def blank(sample: GoldSample) -> Iterator[LintNote]:
    """Find questions without a word."""
    for gold in sample.items:
        if not tokens(gold.question):
            yield "the question has no words", "Write a question, or remove the item.", gold


def contradiction(sample: GoldSample) -> Iterator[LintNote]:
    """Find equal questions with different labels."""
    for first, gold in _repeated(sample.items):
        differs = _differences(first, gold)
        if differs:
            message = f"it asks the same question as {quoted(first.qid)} but differs in {' and '.join(differs)}"
            yield message, "Make the labels agree, or change one of the questions.", gold


def duplicate(sample: GoldSample) -> Iterator[LintNote]:
    """Find equal questions with the same labels."""
    for first, gold in _repeated(sample.items):
        if not _differences(first, gold):
            message = f"it asks the same question as {quoted(first.qid)}, so the question counts twice"
            yield message, "Remove one of them.", gold


def near_duplicate(sample: GoldSample) -> Iterator[LintNote]:
    """Find questions that add almost nothing to another one.

    All telling words of one are in the other, and :data:`SHARED` of all their words are shared. Words are compared by
    their first five letters, those with digits as a whole; all except fillers (a, of, is, …) are telling.
    """
    firsts = {_same(gold): gold for gold in reversed(sample.items)}
    for gold, other in near_duplicates(firsts.values()):
        message = f"it asks nearly the same question as {quoted(other.qid)}: {quoted(other.question, 100)}"
        agrees = "" if gold.answerable == other.answerable else " One is answerable and the other is not: check both."
        yield message, f"Remove one of them, or make them differ.{agrees}", gold


def near_duplicates(golds: Iterable[Gold]) -> list[tuple[Gold, Gold]]:
    """Return each near-duplicate with the most similar of the items whose qid comes before its own.

    Exact: the items that have all the telling words of another are the intersection of those that have each of them.
    """
    groups: dict[Stems, list[Gold]] = {}
    for gold in sorted(golds, key=lambda gold: gold.qid):
        groups.setdefault(_stems(gold.question), []).append(gold)
    pairs = [(gold, same[0]) for same in groups.values() for gold in same[1:] if _telling(_stems(gold.question))]
    firsts = {same[0].qid: same[0] for same in groups.values()}
    stems_by_qid = {same[0].qid: stems for stems, same in groups.items()}
    having: dict[str, set[str]] = {}
    for qid, stems in stems_by_qid.items():
        for stem in _telling(stems):
            having.setdefault(stem, set()).add(qid)
    best: dict[str, tuple[float, str]] = {}
    share, of = SHARED
    for qid, stems in stems_by_qid.items():
        telling = sorted((having[stem] for stem in _telling(stems)), key=len)
        for other in (telling[0].intersection(*telling[1:]) if telling else set()) - {qid}:
            both = len(stems & stems_by_qid[other])
            total = len(stems) + len(stems_by_qid[other]) - both
            if of * both >= share * total:
                early, late = sorted((qid, other))
                best[late] = min(best.get(late, (0.0, "")), (-both / total, early))
    return pairs + [(firsts[late], firsts[early]) for late, (_, early) in best.items()]


def _stems(question: str) -> Stems:
    return frozenset(token if any(map(str.isdigit, token)) else token[:_STEM] for token in tokens(question))


def _telling(stems: Stems) -> Stems:
    return stems - _FILLERS


def _repeated(items: Iterable[Gold]) -> Iterator[tuple[Gold, Gold]]:
    """Yield the first item that asks a question, with each further one."""
    firsts: dict[str, Gold] = {}
    for gold in items:
        first = firsts.setdefault(_same(gold), gold)
        if first is not gold and tokens(gold.question):
            yield first, gold


def _same(gold: Gold) -> str:
    """Normalize a question: ignore case, white space and punctuation at its end."""
    return " ".join(unicodedata.normalize("NFKC", gold.question).casefold().split()).rstrip(" ?!.")


def _differences(gold: Gold, other: Gold) -> list[str]:
    if gold.answerable != other.answerable:
        return ["answerable"]
    pairs = {
        "gold_claim_substr": (set(gold.substrings), set(other.substrings)),
        "gold_citations": (set(gold.citations), set(other.citations)),
        "supports": (gold.supports, other.supports),
        "sections": (gold.sections, other.sections),
        "relevant_docs": (set(gold.relevant_docs or ()), set(other.relevant_docs or ())),
        "expected_answer": (gold.expected_answer, other.expected_answer),
    }
    return [name for name, (mine, its) in pairs.items() if mine != its]


def no_citation(sample: GoldSample) -> list[LintNote]:
    """Find answerable items without any evidence: the scorer requires their answers to cite nothing."""
    lacking = [gold for gold in sample.answerable if not evidence_level(gold)]
    wanted = "precision and chr require an answer without citations"
    note = f"it is answerable but names no evidence: {wanted}"
    count = f"no evidence in {len(lacking)} of {quantity(len(sample.answerable), 'answerable item')}"
    fix = "Name the chunks that contain the answer{} in gold_citations."
    return sample.few_or_most(lacking, (note, fix.format("")), (f"{count}: for these, {wanted}", fix.format("s")))


def citation_variant(sample: GoldSample) -> Iterator[LintNote]:
    """Find ids that differ from another one only in case, white space or the kind of slash."""
    users = _users(sample)
    for name, main, where in _spellings(sample, users):
        message = f"the id {quoted(name)} is {'' if where else 'also '}written {quoted(main)}{where}"
        yield message, "Ids must be identical: use one spelling everywhere.", users[name][0]


def citation_ungraded(sample: GoldSample) -> Iterator[LintNote]:
    """Find gold citations without a positive grade in the item's own grades."""
    for gold in sample.answerable:
        grades = gold.relevance_grades or {}
        for name in gold.citations if grades else ():
            if not grades.get(name):
                what = "graded 0 in" if name in grades else "missing from"
                message = f"the gold citation {quoted(name)} is {what} relevance_grades"
                yield (
                    f"{message}: retrieving it does not raise nDCG",
                    "Grade it 1 or more, or remove the citation.",
                    gold,
                )


def citation_unseen(sample: GoldSample) -> Iterator[LintNote]:
    """Find gold citations that no trace has retrieved."""
    users = _users(sample)
    if sample.seen is None or not users:
        return
    respelled = {name for name, *_ in _spellings(sample, users)}
    missing = sorted(users.keys() - sample.seen.ids - respelled)
    if len(missing) > 1 and 2 * len(missing) > len(users):
        example = f", as in {quoted(min(sample.seen.ids))}" if sample.seen.ids else ""
        message = f"{len(missing)} of {len(users)} gold citations were retrieved by no trace"
        yield f"{message}, such as {quoted(missing[0])}", f"Write the ids as the traces do{example}.", None
        return
    for gold in sample.answerable:
        if strangers := sorted({*missing} & {*gold.citations}):
            several = f"{len(strangers)} of its {len(gold.citations)} gold citations, such as"
            which = several if len(gold.citations) > 1 else "its gold citation"
            message = f"no trace retrieved {which} {quoted(strangers[0])}"
            yield message, "Check the id, and that the chunk is in the index.", gold


def _users(sample: GoldSample) -> dict[str, list[Gold]]:
    """Return the items by the ids that they cite."""
    users: dict[str, list[Gold]] = {}
    for gold in sample.answerable:
        for name in gold.citations:
            users.setdefault(name, []).append(gold)
    return users


def _spellings(sample: GoldSample, users: Mapping[str, list[Gold]]) -> list[tuple[str, str, str]]:
    """Return ids that look misspelled, each with the right spelling and the source of that spelling.

    Two spellings that were both retrieved are two ids. Otherwise the retrieved one is right, or the one that most items
    use.
    """
    ids = sample.seen.ids if sample.seen else frozenset()
    by_key: dict[str, set[str]] = {}
    for name in {*users, *ids}:
        folded = unicodedata.normalize("NFKC", name).casefold()
        by_key.setdefault("".join(folded.split()).replace("\\", "/").removeprefix("./"), set()).add(name)
    uses = Counter({name: len(golds) for name, golds in users.items()})
    spellings = []
    for names in by_key.values():
        wrong = names - ids
        if len(names) > 1 and wrong:
            main = min(names & ids or names, key=lambda name: (-uses[name], name))
            spellings += [(name, main, " in the traces" if main in ids else "") for name in wrong - {main}]
    return sorted(spellings)
