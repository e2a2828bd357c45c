"""How well groundedness agrees with people, beside plain token precision; minimal pairs; what a case costs.

    python bench/groundedness.py [--data ../shared/data] [--repeats 9] [--thresholds]

Prints Markdown tables. An answer is positive where people found it faithful. The area under the ROC curve is given for
both halves of each set, parted by a hash of the question: what was chosen by looking was chosen on ``fit``. The figures
published for token precision are over the answers of models, to questions with an answer in the passages: ``models``.
Precision and recall are those of calling an answer unfaithful because a sentence of it, or its groundedness, is too
little supported.
"""

from __future__ import annotations

import argparse
import gc
import re
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import groundedness_pairs as minimal

from rag_eval.grounding import ASSERTION, ground, groundedness, supported
from rag_eval.grounding.claims import parts
from rag_eval.grounding.words import forget, keys
from rag_eval.model import without_citations
from rag_eval.text import content_words

CHUNKS, CHARACTERS = 5, 800
CLAIM = 300
SETS = ("begin", "mtrag", "clapnq")


class Answer(NamedTuple):
    claim: str
    chunks: tuple[str, ...]
    faithful: bool
    held_out: bool
    model: bool


def token_precision(claim, chunks):
    """The share of the answer's words, repeats counted, that the chunks hold as often."""
    words = Counter(_ascii_words(claim))
    held = words & Counter(_ascii_words(" ".join(chunks)))
    return held.total() / max(1, words.total())


def content_precision(claim, chunks):
    """The share of the answer's distinct content words that stand in one chunk, the best one."""
    words = content_words(claim)
    return max([len(words & content_words(chunk)) for chunk in chunks], default=0) / max(1, len(words))


def engine(claim, chunks):
    """The groundedness of an answer; None where nothing in it is checked."""
    return groundedness(ground(without_citations(claim, ()), chunks))


def flagged(claim, chunks):
    """Whether some sentence of an answer is unsupported at the default thresholds."""
    return any(supported(one) is False for one in ground(without_citations(claim, ()), chunks))


CANDIDATES = {
    "token precision": token_precision,
    "content words of one chunk": content_precision,
    "groundedness": engine,
}


def _ascii_words(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def answers(data: Path, folder: str) -> list[Answer]:
    """The labelled answers of a set that are not empty."""
    labels = {(row["qid"], row["system"]): row for row in minimal.rows(data / folder / "labels.jsonl")}
    gold = data / folder / "gold.jsonl"
    answerable = {row["qid"]: row["answerable"] for row in minimal.rows(gold)} if gold.exists() else {}
    found = []
    for (qid, system), label in labels.items():
        trace = _traces(data, folder, system)[qid]
        claim = trace["answer_json"]["claim"]
        if label["hallucinated"] is not None and claim.strip():
            texts = tuple(chunk["text"] for chunk in trace.get("chunks") or ())
            model = system != "reference" and answerable.get(qid, True)
            found.append(Answer(claim, texts, not label["hallucinated"], held_out(trace["q"]), model))
    return found


def held_out(question: str) -> bool:
    """Whether a question lies in the half that nothing was chosen on."""
    return sha256(question.encode()).digest()[0] % 2 == 1


_READ: dict = {}


def _traces(data, folder, system):
    file = data / folder / ("trace.jsonl" if folder == "begin" else f"trace.{system}.jsonl")
    if file not in _READ:
        _READ[file] = {row["qid"]: row for row in minimal.rows(file)}
    return _READ[file]


def area(scored: list[tuple[float, bool]]) -> float:
    """The area under the ROC curve: how often a faithful answer scores above another, ties counted half."""
    good = sorted(score for score, faithful in scored if faithful)
    bad = sorted(score for score, faithful in scored if not faithful)
    wins = sum(bisect_left(bad, score) + bisect_right(bad, score) for score in good)
    return wins / (2 * len(good) * len(bad))


PARTS = {
    "fit": lambda one: not one.held_out,
    "held out": lambda one: one.held_out,
    "held out, models": lambda one: one.held_out and one.model,
    "all": lambda _: True,
    "all, models": lambda one: one.model,
}


def agreement(data: Path) -> None:
    """Print the area under the ROC curve of every candidate on every part of every set."""
    print(f"| set | candidate | {' | '.join(PARTS)} |")
    print("|---" * (len(PARTS) + 2) + "|")
    for folder in SETS:
        rows = answers(data, folder)
        for name, candidate in CANDIDATES.items():
            scored = [(candidate(one.claim, one.chunks), one) for one in rows]
            scored = [(score, one) for score, one in scored if score is not None]
            parts = [[(score, one.faithful) for score, one in scored if part(one)] for part in PARTS.values()]
            print(f"| {folder} | {name} | {' | '.join(f'{area(part):.3f}' for part in parts)} |")


def flags(data: Path) -> None:
    """Print precision and recall of calling an answer unfaithful at the default thresholds."""
    print("\nPrecision and recall, by a sentence that is unsupported, and by a mean that is too low.\n")
    print("| set (held out) | unfaithful | by a sentence | by the mean |")
    print("|---|---|---|---|")
    for folder in SETS:
        rows = [one for one in answers(data, folder) if one.held_out]
        bad = [not one.faithful for one in rows]
        some = [flagged(one.claim, one.chunks) for one in rows]
        mean = [_or_one(engine(one.claim, one.chunks)) < ASSERTION for one in rows]
        print(
            f"| {folder} | {sum(bad)} of {len(bad)} | {_precision_recall(some, bad)} | {_precision_recall(mean, bad)} |"
        )


def thresholds(data: Path) -> None:
    """Print, for every threshold of assertions, how well verdicts agree with people: the mean over the three sets."""
    sets = [[(ground(one.claim, one.chunks), one) for one in answers(data, folder)] for folder in SETS]
    print("| assertion | claim_support, fit | claim_support, held out | Youden's index, fit |")
    print("|---|---|---|---|")
    for percent in range(30, 85, 5):
        limits = percent / 100, (percent - 10) / 100
        means = [sum(_support_area(rows, limits, part) for rows in sets) / len(sets) for part in (False, True)]
        youden = sum(_youden([row for row in rows if not row[1].held_out], limits) for rows in sets) / len(sets)
        print(f"| {limits[0]:.2f} | {means[0]:.3f} | {means[1]:.3f} | {youden:.3f} |")


def _support_area(rows, limits, part):
    """The area under the ROC curve of the share of sentences that are supported."""
    shares = [([supported(one, *limits) for one in found], of) for found, of in rows if of.held_out == part]
    shares = [([one for one in verdicts if one is not None], of) for verdicts, of in shares]
    return area([(sum(verdicts) / len(verdicts), of.faithful) for verdicts, of in shares if verdicts])


def _youden(rows, limits):
    """How much oftener an unfaithful answer has an unsupported sentence than a faithful one."""
    some = [(any(supported(one, *limits) is False for one in found), of.faithful) for found, of in rows]
    bad, good = ([flag for flag, faithful in some if faithful == which] for which in (False, True))
    return sum(bad) / len(bad) - sum(good) / len(good)


def _or_one(score):
    return 1.0 if score is None else score


def _precision_recall(flagged, bad):
    both = sum(one and other for one, other in zip(flagged, bad, strict=True))
    return f"{both / max(1, sum(flagged)):.3f}, {both / sum(bad):.3f}"


def pairs(data: Path) -> None:
    """Print for every kind of pair how often the wrong twin scores lower, and how often a twin is flagged."""
    found = minimal.pairs(data)
    rows = minimal.measured(
        found,
        engine,
        flagged,
    )
    wrong = {make.__name__ for make in minimal.WRONG}
    print("\n| kind | pairs | wrong twin lower | flagged |")
    print("|---|---|---|---|")
    for name, count, lower, caught in rows:
        shown = f"{lower / count:.2f}" if name in wrong else "–"
        print(f"| {name} | {count} | {shown} | {caught / count:.2f} |")
    for title, kept in (("all wrong", False), ("all kept", True)):
        own = [row for row in rows if (row[0] not in wrong) == kept]
        count = sum(row[1] for row in own)
        shown = "–" if kept else f"{sum(row[2] for row in own) / count:.3f}"
        print(f"| **{title}** | {count} | {shown} | {sum(row[3] for row in own) / count:.3f} |")


def cost(data: Path, repeats: int) -> None:
    """Print the processor time of a case: an answer of 300 characters and five chunks of 800, taken in turns.

    Without the collector of garbage, as ``rag-eval score`` runs.
    """
    gc.disable()
    rows = answers(data, "mtrag")
    kinds = {"chunks of other questions": _strangers(rows), "chunks of its own question": _own(rows)}
    ways = {
        "not seen before": _first,
        "chunks seen before": _again,
        "chunks read": lambda _, chunks: keys(chunks),
        "answer read": lambda claim, _: parts(claim),
        "token precision": token_precision,
    }
    print(f"\n| µs a case, the least of {repeats} rounds | cases | {' | '.join(ways)} |")
    print("|---" * (len(ways) + 2) + "|")
    for name, cases in kinds.items():
        times = [[_spent(way, cases) for way in ways.values()] for _ in range(repeats)]
        print(f"| {name} | {len(cases)} | {' | '.join(f'{min(own) * 1e6:.0f}' for own in zip(*times, strict=True))} |")
    loop = min(_loop() for _ in range(repeats))
    print(f"\nFor comparison, this machine adds 100,000 numbers in {loop * 1e6:.0f} µs.")


def _strangers(rows):
    """Cases of which no two have a text in common."""
    text = " ".join(dict.fromkeys(chunk for one in rows for chunk in one.chunks))
    cut = [text[start : start + CHARACTERS] for start in range(0, len(text) - CHARACTERS, CHARACTERS)]
    claims = dict.fromkeys(one.claim[:CLAIM] for one in rows if len(one.claim) >= CLAIM)
    cases = [(claim, cut[CHUNKS * place : CHUNKS * (place + 1)]) for place, claim in enumerate(claims)]
    return [case for case in cases if len(case[1]) == CHUNKS]


def _own(rows):
    """Cases with the first 4,000 characters that were retrieved for them."""
    long = [(one.claim[:CLAIM], "\n".join(one.chunks)) for one in rows if len(one.claim) >= CLAIM]
    long = [(claim, text) for claim, text in long if len(text) >= CHUNKS * CHARACTERS]
    return [
        (claim, [text[start : start + CHARACTERS] for start in range(0, CHUNKS * CHARACTERS, CHARACTERS)])
        for claim, text in long
    ]


def _spent(way, cases):
    """Processor time of a case in seconds; the first time is not counted."""
    for case in cases:
        way(*case)
    began = time.process_time()
    for case in cases:
        way(*case)
    return (time.process_time() - began) / len(cases)


def _first(claim, chunks):
    forget()
    _again(claim, chunks)


def _again(claim, chunks):
    groundedness(ground(claim, chunks))


def _loop():
    began = time.process_time()
    sum(range(100_000))
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=minimal.DATA)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument(
        "--thresholds", action="store_true", help="print how verdicts agree at other thresholds, no more"
    )
    args = parser.parse_args()
    if args.thresholds:
        thresholds(args.data)
        return
    agreement(args.data)
    flags(args.data)
    pairs(args.data)
    cost(args.data, args.repeats)


if __name__ == "__main__":
    main()
