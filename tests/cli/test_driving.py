"""git's call of the merge driver: read without the command line, and with the same answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memfs.__main__ import main
from memfs.doors.cli import merge_driver

PATH = "ContextMemory/memories/semantic/one.yaml"
BASE = "title: One\ncontent: We deploy on Fridays\ntags: [deploy]\n"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--help",),
        ("base", "ours", "theirs", "--path", PATH),
        ("base", "ours", "theirs", "--marker-size", "seven", "--path", PATH),
        ("base", "ours", "theirs", "--marker-size", "7", "--path"),
        ("base", "ours", "--marker-size", "7", "--path", PATH, "theirs"),
        ("-C", "ours", "theirs", "--marker-size", "7", "--path", PATH),
        ("base", "ours", "theirs", "--marker-size", "7", "--path", PATH, "--help"),
    ],
)
def test_b3_what_git_does_not_say_is_for_the_command_line(words: tuple[str, ...]) -> None:
    """Only git's own form goes the short way: everything else is explained or refused by the verb (B3)."""
    assert merge_driver.parse_call(words) is None


def test_b3_gits_call_is_understood() -> None:
    """The files, the length of markers and the path, which may look like an option (B3)."""
    call = merge_driver.parse_call(("b", "o", "t", "--marker-size", "9", "--path", "--path"))
    assert call == (Path("b"), Path("o"), Path("t"), 9, "--path")


def test_b3_git_waits_for_nothing_that_a_file_does_without(tmp_path: Path) -> None:
    """git starts a process for each file: a file joined brings neither click nor what only errors need (B3)."""
    for name, text in (("b", BASE), ("o", BASE + "pinned: true\n"), ("t", BASE.replace("One", "Two"))):
        (tmp_path / name).write_text(text)
    code = (
        "import sys; from memfs.__main__ import main\n"
        "HEAVY = ('click', 'memfs.format.secrets', 'memfs.model.state_documents', 'jsonschema')\n"
        "try: main()\n"
        "except SystemExit as ended: print(ended.code, [one for one in HEAVY if one in sys.modules])\n"
    )
    words = ["merge-driver", "b", "o", "t", "--marker-size", "7", "--path", PATH]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "0 []\n"
    assert (tmp_path / "o").read_text() == BASE.replace("One", "Two") + "pinned: true\n"


def test_b3_ctrl_c_ends_it_as_it_ends_every_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopping git in the middle of a merge prints no traceback (B3)."""

    def stopped(_: merge_driver.MergeRequest) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("gc.freeze", lambda: None)
    monkeypatch.setattr(merge_driver, "answer", stopped)
    monkeypatch.setattr(sys, "argv", ["memfs", "merge-driver", "b", "o", "t", "--marker-size", "7", "--path", PATH])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130


def test_b3_nobody_to_read_what_gave_way_changes_no_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where standard error is full or gone, git gets the same code, and the file both values (B3)."""

    class Gone:
        def write(self, _: str) -> int:
            raise BrokenPipeError

    for name, title in (("b", "One"), ("o", "Two"), ("t", "Three")):
        (tmp_path / name).write_text(BASE.replace("One", title))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(merge_driver, "secure", lambda: None)
    monkeypatch.setattr(sys, "stderr", Gone())
    assert merge_driver.answer(merge_driver.MergeRequest(Path("b"), Path("o"), Path("t"), 7, PATH)) == 0
    assert "conflicts:" in (tmp_path / "o").read_text()
