"""What the image is: the same for the same sources, small, and as GitHub's runner wants it."""

from __future__ import annotations

import json

import pytest

from e2e.engine import without_digests

MOST_ADDED_MIB = 60


def inspected(engine, image):
    return json.loads(engine.must("image", "inspect", image))[0]


@pytest.fixture(scope="module")
def built(engine, base, checkout):
    """The layers of two images, each built from nothing."""
    file = checkout.parent / "reproduced.Dockerfile"
    file.write_text(without_digests(checkout), encoding="utf-8")
    common = ["build", "--pull=never", "--quiet", "--no-cache", "--timestamp", "0", "--file", str(file)]
    result = []
    for index in range(2):
        tag = f"localhost/rag-eval-reproduced:{index}"
        engine.must(*common, "--tag", tag, str(checkout))
        result.append(inspected(engine, tag)["RootFS"]["Layers"])
        engine.must("image", "rm", "--force", tag)
    return result


def test_the_same_sources_give_the_same_layers(built):
    assert built[0] == built[1]


def test_it_is_as_the_runner_wants_it(engine, image):
    config = inspected(engine, image)["Config"]
    assert config["Entrypoint"] == ["/usr/local/bin/python", "-I", "-B", "-m", "rag_eval.action"]
    assert config.get("User", "") in ("", "0", "root")
    assert config.get("WorkingDir", "") in ("", "/")
    assert not config.get("Cmd")
    assert config["Labels"]["org.opencontainers.image.title"] == "rag-eval-action"
    assert config["Labels"]["org.opencontainers.image.licenses"] == "MIT"


def test_it_is_small(engine, base, image):
    added = inspected(engine, image)["Size"] - inspected(engine, base)["Size"]
    assert added < MOST_ADDED_MIB << 20


def test_everything_is_compiled_and_nothing_else_came_along(engine, image):
    script = (
        "import importlib.util as u, pathlib, sys;"
        "files = [p for p in pathlib.Path('/opt/rag-eval').rglob('*.py')];"
        "missing = [str(p) for p in files if not pathlib.Path(u.cache_from_source(str(p))).exists()];"
        "others = [str(p) for p in pathlib.Path('/opt/rag-eval').iterdir()];"
        "print(len(files) > 100, missing, sorted(others))"
    )
    output = engine.must("run", "--rm", "--entrypoint", "/usr/local/bin/python", image, "-c", script)
    assert output == "True [] ['/opt/rag-eval/rag_eval', '/opt/rag-eval/requirements.txt']\n"
