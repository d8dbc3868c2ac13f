"""Sources: the modules of memfs as syntax trees, for tests that look at the code.

They are read once for all tests of a process, since that takes longer than all that is asked.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "memfs"


@dataclass(frozen=True, slots=True)
class Source:
    """One module.

    Attributes:
        nodes: all of the tree, in no particular order.
    """

    path: Path
    text: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]


@cache
def sources() -> Mapping[str, Source]:
    """Every module by its dotted name."""
    return {name_of(path): _read(path) for path in sorted(PACKAGE.rglob("*.py"))}


def name_of(path: Path) -> str:
    """A file's dotted name."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _read(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    return Source(path, text, tree, tuple(ast.walk(tree)))
