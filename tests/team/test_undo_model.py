"""Undo against a plain model: as if the one that is taken back had never written."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.copies import copy_workspace
from memfs.model import MemoryItem, Origin
from memfs.store.plan import signed_by
from memfs.team.undo import RevertSelection
from memfs.workspace import Workspace, open_workspace

FIELDS = ("title", "content", "status", "metadata.a", "metadata.b")
WHO = ("mole", "planner", "coder")
ITEMS = ("one", "two")

steps = st.lists(
    st.tuples(
        st.sampled_from(WHO),
        st.sampled_from(ITEMS),
        st.lists(st.sampled_from((*FIELDS, "add a tag", "drop a tag")), min_size=1, max_size=3, unique=True),
    ),
    min_size=3,
    max_size=9,
)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workspace with two items, written by a person."""
    root = tmp_path_factory.mktemp("undo-model") / "workspace"
    with open_workspace(root, create=True, watch=False, settings=_settings()) as made:
        for name in ITEMS:
            made.store.put(MemoryItem(f"{name} at first", id=name, tags=("first",)))
        made.store.flush()
    yield root
    shutil.rmtree(root)


def _settings() -> dict[str, Any]:
    return {"index.engine": "memory", "history.commit": "manual", "backup.interval_hours": 0}


def _facts(item: MemoryItem) -> dict[str, Any]:
    """The fields that the model knows, one by one; a tag is a field of its own."""
    values = {"title": item.title, "content": item.content, "status": item.status}
    values |= {f"metadata.{name}": value for name, value in item.metadata.items()}
    return {name: value for name, value in values.items() if value} | dict.fromkeys(
        (f"tag {one}" for one in item.tags), 1
    )


def _written(workspace: Workspace, who: str, name: str, what: list[str], number: int) -> dict[str, Any]:
    """Write something that nobody wrote before; return the fields it changed, None for one that went."""
    item = workspace.store.get(name)
    assert item is not None
    before = _facts(item)
    metadata, tags, plain = dict(item.metadata), list(item.tags), {}
    for one in what:
        if one == "add a tag":
            tags.append(f"tag-{number}")
        elif one == "drop a tag":
            tags = tags[1:]
        elif one.startswith("metadata."):
            metadata[one[-1]] = f"value {number}"
        else:
            plain[one] = f"{one} {number}"
    by = Origin(agent=who, session=f"{who}-s")
    with signed_by(by):
        workspace.store.put(item.replace(metadata=metadata, tags=tuple(tags), **plain))
    workspace.store.flush()
    after = _facts(workspace.store.get(name))  # type: ignore[arg-type]
    return {field: after.get(field) for field in before.keys() | after.keys() if before.get(field) != after.get(field)}


@settings(
    max_examples=settings.default.max_examples // 8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=steps)
def test_an_undo_leaves_what_the_others_wrote_last(pristine: Path, own_world: Path, steps: list[Any]) -> None:
    """Each field has the value that somebody else wrote last, whatever was written in which order (B2)."""
    with tempfile.TemporaryDirectory(dir=own_world) as folder:
        root = Path(folder) / "workspace"
        copy_workspace(pristine, root)
        with open_workspace(root, watch=False, settings=_settings()) as workspace:
            expected = {name: _facts(workspace.store.get(name)) for name in ITEMS}  # type: ignore[arg-type]
            wrote = False
            for number, (who, name, what) in enumerate(steps):
                changed = _written(workspace, who, name, what, number)
                wrote = wrote or (who == "mole" and bool(changed))
                expected[name] |= changed if who != "mole" else {}
            done = workspace.teams.undo.run(RevertSelection(agent="mole"))
            found = {name: _facts(workspace.store.get(name)) for name in ITEMS}  # type: ignore[arg-type]
            wanted = {
                name: {field: value for field, value in fields.items() if value is not None}
                for name, fields in expected.items()
            }
            assert found == wanted
            assert bool(done.steps) == wrote
            assert workspace.store.problems() == []
