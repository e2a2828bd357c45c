"""Count the words of README and docs, and find sentences that are hard to read.

    python tools/prose.py [--check] [--list] [FILE ...]

A sentence is stilted if a pattern of tools/prose.toml matches it. Code, headings and link targets are left out. A cell
of a table and an item of a list are sentences of their own. --list prints the sentences, --check fails above a limit.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
RULES = tomllib.loads((ROOT / "tools" / "prose.toml").read_text("utf-8"))
LIMITS = RULES["limits"]
PATTERNS = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {**RULES["stilted"], **RULES["stilted"]["terms"]}.items()
    if isinstance(pattern, str)
}
_NOT_PROSE = re.compile(r"^ *(```|~~~).*?^ *\1$|^---\n.*?^---$|<!--.*?-->|<[^>\n]+>", re.MULTILINE | re.DOTALL)
_GENERATED = re.compile(r"<!-- (?:measured|[\w -]+: generated)\b.*?<!-- (?:end|/[\w -]+) -->", re.DOTALL)
_FENCED = re.compile(r"^ *(```|~~~).*?^ *\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\](?:\([^)]*\)|\[[^\]]*\])")
_CODE = re.compile(r"``.+?``|`[^`\n]*(?:\n[^`\n]+)?`")
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.)\s)|\n(?=\|)|\n(?=#)|\n(?===+ )|\n(?=!!!|\?\?\?)")
_END = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=[\"'(*_]*[A-Z`0-9])")
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|vs|etc|al|approx|No)\.(?=\s)")


class Finding(NamedTuple):
    """A sentence and the patterns that match it."""

    sentence: str
    names: list[str]

    @property
    def is_long(self) -> bool:
        """Return whether the sentence has more words than a reader follows at once."""
        return len(self.sentence.split()) > int(LIMITS["long_words"])


class Count(NamedTuple):
    """The words of a text without code and generated blocks, and its sentences with those of generated blocks.

    A word has a letter or a digit, so the bars of a table are not counted.
    """

    words: int
    sentences: list[Finding]

    @property
    def stilted(self) -> list[Finding]:
        """Return the sentences that a pattern matches."""
        return [one for one in self.sentences if one.names]

    @property
    def long(self) -> list[Finding]:
        """Return the sentences with too many words."""
        return [one for one in self.sentences if one.is_long]


def count(text: str) -> Count:
    """Count a Markdown text."""
    words = [word for word in _FENCED.sub("", _GENERATED.sub("", text)).split() if any(map(str.isalnum, word))]
    return Count(len(words), [Finding(one, matching(one)) for one in sentences(text)])


def matching(sentence: str) -> list[str]:
    """Return the names of the patterns that match a sentence."""
    return [name for name, pattern in PATTERNS.items() if pattern.search(sentence)]


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a Markdown text that have at least four words; code becomes a placeholder."""
    text = _NOT_PROSE.sub(" ", text.replace("\r\n", "\n"))
    for block in _BLOCK.split(text):
        plain = block.strip()
        if not plain or plain.startswith("#") or re.fullmatch(r"[|:\- ]+", plain):
            continue
        plain = _ABBREVIATION.sub(r"\1", _LINK.sub(r"\1", _CODE.sub("X", plain)))
        for cell in plain.strip("|").split(" | ") if plain.startswith("|") else [plain]:
            line = " ".join(re.sub(r"^\s*(?:[-*+>]|\d+\.)\s+", "", cell).replace("**", "").split())
            yield from (one for one in _END.split(line) if len(one.split()) >= 4)


def pages(*kinds: str) -> list[Path]:
    """Return the pages of some kinds of prose.toml, in order."""
    return sorted({path for kind in kinds for pattern in RULES["pages"][kind] for path in ROOT.glob(pattern)})


def problems(words: int, every: Count, where: str) -> list[str]:
    """Return the limits that a group of pages exceeds."""
    shares = {"stilted": len(every.stilted), "long": len(every.long)}
    above = [
        f"{number} of {len(every.sentences)} sentences in {where} are {kind}; the limit is {LIMITS[kind]:.0%}."
        " Run: python tools/prose.py --list"
        for kind, number in shares.items()
        if number > LIMITS[kind] * len(every.sentences)
    ]
    if words > LIMITS["words"]:
        above.append(f"README and docs have {words:,} words; the limit is {LIMITS['words']:,}")
    return above


def main() -> int:
    """Print a row for each page; with ``--check``, exit with 1 above a limit."""
    parser = argparse.ArgumentParser(description="Count words and stilted sentences.")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="Markdown files (default: README and docs)")
    parser.add_argument("--check", action="store_true", help="exit with 1 above a limit")
    parser.add_argument("--list", action="store_true", help="print the stilted and the long sentences")
    options = parser.parse_args()
    generated = set(pages("generated"))
    written = [path for path in options.files or pages("counted", "read") if path not in generated]
    groups = {"written pages": written, "generated pages": [] if options.files else sorted(generated)}
    budget, above = set(pages("counted")), []
    for where, paths in groups.items():
        counts = {path: count(path.read_text("utf-8")) for path in paths}
        if not options.check:
            show(counts, listed=options.list)
        every = Count(
            sum(page.words for page in counts.values()), [one for page in counts.values() for one in page.sentences]
        )
        total, limit = len(every.sentences) or 1, LIMITS["long_words"]
        print(
            f"{where}: {every.words:,} words; of {len(every.sentences):,} sentences {len(every.stilted) / total:.1%}"
            f" are stilted, {len(every.long) / total:.1%} have over {limit} words"
        )
        words = sum(page.words for path, page in counts.items() if path in budget - generated)
        above += problems(words, every, where) if options.check else []
    for line in above:
        print(line)
    return 1 if above else 0


def show(counts: dict[Path, Count], *, listed: bool) -> None:
    """Print a row for each page, and its stilted and long sentences if they are ``listed``."""
    for path, page in counts.items():
        shares = f"{len(page.stilted):3}/{len(page.sentences):3} stilted {len(page.long):3} long"
        print(f"{page.words:6} words {shares}  {path}")
        for one in page.sentences if listed else ():
            if one.names or one.is_long:
                print(f"    {', '.join(one.names) or 'long'}: {one.sentence}")


if __name__ == "__main__":
    raise SystemExit(main())
