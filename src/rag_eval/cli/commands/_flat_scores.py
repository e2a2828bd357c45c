"""The reference scorer's flat JSON of files: ``--format scores``."""

from __future__ import annotations

from typing import Any

from rag_eval import engines
from rag_eval.cases.pairing import Questions
from rag_eval.common.digests import Undigested
from rag_eval.contract import DEFAULT_GOLD, DEFAULT_TRACE, Settings
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.problems import Ledger
from rag_eval.readers.source import Reader
from rag_eval.run.options import Options, headline
from rag_eval.scoring import reference
from rag_eval.scoring.reference import ReferenceScorer


def reference_scores(options: Options, inline: str = "") -> tuple[dict[str, Any], list[str]]:
    """Return the reference scorer's flat JSON of files, and what it does not say."""
    reader, gold, trace, k, token, gates = _reference_terms(options, inline)
    golds = read_gold(reader, gold)
    work = engines.Work(golds, ReferenceScorer(golds, k, token), Questions(golds), reader.limits, is_complete=True)
    scorer = engines.score(engines.Task(work, reader, trace, Undigested(), options.execution))
    card = scorer.close()
    reader.ledger.stop_on_problems()
    notes = [str(note) for note in reader.ledger.notes]
    counts = {name: getattr(card.completeness, name) for name in ("missing", "duplicate", "unknown")}
    reason = "--format scores counts them and does not gate them."
    notes += [f"{trace}: {number} {name} trace(s); {reason}" for name, number in counts.items() if number]
    if scorer.unread:
        hint = "it reads qid, q_id and answer_json alone. Other formats read them."
        notes.append(f"{trace}: {scorer.unread} trace(s) without what the reference scorer reads; {hint}")
    return reference.scores(card, k, gates), notes


def _reference_terms(options: Options, inline: str) -> tuple[Reader, str, str, int, str, dict[str, str]]:
    defaults = Settings()
    if options.gates:
        from rag_eval.run.inputs import open_policy  # loads the metrics, which nothing else here needs

        reader, policy, _ = open_policy(options)
        own = {gate.name: gate.threshold for gate in policy.gates}
        names = reference.FLOORS | reference.CEILINGS
        gates = {short: own.get(name, reference.DEFAULT_GATES[short]) for short, name in names.items()}
        terms = reader, policy.gold, policy.trace, policy.k, policy.token
    else:
        paths = options.gold or DEFAULT_GOLD, options.trace or DEFAULT_TRACE
        k = headline(options.cutoffs, defaults.k)
        gates = reference.DEFAULT_GATES
        terms = Reader(Ledger(), root=options.root), *paths, k, defaults.token
    return *terms, reference.parse_gates(inline) if inline else gates
