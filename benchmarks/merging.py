"""Merging branches, beside git alone: one file by the driver and ``git merge-file``, whole branches by ``git merge``.

``python -m benchmarks.merging [ITEMS] [CHANGED] [ROUNDS]`` makes a memory of so many items and two branches that change
so many of them, each another field. Everything is measured in turn, in clones of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.corpus import read
from benchmarks.samples import Samples
from benchmarks.starting import compile_all
from benchmarks.surroundings import git, hermetic, memfs_command
from memfs.admin.store_builder import install_driver, uninstall_driver
from memfs.format.file_merge import FileMerger
from memfs.model import MemoryItem
from memfs.workspace import Workspace, open_workspace

FIELDS, DRIVER, SYNCED, DRIVEN = (
    "one file, in this process",
    "one file, memfs merge-driver",
    "a branch, by memfs itself",
    "a branch, git merge with the driver",
)
MERGE_FILE, MERGE = "git merge-file", "git merge -X ours"
_SETTINGS = {"index.engine": "sqlite", "history.commit": "manual"}


def main(arguments: Sequence[str]) -> int:
    """Measure, and print one line for each figure."""
    count, changed, rounds = (
        int(arguments[place]) if len(arguments) > place else usual for place, usual in enumerate((1_000, 50, 7))
    )
    compile_all()
    with hermetic(None) as folder:
        with open_workspace(folder / "a", create=True, watch=False, settings=_SETTINGS) as workspace:
            paths = _fill(workspace, count)
            _branches(workspace, paths[:changed])
            _files(workspace, paths[0], folder, rounds)
        _whole(folder, rounds)
    return 0


def _fill(workspace: Workspace, count: int) -> list[str]:
    with workspace.store.batch("all") as batch:
        stored = [batch.put(MemoryItem(one.content, one.type, title=one.title)) for one in read(count, 1).texts]
    workspace.store.flush()
    return [item.path for item in stored]


def _branches(workspace: Workspace, paths: Sequence[str]) -> None:
    """The branch ``theirs`` gives each file tags; after it, the one that is checked out gives each another title."""
    git(workspace.root, "branch", "base")
    git(workspace.root, "switch", "--quiet", "-c", "theirs")
    _change(workspace, paths, tags=("measured",))
    git(workspace.root, "switch", "--quiet", "-")
    _change(workspace, paths, title="Another title")


def _change(workspace: Workspace, paths: Sequence[str], **values: object) -> None:
    workspace.store.refresh()
    with workspace.store.batch("some") as batch:
        for path in paths:
            batch.put(workspace.store.read(path).replace(**values))
    workspace.store.flush()


def _files(workspace: Workspace, path: str, folder: Path, rounds: int) -> None:
    """One file: joined in this process, by the driver and by git, as git calls either."""
    versions = [git(workspace.root, "show", f"{name}:{path}").encode() for name in ("base", "HEAD", "theirs")]
    merger = FileMerger(workspace.parts.codec)
    inside, driver, floor = Samples(), Samples(), Samples()
    names = [folder / name for name in ("base", "ours", "theirs")]
    base, ours, theirs = map(str, names)
    words = [*memfs_command(), "merge-driver", base, ours, theirs, "--path", path]
    for number in range(rounds + 1):
        for samples, command in ((floor, ["git", "merge-file", ours, base, theirs]), (driver, words)):
            for name, data in zip(names, versions, strict=True):
                name.write_bytes(data)
            samples.time(lambda command=command: subprocess.run(command, check=False, cwd=workspace.root))  # type: ignore[misc]
        inside.time(lambda: merger.merge(path, *versions))
        _forget_first((inside, driver, floor), number)
    _print(FIELDS, inside, MERGE_FILE, floor)
    _print(DRIVER, driver, MERGE_FILE, floor)


def _whole(folder: Path, rounds: int) -> None:
    """Two branches: joined by memfs in an open workspace, by ``git merge`` with the driver, and by ``git merge``."""
    synced, driven, floor = Samples(), Samples(), Samples()
    for number in range(rounds + 1):
        for samples, driver in ((floor, False), (driven, True)):
            place = _clone(folder, f"{number}-{driver}")
            with open_workspace(place, watch=False, settings=_SETTINGS) as workspace:
                (install_driver if driver else uninstall_driver)(workspace.repository)
            words = ("merge", "--quiet", "--no-edit", *([] if driver else ["-X", "ours"]), "origin/theirs")
            samples.time(lambda place=place, words=words: git(place, *words))  # type: ignore[misc]
        with open_workspace(_clone(folder, f"{number}-memfs"), watch=False, settings=_SETTINGS) as workspace:
            workspace.store.follow()
            commit = workspace.repository.resolve("origin/theirs")
            synced.time(lambda workspace=workspace, commit=commit: workspace.teams.merger.merge(commit, "Merge"))  # type: ignore[misc]
        _forget_first((synced, driven, floor), number)
    _print(SYNCED, synced, MERGE, floor)
    _print(DRIVEN, driven, MERGE, floor)


def _clone(folder: Path, name: str) -> Path:
    git(folder, "clone", "--quiet", "a", f"clone-{name}")
    return folder / f"clone-{name}"


def _forget_first(samples: Sequence[Samples], number: int) -> None:
    """The first round fills caches."""
    if number == 0:
        for one in samples:
            one.values.clear()


def _print(name: str, took: Samples, beside: str, floor: Samples) -> None:
    ratio = took.p50 / floor.p50
    print(f"{name:<40} {took.p50:10.1f} ms   {beside} {floor.p50:8.1f} ms, {ratio:6.2f} times", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
