"""Reports beside a baseline for the tests of renderings: a real pair of runs, and one out to break a rendering."""

import json

from cases import ROOT, gold_row, write_rows
from rag_eval.analysis.baseline import Compared, Flip
from seams import render, score_files, with_verdict

EXAMPLE = ROOT / "examples" / "quickstart"
COMMIT = "9f2c1ab" + "0" * 33

# Every outcome of every kind of gate: a bound on the value, on the interval, on a slice, and a margin.
GATES = """\
version: 1
k: 3
gates:
  precision: {min: 0.85, confidence: 0.95, max_drop: 0.02}
  chr: {min: 0.75, confidence: 0.95}
  compliance: {min: 0.70, confidence: 0.95}
  under_refusal: {max: 0.05, severity: warning}
  over_refusal: {max: 0.10, max_rise: 0.05, test: none}
  recall_all@3: {min: 0.867, max_drop: 0.02}
  recall_all@7: {max_drop: 0.10}
  section_accuracy: {min: 0.50, max_drop: 0.10, when_no_data: skip}
  mrr: {max_drop: 0.45}
slices:
  by: [difficulty, answerable]
  min_n: 4
  gates:
    "difficulty=*": {precision: {min: 0.70}}
    "answerable=true": {chr: {max_drop: 0.02}}
"""
BASELINE = "baseline: {report: before/report.json, trace: before/trace.jsonl}\n"
REFUSED = {"claim": "not in context", "citations": []}


def rows_of(name):
    return [json.loads(line) for line in (EXAMPLE / name).read_text("utf-8").splitlines()]


def compared_files(folder):
    """The good run as the baseline, but for one answer, and the bad run under gold that has changed since."""
    golds, before = rows_of("gold.jsonl"), {row["qid"]: row for row in rows_of("good.jsonl")}
    before["Q12"]["answer_json"] = {"claim": "Two brothers founded it.", "citations": ["intro#1"]}
    write_rows(folder / "gold.jsonl", golds)
    write_rows(folder / "before" / "trace.jsonl", list(before.values()))
    write_rows(folder / "before" / "run.json", [{"system_commit": COMMIT}])
    (folder / "gates.yml").write_text(GATES.replace("  recall_all@7: {max_drop: 0.10}\n", ""), "utf-8")
    recorded = score_files("gold.jsonl", "before/trace.jsonl", "gates.yml")
    (folder / "before" / "report.json").write_text(render(recorded, "json"), "utf-8")
    (folder / "gates.yml").write_text(GATES + BASELINE, "utf-8")
    golds[2]["gold_claim_substr"] = ["within a week"]
    asked = {"qid": "Q15", "question": "Who owns Parcelo?", "answerable": False, "difficulty": "hard"}
    write_rows(folder / "gold.jsonl", [*golds[:13], gold_row(**asked)])
    after = [row for row in rows_of("bad.jsonl") if row["qid"] != "Q14"]
    write_rows(folder / "trace.jsonl", [*after, {"qid": "Q15", "retrieved_ids": [], "answer_json": REFUSED}])


def compared(folder):
    """Their report; its paths start from ``folder``."""
    compared_files(folder)
    return score_files("gold.jsonl", "trace.jsonl", "gates.yml")


SLICED = """\
version: 1
gates: {precision: {min: 0.5, max_drop: 0.1}, exact_refusal: {max_drop: 0.1}}
slices:
  by: [meta.team, category, tags]
  min_n: 2
  gates:
    "meta.team=*": {precision: {min: 0.5}, chr: {max_drop: 0.1}}
statistics: {inconclusive: fail}
baseline: {report: base.json}
"""


def sliced(folder, texts):
    """A report with slices of hostile names, beside a baseline of hostile provenance."""
    golds = [
        gold_row(qid=text, question=text, gold_citations=["a"], category=text, tags=[text, "all"], meta={"team": text})
        for text in texts
    ]
    write_rows(folder / "gold.jsonl", golds)
    for index, file in enumerate(("base.jsonl", "trace.jsonl")):
        answers = [{"claim": "yes", "citations": ["ab"[(number + index) % 2]]} for number in range(len(texts))]
        rows = [
            {"qid": text, "retrieved_ids": ["a", "b"], "answer_json": answer}
            for text, answer in zip(texts, answers, strict=True)
        ]
        write_rows(folder / file, rows)
    (folder / "gates.yml").write_text(SLICED.replace("baseline: {report: base.json}\n", ""), "utf-8")
    recorded = score_files("gold.jsonl", "base.jsonl", "gates.yml")
    (folder / "base.json").write_text(render(recorded, "json"), "utf-8")
    (folder / "gates.yml").write_text(SLICED, "utf-8")
    return hostile(score_files("gold.jsonl", "trace.jsonl", "gates.yml"), texts)


def hostile(report, texts):
    """A report of which every free text about baseline, gates and slices is one of ``texts``."""
    text = [texts[index % len(texts)] for index in range(7)]
    gates = tuple(gate._replace(why=gate.why and text[0]) for gate in report.gates)
    ours = report.baseline or Compared("", "0" * 64, "", "", 1, 0, 0, 0, (), rescored=False)
    baseline = ours._replace(path=text[1], ref=text[2], commit=text[3], changed=1, incomparable=tuple(texts))
    effects = tuple(effect._replace(name=text[4], gold=0.25) for effect in report.effects)
    flips = (*report.flips, Flip(text[5], text[6], text[0], text[1]), Flip("Q", None, text[2], "OK"))
    return with_verdict(report._replace(gates=gates, baseline=baseline, effects=effects, flips=flips))
