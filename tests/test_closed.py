"""Using a closed workspace is an error, through whichever part of it: nothing is answered, nothing changed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memfs import MemfsError, MemoryContext, MemoryItem, Query, QueryInvalid, WorkspaceClosed, open_workspace
from memfs.facades.open_workspaces import Facade
from memfs.fs import io
from memfs.store.plan import FilePlan
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]

PARTS = """
    store recall usage history recovered checker backups cleaner eraser repairer intake feedback pruner contexts sources
    states teams meaning reactions patterns consolidation conflicts repository quota
"""
# What takes or gives a value that no file, no git and no other process has to do with.
VALUES = {
    "store": {"scan_once", "note_failure"},
    "recall": {"fenced", "over", "reviewed_by", "search_async", "submit"},
    "intake": {"reviewed_by"},
    "quota": {"check_room", "wrote", "settle"},
    "patterns": {"keep"},
    "usage": {"flush"},
    "repository": {"below", "full", "remember", "restaged"},
    "sources.delivery": {"apart"},
    "sources.rules": {"react"},
    "states": {"at"},
    "teams.past": {"staged"},
}
# Parts of parts that people are given; what else hangs there is the machinery of these.
WITHIN = {
    "sources": "episodes rules preferences conventions agreements mounts delivery",
    "states": "retrieval iterations checkpoints feedback analysis archives aggregates",
    "teams": "merger syncer past blame undo review resolver bisect signatures",
}


def public(part: object) -> dict[str, object]:
    """What a class offers by name, of itself and of those it is made from."""
    found: dict[str, object] = {}
    for kind in reversed(type(part).__mro__):
        found |= {name: value for name, value in vars(kind).items() if not name.startswith("_")}
    return found


def argument(parameter: inspect.Parameter) -> Any:
    """Something that a parameter may be given."""
    annotation = str(parameter.annotation)
    for word, value in (
        ("Callable", lambda *_, **__: None),
        ("MemoryItem", MemoryItem("something else", "knowledge")),
        ("Planned", [FilePlan(path="x.yaml", before=None, after=b"content: x\n", item=None)]),
        ("Sequence[Query]", [Query(text="hello")]),
        ("Query", Query(text="hello")),
        ("datetime", datetime(2026, 1, 1, tzinfo=UTC)),
        ("Mapping", {}),
        ("str]", ["x"]),
        ("Path", Path("x")),
        ("str", "x"),
        ("int", 1),
        ("bool", True),
    ):
        if word in annotation:
            return value
    return object()


def uses(part: object) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each public method of a part, to be called with something for each parameter it needs."""
    for name, value in public(part).items():
        if inspect.isfunction(value):
            wanted = [one for one in inspect.signature(value).parameters.values() if one.default is one.empty][1:]
            given = [argument(one) for one in wanted if one.kind is not one.KEYWORD_ONLY]
            named = {one.name: argument(one) for one in wanted if one.kind is one.KEYWORD_ONLY}
            yield name, lambda name=name, given=given, named=named: ended(getattr(part, name)(*given, **named))  # type: ignore[misc]


def ended(answer: object) -> object:
    """An answer, where it is to be asked for: what only begins when it is entered or iterated has not begun."""
    if isinstance(answer, AbstractContextManager):
        with answer:
            return answer
    return list(answer) if inspect.isgenerator(answer) else answer


def parts_of(workspace: Workspace) -> dict[str, object]:
    """The parts of an open workspace by name, those of parts included."""
    found = {name: getattr(workspace, name) for name in PARTS.split()}
    for name, inner in WITHIN.items():
        found |= {f"{name}.{one}": getattr(found[name], one) for one in inner.split()}
    return found


def test_every_part_of_a_closed_workspace_says_so(opened: Opened) -> None:
    """Every public method of every part raises WorkspaceClosed, whatever it would have answered from memory."""
    workspace = opened()
    workspace.store.put(MemoryItem("hello", "knowledge", id="hello"))
    workspace.recaller.search("hello")
    parts = parts_of(workspace)
    workspace.close()
    silent = []
    for where, part in parts.items():
        for name, use in uses(part):
            if name in {"close", "after_fork", *VALUES.get(where, ())}:
                continue
            try:
                use()
            except (WorkspaceClosed, TypeError, AttributeError, QueryInvalid):  # or the argument is looked at first
                continue
            except MemfsError as error:
                silent.append(f"{where}.{name}: {error!r}")
            else:
                silent.append(f"{where}.{name}")
    assert silent == [], "\n".join(silent)


def test_a_closed_workspace_reads_nothing_through_a_number_of_old(opened: Opened, tmp_path: Path) -> None:
    """The descriptor of its folder may be another file's by now: neither a question nor a write goes there."""
    workspace = opened()
    workspace.store.put(MemoryItem("hello", "knowledge", id="hello"))
    workspace.close()
    reused = [io.open_file(tmp_path, 0) for _ in range(64)]
    try:
        with pytest.raises(WorkspaceClosed):
            workspace.recaller.search("hello")
        with pytest.raises(WorkspaceClosed):
            workspace.store.put(MemoryItem("more", "knowledge"))
        assert workspace.store.watching == "off"
    finally:
        for fd in reused:
            io.os.close(fd)


def test_closing_twice_is_closing_once(opened: Opened) -> None:
    """Closing again does nothing, and raises nothing."""
    workspace = opened(history__commit="interval")
    workspace.store.put(MemoryItem("hello", "knowledge", id="hello"))
    workspace.close()
    workspace.close()
    with open_workspace(workspace.root, watch=False) as again:
        assert again.store.pending().count == 0


def test_a_closed_facade_says_so(tmp_path: Path, opened: Opened) -> None:
    """A facade that was closed, and one over a workspace that was, raise the same."""
    facade = Facade(tmp_path / "W")
    facade.close()
    with pytest.raises(WorkspaceClosed):
        _ = facade.workspace
    workspace = opened()
    over = MemoryContext(workspace=workspace)
    workspace.close()
    with pytest.raises(WorkspaceClosed):
        over.add_memory("a sentence with something to say")
