"""Conversion of values to JSON text."""

from __future__ import annotations

import json
from typing import Any

from rag_eval.common.escaping import json_source


def plain(value: Any) -> Any:
    """Return named tuples as objects, other tuples as lists, at all levels."""
    if hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    return [plain(part) for part in value] if isinstance(value, (tuple, list)) else value


def json_text(value: Any, *, allow_nan: bool = True) -> str:
    """Return the JSON text of a value, two spaces for each level."""
    return json_source(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=allow_nan) + "\n")
