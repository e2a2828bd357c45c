"""Gold citations that are missing, spelled in two ways, graded against themselves, or found by nobody."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rag_eval.cases.case import evidence_level
from rag_eval.common.escaping import quoted
from rag_eval.gold.lint._sample import LintNote, few_or_most

if TYPE_CHECKING:
    from rag_eval.contract import Gold
    from rag_eval.gold.lint._sample import Sample


def none(sample: Sample) -> list[LintNote]:
    """Answerable items without any evidence: the scorer then wants an answer that cites nothing."""
    lacking = [gold for gold in sample.answerable if not evidence_level(gold)]
    wanted = "precision and chr want an answer that cites nothing"
    each = LintNote(f"it is answerable and names no evidence: {wanted}", "Name the chunks that hold the answer.")
    count = f"{len(lacking)} of {len(sample.answerable)} answerable items name no evidence"
    most = LintNote(f"{count}: there {wanted}", "Name the chunks that hold the answers.")
    return few_or_most(lacking, sample.answerable, each, most)


def variant(sample: Sample) -> Iterator[LintNote]:
    """Ids that differ from another one in case, white space or the kind of slash alone."""
    users = _users(sample)
    for name, main, where in _spellings(sample, users):
        message = f"the id {quoted(name)} is {'' if where else 'also '}written {quoted(main)}{where}"
        yield LintNote(message, "Ids are compared to the letter: write one of them everywhere.", users[name][0])


def ungraded(sample: Sample) -> Iterator[LintNote]:
    """Gold citations that the item's own grades leave out, or grade 0."""
    for gold in sample.answerable:
        grades = gold.relevance_grades or {}
        for name in gold.citations if grades else ():
            if not grades.get(name):
                what = "graded 0 in" if name in grades else "missing from"
                message = f"the gold citation {quoted(name)} is {what} relevance_grades: finding it gains no nDCG"
                yield LintNote(message, "Grade it 1 or more, or drop the citation.", gold)


def unseen(sample: Sample) -> list[LintNote]:
    """Gold citations that no trace has retrieved."""
    users = _users(sample)
    if sample.seen is None or not users:
        return []
    respelled = {name for name, *_ in _spellings(sample, users)}
    missing = sorted(users.keys() - sample.seen.ids - respelled)
    if len(missing) > 1 and 2 * len(missing) > len(users):
        example = f", as in {quoted(min(sample.seen.ids))}" if sample.seen.ids else ""
        message = f"no trace retrieved {len(missing)} of {len(users)} gold citations, such as {quoted(missing[0])}"
        return [LintNote(message, f"Check whether ids are written as in the traces{example}.")]
    lost = set(missing)
    return [_lost(gold, sorted(lost & {*gold.citations})) for gold in sample.answerable if lost & {*gold.citations}]


def _lost(gold: Gold, lost: list[str]) -> LintNote:
    all_of = len(gold.citations)
    which = f"{len(lost)} of its {all_of} gold citations, such as" if all_of > 1 else "its gold citation"
    return LintNote(
        f"no trace retrieved {which} {quoted(lost[0])}", "Check the id, and whether the chunk is in the index.", gold
    )


def _users(sample: Sample) -> dict[str, list[Gold]]:
    """The items by the ids that they cite."""
    users: dict[str, list[Gold]] = {}
    for gold in sample.answerable:
        for name in gold.citations:
            users.setdefault(name, []).append(gold)
    return users


def _spellings(sample: Sample, users: Mapping[str, list[Gold]]) -> list[tuple[str, str, str]]:
    """Ids that look misspelled, each with the right spelling, and where that was seen.

    Two spellings that were both retrieved are two ids. Else the retrieved one is right, or the one that most items use.
    """
    ids = sample.seen.ids if sample.seen else frozenset()
    alike: dict[str, set[str]] = {}
    for name in {*users, *ids}:
        alike.setdefault(_key(name), set()).add(name)
    uses = Counter({name: len(golds) for name, golds in users.items()})
    found = []
    for names in alike.values():
        wrong = names - ids
        if len(names) > 1 and wrong:
            main = min(names & ids or names, key=lambda name: (-uses[name], name))
            found += [(name, main, " in the traces" if main in ids else "") for name in wrong - {main}]
    return sorted(found)


def _key(name: str) -> str:
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(folded.split()).replace("\\", "/").removeprefix("./")
