"""The published JSON Schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rag_eval.common.paths import shipped


def load(name: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Return the schema ``schemas/NAME.schema.json``."""
    text = Path(shipped("schemas", f"{name}.schema.json")).read_bytes()
    schema: dict[str, Any] = json.loads(text, parse_float=parse_float)
    return schema
