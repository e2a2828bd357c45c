"""Every known way to pass without being right ends in a finding of its own, and stops doing so without the attack."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from gaming.honest import build
from gaming.play import play, scenarios

SCENARIOS = scenarios()
NAMED = {
    "baseline-cut-for-later",
    "baseline-made-worse-for-later",
    "baseline-named-by-the-workflow",
    "baseline-rerun-replaced",
    "findings-flooded",
    "four-eyes-on-a-push",
    "gates-from-an-earlier-commit-of-the-change",
    "gates-from-a-moved-tag",
    "gates-from-the-change",
    "gates-from-the-change-by-its-branch",
    "gates-left-behind-by-moved-items",
    "gates-limits-below-the-old-gold",
    "gates-named-by-the-workflow",
    "gates-of-another-folder-for-the-same-gold",
    "gates-of-another-folder-with-other-metrics",
    "gates-of-an-unusual-name-left-behind",
    "gates-of-another-system-deleted",
    "gates-of-another-system-named",
    "gold-as-label-folder",
    "gold-compressed-and-widened",
    "gold-compressed-without-failing",
    "gold-easy-questions-repeated",
    "gold-emptied-of-labels",
    "gold-emptied-to-stop-words",
    "gold-failing-asked-again",
    "gold-failing-dropped-signed-by-the-author",
    "gold-failing-touched",
    "gold-fits-the-output",
    "gold-fits-the-output-behind-a-phrase",
    "gold-half-of-it-named",
    "gold-moved-to-an-array",
    "gold-older-than-the-base",
    "gold-qids-of-worse-answers-renamed",
    "gold-reformatted-around-a-wider-item",
    "gold-renamed-and-failing-dropped",
    "gold-renamed-and-widened",
    "gold-requirement-lowered",
    "gold-touched-before-answers-got-worse",
    "gold-unanswerable-made-attacks",
    "gold-widened-among-many-kinds-of-changes",
    "gold-widened-everywhere",
    "k-named-by-the-workflow",
    "k-named-without-a-key",
    "must-pass-left",
    "must-pass-exchanged",
    "must-pass-widened",
    "run-json-left-out",
    "run-json-with-a-blank-commit",
    "run-json-with-a-changed-commit",
    "runs-left-out",
    "signoff-off-in-the-workflow",
    "slice-exchanged",
    "slice-left-by-another-spelling",
    "slice-moved-into-another",
    "traces-committed",
    "traces-committed-for-a-second-workflow",
    "traces-committed-under-pull-request-target",
    "traces-failed-as-refusals",
    "traces-in-a-submodule",
    "traces-without-costs",
    "traces-marked-as-refusals",
    "traces-named-by-the-workflow",
    "traces-named-without-a-key",
    "traces-of-an-easier-question",
    "traces-of-an-easier-turn",
    "traces-of-an-easier-question-behind-the-right-one",
    "traces-other-answers-behind-refusals",
    "traces-other-answers-with-the-same-words",
    "traces-redirected-and-not-written",
    "traces-redirected-from-easier-questions",
    "traces-refusals-marked-as-answers",
    "traces-refused-in-other-words",
    "verdicts-edited-in-a-submodule",
    "verdicts-edited-in-lfs",
    "workflow-edited",
    "workflow-edited-by-a-link",
    "workflow-edited-for-a-reworded-copy",
    "workflow-edited-in-a-submodule",
    "workflow-edited-in-a-workflow-that-it-uses",
    "workflow-edited-in-an-action-below-a-folder",
    "workflow-edited-in-an-action-of-another-spelling",
    "workflow-edited-in-an-action-that-it-uses",
}
"""What people may mean: it passes, and is said in so many words."""

EVERY = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return build(tmp_path_factory.mktemp("honest") / "base")


@pytest.fixture(scope="module")
def endings():
    """The endings of plays: many scenarios share their control, and two tests look at an attack that passes."""
    return {}


@pytest.fixture
def played(tmp_path, base, keys, endings):
    """Play a scenario with the given steps, unless the same was played before; the ending."""

    def run(scenario, steps, **inputs):
        if scenario.needs and shutil.which(scenario.needs) is None:
            pytest.skip(f"{scenario.needs} is not installed")
        equal = repr([scenario.base, scenario.pull_request, steps, inputs])
        if equal not in endings:
            endings[equal] = play(scenario, steps, tmp_path, base, keys, inputs)
        return endings[equal]

    return run


def attacked(scenario, played):
    """The ending of the attack; with comments on failures if it passes, which then tell of what it changes."""
    return played(scenario, scenario.attack, **({"comment": "on-failure"} if scenario.name in NAMED else {}))


def test_every_attack_is_stopped_but_for_the_few_that_are_named():
    assert {scenario.name for scenario in SCENARIOS if scenario.expect["exit"] == 0} == NAMED
    assert {scenario.expect["exit"] for scenario in SCENARIOS} == {0, 1, 2}


@EVERY
def test_an_attack_ends_in_its_own_finding(scenario, played):
    ending = attacked(scenario, played)
    assert ending.code == scenario.expect["exit"], ending.said
    assert ending.shows(scenario.finding), (ending.stops, ending.warnings, ending.said)
    assert ending.asked is scenario.asks, "`asks: true` makes the end-to-end tests play it through Prism"
    if ending.code == 1:
        assert ending.stops == scenario.stops, ending.said
    elif ending.code == 2:
        assert not ending.report, "what cannot be judged leaves no verdict behind"
    else:
        assert ending.stops == set(), ending.said
    for key in scenario.expect.get("changes", ()):
        assert ending.change(key)["kind"] == "looser", ending.report["policy_changes"]


@EVERY
def test_the_same_without_the_attack_passes(scenario, played):
    ending = played(scenario, scenario.control)
    assert (ending.code, ending.stops) == (0, set()), ending.said
    assert not ending.shows(scenario.finding), ending.said


@pytest.mark.parametrize(
    "scenario",
    [item for item in SCENARIOS if item.name in NAMED and ":" not in item.finding],
    ids=lambda item: item.name,
)
def test_what_is_only_named_fails_where_warnings_do(scenario, played):
    ending = played(scenario, scenario.attack, **{"fail-on": "warning"})
    assert (ending.code, ending.stops) == (1, set()), ending.said


WITHOUT_COMMENT = {
    "four-eyes-on-a-push",
    "gold-older-than-the-base",
    "run-json-with-a-changed-commit",
    "traces-committed-for-a-second-workflow",
    "traces-failed-as-refusals",
    "traces-marked-as-refusals",
    "traces-of-an-easier-question",
    "traces-of-an-easier-question-behind-the-right-one",
    "traces-of-an-easier-turn",
    "traces-other-answers-behind-refusals",
    "traces-other-answers-with-the-same-words",
    "traces-refusals-marked-as-answers",
    "traces-refused-in-other-words",
    "traces-without-costs",
}
"""They have no pull request, or concern only answers: nothing says that gates, gold set or inputs are others."""


@pytest.mark.parametrize("scenario", [item for item in SCENARIOS if item.name in NAMED], ids=lambda item: item.name)
def test_a_comment_on_failures_also_tells_what_the_change_does_to_its_own_judgement(scenario, played):
    ending = attacked(scenario, played)
    assert ("comment created" in ending.said) == (scenario.name not in WITHOUT_COMMENT), ending.said


def test_a_comment_on_failures_is_silent_for_a_change_that_passes_by_the_same_gates(played):
    [scenario] = [item for item in SCENARIOS if item.name == "gates-threshold-lowered"]
    assert (
        "comment skipped: no gate failed" in played(replace(scenario, pull_request=[]), [], comment="on-failure").said
    )


@pytest.mark.parametrize(
    "scenario", [item for item in SCENARIOS if item.unguarded is not None], ids=lambda scenario: scenario.name
)
def test_the_attack_would_pass_where_nobody_held_it_against_the_base(scenario, played):
    ending = played(scenario, scenario.attack, **scenario.unguarded)
    assert (ending.code, ending.stops) == (0, set()), ending.said
