"""Where the files stand that ship with the package: in a wheel beside the code, in a checkout beside ``src``."""

from __future__ import annotations

import os

_PACKAGE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib costs start-up time
_CHECKOUT = os.path.dirname(os.path.dirname(_PACKAGE))  # noqa: PTH120


def shipped(folder: str, name: str) -> str:
    """The path of ``name`` in ``schemas`` or ``examples``, wherever this installation keeps it."""
    inside = os.path.join(_PACKAGE, f"_{folder}", name)  # noqa: PTH118
    return inside if os.path.exists(inside) else os.path.join(_CHECKOUT, folder, name)  # noqa: PTH110, PTH118
