"""Markdown of any report: untrusted text has no meaning to GitHub, and what must stay is never cut."""

import json
import re

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import given
from hypothesis import strategies as st
from tabulate import tabulate

import compared
from cases import ROOT
from depth import examples
from hostile import TAGS
from rag_eval.analysis import SliceResult
from rag_eval.github.posting import last_line
from rag_eval.rendering import markdown
from seams import RENDERERS, InputError, Problem, from_json, render, with_verdict

SPICES = ["|", "`", "``", "\\", "@octocat", "<b>", "</details>", "<!--", "-->", "[a](b)", "![a](b)", "https://a.b"]
SPICES += [
    "\n",
    "\r\n",
    "\r",
    "\r::add-mask::x",
    "\ufffe",
    "\uffff",
    "::error::x",
    "##[group]",
    "*",
    "_",
    "#1",
    "\u202e",
    "&lt;",
    "http://x",
    "www.a.b",
    " ",
    "-",
]
texts = st.lists(st.one_of(st.sampled_from(SPICES), st.text(max_size=4)), min_size=1, max_size=6).map("".join)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Gives a real report beside a baseline, with slices and gates of every outcome."""
    folder = tmp_path_factory.mktemp("compared")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        report = compared.compared(folder)
    return lambda: report


@pytest.fixture
def report(made):
    """The report itself."""
    return made()


def html_of(text):
    return cmarkgfm.github_flavored_markdown_to_html(text, Options.CMARK_OPT_UNSAFE)


def tags_of(html):
    return {part.split(">")[0].split()[0].strip("/") for part in html.split("<")[1:]}


def widths_of(table):
    return {row.count("<th") + row.count("<td") for row in table.split("</table>")[0].split("<tr>")[1:]}


def spiced(report, given_texts):
    """The report with every slice, flip, reason and provenance out of ``given_texts``."""
    result = compared.hostile(report, given_texts)
    of = {part.slice: f"tags={given_texts[index % len(given_texts)]}" for index, part in enumerate(report.slices)}
    slices = tuple(SliceResult(of[part.slice], part.n, part.metrics) for part in result.slices)
    gates = tuple(gate._replace(slice=of.get(gate.slice, gate.slice)) for gate in result.gates)
    return with_verdict(result._replace(slices=slices, gates=gates))


# Wide characters count as one, whether a package that knows better is installed or not.
NARROW = st.text(st.characters(codec="latin-1", categories=["L", "N", "P", "S", "Zs"]), max_size=12)


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.tuples(
            st.lists(NARROW.map(str.strip), min_size=width, max_size=width),
            st.lists(st.lists(NARROW, min_size=width, max_size=width), max_size=4),
        )
    )
)
def test_a_table_is_the_one_that_tabulate_writes(table):
    headers, rows = table
    filled = [[cell or "–" for cell in row] for row in rows]
    assert markdown.table(headers, rows) == tabulate(filled, headers, "github", disable_numparse=True)


@given(st.lists(texts, min_size=1, max_size=5))
@examples(60)
def test_untrusted_text_has_no_meaning_to_github(made, given_texts):
    html = html_of(render(spiced(made(), given_texts), "markdown"))
    assert tags_of(html) <= TAGS
    assert "@octocat" not in html
    assert {len(widths_of(table)) for table in html.split("<table>")[1:]} == {1}


@given(st.lists(texts, min_size=1, max_size=5))
@examples(60)
def test_names_do_not_change_the_structure_of_the_comment(made, given_texts):
    plain, other = (html_of(render(spiced(made(), item), "markdown")) for item in (["a"], given_texts))
    assert plain.count("<table>") == other.count("<table>")
    assert plain.count("<details>") == other.count("<details>")


@given(st.lists(texts, min_size=1, max_size=5))
@examples(30)
def test_no_form_has_a_line_that_is_a_command_to_the_runner(made, given_texts):
    result = spiced(made(), given_texts)
    lines = [line for form in RENDERERS for line in render(result, form).splitlines()]
    assert [line for line in lines if line.lstrip().startswith("::") or "##[" in line] == []


def named(text, gate):
    return f"`{gate.name}`" in text


@given(st.integers(0, 20_000))
@examples(60)
def test_a_comment_fits_its_limit_and_has_the_verdict(made, most):
    report = made()
    text = markdown.within(report, most, len)
    assert len(text) <= most
    assert text == "" or "RAG evaluation failed" in text
    if most >= 2_000:
        assert [gate.label for gate in report.failed_gates if not named(text, gate)] == []


@pytest.mark.parametrize(("count", "most", "shown"), [(20, 10_000, 20), (21, 10_000, 20), (25, 700, 5), (25, 120, 0)])
def test_of_many_problems_the_others_are_counted(count, most, shown):
    error = InputError([Problem("gold.jsonl", line, "", "qid 'Q1' occurs twice") for line in range(1, count + 1)])
    text = markdown.problems_within(error, most, len)
    assert text.startswith(f"## 🚫 Cannot be judged: {count} problems in the input\n\n")
    assert text.count("\n- ") == shown
    assert (f"\n{count - shown} more are not shown; the log has them.\n" in text) is (count > shown)


def test_a_problem_is_shown_unchanged(report):
    error = InputError([Problem("gold.jsonl", 1, "", "qid 'a|b' occurs twice")])
    for text in (markdown.problems_within(error, 10_000, len), markdown.reason_within("'a|b' is none", 10_000, len)):
        assert "a|b" in html_of(text)
    part = next(gate for gate in report.gates if gate.slice)._replace(slice="tags=a|b", outcome="failed")
    assert "<code>tags=a|b</code>" in html_of(markdown.within(report._replace(gates=(part,)), 600, len))


def many(report, count):
    """The report with as many failing gates on slices."""
    first = report.failed_gates[0]
    gates = tuple(first._replace(slice=f"tags=t{index:04}") for index in range(count))
    return report._replace(gates=gates, findings=())


def test_text_below_a_shortened_report_is_a_paragraph_of_its_own(report):
    text = markdown.within(many(report, 3_000), 5_000, len) + last_line("a" * 40, 7)
    assert "<p>Commit <code>aaaaaaa</code> · run 7</p>" in html_of(text)


@pytest.mark.parametrize("most", [1_000, 5_000, 65_536])
def test_failed_gates_that_do_not_fit_are_counted(report, most):
    text = markdown.within(many(report, 3_000), most, len)
    entries = len(set(re.findall(r"tags=t[0-9]{4}", text)))
    cut = re.search(r"… and ([0-9]+) more\n?$", text) or re.search(r"and ([0-9,]+) more gates", text)
    assert len(text) <= most
    assert entries > 0
    assert entries + int(cut[1].replace(",", "")) == 3_000


def test_many_entries_of_a_kind_hide_no_other(report):
    """A pull request chooses how many cases its must_pass names, and how many prices it changes."""
    entries = [("must-pass-unknown", f"must_pass names Z{index}") for index in range(40)]
    entries.append(("signoff-off", "nobody signs"))
    keys = [f"prices.m{index:02}" for index in range(39)] + ["signoff.allowed_signers", "signoff.require"]
    value = json.loads(render(report, "json"))
    plain = {"level": "warning", "fix": "", "file": "", "line": 0}
    value["findings"] = [{**plain, "code": code, "message": message} for code, message in entries]
    change = {"kind": "looser", "old": "1", "new": "2", "lets_through": []}
    value["policy_changes"] = [{**change, "key": key} for key in keys]
    report = from_json(value)
    for text in (render(report, form) for form in ("table", "markdown", "html")):
        assert "nobody signs" in text
        assert "signoff.require" in text
        assert "40 times" in text
    assert markdown.render(report).count("and 21 more") == 2
    failed = next(gate for gate in report.gates if gate.blocks)._replace(severity="warning")
    report = with_verdict(report._replace(gates=(failed,) * 300))
    text = markdown.within(report, 9_000, len)
    assert "RAG evaluation passed" in text
    assert "nobody signs" in text
    assert "signoff.require" in text


def test_an_entry_added_to_a_long_list_of_the_gates_is_visible(report):
    value = json.loads(render(report, "json"))
    old = json.dumps([f"i cannot say {word}" for word in ("this", "that", "much", "more", "why")])
    change = {"key": "refusal.phrases", "kind": "looser", "old": old, "lets_through": []}
    value["policy_changes"] = [{**change, "new": f'{old[:-1]}, "rather heavy"]'}]
    for form in ("table", "markdown", "html"):
        assert "rather heavy" in render(from_json(value), form)


def test_many_passed_slices_are_only_counted(report):
    passed = next(gate for gate in report.gates if gate.outcome == "passed" and gate.comparison is None)
    gates = tuple(passed._replace(slice=f"tags=t{index}") for index in range(7))
    text = markdown.render(report._replace(gates=(*report.gates, *gates)))
    assert "tags=t3" not in text
    assert "- Gates on slices that are not shown: 7 passed." in text


def test_many_small_slices_are_named_in_one_line(report):
    few = next(gate for gate in report.gates if gate.unclear and gate.slice and gate.comparison is None)
    gates = tuple(few._replace(slice=f"tags=t{index}") for index in range(7))
    table, _, below = markdown.render(report._replace(gates=gates)).partition("\n- ")
    named = ", ".join(f"`precision` where `tags=t{index}`" for index in range(3))
    assert "tags=" not in table
    assert below.startswith(f"{named} and 4 more: inconclusive, the slice has fewer than 4 cases.\n")
    assert "- Gates on slices that are not shown: 7 inconclusive." in below


def test_inconclusive_gates_are_counted_in_the_verdict(report):
    first = markdown.render(report).splitlines()[2]
    assert f"{sum(gate.unclear for gate in report.gates)} inconclusive" in first


def test_an_inconclusive_gate_that_fails_the_run_looks_like_it(report):
    unclear = next(gate for gate in report.gates if gate.unclear)._replace(inconclusive="fail")
    text = markdown.render(with_verdict(report._replace(gates=(unclear,), findings=())))
    assert "❌\u00a0inconclusive (counts as failed)" in text
    assert text.startswith("## ❌")


def test_a_significant_regression_is_called_significant(report):
    result = next(gate for gate in report.gates if gate.unclear and gate.comparison is not None)
    sure = result._replace(outcome="failed", comparison=result.comparison._replace(adjusted=0.0123, mde=None))
    text = markdown.render(with_verdict(report._replace(gates=(sure,))))
    detectable = "10 cases cannot detect any drop; a drop of 0.05 needs 1253 cases"
    assert f"- `{result.name}`: significant, p = 0.01 after correction, although the interval," in text
    assert f"contains 0; {detectable}." in text
    assert "`recall_all@3` fell by 0.100 (1.000 → 0.900; 95 % interval −0.261 to 0.445; allowed: 0.02)" in text


def test_an_inconclusive_gate_of_the_base_is_called_not_significant(report):
    result = next(gate for gate in report.gates if gate.unclear and gate.comparison is not None and not gate.slice)
    strict = result._replace(comparison=result.comparison._replace(adjusted=0.03), origin="base")
    text = markdown.render(report._replace(gates=(strict,)))
    assert "inconclusive, not significant (p = 0.03 after correction)" in text


def test_without_a_baseline_there_is_no_column_for_it(report):
    gates = tuple(gate for gate in report.gates if gate.direction in ("min", "max"))
    text = markdown.render(report._replace(gates=gates, baseline=None, flips=(), effects=(), findings=()))
    assert "baseline" not in text.partition("<details>")[0].partition("**Completeness")[0].replace("no baseline", "")


def test_metrics_by_slice_make_room_before_questions_do():
    report = from_json(json.loads((ROOT / "tests" / "expected" / "sliced" / "report.json").read_text("utf-8")))
    whole, short = markdown.render(report), markdown.within(report, 50_000, len)
    assert ("Every metric by slice did not fit" in whole, "Every metric by slice did not fit" in short) == (False, True)
    assert whole.partition("<details><summary>Questions")[2] == short.partition("<details><summary>Questions")[2] != ""


def test_only_the_code_of_an_advice_is_code(report):
    ask = "To require a sign-off, write in eval-gates.yml: signoff: {require: record}."
    steps = "No answer has a list of citations. Record them: t.answer(text, citations=[…]). Then score again."
    row = json.loads(render(report, "json"))
    row["findings"] = [{"code": "c", "level": "warning", "message": "said", "fix": ask, "file": "", "line": 0}]
    row["diagnosis"] = [{"cause": "Grounding.", "evidence": "precision 0.1", "next": steps}]
    text = render(from_json(row), "markdown")
    assert "→ To require a sign-off, write in eval-gates.yml: `signoff: {require: record}`.\n" in text
    assert (
        "No answer has a list of citations. `Record them: t.answer(text, citations=[…]).` Then score again.\n" in text
    )
