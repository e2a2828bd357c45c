"""The hook's short way looks at every file whose name a gates file could mean."""

from __future__ import annotations

import posixpath

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rag_eval.cli import _may_matter
from seams import InputError, signoff_policy

NAMES = st.text(st.sampled_from("abé -.\"'#:{}\\"), min_size=1, max_size=6).filter(lambda name: name.strip(". "))
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
STYLES = st.sampled_from([None, "'", '"', "|", ">"])


@given(gold=PATHS, records=st.none() | PATHS, style=STYLES, width=st.sampled_from([4, 80]), stated_top=st.booleans())
def test_whatever_a_gates_file_names_is_never_passed_over(gold, records, style, width, stated_top):
    """Gold and records of any name, written in any style of YAML, have to be seen in its text."""
    section = {"records": records} if records else {}
    document = {"gold": gold, "signoff": section} if stated_top else {"signoff": {"gold": gold, **section}}
    text = yaml.dump(document, default_style=style, width=width, allow_unicode=True).encode()
    try:
        policy = signoff_policy(text, "eval-gates.yml")
    except InputError:
        return  # the whole check refuses it
    if b"\\" in text:
        return  # then the whole check is asked
    for path in (policy.gold, posixpath.join(policy.records, "2026-11-21-0a1b2c3d.json")):
        assert _may_matter(path.encode(), text), (path, text)


@pytest.mark.parametrize("path", ["eval/gold.jsonl", "gold.jsonl", "eval/gold.signoff/x.json", "a/eval-gates.yml"])
def test_the_usual_names_matter_without_a_gates_file(path):
    assert _may_matter(path.encode(), b"")


@pytest.mark.parametrize("path", ["notes.txt", "src/system.py", "eval/notes.md"])
def test_other_files_do_not(path):
    assert not _may_matter(path.encode(), b"")
