"""orjson, loaded with Ctrl-C held back: one that comes while it loads ends the process with a crash in place of 130."""

from __future__ import annotations

import signal

_HOLDS = hasattr(signal, "pthread_sigmask")  # not on Windows
_BEFORE = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if _HOLDS else set()
try:
    import orjson as orjson
finally:
    if _HOLDS:
        signal.pthread_sigmask(signal.SIG_SETMASK, _BEFORE)  # what came meanwhile comes now
