"""Behaviour tests know memfs as its users do."""

from __future__ import annotations

import ast
from pathlib import Path

HERE = Path(__file__).parent


def test_steps_use_public_names_only() -> None:
    """Steps import from ``memfs`` itself what it offers, and from no module below it (L5)."""
    import memfs

    wrong = []
    for path in sorted(HERE / f"test_{feature.stem}.py" for feature in (HERE / "features").glob("*.feature")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("memfs"):
                wrong += [path.name] if node.module != "memfs" else []
                wrong += [f"{path.name}: {name.name}" for name in node.names if not hasattr(memfs, name.name)]
            elif isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                wrong.append(f"{path.name}:{node.lineno}: {node.attr}")
    assert wrong == []


def test_every_scenario_is_bound() -> None:
    """Each feature file has its module of steps (L5)."""
    features = sorted(path.stem for path in (HERE / "features").glob("*.feature"))

    assert features
    assert [name for name in features if not (HERE / f"test_{name}.py").exists()] == []
