"""Measure how well groundedness agrees with people, next to plain precisions; minimal pairs; the cost of a case.

    python bench/groundedness.py [--data ../shared/data] [--repeats 9] [--thresholds]

Prints Markdown tables. An answer is positive if people found it faithful. The area under the ROC curve is given for
both halves of each set, split by a hash of the question: thresholds were chosen on ``fit``. The figures published for
token precision are over the answers of models to questions with an answer in the passages: ``models``.
"""

from __future__ import annotations

import argparse
import gc
import re
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import groundedness_pairs as minimal

from rag_eval.contract import Grounding, without_citations
from rag_eval.textual import grounding
from rag_eval.textual.grounding import ground, groundedness, supported
from rag_eval.textual.tokens import content_words
from rag_eval.textual.words import keys

CHUNKS, CHARACTERS = 5, 800
CLAIM = 300
SETS = ("begin", "mtrag", "clapnq")


class Answer(NamedTuple):
    claim: str
    chunks: tuple[str, ...]
    faithful: bool
    held_out: bool
    model: bool
    question: str


def token_precision(claim, chunks):
    """The share of the answer's words, repeats counted, that the chunks hold as often."""
    words = Counter(_ascii_words(claim))
    held = words & Counter(_ascii_words(" ".join(chunks)))
    return held.total() / max(1, words.total())


def content_precision(claim, chunks):
    """The share of the answer's distinct content words that stand in one chunk, the best one."""
    words = content_words(claim)
    return max([len(words & content_words(chunk)) for chunk in chunks], default=0) / max(1, len(words))


def pair_precision(claim, chunks):
    """The share of the answer's pairs of neighbouring words that are neighbours in a chunk."""
    pairs = [*pairwise(_ascii_words(claim))]
    known = {pair for chunk in chunks for pair in pairwise(_ascii_words(chunk))}
    return sum(pair in known for pair in pairs) / max(1, len(pairs))


def engine(claim, chunks):
    """The groundedness of an answer; None where nothing in it is checked."""
    return groundedness(ground(without_citations(claim, ()), chunks))


def flagged(claim, chunks, question=""):
    """Whether a sentence of an answer is unsupported at the default thresholds."""
    return any(supported(one) is False for one in ground(without_citations(claim, ()), chunks, question))


def invents(claim, chunks, question=""):
    """Whether an answer has a made-up number."""
    return any(one.made_up for one in ground(without_citations(claim, ()), chunks, question))


CANDIDATES = {
    "token precision": token_precision,
    "pair precision": pair_precision,
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
            found.append(Answer(claim, texts, not label["hallucinated"], held_out(trace["q"]), model, trace["q"]))
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
    """Print how many answers have an unsupported sentence, and a made-up number."""
    print("\n| set | part | approved | with an unsupported sentence | unfaithful | recall | approved, made-up number |")
    print("|---|---|---|---|---|---|---|")
    for folder in SETS:
        rows = answers(data, folder)
        for name in ("fit", "held out", "all"):
            own = [one for one in rows if PARTS[name](one)]
            good, bad = [[one for one in own if one.faithful == which] for which in (True, False)]
            some = [sum(flagged(one.claim, one.chunks, one.question) for one in part) for part in (good, bad)]
            made_up = sum(invents(one.claim, one.chunks, one.question) for one in good)
            print(
                f"| {folder} | {name} | {len(good)} | {some[0]} ({some[0] / len(good):.2f}) | {len(bad)} "
                f"| {some[1] / len(bad):.2f} | {made_up} |"
            )


def thresholds(data: Path) -> None:
    """Print, for every threshold of assertions, how many approved and unfaithful answers of fit are flagged."""
    sets = {
        name: [
            (ground(without_citations(one.claim, ()), one.chunks, one.question), one.faithful)
            for one in answers(data, name)
            if not one.held_out
        ]
        for name in SETS
    }
    print(f"| assertion | {' | '.join(f'{name}: approved flagged, recall' for name in SETS)} |")
    print("|---" * (len(SETS) + 1) + "|")
    for percent in range(20, 45, 1):
        limits = percent / 100, (percent - 5) / 100
        shown = []
        for rows in sets.values():
            some = [
                (any(supported(one, Grounding(*limits)) is False for one in found), faithful)
                for found, faithful in rows
            ]
            shares = [[flag for flag, faithful in some if faithful == which] for which in (True, False)]
            shown.append(", ".join(f"{sum(part) / len(part):.2f}" for part in shares))
        print(f"| {limits[0]:.2f} | {' | '.join(shown)} |")


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
        "chunks read": lambda _, chunks: [keys(chunk) for chunk in chunks],
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
    grounding._remembered.cache_clear()
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
