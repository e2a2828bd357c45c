"""Records of sign-off: who approves which changes of a gold set and why.

The text of a record that is signed, hashed and named has fixed lines rebuilt from its fields, so that two spellings of
the same record are one record.
"""

from __future__ import annotations

import hashlib
import json
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from rag_eval.common.json_schema import is_valid
from rag_eval.readers.problems import Contract, load_schema

VERSION = 1
LONGEST_QID = 200
NAMESPACE = "gold-signoff@rag-eval-action"
"""What an SSH signature of a record is for: a signature for anything else, a commit say, signs no record."""

FIELDS = ("dataset", "gold", "signer", "date", "reason")
"""Texts of a record that are one line of the signed text each. The schema has their patterns."""


def is_valid_field(name: str, value: Any) -> bool:
    """Return whether a record may have a value in one of its :data:`FIELDS`."""
    schema = load_schema("signoff")
    return is_valid(schema["properties"][name], value, schema)


_qid = attrgetter("qid")


class HashChange(NamedTuple):
    """One item before and after, by hash; None if it does not exist."""

    qid: str
    before: str | None
    after: str | None

    @property
    def verb(self) -> Literal["added", "changed", "removed"]:
        """Return the kind of change as a participle."""
        return "added" if self.before is None else "removed" if self.after is None else "changed"


class Record(NamedTuple):
    """One sign-off: who approves which changes, when and why. ``sig`` is not part of the signed text."""

    dataset: str
    gold: str
    signer: str
    date: str
    reason: str
    changes: tuple[HashChange, ...]
    mutates: bool = False
    sig: str | None = None

    @classmethod
    def read(cls, value: Any) -> Record | str:
        """Return the record of a parsed file, or the reason why it is none."""
        if faults := Contract("signoff").faults(value):
            where, message, hint, _ = faults[0]
            return " ".join(part for part in (where and f"{where}:", f"{message}.", hint) if part).removesuffix(".")
        changes = tuple(sorted((HashChange(row["qid"], row["from"], row["to"]) for row in value["changes"]), key=_qid))
        if any(change.before == change.after for change in changes):
            return "a change is not from one hash to another one"
        if len({change.qid for change in changes}) < len(changes):
            return "a qid occurs twice in its changes"
        named = {name: value[name] for name in FIELDS}
        return cls(**named, changes=changes, mutates=value.get("mutates", False), sig=value.get("sig"))

    @property
    def text(self) -> str:
        """Return the signed text: fixed lines built from the fields, so that the format of the file does not matter."""
        lines = [f"rag-eval gold sign-off v{VERSION}", f"dataset: {self.dataset}", f"gold: {self.gold}"]
        lines += [f"signer: {self.signer}", f"date: {self.date}", f"reason: {json.dumps(self.reason)}"]
        # Only if set: the hash must cover the flag, and a record without it has no such line.
        lines += ["mutates: true"] if self.mutates else []
        lines += [f"change: {json.dumps(qid)} {a or '-'} -> {b or '-'}" for qid, a, b in sorted(self.changes, key=_qid)]
        return "".join(f"{line}\n" for line in lines)

    @property
    def name(self) -> str:
        """Return the name of its file: the day, and the first eight digits of the sha256 of the text."""
        return f"{self.date[:10]}-{hashlib.sha256(self.text.encode()).hexdigest()[:8]}.json"

    @property
    def file(self) -> str:
        """Return the content of its file: JSON with a line for each change, for people to read in a review."""
        head = {"v": VERSION, **{name: getattr(self, name) for name in FIELDS}}
        head |= {"mutates": True} if self.mutates else {}
        rows = [{"qid": qid, "from": a, "to": b} for qid, a, b in sorted(self.changes, key=_qid)]
        lines = [f"{_json(name)}: {_json(value)}" for name, value in head.items()]
        lines += ['"changes": [\n    ' + ",\n    ".join(map(_json, rows)) + "\n  ]"]
        lines += [f'"sig": {_json(self.sig)}'] if self.sig is not None else []
        return "{\n  " + ",\n  ".join(lines) + "\n}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
