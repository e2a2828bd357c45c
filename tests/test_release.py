"""What a release writes into the sources, tried on the sources themselves."""

from __future__ import annotations

import importlib.util

import pytest
import yaml

from cases import ROOT
from rag_eval import __version__

_SPEC = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
release = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(release)

DIGEST = "sha256:" + "0a" * 32
IMAGE = f"ghcr.io/org/rag-eval-action@{DIGEST}"
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
ACTION = (ROOT / "action.yml").read_text("utf-8")


def test_the_version_is_read_from_the_sources():
    assert release.version_of((ROOT / "src/rag_eval/__init__.py").read_text("utf-8")) == __version__


@pytest.mark.parametrize("asked", ["0.0.0", "", "1", "1.2.3; rm -rf /", f"v{__version__}"])
def test_another_version_is_refused(asked):
    with pytest.raises(SystemExit, match="the sources are version"):
        release.main(["version", asked])


def test_every_stage_gets_the_digest_of_the_base_and_nothing_else_changes():
    pinned = release.with_base(DOCKERFILE, DIGEST)
    stages = [line for line in pinned.splitlines() if line.startswith("FROM ")]
    assert len(stages) == 2
    assert all(f"{release.base_of(DOCKERFILE)}@{DIGEST}" in stage for stage in stages)
    assert pinned.replace(f"@{DIGEST}", "") == DOCKERFILE
    assert release.with_base(pinned, DIGEST) == pinned


def test_the_action_runs_the_published_image_and_is_the_same_otherwise():
    one, other = yaml.safe_load(ACTION), yaml.safe_load(release.with_image(ACTION, IMAGE))
    assert other["runs"] == {"using": "docker", "image": f"docker://{IMAGE}"}
    assert {**other, "runs": None} == {**one, "runs": None}


@pytest.mark.parametrize("digest", ["", "latest", "sha256:" + "0a" * 31, DIGEST + "\n", DIGEST.upper()])
def test_what_is_no_digest_is_refused(digest):
    with pytest.raises(SystemExit, match="no digest"):
        release.with_base(DOCKERFILE, digest)
    with pytest.raises(SystemExit, match="no image named by its digest"):
        release.with_image(ACTION, f"ghcr.io/org/rag-eval-action@{digest}")


def test_an_action_that_is_pinned_already_is_refused():
    with pytest.raises(SystemExit, match="does not build"):
        release.with_image(release.with_image(ACTION, IMAGE), IMAGE)


def test_an_unknown_word_is_answered_with_what_there_is(capsys):
    with pytest.raises(SystemExit, match="pin-base"):
        release.main(["publish"])
    assert release.main(["base"]) == 0
    assert capsys.readouterr().out == "python:3.12-slim\n"
