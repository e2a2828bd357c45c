"""Comments full of hostile strings, as a second parser of Markdown and GitHub's sanitiser leave them on a page."""

from __future__ import annotations

import json
import os
import random
import subprocess

import pytest

from e2e.engine import HERE, TOOLS, installed, tool
from hostile import PIECES, TAGS, replaced
from whole_report import FREE, REPORT, shown

PAGES = 40


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """What is left of the pages."""
    installed("rehype-sanitize")
    folder, rng = tmp_path_factory.mktemp("pages"), random.Random("pages")
    texts = [["".join(rng.choices(PIECES, k=rng.randint(1, 5))) for _ in range(7)] for _ in range(PAGES)]
    texts += [[f"a{piece}b", piece] for piece in PIECES]
    (folder / "in.json").write_text(json.dumps([shown(replaced(REPORT, FREE, text)) for text in texts]), "utf-8")
    command = [tool("node"), str(HERE / "sanitised.mjs"), str(folder / "in.json"), str(folder / "out.json")]
    subprocess.run(command, check=True, env={**os.environ, "NODE_MODULES": str(TOOLS / "node_modules")})
    return json.loads((folder / "out.json").read_text("utf-8"))


def widths(rows):
    """How many cells the rows of each table have: a 0 stands before each table."""
    result = []
    for cells in rows:
        if cells == 0:
            result.append(set())
        else:
            result[-1].add(cells)
    return result


def test_no_tag_is_there_that_is_not_ours(pages):
    assert set().union(*(page["tags"] for page in pages)) <= TAGS


def test_no_link_picture_or_comment_is_there(pages):
    assert [address for page in pages for address in page["addresses"]] == []


def test_tables_keep_their_columns(pages):
    assert {len(width) for page in pages for width in widths(page["rows"])} == {1}


def test_nobody_is_mentioned(pages):
    assert not [word for page in pages for word in page["words"] if "@octocat" in word or "@org" in word]


def test_the_eye_sees(tmp_path):
    """The tests above prove nothing if nothing were found in a page that has it all."""
    installed("rehype-sanitize")
    text = "[a](https://e.test) ![b](https://e.test/b.png) @octocat <kbd>x</kbd>\n\n| a |\n|---|\n| b |\n"
    (tmp_path / "in.json").write_text(json.dumps([text]))
    command = [tool("node"), str(HERE / "sanitised.mjs"), str(tmp_path / "in.json"), str(tmp_path / "out.json")]
    subprocess.run(command, check=True, env={**os.environ, "NODE_MODULES": str(TOOLS / "node_modules")})
    [page] = json.loads((tmp_path / "out.json").read_text())
    assert {"a", "img", "kbd"} <= set(page["tags"])
    assert page["addresses"] == ["https://e.test", "https://e.test/b.png"]
    assert widths(page["rows"]) == [{1}]
    assert any("@octocat" in word for word in page["words"])
