"""The command ``rag-eval comment``."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from rag_eval.cli._shared import print_lines, print_notes
from rag_eval.cli.parser import Parser
from rag_eval.errors import PASSED, UsageError
from rag_eval.github.api import GitHub, Network
from rag_eval.github.posting import MODES, ReportOrigin, publish, read


def add_arguments(parser: Parser) -> None:
    parser.add_argument("report", metavar="REPORT", help="a report.json of rag-eval score or of the action")
    parser.add_option("--head", "SHA", "last commit of the pull request (default: from the event)")
    name = "name of the comment, if a pull request has several, one for each system (default: rag-eval)"
    parser.add_option("--comment-id", "ID", name, default="rag-eval")
    when = "always (default), on-change (only if the text differs) or on-failure (a new one only if a gate fails,"
    when += " or the change loosens gates or edits the gold set)"
    parser.add_argument("--mode", choices=[mode for mode in MODES if mode != "off"], default="always", help=when)
    parser.add_quiet()


def run(args: argparse.Namespace) -> int:
    """Post a finished report.json as the comment of its pull request, in the second workflow for forks.

    The report may come from a stranger: it is read within limits, judged again and rendered here. GitHub tells which
    pull request it belongs to, by the last commit of the finished run. The environment names GitHub: GITHUB_TOKEN,
    GITHUB_REPOSITORY, GITHUB_EVENT_PATH and GITHUB_API_URL, as GitHub Actions sets them.

    Examples:
      rag-eval comment rag-eval-report/report.json
      rag-eval comment report.json --head 0123456789abcdef0123456789abcdef01234567 --comment-id nightly
    """
    token = os.environ.get("GITHUB_TOKEN", "")
    if not token:
        raise UsageError("GITHUB_TOKEN is not set. Set it to a token with `pull-requests: write`.")
    address = os.environ.get("GITHUB_API_URL") or "https://api.github.com"
    network = Network.from_environ(os.environ, address)
    api = GitHub(address, token, os.environ.get("GITHUB_REPOSITORY", ""), network)
    fix = "Name the last commit of the pull request with --head."
    server = os.environ.get("GITHUB_SERVER_URL", "")
    origin = ReportOrigin(args.head) if args.head else ReportOrigin.of_event(_event(), fix, server, api.repository)
    posted = publish(api, origin, read(args.report), args.comment_id, args.mode)
    print_notes(posted, quiet=args.quiet)
    if posted.url:
        print_lines(posted.url)
    return PASSED


def _event() -> dict[str, object]:
    path = os.environ.get("GITHUB_EVENT_PATH", "")
    try:
        event = json.loads(Path(path).read_bytes()) if path else {}
    except (OSError, ValueError):
        event = {}
    return event if isinstance(event, dict) else {}
