"""``agent warn`` and ``agent episode record`` are two processes; the second knows what the first printed (P4)."""

from __future__ import annotations

from pathlib import Path

from memfs.learning.triggers import LOG
from tests.cli.conftest import Memfs

_DONE = ("agent", "episode", "record", "--file", "src/auth.py", "--agent", "coder", "--session", "s1")


def test_p4_a_recorded_outcome_names_what_it_was_warned_with(memfs: Memfs, root: Path) -> None:
    """What 'warn' printed about these files in this session is in the episode, with what --warned names (P4)."""
    failed = memfs(*_DONE, "edited the token check", "--outcome", "failure", "--error", "KeyError 'sub'", "--json").json
    assert failed["warned"] == []
    result = memfs(
        "agent", "warn", "--file", "src/auth.py", "--agent", "coder", "--session", "s1", "change the login", "--json"
    )
    assert result.json["ids"] == [failed["id"]]

    went_well = memfs(*_DONE, "looked at the claims first", "--outcome", "success", "--warned", "some-rule", "--json")
    elsewhere = memfs("agent", "episode", "record", "read it", "--file", "docs/a.md", "--outcome", "success", "--json")

    assert went_well.json["warned"] == ["some-rule", failed["id"]]
    assert elsewhere.json["warned"] == []


def test_p4_erasing_an_item_takes_what_agents_were_warned_with(memfs: Memfs, root: Path) -> None:
    """An id can reveal what its item was about: the log goes (faults 5)."""
    failed = memfs(*_DONE, "edited the token check", "--outcome", "failure", "--error", "KeyError 'sub'", "--json").json
    memfs("agent", "warn", "--file", "src/auth.py", "change the login")
    [log] = root.rglob(LOG)
    assert failed["id"] in log.read_text()

    assert memfs("admin", "erase", failed["id"], "--yes").code == 0

    assert not log.exists()
