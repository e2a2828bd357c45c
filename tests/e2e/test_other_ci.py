"""The files of examples/ci: held by their linters, and run from the commit of a change to a verdict."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree as ET

import pytest
import yaml

from e2e.engine import search_path, tool

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "examples" / "ci"
GIT = ("git", "-c", "user.name=e2e", "-c", "user.email=e2e@example.test", "-c", "init.defaultBranch=main")


def run(*words, cwd, **environ):
    done = subprocess.run(
        words, cwd=cwd, env={**os.environ, **environ}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.returncode, done.stdout


def must(*words, cwd, **environ):
    code, out = run(*words, cwd=cwd, **environ)
    assert code == 0, out
    return out


# --- linters ----------------------------------------------------------------------------------------------------------

SCHEMAS = {
    "gitlab-ci.yml": ["vendor.gitlab-ci", "--data-transform", "gitlab-ci"],
    "azure-pipelines.yml": [
        "vendor.azure-pipelines", "--data-transform", "azure-pipelines", "--regex-variant", "nonunicode",
    ],
    "circleci.yml": ["vendor.circle-ci"],
}  # fmt: skip


def test_every_file_has_its_linter():
    assert {path.name for path in FILES.iterdir()} == {*SCHEMAS, "Jenkinsfile"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_file_keeps_the_schema_of_its_system(name):
    pytest.importorskip("check_jsonschema")
    must(sys.executable, "-m", "check_jsonschema", "--builtin-schema", *SCHEMAS[name], str(FILES / name), cwd=ROOT)


def test_the_jenkinsfile_is_one(tmp_path):
    text = (FILES / "Jenkinsfile").read_text("utf-8")
    for name, written in (("whole", text), ("cut", text.rstrip().removesuffix("}"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Jenkinsfile").write_text(written, "utf-8")
    lint = [tool("npm-groovy-lint"), "--path", str(tmp_path), "--files", "**/Jenkinsfile", "--noserver"]
    _, out = run(*lint, "--output", str(tmp_path / "out.json"), cwd=tmp_path, PATH=search_path())
    linted = json.loads((tmp_path / "out.json").read_text("utf-8"))["files"]
    serious = {
        Path(name).parent.name: [error["rule"] for error in file["errors"] if error["severity"] != "info"]
        for name, file in linted.items()
    }
    assert serious == {"whole": [], "cut": ["NglParseError"]}, out


# --- runs -------------------------------------------------------------------------------------------------------------


QUICK_VENV = """#!/bin/sh -e
[ "$1 $2 $3" = "-I -m venv" ] || exec {image}/bin/python "$@"
{image}/bin/python -I -m venv --without-pip "$4"
cp --archive --link {image}/lib/. "$4/lib"
rm -r "$4"/lib/python*/site-packages/rag_eval*
sed "1s|.*|#!$4/bin/python|" {image}/bin/pip >"$4/bin/pip"
chmod +x "$4/bin/pip"
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """A wheel, an environment with the ``python`` and ``pip`` of an image, and one whose ``python`` saves installing.

    Its virtual environments begin with pip and the packages that the wheel needs.
    """
    folder = tmp_path_factory.mktemp("tools")
    wheel = "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder / "dist"), str(ROOT)
    must(sys.executable, "-m", "pip", *wheel, cwd=folder)
    must(sys.executable, "-m", "venv", str(folder / "image"), cwd=folder)
    [wheel] = (folder / "dist").iterdir()
    must(str(folder / "image/bin/pip"), "install", "--quiet", str(wheel), cwd=folder)
    (folder / "quick").mkdir()
    (folder / "quick/python").write_text(QUICK_VENV.format(image=folder / "image"))
    (folder / "quick/python").chmod(0o755)
    real = f"{folder / 'image/bin'}{os.pathsep}{os.environ['PATH']}"
    return wheel, real, f"{folder / 'quick'}{os.pathsep}{real}"


class Project:
    """A repository made by ``rag-eval init``, its remote, and a branch with a change."""

    def __init__(self, folder, path):
        self.folder, self.path, self.remote, self.work = folder, path, folder / "remote.git", folder / "work"
        folder.mkdir()
        must(*GIT, "init", "--quiet", "--bare", str(self.remote), cwd=folder)
        must(*GIT, "init", "--quiet", str(self.work), cwd=folder)
        must(*GIT, "remote", "add", "origin", str(self.remote), cwd=self.work)
        must("rag-eval", "init", cwd=self.work, PATH=path)
        shutil.copy(FILES / "gitlab-ci.yml", self.work / ".gitlab-ci.yml")
        self.commit("base", "main")
        must(*GIT, "checkout", "--quiet", "-b", "topic", cwd=self.work)

    def commit(self, message, branch):
        must(*GIT, "add", "--all", cwd=self.work)
        must(*GIT, "commit", "--quiet", "--allow-empty", "--message", message, cwd=self.work)
        must(*GIT, "push", "--quiet", "origin", f"HEAD:{branch}", cwd=self.work)

    def change(self, name):
        CHANGES[name](self.work)
        self.commit(name, "topic")

    def clone(self, name):
        """A checkout of the branch, as a job begins with."""
        must(*GIT, "clone", "--quiet", "--branch", "topic", str(self.remote), name, cwd=self.folder)
        return self.folder / name


def none(work):
    """Leave everything as it is."""


def worse(work):
    """Answer every question with the same words, and loosen the gates that would say so."""
    script, gates = work / "eval/write_traces.py", work / "eval-gates.yml"
    text = script.read_text("utf-8")
    start = text.index('"""Return an answer and the ids that it cites.')
    script.write_text(
        f'{text[:start]}return "Nobody knows ##vso[task.complete result=Succeeded]", []\n    {text[start:]}'
    )
    gates.write_text(re.sub(r"min: [0-9.]+", "min: 0", re.sub(r"max: [0-9.]+", "max: 1", gates.read_text("utf-8"))))


def unreadable(work):
    """Write traces that are none, and bring a report that says that all is well."""
    text = 'from pathlib import Path\nPath("runs").mkdir(exist_ok=True)\nPath("runs/trace.jsonl").write_text("x")\n'
    (work / "eval/write_traces.py").write_text(text)
    (work / "rag-eval-report").mkdir(exist_ok=True)
    (work / "rag-eval-report/junit.xml").write_text("<testsuites/>")
    (work / "rag-eval-report/report.md").write_text("## RAG evaluation passed\n")
    (work / "rag_eval.py").write_text("raise SystemExit(0)\n")
    (work / "sitecustomize.py").write_text("import os\nos._exit(0)\n")


CHANGES = {item.__name__: item for item in (none, worse, unreadable)}
CODES = {"none": 0, "worse": 1, "unreadable": 2}


def _job(jobs, name):
    return next(job for job in jobs if job["job"] == name)


def _gitlab():
    jobs = yaml.safe_load((FILES / "gitlab-ci.yml").read_text("utf-8"))
    return ["\n".join(jobs[name]["script"]) for name in ("rag-eval-answer", "rag-eval")]


def _azure():
    jobs = yaml.safe_load((FILES / "azure-pipelines.yml").read_text("utf-8"))["jobs"]
    return [next(step["bash"] for step in job["steps"] if "bash" in step) for job in jobs]


def _jenkins():
    stages = (FILES / "Jenkinsfile").read_text("utf-8").split("stage('")[1:]
    scripts = [re.findall(r"\bsh ('''|')(.*?)\1", stage, re.DOTALL) for stage in stages]
    return ["\n".join(text for _, text in script) for script in scripts]


def _circle():
    jobs = yaml.safe_load((FILES / "circleci.yml").read_text("utf-8"))["jobs"]
    steps = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert steps[1]["environment"] == {"BASE_BRANCH": "<< pipeline.parameters.base-branch >>"}
    return [step["command"] for step in steps]


SYSTEMS = {
    "gitlab": (_gitlab, ["bash", "-eo", "pipefail"], {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}),
    "azure": (_azure, ["bash"], {"SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main"}),
    "jenkins": (_jenkins, ["sh", "-xe"], {"CHANGE_TARGET": "main"}),
    "circle": (_circle, ["bash", "-eo", "pipefail"], {"BASE_BRANCH": "main"}),
}


@pytest.mark.parametrize(
    ("system", "change"),
    [
        *(("gitlab", change) for change in CHANGES),
        *(("azure", "worse"), ("azure", "unreadable"), ("jenkins", "worse"), ("circle", "none"), ("circle", "worse")),
    ],
)
def test_the_scripts_end_in_a_verdict(system, change, tools, tmp_path):
    wheel, real, path = tools
    project = Project(tmp_path / "project", path)
    project.change(change)
    scripts, shell, environ = SYSTEMS[system]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environ = {
        **environ,
        "RAG_EVAL": str(wheel),
        "PATH": real if (system, change) == ("gitlab", "none") else path,
        "COLUMNS": "100",
    }
    environ |= {"AGENT_TEMPDIRECTORY": str(scratch), "WORKSPACE_TMP": str(scratch)}
    answer, judge = (text.replace("/tmp/", f"{scratch}/") for text in scripts())
    first, second = project.clone("answer"), project.clone("judge")
    (first / "sitecustomize.py").unlink(missing_ok=True)
    must(*shell, "-c", answer, cwd=first, **environ)
    for folder in (second, scratch / "answer"):  # as an artifact, and as CircleCI's workspace
        (folder / "runs").mkdir(exist_ok=True, parents=True)
        shutil.copy(first / "runs/trace.jsonl", folder / "runs/trace.jsonl")
    if system == "jenkins":  # its clean removes what was there before the traces are unpacked
        judge = judge.replace("git clean -ffdxq\n", "")
    code, out = run(*shell, "-c", judge, cwd=second, **environ)
    assert code == CODES[change], out
    assert re.findall(r"##vso\[task\.(?!uploadsummary\])", out) == []
    report = second / "rag-eval-report"
    if change == "unreadable":
        assert [name.name for name in report.glob("*")] == []
        return
    failures = int(ET.parse(report / "junit.xml").getroot().get("failures"))
    severities = {issue["severity"] for issue in json.loads((report / "gl-code-quality-report.json").read_text())}
    assert (failures > 0, "critical" in severities) == (code == 1, code == 1), out


# --- GitLab -----------------------------------------------------------------------------------------------------------

BOT, OTHER, TOKEN = 11, 12, "glpat-e2e"


@contextmanager
def gitlab():
    """The notes of a merge request behind GitLab's API, as much as the job asks for."""
    notes = [{"id": 1, "author": {"id": OTHER}, "body": "<!-- rag-eval -->\nall is well"}]

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            path = urlsplit(self.path).path.removeprefix("/api/v4")
            form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            body = parse_qs(form).get("body", [""])[0]
            result, position = None, "/projects/7/merge_requests/3/notes"
            if self.headers.get("PRIVATE-TOKEN") != TOKEN:
                return self.send_error(401)
            if self.command == "GET":
                result = {"/user": {"id": BOT}, position: notes}.get(path)
            elif self.command == "POST" and path == position and body:
                result = {"id": len(notes) + 1, "author": {"id": BOT}, "body": body}
                notes.append(result)
            elif self.command == "PUT" and body:
                result = next(
                    note for note in notes if path == f"{position}/{note['id']}" and note["author"]["id"] == BOT
                )
                result["body"] = body
            if result is None:
                return self.send_error(404)
            data = json.dumps(result).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            return self.wfile.write(data)

        do_GET = do_POST = do_PUT = answer  # noqa: N815 - the names that http.server looks for

        def log_message(self, *_):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/api/v4", notes
    finally:
        server.shutdown()
        server.server_close()


def test_a_runner_of_gitlab_keeps_one_comment(tools, tmp_path):
    wheel, _, path = tools
    project = Project(tmp_path / "project", path)
    command = [tool("gitlab-ci-local"), "--force-shell-executor"]
    with gitlab() as (address, notes):
        variables = {
            "CI_PIPELINE_SOURCE": "merge_request_event",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
            "CI_MERGE_REQUEST_IID": "3",
            "CI_PROJECT_ID": "7",
            "CI_API_V4_URL": address,
            "CI_JOB_URL": "https://gitlab.example.org/job/1",
            "RAG_EVAL": str(wheel),
        }
        comments = []
        for number, (change, token) in enumerate(
            [("none", ""), ("none", TOKEN), ("worse", TOKEN), ("unreadable", TOKEN)]
        ):
            project.change(change)
            given = {**variables, "RAG_EVAL_TOKEN": token} if token else variables
            folder = project.clone(f"clone{number}")
            (folder / "sitecustomize.py").unlink(missing_ok=True)
            text = (folder / ".gitlab-ci.yml").read_text("utf-8").replace("/tmp/", f"{tmp_path}/{number}-")
            (folder / ".gitlab-ci.yml").write_text(text, "utf-8")
            words = [word for name, value in given.items() for word in ("--variable", f"{name}={value}")]
            home = {"PATH": f"{path}{os.pathsep}{search_path()}", "HOME": str(tmp_path)}
            code, out = run(*command, *words, cwd=folder, **home)
            assert (code == 0) == (CODES[change] == 0), out
            comments.append([note["body"] for note in notes if note["author"]["id"] == BOT])
    assert [len(bodies) for bodies in comments] == [0, 1, 1, 1]
    first, second, third = (bodies[0] for bodies in comments[1:])
    assert first.startswith("<!-- rag-eval -->\n## ✅ RAG evaluation passed")
    assert second.startswith("<!-- rag-eval -->\n## ❌ RAG evaluation failed")
    assert third == "<!-- rag-eval -->\nrag-eval judged nothing: see [the job](https://gitlab.example.org/job/1).\n"
    assert notes[0]["body"] == "<!-- rag-eval -->\nall is well"


# --- Slack ------------------------------------------------------------------------------------------------------------


@contextmanager
def webhook():
    """An address, and the list of what is posted to it."""
    posted = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", posted
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("verdict", "gates", "text"),
    [
        ("failed", "chr,precision", "rag-eval: failed. Failed gates: chr,precision."),
        ("", '"; exit 1 $(touch x)', 'rag-eval: no verdict. Failed gates: "; exit 1 $(touch x).'),
    ],
)
def test_the_recipe_for_slack_posts_the_verdict(verdict, gates, text, tmp_path):
    tool("jq")
    page = (ROOT / "docs" / "other-ci.md").read_text("utf-8")
    [block] = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    _, post = yaml.safe_load(block)
    used = set(re.findall(r"steps\.gate\.outputs\.([\w-]+)", block))
    assert used <= set(yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["outputs"])
    assert "${{" not in post["run"]
    with webhook() as (address, posted):
        environ = {"WEBHOOK": address, "VERDICT": verdict, "GATES": gates, "RUN": "https://github.test/1"}
        must("bash", "-e", "-c", post["run"], cwd=tmp_path, **environ)
    assert posted == [{"text": f"{text} <https://github.test/1|See the run>"}]
    assert list(tmp_path.iterdir()) == []
