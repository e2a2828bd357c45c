"""Inputs as the runner hands them over; action.yml, parser and README agree on them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rag_eval.action.runner import ActionInputs, variable
from rag_eval.action.runner import read_inputs as read_inputs_and_error
from seams import UsageError

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
    ("field", "text"),
    [
        ("k", "5,x"),
        ("k", "0"),
        ("comment", "sometimes"),
        ("annotations", "yes"),
        ("summary", "1"),
        ("fail_on", "all"),
        ("comment_id", "x" * 101),
    ],
)
def test_a_value_that_cannot_be_names_its_input(field, text):
    with pytest.raises(UsageError, match=rf"input '{field.replace('_', '-')}': '{text[:70]}"):
        read_inputs({variable(field): text})


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
    assert "s3cret" not in repr(ActionInputs(github_token="s3cret"))


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
