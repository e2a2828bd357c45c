"""Scenarios that ask GitHub, each request and answer compared with GitHub's description, below a GHES base path."""

from __future__ import annotations

import pytest

from e2e.front import front
from gaming.honest import build
from gaming.play import play, scenarios

SCENARIOS = [scenario for scenario in scenarios() if scenario.asks]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return build(tmp_path_factory.mktemp("honest") / "base")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_attack_ends_as_it_does_without_prism(scenario, prism, tmp_path, base, keys):
    with front(prism[0]) as asked:
        ending = play(scenario, scenario.attack, tmp_path, base, keys, through=(asked.url, prism[1]))
    assert (ending.asked, asked.objections) == (True, [])
    assert ending.code == scenario.expect["exit"], ending.said
    assert ending.shows(scenario.finding), ending.said
