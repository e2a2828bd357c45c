"""How much is read before reading is refused: each a named setting of ``limits:`` in eval-gates.yml."""

from __future__ import annotations

from rag_eval.contract import Limits as Limits

MIB = 1 << 20


DEFAULTS = Limits()
YAML_MIB = 1
DEEPEST = 200  # what limits.depth may be raised to: Python's parser recurses
