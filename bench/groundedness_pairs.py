"""Minimal pairs: a supported sentence and a twin that differs in one thing, made by rules from shared data.

    python bench/groundedness_pairs.py [--data ../shared/data] [--show KIND]

A wrong twin says something that the source does not: it has to score lower than its original. A kept twin says the
same in other words: it must not be flagged. Originals are sentences of answers that people called faithful. Twins are
made with word lists of their own, and nothing of them is stored. Prints how many there are of each kind.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections import Counter
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from groundedness_words import (
    AMOUNTS,
    AUXILIARY,
    CALENDAR,
    DENIED,
    GLUED,
    INVENTED,
    SAME,
    SCALES,
    SHORTER,
    SMALL,
    TENS,
    UNITS,
    WEAK,
)

DATA = Path(os.environ.get("RAG_EVAL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
PER_KIND = 80
SUPPORTED, CLOSE = 0.75, 0.9  # least share of the words in one chunk; of a sentence that is spliced


class Original(NamedTuple):
    """A supported sentence, its chunks, and what twins borrow: other chunks and their names."""

    qid: str
    text: str
    chunks: tuple[str, ...]
    other: tuple[str, ...]
    names: tuple[str, ...]


class Pair(NamedTuple):
    kind: str
    wrong: bool
    right: str
    twin: str
    chunks: tuple[str, ...]


_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}(?: [A-Z][a-z]+)*")
_WORDS = re.compile(r"[A-Za-z0-9]+")
_SENTENCE = re.compile(r"(?<=[a-z0-9)][.!?])\s+(?=[A-Z])|\s+\.\s+|\n+")
_YEAR = re.compile(r"\b(1[5-9]\d\d|20[0-2]\d)\b")
_NUMBER = re.compile(r"(?<![\w.,-])\d{1,3}(?:,\d{3})*(?:\.\d+)?(?![\w,-]|\.\d)")


def pick(options, *seed):
    """One of the options, the same one each time for the same seed."""
    options = list(options)
    return options[int(sha256("|".join(map(str, seed)).encode()).hexdigest(), 16) % len(options)] if options else None


def name_foreign(of):
    old = pick(_NAME.findall(of.text), of.qid)
    new = pick([name for name in of.names if name not in " ".join(of.chunks)], of.qid, "n")
    return old and new and of.text.replace(old, new)


def name_near(of):
    old = pick(_NAME.findall(of.text), of.qid)
    near = set(_NAME.findall(" ".join(of.chunks)))
    new = pick(sorted(name for name in near if old and name not in of.text and old not in name), of.qid, "m")
    return old and new and of.text.replace(old, new)


def number_foreign(of):
    old = pick([n for n in _NUMBER.findall(of.text) if n != "1"], of.qid)
    if not old:
        return None
    value = old.replace(",", "")
    new = f"{float(value) * 1.5 + 1.3:.1f}" if "." in value else str(int(value) + 2 + int(value) // 4)
    return None if new in " ".join(of.chunks) else _once(of.text, old, new)


def number_near(of):
    old = pick([n for n in _NUMBER.findall(of.text) if n != "1"], of.qid)
    new = pick(sorted(set(_NUMBER.findall(" ".join(of.chunks))) - set(_NUMBER.findall(of.text))), of.qid, "w")
    return old and new and _once(of.text, old, new)


def unit(of):
    found = re.search(rf"(?<=\d )({'|'.join(UNITS)})\b", of.text) or re.search(rf"\b({'|'.join(UNITS)})\b", of.text)
    if found:
        return of.text[: found.start()] + UNITS[found[1]] + of.text[found.end() :]
    return re.sub(r"(\d)\s?%", r"\1 points", of.text, count=1) if "%" in of.text else None


def date(of):
    month = re.search(rf"\b({'|'.join(CALENDAR)})\b(?= \d)", of.text)
    if month:
        return _once(of.text, month[1], pick([m for m in CALENDAR if m != month[1]], of.qid))
    year = _YEAR.search(of.text)
    return year and _once(of.text, year[1], str(int(year[1]) + pick([-13, -7, -2, -1, 1, 3, 6], of.qid)))


def negation(of):
    if DENIED.search(of.text):
        return DENIED.sub(r"\1 ", of.text, count=1)
    return AUXILIARY.sub(r"\1 not", of.text, count=1) if AUXILIARY.search(of.text) else None


def quantifier(of):
    found = re.search(rf"\b({'|'.join(AMOUNTS)})\b", of.text)
    return found and of.text[: found.start()] + AMOUNTS[found[1]] + of.text[found.end() :]


def role(of):
    """Two names change places around what one does to the other."""
    known = {name for name in _NAME.findall(" ".join(of.chunks)) if name.split()[0] not in CALENDAR}
    names = [name for name in re.finditer(r"\b[A-Z][a-z]{2,}(?: [A-Z][a-z]+)*", of.text) if name[0] in known]
    for first, second in pairwise(names):
        between = of.text[first.end() : second.start()]
        if first[0] != second[0] and re.search(r" (?:\w+ed|\w+s|won|beat|led|wrote|made|took) ", between):
            return of.text[: first.start()] + second[0] + between + first[0] + of.text[second.end() :]
    return None


def relation(of):
    """The end of the sentence is that of another sentence of the same chunk."""
    others = [s for s in _sentences(of.chunks) if _unlike(s, of.text)]
    return _share(of.text, of.chunks) >= CLOSE and _spliced(of.text, pick(others, of.qid))


def merged(of):
    """The end of the sentence is that of a sentence of another chunk that was retrieved as well."""
    others = [s for s in _sentences(of.other) if _unlike(s, of.text)]
    return _share(of.text, of.chunks) >= CLOSE and _spliced(of.text, pick(others, of.qid))


def addition(of):
    words = pick(INVENTED, of.qid).format(n=17 + len(of.text) % 60)
    return re.sub(r"\W*$", "", of.text) + words + "."


def hedge(of):
    """What the source calls possible becomes a fact."""
    for weak, strong in WEAK:
        found = re.search(rf"{weak}\W*\w+", of.text)
        if found and found[0] in " ".join(of.chunks):
            return re.sub(weak, strong, of.text, count=1)
    return None


def inflection(of):
    done = re.search(
        r"\b(?!(?:be|is|are|was|were|been|had|has|have|not|get|got|being) )([a-z]+) "
        r"([a-z]{2,}[b-df-hk-np-t])ed (?=the\b|a\b|an\b)",
        of.text,
    )
    if done and not re.search(r"(.)\1$|nee$", done[2]) and not done[1].endswith(("ing", "ly")):
        return of.text[: done.start(2)] + f"had been {done[2]}ing " + of.text[done.end() :]
    owned = re.search(r"\b[Tt]he ([a-z]+) of ([A-Z][a-z]+)\b(?! [A-Z])", of.text)
    if owned:
        return of.text[: owned.start()] + f"{owned[2]}'s {owned[1]}" + of.text[owned.end() :]
    plural = re.search(r"\b([a-z]{3,}[b-df-hj-np-rt])s (?=and|or|,)", of.text)
    if plural:
        return of.text[: plural.start()] + plural[1] + " " + of.text[plural.end() :]
    does = re.search(
        r"\b([a-z]{3,}?)(e?)s (?=the\b|an?\b)(?<!was )(?<!is )(?<!has )(?<!as )(?<!its )(?<!ss )(?<!us )", of.text
    )
    return does and of.text[: does.start()] + f"{does[1]}ed " + of.text[does.end() :]


def number_word(of):
    digit = re.search(r"(?<![\w.,$-])([2-9]|1[0-2])(?= [a-z]{3})(?! percent| million)", of.text)
    if digit:
        return of.text[: digit.start()] + SMALL[int(digit[1])] + of.text[digit.end() :]
    word = re.search(rf"\b({'|'.join(SMALL[2:])})\b", of.text)
    if word:
        return of.text[: word.start()] + str(SMALL.index(word[1])) + of.text[word.end() :]
    if re.search(r"\d,\d{3}", of.text):
        return re.sub(r"(\d),(\d{3})", r"\1\2", of.text)
    return re.sub(r"(\d) ?%", r"\1 percent", of.text) if "%" in of.text else None


def formatter(of):
    """``Y was painted by X`` as ``X painted Y``, and the other way round."""
    passive = re.fullmatch(
        r"([A-Z\"][^,;:]{3,70}?) (?:was|were) (\w{3,}ed) by ((?:the |a |an )?[A-Z]?[\w'. ]{3,50}?)"
        r"( in \d{4}[^,;]*| and [^,;]*| for [^,;]*| of [^,;]*|,.*)?\s?\.?",
        of.text,
    )
    if passive:
        what = re.sub(r"^(The|A|An|It|This|His|Her|Their)\b", lambda first: first[0].lower(), passive[1])
        return f"{passive[3][0].upper()}{passive[3][1:]} {passive[2]} {what}{passive[4] or ''}."
    active = re.fullmatch(
        r"((?:The )?[A-Z]\w+(?: [A-Z]\w+){0,3}) (\w{3,}ed) ((?:the|a|an) [\w' ]{3,60}?)"
        r"( (?:in|on|at|for|as|from|to|with|during) .*|,.*)?\s?\.?",
        of.text,
    )
    return active and f"{active[3][0].upper()}{active[3][1:]} was {active[2]} by {active[1]}{active[4] or ''}."


def order(of):
    first = re.fullmatch(
        r"((?:In|On|During|After|Before|By|Since|At|For|From) [^,]{3,40}), ([^,;]{15,}?)\s?\.?", of.text
    )
    if first:
        return f"{first[2][0].upper()}{first[2][1:]} {first[1][0].lower()}{first[1][1:]}."
    last = re.fullmatch(r"([A-Z][^,;]{15,}) ((?:in|on|during|since) (?:[A-Z]\w+ )?(?:\d\d? ?, )?\d{4})\s?\.?", of.text)
    if last:
        return f"{last[2][0].upper()}{last[2][1:]}, {last[1]}."
    listed = re.search(r"\b([a-z]{4,}(?<!ed)) ?, ([a-z]{4,}(?<!ed)) ?,? and ([a-z]{4,}(?<!ed))(?= ?[.,;]|$)", of.text)
    if listed:
        return of.text[: listed.start()] + f"{listed[3]}, {listed[1]} and {listed[2]}" + of.text[listed.end() :]
    both = re.search(r"\b(?:of|for|with|including|from|between) ([a-z]{4,}) and ([a-z]{4,})(?= ?[.,;]|$)", of.text)
    return both and of.text[: both.start(1)] + f"{both[2]} and {both[1]}" + of.text[both.end() :]


def abbreviation(of):
    for full, short in SHORTER:
        if full in of.text:
            return of.text.replace(full, short, 1)
    return None


def synonym(of):
    for word, other in SAME:
        if re.search(rf"\b{word}\b", of.text):
            return re.sub(rf"\b{word}\b", other, of.text, count=1)
    return None


def currency(of):
    """Another currency before the same number."""
    return re.sub(r"\$(?=\s?\d)", "€", of.text) if re.search(r"\$\s?\d", of.text) else None


def dropped(of):
    """The source denies the sentence in front; the twin leaves that out."""
    return of.text if of.text in " ".join(of.chunks) else None


def magnitude(of):
    """``1.4 million`` as 1,400,000, or with a short form behind its sign."""
    short = re.search(r"\$\s?(\d[\d.,]*) (million|billion|trillion)\b", of.text)
    if short:
        return of.text[: short.start()] + f"${short[1]}{short[2][0]}" + of.text[short.end() :]
    found = re.search(r"(?<![\d.,$])(\d{1,3})(?:\.(\d{1,2}))? (thousand|million|billion)\b", of.text)
    if found is None:
        return None
    value = int(found[1] + (found[2] or "")) * SCALES[found[3]] // 10 ** len(found[2] or "")
    return of.text[: found.start()] + f"{value:,}" + of.text[found.end() :]


def glued(of):
    """A unit written to its number in short."""
    for long, short in GLUED:
        found = re.search(rf"(?<![\d.,$])(\d[\d.,]*)[ -]{long}\b", of.text)
        if found:
            return of.text[: found.start()] + found[1] + short + of.text[found.end() :]
    return None


def compound(of):
    """A number of two digits in words."""
    found = re.search(r"(?<![\w.,$/:–-])([2-9])([1-9])(?= [a-z]{3})(?! percent)", of.text)
    return (
        found and f"{of.text[: found.start()]}{TENS[int(found[1]) - 2]}-{SMALL[int(found[2])]}{of.text[found.end() :]}"
    )


def listed(of):
    """The sentence as an item of a list."""
    return pick(("**2.** {}", "   3. {}", "### 4. {}", "Step 5: {}", "> 6. {}", "**7. {}**"), of.qid).format(of.text)


def cited(of):
    """The sentence with a source behind it."""
    style = pick(("[Doc 3]", "(Source: 4)", "[^5]", "【6:0†source】", "<sup>7</sup>", "[citation:8]"), of.qid)
    return re.sub(r"\s*\.?$", f" {style}.", of.text)


WRONG = (
    name_foreign,
    name_near,
    number_foreign,
    number_near,
    unit,
    date,
    negation,
    quantifier,
    role,
    relation,
    merged,
    addition,
    hedge,
    currency,
    dropped,
)
KEPT = (
    inflection,
    number_word,
    formatter,
    order,
    abbreviation,
    synonym,
    magnitude,
    glued,
    compound,
    listed,
    cited,
)


def pairs(data: Path = DATA) -> list[Pair]:
    """At most :data:`PER_KIND` pairs of each kind, the same ones each time."""
    pool = originals(data)
    return [pair for make in (*WRONG, *KEPT) for pair in _made(make, pool)]


def _made(make, pool):
    found = {}
    for of in pool:
        twin = make(of) if len(found) < PER_KIND else None
        if twin and make is dropped:
            found[twin] = Pair("dropped", True, f"Never {twin}", twin, _denied(of))
        elif twin and (make is currency or _words(twin) != _words(of.text)):
            chunks = (*of.chunks, *of.other) if make is merged else of.chunks
            found[of.text, twin] = Pair(make.__name__, make in WRONG, of.text, twin, chunks)
    return list(found.values())


def _denied(of):
    return tuple(chunk.replace(of.text, f"Never {of.text}") for chunk in of.chunks)


def originals(data: Path) -> list[Original]:
    """Sentences of faithful answers, most of whose words stand in one chunk, then of chunks; ordered by hash."""
    found, copied = {}, {}
    names = sorted({name for _, _, chunks in _faithful(data) for chunk in chunks for name in _NAME.findall(chunk)})
    faithful = list(_faithful(data))
    for place, (qid, claim, chunks) in enumerate(faithful):
        other = faithful[(place * 7 + 11) % len(faithful)][2]
        for sentence in [*_sentences([claim]), *_sentences(chunks)]:
            if 6 <= len(_words(sentence)) <= 45 and _share(sentence, chunks) >= SUPPORTED:
                kept = copied if any(sentence in chunk for chunk in chunks) else found
                kept[sentence] = Original(qid, sentence, chunks, other[:1], tuple(names))
    by_hash = [sorted(kept.values(), key=lambda of: sha256(of.text.encode()).hexdigest()) for kept in (found, copied)]
    return [*by_hash[0], *by_hash[1]]


def _faithful(data):
    """(qid, claim, chunk texts) of the answers that every person called faithful."""
    for file in RUNS:
        folder, name = file.split("/")
        system = name.removeprefix("trace.")
        labels = {row["qid"]: row for row in rows(data / folder / "labels.jsonl") if system in ("trace", row["system"])}
        for trace in rows(data / f"{file}.jsonl"):
            chunks = tuple(chunk["text"] for chunk in trace.get("chunks") or ())
            label = labels[trace["qid"]]
            if chunks and label["hallucinated"] == 0 and label.get("faithfulness_median", 4) == 4:
                yield trace["qid"], trace["answer_json"]["claim"], chunks


RUNS = (
    "begin/trace",
    "clapnq/trace.reference",
    "clapnq/trace.gpt-3.5-turbo",
    "clapnq/trace.mistral",
    "clapnq/trace.llama-13b-chat",
    "mtrag/trace.reference",
    "mtrag/trace.gpt-4o",
    "mtrag/trace.llama-3.1-405b-instruct",
)


def rows(file: Path) -> list[dict]:
    """The rows of a JSONL file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]


def _sentences(texts):
    split = (part for text in texts for part in _SENTENCE.split(text) if part.strip())
    return [re.sub(r"^[\s*#-]*(?:\d+[.)])?[\s*#-]*|[\s*#-]+(?:\d+\.)?$", "", part) for part in split]


def _words(text):
    return _WORDS.findall(text.lower())


def _share(sentence, chunks):
    read = set(_words(sentence))
    return max(len(read & set(_words(chunk))) / len(read) for chunk in chunks)


def _unlike(other, text):
    mine, theirs = set(_words(text)), set(_words(other))
    return 8 <= len(_words(other)) <= 40 and len(mine & theirs) <= 0.4 * len(theirs)


def _once(text, old, new):
    return re.sub(rf"(?<![\w.,]){re.escape(old)}(?!\w)", new, text, count=1)


def _spliced(first, second):
    if second is None:
        return None
    head, tail = first.split(), second.split()
    return " ".join([*head[: len(head) // 2], *tail[-(len(tail) // 2) :]])


def measured(found: list[Pair], support, flagged) -> list[tuple[str, int, int, int]]:
    """For each kind: its name, the number of pairs, how many twins score lower, how many are flagged.

    ``support`` is None for a sentence that is not checked: a pair whose original is none is left out.
    """
    measures = []
    for make in (*WRONG, *KEPT):
        own = [pair for pair in found if pair.kind == make.__name__]
        own = [(pair, right) for pair in own if (right := support(pair.right, pair.chunks)) is not None]
        lower = sum((support(pair.twin, pair.chunks) or 0) < right for pair, right in own)
        measures.append((make.__name__, len(own), lower, sum(flagged(pair.twin, pair.chunks) for pair, _ in own)))
    return measures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--show", help="print the pairs of one kind")
    args = parser.parse_args()
    found = pairs(args.data)
    for pair in found:
        if pair.kind == args.show:
            print(f"- {pair.right}\n+ {pair.twin}\n")
    if not args.show:
        print(
            f"{len(found)} pairs:", ", ".join(f"{kind} {n}" for kind, n in Counter(pair.kind for pair in found).items())
        )


if __name__ == "__main__":
    main()
