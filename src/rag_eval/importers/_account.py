"""The account of a conversion: which fields were renamed, and which were left out and why."""

from __future__ import annotations

from collections import Counter

from rag_eval.common.escaping import one_line

_SHOWN, _TOLD = 80, 200


class Account:
    """Counts rows by field. A field has its name in the source file."""

    def __init__(self) -> None:
        self._renamed: Counter[tuple[str, str]] = Counter()
        self._dropped: Counter[tuple[str, str]] = Counter()
        self._lacking: Counter[str] = Counter()

    def renamed(self, field: str, to: str) -> None:
        """Record that a field of a row is kept under another name, or in another form."""
        if field != to:
            self._renamed[one_line(field, _SHOWN), one_line(to, _TOLD)] += 1

    def dropped(self, field: str, why: str, count: int = 1) -> None:
        """Record that a field of a row is left out."""
        if count:
            self._dropped[one_line(field, _SHOWN) or "a column without a name", why] += count

    def lacking(self, what: str, count: int = 1) -> None:
        """Record something that converted rows lack."""
        if count:
            self._lacking[one_line(what, _TOLD)] += count

    @property
    def left_out(self) -> list[str]:
        """Return a line for each field that is left out, sorted."""
        return [f"left out: {field} ({why}){_times(count)}" for (field, why), count in sorted(self._dropped.items())]

    def lines(self) -> list[str]:
        """Return all of it, a line for each field."""
        renamed = [f"read as {to}: {field}{_times(count)}" for (field, to), count in sorted(self._renamed.items())]
        return renamed + self.left_out + [f"{what}{_times(count)}" for what, count in sorted(self._lacking.items())]


def _times(count: int) -> str:
    return f", {count} times" if count > 1 else ""
