import gzip
import json

import pytest

from rag_eval.readers.jsonl import read_json, read_trace_rows
from rag_eval.readers.validation import check
from reading import element, gold, jsonl, put, reader, said, trace
from seams import InputError, read_gold


def golds(folder, data, **limits):
    result, path = reader(**limits), put(folder, data)
    return read_gold(result, path), said(result.ledger, path), result.ledger


def traces(folder, data, **limits):
    result, path = reader(**limits), put(folder, data)
    return [(trace.line, row) for trace, row in read_trace_rows(result, path)], said(result.ledger, path), result.ledger


def notes(ledger):
    return [note.message for note in ledger.notes]


def array(*elements):
    return ("[\n" + ",\n".join(json.dumps(element) for element in elements) + "\n]\n").encode()


def test_gold_lines_become_items_by_qid_in_file_order(tmp_path):
    items, problems, _ = golds(tmp_path, jsonl(gold(qid="B"), gold(qid="A", question="Why?")))
    assert [(item.qid, item.question, item.line) for item in items.values()] == [
        ("B", "Does X take null keys?", 1),
        ("A", "Why?", 2),
    ]
    assert problems == []


def test_a_json_array_becomes_the_same_kind_of_item(tmp_path):
    items, problems, _ = golds(tmp_path, array(element(gold_claim="X is a mapping.")))
    item = items["A0001"]
    assert (item.question, item.citations, item.expected_answer) == ("What is X?", ("p1#1",), "X is a mapping.")
    assert problems == []


def test_elements_of_an_array_know_the_line_they_begin_on(tmp_path):
    data = b'\n [\n{"qid": "A",\n"q": "x", "answerable": true, "gold_ids": ["a"]},\n\n' + array(element())[2:]
    assert [item.line for item in golds(tmp_path, data)[0].values()] == [3, 6]


def test_a_problem_in_an_array_is_on_the_line_of_its_element(tmp_path):
    problems = golds(tmp_path, array(element(), element(qid="B", answerable="yes")))[1]
    assert problems == ["FILE:3: /1/answerable: 'yes' is not true or false. Write true or false without quotes."]


@pytest.mark.parametrize("data", [b"", b"\n \n", b"[]", b" [ ] \n", b"\xef\xbb\xbf"])
def test_gold_without_an_item_is_a_problem(tmp_path, data):
    assert ["has no gold items" in problem for problem in golds(tmp_path, data)[1]] == [True]


def test_gold_without_an_item_is_a_problem_after_other_problems_too(tmp_path):
    result = reader()
    result.ledger.problem("other", 1, "", "is wrong")
    read_gold(result, put(tmp_path, b""))
    assert "has no gold items" in result.ledger.problems[1].message


@pytest.mark.parametrize("data", [b"", b"\n\n"])
def test_a_trace_file_without_rows_is_no_problem(tmp_path, data):
    assert traces(tmp_path, data)[:2] == ([], [])


def test_a_repeated_qid_in_an_array_names_the_first_line(tmp_path):
    assert (
        "FILE:3: /1/qid: 'A0001' is already used on line 2, at /0/qid."
        in golds(tmp_path, array(element(), element()))[1][0]
    )


def test_elements_that_all_stand_on_one_line_are_told_by_their_places(tmp_path):
    rows = element(), element(qid="B", gold_claim=5), element(), element(qid="C", answerable="no"), element(qid="B")
    problems = golds(tmp_path, json.dumps(rows).encode())[1]
    assert [problem.split(": ", 2)[:2] for problem in problems] == [
        ["FILE:1", "/1/gold_claim"],
        ["FILE:1", "/2/qid"],
        ["FILE:1", "/3/answerable"],
    ]
    assert golds(tmp_path, b'[{"qid": "A"}, {"a": 1, "a": 2}]')[1][-1].startswith("FILE:1: /1: ")


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, [{"a/b": [1, 10**40]}]])
def test_gold_with_an_integer_beyond_64_bits_in_an_unknown_field_is_refused_in_both_forms(tmp_path, value):
    ending = "is an integer of more than 64 bits. Write it as a string."
    for before in (gold(qid="B"), gold(qid="B", y=1)):  # with and without an earlier unknown field
        (problem,) = golds(tmp_path, jsonl(before, gold(x=value)))[1]
        assert (problem.startswith("FILE:2: column "), problem.endswith(ending)) == (True, True), problem
    (problem,) = golds(tmp_path, array(element(qid="B"), element(x=value)))[1]
    assert (problem.startswith("FILE:3: column "), problem.endswith(ending)) == (True, True), problem


def test_an_invalid_gold_item_with_a_key_of_another_tool_is_no_export(tmp_path):
    (problem,) = golds(tmp_path, jsonl(gold(conversation=[{"id": "x"}])))[1]
    assert problem.startswith("FILE:1: /conversation: a list with 1 entry is not a string."), problem


def test_a_value_of_another_type_is_reported_with_an_example(tmp_path):
    (problem,) = golds(tmp_path, jsonl(gold(gold_citations="p1#2")))[1]
    assert problem == "FILE:1: /gold_citations: 'p1#2' is not a list. Write it like [\"p1#2\"]"


@pytest.mark.parametrize("field", ["meta", "latency_budget_ms"])
def test_gold_with_an_integer_beyond_64_bits_in_a_known_field_is_refused(tmp_path, field):
    (problem,) = golds(tmp_path, jsonl(gold(qid="B"), gold(**{field: {"total": 2**64}})))[1]
    assert problem.startswith("FILE:2: column "), problem
    assert problem.endswith("is an integer of more than 64 bits. Write it as a string.")
    assert golds(tmp_path, jsonl(gold(**{field: {"total": 1e300}})))[1] == []


@pytest.mark.parametrize("value", [2**64 - 1, -(2**63), [{"a": 1.5e300}], "1" * 40, True])
def test_other_values_of_unknown_fields_are_accepted_in_both_forms_of_gold(tmp_path, value):
    assert golds(tmp_path, jsonl(gold(x=value)))[1] == golds(tmp_path, array(element(x=value)))[1] == []


def test_an_unknown_field_of_a_trace_may_have_any_integer(tmp_path):
    assert traces(tmp_path, jsonl(trace(x=2**64)))[1] == []


@pytest.mark.parametrize(("field", "number"), [("min_citations", "9" * 20), ("x", "1e400"), ("x", "NaN")])
def test_a_refused_number_is_named_by_its_column(tmp_path, field, number):
    row = (
        json.dumps(gold(question=f"{number} \\ {number}", y=[1]))[:-1]
        + f', "z": {"9" * 20}.5'
        + f', "{field}": {number}}}'
    )
    column = row.rindex(number) + 1
    assert golds(tmp_path, row.encode())[1][0].startswith(f"FILE:1: column {column}: {number} ")


@pytest.mark.parametrize(
    "item", [gold(gold_claim_substr=["a"]), {"qid": "A", "gold_claim_substr": ["a"], "question": "?"}]
)
def test_an_array_of_items_as_lines_have_them_is_one_problem(tmp_path, item):
    problems = golds(tmp_path, array(item, item))[1]
    output, hint = problems[0].split(". ", 1)
    assert output == "FILE:2: is a JSON array, but its items have the fields of JSON Lines"
    assert (len(problems), hint) == (1, "Write one item per line; jq -c '.[]' does it.")


def test_all_problems_of_a_file_are_told_not_only_the_first(tmp_path):
    rows = gold(qid=""), gold(qid="B", answerable="yes", gold_claim_substr=["yes"]), b"{\n", gold(qid="C")
    problems = golds(tmp_path, jsonl(*rows))[1]
    assert [problem.split(": ")[:2] for problem in problems] == [
        ["FILE:1", "/qid"],
        ["FILE:2", "/answerable"],
        ["FILE:2", "/gold_claim_substr/0"],
        ["FILE:3", "column 2"],
    ]


def test_problems_of_a_row_are_in_the_order_of_their_indexes(tmp_path):
    item = gold(gold_citations=[7 if number in (2, 10) else f"d{number}" for number in range(12)])
    places = [problem.split(": ")[1] for problem in golds(tmp_path, jsonl(item))[1]]
    assert places == ["/gold_citations/2", "/gold_citations/10"]


def test_an_unanswerable_item_with_labels_is_a_problem_at_each(tmp_path):
    problems = golds(tmp_path, jsonl(gold(answerable=False)))[1]
    assert ["must be empty" in problem for problem in problems] == [True, True]


@pytest.mark.parametrize("rows", [2, 300])
def test_an_unknown_field_is_noted_once_a_file_with_the_one_that_was_meant(tmp_path, rows):
    _, problems, ledger = golds(tmp_path, jsonl(*(gold(qid=str(number), tag=["x"]) for number in range(rows))))
    assert problems == []
    assert notes(ledger) == ["unknown field 'tag' is ignored. Did you mean 'tags'?"]


def test_an_unknown_field_inside_a_known_one_is_noted_with_its_place(tmp_path):
    answer = {"claim": "x", "citation": []}
    ledger = traces(tmp_path, jsonl(trace(answer_json=answer)))[2]
    assert notes(ledger) == ["unknown field 'answer_json.citation' is ignored. Did you mean 'citations'?"]


def test_unknown_fields_of_an_array_are_noted(tmp_path):
    ledger = golds(tmp_path, array(element(gold_clam="x")))[2]
    assert notes(ledger) == ["unknown field 'gold_clam' is ignored. Did you mean 'gold_claim'?"]


def test_an_unknown_field_like_no_other_gets_no_suggestion(tmp_path):
    assert notes(traces(tmp_path, jsonl(trace(zzz=1)))[2]) == ["unknown field 'zzz' is ignored."]


def test_a_thousand_unknown_fields_are_no_flood_of_notes(tmp_path):
    many = {f"field number {number}": 1 for number in range(1000)}
    ledger = traces(tmp_path, jsonl(trace(**many)))[2]
    assert len(ledger.notes) == 101
    assert "more notes" in max(ledger.notes, key=lambda note: "further" in note.message).message


def test_an_unknown_field_is_noted_once_however_many_rows_have_it(tmp_path):
    rows = [trace(extra=1), trace(extra=1, run="a"), trace(extra=1, ts=1)]
    [note] = traces(tmp_path, jsonl(*rows))[2].notes
    assert (note.line, note.times) == (1, 1)


def test_an_array_of_traces_given_as_gold_is_one_problem(tmp_path):
    problems = golds(tmp_path, array(trace(), trace(), trace()))[1]
    assert len(problems) == 1
    assert "looks like a row of a trace file" in problems[0]


def test_a_file_of_another_kind_does_not_hide_the_problems_of_the_next(tmp_path):
    result = reader()
    read_gold(result, put(tmp_path, jsonl(trace()), "one"))
    many = [trace(qid=str(number), z="x" * 500) for number in range(500)]
    assert len(list(read_trace_rows(result, put(tmp_path, jsonl(*many, b"{"), "two")))) == 500
    assert result.ledger.problems[1].line == 501


@pytest.mark.parametrize("bad", [b"{\n", b'{"qid": 1, "answer": "x"}\n'])
def test_problems_beyond_a_hundred_are_counted(tmp_path, bad):
    ledger = traces(tmp_path, bad * 250)[2]
    assert (len(ledger.problems), ledger.more, ledger.count) == (100, 150, 250)
    with pytest.raises(InputError) as caught:
        ledger.stop_on_problems()
    assert caught.value.lines()[3:] == ["… and 97 more problems like this one.", "… and 150 more problems not shown."]


def test_a_row_that_only_the_slow_way_refuses_is_counted_beyond_a_hundred_too(tmp_path):
    repeated = json.dumps(gold(qid="B")).encode()[:-1] + b', "z": 1, "z": 2}\n'
    items, _, ledger = golds(tmp_path, b"{\n" * 100 + repeated + jsonl(gold()))
    assert len(items) == 1
    assert ledger.more == 1


@pytest.mark.parametrize("groups", [[[1]], [[0], [0, 7]], [[0.0]], [[True]], [[-1]], [[]]])
def test_support_groups_that_name_no_support_are_a_problem(tmp_path, groups):
    supports = [{"rel_path": "a.md", "heading_path": "A"}]
    row = gold(supports=supports, required_support_groups=groups)
    problems = golds(tmp_path, jsonl(row))[1]
    assert len(problems) == 1
    assert problems[0].startswith("FILE:1: /required_support_groups")


def test_an_item_whose_support_groups_do_not_fit_can_still_be_scored_until_all_problems_are_found(tmp_path):
    assert golds(tmp_path, jsonl(gold(required_support_groups=[[3]])))[0]["A0001"].support_groups is None


def test_support_groups_without_supports_are_a_problem(tmp_path):
    assert len(golds(tmp_path, jsonl(gold(required_support_groups=[[0]])))[1]) == 1


def test_support_groups_that_fit_are_kept(tmp_path):
    supports = [{"rel_path": "a.md", "heading_path": "A"}] * 2
    items, problems, _ = golds(tmp_path, jsonl(gold(supports=supports, required_support_groups=[[0, 1], [1]])))
    assert problems == []
    assert [list(group) for group in items["A0001"].support_groups] == [[0, 1], [1]]


@pytest.mark.parametrize("deep", [[[[0]]], {"a": {"b": {"c": 0}}}, {"a": [{}]}])
def test_the_limit_of_depth_holds_for_fields_that_no_record_has(tmp_path, deep):
    rows, problems, _ = traces(tmp_path, jsonl(trace(), trace(z=deep), trace(z=[[0]]), trace(z=deep)), depth=3)
    assert [line for line, _ in rows] == [1, 3]
    assert ["nested deeper than 3 levels" in problem for problem in problems] == [True, True]


def test_trace_rows_keep_their_line_numbers_beside_bad_ones(tmp_path):
    rows, problems, _ = traces(tmp_path, jsonl(trace(qid="a"), b"\r\n", b"{\n", trace(qid="b")))
    assert [(line, row["qid"]) for line, row in rows] == [(1, "a"), (4, "b")]
    assert len(problems) == 1


def checked(folder, data, name):
    result, path = reader(), put(folder, data, name)
    return check(result, path), said(result.ledger, path)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.jsonl", jsonl(gold()), "1 gold item, 1 answerable and 0 not"),
        ("a.jsonl", jsonl(trace(), trace()), "2 traces"),
        ("a.jsonl", array(element()), "1 gold item,"),
        ("a.json", array(element()), "1 gold item,"),
        ("a.jsonl.gz", gzip.compress(jsonl(trace())), "1 trace"),
        ("a.jsonl", b'{"x": 1}\n', "1 line of JSON"),
        ("a.yml", b"version: 1\ngates: {precision: {min: 0.8}}\n", "1 gate"),
        ("run.json", b'{"system_commit": "9f2c1ab"}', "a run file"),
    ],
)
def test_the_kind_of_a_file_is_seen_from_name_and_content(tmp_path, name, data, words):
    result, problems = checked(tmp_path, data, name)
    assert problems == []
    assert result.startswith(words)


@pytest.mark.parametrize(("name", "data"), [("gold.jsonl", b"{"), ("runs/t.jsonl", b"{"), ("x.jsonl", b'["\xff"]')])
def test_a_file_that_shows_no_kind_is_still_read_strictly(tmp_path, name, data):
    (tmp_path / "runs").mkdir()
    assert len(checked(tmp_path, data, name)[1]) == 1


def test_a_json_file_of_several_lines_gets_line_and_column(tmp_path):
    result, path = reader(), put(tmp_path, b'{\n"models": {},\n"models": }', "run.json")
    assert read_json(result, path, "run") is None
    assert said(result.ledger, path)[0].startswith("FILE:3: column 11: not valid JSON")


@pytest.mark.parametrize(
    ("sha256", "words"),
    [
        ("abc", "'abc' does not match the pattern ^[0-9a-f]{64}$"),
        ("0" * 64 + "\n", "a text or a key ends with a line break, which its pattern does not allow. Remove it."),
    ],
)
def test_a_text_that_its_pattern_refuses_is_shown_with_the_pattern_of_the_schema(tmp_path, sha256, words):
    result, path = reader(), put(tmp_path, json.dumps({"sha256": sha256}).encode())
    assert read_json(result, path, "freeze") is None
    assert [problem for problem in said(result.ledger, path) if problem.startswith("FILE: /sha256: " + words)]
