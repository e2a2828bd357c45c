"""Hypothesis strategies for bad input: valid values and texts with a few things about them changed."""

from __future__ import annotations

import json
from copy import deepcopy

from hypothesis import strategies as st

LONG = "9" * 5_000
WORDS = [
    *("", " ", "0", "-1", "1", "5", "1e999", "-0.0", "NaN", "Infinity", LONG, f"0.{LONG}", "0x1F", "0o7", "1_000", "٣"),
    *("true", "no", "off", "null", "~", "error", "warn", "base", "main", "HEAD", "json", "always", "2026-01-01"),
    *(
        "../x",
        "/",
        "/etc/passwd",
        "/proc/self/mem",
        "/dev/zero",
        "loop",
        "folder",
        "absent.jsonl",
        "a\0b",
        "C:\\x",
        "~",
    ),
    *("gold.jsonl", "trace.jsonl", "eval-gates.yml", "report.json", "run.json", "-", "--", "*", "?", "[", "%s", "{0}"),
    *("x" * 3_000, "ä\u0301\u202e", "\ud800", "\U0001f600", "\ufeff", "\n", "\r\n::error::x", "a=b", "category=*"),
    *("precision", "recall@5", "recall@0", "recall@999999", "latency_total_ms.p95", "precision=0.5", "s3://x/y"),
    *("file:///x", "http://[::1", "tcp://127.0.0.1:1", "(a+)+b", "(", "a{99999999999}", "(?=a)", "refs/pull/9/merge"),
]
NUMBERS = [0, 1, -1, 5, 0.5, 1e300, -1e-300, 2**53, 2**63, 2**64, 10**18, 10**400, int("9" * 4_000)]
SCALARS = st.none() | st.booleans() | st.sampled_from(NUMBERS) | st.sampled_from(WORDS) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=5,
)


def paths(value, path=()):
    """Return the path of each value inside decoded JSON, itself included."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(below for key, part in parts for below in paths(part, (*path, key)))]


@st.composite
def mutated(draw, value, most=3):
    """Draw ``value`` with up to ``most`` parts replaced, removed, renamed, repeated or put elsewhere."""
    value = deepcopy(value)
    for _ in range(draw(st.integers(1, most))):
        inside = [path for path in paths(value) if path]
        if not inside:
            return draw(VALUES)
        *above, last = draw(st.sampled_from(inside))
        position = value
        for key in above:
            position = position[key]
        match draw(st.sampled_from(["replace", "replace", "remove", "rename", "nest", "swap"])):
            case "replace":
                position[last] = draw(VALUES)
            case "remove":
                del position[last]
            case "rename" if isinstance(position, dict):
                position[draw(st.sampled_from(WORDS))] = position.pop(last)
            case "nest":
                position[last] = draw(
                    st.sampled_from([[position[last]], {"x": position[last]}, [position[last]] * 300])
                )
            case "swap":
                position[last] = deepcopy(value)
    return value


GARBAGE = st.sampled_from(
    [b"", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"{" * 2_000, b"[" * 90_000, b'"', b"\n", b": ", b"- "]
    + [word.encode("utf-8", "surrogatepass") for word in WORDS]
)


@st.composite
def damaged(draw, data, limit=3):
    """Draw bytes with up to ``limit`` parts cut, doubled or replaced by garbage."""
    for _ in range(draw(st.integers(1, limit))):
        start, length = draw(st.integers(0, len(data))), draw(st.sampled_from([0, 1, 3, 20]))
        middle = data[start : start + length]
        pieces = st.sampled_from(
            [b"", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"{" * 2_000, b"[" * 90_000, b'"', b"\n", b": ", b"- "]
        )
        words = st.sampled_from([word.encode("utf-8", "surrogatepass") for word in WORDS])
        data = (
            data[:start] + draw(pieces | words | st.just(middle * 50) | st.binary(max_size=4)) + data[start + length :]
        )
    return data


def encoded(value):
    """Encode decoded JSON, lone surrogates and long numbers included."""
    from sys import get_int_max_str_digits, set_int_max_str_digits

    maximum = get_int_max_str_digits()
    set_int_max_str_digits(0)
    try:
        return json.dumps(value, ensure_ascii=True).encode()
    finally:
        set_int_max_str_digits(maximum)


def documents(value):
    """Return a strategy of files: of mutants of ``value``, of damaged bytes of it, of both."""
    good = encoded(value)
    return mutated(value).map(encoded) | damaged(good) | mutated(value).map(encoded).flatmap(damaged)


def rows(values):
    """Return a strategy of JSON lines, some rows of which are mutants."""
    good = b"".join(encoded(value) + b"\n" for value in values)
    some = mutated(list(values)).map(
        lambda many: b"\n".join(map(encoded, many)) if isinstance(many, list) else encoded(many)
    )
    return some | damaged(good)
