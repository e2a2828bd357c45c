"""Run the action without Docker: install what it needs into an environment of its own, and start it there.

The composite action of this folder starts this file with ``python -I``. Nothing of the workspace is imported: not here,
not by pip and not by the action, which start with ``-I`` as well and by absolute paths.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
# Earlier steps of the job can set any other variable. Hashes decide what pip installs, whatever proxy it comes through.
_KEPT = ("SYSTEMROOT", "HOME", "USERPROFILE", "LOCALAPPDATA", "TEMP", "TMP", "TMPDIR")
_FOR_PIP = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


def main(environ: Mapping[str, str]) -> int:
    """Install, run and clean up; the exit code is the action's, or 2 if it cannot be installed."""
    if sys.version_info < OLDEST:
        wanted, found = ".".join(map(str, OLDEST)), sys.version.split()[0]
        return _failed(f"'python' is Python {found}; {wanted} or newer is needed. Put actions/setup-python before it.")
    folder = tempfile.mkdtemp(prefix="rag-eval-", dir=environ.get("RUNNER_TEMP") or None)
    upper = {name.upper(): value for name, value in environ.items()}
    inherited = {name: upper[name] for name in _KEPT if name in upper}
    try:
        python = _installed(Path(folder), {**inherited, **{name: upper[name] for name in _FOR_PIP if name in upper}})
        inputs = {f"INPUT_{name.upper()}": value for name, value in json.loads(environ["INPUTS"]).items()}
        runner = {name: value for name, value in environ.items() if name.upper().startswith(("GITHUB_", "RUNNER_"))}
        action = python, "-I", "-B", "-X", "utf8", "-m", "rag_eval.action"
        return subprocess.run(action, env={**inherited, **runner, **inputs}, check=False).returncode
    except (OSError, subprocess.CalledProcessError) as error:
        return _failed(f"rag-eval cannot be installed: {error}. The log above says more.")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _installed(folder: Path, environ: Mapping[str, str]) -> str:
    """Make an environment with the packages of requirements/action.txt and rag-eval itself; return its Python."""
    venv.create(folder, with_pip=True)
    python = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    requirements = "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", ROOT / "requirements/action.txt"
    pip = python, "-I", "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--quiet", *requirements
    subprocess.run(pip, env=environ, check=True)
    ask = python, "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run(ask, env=environ, check=True, capture_output=True, text=True).stdout.strip()
    Path(site, "rag_eval.pth").write_text(f"{ROOT / 'src'}\n", encoding="utf-8")
    return python


def _failed(message: str) -> int:
    print(f"::error title=rag-eval cannot run::{message}")
    return 2


if __name__ == "__main__":
    raise SystemExit(main(os.environ))
