"""The typed records and the published schemas say the same: of good rows, and of thousands of damaged ones."""

import json
import random
from copy import deepcopy
from functools import cache

import jsonschema
import msgspec
import pytest

from rag_eval.contract.records import without_unknown
from reading import SCHEMAS, full, gold, trace
from seams import Gold, Trace

RECORDS = {"gold": Gold, "trace": Trace}
UNANSWERABLE = gold(answerable=False, gold_claim_substr=[], gold_citations=[])
CHUNKS = [
    {"id": "p1#2", "text": "t", "doc_id": "d", "rel_path": "m.md", "heading_path": "A", "section": "1"},
    {"id": "p1#1", "score": 0.5, "tokens": 12},
]
GUARDRAIL = {"score": 0.1, "blocked": False, "leaks": ["email"]}
ROWS = {
    "gold": [gold(), full("gold"), UNANSWERABLE],
    "trace": [
        trace(),
        full("trace"),
        trace(chunks=CHUNKS, guardrail=GUARDRAIL),
        {"qid": "a", "error": "late"},
        {"q": "Does X?", "answer": ""},
    ],
}
VALUES = [
    *(None, True, False, 0, 1, -1, 5.0, 5.5, -0.0, 10**15, 10**15 + 1, 1e15, 1e300, 2**63, 2**64, 10**40, -(10**40)),
    *("", " ", "a", "abcd", "abcde", "x" * 200, "x" * 201, "😀" * 5, "\n", "on", "easy", "input", "success"),
    *([], [""], ["a"], ["a", "a"], [[]], [[0]], [[0.0, 1]], [[-1]], [None], [1], [{}], [{"id": "a"}], [{"id": 1}]),
    *({}, {"a": 1}, {"a": -1}, {"a": "b"}, {"a": None}, {"a": 5.5}, {"a": []}, {"kind": "input"}, {"claim": ""}),
    *({"fact": ""}, {"claim": "a", "citations": None}, {"kind": "input", "positive": True}, {"mode": "off"}),
]


@cache
def validator(name):
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def accepts(name, row):
    """Whether the record accepts a row, as text and as a decoded value."""
    kind = RECORDS[name]
    remaining, _ = without_unknown(kind, row)
    outcomes = set()
    for decode in (
        lambda: msgspec.json.Decoder(kind).decode(json.dumps(remaining)),
        lambda: msgspec.convert(remaining, kind),
    ):
        try:
            decode()
        except msgspec.ValidationError:
            outcomes.add(False)
        else:
            outcomes.add(True)
    assert len(outcomes) == 1, row
    return outcomes.pop()


def places(value, path=()):
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in children:
        yield from places(inner, (*path, key))


def mutant(row, rng):
    """A row with a value replaced, removed, or added at one or two places."""
    row = deepcopy(row)
    for _ in range(rng.choice((1, 1, 2))):
        path = rng.choice([path for path in places(row) if path])
        parent = row
        for key in path[:-1]:
            parent = parent[key]
        deed = rng.randrange(6)
        if deed == 0:
            del parent[path[-1]]
        elif deed == 1 and isinstance(parent, dict):
            parent[rng.choice(["unknown", "id", "total", "text", "category"])] = deepcopy(rng.choice(VALUES))
        elif deed == 1:
            parent.append(deepcopy(rng.choice(VALUES)))
        else:
            parent[path[-1]] = deepcopy(rng.choice(VALUES))
    return row


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_accepts_what_its_schema_accepts(name):
    rng = random.Random(name)
    verdicts = {True: 0, False: 0}
    for _ in range(4000):
        row = mutant(rng.choice(ROWS[name]), rng)
        wanted = validator(name).is_valid(row)
        verdicts[wanted] += 1
        assert accepts(name, row) is wanted, row
    assert min(verdicts.values()) > 400


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_takes_every_value_at_every_field_as_its_schema_does(name):
    properties = validator(name).schema["properties"]
    wrong = []
    for field in properties:
        for value in VALUES:
            for row in ROWS[name]:
                changed = {**row, field: value}
                if accepts(name, changed) is not validator(name).is_valid(changed):
                    wrong.append((field, value))
    assert wrong == []


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_has_the_fields_of_its_schema(name):
    known = set(RECORDS[name].__struct_encode_fields__) - {" line"}
    assert known == validator(name).schema["properties"].keys()


@pytest.mark.parametrize("name", RECORDS)
def test_the_good_rows_are_good(name):
    assert all(accepts(name, row) and validator(name).is_valid(row) for row in ROWS[name])
