"""Checks of the items of a gold set: substrings and expected answers, citations, questions.

The scorer searches for a substring, lower-cased, in the claim, stripped and lower-cased. White space, quotes, dashes
and Unicode forms must be exactly the same, and one substring of an item is enough.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from rag_eval.cases import PHRASE_LIMIT
from rag_eval.cases.ranking import evidence_level
from rag_eval.common.escaping import quantity, quoted
from rag_eval.contract import Gold
from rag_eval.gates import Policy
from rag_eval.textual.refusals import recognise
from rag_eval.textual.tokens import content_words, tokens

LONG = 100  # characters; an answer hardly ever repeats more of them exactly
MOST_ANSWERS, LEAST_ANSWERS = 2000, 10  # how many answers a substring is tested on, and how many are enough to judge
_GRAM = 3
# Zero-width and bidirectional signs, soft hyphens, byte order marks; not the joiners, which some scripts need.
INVISIBLE = re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]")
_TYPED = {"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "‐": "-", "‑": "-", "−": "-", "…": "..."}
TYPOGRAPHIC = re.compile(f"[{''.join(_TYPED)}\ufb00-\ufb06]")
_PLAIN = str.maketrans({**_TYPED, **dict.fromkeys("*_`", "")})
SHARED = 4, 5  # of all distinct words of two near-duplicates, so many are in both: four in five
_STEM = 5
_FILLERS = frozenset(
    (
        "a an the of in on at for to is are was were be been do does did has have had can could will would may i you "
        "we they he she it me us my your our their his her its this that these those there with by as from and please "
    ).split()
)
Stems = frozenset[str]

LintNote = tuple[str, str, Gold | None]
"""Message and hint of a check about one item, or about the whole set without one."""


class Seen(NamedTuple):
    """Observations in traces: lower-cased answers by qid, and all retrieved ids."""

    answers: Mapping[str, frozenset[str]]
    ids: frozenset[str]


class GoldSample:
    """A gold set for the checks: no safety cases, sorted by qid, so that the order of lines does not matter.

    ``before`` are the items by qid as they were before a change under review.
    """

    def __init__(
        self, golds: Iterable[Gold], policy: Policy, seen: Seen | None = None, before: Mapping[str, Gold] | None = None
    ) -> None:
        self.items = sorted((gold for gold in golds if gold.attack is None), key=lambda gold: gold.qid)
        self.policy, self.settings, self.seen, self.before = policy, policy.settings, seen, before or {}
        self.answerable = [gold for gold in self.items if gold.answerable]

    @cached_property
    def labels(self) -> list[tuple[Gold, str]]:
        """Return each item with each of its gold substrings, lower-cased as the scorer searches for them."""
        return [(gold, text) for gold in self.answerable for text in dict.fromkeys(gold.substrings)]

    def few_or_most(self, lacking: Sequence[Gold], note: tuple[str, str], summary: tuple[str, str]) -> list[LintNote]:
        """Return a note for each answerable item that lacks something, or one summary if more than half of them do."""
        if len(lacking) > 1 and 2 * len(lacking) > len(self.answerable):
            return [(*summary, None)]
        return [(*note, gold) for gold in lacking]


def white_space(sample: GoldSample) -> Iterator[LintNote]:
    """Find white space that an answer hardly has: at an end, doubled, line breaks, no-break spaces."""
    for gold, text in sample.labels:
        plain = " ".join(text.split())
        if not plain:
            yield f"the substring {_shown(text)} is only white space", "Write the required text.", gold
        elif text != plain and not _covered(text, gold):
            where = "begins or ends with" if text.strip() != text else "contains"
            signs = sorted({f"U+{ord(sign):04X}" for sign in text if sign.isspace() and sign != " "})
            which = f"white space ({', '.join(signs)})" if signs else "white space"
            message = f"the substring {_shown(text)} {where} {which} that an answer must repeat exactly"
            yield message, f"Write {quoted(plain)}.", gold


def character(sample: GoldSample) -> Iterator[LintNote]:
    """Find characters that an answer hardly has: invisible ones, decomposed letters, ligatures, typographic quotes."""
    for gold, text in sample.labels:
        unseen, typed = INVISIBLE.search(text), TYPOGRAPHIC.search(text)
        # In lower case Turkish İ has two characters; an answer with I or i has no such dot.
        sign = "İ, which has two characters in lower case" if "i\u0307" in text else ""
        if unseen:
            sign = f"U+{ord(unseen[0]):04X}, which is invisible"
        elif unicodedata.normalize("NFC", text) != text:
            sign = "letters with separate accents"
        elif typed:
            sign = f"the typographic character {typed[0]}"
        if sign and not _covered(text, gold):
            message = f"the substring {_shown(text)} contains {sign}, which an answer must repeat exactly"
            yield message, f"Write {quoted(tidy(text))}, or add it if answers are written both ways.", gold


def long(sample: GoldSample) -> Iterator[LintNote]:
    """Find items whose substrings are all so long that a right answer in other words does not count."""
    for gold in sample.answerable:
        shortest = min(map(len, gold.substrings), default=0)
        if shortest > LONG:
            message = f"its shortest substring has {shortest} characters, which an answer must repeat exactly"
            yield message, "Keep the few words that make an answer right.", gold


def refusal(sample: GoldSample) -> Iterator[LintNote]:
    """Find substrings of a refusal, or ones that make an answer a refusal."""
    token, only = sample.settings.token.lower(), "Write a text that only a right answer contains."
    for gold, text in sample.labels:
        what = f"the substring {_shown(text)}"
        phrase = next((phrase for phrase in sample.settings.phrases if phrase in text), None)
        if text.strip() == token:
            hint = "Write the required text, or make the item unanswerable."
            yield f"{what} is the refusal token: an answer that gives it is a refusal", hint, gold
        elif text in token:
            yield f"{what} is part of the refusal token: a longer refusal can contain it", only, gold
        elif phrase:
            effect = f"an answer of up to {PHRASE_LIMIT} characters with it is a refusal"
            message = f"{what} contains the refusal phrase {_shown(phrase)}: {effect}"
            yield message, "Choose another substring, or remove the phrase.", gold
        elif sample.settings.builtin and (built_in := recognise(text)):
            yield f"{what} is {built_in} on its own: an answer of only this text is a refusal", only, gold


def in_question(sample: GoldSample) -> Iterator[LintNote]:
    """Find substrings that occur in their own question."""
    for gold, text in sample.labels:
        if text.strip() and text in gold.question.lower():
            effect = "an answer that only repeats the question contains it"
            message = f"the substring {_shown(text)} is in the question: {effect}"
            yield message, "Add the words that make the answer right.", gold


def stop_words(sample: GoldSample) -> Iterator[LintNote]:
    """Find substrings that consist only of function words and punctuation."""
    for gold, text in sample.labels:
        if text.strip() and not content_words(text):
            message = f"the substring {_shown(text)} has no content words: almost any answer contains it"
            yield message, "Add the words that make the answer right.", gold


def in_citation(sample: GoldSample) -> Iterator[LintNote]:
    """Find substrings that occur in an id: an answer that cites in its text contains them."""
    for gold, text in sample.labels:
        name = next((name for name in sorted(gold.citations) if text.strip() and text in name.lower()), None)
        if name:
            message = f"the substring {_shown(text)} is in the id {_shown(name)}: a citation in the text contains it"
            yield message, "Choose words that the id does not contain.", gold


def common(sample: GoldSample) -> Iterator[LintNote]:
    """Find substrings that at least half of the answers to other questions contain.

    Answers to questions that expect the same text are no others, unless it is the change that lets them expect it.
    """
    seen = sample.seen.answers if sample.seen else {}
    answers = sorted((qid, claim) for qid, claims in seen.items() for claim in claims)
    answers = answers[:: -(-len(answers) // MOST_ANSWERS)] if answers else []  # a regular sample of very many
    owners: dict[str, dict[str, Gold]] = {}
    for gold, text in sample.labels if answers else ():
        owners.setdefault(text, {})[gold.qid] = gold
    claims, grams = Counter(qid for qid, _ in answers), Counter(gram for _, claim in answers for gram in _grams(claim))
    for text, golds in owners.items():
        same = {qid for qid in golds if qid not in sample.before or text in sample.before[qid].substrings}
        others = len(answers) - sum(claims[qid] for qid in same)
        # A text in half of the answers has all its parts there: counting the parts once saves most of the search.
        if others < LEAST_ANSWERS or 2 * min(grams[gram] for gram in _grams(text)) < others:
            continue
        matches = sum(text in claim for qid, claim in answers if qid not in same)
        if 2 * matches >= others:
            message = f"the substring {_shown(text)} occurs in {matches} of {others} answers to other questions"
            yield from ((message, "Add the words that make this answer right.", gold) for gold in golds.values())


def near_miss(sample: GoldSample) -> Iterator[LintNote]:
    """Find answers that miss a substring of their item only by white space, quotes, dashes or marks."""
    for gold in sample.answerable if sample.seen else ():
        claims = sample.seen.answers.get(gold.qid, ()) if sample.seen else ()
        missed = [fold(claim) for claim in claims if not any(text in claim for text in gold.substrings)]
        for text in dict.fromkeys(gold.substrings):
            if (plain := fold(text)) and any(plain in claim for claim in missed):
                form = "other white space, quotes, dashes, Unicode forms or Markdown"
                message = f"an answer writes {_shown(text)} with {form}: no match"
                yield message, "Add the form that answers use.", gold


def missing_in_answer(sample: GoldSample) -> Iterator[LintNote]:
    """Find expected answers that would not count as right."""
    for gold in sample.answerable:
        answer = (gold.expected_answer or "").lower()
        if answer.strip() and gold.substrings and not any(text in answer for text in gold.substrings):
            nearly = any((plain := fold(text)) and plain in fold(answer) for text in gold.substrings)
            but = ", unless white space, quotes, dashes and Markdown are ignored" if nearly else ""
            message = f"expected_answer contains no text of gold_claim_substr{but}"
            yield message, "Correct expected_answer, or add a substring that it contains.", gold


def none(sample: GoldSample) -> list[LintNote]:
    """Find answerable items that accept any claim."""
    lacking = [gold for gold in sample.answerable if not gold.substrings]
    hint = "Add a text of a right answer to gold_claim_substr, or set answerable to false."
    note = "it has no substring: any claim with the right citations counts as right", hint
    count = f"no substring in {len(lacking)} of {quantity(len(sample.answerable), 'answerable item')}"
    return sample.few_or_most(lacking, note, (f"{count}: precision judges only their citations", hint))


def tidy(text: str) -> str:
    """Return a text as typed on a keyboard: NFC, plain quotes and dashes, single spaces, no invisible characters."""
    plain = TYPOGRAPHIC.sub(lambda sign: _TYPED.get(sign[0]) or unicodedata.normalize("NFKC", sign[0]), text)
    return " ".join(INVISIBLE.sub("", unicodedata.normalize("NFC", plain)).split())


def fold(text: str) -> str:
    """Return a text without differences of form: NFKC, case, kinds of quotes and dashes, white space, Markdown."""
    plain = INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).translate(_PLAIN)
    return " ".join(plain.casefold().split())


def _shown(text: str) -> str:
    return quoted(text, 60)


def _covered(text: str, gold: Gold) -> bool:
    """Return whether another substring of the item, in plain text, also matches."""
    plain = tidy(text)
    return any(substring in plain for substring in gold.substrings if substring != text)


def _grams(text: str) -> set[str]:
    return {text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)}


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
    """Normalize a question: ignore its form and punctuation at its end."""
    return fold(gold.question).rstrip(" ?!.")


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
                message = f"the gold citation {quoted(name)} is {what} relevance_grades: retrieving it does not "
                yield f"{message}raise nDCG", "Grade it 1 or more, or remove the citation.", gold


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
