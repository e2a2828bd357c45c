"""Real exports in other containers, cut, empty, and given to the importer of another tool."""

from __future__ import annotations

import gzip
import json
import shlex

import pytest

from cases import ROOT

FOREIGN = ROOT / "tests" / "foreign"
REAL = sorted(folder for folder in FOREIGN.iterdir() if folder.name.startswith("real-"))
ROWS = [folder for folder in REAL if (folder / "expected").read_text("utf-8").startswith("exit 0")]
JSON = [folder for folder in ROWS if not list(folder.glob("*.csv"))]


def inputs(folder):
    return [path for path in sorted(folder.iterdir()) if path.name not in ("args", "expected")]


def words(folder):
    return shlex.split((folder / "args").read_text("utf-8"))


def values(data):
    """The JSON values of a file: one, or one a line."""
    try:
        return [json.loads(data)]
    except ValueError:
        decoder, text, position, result = json.JSONDecoder(), data.decode(), 0, []
        while position < len(text):
            value, position = decoder.raw_decode(text, position)
            result.append(value)
            position += len(text[position:]) - len(text[position:].lstrip())
        return result


def pretty(data):
    return "\n".join(json.dumps(value, indent=2) for value in values(data)).encode()


def one_line(data):
    return "".join(json.dumps(value) + "\n" for value in values(data)).encode()


def as_array(data):
    result = values(data)
    return json.dumps(result[0] if len(result) == 1 and isinstance(result[0], list) else result).encode()


def as_lines(data):
    result = values(data)
    rows = result[0] if len(result) == 1 and isinstance(result[0], list) else result
    return "".join(json.dumps(row) + "\r\n" for row in rows).encode()


def packed(data):
    zstd = pytest.importorskip("backports.zstd")
    return zstd.compress(data)


CONTAINERS = {
    "gz": (gzip.compress, ROWS), "zst": (packed, ROWS), "bom": (lambda data: b"\xef\xbb\xbf" + data, ROWS),
    "crlf": (lambda data: data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"), ROWS),
    "blank lines": (lambda data: b"\n\n" + data + b"\n\n", JSON), "pretty": (pretty, JSON),
    "one line": (one_line, JSON), "array": (as_array, JSON), "lines": (as_lines, JSON),
}  # fmt: skip


def changed(folder, to, damage):
    to.mkdir(parents=True)
    for path in inputs(folder):
        (to / path.name).write_bytes(damage(path.read_bytes()))
    return words(folder)


@pytest.mark.parametrize("container", CONTAINERS)
def test_rows_are_the_same_in_every_container(command, monkeypatch, tmp_path, container):
    damage, folders = CONTAINERS[container]
    failed = []
    for folder in folders:
        args = changed(folder, tmp_path / folder.name, damage)
        monkeypatch.chdir(tmp_path / folder.name)
        code, out, err = command("import", *args)
        expected = (folder / "expected").read_text("utf-8").split("--- stdout\n")[1].split("--- stderr\n")[0]
        if (code, out) != (0, expected):
            failed.append((folder.name, code, err[:300]))
    assert "\n".join(map(str, failed)) == ""


@pytest.mark.parametrize(
    "content", [b"", b"\n \n", b"[]", b"{}", b"null\n", b"[null]", b"\xef\xbb\xbf", b"\x1f\x8b\x08"]
)
def test_a_file_without_anything_in_it_is_named(command, monkeypatch, tmp_path, content):
    failed = []
    for folder in REAL:
        args = changed(folder, tmp_path / folder.name, lambda _: content)
        monkeypatch.chdir(tmp_path / folder.name)
        for form in (args[0], "auto"):
            code, out, err = command("import", form, *args[1:])
            named = any(path.name in err for path in inputs(folder))
            if (code, out, named) != (2, "", True) or "defect" in err or "unexpected type" in err:
                failed.append((folder.name, form, code, err))
    assert "\n".join(map(str, failed)) == ""


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_off_is_a_problem_with_its_line(command, monkeypatch, tmp_path, share):
    failed = []
    for folder in JSON:

        def cut(data):
            position = int(len(data) * share)
            while (
                position < len(data) and data[position - 1 : position] in b"\n}"
            ):  # whole lines, or a value that is complete
                position += 1
            return data[:position]

        args = changed(folder, tmp_path / folder.name, cut)
        monkeypatch.chdir(tmp_path / folder.name)
        code, out, err = command("import", *args)
        lines = [line for line in err.splitlines() if any(line.startswith(f"{path.name}:") for path in inputs(folder))]
        cut_off = any(word in err for word in ("in the middle of a JSON value", "is not valid JSON"))
        if (code, out, bool(lines), cut_off) != (2, "", True, True):
            failed.append((folder.name, code, err[:300]))
    assert "\n".join(map(str, failed)) == ""


def test_the_file_of_another_tool_names_the_command_for_it(command, monkeypatch, tmp_path):
    """Every real export to every other importer: the problem names the tool that it is of, or it is read as well."""
    failed = []
    formats = sorted({words(folder)[0] for folder in REAL})
    for folder in REAL:
        monkeypatch.chdir(folder)
        ours, *files = words(folder)
        files = [word for word in files if (folder / word).exists()]
        for other in formats:
            related = {ours.split("-")[0], other.split("-")[0]}
            if len(related) == 1:
                continue
            code, out, err = command("import", other, *files)
            if code == 0:
                failed += [] if related == {"otlp", "phoenix"} else [(folder.name, other, "was read")]
            elif f"rag-eval import {ours.split('-')[0]}" not in err or out:
                failed.append((folder.name, other, err[:300]))
    assert "\n".join(map(str, failed)) == ""


@pytest.mark.parametrize("folder", ROWS, ids=lambda folder: folder.name)
def test_auto_chooses_the_importer_of_the_tool(command, monkeypatch, folder):
    monkeypatch.chdir(folder)
    name, *files = words(folder)
    code, out, err = command(
        "import", "auto", *files, *(["--as", "gold"] if name.endswith(("gold", "dataset")) else [])
    )
    wanted = (folder / "expected").read_text("utf-8").split("--- stdout\n")[1].split("--- stderr\n")[0]
    kinds = {name, f"{name}-gold", f"{name}-trace", name.removesuffix("-trace")}
    assert code == 0, err
    chosen = err.split(" is read as ")[1].split(":")[0]
    assert (chosen, out == wanted or chosen != name) == (chosen if chosen in kinds else name, True)
