"""export and import on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memfs import open_workspace

from .conftest import Memfs


@pytest.fixture
def filled(root: Path) -> Path:
    """A workspace with two hypotheses in iteration 1 and a memory."""
    with open_workspace(root, watch=False) as workspace:
        for name in ("h-1", "h-2"):
            workspace.states.recorder.hypothesis({"id": name, "rating": 1.0, "agent": "Scout"})
    return root


def test_documents_go_to_standard_output_and_into_a_file(filled: Path, memfs: Memfs, tmp_path: Path) -> None:
    """Without FILE the export is the output; with one, its ending says the format, and a line what it holds (S19)."""
    lines = [json.loads(line) for line in memfs("state", "export", "--type", "hypothesis").out.splitlines()]
    assert [line["document"]["id"] for line in lines] == ["h-1", "h-2"]
    place = tmp_path / "out.csv"
    done = memfs("state", "export", str(place), "--type", "hypothesis", "--iteration", "1-3", "--agent", "Scout")
    assert done.code == 0, done.err
    assert "2 documents (2 hypothesis)" in done.out
    assert place.read_text().startswith("path,type,iteration,sha256,id,rating,agent,")
    report = memfs("state", "export", str(place), "--replace", "--json").json
    assert report["counts"]["system_state"] == 1
    assert report["bytes"] == place.stat().st_size
    assert not list(tmp_path.glob("*.tmp"))


def test_state_documents_are_not_imported(filled: Path, memfs: Memfs, bare: Memfs, tmp_path: Path) -> None:
    """import says what brings them elsewhere, and takes the memories beside them (S19)."""
    memfs("remember", "a text", "--id", "x")
    data = memfs("state", "export", "--type", "hypothesis").out + memfs("export").out
    other = tmp_path / "other"
    bare("init", str(other))
    taken = bare("-C", str(other), "import", "-", "--json", stdin=data)
    assert (taken.code, taken.json["stored"], len(taken.json["refused"])) == (1, 1, 2)
    assert "restore a backup" in taken.err
    assert bare("-C", str(other), "show", "x").code == 0


def test_an_export_has_all_memories_and_is_read_back(memfs: Memfs, bare: Memfs, root: Path, tmp_path: Path) -> None:
    """A line holds a memory with its file; imported elsewhere, the files are the same, comments included (S19)."""
    for words in (["a text", "--id", "x"], ["by an agent", "--agent", "coder"]):
        memfs("remember", *words)
    page = next((root / "ContextMemory").rglob("x.yaml"))
    page.write_text(f"# mine\n{page.read_text()}")
    place = tmp_path / "memories.jsonl"
    result = memfs("export", str(place))
    assert f"Exported 2 memories to {place} (" in result.out
    assert [json.loads(line)["document"]["content"] for line in memfs("export").out.splitlines()] == [
        "by an agent",
        "a text",
    ]
    assert len(memfs("export", "--agent", "coder").out.splitlines()) == 1
    other = tmp_path / "other"
    bare("init", str(other))
    assert bare("-C", str(other), "import", str(place)).out.startswith("Imported 2 memories from ")
    assert next((other / "ContextMemory").rglob("x.yaml")).read_text() == page.read_text()
    assert bare("-C", str(other), "import", str(place)).out.endswith("; 2 were there already\n")


def test_an_export_has_no_secret_that_no_reason_allows(root: Path, memfs: Memfs, tmp_path: Path) -> None:
    """A file to which a person added one is named as missing; with a reason it is written, and comes back."""
    secret = 'api_key = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"'
    memfs("remember", secret, "--id", "allowed", "--allow-secret", "a fixture of the tests")
    path = root / memfs("remember", "plain words", "--id", "edited", "--json").json["path"]
    path.write_text(path.read_text().replace("plain words", secret.replace("4eC39", "9dE22")))
    done = memfs("export", str(tmp_path / "all.jsonl"))
    assert (done.code, "edited.yaml cannot be read" in done.err) == (1, True)
    (line,) = (tmp_path / "all.jsonl").read_text().splitlines()
    assert json.loads(line)["document"]["metadata"] == {"secret_allowed": "a fixture of the tests"}
    memfs("forget", "allowed")
    assert memfs("import", str(tmp_path / "all.jsonl")).code == 0
    assert memfs("show", "allowed", "--json").json["content"] == secret


def test_a_conflict_names_each_memory_and_replace_replaces(memfs: Memfs, tmp_path: Path) -> None:
    """Exit code 1, the lines named, nothing stored; --replace replaces (S19)."""
    for name in ("one", "two"):
        memfs("remember", f"the text of {name}", "--id", name)
    place = tmp_path / "in.jsonl"
    lines = [json.loads(line)["document"] for line in memfs("export").out.splitlines()]
    place.write_text("".join(json.dumps({**line, "content": "another"}) + "\n" for line in lines))
    refused = memfs("import", str(place))
    assert refused.code == 1
    assert "in.jsonl:1: " in refused.err
    assert "2 left out" in refused.out
    assert "2 of them replaced" in memfs("import", str(place), "--replace").out


def test_lines_that_are_memories_by_themselves_are_imported(root: Path, memfs: Memfs, tmp_path: Path) -> None:
    """A line need not have a document: the fields of a memory are one (S19)."""
    place = tmp_path / "notes.jsonl"
    place.write_text('\n{"content": "from a list", "id": "one"}\n{"content": "another", "id": "two"}\n'.lstrip())
    assert "2 memories" in memfs("import", str(place)).out
    assert memfs("import", "-", "--json", stdin='{"content": "third"}').json["stored"] == 1
    assert memfs("import", str(place)).code == 0
    assert memfs("show", "two").code == 0


def test_a_line_without_times_has_those_of_the_memory_that_is_there(root: Path, memfs: Memfs, tmp_path: Path) -> None:
    """A second import of a line changes nothing, and --replace leaves when it happened (C4)."""
    place = tmp_path / "lines.jsonl"
    place.write_text('{"id": "same", "content": "same"}\n')
    assert memfs("import", str(place)).code == 0
    assert "1 were there already" in memfs("import", str(place)).out
    memfs("remember", "It happened", "--id", "event", "--time", "2020-05-05")
    place.write_text('{"id": "event", "content": "It happened twice"}\n')
    assert memfs("import", str(place), "--replace").code == 0
    shown = memfs("show", "event", "--json").json
    assert (shown["content"], shown["timestamp"][:10]) == ("It happened twice", "2020-05-05")


def test_lines_without_an_id_are_stored_once(memfs: Memfs, tmp_path: Path) -> None:
    """A line that says what an earlier import stored is there already, also where that was changed here.

    One that is in its file twice is left out; other tags make another memory.
    """
    place = tmp_path / "facts.jsonl"
    place.write_text('{"content": "Ada wrote it"}\n{"content": "Ada wrote it", "type": "note"}\n' * 2)
    assert "2 memories" in memfs("import", str(place)).out
    assert "it is in line 1 already" in memfs("import", str(place)).err
    assert "Imported 0 memories" in memfs("import", str(place)).out
    memfs("update", memfs("list", "--type", "note", "--json").json["items"][0]["id"], "--tag", "kept")
    assert "Imported 0 memories" in memfs("import", str(place)).out
    assert len(memfs("list", "--tag", "kept", "--json").json["items"]) == 1
    place.write_text('{"content": "Ada wrote it"}\n{"content": "Ada wrote it", "tags": ["x"]}\n')
    assert "Imported 1 memory" in memfs("import", str(place)).out
    place.write_text('{"content": "Bo", "importance": 2}\n{"content": "Bo", "importance": 3}\n')
    assert "it is in line 1 already" in memfs("import", str(place)).err


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ('{"text": "hello"}', "did you mean 'content'?"),
        ('[{"content": "hello"}]', "a JSON array, where one object per line is expected"),
        ('[\n{"content": "hello"}\n]', "a JSON array, where one object per line is expected"),
        ("plain words", "--from markdown"),
    ],
)
def test_an_invalid_line_gets_an_error_that_says_what_is_valid(memfs: Memfs, written: str, message: str) -> None:
    """The refusal names what was probably meant, in words of the command line."""
    done = memfs("import", "-", stdin=written)
    assert (done.code, message in done.err) == (1, True)


def test_a_place_for_an_export_is_kept_from_harm(filled: Path, memfs: Memfs, tmp_path: Path) -> None:
    """Nothing is overwritten unless asked for, and an export is never among the documents (S19)."""
    place = tmp_path / "taken.jsonl"
    place.write_text("mine")
    refused = memfs("export", str(place))
    assert (refused.code, place.read_text()) == (1, "mine")
    assert "--replace" in refused.err
    inside = filled / "ContextMemory" / "export.jsonl"
    assert memfs("export", str(inside)).code == 1
    assert not inside.exists()
    assert memfs("export", str(tmp_path / "none" / "x.jsonl")).code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("state", "export", "--type", "nonsense"), "agent_output"),
        (("state", "export", "--iteration", "five"), "3-7"),
        (("state", "export", "--iteration", "5-3"), "smaller"),
        (("export", "--since", "soonish"), "--since"),
        (("export", "--json"), "FILE"),
    ],
)
def test_impossible_arguments_are_explained(root: Path, memfs: Memfs, arguments: tuple[str, ...], message: str) -> None:
    """Exit code 2, with what would be right."""
    done = memfs(*arguments, stdin="")
    assert done.code == 2
    assert message in (done.out if "--json" in arguments else done.err)


def test_a_missing_document_makes_the_exit_code_1(filled: Path, memfs: Memfs, tmp_path: Path) -> None:
    """What could be read is exported; what could not is named (S19)."""
    broken = filled / "ContextMemory/iterations/iteration_001/hypotheses/h-1.json"
    broken.write_text("{")
    done = memfs("state", "export", str(tmp_path / "x.jsonl"), "--json")
    assert done.code == 1
    assert "h-1.json" in done.err
    assert len(done.json["missing"]) == 1
