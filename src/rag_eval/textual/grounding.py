"""Groundedness without a judge: how far the retrieved chunks support an answer, sentence by sentence.

The value is the mean of three precisions over the words of the answer: the share of its content words that occur in the
chunks, of its neighbouring words that are neighbours there, and of its neighbouring content words that are near each
other there. A sentence is supported if its own value is high enough, none of its numbers and names is made up, and the
best position does not deny it or have another number or unit.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain, compress, pairwise
from typing import NamedTuple

from rag_eval.contract import Grounding
from rag_eval.textual.refusals import says_nothing
from rag_eval.textual.tokens import MAX_PASSAGE, MAX_PASSAGES
from rag_eval.textual.words import (
    CHECKED,
    CURRENCIES,
    FUNCTION,
    LEXICON,
    NEGATIONS,
    Kind,
    Sentence,
    expression,
    keys,
    sentences,
    stem,
    word_list,
    words,
)

_LIMITS = Grounding()
_CLAIM_MADE = 0.8  # the share of a claim's content words that an answer has if it makes the claim
_NEAR = 10  # words within which two content words are near each other, and a small number is near others
_CLOSE = 0.8  # the share of a sentence's content words from which a place is compared with it
_SIMILAR = 0.7  # the share of a sentence's other content words in the chunks from which its names are checked
_MAX_GAP_SUPPORT = 0.6  # support below which a sentence may be one that says that the sources lack something
_OPPOSITES: dict[str, set[str]] = defaultdict(set)
"""The words that contradict a word in the same place."""
for _group in LEXICON["opposites"].replace("\n", "|").split("|"):
    for _word in set(keys(_group)):
        _OPPOSITES[_word] |= {*keys(_group)} - {_word}
_DENYING = frozenset({"negation", "opposite"})
_COMMON = frozenset({"0", "1"})  # *one* is mostly no number
_MAX_COUNT = 20  # things that an announced list has
_COUNTS = frozenset(map(str, range(2, 100)))
_CONVERTIBLE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")
_SMALL = 2  # digits of a number that occurs somewhere by chance
_MAX_PLACES = 64  # places of a word in a chunk that are looked at
_MARGIN = 3  # words around a place that are read with it
_SCOPE = 5  # words behind a negation in which the word that it denies occurs
_CONDITIONS, _NOT_ONLY = map(word_list, ("conditions", "not_only"))
_CAPITAL = "A-ZÀ-ÖØ-ÞĆČĐĘĞİŁŃŘŚŞŠŹŻŽΑ-ΩІЇЄЁА-Я"
_NAME = re.compile(rf"(?<!\w)[{_CAPITAL}](?=[^\W\d_])[^{_CAPITAL}\W]\w*(?:[ \-][{_CAPITAL}]\w+)*\b(?!\. )")
_NAME_ROOT = 4  # letters that the forms of a name have in common: *Paris*, *Parisian*
_BEFORE_NAME = ' ,"“'  # signs between a name and the word before it
_EXPLAINING = frozenset(":(")  # signs behind a title, and before the explanation of a name
_TITLE = 0.7  # the share of words with a capital from which a sentence is a title
_UNITS = frozenset(map(stem, word_list("units"))) | {"m"}
_GERMAN, _POLITE = map(word_list, ("german", "polite"))  # nouns of German and polite pronouns begin with a capital
_MONTHS = frozenset(word_list("months")) | frozenset(map(stem, word_list("months")))
_VAGUE = NEGATIONS | word_list("quantifiers")  # content words without which a place is compared with a sentence
_CURRENCIES = frozenset(map(stem, CURRENCIES.values()))
_CONVERSIONS: dict[str, list[tuple[str, float]]] = defaultdict(list)
"""The units that a number of a unit may be converted to, and what it is multiplied by."""
for _pair, _factor in LEXICON["conversions"].items():
    _large, _small = map(stem, _pair.split())
    _CONVERSIONS[_large].append((_small, _factor))
    _CONVERSIONS[_small].append((_large, 1 / _factor))
_LIST_NUMBER, _SEPARATOR, *_STATING_NOTHING = map(expression, LEXICON["stated_nothing"].values())


class Checked(NamedTuple):
    """A sentence and its support by the chunks, from 0 to 1.

    ``words``, ``neighbours`` and ``near`` are counts: how many content words, pairs of words and pairs of content words
    the chunks have, of how many. ``missing`` and ``made_up`` are places in its words. ``mismatches`` are a reason and a
    key: what the best place contradicts (``negation``, ``opposite``, ``number``, ``unit``), or a ``name`` that is made
    up.
    """

    sentence: Sentence
    words: tuple[int, int]
    neighbours: tuple[int, int]
    near: tuple[int, int]
    support: float
    missing: tuple[int, ...]
    made_up: tuple[int, ...]
    mismatches: tuple[tuple[str, str], ...]


class Evidence(NamedTuple):
    """The evidence for a sentence, for people.

    ``start`` and ``end`` are characters of the claim, ``span`` characters of the chunk with the number ``chunk``; both
    are None if no content word of the sentence occurs. ``missing`` are content words that are in no chunk, ``made_up``
    numbers, as characters of the claim. ``mismatches`` are pairs of a reason and a word as written.
    """

    start: int
    end: int
    kind: Kind
    support: float
    supported: bool | None
    chunk: int | None
    span: tuple[int, int] | None
    missing: tuple[tuple[int, int], ...]
    made_up: tuple[tuple[int, int], ...]
    mismatches: tuple[tuple[str, str], ...]


class SourceChunk(NamedTuple):
    """A chunk as it is read: its words, the places of each, its neighbouring words, and the words that it denies."""

    keys: list[str]
    places: dict[str, list[int]]
    pairs: frozenset[tuple[str, str]]
    denied: frozenset[str]


def ground(claim: str, chunks: Sequence[str], question: str = "") -> list[Checked]:
    """Return the sentences of ``claim`` with content, each with its support by the texts of ``chunks``."""
    parts = sentences(claim)
    index = Index(chunks, parts)
    asked = frozenset(keys(question))
    return [_check(claim, part, index, asked) for part in parts]


def groundedness(checked: Sequence[Checked]) -> float | None:
    """Return how far the chunks support an answer, from 0 to 1; None if it has no content."""
    if not checked:
        return None
    columns = zip(*[(one.words, one.neighbours, one.near) for one in checked], strict=True)
    return _mean_share(*[map(sum, zip(*column, strict=True)) for column in columns])


def supported(checked: Checked, limits: Grounding = _LIMITS) -> bool | None:
    """Return whether a sentence is supported; None if it is not checked."""
    kind = checked.sentence.kind
    if kind not in CHECKED:
        return None
    limit = limits.assertion if kind == "assertion" else limits.inference
    return checked.support >= limit and not checked.made_up and not checked.mismatches


def makes(answer: str, claim: str) -> bool:
    """Return whether ``answer`` has nearly all words of each sentence of ``claim`` and does not deny them."""
    parts = ground(claim, [answer])
    return bool(parts) and all(
        one.words[0] >= _CLAIM_MADE * one.words[1]
        and not one.made_up
        and all(reason not in _DENYING for reason, _ in one.mismatches)
        for one in parts
    )


def evidence(checked: Checked, claim: str, chunks: Sequence[str], supported: bool | None) -> Evidence:
    """Return the evidence for a sentence of ``claim`` in the texts of ``chunks``, with its verdict ``supported``."""
    sentence = checked.sentence
    text = claim[sentence.start : sentence.end]
    read = words(text)
    spans = [(word.start + sentence.start, word.end + sentence.start) for word in read]
    written = {word.key: text[word.start : word.end] for word in reversed(read)}
    chunk, first, last = Index(chunks, [sentence]).best_place(sentence) or (None, 0, 0)
    there = words(chunks[chunk]) if chunk is not None else []
    return Evidence(
        start=sentence.start,
        end=sentence.end,
        kind=sentence.kind,
        support=checked.support,
        supported=supported,
        chunk=chunk,
        span=(there[first].start, there[last].end) if there else None,
        missing=tuple(dict.fromkeys([spans[at] for at in checked.missing])),
        made_up=tuple(dict.fromkeys([spans[at] for at in checked.made_up])),
        mismatches=tuple([(reason, written.get(key, key)) for reason, key in checked.mismatches]),
    )


def _mean_share(*counts: Iterable[int]) -> float:
    """Return the mean of shares. A share of nothing is left out."""
    shares = [part / whole for part, whole in counts if whole]
    return sum(shares) / len(shares) if shares else 0.0


def _read(text: str) -> SourceChunk:
    read, places = keys(text), defaultdict[str, list[int]](list)
    for place, key in enumerate(read):
        places[key].append(place)
    return SourceChunk(read, dict(places), frozenset({*pairwise(read)}), frozenset(_denied(read, 1)))


_remembered = lru_cache(maxsize=MAX_PASSAGES)(_read)


class Index:
    """The chunks as they are read, and what they lack of some sentences: content words, and pairs of neighbours."""

    def __init__(self, chunks: Sequence[str], parts: Sequence[Sentence]) -> None:
        self.sources = [_remembered(text) if len(text) <= MAX_PASSAGE else _read(text) for text in chunks]
        self.denied = frozenset(chain.from_iterable([source.denied for source in self.sources]))
        self.missing = set(chain.from_iterable([part.content for part in parts]))
        self.missing.difference_update(*[source.places for source in self.sources])
        self.new_pairs = set(chain.from_iterable([part.pairs for part in parts]))
        self.new_pairs.difference_update(*[source.pairs for source in self.sources])

    @cached_property
    def _words_by_line(self) -> str:
        return "\n".join(["", *chain.from_iterable([source.places for source in self.sources])])

    def has_root(self, root: str) -> bool:
        """Return whether a word of the chunks begins with some letters."""
        return f"\n{root}" in self._words_by_line  # one search for each of many names

    def is_near(self, first: str, second: str, distance: int = _NEAR) -> bool:
        """Return whether two words occur within so many words of each other in a chunk."""
        for places in [source.places for source in self.sources]:
            if first in places and second in places:
                few, many = places[first], places[second]
                if len(few) > len(many):
                    few, many = many, few
                for place in few[:_MAX_PLACES]:
                    at = bisect_left(many, place - distance)
                    if at < len(many) and many[at] <= place + distance:
                        return True
        return False

    def best_place(self, sentence: Sentence, share: float = 0) -> tuple[int, int, int] | None:
        """Return the shortest place that has most content words of a sentence; None if it has less than a share.

        A place is the number of a chunk, and its first and last word.
        """
        wanted = frozenset(sentence.content)
        wanted = wanted if _VAGUE.isdisjoint(wanted) else wanted - _VAGUE or wanted
        result, width = None, len(sentence.keys) + _NEAR
        best = max(1, share * len(wanted)), -width
        for number, source in enumerate(self.sources):
            here = wanted & source.places.keys()
            if len(here) < best[0]:
                continue
            window: dict[str, int] = {}  # the last place of each word, the oldest first
            for place in sorted(chain.from_iterable([source.places[key][:_MAX_PLACES] for key in here])):
                word = source.keys[place]
                window.pop(word, None)
                window[word] = place
                while place - (first := next(iter(window.values()))) >= width:
                    del window[next(iter(window))]
                if (len(window), first - place) > best:
                    best, result = (len(window), first - place), (number, first, place)
        return result


def _check(claim: str, sentence: Sentence, index: Index, asked: frozenset[str]) -> Checked:
    """Return a sentence with its support."""
    _, _, kind, read, content, places, pairs = sentence
    lacks, count, near = index.missing, len(content), 0
    missing = tuple(compress(places, map(lacks.__contains__, content)))
    is_new = [*map(index.new_pairs.__contains__, pairs)]
    for a, b in pairwise(places):
        if b - a == 1 and not is_new[a]:
            near += 1
        elif read[a] not in lacks and read[b] not in lacks:
            near += index.is_near(read[a], read[b], max(_NEAR, b - a))
    numbers = [place for place in places if read[place][0].isdigit() and read[place] not in _COMMON]
    numbers = sorted({read[place]: place for place in reversed(numbers)}.values())  # each once
    made_up = [place for place in numbers if read[place] not in asked and not _has_basis(sentence, place, index)]
    if converted := {place for place in made_up if _is_converted(read, place, index)}:
        numbers, made_up = ([place for place in some if place not in converted] for some in (numbers, made_up))
        missing = tuple([at for at in missing if converted.isdisjoint((at, at - 1))])  # a number or its unit
    invented = _not_excused(claim, sentence, made_up) if made_up else ()
    together = len(pairs) - sum(is_new)
    wrong: tuple[tuple[str, str], ...] = ()
    telling = sum([key not in _VAGUE for key in content])
    lacking = sum([read[place] not in _VAGUE for place in missing])
    if count > 1 and telling - lacking >= _CLOSE * telling:
        wrong = tuple(dict.fromkeys(_mismatches(sentence, numbers, invented, index, is_copy=not any(is_new))))
        if wrong:  # its words are there, but not together
            together = near = 0
    counts = (count - len(missing), count), (together, len(pairs)), (near, count - 1)
    support = _mean_share(*counts)
    if kind in CHECKED and missing:
        names = _made_up_names(claim, sentence, index, asked)
        if count - len(missing) >= _SIMILAR * (count - len(names) - len(invented)):
            wrong += tuple([("name", key) for key in names])
    if kind in CHECKED and support < _MAX_GAP_SUPPORT and says_nothing(claim[sentence.start : sentence.end]):
        sentence = sentence._replace(kind="gap")
    return Checked(sentence, *counts, support, missing, invented, wrong)


def _made_up_names(claim: str, sentence: Sentence, index: Index, asked: frozenset[str]) -> list[str]:
    """Return the keys of names of which no word is in the chunks or the question, in any form.

    A name begins with a capital inside of a sentence. German writes all nouns so, and titles all words. A name before
    a colon or a bracket is a title, or is explained. The month of a date is compared as a number.
    """
    text, made_up = claim[sentence.start : sentence.end], list[str]()
    for match in _NAME.finditer(text):
        before = text[: match.start()].rstrip(_BEFORE_NAME)
        parts = [key for key in keys(match[0]) if key not in FUNCTION]
        if not before[-1:].isalnum() or before.rpartition(" ")[2][0].isupper() or match[0].casefold() in _POLITE:
            continue
        after = text[match.end() :]
        is_date = before[-1].isdigit() or after.lstrip(" ,.")[:1].isdigit()
        if after.lstrip(" *")[:1] in _EXPLAINING or (is_date and match[0].casefold() in _MONTHS):
            continue
        roots = tuple([part[: min(_NAME_ROOT, max(3, len(part) - 1))] for part in parts])
        is_asked = any([key.startswith(roots) for key in asked])
        if index.missing.issuperset(parts) and not is_asked and not any(map(index.has_root, roots)):
            made_up += parts
    if not made_up or not _GERMAN.isdisjoint(claim.casefold().split()):
        return []
    written = text.split()
    is_title = sum([word[0].isupper() for word in written]) > max(2, _TITLE * len(written))
    return [] if is_title else made_up


def _has_basis(sentence: Sentence, place: int, index: Index) -> bool:
    """Return whether the chunks have a number, a small one near another content word of its sentence."""
    number, content = sentence.keys[place], sentence.content
    if number in index.missing or not number.isdigit() or len(number) > _SMALL or len(content) == 1:
        return number not in index.missing
    at = sentence.places.index(place)
    others = set(content[max(0, at - _NEAR) : at + _NEAR + 1]) - index.missing - {number}
    return any(index.is_near(number, other) for other in others)


def _is_converted(read: list[str], place: int, index: Index) -> bool:
    """Return whether the chunks have a number in another unit: *24 months* for *two years*."""
    for unit in read[place + 1 : place + 2] if _CONVERTIBLE.fullmatch(read[place]) else ():
        for other, factor in _CONVERSIONS.get(unit, ()):
            value = round(float(read[place]) * factor, 6)
            if index.is_near(f"{value:g}" if value < 1e6 else f"{value:.0f}", other, 1):
                return True
    return False


def _not_excused(claim: str, sentence: Sentence, numbers: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers without those that state nothing: list numbers, versions, decades, cited years, counts."""
    read, text = sentence.keys, claim[sentence.start : sentence.end]
    if counts := {read[at] for at in numbers}.intersection(_COUNTS):
        is_announced = text.rstrip("*_ ").endswith((":", "："))
        most = _MAX_COUNT if is_announced else 1 + len(_SEPARATOR.findall(text))
        numbers = [at for at in numbers if read[at] not in counts or int(read[at]) > most]
    spans = [match.span() for rule in _STATING_NOTHING for match in rule.finditer(text)] if numbers else []
    if items := [*_LIST_NUMBER.finditer(text)] if numbers else []:
        list_numbers = {match[1] for match in _LIST_NUMBER.finditer(claim)}
        spans += [match.span() for match in items if str(int(match[1]) - 1) in list_numbers]
    if spans:
        there = words(text)
        numbers = [at for at in numbers if not any(a <= there[at].start and there[at].end <= b for a, b in spans)]
    return tuple(numbers)


def _mismatches(
    sentence: Sentence, numbers: Sequence[int], made_up: Sequence[int], index: Index, *, is_copy: bool
) -> Iterator[tuple[str, str]]:
    """Yield what the place with nearly all words of a sentence denies of it, or what it has otherwise."""
    read = sentence.keys
    before = {  # the words right before each copy of the sentence, an empty one at the start of a chunk
        source.keys[place - 1] if place else ""
        for source in (index.sources if is_copy else ())
        for place in source.places.get(read[0], ())[:_MAX_PLACES]
        if source.keys[place : place + len(read)] == read
    }
    if before:
        if before <= NEGATIONS:
            yield ("negation", sentence.content[0])
        return
    opposites = frozenset(chain.from_iterable([_OPPOSITES[key] for key in _OPPOSITES.keys() & read]))
    is_contradicted = not all([opposites.isdisjoint(source.places) for source in index.sources])
    if not (numbers or is_contradicted) and NEGATIONS.isdisjoint(read) and index.denied.isdisjoint(read):
        return
    if place := index.best_place(sentence, _CLOSE):
        chunk, first, last = place
        there = index.sources[chunk].keys[max(0, first - _MARGIN) : last + _MARGIN + 1]
        yield from _denials(read, there)
        yield from _other_numbers(read, numbers, made_up, there)
        if is_contradicted:
            yield from _opposites(read, there)


def _denials(here: list[str], there: list[str]) -> Iterator[tuple[str, str]]:
    """Yield a word that only one side denies, if the other has the same words around it."""
    we_deny, they_deny = (not NEGATIONS.isdisjoint(read) for read in (here, there))
    denying = here if we_deny else there
    denial = max([place for place, key in enumerate(denying) if key in NEGATIONS], default=0)
    if not _CONDITIONS.isdisjoint(denying[:denial]) or not (we_deny or they_deny):
        return  # *if it is not* denies nothing
    if we_deny and they_deny and not set(_denied(here, _SCOPE)).isdisjoint(_denied(there, _SCOPE)):
        return
    shared = frozenset(here).intersection(there) - FUNCTION - NEGATIONS
    ours, theirs = ([key for key in read if key in shared] for read in (here, there))
    for key in _denied(here, 1 if they_deny else 2) or _denied(there, 1):
        if key in shared:
            mine, other = ours.index(key), theirs.index(key)
            same_before = not mine or not other or ours[mine - 1] == theirs[other - 1]
            following = ours[mine + 1 : mine + 2], theirs[other + 1 : other + 2]
            if same_before and (not all(following) or following[0] == following[1]):
                yield ("negation", key)
                return


def _opposites(here: list[str], there: list[str]) -> Iterator[tuple[str, str]]:
    """Yield words of which the place has only the opposite; of *before* and *after*, in front of the same word."""
    if NEGATIONS.isdisjoint(here) and NEGATIONS.isdisjoint(there):
        theirs = {*pairwise(there)}
        for key, following in pairwise([*here, ""]):
            others = () if key in there else _OPPOSITES.get(key, set()).difference(here).intersection(there)
            if any([key not in FUNCTION or (other, following) in theirs for other in others]):
                yield ("opposite", key)


def _denied(read: list[str], most: int) -> list[str]:
    """Return the first content words behind each negation, except behind *not only*."""
    denied = []
    for place in compress(range(len(read)), map(NEGATIONS.__contains__, read)):
        following = read[place + 1 : place + 1 + _SCOPE]
        if _NOT_ONLY.isdisjoint(following[:1]):
            denied += [key for key in following if key not in FUNCTION and key not in NEGATIONS][:most]
    return denied


def _other_numbers(
    read: list[str], numbers: Sequence[int], made_up: Sequence[int], there: list[str]
) -> Iterator[tuple[str, str]]:
    """Yield numbers that the place lacks though it has others, and units that it lacks with the same number."""
    others = {key for key in there if key[0].isdigit()}.difference(read)
    ours, theirs = _units(read), _units(there)
    for place in numbers:
        number = read[place]
        if number in theirs:
            if theirs[number]:
                yield from [("unit", unit) for unit in sorted(ours[number] - theirs[number])]
        elif others and place not in made_up:
            yield ("number", number)


def _units(read: list[str]) -> dict[str, set[str]]:
    """Return the units of each number in a text: behind it, a currency before it, or a month on either side."""
    units: dict[str, set[str]] = {}
    for place, number in enumerate(read):
        if number[0].isdigit():
            units.setdefault(number, set()).update(_UNITS.intersection(read[place + 1 : place + 3]))
            units[number].update(_CURRENCIES.intersection(read[place - 1 : place]))
            if len(number) <= _SMALL:  # the day of a month
                units[number].update(_MONTHS.intersection(read[max(0, place - 1) : place + 2]))
    return units
