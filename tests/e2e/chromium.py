"""A browser without a window, spoken to in its own protocol over a pair of pipes: nothing to install beside it."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from e2e.engine import unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 120.0
_FLAGS = (
    *("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-component-update"),
    *("--disable-default-apps", "--mute-audio", "--hide-scrollbars", "--force-color-profile=srgb"),
)
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27}


class Navigated(Exception):
    """The page went to another address before the answer."""


class Chromium:
    """One browser with one page."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back, self._rest, self._number = to, back, b"", 0
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """What the browser answers; what it tells meanwhile goes to the events."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        session = getattr(self, "_session", None)
        os.write(self._to, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            output = self._next()
            if output.get("id") == self._number:
                if "navigated" in output.get("error", {}).get("message", ""):
                    raise Navigated(output["error"]["message"])
                assert "error" not in output, output
                result: dict[str, Any] = output["result"]
                return result
            self.events.append(output)

    def _next(self) -> dict[str, Any]:
        limit = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._back], [], [], max(0.0, limit - time.monotonic()))
            assert ready, "the browser says nothing"
            part = os.read(self._back, 1 << 20)
            assert part, "the browser has ended"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        output: dict[str, Any] = json.loads(message)
        return output

    def open(self, page: Path | str, width: int = 1200, height: int = 900) -> None:
        """Load a file or an address and wait until it is there."""
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def run(self, script: str) -> Any:
        """The value of an expression on the page, of a promise what it comes to."""
        done = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def press(self, key: str) -> None:
        """A key that does something."""
        ours = {"key": key, "code": key, "windowsVirtualKeyCode": _KEYS[key]}
        text = {"text": "\r"} if key == "Enter" else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **ours, **text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **ours)

    def type(self, text: str) -> None:
        """Text, as it is typed into what has the focus."""
        self.ask("Input.insertText", text=text)

    def prefers(self, scheme: str, media: str = "screen") -> None:
        """Light or dark, on screen or on paper."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", media=media, features=features)

    def picture(self, path: Path, *, clip: tuple[int, int, int] | None = None) -> None:
        """What can be seen, or the part of the page that ``clip`` says: its y, width and height, as PNG."""
        part = {"clip": {"x": 0, "scale": 1, **dict(zip(("y", "width", "height"), clip, strict=True))}} if clip else {}
        result = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=bool(clip), **part)
        path.write_bytes(base64.b64decode(result["data"]))

    def requested(self) -> list[str]:
        """The addresses that were asked for since a page was opened."""
        return [event["params"]["request"]["url"] for event in self._told("Network.requestWillBeSent")]

    def complaints(self) -> list[str]:
        """What the console and the log hold since a page was opened."""
        output = [json.dumps(event["params"]) for event in self._told("Runtime.consoleAPICalled")]
        output += [json.dumps(event["params"]) for event in self._told("Runtime.exceptionThrown")]
        return output + [json.dumps(event["params"]["entry"]) for event in self._told("Log.entryAdded")]

    def _told(self, method: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("method") == method]


def program() -> str:
    """The browser of this machine; without one, tests are skipped, in CI they fail."""
    result = next((path for name in NAMES if (path := shutil.which(name))), "")
    if not result:
        unavailable("There is no Chromium. Run tests/e2e/install.sh as root.")
    return result


@contextmanager
def chromium(folder: Path) -> Iterator[Chromium]:
    """A browser that keeps what it writes in ``folder``."""
    # Its pipes are its file descriptors 3 and 4: ours have to be out of the way of them.
    theirs, to, back, ours = (_above(item) for pipe in (os.pipe(), os.pipe()) for item in pipe)
    moved = f'exec "$0" "$@" 3<&{theirs} 4>&{ours}'
    command = ["bash", "-c", moved, program(), *_FLAGS, f"--user-data-dir={folder}", "about:blank"]
    with (folder / "chromium.log").open("wb") as log:
        streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        process = subprocess.Popen(command, pass_fds=(theirs, ours), **streams)
    os.close(theirs)
    os.close(ours)
    try:
        yield Chromium(to, back)
    finally:
        process.terminate()
        process.wait(PATIENCE)
        os.close(to)
        os.close(back)


def _above(descriptor: int) -> int:
    import fcntl

    result = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return result
