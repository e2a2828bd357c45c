"""The inputs of the action, as the runner hands them over: ``INPUT_COMMENT-ID``, empty for not set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rag_eval.cli.commands._shared import cutoffs
from rag_eval.common.escaping import quoted
from rag_eval.errors import UsageError
from rag_eval.github.comment import DEFAULT_COMMENT_ID, UNFIT, fits, of_folder

CHOICES = {
    "comment": ("always", "on-change", "on-failure", "off"),
    "signoff": ("policy", "require", "off"),
    "fail_on": ("error", "warning", "never"),
}
"""What the inputs that are a choice may be."""

_TRUE = {"true": True, "false": False}
_PATHS = ("gold", "trace", "gates", "baseline", "report")


class Inputs(NamedTuple):
    """What the workflow asked for. Paths are relative to the workspace."""

    gold: str = ""
    trace: str = ""
    gates: str = ""
    gates_ref: str = "base"
    baseline: str = ""
    report: str = ""
    signoff: str = "policy"
    k: tuple[int, ...] = ()
    comment: str = "always"
    comment_id: str = DEFAULT_COMMENT_ID
    annotations: bool = True
    summary: bool = True
    report_dir: str = "rag-eval-report"
    fail_on: str = "error"
    github_token: str = ""
    proxy: str = ""
    ca_certificates: str = ""
    working_directory: str = ""

    def __repr__(self) -> str:
        hidden = {name: "***" if getattr(self, name) else "" for name in ("github_token", "proxy")}
        shown = {**self._asdict(), **hidden}
        return f"Inputs({shown})"


def read_inputs(environ: Mapping[str, str]) -> Inputs:
    """The inputs; UsageError names the first one with a value that cannot be."""
    given: dict[str, Any] = {}
    for field in Inputs._fields:
        text = environ.get(variable(field), "").strip()
        if text:
            given[field] = _value(field, text)
    below = given.get("working_directory", "")
    given |= {name: f"{below}/{given[name]}" for name in _PATHS if below and name in given}
    return _told_apart(given)


def legible(environ: Mapping[str, str]) -> Inputs:
    """What can be read of inputs of which one cannot be: enough to say so. Where in doubt about it, no comment."""
    given: dict[str, Any] = {}
    for field in Inputs._fields:
        text = environ.get(variable(field), "").strip()
        try:
            given |= {field: _value(field, text)} if text else {}
        except UsageError:
            given |= {"comment": "off"} if field in ("comment", "comment_id") else {}
    return _told_apart(given)


def _told_apart(given: Mapping[str, Any]) -> Inputs:
    """The inputs, with a comment of its own for each working directory where no other is asked for."""
    return Inputs(**{"comment_id": of_folder(given.get("working_directory", "")), **given})


def variable(field: str) -> str:
    """The environment variable of an input."""
    return f"INPUT_{field.upper().replace('_', '-')}"


def _value(field: str, text: str) -> Any:
    try:
        return _PARSERS.get(field, str)(_utf8(text))
    except ValueError as error:
        name = field.replace("_", "-")
        raise UsageError(f"input '{name}': {quoted(text)} {error}") from None


def _utf8(text: str) -> str:
    if any("\ud800" <= letter <= "\udfff" for letter in text):  # what Python makes of other bytes
        raise ValueError("holds bytes that are not UTF-8")
    return text


def _cutoffs(text: str) -> tuple[int, ...]:
    import argparse

    try:
        return cutoffs(text)
    except argparse.ArgumentTypeError:
        raise ValueError("is no list of whole numbers from 1, such as 5 or 1,3,5") from None


def _boolean(text: str) -> bool:
    if text.lower() not in _TRUE:
        raise ValueError("is neither true nor false")
    return _TRUE[text.lower()]


def _one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"is none of {', '.join(allowed)}")
        return text

    return parse


def _path(text: str) -> str:
    """A path without what leads nowhere: an annotation on ``./eval-gates.yml`` is shown on no line."""
    parts = [part for part in text.split("/") if part not in ("", ".")]
    return ("/" if text.startswith("/") else "") + "/".join(parts) or "."


def _folder(text: str) -> str:
    path = _path(text).strip("/")
    return "" if path == "." else path


def _certificates(text: str) -> str:
    import ssl

    try:
        ssl.create_default_context(cadata=text)
    except (ssl.SSLError, TypeError, ValueError):
        raise ValueError("holds no certificates. Give the text of a PEM file") from None
    return text


def _comment_id(text: str) -> str:
    if not fits(text):
        raise ValueError(UNFIT)
    return text


_PARSERS: dict[str, Callable[[str], Any]] = {
    "k": _cutoffs,
    "comment_id": _comment_id,
    "ca_certificates": _certificates,
    "working_directory": _folder,
    **dict.fromkeys(_PATHS, _path),
    "annotations": _boolean,
    "summary": _boolean,
    **{name: _one_of(*allowed) for name, allowed in CHOICES.items()},
}
