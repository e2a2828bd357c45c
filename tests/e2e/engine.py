"""Containers without a registry: podman under settings that work in a confined machine, and the base image."""

from __future__ import annotations

import os
import re
import resource
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TOOLS = ROOT / ".e2e"
_INSTALL = f"Run {(HERE / 'install.sh').relative_to(ROOT)} as root."
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}")


def unavailable(why: str) -> None:
    """Skip the test and say why; where ``CI`` is ``true``, fail it: there, a test that did not run is a defect."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{why} With CI=true this is a failure.", pytrace=False)
    pytest.skip(why)


def search_path() -> str:
    """``PATH`` with the folders of ``install.sh`` in front."""
    return os.pathsep.join([str(TOOLS / "python/bin"), str(TOOLS / "node_modules/.bin"), os.environ["PATH"]])


def tool(name: str) -> str:
    """The path of a program from ``install.sh`` or from ``PATH``."""
    result = shutil.which(name, path=search_path())
    if result is None:
        unavailable(f"{name} is not installed. {_INSTALL}")
    return str(result)


def installed(path: str) -> Path:
    """A file of an npm package from ``install.sh``."""
    result = TOOLS / "node_modules" / path
    if not result.exists():
        unavailable(f"{path} is not installed. {_INSTALL}")
    return result


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path, seconds: float = 60) -> None:
    """Return once someone listens on ``port``; fail when ``process`` ends first, with what it logged."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"{process.args} does not listen:\n{log.read_text(encoding='utf-8')}", pytrace=False)


@contextmanager
def background(
    command: list[str], log: Path, environ: Mapping[str, str] = MappingProxyType({})
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that runs as long as the block does."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env={**os.environ, "PATH": search_path(), **environ}
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


def without_digests(context: Path) -> str:
    """The text of the Dockerfile in ``context``, its bases named by tag only: a digest needs a registry to resolve."""
    return _DIGEST.sub("", (context / "Dockerfile").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Engine:
    """podman with the settings of one folder."""

    podman: str
    environ: Mapping[str, str]

    def run(self, *arguments: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        command = [self.podman, *arguments]
        return subprocess.run(command, env=dict(self.environ), capture_output=True, text=True, timeout=timeout)

    def must(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, f"podman {arguments[0]} failed:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def build(self, context: Path, tag: str) -> str:
        """Build the Dockerfile in ``context``, whose base must be there under its tag."""
        copy = context.parent / f"{context.name}.Dockerfile"
        copy.write_text(without_digests(context), encoding="utf-8")
        self.must("build", "--pull=never", "--quiet", "--tag", tag, "--file", str(copy), str(context))
        # The tag has moved on from the last build's image; only ours carry this label.
        self.must("image", "prune", "--force", "--filter", "label=org.opencontainers.image.title=rag-eval-action")
        return tag

    @contextmanager
    def service(self, folder: Path) -> Iterator[str]:
        """podman behind the Docker API: the address of its socket."""
        path = folder / "podman.sock"
        command = [self.podman, "system", "service", "--time", "0", f"unix://{path}"]
        with background(command, folder / "podman.log", self.environ):
            end = time.monotonic() + 30
            while not path.exists():
                assert time.monotonic() < end, (folder / "podman.log").read_text(encoding="utf-8")
                time.sleep(0.05)
            yield f"unix://{path}"


def settings(folder: Path) -> Path:
    """The settings: the host's network, since bridges need rights; limits within ours, since none may be raised."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    path = folder / "containers.conf"
    path.write_text(
        f"""[containers]
default_ulimits = ["nofile={files}:{files}", "nproc=4096:4096"]
netns = "host"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
exit_command_delay = 1
""",
        encoding="utf-8",
    )
    return path


def start(folder: Path) -> Engine:
    """An engine that can run containers here and now; skips or fails where there is none."""
    if os.geteuid() != 0:
        unavailable("Only root can give files to another user as the runner does.")
    podman = tool("podman")
    tool("runc")
    return Engine(podman, {**os.environ, "CONTAINERS_CONF": str(settings(folder))})


def base_image(engine: Engine, name: str = "python:3.12-slim") -> str:
    """The base image: the real one where it has been pulled, a stand-in of this machine's parts otherwise."""
    full = f"docker.io/library/{name}"
    if engine.run("image", "exists", full).returncode != 0:
        tool("mmdebstrap")
        command = [str(HERE / "stand-in-base.sh"), name]
        done = subprocess.run(command, env=dict(engine.environ), capture_output=True, text=True, timeout=900)
        if done.returncode != 0:
            unavailable(f"No stand-in for {name} could be made: {done.stderr.strip()[-2000:]}")
    return full
