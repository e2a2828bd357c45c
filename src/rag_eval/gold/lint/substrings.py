"""Checks of gold substrings and expected answers: those that match no answer, too many, or are never searched.

The scorer searches for a substring, lower-cased, in the claim, stripped and lower-cased. White space, quotes, dashes
and Unicode forms must be exactly the same, and one substring of an item is enough.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rag_eval.cases import PHRASE_LIMIT
from rag_eval.common.escaping import quantity, quoted
from rag_eval.textual.refusals import recognise
from rag_eval.textual.tokens import content_words

if TYPE_CHECKING:
    from rag_eval.contract import Gold
    from rag_eval.gold.lint import GoldSample, LintNote

LONG = 100  # characters; an answer hardly ever repeats more of them exactly
MOST_ANSWERS, LEAST_ANSWERS = 2000, 10  # how many answers a substring is tested on, and how many are enough to judge
_GRAM = 3
# Zero-width and bidirectional signs, soft hyphens, byte order marks; not the joiners, which some scripts need.
INVISIBLE = re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]")
_TYPED = {"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "‐": "-", "‑": "-", "−": "-", "…": "..."}
TYPOGRAPHIC = re.compile(f"[{''.join(_TYPED)}\ufb00-\ufb06]")
_PLAIN = str.maketrans({**_TYPED, **dict.fromkeys("*_`", "")})


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
        sign = _odd_sign(text)
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


def _odd_sign(text: str) -> str:
    unseen, typed = INVISIBLE.search(text), TYPOGRAPHIC.search(text)
    if unseen:
        return f"U+{ord(unseen[0]):04X}, which is invisible"
    if unicodedata.normalize("NFC", text) != text:
        return "letters with separate accents"
    if typed:
        return f"the typographic character {typed[0]}"
    # The lower-cased form of Turkish İ; an answer with I or i has no such dot.
    return "İ, which has two characters in lower case" if "i\u0307" in text else ""


def _grams(text: str) -> set[str]:
    return {text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)}
