"""Lines of a file: some at a time as one text, and one that is not read to its end."""

from __future__ import annotations

_SIGNS = bytes(range(0x20, 0x100))


class Lines:
    """Some lines: the number of the first of them, their text without the last line's end, and how many they are.

    ``clean`` says that there is no control character in them, but for the breaks between them.
    """

    __slots__ = ("clean", "count", "first", "text")

    def __init__(self, first: int, text: bytes) -> None:
        self.first, self.text = first, text
        controls = text.translate(None, _SIGNS)  # one pass for both, which is as quick as to count
        self.count = controls.count(b"\n") + 1
        self.clean = len(controls) == self.count - 1

    def each(self) -> list[bytes]:
        """Each of them."""
        return self.text.split(b"\n")


class Begun:
    """A line whose end is not read yet. Its parts are joined once: a long line is not copied block by block."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def __bool__(self) -> bool:
        return self._size > 0

    def add(self, part: bytes, longest: int) -> None:
        """Take the next part; of a line that is too long already, only that is kept."""
        if self._size <= longest:
            self._parts.append(part)
            self._size += len(part)

    def end(self, part: bytes) -> bytes:
        """The whole line, which ends with ``part``."""
        line = b"".join((*self._parts, part))
        self._parts, self._size = [], 0
        return line
