"""Gold that `gold check` was not led to: to have looked at nothing is not to have found nothing."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_eval.common.escaping import one_line, quoted
from rag_eval.common.paths import GATES_FILES
from rag_eval.errors import UsageError

if TYPE_CHECKING:
    from rag_eval.gold.signoff.repository import Place


def refuse_elsewhere(names: Sequence[str], golds: Sequence[str], place: Place) -> None:
    """UsageError where none of ``golds`` is in git, and the ``names`` of what is show that others are meant.

    Where there is no gold of any name, there is nothing to check yet.
    """
    refuse_alike(names, golds)
    if place.gold:
        raise UsageError(f"There is no {quoted(golds[0])} in git. Correct the path, or add the file first.")
    gates = sorted(name for name in names if posixpath.basename(name) in GATES_FILES)
    if not place.gates and gates and not any(_above(name, place.prefix) for name in gates):
        more = f" and {len(gates) - 1} more" if gates[1:] else ""
        found = f"There are no gates and no gold here, but {quoted(gates[0])}{more} in folders below"
        raise UsageError(f"{found}. Name it, for each one apart: --gates {one_line(gates[0], 200)}")


def refuse_alike(names: Sequence[str], golds: Sequence[str]) -> None:
    """UsageError where git has one of ``golds`` under another spelling."""
    for gold in golds:
        # `git add -N` lists a file that no commit would hold.
        if alike := [name for name in names if name != gold and _alike(name) == _alike(gold)]:
            found = f"{quoted(gold)} is not in git, and {quoted(alike[0])} is"
            raise UsageError(f"{found}. Write it as git has it, in the gates file too, with forward slashes.")


def _alike(path: str) -> str:
    """A path as those file systems see it that tell no case, no slash or no way to write an umlaut from another."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold()).replace("\\", "/")


def _above(path: str, prefix: str) -> bool:
    folder = posixpath.dirname(path)
    return not folder or prefix.startswith(f"{folder}/")
