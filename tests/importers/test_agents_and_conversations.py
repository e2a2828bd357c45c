"""Several retrievals of one answer, and the turns of a conversation, in the form of each tracing tool."""

from __future__ import annotations

import json

import pytest

from cases import gold_row, write_rows

BASE = 1795404763_000_000_000
CHAT = [("C7", "Can I visit?", "Yes."), ("C7", "Who pays?", "You."), ("", "Alone?", "No.")]


def span(number, parent, kind, start, end, **more):
    """One step as a plain record: trace, ids, kind, milliseconds, and what it says."""
    return {"id": number, "parent": parent, "kind": kind, "start": start, "end": end, **more}


def agent():
    """An agent that searches twice; a reranker orders what the second search found."""
    return [
        span(1, 0, "agent", 0, 90, asked="Notice period?", said="30 days."),
        span(2, 1, "retriever", 1, 11, asked="notice period", found=["h1", "h9"]),
        span(3, 1, "retriever", 20, 40, asked="notice probation", found=["h4", "h1", "h5"]),
        span(4, 1, "reranker", 40, 50, asked="notice probation", found=["h4", "h5"]),
        span(5, 1, "llm", 60, 90, asked="Notice period?", said="30 days."),
    ]


def chat():
    """Two turns of a conversation, in the wrong order, and a question of its own."""
    for number, (session, asked, output) in reversed(list(enumerate(CHAT))):
        yield f"t{number}", session, [span(1, 0, "agent", number * 1000, number * 1000 + 9, asked=asked, said=output)]


def otlp(trace, session, steps):
    for step in steps:
        kind = {"agent": "AGENT", "llm": "LLM"}.get(step["kind"], step["kind"].upper())
        result = {"retriever": "retrieval.documents", "reranker": "reranker.output_documents"}.get(step["kind"])
        values = {
            "openinference.span.kind": kind,
            **({"session.id": session} if session else {}),
            **({"input.value": step["asked"]} if "asked" in step else {}),
            **({"output.value": step["said"]} if "said" in step else {}),
            **{f"{result}.{index}.document.id": name for index, name in enumerate(step.get("found", ()))},
        }
        attributes = [{"key": name, "value": {"stringValue": value}} for name, value in values.items()]
        ids = {"traceId": trace.encode().hex().ljust(32, "0"), "spanId": f"{step['id']:016x}"}
        parent = {"parentSpanId": f"{step['parent']:016x}"} if step["parent"] else {}
        times = {f"{name}TimeUnixNano": str(BASE + step[name] * 10**6) for name in ("start", "end")}
        body = {**ids, **parent, "name": step["kind"], **times, "attributes": attributes}
        yield {"resourceSpans": [{"scopeSpans": [{"spans": [body]}]}]}


def stamp(milliseconds):
    return f"2026-11-23T03:00:{milliseconds // 1000:02}.{milliseconds % 1000:03}Z"


def phoenix(trace, session, steps):
    for line in otlp(trace, session, steps):
        [body] = line["resourceSpans"][0]["scopeSpans"][0]["spans"]
        step = next(item for item in steps if f"{item['id']:016x}" == body["spanId"])
        yield {
            "context": {"trace_id": body["traceId"], "span_id": body["spanId"]},
            "parent_id": body.get("parentSpanId"), "name": body["name"], "span_kind": "UNKNOWN",
            "start_time": stamp(step["start"]), "end_time": stamp(step["end"]), "status_code": "OK",
            "attributes": {pair["key"]: pair["value"]["stringValue"] for pair in body["attributes"]},
        }  # fmt: skip


def langfuse(trace, session, steps):
    for step in steps:
        documents = [{"id": name, "text": name} for name in step.get("found", ())]
        kind = {"llm": "GENERATION", "reranker": "SPAN"}.get(step["kind"], step["kind"].upper())
        attributes = {"openinference.span.kind": "RERANKER"} if step["kind"] == "reranker" else {}
        yield {
            "id": f"{trace}-{step['id']}", "traceId": trace, "type": kind, "name": step["kind"],
            "parentObservationId": f"{trace}-{step['parent']}" if step["parent"] else None,
            "sessionId": session or None,
            "startTime": stamp(step["start"]), "endTime": stamp(step["end"]), "metadata": {"attributes": attributes},
            "input": step.get("asked"), "output": json.dumps(documents) if documents else step.get("said"),
        }  # fmt: skip


def langsmith(trace, session, steps):
    for step in steps:
        documents = [{"page_content": name, "metadata": {"id": name}} for name in step.get("found", ())]
        kind = {"agent": "chain", "reranker": "tool"}.get(step["kind"], step["kind"])
        yield {
            "id": f"{trace}-{step['id']}", "trace_id": trace, "run_type": kind, "name": step["kind"],
            "status": "success",
            "parent_run_id": f"{trace}-{step['parent']}" if step["parent"] else None,
            "start_time": stamp(step["start"]), "end_time": stamp(step["end"]),
            "extra": {"metadata": {"session_id": session} if session else {}}, "inputs": {"query": step.get("asked")},
            "outputs": {"documents": documents} if documents else {"answer": step.get("said")},
        }  # fmt: skip


FORMS = [otlp, phoenix, langfuse, langsmith]


@pytest.fixture
def imported(command, tmp_path):
    """Import lines: the rows, and stderr."""

    def run(form, lines, *words):
        path = write_rows(tmp_path / "export.jsonl", lines)
        code, out, err = command("import", form.__name__, path, *words)
        assert code == 0, err
        return [json.loads(line) for line in out.splitlines()], err

    return run


@pytest.mark.parametrize("form", FORMS)
def test_each_retrieval_of_an_agent_is_kept(imported, form):
    [row], err = imported(form, form("a", "", agent()))
    first = {"query": "notice period", "ids": ["h1", "h9"], "ms": 10.0}
    reranked = {"query": "notice probation", "ids": ["h4", "h5"], "ms": 30.0}
    if form is langsmith:  # which has no rerankers
        reranked = {"query": "notice probation", "ids": ["h4", "h1", "h5"], "ms": 20.0}
    assert row["retrievals"] == [first, reranked]
    assert row["retrieved_ids"] == ["h1", "h9", "h4", "h5"]
    assert [chunk["id"] for chunk in row["chunks"]] == row["retrieved_ids"]
    assert "traces with several retrievals: retrievals has each" in err


@pytest.mark.parametrize("form", FORMS)
def test_a_single_retrieval_is_no_list_of_retrievals(imported, form):
    [row], _ = imported(form, form("a", "", [agent()[0], agent()[1], agent()[4]]))
    assert (row["retrieved_ids"], "retrievals" in row) == (["h1", "h9"], False)


def test_a_search_that_finds_nothing_is_a_retrieval_too(imported):
    steps = agent()[:3]
    steps[1]["found"] = []
    lines = list(langsmith("a", "", steps))
    lines[1]["outputs"] = {"documents": []}
    [row], _ = imported(langsmith, lines)
    assert [item["ids"] for item in row["retrievals"]] == [[], ["h4", "h1", "h5"]]


def test_what_an_agent_searched_for_is_scored(command, imported, tmp_path):
    [row], _ = imported(otlp, otlp("a", "", agent()))
    gold = gold_row(question="Notice period?", gold_citations=["h4"])
    files = {"gold": write_rows(tmp_path / "g.jsonl", [gold]), "trace": write_rows(tmp_path / "t.jsonl", [row])}
    (tmp_path / "gates.yml").write_text("version: 1\ngates: {union_recall: {min: 0}}\n")
    words = [f"--{name}={path}" for name, path in {**files, "gates": tmp_path / "gates.yml"}.items()]
    metrics = json.loads(command("score", *words, "--format", "json")[1])["metrics"]
    values = {name: metrics[name]["value"] for name in ("union_recall", "first_evidence_hop", "wasted_hops")}
    assert values == {"union_recall": 1.0, "first_evidence_hop": 2.0, "wasted_hops": 0.5}


def turns(rows):
    return {row["q"]: (row.get("qid"), row.get("conversation"), row.get("turn")) for row in rows}


@pytest.mark.parametrize("form", FORMS)
def test_turns_of_a_session_pair_with_the_turns_of_the_gold_set(imported, tmp_path, form):
    golds = [
        gold_row(qid="C7-1", question="Could one visit?", conversation="C7", turn=1),
        gold_row(qid="C7-2", question="Whose money?", conversation="C7", turn=2),
        gold_row(qid="A", question="Alone?"),
    ]
    gold = write_rows(tmp_path / "gold.jsonl", golds)
    lines = [line for trace in chat() for line in form(*trace)]
    rows, err = imported(form, lines, "--gold", gold)
    assert turns(rows) == {
        "Can I visit?": ("C7-1", "C7", 1), "Who pays?": ("C7-2", "C7", 2), "Alone?": ("A", None, None)
    }  # fmt: skip
    assert "read as qid, by the gold set: session and turn, 2 times" in err


@pytest.mark.parametrize("form", FORMS)
def test_without_a_qid_a_turn_pairs_by_its_question_as_before(imported, form):
    rows, err = imported(form, [line for trace in chat() for line in form(*trace)])
    assert set(turns(rows).values()) == {(None, None, None)}
    assert "left out: the conversation of a trace (the trace has no qid: give --gold or record its qid), 2 times" in err


def test_a_turn_keeps_its_number_if_earlier_ones_are_before_the_window(imported, tmp_path):
    golds = [gold_row(qid=asked, question=asked) for _, asked, _ in CHAT]
    gold = write_rows(tmp_path / "gold.jsonl", golds)
    lines = [line for trace in chat() for line in langfuse(*trace)]
    rows, _ = imported(langfuse, lines, "--gold", gold, "--since", stamp(1000))
    assert turns(rows) == {"Who pays?": ("Who pays?", "C7", 2), "Alone?": ("Alone?", None, None)}
