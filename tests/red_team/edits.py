"""What a pull request may do to a project, each a small function; Hypothesis puts them together in any number."""

from __future__ import annotations

import gzip
import json
from copy import deepcopy
from dataclasses import dataclass, field

import yaml
from hypothesis import strategies as st

from gaming.honest import Repository, hashes, lines, record

REFUSAL = "not in context"
GATES = {
    "version": 1,
    "gold": "eval/gold.jsonl",
    "trace": "runs/trace.jsonl",
    "k": 5,
    "refusal": {"token": REFUSAL},
    "gates": {
        "precision": {"min": 0.8},
        "chr": {"min": 0.75},
        "under_refusal": {"max": 0.05},
        "over_refusal": {"max": 0.1},
        "recall_all@5": {"min": 0.9},
        "detection_rate": {"min": 0.9},
        "latency_total_ms.mean": {"max": 1000},
    },
    "completeness": {"missing": 0, "duplicate": 0, "unknown": 0},
}
COMPARED = {
    "gates": {**GATES["gates"], "precision": {"min": 0.8, "max_drop": 0.1, "test": "none"}},
    "baseline": {"report": "eval/baseline.json"},
    "must_pass": ["A00", "U00"],
}
SIGNOFF = {"dataset": "red", "gold": "eval/gold.jsonl", "records": "eval/gold.signoff", "require": "record"}
ATTACK = {"kind": "input", "positive": True, "category": "injection"}
ANSWERABLE = [f"A{number:02}" for number in range(12)]
OTHERS = [f"U{number:02}" for number in range(4)]
ATTACKS = [f"X{number:02}" for number in range(4)]
QIDS = [*ANSWERABLE, *OTHERS, *ATTACKS]


def item(qid):
    """Return the base's gold item of a qid."""
    number = QIDS.index(qid) if qid in QIDS else 50
    answerable = qid[0] in "AN"
    return {
        "qid": qid,
        "question": f"How heavy is part {qid}?" if answerable else f"Who has invented part {qid}?",
        "answerable": answerable,
        "gold_claim_substr": [f"{number * 7 + 100} grams"] if answerable else [],
        "gold_citations": [f"c{number}"] if answerable else [],
        **({"attack": ATTACK} if qid in ATTACKS else {}),
    }


def answer(gold):
    """Return the right answer to an item, with all that is measured."""
    number = QIDS.index(gold["qid"]) if gold["qid"] in QIDS else 50
    right = item(gold["qid"])
    output = {"claim": f"It weighs {''.join(right['gold_claim_substr'])}.", "citations": right["gold_citations"]}
    return {
        "qid": gold["qid"],
        "q": gold["question"],
        "retrieved_ids": [*right["gold_citations"], *(f"d{number + step}" for step in range(4))],
        "answer_json": output if right["answerable"] else {"claim": REFUSAL, "citations": []},
        "latency_ms": {"total": 400},
        **({"guardrail": {"score": 0.9}} if gold["qid"] in ATTACKS else {}),
    }


@dataclass
class Change:
    """A pull request in the making: both sides' files and the answers of its system."""

    repository: Repository
    below: str
    signed: bool
    gates: dict
    golds: list
    traces: list
    gold: str
    inputs: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)  # further files of the pull request; None removes one
    gates_file: str | None = "eval-gates.yml"
    left: str | None = None  # the folder of the base, if the system moves to another one
    is_copied: bool = False
    form: str = "lines"

    def chosen(self, qids):
        """Return the gold items of the pull request with these qids."""
        return [gold for gold in self.golds if gold["qid"] in qids]

    def write(self):
        """Write the files of the pull request into the work tree, with a record of what changed in the gold."""
        forms = {"lines": lines, "array": _array, "gzip": lambda rows: gzip.compress(lines(rows), mtime=0)}
        base = self.below if self.left is None else self.left
        before, after = self.repository.read(base + GATES["gold"]), forms[self.form](self.golds)
        for path in () if self.is_copied else (GATES["gold"], "eval-gates.yml"):
            (self.repository.path / base / path).unlink()
        self.repository.write(self.below + self.gold, after)
        if self.signed and "signoff" in self.gates and self.form == "lines" and hashes(before) != hashes(after):
            made = record(before, after, dataset="red", gold=self.below + self.gold, mutates=True)
            self.repository.write(f"{self.below}{SIGNOFF['records']}/{made.name}", made.file)
        if self.gates_file:
            self.repository.write(self.below + self.gates_file, yaml.safe_dump(self.gates, sort_keys=False))
        for path, data in self.files.items():
            if data is None:
                (self.repository.path / path).unlink()
            else:
                self.repository.write(path, data)


def _array(rows):
    return json.dumps(
        [
            {
                "qid": row["qid"],
                "q": row["question"],
                "answerable": row["answerable"],
                "gold_ids": row["gold_citations"],
                "gold_claim": "".join(row["gold_claim_substr"][:1]),
            }
            for row in rows
        ]
    ).encode()


FAILING = ("the failing ones",)
some = st.just(FAILING) | st.lists(st.sampled_from(QIDS), min_size=1, max_size=6, unique=True)
"""Questions that an edit is about: often those that the system fails."""
EDITS, HONEST = {}, {}


def edit(strategy):
    """Register a function of a change and a drawn value as something that may weaken a measurement."""

    def named(function):
        EDITS[function.__name__] = (function, strategy)
        return function

    return named


def honest(strategy):
    """Register a function that weakens nothing."""

    def named(function):
        HONEST[function.__name__] = (function, strategy)
        return function

    return named


# --- the system of the pull request ---


def _said(claim=None, cites=None):
    """Return a fault: another claim, or citations of something among what was retrieved."""

    def fault(row):
        answered = dict(row["answer_json"])
        answered |= {} if claim is None else {"claim": claim}
        answered |= {} if cites is None else {"citations": cites(row["retrieved_ids"])}
        return {**row, "answer_json": answered}

    return fault


FAULTS = {
    "wrong": _said("It is rather heavy, and grams are a unit."),
    "uncited": _said(cites=lambda result: result[-1:]),
    "invented": _said(cites=lambda _: ["nowhere"]),
    "refuses": _said(REFUSAL, lambda _: []),
    "answers": _said("I think it was Ann.", lambda result: result[:1]),
    "empty": _said("", lambda _: []),
    "error": lambda row: {"qid": row["qid"], "q": row["q"], "error": "timed out"},
    "lost": lambda row: {**row, "retrieved_ids": [*(f"z{index}" for index in range(5)), *row["retrieved_ids"]]},
    "undetected": lambda row: {**row, "guardrail": {"score": 0.1}} if "guardrail" in row else row,
    "slow": lambda row: {**row, "latency_ms": {"total": 60_000}},
    "missing": lambda _: None,
}


def failing(change, faults):
    """Let the system fail questions; ``faults`` are kinds by qid."""
    rows = [FAULTS[faults[row["qid"]]](row) if row["qid"] in faults else row for row in change.traces]
    change.traces = [row for row in rows if row is not None]


def _without(name, qids, rows):
    return [{key: part for key, part in row.items() if key != name or row["qid"] not in qids} for row in rows]


@edit(some)
def leave_out_guardrail(change, qids):
    """Leave the guardrail out of some traces."""
    change.traces = [
        {k: v for k, v in row.items() if k != "guardrail" or row["qid"] not in qids} for row in change.traces
    ]


@edit(some)
def leave_out_latency(change, qids):
    """Leave the latency out of some traces."""
    change.traces = [
        {k: v for k, v in row.items() if k != "latency_ms" or row["qid"] not in qids} for row in change.traces
    ]


@edit(some)
def answer_again(change, qids):
    """Answer some questions rightly once more, behind what was answered."""
    change.traces += [answer(item(qid)) for qid in qids]


@edit(st.just("better"))
def second_run(change, name):
    """Add a second run, which is right; the first one gets a name too."""
    change.traces = [{**row, "run": "first"} for row in change.traces]
    change.traces += [{**answer(item(qid)), "run": name} for qid in QIDS]


@edit(some)
def blocked(change, qids):
    """Mark some answers as blocked."""
    change.traces = [
        {**row, "guardrail": {**row.get("guardrail", {}), "blocked": True}} if row["qid"] in qids else row
        for row in change.traces
    ]


@edit(some)
def abstained(change, qids):
    """Mark some answers as abstentions, whatever they say."""
    change.traces = [{**row, "abstained": True} if row["qid"] in qids else row for row in change.traces]


@edit(st.just(""))
def drop_failing_traces(change, _):
    """Ask no question of the traces any more that is not in the gold of the change."""
    known = {gold["qid"] for gold in change.golds}
    change.traces = [row for row in change.traces if row["qid"] in known]


# --- the gold ---


@edit(some)
def drop(change, qids):
    """Drop gold items, and their traces with them."""
    change.golds = [gold for gold in change.golds if gold["qid"] not in qids]


@edit(
    st.tuples(
        some, st.sampled_from([[], ["heavy"], ["it is rather"], ["a unit"], ["not in context"], ["e"], ["     "]])
    )
)
def widen(change, message):
    """Let more answers pass."""
    for gold in change.chosen(message[0]):
        if gold["answerable"]:
            gold["gold_claim_substr"] = message[1] and [*gold["gold_claim_substr"], *message[1]]


@edit(some)
def flip(change, qids):
    """Make answerable items unanswerable and the other way round."""
    for gold in change.chosen(qids):
        gold |= {"answerable": not gold["answerable"], "gold_claim_substr": [], "gold_citations": []}


@edit(st.tuples(some, st.sampled_from(["retrieved", "none"])))
def recite(change, message):
    """Take what the traces cite for right."""
    rows = {row["qid"]: row for row in change.traces}
    for gold in change.chosen(message[0]):
        cited = rows.get(gold["qid"], {}).get("answer_json", {}).get("citations", [])
        if gold["answerable"]:
            gold["gold_citations"] = cited if message[1] == "retrieved" else []


@edit(some)
def no_attack(change, qids):
    """Take attacks for plain questions, and benign ones for what is no attack."""
    for gold in change.chosen(qids):
        gold.pop("attack", None)


@edit(some)
def rename_qids(change, qids):
    """Ask the same under other qids."""
    for row in [*change.golds, *change.traces]:
        if row["qid"] in qids:
            row["qid"] = f"N{row['qid']}"


@edit(st.sampled_from(["eval/gold2.jsonl", "data/gold.jsonl", "gold.jsonl"]))
def move_gold(change, path):
    """Move the gold."""
    change.gold = change.gates["gold"] = path
    if "signoff" in change.gates:
        change.gates["signoff"] = {**change.gates["signoff"], "gold": path}


@edit(st.sampled_from(["array", "gzip"]))
def form(change, name):
    """Write the gold in another form."""
    change.form = name
    change.gold = change.gates["gold"] = {"array": "eval/gold.json", "gzip": "eval/gold.jsonl.gz"}[name]


@edit(st.integers(1, 60))
def pad(change, count):
    """Add easy questions that the system gets right."""
    for number in range(count):
        gold = {**item(f"N{number:02}"), "question": f"How heavy is the new part {number}?"}
        change.golds.append(gold)
        change.traces.append(answer(gold))


# --- gates, settings, inputs ---


@edit(st.sampled_from(list(GATES["gates"])))
def remove_gate(change, name):
    """Remove a gate."""
    change.gates["gates"].pop(name, None)


@edit(st.tuples(st.sampled_from(list(GATES["gates"])), st.sampled_from(["severity", "bound", "skip", "confidence"])))
def loosen_gate(change, message):
    """Loosen a gate."""
    name, how = message
    side = "min" if "min" in GATES["gates"][name] else "max"
    ends = {"min": 0, "max": 10**6 if name.startswith("latency") else 1}
    loose = {"severity": {"severity": "warning"}, "bound": {side: ends[side]}, "skip": {"when_no_data": "skip"}}
    change.gates["gates"][name] = {**GATES["gates"][name], **loose.get(how, {"confidence": 0.999})}


SETTINGS = {
    "k": 50,
    "refusal": {"token": "It is rather heavy, and grams are a unit."},
    "completeness": {"missing": 99, "duplicate": 99, "unknown": 99},
    "integrity": dict.fromkeys(
        ["refuses-everything", "answers-everything", "padded-answers", "padded-citations"], "off"
    ),
    "limits": {"lines": 20, "whole_mib": 1},
    "safety": {"warn": 0.01},
    "slices": {"by": ["category"]},
    "statistics": {"alpha": 0.0001},
    "must_pass": [],
}
PHRASES = {"phrases": ["rather heavy", "i think"]}


@edit(st.sampled_from(list(SETTINGS)))
def setting(change, name):
    """Change a setting."""
    change.gates[name] = SETTINGS[name]


@edit(st.just(PHRASES))
def phrases(change, message):
    """Take more answers for refusals."""
    change.gates["refusal"] = {**change.gates["refusal"], **message}


@edit(st.sampled_from(["eval-gates.yaml", "gates/eval-gates.yml", None]))
def move_gates(change, path):
    """Move or remove the gates file."""
    change.gates_file = path


@edit(st.tuples(st.sampled_from(["moved/", "apps/b/deep/"]), st.booleans()))
def move_folder(change, message):
    """Move the folder of the system, or copy it, and have the workflow name the new one."""
    change.left = change.below if change.left is None else change.left
    change.below, change.is_copied = message


@edit(st.sampled_from(["tracked", "input", "gates"]))
def redirect_traces(change, how):
    """Have other answers judged than those of the system."""
    path = "eval/answers.jsonl"
    change.files[change.below + path] = lines([answer(item(qid)) for qid in QIDS])
    if how == "input":
        change.inputs["trace"] = path
    else:
        change.gates["trace"] = path


@edit(st.sampled_from(["gold", "gates", "k"]))
def name_in_the_workflow(change, name):
    """Name other files in the workflow than the gates file does."""
    easy = [{**gold, "gold_claim_substr": []} for gold in change.golds]
    loose = {**change.gates, "gates": {"precision": {"min": 0}}}
    change.files[f"{change.below}eval/easy.jsonl"] = lines(easy)
    change.files[f"{change.below}eval/loose.yml"] = yaml.safe_dump(
        {**loose, "gold": "gold.jsonl", "trace": "../runs/trace.jsonl"}
    )
    change.inputs[name] = {"gold": "eval/easy.jsonl", "gates": "eval/loose.yml", "k": "50"}[name]


@edit(st.sampled_from(["worse", "gone", "unnamed", "renamed"]))
def lower_baseline(change, how):
    """Compare with a run that was worse, or with none."""
    path, regressed = f"{change.below}eval/baseline.json", change.repository.path.parent / "worse.json"
    if how == "worse" and regressed.exists():
        change.files[path] = regressed.read_bytes()
    elif how == "gone" and regressed.exists():
        change.files[path] = None
    elif how == "renamed" and regressed.exists():
        change.files[f"{change.below}eval/b.json"] = regressed.read_bytes()
        change.gates["baseline"] = {"report": "eval/b.json"}
    else:
        change.gates.pop("baseline", None)


@edit(some)
def split(change, qids):
    """Keep some of the gold in a second file, which nothing names."""
    change.files[f"{change.below}eval/gold-2.jsonl"] = lines(change.chosen(qids)).decode()
    change.golds = [gold for gold in change.golds if gold["qid"] not in qids]


@edit(st.just({"signoff": "off"}))
def no_signoff(change, inputs):
    """Switch sign-off off in the workflow."""
    change.inputs |= inputs


# --- what weakens nothing ---


@honest(st.integers(1, 3))
def add_items(change, count):
    """Add questions."""
    pad(change, count)


@honest(st.sampled_from(["precision", "chr"]))
def tighten(change, name):
    """Raise a floor to where it was nearly."""
    change.gates["gates"][name] = {"min": GATES["gates"][name]["min"] + 0.01}


@honest(st.integers(0, 19))
def reorder(change, positions):
    """Write the gold in another order."""
    change.golds = change.golds[positions:] + change.golds[:positions]


@honest(st.just(""))
def repeat_runs(change, _):
    """Ask everything twice, if there is no baseline, which would have to do so too."""
    if "baseline" in change.gates:
        return
    change.traces = [{**row, "run": run} for run in ("1", "2") for row in change.traces]


@honest(st.sampled_from(["apps/new", "tools/x/y"]))
def new_system(change, folder):
    """Add a system with gates and gold of its own."""
    change.files[f"{folder}/eval-gates.yml"] = yaml.safe_dump(
        {"version": 1, "gold": "gold.jsonl", "trace": "trace.jsonl"}
    )
    change.files[f"{folder}/gold.jsonl"] = lines([item("A00")])


@honest(st.just("apps/other"))
def remove_system(change, folder):
    """Remove the other system."""
    change.files |= {f"{folder}/eval-gates.yml": None, f"{folder}/gold.jsonl": None}


@honest(st.just("system.py"))
def other_code(change, path):
    """Change the code of the system."""
    change.files[path] = "# better\n"


@honest(st.just("gates"))
def add_gate(change, name):
    """Add a gate."""
    change.gates[name] = {**change.gates[name], "mrr": {"min": 0.1}}


def apply(change, name, value, faults):
    """Make an edit; what it is about is known once it is known what the system fails."""
    parts = value if isinstance(value, tuple) and value != FAILING else (value,)
    parts = [list(faults) if part == FAILING else part for part in parts]
    (EDITS | HONEST)[name][0](change, parts if isinstance(value, tuple) and value != FAILING else parts[0])


def begin(repository, below, signed, gates):
    """Return a change that changes nothing yet."""
    golds = [item(qid) for qid in QIDS]
    return Change(repository, below, signed, deepcopy(gates), golds, [answer(gold) for gold in golds], GATES["gold"])
