"""The reference scorer's flat JSON of files: ``--format scores``."""

from __future__ import annotations

from rag_eval.app import headline, open_policy
from rag_eval.digests import Undigested
from rag_eval.files.ledger import Ledger
from rag_eval.files.pairs import finder, pairing
from rag_eval.files.rows import read_shelf, read_told
from rag_eval.files.source import Reader, large
from rag_eval.model import USUAL_GOLD, USUAL_TRACE, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rag_eval.app import Options
    from rag_eval.how import How
    from rag_eval.model import Gold
    from rag_eval.reference import Counts, ReferenceScorer


def reference_scores(options: Options, inline: str = "") -> tuple[dict[str, Any], list[str]]:
    """The reference scorer's flat JSON, and what it does not say: for ``--format scores``.

    Start-up counts here: without a gates file neither the metrics nor the gates are loaded.
    """
    from rag_eval import reference

    reader, gold, trace, k, token, gates = _reference_terms(options, inline)
    golds = read_shelf(reader, gold)
    counts = _counted(reader, golds, trace, reference.ReferenceScorer(golds, k, token), options.how)
    reader.ledger.stop_on_problems()
    said = [str(note) for note in reader.ledger.notes]
    faults = {name: getattr(counts, name) for name in ("missing", "duplicate", "unknown")}
    aside = "--format scores counts them and does not gate them."
    said += [f"{trace}: {number} {name} trace(s); {aside}" for name, number in faults.items() if number]
    if counts.unread:
        hint = "it reads qid, q_id and answer_json alone. Other formats read them."
        said.append(f"{trace}: {counts.unread} trace(s) without what the reference scorer reads; {hint}")
    return reference.scores(counts, k, gates), said


def _reference_terms(options: Options, inline: str) -> tuple[Reader, str, str, int, str, dict[str, str]]:
    from rag_eval import reference

    defaults = Settings()
    if options.gates:
        reader, policy, _ = open_policy(options)
        own = {gate.name: gate.threshold for gate in policy.gates}
        names = reference.FLOORS | reference.CEILINGS
        gates = {short: own.get(name, reference.DEFAULT_GATES[short]) for short, name in names.items()}
        terms = reader, policy.gold, policy.trace, policy.k, policy.token
    else:
        paths = options.gold or USUAL_GOLD, options.trace or USUAL_TRACE
        k = headline(options.cutoffs, defaults.k)
        gates = reference.DEFAULT_GATES
        terms = Reader(Ledger(), root=options.root), *paths, k, defaults.token
    return *terms, reference.parse_gates(inline) if inline else gates


def _counted(reader: Reader, golds: Mapping[str, Gold], path: str, scorer: ReferenceScorer, how: How) -> Counts:
    """What the reference scorer counts in a trace file; only a large one is shared out."""
    if how.engine == "process" and (how.jobs == 1 or not large(path, scorer.least_shared)):
        found: Callable[[dict[str, Any], int], str | None] | None = None

        def qid_of(row: dict[str, Any], line: int) -> str | None:
            nonlocal found  # to have it takes time, and nearly every row has an id
            found = found or finder(pairing(golds, reader.ledger, path), reader.ledger, path, sound=True)
            return found(row, line)

        scorer.take(read_told(reader, path, scorer.enough), qid_of)
        return scorer.close()
    from rag_eval import engines
    from rag_eval.pairing import Questions

    work = engines.Work(golds, scorer, Questions(golds), reader.limits, sound=True)
    counts: Counts = engines.score(engines.Task(work, reader, path, Undigested(), how)).close()
    return counts
