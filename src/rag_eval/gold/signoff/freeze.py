"""Release manifests of a gold set: its state under a tag, and whether it changed since.

Items are hashed as sign-off hashes them. A manifest has no date and no author: the same gold and the same records give
the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from rag_eval.common.escaping import quoted
from rag_eval.gold.signoff.checking import Side, SignoffPolicy, counting, unsigned

VERSION = 1
TAG = r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_-])){0,63}"
"""A tag is a file's name: it begins with a letter or digit, and no dot stands at its end or beside another."""


def freeze(tag: str, sha256: str, head: Side, policy: SignoffPolicy) -> tuple[dict[str, Any], list[str]]:
    """Return the manifest of a gold set, and the items that no record signs in their current form.

    ``sha256`` is the hex digest of its file as it is stored.
    """
    missing = [change.qid for change in unsigned(head, policy)]
    answerable = sum(item.answerable for item in head.items.values())
    hashes = {qid: head.items[qid].hash for qid in sorted(head.items)}
    records = sorted(counting(head.records, policy).items())
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


def text(manifest: Mapping[str, Any]) -> str:
    """Return the content of a manifest's file."""
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


def fault(manifest: Mapping[str, Any], tag: str) -> str:
    """Describe the fault of a manifest that is valid under its schema, empty if it has none."""
    if manifest["tag"] != tag:
        return f"is the manifest of another tag, {quoted(manifest['tag'])}"
    if manifest["digest"] != digest(manifest["items"].values()):
        return "was edited: its digest does not match its items"
    return ""
