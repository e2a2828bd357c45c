"""Real SSH keys in a temporary folder."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from seams import NAMESPACE

needs_ssh_keygen = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed (Debian: openssh-client)"
)


class Keys:
    """Keys by name, made when they are first asked for."""

    def __init__(self, folder):
        self.folder = folder

    def file(self, name, kind="ed25519"):
        path = self.folder / f"{name}-{kind}"
        if not path.exists():
            command = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", name, "-f", str(path)]
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        return path

    def public(self, name, kind="ed25519"):
        """Type and key, as they stand in an allowed-signers file."""
        return " ".join(self.file(name, kind).with_name(f"{name}-{kind}.pub").read_text().split()[:2])

    def line(self, name, kind="ed25519", options=f'namespaces="{NAMESPACE}"'):
        return f"{name}@example.org {options} {self.public(name, kind)}\n"

    def allowed(self, *names):
        return "".join(map(self.line, names)).encode()
