"""Kinds of bad input by name: which file is bad, how it is made, and the words that must be said of it.

Everything is made in code from a few bytes, so that nothing large or odd lies in the repository.
"""

# ruff: noqa: E501 - one kind a line

import gzip
import json
import os
from typing import NamedTuple

from reading import element, gold, jsonl, trace

MIB = 1 << 20


class Kind(NamedTuple):
    name: str
    role: str  # which of gold.jsonl, trace.jsonl and gates.yml is bad
    content: object  # its bytes, or a function that makes something else of its path
    words: tuple[str, ...]  # all of them are on stderr
    place: str = ":1:"  # what follows the file's name on the first line
    lines: int = 1


def raw(row, **texts):
    """A row as text, in which the values of some fields are written as given."""
    members = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in row.items() if name not in texts]
    return ("{" + ", ".join([*members, *(f'"{name}": {text}' for name, text in texts.items())]) + "}\n").encode()


def without(row, name):
    return {key: value for key, value in row.items() if key != name}


def link_out(path):
    secret = path.parent.parent / "secret.jsonl"
    secret.write_bytes(jsonl(gold(question="SECRET")))
    path.symlink_to(secret)


def link_in_a_circle(path):
    path.symlink_to(path.name)


def dangling(path):
    path.symlink_to("gone.jsonl")


def device(path):
    path.symlink_to(os.devnull)


BOMB = "\n".join(["a: &a [x]", *(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi"))])  # noqa: B905
GATE = "version: 1\ngates:\n  "

GOLD = [
    Kind("a cut line", "gold", jsonl(gold())[:-30], ("not valid JSON", "cut off")),
    Kind("a line cut in the middle of the file", "gold", jsonl(gold(), b'{"qid": "B", "qu\n', gold(qid="C")), ("not valid JSON",), ":2: column 14:"),
    Kind("a line cut inside a character", "gold", jsonl(gold(), '{"qid": "ä'.encode()[:-1]), ("not valid UTF-8",), ":2: column 10:"),
    Kind("plain words", "gold", b"hello\n", ("not valid JSON", "expecting value"), ":1: column 1:"),
    Kind("two objects on a line", "gold", raw(gold()).strip() + raw(gold(qid="B")), ("second JSON value", "one JSON object on each line")),
    Kind("a trailing comma", "gold", raw(gold())[:-2] + b",}\n", ("not valid JSON",)),
    Kind("single quotes", "gold", b"{'qid': 'A'}\n", ("not valid JSON",), ":1: column 2:"),
    Kind("a text for a truth value", "gold", jsonl(gold(answerable="true")), ("/answerable", "is not true or false", "without quotes")),
    Kind("a number for a qid", "gold", jsonl(gold(qid=7)), ("/qid", "7 is not a string")),
    Kind("a text for a list", "gold", jsonl(gold(gold_citations="p1#2")), ("/gold_citations", "is not a list")),
    Kind("null for a list", "gold", jsonl(gold(gold_citations=None)), ("null is not a list", "Leave the field out")),
    Kind("a number in a list of texts", "gold", jsonl(gold(gold_citations=["a", 3])), ("/gold_citations/1", "3 is not a string")),
    Kind("a list for a row", "gold", jsonl(gold(), b"[1]\n"), ("a list with 1 entry is not an object",), ":2:"),
    Kind("a number for a row", "gold", b"17\n", ("17 is not an object",)),
    Kind("a missing field", "gold", jsonl(without(gold(), "question")), ("'question' is missing",)),
    Kind("a misspelt field", "gold", jsonl({**without(gold(), "gold_citations"), "gold_citation": []}), ("'gold_citations' is missing", "Rename 'gold_citation'")),
    Kind("an empty qid", "gold", jsonl(gold(qid="")), ("/qid", "empty")),
    Kind("a qid of 201 characters", "gold", jsonl(gold(qid="q" * 201)), ("/qid", "longer than 200")),
    Kind("a substring that can never match", "gold", jsonl(gold(gold_claim_substr=["yes"])), ("/gold_claim_substr/0", "'yes' is shorter than 5 characters", "Add the words around it")),
    Kind("labels on an unanswerable item", "gold", jsonl(gold(answerable=False)), ("must be empty", "/gold_citations", "/gold_claim_substr"), lines=2),
    Kind("an unknown difficulty", "gold", jsonl(gold(difficulty="harder")), ("'harder' is not one of", "Did you mean 'hard'?")),
    Kind("a grade in quotes", "gold", jsonl(gold(relevance_grades={"p1#2": "3"})), ("/relevance_grades/p1#2", "'3' is not")),
    Kind("a support group without its support", "gold", jsonl(gold(required_support_groups=[[3]])), ("/required_support_groups",)),
    Kind("a support group that counts in fractions", "gold", jsonl(gold(supports=[{"rel_path": "a", "heading_path": ""}], required_support_groups=[[0.0]])), ("whole numbers",)),
    Kind("a duplicate key", "gold", raw(gold(), tags='[], "tags": []'), ("'tags' occurs twice",)),
    Kind("a duplicate key behind an escape", "gold", raw(gold(), x='1, "\\u0078": 2'), ("'x' occurs twice",)),
    Kind("a duplicate key deep in an unknown field", "gold", raw(gold(), x='[{"a": {"b": 1, "b": 2}}]'), ("'b' occurs twice",)),
    Kind("a duplicate qid", "gold", jsonl(gold(), gold()), ("'A0001' is already used on line 1",), ":2: /qid:"),
    Kind("NaN", "gold", raw(gold(), meta='{"x": NaN}'), ("NaN is not JSON",)),
    Kind("minus infinity in an unknown field", "gold", raw(gold(), x="-Infinity"), ("-Infinity is not JSON",)),
    Kind("a float beyond all floats", "gold", raw(gold(), x="1e999"), ("too large for a number",)),
    Kind("an integer of 5,000 digits", "gold", raw(gold(), x="9" * 5000), ("integer of more than 64 bits",)),
    Kind("an integer of 65 bits in a known field", "gold", raw(gold(), min_citations=str(2**64)), ("integer of more than 64 bits",)),
    Kind("an integer of 65 bits in a support group", "gold", raw(gold(), required_support_groups=f"[[{2**70}]]"), ("integer of more than 64 bits",)),
    Kind("nesting 65 deep", "gold", raw(gold(), x="[" * 64 + "]" * 64), ("nested deeper than 64 levels",)),
    Kind("nesting 60,000 deep", "gold", raw(gold(), x="[" * 60_000 + "]" * 60_000), ("nested deeper than 64 levels",)),
    Kind("nesting 60,000 deep in objects", "gold", raw(gold(), x='{"a":' * 60_000 + "1" + "}" * 60_000), ("nested deeper than 64 levels",)),
    Kind("nesting that never ends", "gold", b"[" * 60_000, ("nested deeper than 64 levels",), ":"),
    Kind("invalid UTF-8", "gold", raw(gold()).replace(b"null", b"nu\xff"), ("0xff is not valid UTF-8", "Save the file as UTF-8")),
    Kind("Latin-1", "gold", "{'qid': 'Müll'}\n".encode("latin-1"), ("not valid UTF-8",), ":1: column 11:"),
    Kind("UTF-16, the high byte first", "gold", "\ufeff{}".encode("utf-16-be"), ("is UTF-16 text",), ":"),
    Kind("UTF-16", "gold", jsonl(gold()).decode().encode("utf-16"), ("is UTF-16 text",), ":"),
    Kind("a lone surrogate", "gold", raw(gold(), x='"\\ud83d"'), ("half of a surrogate pair",)),
    Kind("a surrogate in raw bytes", "gold", b'{"qid": "\xed\xa0\x80"}\n', ("not valid UTF-8",), ":1: column 10:"),
    Kind("a byte order mark in the middle", "gold", jsonl(gold(), b"\xef\xbb\xbf" + raw(gold(qid="B"))), ("U+FEFF",), ":2: column 1:"),
    Kind("a line separator", "gold", jsonl(gold(), "\u2028\n".encode()), ("U+2028",), ":2: column 1:"),
    Kind("a null byte", "gold", jsonl(gold(), b"\0\0\0\0\n"), ("U+0000",), ":2: column 1:"),
    Kind("a raw tab in a text", "gold", raw(gold()).replace(b"null keys?", b"null\tkeys?"), ("control character", "Escape")),
    Kind("a line of 17 MiB", "gold", jsonl(gold(), b'{"qid": "' + b"x" * (17 * MIB) + b'"}\n'), ("a line of more than 16 MiB",), ":2:"),
    Kind("a line of 17 MiB without an end", "gold", jsonl(gold(), b"\xff" * (17 * MIB)), ("a line of more than 16 MiB",), ":2:"),
    Kind("an empty gold file", "gold", b"", ("has no gold items",), ":"),
    Kind("a gold file of blank lines", "gold", b"\n \r\n\n", ("has no gold items",), ":"),
    Kind("an empty array", "gold", b"[]\n", ("has no gold items",), ":"),
    Kind("an array that never ends", "gold", b"[" + raw(element()), ("',' or ']'", "cut off"), ":2: column 1:"),
    Kind("an array with more after it", "gold", b"[" + raw(element()) + b"] x", ("nothing after the array",), ":2: column 3:"),
    Kind("a wrong element", "gold", b"[\n" + raw(element(gold_ids=[1])) + b"]", ("/gold_ids/0", "1 is not a string"), ":2:"),
    Kind("a trace file given as gold", "gold", jsonl(*[trace(qid=str(number)) for number in range(300)]), ("looks like a row of a trace file", "swapped")),
    Kind("a folder", "gold", lambda path: path.mkdir(), ("is a folder",), ":"),
    Kind("a pipe", "gold", os.mkfifo, ("device or a pipe",), ":"),
    Kind("a device", "gold", device, ("leads out",), ":"),
    Kind("a link out", "gold", link_out, ("leads out of its folder",), ":"),
    Kind("a link in a circle", "gold", link_in_a_circle, ("cannot be opened",), ":"),
    Kind("a link to nothing", "gold", dangling, ("no such file",), ":"),
    Kind("no file", "gold", lambda _: None, ("no such file",), ":"),
    Kind("an LFS pointer", "gold", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", ("Git LFS pointer", "git lfs pull"), ":"),
    Kind("a gzip file that is cut off", "gold", gzip.compress(jsonl(gold()))[:-20], ("ended before",), ":"),
    Kind("a gzip file that is none", "gold", b"\x1f\x8bnothing of the kind", ("cannot be decompressed",), ":"),
    Kind("a zstd file that is none", "gold", b"\x28\xb5\x2f\xfdnothing of the kind", ("cannot be decompressed",), ":"),
    Kind("a picture", "gold", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\xff\xfe" * 40, ("0x89 is not valid UTF-8",), lines=3),
    Kind("a workflow command in a text", "gold", jsonl(gold(difficulty="::error::x\n::set-output name=a::b")), ("is not one of",)),
    Kind("a kilobyte of data in a wrong place", "gold", jsonl(gold(difficulty="user data " * 100)), ("is not one of",)),
    Kind("thousands of bad lines", "gold", b'{"qid": "A"\n' * 5000, ("and 4900 more",), lines=5),
]  # fmt: skip

TRACE = [
    Kind("a trace without an answer", "trace", jsonl({"qid": "A0001"}), ("needs answer_json, answer or error",)),
    Kind("a claim that is no text", "trace", jsonl(trace(answer_json={"claim": None})), ("/answer_json/claim", "null is not a string")),
    Kind("a trace without an id", "trace", jsonl(without(trace(), "qid")), ("neither an id nor a question",)),
    Kind("a confidence in percent", "trace", jsonl(trace(confidence=92)), ("/confidence", "92 is more than 1")),
    Kind("a negative latency", "trace", jsonl(trace(latency_ms={"total": -1})), ("/latency_ms/total", "-1 is less than 0")),
    Kind("a chunk without an id", "trace", jsonl(trace(chunks=[{"text": "x"}])), ("/chunks/0", "'id' is missing")),
    Kind("an integer of 65 bits in a chunk", "trace", raw(trace(), chunks='[{"id": "a", "tokens": ' + "9" * 20 + "}]"), ("more than 64 bits",)),
    Kind("a trace file cut off", "trace", jsonl(trace(), trace())[:-9], ("not valid JSON",), ":2: column"),
    Kind("a gold file given as traces", "trace", jsonl(*[gold(qid=str(number)) for number in range(300)]), ("looks like a row of a gold file",)),
    Kind("a JSON array of traces", "trace", b"[" + raw(trace()) + b"]", ("traces are JSON Lines", "jq"), ":1:"),
]  # fmt: skip

GATES = [
    Kind("an alias bomb", "gates", BOMB.encode(), ("anchors and aliases",), ":1: column 4:"),
    Kind("a YAML tag", "gates", b"version: !!python/name:os.system 1\n", ("tags are not allowed",), ":1: column 10:"),
    Kind("a YAML key twice", "gates", b"version: 1\nversion: 1\n", ("occurs twice",), ":2: column 1:"),
    Kind("broken YAML", "gates", b"version: [1\n", ("not valid YAML",), ":2: column 1:"),
    Kind("a YAML tab", "gates", b"version: 1\ngates:\n\tchr: 1\n", ("a tab where YAML", "Replace it by spaces."), ":3: column 1:"),
    Kind("a YAML tab after spaces", "gates", b"version: 1\ngates:\n  chr: {min: 1}\n\tmrr: {min: 1}\n", ("a tab where YAML",), ":4: column 1:"),
    Kind("a YAML control character", "gates", b"version: 1\ngold: a\x07b\n", ("U+0007",), ":2: column 8:"),
    Kind("YAML of more than a mebibyte", "gates", b"version: 1\n" + b"#" * MIB, ("larger than 1 MiB",), ":"),
    Kind("YAML nested without end", "gates", b"[" * 100_000, ("nest",), ":1: column "),
    Kind("two YAML documents", "gates", b"version: 1\n---\nversion: 1\n", ("second document",), ":2: column 1:"),
    Kind("YAML that is a list", "gates", b"- 1\n", ("a list with 1 entry is not a mapping",), ":1:"),
    Kind("an unknown metric", "gates", f"{GATE}presicion: {{min: 0.8}}\n".encode(), ("unknown metric", "Did you mean 'precision'?"), ":3: column 3:"),
    Kind("a threshold in percent", "gates", f"{GATE}precision: {{min: 80}}\n".encode(), ("80 is more than 1", "write 80 % as 0.80"), ":3: column 15:"),
    Kind("a sexagesimal number", "gates", f"{GATE}precision: {{min: 1:30}}\n".encode(), ("not a plain number",), ":3: column 20:"),
    Kind("a depth that no parser stands", "gates", b"version: 1\nlimits: {depth: 100000}\n", ("more than 200",), ":2: column 10:"),
]  # fmt: skip

KINDS = [*GOLD, *TRACE, *GATES]
