"""A small RAG system that every script here traces: four documents, five questions, no model and no network.

The answers show one of each: a right answer, a refusal, a wrong citation, a retrieval that misses, and an error.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

DOCUMENTS = {
    "warranty-1": "The warranty covers defects for 24 months from the day of delivery.",
    "returns-1": "Unused items can be returned within 30 days. The refund takes five working days.",
    "shipping-1": "Shipping within the country costs 4.90 euros and takes two days.",
    "battery-1": "A full charge of the battery takes 90 minutes and lasts for 11 hours.",
}
QUESTIONS = {
    "q1": ("How long does the warranty cover defects?", "The warranty covers defects for 24 months.", "warranty-1"),
    "q2": ("Which colours does the case come in?", "n/a", None),
    "q3": ("What does shipping within the country cost?", "Shipping costs 4.90 euros.", "shipping-1"),
    "q4": ("How fast do I get my money back?", "The refund takes five working days.", "returns-1"),
    "q5": ("How long does the battery last?", "It lasts for 11 hours.", "battery-1"),
}
ANSWERS = {
    "q1": "The warranty covers defects for 24 months. [1]",
    "q2": "I don't know.",
    "q3": "Shipping costs 4.90 euros. [2]",
    "q4": "Your money is back within two days. [1]",
}
RETRIEVED = {
    "q1": ["warranty-1", "returns-1"],
    "q2": ["warranty-1", "shipping-1"],
    "q3": ["shipping-1", "returns-1"],
    "q4": ["shipping-1", "warranty-1"],
    "q5": ["battery-1"],
}
SCORES = (0.875, 0.5)


def qid_of(question: str) -> str:
    """The id of a question."""
    return next(qid for qid, (text, _, _) in QUESTIONS.items() if text == question)


def retrieve(question: str) -> list[tuple[str, str, float]]:
    """Id, text and score of each retrieved document."""
    return [(item, DOCUMENTS[item], SCORES[index]) for index, item in enumerate(RETRIEVED[qid_of(question)])]


def generate(question: str) -> str:
    """The answer. One question fails, as a model does that takes too long."""
    qid = qid_of(question)
    if qid not in ANSWERS:
        raise TimeoutError("the model did not answer within 30 s")
    return ANSWERS[qid]


def gold() -> list[dict]:
    """The gold set of the system, as rag-eval has it."""
    return [
        {
            "qid": qid, "question": question, "answerable": cited is not None, "gold_claim_substr": [],
            "gold_citations": [cited] if cited else [], "expected_answer": expected,
        }
        for qid, (question, expected, cited) in QUESTIONS.items()
    ]  # fmt: skip


def folder(name: str, args: str = "") -> Path:
    """The folder of a recorded export, with the arguments that import it."""
    path = Path(__file__).resolve().parent.parent / name
    path.mkdir(exist_ok=True)
    if args:
        (path / "args").write_text(args + "\n", encoding="utf-8")
    return path


def write(path: Path, text: str) -> None:
    """Write a recorded file, without the names and paths of the machine that it was made on."""
    for pattern, instead in (
        (re.escape(str(Path.home())), "/home/user"),
        (re.escape(str(Path.cwd())), "/app"),
        (re.escape(sys.prefix), "/venv"),
        (re.escape(str(Path(__file__).resolve().parent)), "/app"),
        (r"/(tmp|root)/[\w./-]*", "/app"),
        (r"Linux-[\w.+-]+", "Linux-x86_64"),
        (r"http://127\.0\.0\.1:\d+", "http://localhost"),
    ):
        text = re.sub(pattern, instead, text)
    path.write_text(text, encoding="utf-8")


def write_lines(path: Path, rows: list) -> None:
    """Write rows as JSON Lines."""
    write(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
