"""The commands: what they print, where they write, and the exit code they end with."""

import argparse
import doctest
import errno
import gc
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import rag_eval
from cases import ROOT, gold_row, trace_row, write_rows
from rag_eval import api
from rag_eval.cli import init
from rag_eval.common import guard, paths
from rag_eval.git import NOTHING
from rag_eval.run.authority import Authority, WorkTree
from seams import COMMANDS, PRESETS, RENDERERS, build_parser
from table import each_row

QUICKSTART = ROOT / "examples" / "quickstart"
GOLD = [gold_row(qid="S1", gold_claim_substr=["30 days"], gold_citations=["a"]), gold_row(qid="S2", answerable=False)]
GOOD = [
    trace_row(qid="S1", retrieved_ids=["a"], answer_json={"claim": "Kept 30 days.", "citations": ["a"]}),
    trace_row(qid="S2", retrieved_ids=["a"], answer_json={"claim": "not in context", "citations": []}),
]
BAD = [{**GOOD[0], "answer_json": {"claim": "A week.", "citations": ["a"]}}, GOOD[1]]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with gold and traces in the usual places, which is the current one."""
    write_rows(tmp_path / "eval" / "gold.jsonl", GOLD)
    write_rows(tmp_path / "runs" / "trace.jsonl", GOOD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def rag(command):
    return command


# Help, names, exit codes


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_shows_an_example(rag, name):
    code, out, _ = rag(name, "--help")
    assert (code, "examples:" in out, f"  rag-eval {name}" in out) == (0, True, True)


def test_help_lists_every_command_and_the_exit_codes(rag):
    out = rag("--help")[1]
    assert [name for name in COMMANDS if not re.search(rf"(?m)^    {name}\b", out)] == []
    assert "exit codes: 0 passed, 1 a gate failed, 2 the input cannot be judged, 3 a bug" in out


def test_version_is_that_of_the_package(rag):
    assert rag("--version")[:2] == (0, f"rag-eval {rag_eval.__version__}\n")


@pytest.mark.parametrize(
    "arguments", [["scroe"], ["score", "--fromat", "json"], ["score", "--format", "pdf"], ["gate"]]
)
def test_a_wrong_command_line_ends_with_2_and_the_usage(rag, arguments):
    code, out, err = rag(*arguments)
    assert (code, out, "usage: rag-eval" in err) == (2, "", True)


def valued(parser, words=()):
    """Each option and argument that takes a value, after the words that lead to it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield from valued(sub, (*words, name))
        elif action.nargs != 0 and words:
            yield words, action
            words = words if action.option_strings else (*words, "x")


VALUED = [
    (*words, *action.option_strings, (*action.option_strings, action.metavar)[0])
    for words, action in valued(build_parser())
]


@pytest.mark.parametrize("words", VALUED, ids=" ".join)
def test_an_empty_value_is_never_taken_for_none(rag, project, words):
    """A variable of the shell that is not set must not have another file judged than the one that was meant."""
    code, out, err = rag(*words[:-1], "")
    assert (code, out) == (2, "")
    assert f"{words[-1]} is empty." in err


@pytest.mark.parametrize(
    ("option", "least", "most"),
    [
        ("score --jobs", 1, 512),
        ("collect --python x:y --repeats", 1, 1000),
        ("collect --python x:y --concurrency", 1, 1000),
        ("collect --python x:y --retries", 0, 1000),
        ("collect --python x:y --warm-up", 0, 1000),
        ("judge repeat --n", 1, 100),
        ("judge repeat --sample", 1, 10_000),
        ("judge spot-check --n", 1, 10_000),
        ("gold draft --from x --sample", 0, 999_999_999),
        ("dataset squad_v2 --sample", 0, 999_999_999),
        ("dataset squad_v2 --seed", 0, 999_999_999),
        ("history . --last", 1, 999_999_999),
        ("import langfuse x --max-records", 1, 999_999_999),
        ("import langfuse x --timeout", 1, 999_999_999),
        ("import langfuse x --retries", 1, 999_999_999),
    ],
)
def test_a_whole_number_has_bounds(rag, option, least, most):
    *words, name = option.split()
    for number in (least, most):
        assert number in vars(build_parser().parse_args([*words, name, str(number)])).values()
    for text in (str(least - 1), str(most + 1), "1.5", "x", "\u0663", "0000000001", "9" * 5000):
        code, out, err = rag(*words, f"{name}={text}")
        assert (code, out) == (2, "")
        assert f"argument {name}: '{text[:40]}' is not a whole number from {least} to {most}" in err


@pytest.mark.parametrize("option", ["--rate", "--timeout"])
def test_a_rate_or_a_time_has_bounds(rag, option):
    for text, value in (("0.001", 0.001), ("0.5", 0.5), ("1e6", 1_000_000)):
        parsed = vars(build_parser().parse_args(["collect", "--python", "x:y", option, text]))
        assert parsed[option.strip("-")] == value
    for text in ("0", "-1", "x", "nan", "inf", "1000001", "1e-300"):
        code, out, err = rag("collect", "--python", "x:y", f"{option}={text}")
        assert (code, out) == (2, "")
        assert f"argument {option}: '{text}' is not a number from 0.001 to 1000000" in err


def test_the_defaults_are_those_that_the_help_names():
    for words, action in valued(build_parser()):
        option = " ".join((*words, *action.option_strings))
        named = re.search(r"\(default: (\S+)\)", (action.help or "") % {**vars(action), "prog": "rag-eval"})
        if named and named[1] not in ("all", "stdout", "OpenAI's") and action.default not in (None, "", [], ()):
            default = f"{action.default:g}" if isinstance(action.default, float) else str(action.default)
            assert (option, default) == (option, named[1])
        if action.choices and action.default:
            assert action.default in action.choices, option


@pytest.mark.parametrize("text", [",", " ", " , "])
def test_no_perspective_is_not_all_of_them(rag, project, text):
    assert rag("score", "--perspective", text)[:2] == rag("metrics", "--perspective", text)[:2] == (2, "")


@pytest.mark.parametrize("k", ["0", "-1", "x", "1,,3", "1,0", "1000000", "1.5"])
def test_a_wrong_k_ends_with_2_and_says_what_a_right_one_is(rag, project, k):
    code, _, err = rag("score", f"--k={k}")
    assert (code, "such as 5 or 1,3,5" in err) == (2, True)


def test_a_defect_ends_with_3_and_a_report_to_paste_without_data(rag, project, monkeypatch):
    def broken(args):
        raise ValueError("a secret of the user")

    monkeypatch.setattr("rag_eval.cli.inspection.run_metrics", broken)
    code, out, err = rag("metrics")
    assert (code, out) == (3, "")
    assert "please report it" in err
    assert "### ValueError" in err
    assert "secret" not in err


@pytest.mark.parametrize("name", ["orjson", "rpds.rpds"])
def test_a_package_that_cannot_be_loaded_is_named_and_no_defect(rag, monkeypatch, name):
    def broken(args):
        raise ImportError(f"DLL load failed while importing {name}", name=name)

    monkeypatch.setattr("rag_eval.cli.inspection.run_metrics", broken)
    code, _, err = rag("metrics")
    assert (code, err.startswith(f"rag-eval: {name} cannot be loaded: DLL load failed")) == (2, True)
    assert err.endswith("Install rag-eval-action again, with its dependencies.\n")


@each_row(
    ("error", "message"),
    [
        (MemoryError(), guard.OUT_OF_MEMORY),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), guard.OUT_OF_MEMORY),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "x.py"), "'x.py': no such file or directory"),
        (PermissionError(errno.EACCES, "Permission denied", "x.py"), "'x.py': permission denied"),
        (OSError(errno.EIO, "Input/output error", "x.py"), "'x.py': input/output error"),
        (OSError(errno.ENOSPC, "No space left on device", "x.py"), "cannot write x.py: No space left on device"),
    ],
)
def test_an_error_of_the_machine_is_no_defect(rag, monkeypatch, error, message):
    def broken(args):
        raise error

    monkeypatch.setattr("rag_eval.cli.inspection.run_metrics", broken)
    code, out, err = rag("metrics")
    assert (code, out) == (2, "")
    assert err.startswith(f"rag-eval: {message}")
    assert not message.startswith("'x.py'") or err.endswith(". Check its path and permissions.\n")


def test_an_error_of_the_system_without_a_file_is_a_defect(rag, monkeypatch):
    def broken(args):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("rag_eval.cli.inspection.run_metrics", broken)
    assert rag("metrics")[0] == 3


def test_a_module_of_our_own_that_is_not_there_is_a_defect(rag, monkeypatch):
    def broken(args):
        from rag_eval import nowhere  # noqa: F401

    monkeypatch.setattr("rag_eval.cli.inspection.run_metrics", broken)
    assert rag("metrics")[0] == 3


# score


def test_score_takes_the_usual_places_and_passes(rag, project):
    code, out, err = rag("score")
    assert (code, err) == (0, "")
    assert out.startswith("PASSED  4 of 4 gates · all 2 questions right\n\n")


def test_score_ends_with_1_when_a_gate_fails(rag, project):
    write_rows(project / "runs" / "trace.jsonl", BAD)
    code, out, _ = rag("score", "--format", "table")
    assert code == 1
    assert out.startswith("FAILED  1 of 4 gates · 1 of 2 questions wrong\n\nGate ")


def test_score_ends_with_2_and_prints_no_scores_when_a_file_is_wrong(rag, project):
    write_rows(project / "runs" / "trace.jsonl", [{"qid": "S1"}])
    code, out, err = rag("score")
    assert (code, out) == (2, "")
    assert err.startswith("runs/trace.jsonl:1: ")


def test_score_names_all_problems_of_both_files(rag, project):
    write_rows(project / "eval" / "gold.jsonl", [GOLD[0], {**GOLD[1], "answerable": "no"}])
    write_rows(project / "runs" / "trace.jsonl", [GOOD[0], {"qid": "S2"}])
    err = rag("score")[2]
    assert "eval/gold.jsonl:2: /answerable: 'no' is not true or false" in err
    assert "runs/trace.jsonl:2:" in err


def test_score_names_the_file_that_is_not_there(rag, project):
    code, _, err = rag("score", "--gold", "eval/golden.jsonl")
    assert (code, "eval/golden.jsonl" in err) == (2, True)


def test_score_picks_up_the_gates_file_of_the_folder(rag, project):
    (project / "eval-gates.yml").write_text("version: 1\ngates:\n  mrr: {min: 1}\n", encoding="utf-8")
    gates = json.loads(rag("score", "--format", "json")[1])["gates"]
    assert gates[0]["name"] == "mrr"


def test_score_picks_up_a_gates_file_of_the_other_usual_name(rag, project):
    (project / "eval-gates.yaml").write_text("version: 1\ngates:\n  mrr: {min: 1}\n", encoding="utf-8")
    report = json.loads(rag("score", "--format", "json")[1])
    assert (report["gates_file"], report["gates"][0]["name"]) == ("eval-gates.yaml", "mrr")


@pytest.mark.parametrize("words", [["score"], ["score", "--format", "scores"], ["metrics"], ["gold", "lint"]])
def test_two_gates_files_are_refused(rag, project, words):
    for name in ("eval-gates.yml", "eval-gates.yaml"):
        (project / name).write_text("version: 1\n", encoding="utf-8")
    code, out, err = rag(*words)
    assert (code, out) == (2, "")
    assert "eval-gates.yml and eval-gates.yaml both exist, but only one can apply. Remove the other one." in err
    assert rag("score", "--gates", "eval-gates.yaml")[0] == 0


@pytest.mark.parametrize("name", ["score", "metrics", "probe"])
@pytest.mark.parametrize("trace", ["runs/trace.jsonl", "missing.jsonl"])
def test_garbage_is_collected_after_a_command_as_before_it(rag, project, name, trace):
    assert gc.isenabled()
    try:
        for switch in (gc.disable, gc.enable):
            switch()
            frozen = gc.get_freeze_count()
            rag(name, "--trace", trace)
            assert (gc.isenabled(), gc.get_freeze_count()) == (switch is gc.enable, frozen)
    finally:
        gc.enable()


def test_score_says_when_there_is_no_gates_file(rag, project):
    assert "the default gates apply" in rag("score")[1]


def test_score_measures_at_the_cutoffs_that_are_asked_for_and_at_the_gates_own(rag, project):
    (project / "eval-gates.yml").write_text("version: 1\nk: 2\ngates:\n  ndcg@7: {min: 0}\n", encoding="utf-8")
    metrics = json.loads(rag("score", "--format", "json", "--k", "4,2,4")[1])["metrics"]
    assert [name for name in metrics if name.startswith("recall_all@")] == ["recall_all@2", "recall_all@4"]
    assert [name for name in metrics if name.startswith("ndcg@")] == ["ndcg@2", "ndcg@4", "ndcg@7"]


def test_score_prints_notes_on_stderr_unless_quiet(rag, project):
    write_rows(project / "runs" / "trace.jsonl", [{**GOOD[0], "retreived_ids": []}, GOOD[1]])
    assert "Did you mean 'retrieved_ids'?" in rag("score")[2]
    assert rag("score", "--quiet")[2] == ""


def test_score_writes_every_format_whole(rag, project):
    out = rag("score", "--out", "report", "--format", "json")[1]
    files = {path.name: path.read_text(encoding="utf-8") for path in (project / "report").iterdir()}
    assert set(files) == {file for _, file in RENDERERS.values()}
    assert files["report.json"] == out
    for form, (_, file) in RENDERERS.items():
        assert rag("gate", "report/report.json", "--format", form, "--verbose")[:2] == (0, files[file]), form


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="there, names are Unicode")
def test_files_whose_names_are_not_utf_8_are_told_in_escapes(rag, project):
    for role, path in (("gold", "eval/gold.jsonl"), ("trace", "runs/trace.jsonl")):
        (project / path).rename(os.fsdecode(os.fsencode(project / role) + b"\xfc"))
    names = [os.fsdecode(role + b"\xfc") for role in (b"gold", b"trace")]
    code, out, _ = rag("score", "--gold", names[0], "--trace", names[1], "--format", "json", "--out", "report")
    report = json.loads(out)
    assert (code, [item["path"] for item in report["inputs"]]) == (0, ["gold\\udcfc", "trace\\udcfc"])
    assert (project / "report" / "report.json").read_text("utf-8") == out
    assert rag("gate", "report/report.json", "--format", "json")[:2] == (0, out)


def test_score_names_the_folder_that_it_cannot_write(rag, project):
    (project / "taken").write_text("", encoding="utf-8")
    code, _, err = rag("score", "--out", "taken")
    assert (code, "taken" in err) == (2, True)


def test_score_refuses_inline_gates_for_a_report(rag, project):
    code, _, err = rag("score", "--gates", "precision=1,chr=1,under=0,over=0")
    assert (code, "--format scores" in err) == (2, True)


def test_score_refuses_a_baseline_that_scores_would_leave_out(rag, project):
    code, out, err = rag("score", "--format", "scores", "--baseline", "nope.json")
    assert (code, out, "--baseline" in err) == (2, "", True)


def test_validate_refuses_a_trace_that_names_no_question(rag, project):
    unnamed = {name: value for name, value in GOOD[0].items() if name not in ("qid", "q")}
    write_rows(project / "runs" / "trace.jsonl", [GOOD[0], unnamed])
    code, out, err = rag("validate", "runs/trace.jsonl")
    assert (code, out) == (2, "")
    assert "runs/trace.jsonl:2: the trace has neither an id nor a question." in err
    assert err.splitlines()[0] in rag("score")[2]


@pytest.mark.parametrize("name", ["runs/trace.jsonl", "answers.json"])
def test_validate_says_that_traces_may_not_be_an_array(rag, project, name):
    (project / name).write_text(json.dumps(GOOD), "utf-8")
    code, out, err = rag("validate", name)
    assert (code, out) == (2, "")
    assert err.startswith(f"{name}:1: is a JSON array; traces are JSON Lines. Write one trace per line;"), err


def test_flat_scores_say_that_they_read_answer_json_only(rag, project):
    write_rows(project / "runs" / "trace.jsonl", [{"qid": "Q1", "answer": "30 days"}])
    _, _, err = rag("score", "--format", "scores")
    assert "--format scores finds no answer in 1 trace. It reads only qid, q_id and answer_json." in err


def test_score_refuses_to_write_scores_as_a_report(rag, project):
    assert rag("score", "--format", "scores", "--out", "report")[0] == 2


# gate


@pytest.fixture
def report_file(rag, project):
    """A report.json of a passing run."""
    rag("score", "--out", "report")
    return project / "report" / "report.json"


def test_gate_without_other_gates_comes_to_the_same_report(rag, report_file):
    code, out, _ = rag("gate", report_file, "--format", "json")
    assert code == 0
    assert out == report_file.read_text(encoding="utf-8")


def test_gate_says_which_inputs_changed_since_the_report(rag, project):
    (project / "eval-gates.yml").write_text("version: 1\n")
    rag("score", "--out", "report")
    assert rag("gate", "report/report.json")[2] == ""
    for path in ("eval/gold.jsonl", "eval-gates.yml"):
        (project / path).write_bytes((project / path).read_bytes() + b"\n")
    gold, gates = (
        f"{path}: changed since report/report.json was made. Score the run again\n"
        for path in ("eval/gold.jsonl", "eval-gates.yml")
    )
    assert sorted(rag("gate", "report/report.json")[2].splitlines(keepends=True)) == [gates, gold]
    (project / "runs/trace.jsonl").unlink()
    assert rag("gate", "report/report.json", "--gates", "eval-gates.yml")[2] == gold
    (project / "runs/trace.jsonl").symlink_to("/dev/zero")  # never ends
    assert rag("gate", "report/report.json", "--gates", "eval-gates.yml")[2] == gold


def test_gate_judges_by_the_gates_that_are_named(rag, report_file, project):
    (project / "strict.yml").write_text("version: 1\ngates:\n  precision@5: {min: 0.9}\n", encoding="utf-8")
    code, out, _ = rag("gate", report_file, "--gates", "strict.yml")
    assert code == 1
    assert re.search(r"precision@5 +0.200 .* ≥ 0.90? +failed\n", out)


def test_gate_says_which_metrics_the_report_does_not_hold(rag, report_file, project):
    (project / "other.yml").write_text("version: 1\ngates:\n  ndcg@77: {min: 0.9}\n", encoding="utf-8")
    code, out, err = rag("gate", report_file, "--gates", "other.yml")
    assert (code, "no data (counts as failed)" in out) == (1, True)
    assert "no value for ndcg@77. To get it, score the run again" in err


def test_gate_believes_the_values_and_not_the_verdict_of_a_report(rag, report_file):
    value = json.loads(report_file.read_text(encoding="utf-8"))
    value["metrics"]["precision"].update(value=0.0, exact="0", hits=0)
    report_file.write_text(json.dumps(value), encoding="utf-8")
    assert rag("gate", report_file)[0] == 1


@pytest.mark.parametrize(("name", "score"), [("precision", 2), ("precision", -1), ("recall@5", 7), ("chr", 0.5)])
def test_gate_refuses_scores_that_a_metric_cannot_give(rag, report_file, name, score):
    value = json.loads(report_file.read_text(encoding="utf-8"))
    value["questions"][0]["scores"][name] = score
    report_file.write_text(json.dumps(value), encoding="utf-8")
    code, out, err = rag("gate", report_file)
    assert (code, out) == (2, "")
    assert f"'S1' has an impossible score: '{name}' cannot be {float(score)}. Score the run again." in err


@pytest.mark.parametrize(("line", "code"), [(2**53 - 1, 0), (2**53, 2), (10**400, 2)])
def test_reports_are_read_with_every_line_that_their_schema_allows(rag, report_file, line, code):
    value = json.loads(report_file.read_text(encoding="utf-8"))
    value["questions"][0]["trace_line"] = line
    report_file.write_text(json.dumps(value), encoding="utf-8")
    assert rag("gate", report_file)[0] == code


def test_gate_refuses_a_report_that_contradicts_itself(rag, report_file, monkeypatch):
    def contradicted(_):
        raise ValueError("secret")

    monkeypatch.setattr("rag_eval.cli.saved_reports.rejudge_same_gates", contradicted)
    code, out, err = rag("gate", report_file)
    assert (code, out) == (2, "")
    assert err == f"{report_file}: contradicts itself (ValueError). Score the run again.\n"


@pytest.mark.parametrize("kept", [(), ("precision", "chr"), ("completeness.missing", "completeness.duplicate")])
def test_gate_refuses_a_report_that_gates_were_taken_out_of(rag, report_file, kept):
    value = json.loads(report_file.read_text(encoding="utf-8"))
    value["gates"] = [gate for gate in value["gates"] if gate["name"] in kept]
    report_file.write_text(json.dumps(value), encoding="utf-8")
    code, out, err = rag("gate", report_file)
    assert (code, out) == (2, "")
    assert "/gates: has no gate completeness." in err
    assert ", which every run has. Score the run again, or name gates with --gates." in err


def test_gate_judges_a_report_without_gates_by_those_that_are_named(rag, report_file, project):
    whole = json.loads(report_file.read_text(encoding="utf-8"))
    report_file.write_text(json.dumps({**whole, "gates": []}), encoding="utf-8")
    (project / "own.yml").write_text("version: 1\ngates:\n  precision: {min: 0.9}\n", encoding="utf-8")
    assert rag("gate", report_file, "--gates", "own.yml", "--format", "table")[1].startswith(
        "PASSED  1 of 1 gate · all 2 questions right\n"
    )


def test_gate_refuses_few_cases_of_no_slice(rag, report_file):
    value = json.loads(report_file.read_text(encoding="utf-8"))
    value["gates"][0]["few"] = True
    report_file.write_text(json.dumps(value), encoding="utf-8")
    code, out, err = rag("gate", report_file)
    assert (code, out) == (2, "")
    assert "/gates/0/slice: the text is empty. Few cases are those of a slice" in err


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"format": 1}'])
def test_gate_refuses_what_is_no_report(rag, project, text):
    (project / "report.json").write_text(text, encoding="utf-8")
    code, out, err = rag("gate", "report.json")
    assert (code, out, err.startswith("report.json:")) == (2, "", True)


# init


def test_init_writes_files_that_are_valid(rag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = rag("init")
    assert (code, out.startswith("wrote  eval/gold.jsonl\nwrote  eval-gates.yml\n")) == (0, True)
    assert rag("validate", "eval/gold.jsonl", "eval-gates.yml")[0] == 0


def test_init_says_that_git_ignores_the_gold_set(rag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    (tmp_path / ".gitignore").write_text("*.jsonl\n")
    out = rag("init")[1]
    assert "wrote  eval/gold.jsonl  (git ignores it, so add it by force: git add -f eval/gold.jsonl)\n" in out
    assert out.count("git ignores it") == 1, "the traces are meant to be ignored"


@pytest.mark.parametrize("repository", [False, True])
@pytest.mark.parametrize("preset", PRESETS)
def test_init_and_score_end_in_a_verdict(rag, tmp_path, monkeypatch, preset, repository):
    monkeypatch.chdir(tmp_path)
    if repository:
        subprocess.run(["git", "init", "-q"], check=True)
    rag("init", "--preset", preset)
    code, out, err = rag("score")
    assert (code, err) == (0, "")
    assert "all 3 questions right" in out


def test_the_script_that_init_writes_makes_the_sample_traces(rag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rag("init")
    sample = (tmp_path / "runs/trace.jsonl").read_text("utf-8")
    for _ in range(2):  # a second run replaces the rows of the first
        subprocess.run([sys.executable, "eval/write_traces.py"], check=True)
    workflow = yaml.safe_load((tmp_path / ".github/workflows/rag-eval.yml").read_text("utf-8"))
    assert workflow["jobs"]["answer"]["steps"][-2]["run"] == "python eval/write_traces.py"
    written = (tmp_path / "runs/trace.jsonl").read_text("utf-8")
    assert [compared(line) for line in written.splitlines()] == [compared(line) for line in sample.splitlines()]
    assert rag("score")[0] == 0


def compared(line):
    """Return the fields of a trace that do not depend on the clock."""
    return {name: value for name, value in json.loads(line).items() if name not in ("ts", "latency_ms")}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("score", "--fromat", "json"),
            "rag-eval score: error: unrecognized arguments: --fromat json. Did you mean '--format'?",
        ),
        (("score", "x.jsonl"), "unrecognized arguments: x.jsonl. Name files with --gold and --trace."),
        (
            ("gold", "check", "--stagd"),
            "rag-eval gold check: error: unrecognized arguments: --stagd. Did you mean '--staged'?",
        ),
        (("init", "x"), "unrecognized arguments: x. For help: rag-eval init --help"),
        (("score", "--treshold=3"), "unrecognized arguments: --treshold=3. For help: rag-eval score --help"),
    ],
)
def test_an_argument_that_is_unknown_is_answered_with_what_to_write(rag, words, said):
    code, _, err = rag(*words)
    assert (code, said in err) == (2, True), err


def test_gold_alone_prints_its_help(rag):
    code, out, _ = rag("gold")
    assert (code, out) == (2, rag("gold", "--help")[1])


@pytest.mark.parametrize(
    ("tool", "keys"),
    [
        ("langfuse", ["LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"]),
        ("langsmith", ["LANGSMITH_API_KEY"]),
        ("phoenix", ["PHOENIX_API_KEY"]),
    ],
)
def test_init_writes_a_workflow_that_fetches_the_traces_of_a_tool(rag, tmp_path, monkeypatch, tool, keys):
    monkeypatch.chdir(tmp_path)
    _, out, _ = rag("init", "--from", tool)
    workflow = yaml.safe_load((tmp_path / ".github/workflows/rag-eval.yml").read_text("utf-8"))
    steps = [step for step in workflow["jobs"]["answer"]["steps"] if "run" in step]
    assert "rag-eval-action[collect] @ git+https" in steps[0]["run"]
    assert (steps[1]["run"], steps[-1]["env"]) == (
        "date -u +%FT%TZ > started",
        {key: f"${{{{ secrets.{key} }}}}" for key in keys},
    )
    command = steps[-1]["run"].replace('"$(cat started)"', "today")
    assert f"Set {' and '.join(keys)}, let your system answer the questions, then: {command} && rag-eval score\n" in out
    words = shlex.split(command)
    args = build_parser().parse_args(words[1:])
    assert (words[1:3], args.from_api, args.since[10:19]) == (["import", tool], True, "T00:00:00")
    for key in keys:
        monkeypatch.setenv(key, "key")
    for server in ("LANGFUSE_BASE_URL", "LANGSMITH_ENDPOINT", "PHOENIX_ENDPOINT"):
        monkeypatch.setenv(server, "http://127.0.0.1:9")
    code, _, err = rag(*words[1:], "--retries", "1")
    assert (code, "http://127.0.0.1:9/" in err) == (2, True), "the command gets as far as the server"
    assert not (tmp_path / "eval/write_traces.py").exists()
    assert rag("score")[0] == 0


def test_init_writes_the_hook_for_sign_offs_only_if_it_is_chosen(rag, tmp_path, monkeypatch):
    hooks = []
    for options in ([], ["--signoff"]):
        folder = tmp_path / str(len(options))
        folder.mkdir()
        monkeypatch.chdir(folder)
        rag("init", *options)
        hooks.append(yaml.safe_load((folder / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0]["hooks"])
    assert hooks[0] == [{"id": "rag-eval-validate"}, {"id": "rag-eval-gates"}]
    assert hooks[1] == [*hooks[0], {"id": "rag-eval-gold-signoff"}]


def test_init_writes_no_sample_traces_for_questions_of_your_own(rag, project):
    (project / "runs/trace.jsonl").unlink()
    assert "runs/trace.jsonl\n" not in rag("init")[1].partition("Next")[0]
    assert not (project / "runs/trace.jsonl").exists()


def test_score_says_that_the_sample_traces_answer_other_questions(rag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rag("init")
    assert rag("score")[2] == ""
    write_rows(tmp_path / "eval" / "gold.jsonl", [gold_row(qid="X1", question="Mine?")])
    code, _, err = rag("score")
    assert (code, "runs/trace.jsonl is the sample of rag-eval init, for its own questions. " in err) == (1, True)


def test_init_keeps_traces(rag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "runs" / "trace.jsonl", [trace_row()])
    before = (tmp_path / "runs/trace.jsonl").read_bytes()
    assert "kept   runs/trace.jsonl\n" in rag("init")[1]
    assert (tmp_path / "runs/trace.jsonl").read_bytes() == before


def test_init_leaves_what_is_there(rag, project):
    before = (project / "eval" / "gold.jsonl").read_bytes()
    out = rag("init")[1]
    assert out.startswith("kept   eval/gold.jsonl\nwrote  eval-gates.yml\n")
    assert (project / "eval" / "gold.jsonl").read_bytes() == before


def test_init_says_if_a_configuration_that_is_there_does_not_name_rag_eval(rag, project):
    (project / ".pre-commit-config.yaml").write_text("repos: []\n", "utf-8")
    (project / ".github/workflows/rag-eval.yml").mkdir(parents=True)
    advice = "  (it does not name rag-eval yet: the README shows the entry to add)\n"
    out = rag("init")[1]
    assert f"kept   .pre-commit-config.yaml{advice}" in out
    assert f"kept   .github/workflows/rag-eval.yml{advice}" in out
    (project / ".pre-commit-config.yaml").write_text("repos: []  # rag-eval is elsewhere\n", "utf-8")
    assert "kept   .pre-commit-config.yaml\n" in rag("init")[1]


def test_init_leaves_a_gates_file_of_the_other_usual_name(rag, project):
    (project / "eval-gates.yaml").write_text("version: 1\n", "utf-8")
    out = rag("init")[1]
    assert "kept   eval-gates.yaml\n" in out
    assert "Set the limits that you want in eval-gates.yaml." in out
    assert not (project / "eval-gates.yml").exists()


def test_validate_of_a_csv_says_how_to_import_it(rag, tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("question,reference,answer\nHow long?,Two years.,Three.\n", "utf-8")
    code, out, err = rag("validate", str(path))
    assert (code, out, f"Convert it: rag-eval import table-gold {path}" in err) == (2, "", True)
    assert err.count("\n") == 1


def test_init_says_which_existing_files_its_options_do_not_change(rag, project):
    rag("init")
    out = rag("init", "--preset", "starter", "--collect", "url")[1]
    unchanged = [line.split()[1] for line in out.splitlines() if line.endswith("to write it again, remove it first)")]
    assert unchanged == ["eval-gates.yml", ".github/workflows/rag-eval.yml"]


@pytest.mark.parametrize(
    ("columns", "row", "has_traces"),
    [
        ("question,reference", "How long?,Two years.", False),
        ("question,answer", "How long?,Two years.", False),
        ("question,reference,answer", "How long?,Two years.,Three.", True),
    ],
)
def test_init_takes_questions_from_a_file_and_collects_the_answers(
    rag, tmp_path, monkeypatch, columns, row, has_traces
):
    monkeypatch.chdir(tmp_path)
    Path("questions.csv").write_text(f"{columns}\n{row}\n", "utf-8")
    code, out, _ = rag("init", "--from", "questions.csv", "--collect", "url")
    assert (code, "Write into gold_claim_substr" in out) == (0, True)
    (item,) = json.loads(f"[{Path('eval/gold.jsonl').read_text('utf-8')}]")
    assert (item["expected_answer"], Path("runs/trace.jsonl").exists()) == ("Two years.", has_traces)
    assert "rag-eval collect --url http" in Path(".github/workflows/rag-eval.yml").read_text("utf-8")


@pytest.mark.parametrize("name", ["exec", "python", "url", "./exec", "./langfuse"])
def test_init_reads_a_file_whose_name_is_a_word_of_an_option(rag, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    unknown = rag("init", "--from", name)
    assert (unknown[0], f"there is no file {name}. " in unknown[2], list(tmp_path.iterdir())) == (2, True, [])
    sample = {"user_input": "How long?", "response": "Two years.", "reference": "Two years."}
    Path(name).write_text(json.dumps(sample), encoding="utf-8")
    code, out, _ = rag("init", "--from", name)
    assert (code, f"write {name}, then: " in out) == (0, True)
    assert [path.name for path in (tmp_path / "eval").iterdir()] == ["gold.jsonl"]


def test_init_leaves_no_files_if_gates_cannot_be_fitted(rag, tmp_path, monkeypatch):
    """Only the trace reads a question that was written as JSON, so it differs from that of the gold item."""
    monkeypatch.chdir(tmp_path)
    sample = {"question": '"How long?"', "answer": "Two years.", "expected_answer": "Two years."}
    (tmp_path / "records.jsonl").write_text(json.dumps(sample), encoding="utf-8")
    code, _, err = rag("init", "--from", "records.jsonl")
    assert (code, "no gold question is 'How long?'" in err) == (2, True)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["records.jsonl"]


@pytest.mark.parametrize("way", ["url", "exec", "python"])
def test_init_writes_a_workflow_that_collects_and_then_gates(rag, tmp_path, monkeypatch, way):
    monkeypatch.chdir(tmp_path)
    out = rag("init", "--collect", way)[1]
    workflow = yaml.safe_load((tmp_path / ".github/workflows/rag-eval.yml").read_text("utf-8"))
    assert list(workflow["jobs"]) == ["answer", "rag-eval"]
    runs = [step["run"] for step in workflow["jobs"]["answer"]["steps"] if "run" in step]
    assert runs[0].startswith('pip install "rag-eval-action')
    assert "@ git+https://github.com/org/rag-eval-action@v" in runs[0]
    assert [("[collect]" in runs[0]), runs[1] in out] == [way == "url", True]
    assert not (tmp_path / "eval/write_traces.py").exists()
    if way == "url":
        assert not (tmp_path / "eval/answer.py").exists()
        assert build_parser().parse_args(shlex.split(runs[1])[1:]).url == "http://localhost:8000"
        return
    sample = (tmp_path / "runs/trace.jsonl").read_text("utf-8")
    words = shlex.split(runs[1].replace("python eval/", f"{sys.executable} eval/"))
    code, _, err = rag(*words[1:])
    assert code == 0, err
    code, _, err = rag(*words[1:])
    assert (code, "runs/trace.jsonl already exists. " in err) == (2, True), "answers of a system are no sample"
    written = [json.loads(line) for line in (tmp_path / "runs/trace.jsonl").read_text("utf-8").splitlines()]
    asked = [json.loads(line) for line in sample.splitlines()]
    assert [row["qid"] for row in written] == [row["qid"] for row in asked]
    code, out, _ = rag("score")
    assert (code, "all 3 questions right" in out) == (0, True)


@pytest.mark.parametrize("below", [True, False])
def test_init_writes_no_workflow_where_nobody_reads_it(rag, tmp_path, monkeypatch, below):
    """GitHub and pre-commit look at the root of a repository alone; elsewhere a gate would seem to be there."""
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "apps/search" if below else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(folder)
    out = rag("init")[1]
    assert ("left   .github/workflows/rag-eval.yml  (" in out, "/several.html)" in out) == (below, below)
    written = [(folder / name).exists() for name in (".github", ".pre-commit-config.yaml", "eval-gates.yml")]
    assert written == [not below, not below, True]


# explain, metrics, validate, demo


@pytest.mark.parametrize(
    ("name", "words"),
    [("precision", "correctly cited"), ("recall@5", "first k"), ("recall@k", "first k"), ("map", "average precision")],
)
def test_explain_says_what_a_metric_is(rag, name, words):
    code, out, _ = rag("explain", name)
    assert (code, words in out, "as a gate" in out) == (0, True, True)


def test_explain_says_why_a_question_scored_as_it_did(rag, project):
    write_rows(project / "runs" / "trace.jsonl", BAD)
    code, out, _ = rag("explain", "S1")
    assert code == 0
    assert out.startswith("S1: WRONG_CLAIM (the claim contains no gold substring)")
    assert "claim        A week." in out
    assert re.search("^  precision +0$", out, re.MULTILINE)


def test_explain_says_by_which_rule_a_claim_refuses(rag, project):
    lost = "I could not find this in the documents."
    write_rows(project / "runs" / "trace.jsonl", [{**BAD[0], "answer_json": {"claim": lost}}])
    pattern = "the built-in pattern 'i could not find' (en, lacks)"
    fix = f"To count {pattern}, write builtin: true under refusal in eval-gates.yml"
    assert f"\nrefused      no. {fix}\n" in rag("explain", "S1")[1]
    (project / "eval-gates.yml").write_text("version: 1\nrefusal: {builtin: true}\n", "utf-8")
    assert f"\nrefused      yes, by {pattern}\n" in rag("explain", "S1")[1]


def test_explain_shows_what_bears_each_sentence_out(rag):
    code, out, _ = rag("explain", "Q01", f"--gold={QUICKSTART / 'gold.jsonl'}", f"--trace={QUICKSTART / 'good.jsonl'}")
    assert code == 0
    assert "by weight#1: parcel may weigh at most 20 kg" in out


def test_explain_shows_a_question_without_a_trace(rag, project):
    write_rows(project / "runs" / "trace.jsonl", GOOD[1:])
    assert rag("explain", "S1")[1].startswith("S1: MISSING")


def test_explain_shows_every_run_of_a_question(rag, project):
    write_rows(project / "runs" / "trace.jsonl", [{**GOOD[0], "run": "one"}, {**BAD[0], "run": "two"}])
    out = rag("explain", "S1")[1]
    assert ("S1, run one: OK" in out, "S1, run two: WRONG_CLAIM" in out) == (True, True)


@pytest.mark.parametrize(
    ("subject", "hint"),
    [("S11", "Did you mean 'S1'?"), ("presicion", "Did you mean 'precision'?"), ("zzzzzz", "rag-eval metrics")],
)
def test_explain_of_an_unknown_name_says_what_may_have_been_meant(rag, project, subject, hint):
    code, out, err = rag("explain", subject)
    assert (code, out, hint in err) == (2, "", True)


def test_metrics_lists_them_all(rag):
    from seams import METRICS

    out = rag("metrics")[1]
    assert [name for name in METRICS if f"\n{name} " not in out] == []


def test_metrics_lists_one_perspective(rag):
    out = rag("metrics", "--perspective", "refusals")[1]
    assert ("over_refusal" in out, "mrr" in out) == (True, False)


def test_metrics_of_an_unknown_perspective_names_the_known_ones(rag):
    code, _, err = rag("metrics", "--perspective", "cost")
    assert (code, "answers, refusals, citations, retrieval" in err) == (2, True)


def test_validate_says_what_each_file_is(rag, project):
    code, out, err = rag("validate", "eval/gold.jsonl", "runs/trace.jsonl")
    assert (code, err) == (0, "")
    assert out == "eval/gold.jsonl: valid, 2 gold items, 1 answerable and 1 not\nruns/trace.jsonl: valid, 2 traces\n"


def test_validate_says_that_the_default_gates_apply_to_a_file_without_gates(rag, tmp_path):
    (tmp_path / "eval-gates.yml").write_text("version: 1\n")
    out = rag("validate", str(tmp_path / "eval-gates.yml"))[1]
    assert out.endswith("eval-gates.yml: valid, without gates: the default gates apply\n")


def test_validate_searches_gates_no_further_than_the_root(rag):
    for path in ("//x", "/x", "x"):
        code, _, err = rag("validate", "--only-named", path)
        assert (code, "no such file" in err) == (2, True)


def test_validate_leaves_out_what_no_gates_file_names_if_asked(rag, project, tmp_path):
    (tmp_path / "other.jsonl").write_text("{\n", "utf-8")
    gold = tmp_path / "mine" / "gold.jsonl"
    gold.parent.mkdir()
    gold.write_text("{}\n", "utf-8")
    assert rag("validate", "--only-named", "other.jsonl")[0] == 2, "without a gates file every file is checked"
    (tmp_path / "eval-gates.yml").write_text("version: 1\ngold: mine/gold.jsonl\n", "utf-8")
    code, out, _ = rag("validate", "--only-named", "other.jsonl")
    assert (code, out) == (0, "other.jsonl: not checked, because eval-gates.yml does not name it\n")
    assert rag("validate", "other.jsonl")[0] == 2
    code, _, err = rag("validate", "--only-named", "other.jsonl", "./mine/gold.jsonl")
    assert (code, "gold.jsonl:1" in err, "other.jsonl" in err) == (2, True, False)
    (tmp_path / "mine" / "eval-gates.yml").write_text("version: 1\ngold: set.jsonl\n", "utf-8")
    assert rag("validate", "--only-named", "mine/gold.jsonl")[0] == 0, "the nearest gates file decides"
    (tmp_path / "mine" / "eval-gates.yml").write_text("version: [\n", "utf-8")
    assert rag("validate", "--only-named", "mine/gold.jsonl")[0] == 2, "broken gates leave nothing out"


def test_validate_takes_two_gold_files_for_two_gold_sets(rag, project):
    write_rows(project / "eval" / "gold-nightly.jsonl", GOLD)
    assert rag("validate", "eval/gold.jsonl", "eval/gold-nightly.jsonl")[0] == 0
    write_rows(project / "eval" / "gold-nightly.jsonl", [*GOLD, GOLD[0]])
    code, _, err = rag("validate", "eval/gold.jsonl", "eval/gold-nightly.jsonl")
    assert (code, err.startswith("eval/gold-nightly.jsonl:3: /qid:")) == (2, True)


def test_validate_takes_a_report(rag, report_file):
    assert rag("validate", report_file)[0] == 0


def test_demo_shows_a_run_that_passes_and_one_that_fails_and_what_is_next(rag, project):
    code, out, _ = rag("demo")
    assert code == 0
    assert ("PASSED  8 of 8 gates" in out, "FAILED  4 of 8 gates" in out, "rag-eval init" in out) == (True,) * 3


def test_what_demo_says_to_try_next_works(rag, project):
    out = rag("demo")[1]
    lines = [line.split() for line in out.splitlines() if line.startswith("  rag-eval explain")]
    assert [rag(*line[1 : 3 if "--gold" not in line else None])[0] for line in lines] == [0] * len(lines)
    assert len(lines) == init._AFTER_DEMO.count("rag-eval explain") == 2


# The library


def test_score_gives_a_report(project):
    report = rag_eval.score("eval/gold.jsonl", project / "runs" / "trace.jsonl")
    assert isinstance(report, rag_eval.Report)
    assert (report.passed, report.metrics["precision"].exact, report.failed_gates) == (True, "1", [])


@pytest.mark.parametrize(
    ("k", "names"),
    [
        (4, ["recall@4"]),
        ((2, 1, 2), ["recall@1", "recall@2"]),
        (None, ["recall@1", "recall@3", "recall@5", "recall@10"]),
    ],
)
def test_score_takes_one_k_or_several(project, k, names):
    report = rag_eval.score("eval/gold.jsonl", "runs/trace.jsonl", k=k)
    assert [name for name in report.metrics if name.startswith("recall@")] == names


def test_score_takes_a_baseline(rag, project):
    rag("score", "--out", "earlier")
    report = rag_eval.score("eval/gold.jsonl", "runs/trace.jsonl", None, project / "earlier" / "report.json")
    assert report.baseline.path == str(project / "earlier" / "report.json")


def test_score_takes_one_perspective_by_its_name(project):
    report = rag_eval.score("eval/gold.jsonl", "runs/trace.jsonl", perspectives="retrieval")
    assert report.scope.perspectives == ("retrieval",)


@pytest.mark.parametrize(
    "arguments",
    [
        *({"k": k} for k in (0, -1, True, [0, 5], ["5"], "5", 5.0, [1.5], 1_000_000)),
        *({"perspectives": names} for names in ("retreival", [5], 5, ["retrieval", None])),
        *({"suite": suite} for suite in ("smok", 5, None)),
        *({name: path} for name in ("gold", "trace", "gates", "baseline") for path in ("", b"")),
    ],
    ids=str,
)
def test_score_refuses_arguments_that_cannot_be(project, arguments):
    usual = {"gold": "eval/gold.jsonl", "trace": "runs/trace.jsonl"}
    with pytest.raises(rag_eval.UsageError, match=next(iter(arguments)).removesuffix("s")):
        rag_eval.score(**{**usual, **arguments})


def test_score_raises_every_problem(project):
    write_rows(project / "runs" / "trace.jsonl", [{"qid": "S1"}, {"qid": "S2"}])
    with pytest.raises(rag_eval.InputError) as error:
        rag_eval.score("eval/gold.jsonl", "runs/trace.jsonl")
    assert [problem.line for problem in error.value.problems] == [1, 2]


def test_the_example_in_the_docstring_of_score_is_true(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert doctest.testmod(api).failed == 0


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'scroe'"):
        _ = rag_eval.scroe


def test_the_module_runs_as_the_command_does(project):
    done = subprocess.run(
        [sys.executable, "-m", "rag_eval", "score", "--format", "scores"], capture_output=True, text=True
    )
    assert (done.returncode, json.loads(done.stdout)["precision"]) == (0, 1.0)


def test_a_name_that_is_close_to_a_metric_is_said_to_be_one_where_there_is_no_gold_set(rag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = rag("explain", "recal@5")
    assert (code, out) == (2, "")
    assert "Did you mean 'recall@k'?" in err


def test_json_of_no_known_kind_is_only_checked_to_be_strict(rag, tmp_path):
    (tmp_path / "package.json").write_text('{"name": "x"}')
    (tmp_path / "broken.json").write_text('{"name": "x", "name": "y"}')
    code, out, _ = rag("validate", str(tmp_path / "package.json"))
    assert (code, out) == (0, f"{tmp_path}/package.json: valid, strict JSON, neither gold nor a report\n")
    code, _, err = rag("validate", str(tmp_path / "broken.json"))
    assert code == 2
    assert "'name' occurs twice" in err


# The installed command.

ENTRY = [sys.executable, "-c", "from rag_eval.cli import entry; entry()"]


def ended(*words, **how):
    return subprocess.run([*ENTRY, *words], **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how})


@pytest.mark.parametrize(
    ("words", "code"), [(("--version",), 0), (("metrics",), 0), (("score", "--gold", "nope"), 2), (("nope",), 2)]
)
def test_the_installed_command_ends_as_main_does_with_all_that_it_says(words, code, tmp_path):
    plainly = [sys.executable, "-m", "rag_eval", *words]
    done, other = ended(*words, cwd=tmp_path), subprocess.run(plainly, capture_output=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (other.returncode, other.stdout)
    assert (code, bool(done.stderr)) == (done.returncode, code > 0)


def test_an_error_after_the_report_does_not_lose_the_report(project):
    (project / "failed.jsonl").write_text("mine\n")
    done = ended("score", "--save-trace", ".")
    assert (done.returncode, done.stdout.startswith(b"PASSED  4 of 4 gates")) == (2, True)
    assert done.stderr.startswith(b"rag-eval: failed.jsonl is not a file of failed cases.")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_what_cannot_be_written_is_no_defect_and_no_pass():
    with open("/dev/full", "w") as full:
        done = ended("metrics", stdout=full)
    assert done.returncode == 2
    assert (
        done.stderr == b"rag-eval: cannot write: No space left on device. Free some space, or write to another place.\n"
    )


@pytest.fixture
def unread():
    """A pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        yield closed


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_what_cannot_be_said_changes_no_exit_code(tmp_path):
    with open("/dev/full", "w") as full:
        assert ended("score", stderr=full, cwd=tmp_path).returncode == 2


def test_nobody_who_reads_is_no_failure(unread):
    done = ended("metrics", stdout=unread)
    assert (done.returncode, done.stderr) == (0, b"")


VERDICTS = [
    (("score", "--quiet"), 1),
    (("score", "--format", "scores"), 1),
    (("score", "--out", "report", "--format", "json"), 1),
    (("score", "--gold", "nope"), 2),
    (("validate", "eval/gold.jsonl", "runs/nope.jsonl"), 2),
    (("nope",), 2),
]


@pytest.fixture
def failing(project):
    write_rows(project / "runs" / "trace.jsonl", BAD)
    return project


@pytest.mark.parametrize(("words", "code"), VERDICTS)
@pytest.mark.parametrize("flags", [["-c", "from rag_eval.cli import entry; entry()"], ["-um", "rag_eval"]])
def test_a_reader_that_goes_away_changes_no_exit_code(failing, unread, words, code, flags):
    done = subprocess.run([sys.executable, *flags, *words], stdout=unread, stderr=unread)
    assert done.returncode == code


def test_a_report_is_written_whether_or_not_anybody_reads_of_it(failing, unread):
    ended("score", "--out", "report", stdout=unread)
    assert (failing / "report" / "report.json").exists()


@pytest.mark.skipif(os.name == "nt", reason="there is no POSIX shell")
@pytest.mark.parametrize(("words", "code"), VERDICTS)
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_without_streams_the_exit_code_is_the_same(failing, words, code, closed):
    done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *ENTRY, *words], capture_output=True)
    assert done.returncode == code
    assert b"Traceback" not in done.stdout + done.stderr


@pytest.mark.skipif(os.name == "nt", reason="there, the folder of a process cannot be removed")
@pytest.mark.parametrize("words", [("score",), ("demo",), ("validate", "x.jsonl"), ("gold", "freeze", "v1"), ("init",)])
def test_a_folder_that_is_gone_is_no_defect(tmp_path, words):
    script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    (tmp_path / "gone").mkdir()
    done = subprocess.run(["sh", "-c", script, "sh", str(tmp_path / "gone"), *ENTRY, *words], capture_output=True)
    assert (done.returncode, b"defect" in done.stderr) == (2, False), done.stderr


def test_a_pipe_that_breaks_inside_is_no_pass(rag, monkeypatch):
    def broken(_):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("rag_eval.cli.inspection.run_metrics", broken)
    code, _, err = rag("metrics")
    assert (code, err) == (2, "rag-eval: cannot write: Broken pipe. Free some space, or write to another place.\n")


# Windows, as far as another system can play it


def test_no_program_is_looked_for_in_the_folder_at_hand(monkeypatch):
    """Windows looks there first, and a change may bring a git.exe."""
    monkeypatch.setattr(paths, "WINDOWS", True)
    monkeypatch.setattr(os, "environ", {})
    paths.trust_no_program_here()
    assert os.environ == {"NoDefaultCurrentDirectoryInExePath": "1"}


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="there is nothing to which few bytes are an invalid argument")
def test_a_reader_that_goes_away_is_an_invalid_argument_there(monkeypatch):
    with guard._TolerantPipe(os.eventfd(0), "wb") as pipe:
        with pytest.raises(OSError, match="Invalid argument"):
            pipe.write(b"few")
        monkeypatch.setattr(guard, "WINDOWS", True)
        assert pipe.write(b"few") == 3


def test_a_command_that_is_shown_is_quoted_as_the_shell_there_takes_it(monkeypatch):
    words = "C:\\Program Files\\rag-eval.EXE", "--gold", "eval/a b.jsonl"
    assert shlex.split(paths.shell_line(*words)) == [*words]
    monkeypatch.setattr(paths, "WINDOWS", True)
    assert paths.shell_line(*words) == '"C:\\Program Files\\rag-eval.EXE" --gold "eval/a b.jsonl"'


def test_a_folder_on_another_drive_is_named_as_it_is(project, rag, monkeypatch):
    def no_way(path, start=""):
        raise ValueError("path is on mount 'C:', start on mount 'D:'")

    monkeypatch.setattr(os.path, "relpath", no_way)
    code, out, _ = rag("demo")
    assert (code, f"--gold {QUICKSTART}" in out) == (0, True)
    authority = Authority(ref="main", commit="", through="git", gates=None, fork=NOTHING, head=WorkTree("."))
    assert (authority.inside("D:/gold.jsonl"), authority.outside("x")) == (None, "./x")


def test_a_folder_that_cannot_be_opened_is_said_to_be_one(project, rag, monkeypatch):
    def refused(path, flags):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "open", refused)
    code, _, err = rag("validate", "--kind", "trace", "eval")
    assert (code, err) == (2, "eval: is a folder, not a file. Name the file in it.\n")


def test_validate_says_that_a_folder_has_no_label_files(project, rag):
    code, out, err = rag("validate", "eval/")
    expected = "eval/: is a folder without label files. Name files to check: rag-eval validate eval/*\n"
    assert (code, out, err) == (2, "", expected)


def test_a_gates_file_with_backslashes_is_told_what_other_systems_take(project, rag):
    (project / "eval-gates.yml").write_text("version: 1\ngold: eval\\gold.jsonl\n")
    code, _, err = rag("score")
    assert (code, "Write the path with forward slashes" in err) == (2, True)


def test_a_path_with_backslashes_says_as_much_of_what_it_is(project, rag, monkeypatch):
    write_rows(project / "eval\\gold.jsonl", [{"qid": "S1"}])
    assert rag("validate", "eval\\gold.jsonl")[0] == 0  # on other systems that is a name like any other
    monkeypatch.setattr(os, "sep", "\\")
    assert rag("validate", "eval\\gold.jsonl")[0] == 2
