"""Published figures of real systems and of trec_eval, reproduced from the shared data; faults of real gold sets."""

import json
import os
from pathlib import Path

import pytest

import plain_scorer
from cases import ROOT
from rag_eval import api
from rag_eval.cli.score import reference_scores
from seams import main

DATA = Path(os.environ.get("RAG_EVAL_DATA") or ROOT.parent / "shared" / "data")
WHY = "the shared data sets are not here; RAG_EVAL_DATA names their folder"
pytestmark = [pytest.mark.real, pytest.mark.skipif(not DATA.is_dir(), reason=WHY)]

AZURE = DATA / "azure-nw50"
# Configuration: precision, which equals chr here, and recall_all at 3.
AZURE_FIGURES = {
    "baseline": (0.66, 0.38),
    "gpt35turbo-ada002": (0.60, 0.42),
    "gpt4omini-ada002": (0.60, 0.40),
    "gpt4omini-emb3l-2": (0.58, 0.40),
    "gpt4omini-emb3l": (0.58, 0.40),
    "o3mini-ada002": (0.66, 0.36),
}


@pytest.mark.parametrize("name", AZURE_FIGURES)
def test_a_real_application_gets_the_known_scores(name):
    report = api.score(AZURE / "gold.jsonl", AZURE / f"trace.{name}.jsonl", k=3)
    precision, recall = AZURE_FIGURES[name]
    result = [report.metrics[metric].value for metric in ("precision", "chr", "recall_all@3")]
    assert result == [precision, precision, recall]


@pytest.mark.parametrize("name", AZURE_FIGURES)
def test_a_real_application_gets_the_scores_of_the_reference_scorer(name):
    gold, trace = str(AZURE / "gold.jsonl"), str(AZURE / f"trace.{name}.jsonl")
    gates = {"precision": "0.80", "chr": "0.75", "under": "0.05", "over": "0.10"}
    expected = plain_scorer.score(plain_scorer.rows(gold), plain_scorer.last_by_qid(trace), 3, gates)
    assert reference_scores(api.Options(gold, trace, cutoffs=(3,)))[0] == expected


TREC = DATA / "trec"
CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
NAMES = {
    "map": "map",
    "recip_rank": "mrr",
    **{f"P_{k}": f"precision@{k}" for k in CUTOFFS},
    **{f"recall_{k}": f"recall@{k}" for k in CUTOFFS},
    **{f"ndcg_cut_{k}": f"ndcg@{k}" for k in CUTOFFS},
}
# Our files, trec_eval's output, and how many topics it averages over.
TREC_RUNS = [("test", "out.test.aq"), ("trunc", "out.test.aqc"), ("rellevel2", "out.test.aql")]


def published(file):
    """trec_eval's figures as it printed them, by topic and our name."""
    rows = [line.split() for line in (TREC / "published" / file).read_text(encoding="utf-8").splitlines()]
    return {(topic, NAMES[name]): value for name, topic, value in rows if name in NAMES}


@pytest.fixture(scope="module", params=TREC_RUNS, ids=lambda pair: pair[1])
def trec(request):
    """A report, and what trec_eval says of the same run."""
    files, output = request.param
    report = api.score(TREC / f"{files}_gold.jsonl", TREC / f"{files}_trace.jsonl", k=CUTOFFS)
    return report, published(output)


def test_every_topic_has_trec_evals_figures(trec):
    report, expected = trec
    result = {(case.qid, name): f"{case.scores[name]:.4f}" for case in report.questions for name in NAMES.values()}
    assert result == {position: value for position, value in expected.items() if position[0] != "all"}


def test_the_mean_over_topics_is_trec_evals(trec):
    report, expected = trec
    result = {("all", name): f"{report.metrics[name].value:.4f}" for name in NAMES.values()}
    assert result == {position: value for position, value in expected.items() if position[0] == "all"}


def test_all_figures_of_trec_eval_are_compared(trec):
    _, expected = trec
    assert len(expected) == 4 * len(NAMES) == 4 * 29


# What is wrong with real gold sets, looked at one by one: nothing else is named.
FAULTS = {
    "azure-nw50": {
        "balance": 1,
        "gate-without-items": 1,
        "no-substr": 1,
        "citation-unseen": 11,
        "question-contradiction": 1,
    },
    "mtrag": {"balance": 1, "gate-coarse": 1, "no-substr": 1, "question-duplicate": 1},
    "clapnq": {"gate-coarse": 1, "no-substr": 1},
}


@pytest.mark.parametrize("name", FAULTS)
def test_lint_names_the_faults_of_real_gold_sets_and_little_else(name, capsys):
    traces = [word for path in sorted((DATA / name).glob("trace.*.jsonl")) for word in ("--trace", str(path))]
    arguments = ["gold", "lint", "--gold", str(DATA / name / "gold.jsonl"), *traces, "--format", "json", "--quiet"]
    assert main(arguments) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["counts"] == FAULTS[name]
    if name == "azure-nw50":
        (same,) = [item for item in content["findings"] if item["code"] == "question-contradiction"]
        assert same["qid"] == "q018"
        assert "the same question as 'q008' but differs in gold_citations and expected_answer" in same["message"]


def test_a_keyword_count_on_public_prompts_has_its_known_area(tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "bench")
    import injection

    injection.write(DATA / "injection" / "deepset.jsonl", tmp_path)
    files = [f"--{name}={tmp_path / name}.jsonl" for name in ("gold", "trace")]
    assert main(["score", *files, "--gates", str(tmp_path / "eval-gates.yml"), "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    result = report["metrics"]["injection_auc"]
    assert (round(result["value"], 3), result["n"]) == (0.698, 662)


def imported(tmp_path, capsys, qrels, run):
    """Gold and traces of published judgements and a published run."""
    paths = []
    for kind, source, name in (("trec-qrels", qrels, "gold.jsonl"), ("trec-run", run, "trace.jsonl")):
        assert main(["import", kind, str(TREC / "published" / source)]) == 0
        paths.append(tmp_path / name)
        paths[-1].write_text(capsys.readouterr().out, "utf-8")
    return paths


@pytest.mark.parametrize(
    ("qrels", "run", "terms", "expected", "output"),
    [
        ("qrels.test", "results.test", "", {"Rprec": "r_precision", "bpref": "bpref", "map": "map"}, "out.test.a"),
        (
            "qrels.rel_level", "results.test", "retrieval: {relevant_from: 2, no_relevant: zero}\n",
            {"Rprec": "r_precision", "bpref": "bpref", "map": "map"}, "out.test.aql",
        ),
    ],
)  # fmt: skip
def test_judgements_and_thresholds_count_as_in_trec_eval(tmp_path, capsys, qrels, run, terms, expected, output):
    gold, trace = imported(tmp_path, capsys, qrels, run)
    gates = tmp_path / "eval-gates.yml"
    gates.write_text(f"version: 1\n{terms}gates: {{map: {{min: 0}}}}\n")
    report = api.score(gold, trace, gates)
    rows = (line.split() for line in (TREC / "published" / output).read_text().splitlines())
    published = {row[0]: float(row[2]) for row in rows if row[1] == "all" and row[0] in expected}
    result = {theirs: report.metrics[ours].value for theirs, ours in expected.items()}
    assert result == pytest.approx(published, abs=6e-5)
