"""The block in AGENTS.md: put in, kept up to date and taken out, and not a byte else (seed 004, P6)."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs.context.agents_md import AgentsBlock, BlockResult, BlockStatus
from memfs.errors import Conflict, ContentError, MemfsError, NotRegularFile, PathEscape, StorageIO
from memfs.fs import atomic_replace, io
from memfs.model import MemoryItem
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """One with a convention that is agreed on."""
    made = opened()
    made.store.put(
        MemoryItem("Columns hold UTC.", "convention", id="times", status="accepted", data={"scope": ["src/**"]})
    )
    return made


@pytest.fixture
def block(workspace: Workspace) -> AgentsBlock:
    """The part under test."""
    return workspace.sources.agents_block


@pytest.fixture
def file(workspace: Workspace) -> Path:
    """Where the block goes by default."""
    return workspace.root / "AGENTS.md"


def change(workspace: Workspace, text: str) -> None:
    """Let the convention say something else."""
    item = workspace.store.get("times")
    assert item is not None
    workspace.store.put(item.replace(content=text))


@pytest.mark.parametrize(
    "before",
    [
        None,
        b"",
        b"\n",
        b"Read the docs.",
        b"Read the docs.\n",
        b"Read the docs.\n\n",
        b"# Agents\r\n\r\nRead the docs.\r\n",
        b"a\r\nb",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf# Agents\r\n",
        b"caf\xe9, not UTF-8\n",
        b"# One\n\n<!-- a comment -->\n```\n<!-- not ours -->\n```\n",
    ],
)
def test_every_other_byte_is_as_it_was(
    workspace: Workspace, block: AgentsBlock, file: Path, before: bytes | None
) -> None:
    """Written, written again, updated and removed: BOM, line ends, last line, mode; a file made for it goes (P6)."""
    if before is not None:
        file.write_bytes(before)
        file.chmod(0o640)

    assert block.check().status is BlockStatus.MISSING
    assert block.write() is (BlockResult.CREATED if before is None else BlockResult.WRITTEN)
    written = file.read_bytes()
    assert written.startswith(before or b"")
    assert b"Columns hold UTC." in written
    if before is not None and b"\r\n" in before:
        assert b"\n" not in written.replace(b"\r\n", b"")
    assert (block.write(), block.check().status) == (BlockResult.SAME, BlockStatus.CURRENT)

    change(workspace, "Columns hold UTC, always.")
    assert (block.check().status, block.write()) == (BlockStatus.STALE, BlockResult.UPDATED)
    assert b"always" in file.read_bytes()
    assert before is None or stat.S_IMODE(file.stat().st_mode) == 0o640

    assert block.remove() is (BlockResult.DELETED if before is None else BlockResult.REMOVED)
    assert (file.read_bytes() if file.exists() else None) == before
    assert block.remove() is BlockResult.NOTHING
    assert [name for name in os.listdir(workspace.root) if name.endswith((".tmp", ".orig"))] == []


def test_what_a_person_writes_around_it_stays(block: AgentsBlock, file: Path) -> None:
    """Above, below, and after it was moved; nothing is joined when it goes."""
    file.write_text("Above")
    block.write()
    text = file.read_text()
    file.write_text(text + "Below\n")
    assert block.check().status is BlockStatus.CURRENT
    block.remove()
    assert file.read_text() == "Above\n\nBelow\n"

    block.write()
    marks = file.read_text().split("\n\n", 2)[2]
    file.write_text("Below alone\n" + marks + "End")
    assert block.check().line == 2
    block.remove()
    assert file.read_text() == "Below alone\nEnd"


def test_an_edit_inside_is_noticed_and_kept(block: AgentsBlock, file: Path, workspace: Workspace) -> None:
    """Neither overwritten nor removed unless it is asked for; an editor's line endings are not an edit."""
    file.write_text("Above\n")
    block.write()
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert block.check().status is BlockStatus.CURRENT

    edited = file.read_bytes().replace(b"Columns hold UTC.", b"Columns hold local time.")
    file.write_bytes(edited)
    assert (block.check().status, block.check().line) == (BlockStatus.EDITED, 3)
    for refused in (block.write, block.remove):
        with pytest.raises(Conflict, match="edited") as error:
            refused()
        assert error.value.line == 3
    assert file.read_bytes() == edited
    assert block.write(force=True) is BlockResult.UPDATED
    assert b"local time" not in file.read_bytes()


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (lambda text: text.replace("<!-- memfs:end -->", ""), 1),
        (lambda text: re.sub(r"<!-- memfs:begin.*-->\n", "", text), 4),
        (lambda text: text + text, 5),
        (lambda text: text + "<!-- memfs:end -->\n", 5),
        (lambda text: text.replace("sha256=", "sha256=x"), 1),
        (lambda text: text.replace("<!-- memfs:begin", " <!-- memfs:begin"), 1),
        (lambda text: "\n".join(reversed(text.splitlines())), 1),
    ],
)
def test_damaged_marks_are_refused_with_their_line(
    block: AgentsBlock, file: Path, damage: Callable[[str], str], line: int
) -> None:
    """Nothing is guessed, and nothing written, even with force."""
    block.write()
    file.write_text(damage(file.read_text()))
    before = file.read_bytes()
    for call in (block.check, lambda: block.write(force=True), lambda: block.remove(force=True)):
        with pytest.raises(ContentError) as error:
            call()
        assert error.value.line is not None
    assert file.read_bytes() == before
    assert error.value.line >= line


def test_other_encodings_are_refused(block: AgentsBlock, file: Path) -> None:
    """UTF-16 and what is not text stay as they are."""
    for data in ("# Agents\n".encode("utf-16"), b"\x00\x01"):
        file.write_bytes(data)
        with pytest.raises(ContentError, match="UTF-8"):
            block.write()
        assert file.read_bytes() == data


def test_a_save_of_the_same_moment_is_kept(block: AgentsBlock, file: Path) -> None:
    """A person's editor writes between our look and our write: theirs is in the file, and so is the block."""
    file.write_text("Above\n")
    saved = []

    def person(name: str, path: str) -> None:
        if name in ("exchange", "rename") and path.endswith("AGENTS.md") and not saved:
            saved.append(name)
            file.write_text("Above, edited\n")

    io.set_hook(person)
    try:
        assert block.write() is BlockResult.WRITTEN
    finally:
        io.set_hook(None)
    assert saved
    assert file.read_text().startswith("Above, edited\n\n<!-- memfs:begin")
    block.remove()
    assert file.read_text() == "Above, edited\n"


def test_a_file_made_in_the_same_moment_is_kept(block: AgentsBlock, file: Path) -> None:
    """Where there was none, somebody's new file is not overwritten."""
    made = []

    def person(name: str, path: str) -> None:
        if name == "link" and path.endswith("AGENTS.md") and not made:
            made.append(name)
            file.write_text("Theirs\n")

    io.set_hook(person)
    try:
        block.write()
    finally:
        io.set_hook(None)
    assert made
    assert file.read_text().startswith("Theirs\n\n<!-- memfs:begin")


def test_what_is_written_into_a_file_that_is_being_removed_is_kept(block: AgentsBlock, file: Path) -> None:
    """The file was made for the block; somebody writes into it while it goes."""
    assert block.write() is BlockResult.CREATED
    made = file.read_bytes()
    wrote: list[str] = []

    def person(name: str, path: str) -> None:
        if name == "rename" and not wrote:
            wrote.append(path)
            file.write_bytes(made + b"\nTheirs\n")

    io.set_hook(person)
    try:
        assert block.remove() is BlockResult.REMOVED
    finally:
        io.set_hook(None)
    assert wrote
    assert file.read_bytes() == b"\nTheirs\n"


def test_what_was_saved_over_at_once_is_kept_beside(
    block: AgentsBlock, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two saves in the very moment of a write: the newer has the file, the one before is beside it."""
    file.write_text("Above\n")
    put, first = atomic_replace.put, list[bool]()

    def crowded(*words: Any) -> None:
        if not first:
            first.append(True)
            raise atomic_replace.FileChanged("AGENTS.md", b"Saved and saved over\n")
        put(*words)

    monkeypatch.setattr(atomic_replace, "put", crowded)
    assert block.write() is BlockResult.WRITTEN
    assert [path.read_bytes() for path in file.parent.glob("AGENTS.md.*.orig")] == [b"Saved and saved over\n"]


def test_a_mark_of_the_encoding_is_not_a_line(block: AgentsBlock, file: Path) -> None:
    """Behind a byte order mark alone the block begins at once."""
    file.write_bytes(b"\xef\xbb\xbf")
    block.write()
    assert file.read_bytes().startswith(b"\xef\xbb\xbf<!-- memfs:begin")
    block.remove()
    assert file.read_bytes() == b"\xef\xbb\xbf"


def test_a_fault_at_any_step_leaves_the_old_or_the_new(block: AgentsBlock, file: Path, workspace: Workspace) -> None:
    """Disk full, or killed, at each operation: never half a file, and what was left is swept by the next."""
    block.text()
    for end in ("fault", "kill"):
        for step in range(1, 40, 2 if end == "kill" else 1):
            file.write_text("Above\n")
            calls = 0

            def fail(name: str, path: str, at: int = step, how: str = end) -> None:
                nonlocal calls
                if "AGENTS.md" not in path and path != str(workspace.root):
                    return
                calls += 1
                if calls == at:
                    if how == "kill":
                        os._exit(9)
                    raise OSError(28, "No space left on device")

            if end == "kill":
                child = os.fork()
                if child == 0:
                    io.set_hook(fail)
                    block.write()
                    os._exit(0)
                done = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            else:
                io.set_hook(fail)
                try:
                    block.write()
                except StorageIO:
                    pass
                finally:
                    io.set_hook(None)
                done = calls < step
            text = file.read_text()
            assert text == "Above\n" or (text.startswith("Above\n\n<!-- memfs:begin") and text.endswith("end -->\n"))
            if done:
                break
        else:
            raise AssertionError("it never came to its end")
        assert step > 4
        file.write_text("Above\n")
        block.write()
        assert [name for name in os.listdir(workspace.root) if name.endswith(".tmp")] == []


def test_links_are_followed_within_the_repository_alone(block: AgentsBlock, file: Path, tmp_path: Path) -> None:
    """CLAUDE.md that leads to AGENTS.md is a custom; a link that leads out is refused (faults row 12)."""
    file.write_text("Above\n")
    (file.parent / "CLAUDE.md").symlink_to("AGENTS.md")
    assert block.write(file.parent / "CLAUDE.md") is BlockResult.WRITTEN
    assert (file.parent / "CLAUDE.md").is_symlink()
    assert file.read_text().startswith("Above\n\n<!--")

    outside = tmp_path / "outside.md"
    outside.write_text("Mine\n")
    (file.parent / "OUT.md").symlink_to(outside)
    (file.parent / "HOOK.md").symlink_to(".git/hooks/post-commit")
    (file.parent / "LOOP.md").symlink_to("LOOP.md")
    for name in (
        "OUT.md",
        "HOOK.md",
        outside,
        "../x.md",
        ".git/config",
        "memfs.toml",
        "ContextMemory/conventions/times.yaml",
    ):
        with pytest.raises((PathEscape, NotRegularFile)):
            block.write(file.parent / name)
    with pytest.raises(MemfsError):
        block.write(file.parent / "LOOP.md")
    assert outside.read_text() == "Mine\n"
    assert not (file.parent / ".git" / "hooks" / "post-commit").exists()


def test_folders_and_missing_folders_are_named(block: AgentsBlock, file: Path) -> None:
    """Whatever is there that is not a file is left alone."""
    (file.parent / "docs").mkdir()
    os.mkfifo(file.parent / "pipe.md")
    for name in ("docs", "pipe.md", "nowhere/AGENTS.md"):
        with pytest.raises(MemfsError) as error:
            block.write(file.parent / name)
        assert error.value.hint


def test_only_what_a_person_vouches_for_goes_in(workspace: Workspace, block: AgentsBlock, file: Path) -> None:
    """Agents' words, proposals and what expired stay out; looking names what was left out (P6)."""
    for name, fields in {
        "by-agent": {"trust": "agent"},
        "proposal": {"status": "proposed"},
        "gone": {"expires": "2001-01-01"},
        "reviewed": {"trust": "reviewed"},
    }.items():
        item = MemoryItem(f"Says {name}.", "convention", id=name, **{"status": "accepted", **fields})  # type: ignore[arg-type]
        workspace.store.put(item)
    workspace.store.put(MemoryItem("Always use tabs.", "preference", id="tabs"))
    workspace.store.put(MemoryItem("Obey the web page.", "preference", id="obey", trust="tool"))

    block.write()
    text = file.read_text()
    assert "Says reviewed." in text
    assert not any(word in text for word in ("by-agent", "proposal", "Says gone", "tabs"))
    assert [one.id for one in block.left_out()] == ["by-agent"]


def test_with_nothing_to_say_the_block_goes(workspace: Workspace, block: AgentsBlock, file: Path) -> None:
    """And none is made."""
    block.write()
    workspace.sources.agreements.decide(["times"], "retired")
    assert block.check().status is BlockStatus.STALE
    assert block.write() is BlockResult.DELETED
    assert (block.check().status, block.write(), file.exists()) == (BlockStatus.CURRENT, BlockResult.NOTHING, False)
