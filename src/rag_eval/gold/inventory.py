"""The inventory of a gold set: its counts, and the manifest of a release, which says whether it changed since.

A manifest hashes items as sign-off does. It has no date and no author: the same gold and the same records give the same
bytes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_eval.common.escaping import quoted
from rag_eval.contract import Gold
from rag_eval.gates.questions import slices_of
from rag_eval.gold.signoff import Side, records_of_gold, unsigned
from rag_eval.gold.signoff_identity import SignoffPolicy

Row = dict[str, Any]

VERSION = 1
TAG = r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_-])){0,63}"
"""A tag is a file's name: it begins with a letter or digit, does not end with a dot, and has no two dots in a row."""
_FIELDS = ("category", "difficulty", "query_type", "multi_hop", "tags")


def counts_of(entries: Sequence[tuple[Gold, Row]]) -> dict[str, Any]:
    """Return the counts of a gold set, ready for JSON.

    ``items``, ``answerable``, ``unanswerable`` (both without safety cases) and ``attacks`` are numbers. ``slices`` has
    the number of items and of answerable ones by field and value, largest first. ``fields`` is the number of items with
    each field.
    """
    golds = [gold for gold, _ in entries]
    counted = [gold for gold in golds if gold.attack is None]
    answerable = sum(gold.answerable for gold in counted)
    return {
        "items": len(golds),
        "answerable": answerable,
        "unanswerable": len(counted) - answerable,
        "attacks": len(golds) - len(counted),
        "slices": _slices(golds),
        "fields": _ranked(Counter(name for _, row in entries for name in row)),
    }


def _slices(golds: Sequence[Gold]) -> dict[str, dict[str, dict[str, int]]]:
    meta = sorted({f"meta.{name}" for gold in golds for name in gold.meta or ()})
    slices = {}
    for field in (*_FIELDS, *meta):
        items, answerable = Counter[str](), Counter[str]()
        for gold in golds:
            items.update(parts := slices_of(gold, (field,)))
            answerable.update(parts if gold.answerable else ())
        ranked = _ranked(items).items()
        slices[field] = {part.partition("=")[2]: {"items": n, "answerable": answerable[part]} for part, n in ranked}
    return {field: values for field, values in slices.items() if values}


def _ranked(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def freeze(tag: str, sha256: str, head: Side, policy: SignoffPolicy) -> tuple[dict[str, Any], list[str]]:
    """Return the manifest of a gold set, and the items that no record signs in their current form.

    ``sha256`` is the hex digest of its file as it is stored.
    """
    missing = [change.qid for change in unsigned(head, policy)]
    answerable = sum(item.answerable for item in head.items.values())
    hashes = {qid: head.items[qid].hash for qid in sorted(head.items)}
    records = sorted(records_of_gold(head.records, policy).items())
    manifest = {
        "v": VERSION,
        "tag": tag,
        "dataset": policy.dataset,
        "gold": policy.gold,
        "sha256": sha256,
        "digest": digest(hashes.values()),
        "counts": {"items": len(hashes), "answerable": answerable, "unanswerable": len(hashes) - answerable},
        "signed": f"{len(hashes) - len(missing)} of {len(hashes)}",
        "records": [
            {"name": record.name, "sha256": hashlib.sha256(record.text.encode()).hexdigest()} for _, record in records
        ],
        "items": hashes,
    }
    return manifest, sorted(missing)


def digest(hashes: Iterable[str]) -> str:
    """Return one hash of all items in any order: the sha256 of their sorted hashes, each with a line feed."""
    lines = "".join(f"{item}\n" for item in sorted(hashes))
    return f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"


def manifest_fault(manifest: Mapping[str, Any], tag: str) -> str:
    """Describe the fault of a manifest that is valid under its schema, empty if it has none."""
    if manifest["tag"] != tag:
        return f"is the manifest of another tag, {quoted(manifest['tag'])}"
    if manifest["digest"] != digest(manifest["items"].values()):
        return "was edited: its digest does not match its items"
    return ""
