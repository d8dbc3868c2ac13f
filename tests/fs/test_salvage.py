"""What can be saved of a damaged journal (faults row 28)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.faults import flipped
from memfs.errors import FormatUnsupported, JournalDamaged
from memfs.fs.atomic_replace import sha256
from memfs.fs.journal import FileChange, Journal, Operation, salvage


def operation(name: str) -> Operation:
    """A write of one file."""
    data = f"content of {name}".encode()
    change = FileChange(path=f"ContextMemory/{name}.yaml", old="", new=sha256(data), data=data)
    return Operation(
        id=name, branch="refs/heads/main", time=1.0, message=name, batch=False, writers=(), changes=(change,)
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal with three operations, the first of them applied."""
    journal = Journal(tmp_path / "journal")
    journal.append([operation("one")])
    journal.mark_applied("one")
    journal.append([operation("two"), operation("three")])
    journal.close()
    return tmp_path / "journal"


def read(path: Path) -> tuple[list[str], list[str]]:
    """The operations in a journal, and those not applied."""
    journal = Journal(path)
    try:
        return [found.id for found in journal.operations()], [found.id for found in journal.unfinished()]
    finally:
        assert journal.damage == []
        journal.close()


def test_a_whole_journal_needs_no_salvage(path: Path) -> None:
    """Nothing is offered for a journal without damage, nor for none; a torn end is not damage."""
    assert salvage(path) is None
    assert salvage(path.with_name("none")) is None
    path.write_bytes(path.read_bytes()[:-5])
    assert salvage(path) is None
    assert read(path)[0] == ["one", "two"]


def test_every_bit_of_the_first_line_counts(path: Path) -> None:
    """Each flip in the header is noticed by reading, and salvage brings back every record with its marks."""
    whole = path.read_bytes()
    for bit in range((whole.index(b"\n") + 1) * 8):
        path.write_bytes(flipped(whole, bit))
        with pytest.raises((JournalDamaged, FormatUnsupported)):
            Journal(path).operations()
        saved = salvage(path)
        assert saved is not None
        saved.renew()
        assert read(path) == (["one", "two", "three"], ["two", "three"])


def test_records_around_damage_are_saved(path: Path) -> None:
    """One record is lost with its bytes; those before and after it are not."""
    whole = path.read_bytes()
    path.write_bytes(flipped(whole, whole.index(b"content of two") * 8))
    saved = salvage(path)
    assert saved is not None
    assert (len(saved.operations()), len(saved.damage)) == (2, 1)
    saved.renew()
    assert read(path) == (["one", "three"], ["three"])


def test_other_readers_notice_the_new_journal(path: Path) -> None:
    """A reader of the damaged one reads everything again."""
    reader = Journal(path)
    assert len(reader.operations()) == 3
    path.write_bytes(flipped(path.read_bytes(), 20 * 8))
    saved = salvage(path)
    assert saved is not None
    saved.renew()
    writer = Journal(path)
    writer.append([operation("four")])
    assert [found.id for found in reader.operations()] == ["one", "two", "three", "four"]
    writer.close()
    reader.close()


def test_a_newer_format_is_left_alone(path: Path) -> None:
    """What another version wrote is not damage."""
    path.write_bytes(b"memfs-journal 2 something else\n" + bytes(300))
    with pytest.raises(FormatUnsupported):
        salvage(path)
    path.write_bytes(b"memfs-journal 1 7 00112233 and so on\n")
    saved = salvage(path)
    assert saved is not None
    saved.renew()
    assert read(path) == ([], [])


def test_journals_from_before_the_checksum_are_read(path: Path) -> None:
    """The first line had seven words once."""
    line, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(b" ".join(line.split(b" ")[:7]) + b"\n" + rest)
    assert read(path)[0] == ["one", "two", "three"]
    assert salvage(path) is None
