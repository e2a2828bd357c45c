"""Laws over all importers of foreign forms: whole accounts, stable rows, and problems in place of tracebacks."""

from __future__ import annotations

import json
import random
import shlex

import pytest

from cases import ROOT

CLEAN = [
    folder
    for folder in sorted((ROOT / "tests" / "foreign").iterdir())
    if (folder / "args").exists()
    and (folder / "expected").read_text("utf-8").startswith("exit 0")
    and "suggest" not in folder.name
]


def arguments(folder):
    return shlex.split((folder / "args").read_text("utf-8"))


def copied(folder, to, damage):
    """The command on a copy of the folder whose input files went through ``damage``."""
    for path in folder.iterdir():
        if path.name not in ("args", "expected"):
            keep = path.suffix == ".yml" or path.name.startswith("gold")
            (to / path.name).write_bytes(path.read_bytes() if keep else damage(path.read_bytes()))
    return arguments(folder)


def test_written_rows_are_valid_and_score(command, tmp_path, monkeypatch):
    failed = []
    for folder in CLEAN:
        monkeypatch.chdir(folder)
        out = tmp_path / f"{folder.name}.jsonl"
        command("import", *arguments(folder), "--out", out)
        if command("validate", out)[0] != 0:
            failed.append(folder.name)
    assert failed == []


def test_lines_in_another_order_give_the_same_traces(command, tmp_path, monkeypatch):
    failed = []
    for folder in CLEAN:
        lines = [path for path in folder.glob("*.jsonl") if "gold" not in path.name]
        if not folder.name.startswith(("otlp", "langsmith", "langfuse")) or not lines:
            continue
        rows = []
        for reverse in (False, True):
            to = tmp_path / f"{folder.name}-{reverse}"
            to.mkdir()
            args = copied(folder, to, lambda data, turn=reverse: b"".join(data.splitlines(True)[:: -1 if turn else 1]))
            monkeypatch.chdir(to)
            rows.append(sorted(command("import", *args)[1].splitlines()))
        if rows[0] != rows[1]:
            failed.append(folder.name)
    assert failed == []


def test_every_top_level_field_is_read_or_named(command, tmp_path, monkeypatch):
    """A field that no importer knows is named in the account of every form whose rows it is added to."""
    failed = []
    for folder in CLEAN:
        name = arguments(folder)[0]
        if name in ("auto", "table") or name.startswith(("trec", "otlp", "mlflow", "beir")):
            continue
        to = tmp_path / folder.name
        to.mkdir()

        def add(data):
            if not data.lstrip().startswith(b"{"):
                return data
            if data.lstrip()[1:2] in (b"\n", b"\r"):
                return data  # objects over several lines
            rows = [json.loads(line) for line in data.splitlines()]
            for row in rows:
                columns = all(isinstance(value, dict) and "0" in value for value in row.values())
                row["zebra"] = {"0": "stripes"} if columns else "stripes"
            return "".join(json.dumps(row) + "\n" for row in rows).encode()

        args = copied(folder, to, add)
        monkeypatch.chdir(to)
        changed = any(b"zebra" in path.read_bytes() for path in to.iterdir())
        code, _, err = command("import", *args)
        nested = any(word in name for word in ("deepeval-trace", "promptfoo", "azure")) or name == "phoenix"
        if changed and not nested and (code, "zebra" in err) != (0, True):
            failed.append(folder.name)
    assert failed == []


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(10))
def test_damaged_files_are_problems_or_fewer_rows(command, tmp_path, monkeypatch, seed):
    chance, failed = random.Random(seed), []
    for folder in CLEAN:
        to = tmp_path / folder.name
        to.mkdir()

        def damage(data):
            position = chance.randrange(len(data) + 1)
            if chance.random() < 0.5:
                return data[:position]
            words = [b"null", b"[]", b"{}", b"1", b'"x"', b"NaN", b"[[", b"\xff"]
            return data[:position] + chance.choice(words) + data[position + chance.randrange(12) :]

        args = copied(folder, to, damage)
        monkeypatch.chdir(to)
        code, out, err = command("import", *args)
        if code not in (0, 2) or "Traceback" in err or (code == 2 and out):
            failed.append((folder.name, code, err[-200:]))
    assert failed == []


@pytest.mark.deep
@pytest.mark.parametrize("start", range(2))
def test_values_of_another_type_are_problems(command, tmp_path, monkeypatch, start):
    """Every value of every input, one at a time, becomes one of another type: never a traceback.

    Neighbours become values of different types. Many inputs have the same fields: a place in rows of the same fields is
    changed once.
    """
    failed, tried = [], set()
    for folder in CLEAN:
        to = tmp_path / folder.name
        to.mkdir()
        path = next((path for path in sorted(folder.iterdir()) if path.suffix in (".json", ".jsonl")), None)
        if path is None or "gold" in path.name:
            continue
        args = copied(folder, to, lambda data: data)
        monkeypatch.chdir(to)
        lines = path.read_text("utf-8").splitlines()
        try:
            row = json.loads(lines[0])
        except ValueError:
            continue
        for place, changed in variants(row, start):
            if (key := (*sorted(row), place) if isinstance(row, dict) else (folder.name, place)) in tried:
                continue
            tried.add(key)
            (to / path.name).write_text("\n".join([json.dumps(changed), *lines[1:]]) + "\n", encoding="utf-8")
            code, _, err = command("import", *args)
            if code not in (0, 2) or "Traceback" in err:
                failed.append((folder.name, json.dumps(changed)[:300], err[-200:]))
                break
    assert failed == []


OTHERS = ["null", "[[]]", "{}", "1", '[{"a": [null]}]']


def variants(value, start):
    """The value with one inner value replaced by one of OTHERS in turn, for up to 25 places, and the place."""
    positions = []

    def walk(node, path):
        if isinstance(node, dict):
            for name, inner in node.items():
                positions.append((*path, name))
                walk(inner, (*path, name))
        elif isinstance(node, list):
            for number, inner in enumerate(node[:2]):
                positions.append((*path, number))
                walk(inner, (*path, number))

    walk(value, ())
    for number, path in enumerate(positions[:: max(1, len(positions) // 25)], 2 * start):
        copy = json.loads(json.dumps(value))
        node = copy
        for part in path[:-1]:
            node = node[part]
        node[path[-1]] = json.loads(OTHERS[number % len(OTHERS)])
        yield path, copy
