"""The flat JSON of the reference scorer, without the metrics and the gates of a report."""

from __future__ import annotations

from typing import Any

from rag_eval.common.escaping import quantity
from rag_eval.contract import DEFAULT_GOLD, DEFAULT_TRACE, Settings
from rag_eval.engines.work import Task, Work, score_file
from rag_eval.readers.gold_file import read_gold_as
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Reader
from rag_eval.run.options import Options, headline
from rag_eval.scoring import reference
from rag_eval.scoring.reference import PackedGold, ReferenceScorer
from rag_eval.scoring.scorer import QuestionIndex


def reference_scores(options: Options, inline: str = "") -> tuple[dict[str, Any], list[str]]:
    """Return the reference scorer's flat JSON for some files, and notes on omitted values."""
    if options.gates:
        from rag_eval.run.inputs import open_policy  # loads all metrics

        reader, policy, _ = open_policy(options)
        stated = {gate.name: gate.threshold for gate in policy.gates}
        names = reference.FLOORS | reference.CEILINGS
        gates = {short: stated.get(name, reference.DEFAULT_GATES[short]) for short, name in names.items()}
        gold, trace, k, token = policy.gold, policy.trace, policy.k, policy.token
    else:
        gold, trace = options.gold or DEFAULT_GOLD, options.trace or DEFAULT_TRACE
        reader = Reader(ProblemCollector(), root=options.root, contents=options.contents)
        k, token, gates = headline(options.cutoffs, Settings().k), Settings().token, reference.DEFAULT_GATES
    gates = reference.parse_gates(inline) if inline else gates
    empty = ReferenceScorer(read_gold_as(reader, gold, None, PackedGold.of), k, token)
    work = Work(empty, QuestionIndex(empty), reader.limits, is_complete=True)
    scorer = score_file(Task(work, reader, trace, execution=options.execution))
    card = scorer.close()
    reader.ledger.stop_on_problems()
    notes = [str(note) for note in reader.ledger.notes]
    counts = {name: getattr(card.completeness, name) for name in ("missing", "duplicate", "unknown")}
    reason = "--format scores counts them but has no gate on them."
    notes += [f"{trace}: {quantity(number, f'{name} trace')}. {reason}" for name, number in counts.items() if number]
    if scorer.unread:
        hint = "It reads only qid, q_id and answer_json. Other formats read all fields."
        notes.append(f"{trace}: --format scores finds no answer in {quantity(scorer.unread, 'trace')}. {hint}")
    return reference.scores(card, k, gates), notes
