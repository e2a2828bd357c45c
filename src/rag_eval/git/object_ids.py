"""The ids of git's objects. A module of its own: hooks are to load no hashing for them, posting no processes."""

from __future__ import annotations

import re

_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")  # by SHA-1 or by SHA-256


def is_object_id(text: str) -> bool:
    """Whether ``text`` is the full id of an object, as git writes it."""
    return _ID.fullmatch(text) is not None
