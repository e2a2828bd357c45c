"""What a release writes into the sources, tried on the sources themselves."""

from __future__ import annotations

import importlib.util
import re
import tomllib

import pytest
import yaml

from cases import ROOT
from rag_eval import __version__
from seams import REPOSITORY

_SPEC = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
release = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(release)

DIGEST = "sha256:" + "0a" * 32
IMAGE = f"ghcr.io/org/rag-eval-action@{DIGEST}"
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
ACTION = (ROOT / "action.yml").read_text("utf-8")


def test_the_version_is_read_from_the_sources():
    assert release.version_of(release._VERSION_FILE.read_text("utf-8")) == __version__


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
    item, other = yaml.safe_load(ACTION), yaml.safe_load(release.with_image(ACTION, IMAGE))
    assert other["runs"] == {"using": "docker", "image": f"docker://{IMAGE}"}
    assert {**other, "runs": None} == {**item, "runs": None}


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


# --- the action's own name -------------------------------------------------------------------------------------------


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A copy of the sources that name the action."""
    for path in [*release.examples(), release._VERSION_FILE]:
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "_VERSION_FILE", tmp_path / release._VERSION_FILE.relative_to(ROOT))
    return tmp_path


def texts(folder):
    return {path.relative_to(folder): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


def test_a_release_names_its_own_repository_in_all_examples(sources):
    before = texts(sources)
    assert release.main(["name", "Acme-Corp/rag.gate"]) == 0
    result = "\n".join(texts(sources).values())
    assert REPOSITORY not in result
    assert REPOSITORY.partition("/")[0] + "/maintainers" not in result
    for line in (
        f"uses: Acme-Corp/rag.gate@v{__version__[0]}",
        f"repo: https://github.com/Acme-Corp/rag.gate\n    rev: v{__version__}",
        f"git+https://github.com/Acme-Corp/rag.gate@v{__version__[0]}",
        "oci://ghcr.io/acme-corp/rag.gate@sha256:",
        "--repo Acme-Corp/rag.gate",
        "git clone https://github.com/Acme-Corp/rag.gate rag-eval",
        'REPOSITORY = "Acme-Corp/rag.gate"',
        "@Acme-Corp/maintainers",
    ):
        assert line in result
    assert "uses: actions/checkout@v6" in result
    release.main(["name", REPOSITORY])
    assert texts(sources) == before


@pytest.mark.parametrize("name", ["", "acme", "acme/x/y", "acme/x y", "../x", "acme/x\n", "$(id)/x"])
def test_what_is_no_repository_is_refused(sources, name):
    with pytest.raises(SystemExit, match="no repository"):
        release.main(["name", name])


def test_examples_of_another_version_are_refused(sources):
    assert release.main(["version", __version__]) == 0
    readme = sources / "README.md"
    readme.write_text(readme.read_text("utf-8").replace(f"rev: v{__version__}", "rev: v0.0.9"), "utf-8")
    with pytest.raises(SystemExit, match=r"README\.md: the examples name another version"):
        release.main(["version", __version__])


# --- the workflows ---------------------------------------------------------------------------------------------------

JOBS = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in sorted(ROOT.glob(".github/workflows/*.yml"))}


def test_a_release_waits_for_everything_that_ci_runs():
    jobs = JOBS["release"]["jobs"]
    assert jobs["ci"]["uses"] == "./.github/workflows/ci.yml"
    assert "workflow_call" in JOBS["ci"][True]
    assert jobs["build"]["needs"] == "ci"
    assert jobs["image"]["needs"] == "build"
    assert jobs["action"]["needs"] == ["build", "image"]
    assert jobs["docs"]["needs"] == "action"


def test_the_image_of_every_platform_is_tested_before_it_is_published():
    build = JOBS["release"]["jobs"]["build"]
    platforms = {item["platform"]: item["runner"] for item in build["strategy"]["matrix"]["include"]}
    assert platforms == {"linux/amd64": "ubuntu-24.04", "linux/arm64": "ubuntu-24.04-arm"}
    names = [step.get("id", step.get("name", "")) for step in build["steps"]]
    assert names.index("build") < names.index("Test the image that was pushed")
    tags = [step for step in build["steps"] if "tags" in step.get("with", {})]
    assert tags == []  # nobody can use it before the manifest list is made
    assert any("imagetools create" in step.get("run", "") for step in JOBS["release"]["jobs"]["image"]["steps"])


def test_ci_runs_the_tests_on_windows_and_macos():
    systems = JOBS["ci"]["jobs"]["systems"]
    assert systems["strategy"]["matrix"]["os"] == ["windows-latest", "macos-latest"]
    assert any("make test" in step.get("run", "") for step in systems["steps"])


def test_every_action_of_ours_is_pinned_and_every_job_has_a_time_limit():
    for name, workflow in JOBS.items():
        assert workflow["permissions"] == {}, name
        for job in workflow["jobs"].values():
            assert "timeout-minutes" in job or "uses" in job, name
            for step in job.get("steps", ()):
                uses = step.get("uses", "./")
                assert uses.startswith("./") or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", uses), uses


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS, GROUPS = PROJECT["project"]["optional-dependencies"], PROJECT["dependency-groups"]
NEEDED = PROJECT["project"]["dependencies"]


def names(*lists):
    """The packages of lists of requirements, as pins name them."""
    result = [re.split(r"[<>=;\[ ]", line)[0] for lines in lists for line in lines]
    return sorted({re.sub(r"[-_.]+", "-", name).lower() for name in result})


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        (
            "ci.txt",
            names(
                NEEDED, *EXTRAS.values(), *(GROUPS[item] for item in ("test", "frameworks", "lint", "docs")), ["pip"]
            ),
        ),
        ("action.txt", names(NEEDED, *(EXTRAS[item] for item in ("action", "zstd", "patterns")))),
    ],
)
def test_packages_of_ci_and_of_the_image_are_pinned(file, wanted):
    """If one is missing: make pins."""
    text = (ROOT / "requirements" / file).read_text("utf-8")
    assert [name for name in wanted if not re.search(rf"(?m)^{name}==[0-9.]+", text)] == []


def test_ci_installs_what_is_pinned():
    assert 'PIP_CONSTRAINT="$PWD/requirements/ci.txt"' in (ROOT / ".ci" / "run").read_text("utf-8")
    steps = JOBS["ci"]["jobs"]["systems"]["steps"]
    assert any("requirements/ci.txt" in str(step.get("env", "")) for step in steps)
