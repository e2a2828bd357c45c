"""What cannot be read at all."""

from __future__ import annotations


class Unreadable(Exception):
    """A file that cannot be read at all: message and hint, without the file's name."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint
