"""`rag_eval.trace`: rows that validate and score, from threads, tasks, processes and the frameworks' own callbacks."""

from __future__ import annotations

import asyncio
import contextvars
import decimal
import json
import os
import subprocess
import sys
import threading
import types
import uuid

import pytest

from cases import read_rows
from rag_eval.trace import current, trace
from seams import Contract, load_schema


def test_a_row_is_valid_and_holds_what_was_recorded(command, tmp_path):
    path = tmp_path / "runs" / "trace.jsonl"
    with trace("A1", "Are null keys accepted?", path=path, run="small") as t:
        with t.stage("retrieve"):
            t.retrieved(
                ["plain text", ("manual#keys", "Null keys are rejected."), {"id": 7, "text": "x", "score": 0.5}]
            )
        t.retrieved([{"chunk_id": "7"}, {"page_content": "y", "metadata": {"chunk_id": "c8", "source": "m.md"}}])
        t.answer("No.", citations=["manual#keys"])
        t.usage(model="small-1", input_tokens=10, output_tokens=2, cost_usd=0.1)
        t.usage(input_tokens=5)
        t.set(abstained=False, guardrail={"score": 0.1, "blocked": False})
        assert current() is t
    assert current() is None
    (row,) = read_rows(path)
    assert (row["qid"], row["q"], row["run"]) == ("A1", "Are null keys accepted?", "small")
    assert row["retrieved_ids"][1:] == ["manual#keys", "7", "c8"]
    assert row["retrieved_ids"][0].startswith("text:")
    assert row["chunks"][3] == {"id": "c8", "text": "y", "doc_id": "m.md"}
    assert row["answer_json"] == {"claim": "No.", "citations": ["manual#keys"]}
    assert row["usage"] == {"model": "small-1", "input_tokens": 15, "output_tokens": 2, "cost_usd": 0.1}
    assert set(row["latency_ms"]) == {"retrieve", "total"}
    code, out, _ = command("validate", path)
    assert (code, "valid, 1 trace" in out) == (0, True), out


def test_text_ids_are_those_of_the_importers(tmp_path, command):
    from rag_eval.trace import as_chunk

    texts = ["Null  keys\nare rejected.", "cafe\u0301", "日本語"]
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps({"user_input": "Why?", "response": "So.", "retrieved_contexts": texts}), "utf-8")
    row = json.loads(command("import", "ragas-trace", path)[1])
    assert row["retrieved_ids"] == [as_chunk(text)["id"] for text in texts]
    assert as_chunk("Null keys are rejected.")["id"] == row["retrieved_ids"][0]
    assert as_chunk("caf\u00e9")["id"] == row["retrieved_ids"][1]


def test_an_exception_is_a_row_and_goes_on(tmp_path):
    path = tmp_path / "trace.jsonl"
    with pytest.raises(TimeoutError), trace("A1", path=path):
        raise TimeoutError("too slow")
    with trace("A2", path=path):
        pass
    first, second = read_rows(path)
    assert (first["error"], first["ok"], first["timed_out"]) == ("TimeoutError: too slow", False, True)
    assert second["error"] == "no answer was recorded: call t.answer(text)"


def test_a_file_that_cannot_be_written_hides_no_exception_of_the_block(tmp_path):
    (tmp_path / "file").write_text("", "utf-8")
    path = tmp_path / "file" / "trace.jsonl"
    with pytest.raises(KeyError) as caught, trace("A1", path=path):
        raise KeyError("page")
    assert caught.value.__notes__[0].startswith("rag-eval could not write the trace row: ")
    with pytest.raises(OSError), trace("A1", path=path) as t:
        t.answer("a")


def test_an_exception_without_a_text_is_a_row_and_goes_on(tmp_path):
    class Textless(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    with pytest.raises(Textless), trace("A1", path=tmp_path / "trace.jsonl"):
        raise Textless
    assert read_rows(tmp_path / "trace.jsonl")[0]["error"] == "Textless: the exception has no text"


def test_what_cannot_be_recorded_is_refused(tmp_path):
    with pytest.raises(ValueError, match="needs the qid"):
        trace()
    with pytest.raises(ValueError, match="is not a stage"), trace("A", path=tmp_path / "t") as t, t.stage("lunch"):
        pass
    with pytest.raises(ValueError, match="needs an id or a text"), trace("A", path=tmp_path / "t") as t:
        t.retrieved([{}])
    with pytest.raises(TypeError, match="the answer is None"), trace("A", path=tmp_path / "t") as t:
        t.answer(None)
    with pytest.raises(TypeError, match="citations is a text: 'manual#keys'"), trace("A", path=tmp_path / "t") as t:
        t.answer("No.", citations="manual#keys")


class Message:
    """An object whose text is its repr, as messages and dataclasses have it."""

    content = "No."

    def __repr__(self):
        return "Message(content='No.')"


def document():
    return types.SimpleNamespace(page_content="Null keys are rejected.", metadata={"id": "manual#keys"})


REFUSED = [
    # what is called, the type of the error, what it says
    (lambda t: t.retrieved(None), TypeError, r"documents is None\. Write: retrieved\(\[\]\)"),
    (lambda t: t.retrieved("one text"), TypeError, r"must be a list, but is a text: 'one text'\. Write: retrieved\(\["),
    (lambda t: t.retrieved({"id": "x", "text": "y"}), TypeError, r"must be a list, but is of type dict"),
    (lambda t: t.retrieved(document()), TypeError, r"must be a list, but is of type SimpleNamespace"),
    (lambda t: t.retrieved(5), TypeError, r"must be a list, but is of type int"),
    (lambda t: t.retrieved([([document()], 0.8)]), TypeError, r"a pair of id and text is of type list"),
    (lambda t: t.retrieved([("manual#keys", None)]), TypeError, r"a pair of id and text is None"),
    (lambda t: t.retrieved([{"id": {"n": 1}}]), TypeError, r"the id of a document is of type dict"),
    (lambda t: t.retrieved(["\ud800"]), ValueError, r"'chunks' cannot be written: .*\\ud800.* surrogates not allowed"),
    (lambda t: t.retrieved(["a"], query=7), TypeError, r"'retrievals\[0\]\.query' is 7, but must have type string"),
    (lambda t: t.answer({"text": "No."}), TypeError, r"the answer is of type dict, not a text: {'text': 'No\.'}"),
    (lambda t: t.answer(["No."]), TypeError, r"the answer is of type list"),
    (lambda t: t.answer(Message()), TypeError, r"the answer is of type Message, not a text: Message"),
    (lambda t: t.answer(b"No."), TypeError, r"the answer is of type bytes"),
    (lambda t: t.answer(float("nan")), TypeError, r"the answer is nan"),
    (
        lambda t: t.answer("No \udfff."),
        ValueError,
        r"'answer_json' cannot be written: .* surrogates not allowed.* replace that part",
    ),
    (
        lambda t: t.answer("No.", citations=[{"id": "x"}]),
        TypeError,
        r"a citation is of type dict, .*citations=\[id, id\]",
    ),
    (lambda t: t.answer("No.", citations=[None]), TypeError, r"a citation is None"),
    (lambda t: t.answer("No.", citations={"id": "x"}), TypeError, r"citations is of type dict"),
    (lambda t: t.answer("No.", citations=5), TypeError, r"citations is of type int"),
    (
        lambda t: t.usage(input_tokens=-1),
        ValueError,
        r"'usage\.input_tokens' is -1, but .* minimum 0.*: 900",
    ),
    (lambda t: t.usage(output_tokens=1.5), TypeError, r"'usage\.output_tokens' is 1\.5, but must have type integer"),
    (lambda t: t.usage(output_tokens="5"), TypeError, r"'usage\.output_tokens' is '5', but must have type integer"),
    (lambda t: t.usage(cost_usd=-0.1), ValueError, r"'usage\.cost_usd' is -0\.1, but .* minimum 0"),
    (lambda t: t.usage(model=7), TypeError, r"'usage\.model' is 7, but must have type string"),
    (lambda t: t.latency("retrieve", -1), ValueError, r"'latency_ms\.retrieve' is -1, but .* minimum 0"),
    (lambda t: t.set(confidence=float("nan")), ValueError, r"'confidence' cannot be written: .*\. Leave out"),
    (lambda t: t.set(confidence=1.5), ValueError, r"'confidence' is 1\.5, but .* maximum 1"),
    (lambda t: t.set(turn=True), TypeError, r"'turn' is True, but must have type integer"),
    (lambda t: t.set(abstained="no"), TypeError, r"'abstained' is 'no', but must have type boolean"),
    (lambda t: t.set(conversation="c" * 201), ValueError, r"'conversation' is 'ccc.*, maxLength 200"),
    (lambda t: t.set(error=""), ValueError, r"'error' is '', but .* minLength 1"),
    (
        lambda t: t.set(scope={"mode": "maybe"}),
        ValueError,
        r"'scope\.mode' is 'maybe', but .*enum \['off', 'on',",
    ),
    (
        lambda t: t.set(answer_json={"citations": []}),
        ValueError,
        r"'answer_json' is .* required \['claim'\]\. Write",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED)
def test_a_wrong_value_is_refused_and_leaves_a_valid_row(call, kind, said, command, tmp_path):
    path = tmp_path / "t.jsonl"
    with pytest.raises(kind, match=said), trace("A1", "Why?", path=path) as t:
        call(t)
    (row,) = read_rows(path)
    assert row["error"].startswith(kind.__name__)
    assert command("validate", path)[0] == 0


VALUES = [None, True, 0, -1, 1.5, 2.0, 10**16, "", "x", "x" * 201, [], [1], ["x"], [None], {}, {"id": "x"}, {"id": 1}]
VALUES += [{"total": -1}, {"total": 1}, {"x": "y"}, {"claim": 1}, {"mode": "on", "folders": ["a"]}, {"mode": "x"}]
VALUES += [{"score": 2}, {"blocked": 1}, {"input_tokens": 1.5}, {"cost_usd": True}, {"model": "x", "other": [1]}]
VALUES += [[{"id": "x", "tokens": -1}], [{"text": "x"}], [{"ids": [1]}], [{"chunks": [{"id": "x", "score": "1"}]}]]


@pytest.mark.parametrize("field", sorted(load_schema("trace")["properties"]))
def test_set_refuses_what_the_schema_refuses_and_nothing_else(field, tmp_path):
    for value in VALUES:
        with trace("A1", path=tmp_path / "t.jsonl") as t:
            try:
                t.set(**{field: value})
                is_refused = False
            except (TypeError, ValueError):
                is_refused = True
            t.answer("No.")
        assert is_refused == bool(Contract("trace").faults({"answer": "No.", field: value})), value


@pytest.mark.parametrize("name", ["qid", "question", "run"])
def test_qid_question_and_run_are_texts(name, tmp_path):
    stated = {"qid": "A1", "question": "Why?", name: 0}
    field = "q" if name == "question" else name
    with pytest.raises(TypeError, match=f"'{field}' is 0, but must have type string"):
        trace(**stated, path=tmp_path / "t")
    with pytest.raises(ValueError, match=r"'qid' is .*, maxLength 200"):
        trace("A" * 201, path=tmp_path / "t")


def test_a_refused_value_leaves_what_was_recorded_before(tmp_path):
    path = tmp_path / "t.jsonl"
    with trace("A1", path=path) as t:
        t.retrieved([("a", "x")])
        t.usage(input_tokens=3)
        for call in (lambda: t.retrieved([("b", "\ud800")]), lambda: t.usage(input_tokens=1, output_tokens=-1)):
            with pytest.raises(ValueError, match=r"minimum 0|surrogate"):
                call()
        t.answer("No.")
    (row,) = read_rows(path)
    assert (row["retrieved_ids"], row["usage"], "retrievals" in row) == (["a"], {"input_tokens": 3}, False)


def test_an_error_with_half_of_a_surrogate_pair_leaves_a_valid_row(command, tmp_path):
    with pytest.raises(RuntimeError), trace("A1", path=tmp_path / "t.jsonl"):
        raise RuntimeError("bad \ud800 text")
    assert read_rows(tmp_path / "t.jsonl")[0]["error"] == "RuntimeError: bad ? text"
    assert command("validate", tmp_path / "t.jsonl")[0] == 0


def test_ids_and_answers_may_be_numbers_and_objects_with_a_text(command, tmp_path):
    identity = uuid.uuid4()
    with trace("A1", path=tmp_path / "t.jsonl") as t:
        t.retrieved([(7, "x"), (identity, "y")])
        t.answer(42, citations=(item for item in (7, identity)))
        t.set(confidence=decimal.Decimal("0.5"), of_another_tool={"x": [1, "y"]})
    (row,) = read_rows(tmp_path / "t.jsonl")
    assert row["answer_json"] == {"claim": "42", "citations": ["7", str(identity)]}
    assert row["retrieved_ids"] == ["7", str(identity)]
    assert row["confidence"] == 0.5
    assert command("validate", tmp_path / "t.jsonl")[0] == 0


def test_numbers_of_numpy_and_without_a_value_leave_a_valid_row(command, tmp_path):
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "t.jsonl"
    with trace("A1", path=path) as t:
        scores = [numpy.float32(0.5), float("nan"), float("inf"), numpy.int64(2)]
        t.retrieved([{"id": f"d{rank}", "score": score} for rank, score in enumerate(scores)])
        t.answer("No.")
        t.usage(input_tokens=numpy.int64(3), cost_usd=float("nan"))
        t.set(confidence=numpy.float32(0.25))
    assert (command("validate", path)[0], len(read_rows(path))) == (0, 1)
    (row,) = read_rows(path)
    assert [chunk.get("score") for chunk in row["chunks"]] == [0.5, None, None, 2.0]
    assert (row["usage"], row["confidence"]) == ({"input_tokens": 3}, 0.25)


def test_threads_and_tasks_share_a_file(tmp_path):
    path = tmp_path / "trace.jsonl"

    def work(number):
        with trace(f"T{number}", path=path) as t:
            t.answer("x" * 70_000)

    async def task(number):
        async with trace(f"C{number}", path=path) as t:
            await asyncio.sleep(0)
            assert current() is t
            t.answer("y")

    async def tasks():
        await asyncio.gather(*map(task, range(20)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(tasks())
    assert sorted(row["qid"] for row in read_rows(path)) == sorted(
        [*(f"T{number}" for number in range(8)), *(f"C{number}" for number in range(20))]
    )


def test_threads_share_a_trace(tmp_path):
    def work(worker):
        for number in range(20):
            t.retrieved([f"{worker} {number}"])
            t.usage(input_tokens=1)
            t.latency("generate", 1)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with trace("A1", path=tmp_path / "trace.jsonl") as t:
            threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            t.answer("a")
    finally:
        sys.setswitchinterval(interval)
    (row,) = read_rows(tmp_path / "trace.jsonl")
    assert (len(row["chunks"]), len(row["retrievals"])) == (80, 80)
    assert (row["usage"]["input_tokens"], row["latency_ms"]["generate"]) == (80, 80)


def test_a_block_in_a_generator_may_end_in_another_task_than_it_began_in(tmp_path):
    path = tmp_path / "trace.jsonl"

    def parts(qid):
        with trace(qid, path=path) as t:
            yield "a"
            yield "b"
            t.answer("ab")

    async def stream():
        async with trace("A3", path=path) as t:
            t.answer("a")
            yield "a"

    async def first_part():
        async for _ in stream():
            break

    streamed = parts("A1")  # as a web server does that reads each part in a worker thread
    for part in "ab":
        assert contextvars.copy_context().run(next, streamed) == part
    assert contextvars.copy_context().run(next, streamed, "") == ""
    streamed = parts("A2")
    next(streamed)
    with trace("B1", path=path) as t:
        streamed.close()
        assert current() is t
        t.answer("b")
    assert current() is None
    asyncio.run(first_part())
    finished, closed, other, abandoned = read_rows(path)
    assert (finished["qid"], finished["answer_json"]) == ("A1", {"claim": "ab"})
    assert (closed["qid"], closed["error"]) == ("A2", "GeneratorExit: ")
    assert (other["qid"], other["answer_json"]) == ("B1", {"claim": "b"})
    assert (abandoned["qid"], abandoned["answer_json"]) == ("A3", {"claim": "a"})


def test_an_open_trace_is_not_opened_again(tmp_path):
    path = tmp_path / "trace.jsonl"
    with trace("A1", path=path) as t:
        with pytest.raises(RuntimeError, match="open already"), t:
            pass
        t.answer("a")
    assert [row["answer_json"] for row in read_rows(path)] == [{"claim": "a"}]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of the size of a file")
def test_a_full_disk_cuts_no_row(tmp_path):
    path = tmp_path / "trace.jsonl"
    code = (
        "import resource, signal, sys; from rag_eval.trace import trace\n"
        "def answer(qid, text):\n"
        "    with trace(qid, path=sys.argv[1]) as t: t.answer(text)\n"
        "answer('A1', 'a')\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))\n"
        "try: answer('A2', 'x' * 5000)\n"
        "except OSError: answer('A3', 'a')\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    assert [row["qid"] for row in read_rows(path)] == ["A1", "A3"]


def test_processes_share_a_file(tmp_path):
    path = tmp_path / "trace.jsonl"
    code = (
        "import sys; from rag_eval.trace import trace\n"
        "for n in range(50):\n"
        "    with trace(f'{sys.argv[1]}-{n}', path=sys.argv[2]) as t: t.answer('z' * 9000)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(number), str(path)]) for number in range(3)]
    assert [item.wait() for item in running] == [0, 0, 0]
    assert len({row["qid"] for row in read_rows(path)}) == 150


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_process_forked_while_a_thread_writes_can_write(tmp_path):
    path = tmp_path / "trace.jsonl"
    code = (
        "import os, sys, threading, time\n"
        "from rag_eval.trace import append_line, trace\n"
        "from pathlib import Path\n"
        "path, stop = Path(sys.argv[1]), threading.Event()\n"
        "def work():\n"
        "    while not stop.is_set(): append_line(path, 'x' * 2_000_000)\n"
        "writer = threading.Thread(target=work)\n"
        "writer.start()\n"
        "for number in range(10):\n"
        "    time.sleep(0.003)\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        with trace(f'A{number}', path=path) as t: t.answer('a')\n"
        "        os._exit(0)\n"
        "    for _ in range(2000):\n"
        "        if os.waitpid(child, os.WNOHANG)[0]: break\n"
        "        time.sleep(0.005)\n"
        "    else:\n"
        "        os.kill(child, 9)\n"
        "        stop.set()\n"
        "        sys.exit('the child waits for a lock')\n"
        "stop.set()\n"
    )
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    written = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("x")]
    assert [json.loads(line)["qid"] for line in written] == [f"A{number}" for number in range(10)]


def test_the_writer_loads_nothing_but_the_standard_library():
    code = "import sys, rag_eval.trace; print(sorted(m for m in ('msgspec', 'yaml', 'jsonschema') if m in sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
