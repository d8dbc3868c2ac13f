"""The journal keeps what was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.faults import DISK_FULL, Fault, Stopped, injected
from memfs.errors import FormatUnsupported, JournalDamaged, StorageFull
from memfs.fs.journal import FileChange, Journal, Operation, Writer, parse


def operation(name: str, data: bytes | None = b"content: x\n") -> Operation:
    """An operation on one file."""
    change = FileChange(path=f"ContextMemory/{name}.yaml", old="", new="1" if data else "", data=data)
    return Operation(
        id=name,
        branch="refs/heads/main",
        time=1.5,
        message=f"Remember {name}",
        batch=False,
        writers=(Writer(),),
        changes=(change,),
    )


def test_another_reader_sees_what_was_appended(tmp_path: Path) -> None:
    """Operations, marks and removals read back as they were written."""
    writer, reader = Journal(tmp_path / "journal"), Journal(tmp_path / "journal")
    writer.append([operation("a"), operation("b", None)])
    writer.mark_applied("a")
    assert reader.news() == {"ContextMemory/a.yaml", "ContextMemory/b.yaml"}
    assert reader.waiting == {"a": operation("a"), "b": operation("b", None)}
    assert reader.applied == {"a"}
    writer.append([operation("c")])
    assert reader.unseen() == {"ContextMemory/c.yaml"}
    assert reader.news() == {"ContextMemory/c.yaml"}
    assert reader.news() == set()
    assert reader.latest("ContextMemory/c.yaml") == "1"


def _generation(journal: Journal) -> int:
    return parse(journal.path.read_bytes().split(b"\n")[0], str(journal.path)).generation


def test_dropping_starts_a_new_generation_and_keeps_the_rest(tmp_path: Path) -> None:
    """What is committed goes; what waits stays, with its mark; the commit behind it is remembered."""
    journal, other = Journal(tmp_path / "journal"), Journal(tmp_path / "journal")
    journal.append([operation("a"), operation("b")])
    journal.mark_applied("b")
    assert other.news() == {"ContextMemory/a.yaml", "ContextMemory/b.yaml"}
    before = _generation(journal)
    journal.drop(["a"], tip="f" * 40)
    assert (list(journal.waiting), journal.applied, _generation(journal)) == (["b"], {"b"}, before + 1)
    assert other.news() == set()
    assert (list(other.waiting), other.tip) == (["b"], "f" * 40)


def test_dropping_records_hides_no_news(tmp_path: Path) -> None:
    """News stay complete across generations, or are reported as incomplete."""
    journal, attentive, sleepy = (Journal(tmp_path / "journal") for _ in range(3))
    journal.append([operation("a")])
    assert attentive.news() == sleepy.news() == {"ContextMemory/a.yaml"}
    journal.append([operation("b")])
    assert attentive.news() == {"ContextMemory/b.yaml"}
    journal.drop(["a", "b"])
    journal.append([operation("c")])
    assert attentive.news() == {"ContextMemory/c.yaml"}
    assert sleepy.news() is None
    journal.append([operation("d")])
    journal.drop(["c"])
    assert attentive.news() is None
    journal.append([operation("e")])
    assert (attentive.news(), sleepy.news()) == ({"ContextMemory/e.yaml"}, None)


def test_24_a_record_cut_off_after_a_failed_sync_leaves_other_readers_right(tmp_path: Path) -> None:
    """Anyone who had read a record that was then taken back does not damage what came after it (faults row 24)."""
    writer, reader = Journal(tmp_path / "journal"), Journal(tmp_path / "journal")
    writer.append([operation("first")])
    reader.catch_up()
    whole = (tmp_path / "journal").read_bytes()
    writer.append([operation("refused")])
    reader.catch_up()
    with open(tmp_path / "journal", "r+b") as same_file:
        same_file.truncate(len(whole))
    fresh = Journal(tmp_path / "journal")
    fresh.append([operation("acknowledged", b"x" * 500)])
    reader.append([operation("later")])
    last = Journal(tmp_path / "journal")
    last.catch_up()
    assert list(last.waiting) == ["first", "acknowledged", "later"]
    assert last.damage == []


def test_21_what_is_before_a_torn_end_is_news_once(tmp_path: Path) -> None:
    """A killed writer's last record makes nobody take what is known for news forever (faults row 21)."""
    writer, reader = Journal(tmp_path / "journal"), Journal(tmp_path / "journal")
    writer.append([operation("a"), operation("b")])
    with open(tmp_path / "journal", "ab") as file:
        file.write(b"torn" * 100)
    assert reader.news() == {"ContextMemory/a.yaml", "ContextMemory/b.yaml"}
    assert (reader.news(), reader.unseen()) == (set(), set())
    assert writer.news() == set()
    Journal(tmp_path / "journal").append([operation("c")])
    assert (reader.news(), writer.news()) == ({"ContextMemory/c.yaml"}, {"ContextMemory/c.yaml"})
    assert list(reader.waiting) == ["a", "b", "c"]


def test_a_torn_tail_is_a_write_that_never_was(tmp_path: Path) -> None:
    """At every length of a half-written record, what came before is whole and the next append works."""
    journal = Journal(tmp_path / "journal")
    journal.append([operation("a")])
    whole = (tmp_path / "journal").read_bytes()
    journal.append([operation("b")])
    longer = (tmp_path / "journal").read_bytes()
    for length in range(len(whole), len(longer), 7):
        (tmp_path / "journal").write_bytes(longer[:length])
        again = Journal(tmp_path / "journal")
        again.append([operation("c")])
        fresh = Journal(tmp_path / "journal")
        fresh.catch_up()
        assert list(fresh.waiting) == ["a", "c"]
        assert fresh.damage == []


def test_28_damage_in_the_middle_is_reported_and_the_rest_kept(tmp_path: Path) -> None:
    """A flipped bit costs its own record only, and is said (faults row 28)."""
    journal = Journal(tmp_path / "journal")
    journal.append([operation("a")])
    start = (tmp_path / "journal").stat().st_size
    journal.append([operation("b")])
    journal.append([operation("c")])
    data = bytearray((tmp_path / "journal").read_bytes())
    data[start + 40] ^= 1
    (tmp_path / "journal").write_bytes(data)
    fresh = Journal(tmp_path / "journal")
    fresh.catch_up()
    assert list(fresh.waiting) == ["a", "c"]
    assert "offset" in str(fresh.damage[0])


def test_remembered_text_cannot_pass_for_a_record(tmp_path: Path) -> None:
    """A memory that holds the bytes of another journal's record does not become an operation after a torn write."""
    forged = Journal(tmp_path / "forged")
    forged.append([operation("evil")])
    journal = Journal(tmp_path / "journal")
    journal.append([operation("a", (tmp_path / "forged").read_bytes() + b"x" * 100)])
    data = (tmp_path / "journal").read_bytes()
    (tmp_path / "journal").write_bytes(data[:-50])
    fresh = Journal(tmp_path / "journal")
    fresh.catch_up()
    assert fresh.waiting == {}


def test_a_failed_append_counts_as_not_written(tmp_path: Path) -> None:
    """Whichever operation fails, the journal afterwards holds the old records and takes new ones."""
    journal = Journal(tmp_path / "journal")
    journal.append([operation("a")])
    with injected(Fault()) as counted:
        journal.append([operation("b")])
    journal.drop(["b"])
    for number in range(1, len(counted.seen) + 1):
        with injected(Fault(at=number, error=DISK_FULL)), pytest.raises(StorageFull):
            journal.append([operation("c")])
        fresh = Journal(tmp_path / "journal")
        fresh.catch_up()
        assert list(fresh.waiting) == ["a"]
    journal.append([operation("d")])
    assert list(journal.waiting) == ["a", "d"]


def test_stopped_while_dropping_keeps_the_old_or_the_new_journal(tmp_path: Path) -> None:
    """Replacing the file is atomic at every step."""
    for number in range(1, 30):
        journal = Journal(tmp_path / f"journal{number}")
        journal.append([operation("a"), operation("b")])
        fault = Fault(at=number)
        try:
            with injected(fault):
                journal.drop(["a"])
        except Stopped:
            fresh = Journal(journal.path)
            fresh.catch_up()
            assert list(fresh.waiting) in (["a", "b"], ["b"])
        else:
            assert number > 5
            break


def test_a_foreign_or_newer_file_is_refused(tmp_path: Path) -> None:
    """A journal without our header, or of another format, is never written to."""
    (tmp_path / "journal").write_text("something else\n")
    with pytest.raises(JournalDamaged):
        Journal(tmp_path / "journal").catch_up()
    (tmp_path / "newer").write_text("memfs-journal 2 1 0011223344556677 0 0 -\n")
    with pytest.raises(FormatUnsupported):
        Journal(tmp_path / "newer").append([operation("a")])
    assert (tmp_path / "newer").read_text() == "memfs-journal 2 1 0011223344556677 0 0 -\n"
