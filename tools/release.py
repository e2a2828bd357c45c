"""What a release changes in the sources: the action's own name, base and image by digest. It needs nothing but Python.

release.py version 1.2.3            exit 1 unless that is the version of the sources, and the examples agree with it
release.py name OWNER/NAME          name the repository that releases, in the sources and in all examples
release.py base                     print the base image of the Dockerfile
release.py pin-base sha256:…        name the base by this digest as well
release.py pin-image NAME@sha256:…  let action.yml name this image
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
_DIGEST = "sha256:[0-9a-f]{64}"
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_FROM = re.compile(r"^FROM ([a-z0-9./-]+:[a-z0-9.-]+)(?:@\S+)?", re.MULTILINE)
_IMAGE = re.compile(r"^  image: Dockerfile$", re.MULTILINE)


# Where examples name the action: what is before, the name, and what is behind.
_EXAMPLES = (
    re.compile(r"(uses: )(?!actions/|\./)([\w.-]+/[\w.-]+)((?:/python)?@v)[0-9]+(?![0-9.])"),
    re.compile(r"(git\+https://github\.com/)([\w.-]+/[\w.-]+)(@v)[0-9]+(?![0-9.])"),
    re.compile(r"(git\+https://github\.com/)([\w.-]+/[\w.-]+)(@refs/tags/v)[0-9.]+"),
    re.compile(r"(repo: https://github\.com/)([\w.-]+/[\w.-]+)(\n +rev: v)[0-9.]+"),
    re.compile(r"(ghcr\.io/)([\w.-]+/[\w.-]+)(@sha256:)()"),
    re.compile(r"(--repo )([\w.-]+/[\w.-]+)()()"),
    re.compile(r"(git clone https://github\.com/)([\w.-]+/[\w.-]+)()()"),
)
_SITE = re.compile(r"https://[\w-]+\.github\.io/[\w.-]+(?=/schemas/)")
_OWNERS = re.compile(r"@[\w.-]+(/maintainers)\b")
_NAME = re.compile(r'^REPOSITORY = "([^"]+)"$', re.MULTILINE)
_VERSION_FILE = ROOT / "src/rag_eval/__init__.py"


def examples() -> list[Path]:
    """The files that name the action, for people to copy."""
    globs = (
        "README.md",
        "SECURITY.md",
        "docs/*.md",
        "examples/**/*.yml",
        "examples/ci/Jenkinsfile",
        "skills/**/*.md",
        "src/rag_eval/templates/*.y*ml",
        "schemas/*.json",
    )
    return sorted(path for glob in (*globs, ".github/CODEOWNERS") for path in ROOT.glob(glob))


def with_name(text: str, repository: str, version: str) -> str:
    """A text whose examples name this repository, and this version of it."""
    major = version.partition(".")[0]
    for pattern in _EXAMPLES:
        text = pattern.sub(lambda found: _named(found, repository, version, major), text)
    owner, _, name = repository.partition("/")
    text = _SITE.sub(f"https://{owner.lower()}.github.io/{name}", text)
    return _OWNERS.sub(rf"@{owner}\1", text)


def _named(found: re.Match[str], repository: str, version: str, major: str) -> str:
    before, _, behind = found.group(1, 2, 3)
    if before == "ghcr.io/":
        return f"{before}{repository.lower()}{behind}"
    return f"{before}{repository}{behind}" + ({"@v": major, "/python@v": major, "": ""}.get(behind, version))


def stale_examples() -> list[str]:
    """The files whose examples name another repository or version than the sources."""
    text = _VERSION_FILE.read_text(encoding="utf-8")
    name, version = _the_only(_NAME, text), version_of(text)
    texts = {path: path.read_text(encoding="utf-8") for path in examples()}
    return [str(path.relative_to(ROOT)) for path, text in texts.items() if with_name(text, name, version) != text]


def rename(repository: str) -> None:
    """Write a repository's name into the sources and all examples."""
    if not re.fullmatch(r"[A-Za-z0-9-]+/[\w.-]+", repository, re.ASCII):
        raise SystemExit(f"{repository!r} is no repository. Give it as OWNER/NAME.")
    text = _VERSION_FILE.read_text(encoding="utf-8")
    _rewrite(_VERSION_FILE, _NAME.sub(f'REPOSITORY = "{repository}"', text))
    for path in examples():
        _rewrite(path, with_name(path.read_text(encoding="utf-8"), repository, version_of(text)))


def version_of(text: str) -> str:
    """The version that the package names."""
    return _the_only(_VERSION, text)


def base_of(dockerfile: str) -> str:
    """The one image that all stages of a Dockerfile start from."""
    return _the_only(_FROM, dockerfile)


def with_base(dockerfile: str, digest: str) -> str:
    """The Dockerfile with the digest of its base behind each name of it."""
    if not re.fullmatch(_DIGEST, digest):
        raise SystemExit(f"{digest!r} is no digest")
    base_of(dockerfile)
    return _FROM.sub(rf"FROM \1@{digest}", dockerfile)


def with_image(action: str, image: str) -> str:
    """The text of action.yml that runs a published image instead of building one."""
    if not re.fullmatch(rf"[a-z0-9./_-]+@{_DIGEST}", image):
        raise SystemExit(f"{image!r} is no image named by its digest")
    if len(_IMAGE.findall(action)) != 1:
        raise SystemExit("action.yml does not build its image from the Dockerfile")
    return _IMAGE.sub(f"  image: docker://{image}", action)


def _the_only(pattern: re.Pattern[str], text: str) -> str:
    found = sorted(set(pattern.findall(text)))
    if len(found) != 1:
        raise SystemExit(f"expected one of them, found {found}")
    return str(found[0])


def _rewrite(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Do what the first argument says; the exit code."""
    dockerfile, action = ROOT / "Dockerfile", ROOT / "action.yml"
    match arguments:
        case ["version", asked]:
            found = version_of(_VERSION_FILE.read_text(encoding="utf-8"))
            if asked != found or not re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", asked):
                raise SystemExit(f"the sources are version {found}, not {asked}")
            if stale := stale_examples():
                raise SystemExit(f"{', '.join(stale)}: the examples name another version. Run: make generate")
        case ["name", repository]:
            rename(repository)
        case ["base"]:
            print(base_of(dockerfile.read_text(encoding="utf-8")))
        case ["pin-base", digest]:
            _rewrite(dockerfile, with_base(dockerfile.read_text(encoding="utf-8"), digest))
        case ["pin-image", image]:
            _rewrite(action, with_image(action.read_text(encoding="utf-8"), image))
        case _:
            raise SystemExit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
