"""``python -m rag_eval.action``: the entry point of the image.

The environment is cleaned before anything else is imported. Earlier steps of the job can set variables, through
GITHUB_ENV, that change what Python, OpenSSL, git and urllib3 do: proxies, certificates, key logs, configuration files,
search paths. The runner sets its own variables and the inputs after those, so nobody else can change them.
"""

import os

_FROM_THE_RUNNER = ("GITHUB_", "INPUT_", "RUNNER_")
_SYSTEM = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
_WINDOWS = r"{0}\System32;{0}\System32\OpenSSH;C:\Program Files\Git\cmd"


def clean() -> None:
    """Keep only the runner's own variables."""
    windows = os.environ.get("SYSTEMROOT", r"C:\Windows") if os.name == "nt" else ""
    for name in list(os.environ):
        if not name.upper().startswith(_FROM_THE_RUNNER):
            del os.environ[name]
    os.environ.update(_SYSTEM)
    if windows:
        temporary = os.environ.get("RUNNER_TEMP", rf"{windows}\Temp")
        os.environ.update(SYSTEMROOT=windows, PATH=_WINDOWS.format(windows), TEMP=temporary, TMP=temporary)


if __name__ == "__main__":
    clean()
    from rag_eval.action.run import main
    from rag_eval.common.guard import guarded

    raise SystemExit(guarded(main))
