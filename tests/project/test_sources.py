"""docs/sources.md: what stands in its column "here" is there, and nothing that its five sources name is left out."""

import contextlib
import io
import re
import shlex
from functools import cache

import pytest

import rag_eval
from cases import ROOT
from rag_eval import metrics, pytest_plugin
from seams import COMMANDS, MEANING, METRICS, PRESETS, UsageError, build_parser, measure
from seams import load_schema as load
from table import each_row

PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
PARTS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
LATER, NEVER = "not there yet", "no"


def table(part):
    """The rows of a source: its name, where that is here, what to know."""
    lines = [line for line in PARTS[part].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def code(text):
    return re.findall(r"`([^`]+)`", text)


ROWS = [(part, *row) for part in PARTS for row in table(part)]
NAMED = sorted({name for _, _, here, _ in ROWS for name in code(here)})


def is_metric(name):
    try:
        return name in METRICS or bool(measure(name))
    except UsageError:
        return False


def is_key(name):
    """A field of gold, trace, run or report, or a key of eval-gates.yml."""
    first, *rest = name.split(".")
    whole = load("eval-gates")
    return within(whole, whole, [first, *rest]) or (
        first in ("gold", "trace", "run", "report") and bool(rest) and within(load(first), load(first), rest)
    )


def within(schema, whole, names):
    while "$ref" in schema or "items" in schema:
        schema = whole["$defs"][schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema["items"]
    if not names:
        return True
    below = schema.get("properties", {}).get(names[0])
    return below is not None and within(below, whole, names[1:])


@cache
def helped(*command):
    """What a command says of itself."""
    with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.suppress(SystemExit):
        build_parser().parse_args([*command, "--help"])
    return output.getvalue()


def is_command(text):
    """A command, what it takes and its options: all of it stands in its help."""
    words = shlex.split(text)
    if words[0] != "rag-eval" or words[1] not in COMMANDS:
        return False
    depth = 3 if words[1] == "gold" else 2
    shown = helped(*words[1:depth])
    return "usage: " in shown and all(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", shown) for word in words[2:])


def is_there(name):
    python = name == "METRICS" and hasattr(metrics, name)
    python |= name == "rag_eval_report" and hasattr(pytest_plugin, name)
    python |= name.startswith("rag_eval.") and hasattr(rag_eval, name.removeprefix("rag_eval."))
    return python or name in MEANING or (ROOT / name).is_file() or is_metric(name) or is_key(name) or is_command(name)


@each_row("name", NAMED)
def test_what_is_said_to_be_here_is_here(name):
    assert is_there(name)


ABSENT = [
    "recal@k",
    "gold.qids",
    "slices.bye",
    "rag-eval scores",
    "rag-eval score --sweet",
    "rag-eval gold thaw",
    "no.file",
]


@pytest.mark.parametrize("name", [*ABSENT, "rag_eval.scores"])
def test_what_is_not_there_would_be_noticed(name):
    assert not is_there(name)


@each_row(("part", "there", "here", "note"), ROWS, ids=[f"{row[0]}-{row[1][:40]}" for row in ROWS])
def test_a_row_says_where_or_why_not(part, there, here, note):
    assert there
    assert code(here) or here == LATER or (here == NEVER and note)


def test_commands_formats_and_presets_in_the_text_are_there_too():
    assert [name for name in code(PAGE) if name.startswith("rag-eval ") and not is_command(name)] == []
    assert {name for name in re.findall(r"formats? `(\w+)`", PAGE) if name not in helped("score")} == set()
    assert {name for name in re.findall(r"preset `(\w+)`", PAGE) if name not in PRESETS} == set()


SOURCES = {
    "The reference scorer": """
        qid question answerable gold_claim_substr gold_citations constraints q_id retrieved_ids answer_json
        claim citations refusal·token answered refused unanswerable containment citation·hit precision
        under-refusal over-refusal CHR recall@k 0.80 0.75 0.05 0.10 --gold --trace --k --gates pass report.md
        last_report.json pull·request freeze sign-off regressions grounding·broken substrings under-refusal·high
        over-refusal·high index·drift""",
    "Example 08": """
        qaset.json qid answerable gold_ids gold_claim ts chunks answer ok citations hit precision over-refusal
        under-refusal hallucination citation·hit·rate compliance containment OK REFUSAL_OK OVER_REFUSAL
        HALLUCINATION ANS_NO_HIT G1 G5 score.md.py score.md.mjs per-question artifact low·CHR high·under-refusal
        high·over-refusal wrong·ids 10–30 clone production reranker smoke questions·scored""",
    "The core metrics": """
        rel_path heading_path snippets Recall_any@K Recall_all@K required_support_groups multi_hop MRR
        Precision@K scope·miss folder_mode on_with_fallback attribution references cite_newer acknowledge_both
        cite_both groundedness correctness unsupported_claims supported_claims temperature prompt·version
        judge·input spot·check disagreement abstention·accuracy abstained hallucination·rate tag category
        difficulty vault factual reasoning recency/conflict general adversarial p50 p95 total·suite·time
        folder·selection judge·tokens no·chunks skipped docs·processed tokens·per·chunk chunker_version
        embedding_model index_version error·rate timeout·rate empty·response document·type config.json
        metrics.json historical""",
    "The enterprise framework": """
        case_id query query_type user_roles relevant_docs relevance_grades relevant_chunks
        chunk_relevance_grades gold_facts aliases expected_chunks expected_claims forbidden_claims
        expected_citations expected_outcome required_flags forbidden_flags min_citations latency_budget_ms
        NDCG@k 0.6 MRR recall@k 0.7 precision@k F1@k n-gram TF-IDF fact·dispersion unique·token·ratio faq
        research comparison claim·support·rate 0.85 unsupported·claim·count assertion inference general form
        content 0.95 numeric·fabrication AUC FPR·1 detection·rate block·rate instruction_override bypass_intent
        injection_warn_threshold injection_block_threshold false·positive·rate pii_exposure metadata_exposure
        verbatim_context secret_exposure success blocked no_results uncertain latency·OK citations·OK pass·rate
        retrieve generate guardrail_input guardrail_output total --perspective --suite --save-trace --output
        --baseline --verbose reports/evals traces/ prompt embedding·or·chunking guardrail·thresholds""",
    "The RAG-server framework": """
        recall_at_k precision_at_k mrr ndcg_at_k faithfulness answer_correctness answer_relevancy
        ANTHROPIC_API_KEY --no-judge citation_precision citation_recall section_accuracy unanswerable_accuracy
        abstention_false_positive_rate abstention_false_negative_rate phrase·matching latency_p50 latency_p95
        cost_per_query weighted·score objectives --pareto --samples --datasets ragbench qasper squad_v2 hotpotqa
        msmarco golden_qa.json --rag-url /query /health /models/info --config stats export run_evaluation pytest
        eval_runs scorecard weighted_score question_count error_count EvalQuestion GoldPassage EvalResponse
        RetrievedChunk Citation TokenUsage BaseMetric""",
}


@pytest.mark.parametrize("part", SOURCES)
def test_everything_that_a_source_names_has_a_row(part):
    named = " ".join(row[0] for row in table(part)).lower()
    wanted = [name.replace("·", " ").lower() for name in SOURCES[part].split()]
    assert [name for name in wanted if name not in named] == []


SAID = {"reference scorer", "Example 08", "core metrics", "enterprise framework", "RAG-server framework"}


def test_every_metric_that_comes_from_a_source_is_named():
    plain = {name for name in code(PAGE) if name in METRICS}
    plain |= {measure(name).metric.name for name in code(PAGE) if is_metric(name) and name not in METRICS}
    owed = {name for name, metric in METRICS.items() if any(source in metric.source for source in SAID)}
    assert owed - plain == set()
