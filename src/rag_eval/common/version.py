"""The version of the package, and where it is released."""

from __future__ import annotations

__version__ = "1.0.0"
REPOSITORY = "org/rag-eval-action"
"""Where the action is released, as OWNER/NAME: a release sets it, and all examples are rendered from it."""
