"""Real exports in other containers, cut, empty, and given to the importer of another tool."""

from __future__ import annotations

import gzip
import json
import shlex

import pytest

from cases import ROOT
from table import each_row

FOREIGN = ROOT / "tests" / "foreign"
REAL = sorted(folder for folder in FOREIGN.iterdir() if folder.name.startswith("real-"))
ROWS = [folder for folder in REAL if (folder / "expected").read_text("utf-8").startswith("exit 0")]
JSON = [folder for folder in ROWS if not list(folder.glob("*.csv"))]


def inputs(folder):
    return [path for path in sorted(folder.iterdir()) if path.name not in ("args", "expected")]


def words(folder):
    return shlex.split((folder / "args").read_text("utf-8"))


def values(data):
    """The JSON values of a file: one, or one a line."""
    try:
        return [json.loads(data)]
    except ValueError:
        decoder, text, position, result = json.JSONDecoder(), data.decode(), 0, []
        while position < len(text):
            value, position = decoder.raw_decode(text, position)
            result.append(value)
            position += len(text[position:]) - len(text[position:].lstrip())
        return result


def pretty(data):
    return "\n".join(json.dumps(value, indent=2) for value in values(data)).encode()


def one_line(data):
    return "".join(json.dumps(value) + "\n" for value in values(data)).encode()


def as_array(data):
    result = values(data)
    return json.dumps(result[0] if len(result) == 1 and isinstance(result[0], list) else result).encode()


def as_lines(data):
    result = values(data)
    rows = result[0] if len(result) == 1 and isinstance(result[0], list) else result
    return "".join(json.dumps(row) + "\r\n" for row in rows).encode()


def packed(data):
    zstd = pytest.importorskip("backports.zstd")
    return zstd.compress(data)


CONTAINERS = {
    "gz": (gzip.compress, ROWS), "zst": (packed, ROWS), "bom": (lambda data: b"\xef\xbb\xbf" + data, ROWS),
    "crlf": (lambda data: data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"), ROWS),
    "blank lines": (lambda data: b"\n\n" + data + b"\n\n", JSON), "pretty": (pretty, JSON),
    "one line": (one_line, JSON), "array": (as_array, JSON), "lines": (as_lines, JSON),
}  # fmt: skip


def changed(folder, to, damage):
    to.mkdir(parents=True)
    for path in inputs(folder):
        (to / path.name).write_bytes(damage(path.read_bytes()))
    return words(folder)


@pytest.mark.parametrize("container", CONTAINERS)
def test_rows_are_the_same_in_every_container(command, monkeypatch, tmp_path, container):
    damage, folders = CONTAINERS[container]
    failed = []
    for folder in folders:
        args = changed(folder, tmp_path / folder.name, damage)
        monkeypatch.chdir(tmp_path / folder.name)
        code, out, err = command("import", *args)
        expected = (folder / "expected").read_text("utf-8").split("--- stdout\n")[1].split("--- stderr\n")[0]
        if (code, out) != (0, expected):
            failed.append((folder.name, code, err[:300]))
    assert "\n".join(map(str, failed)) == ""


@pytest.mark.parametrize(
    "content", [b"", b"\n \n", b"[]", b"{}", b"null\n", b"[null]", b"\xef\xbb\xbf", b"\x1f\x8b\x08"]
)
def test_a_file_without_anything_in_it_is_named(command, monkeypatch, tmp_path, content):
    failed = []
    for folder in REAL:
        args = changed(folder, tmp_path / folder.name, lambda _: content)
        monkeypatch.chdir(tmp_path / folder.name)
        for form in (args[0], "auto"):
            code, out, err = command("import", form, *args[1:])
            named = any(path.name in err for path in inputs(folder))
            if (code, out, named) != (2, "", True) or "defect" in err or "unexpected type" in err:
                failed.append((folder.name, form, code, err))
    assert "\n".join(map(str, failed)) == ""


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_off_is_a_problem_with_its_line(command, monkeypatch, tmp_path, share):
    failed = []
    for folder in JSON:

        def cut(data):
            position = int(len(data) * share)
            while (
                position < len(data) and data[position - 1 : position] in b"\n}"
            ):  # whole lines, or a value that is complete
                position += 1
            return data[:position]

        args = changed(folder, tmp_path / folder.name, cut)
        monkeypatch.chdir(tmp_path / folder.name)
        code, out, err = command("import", *args)
        lines = [line for line in err.splitlines() if any(line.startswith(f"{path.name}:") for path in inputs(folder))]
        cut_off = any(word in err for word in ("in the middle of a JSON value", "is not valid JSON"))
        if (code, out, bool(lines), cut_off) != (2, "", True, True):
            failed.append((folder.name, code, err[:300]))
    assert "\n".join(map(str, failed)) == ""


def test_the_file_of_another_tool_names_the_command_for_it(command, monkeypatch, tmp_path):
    """Every real export to every other importer: the problem names the tool that it is of, or it is read as well."""
    failed = []
    formats = sorted({words(folder)[0] for folder in REAL})
    for folder in REAL:
        monkeypatch.chdir(folder)
        ours, *files = words(folder)
        files = [word for word in files if (folder / word).exists()]
        for other in formats:
            related = {ours.split("-")[0], other.split("-")[0]}
            if len(related) == 1:
                continue
            code, out, err = command("import", other, *files)
            if code == 0:
                failed += [] if related == {"otlp", "phoenix"} else [(folder.name, other, "was read")]
            elif f"rag-eval import {ours.split('-')[0]}" not in err or out:
                failed.append((folder.name, other, err[:300]))
    assert "\n".join(map(str, failed)) == ""


@pytest.mark.parametrize("folder", ROWS, ids=lambda folder: folder.name)
def test_auto_chooses_the_importer_of_the_tool(command, monkeypatch, folder):
    monkeypatch.chdir(folder)
    name, *files = words(folder)
    code, out, err = command(
        "import", "auto", *files, *(["--as", "gold"] if name.endswith(("gold", "dataset")) else [])
    )
    wanted = (folder / "expected").read_text("utf-8").split("--- stdout\n")[1].split("--- stderr\n")[0]
    kinds = {name, f"{name}-gold", f"{name}-trace", name.removesuffix("-trace")}
    assert code == 0, err
    chosen = err.split(" is read as ")[1].split(":")[0]
    assert (chosen, out == wanted or chosen != name) == (chosen if chosen in kinds else name, True)


def langsmith_row(command, path, inputs=None, outputs=None, **more):
    """The trace row of a run of LangSmith, by the fields of its inputs and outputs."""
    ids = {"id": "r1", "trace_id": "r1", "run_type": "chain", "name": "rag", "end_time": 1}
    run = {**ids, "inputs": inputs or {"question": "Why?"}, "outputs": outputs or {"answer": "So."}, **more}
    path.write_text(json.dumps(run), "utf-8")
    code, out, err = command("import", "langsmith", path)
    assert code == 0, err
    return json.loads(out)


def chunk_of(command, path, document):
    return langsmith_row(command, path, outputs={"answer": "So.", "documents": [document]})["chunks"][0]


def test_a_step_without_a_name_is_no_retriever(command, tmp_path):
    assert "chunks" not in langsmith_row(command, tmp_path / "runs.jsonl", outputs={"output": ["So."]}, name=None)


def test_a_question_that_failed_before_any_step_is_a_row(command, tmp_path):
    row = langsmith_row(command, tmp_path / "runs.jsonl", outputs={"draft": 1}, run_type="tool", error="No index")
    assert (row["q"], row["error"], row["ok"]) == ("Why?", "No index", False)


def test_null_is_no_answer_of_mlflow(command, tmp_path):
    values = {"mlflow.spanInputs": '"Why?"', "mlflow.spanOutputs": "null"}
    span = {"span_id": "01", "name": "rag", "status": {"code": "ERROR", "message": "No index"}, "attributes": values}
    path = tmp_path / "traces.json"
    path.write_text(json.dumps({"info": {"trace_id": "t"}, "data": {"spans": [span]}}), "utf-8")
    row = json.loads(command("import", "mlflow", path)[1])
    assert (row.get("answer_json"), row["error"]) == (None, "No index")


MESSAGE = {"role": "user", "content": "Why?"}
QUESTIONS = [
    *({name: "Why?"} for name in ("question", "query", "q", "input", "user_input", "prompt", "text", "value")),
    *({name: [MESSAGE]} for name in ("messages", "args")),
    *({name: {"query": "Why?"}} for name in ("inputs", "kwargs")),
    *({name: MESSAGE} for name in ("message", "new_message")),
    *({name: "Why?"} for name in ("user_prompt", "query_str", "str_or_query_bundle")),
    {"query_bundle": {"query_str": "Why?", "embedding": None}},
    {"retriever": {"top_k": 3}, "prompt": {"question": "Why?"}},
    {"messages": [["system", "Be brief."], ["user", "Why?"]]},
    *({"messages": [{"role": role, "content": "Why?"}]} for role in ("human", "HumanMessage", "HumanMessageChunk")),
]
ANSWERS = [
    *({name: "So."} for name in ("answer", "output", "response", "result", "output_text", "content", "text", "value")),
    *({"messages": [MESSAGE, {"role": role, "content": "So."}]} for role in ("assistant", "ai", "model", "AIMessage")),
    {"messages": [MESSAGE, {"role": "AIMessageChunk", "content": "So."}]},
    *({name: {"output": "So."}} for name in ("outputs", "message", "kwargs", "return_values")),
    {"final_output": "So."},
    *({"llm": {"replies": replies}} for replies in (["So."], [{"role": "assistant", "content": [{"text": "So."}]}])),
    {"messages": [["user", "Why?"], ["ai", "So."]]},
]


@each_row(("inputs", "outputs"), [*((item, None) for item in QUESTIONS), *((None, item) for item in ANSWERS)])
def test_question_and_answer_are_found_by_every_usual_name(command, tmp_path, inputs, outputs):
    row = langsmith_row(command, tmp_path / "runs.jsonl", inputs, outputs)
    assert (row["q"], row["answer_json"]["claim"]) == ("Why?", "So.")


CHUNK_NAMES = ("chunk_id", "chunkId", "id", "_id", "node_id", "uuid")
DOCUMENT_NAMES = "source file_name filename file_path url doc_uri title document_id doc_id rel_path".split()


@each_row(
    ("document", "field", "value"),
    [
        *(({name: "x1", "text": "T."}, "id", "x1") for name in ("id", "id_", "node_id", "chunk_id")),
        *(({"text": "T.", "metadata": {name: "x1"}}, "id", "x1") for name in CHUNK_NAMES),
        *(({"id": "c", "text": "T.", "metadata": {name: "d1"}}, "doc_id", "d1") for name in DOCUMENT_NAMES),
        *(({"id": "c", name: "T."}, "text", "T.") for name in ("text", "page_content", "pageContent", "content")),
        *(({"id": "c", "text": "T.", name: 0.5}, "score", 0.5) for name in ("score", "relevance_score")),
    ],
)
def test_a_chunk_is_read_by_every_usual_name(command, tmp_path, document, field, value):
    assert chunk_of(command, tmp_path / "runs.jsonl", document)[field] == value


@each_row("name", ["context", "contexts", "source_documents", "documents", "retrieved", "chunks"])
def test_the_chunks_of_outputs_are_found_by_every_usual_name(command, tmp_path, name):
    outputs = {"answer": "So.", name: [{"id": "c1", "text": "T."}]}
    assert langsmith_row(command, tmp_path / "runs.jsonl", outputs=outputs)["retrieved_ids"] == ["c1"]


@each_row("name", ["qid", "rag_eval.qid", "question_id", "case_id", "example_id", "dataset_item_id"])
def test_the_qid_is_found_by_every_usual_name(command, tmp_path, name):
    row = langsmith_row(command, tmp_path / "runs.jsonl", extra={"metadata": {name: "Q7"}})
    assert row["qid"] == "Q7"


RECOGNISED = """
otlp . resourceSpans; resourceLogs
. promptfoo prompts tests; providers tests
promptfoo-trace promptfoo evalId results; results config; promptIdx testIdx
deepeval-trace deepeval testCases; testRunData; test_cases; input actual_output; input retrieval_context
deepeval-trace deepeval test_results; input actualOutput; input retrievalContext
. deepeval input expected_output
mlflow . info data; trace_id trace; request_id trace
phoenix . start_time_unix_nano; context span_kind
langfuse . trace observations; observations; traceId parentObservationId; trace_id parent_observation_id
langfuse . id traceId startTime; timestamp input output sessionId; batch
. langfuse-dataset datasetId expectedOutput; input expectedOutput
langsmith . run_type; runs cursors; items next_cursor; post; patch
table table-gold inputs outputs ground_truth; inputs outputs reference_outputs
. langsmith-dataset inputs outputs dataset_id; inputs outputs
ragas-trace ragas user_input; question contexts; question ground_truth
azure-eval azure-eval-gold rows metrics; question truth; inputs.query; query response
azure-eval . conversation; inputs.conversation
azure-eval azure-eval-gold datasource_item
langfuse langfuse-dataset experimentItemId traceId
langfuse . datasetRunItems; datasetItemId traceId
. promptfoo vars assert; __expected; __expected1
. example08 q gold_ids
. beir _id text; queries relevant_docs; query_id doc_id relevance; query-id corpus-id
weave . op_name trace_id
. mlflow-dataset inputs expectations
deepeval-trace deepeval scenario turns
. giskard reference_context conversation_history
table giskard agent_answer reference_context conversation_history
. core-metrics gold_supports; question expected_behavior
core-metrics-trace . references folder_mode
phoenix . context.trace_id name; context.trace_id span_kind; context.trace_id parent_id
phoenix . context.trace_id document_position; trace_id project_id spans
. phoenix-dataset id node_id; example_id input output metadata; examples version_id
"""


@each_row(
    ("trace", "gold", "keys"),
    [(*line.split()[:2], keys.split()) for line in RECOGNISED.split("\n") if line
     for keys in line.split(maxsplit=2)[2].split(";")],
)  # fmt: skip
def test_an_export_is_recognised_by_its_keys(command, tmp_path, trace, gold, keys):
    path = tmp_path / "export.jsonl"
    answered = {"response": "A."} if trace in ("ragas-trace", "deepeval-trace", "azure-eval") else {}
    record = {**dict.fromkeys(keys), **answered}
    path.write_text(json.dumps(record) + "\n", "utf-8")
    for kind, form, other in (("trace", trace, gold), ("gold", gold, trace)):
        err = command("import", "auto", path, "--as", kind)[2]
        lacks = f", which has no {'gold items' if kind == 'gold' else 'traces'}" if form == "." else ""
        assert f"{path} is read as {other if lacks else form}{lacks}: it has the key" in err
        assert f" {keys[0]}" in err
        assert (f"reads it as {other})" in err, "reads it as" in err) == ("." not in (form, other),) * 2


@each_row(
    ("content", "form", "why"),
    [
        ('{"context": {"trace_id": "0xab"}}', "otlp", "spans with a context"),
        ('{"context": {"trace_id": "ab"}}', "phoenix", "spans with a context"),
        ('{"name": "x", "context": {"trace_id": "0xab", "span_id": "', "otlp", "spans with a context"),
        ('{"batch": {"scopeSpans": []}, "a": 1}', "langfuse", "the key batch"),
        ('{"x": [{"scopeSpans": []}]}', "otlp", "spans by resource"),
        ("Q1 Q0 d1 1 2.5 bm25\n", "trec-run", "a rank and a score in columns four and five"),
        ("Q1 Q0 d1 1 2.5\n", "trec-run", "a rank and a score in columns four and five"),
        ("Q1 0 d1 -1\n", "trec-qrels", "four columns, the last is an integer"),
        ("Q1 0 d#1 1\n", "trec-qrels", "four columns, the last is an integer"),
        ('{"q1": {"d1": 1, "d2": 0}, "q2": {"d', "trec-qrels", "grades by question"),
        ('{"q1": {"d1": 1.5}}', "trec-run", "scores by question"),
        ('{"queries": {"a": "Why?", "b": "Wh', "beir", "queries by id"),
        ("query-id\tcorpus-id\tscore\n", "beir", "the header query-id, corpus-id"),
        ("colour;size\nred;2\n", "table", "a header of columns"),
        ('{"inputs": "x", "outputs": "y"}', "table", "the fields of a table"),
        ('{"inputs.question": "x", "outputs.answer": "y"}', "langsmith-dataset", "the keys inputs.* and outputs.*"),
        ('{"ask": 1, "rows": [{"query": "x", "expected": "y"}]}', "table-gold", "the fields of a table"),
        ("question\tanswer\ttruth\nWhy?\tSo.\tSo.\n", "azure-eval", "the columns question and truth"),
        ("prompts: [a]\ntests: []\n", "promptfoo", "the keys prompts and tests"),
        ('[{"user_input": "Why?", "response": "So."}]', "ragas-trace", "the key user_input"),
        ('[{"user_input": "Why?", "response": null}]', "ragas", "the key user_input"),
        ('[{"user_input": ["Why?"]}]', "ragas-trace", "the key user_input"),
        ('{"data": [{"run_type": "llm", "inputs": {"a": [1, {"b": "}"}]}, "outp', "langsmith", "the key run_type"),
    ],
)
def test_a_file_is_recognised_by_its_content(command, tmp_path, content, form, why):
    path = tmp_path / "export"
    path.write_text(content, "utf-8")
    assert f"{path} is read as {form}: it has {why}" in command("import", "auto", path)[2]


@each_row("content", ["text\n", "a b c d\n"])
def test_a_text_without_fields_must_be_exported_again(command, tmp_path, content):
    path = tmp_path / "export"
    path.write_text(content, "utf-8")
    code, _, err = command("import", "auto", path)
    hint = "has no known format: it is neither JSON, CSV nor YAML. Export the data again as one of them"
    assert (code, hint in err) == (2, True), err


@each_row("content", ['{"a": 1}', "[1]", '{"inputs": "x", "score": 1}'])
def test_a_file_without_a_known_format_names_the_way_to_map_it(command, tmp_path, content):
    path = tmp_path / "export"
    path.write_text(content, "utf-8")
    code, _, err = command("import", "auto", path)
    assert (code, "has no known format" in err, ". Map its fields: rag-eval import table" in err) == (2, True, True), (
        err
    )


def test_questions_that_a_run_of_trec_does_not_answer_are_counted(command, tmp_path):
    gold = {"question": "?", "answerable": True, "gold_claim_substr": [], "gold_citations": ["d1"]}
    rows = "".join(json.dumps({"qid": qid, **gold, "question": qid}) + "\n" for qid in ("1", "2", "3"))
    (tmp_path / "gold.jsonl").write_text(rows, "utf-8")
    (tmp_path / "run.txt").write_text("1 Q0 d1 1 2.5 bm25\n9 Q0 d1 1 2.5 bm25\n", "utf-8")
    code, out, err = command("import", "trec-run", tmp_path / "run.txt", "--gold", tmp_path / "gold.jsonl")
    assert (code, json.loads(out)["qid"]) == (0, "1")
    assert "questions of the gold set that the run does not answer, 2 times" in err
    assert "left out: topics that the gold set does not have (--gold)" in err


@each_row(
    ("lines", "found"),
    [
        (["q1,a,Why?,So.,T.", "q1,a,Why?,,U."], [("q1", "a", "So.", ["T.", "U."])]),
        (["q1,a,Why?,So.,T.", "q1,a,Why?,So.,U."], [("q1", "a", "So.", ["T.", "U."])]),
        (["q1,a,Why?,So.,T.", "q1,a,Why?,So.,T."], [("q1", "a", "So.", ["T."]), ("q1", "a", "So.", ["T."])]),
        (["q1,a,Why?,So.,T.", "q2,a,Why?,,U."], [("q1", "a", "So.", ["T."]), ("q2", "a", "", ["U."])]),
        (["q1,a,Why?,,T."], None),
        (["q1,a,Why?,So.,T.", "q1,a,Why?,No.,U."], [("q1", "a", "So.", ["T."]), ("q1", "a", "No.", ["U."])]),
        (["q1,a,Why?,So.,T.", "q1,b,Why?,No.,U."], [("q1", "a", "So.", ["T."]), ("q1", "b", "No.", ["U."])]),
    ],
)  # fmt: skip
def test_records_of_one_qid_question_and_run_are_one_trace(command, tmp_path, lines, found):
    (tmp_path / "rows.csv").write_text("\n".join(["qid,run,question,answer,chunks", *lines]) + "\n", "utf-8")
    fields = "".join(f"{name}: {name}\n" for name in ("qid", "run", "question", "answer", "chunks"))
    (tmp_path / "map.yml").write_text(fields, "utf-8")
    code, out, err = command("import", "table", tmp_path / "rows.csv", "--map", tmp_path / "map.yml")
    rows = [json.loads(line) for line in out.splitlines()]
    values = [(r["qid"], r["run"], r["answer_json"]["claim"], [c["text"] for c in r["chunks"]]) for r in rows]
    assert (code, values) == ((2, []) if found is None else (0, found)), err


def test_citations_of_a_table_are_a_list_or_ids_with_commas(command, tmp_path):
    (tmp_path / "rows.csv").write_text('question,answer,cited\nWhy?,So.,"a, b"\nWho?,Me.,"[""c d""]"\n', "utf-8")
    (tmp_path / "map.yml").write_text("question: question\nanswer: answer\ncitations: cited\n", "utf-8")
    out = command("import", "table", tmp_path / "rows.csv", "--map", tmp_path / "map.yml")[1]
    assert [json.loads(line)["answer_json"]["citations"] for line in out.splitlines()] == [["a", "b"], ["c d"]]
