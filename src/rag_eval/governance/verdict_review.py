"""Recorded verdicts of a judge: those of the base that a change rewrites, and new ones of the change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval.analysis.report import InputNote, levels
from rag_eval.common.escaping import quoted
from rag_eval.contract import Limits
from rag_eval.contract.verdict import Verdict, parse_reply
from rag_eval.errors import Finding, Level
from rag_eval.gates.integrity import levelled
from rag_eval.git.snapshots import read_regular
from rag_eval.readers.gates_file import in_folder_of
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Reader
from rag_eval.readers.verdict_file import read_verdicts

if TYPE_CHECKING:
    from rag_eval.git.snapshots import Tree
    from rag_eval.governance.review_context import ReviewContext

_NAMED = 3


def review_verdicts(context: ReviewContext) -> tuple[list[Finding], list[InputNote]]:
    """Return the findings about changed verdicts of the base, and a note on new ones."""
    now = {name: verdict for policy in context.policies for name, verdict in policy.replay.verdicts.items()}
    if not now:
        return [], []
    before = _recorded(context, context.authority.fork)
    changed = [name for name, (_, verdict) in before.items() if now.get(name, verdict) != verdict]
    new = now.keys() - before.keys() & _recorded(context, context.authority.head).keys()
    return _changed(context, [before[name][0] for name in changed], len(before)), _new(context, len(new), len(now))


def _recorded(context: ReviewContext, tree: Tree) -> dict[str, tuple[str, Verdict]]:
    """Return question and verdict by hash, from the verdict files that the gates of base and change name."""
    stated = [
        in_folder_of(policy.file, policy.stated["verdicts"])
        for policy in context.policies
        if "verdicts" in policy.stated
    ]
    verdicts: dict[str, tuple[str, Verdict]] = {}
    for path in dict.fromkeys([*stated, *(policy.verdicts for policy in context.policies if policy.verdicts)]):
        inside = context.authority.inside(path)
        data = read_regular(tree, inside) if inside else None
        if data is not None:
            reader = Reader(ProblemCollector(), Limits(**(context.base or context.head).limits), contents={path: data})
            rows = [row for row, _ in read_verdicts(reader, path) if "error" not in row]
            verdicts |= {row["hash"]: (row["qid"], parse_reply(row["reply"])) for row in rows}
    return verdicts


def _changed(context: ReviewContext, qids: list[str], total: int) -> list[Finding]:
    severities = levels(*context.policies)
    if not qids or severities["changed-verdict"] == "off":
        return []
    gates = [gate for policy in context.policies for gate in policy.selected_gates if gate.name.startswith("judge_")]
    level: Level = "error" if any(gate.severity == "error" for gate in gates) else "warning"
    some = ", ".join(quoted(qid, 40) for qid in qids[:_NAMED]) + (", …" if qids[_NAMED:] else "")
    message = f"{len(qids)} of {total} recorded verdicts differ from the base branch for the same input: {some}"
    fix = "Restore these rows from the base branch. A verdict changes only with its judge or its input."
    finding = Finding("changed-verdict", level, message, fix, context.head.verdicts)
    return [levelled(finding, severities)]


def _new(context: ReviewContext, new: int, total: int) -> list[InputNote]:
    """Return a note on verdicts that only the author of the change has seen."""
    if not new or context.authority.gates is None:
        return []
    message = f"{new} of {total} verdicts were committed with this change: no job asked the judge for them"
    return [InputNote(context.head.verdicts, 0, message, 1)]
