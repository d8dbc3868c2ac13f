"""What the pages show is what happens while a resident is up for each workspace that they use, too."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest
import test_code_blocks
import test_doors
from transcripts import blocks, replayed

from kit.forked_command import RESIDENT_LOG
from kit.patience import LONG
from memfs.doors.resident import client

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ("docs/inbox.md", "docs/teams/undo.md", "docs/teams/review.md")
"""Pages with what is written and asked, with working trees that come and go, and with what is compared."""
_NO_TRANSCRIPT = "docs/plugins.md"
Read = Callable[[str], str]


@pytest.fixture
def answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Each command has a resident begun before, where there can be one; the list of what residents answered."""
    log = tmp_path / "answered"
    log.touch()
    monkeypatch.setenv(RESIDENT_LOG, str(log))
    monkeypatch.setenv("MEMFS_RESIDENT", str(int(LONG * 1000) % 100_000))
    yield log
    _end_residents()


@pytest.fixture
def typed(
    folder: Path, own_world: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], list[tuple[str, str]]]:
    """Replay a page, which must say what happens, in a home and a repository of its own; what was typed and printed."""

    worlds = count()

    def replay_page(name: str, text: str) -> list[tuple[str, str]]:
        world = folder.parent / f"world-{next(worlds)}"
        project = world / "page" / "project"
        project.mkdir(parents=True)
        git(project, "init", "--quiet")
        with monkeypatch.context() as patch:
            patch.setenv("HOME", str(shutil.copytree(own_world, world / "home")))
            patch.setenv("XDG_CACHE_HOME", str(world / "home/cache"))
            try:
                wrong, printed = replayed(text, project.parent if name == "docs/leaving.md" else project)
            finally:
                _end_residents()
        assert not wrong, "\n".join([f"{name} says otherwise:", *wrong])
        return printed

    return replay_page


def _end_residents() -> None:
    for lock in Path(client.socket_folder()).glob("*.lock"):
        with suppress(ValueError, ProcessLookupError):
            os.kill(int(lock.read_text()), signal.SIGTERM)


def _pages() -> Iterator[str]:
    for path in sorted(ROOT.glob("docs/**/*.md")):
        name = path.relative_to(ROOT).as_posix()
        needs = test_doors.NEEDS.get(path.name) if path.parent == test_doors.DOORS else None
        if name != _NO_TRANSCRIPT and blocks(path.read_text()) and (needs is None or find_spec(needs)):
            yield name


def _same(text: str) -> str:
    """What was printed, without what differs from one run to the next: random names, times, folders, processes."""
    text = re.sub(r"memfs: \d+ commits? left.*\n", "", text)  # of two in the middle the hash decides
    text = re.sub(r" and \d+ of sessions under way", "", text)  # a resident learns from a session a moment later
    named = re.sub(r"[0-9a-f]{7,64}|-([0-9a-z]{6}|[0-9a-z]{16})\b", "#", text)
    return re.sub(r"\d+([-:.]\d+)*|/\S+/", "#", named)


def test_pages_say_the_same_with_residents(
    page: Read,
    typed: Callable[[str, str], list[tuple[str, str]]],
    answered: Path,
    monkeypatch: pytest.MonkeyPatch,
    scale: Callable[[bool, bool], bool],
    figures: Callable[..., None],
) -> None:
    """Each page is right, and what it leaves open is to the byte what is printed without a resident."""
    names = list(_pages() if scale(False, True) else SAMPLE)
    compared = 0
    for name in names:
        served = typed(name, page(name))
        with monkeypatch.context() as patch:
            patch.setenv("MEMFS_RESIDENT", "off")
            patch.delenv(RESIDENT_LOG)
            alone = typed(name, page(name))
        assert [(command, _same(output)) for command, output in served] == [
            (command, _same(output)) for command, output in alone
        ], name
        compared += len(served)
    by_residents = len(answered.read_text().splitlines())
    assert by_residents >= len(SAMPLE)
    figures("pages with residents", pages=len(names), commands=compared, answered=by_residents)


def test_the_tour_of_the_readme_is_the_same_with_a_resident(
    page: Read, answered: Path, memfs_on_path: Path, tmp_path: Path
) -> None:
    """What a newcomer types first prints what is below it; what waits for its commit is not part of another."""
    (tour := tmp_path / "tour").mkdir()
    test_code_blocks.test_the_shell_tour_runs_and_prints_what_it_says(page, memfs_on_path, tour)
    assert len(re.findall("^recall", answered.read_text(), re.MULTILINE)) == 3
