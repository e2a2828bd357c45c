"""Values as the text of JSON and of CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
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


def csv_text(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return CSV by RFC 4180 with line feeds; untrusted texts in ``rows`` are escaped already."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows(rows)
    return out.getvalue()
