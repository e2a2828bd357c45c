"""What ships: the wheel holds what the commands need, and so does a checkout."""

import json
import os
import re
import subprocess
import sys
import zipfile

import pytest

from cases import ROOT
from seams import PRESETS

SCHEMAS = sorted(path.name.split(".")[0] for path in (ROOT / "schemas").glob("*.schema.json"))
EXAMPLE = sorted(path.name for path in (ROOT / "examples" / "quickstart").iterdir())
FIND = f"""
import json, os
NAMES, EXAMPLE = {SCHEMAS!r}, {EXAMPLE!r}
from rag_eval.common import paths
from rag_eval.cli import init
found = [paths.shipped("schemas", f"{{name}}.schema.json") for name in NAMES]
found += [paths.shipped("examples", f"quickstart/{{name}}") for name in EXAMPLE]
found += [paths.shipped("docs", name) for name in ("glossary.md", "findings.md", "gold.md")]
from rag_eval.rendering import html
found += [os.path.join(html.__path__[0], name) for name in ("style.css", "script.js", "grading.js")]
found += [str(init.TEMPLATES / name) for preset in init.PRESETS for name in init.files(preset).values()]
print(json.dumps({{path: os.path.exists(path) for path in found}}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The built wheel."""
    pytest.importorskip("hatchling", reason="the wheel is built without the network: hatchling has to be installed")
    folder = tmp_path_factory.mktemp("dist")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT], check=True)
    return next(folder.glob("rag_eval*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder that holds the unpacked wheel, as an installation does."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(params=["wheel", "checkout"])
def package(request, monkeypatch, tmp_path):
    """The folder that a fresh interpreter imports the package from."""
    folder = request.getfixturevalue("installed") if request.param == "wheel" else ROOT / "src"
    monkeypatch.setenv("PYTHONPATH", os.fspath(folder))
    monkeypatch.chdir(tmp_path)
    return folder


def python(*arguments):
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_the_package_under_test_is_the_one_meant(package):
    _, out, _ = python("-c", "import rag_eval; print(rag_eval.__file__)")
    assert out.startswith(os.fspath(package))


def test_schemas_templates_and_example_are_found(package):
    code, out, err = python("-c", FIND)
    assert (code, err) == (0, "")
    assert [path for path, there in json.loads(out).items() if not there] == []


def test_demo_runs_from_another_folder(package):
    code, out, err = python("-m", "rag_eval", "demo")
    assert (code, err) == (0, "")
    assert "PASSED  8 of 8 gates · all 14 questions right" in out
    assert "FAILED  4 of 8 gates · 6 of 14 questions wrong" in out


OPTIONAL = ("urllib3", "re2", "backports", "httpx", "pyarrow", "huggingface_hub", "pandas", "shtab", "dask", "numpy")
BARE = f"""
import sys
sys.modules.update(dict.fromkeys({OPTIONAL!r}))
from rag_eval.cli import entry
entry()
"""


def test_an_installation_without_extras_shows_the_help_of_every_command(package):
    code = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL!r}))\n"
    code += "from rag_eval.cli.parser import build_parser\nbuild_parser().format_help()"
    assert python("-c", code) == (0, "", "")


@pytest.mark.parametrize(
    ("command", "extra"),
    [(["comment", "report.json", "--head", "a" * 40], "action"), (["completion", "bash"], "completion")],
)
def test_a_command_without_its_extra_says_how_to_install_it(package, command, extra, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "x")
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/hello")
    code, _, err = python("-c", BARE, *command)
    assert (code, f'pip install "rag-eval-action[{extra}]' in err) == (2, True), err


def test_explain_shows_the_worked_examples(package):
    code, out, err = python("-m", "rag_eval", "explain", "chr")
    assert (code, err) == (0, "")
    assert out.count("  scores 1 when ") > 1
    assert "  does not apply when " in out


@pytest.mark.parametrize("preset", PRESETS)
def test_init_and_validate_run_from_another_folder(package, preset):
    assert python("-m", "rag_eval", "init", "--preset", preset)[0] == 0
    assert python("-m", "rag_eval", "validate", "eval/gold.jsonl", "eval-gates.yml")[0] == 0


def test_the_installed_package_finds_nothing_of_the_checkout(installed, monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", os.fspath(installed))
    monkeypatch.chdir(tmp_path)
    _, out, _ = python("-c", FIND)
    assert [path for path in json.loads(out) if not path.startswith(os.fspath(installed))] == []


def test_the_wheel_holds_the_package_its_data_and_its_licence_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"rag_eval"}
    assert [name for name in names if name.endswith("LICENSE")] != []
    assert "rag_eval/py.typed" in names


def test_the_wheel_brings_the_command_and_the_plug_in_of_pytest(wheel):
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("entry_points.txt"))
        entries = archive.read(name).decode()
    assert "rag-eval = rag_eval.cli:entry" in entries
    assert "[pytest11]\nrag_eval = rag_eval.pytest_plugin" in entries


def test_refusals_of_every_language_are_recognised(package):
    code = "from rag_eval.textual.refusals import LANGUAGES, _languages; print(len(_languages()) == len(LANGUAGES))"
    assert python("-c", code) == (0, "True\n", "")


def test_what_the_image_copies_is_sent_to_its_build():
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    sent = re.findall(r"^!([^*\n]+?)(?:/\*\*)?$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(name for names in copied for name in names.split()) == sorted(sent)
