"""Post a finished report.json as the comment of its pull request: the second half of the pair of workflows for forks.

The report may come from a stranger: it is read in bounds, judged again and rendered here. Which pull request it belongs
to is asked of GitHub by the last commit of the run that is over. The environment says where: GITHUB_TOKEN,
GITHUB_REPOSITORY, and GITHUB_EVENT_PATH, GITHUB_API_URL as GitHub Actions sets them.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from rag_eval.cli.commands._shared import remark
from rag_eval.errors import UsageError

if TYPE_CHECKING:
    from rag_eval.github.api import GitHub
    from rag_eval.github.posting import Origin

EXAMPLES = """\
  rag-eval comment rag-eval-report/report.json
  rag-eval comment report.json --head 0123456789abcdef0123456789abcdef01234567 --comment-id nightly
"""
MODES = ("always", "on-change", "on-failure")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("report", metavar="REPORT", help="a report.json of rag-eval score or of the action")
    parser.add_argument("--head", metavar="SHA", default="", help="last commit of the pull request (the event's)")
    parser.add_argument("--comment-id", metavar="ID", default="rag-eval", help="tells several comments apart")
    parser.add_argument("--mode", choices=MODES, default="always", help="when the comment is written (always)")
    parser.add_argument("--quiet", action="store_true", help="no notes on stderr")


def run(args: argparse.Namespace) -> int:
    """Read, judge again and post; 0 wherever the comment says what the report says, whatever that is."""
    from rag_eval.github.posting import publish, read

    server = os.environ.get("GITHUB_SERVER_URL", "")
    posted = publish(_api(), _origin(args.head), read(args.report), args.comment_id, args.mode, server)
    remark([posted], quiet=args.quiet)
    if posted.url:
        print(posted.url)
    return 0


def _api() -> GitHub:
    from rag_eval.github.api import GitHub, Network

    token = os.environ.get("GITHUB_TOKEN", "")
    if not token:
        raise UsageError("GITHUB_TOKEN is not set: commenting needs a token with `pull-requests: write`.")
    address = os.environ.get("GITHUB_API_URL") or "https://api.github.com"
    return GitHub(address, token, os.environ.get("GITHUB_REPOSITORY", ""), Network.from_environ(os.environ, address))


def _origin(head: str) -> Origin:
    from rag_eval.github.posting import Origin

    return Origin(head) if head else Origin.of_event(_event())


def _event() -> dict[str, object]:
    import json
    from pathlib import Path

    path = os.environ.get("GITHUB_EVENT_PATH", "")
    try:
        event = json.loads(Path(path).read_bytes()) if path else {}
    except (OSError, ValueError):
        event = {}
    return event if isinstance(event, dict) else {}
