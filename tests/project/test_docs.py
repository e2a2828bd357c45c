"""What README and docs show is true: commands parse, files validate, links lead to files, reports are as printed."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from rag_eval import __version__, explain
from rag_eval.analysis.sensitivity import KINDS
from rag_eval.api import Options, run
from rag_eval.cli.parser import find_command
from seams import COMMANDS, REPOSITORY, ProblemCollector, Reader, UsageError, build_parser, main, policy_of, read_gold
from table import each_row

ROOT = Path(__file__).parents[2]
SKILL = ROOT / "skills" / "rag-eval" / "SKILL.md"
PAGES = [
    ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", *sorted(ROOT.glob("docs/**/*.md")), SKILL)
]
EXAMPLE = ROOT / "examples" / "quickstart"


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def commands():
    for page in PAGES:
        text = page.read_text("utf-8")
        yield from ((page.name, line) for line in re.findall(r"^\$ (rag-eval .*)$", text, re.MULTILINE))


@each_row(("page", "line"), sorted(set(commands())))
def test_every_command_shown_is_one_that_parses(page, line):
    arguments = shlex.split(line.partition(" > ")[0])[1:]
    assert build_parser().parse_args(arguments).command == arguments[0], page


def test_a_path_that_a_command_shows_of_this_repository_is_there():
    """Paths of other people's projects are plainly theirs."""
    helps = (find_command(name).examples for name in COMMANDS)
    lines = [*(line for _, line in commands()), *(line for text in helps for line in text.splitlines())]
    words = {word for line in lines for word in shlex.split(line)}
    ours = {word for word in words if word.startswith(("bench/", "docs/", "examples/", "schemas/", "src/", "tests/"))}
    assert [word for word in sorted(ours) if not (ROOT / word).exists()] == []


@each_row("page", PAGES, ids=lambda page: page.name)
def test_every_link_inside_the_repository_leads_to_a_file(page):
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    inside = [target for target in targets if "://" not in target]
    assert [target for target in inside if not (page.parent / target).exists()] == []


def anchors(page):
    """Return the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@each_row("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_heading_leads_to_one(page):
    links = re.findall(r"\]\(([^)#:]*\.md)?#([^)]+)\)", page.read_text("utf-8"))
    targets = [(page.parent / name if name else page, anchor) for name, anchor in links]
    assert [(path.name, anchor) for path, anchor in targets if anchor not in anchors(path)] == []


def test_the_readme_is_short_and_says_in_its_first_screen_what_people_search_for():
    text = (ROOT / "README.md").read_text("utf-8")
    first = text.partition("## Use it")[0]
    words = (
        "fails the build|comment|pull request|confidence intervals|inconclusive|LLM|key|missing answer|flaky|hit rate"
    )
    assert text.count("\n") <= 150
    assert [
        word for word in [*words.split("|"), "faithfulness", "regression"] if word.lower() not in first.lower()
    ] == []
    assert (ROOT / re.search('<img src="([^"]+)"', first)[1]).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_table_has_one_line_under_its_head(page):
    """A second one is shown as a row of dashes."""
    assert re.findall(r"^\|[ :|-]+\|\n\|[ :|-]+\|$", page.read_text("utf-8"), re.MULTILINE) == []


def table_after(page, heading):
    """Return the rows of the first table after a heading, each as its cells."""
    rows = re.findall(
        r"^\| (.*) \|$", page.read_text("utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0], re.MULTILINE
    )
    return [[cell.strip().strip("`") for cell in row.split(" | ")] for row in rows[1:]]


def test_the_glossary_has_every_outcome_and_verdict():
    page = ROOT / "docs" / "glossary.md"
    schema = (ROOT / "schemas" / "report.schema.json").read_text("utf-8")
    outcomes = json.loads(schema)["properties"]["gates"]["items"]["properties"]["outcome"]["enum"]
    assert sorted(row[0] for row in table_after(page, "Outcomes")) == sorted(outcomes)
    assert [row[:2] for row in table_after(page, "Verdicts")] == [["passed", "0"], ["failed", "1"], ["invalid", "2"]]


@each_row(
    ("subject", "kind", "words"),
    [
        ("WRONG_CLAIM", "label", "contains none of the gold substrings"),
        ("inconclusive", "outcome", "too few cases"),
        ("invalid", "verdict", "Nothing was judged"),
        ("record-removed", "finding", "A record of the base branch was changed or removed"),
        ("Completeness", "term", "exactly one trace"),
        ("mde", "term", "The smallest drop"),
    ],
)
def test_explain_prints_the_entry_of_a_term(subject, kind, words):
    first, _, meaning, *_ = explain(subject).splitlines()
    assert (first, words in meaning) == (f"{subject} ({kind})", True)


def test_a_question_with_the_name_of_a_term_is_explained_if_a_file_is_named():
    with pytest.raises(UsageError, match="not a metric, a term or a qid"):
        explain("label", gold=str(EXAMPLE / "gold.jsonl"), trace=str(EXAMPLE / "good.jsonl"))


def test_the_page_of_commands_has_every_command():
    page = ROOT / "docs" / "commands.md"
    rows = [row[0].replace("\\|", " ").split() for row in table_after(page, "All commands")]
    assert {row[1] for row in rows} == set(COMMANDS)
    nested = re.findall(r"^### rag-eval (gold|judge) (\S+)$", page.read_text("utf-8"), re.MULTILINE)
    assert sorted((row[1], name) for row in rows if row[1] in ("gold", "judge") for name in row[2:]) == sorted(nested)


# --- messages ---------------------------------------------------------------------------------------------------------


def triples(text):
    """Return the runs of three words of a text, without what differs from run to run: numbers, paths, ids."""
    fixed = re.sub(r"'[^']*'|\{[^}]*\}|\S*[\w)][./@#_=\d]\w\S*|\S*\d\S*", " ", text)
    words = re.findall(r"[a-zA-Z]+(?:'[a-z]+)?", fixed)
    return {tuple(words[index : index + 3]) for index in range(len(words) - 2)}


@pytest.fixture(scope="module")
def printed():
    """Return the runs of three words that the source can print, or that a session has printed."""
    known = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                known |= triples(
                    "".join(part.value if isinstance(part, ast.Constant) else " 0 " for part in node.values)
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                known |= triples(node.value)
    for path in (ROOT / "tests" / "sessions").glob("*.txt"):
        known |= triples(path.read_text("utf-8"))
    return known


def quoted_messages():
    """Yield the printed lines that pages show and that no test compares, and the sentences that they quote as code."""
    compared = {"README.md", "tutorial.md", "probe.md", *(page.name for page in ROOT.glob("docs/coming-from-*.md"))}
    for page in sorted({path for path in PAGES if path.name not in compared}):
        text = page.read_text("utf-8")
        parts = [*blocks(page, "console"), *blocks(page, "text")]
        left_out = re.compile(r"[$#{ ]|.*(  |ssh-ed25519)")  # commands, data, rows of tables, keys
        shown = [line for block in parts for line in block.splitlines() if not left_out.match(line)]
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        inline = re.findall(r"`([A-Z][a-z]+ [^`\n]+ [^`\n]+)`", prose)
        yield from ((page.name, line) for line in [*shown, *inline] if len(triples(line)) > 1)


@each_row(("page", "line"), sorted(set(quoted_messages())))
def test_a_message_that_a_page_quotes_is_one_of_the_code(page, line, printed):
    quoted = triples(line)
    assert len(quoted & printed) * 2 >= len(quoted), f"{page}: {sorted(quoted - printed)}"


def test_a_message_that_does_not_exist_would_be_noticed(printed):
    quoted = triples("The frobnicator could not be polished: buy a new one.")
    assert len(quoted & printed) * 2 < len(quoted)


@pytest.mark.parametrize("page", ["commands.md", "action.md"])
def test_every_option_and_input_has_a_meaning(page):
    rows = re.findall(r"^\| `([^|]+)` \|([^|]*)\|$", (ROOT / "docs" / page).read_text("utf-8"), re.MULTILINE)
    assert len(rows) > 20
    assert [name for name, meaning in rows if len(meaning.split()) < 2] == []


# --- blocks that are run ----------------------------------------------------------------------------------------------

shell = pytest.mark.skipif(os.name == "nt", reason="the blocks are for a POSIX shell")


def steps(block):
    """Return the commands of a console block, each with the lines that it is shown to print."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(part.split("\n")[0], part.split("\n")[1:]) for part in parts]


def run_step(command, shown, folder):
    """Run a command, check that it prints the lines shown, in their order, and return its exit code.

    A line that ends with an ellipsis is the beginning of a printed one; a line of only that stands for any lines.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    printed = iter(line.rstrip() for line in done.stdout.splitlines())
    for line in filter(str.strip, shown):
        start, cut, _ = line.rstrip().partition("…")
        assert (cut and not start) or any(item.startswith(start) if cut else item == line for item in printed), (
            f"{command} does not print {line!r}, or not there:\n{done.stdout}"
        )
    return done.returncode


def gates_of(page, folder):
    """Write the gates file that a page shows."""
    for block in [item for item in blocks(page, "yaml") if item.startswith("version: 1")][:1]:
        (folder / "eval-gates.yml").write_text(block, "utf-8")


FOREIGN = sorted(ROOT.glob("docs/coming-from-*.md"))


@shell
@pytest.mark.parametrize("page", FOREIGN, ids=lambda page: page.stem)
def test_the_imports_shown_print_what_the_page_says(page, tmp_path):
    text = page.read_text("utf-8")
    runs = re.findall(r"<!-- run in (.+?) -->\n+```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert runs
    for number, (inputs, block) in enumerate(runs):
        folder = tmp_path / str(number)
        for source in inputs.split():
            shutil.copytree(ROOT / source, folder, dirs_exist_ok=True)
        gates_of(page, folder)
        assert [run_step(command, shown, folder) for command, shown in steps(block)] == [0] * len(steps(block))


@shell
def test_use_it_of_the_readme_works_in_an_empty_folder(tmp_path):
    block = (ROOT / "README.md").read_text("utf-8").split("## Use it")[1].split("```console\n")[1].split("```")[0]
    (install, _), *commands = steps(block)
    assert install.startswith("pip install ")
    assert [run_step(command, shown, tmp_path) for command, shown in commands] == [0, 0, 0, 0]


@shell
def test_every_command_of_the_skill_works_in_an_empty_folder(tmp_path):
    result = [step for block in blocks(SKILL, "console") for step in steps(block)]
    assert [run_step(command, shown, tmp_path) for command, shown in result] == [0] * 10
    report = json.loads((tmp_path / "rag-eval-report" / "report.json").read_text("utf-8"))
    assert {"verdict", "gates", "questions"} <= report.keys()


def test_the_skill_has_a_front_matter_that_assistants_read():
    _, front, text = SKILL.read_text("utf-8").split("---\n", 2)
    assert list(yaml.safe_load(front)) == ["name", "description"]
    fields = yaml.safe_load(front)
    assert (fields["name"], len(fields["description"]) <= 1024, text.count("\n") < 120) == (
        SKILL.parent.name,
        True,
        True,
    )
    labels = table_after(SKILL, "Run and explain")
    known = {row[0] for row in table_after(ROOT / "docs" / "glossary.md", "Labels")}
    for name in [name for row in labels for name in re.findall("[A-Z_]{4,}", row[0])]:
        assert any(label.startswith(name) for label in known), name


class Server:
    """The server of the tutorial on a free port, in a folder."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])
        self.process = subprocess.Popen([sys.executable, "server.py", self.port], cwd=folder)
        for _ in range(200):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", int(self.port))) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("the server does not start")

    def stop(self):
        self.process.terminate()
        self.process.wait()


@shell
def test_the_tutorial_prints_what_it_says(tmp_path):
    pytest.importorskip("httpx")
    page, folder = ROOT / "docs" / "tutorial.md", tmp_path / "rag-server"
    shutil.copytree(ROOT / "examples" / "rag-server", folder)
    [change] = blocks(page, "diff")
    before, after = (line[1:] for line in change.splitlines())
    server, codes = None, {}
    gates_of(page, folder)
    try:
        for command, shown in [step for block in blocks(page, "console") for step in steps(block)]:
            if command == "python server.py 8000 &":
                server = Server(folder)
            elif command == "kill %1":
                server.stop()
                text = (folder / "server.py").read_text("utf-8")
                assert text.count(before) == 1
                (folder / "server.py").write_text(text.replace(before, after), "utf-8")
            elif not command.startswith(("pip ", "git clone ", "cd ")):
                codes[command] = run_step(command.replace("8000", server.port), shown, folder)
    finally:
        server.stop()
    failing = [command for command, code in codes.items() if code]
    assert failing == [f"rag-eval score --trace runs/{name}.jsonl" for name in ("broken", "short", "app")]


def gates_shown():
    for page in PAGES:
        for block in blocks(page, "yaml"):
            if block.startswith("version: 1"):
                yield pytest.param(block, id=f"{page.name}-{len(block)}")


@pytest.mark.parametrize("text", list(gates_shown()))
def test_every_gates_file_shown_is_valid(text):
    ledger = ProblemCollector()
    assert policy_of(text.encode(), "eval-gates.yml", ledger) is not None, ledger.problems


def test_the_workflow_and_the_hooks_shown_are_yaml_of_their_kind():
    workflow = yaml.safe_load(blocks(ROOT / "docs" / "action.md", "yaml")[0])
    [hooks] = [yaml.safe_load(block) for block in blocks(ROOT / "README.md", "yaml") if "\nrepos:" in block]
    assert workflow["jobs"]["rag-eval"]["steps"][-1] == {"uses": f"{REPOSITORY}@v1"}
    shipped = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))}
    assert {hook["id"] for hook in hooks["repos"][0]["hooks"]} == shipped


@pytest.mark.parametrize("page", ["docs/action.md", "docs/several.md", "docs/forks.md"])
def test_every_workflow_shown_runs_in_a_merge_queue_and_keeps_its_entries_apart(page):
    """A required check that no workflow gives leaves the queue waiting; one group for all of it cancels its entries."""
    shown = [yaml.safe_load(block) for block in blocks(ROOT / page, "yaml")]
    [workflow] = [item for item in shown if isinstance(item, dict) and item.get("name") == "rag-eval"]
    template = yaml.safe_load((ROOT / "src/rag_eval/templates/workflow.yml").read_text("utf-8"))
    assert workflow[True] == template[True]
    grouped = [item["concurrency"] for item in (workflow, *workflow["jobs"].values()) if "concurrency" in item]
    assert ["github.ref" in str(item) for item in grouped] == [True]


def test_the_workflow_for_several_systems_keeps_them_apart():
    """GitHub cancels the second of three jobs that share a group; a required check has one name."""
    workflow, _ = map(yaml.safe_load, blocks(ROOT / "docs" / "several.md", "yaml"))
    (first, answered), (name, scored), (_, every) = workflow["jobs"].items()
    assert scored["steps"][-1]["with"] == {"working-directory": "${{ matrix.app }}"}
    assert (answered["strategy"], scored["needs"]) == (scored["strategy"], first)
    assert (every["needs"], "always()" in every["if"]) == (name, True)


WORKFLOWS = {
    "action": ("docs/action.md", "rag-eval"),
    "several": ("docs/several.md", "rag-eval"),
    "forks": ("docs/forks.md", "score"),
}


@pytest.mark.parametrize(("page", "judging"), WORKFLOWS.values(), ids=WORKFLOWS)
def test_in_every_workflow_shown_the_job_that_judges_runs_no_code_of_the_change(page, judging):
    workflow = next(item for item in map(yaml.safe_load, blocks(ROOT / page, "yaml")) if "jobs" in item)
    answered, judge = workflow["jobs"]["answer"], workflow["jobs"][judging]
    assert [step for step in judge["steps"] if "run" in step] == []
    used = [step["uses"].partition("@")[0] for step in judge["steps"]]
    assert used[:3] == ["actions/checkout", "actions/download-artifact", REPOSITORY]
    assert judge["needs"] == "answer"
    assert "always()" in judge["if"]  # GitHub takes a required check that is skipped for passed
    assert judge["steps"][0]["with"]["fetch-depth"] == 2
    handed, taken = answered["steps"][-1]["with"], judge["steps"][1]["with"]
    assert (handed["name"], handed["path"]) == (taken["name"], taken["path"])
    assert judge["steps"][1]["continue-on-error"] is True
    assert all(0 < job["timeout-minutes"] <= 60 for job in workflow["jobs"].values())
    assert all("write" not in str(job["permissions"]) for job in (answered,))


def test_the_workflow_that_init_writes_is_the_one_of_the_docs():
    assert (ROOT / "src/rag_eval/templates/workflow.yml").read_text("utf-8") in blocks(ROOT / "docs/action.md", "yaml")


def test_the_gold_and_traces_shown_pass_the_four_default_gates(tmp_path):
    gold, trace = blocks(ROOT / "README.md", "json")
    (tmp_path / "gold.jsonl").write_text(gold, "utf-8")
    (tmp_path / "trace.jsonl").write_text(trace, "utf-8")
    report = run(Options(str(tmp_path / "gold.jsonl"), str(tmp_path / "trace.jsonl")))
    assert report.passed
    assert report.notes == ()


def test_the_gold_set_that_init_writes_is_valid():
    ledger = ProblemCollector()
    template = ROOT / "src" / "rag_eval" / "templates" / "gold.jsonl"
    assert len(read_gold(Reader(ledger), str(template))) == 3
    assert ledger.problems == []
    assert ledger.notes == []


def test_readme_and_shipped_templates_name_the_same_action():
    template = (ROOT / "src" / "rag_eval" / "templates" / "workflow.yml").read_text("utf-8")
    assert f"uses: {REPOSITORY}@v{__version__[0]}" in template
    assert f"uses: {REPOSITORY}@v{__version__[0]}" in (ROOT / "README.md").read_text("utf-8")
    hooks = (ROOT / "src" / "rag_eval" / "templates" / "pre-commit.yaml").read_text("utf-8")
    assert f"repo: https://github.com/{REPOSITORY}\n    rev: v{__version__}\n" in hooks


def shown_lines(page):
    """The printed lines that a page shows, but for the places where it leaves some out."""
    [block] = blocks(page, "text")
    return [line for line in block.splitlines() if line.strip() and line != "…"]


def test_the_probe_shown_is_that_of_the_example(capsys):
    inputs = [f"--{role}={EXAMPLE / name}" for role, name in (("gold", "gold.jsonl"), ("trace", "good.jsonl"))]
    assert main(["probe", *inputs, f"--gates={EXAMPLE / 'eval-gates.yml'}", "--format=table"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in shown_lines(ROOT / "docs" / "probe.md") if line not in printed] == []


def test_every_kind_of_damage_is_explained():
    page = (ROOT / "docs" / "probe.md").read_text("utf-8")
    assert [kind.name for kind in KINDS if f"| `{kind.name}` |" not in page] == []


def test_the_pair_for_forks_is_shown_as_it_is():
    shown = blocks(ROOT / "docs" / "forks.md", "yaml")
    assert shown == [(ROOT / "examples/forks" / name).read_text("utf-8") for name in FORKS]


def test_the_pictures_are_of_what_is_shown_today():
    """Compare what each picture was made of: pixels differ from machine to machine."""
    done = subprocess.run([sys.executable, "tools/pictures.py", "--check"], cwd=ROOT, capture_output=True, check=False)
    assert done.stdout.decode() + done.stderr.decode() == ""


def test_every_picture_is_in_the_docs():
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    shown = "".join(path.read_text("utf-8") for path in pages)
    pictures = [path.name for path in (ROOT / "docs" / "img").iterdir() if path.suffix != ".json"]
    assert [name for name in pictures if f"img/{name}" not in shown] == []


def test_the_workflow_for_pages_is_shown_as_it_is():
    shown = blocks(ROOT / "docs" / "history.md", "yaml")
    assert shown == [(ROOT / "examples/pages/rag-eval-pages.yml").read_text("utf-8")]


FORKS = ("rag-eval.yml", "rag-eval-comment.yml")


def test_the_second_half_waits_for_the_first_and_runs_nothing_of_it():
    first, second = (yaml.safe_load((ROOT / "examples/forks" / name).read_text("utf-8")) for name in FORKS)
    assert second[True]["workflow_run"]["workflows"] == [first["name"]]
    assert (first["permissions"], second["permissions"]) == ({}, {})
    assert first["jobs"]["score"]["permissions"] == {"contents": "read"}
    steps = second["jobs"]["comment"]["steps"]
    assert [step["uses"].partition("@")[0] for step in steps] == ["actions/download-artifact", REPOSITORY]
    handed, taken = first["jobs"]["score"]["steps"][-1]["with"], steps[0]["with"]
    assert handed["name"] == taken["name"]
    assert steps[1]["with"]["report"] == f"{taken['path']}/{handed['path'].rpartition('/')[2]}"
