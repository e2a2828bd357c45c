"""Workbooks, Parquet, UTF-16 and CSV of Excel: the rows of each file, and what is refused or named."""

from __future__ import annotations

import datetime as dt
import json
import sys

import openpyxl
import pyarrow as pa
import pytest
from pyarrow import parquet

from table import each_row

GOLD = [["ID", "Question", "Expected answer"], ["A1", "How long?", "30 days"], ["A2", "How much?", "5 EUR"]]
ROWS = [("A1", "How long?", "30 days"), ("A2", "How much?", "5 EUR")]
TITLES = [["Golden set"], [], ["Owner:", "Claims"]]
AS_GOLD = ("--as", "gold")


def workbook(*sheets, change=None):
    """Return a writer of a workbook of sheets: title and rows."""

    def write(path):
        book = openpyxl.Workbook()
        book.remove(book.active)
        for title, rows in sheets:
            sheet = book.create_sheet(title)
            for row in rows:
                sheet.append(row)
        if change:
            change(book)
        book.save(path)

    return write


def text(content, encoding="utf-8"):
    return lambda path: path.write_bytes(content.encode(encoding))


def lines(rows, separator=","):
    return "".join(separator.join(row) + "\r\n" for row in rows)


def table(**columns):
    return lambda path: parquet.write_table(pa.table(columns), path)


def hide_second(book):
    book.worksheets[1].sheet_state = "hidden"


def percentage(book):
    book.active["C2"], book.active["C2"].number_format = 0.125, "0.0%"
    book.active["C3"], book.active["C3"].number_format = 5, '#,##0 "EUR"'


READ = [
    ("gold.xlsx", workbook(("Gold", GOLD)), ROWS, ""),
    (
        "titles.xlsx",
        workbook(("Gold", TITLES + GOLD)),
        ROWS,
        "left out: the lines above the names of the columns: Golden set, Owner: Claims",
    ),
    ("blank.xlsx", workbook(("Gold", [*GOLD, [None], [None, ""]]), ("Empty", [])), ROWS, ""),
    (
        "hidden.xlsx",
        workbook(("Gold", GOLD), ("Lists", [["easy"]]), change=hide_second),
        ROWS,
        "left out: other sheets: Lists",
    ),
    (
        "types.xlsx",
        workbook(("Gold", [GOLD[0], [7, "Is it?", True], [8.0, "When?", dt.date(2026, 3, 31)]])),
        [("7", "Is it?", "true"), ("8", "When?", "2026-03-31")],
        "",
    ),
    (
        "format.xlsx",
        workbook(("Gold", [list(row) for row in GOLD]), change=percentage),
        [("A1", "How long?", "12.5%"), ("A2", "How much?", "5")],
        'numbers like #,##0 "EUR" are read without that format',
    ),
    (
        "gold.parquet",
        table(id=["A1", "A2"], question=["How long?", "How much?"], expected_answer=["30 days", "5 EUR"]),
        ROWS,
        "",
    ),
    ("unicode.txt", text(lines(GOLD, "\t"), "utf-16"), ROWS, ""),
    ("big.csv", text("\ufeff" + lines(GOLD, ";"), "utf-16-be"), ROWS, ""),
    ("sep.csv", text("\ufeffsep=;\r\n" + lines(GOLD, ";")), ROWS, ""),
    (
        "comma-in-title.csv",
        text("Golden set, v2\r\n\r\n" + lines(GOLD, ";")),
        ROWS,
        "above the names of the columns: Golden set, v2",
    ),
    ("title.csv", text("Golden set\n" + lines(GOLD)), ROWS, "above the names of the columns: Golden set"),
    ("blank-rows.csv", text(lines([*GOLD, ["", "", ""]])), ROWS, ""),
    (
        "index.csv",
        text(lines([["", "question", "expected_answer"], ["0", "How long?", "30 days"]])),
        [(None, "How long?", "30 days")],
        "left out: a column without a name",
    ),
]


@each_row("name, write, rows, named", READ)
def test_the_rows_of_a_file(command, tmp_path, name, write, rows, named):
    write(tmp_path / name)
    code, out, err = command("import", "auto", tmp_path / name, *AS_GOLD)
    assert code == 0, err
    golds = [json.loads(line) for line in out.splitlines()]
    shown = [(gold["qid"], gold["question"], gold["expected_answer"]) for gold in golds]
    assert shown == [(qid or shown[index][0], *rest) for index, (qid, *rest) in enumerate(rows)]
    assert named in err
    assert ("left out: " in err) is ("left out: " in named or "above" in named)


def number_as_error(book):
    book.active["C3"] = "#REF!"


REFUSED = [
    (
        "two.xlsx",
        workbook(("HR", GOLD), ("IT", GOLD)),
        "has data in 2 sheets: HR, IT. Name the one to read: rag-eval import auto FILE --sheet HR",
    ),
    (
        "formula.xlsx",
        workbook(("Gold", [*GOLD[:2], ["A2", "Line\nbreak?", "=1+1"]])),
        "FILE:3: cell C3: has a formula without a value.",
    ),
    ("error.xlsx", workbook(("Gold", GOLD), change=number_as_error), "FILE:3: cell C3: has the error #REF!."),
    (
        "rows.xlsx",
        workbook(("Gold", [["Question", "Answer"], ["Line\nbreak?", "Yes"], [None, "No"]])),
        "FILE:3: has no question.",
    ),
    ("no-rows.xlsx", workbook(("Gold", GOLD[:1])), "has names of columns and no rows."),
    ("empty.xlsx", workbook(("Gold", [])), "is empty."),
    (
        "old.xls",
        lambda path: path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512)),
        "Save it as .xlsx without a password.",
    ),
    (
        "cut.xlsx",
        lambda path: path.write_bytes(b"PK\x03\x04" + bytes(64)),
        "cannot be read as a workbook: File is not a zip file.",
    ),
    ("cut.parquet", lambda path: path.write_bytes(b"PAR1" + bytes(64)), "cannot be read as Parquet: "),
    ("cut.txt", lambda path: path.write_bytes(b"\xff\xfea\x00b"), "is not valid UTF-16."),
    ("no-rows.csv", text("question,answer,contexts\n"), "has names of columns and no rows."),
    ("unknown.csv", text("Set\na,b\n1,2\n"), "Export the data again"),
]


@each_row("name, write, message", REFUSED)
def test_what_is_refused(command, tmp_path, name, write, message):
    write(tmp_path / name)
    code, out, err = command("import", "auto", tmp_path / name, *AS_GOLD)
    assert (code, out) == (2, "")
    assert message in err.replace(str(tmp_path / name), "FILE")


def test_a_sheet_by_name(command, tmp_path):
    workbook(("HR", GOLD), ("IT", [GOLD[0], GOLD[2]]))(tmp_path / "two.xlsx")
    code, out, err = command("import", "auto", tmp_path / "two.xlsx", *AS_GOLD, "--sheet", "IT")
    assert (code, [json.loads(line)["qid"] for line in out.splitlines()]) == (0, ["A2"])
    assert "left out: other sheets: HR" in err
    code, _, err = command("import", "auto", tmp_path / "two.xlsx", "--sheet", "Sales")
    assert code == 2
    assert "has no sheet 'Sales'. Its sheets are HR, IT." in err


def test_nested_values_of_parquet(command, tmp_path):
    spans = {
        "user_input": ["How long?"],
        "response": ["30 days."],
        "retrieved_contexts": [["It takes 30 days.", "It is free."]],
        "score": [float("nan")],
        "created_at": [dt.datetime(2026, 11, 1, 8, tzinfo=dt.UTC)],
    }
    table(**spans)(tmp_path / "ragas.parquet")
    code, out, _ = command("import", "auto", tmp_path / "ragas.parquet")
    row = json.loads(out)
    assert (code, [chunk["text"] for chunk in row["chunks"]]) == (0, spans["retrieved_contexts"][0])
    assert row["ts"] == 1793520000.0


@pytest.mark.parametrize(
    ("name", "package", "extra"), [("a.xlsx", "openpyxl", "excel"), ("a.parquet", "pyarrow", "parquet")]
)
def test_a_missing_package(command, monkeypatch, tmp_path, name, package, extra):
    (workbook(("Gold", GOLD)) if extra == "excel" else table(a=[1]))(tmp_path / name)
    monkeypatch.setitem(sys.modules, package, None)
    code, _, err = command("import", "auto", tmp_path / name)
    assert code == 2
    assert f'pip install "rag-eval-action[{extra}]"' in err
