"""Text metrics without a model: refusals, grounding and leaks, recognised by words."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def read_table(name: str, package: str = "rag_eval.textual") -> dict[str, Any]:
    """Return the content of a TOML or JSON file in the folder ``data`` of a package."""
    from pkgutil import get_data  # importlib.resources loads three times as much, and few runs need either

    data = (get_data(package, f"data/{name}") or b"").decode("utf-8")
    if name.endswith(".json"):
        import json

        table: dict[str, Any] = json.loads(data)
    else:
        import tomllib

        table = tomllib.loads(data)
    return table
