"""Runs that gates cannot judge: behaviour under which some metric cannot fall, whatever the answers are worth."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.cases.case import evidence_level
from rag_eval.cases.finding import Finding
from rag_eval.cases.labels import ABSENT, REFUSED
from rag_eval.common.escaping import quoted
from rag_eval.textual.tokens import holds_any, tokens

if TYPE_CHECKING:
    from rag_eval.cases.case import Case
    from rag_eval.cases.finding import Level
    from rag_eval.contract import Gold, Trace
    from rag_eval.scoring.scorer import Outcome

CITES_ALL, SAYS_ALL = 1, 2
"""Habits of a case: it cites everything of a long list; its claim says what other questions want to hear too."""

LEAST_CITED, LEAST_POOL = 5, 20
"""Shorter lists than these are cited in full, or retrieved in full, by honest systems too."""

PROBES, LEAST_PROBES = 10, 5
"""Of so many questions it is looked whether a claim answers them too; fewer than the least are no sample."""

HABITS = (
    "refuses-everything",
    "answers-everything",
    "padded-answers",
    "constant-answers",
    "padded-citations",
    "padded-retrieval",
)
"""Those that are about all cases together: a part of the questions may look so by chance."""

LEVELS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *HABITS,
            "partly-measured",
            "stale-traces",
            "other-gold",
            "stale-verdict",
            "missing-verdict",
            "ids-changed",
        ),
        "error",
    ),
    "vacuous-gold": "warning",
    "injected-instructions": "off",
}
"""What is looked for, and how grave it is; ``integrity`` in eval-gates.yml may say otherwise of each."""

_PADDED = 0.5  # of what other questions want to hear
_ALIKE = 0.6  # of the words of two claims
_ALMOST = 0.9  # of the cases; one decoy is not to hide a habit
_TURNOVER, _ONE_SIDED = 0.8, 0.1  # of the baseline's ids, and of the gold's
_FEWEST = 3  # cases; below that, one kind of answer throughout may be chance
_SILENT = ("MISSING", "ERROR", "ATTACK")
_CITING = ("precision", "hit_precision", "chr", "chr_answerable", "citation_recall")
_DESCRIBED = re.compile(r"(?:.*-[0-9]+-g)?([0-9a-f]{7,64})(?:-dirty|-broken)?")
_UNRANKED = ("citation_validity", "union_recall", "first_evidence_hop", "wasted_hops")
_UNCUT = re.compile(r"(?:recall|recall_all|recall_any)@([0-9]+)")


class Run(NamedTuple):
    """What is looked at: a run's outcomes with how many cases came to each, and what can fail it.

    ``gates`` are the names of the gates that can, ``pool`` is the length of a long list that all cases
    retrieve, 0 without one. ``guards`` are the gates that every policy in force has: one that a change brings along
    guards nothing yet, since the same change chose its threshold. None: there is one policy alone.
    """

    outcomes: Sequence[tuple[Outcome, int]]
    gates: Collection[str]
    pool: int = 0
    guards: Collection[str] | None = None

    def guarded(self, *names: str) -> bool:
        """Whether one of the gates decides instead."""
        return not set(names).isdisjoint(self.gates if self.guards is None else self.guards)


def findings(run: Run, levels: Mapping[str, str]) -> list[Finding]:
    """The habits of a run that keep gates from seeing. ``levels`` are those of the policy; errors where not said."""
    wanted = {**LEVELS, **levels}
    found = [finding for check in _CHECKS for finding in check(run)]
    return [levelled(finding, wanted) for finding in found if wanted[finding.code] != "off"]


class Origin(NamedTuple):
    """What is known about the traces: run.json's path and content, and of which gold and commits they may be."""

    file: str
    about: Mapping[str, Any]
    golds: Collection[str]
    commits: Collection[str] = ()


def provenance(origin: Origin, levels: Mapping[str, str]) -> list[Finding]:
    """Traces that, as run.json says, are of another commit or answer another gold set."""
    found = [*_other_gold(origin), *_stale(origin)]
    return [levelled(finding, levels) for finding in found if levels[finding.code] != "off"]


def vacuous(golds: Iterable[Gold], file: str, levels: Mapping[str, str]) -> list[Finding]:
    """Answerable items to which precision takes any answer for right, for they say nothing of the right one."""
    counted = (gold for gold in golds if gold.answerable and gold.attack is None)
    asked = [not (gold.substrings or evidence_level(gold)) for gold in counted]
    if not any(asked) or levels["vacuous-gold"] == "off":
        return []
    message = f"{sum(asked)} of {len(asked)} answerable items say nothing by which an answer could be wrong"
    message += ": to precision any answer to them is right, and none at all"
    fix = "Add gold_claim_substr, gold_citations or other evidence to them, or gate what they do say."
    return [levelled(Finding("vacuous-gold", "error", message, fix, file), levels)]


class Answer(NamedTuple):
    """A claim that counts as right, with the item that it answers."""

    gold: Gold
    claim: str


SAMPLE, FOREIGN = 150, 40
"""So many right answers of a run are looked at, and so many items for what they want to hear."""
_FEW_WORDS = 3


def drawn_at(count: int, most: int, seed: str, *, in_order: bool = True) -> list[int]:
    """Draw up to ``most`` of ``count`` places: by chance for whoever does not know the seed, alike for all.

    They are sorted, or else in the order in which they were drawn.
    """
    if (count <= most and in_order) or not count:
        return list(range(count))
    found: dict[int, None] = {}
    for number in range(8 * most):  # of few places some may be drawn many times
        found[int.from_bytes(sha256(f"{seed} {number}".encode()).digest()[:8], "big") % count] = None
        if len(found) == min(most, count):
            break
    return sorted(found) if in_order else list(found)


def repeated(answers: Sequence[Answer], golds: Sequence[Gold], seed: str, levels: Mapping[str, str]) -> list[Finding]:
    """Find right answers that are no answers to their questions: one claim for many, or one that says what many want.

    ``answers`` are a sample of the right ones, and the items for the second question are drawn by ``seed``: whoever
    writes answers to pass cannot know which are looked at.
    """
    checks = {"padded-answers": _padded_right(answers, golds, seed), "constant-answers": _constant(answers)}
    asked = [[*check] for code, check in checks.items() if levels[code] != "off"]
    return [levelled(finding, levels) for finding in next(filter(None, asked), [])]


def _constant(answers: Sequence[Answer]) -> Iterator[Finding]:
    groups = [group for group in _alike(answers) if len(_different(group)) >= _FEWEST]
    same = sum(map(len, groups))
    if not groups or same < len(answers) * (1 - _ALMOST):
        return
    most = max(groups, key=len)
    one = "the same claim" if len(groups) == 1 else f"one of {len(groups)} claims"
    some = ", ".join(answer.gold.qid for answer in most[:_FEWEST])
    message = f"{same} of {len(answers)} right answers are {one}, though their questions want different things"
    wanted = any(answer.gold.substrings for group in groups for answer in group)
    grave = wanted or (2 * same >= len(answers) and any(len(tokens(group[0].claim)) >= _FEW_WORDS for group in groups))
    fix = "Answer the question that is asked" + ("." if wanted else ", and name in gold_claim_substr what is right.")
    yield Finding("constant-answers", "error" if grave else "warning", f"{message}: {quoted(some, 60)}", fix)


def _alike(answers: Iterable[Answer]) -> list[list[Answer]]:
    """The answers in groups of the same claim; what tells them apart may be a few words that nobody asked for."""
    groups: list[tuple[frozenset[str], list[Answer]]] = []
    for answer in answers:
        words = frozenset(tokens(answer.claim))
        for known, group in groups:
            if words == known or (
                _ALIKE * len(words | known) <= len(words & known) and _interchangeable(answer, group[0])
            ):
                group.append(answer)
                break
        else:
            if words:
                groups.append((words, [answer]))
    return [group for _, group in groups]


def _interchangeable(one: Answer, other: Answer) -> bool:
    """Whether each of two claims says what the other one's question wants to hear."""
    wants = one.gold.substrings, other.gold.substrings
    return all(wants) and holds_any(wants[1], one.claim.lower()) and holds_any(wants[0], other.claim.lower())


def _different(answers: Iterable[Answer]) -> list[Gold]:
    """The items of some answers that want to hear something else than each other, from other evidence."""
    found: list[Gold] = []
    texts: set[str] = set()
    places: set[str] = set()
    for gold, _ in answers:
        wants = set(gold.substrings or ([gold.expected_answer.lower()] if gold.expected_answer else [f"#{gold.qid}"]))
        evidence = _evidence(gold)
        if texts.isdisjoint(wants) and places.isdisjoint(evidence):
            found.append(gold)
            texts |= wants
            places |= evidence
    return found


def _evidence(gold: Gold) -> frozenset[str]:
    named = [*gold.citations, *(gold.relevance_grades or ()), *(gold.relevant_docs or ()), *(gold.doc_grades or ())]
    named += [f"{one.rel_path} > {one.heading_path}" for one in gold.supports or ()]
    return frozenset([*named, *(f"{one.doc_id} {one.section}" for one in gold.sections or ())])


def _padded_right(answers: Sequence[Answer], golds: Sequence[Gold], seed: str) -> Iterator[Finding]:
    """Answers that say what a good part of other questions want to hear too."""
    asked = [gold for gold in golds if gold.answerable and gold.attack is None and gold.substrings]
    probes = [asked[place] for place in drawn_at(len(asked), FOREIGN, seed)]
    padded = 0
    for gold, claim in answers:
        said = claim.lower()
        others = [one.substrings for one in probes if set(one.substrings).isdisjoint(gold.substrings)]
        held = sum(holds_any(texts, said) for texts in others)
        padded += held >= _FEWEST and held >= len(others) * _PADDED
    if padded >= max(_FEWEST, len(answers) * (1 - _ALMOST)):
        message = f"{padded} of {len(answers)} right answers say what many other questions want to hear too"
        yield Finding("padded-answers", "error", message, "Answer the question that is asked.")


def unmatched(cases: Iterable[Case], file: str) -> list[Finding]:
    """Find that the gold names its evidence otherwise than the traces do, as after a new chunking.

    ``cases`` are of answerable items that name evidence; ``file`` is the gold.
    """
    gold: dict[str, set[str]] = {}
    seen: dict[str, set[str]] = {}
    for case in cases:
        field = _FIELD[case.evidence_level]
        gold.setdefault(field, set()).update(_named(case.gold, field))
        values = case.trace.retrieved if field == "id" else [getattr(one, field) for one in case.trace.chunks or ()]
        seen.setdefault(field, set()).update(filter(None, values))
    found = []
    for field, names in gold.items():
        strangers = sorted(names - seen[field])
        if len(strangers) < _FEWEST or 2 * len(strangers) <= len(names):
            continue
        what = "chunk ids" if field == "id" else f"values of {field}"
        other = f"traces have {quoted(min(seen[field]), 60)}" if seen[field] else f"no trace has any {field}"
        message = f"{len(strangers)} of {len(names)} {what} of the gold occur in no trace: the gold has "
        message += f"{quoted(strangers[0], 60)}, {other}"
        fix = (
            "If the chunks were cut anew, label them again, or name the evidence by supports. If not, search the index."
        )
        found.append(Finding("unmatched-ids", "warning", message, fix, file))
    return found


def ids_changed(pairs: Iterable[tuple[Case, Case]], guarding: bool, levels: Mapping[str, str]) -> list[Finding]:
    """Find that the index names its chunks otherwise than when the baseline ran.

    ``pairs`` are cases of the baseline and of the run under the same gold. Two things tell new names from another
    retriever: hardly any id of the baseline was retrieved again, and the ids of the gold occur on one side only.
    ``guarding`` says that a regression gate compares ids: then the run cannot be judged, which is an error.
    """
    old, new, gold = set[str](), set[str](), set[str]()
    for before, now in pairs:
        old.update(before.trace.retrieved)
        new.update(now.trace.retrieved)
        gold.update(_named(now.gold, "id"))
    gone, then, after = old - new, len(gold & old), len(gold & new)
    one_sided = max(then, after) >= _FEWEST and min(then, after) <= _ONE_SIDED * max(then, after)
    if levels["ids-changed"] == "off" or not one_sided or len(gone) < _TURNOVER * len(old):
        return []
    message = f"{len(gone)} of {len(old)} chunk ids that the baseline retrieved occur in no trace of this run, such as "
    message += f"{quoted(min(gone), 60)}: ids changed, regressions of what compares ids cannot be judged"
    if after < then:
        hint = "Give the gold the new ids: rag-eval gold relink. Then let the new index write the baseline."
    else:
        hint = "The gold has the new ids already: let the new index write the baseline, in a change of its own."
    found = Finding("ids-changed", "error", message, hint)
    return [levelled(found, levels) if guarding else found._replace(level="warning")]


def injected(traces: Iterable[Trace], file: str, levels: Mapping[str, str]) -> list[Finding]:
    """Find retrieved chunks that address a language model. The message has their ids, and nothing of their text."""
    from rag_eval.textual.injection import instruction

    seen: set[str] = set()
    found: dict[str, tuple[str, int]] = {}
    for trace in traces:
        for chunk in trace.chunks or ():
            if chunk.text and chunk.text not in seen:
                seen.add(chunk.text)
                if kind := instruction(chunk.text):
                    found.setdefault(chunk.id, (kind.kind, trace.line))
    if not found:
        return []
    shown = [f"{quoted(name, 60)} ({kind}, line {line})" for name, (kind, line) in [*found.items()][:_FEWEST]]
    message = (
        f"{len(found)} of {len(seen)} retrieved texts read like instructions to a language model: {', '.join(shown)}"
    )
    fix = "Look where these chunks come from. This is a look for wordings, and no guardrail: it misses most attacks."
    line = min(line for _, line in found.values())
    return [levelled(Finding("injected-instructions", "error", message, fix, file, line), levels)]


_FIELD = {"chunk": "id", "support": "rel_path", "section": "section", "doc": "doc_id"}


def _named(gold: Gold, field: str) -> Iterable[str]:
    if field == "id":
        return gold.citations or [name for name, grade in (gold.relevance_grades or {}).items() if grade]
    if field == "rel_path":
        return [one.rel_path for one in gold.supports or ()]
    if field == "section":
        return [one.section for one in gold.sections or ()]
    return gold.expected_documents or gold.doc_grades or gold.relevant_docs or ()


def _other_gold(origin: Origin) -> Iterator[Finding]:
    answered = origin.about.get("gold_sha256")
    if answered and answered.lower() not in origin.golds:
        message = "stale run: its traces answered another gold set than this one"
        yield Finding("other-gold", "error", message, "Let the system answer this gold set.", origin.file)


def commit_of(about: Mapping[str, Any]) -> str:
    """Return the commit id that run.json names in lower case, empty for none.

    Of what ``git describe`` prints, as in ``v1.2-5-g9f2c1ab-dirty``, it is the id alone.
    """
    text = str(about.get("system_commit") or "").strip().lower()
    described = _DESCRIBED.fullmatch(text)
    return described[1] if described else text


def _stale(origin: Origin) -> Iterator[Finding]:
    commit = commit_of(origin.about)
    if commit and origin.commits and not any(known.startswith(commit) for known in origin.commits):
        message = f"stale run: its traces are of commit {quoted(commit, 40)}, not of the one under test"
        yield Finding("stale-traces", "error", message, "Let the system of this commit answer.", origin.file)


def levelled(finding: Finding, levels: Mapping[str, str]) -> Finding:
    """The finding, no graver than the policy takes it."""
    return finding._replace(level="warning") if levels.get(finding.code) == "warning" else finding


def _refuses_everything(run: Run) -> Iterator[Finding]:
    refused, answered = _split(run, lambda label: label not in ("HALLUCINATION", "REFUSAL_OK"))
    if refused >= max(_FEWEST, (refused + answered) * _ALMOST):
        guards = "over_refusal", "answered_rate", "abstention_accuracy", "chr_answerable"
        share = f"all {refused}" if not answered else f"{refused} of {refused + answered}"
        message = f"{share} answerable questions are refused: what is measured on answers holds by default"
        fix = "Fix the system." if run.guarded(*guards) else "Gate over_refusal, or fix the system."
        yield Finding("refuses-everything", _level(run, *guards), message, fix)


def _answers_everything(run: Run) -> Iterator[Finding]:
    refused, answered = _split(run, lambda label: label in ("HALLUCINATION", "REFUSAL_OK"))
    if answered >= _FEWEST and not refused:
        guards = "under_refusal", "abstention_accuracy"
        message = f"all {answered} unanswerable questions are answered: over_refusal cannot fail"
        fix = "Let the system refuse." if run.guarded(*guards) else "Gate under_refusal, or let the system refuse."
        yield Finding("answers-everything", _level(run, *guards), message, fix)


def _padded_answers(run: Run) -> Iterator[Finding]:
    padded, answers = _habitual(run, SAYS_ALL)
    if padded >= max(_FEWEST, answers * _ALMOST):
        message = f"{padded} of {answers} answers say what most other questions want to hear too: precision is blind"
        yield Finding("padded-answers", "error", message, "Answer the question that is asked.")


def _padded_citations(run: Run) -> Iterator[Finding]:
    padded, answers = _habitual(run, CITES_ALL)
    if padded >= max(_FEWEST, answers * _ALMOST):
        guarded = run.guarded("citation_precision")
        message = f"{padded} of {answers} answers cite everything they retrieved: a citation hit is no merit then"
        level: Level = "warning" if guarded or not set(_CITING) & set(run.gates) else "error"
        fix = (
            "Cite what supports the claim." if guarded else "Gate citation_precision, or cite what supports the claim."
        )
        yield Finding("padded-citations", level, message, fix)


def _padded_retrieval(run: Run) -> Iterator[Finding]:
    spoken = sum(count for one, count in run.outcomes if one.label not in ABSENT)
    if run.pool and spoken >= _FEWEST:
        blind = sorted(name for name in run.gates if _blind(name, run.pool))
        message = f"every question retrieves the same {run.pool} chunks"
        message += f": {', '.join(blind)} cannot fail" if blind else ""
        level: Level = "error" if blind else "warning"
        yield Finding("padded-retrieval", level, message, "Give the ranked list that the answer is made from.")


_CHECKS: tuple[Callable[[Run], Iterator[Finding]], ...] = (
    _refuses_everything,
    _answers_everything,
    _padded_answers,
    _padded_citations,
    _padded_retrieval,
)


def _habitual(run: Run, habit: int) -> tuple[int, int]:
    """How many answers have a habit, and how many there are."""
    answers = [(one.habits & habit, count) for one, count in run.outcomes if one.label not in (*REFUSED, *_SILENT)]
    return sum(count for has, count in answers if has), sum(count for _, count in answers)


def _split(run: Run, meant: Callable[[str], bool]) -> tuple[int, int]:
    """How many of the cases with a label that is meant are refused, and how many answered; what failed is neither."""
    told = [
        (one.label in REFUSED, count) for one, count in run.outcomes if one.label not in _SILENT and meant(one.label)
    ]
    return sum(count for refused, count in told if refused), sum(count for refused, count in told if not refused)


def _level(run: Run, *guards: str) -> Level:
    """Where a gate guards against it, the gate decides."""
    return "warning" if run.guarded(*guards) else "error"


def _blind(name: str, pool: int) -> bool:
    cut = _UNCUT.fullmatch(name)
    return name in _UNRANKED or name.startswith("hop_recall@") or (cut is not None and int(cut[1]) >= pool)
