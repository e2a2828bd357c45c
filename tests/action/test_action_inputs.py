"""Inputs as the runner hands them over; action.yml, parser and README agree on them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from rag_eval.action.runner import ActionInputs, read_runner, variable
from rag_eval.action.runner import read_inputs as read_inputs_and_error
from seams import UsageError
from table import each_row

ROOT = Path(__file__).parents[2]


def read_inputs(environ):
    inputs, wrong = read_inputs_and_error(environ)
    if wrong:
        raise wrong
    return inputs


ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))


def test_action_yml_and_parser_know_the_same_inputs():
    assert {name.replace("-", "_") for name in ACTION["inputs"]} == set(ActionInputs._fields)


COMPOSITE = yaml.safe_load((ROOT / "python/action.yml").read_text("utf-8"))


def test_the_action_without_docker_has_the_same_inputs_and_outputs():
    assert COMPOSITE["inputs"] == ACTION["inputs"]
    outputs = {name: dict(entry) for name, entry in COMPOSITE["outputs"].items()}
    values = {name: entry.pop("value") for name, entry in outputs.items()}
    assert outputs == ACTION["outputs"]
    assert values == {name: f"${{{{ steps.gate.outputs.{name} }}}}" for name in ACTION["outputs"]}


def test_no_input_of_the_action_without_docker_is_part_of_a_command():
    [step] = COMPOSITE["runs"]["steps"]
    assert (step["id"], "${{" in step["run"], "${{" in step["shell"]) == ("gate", False, False)
    assert step["env"]["INPUTS"] == "${{ toJSON(inputs) }}"
    assert step["shell"].split() == ["python", "-I", "{0}"]


def test_an_empty_value_is_not_set():
    assert read_inputs({variable(field): "" for field in ActionInputs._fields}) == ActionInputs()


def test_hyphens_are_kept_in_the_variable():
    assert read_inputs({"INPUT_COMMENT-ID": "nightly"}).comment_id == "nightly"


@pytest.mark.parametrize(
    ("field", "text", "why"),
    [
        ("k", "5,x", "is not a list of whole numbers from 1, such as 5 or 1,3,5"),
        ("k", "0", "is not a list of whole numbers from 1, such as 5 or 1,3,5"),
        ("k", ",", "is not a list of whole numbers from 1, such as 5 or 1,3,5"),
        ("comment", "sometimes", "is not one of always, on-change, on-failure, off"),
        ("signoff", "on", "is not one of policy, require, off"),
        ("annotations", "yes", "is not true or false"),
        ("summary", "1", "is not true or false"),
        ("details", "0", "is not true or false"),
        ("check", "no", "is not true or false"),
        ("fail_on", "all", "is not one of error, warning, never"),
        ("comment_id", "a\x85b", "is not valid. Use 1 to 100 printable characters."),
        ("ca_certificates", "none", "contains no certificates. Pass the text of a PEM file"),
        ("gold", "\udcff", "contains bytes that are not UTF-8"),
    ],
)
def test_a_value_that_cannot_be_names_its_input(field, text, why):
    with pytest.raises(UsageError) as refused:
        read_inputs({variable(field): text})
    shown = {"a\x85b": "a b", "\udcff": ""}.get(text, text)
    assert str(refused.value) == f"input '{field.replace('_', '-')}': '{shown}' {why}"


def test_a_comment_id_has_a_hundred_letters_at_most():
    assert read_inputs({"INPUT_COMMENT-ID": "x" * 100}).comment_id == "x" * 100
    with pytest.raises(UsageError, match="Use 1 to 100 printable characters"):
        read_inputs({"INPUT_COMMENT-ID": "x" * 101})


def test_values_are_read():
    given = {"INPUT_K": "5,1", "INPUT_FAIL-ON": "warning", "INPUT_SUMMARY": "False", "INPUT_COMMENT": "on-change"}
    inputs = read_inputs(given)
    assert (inputs.k, inputs.fail_on, inputs.summary, inputs.comment) == ((1, 5), "warning", False, "on-change")


def test_paths_are_taken_from_the_working_directory():
    inputs = read_inputs({"INPUT_WORKING-DIRECTORY": "sub/", "INPUT_GOLD": "g.jsonl"})
    assert (inputs.gold, inputs.trace) == ("sub/g.jsonl", "")


@pytest.mark.parametrize(
    ("given", "folder", "gates"),
    [
        ("./apps/search/", "apps/search", "apps/search/a.yml"),
        ("/apps//search", "apps/search", "apps/search/a.yml"),
        ("apps/../other", "apps/../other", "apps/../other/a.yml"),
        (".", "", "a.yml"),
        ("/", "", "a.yml"),
        ("..", "..", "../a.yml"),
    ],
)
def test_paths_are_read_without_what_leads_nowhere(given, folder, gates):
    inputs = read_inputs({"INPUT_WORKING-DIRECTORY": given, "INPUT_GATES": "./a.yml"})
    assert (inputs.working_directory, inputs.gates) == (folder, gates)


@pytest.mark.parametrize("wrong", [{}, {"INPUT_FAIL-ON": "all"}])
def test_each_working_directory_has_a_comment_of_its_own(wrong):
    """Whatever else is wrong: what cannot be judged must not stand in the comment of another."""

    def of(**given):
        given = {f"INPUT_{name.replace('_', '-')}": text for name, text in given.items()}
        return read_inputs_and_error({**given, **wrong})[0].comment_id

    assert (of(), of(WORKING_DIRECTORY="."), of(WORKING_DIRECTORY="app/")) == ("rag-eval", "rag-eval", "rag-eval:app")
    assert of(WORKING_DIRECTORY="app", COMMENT_ID="mine") == "mine"
    assert of(WORKING_DIRECTORY="x" * 200) == f"rag-eval:{'x' * 91}"
    assert of(WORKING_DIRECTORY="a\u202eb") == "rag-eval"


def test_the_token_stands_in_no_repr():
    secret, hidden = ({"github_token": text, "proxy": text} for text in ("s3cret", "***"))
    assert repr(ActionInputs(**secret)) == f"ActionInputs({ActionInputs(**hidden)._asdict()})"
    assert repr(ActionInputs()) == f"ActionInputs({ActionInputs()._asdict()})"


TYPES = yaml.safe_load((ROOT / "action-types.yml").read_text("utf-8"))


def test_the_types_are_those_of_all_inputs_and_outputs():
    assert {kind: list(names) for kind, names in TYPES.items()} == {
        kind: list(ACTION[kind]) for kind in ("inputs", "outputs")
    }


@pytest.mark.parametrize("name", [name for name, about in TYPES["inputs"].items() if about["type"] != "string"])
def test_what_has_a_type_takes_its_values_and_no_other(name):
    about = TYPES["inputs"][name]
    values = {"boolean": ("true", "false"), "enum": about.get("allowed-values"), "list": ("1", "1,5")}[about["type"]]
    field = name.replace("-", "_")
    for value in values:
        assert getattr(read_inputs({variable(field): value}), field) is not None
    with pytest.raises(UsageError, match=name):
        read_inputs({variable(field): "neither"})


# --- the environment of the runner -----------------------------------------------------------------------------------


def runner_of(tmp_path, event=None, **environ):
    (tmp_path / "event.json").write_text(json.dumps(event or {}))
    given = {f"GITHUB_{name.upper()}": value for name, value in environ.items()}
    return read_runner({**given, "GITHUB_EVENT_PATH": str(tmp_path / "event.json")})


@each_row(
    ("ref", "number", "pull"),
    [
        ("refs/pull/9/merge", 2, 9),
        ("refs/pull/9/head", 2, 9),
        (f"refs/pull/{10**18 - 1}/merge", 2, 10**18 - 1),
        (f"refs/pull/{10**18}/merge", 2, 2),
        ("refs/pull/9/other", 2, 2),
        ("refs/pull/9/merge/x", 2, 2),
        ("x/refs/pull/9/merge", 2, 2),
        ("refs/heads/main", 1, 1),
        ("refs/heads/main", 10**18 - 1, 10**18 - 1),
        ("", 10**18, None),
        ("", 0, None),
        ("", -1, None),
        ("", "2", None),
        ("", None, None),
    ],
)
def test_the_pull_request_is_that_of_the_ref_before_that_of_the_event(tmp_path, ref, number, pull):
    assert runner_of(tmp_path, {"pull_request": {"number": number}}, ref=ref).pull_request == pull


def test_an_event_without_a_pull_request_names_none(tmp_path):
    for event in ({}, {"pull_request": None}, {"pull_request": [2]}, {"number": 2}):
        assert runner_of(tmp_path, event, ref="refs/heads/main").pull_request is None


@each_row(
    ("workflow", "event", "file"),
    [
        ("octo/hello/.github/workflows/a.yml@refs/pull/2/merge", "pull_request", ".github/workflows/a.yml"),
        ("octo/hello/.github/workflows/a@b.yml@refs/heads/main", "push", ".github/workflows/a@b.yml"),
        ("octo/hello/.github/workflows/a.yml@refs/heads/main", "pull_request_target", ""),
        ("octo/shared/.github/workflows/a.yml@refs/heads/main", "pull_request", ""),
        ("octo/hello-2/.github/workflows/a.yml@refs/heads/main", "pull_request", ""),
        ("", "pull_request", ""),
    ],
)
def test_the_workflow_of_the_commit_under_test_is_a_file_of_this_repository(tmp_path, workflow, event, file):
    runner = runner_of(tmp_path, repository="octo/hello", workflow_ref=workflow, event_name=event)
    assert runner.workflow_file == file


PULL = {"pull_request": {"number": 2, "head": {"ref": "topic", "sha": "a" * 40}}}


@each_row(
    ("environ", "event", "ci"),
    [
        ({"ref": "refs/pull/2/merge", "run_number": "7"}, PULL, ("octo/hello", "topic", "a" * 40, 2, 7)),
        ({"ref": "refs/heads/fix/1"}, {}, ("octo/hello", "fix/1", "b" * 40, None, None)),
        ({"ref": "refs/tags/v1", "run_number": "0"}, {}, ("octo/hello", "refs/tags/v1", "b" * 40, None, None)),
        ({"run_number": "9" * 18}, {}, ("octo/hello", "", "b" * 40, None, 10**18 - 1)),
        ({"run_number": "9" * 19}, {}, ("octo/hello", "", "b" * 40, None, None)),
        ({"repository": ""}, PULL, None),
    ],
)
def test_a_report_records_the_run_of_ci(tmp_path, environ, event, ci):
    runner = runner_of(tmp_path, event, **{"repository": "octo/hello", "sha": "b" * 40, **environ})
    assert runner.ci == ci


def test_what_the_runner_does_not_say_has_a_default():
    runner = read_runner({})
    assert (runner.workspace, runner.api_url) == (".", "https://api.github.com")
    assert (runner.pull_request, runner.ci, runner.workflow_file, runner.by) == (None, None, "", "")


def test_what_the_runner_says_is_read_by_its_name():
    names = ["workspace", "api_url", "repository", "run_id", "workflow_ref", "server_url", "output", "step_summary"]
    names += ["event_name", "ref", "sha", "base_ref"]
    runner = read_runner({"GITHUB_RUN_NUMBER": "7", **{f"GITHUB_{name.upper()}": name for name in names}})
    assert runner._replace(trigger=None)[:-3] == (*names[:3], 7, "run_id", "", "workflow_ref", "server_url")
    assert (runner.output_file, runner.summary_file) == ("output", "step_summary")
    assert runner.trigger == ("event_name", {}, "ref", "sha", "base_ref")
    assert read_runner({"GITHUB_RUN_ID": "42", "GITHUB_RUN_ATTEMPT": "3"}).by == "42.3"


def test_bytes_that_are_not_utf_8_are_replaced():
    assert read_runner({"GITHUB_REF": "refs/heads/\udcff"}).trigger.ref == "refs/heads/?"
