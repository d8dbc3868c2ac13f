"""show, list, forget."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Memfs, git


def test_show_of_a_folder_says_to_name_a_file(memfs: Memfs) -> None:
    """Naming the folder of the memories does not advise moving them away."""
    memfs("remember", "a fact")
    shown = memfs("show", "ContextMemory/memories")
    assert shown.code == 1
    assert "a folder, not a file" in shown.err
    assert "name a file in it" in shown.err


def test_show_takes_id_beginning_and_path(memfs: Memfs) -> None:
    """An item is named by its id, by an unambiguous beginning, or by its path."""
    path = memfs("remember", "x", "--id", "use-postgres", "--json").json["path"]
    for name in ("use-postgres", "use-p", path, path.removeprefix("ContextMemory/")):
        assert memfs("show", name, "--json").json["id"] == "use-postgres"


def test_show_of_nothing_names_the_nearest(memfs: Memfs) -> None:
    """A mistyped id is refused with the one that was probably meant."""
    memfs("remember", "x", "--id", "use-postgres")
    ran = memfs("show", "use-postgras")
    assert ran.code == 1
    assert "use-postgres" in ran.err


def test_show_at_a_revision(root: Path, memfs: Memfs) -> None:
    """ID@REV and --as-of show an item as it was, also when it is gone now."""
    memfs("remember", "one", "--id", "x")
    memfs("update", "x", "two")
    assert memfs("show", "x@HEAD~1", "--json").json["content"] == "one"
    assert memfs("show", "x", "--as-of", "HEAD", "--json").json["content"] == "two"
    memfs("forget", "x")
    assert memfs("show", "x").code == 1
    assert memfs("show", "x@HEAD~1", "--json").json["content"] == "two"
    ran = memfs("show", "x@nowhere")
    assert ran.code == 1
    assert "nowhere" in ran.err


def test_show_for_a_person_and_raw(root: Path, memfs: Memfs) -> None:
    """show prints facts and text; --raw prints the file."""
    path = memfs("remember", "the text", "--id", "x", "--title", "T", "--tag", "a", "--context", "k=v", "--json").json[
        "path"
    ]
    shown = memfs("show", "x").out
    for expected in ("x\nT\n", "semantic", "tags       a", "k = v", path, "\n\n  the text\n"):
        assert expected in shown
    assert memfs("show", "x", "--raw").out == (root / path).read_text()


def test_what_was_stored_within_a_second_is_listed_newest_first(memfs: Memfs) -> None:
    """The order is that of storing, and neither list nor status leaves the newest out."""
    names = ["zeta", "alpha", "mid", "beta"]
    for name in names:
        memfs("remember", f"the {name} of it", "--id", name)
    assert [one["id"] for one in memfs("list", "--json", "--limit", "3").json["items"]] == names[:0:-1]
    assert [one["id"] for one in memfs("status", "--json").json["knowledge"]["newest"]] == names[:0:-1]


def test_list_is_newest_first(memfs: Memfs) -> None:
    """list prints one line an item, and how many on standard error."""
    memfs("remember", "older", "--id", "a", "--time", "2026-01-01")
    memfs("remember", "newer", "--id", "b", "--title", "Newer", "--time", "2026-01-02")
    ran = memfs("list")
    assert ran.out == "b  semantic  2026-01-02  Newer\na  semantic  2026-01-01  older\n"
    assert "2 items" in ran.err
    assert memfs("list", "--json").json["items"][0]["title"] == "Newer"


def test_forget_prints_the_way_back(root: Path, memfs: Memfs) -> None:
    """forget removes file and recall, keeps history, and its printed command brings the item back."""
    path = memfs("remember", "keep me", "--id", "x", "--json").json["path"]
    ran = memfs("forget", "x", "--reason", "outdated")
    assert ran.code == 0, ran.err
    assert not (root / path).exists()
    assert memfs("recall", "keep", "--json").json["hits"] == []
    assert "outdated" in git(root, "log", "-1", "--format=%B")
    command = ran.out.splitlines()[1].removeprefix("  to bring it back: memfs ").split()
    assert command[0] == "restore"
    gone = memfs("show", "x").err
    assert gone.startswith("memfs: no memory is called 'x'\n  it was forgotten: 'memfs restore x' brings it back")
    assert {memfs("forget", "x").err, memfs("update", "x", "more").err, memfs("update", "x", "--edit").err} == {gone}
    assert memfs(*command).code == 0
    assert memfs("show", "x", "--json").json["content"] == "keep me"
    assert git(root, "status", "--porcelain") == ""


def test_forgetting_what_is_not_committed_yet_can_be_undone_too(root: Path, memfs: Memfs, monkeypatch: object) -> None:
    """An item whose commit waits, or that a person just wrote, is committed before it is removed."""
    path = root / memfs("remember", "one", "--id", "x", "--json").json["path"]
    path.write_text(path.read_text().replace("one", "edited by hand"))
    undo = memfs("forget", "x", "--json").json["forgotten"][0]["undo"]
    assert memfs(*undo.split()[1:]).code == 0
    assert memfs("show", "x", "--json").json["content"] == "edited by hand"


def test_forget_several_at_once(root: Path, memfs: Memfs) -> None:
    """Several ids are one commit; an unknown one among them stops all."""
    memfs("remember", "one", "--id", "a")
    memfs("remember", "two", "--id", "b")
    assert memfs("forget", "a", "b", "nothing-like-it").code == 1
    assert len(memfs("list", "--json").json["items"]) == 2
    before = int(git(root, "rev-list", "--count", "HEAD"))
    assert memfs("forget", "a", "b", "a").code == 0
    assert memfs("list", "--json").json["items"] == []
    assert int(git(root, "rev-list", "--count", "HEAD")) == before + 1


def test_forget_dry_run_changes_nothing(root: Path, memfs: Memfs) -> None:
    """--dry-run only says what would go."""
    memfs("remember", "one", "--id", "a")
    ran = memfs("forget", "a", "--dry-run")
    assert ran.out.startswith("Would forget a")
    assert memfs("show", "a").code == 0


@pytest.mark.parametrize("verb", [("forget",), ("update", "--pin")])
def test_a_folder_is_not_taken_for_a_memory(memfs: Memfs, verb: tuple[str, ...]) -> None:
    """forget and update of a folder say that it is one, and what takes a single memory."""
    memfs("remember", "kept", "--id", "kept")
    ran = memfs(*verb, "ContextMemory/memories/semantic")
    assert (ran.code, ran.out) == (2, "")
    assert "ContextMemory/memories/semantic is a folder" in ran.err
    assert f"'memfs {verb[0]} ID' takes one memory" in ran.err
    assert memfs("show", "kept").code == 0


def test_show_at_a_date_names_the_commit(root: Path, memfs: Memfs) -> None:
    """Whatever names the revision, JSON has the commit it stands for."""
    memfs("remember", "one", "--id", "x")
    head = git(root, "rev-parse", "HEAD").strip()
    for at in ("HEAD", "now", "2999-01-01"):
        assert memfs("show", "x", "--as-of", at, "--json").json["as_of"]["commit"] == head
    assert memfs("show", f"x@{head[:8]}", "--json").json["as_of"]["commit"] == head


def test_show_prints_lists_and_mappings_readably(root: Path, memfs: Memfs) -> None:
    """No Python in what a person reads."""
    line = '{"content": "c", "id": "x", "metadata": {"places": ["here", "there"], "deep": {"a": [1, true]}}}'
    memfs("import", "-", stdin=line)
    shown = memfs("show", "x").out
    assert "places = here, there\n" in shown
    assert 'deep = {"a": [1, true]}\n' in shown


def test_list_shows_a_person_the_newest_hundred(memfs: Memfs) -> None:
    """A long list is cut with a note of how many more there are; --limit and --json give them."""
    lines = "".join(f'{{"content": "fact {number}"}}\n' for number in range(103))
    memfs("import", "-", stdin=lines)
    ran = memfs("list")
    assert len(ran.out.splitlines()) == 100
    assert "the newest 100 of 103 items; --limit shows more" in ran.err
    assert len(memfs("list", "--json").json["items"]) == 103
    ran = memfs("list", "--limit", "103")
    assert len(ran.out.splitlines()) == 103
    assert ran.err == "memfs: 103 items\n"


def test_the_beginning_of_an_id_names_what_was_forgotten(root: Path, memfs: Memfs) -> None:
    """log and restore --from know the ids of then; of a beginning of several they name those."""
    for name in ("xenon-light", "xenon-lamp"):
        memfs("remember", "x", "--id", name)
    memfs("forget", "xenon-light", "xenon-lamp")
    assert "Forget" in memfs("log", "xenon-li").out
    assert "xenon-light.yaml" in memfs("diff", "HEAD~1", "xenon-li").out
    unclear = memfs("restore", "xenon-l", "--from", "HEAD~1")
    assert (unclear.code, "it could be xenon-lamp, xenon-light" in unclear.err) == (1, True)
    assert memfs("restore", "xenon-li", "--from", "HEAD~1").code == 0
    assert memfs("show", "xenon-light").code == 0


def test_what_a_person_deleted_can_be_restored(root: Path, memfs: Memfs) -> None:
    """status calls it deleted; bringing it back loses nothing, so nobody has to commit the deletion first."""
    path = memfs("remember", "x", "--id", "lamp", "--json").json["path"]
    (root / path).unlink()
    assert f"deleted {path}" in memfs("status").out
    restored = memfs("restore", "lamp", "--from", "HEAD")
    assert (restored.code, (root / path).exists()) == (0, True), restored.err
    (root / path).write_text((root / path).read_text() + "# mine\n")
    assert memfs("restore", "lamp", "--from", "HEAD").code == 1


def test_a_file_that_a_person_made_is_called_new(root: Path, memfs: Memfs) -> None:
    """status calls a file new that no commit has and that memfs did not write; a changed one is edited."""
    memfs("config", "history.commit", "manual")
    path = memfs("remember", "x", "--id", "lamp", "--json").json["path"]
    for name, text in ((path, (root / path).read_text() + "# mine\n"), ("mine.yaml", "content: my own\n")):
        (root / path).with_name(Path(name).name).write_text(text)
    output = memfs("status").out
    assert f"new {Path(path).parent}/mine.yaml" in output
    assert f"edited {path}" in output


def test_a_file_that_waits_and_was_edited_is_listed_once(root: Path, memfs: Memfs) -> None:
    """What memfs wrote and a person edited before its commit is one file to look at."""
    memfs("config", "history.commit", "manual")
    path = memfs("remember", "x", "--id", "lamp", "--json").json["path"]
    (root / path).write_text((root / path).read_text() + "# mine\n")
    assert memfs("status").out.count(path) == 1


@pytest.mark.parametrize("verb", ["forget", "update", "log", "diff"])
def test_a_change_of_private_memory_names_the_command_for_it(memfs: Memfs, verb: str) -> None:
    """What recall shows as private:ID is changed in its own workspace, by the command that is printed."""
    refused = memfs(verb, "private:lamp", *(["--pin"] if verb == "update" else []))
    assert refused.code == 1
    assert f'memfs -C "$(memfs status --private)" {verb} lamp' in refused.err


def test_an_unknown_revision_is_reported_as_one(memfs: Memfs) -> None:
    """What can only be a revision is not taken for an id, and for a memory that waits the error says so."""
    assert "there is no revision 'HEAD~99'" in memfs("diff", "HEAD~99").err
    memfs("config", "history.commit", "manual")
    memfs("remember", "x", "--id", "lamp")
    assert "no commit has lamp yet" in memfs("log", "lamp").err


def test_a_mistyped_beginning_names_the_nearest_id(memfs: Memfs) -> None:
    """Most ids are longer than what people recall of them: their beginnings are compared, too."""
    memfs("remember", "x", "--id", "kestrel-sends-utc-ab3d5f")
    assert "did you mean 'kestrel-sends-utc-ab3d5f'?" in memfs("show", "kestrl").err


def test_a_change_names_the_other_file_with_the_id(root: Path, memfs: Memfs) -> None:
    """Every verb means the file that had the id; a change says that another one claims it, and never goes there."""
    own = memfs("remember", "three", "--id", "one", "--json").json["path"]
    copy = root / "ContextMemory/memories/procedural/one.yaml"
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes((root / own).read_bytes())
    changed = memfs("update", "one", "four", "--json")
    assert changed.json["path"] == own
    assert "procedural/one.yaml: the id 'one' belongs to" in changed.err
    assert "four" not in copy.read_text()
    assert [memfs("show", "one", "--json").json["path"], memfs("recall", "four", "--json").json["hits"][0]["path"]] == [
        own
    ] * 2
    for verb in (("update", "x"), ("forget",)):
        refused = memfs(verb[0], "ContextMemory/memories/procedural/one.yaml", *verb[1:])
        assert refused.code != 0
        assert "rename this file, or remove it" in refused.err
    assert memfs("forget", "one", "--json").json["forgotten"][0]["path"] == own
