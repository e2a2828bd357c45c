"""`rag-eval collect`: over HTTP, as a command, as a function; retries, interruptions, order, and what is refused."""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from cases import ROOT, read_rows, write_rows
from gitrepo import Repo
from project import apart

SERVER = ROOT / "examples" / "rag-server"
ITEM = {"answerable": True, "gold_claim_substr": [], "gold_citations": []}


@pytest.fixture
def gold(tmp_path):
    return write_rows(
        tmp_path / "gold.jsonl", [{"qid": f"Q{n}", "question": f"question {n}?", **ITEM} for n in range(6)]
    )


@pytest.fixture
def collect(command, tmp_path, gold, monkeypatch):
    """Collect answers to the gold set into t.jsonl, in its folder, from which Python functions are loaded."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return lambda *words: command("collect", *words, "--gold", "gold.jsonl", "--out", "t.jsonl")


@pytest.fixture
def serve():
    """Start a server that answers a POST by a function of its body and of how often that body came."""
    running = []

    def start(reply):
        calls, lock = [], threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                with lock:
                    calls.append((body, {**self.headers, ":path": self.path}))
                    times = sum(call[0] == body for call in calls)
                status, value, *headers = reply(json.loads(body), times)
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                for name, text in headers:
                    self.send_header(name, text)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        running.append(server)
        return f"http://127.0.0.1:{server.server_port}", calls

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def test_a_real_server_is_asked_and_scored(command, tmp_path):
    spec = importlib.util.spec_from_file_location("rag_server_example", SERVER / "server.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    server = module.serve(0, SERVER / "corpus")
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    out = tmp_path / "runs" / "trace.jsonl"
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        words = ("--url", url, "--preset", "rag-server", "--gold", SERVER / "gold.jsonl", "--out", out)
        code, output, err = command("collect", *words, "--warm-up", "1")
    finally:
        server.shutdown()
        server.server_close()
    assert (code, output, f"wrote {out}: 5 traces, 0 with an error" in err) == (0, "", True)
    assert [row["qid"] for row in read_rows(out)] == ["S01", "S02", "S03", "S04", "S05"]
    about = json.loads((out.parent / "run.json").read_text("utf-8"))
    assert about["config"] == {"retriever": "bm25", "chunks": 6}
    assert len(about["config_sha256"]) == len(about["gold_sha256"]) == 64
    code, output, _ = command("score", "--gold", SERVER / "gold.jsonl", "--trace", out, "--format", "json")
    values = {name: metric["value"] for name, metric in json.loads(output)["metrics"].items()}
    assert (values["precision"], values["chr"], values["recall_all@3"]) == (1.0, 1.0, 1.0)
    assert not list(out.parent.glob("*.partial"))


def test_busy_is_asked_again_and_failures_are_rows(command, collect, serve):
    def reply(body, times):
        number = int(body["question"].split()[1].rstrip("?"))
        if number == 0 and times < 3:
            return 503, {"error": "warming"}, ("Retry-After", "0")
        return {
            1: (400, {"error": "bad"}),
            2: (200, b"no json"),
            3: (200, {"reply": "elsewhere"}),
            4: (302, b"", ("Location", "/login")),
        }.get(
            number,
            (200, {"answer": f"a{number}", "citations": ["d1"], "chunks": [{"id": "d1", "text": "t", "score": 0.5}]}),
        )

    url, calls = serve(reply)
    code, _, err = collect("--url", url, "--retries", "3")
    assert (code, "6 traces, 4 with an error" in err) == (0, True)
    result = read_rows(Path("t.jsonl"))
    assert [row["qid"] for row in result] == [f"Q{n}" for n in range(6)]
    assert result[0]["answer_json"] == {"claim": "a0", "citations": ["d1"]}
    assert result[0]["chunks"] == [{"id": "d1", "text": "t", "score": 0.5}]
    assert result[1]["error"].startswith("RuntimeError: HTTP 400")
    assert result[2]["error"] == "RuntimeError: the reply is not JSON: 'no json'"
    assert "no text at /answer" in result[3]["error"]
    assert "map it with --url and --request: answer: /" in result[3]["error"]
    assert result[4]["error"] == "RuntimeError: HTTP 302: /login"
    assert sum(body == '{"question":"question 0?"}' for body, _ in calls) == 3
    assert command("validate", "t.jsonl")[0] == 0


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("7", 7, 7),
        (formatdate(time.time() + 3600, usegmt=True), 30, 120),  # cut to the longest pause
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        ("\xb2", 0.5, 0.5),
        ("soon", 0.5, 0.5),
    ],
)
def test_a_busy_server_says_how_long_to_wait(collect, serve, monkeypatch, header, least, most):
    url, _ = serve(lambda _, times: (429, {}, ("Retry-After", header)) if times == 1 else (200, {"answer": "a"}))
    pauses = []
    clock = SimpleNamespace(**{**vars(time), "sleep": pauses.append})
    monkeypatch.setattr("rag_eval.collecting.time", clock)
    assert collect("--url", url)[0] == 0
    assert len(pauses) == 6
    assert all(least <= pause <= most for pause in pauses)


def test_an_interrupted_run_continues_and_asks_nothing_twice(collect, tmp_path):
    (tmp_path / "my_stopping_app.py").write_text(
        "asked = []\n"
        "def answer(question):\n"
        "    asked.append(question)\n"
        "    if len(asked) == 3: raise KeyboardInterrupt\n"
        "    return question\n"
    )
    words = ("--python", "my_stopping_app:answer", "--concurrency", "1")
    code, _, err = collect(*words)
    assert (code, "To continue, run the same command again." in err) == (130, True)
    partial = tmp_path / "t.jsonl.partial"
    answered = [row["qid"] for row in read_rows(tmp_path / "t.jsonl")]  # the thread may have begun another question
    assert (answered[:2], "Q2" in answered) == (["Q0", "Q1"], False), "a valid file of what was answered"
    with partial.open("a") as file:
        file.write('{"qid": "Q5", "q": "cut')
    asked = sys.modules["my_stopping_app"].asked
    before = {json.loads(line)["q"] for line in partial.read_text().splitlines()[1:-1]}
    del asked[2:]
    asked += ["padding"] * 10
    code, _, err = collect(*words)
    assert (code, "continuing after " in err, before & {*asked[12:]}) == (0, True, set())
    assert [row["qid"] for row in read_rows(tmp_path / "t.jsonl")] == [f"Q{n}" for n in range(6)]
    assert not partial.exists()
    assert collect(*words)[0] == 2  # a finished file is not overwritten


PACE = ("--rate 99", "--timeout 9", "--retries 1", "--warm-up 1", "--concurrency 2")
IDENTITY = ("--suite smoke:5", "--run b", "--repeats 2", "--python other_paced_app:answer")


@pytest.mark.parametrize(
    ("options", "continued"), [*((words, True) for words in PACE), *((words, False) for words in IDENTITY)]
)
def test_only_what_no_answer_depends_on_may_change_before_a_run_is_continued(
    collect, tmp_path, monkeypatch, options, continued
):
    def stopped(*_):
        def show(done, errors):
            raise KeyboardInterrupt

        return show

    for name in ("my", "other"):
        (tmp_path / f"{name}_paced_app.py").write_text("def answer(question):\n    return question\n")
    with monkeypatch.context() as patched:
        patched.setattr("rag_eval.cli.collect.progress", stopped)
        assert collect("--python", "my_paced_app:answer", "--concurrency", "1")[0] == 130
    code, _, err = collect("--python", "my_paced_app:answer", *options.split())
    assert (code, "continuing after" in err) == (0, continued), err


def test_an_interruption_before_the_first_answer_names_no_file(collect, tmp_path):
    (tmp_path / "my_stopped_app.py").write_text("def answer(question):\n    raise KeyboardInterrupt\n")
    code, _, err = collect("--python", "my_stopped_app:answer", "--concurrency", "1")
    assert (code, err) == (130, "\ninterrupted after 0 answers. To continue, run the same command again.\n")
    assert not list(tmp_path.glob("t.jsonl*"))


def test_an_interruption_leaves_finished_traces_of_another_run_alone(collect, tmp_path):
    app = "asked = []\ndef answer(question):\n    asked.append(question)\n"
    (tmp_path / "my_finishing_app.py").write_text(f"{app}    return 'whole'\n")
    (tmp_path / "my_breaking_app.py").write_text(
        f"{app}    if len(asked) == 2: raise KeyboardInterrupt\n    return 'x'\n"
    )
    assert collect("--python", "my_finishing_app:answer")[0] == 0
    whole = (tmp_path / "t.jsonl").read_bytes()
    words = ("--python", "my_breaking_app:answer", "--concurrency", "1")
    code, _, err = collect(*words, "--force")
    assert (code, "in t.jsonl.partial. To continue, run the same command again." in err) == (130, True)
    assert (tmp_path / "t.jsonl").read_bytes() == whole
    assert collect(*words)[0] == 2


def test_a_command_is_asked_by_lines(collect, tmp_path):
    script = tmp_path / "answer.py"
    script.write_text(
        "import json, os, sys, time\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    if asked['qid'] == 'Q1': sys.exit(3)\n"
        "    if asked['qid'] == 'Q2': time.sleep(9)\n"
        "    if asked['qid'] == 'Q3': print('not json', flush=True); continue\n"
        "    if asked['qid'] == 'Q5': sys.stdout.buffer.write(b'{\"answer\": \"\\xff\"}\\n'); continue\n"
        "    print(json.dumps({'answer': asked['question'].upper(), 'chunks': ['one']}), flush=True)\n"
    )
    program = f"{sys.executable} {script}"
    code, _, err = collect("--exec", program, "--timeout", "2", "--concurrency", "2")
    assert (code, "4 with an error" in err, "Traceback" in err) == (0, True, False), err
    result = read_rows(tmp_path / "t.jsonl")
    assert result[0]["answer_json"]["claim"] == "QUESTION 0?"
    assert result[0]["retrieved_ids"][0].startswith("text:")
    assert "exit code 3" in result[1]["error"]
    assert result[2]["timed_out"] is True
    assert "no JSON" in result[3]["error"]
    assert result[4]["answer_json"]["claim"] == "QUESTION 4?"
    assert "can't encode character '\\udcff'" in result[5]["error"]


@pytest.mark.parametrize(
    ("at_start", "after_an_answer", "failed"),
    [("print('Loading …', flush=True)", "", 6), ("", "print('done', flush=True)", 5)],
)
def test_no_question_gets_the_answer_to_another(collect, tmp_path, at_start, after_an_answer, failed):
    script = tmp_path / "loud.py"
    script.write_text(
        f"import json, sys\n{at_start}\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    print(json.dumps({'answer': asked['qid']}), flush=True)\n"
        f"    if asked['qid'] != 'Q5': {after_an_answer or 'pass'}\n",
        encoding="utf-8",
    )
    code, _, err = collect("--exec", f"{sys.executable} {script}", "--concurrency", "1")
    result = read_rows(tmp_path / "t.jsonl")
    assert all(row["answer_json"]["claim"] == row["qid"] for row in result if "error" not in row)
    wrong = [row["error"] for row in result if "error" in row]
    assert (code == 2, all("everything else to stderr" in error for error in wrong)) == (failed == 6, True), err
    assert 0 < len(wrong) <= failed


def test_a_warm_up_reaches_the_process_that_answers(collect, tmp_path):
    script = tmp_path / "count.py"
    script.write_text(
        "import json, sys\n"
        "for number, _ in enumerate(sys.stdin): print(json.dumps({'answer': str(number)}), flush=True)\n"
    )
    assert collect("--exec", f"{sys.executable} {script}", "--concurrency", "1", "--warm-up", "2")[0] == 0
    assert [row["answer_json"]["claim"] for row in read_rows(tmp_path / "t.jsonl")] == ["2", "3", "4", "5", "6", "7"]


def test_a_function_is_asked_plain_and_async(collect, tmp_path):
    (tmp_path / "my_rag_app.py").write_text(
        "import asyncio\n"
        "def plain(question, qid): return {'answer': f'{qid} {question}', 'citations': []}\n"
        "async def slow(question):\n    await asyncio.sleep(0)\n    return 'a text'\n"
    )
    assert collect("--python", "my_rag_app:plain", "--repeats", "2")[0] == 0
    content = read_rows(tmp_path / "t.jsonl")
    assert [(row["run"], row["qid"]) for row in content[:7]] == [
        *(("try-1", f"Q{n}") for n in range(6)),
        ("try-2", "Q0"),
    ]
    assert content[0]["answer_json"] == {"claim": "Q0 question 0?", "citations": []}
    assert collect("--python", "my_rag_app:slow", "--force")[0] == 0
    assert read_rows(tmp_path / "t.jsonl")[0]["answer_json"] == {"claim": "a text"}
    (tmp_path / "my_broken_app.py").write_text("{}['key']\n", "utf-8")
    (tmp_path / "my_cut_app.py").write_text("def answer(\n", "utf-8")
    (tmp_path / "my_ending_app.py").write_text("raise SystemExit(0)\n", "utf-8")
    names = ["my_rag_app:none", "my_rag_app:__doc__", "my_rag_app:", "builtins:str"]
    for name in [*names, "my_broken_app:a", "my_cut_app:a", "my_ending_app:a"]:
        code, _, err = collect("--python", name, "--force")
        assert (code, f"--python {name} cannot be loaded: " in err) == (2, True)


def test_run_json_names_the_commit_of_the_checkout(command, tmp_path, gold, monkeypatch):
    apart(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_commit_app.py").write_text("def answer(question): return 'a text'\n", "utf-8")
    collect = ("collect", "--python", "my_commit_app:answer", "--gold", gold, "--force")
    assert command(*collect)[0] == 0
    about = json.loads((tmp_path / "runs/run.json").read_text("utf-8"))
    assert "system_commit" not in about
    Repo.create(tmp_path / "made", None)
    (tmp_path / "made/.git").rename(tmp_path / ".git")
    Repo(tmp_path).git("add", "runs")
    assert Repo(tmp_path).commit("first") == (0, "")
    assert command(*collect)[0] == 0
    again = json.loads((tmp_path / "runs/run.json").read_text("utf-8"))
    assert again.pop("system_commit") == Repo(tmp_path).git("log", "--format=%H")
    assert again.pop("collected_at") >= about.pop("collected_at")
    assert again == about


def test_times_and_usage_of_a_reply_are_recorded(collect, tmp_path, serve):
    usage = {"model": "m", "input_tokens": 3, "output_tokens": 2, "cost_usd": 0.25}
    reply = {"answer": "x", "latency_ms": {"retrieve": 1.5, "total": 7}, "usage": usage}
    url, _ = serve(lambda *_: (200, reply))
    (tmp_path / "my_timed_app.py").write_text(f"def answer(question): return {reply}\n")
    script = f"import json, sys\nfor _ in sys.stdin: print(json.dumps({reply}), flush=True)\n"
    (tmp_path / "timed.py").write_text(script)
    program = f"{sys.executable} timed.py"
    for option in (("--url", url), ("--exec", program), ("--python", "my_timed_app:answer")):
        assert collect(*option, "--force")[0] == 0
        row = read_rows(tmp_path / "t.jsonl")[0]
        assert (row["latency_ms"], row["usage"]) == (reply["latency_ms"], usage)


def test_the_retrieved_ids_of_a_reply_are_recorded(collect, tmp_path):
    reply = {"answer": "x", "citations": ["a"], "retrieved_ids": ["a", "b"]}
    (tmp_path / "my_listing_app.py").write_text(f"def answer(question): return {reply}\n")
    assert collect("--python", "my_listing_app:answer")[0] == 0
    assert read_rows(tmp_path / "t.jsonl")[0]["retrieved_ids"] == ["a", "b"]


@pytest.mark.parametrize("name", ["chunks", "sources"])
def test_a_server_whose_chunks_have_another_name_is_noticed(collect, serve, name):
    url, _ = serve(lambda *_: (200, {"answer": "x", name: [{"id": "a", "text": "t"}]}))
    code, _, err = collect("--url", url)
    assert (code, "map it with --request: chunks: /NAME" in err) == (0, name == "sources")


@pytest.mark.parametrize(
    ("form", "answer"), [("numbers", "See [2, 1]."), ("brackets", "See [b] and [a]."), ("numbers", "See nothing.")]
)
def test_citations_are_read_from_the_text_of_an_answer(collect, serve, tmp_path, form, answer):
    url, _ = serve(lambda *_: (200, {"answer": answer, "chunks": [{"id": "a", "text": "t"}, {"id": "b", "text": "u"}]}))
    (tmp_path / "map.yml").write_text(f"citations: {form}\n", "utf-8")
    assert collect("--url", url, "--request", tmp_path / "map.yml")[0] == 0
    cited = read_rows(tmp_path / "t.jsonl")[0]["answer_json"]["citations"]
    assert cited == ([] if "nothing" in answer else ["b", "a"])


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ("{'answer_json': {'claim': 'x'}, 'retrieved_ids': [1]}", "not a valid trace: Expected `str`, got `int`"),
        ("{'answer_json': {'claim': 'x'}, 'latency_ms': None}", "not a valid trace: Expected `object`, got `null`"),
        ("{'answer': 'x', 'usage': {'input_tokens': 'many'}}", "not a valid trace: Expected `int | float`"),
        ("{'answer': 'x', 'chunks': [{'text': 't', 'score': float('nan')}]}", "not JSON compliant"),
        ("{'answer_json': {'claim': 'x'}, 'flags': object()}", "not JSON serializable"),
        ("{'error': 'the model is down'}", "the model is down"),
        ("{'answer': 'half of a pair: \\ud800'}", "can't encode character '\\ud800'"),
        ("{'reply': {}['\\ud800']}", "KeyError: '\\ud800'"),
        ("__import__('sys').exit()", "SystemExit"),
        ("(_ for _ in ()).throw(__import__('asyncio').CancelledError())", "CancelledError"),
    ],
)
def test_a_reply_that_no_trace_can_have_is_an_error_of_its_question(
    command, collect, tmp_path, monkeypatch, reply, error
):
    monkeypatch.delitem(sys.modules, "my_odd_app", raising=False)
    (tmp_path / "my_odd_app.py").write_text(
        f"def answer(question, qid): return {reply} if qid == 'Q1' else {{'answer': 'fine'}}\n"
    )
    code, _, err = collect("--python", "my_odd_app:answer")
    assert (code, "6 traces, 1 with an error" in err) == (0, True), err
    assert error in read_rows(tmp_path / "t.jsonl")[1]["error"]
    assert command("validate", "t.jsonl")[0] == 0


def test_a_matrix_asks_once_for_each_configuration(collect, tmp_path, serve):
    url, calls = serve(lambda body, _times: (200, {"answer": f"k={body['k']}"}))
    (tmp_path / "matrix.yml").write_text("small: {body: {k: 3}}\nlarge: {body: {k: 9}}\n")
    assert collect("--url", url, "--matrix", "matrix.yml")[0] == 0
    answers = [(row["run"], row["answer_json"]["claim"]) for row in read_rows(tmp_path / "t.jsonl")[::6]]
    assert answers == [("small", "k=3"), ("large", "k=9")]
    assert len(calls) == 12


def test_a_matrix_sets_the_environment_of_a_command(collect, tmp_path):
    script = tmp_path / "answer.py"
    script.write_text(
        "import json, os, sys\nfor _ in sys.stdin: print(json.dumps({'answer': os.environ['X']}), flush=True)\n"
    )
    (tmp_path / "matrix.yml").write_text("a: {env: {X: 3}}\nb: {env: {X: true}}\nc: {env: {X: text}}\n")
    assert collect("--exec", f"{sys.executable} {script}", "--matrix", "matrix.yml")[0] == 0
    answers = [(row["run"], row["answer_json"]["claim"]) for row in read_rows(tmp_path / "t.jsonl")[::6]]
    assert answers == [("a", "3"), ("b", "true"), ("c", "text")]


@pytest.mark.parametrize(
    ("option", "matrix", "message"),
    [
        ("--url", "a: {env: {X: 1}}", "mappings named body or headers with --url. Write: a: {body: {top_k: 5}}"),
        ("--exec", "a: {body: {k: 1}}", "mappings named env with --exec. Write: a: {env: {TOP_K: 5}}"),
        ("--exec", "a: {env: {X: [1]}}", "'X' in env of the matrix must be a text or a number"),
        ("--exec", 'a: {env: {X: "\\0"}}', "cannot be started: embedded null byte. Check the command"),
        ("--url", "a: {body: 1}", "'a' must be a mapping"),
        ("--url", "a: {headers: {X-Api-Key: abc}}", "the header X-Api-Key of the matrix contains a secret"),
        ("--python", "a: {body: {k: 1}}", "--matrix needs --url or --exec"),
    ],
)
def test_a_matrix_that_cannot_change_the_system_is_refused(collect, tmp_path, serve, option, matrix, message):
    url, calls = serve(lambda *_: (200, {"answer": "x"}))
    (tmp_path / "matrix.yml").write_text(matrix)
    system = {"--url": url, "--exec": f"{sys.executable} -c 'input()'", "--python": "json:dumps"}[option]
    code, _, err = collect(option, system, "--matrix", "matrix.yml")
    assert (code, message in err, calls) == (2, True, []), err


def test_a_body_may_be_a_list_and_a_path_has_the_question_quoted(collect, tmp_path, serve):
    url, calls = serve(lambda body, _times: (200, {"answer": body[0]}))
    (tmp_path / "request.yml").write_text("path: '/ask/{question}'\nbody: ['{question}']\nheaders: {X-Top: 5}\n")
    (tmp_path / "matrix.yml").write_text("a: {body: {k: 3}}\n")
    words = ("--url", url, "--request", "request.yml")
    assert collect(*words)[0] == 0
    assert read_rows(tmp_path / "t.jsonl")[0]["answer_json"] == {"claim": "question 0?"}
    assert {headers["X-Top"] for _, headers in calls} == {"5"}
    assert {headers[":path"] for _, headers in calls} == {f"/ask/question%20{n}%3F" for n in range(6)}
    code, _, err = collect(*words, "--force", "--matrix", "matrix.yml")
    assert (code, "must be a mapping for a matrix" in err) == (2, True)


def test_decimals_of_maps_reach_the_server_as_numbers(collect, tmp_path, serve):
    url, calls = serve(lambda body, _times: (200, {"answer": f"t={body['temperature']}"}))
    (tmp_path / "matrix.yml").write_text("warm: {body: {temperature: 0.2, stop: [0.5]}}\n")
    (tmp_path / "request.yml").write_text("body: {question: '{question}', temperature: 0.7}\n")
    for option, file, value in (("--matrix", "matrix.yml", 0.2), ("--request", "request.yml", 0.7)):
        code, _, err = collect("--url", url, option, file, "--force")
        assert (code, "6 traces, 0 with an error" in err) == (0, True), err
        assert {json.loads(body)["temperature"] for body, _ in calls} == {value}
        assert {row["answer_json"]["claim"] for row in read_rows(tmp_path / "t.jsonl")} == {f"t={value}"}
        calls.clear()


def test_secrets_come_from_the_environment_alone(collect, tmp_path, serve, monkeypatch):
    url, calls = serve(lambda *_: (200, {"out": {"text": "x"}}))
    request = tmp_path / "map.yml"
    request.write_text(
        'path: "/ask"\nheaders: {Authorization: "Bearer ${RAG_TOKEN}"}\nbody: {q: "{question}"}\nanswer: /out/text\n'
    )
    words = ("--url", url, "--request", "map.yml")
    code, _, err = collect(*words)
    assert (code, "RAG_TOKEN is not set" in err) == (2, True)
    code, _, err = collect("--url", url, "--preset", "openai")
    assert (code, "RAG_MODEL is not set" in err, calls) == (2, True, [])
    monkeypatch.setenv("RAG_TOKEN", "hush-hush")
    assert collect(*words)[0] == 0
    assert {headers["Authorization"] for _, headers in calls} == {"Bearer hush-hush"}
    assert "hush" not in (tmp_path / "t.jsonl").read_text() + (tmp_path / "run.json").read_text()
    request.write_text('headers: {Authorization: "Bearer abc"}\n')
    code, _, err = collect(*words, "--force")
    assert (code, "contains a secret" in err) == (2, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("anser: /x\n", "has no 'anser'"),
        ("answer: x\n", "is not a JSON Pointer"),
        ("latency_ms: {lunch: /x}\n", "has no stage 'lunch'"),
        ("headers: [1]\n", "has the wrong type"),
        ("- a\n", "must be a mapping"),
        ("a: [\n", "map.yml:"),
    ],
)
def test_a_wrong_map_is_refused(collect, tmp_path, text, said):
    (tmp_path / "map.yml").write_text(text)
    code, _, err = collect("--url", "http://127.0.0.1:9", "--request", "map.yml")
    assert (code, said in err) == (2, True), err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--exec", "python 'x"), "--exec python 'x is not a command: no closing quotation"),
        (("--exec", " "), "--exec names no command"),
        (("--exec", "no-such-command x"), "--exec no-such-command cannot be started"),
        (("--config-file", "missing.json"), "missing.json: no such file"),
        (("--config-file", "wrong.json"), "wrong.json is not JSON: "),
        (("--url", "http://127.0.0.1:9", "--request", "missing.yml"), "missing.yml: no such file"),
        (
            ("--request", "missing.yml"),
            "--request and --preset describe a server. Use them with --url, or remove them.",
        ),
        (("--preset", "openai"), "--request and --preset describe a server."),
        (("--matrix", "missing.yml"), "missing.yml: no such file"),
        (("--matrix", "matrix.yml", "--run", "a"), "--matrix names the runs. Remove --run, or --matrix."),
        (("--out", "gold.jsonl/t.jsonl"), "t.jsonl.partial cannot be written: "),
        (
            ("--out", "run.json"),
            "--out run.json is for the facts of the run. Name another file: --out runs/trace.jsonl",
        ),
    ],
)
def test_what_cannot_be_read_started_or_written_is_no_bug(command, tmp_path, gold, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.json").write_bytes(b"{\xff")
    (tmp_path / "run.json").write_bytes(b"{}")
    asked = () if {"--exec", "--url"} & {*words} else ("--exec", f"{sys.executable} -c 'input()'")
    code, out, err = command("collect", *asked, "--gold", gold, *words)
    assert (code, out, message in err, "Traceback" in err) == (2, "", True, False), err
    assert not list(tmp_path.rglob("*.partial"))


def test_a_missing_package_leaves_no_file(command, tmp_path, gold, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    code, _, err = command("collect", "--url", "http://127.0.0.1:9", "--gold", gold, "--out", tmp_path / "runs/t.jsonl")
    assert (code, 'pip install "rag-eval-action[collect]"' in err) == (2, True)
    assert not list(tmp_path.rglob("t.jsonl*"))


def test_failed_questions_are_reported_with_the_first_error(collect, tmp_path):
    script = tmp_path / "answer.py"
    script.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    answer = {'answer': 'x'} if json.loads(line)['qid'] in sys.argv else {'text': 'x'}\n"
        "    print(json.dumps(answer), flush=True)\n"
    )
    code, _, err = collect("--exec", f"{sys.executable} {script}")
    last = err.strip().splitlines()[-1]
    assert (code, "6 traces, 6 with an error" in err, "every question failed" in last) == (2, True, True)
    assert "The first error: Q0: ValueError: no text at /answer" in last
    assert len(read_rows(tmp_path / "t.jsonl")) == 6
    code, _, err = collect("--exec", f"{sys.executable} {script} Q0 Q1 Q2", "--force")
    last = err.strip().splitlines()[-1]
    assert (code, "3 with an error. Next: rag-eval score" in err) == (0, True)
    assert "3 questions failed. The first error: Q3: ValueError: no text at /answer" in last


def test_a_server_that_is_not_there_is_said_before_anything_is_asked(collect):
    code, _, err = collect("--url", "http://127.0.0.1:9")
    assert (code, "does not answer" in err, "Start the server" in err) == (2, True, True)
    assert not Path("t.jsonl").exists()


@pytest.mark.parametrize("url", ["http://", "http://xn--/", "http://..", "http://host:port", "host", "ftp://host"])
def test_an_address_that_is_none_is_refused(collect, tmp_path, url):
    code, _, err = collect("--url", url)
    assert (code, err) == (2, "rag-eval: --url is not a URL. Write: --url http://HOST\n")
    assert not list(tmp_path.glob("t.jsonl*"))


@pytest.mark.parametrize("secret", ["k\u00e9y", "two\nlines"])
def test_a_key_that_no_request_can_have_is_refused_without_showing_it(collect, tmp_path, monkeypatch, secret):
    monkeypatch.setenv("RAG_TOKEN", secret)
    (tmp_path / "map.yml").write_text('headers: {Authorization: "Bearer ${RAG_TOKEN}"}\n')
    code, _, err = collect("--url", "http://127.0.0.1:9", "--request", "map.yml")
    assert (code, "the header Authorization has other characters than printable ASCII" in err) == (2, True), err
    assert secret.splitlines()[0] not in err


def test_a_health_path_that_makes_no_url_is_named(collect, tmp_path):
    (tmp_path / "map.yml").write_text("health: ':port'\n")
    code, _, err = collect("--url", "http://127.0.0.1", "--request", "map.yml")
    assert (code, "http://127.0.0.1:port does not answer: InvalidURL: Invalid port: 'port'" in err) == (2, True), err


def test_the_settings_are_those_of_a_file(collect, tmp_path):
    (tmp_path / "settled_app.py").write_text("def answer(question):\n    return question\n")
    words = ("--python", "settled_app:answer", "--force", "--config-file", "settings.json")
    for text, config in (('{"k": "\u00e9"}', {"k": "\u00e9"}), ("[1]", {"value": [1]})):
        (tmp_path / "settings.json").write_text(text, "utf-8")
        assert collect(*words)[0] == 0
        about = json.loads((tmp_path / "run.json").read_text("utf-8"))
        assert (about["config"], len(about["config_sha256"])) == (config, 64)
    digests = set()
    for text in ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}'):
        (tmp_path / "settings.json").write_text(text)
        assert collect(*words)[0] == 0
        digests.add(json.loads((tmp_path / "run.json").read_text("utf-8"))["config_sha256"])
    assert len(digests) == 1, "the order of the settings does not matter"
    (tmp_path / "settings.json").write_text("")
    assert collect(*words)[0] == 0
    assert "config" not in json.loads((tmp_path / "run.json").read_text("utf-8"))
