"""Export of documents and memories, and import of memories."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memfs.errors import Conflict, ExtraMissing, QueryInvalid, StorageIO
from memfs.model import MemoryItem
from memfs.state import transfer
from memfs.state.transfer import ExportResult, ImportCounts, export_query, import_memories
from memfs.workspace import Workspace
from tests.state.test_aggregates import rebuilt

Open = Callable[..., Workspace]
FORMATS = ("jsonl", "csv", "parquet")
ODD = {"a.b": 1, "c": "=1+1", "d": "007", "e": [1, 2.0], "f": None, "g": {}, "path": "x", "ü": "line\r\nnext\u2028"}


def output(agent: str, task: str, day: int = 1, **results: Any) -> dict[str, Any]:
    """An agent's output."""
    return {"agent_type": agent, "task_id": task, "timestamp": f"2026-03-{day:02d}T10:00:00Z", "results": results}


def fill(workspace: Workspace) -> None:
    """Two iterations with a document of most sorts."""
    states = workspace.states
    states.iterations.start(1)
    states.recorder.state_update({"timestamp": "2026-03-01T09:00:00Z", "update_type": "periodic"})
    states.recorder.agent_output(output("Scout/α", "Task 7", primary_output=ODD, confidence_score=0.5))
    states.recorder.hypothesis({"id": "h-1", "rating": 1200.0, "path": "own", "type": "own", "iteration": 9})
    states.recorder.meta_review({"iteration_number": 1, "timestamp": "2026-03-01T11:00:00Z"})
    states.iterations.close(1)
    states.iterations.start(2)
    states.recorder.agent_output(output("Critic", "t", day=5, primary_output=[1, 2]))


def exported(workspace: Workspace, form: str = "jsonl", **filters: Any) -> tuple[bytes, ExportResult]:
    """What an export holds, and what it says of itself."""
    out = io.BytesIO()
    done = workspace.states.exporter.export(out, form, export_query(**filters))
    assert done.bytes == len(out.getvalue())
    return out.getvalue(), done


def imported(workspace: Workspace, source: Any, *, replace: bool = False) -> ImportCounts:
    """What an import did."""
    return import_memories(workspace.parts, workspace.store, source, replace=replace)


def files(workspace: Workspace, folder: str = "iterations") -> dict[str, bytes]:
    """The files below a folder of the workspace, by path."""
    top = workspace.root / "ContextMemory" / folder
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


# -- the round trip -----------------------------------------------------------------------------------------------
def test_memories_come_back_with_their_comments(opened: Open, tmp_path: Path) -> None:
    """A memory's file is restored as it was, comments and format too, as long as its fields were left alone (S19)."""
    first, second = opened(tmp_path / "first"), opened(tmp_path / "second")
    first.store.put(MemoryItem("plain", "semantic", title="one", tags=("a", "b")))
    path = first.root / "ContextMemory/memories/semantic/2026-03/by-hand.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("# a person's remark\ntitle: by hand\ncontent: >-\n  folded\n  text\n")
    data, done = exported(first, types=("memory",))
    assert done.counts == {"memory": 2}
    assert imported(second, io.BytesIO(data)).stored == 2
    assert files(second, "memories") == files(first, "memories")
    assert imported(second, io.BytesIO(data)).same == 2


def test_a_changed_field_of_a_memory_counts_more_than_the_text_beside_it(opened: Open, tmp_path: Path) -> None:
    """Editing the fields of an exported memory counts, not the text of the file it came from."""
    first, second = opened(tmp_path / "first"), opened(tmp_path / "second")
    kept = first.store.put(MemoryItem("the deploy key is rotated weekly", "semantic", title="one"))
    record = json.loads(exported(first, types=("memory",))[0])
    record["document"]["content"] = "the deploy key is rotated monthly"
    changed = json.dumps(record).encode()
    imported(second, io.BytesIO(changed))
    found = second.store.get(kept.id)
    assert found is not None
    assert found.content == "the deploy key is rotated monthly"
    assert [type(error) for error in imported(first, io.BytesIO(changed)).refused] == [Conflict]
    assert imported(first, io.BytesIO(changed), replace=True).replaced == 1
    assert imported(first, io.BytesIO(changed)).same == 1


# -- what is exported ---------------------------------------------------------------------------------------------
def test_filters_narrow_by_type_agent_iteration_and_time(opened: Open) -> None:
    """Only what was asked for is exported; names are verbatim, bounds are included (S19)."""
    workspace = opened()
    fill(workspace)
    assert exported(workspace, types=("hypothesis", "meta_review"))[1].counts == {"hypothesis": 1, "meta_review": 1}
    assert exported(workspace, types="agent_output", agents=("Scout/α",))[1].total == 1
    assert exported(workspace, types=("agent_output",), iterations=(2,))[1].total == 1
    assert exported(workspace, types=("agent_output",), since="2026-03-02")[1].total == 1
    assert exported(workspace, types=("agent_output",), until="2026-03-01T10:00:00Z")[1].total == 1
    assert exported(workspace, iterations=(7,))[1].total == 0


@pytest.mark.parametrize(
    ("filters", "field", "hint"),
    [
        ({"types": ("hypotheses",)}, "types", "hypothesis"),
        ({"types": ("checkpoint",)}, "types", "backup"),
        ({"iterations": ("x",)}, "iterations", "give numbers"),
        ({"agents": (7,)}, "agents", "give names"),
        ({"since": "soonish"}, "since", "2026"),
    ],
)
def test_a_wrong_filter_is_named_with_what_would_be_right(filters: dict[str, Any], field: str, hint: str) -> None:
    """Filters refuse what they cannot mean."""
    with pytest.raises(QueryInvalid) as caught:
        export_query(**filters)
    assert caught.value.field == field
    assert hint in str(caught.value)


def test_a_document_that_cannot_be_read_is_named_and_the_rest_exported(opened: Open) -> None:
    """One invalid file spoils no export: it is named among what is missing (S19)."""
    workspace = opened()
    fill(workspace)
    path = "iterations/iteration_001/hypotheses/h-1.json"
    (workspace.root / "ContextMemory" / path).write_text("{broken")
    data, done = exported(workspace)
    assert len(done.missing) == 1
    assert path in done.missing[0]
    assert b"meta_review" in data
    assert "hypothesis" not in done.counts


def test_aggregates_are_exported_on_demand(opened: Open) -> None:
    """What follows from the documents is exported where its type is named (S12, S19)."""
    workspace = opened()
    fill(workspace)
    rebuilt(workspace.states)
    assert exported(workspace, types=("aggregate",))[1].counts == {"aggregate": 3}


def test_archived_iterations_are_exported(opened: Open) -> None:
    """What is in the archive is exported alike (S15, S19)."""
    workspace = opened()
    fill(workspace)
    data, before = exported(workspace)
    states = workspace.states
    states.archiver.archive(states.archiver.closed(), 3)
    assert not (workspace.root / "ContextMemory/iterations/iteration_001/hypotheses").exists()
    again, after = exported(workspace)
    assert (after.counts, after.missing) == (before.counts, ())
    assert sorted(again.splitlines()) == sorted(data.splitlines())


@pytest.mark.parametrize("form", FORMATS)
def test_a_sink_that_fails_gets_nothing_more(opened: Open, form: str) -> None:
    """An error of the sink reaches the caller, and no library writes an ending behind it."""
    workspace = opened()
    fill(workspace)

    class Full:
        refused = 0

        def write(self, data: bytes) -> None:
            self.refused += 1
            raise OSError(28, "No space left on device")

    sink = Full()
    with pytest.raises(OSError, match="No space left"):
        workspace.states.exporter.export(sink, form)
    assert sink.refused == 1


# -- formats ------------------------------------------------------------------------------------------------------
def test_csv_has_a_row_per_document_and_a_column_per_dotted_name(opened: Open) -> None:
    """Any CSV reader gets flat, named columns; a document's own key never hides a column in front (S19)."""
    workspace = opened()
    fill(workspace)
    rows = list(csv.DictReader(io.StringIO(exported(workspace, "csv")[0].decode(), newline="")))
    by_type = {row["type"]: row for row in rows}
    assert by_type["agent_output"]["results.primary_output"] == "[1, 2]"
    assert by_type["hypothesis"]["rating"] == "1200.0"
    assert (by_type["hypothesis"]["document.type"], by_type["hypothesis"]["document.iteration"]) == ("own", "9")
    assert next(row for row in rows if row["agent_type"] == "Scout/α")["results.primary_output.c"] == '"=1+1"'
    assert rows[0]["iteration"] == "1"


def test_what_has_no_column_is_in_the_last_one(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many names documents have, columns are bounded and nothing is lost (S19)."""
    first = opened()
    limit = 8
    first.states.recorder.agent_output(output("a", "t", primary_output={f"k{n}": n for n in range(50)}))
    out = io.BytesIO()
    monkeypatch.setattr("memfs.state.transfer.learn_columns", partial(transfer.learn_columns, most=limit))
    first.states.exporter.export(out, "csv")
    header, *rows = csv.reader(io.StringIO(out.getvalue().decode()))
    assert len(header) == 4 + limit + 2
    (row,) = (row for row in rows if row[1] == "agent_output")
    named = [name for name in header if name.startswith("results.primary_output.k")]
    rest = [name for name in json.loads(row[-2]) if name.startswith("results.primary_output.k")]
    assert (len(named) > 0, len(named) + len(rest)) == (True, 50)


def test_parquet_columns_are_typed(opened: Open) -> None:
    """Numbers and text have columns of their type; the whole document is beside them as JSON (S19)."""
    pq = pytest.importorskip("pyarrow.parquet")
    workspace = opened()
    fill(workspace)
    table = pq.read_table(io.BytesIO(exported(workspace, "parquet")[0]))
    types = {name: str(table.schema.field(name).type) for name in table.schema.names}
    assert types["iteration"] == "int64"
    assert types["results.confidence_score"] == "double"
    assert types["timestamp"] == "string"
    assert types["document"] == "string"
    rows = {row["path"].rpartition("/")[2]: row for row in table.to_pylist()}
    assert rows["h-1.json"]["rating"] == 1200.0
    assert json.loads(rows["h-1.json"]["document"])["path"] == "own"
    assert rows["Task%207.json"]["timestamp"].startswith("2026-03-01T10:00:00")


def test_parquet_without_its_package_names_the_extra(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pyarrow is missing, an export says what to install, before anything is written (S19)."""
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    out = io.BytesIO()
    with pytest.raises(ExtraMissing, match=r"gitmemfs\[parquet\]"):
        opened().states.exporter.export(out, "parquet")
    assert out.getvalue() == b""


def test_an_unknown_format_is_refused(opened: Open) -> None:
    """The nearest format is named."""
    with pytest.raises(QueryInvalid, match="parquet"):
        opened().states.exporter.export(io.BytesIO(), "parqet")


# -- conflicts ----------------------------------------------------------------------------------------------------
def facts(count: int) -> bytes:
    """Lines that are memories, each with an id."""
    rows = (
        {"type": "knowledge", "id": f"port-{n}", "content": f"Port {n} belongs to service {n}."} for n in range(count)
    )
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_other_content_is_left_out_unless_it_is_replaced(opened: Open) -> None:
    """Memories that differ stay and are named; --replace replaces them, and history keeps the others."""
    workspace = opened()
    for name in ("port-0", "port-3"):
        workspace.store.put(MemoryItem("Nobody knows.", "knowledge", id=name))
    report = imported(workspace, io.BytesIO(facts(5)))
    assert (report.stored, [(type(error), error.path, error.line) for error in report.refused]) == (
        3,
        [(Conflict, "standard input", 1), (Conflict, "standard input", 4)],
    )
    assert all("--replace" in (error.hint or "") for error in report.refused)
    done = imported(workspace, io.BytesIO(facts(5)), replace=True)
    assert (done.stored, done.replaced, done.same) == (2, 2, 3)


def test_an_import_that_was_cut_short_goes_on(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is all or nothing, and importing again stores the rest."""
    workspace = opened()
    monkeypatch.setattr(transfer, "_BATCH", 2)
    carry_out = workspace.store.carry_out
    calls: list[int] = []

    def failing(*words: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise StorageIO("the disk said no", hint="free some space")
        return carry_out(*words, **more)

    monkeypatch.setattr(workspace.store, "carry_out", failing)
    with pytest.raises(StorageIO, match="the disk said no"):
        imported(workspace, io.BytesIO(facts(5)))
    monkeypatch.setattr(workspace.store, "carry_out", carry_out)
    rest = imported(workspace, io.BytesIO(facts(5)))
    assert (rest.same, rest.stored) == (2, 3)


def test_two_imports_of_the_same_at_once_store_it_once(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another import stored between the check and the write counts as there already; neither fails."""
    lines = b"".join(b'{"type": "knowledge", "content": "Port %d belongs to service %d."}\n' % (n, n) for n in range(5))
    first, second = opened(tmp_path / "shared"), opened(tmp_path / "shared")
    carry_out = second.store.carry_out

    def overtaken(*words: Any, **more: Any) -> Any:
        monkeypatch.setattr(second.store, "carry_out", carry_out)
        assert imported(first, io.BytesIO(lines)).stored == 5
        return carry_out(*words, **more)

    monkeypatch.setattr(second.store, "carry_out", overtaken)
    done = imported(second, io.BytesIO(lines))
    assert (done.stored, done.same) == (0, 5)
    assert first.store.count() == 5


def test_what_changes_during_an_import_is_not_overwritten(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody stores a memory between the check and the batch: theirs stays, and the other is named."""
    second, other = opened(tmp_path / "second"), opened(tmp_path / "second")
    carry_out = second.store.carry_out

    def late(*words: Any, **more: Any) -> Any:
        if other.store.get("port-0") is None:
            other.store.put(MemoryItem("Theirs.", "knowledge", id="port-0"))
        return carry_out(*words, **more)

    monkeypatch.setattr(second.store, "carry_out", late)
    assert [type(error) for error in imported(second, io.BytesIO(facts(1))).refused] == [Conflict]
    found = other.store.get("port-0")
    assert found is not None
    assert found.content == "Theirs."


def test_a_document_that_goes_during_an_export_is_left_out(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between listing and reading, files may go: that is not an error and nothing is missing (S19)."""
    workspace = opened()
    fill(workspace)
    hypothesis = workspace.root / "ContextMemory/iterations/iteration_001/hypotheses/h-1.json"
    exporter = workspace.states.exporter
    listed = list(exporter._reads(export_query()))
    hypothesis.unlink()
    monkeypatch.setattr(exporter, "_reads", lambda _: iter(listed))
    counted = exporter.export(io.BytesIO())
    assert counted.missing == ()
    assert "hypothesis" not in counted.counts


# -- hostile and damaged files ------------------------------------------------------------------------------------
def record(**changes: Any) -> dict[str, Any]:
    """A valid record, changed."""
    path = "ContextMemory/memories/semantic/2026-03/h.yaml"
    return {"path": path, "type": "memory", "iteration": None, "document": {"id": "h", "content": "t"}, **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "agent_output"}, "only memories"),
        ({"type": "aggregate"}, "only memories"),
        ({"document": {"id": "h", "content": "t", "importance": "high"}}, "importance"),
        ({"document": "text"}, "keys and values"),
        ({"text": 7}, "expected text"),
        ({"text": "content: \ud800\n"}, "not UTF-8"),
        ({"extra": 1}, "no such key"),
        ({"document": {"id": "h", "content": "AKIA" + "QX3ZP7LM2WNB4RTY"}}, "looks like"),
        ({"path": "x", "document": {"id": "../../x", "type": "semantic", "content": "t"}}, "id"),
        ({"path": "x", "document": {"id": "x", "type": "nonsense", "content": "t"}}, "nonsense"),
        ({"path": "x", "document": {"id": "x", "content": "t", "colour": "red"}}, "colour"),
    ],
)
def test_an_invalid_record_is_refused_with_its_line(
    opened: Open, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    """State documents, wrong types, schema errors and secrets: named by file and line, and left out."""
    workspace = opened()
    place = tmp_path / "in.jsonl"
    place.write_text("\n".join(map(json.dumps, (record(document={"id": "good", "content": "t"}), record(**changes)))))
    (error,) = imported(workspace, place).refused
    assert re.search(message, str(error), re.IGNORECASE)
    assert (error.path, error.line) == (str(place), 2)
    assert workspace.store.count() == 1


@pytest.mark.parametrize(
    "path",
    [
        "ContextMemory/iterations/../../../etc/h.yaml",
        "/etc/h.yaml",
        "ContextMemory/.git/h.yaml",
        "ContextMemory/memories/semantic/.hidden/h.yaml",
        "memories/semantic/h.yaml",
    ],
)
def test_a_record_names_no_place_of_its_own(opened: Open, path: str) -> None:
    """A path that is none of a memory's counts for nothing: the memory is where its type and time say."""
    workspace = opened()
    line = json.dumps(record(path=path, text="content: t\n", document={"id": "h", "content": "t"}))
    assert imported(workspace, io.BytesIO(line.encode())).stored == 1
    assert workspace.store.locate("h").startswith("ContextMemory/memories/semantic/2")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[1]", "a JSON array"),
        (b'\n{"path": "a", "path": "b"}', "key 'path' at line 2, first at line 2"),
        (b'{"path": NaN}', "NaN"),
        (b'{"path": ' + b"9" * 5000 + b"}", "does not fit"),
        (b"[" * 100_000, "nesting deeper"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"path"', "expected ':'"),
    ],
)
def test_a_damaged_file_is_refused(opened: Open, data: bytes, message: str) -> None:
    """What is not an export is refused by what is wrong with it, never with a library's own error (S19)."""
    (error,) = imported(opened(), io.BytesIO(data)).refused
    assert message in str(error)
    assert error.path == "standard input"


def test_the_same_memory_twice_is_refused(opened: Open) -> None:
    """Two records of one id: the second is named with the line of the first."""
    line = json.dumps(record()).encode() + b"\n"
    (error,) = imported(opened(), io.BytesIO(line + line)).refused
    assert "line 1 already" in str(error)


@pytest.mark.parametrize("other", ["thing", "Thing"])
def test_two_memories_of_one_id_are_refused(opened: Open, other: str) -> None:
    """In two folders, or in another case, they are one id: the second is named and left out."""
    folder = "ContextMemory/memories/semantic"
    rows = [
        record(path=f"{folder}/2026-{month}/{name}.yaml", type="memory", iteration=None, document={"content": "A fact"})
        for month, name in ((11, "thing"), (12, other))
    ]
    workspace = opened()
    report = imported(workspace, io.BytesIO(b"".join(json.dumps(row).encode() + b"\n" for row in rows)))
    assert ["line 1 already" in str(error) for error in report.refused] == [True]
    assert workspace.store.count() == 1


def test_a_stream_that_cannot_seek_is_imported(opened: Open) -> None:
    """A pipe is read once."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: object) -> int:
            raise OSError("a pipe")

    assert imported(opened(), Pipe(json.dumps(record()).encode())).stored == 1


def test_a_file_that_is_not_there_is_named(opened: Open, tmp_path: Path) -> None:
    """The error has the path that was asked for."""
    with pytest.raises(StorageIO) as caught:
        imported(opened(), tmp_path / "none.jsonl")
    assert caught.value.path == str(tmp_path / "none.jsonl")
