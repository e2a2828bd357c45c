"""Whether sentences cut by a library agree better with people than those cut by our rules, and what cutting costs.

    pip install --group splitters
    python bench/groundedness_splitters.py [--data ../shared/data]

Prints a Markdown table: the area under the ROC curve of groundedness on the fit and the held-out half of each set, with
answers cut by each splitter, the sentences of an answer, and the processor time of cutting an answer of 300 characters.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import groundedness as words
import groundedness_pairs as minimal

from rag_eval.grounding import claims, sentences

REPEATS = 5


def rules():
    """Ours."""
    return sentences.sentences


def pysbd():
    """pySBD, English rules; where a sentence stands is looked for, since it leaves white space out."""
    from pysbd import Segmenter

    segmenter = Segmenter(language="en", clean=False)

    def cut(text):
        spans, position = [], 0
        for sentence in segmenter.segment(text):
            own = sentence.strip()
            start = text.find(own, position)
            if own and start >= 0:
                position = start + len(own)
                spans.append((start, position))
        return spans

    return cut


def syntok():
    """syntok's segmenter."""
    from syntok import segmenter

    def cut(text):
        return [
            (sentence[0].offset, sentence[-1].offset + len(sentence[-1].value))
            for paragraph in segmenter.process(text)
            for sentence in paragraph
        ]

    return cut


def lines():
    """No splitter: a sentence is a line."""

    def cut(text):
        spans, start = [], 0
        for line in text.splitlines(keepends=True):
            spans.append((start, start + len(line.rstrip())))
            start += len(line)
        return [span for span in spans if span[0] < span[1]]

    return cut


SPLITTERS = {"our rules": rules, "pysbd": pysbd, "syntok": syntok, "lines": lines}


def areas(rows) -> list[str]:
    """The area on the fit half and on the held-out one."""
    scored = [(words.engine(one.claim, one.chunks), one) for one in rows]
    scored = [(score, one) for score, one in scored if score is not None]
    return [
        f"{words.area([(score, one.faithful) for score, one in scored if one.held_out == part]):.3f}"
        for part in (False, True)
    ]


def cost(cut, answers: list[str]) -> float:
    """Processor time of an answer in seconds, the least of some rounds."""
    times = []
    for _ in range(REPEATS):
        began = time.process_time()
        for answer in answers:
            cut(answer)
        times.append((time.process_time() - began) / len(answers))
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=minimal.DATA)
    args = parser.parse_args()
    sets = {folder: words.answers(args.data, folder) for folder in words.SETS}
    short = [one.claim[: words.CLAIM] for one in sets["mtrag"] if len(one.claim) >= words.CLAIM]
    halves = [f"{folder}, {part}" for folder in sets for part in ("fit", "held out")]
    print(f"| splitter | {' | '.join(halves)} | sentences | µs |")
    print("|---" * (len(halves) + 3) + "|")
    for name, make in SPLITTERS.items():
        cut = make()
        claims.sentences = cut
        found = [area for rows in sets.values() for area in areas(rows)]
        count = sum(len(cut(one.claim)) for one in sets["mtrag"]) / len(sets["mtrag"])
        print(f"| {name} | {' | '.join(found)} | {count:.1f} | {cost(cut, short) * 1e6:,.0f} |")


if __name__ == "__main__":
    main()
