"""Values as JSON to print."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def plain(value: Any) -> Any:
    """Named tuples as objects, other tuples as lists, all the way down."""
    if hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    return [plain(part) for part in value] if isinstance(value, (tuple, list)) else value


def json_text(value: Any) -> str:
    """The JSON text of a value, two spaces a level."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    # It can only stand in a string, and means the same there: GitHub's runner would take a printed ##[ for a command.
    return text.replace("##[", "##\\u005b")
