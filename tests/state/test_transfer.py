"""Export of documents and memories, and import of what was exported."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memfs.errors import Conflict, ContentError, ExtraMissing, MemfsError, QueryInvalid, StorageIO
from memfs.model import MemoryItem
from memfs.state import export as export_module
from memfs.state.export import ExportResult, export_query
from memfs.store.state_files import DocumentChange
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


def files(workspace: Workspace, folder: str = "iterations") -> dict[str, bytes]:
    """The files below a folder of the workspace, by path."""
    top = workspace.root / "ContextMemory" / folder
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


# -- the round trip -----------------------------------------------------------------------------------------------
def test_an_import_restores_every_document(opened: Open, tmp_path: Path) -> None:
    """What one workspace exports, another imports: the same files; importing again changes nothing (S19)."""
    first, second = opened(tmp_path / "first"), opened(tmp_path / "second")
    fill(first)
    data, done = exported(first)
    assert done.counts["agent_output"] == 2
    place = tmp_path / "state.jsonl"
    place.write_bytes(data)
    taken = second.states.importer.read(place)
    assert (taken.counts, taken.same, taken.iterations) == (done.counts, 0, (1, 2))
    assert files(second) == files(first)
    again = second.states.importer.read(io.BytesIO(data))
    assert (again.total, again.same) == (0, done.total)
    assert second.states.reading.latest_iteration() == 2


def test_memories_come_back_with_their_comments(opened: Open, tmp_path: Path) -> None:
    """A memory's file is restored as it was, comments and format too, as long as its fields were left alone (S19)."""
    first, second = opened(tmp_path / "first"), opened(tmp_path / "second")
    first.store.put(MemoryItem("plain", "semantic", title="one", tags=("a", "b")))
    path = first.root / "ContextMemory/memories/semantic/2026-03/by-hand.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("# a person's remark\ntitle: by hand\ncontent: >-\n  folded\n  text\n")
    data, done = exported(first, types=("memory",))
    assert done.counts == {"memory": 2}
    assert second.states.importer.read(io.BytesIO(data)).total == 2
    assert files(second, "memories") == files(first, "memories")
    assert second.states.importer.read(io.BytesIO(data)).same == 2


def test_a_changed_field_of_a_memory_counts_more_than_the_text_beside_it(opened: Open, tmp_path: Path) -> None:
    """Who edits the fields of an exported memory gets what they wrote, not the text of the file it came from."""
    first, second = opened(tmp_path / "first"), opened(tmp_path / "second")
    kept = first.store.put(MemoryItem("the deploy key is rotated weekly", "semantic", title="one"))
    record = json.loads(exported(first, types=("memory",))[0])
    record["document"]["content"] = "the deploy key is rotated monthly"
    changed = io.BytesIO(json.dumps(record).encode())
    second.states.importer.read(changed)
    found = second.store.get(kept.id)
    assert found is not None
    assert found.content == "the deploy key is rotated monthly"
    with pytest.raises(Conflict, match="other content"):
        first.states.importer.read(changed)
    assert first.states.importer.read(changed, replace=True).replaced == 1
    assert first.states.importer.read(changed).same == 1


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


def test_aggregates_are_exported_on_demand_and_passed_over_by_an_import(opened: Open, tmp_path: Path) -> None:
    """What follows from the documents is computed anew where they are imported (S12, S19)."""
    first, second = opened(tmp_path / "first"), opened(tmp_path / "second")
    fill(first)
    rebuilt(first.states)
    data, done = exported(first, types=("aggregate",))
    assert done.counts == {"aggregate": 3}
    assert second.states.importer.read(io.BytesIO(data)).derived == 3
    assert not (second.root / "ContextMemory/aggregates").exists()
    second.states.importer.read(io.BytesIO(exported(first)[0]))
    assert rebuilt(second.states) == []
    assert files(second, "aggregates") == files(first, "aggregates")


def test_archived_iterations_are_exported_and_guarded(opened: Open) -> None:
    """What is in the archive is exported alike; an import leaves it alone, and refuses other content (S15, S19)."""
    workspace = opened()
    fill(workspace)
    data, before = exported(workspace)
    states = workspace.states
    states.archiver.archive(states.retention.closed(), 3)
    assert not (workspace.root / "ContextMemory/iterations/iteration_001/hypotheses").exists()
    again, after = exported(workspace)
    assert (after.counts, after.missing) == (before.counts, ())
    assert sorted(again.splitlines()) == sorted(data.splitlines())
    assert states.importer.read(io.BytesIO(data)).same == before.total
    other = io.BytesIO(data.replace(b'"rating":1200.0', b'"rating":7.0'))
    with pytest.raises(Conflict, match="archived with other content") as caught:
        states.importer.read(other, replace=True)
    assert "memfs admin archive unpack 1" in (caught.value.hint or "")


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


def test_what_has_no_column_stands_in_the_last_one(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many names documents have, columns are bounded and nothing is lost (S19)."""
    first = opened()
    limit = 8
    first.states.recorder.agent_output(output("a", "t", primary_output={f"k{n}": n for n in range(50)}))
    out = io.BytesIO()
    monkeypatch.setattr("memfs.state.export.learn_columns", partial(export_module.learn_columns, most=limit))
    first.states.exporter.export(out, "csv")
    header, *rows = csv.reader(io.StringIO(out.getvalue().decode()))
    assert len(header) == 4 + limit + 2
    (row,) = (row for row in rows if row[1] == "agent_output")
    named = [name for name in header if name.startswith("results.primary_output.k")]
    rest = [name for name in json.loads(row[-2]) if name.startswith("results.primary_output.k")]
    assert (len(named) > 0, len(named) + len(rest)) == (True, 50)


def test_parquet_columns_are_typed(opened: Open) -> None:
    """Numbers and text have columns of their type; the whole document stands beside them as JSON (S19)."""
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
def test_other_content_is_a_conflict_and_nothing_is_stored(opened: Open, tmp_path: Path) -> None:
    """Where one document differs, none is imported; --replace replaces it, and history keeps the other (S19)."""
    first, second = opened(tmp_path / "first"), opened(tmp_path / "second")
    fill(first)
    data, done = exported(first)
    second.states.recorder.hypothesis({"id": "h-1", "rating": 7.0})
    before = files(second)
    with pytest.raises(Conflict, match="nothing was stored") as caught:
        second.states.importer.read(io.BytesIO(data))
    assert "--replace" in (caught.value.hint or "")
    told = caught.value.also
    assert [type(error) for error in told] == [Conflict, Conflict]
    assert all(error.path == "standard input" and error.line for error in told)
    assert files(second) == before
    replaced = second.states.importer.read(io.BytesIO(data), replace=True)
    assert (replaced.total, replaced.replaced) == (done.total, 2)
    assert files(second) == files(first)


def test_an_import_that_was_cut_short_goes_on(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is all or nothing; the error says how many documents are stored, and importing again stores the rest."""
    first, second = opened(tmp_path / "first"), opened(tmp_path / "second")
    fill(first)
    data, done = exported(first)
    monkeypatch.setattr("memfs.state.import_documents._BATCH", 2)
    write = second.states.files.write
    calls: list[int] = []

    def failing(changes: list[DocumentChange], *words: Any, **more: Any) -> Any:
        calls.append(len(changes))
        if len(calls) == 2:
            raise StorageIO("the disk said no", hint="free some space")
        return write(changes, *words, **more)

    monkeypatch.setattr(second.states.files, "write", failing)
    with pytest.raises(StorageIO, match="2 documents before this one are stored"):
        second.states.importer.read(io.BytesIO(data))
    monkeypatch.setattr(second.states.files, "write", write)
    rest = second.states.importer.read(io.BytesIO(data))
    assert (rest.same, rest.total) == (2, done.total - 2)
    assert files(second) == files(first)


def test_two_imports_of_the_same_at_once_store_it_once(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another import stored between the check and the write counts as there already; neither fails."""
    lines = b"".join(b'{"type": "knowledge", "content": "Port %d belongs to service %d."}\n' % (n, n) for n in range(5))
    first, second = opened(tmp_path / "shared"), opened(tmp_path / "shared")
    carry_out = second.store.carry_out

    def overtaken(*words: Any, **more: Any) -> Any:
        monkeypatch.setattr(second.store, "carry_out", carry_out)
        assert first.states.importer.read(io.BytesIO(lines)).total == 5
        return carry_out(*words, **more)

    monkeypatch.setattr(second.store, "carry_out", overtaken)
    done = second.states.importer.read(io.BytesIO(lines))
    assert (done.total, done.same) == (0, 5)
    assert first.store.count() == 5


def test_what_changes_during_an_import_is_not_overwritten(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody stores a document between the check and the batch: theirs stays, and the error says how to go on."""
    first, second, other = opened(tmp_path / "first"), opened(tmp_path / "second"), opened(tmp_path / "second")
    first.states.recorder.hypothesis({"id": "h", "rating": 1.0})
    data, _ = exported(first, types=("hypothesis",))
    write = second.states.files.write

    def late(*words: Any, **more: Any) -> Any:
        other.states.recorder.hypothesis({"id": "h", "rating": 2.0})
        return write(*words, **more)

    monkeypatch.setattr(second.states.files, "write", late)
    with pytest.raises(Conflict, match="import again"):
        second.states.importer.read(io.BytesIO(data))
    path = "ContextMemory/iterations/iteration_001/hypotheses/h.json"
    assert other.states.files.read(path).values["rating"] == 2.0


def test_a_document_that_goes_during_an_export_is_left_out(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between listing and reading, files may go: that is no error and nothing is missing (S19)."""
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
    path = "ContextMemory/iterations/iteration_001/hypotheses/h.json"
    return {"path": path, "type": "hypothesis", "iteration": 1, "document": {"id": "h"}, **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": "ContextMemory/iterations/../../../etc/passwd"}, "lies there"),
        ({"path": "/etc/passwd"}, "lies there"),
        ({"path": "ContextMemory/.git/config"}, "lies there"),
        ({"path": "memfs.toml"}, "lies there"),
        ({"path": "ContextMemory/configuration/system_config.json"}, "lies there"),
        ({"path": "ContextMemory/checkpoints/ckpt_20260301_1000/manifest.json", "type": "checkpoint"}, "lies there"),
        ({"type": "agent_output"}, "type 'hypothesis'"),
        ({"document": {"id": "h", "rating": "high"}}, "rating"),
        ({"document": "text"}, "keys and values"),
        ({"sha256": "abc"}, "hexadecimal"),
        ({"iteration": "1"}, "whole number"),
        ({"extra": 1}, "no such key"),
        ({"document": {"id": "h", "note": "AKIA" + "QX3ZP7LM2WNB4RTY"}}, "looks like"),
        ({"type": "memory", "path": "x", "document": {"id": "../../x", "type": "semantic", "content": "t"}}, "id"),
        ({"type": "memory", "path": "x", "document": {"id": "x", "type": "nonsense", "content": "t"}}, "nonsense"),
        ({"type": "memory", "path": "x", "document": {"id": "x", "content": "t", "colour": "red"}}, "colour"),
    ],
)
def test_a_record_that_is_none_is_refused_with_its_line(
    opened: Open, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    """Hostile paths, wrong types, schema errors and secrets: named by file and line, and nothing is stored (S19)."""
    workspace = opened()
    place = tmp_path / "in.jsonl"
    good = record(path="ContextMemory/iterations/iteration_001/hypotheses/good.json", document={"id": "good"})
    place.write_text("\n".join(map(json.dumps, (good, record(**changes)))))
    with pytest.raises(MemfsError, match=r"(?i)" + message) as caught:
        workspace.states.importer.read(place)
    assert (caught.value.path, caught.value.line) == (str(place), 2)
    assert not (workspace.root / "ContextMemory/iterations").exists()


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
    """What is no export is refused by what is wrong with it, never with a library's own error (S19)."""
    with pytest.raises(ContentError, match=message) as caught:
        opened().states.importer.read(io.BytesIO(data))
    assert caught.value.path == "standard input"


def test_an_import_takes_json_lines_only(opened: Open, tmp_path: Path) -> None:
    """CSV and Parquet are for other programs: the error says which format comes back."""
    with pytest.raises(QueryInvalid, match="JSON Lines"):
        opened().states.importer.read(tmp_path / "state.csv")


def test_the_same_document_twice_is_refused(opened: Open) -> None:
    """Two records of one path: the second is named with the line of the first."""
    line = json.dumps(record()).encode() + b"\n"
    with pytest.raises(MemfsError, match="line 1 already"):
        opened().states.importer.read(io.BytesIO(line + line))


@pytest.mark.parametrize("other", ["thing", "Thing"])
def test_two_memories_of_one_id_are_refused(opened: Open, other: str) -> None:
    """In two folders, or in another case, they are one id: the second is named, and nothing is stored."""
    folder = "ContextMemory/memories/semantic"
    rows = [
        record(path=f"{folder}/2026-{month}/{name}.yaml", type="memory", iteration=None, document={"content": "A fact"})
        for month, name in ((11, "thing"), (12, other))
    ]
    workspace = opened()
    with pytest.raises(MemfsError, match="line 1 already"):
        workspace.states.importer.read(io.BytesIO(b"".join(json.dumps(row).encode() + b"\n" for row in rows)))
    assert workspace.store.count() == 0


def test_a_stream_that_cannot_seek_is_imported(opened: Open, tmp_path: Path) -> None:
    """A pipe is read once, kept beside the journal while it is checked, and leaves nothing there."""
    workspace = opened()

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    taken = workspace.states.importer.read(Pipe(json.dumps(record()).encode()))
    assert taken.counts == {"hypothesis": 1}
    assert not list(workspace.repository.state.glob(".import*"))


def test_a_file_that_is_not_there_is_named(opened: Open, tmp_path: Path) -> None:
    """The error has the path that was asked for."""
    with pytest.raises(StorageIO) as caught:
        opened().states.importer.read(tmp_path / "none.jsonl")
    assert caught.value.path == str(tmp_path / "none.jsonl")
