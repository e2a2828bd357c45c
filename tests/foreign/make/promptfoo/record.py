"""Keep what promptfoo wrote (results.json and results.jsonl in the current folder) among the tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import system

for name, kind, args in (
    ("real-promptfoo-json", "json", "promptfoo-trace results.json --citations numbers"),
    ("real-promptfoo-jsonl", "jsonl", "promptfoo-trace results.jsonl --citations numbers"),
    ("real-promptfoo-gold", "json", "promptfoo results.json"),
):
    system.write(system.folder(name, args) / f"results.{kind}", Path(f"results.{kind}").read_text("utf-8"))
