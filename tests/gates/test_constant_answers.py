"""One answer to many questions is found, however it is varied; honest answers that resemble each other are not."""

from __future__ import annotations

import json

import pytest

import rag_eval
from cases import ROOT, gold_row, write_rows

GATES = "version: 1\ngates: {precision: {min: 0.8}}\n"
WORDS = "amber birch cedar delta ember fjord grove heron inlet jetty knoll larch maple north ocean pearl".split()
DATA = ROOT.parent / "shared" / "data"


def fact(number):
    return f"{WORDS[number % 16]} {WORDS[(number // 16 + 3 * number) % 16]} {number}"


def golds(count, **fields):
    return [
        gold_row(qid=f"Q{n}", question=f"What of {n}?", gold_claim_substr=[fact(n)], gold_citations=[f"c{n}"], **fields)
        for n in range(count)
    ]


def scored(folder, items, claim_of, gates=GATES):
    """The report of answers that cite rightly; ``claim_of`` gives the claim of an item."""
    traces = [
        {
            "qid": item["qid"],
            "retrieved_ids": [*item["gold_citations"], "x1"],
            "answer_json": {"claim": claim_of(item), "citations": item["gold_citations"]},
        }
        for item in items
    ]
    (folder / "gates.yml").write_text(gates, "utf-8")
    files = write_rows(folder / "gold.jsonl", items), write_rows(folder / "trace.jsonl", traces)
    return rag_eval.score(*files, folder / "gates.yml")


def codes(report):
    return {(finding.code, finding.level) for finding in report.findings}


def numbered(item):
    return int(item["qid"][1:])


def share(items, low, high):
    return "They say " + ", ".join(text for item in items[low:high] for text in item["gold_claim_substr"])


def test_one_constant_answer_that_is_mostly_right_is_found(tmp_path):
    items = golds(16)
    constant = share(items, 0, 14)
    report = scored(tmp_path, items, lambda _: constant)
    assert report.metrics["precision"].exact == "7/8"
    assert codes(report) == {("padded-answers", "error")}
    turned = scored(tmp_path, items, lambda _: constant, f'{GATES}integrity: {{padded-answers: "off"}}\n')
    assert codes(turned) == {("constant-answers", "error")}


VARIED = {
    "as it is": lambda text, _: text,
    "with the question's name": lambda text, item: f"{text} ({item['qid']})",
    "with the question": lambda text, item: f"{item['question']} {text}",
    "in capitals and points": lambda text, item: text.upper() if numbered(item) % 2 else f"{text}...",
}


@pytest.mark.parametrize("count", [1, 2, 5], ids="{} templates".format)
@pytest.mark.parametrize("way", VARIED)
def test_a_few_templates_are_found_however_they_are_varied(tmp_path, count, way):
    items = golds(40)
    size = 40 // count
    texts = [share(items, at * size, (at + 1) * size) for at in range(count)]
    report = scored(tmp_path, items, lambda item: VARIED[way](texts[numbered(item) // size], item))
    assert report.metrics["precision"].exact == "1"
    assert {code for code, level in codes(report) if level == "error"} & {"constant-answers", "padded-answers"}


def test_some_honest_answers_do_not_hide_a_constant_one(tmp_path):
    items = golds(40)
    constant = share(items, 0, 20)
    report = scored(tmp_path, items, lambda item: constant if numbered(item) < 20 else f"It is {fact(numbered(item))}.")
    assert ("constant-answers", "error") in codes(report)


def test_answers_of_their_own_are_not_found_though_they_are_written_alike(tmp_path):
    text = "The rule of the house for this is {} as the manual of the service says in its own chapter on it"
    report = scored(tmp_path, golds(40), lambda item: text.format(fact(numbered(item))))
    assert (report.passed, report.findings) == (True, ())


def test_the_same_answer_to_questions_that_want_the_same_is_honest(tmp_path):
    for shared in ({"gold_claim_substr": ["30 days"]}, {"gold_citations": ["c1"]}):
        items = [{**item, **shared} for item in golds(8)]
        texts = " and ".join({text for item in items for text in item["gold_claim_substr"]})
        result = {code for code, _ in codes(scored(tmp_path, items, lambda _, output=texts: output))}
        assert "constant-answers" not in result


def test_two_answers_alike_are_chance(tmp_path):
    items = golds(12)
    both = share(items, 0, 2)
    assert (
        scored(tmp_path, items, lambda item: both if numbered(item) < 2 else f"{fact(numbered(item))}").findings == ()
    )


def test_where_the_gold_says_nothing_of_the_claim_short_answers_only_warn(tmp_path):
    items = [{**item, "gold_claim_substr": []} for item in golds(12)]
    assert codes(scored(tmp_path, items, lambda _: "Yes.")) == {("constant-answers", "warning")}
    text = "It is all in the manual of the house."
    assert codes(scored(tmp_path, items, lambda _: text)) == {("constant-answers", "error")}
    items = [{**item, "expected_answer": "Yes."} for item in items]
    assert codes(scored(tmp_path, items, lambda _: "Yes.")) == set()


def test_its_level_can_be_set_and_other_gates_do_not_ask(tmp_path):
    items = golds(8)
    constant = share(items, 0, 8)
    turned = f'{GATES}integrity: {{constant-answers: warning, padded-answers: "off"}}\n'
    assert codes(scored(tmp_path, items, lambda _: constant, turned)) == {("constant-answers", "warning")}
    retrieval = 'version: 1\ngates: {mrr: {min: 0.8}}\nintegrity: {padded-answers: "off"}\n'
    assert codes(scored(tmp_path, items, lambda _: constant, retrieval)) == set()


@pytest.mark.skipif(not DATA.is_dir(), reason="the public data are not here")
@pytest.mark.parametrize("name", ["azure-nw50", "mtrag", "clapnq"])
def test_honest_systems_are_not_found(tmp_path, name):
    gates = tmp_path / "gates.yml"
    gates.write_text("version: 1\ngates: {precision: {min: 0}, containment: {min: 0}}\n", "utf-8")
    for path in sorted((DATA / name).glob("trace*.jsonl")):
        codes = {finding.code for finding in rag_eval.score(DATA / name / "gold.jsonl", path, gates).findings}
        assert not codes & {"constant-answers", "padded-answers", "partly-measured", "padded-citations"}, path


# --- five of five ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        lambda ids: {"gold_citations": ids},
        lambda ids: {"relevance_grades": dict.fromkeys(ids, 2)},
        lambda ids: {"supports": [{"rel_path": name, "heading_path": ""} for name in ids]},
    ],
    ids=["citations", "grades", "supports"],
)
@pytest.mark.parametrize(("right", "found"), [(5, False), (4, True), (0, True)])
def test_an_answer_that_cites_five_of_five_is_padded_unless_all_are_gold(tmp_path, form, right, found):
    items, traces = [], []
    for n in range(8):
        ids = [f"c{n}-{index}" for index in range(5)]
        items.append(gold_row(qid=f"Q{n}", question=f"What of {n}?", **form([*ids[:right], f"g{n}"])))
        answer = {"claim": f"It is {fact(n)}.", "citations": ids}
        traces.append(
            {"qid": f"Q{n}", "answer_json": answer, "chunks": [{"id": item, "rel_path": item} for item in ids]}
        )
    report = rag_eval.score(write_rows(tmp_path / "gold.jsonl", items), write_rows(tmp_path / "trace.jsonl", traces))
    assert ("padded-citations" in json.dumps([finding.code for finding in report.findings])) is found
