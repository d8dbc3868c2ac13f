"""Where the documents of graph threads are (B5)."""

from __future__ import annotations

import pytest

from memfs.errors import SchemaInvalid
from memfs.model import state_paths as paths
from memfs.state.threads import TaskWrites, ThreadPlace, ThreadSnapshot, Write

TOP = "ContextMemory/threads"


def test_each_document_has_its_place() -> None:
    """A graph's own namespace is in the thread's folder, that of a subgraph below ``subgraphs/``."""
    assert paths.snapshot_path("t", "", "1") == f"{TOP}/t/checkpoints/1.json"
    assert paths.snapshot_path("a b", "x:1|y", "1") == f"{TOP}/a%20b/subgraphs/x%3A1%7Cy/checkpoints/1.json"
    assert paths.writes_path("t", "", "1", "task") == f"{TOP}/t/writes/1/task.json"
    assert paths.writes_path("t", "s", "1", "../x") == f"{TOP}/t/subgraphs/s/writes/1/%2E.%2Fx.json"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (paths.snapshot_path("t", "", "1"), "graph_checkpoint"),
        (paths.snapshot_path("checkpoints", "writes", "subgraphs"), "graph_checkpoint"),
        (paths.writes_path("t", "s", "..", ".json"), "graph_writes"),
        (f"{TOP}/t/checkpoints/1.yaml", ""),
        (f"{TOP}/t/checkpoints/.1.json", ""),
        (f"{TOP}/t/checkpoints/a/1.json", ""),
        (f"{TOP}/t/writes/1.json", ""),
        (f"{TOP}/checkpoints/1.json", ""),
        (f"{TOP}/t/subgraphs/checkpoints/1.json", ""),
    ],
)
def test_a_path_says_what_it_names(path: str, kind: str) -> None:
    """What is none of the documents belongs to nobody."""
    assert paths.document_kind(path) == kind
    assert paths.document_of_sidecar(f"{path}.0123456789abcdef.zst") == (path if kind else "")


@pytest.mark.parametrize(
    "place", [ThreadPlace("t", "", "1"), ThreadPlace("../ü", "a|b:c", "."), ThreadPlace("con", "x/y", "1.2.json")]
)
def test_a_path_says_its_place(place: ThreadPlace) -> None:
    """Any name comes back from the path, unless it was shortened."""
    assert paths.snapshot_at(paths.snapshot_path(*place)) == place
    assert paths.snapshot_at(paths.writes_path(*place, "task")) is None
    assert paths.snapshot_at(paths.snapshot_path(*place._replace(id="x" * 300))) is None


def test_a_document_is_what_it_was_made_of() -> None:
    """B5: a checkpoint and a task's writes come out of their documents with all that went in."""
    snapshot = ThreadSnapshot(
        place=ThreadPlace("t", "sub", "2"),
        parent="1",
        metadata={"value": {"step": 3}},
        state={"value": {"v": 4}},
        versions={"a": 2, "b": 1},
        channels={"a": {"value": [1]}, "b": {"kept_in": "1"}},
        source="loop",
        step=3,
        written="2026-03-01T10:00:00Z",
        allowed="a test key",
    )
    assert ThreadSnapshot.from_document(snapshot.document()) == snapshot
    writes = TaskWrites(
        place=ThreadPlace("t", "", "2"),
        task="x",
        path="~__pregel_pull, node",
        writes=(Write(-1, "__error__", {"value": "no"}), Write(0, "a", {"type": "bytes", "base64": "AA=="})),
        written="2026-03-01T10:00:00Z",
        allowed="a test key",
    )
    assert TaskWrites.from_document(writes.document()) == writes
    referring = {**writes.document(), "writes": [{"index": 0, "channel": "a", "kept_in": "1"}]}
    with pytest.raises(SchemaInvalid, match="its own value"):
        TaskWrites.from_document(referring)
