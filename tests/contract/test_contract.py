"""The reader accepts the lines that the reference accepts, and the schemas are what they should be.

The reference is exact decoding and ``jsonschema``.
"""

import copy
import json
import re
from functools import partial
from typing import Annotated

import jsonschema
import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Meta

from cases import ROOT
from depth import examples
from rag_eval.common.json_schema import is_valid
from rag_eval.contract.records import NOT_BLANK
from rag_eval.readers.jsonl import JsonLines
from rag_eval.readers.strict_json import DECODER, TRACE_DECODER, JsonError, parse
from reading import SCHEMAS, element, full, gold, trace
from seams import REPOSITORY, Contract, Gold, ProblemCollector, Reader, Trace
from seams import load_schema as load
from table import each_row

NAMES = sorted(path.name.removesuffix(".schema.json") for path in SCHEMAS.glob("*.schema.json"))
ROWS = ("gold", "gold-array", "trace", "run")
RECORDS = {"gold": (Gold, DECODER), "trace": (Trace, TRACE_DECODER)}
REFERENCE = {name: jsonschema.Draft202012Validator(load(name)) for name in ROWS}
MANY = examples(700)
SOME = examples(200)
MARK = "\ue000"  # stands in a row for raw JSON text


BASES = {
    "gold": [gold(), full("gold"), gold(answerable=False, gold_claim_substr=[], gold_citations=[])],
    "gold-array": [element(), full("gold-array")],
    "trace": [trace(), full("trace"), {"answer": "x\ncitations: [p1#2]"}, {"qid": "A", "error": "timeout"}],
    "run": [{}, full("run")],
}

BIG = ["1" + "0" * zeros for zeros in (17, 18, 19, 20, 30, 307, 400)]
RAW = [
    "NaN", "Infinity", "-Infinity", "1e400", "1e308", "-1e19", "0.0", "-0", "-0.0", "1.0", "1E2", "01", "+1", ".5",
    *BIG, *(f"-{digits}" for digits in BIG), str(2**63), str(2**64 - 1), str(2**64), str(-(2**63) - 1), "9" * 5000,
    '"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"a\\u0000b"', '"tab\there"', '"\\x"', '"\\u0022"', '"\\""',
    '"\\\\"', '"ends\\n"', '"\n"', '"', "'x'", "[", "[[[[[[[0]]]]]]]", "[" * 63 + "]" * 63, "[" * 80 + "]" * 80,
    '{"a":' * 300 + "1" + "}" * 300, "[" * 1500 + "]" * 1500, '{"a":1,"a":1}', '{"a":1 ,\t"a" :"b"}',
    '{"a":1,"\\u0061":1}', '{"a\\u0022":1,"a\\"":1}', '[{"k":"\\u0022","k":"\\"\\""}]', '[{"":{},"":{}}]', "",
]  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(RAW).map(lambda raw: MARK + raw),
    st.sampled_from(
        [None, True, False, 0, 1, -1, 3, 0.5, "", "x", "yes", "long enough", [], {}, [""], ["x"], [[0]], [[]]]
    ),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True),
    st.text(max_size=8),
    st.lists(st.integers(-1, 2**66) | st.text(max_size=3), max_size=3),
    st.recursive(
        st.integers(0, 2**65),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    ),
)
VALUES = VALUES.map(copy.deepcopy)  # what is drawn is changed further
SPACE = st.sampled_from(["", " ", "\t", "  ", "\r", "\n"])


def places(value, result=None):
    """Every object and list in a row, with the row itself."""
    result = [] if result is None else result
    if isinstance(value, (dict, list)):
        result.append(value)
        for inner in value.values() if isinstance(value, dict) else value:
            places(inner, result)
    return result


def mutate(draw, name, row):
    target = draw(st.sampled_from(places(row)))
    if isinstance(target, list):
        target.insert(draw(st.integers(0, len(target))), draw(VALUES))
        return
    action = draw(st.sampled_from(["set", "drop", "unknown", "any known", "big"]))
    numbers = sorted(key for key, value in target.items() if type(value) in (int, float))
    if action == "big" and numbers:
        target[draw(st.sampled_from(numbers))] = MARK + draw(st.sampled_from(["", "-"])) + draw(st.sampled_from(BIG))
        return
    if action == "drop" and target:
        del target[draw(st.sampled_from(sorted(target)))]
    elif action == "set" and target:
        target[draw(st.sampled_from(sorted(target)))] = draw(VALUES)
    elif action == "any known":
        target[draw(st.sampled_from(sorted(load(name)["properties"])))] = draw(VALUES)
    else:
        target[draw(st.text(max_size=4))] = draw(VALUES)


def written(draw, value):
    """JSON text as odd writers write it: spaces, escapes, and now and then a member twice."""
    if isinstance(value, str) and value.startswith(MARK):
        return value[1:]
    if isinstance(value, list):
        return "[" + ",".join(written(draw, item) for item in value) + "]"
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    members = [(key, written(draw, item)) for key, item in value.items()]
    if members and draw(st.integers(0, 7)) == 0:
        key, text = draw(st.sampled_from(members))
        members.append((key, draw(st.sampled_from([text, "1", '"\\""', '"\\u0022\\u0022"', '"a\\"b\\"c"']))))
    return "{" + ",".join(f"{key_text(draw, key)}{draw(SPACE)}:{draw(SPACE)}{text}" for key, text in members) + "}"


def key_text(draw, key):
    plain = json.dumps(key)
    if not key or draw(st.integers(0, 5)):
        return plain
    return f'"\\u{ord(key[0]):04x}' + json.dumps(key[1:])[1:] if ord(key[0]) < 0x10000 else plain


@st.composite
def lines(draw, names=tuple(RECORDS)):
    name = draw(st.sampled_from(names))
    row = copy.deepcopy(draw(st.sampled_from(BASES[name])))
    for _ in range(draw(st.integers(0, 2))):
        mutate(draw, name, row)
    data = bytearray(written(draw, row).encode("utf-8", "surrogatepass"))
    if data and draw(st.integers(0, 11)) == 0:
        position = draw(st.integers(0, len(data) - 1))
        data[position : position + draw(st.integers(0, 1))] = draw(
            st.sampled_from([b"\xff", b"\xc3", b"\xed\xa0\x80", b'"', b"\xef\xbb\xbf", b"\0", b""])
        )
    return name, bytes(data)


def equal(item, other):
    """Equal in type too: 1 is neither true nor 1.0."""
    return item == other and repr(item) == repr(other)


REFUSED = object()


def reference(name, line):
    """The value of a line, or REFUSED."""
    try:
        value = parse(line, 64, RECORDS[name][1])
    except JsonError:
        return REFUSED
    return value if REFERENCE[name].is_valid(value) else REFUSED


def read(name, *rows):
    """The records of lines, and the problems found."""
    reader = Reader(ProblemCollector(), contents={"FILE": b"\n".join(rows)})
    with reader.open("FILE") as source:
        blocks = list(JsonLines(RECORDS[name][0], reader, "FILE").blocks(source))
    return [record for block in blocks for record in block], reader.ledger.problems


def is_extreme(line):
    """Whether a line nests, or has integers, beyond what the reference decodes; numbers and unknown fields may."""
    return b"[" * 60 in line or b'{"a":' * 60 in line or re.search(rb"[0-9]{19}", line) is not None


@MANY
@given(lines())
@example(("gold", json.dumps(gold(required_support_groups=[[10**30]])).encode()))
@example(("trace", json.dumps(trace(x=1))[:-1].encode() + b',"x":"\\u0022\\u0022"}'))
@example(("gold", json.dumps(gold(x=1))[:-1].encode() + b',"x":"\\u0022\\u0022"}'))
def test_a_line_is_accepted_if_and_only_if_the_reference_accepts_it(case):
    name, line = case
    if b"\n" in line or not line.strip() or is_extreme(line) or line.startswith(b"\xef\xbb\xbf"):
        return  # a byte order mark is part of the file
    expected, (records, problems) = reference(name, line), read(name, line)
    if expected is REFUSED:
        assert records == []
        assert problems
        assert all(problem.line == 1 and problem.message for problem in problems)
    else:
        assert problems == []
        assert records == [RECORDS[name][0].from_row(expected, 1)] if name == "gold" else len(records) == 1


@MANY
@given(lines())
def test_a_line_among_good_ones_is_read_as_it_is_by_itself(case):
    name, line = case
    good = json.dumps(BASES[name][0]).encode()
    if b"\n" in line or is_extreme(line) or line.startswith(b"\xef\xbb\xbf"):  # only a file may begin with a mark
        return
    alone, problems = read(name, line)
    records, result = read(name, good, line, good)
    assert len(records) == (1 if result and "looks like" in result[0].message else len(alone) + 2)
    assert [problem[2:] for problem in result] == [problem[2:] for problem in problems]


@SOME
@given(lines())
def test_a_refusal_says_where_and_what_in_few_words(case):
    for finding in read(case[0], case[1])[1]:
        assert len(finding.message) < 300
        assert "\n" not in finding.message + finding.where


@pytest.mark.parametrize("name", RECORDS)
def test_rows_with_every_field_are_accepted(name):
    rows = [json.dumps(row).encode() for row in BASES[name]]
    records, problems = read(name, *rows)
    assert (len(records), problems) == (len(rows), [])


REPEATED = [
    "{%s,%s}",
    '{%s, "z":1,"z":1}',
    '{%s,"z":{"a":1,"a":2}}',
    '{%s,"z":[[{"a":1,"a":2}]]}',
    '{%s,"\\u0071id":"y"}',
    '{%s,"z":1,"z":"\\u0022\\u0022"}',
    '{%s,"z":"\\"","z":"\\"\\"\\"\\""}',
]


@each_row("raw", REPEATED)
def test_a_repeated_key_of_a_gold_item_is_refused_whatever_hides_it(raw):
    members = json.dumps(gold())[1:-1]
    line = raw.replace("%s", members).encode()
    for lines in ([line], [json.dumps(gold(qid="A0002")).encode(), line]):
        _, problems = read("gold", *lines)
        assert [("occurs twice" in problem.message, problem.line) for problem in problems] == [(True, len(lines))]


def test_in_a_trace_the_last_of_two_equal_keys_counts():
    [record], problems = read("trace", b'{"qid":"a","qid":"b","answer":"x","answer":"y","z":1,"z":2}')
    assert (record.qid, record.answer, problems) == ("b", "y", [])


@each_row(
    "data",
    [
        b'{"answer":"x"}{"answer":"y"}',
        b'{"answer":\n"x"}\n{"answer":"y"}{"answer":"z"}',
        b'{"answer":"x"}\n{"answer":"y"}{"answer":"z"}\n\n{"answer":"x"}',
        b'{"answer":"x","z":{"a":1}\n,"y":{}}\n{"answer":"x"} {"answer":"x"}',
    ],
)
def test_a_line_is_one_object_however_many_stand_in_the_block(data):
    assert read("trace", data)[1]


# The schemas themselves.


@st.composite
def values(draw):
    """A value near a schema's example: decoded, so that both validators see the same."""
    name = draw(st.sampled_from(["gold", "gold-array", "trace", "run", "report", "eval-gates", "signoff", "freeze"]))
    value = copy.deepcopy(draw(st.sampled_from(SAMPLES[name])))
    for _ in range(draw(st.integers(0, 3))):
        target = draw(st.sampled_from(places(value)))
        if isinstance(target, list):
            target.append(draw(DECODED))
        elif target:
            target[draw(st.sampled_from(sorted(target)))] = draw(DECODED)
    return name, value


DECODED = st.one_of(
    st.sampled_from(
        [None, True, False, 0, 1, -1, 1.0, 0.5, -0.0, 1e300, 2**64 - 1, "", "x", "0.80", "0.80\n", "1/2\n", [], {}]
    ),
    st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)


DECODED = DECODED.map(copy.deepcopy)


def sample(schema, root):
    """A value that fits a schema: its own example, filled where an object's example is empty."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if schema.get("type") == "string" and not schema.get("examples"):
        return "x"
    if schema.get("type") == "array" and not schema.get("examples"):
        return [sample(schema["items"], root)]
    if schema.get("examples", [{}])[0] != {}:
        return copy.deepcopy(schema["examples"][0])
    if schema.get("properties"):
        return {name: sample(field, root) for name, field in schema["properties"].items()}
    return {"a": sample(schema["additionalProperties"], root)} if schema.get("additionalProperties") else {}


SAMPLES = {**BASES}
for _name in ("report", "eval-gates", "signoff", "freeze"):
    _schema = load(_name)
    SAMPLES[_name] = [{name: sample(field, _schema) for name, field in _schema["properties"].items()}]
SAMPLES["eval-gates"].append({"version": 1, "gates": {"precision": {"min": 0.8}, "recall@5": {"min": 0.7}}})


def both(schema, value):
    return jsonschema.Draft202012Validator(schema).is_valid(value), is_valid(schema, value, schema)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_samples_of_these_tests_are_valid(name):
    for value in SAMPLES[name]:
        assert both(load(name), value) == (True, True)


@examples(400)
@given(values())
def test_a_value_is_valid_if_jsonschema_finds_no_errors(case):
    name, value = case
    assert is_valid(load(name), value, load(name)) == jsonschema.Draft202012Validator(load(name)).is_valid(value)


@pytest.mark.parametrize("keyword", ["oneOf", "multipleOf", "format", "contains"])
def test_an_unknown_keyword_of_a_schema_is_refused(keyword):
    with pytest.raises(ValueError, match=f"the keyword '{keyword}' is unknown"):
        is_valid({"properties": {"a": {keyword: 1}}}, {"a": 1}, {})


@each_row("name", sorted({*NAMES} - {"comparison"}))  # which describes an output, and validates no input
def test_every_keyword_of_the_schemas_is_known(name):
    for field in [load(name), *load(name).get("$defs", {}).values(), *(field for _, field in fields(load(name)))]:
        for keyword, expected in field.items():
            is_valid({keyword: expected, "then": True}, {}, load(name))


@pytest.mark.parametrize(
    ("schema", "value", "kept"),
    [
        ({"const": 1}, True, False),
        ({"const": 1}, 1.0, True),
        ({"enum": [False]}, 0, False),
        ({"type": "integer"}, 2.0, True),
        ({"type": "integer"}, True, False),
        ({"type": "number"}, True, False),
        ({"not": {"pattern": "[^a-z]"}}, "a\n", False),
        ({"minLength": 2}, "\U0001f600", False),
        ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, {"a": 1}, False),
        ({"additionalProperties": False, "patternProperties": {"^a": {}}}, {"ab": 1, "b": 1}, False),
    ],
)
def test_the_validator_knows_the_traps(schema, value, kept):
    assert is_valid(schema, value, schema) == kept


def test_a_line_break_at_the_end_of_a_text_is_a_finding():
    value = copy.deepcopy(SAMPLES["signoff"][0])
    value["dataset"] += "\n"
    assert ["line break" in finding.message for finding in Contract("signoff").faults(value)] == [True]


def test_a_report_whose_threshold_ends_with_a_line_break_is_refused():
    value = copy.deepcopy(SAMPLES["report"][0])
    value["gates"][0]["threshold"] += "\n"
    assert {finding.where for finding in Contract("report").faults(value)} == {"/gates/0/threshold"}


def fields(schema, place=""):
    """Every named field of a schema, at any depth, with its place."""
    if not isinstance(schema, (dict, list)):
        return
    if isinstance(schema, dict):
        for name, field in schema.get("properties", {}).items() if "Of/" not in place else ():
            yield f"{place}/{name}", field
    for name, inner in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if name not in ("examples", "const", "enum"):
            yield from fields(inner, f"{place}/{name}")


FIELDS = [pytest.param(name, field, id=f"{name}{position}") for name in NAMES for position, field in fields(load(name))]


def resolved(name, field):
    target = load(name)["$defs"][field["$ref"].rpartition("/")[2]] if "$ref" in field else {}
    return {**target, **field}


@each_row(("name", "field"), FIELDS)
def test_every_field_has_a_description_and_valid_examples(name, field):
    assert len(field.get("description", "")) >= 5
    examples = field.get("examples", [])
    # Lists and objects of described fields show by those what they hold.
    whole = resolved(name, field)
    assert examples or "properties" in whole or "properties" in whole.get("items", {}) or "items" in whole
    schema = {**field, "$defs": load(name).get("$defs", {})}
    assert all(both(schema, example) == (True, True) for example in examples)


@each_row("name", NAMES)
def test_every_schema_keeps_the_metaschema_and_names_itself(name):
    schema = load(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    owner, repository = REPOSITORY.split("/")
    assert schema["$id"] == f"https://{owner}.github.io/{repository}/schemas/v1/{name}.schema.json"
    assert schema["$id"] in (ROOT / "docs/schemas.md").read_text("utf-8")
    assert schema["title"]
    assert schema["description"]


@each_row("name", NAMES)
def test_no_schema_refers_to_anything_outside_itself(name):
    assert all(reference.startswith("#") for reference in re.findall(r'"\$ref": *"([^"]*)"', json.dumps(load(name))))


@pytest.mark.parametrize("name", ["gold", "gold-array", "trace", "run"])
def test_row_schemas_use_no_pattern_but_the_one_of_blanks_so_the_trap_cannot_close_there(name):
    text = json.dumps(load(name))
    assert text.count("attern") == text.count('"pattern": ')
    patterns = re.findall(r'"pattern": ("[^"]*")', text)
    assert patterns == ([json.dumps(BLANKS)] if name == "gold" else [])


BLANKS = load("gold")["properties"]["gold_claim_substr"]["items"]["pattern"]


def test_record_and_schema_take_the_same_for_a_blank():
    accepts_text = partial(is_valid, load("gold")["properties"]["gold_claim_substr"]["items"], root={})
    accepts = msgspec.json.Decoder(Annotated[str, Meta(min_length=5, pattern=NOT_BLANK)]).decode
    letters = [chr(code) for code in range(0x11000) if not 0xD800 <= code < 0xE000]
    wrong = []
    for letter in letters:
        try:
            accepted = bool(accepts(msgspec.json.encode(letter * 5)))
        except msgspec.ValidationError:
            accepted = False
        if not accepted == accepts_text(letter * 5) == bool(re.search(BLANKS, letter)):
            wrong.append(letter)
    assert wrong == []
    assert not any(accepts_text(blank * 5) for blank in " \t\u00a0\u3000\u200b\ufeff")


def test_the_entry_for_schemastore_and_what_init_writes_name_the_schema_of_the_gates():
    address = load("eval-gates")["$id"]
    entry = re.findall("```json\n(.*?)```", (ROOT / "docs/schemas.md").read_text("utf-8"), re.DOTALL)[-1]
    assert json.loads(entry)["url"] == address
    for template in (ROOT / "src/rag_eval/templates").glob("gates-*.yml"):
        assert template.read_text("utf-8").startswith(f"# yaml-language-server: $schema={address}\n")
