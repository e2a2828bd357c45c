"""Add schemas, README, CONTRIBUTING, SECURITY and CHANGELOG to the docs site, and link other files to the repository.

MkDocs loads this module as a hook (mkdocs.yml). On GitHub the same pages work as they are.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

from rag_eval import REPOSITORY

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
_TABS = re.compile(r"^<!-- tabs -->\n(.*?)^<!-- /tabs -->$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\(|<img src=\"|<a href=\")(?![a-z]+:|#)([^)\"#\s]+)")


# Before mike, which adds the version to the address.
@event_priority(100)  # type: ignore[untyped-decorator]
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name the site and the repository after the one that releases, and leave out the version selector without mike."""
    owner, name = REPOSITORY.split("/")
    config.site_url = f"https://{owner}.github.io/{name}/"
    config.extra["social"] = [{"icon": "fontawesome/brands/github", "link": f"https://github.com/{REPOSITORY}"}]
    if "MIKE_DOCS_VERSION" not in os.environ:  # one version: a selector would ask for ../versions.json
        del config.extra["version"]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the repository's root, and the schemas where their ``$id`` says."""
    for source, target in _PAGES.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text(encoding="utf-8")))
    for schema in sorted((ROOT / "schemas").glob("*.json")):
        files.append(File.generated(config, f"schemas/v1/{schema.name}", content=schema.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Let every relative link lead to a page of the site or to a file on GitHub."""
    if page.is_homepage and page.canonical_url:
        page.canonical_url = page.canonical_url.removesuffix("index.html")  # the version selector reads sitemap.xml
    if page.file.src_uri.startswith("metrics/"):
        page.meta["search"] = {"boost": 2}  # a metric's definition before pages that mention it
    sources = {target: source for source, target in _PAGES.items()}
    path = sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    linked = _LINK.sub(lambda link: link[1] + link_target(path, link[2]), markdown)
    return _TABS.sub(lambda part: tabs(part[1]), linked)


def tabs(markdown: str) -> str:
    """Turn sections with headings of level 3 into tabs; on GitHub they stay sections."""
    _, *sections = re.split(r"^### ", markdown, flags=re.MULTILINE)
    pairs = [section.partition("\n") for section in sections]
    return "".join(f'=== "{name}"\n\n{indent(body.strip(), " " * 4)}\n\n' for name, _, body in pairs)


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Load the script for searching in local files from the site, and name what the theme leaves without a name."""
    changes = {
        "https://unpkg.com/iframe-worker/shim": "../" * page.url.count("/") + "js/worker.js",
        'data-md-component="search" role="dialog"': 'data-md-component="search" role="dialog" aria-label="Search"',
    }
    for before, after in changes.items():
        output = output.replace(before, after)
    return output


def link_target(page: str, link: str) -> str:
    """Return where a link of a page leads on the site; paths are relative to the repository's root."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    site = _PAGES.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else "")
    if not site:
        kind = "tree" if (ROOT / target).is_dir() else "blob"
        return f"https://github.com/{REPOSITORY}/{kind}/main/{target}"
    folder = posixpath.dirname(page.removeprefix("docs/")) if page.startswith("docs/") else ""
    return posixpath.relpath(site, folder or ".")
