"""The docs site, built strictly and opened from its files: it fetches nothing, finds pages and passes axe.

Its versions, as the workflow docs publishes them: main as dev, a release as X.Y and latest.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from cases import ROOT
from e2e.chromium import Navigated, chromium
from e2e.engine import installed
from e2e.test_html_page import AXE, PICTURES

pytest.importorskip("mkdocs")
SEEN = ("index.html", "tutorial.html", "action.html", "commands.html", "api.html", "groundedness.html")
SEARCHES = {
    "faithfulness": "groundedness.html",
    "hit rate": "retrieval.html",
    "regression": "baselines.html",
    "flaky": "compare.html",
    "confidence interval": "statistics.html",
    "hallucination": "glossary.html",
    "langfuse": "coming-from-langfuse.html",
}
FIELD = "document.querySelector('[data-md-component=search-query]')"
JOBS = yaml.safe_load((ROOT / ".github/workflows/docs.yml").read_text("utf-8"))["jobs"]
SITE_NAME = "document.querySelector('.md-header__topic .md-ellipsis')"
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
    links = [link.partition("#")[0].partition("?")[0].rpartition("/")[2] for link in browser.run(RESULTS)]
    assert page in list(dict.fromkeys(links))[:4]


# --- versions --------------------------------------------------------------------------------------------------------


def run_step(job, name, folder, **env):
    """Run a step of the workflow docs in a checkout."""
    script = next(step["run"] for step in JOBS[job]["steps"] if step.get("name") == name)
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "PYTHONPATH": str(folder / "src"), **env}
    subprocess.run(["bash", "-ec", script], cwd=folder, env=env, check=True, capture_output=True)


@pytest.fixture(scope="module")
def published(checkout, tmp_path_factory):
    """The folders that GitHub Pages gets after a push to main, and after the release of 1.2.3."""
    world = tmp_path_factory.mktemp("versions")
    git = partial(subprocess.run, cwd=world, check=True, capture_output=True)
    shutil.copytree(checkout, world / "origin")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for arguments in (("init", "-q", "-b", "main"), ("add", "-A"), (*identity, "commit", "-q", "-m", "all")):
        git(["git", "-C", "origin", *arguments])
    for release in ("", "1.2.3"):
        clone, pages = world / f"clone{release}", world / f"pages{release}" / "rag"
        git(["git", "clone", "-q", "origin", clone])
        (clone / ".venv").mkdir()
        (clone / ".venv/bin").symlink_to(Path(sys.executable).parent)
        for name in ("pyvenv.cfg", ".run", ".docs"):
            (clone / ".venv" / name).touch()
        env = {"RELEASE": release, "GITHUB_REPOSITORY": "octo/rag"}
        run_step("version", "Build the site and commit it to gh-pages", clone, **env)
        git(["git", "-C", clone, "push", "-q", "origin", "gh-pages"])
        git(["git", "clone", "-q", "-b", "gh-pages", "origin", pages])
        run_step("deploy", "Put the schemas and the page for missing pages at the root", pages)
    return world / "pages/rag", world / "pages1.2.3/rag"


def test_main_publishes_dev_and_a_release_its_version(published):
    first, second = (json.loads((folder / "versions.json").read_text("utf-8")) for folder in published)
    assert first == [{"version": "dev", "title": "dev", "aliases": []}]
    assert second == [*first, {"version": "1.2", "title": "1.2", "aliases": ["latest"]}]
    for folder, version in zip((published[0], published[1], published[1]), ("dev", "dev", "1.2"), strict=True):
        page = (folder / version / "tutorial.html").read_text("utf-8")
        assert '<link rel="canonical" href="https://octo.github.io/rag/latest/tutorial.html">' in page


def test_the_root_leads_to_the_latest_version_and_has_the_schemas(published):
    for folder, latest in zip(published, ("dev", "1.2"), strict=True):
        assert (folder / "latest").resolve() == folder / latest
        assert 'url=latest/"' in (folder / "index.html").read_text("utf-8")
        assert "/rag/latest/" in (folder / "404.html").read_text("utf-8")
        schema = json.loads((folder / "schemas/v1/gold.schema.json").read_text("utf-8"))
        assert schema["$id"] == "https://octo.github.io/rag/schemas/v1/gold.schema.json"


@pytest.fixture(scope="module")
def address(published):
    handler = partial(SimpleHTTPRequestHandler, directory=published[1].parent)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/rag/"
        server.shutdown()


def wait_for(browser, script):
    for _ in range(100):
        with suppress(Navigated):
            if result := browser.run(script):
                return result
        time.sleep(0.1)
    raise AssertionError(script)


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_selector_leads_to_the_same_page_of_another_version(browser, address, scheme, width):
    browser.prefers(scheme)
    for page, link, target in (("latest", 0, "dev"), ("dev", 1, "1.2")):
        browser.open(f"{address}{page}/tutorial.html", width=width)
        wait_for(browser, "!!document.querySelector('.md-version')")
        browser.run("document.querySelector('.md-version__current').focus()")
        wait_for(browser, "getComputedStyle(document.querySelector('.md-version__list')).opacity == 1")
        PICTURES.mkdir(parents=True, exist_ok=True)
        browser.picture(PICTURES / f"docs-versions-{page}-{scheme}-{width}.png")
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run(f"(name => name.scrollWidth <= name.clientWidth)({SITE_NAME})")
        browser.run(f"{installed('axe-core/axe.min.js').read_text('utf-8')};0")
        assert browser.run(AXE) == []
        links = "[...document.querySelectorAll('.md-version__link')]"
        assert browser.run(f"{links}.map(link => link.innerText.trim())") == ["dev", "1.2latest"]
        browser.run(f"{links}[{link}].click()")
        assert wait_for(browser, f"location.href.includes('/{target}/') && location.href").endswith("/tutorial.html")


def test_the_root_opens_the_latest_version(browser, address):
    browser.open(address)
    assert wait_for(browser, "location.href.includes('/latest/') && document.title") == "rag-eval"
