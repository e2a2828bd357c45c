"""`rag_eval.trace`: rows that validate and score, from threads, tasks, processes and the frameworks' own callbacks."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading

import pytest

from rag_eval.trace import current, trace


def rows(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


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
    (row,) = rows(path)
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
    first, second = rows(path)
    assert (first["error"], first["ok"], first["timed_out"]) == ("TimeoutError: too slow", False, True)
    assert second["error"] == "no answer was recorded: call t.answer(text)"


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


def test_numbers_of_numpy_and_without_a_value_leave_a_valid_row(command, tmp_path):
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "t.jsonl"
    with trace("A1", path=path) as t:
        scores = [numpy.float32(0.5), float("nan"), float("inf"), numpy.int64(2)]
        t.retrieved([{"id": f"d{rank}", "score": score} for rank, score in enumerate(scores)])
        t.answer("No.")
        t.usage(input_tokens=numpy.int64(3), cost_usd=float("nan"))
        t.set(confidence=numpy.float32(0.25))
    assert (command("validate", path)[0], len(rows(path))) == (0, 1)
    (row,) = rows(path)
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
    assert sorted(row["qid"] for row in rows(path)) == sorted(
        [*(f"T{number}" for number in range(8)), *(f"C{number}" for number in range(20))]
    )


def test_processes_share_a_file(tmp_path):
    path = tmp_path / "trace.jsonl"
    code = (
        "import sys; from rag_eval.trace import trace\n"
        "for n in range(50):\n"
        "    with trace(f'{sys.argv[1]}-{n}', path=sys.argv[2]) as t: t.answer('z' * 9000)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(number), str(path)]) for number in range(3)]
    assert [item.wait() for item in running] == [0, 0, 0]
    assert len({row["qid"] for row in rows(path)}) == 150


def test_the_writer_loads_nothing_but_the_standard_library():
    code = "import sys, rag_eval.trace; print(sorted(m for m in ('msgspec', 'yaml', 'jsonschema') if m in sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
