"""Cuts GitHub's description of its REST API down to the paths that rag-eval uses: Prism loads that in seconds.

usage: python trim_openapi.py IN.json OUT.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PATHS = (
    "/user",
    "/repos/{owner}/{repo}",
    "/repos/{owner}/{repo}/check-runs",
    "/repos/{owner}/{repo}/check-runs/{check_run_id}",
    "/repos/{owner}/{repo}/commits",
    "/repos/{owner}/{repo}/commits/{ref}/check-runs",
    "/repos/{owner}/{repo}/commits/{ref}",
    "/repos/{owner}/{repo}/compare/{basehead}",
    "/repos/{owner}/{repo}/git/blobs/{file_sha}",
    "/repos/{owner}/{repo}/git/commits/{commit_sha}",
    "/repos/{owner}/{repo}/git/trees/{tree_sha}",
    "/repos/{owner}/{repo}/issues/{issue_number}/comments",
    "/repos/{owner}/{repo}/issues/comments/{comment_id}",
    "/repos/{owner}/{repo}/pulls",
    "/repos/{owner}/{repo}/pulls/{pull_number}",
    "/repos/{owner}/{repo}/pulls/{pull_number}/commits",
    "/repos/{owner}/{repo}/pulls/{pull_number}/reviews",
)


def references(node: object) -> Iterator[str]:
    """Every ``$ref`` below ``node``."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def trimmed(whole: dict[str, Any]) -> dict[str, Any]:
    """``whole`` with ``PATHS`` only, and the components that these reach. Raises KeyError for a path it lacks."""
    paths = {path: whole["paths"][path] for path in PATHS}
    # GitHub documents raw files, but its description leaves them out.
    contents = paths["/repos/{owner}/{repo}/git/blobs/{file_sha}"]["get"]["responses"]["200"]["content"]
    contents["application/vnd.github.raw"] = {"schema": {"type": "string"}}
    components: dict[str, dict[str, Any]] = {}
    waiting = list(references(paths))
    while waiting:
        kind, name = waiting.pop().removeprefix("#/components/").split("/")
        if name not in components.setdefault(kind, {}):
            components[kind][name] = whole["components"][kind][name]
            waiting += references(components[kind][name])
    head = {key: whole[key] for key in ("openapi", "info")}
    return {**head, "servers": [{"url": "/"}], "paths": paths, "components": components}


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.write_text(json.dumps(trimmed(json.loads(source.read_text(encoding="utf-8")))), encoding="utf-8")
