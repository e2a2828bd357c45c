"""Validate every row of two files with only the jsonschema package, and compute nothing.

python jsonschema_only.py SCHEMAS GOLD TRACE
"""

import json
import sys
from pathlib import Path

from jsonschema import Draft202012Validator


def problems(schema, path):
    """Return the number of rows and of their problems."""
    validator = Draft202012Validator(json.loads(schema.read_text("utf-8")))
    rows = found = 0
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                rows += 1
                found += sum(1 for _ in validator.iter_errors(json.loads(line)))
    return rows, found


def main():
    schemas, gold, trace = map(Path, sys.argv[1:])
    golds, wrong = problems(schemas / "gold.schema.json", gold)
    traces, broken = problems(schemas / "trace.schema.json", trace)
    print(json.dumps({"gold rows": golds, "trace rows": traces, "problems": wrong + broken}))


if __name__ == "__main__":
    main()
