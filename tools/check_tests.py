"""Check that tests reach the product through tests/seams.py.

    python tools/check_tests.py [--fix]

A name that seams.py offers must be imported from there (--fix rewrites such imports). Another module of `rag_eval` may
be imported only by the tests of that very module, as tests/white_box.toml lists them, and a private name only in
tests/white_box/. An entry that no test needs is an error too, so the list can only shrink.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
PACKAGE = "rag_eval"
PUBLIC = ("rag_eval.trace",)
"""Modules whose names are published too."""


class Imported(NamedTuple):
    """One name that a statement of a file imports from the product."""

    node: ast.ImportFrom | ast.Import
    module: str
    name: str
    alias: str | None


def imports(tree: ast.AST) -> Iterator[Imported]:
    """Everything that a file imports from the product."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
            for one in node.names:
                yield Imported(node, node.module or "", one.name, one.asname)
        elif isinstance(node, ast.Import):
            for one in node.names:
                if one.name.split(".")[0] == PACKAGE:
                    yield Imported(node, one.name, "", one.asname)


def published() -> set[str]:
    """The names that the package publishes."""
    tree = ast.parse((ROOT / "src" / PACKAGE / "__init__.py").read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    raise SystemExit(f"{PACKAGE} has no __all__")


def offered() -> dict[tuple[str, str], str]:
    """The names of the product that seams.py offers: what it calls them, by module and name."""
    tree = ast.parse((TESTS / "seams.py").read_text("utf-8"))
    listed = next(
        node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    names = set(ast.literal_eval(listed.value))
    return {(one.module, one.name): one.alias or one.name for one in imports(tree) if (one.alias or one.name) in names}


def problems_of(path: Path, seams: dict[tuple[str, str], str], allowed: list[str], used: set[str]) -> Iterator[str]:
    """The imports of a file that bypass the seams; the modules that its entry allows are noted as used."""
    public, inside = published(), (TESTS / "white_box") in path.parents
    where = path.relative_to(ROOT)
    for one in imports(ast.parse(path.read_text("utf-8"))):
        seam = seams.get((one.module, one.name))
        deeper = f"{one.module}.{one.name}"
        if seam:
            yield f"{where}:{one.node.lineno}: import {seam} from seams. Run: python tools/check_tests.py --fix"
        elif one.name.startswith("_") and not (inside or one.name.startswith("__") or _is_module(deeper)):
            yield f"{where}:{one.node.lineno}: {deeper} is private. Move its test to tests/white_box/"
        elif (
            inside or one.module.startswith(PUBLIC) or (one.module == PACKAGE and (not one.name or one.name in public))
        ):
            continue
        elif match := next((entry for entry in (deeper, one.module) if entry in allowed), None):
            used.add(match)
        else:
            name = deeper.rstrip(".")
            yield (
                f"{where}:{one.node.lineno}: {name} is neither public nor a seam. Test it through a seam; if this file "
                "tests that very module, list it in tests/white_box.toml"
            )


def _is_module(name: str) -> bool:
    path = ROOT / "src" / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists()


def fix(path: Path, seams: dict[tuple[str, str], str]) -> bool:
    """Import from seams what it offers; whether the file changed."""
    source = path.read_text("utf-8")
    lines = source.splitlines(keepends=True)
    by_statement: dict[ast.ImportFrom, list[Imported]] = defaultdict(list)
    for one in imports(ast.parse(source)):
        if isinstance(one.node, ast.ImportFrom):
            by_statement[one.node].append(one)
    changed = False
    for node, names in sorted(by_statement.items(), key=lambda item: -item[0].lineno):
        moved = [one for one in names if (one.module, one.name) in seams]
        if not moved:
            continue
        indent = " " * node.col_offset
        rest = [_word(one.name, one.alias) for one in names if one not in moved]
        new = [f"{indent}from {node.module} import {', '.join(rest)}\n"] if rest else []
        words = [_word(seams[one.module, one.name], one.alias or one.name) for one in moved]
        new.append(f"{indent}from seams import {', '.join(words)}\n")
        lines[node.lineno - 1 : node.end_lineno] = new
        changed = True
    if changed:
        path.write_text("".join(lines), "utf-8")
    return changed


def _word(name: str, alias: str | None) -> str:
    return name if alias in (None, name) else f"{name} as {alias}"


def main() -> int:
    """Print every import that bypasses the seams; 1 if there is one."""
    seams = offered()
    files = [path for path in sorted(TESTS.rglob("*.py")) if path.name != "seams.py"]
    if "--fix" in sys.argv[1:]:
        for path in files:
            if fix(path, seams):
                print(f"fixed {path.relative_to(ROOT)}")
        print("Now run: ruff check --fix tests && ruff format tests")
    white_box = tomllib.loads((TESTS / "white_box.toml").read_text("utf-8"))
    found: list[str] = []
    for path in files:
        name = path.relative_to(TESTS).as_posix()
        allowed, used = white_box.pop(name, []), set[str]()
        found += problems_of(path, seams, allowed, used)
        found += [
            f"tests/white_box.toml: {name} no longer imports {entry}. Remove it."
            for entry in allowed
            if entry not in used
        ]
    found += [f"tests/white_box.toml: there is no tests/{name}. Remove it." for name in white_box]
    print("\n".join(found) if found else f"{len(files)} files reach the product through {len(seams)} names of seams.py")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
