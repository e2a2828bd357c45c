"""Cases for tests: contract rows that say only what matters, and the nouns made of them."""

import json
from pathlib import Path

from msgspec.structs import replace

from rag_eval.contract import Judge, parse_reply, verdict_hash
from seams import Case, Gold, Grounding, Safety, Settings, Trace

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "tests" / "examples"


def gold_row(**fields):
    """A gold row. Defaults: qid "Q1", question "How long?", answerable, no gold substrings, no gold citations."""
    defaults = {"qid": "Q1", "question": "How long?", "answerable": True, "gold_claim_substr": [], "gold_citations": []}
    return {**defaults, **fields}


def trace_row(**fields):
    """A trace row. Defaults: qid "Q1", q "How long?"; what was answered is always said by the caller."""
    return {"qid": "Q1", "q": "How long?", **fields}


def make_case(gold, trace, settings=None):
    """The case of two rows as ``gold_row`` and ``trace_row`` complete them; a trace of None is a missing one."""
    item = Gold.from_row(gold_row(**gold), 1)
    answered = Trace.missing("Q1", None) if trace is None else Trace.from_row(trace_row(**trace), "Q1", 1)
    return Case(item, answered, settings or Settings())


def in_full(card):
    """A scorecard that can be compared: its cases as a list."""
    return replace(card, cases=list(card.cases))


def subject(row):
    """What an example is about: the case of its gold and trace, or what its run.json says."""
    if "run" in row:
        return row["run"]
    settings = dict(row.get("settings", {}))
    reply = settings.pop("verdict", None)
    case = make_case(row["gold"], row["trace"], settings_of(settings))
    if reply is None or case.judged_input is None:
        return case
    verdicts = {verdict_hash(Judge(), case.judged_input): parse_reply(json.dumps(reply))}
    return make_case(row["gold"], row["trace"], replace(case.settings, verdicts=verdicts))


def settings_of(stated):
    """Settings of which some are said, as eval-gates.yml says them."""
    kinds = {"groundedness": Grounding, "safety": Safety}
    return Settings(**{name: kinds[name](**value) if name in kinds else value for name, value in stated.items()})


def example_rows(metric_name):
    """The worked examples of a metric."""
    path = EXAMPLES / f"{metric_name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_rows(path):
    """Return the rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def write_rows(path, rows):
    """A JSON Lines file of rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


GOOD_ANSWER = {
    "retrieved_ids": ["a", "b", "c"],
    "answer_json": {"claim": "Kept 30 days.", "citations": ["a"]},
    "latency_ms": {"retrieve": 80, "generate": 900, "total": 1000},
}
GOOD_REFUSAL = {"retrieved_ids": ["b"], "answer_json": {"claim": "not in context", "citations": []}}
