"""The engine dask: the same report bytes on a real cluster, from URLs too, and when workers are lost."""

import os
import signal
import sys

import pytest
from msgspec.structs import replace

from rag_eval import api
from rag_eval.engines import dask_engine
from rag_eval.readers.problems import Unreadable
from rag_eval.readers.source import PROTOCOLS, open_url
from reading import gold, jsonl, reader, trace
from seams import ExecutionOptions, InputError, MissingExtra, RagEvalError, main, render, score_files

pytestmark = pytest.mark.filterwarnings("default")  # of packages that are not ours
distributed = pytest.importorskip("distributed")
fsspec = pytest.importorskip("fsspec")


def rows(count):
    for number in range(count):
        ours = {"qid": f"A{number % 500:04}", "run": f"r{number // 2000}", "z": "x" * 900, "latency_ms": {"total": 1}}
        yield trace(**ours)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Some twelve megabytes of traces: three ranges at least."""
    folder = tmp_path_factory.mktemp("large")
    items = [gold(qid=f"A{number:04}", question=f"What is {number}?") for number in range(450)]
    (folder / "gold.jsonl").write_bytes(jsonl(*items))
    (folder / "trace.jsonl").write_bytes(jsonl(*rows(12_000)))
    (folder / "run.json").write_text('{"retriever": "dense"}')
    return folder


@pytest.fixture(scope="module")
def threads():
    """The address of a scheduler whose workers are threads of this process: they see its memory:// files."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    ) as ours:
        yield ours.scheduler_address


def report(gold, trace, execution, **more):
    return render(score_files(str(gold), str(trace), execution=execution, **more), "json")


@pytest.fixture(scope="module")
def of_one(large):
    """The report of one process."""
    return report(large / "gold.jsonl", large / "trace.jsonl", ExecutionOptions(jobs=1))


def test_a_cluster_gives_the_report_of_one_process(large, threads, of_one):
    assert report(large / "gold.jsonl", large / "trace.jsonl", ExecutionOptions("dask", 0, threads)) == of_one


def test_files_of_an_object_store_give_the_same(large, threads, of_one):
    store = fsspec.filesystem("memory")
    for name in ("gold.jsonl", "trace.jsonl", "run.json"):
        store.pipe(f"/bucket/{name}", (large / name).read_bytes())
    result = report("memory://bucket/gold.jsonl", "memory://bucket/trace.jsonl", ExecutionOptions("dask", 0, threads))
    assert result.replace("memory://bucket", str(large)) == of_one


def test_a_packed_file_of_an_object_store_is_read_here(large, threads):
    import gzip

    data = (large / "trace.jsonl").read_bytes()
    fsspec.filesystem("memory").pipe("/bucket/packed/trace.jsonl.gz", gzip.compress(data, 1))
    content = api.run(
        api.Options(
            str(large / "gold.jsonl"),
            "memory://bucket/packed/trace.jsonl.gz",
            execution=ExecutionOptions("dask", 0, threads),
        )
    )
    assert content.completeness == api.score(large / "gold.jsonl", large / "trace.jsonl").completeness


class Killer:
    """Kills so many workers when the first range is done."""

    def __init__(self, pids):
        self.pids = list(pids)

    def begin(self, total):
        """Nothing is to be shown."""

    def advance(self, size):
        while self.pids:
            os.kill(self.pids.pop(), signal.SIGKILL)

    def end(self):
        """Nothing was shown."""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_that_is_killed_changes_nothing(large, of_one, workers):
    """Where it is the only one, the gold that was sent is lost with it."""
    terms = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with distributed.LocalCluster(**terms) as ours, distributed.Client(ours) as client:
        pid = next(iter(client.run(os.getpid).values()))
        killer = Killer([pid])
        execution = ExecutionOptions("dask", 0, ours.scheduler_address, killer)
        assert report(large / "gold.jsonl", large / "trace.jsonl", execution) == of_one
        assert not killer.pids
        assert pid not in client.run(os.getpid).values()


def test_a_cluster_of_its_own_is_gone_afterwards(large, of_one, capsys):
    args = ["score", "--gold", str(large / "gold.jsonl"), "--trace", str(large / "trace.jsonl"), "--format", "json"]
    code = main([*args, "--engine", "dask", "--jobs", "1", "--quiet"])
    out = capsys.readouterr().out
    assert code in (0, 1)
    assert out == of_one


def test_problems_are_those_of_one_process(large, threads, tmp_path):
    lines = (large / "trace.jsonl").read_bytes().splitlines(keepends=True)
    lines[5000:11_000:40] = [b"{\n"] * 150
    (tmp_path / "trace.jsonl").write_bytes(b"".join(lines))
    output = []
    for execution in (ExecutionOptions(jobs=1), ExecutionOptions("dask", 0, threads)):
        with pytest.raises(InputError) as caught:
            report(large / "gold.jsonl", tmp_path / "trace.jsonl", execution)
        output.append(caught.value.lines())
    assert output[0] == output[1]
    assert output[0][-1] == "… and 50 more problems not shown."


def problem(path, **more):
    result = reader(**more)
    assert not result.open(path).is_open
    return str(result.ledger.problems[0])


def test_a_url_without_the_engine_says_what_to_do():
    assert problem("s3://bucket/trace.jsonl") == (
        "s3://bucket/trace.jsonl: is a URL. Copy the file here, or read it in place with: --engine dask"
    )


def test_no_url_leads_out_of_a_workspace(tmp_path):
    result = replace(reader(str(tmp_path)), urls=True)
    assert not result.open("memory://bucket/trace.jsonl").is_open
    assert "is a URL" in result.ledger.problems[0].message


@pytest.mark.parametrize("url", ["http://localhost/x", "simplecache::memory://x", "memory://a::file://b", "ssh://h/x"])
def test_urls_of_other_kinds_are_refused(url):
    with pytest.raises(Unreadable, match="is not a URL of a supported kind: s3, "):
        open_url(url)


def test_a_url_of_nothing_is_no_such_file():
    with pytest.raises(Unreadable, match="no such file"):
        open_url("memory://bucket/nothing.jsonl")


@pytest.mark.parametrize("protocol", sorted({*PROTOCOLS} - {"abfss"}))  # which adlfs brings along
def test_fsspec_knows_every_protocol_that_is_let_through(protocol):
    assert protocol in fsspec.available_protocols()


def test_an_address_where_nobody_answers(large, monkeypatch):
    monkeypatch.setattr(dask_engine, "_PATIENCE", "300ms")
    with pytest.raises(RagEvalError, match="no scheduler answers at 'tcp://"):
        report(large / "gold.jsonl", large / "trace.jsonl", ExecutionOptions("dask", 0, "tcp://127.0.0.1:9"))


def test_without_dask_the_extra_is_named(large, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"--engine dask needs .*rag-eval-action\[dask\]"):
        report(large / "gold.jsonl", large / "trace.jsonl", ExecutionOptions("dask"))


def test_without_fsspec_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtra, match=r"Reading URLs needs .*rag-eval-action\[dask\]"):
        open_url("s3://bucket/trace.jsonl")
