"""Writes the example workspace's schemas for editors anew: run it after a change in ``schemas/``."""

from __future__ import annotations

from pathlib import Path

from memfs.files.tree import Tree
from memfs.upkeep.kindfile import load_kinds

EXAMPLE = Path(__file__).resolve().parents[2] / "example-workspace"
FOLDER = EXAMPLE / "ContextMemory" / ".schemas"


def expected() -> dict[str, str]:
    """The files that belong into ``.schemas/``, by name, the example's own kinds included."""
    _, schemas = load_kinds(Tree(EXAMPLE))
    return dict(schemas.editor_files())


def present() -> dict[str, str]:
    """The files that are there."""
    return {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}


if __name__ == "__main__":
    for old in FOLDER.iterdir():
        old.unlink()
    for name, text in expected().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
