"""Writes the files that are generated from others; ``--check`` fails if one is stale."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from action_types import action_types
from composite_action import composite_action
from gates_schema import gates_schema
from refusal_words import index_file, required_words
from release import examples, with_name

from rag_eval import REPOSITORY, __version__
from rag_eval.cli.parser import build_parser
from rag_eval.metrics import ALIASES, METRICS, PERSPECTIVES, Metric, range_in_words, score_in_words
from rag_eval.rendering.explanation import Example
from rag_eval.scoring.aggregations import values_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT = Path(__file__).parent.parent
_SCENARIOS, _SCENARIOS_END = "<!-- scenarios: generated from tests/gaming -->", "<!-- /scenarios -->"
_INPUTS, _INPUTS_END = "<!-- inputs and outputs: generated from action.yml -->", "<!-- /inputs and outputs -->"
_WORKFLOW = "<!-- workflow: generated from src/rag_eval/templates/workflow.yml -->"
_WORKFLOW_END = "<!-- /workflow -->"
_METRICS, _METRICS_END = "<!-- metrics: generated from src/rag_eval/metrics -->", "<!-- /metrics -->"
_OPTIONS, _OPTIONS_END = "<!-- options: generated from the parser -->", "<!-- /options -->"
_TITLES = {"retrieval": "Metrics: retrieval (hit rate, recall, precision, MRR, nDCG)"}
"""Titles with the names that people search for, as the search of the site prefers titles."""


def main() -> int:
    """Write, or with ``--check`` compare, every generated file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 where a file is stale")
    check = parser.parse_args().check
    stale = {name: text for name, text in generated().items() if _differs(ROOT / name, text)}
    for name, text in stale.items():
        if not check:
            (ROOT / name).parent.mkdir(exist_ok=True)
            (ROOT / name).write_text(text, encoding="utf-8")
        print(f"{name} is stale; run: make generate" if check else f"wrote {name}", file=sys.stderr)
    return 1 if check and stale else 0


def _differs(path: Path, text: str) -> bool:
    return not path.exists() or path.read_text(encoding="utf-8") != text


def generated() -> dict[str, str]:
    """Text by path of every generated file."""
    made = {
        "schemas/eval-gates.schema.json": json.dumps(gates_schema(), indent=2, ensure_ascii=False) + "\n",
        "src/rag_eval/metrics/examples.json": examples_file(),
        "src/rag_eval/textual/data/refusals/index.json": index_file(),
        "src/rag_eval/textual/data/refusals/required.json": required_words(),
        **metric_pages(),
        "docs/action.md": action_page(),
        "docs/forks.md": forks_page(),
        "docs/tutorial.md": tutorial_page(),
        "docs/commands.md": commands_page(),
        "action-types.yml": action_types(_action()),
        "python/action.yml": composite_action(_action()),
        "docs/internals/attacks.md": attacks_page(),
    }
    named = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in examples()}
    return {name: with_name(text, REPOSITORY, __version__) for name, text in {**named, **made}.items()}


def action_page() -> str:
    """Return docs/action.md with the workflow that init writes, and the inputs and outputs of action.yml."""
    action = _action()
    tables = [_described(kind, action[f"{kind}s"]) for kind in ("input", "output")]
    page = with_block((ROOT / "docs/action.md").read_text(encoding="utf-8"), _INPUTS, "".join(tables), _INPUTS_END)
    workflow = (ROOT / "src/rag_eval/templates/workflow.yml").read_text(encoding="utf-8")
    return with_block(page, _WORKFLOW, f"```yaml\n{workflow}```\n", _WORKFLOW_END)


def forks_page() -> str:
    """Return docs/forks.md with the two workflows of examples/forks."""
    page = (ROOT / "docs/forks.md").read_text(encoding="utf-8")
    for name in ("rag-eval", "rag-eval-comment"):
        workflow = (ROOT / f"examples/forks/{name}.yml").read_text(encoding="utf-8")
        start = f"<!-- {name}: generated from examples/forks/{name}.yml -->"
        page = with_block(page, start, f"```yaml\n{workflow}```\n", f"<!-- /{name} -->")
    return page


def tutorial_page() -> str:
    """Return docs/tutorial.md with the apps of examples/rag-server that write traces."""
    page = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    for name in ("app", "app_langchain", "app_llama_index"):
        path = f"examples/rag-server/{name}.py"
        block = f"```python\n{(ROOT / path).read_text(encoding='utf-8')}```\n"
        page = with_block(page, f"<!-- {name}: generated from {path} -->", block, f"<!-- /{name} -->")
    return page


def commands_page() -> str:
    """Return docs/commands.md with the options of every command."""
    sections = [line for name, parser in _parsers("rag-eval", build_parser()) for line in _options(name, parser)]
    return _with_part("docs/commands.md", _OPTIONS, "\n".join(["", *sections, ""]), _OPTIONS_END)


def _with_part(name: str, start: str, text: str, end: str) -> str:
    """Return the page with ``text`` between its two comments."""
    return with_block((ROOT / name).read_text(encoding="utf-8"), start, text, end)


def with_block(page: str, start: str, text: str, end: str) -> str:
    """Return a text with another one between its two comments."""
    before, rest = page.split(start)
    return f"{before}{start}\n{text}{end}{rest.split(end)[1]}"


def _parsers(name: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the commands that run by themselves, and the sub-commands, by their full names."""
    nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not any(action.required for action in nested):
        yield name, parser
    for action in nested:
        for word, inner in action.choices.items():
            yield from _parsers(f"{name} {word}", inner)


def _options(name: str, parser: argparse.ArgumentParser) -> list[str]:
    rows = [
        f"| `{_invocation(action)}` | {_help(action)} |"
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        and action.dest != "help"
        and not isinstance(action, argparse._SubParsersAction)
    ]
    about = (parser.description or "").partition("\n")[0]
    table = ["| option | meaning |", "|---|---|", *rows, ""] if rows else []
    return [f"### {name}", "", about, "", *table]


def _invocation(action: argparse.Action) -> str:
    """Return an option as it is typed, such as ``--gold FILE``."""
    value = ""
    if action.nargs != 0:
        words = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest)
        value = " ".join(words) if isinstance(words, tuple) else words
        value = f"[{value}]" if action.nargs == "?" else f"{value}…" if action.nargs in ("+", "*") else value
    return " ".join(filter(None, [", ".join(action.option_strings), value])).replace("|", "\\|")


def _help(action: argparse.Action) -> str:
    text = (action.help or "") % {**vars(action), "prog": "rag-eval"}
    return text.replace("|", "\\|")


def _action() -> dict[str, Any]:
    import yaml

    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return found


def _described(kind: str, entries: dict[str, dict[str, str]]) -> str:
    rows = [f"| `{name}` | {entry['description']} |" for name, entry in entries.items()]
    return "\n".join([f"| {kind} | meaning |", "|---|---|", *rows]) + "\n\n"


def attacks_page() -> str:
    """Return docs/internals/attacks.md with the scenarios of tests/gaming."""
    import yaml

    files = sorted((ROOT / "tests" / "gaming").glob("*/scenario.yml"))
    scenarios = {file.parent.name: yaml.safe_load(file.read_text(encoding="utf-8")) for file in files}
    exits = [scenario["expect"]["exit"] for scenario in scenarios.values()]
    summary = (
        f"{len(exits)} attacks: {exits.count(1)} fail the run, {exits.count(2)} end with exit code 2,"
        f" {exits.count(0)} are only reported."
    )
    rows = [_scenario(name, scenario) for name, scenario in scenarios.items()]
    table = "\n".join([summary, "", "| attack | outcome |", "|---|---|", *rows])
    return _with_part("docs/internals/attacks.md", _SCENARIOS, f"{table}\n", _SCENARIOS_END)


def _scenario(name: str, scenario: dict[str, Any]) -> str:
    link = f"[{name}](../../tests/gaming/{name}/scenario.yml)"
    return f"| {link}: {scenario['because']} | {_outcome(scenario['expect'])} |"


def _outcome(expected: dict[str, Any]) -> str:
    """What a scenario ends in, for people: the finding and the exit code."""
    kind, _, rest = expected["finding"].partition(":")
    words = {
        "gate": f"gate `{rest}` fails",
        "change": f"`{rest}` is listed as looser",
        "says": f'cannot be judged: "{rest}"' if expected["exit"] else f'a message: "{rest}"',
        "note": f'a note: "{rest}"',
    }
    said = words.get(kind, f"`{kind}`")
    return f"{said}; exit {expected['exit']}" if expected["exit"] else f"**reported only**: {said}; exit 0"


def metric_pages() -> dict[str, str]:
    """Return docs/metrics.md, the overview, and the definitions and worked examples of each metric group."""
    return {
        "docs/metrics.md": metrics_page(),
        **{f"docs/{page_of(group)}": group_page(group) for group in PERSPECTIVES},
    }


def page_of(group: str) -> str:
    """Return the page of a group in docs: its written one if that has a place for the definitions."""
    page = ROOT / "docs" / f"{group}.md"
    return page.name if page.exists() and _METRICS in page.read_text(encoding="utf-8") else f"metrics/{group}.md"


def metrics_page() -> str:
    """Return the overview: every metric with its first sentence and a link to its definition."""
    lines = [
        "# Metrics",
        "",
        "To begin, gate these:",
        "",
        "| question | metrics |",
        "|---|---|",
        "| Are answers right, and do they cite the evidence? | `precision`, `chr` |",
        "| Does the system refuse when, and only when, it should? | `under_refusal`, `over_refusal` |",
        "| Does the retriever find the evidence? | `recall_all@5`, `recall_any@5` (hit rate), `mrr` |",
        "| Do the chunks support the answers (faithfulness)? | `groundedness`, `claim_support`, with `max_drop` |",
        "| Do answers leak data? | `leakage` |",
        "| Is the system fast and cheap? | `latency_total_ms.p95`, `cost_usd` |",
        "",
        "`rag-eval metrics` shows which metrics apply to your files, and `rag-eval explain NAME` prints a definition.",
        "",
        "A metric gives each case (a gold item and its trace) a score, or none if it does not apply. Its value is the",
        "mean over the cases to which it applies, unless its page says otherwise. A metric that applies to no case has",
        "no value, which is neither 0 nor 1.",
        "",
    ]
    for group, about in PERSPECTIVES.items():
        page = page_of(group)
        lines += [f"## [{group.capitalize()}]({page})", "", _sentence(about), ""]
        lines += ["| metric | meaning |", "|---|---|"]
        for family in families(group):
            names = ", ".join(f"[`{metric.name}`]({page}#{anchor(family)})" for metric in family)
            lines.append(f"| {names} | {first_sentence(family[0].text)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def group_page(group: str) -> str:
    """Return the page of a metric group."""
    sections = [line for family in families(group) for line in _section(family)]
    name = page_of(group)
    if name == f"{group}.md":
        return _with_part(f"docs/{name}", _METRICS, "\n".join(["", *sections, ""]), _METRICS_END)
    title = _TITLES.get(group, f"Metrics: {group}")
    return "\n".join([f"# {title}", "", _sentence(PERSPECTIVES[group]), "", *sections]).rstrip() + "\n"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def first_sentence(text: str) -> str:
    """Return the first sentence of a metric's text, as a cell of a table."""
    return text.partition(". ")[0].rstrip(".").replace("|", "\\|") + "."


def families(perspective: str) -> list[list[Metric]]:
    """The metrics of a perspective, those that one text explains together."""
    found: dict[tuple[str, str], list[Metric]] = {}
    for metric in METRICS.values():
        if metric.perspective == perspective:
            found.setdefault((metric.text, metric.better), []).append(metric)
    return list(found.values())


def anchor(family: list[Metric]) -> str:
    """The anchor that GitHub gives the heading of a section."""
    return re.sub("[^a-z0-9_ -]", "", _title(family).lower()).replace(" ", "-")


def _title(family: list[Metric]) -> str:
    return ", ".join(f"`{metric.name}`" for metric in family)


def _section(family: list[Metric]) -> list[str]:
    """The section of metrics that share their text: what is said of all of them once."""
    told = [facts(metric) for metric in family]
    alike = {name for name in told[0] if len({one.get(name) for one in told}) == 1}
    rows = [f"- **{name}**: {text}" for name, text in told[0].items() if name in alike and text]
    for metric, own in zip(family, told, strict=True):
        rows += [f"- **{name}** of `{metric.name}`: {text}" for name, text in own.items() if name not in alike]
    shown = [line for metric in family for line in _examples(metric, alone=len(family) == 1)]
    return [f"## {_title(family)}", "", family[0].text, "", *rows, "", *shown]


def facts(metric: Metric) -> dict[str, str]:
    """What there is to say of a metric besides its text, as ``explain`` says it."""
    return {
        "applies to": metric.applies,
        "score": score_in_words(metric),
        "range": range_in_words(metric),
        "direction": f"{metric.better} is better",
        "needs": ", ".join(f"`{field}`" for field in metric.needs) or "nothing beyond the required fields",
        "value": "; ".join(f"`{name}` is {words}" for name, words in values_in_words(metric)),
        "source": metric.source,
        "other names": ", ".join(f"`{alias}`" for alias, name in ALIASES.items() if name == metric.name),
    }


def _examples(metric: Metric, *, alone: bool) -> list[str]:
    found = examples_of(example_rows(metric.name))
    lines = [f"- {_marked(one)}" for one in found]
    case = next((one for one in found if one.case), None)
    head = "A case" if alone else f"With `{metric.name}` a case"
    return [head, "", *lines, "", *(_worked(case) if case else [])]


def _marked(example: Example) -> str:
    if not example.score:
        return f"*{example.verb}* when {example.because}."
    score, at, cut = example.score.partition(" at k")
    comma = "," if score.endswith(",") else ""
    return f"{example.verb} **{score.rstrip(',')}**{comma}{at}{cut} when {example.because}."


def _worked(example: Example) -> list[str]:
    rows = [json.dumps({name: value}, ensure_ascii=False) for name, value in (example.case or {}).items()]
    return [f"For example, this case {example.verb} {example.score.rstrip(',')}:", "", "```json", *rows, "```", ""]


def examples_of(rows: Iterable[Mapping[str, Any]]) -> list[Example]:
    """Return the examples of a metric's rows, in their order."""
    examples: list[Example] = []
    for row in rows:
        shows = row["score"] is not None and not any(example.case for example in examples)
        examples.append(_example(row)._replace(case=_case(row) if shows else None))
    return examples


def _example(row: Mapping[str, Any]) -> Example:
    if row["score"] is None:
        return Example("does not apply", "", row["because"])
    cut = f" at k = {row['k']}" if "k" in row else ""
    return Example("scores", _score(row["score"]) + cut, row["because"])


def _case(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("gold", "trace", "run", "settings") if name in row}


def _score(score: bool | float | list[Any]) -> str:
    if not isinstance(score, list):
        return f"{float(score):.5g}"
    if isinstance(score[1], bool):
        return f"{score[0]:.5g}, to be {'high' if score[1] else 'low'},"
    numerator, denominator = score
    return f"{numerator}/{denominator}" if 0 < numerator < denominator else str(numerator // denominator)


def example_rows(name: str) -> list[dict[str, Any]]:
    """The rows of tests/examples of a metric."""
    path = ROOT / "tests" / "examples" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def examples_file() -> str:
    """What the wheel has of tests/examples: a line a metric."""
    found = {name: [list(one) for one in examples_of(example_rows(name))] for name in METRICS}
    lines = [f"{json.dumps(name)}: {json.dumps(rows, ensure_ascii=False)}" for name, rows in found.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    raise SystemExit(main())
