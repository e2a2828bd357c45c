"""Workbooks, Parquet, UTF-16 and CSV of Excel: the rows of each file, and what is refused or named."""

from __future__ import annotations

import datetime as dt
import json
import re
import sys
import zipfile

import openpyxl
import pyarrow as pa
import pytest
from pyarrow import parquet

from table import each_row

GOLD = [["ID", "Question", "Expected answer"], ["A1", "How long?", "30 days"], ["A2", "How much?", "5 EUR"]]
ROWS = [("A1", "How long?", "30 days"), ("A2", "How much?", "5 EUR")]
TITLES = [["Golden set"], [], ["Owner:", "Claims"]]
SHEET, LAST = "xl/worksheets/sheet1.xml", '<c r="C3" t="inlineStr"><is><t>5 EUR</t></is></c>'
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


def changed(*replacements, compression=zipfile.ZIP_DEFLATED):
    """Return a writer of a workbook with the gold set, in whose sheet some texts are replaced."""

    def write(path):
        workbook(("Gold", GOLD))(path)
        with zipfile.ZipFile(path) as archive:
            parts = {name: archive.read(name).decode() for name in archive.namelist()}
        for before, after in replacements:
            assert before in parts[SHEET]
            parts[SHEET] = parts[SHEET].replace(before, after)
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, part in parts.items():
                archive.writestr(name, part)

    return write


def with_password(path):
    """Write a workbook whose parts are marked as encrypted."""
    workbook(("Gold", GOLD))(path)
    data = bytearray(path.read_bytes())
    for begin, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for match in re.finditer(re.escape(begin), bytes(data)):
            data[match.start() + flags] |= 1
    path.write_bytes(data)


def numbers(book):
    for cell, value, form in (
        ("C2", 12.5, "0.00"),
        ("C3", 0.125, "0.0%;-0.0%"),
        ("A2", 7, "000"),
        ("A3", "008", "@"),
    ):
        book.active[cell], book.active[cell].number_format = value, form


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
        "numbers.xlsx",
        workbook(("Gold", [list(row) for row in GOLD]), change=numbers),
        [("7", "How long?", "12.5"), ("008", "How much?", "12.5%")],
        "numbers like 0.00 are read without that format",
    ),
    (
        "empty-text.xlsx",
        changed((LAST, '<c r="C3" t="str"><f>IF(A1="","x","")</f><v></v></c>')),
        [ROWS[0], ("A2", "How much?", None)],
        "",
    ),
    ("carriage-return.xlsx", changed(("30 days", "30_x000D_\ndays")), [("A1", "How long?", "30\ndays"), ROWS[1]], ""),
    (
        "extension.xlsx",
        changed(("</sheetData>", '</sheetData><extLst><ext uri="{CCE6A557-97BC-4B89-ADB6-D9C93CAAB3DF}"/></extLst>')),
        ROWS,
        "",
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
    shown = [(gold["qid"], gold["question"], gold.get("expected_answer")) for gold in golds]
    assert shown == [(qid or shown[index][0], *rest) for index, (qid, *rest) in enumerate(rows)]
    assert named in err
    assert ("left out: " in err) is ("left out: " in named or "above" in named)


def number_as_error(book):
    book.active["C3"] = "#REF!"


TOO_MANY = "has more than 5,000,000 cells in a sheet, with the empty ones."
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
    ("far-row.xlsx", changed(("</sheetData>", '<row r="2000000000"/></sheetData>')), TOO_MANY),
    ("wide.xlsx", changed(("</sheetData>", '<row r="1000"><c r="XFD1000"><v>1</v></c></row></sheetData>')), TOO_MANY),
    ("password.xlsx", with_password, "has a password, or an unusual compression."),
    ("compression.xlsx", changed(compression=zipfile.ZIP_BZIP2), "has a password, or an unusual compression."),
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
