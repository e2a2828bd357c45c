"""Every finding has a code, and docs/findings.md says of every code what it means and how grave it is."""

from __future__ import annotations

import ast
import re

from cases import ROOT
from rag_eval.gates import LEVELS, WHOLE_RUN_CHECKS
from table import each_row

SOURCES = sorted((ROOT / "src" / "rag_eval").rglob("*.py"))
CODE = re.compile("[a-z]+(-[a-z]+)+")
ROW = re.compile(r"^\| (`[a-z`, -]+`) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
PAGE = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
SHOWN = {code: (level, text) for codes, level, text in ROW.findall(PAGE) for code in re.findall("`([^`]+)`", codes)}
OF_SSH = {"cert-authority", "ssh-keygen", "ssh-rsa", "valid-after", "valid-before"}
SCHEMAS = {path.name.partition(".")[0] for path in ROOT.glob("schemas/*.json")}
LINT = re.findall("`([a-z-]+)`", (ROOT / "docs" / "gold.md").read_text(encoding="utf-8"))


def called(tree):
    """Code and level of each finding that is made where both are written; None for a level that is worked out."""
    for node in ast.walk(tree):
        name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
        if name == "Finding" and node.args and isinstance(node.args[0], ast.Constant):
            level = node.args[1].value if isinstance(node.args[1], ast.Constant) else None
            yield node.args[0].value, level
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple) and isinstance(node.target, ast.Tuple):
            # Codes in a table of tuples, of which each makes a finding: for code, … in (("gone", …), …)
            inside = [call for call in ast.walk(node) if isinstance(call, ast.Call) and call.args]
            made = {ast.unparse(call.args[0]) for call in inside if getattr(call.func, "id", "") == "Finding"}
            if ast.unparse(node.target.elts[0]) in made:
                yield from ((row.elts[0].value, None) for row in node.iter.elts)


def given(tree):
    """The codes that functions of the sign-off and of the review pass on, to be made findings elsewhere."""
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {
        text for text in texts if text in SHOWN or (CODE.fullmatch(text) and text not in OF_SSH.union(LINT, SCHEMAS))
    }


def written():
    """Every code of the source, with its levels as far as they are written there."""
    result = {}
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        rows = list(called(tree))
        if path.parent.name == "governance" or path.stem.startswith("signoff"):
            rows += [(code, None) for code in given(tree)]
        for code, level in rows:
            result.setdefault(code, set()).add(level)
    return result


WRITTEN = written()


def test_every_code_of_the_source_stands_in_the_table_and_no_other():
    assert SHOWN.keys() == WRITTEN.keys()
    assert {"bootstrap", "mutation", "record-removed", "bad-signature", *LEVELS} <= WRITTEN.keys()


@each_row("code", sorted(WRITTEN))
def test_the_table_says_how_grave_it_is_as_the_source_does(code):
    levels, shown = {LEVELS[code]} if code in LEVELS else WRITTEN[code], SHOWN[code][0]
    assert shown.startswith(tuple(levels - {None}) or ("warning", "error if"))
    assert shown == "warning" or levels != {"warning"}


def test_the_codes_that_integrity_sets_come_first():
    assert list(SHOWN)[: len(LEVELS)] == list(LEVELS)
    assert list(SHOWN)[: len(WHOLE_RUN_CHECKS)] == list(WHOLE_RUN_CHECKS)
