"""Measures how well built-in refusals agree with people, and what they cost.

    python bench/refusals.py [--data FOLDER] [--write]

FOLDER holds the public sets (``refusal/completions.jsonl``, ``clapnq/``); without it only our own examples are
measured. Each set is cut in halves by a hash of the question: patterns were written in sight of ``seen`` alone.
``--write`` puts the tables into the marked block of bench/REFUSALS.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from pathlib import Path
from typing import NamedTuple

from rag_eval.textual.refusals import recognise

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "bench" / "REFUSALS.md"
BEGIN, END = "<!-- measured: bench/refusals.py -->\n", "<!-- end -->"
HALVES = ("seen", "held out")
ROUNDS = 9


class Answer(NamedTuple):
    """An answer, the half that its question is in, and whether people call it a refusal."""

    half: str
    claim: str
    refuses: bool
    system: str = ""
    partial: bool = False


class Agreement(NamedTuple):
    """Counts of answers: refusals found and rightly so, found wrongly, missed, and answers seen as answers."""

    right: int
    wrong: int
    missed: int
    answers: int

    @property
    def precision(self) -> float:
        """Of what was found, the share that people call a refusal."""
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        """Of what people call a refusal, the share that was found."""
        return self.right / max(1, self.right + self.missed)

    @property
    def agreement(self) -> float:
        """Of all, the share on which people and patterns agree."""
        return (self.right + self.answers) / max(1, sum(self))


def half(question: str) -> str:
    """Which half a question is in."""
    return HALVES[hashlib.sha256(question.encode()).digest()[0] & 1]


def completions(data: Path) -> list[Answer]:
    """Completions of two models with the label that two annotators came to; a partial refusal counts as one."""
    rows = _rows(data / "refusal" / "completions.jsonl")
    return [
        Answer(
            half(row["prompt"]), row["completion"], bool(row["refused"]), row["system"], row["final_label"][0] == "3"
        )
        for row in rows
    ]


def marked(data: Path) -> list[Answer]:
    """Answers of four responders, with the published mark of whether they abstained."""
    folder = data / "clapnq"
    questions = {row["qid"]: row["question"] for row in _rows(folder / "gold.jsonl")}
    marks = {(row["qid"], row["system"]): row["published_abstained"] for row in _rows(folder / "labels.jsonl")}
    answers = []
    for file in sorted(folder.glob("trace.*.jsonl")):
        system = file.name.removeprefix("trace.").removesuffix(".jsonl")
        for row in _rows(file):
            said = row["answer_json"]["claim"]
            answers.append(Answer(half(questions[row["qid"]]), said, marks[row["qid"], system], system))
    return answers


def examples() -> dict[str, list[Answer]]:
    """Our own examples by language."""
    files = sorted((ROOT / "tests" / "refusals").glob("*.jsonl"))
    return {file.stem: [Answer("", row["claim"], row["refuses"]) for row in _rows(file)] for file in files}


def modern() -> dict[str, list[Answer]]:
    """Wordings of current systems: those written before the patterns of version 4, and those written after."""
    files = sorted((ROOT / "tests" / "refusals" / "modern").glob("*.jsonl"))
    answers = {file.stem: [Answer("", row["claim"], row["refuses"]) for row in _rows(file)] for file in files}
    after = answers.pop("after")
    grammar = answers.pop("constructions")
    development = answers.pop("development")
    fresh = {f"modern, {name}": answers.pop(name) for name in sorted(answers) if name.startswith("fresh")}
    return {
        "modern, written before": [one for part in answers.values() for one in part],
        "modern, written after": after,
        **fresh,
        "constructions of nine languages": grammar,
        "development": development,
    }


def agreement(answers: list[Answer]) -> Agreement:
    """How answers are seen."""
    pairs = [(recognise(answer.claim) is not None, answer.refuses) for answer in answers]
    return Agreement(*(pairs.count(kind) for kind in ((True, True), (True, False), (False, True), (False, False))))


def microseconds(claims: list[str]) -> float:
    """Processor time of one claim in the mean, in the quickest of several rounds."""
    recognise("")
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        for claim in claims:
            recognise(claim)
        best = min(best, time.process_time() - started)
    return best / len(claims) * 1e6


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = os.environ.get("RAG_EVAL_DATA") or ROOT.parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(usual))
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    text = "\n".join(_tables(args.data))
    print(text)
    if args.write:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", "utf-8")


def _tables(data: Path) -> list[str]:
    lines = [
        "| set | half | answers | refusals | precision | recall | agreement | µs a claim |",
        "|---|---|---|---|---|---|---|---|",
    ]
    if data.is_dir():
        lines += [_row(name, which, part) for name, all_of in _sets(data) for which, part in _parts(all_of)]
    own = examples()
    lines += [_row("our own examples", "", [answer for answers in own.values() for answer in answers])]
    lines += [_row(name, "", answers) for name, answers in modern().items()] + [""]
    lines += ["| language | refusals | answers | precision | recall |", "|---|---|---|---|---|"]
    for code, answers in own.items():
        found, refusals = agreement(answers), sum(answer.refuses for answer in answers)
        lines.append(
            f"| {code} | {refusals} | {len(answers) - refusals} | {found.precision:.3f} | {found.recall:.3f} |"
        )
    return [*lines, ""]


def _sets(data: Path) -> list[tuple[str, list[Answer]]]:
    people, marks = completions(data), marked(data)
    systems = sorted({answer.system for answer in people})
    return [
        ("refusal", people),
        ("refusal, partial ones left out", [answer for answer in people if not answer.partial]),
        *((f"refusal, {name}", [answer for answer in people if answer.system == name]) for name in systems),
        ("clapnq", marks),
        ("clapnq, empty answers left out", [answer for answer in marks if answer.claim.strip()]),
    ]


def _parts(answers: list[Answer]) -> list[tuple[str, list[Answer]]]:
    return [(which, [answer for answer in answers if answer.half == which]) for which in HALVES]


def _row(name: str, which: str, answers: list[Answer]) -> str:
    found, refusals = agreement(answers), sum(answer.refuses for answer in answers)
    shares = " | ".join(f"{share:.3f}" for share in (found.precision, found.recall, found.agreement))
    cost = microseconds([answer.claim for answer in answers])
    return f"| {name} | {which} | {len(answers)} | {refusals} | {shares} | {cost:.0f} |"


def _rows(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    main()
