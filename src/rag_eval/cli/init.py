"""The commands ``rag-eval init``, ``rag-eval demo`` and ``rag-eval completion``: the first steps."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from math import ceil, floor
from pathlib import Path
from typing import NamedTuple

from rag_eval import SITE, api
from rag_eval.cli._shared import (
    CITATIONS,
    TEMPLATES,
    is_sample,
    print_lines,
    print_notes,
    print_page,
    refuse,
    repository_root,
)
from rag_eval.cli.parser import Parser, build_parser
from rag_eval.common.escaping import quantity, quoted
from rag_eval.common.files import write
from rag_eval.common.paths import GATES_FILES, from_here, shell_line, shipped
from rag_eval.errors import PASSED, MissingExtra
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Reader
from rag_eval.rendering import render
from rag_eval.run import Options

PRESETS = {
    "reference": "four gates on precision, citations and refusals, and retrieval as a warning",
    "starter": "gates for a first pipeline",
    "no-citations": "gates for a system that does not cite",
    "enterprise": "at least one gate in every metric group",
}
COLLECT = {"url": "http://localhost:8000", "exec": "'python eval/answer.py'", "python": "eval.answer:answer"}
"""How ``rag-eval collect`` reaches the system in the files."""
TOOLS = {
    "langfuse": ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"),
    "langsmith": ("LANGSMITH_API_KEY",),
    "phoenix": ("PHOENIX_API_KEY",),
}
"""The tools that ``rag-eval import`` fetches traces from, and the environment variables of their keys."""
GATES, _GOLD, _SAMPLE = "eval-gates.yml", "eval/gold.jsonl", "runs/trace.jsonl"
_WORKFLOW = ".github/workflows/rag-eval.yml"
_FITTED = ("precision", "chr", "recall@5", "claim_support", "under_refusal", "over_refusal", "error_rate")
"""Metrics that gates for imported answers may have: those with a value that can get worse."""
_FITTED_GATES = """\
# yaml-language-server: $schema=https://org.github.io/rag-eval-action/schemas/v1/eval-gates.schema.json
# Each limit is just below or above the value of the imported answers. Every metric: rag-eval metrics
version: 1
gold: eval/gold.jsonl
trace: runs/trace.jsonl
k: 5                                # how many retrieved chunks reach the answer
refusal:
  builtin: true                     # recognise "I don't know" and other refusals
gates:
"""
_LIMITS = "Set the limits that you want in {gates}. Every metric: rag-eval metrics"
_SUBSTRINGS = """\
Write into gold_claim_substr of each answerable item of eval/gold.jsonl what a right answer contains.
     Without it, precision does not check what an answer says."""
_REPLACE = """\
Replace the three questions of eval/gold.jsonl with your own. Include some that your documents do not answer.
     Then: rag-eval validate eval/gold.jsonl"""
_NEXT = {
    "samples": ["Score the sample answers: rag-eval score", _REPLACE, "{answer}"],
    "own": ["Check your questions: rag-eval validate eval/gold.jsonl && rag-eval gold lint", "{answer}", _LIMITS],
    "imported": ["Score the imported answers: rag-eval score -v", _LIMITS, "{answer}"],
}
"""What to do next, by the questions of the gold set."""
_SIGN = """\
Commit the gold set with a sign-off: git add eval eval-gates.yml && rag-eval gold signoff --baseline --reason '…'
     Then require one for every change: add signoff: {require: record} to eval-gates.yml"""
_PULL = "Commit the files, open a pull request, and make its check rag-eval required."
_ANSWER = """\
      - run: date -u +%FT%TZ > started
      # Let your system answer the questions of eval/gold.jsonl here. It sends its traces to the tool.
"""
_START = "      # Start your system here, for example: - run: docker compose up --wait\n"
_AFTER_DEMO = """\
That was a change that made the answers worse: the gate would have stopped it with exit code 1.
The demo itself ends with 0.

Where to go next:
  rag-eval init                     write a first gold set and gates here
  rag-eval score                    score your own traces
  rag-eval explain precision        what a metric means
  rag-eval explain Q05 --gold {folder}/gold.jsonl --trace {folder}/bad.jsonl
                                    why a question scored as it did
"""
_SCRIPT = "python eval/write_traces.py"
_STEPS = re.compile(rf"(?m)^( +# Install what.*\n)(.*{re.escape(_SCRIPT)}\n)")


def add_arguments(parser: Parser) -> None:
    text = "; ".join(f"{name}: {words}" for name, words in PRESETS.items())
    parser.add_argument("--preset", choices=PRESETS, default="", help=f"{text} (default: reference)")
    asks = "write a workflow that asks your system: a server, a command or a Python function"
    parser.add_argument("--collect", choices=COLLECT, default="", help=asks)
    tools = ", ".join(TOOLS)
    imports = "import questions, answers and gates from a file of another tool;"
    imports += f" or {tools}: fetch its traces (./langfuse is a file)"
    parser.add_argument("--from", dest="origin", metavar="FILE", default="", help=imports)
    cites = "with --from FILE: how its answers cite: brackets ([id]), numbers ([1]) or none (default)"
    parser.add_option("--citations", "FORM", cites, default="none", choices=CITATIONS)
    refused = "with --from FILE: an expected answer that means: not answerable (repeatable)"
    parser.add_option("--unanswerable", "TEXT", refused, action="append", default=[])
    parser.add_flag("--signoff", "add the hook that requires a sign-off of gold changes")


def run(args: argparse.Namespace) -> int:
    """Write a first gold set, traces, gates, workflow and hook configuration. Files that exist are kept.

    Examples:
      rag-eval init
      rag-eval init --preset starter
      rag-eval init --preset enterprise --signoff
      rag-eval init --collect url
      rag-eval init --from langfuse
      rag-eval init --from samples.jsonl --citations numbers --unanswerable n/a
      rag-eval init --from questions.csv --collect url
    """
    below = repository_root(".") != os.path.realpath(".")
    questions_exist = os.path.lexists(_GOLD)
    has_questions = questions_exist and not is_sample(_GOLD)
    source = _source(args)
    is_imported = bool(args.origin) and args.origin not in TOOLS
    misused = "--citations and --unanswerable are for --from FILE. Add the file, or remove them"
    twice = f"--collect and --from {args.origin} both name the source of the traces. Remove one of them"
    refuse(
        (not is_imported and (args.unanswerable or _citing(args)), misused),
        (args.collect and args.origin in TOOLS, twice),
    )
    done = _import(args) if is_imported else ()
    script = {"": "" if args.origin else "write_traces.py", "url": ""}.get(args.collect, "answer.py")
    asked = {GATES: args.preset, _WORKFLOW: args.collect or args.origin}
    gates = GATES
    for target, template in files(args.preset or "reference", script).items():
        if target in done or (target == _SAMPLE and (questions_exist or is_imported) and not os.path.lexists(target)):
            continue  # the sample does not answer the user's questions
        names = GATES_FILES if target in GATES_FILES else ()
        path = Path(next((name for name in names if os.path.lexists(name)), target))
        gates = str(path) if names else gates
        exists = os.path.lexists(path)
        if below and target.startswith("."):
            print_lines(f"left   {target}  (it works only in the root of the repository: {SITE}/several.html)")
        elif exists:
            advice = ""
            if target.startswith(".") and not (path.is_file() and b"rag-eval" in path.read_bytes()):
                advice = "  (it does not name rag-eval yet: the README shows the entry to add)"
            elif asked.get(target):
                advice = "  (your options do not change it: to write it again, remove it first)"
            print_lines(f"kept   {path}{advice}")
        else:
            text = (TEMPLATES / template).read_text(encoding="utf-8")
            if template == "workflow.yml":
                text = _collecting(text, source)
            if args.signoff and template == "pre-commit.yaml":
                text += "      - id: rag-eval-gold-signoff\n"
            write(path, text)
            ignored = target == _GOLD and _is_ignored(target)
            advice = f"  (git ignores it, so add it by force: git add -f {target})" if ignored else ""
            print_lines(f"wrote  {path}{advice}")
    again = " --force" if args.collect else ""
    answer = f"{source.first}, then: {source.command}{again} && rag-eval score"
    first = _NEXT["imported" if _SAMPLE in done else "own" if has_questions or is_imported else "samples"]
    steps = [step.format(answer=answer, gates=gates) for step in first]
    if is_imported and not all(item["gold_claim_substr"] for item in api.load_gold(_GOLD) if item["answerable"]):
        steps.insert(1, _SUBSTRINGS)
    steps += [_SIGN] if args.signoff else []
    steps += [] if below else [_PULL]
    print("", "Next:", *(f"  {number}. {step}" for number, step in enumerate(steps, 1)), sep="\n")
    return PASSED


def _is_ignored(path: str) -> bool:
    from rag_eval.git.plumbing import Git, GitError

    with suppress(GitError):  # no repository, or no git
        return (git := Git()).ignores(git.prefix + path)
    return False


def _import(args: argparse.Namespace) -> list[str]:
    """Write gold set and traces of another tool's file, both or none, and gates if none are asked for; return paths.

    With ``--collect``, a file without answers of a system gives only the gold set.
    """
    from rag_eval.cli.import_export import recognise, run_import
    from rag_eval.importers.columns import suggested
    from rag_eval.importers.table import header
    from rag_eval.readers.import_inputs import Files
    from rag_eval.readers.packed_tables import converted

    path: str = args.origin
    unknown = f"--from: there is no file {path}. Name one, or one of: {', '.join(TOOLS)}"
    refuse((not os.path.lexists(path), unknown))
    reader = converted(Reader(ProblemCollector()), [path])
    form = recognise(reader, path)
    one_answer = None
    if form.trace == "table":
        names = header(Files(reader.silent(), [path]), path)
        answers = suggested(names, "table").get("answer")
        one_answer = answers if answers == suggested(names, "table-gold").get("expected_answer") else None
    only_gold = args.collect and (one_answer is not None or not form.trace)
    parts = {_GOLD: form.gold} if only_gold else {_GOLD: form.gold, _SAMPLE: form.trace}
    exists = "exists, and --from writes it. Move it away, or work in another folder"
    refuse(*((os.path.lexists(out) and not is_sample(out), f"{out} {exists}") for out in parts))
    draft = shell_line("rag-eval", "import", form.trace, path, "--out", _SAMPLE)
    no_gold = f"{path} has no expected answers. Write: {draft}, then: rag-eval gold draft --from {_SAMPLE}"
    ask = "add --collect url, exec or python"
    no_traces = f"{path} has no answers of a system. To ask your system, {ask}"
    twice = f"{path} has only one field of answers, {one_answer}. If they are expected, {ask}. "
    twice += f"If they are the system's, write: {draft}, then: rag-eval gold draft --from {_SAMPLE}"
    refuse(
        (not form.gold, no_gold),
        (not form.trace and not only_gold, no_traces),
        (one_answer is not None and not only_gold, twice),
    )
    try:
        for out, name in parts.items():
            options = [f"--unanswerable={text}" for text in args.unanswerable] if out == _GOLD else _citing(args)
            run_import(build_parser("import").parse_args(["import", name, path, *options, "--out", out, "--force"]))
        bare, golds = {"qid", "question", "answerable"}, api.load_gold(_GOLD)
        expects_one = any(not item["answerable"] or any(map(item.get, item.keys() - bare)) for item in golds)
        refuse((not expects_one, no_gold))
        has_gates = args.preset or only_gold or any(map(os.path.lexists, GATES_FILES))
        gates = "" if has_gates else _FITTED_GATES + "".join(_fitted_gates())
    except BaseException:
        for out in filter(os.path.lexists, parts):
            Path(out).unlink()
            print_notes(f"removed {out}")
        raise
    if not gates:
        return [*parts]
    write(GATES, gates)
    print_lines(f"wrote  {GATES}")
    return [*parts, GATES]


def _citing(args: argparse.Namespace) -> list[str]:
    return ["--citations", args.citations] if args.citations != "none" else []


def _fitted_gates() -> Iterator[str]:
    """Yield gates whose limits, in steps of 0.05, are just below or above the values of the imported answers."""
    contents = {GATES: f"{_FITTED_GATES}  error_rate: {{max: 1}}\n".encode()}
    report = api.run(Options(_GOLD, _SAMPLE, GATES, contents=contents))
    accepts_any_answer = any(finding.code == "vacuous-gold" for finding in report.findings)
    for name in _FITTED:
        metric = report.metrics.get(name)
        if metric is None or metric.value is None or (accepts_any_answer and name in ("precision", "chr")):
            continue
        is_minimum = metric.better == "higher"
        limit = (ceil(metric.value * 20) - 1 if is_minimum else floor(metric.value * 20) + 1) / 20
        if 0 < limit < 1:
            gate = f"  {name}: {{{'min' if is_minimum else 'max'}: {limit:.2f}}}"
            yield f"{gate:<36}# now {metric.value:.3f} ({quantity(metric.n, 'case')})\n"


class _Source(NamedTuple):
    """How the user's system answers the questions: what comes first, and the command that gets the traces.

    In the workflow, ``step`` replaces the packaged one, and ``keys`` are secrets in the environment of the command.
    """

    first: str
    command: str
    step: str = ""
    extra: str = ""
    keys: tuple[str, ...] = ()


def _source(args: argparse.Namespace) -> _Source:
    name = args.collect or args.origin
    if not name:
        return _Source("Call your own system in eval/write_traces.py", _SCRIPT)
    if keys := TOOLS.get(name, ()):
        first = f"Set {' and '.join(keys)}, let your system answer the questions"
        command = f"rag-eval import {name} --from-api --since today --gold {_GOLD} --out {_SAMPLE}"
        return _Source(first, command, _ANSWER, "[collect]", keys)
    if args.collect:
        command = f"rag-eval collect --{name} {COLLECT[name]}"
        if name == "url":
            return _Source("Start your system", command, _START, "[collect]")
        return _Source("Call your own system in eval/answer.py", command)
    words = ("rag-eval", "import", "auto", name, "--as", "trace", *_citing(args), "--out", _SAMPLE, "--force")
    step = f"      # Let your system answer the questions here, and write {quoted(name)}.\n"
    return _Source(f"Let your system answer the questions again, and write {name}", shell_line(*words), step)


def _collecting(workflow: str, source: _Source) -> str:
    """Return the workflow with the steps of a source in its first job."""
    install, run = _STEPS.findall(workflow)[0]
    command = source.command.replace("today", '"$(cat started)"') if source.keys else source.command
    if "#" in command or ": " in command:
        command = json.dumps(command)  # a JSON string is a YAML string
    steps = (source.step or install) + run.replace(_SCRIPT, command)
    steps += "        env:\n" if source.keys else ""
    steps += "".join(f"          {name}: ${{{{ secrets.{name} }}}}\n" for name in source.keys)
    workflow = _STEPS.sub(lambda _: steps, workflow)
    return workflow.replace('"rag-eval-action @', f'"rag-eval-action{source.extra} @')


def files(preset: str, script: str = "write_traces.py") -> dict[str, str]:
    """Return the template by the path that it is written to; ``script`` gets the answers, if one has to be written."""
    return {
        _GOLD: "gold.jsonl",
        GATES: f"gates-{preset}.yml",
        **({f"eval/{script}": script} if script else {}),
        _SAMPLE: "trace.jsonl",
        "runs/.gitignore": "gitignore-runs",
        "rag-eval-report/.gitignore": "gitignore-report",
        _WORKFLOW: "workflow.yml",
        ".pre-commit-config.yaml": "pre-commit.yaml",
    }


def run_demo(args: argparse.Namespace) -> int:
    """Score the packaged example: a good run and a bad one.

    Examples:
      rag-eval demo
    """
    del args
    folder = from_here(shipped("examples", "quickstart"))
    gold, gates = f"{folder}/gold.jsonl", f"{folder}/eval-gates.yml"
    for title, trace in (("main", "good.jsonl"), ("the pull request", "bad.jsonl")):
        print(f"== The run of {title}: {trace} ==\n")
        print_page(render(api.run(Options(gold, f"{folder}/{trace}", gates)), "table") + "\n")
    sys.stdout.write(_AFTER_DEMO.format(folder=folder))
    return PASSED


def add_completion_arguments(parser: Parser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=["bash", "zsh", "tcsh"], help="bash, zsh or tcsh")


def run_completion(args: argparse.Namespace) -> int:
    """Print the completion script of a shell, for commands, options and file names.

    Examples:
      rag-eval completion bash > ~/.local/share/bash-completion/completions/rag-eval
      rag-eval completion zsh > ~/.zfunc/_rag-eval
    """
    try:
        import shtab
    except ModuleNotFoundError:
        raise MissingExtra("Shell completion", "completion") from None
    parser = build_parser()
    _complete_files(parser, shtab.FILE)
    sys.stdout.write(shtab.complete(parser, args.shell) + "\n")
    return PASSED


def _complete_files(parser: Parser, files: object) -> None:
    for action in parser._actions:  # argparse has no public way to list its actions
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command, files)
        elif action.metavar in ("FILE", "PATH", "DIR", "REPORT", "RUN"):
            action.complete = files  # type: ignore[attr-defined]
