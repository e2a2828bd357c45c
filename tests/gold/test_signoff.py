"""The rules of sign-off: one example for each finding, then the laws."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from itertools import groupby, pairwise
from pathlib import Path

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from depth import examples
from rag_eval.contract import item_hash
from rag_eval.gold.signoff import (
    Advice,
    Side,
    SignoffItem,
    changes,
    check,
    read_items,
    uncovered_changes,
    unsigned,
)
from rag_eval.gold.signoff_identity import SignoffPolicy
from rag_eval.readers.gold_file import is_array, sources
from rag_eval.readers.signoff_record import FIELDS, is_valid_field
from seams import HashChange, Record, main

POLICY = SignoffPolicy(dataset="7b0c4e")
FOLDER = POLICY.records
SCHEMA = json.loads((Path(__file__).parents[2] / "schemas/signoff.schema.json").read_text(encoding="utf-8"))


def item(text, question="How long?", answerable=True, line=1):
    return SignoffItem(item_hash(text.encode()), question, answerable, line, {"text": text})


def record(*edits, **fields):
    """A record of (qid, before, after), each a text or None."""
    pairs = tuple(HashChange(qid, *(end and item_hash(end.encode()) for end in ends)) for qid, *ends in edits)
    given = {"dataset": POLICY.dataset, "gold": POLICY.gold, "signer": "bob@example.org"}
    given |= {"date": "2026-11-21T10:00:00Z", "reason": "manual v3"}
    return Record(**{**given, **fields}, changes=pairs)


def files(*records):
    return {f"{FOLDER}/{record.name}": record for record in records}


def found(base, head, policy=POLICY, **more):
    return [finding.code for finding in check(base, head, policy, **more)]


BASE = Side({"A1": item("one"), "A2": item("two")})
EDITED = {"A1": item("one, edited"), "A2": item("two")}
EDIT = record(("A1", "one", "one, edited"))


def test_nothing_changed_needs_nothing():
    assert found(BASE, BASE) == []


@pytest.mark.parametrize(
    ("head", "edit"),
    [
        (EDITED, ("A1", "one", "one, edited")),
        ({"A2": item("two")}, ("A1", "one", None)),
        ({**BASE.items, "A3": item("three")}, ("A3", None, "three")),
    ],
    ids=["changed", "removed", "added"],
)
def test_a_change_needs_a_record_of_just_that_change(head, edit):
    qid, before, after = edit
    assert found(BASE, Side(head)) == ["unsigned-change"]
    assert found(BASE, Side(head, files(record(edit)))) == []
    assert found(BASE, Side(head, files(record(("A9", before, after))))) == ["unsigned-change"]
    assert found(BASE, Side(head, files(record((qid, after, before))))) == ["broken-chain"]


def test_an_unsigned_change_names_place_item_and_command():
    (finding,) = check(BASE, Side({**BASE.items, "A1": item("x", line=7)}), POLICY, Advice("sign it", "HEAD"))
    assert str(finding) == "eval/gold.jsonl:7: [unsigned-change] item 'A1' was changed, and no new record signs it"
    assert finding.fix == "sign it"


def test_an_edit_after_the_sign_off_breaks_the_chain_and_a_second_record_mends_it():
    head = {"A1": item("one, edited again"), "A2": item("two")}
    assert found(BASE, Side(head, files(EDIT))) == ["broken-chain"]
    second = record(("A1", "one, edited", "one, edited again"))
    assert found(BASE, Side(head, files(EDIT, second))) == []


def test_a_record_on_the_base_never_counts_again():
    base = Side(BASE.items, files(EDIT))
    (finding,) = check(base, Side(EDITED, base.records), POLICY, Advice("sign it"))
    assert finding.code == "replayed-record"
    assert finding.message.endswith("the only record that signs it was used before: a record counts only once")


def test_a_record_that_is_used_up_elsewhere_never_counts():
    head = Side(EDITED, files(EDIT))
    assert found(BASE, head) == []
    assert found(BASE._replace(used=files(EDIT)), head) == ["replayed-record"]


def test_a_copy_of_a_record_of_the_base_is_a_replay():
    base = Side(BASE.items, files(EDIT))
    head = Side(EDITED, {**base.records, f"{FOLDER}/2026-11-22-00000000.json": EDIT})
    assert found(base, head) == ["replayed-record", "replayed-record"]


@pytest.mark.parametrize("other", [EDIT._replace(reason="another"), EDIT._replace(sig="x"), "not valid JSON"])
def test_a_record_of_the_base_is_not_edited(other):
    base = Side(BASE.items, files(EDIT))
    path = next(iter(base.records))
    (finding,) = check(base, Side(BASE.items, {path: other}), POLICY, Advice("sign it", "main"))
    assert (finding.code, finding.fix) == ("record-edited", f"git checkout main -- :/{path}")


def test_a_record_of_the_base_is_not_removed_nor_renamed():
    base = Side(BASE.items, files(EDIT))
    assert found(base, BASE) == ["record-removed"]
    assert found(base, Side(BASE.items, {f"{FOLDER}/2026-11-22-00000000.json": EDIT})) == [
        "record-removed",
        "replayed-record",
    ]


def test_what_was_no_record_on_the_base_may_be_mended_or_removed():
    for rubbish in ("not valid JSON", EDIT):
        base = Side(BASE.items, {f"{FOLDER}/rubbish.json": rubbish})
        assert found(base, Side(BASE.items, base.records)) == []
        assert found(base, BASE) == []
        assert found(base, Side(EDITED, files(EDIT))) == []
        assert found(base, Side(EDITED, base.records)) == ["unsigned-change"]


def test_a_file_that_is_no_record_is_a_finding_and_signs_nothing():
    head = Side(EDITED, {f"{FOLDER}/x.json": "not valid JSON"})
    assert found(BASE, head) == ["malformed-record", "unsigned-change"]
    (finding, _) = check(BASE, head, POLICY, Advice("sign it"))
    assert finding.fix == f"git rm -f -- :/{FOLDER}/x.json && sign it"


def test_a_record_altered_after_signing_no_longer_has_its_name():
    (path,) = files(EDIT)
    forged = EDIT._replace(signer="eve@example.org")
    assert found(BASE, Side(EDITED, {path: forged})) == ["malformed-record", "unsigned-change"]


def test_a_record_of_another_data_set_signs_nothing():
    other = record(("A1", "one", "one, edited"), dataset="another")
    assert found(BASE, Side(EDITED, files(other))) == ["wrong-dataset", "unsigned-change"]


def test_a_record_of_another_gold_file_signs_nothing():
    other = record(("A1", "one", "one, edited"), gold="eval/other.jsonl")
    assert found(BASE, Side(EDITED, files(other))) == ["unsigned-change"]


@pytest.mark.parametrize("now", [item("new", "How wide?"), item("new", answerable=False)], ids=["asks", "answerable"])
def test_a_mutation_is_named_and_has_to_be_meant(now):
    head = {"A1": now, "A2": item("two")}
    edit = record(("A1", "one", "new"))
    (finding,) = check(BASE, Side(head, files(edit)), POLICY, Advice("sign it"))
    assert (finding.code, finding.fix) == ("mutation", "sign it --mutates")
    assert found(BASE, Side(head, files(edit._replace(mutates=True)))) == []


def test_a_mutation_is_meant_on_the_way_and_not_beside_it():
    head = {"A1": item("new", "How wide?"), "A2": item("two")}
    variant = files(record(("A1", "one", "half")), record(("A1", "half", "new")))
    for ends in (("one", "elsewhere"), ("elsewhere", "new"), ("new", "elsewhere"), ("elsewhere", "one")):
        neighbour = files(record(("A1", *ends), mutates=True))
        assert found(BASE, Side(head, {**variant, **neighbour})) == ["mutation"]
    assert found(BASE, Side(head, {**variant, **files(record(("A1", "half", "new"), mutates=True))})) == []


def test_removing_and_adding_again_does_not_hide_a_mutation():
    head = {"A1": item("new", "How wide?"), "A2": item("two")}
    assert found(BASE, Side(head, files(record(("A1", "one", None)), record(("A1", None, "new"))))) == ["mutation"]


def test_without_a_base_every_live_item_is_where_some_record_leads():
    head = Side(BASE.items, files(record(("A1", None, "one"))))
    assert found(None, head) == ["unsigned-item"]
    assert found(None, Side(BASE.items, {**head.records, **files(record(("A2", "older", "two")))})) == []
    assert (
        found(None, Side(BASE.items, files(record(("A1", None, "two"), ("A2", None, "one"))))) == ["unsigned-item"] * 2
    )


def walk(*texts, qid="A1"):
    """A record for each step of an item from text to text; None where it is not there."""
    return [record((qid, *ends), reason=f"{at}") for at, ends in enumerate(pairwise(texts))]


@pytest.mark.parametrize(
    ("steps", "stands"),
    [
        ((None, "v1", "v2"), "v1"),
        ((None, "v1", "v2", "v3"), "v2"),
        (("v0", "v1", None), "v1"),  # it was there before any record
        ((None, "v1", "v2", "v3", "v2"), "v1"),
    ],
)
def test_without_a_base_an_item_that_was_put_back_untold_is_unsigned(steps, stands):
    head = Side({"A1": item(stands)}, files(*walk(*steps)))
    (finding,) = check(None, head, POLICY)
    assert (finding.code, "was reverted to an earlier state without a record" in finding.message) == (
        "unsigned-item",
        True,
    )
    (expected,) = unsigned(head, POLICY)
    fixed = head._replace(records={**head.records, **files(record()._replace(changes=(expected,)))})
    assert check(None, fixed, POLICY) == []


@pytest.mark.parametrize("steps", [(None, "v1", "v2", "v1"), (None, "v1", None, "v1"), ("v1", "v2", "v1", "v2", "v1")])
def test_without_a_base_an_item_that_was_put_back_by_records_is_signed(steps):
    assert found(None, Side({"A1": item("v1")}, files(*walk(*steps)))) == []


def test_without_a_base_either_of_two_branches_is_where_records_lead():
    both = files(record(("A1", None, "v1")), record(("A1", "v1", "left")), record(("A1", "v1", "right")))
    for text, codes in (("left", []), ("right", []), ("v1", ["unsigned-item"])):
        assert found(None, Side({"A1": item(text)}, both)) == codes


@given(st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=1, max_size=8))
def test_without_a_base_whatever_was_signed_step_by_step_is_signed(texts):
    texts = [None, *(text for text, _ in groupby(texts))]
    texts = texts[1:] if texts[1] is None else texts
    live = {} if texts[-1] is None else {"A1": item(texts[-1])}
    assert found(None, Side(live, files(*walk(*texts)))) == []


versions = st.sampled_from(["a", "b", "c", "d", None])
jumps = st.lists(st.tuples(versions, versions).filter(lambda ends: ends[0] != ends[1]), max_size=6)


@given(jumps, st.sampled_from("abcd"))
def test_whatever_the_records_are_the_change_that_is_missing_mends_it(ends, text):
    head = Side({"A1": item(text)}, files(*(record(("A1", *end)) for end in ends)))
    expected = unsigned(head, POLICY)
    assert len(check(None, head, POLICY)) == len(expected)
    if expected:
        more = files(record()._replace(changes=tuple(expected), reason="put back"))
        assert unsigned(head._replace(records={**head.records, **more}), POLICY) == []


def test_without_a_base_records_of_another_data_set_are_no_finding_but_do_not_count():
    other = record(("A1", None, "one"), ("A2", None, "two"), dataset="old-id")
    assert found(None, Side(BASE.items, files(other))) == ["unsigned-item"] * 2
    assert found(None, Side({}, files(other))) == []
    assert found(None, Side({}, {f"{FOLDER}/x.json": "not valid JSON"})) == ["malformed-record"]


def test_hostile_names_stay_one_word_of_the_command():
    path = f"{FOLDER}/a b'; rm -rf ~ #.json"
    (finding,) = check(BASE, Side(BASE.items, {path: "not valid JSON"}), POLICY, Advice("sign it"))
    assert finding.fix == f"git rm -f -- ':/{FOLDER}/a b'\"'\"'; rm -rf ~ #.json' && sign it"


def test_the_signed_text_is_fixed():
    edit = record(("B", "one", None), ('A "1"\n', None, "two"), reason="manual v3: “p. 12”\n")
    item, two = (hashlib.sha256(text).hexdigest() for text in (b"one", b"two"))
    assert edit.text == (
        "rag-eval gold sign-off v1\n"
        "dataset: 7b0c4e\n"
        "gold: eval/gold.jsonl\n"
        "signer: bob@example.org\n"
        "date: 2026-11-21T10:00:00Z\n"
        'reason: "manual v3: \\u201cp. 12\\u201d\\n"\n'
        f'change: "A \\"1\\"\\n" - -> sha256:{two}\n'
        f'change: "B" sha256:{item} -> -\n'
    )
    assert edit._replace(mutates=True).text == edit.text.replace("change:", "mutates: true\nchange:", 1)
    assert edit.name == f"2026-11-21-{hashlib.sha256(edit.text.encode()).hexdigest()[:8]}.json"


# --- gold blobs ------------------------------------------------------------------------------------------------------

ROWS = [{"qid": f"A{n}", "question": "é?", "answerable": n > 1, "nested": [{"a": [n]}]} for n in range(3)]


def read(blob):
    rows = [(line, source, json.loads(source)) for line, source in sources(blob)]
    return read_items(rows, "gold", is_array(blob))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\r\n \r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_an_item_is_its_exact_line_whatever_ends_it(end, mark):
    texts = [json.dumps(row) for row in ROWS]
    result, problems = read(mark + end.join(texts).encode())
    assert problems == []
    assert {qid: item.hash for qid, item in result.items()} == {
        row["qid"]: "sha256:" + hashlib.sha256(text.encode()).hexdigest() for row, text in zip(ROWS, texts, strict=True)
    }


def test_white_space_in_a_line_is_part_of_it():
    plain, spaced = (
        read(f'{{"qid": "A1", "question": "q", "answerable": true}}{end}'.encode())[0] for end in ("", " ")
    )
    assert plain["A1"].hash != spaced["A1"].hash


INTEGERS = st.integers(-(2**63), 2**64 - 1)


@given(
    st.lists(st.dictionaries(st.text(), INTEGERS | st.text() | st.lists(st.text()), max_size=3), min_size=1),
    st.sampled_from(["", " ", "\n", "\r\n\t "]),
    st.sampled_from([None, 1, "\t"]),
    st.booleans(),
)
def test_the_elements_of_an_array_are_taken_as_they_are_written(rows, gap, indent, ascii_only):
    texts = [json.dumps(row, indent=indent, ensure_ascii=ascii_only) for row in rows]
    blob = f"{gap}[{gap}{f'{gap},{gap}'.join(texts)}{gap}]{gap}".encode()
    assert is_array(blob)
    assert [source.decode() for _, source in sources(blob)] == texts
    lines = blob.decode().split("\n")
    assert all(source.decode().split("\n")[0] in lines[line - 1] for line, source in sources(blob))


@pytest.mark.parametrize(
    "blob", [b"[", b"[]", b"[1,]", b"[1] x", b'["\xff"]', b"[1 2]", b"[" * 100_000, b"[1," + b"9" * 5000, b"[,1]"]
)
def test_an_array_that_cannot_be_taken_apart_stays_in_one_piece(blob):
    assert sources(blob) == [(1, blob)]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ([], "an object"),
        ({"question": "q", "answerable": True}, "'qid'"),
        ({"qid": "", "question": "q", "answerable": True}, "'qid'"),
        ({"qid": "A" * 201, "question": "q", "answerable": True}, "'qid'"),
        ({"qid": "A1", "question": "q", "answerable": 1}, "'answerable'"),
        ({"qid": "A1", "q": "q", "answerable": True}, "'question'"),
        ({"qid": "A0", "question": "q", "answerable": True}, "is already used on line 1"),
    ],
)
def test_what_cannot_be_signed_is_a_problem_of_its_line(row, says):
    result, (problem,) = read_items([(1, b"x", ROWS[0]), (2, b"y", row)], "gold")
    assert list(result) == ["A0"]
    assert (problem.file, problem.line) == ("gold", 2)
    assert says in problem.message


def test_the_array_form_has_its_own_name_for_the_question():
    result, problems = read(b'[{"qid": "A1", "q": "what?", "answerable": true}]')
    assert (result["A1"].question, problems) == ("what?", [])


# --- the form of records ---------------------------------------------------------------------------------------------

hashes = st.integers(0, 2**256 - 1).map(lambda number: f"sha256:{number:064x}") | st.none()
edits = st.builds(HashChange, st.text(min_size=1, max_size=200), hashes, hashes).filter(
    lambda item: item.before != item.after
)
records = st.builds(
    Record,
    st.sampled_from(["7b0c4e", "default", "A.b_c-0"]),
    st.text(min_size=1, max_size=20).filter(lambda text: is_valid_field("gold", text)),
    st.sampled_from(["bob@example.org", "b+1@x", "bö.b@exämple.org"]),
    st.datetimes(min_value=datetime(1000, 1, 1)).map(lambda time: time.strftime("%Y-%m-%dT%H:%M:%SZ")),  # noqa: DTZ001
    st.text(min_size=1, max_size=50).filter(str.strip),
    st.lists(edits, min_size=1, max_size=4, unique_by=lambda item: item.qid).map(
        lambda result: tuple(sorted(result, key=lambda item: item.qid))
    ),
    st.booleans(),
    st.none() | st.text(),
)


@given(records)
def test_a_record_is_read_back_as_it_was_written(one):
    value = json.loads(one.file)
    assert Record.read(value) == one
    assert one.file.endswith("}\n")
    assert "\r" not in one.text
    # However a formatter writes the file, it stays the same record under the same name.
    again = Record.read(json.loads(json.dumps(value, indent=1, sort_keys=True)))
    assert (again, again.name) == (one, one.name)


@examples(100)
@given(records, records)
def test_different_records_have_different_texts(one, other):
    one, other = one._replace(sig=None), other._replace(sig=None)
    assert (one.text == other.text) == (one == other)


@examples(100)
@given(records, st.data())
def test_any_field_that_is_signed_changes_the_name(one, data):
    name = data.draw(st.sampled_from([*FIELDS, "mutates", "changes"]))
    other = one._replace(**{name: getattr(data.draw(records), name)})
    assert (one.text == other.text) == (one._replace(sig=None) == other._replace(sig=None))


def spoiled():
    junk = st.none() | st.booleans() | st.integers(2, 9) | st.just("") | st.just([]) | st.just({}) | st.just(" \n")
    junk |= st.sampled_from(["a b@c.d", "*@x.y", "2026-13-01T00:00:00Z", "sha256:12", "x" * 201, "-a@b.c"])
    return st.tuples(st.sampled_from([*SCHEMA["properties"], "more", "/qid", "/from", "/to", "/more"]), junk)


@examples(120)
@given(records, spoiled())
def test_reader_and_schema_agree(one, change):
    position, junk = change
    value = json.loads(one.file)
    (value["changes"][0] if position.startswith("/") else value)[position.removeprefix("/")] = junk
    # In a schema, $ is the end of the text; Python also takes the place before a last line feed for it.
    exact = json.loads(json.dumps(SCHEMA).replace('$"', r'\\Z"'))
    valid = jsonschema.Draft202012Validator(exact).is_valid(value)
    ends = [(row.get("from"), row.get("to")) for row in value["changes"]] if position.startswith("/") else []
    assume(all(before != after or before is None for before, after in ends))
    assert valid == isinstance(Record.read(value), Record)


@pytest.mark.parametrize("field", [*SCHEMA["required"], "/qid", "/from", "/to"])
def test_reader_and_schema_miss_the_same_fields(field):
    value = json.loads(EDIT.file)
    del (value["changes"][0] if field.startswith("/") else value)[field.removeprefix("/")]
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(value)
    assert isinstance(Record.read(value), str)


@pytest.mark.parametrize("junk", [None, False, 0, "", [], {}, "A1", ["A1"]])
def test_whatever_else_stands_among_the_changes_makes_it_no_record(junk):
    value = json.loads(EDIT.file)
    for rows in ([junk], [*value["changes"], junk]):
        assert Record.read(value | {"changes": rows}).startswith("/changes/")


def test_the_reader_alone_refuses_what_a_schema_cannot_say():
    value = json.loads(EDIT.file)
    value["changes"] *= 2
    assert Record.read(value) == "a qid occurs twice in its changes"
    value["changes"] = [{"qid": "A", "from": "sha256:" + "0" * 64, "to": "sha256:" + "0" * 64}]
    assert Record.read(value) == "a change is not from one hash to another one"
    assert Record.read([]) == "an empty list is not an object"
    assert Record.read(json.loads(EDIT.file) | {"v": 2}) == "/v: 2 is not 1. This version reads only version 1"


TWICE = [{"qid": "A", "from": None, "to": f"sha256:{digit * 64}"} for digit in "01"]
NOTHING = [{"qid": "A", "from": None, "to": None}]


@pytest.mark.parametrize("rows", [TWICE, NOTHING, [None], [], [{**TWICE[0], "from": TWICE[0]["to"]}]])
def test_validate_refuses_what_is_no_record(tmp_path, capsys, rows):
    path = tmp_path / EDIT.name
    path.write_text(EDIT.file)
    assert main(["validate", str(path)]) == 0
    assert capsys.readouterr().out.endswith(": valid, a signoff file\n")
    value = json.loads(EDIT.file) | {"changes": rows}
    path.write_text(json.dumps(value))
    assert isinstance(Record.read(value), str)
    assert main(["validate", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"{path}: ")


def test_the_schema_has_descriptions_and_its_examples_hold():
    fields = SCHEMA["properties"]
    ends = fields["changes"]["items"]["properties"]
    assert all(isinstance(Record.read(example), Record) for example in SCHEMA["examples"])
    assert all(field["description"] and field["examples"] for field in [*fields.values(), *ends.values()])


# --- the laws --------------------------------------------------------------------------------------------------------

# A state of the gold is {qid: (version, question)}; every edit makes a version that never was before.
QIDS = [f"A{n}" for n in range(5)]
steps = st.lists(
    st.dictionaries(st.sampled_from(QIDS), st.sampled_from(["edit", "ask", "drop"]), min_size=1), min_size=1, max_size=5
)
starts = st.sets(st.sampled_from(QIDS))


def history(start, moves, mark=""):
    """The states of the gold, first to last."""
    states = [{qid: item(f"{qid} first") for qid in start}]
    for number, move in enumerate(moves):
        state = dict(states[-1])
        for qid, kind in move.items():
            if kind == "drop":
                state.pop(qid, None)
                continue
            question = f"{mark}{number}" if kind == "ask" or qid not in state else state[qid].question
            state[qid] = item(f"{qid} {mark} {number}", question)
        states.append(state)
    return states


def signed(states, mutates=True, mark=""):
    """A record for each step between states."""
    result = [changes(before, after) for before, after in pairwise(states)]
    plain = record()._replace(mutates=mutates)
    return [plain._replace(reason=f"{mark}{n}", changes=tuple(item)) for n, item in enumerate(result) if item]


@given(starts, steps)
def test_any_sequence_of_edits_each_signed_passes(start, moves):
    states = history(start, moves)
    assert check(Side(states[0]), Side(states[-1], files(*signed(states))), POLICY) == []


@given(starts, steps)
def test_each_step_passes_on_top_of_the_one_before(start, moves):
    states, remaining = history(start, moves), {}
    for before, after in pairwise(states):
        new = {**remaining, **files(*signed([before, after]))}
        assert check(Side(before, remaining), Side(after, new), POLICY) == []
        remaining = new
    signed_live = {qid for qid in states[-1] if qid not in states[0] or states[-1][qid] != states[0][qid]}
    unsigned_live = {finding.message.split("'")[3] for finding in check(None, Side(states[-1], remaining), POLICY)}
    assert unsigned_live == states[-1].keys() - signed_live


@given(starts, steps)
def test_without_saying_so_exactly_the_mutated_items_are_refused(start, moves):
    states = history(start, moves)
    base, head = Side(states[0]), Side(states[-1], files(*signed(states, mutates=False)))
    asks = {qid for qid in start if qid in head.items and head.items[qid].question != base.items[qid].question}
    assert {change.qid: code for change, code in uncovered_changes(base, head, POLICY)} == dict.fromkeys(
        asks, "mutation"
    )


@given(starts, steps, st.data())
def test_no_record_that_is_needed_can_be_dropped(start, moves, data):
    # An item that comes back after it was dropped could do without the records of the life before.
    moves = [{qid: kind for qid, kind in move.items() if kind != "drop"} for move in moves[:-1]] + moves[-1:]
    states = history(start, moves)
    every = signed(states)
    assume(every)
    dropped = data.draw(st.sampled_from(every))
    remaining = files(*(item for item in every if item != dropped))
    net = {change.qid for change in changes(states[0], states[-1])}
    refused = {change.qid for change, _ in uncovered_changes(Side(states[0]), Side(states[-1], remaining), POLICY)}
    assert refused == net & {change.qid for change in dropped.changes}


@given(starts, steps, steps)
def test_branches_that_edit_different_items_merge(start, left, right):
    left = [{qid: kind for qid, kind in move.items() if qid in QIDS[:2]} for move in left]
    right = [{qid: kind for qid, kind in move.items() if qid in QIDS[2:]} for move in right]
    ours, theirs = history(start, left, "l"), history(start, right, "r")
    merged = {qid: (ours if qid in QIDS[:2] else theirs)[-1].get(qid) for qid in QIDS}
    merged = {qid: item for qid, item in merged.items() if item}
    mine, yours = files(*signed(ours, mark="l")), files(*signed(theirs, mark="r"))
    head = Side(merged, {**mine, **yours})
    assert check(Side(ours[0]), head, POLICY) == []
    assert check(Side(ours[-1], mine), head, POLICY) == []
    assert check(Side(theirs[-1], yours), head, POLICY) == []


@given(starts, steps)
def test_what_is_on_the_base_signs_nothing_anew(start, moves):
    states = history(start, moves)
    remaining = files(*signed(states))
    refused = uncovered_changes(Side(states[0], remaining), Side(states[-1], remaining), POLICY)
    assert [change for change, _ in refused] == changes(states[0], states[-1])
    assert {code for _, code in refused} <= {"replayed-record"}
