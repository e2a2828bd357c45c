"""The reports of the examples have the recorded bytes, which CI compares on every supported Python."""

from __future__ import annotations

import subprocess
import sys

from cases import ROOT


def test_the_reports_of_all_examples_have_the_recorded_bytes():
    command = [sys.executable, "tools/example_digests.py", "--check"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, ""), result.stdout
