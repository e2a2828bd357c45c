"""How much is read before reading is refused: each a named setting of ``limits:`` in eval-gates.yml."""

from __future__ import annotations

from rag_eval.typed import NamedTuple

MIB = 1 << 20


class Limits(NamedTuple):
    """Sizes in MiB unless said otherwise; every limit is inclusive."""

    line_mib: int = 16  # one line of a JSONL file
    depth: int = 64  # nested arrays and objects
    lines: int = 10_000_000  # of one file
    whole_mib: int = 1024  # a file that is read whole, as a JSON array is
    expanded_mib: int = 16_384  # what a compressed file may grow to


DEFAULTS = Limits()
YAML_MIB = 1
DEEPEST = 200  # what limits.depth may be raised to: Python's parser recurses
