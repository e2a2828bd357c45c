"""`rag-eval import --from-api` against a server that speaks the APIs of Langfuse, LangSmith and Phoenix."""

from __future__ import annotations

import json
import re
import shlex
import socket

import pytest

from cases import read_rows
from fake_tracing import KEYS, PROJECT, FakeTracing, export

pytest.importorskip("httpx")
ADDRESSES = {"langfuse": "LANGFUSE_HOST", "langsmith": "LANGSMITH_ENDPOINT", "phoenix": "PHOENIX_ENDPOINT"}
RECORDED = {
    "langfuse": "real-langfuse-observations", "langsmith": "real-langsmith-query", "phoenix": "real-phoenix-rest",
}  # fmt: skip
SINCE = ("--since", "2026-11-23")


@pytest.fixture
def live(command, monkeypatch, tmp_path):
    """Import from a fake server: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    for name in ("LANGFUSE_BASE_URL", "LANGSMITH_PROJECT", "PHOENIX_PROJECT", "PHOENIX_PROJECT_NAME"):
        monkeypatch.delenv(name, raising=False)
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)

    def run(fake, tool, *words):
        with fake.serving() as url:
            monkeypatch.setenv(ADDRESSES[tool], url)
            project = () if tool == "langfuse" or "--project" in words else ("--project", "shop")
            since = () if "--since" in words else SINCE
            return command("import", tool, "--from-api", *since, *project, "--out", "trace.jsonl", *words)

    return run


@pytest.mark.parametrize("tool", ADDRESSES)
@pytest.mark.parametrize("older", [False, True], ids=["newer", "older"])
def test_all_pages_give_the_rows_of_the_tools_own_export(live, command, tmp_path, tool, older):
    fake = FakeTracing(page=4, older=older)
    code, out, err = live(fake, tool, "--citations", "numbers")
    assert (code, out) == (0, ""), err
    command("import", tool, *export(RECORDED[tool]), "--citations", "numbers", "--out", tmp_path / "exported.jsonl")
    if not (older and tool != "phoenix"):  # the older APIs give some fields under other names
        assert read_rows(tmp_path / "trace.jsonl") == read_rows(tmp_path / "exported.jsonl")
    asked = {row["q"]: row.get("answer_json") for row in read_rows(tmp_path / "exported.jsonl")}
    assert {row["q"]: row.get("answer_json") for row in read_rows(tmp_path / "trace.jsonl")} == asked
    saved = tmp_path / f"trace.{tool}.jsonl"
    assert len(saved.read_bytes().splitlines()) >= 4
    assert f"rag-eval import {tool} {saved.name} --since 2026-11-23" in err


@pytest.mark.parametrize(("is_terminal", "words"), [(True, ()), (True, ("--quiet",)), (False, ())])
def test_the_pages_are_counted_on_a_terminal_only(live, monkeypatch, is_terminal, words):
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    code, _, err = live(FakeTracing(page=4), "langfuse", *words)
    shown = "\r1 page, 4 records\r2 pages, 8 records" in err
    assert (code, shown) == (0, is_terminal and not words), err


@pytest.mark.parametrize("tool", ADDRESSES)
def test_the_saved_replies_give_the_same_bytes_without_the_api(live, command, tmp_path, tool):
    assert live(FakeTracing(), tool)[0] == 0
    first = (tmp_path / "trace.jsonl").read_bytes()
    for form in (tool, "auto"):
        code, _, _ = command("import", form, f"trace.{tool}.jsonl", *SINCE, "--out", "again.jsonl", "--force")
        assert (code, (tmp_path / "again.jsonl").read_bytes()) == (0, first)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--until", "2026-11-23T03:16:49.672Z", "--citations", "numbers"),
        ("--run", "a b", "--last-only", "--by-text"),
        ("--gold", "my gold.jsonl", "--turns", "last"),
    ],
    ids=lambda options: " ".join(options[:1]),
)
def test_the_command_that_repeats_the_import_gives_the_same_traces(live, command, tmp_path, options):
    live(FakeTracing(), "langfuse")
    item = {"answerable": False, "gold_claim_substr": [], "gold_citations": []}
    asked = sorted({row["q"] for row in read_rows(tmp_path / "trace.jsonl")})
    golds = [{"qid": f"G{number}", "question": question, **item} for number, question in enumerate(asked)]
    (tmp_path / "my gold.jsonl").write_text("".join(json.dumps(gold) + "\n" for gold in golds), "utf-8")
    code, _, err = live(FakeTracing(), "langfuse", *options, "--force")
    words = shlex.split(re.search("To repeat this import: (.*)", err)[1])
    assert code == 0, err
    assert command(*words[1:], "--out", "again.jsonl")[0] == 0
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "trace.jsonl").read_bytes()
    for option in options:
        assert option in words


@pytest.mark.parametrize("tool", ADDRESSES)
def test_the_server_is_asked_for_the_window_with_a_margin(live, tool):
    fake = FakeTracing()
    assert live(fake, tool, "--until", "2027-01-01T00:00:00+01:00")[0] == 0
    asked = json.dumps(fake.calls)
    assert "2026-11-22T23:00:00.000Z" in asked
    assert "2027-01-01T00:00:00.000Z" in asked


def test_traces_outside_of_the_window_are_left_out(live, tmp_path):
    code, _, err = live(FakeTracing(), "langfuse", "--since", "2026-11-23T03:16:49.672Z")
    assert (code, 0 < len(read_rows(tmp_path / "trace.jsonl")) < 5) == (0, True)
    assert "left out: traces before --since" in err
    code, _, err = live(FakeTracing(), "langfuse", "--until", "2026-11-23T03:16:49.672Z", "--force")
    assert (code, "left out: traces from --until on" in err) == (0, True)


@pytest.mark.parametrize("fault", [429, 500, 503, b'{"data": [<cut>'])
def test_a_busy_server_is_asked_again(live, tmp_path, fault):
    fake = FakeTracing(faults=[fault])
    assert live(fake, "phoenix")[0] == 0
    assert len(read_rows(tmp_path / "trace.jsonl")) == 5


@pytest.mark.parametrize(
    ("tool", "faults", "message"),
    [
        ("phoenix", [500] * 3, '"busy" }, in 2 attempts. Try again later, or check PHOENIX_ENDPOINT'),
        ("langsmith", [429] * 3, "HTTP 429: "),
        ("langfuse", [401], "Check the key in the environment, and that it belongs to the server in LANGFUSE_HOST"),
        ("langfuse", [302], "HTTP 302: "),
        ("langfuse", [b"<html>Sign in</html>"], "the reply is not JSON (JSON is malformed: "),
        ("langfuse", [b'{"data": [1'], '(Input data was truncated): {"data": [1. Check that LANGFUSE_HOST'),
        ("langfuse", [b'{"data": [<cut>'] * 3, "RemoteProtocolError: "),
        ("langfuse", [b'{"rows": []}'], "has no list of data, but rows. Check LANGFUSE_HOST"),
        ("langfuse", [b"null"], "has no list of data, but "),
        ("phoenix", [b"[" * 100_000], "the reply is not JSON"),
    ],
)  # fmt: skip
def test_a_reply_that_is_wrong_ends_in_one_line_and_no_file(live, tmp_path, tool, faults, message):
    code, out, err = live(FakeTracing(faults=faults), tool, "--retries", "2")
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert message in err
    assert not any(key in err for key in KEYS.values())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("tool", ADDRESSES)
def test_a_server_that_is_not_there_is_named(command, live, monkeypatch, tool):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv(ADDRESSES[tool], f"http://127.0.0.1:{free.getsockname()[1]}")
    code, _, err = command(
        "import", tool, "--from-api", *SINCE, "--project", "shop", "--out", "t.jsonl", "--retries", "1"
    )
    assert (code, f"in 1 attempts. Check {ADDRESSES[tool]}" in err, "Connect" in err) == (2, True, True)


def test_pages_without_an_end_are_noticed(live, tmp_path):
    fake = FakeTracing(page=4)
    page = json.dumps({"data": fake.observations[:2], "meta": {"cursor": "same"}}).encode()
    fake.faults = [page] * 9
    code, _, err = live(fake, "langfuse")
    assert (
        code,
        "returned the page {'cursor': 'same'} of /api/public/v2/observations twice, so its pages never end" in err,
    ) == (
        2,
        True,
    )
    fake.faults = [page.replace(b"same", b"%d" % number) for number in range(9)]
    code, _, err = live(fake, "langfuse", "--max-records", "10")
    assert (code, "more than 10 records. Fetch less with --since and --until, or raise --max-records" in err) == (
        2,
        True,
    )
    assert len(fake.faults) == 4
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tool", "name", "message"),
    [
        ("langfuse", "LANGFUSE_SECRET_KEY", "LANGFUSE_SECRET_KEY is not set. Make a key"),
        ("langsmith", "LANGSMITH_API_KEY", "LANGSMITH_API_KEY is not set. "),
        ("phoenix", "PHOENIX_API_KEY", "HTTP 401: "),
    ],
)  # fmt: skip
def test_a_missing_key_is_named(live, monkeypatch, tool, name, message):
    monkeypatch.delenv(name)
    code, _, err = live(FakeTracing(), tool)
    assert (code, message in err) == (2, True), err


@pytest.mark.parametrize("tool", ["langsmith", "phoenix"])
def test_a_project_that_is_not_there_is_named(live, tool):
    code, _, err = live(FakeTracing(), tool, "--project", "nope")
    assert (code, "has no project 'nope'" in err, "Name it: --project NAME" in err) == (2, True, True)


def test_a_project_can_be_named_by_its_id(live):
    fake = FakeTracing()
    assert live(fake, "langsmith", "--project", PROJECT)[0] == 0
    assert not [path for _, path, _, _ in fake.calls if path.endswith("/sessions")]


def test_the_key_goes_nowhere_else(live, tmp_path):
    """A redirect is not followed, so that the key stays with the server that it was made for."""
    code, _, err = live(FakeTracing(faults=[307]), "langfuse")
    assert (code, "HTTP 307" in err) == (2, True)


@pytest.mark.parametrize("url", ["ftp://host", "host:3000", "https://", "https://pk:sk@host", "http://[::1"])
def test_an_address_that_is_none_is_named_without_its_secrets(command, live, monkeypatch, url):
    monkeypatch.setenv("LANGFUSE_HOST", url)
    code, _, err = command("import", "langfuse", "--from-api", *SINCE, "--out", "t.jsonl", "--retries", "1")
    message = "has a user name or a password. Write: export" if "@" in url else "is not a URL"
    assert (code, f"LANGFUSE_HOST {message}" in err, "sk@" in err) == (2, True, False)


@pytest.mark.parametrize(
    ("tool", "variable", "named"),
    [
        ("langsmith", "LANGSMITH_API_KEY", "LANGSMITH_API_KEY has"),
        ("langfuse", "LANGFUSE_SECRET_KEY", "LANGFUSE_SECRET_KEY has"),
        ("phoenix", "PHOENIX_API_KEY", "the header Authorization has"),
        ("phoenix", "PHOENIX_CLIENT_HEADERS", "the header x has"),
    ],
)
def test_a_key_that_no_header_can_have_is_refused(command, live, monkeypatch, tool, variable, named):
    monkeypatch.setenv(variable, "x=k\u00e9y")
    code, _, err = command("import", tool, "--from-api", *SINCE, "--out", "t.jsonl", "--retries", "1")
    assert (code, f"{named} other characters than printable ASCII" in err, "k\u00e9y" in err) == (2, True, False), err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["otlp", "--from-api", *SINCE, "--out", "t"],
            "otlp has no --from-api. Use it with one of: langfuse, langsmith, phoenix",
        ),
        (["langfuse", "x.json", "--from-api", *SINCE, "--out", "t"], "--from-api and FILE cannot be used together"),
        (["langfuse", "--from-api", "--out", "t"], "--from-api needs a start time. Write: --since 2026-01-31"),
        (["langfuse", "--from-api", *SINCE], "next to the result. Add --out FILE"),
        (["langfuse", "--from-api", *SINCE, "--out", "t", "--save", "./t"], "--save and --out name the same file"),
        (["otlp"], "no file is named. Name the FILE to import"),
        (
            ["langfuse"],
            "no file is named. Name the FILE to import, or fetch it: rag-eval import langfuse --from-api --since TIME",
        ),
        (["langfuse", "--from-api", *SINCE, "--out", "t", "--retries", "0"], "is not a whole number from 1"),
    ],
)
def test_options_that_do_not_fit_say_what_does(command, live, words, message):
    code, _, err = command("import", *words)
    assert (code, message in err) == (2, True), err


def test_saved_replies_are_not_overwritten_unasked(live, tmp_path):
    (tmp_path / "trace.langfuse.jsonl").write_text("mine")
    fake = FakeTracing()
    code, _, err = live(fake, "langfuse")
    assert (code, fake.calls, "trace.langfuse.jsonl already exists" in err) == (2, [], True)
    assert live(fake, "langfuse", "--force")[0] == 0
