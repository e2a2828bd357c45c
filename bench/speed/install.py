"""Install the peers of the dependency group bench one by one, so that the others are installed if one fails.

The table of results gives the reason for the missing figure.
"""

import subprocess
import sys
import tomllib
from pathlib import Path


def main():
    project = Path(__file__).parent.parent.parent / "pyproject.toml"
    for peer in tomllib.loads(project.read_text("utf-8"))["dependency-groups"]["bench"]:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", peer]
        done = subprocess.run(pip, check=False)
        print(f"{peer}: {'not installed' if done.returncode else 'installed'}", flush=True)


if __name__ == "__main__":
    main()
