"""A form on which a person grades answers: one self-contained file, which saves the grades to another."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rag_eval.rendering.html.element import Markup, folded, joined, tag
from rag_eval.rendering.html.shell import document

MOST = 5


def form(
    answers: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    scores: Sequence[str],
    rubric: str,
    rater: str,
    version: str,
) -> str:
    """Return the page; each answer has the fields of its label and the judge's input."""
    who = tag("p", tag("label", "Your name: ", tag("input", id="rater", type="text", value=rater, autocomplete="name")))
    items = [_answer(number, len(answers), *answer, scores) for number, answer in enumerate(answers, 1)]
    instruction = "Grade each answer by the rubric, from 0 to 5. Leave a score open if you cannot tell."
    parts = [
        tag(
            "header",
            tag("h1", "Spot-check of a judge"),
            tag("p", instruction, " The grades of the judge are not shown."),
            folded("Rubric", _text(rubric)),
        ),
        tag("main", tag("form", who, joined(items), _end(), id="grades", autocomplete="off")),
        tag(
            "footer",
            tag("p", f"Written by rag-eval {version}. This file is self-contained: it makes no network requests."),
        ),
    ]
    return document("Spot-check of a judge", version, parts, "grading.js")


def _answer(
    number: int, total: int, label: Mapping[str, Any], shown: Mapping[str, Any], scores: Sequence[str]
) -> Markup:
    parts = [tag("h2", f"{number} of {total}: {shown['question']}", id=f"answer-{number}")]
    if earlier := shown.get("history"):
        parts += [tag("h3", "Earlier turns"), *(_text(f"{item['role']}: {item['content']}") for item in earlier)]
    parts += [tag("h3", "Answer"), _text(shown["answer"])]
    parts += [tag("p", f"Citations: {', '.join(shown['citations']) or 'none'}")]
    if "expected_answer" in shown:
        parts += [tag("h3", "Expected answer"), _text(shown["expected_answer"])]
    parts += [tag("h3", "Passages")] if shown["chunks"] else [tag("p", "There are no passages.")]
    parts += [folded(chunk["id"], _text(chunk["text"]), unfolded=True) for chunk in shown["chunks"]]
    parts += [_choice(f"answer-{number}", score) for score in scores]
    parts += [tag("p", tag("label", "Note: ", tag("input", type="text")))]
    return tag(
        "section", joined(parts), data_label=json.dumps(label, sort_keys=True), aria_labelledby=f"answer-{number}"
    )


def _choice(name: str, score: str) -> Markup:
    options = [
        tag(
            "label",
            tag("input", type="radio", name=f"{name}-{score}", value=str(value), data_choice=score),
            f" {value} ",
        )
        for value in range(MOST + 1)
    ]
    return tag("p", tag("span", f"{score}: "), *options, role="group", aria_label=score)


def _end() -> Markup:
    hint = tag("noscript", "Saving needs the script of this file.")
    return tag(
        "p",
        tag("button", "Save the grades", type="button", id="save"),
        " ",
        tag("span", id="state", role="status"),
        hint,
    )


def _text(text: str) -> Markup:
    return tag("blockquote", joined(tag("p", line) for line in text.splitlines() if line.strip()))
