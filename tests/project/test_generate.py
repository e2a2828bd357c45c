"""What is read off METRICS is never stale."""

import subprocess
import sys

from cases import ROOT


def test_generated_files_are_up_to_date():
    check = [sys.executable, ROOT / "tools" / "generate.py", "--check"]
    done = subprocess.run(check, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
