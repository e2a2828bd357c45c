"""The docs site, built strictly and opened from its files: it fetches nothing, finds pages and passes axe."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from cases import ROOT
from e2e.chromium import chromium
from e2e.engine import installed
from e2e.test_html_page import AXE, PICTURES

pytest.importorskip("mkdocs")
SEEN = ("index.html", "tutorial.html", "action.html", "commands.html", "api.html")
SEARCHES = {"flaky": "glossary.html", "faithfulness": "glossary.html", "regression": "baselines.html"}
FIELD = "document.querySelector('[data-md-component=search-query]')"
RESULTS = "[...document.querySelectorAll('.md-search-result__link')].map(link => link.getAttribute('href'))"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", SEEN)
def test_a_page_fetches_nothing_and_axe_finds_nothing(browser, site, page, scheme, width):
    browser.prefers(scheme)
    browser.open(site / page, width=width)
    PICTURES.mkdir(parents=True, exist_ok=True)
    browser.picture(PICTURES / f"docs-{Path(page).stem}-{scheme}-{width}.png")
    assert [url for url in browser.requested() if not url.startswith(("file:", "data:", "blob:"))] == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    axe = installed("axe-core/axe.min.js").read_text("utf-8")
    browser.run(f"{axe};0")
    assert browser.run(AXE) == []


@pytest.mark.parametrize(("words", "page"), SEARCHES.items())
def test_a_search_finds_the_page(browser, site, words, page):
    browser.open(site / "index.html")
    browser.run(f"{FIELD}.focus()")
    browser.type(words)
    for _ in range(300):
        # The field listens to keys, and text that is inserted at once presses none.
        browser.run(f"{FIELD}.dispatchEvent(new KeyboardEvent('keyup'))")
        time.sleep(0.1)
        if browser.run(RESULTS):
            break
    assert page in [link.partition("#")[0].partition("?")[0].rpartition("/")[2] for link in browser.run(RESULTS)[:5]]
