"""Putting a rewritten repository in the place of the old one, so that at every moment one of them is whole.

Owns the locks that are taken, the order of the swap, and the removal of what is no longer named. The caller holds
``commit.lock`` and has made a durable record by which an interrupted swap is taken up again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from memfs.errors import GitBusy
from memfs.files import io
from memfs.history.busy import ERASE_FOLDER, lock_reason
from memfs.history.quarantine import renew
from memfs.history.repository import Facts, Repository, facts_of
from memfs.history.rewrite_names import Names, changed_loose, edit_logs, read_names, turn
from memfs.history.rewrite_successor import INDEX, Successor, remove_all
from memfs.history.rewrite_survey import inventory
from memfs.history.rewrite_text import Traces
from memfs.history.settle import index_of, lock_of

LOCK = "lock"
_LOOSE = re.compile(r"[0-9a-f]{38}")
_FAN = re.compile(r"[0-9a-f]{2}")
_GRAPHS = ("info/commit-graph", "info/commit-graphs", "info/packs", "pack/multi-pack-index")


class Moved(Exception):
    """The repository changed meanwhile: look again. Never leaves the eraser."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """What is to be put in place.

    Attributes:
        names: what named objects when the successor was made; ``index`` the facts of the index then.
        stock: the files that held objects then, below ``objects/``.
        mapped: new id by old one; ``gone``: what nothing may name in the end; ``known``: every other object.
        new_index: whether the successor has another index.
        traces: what is taken out of reflogs.
    """

    names: Names
    index: Facts
    stock: tuple[str, ...]
    mapped: Mapping[str, str]
    gone: frozenset[str]
    known: frozenset[str]
    new_index: bool
    traces: Traces


def stock(repository: Repository) -> tuple[str, ...]:
    """Every file that holds objects, and every half of one, below ``objects/``."""
    top = repository.common_dir / "objects"
    found = []
    for name in sorted(os.listdir(top)):
        if _FAN.fullmatch(name):
            found += [f"{name}/{inner}" for inner in sorted(os.listdir(top / name))]
        elif name.startswith("tmp_"):
            found.append(name)
    found += [f"pack/{name}" for name in _listed(top / "pack")]
    return tuple(found)


def swap(
    repository: Repository,
    successor: Successor,
    plan: Swap,
    begin: Callable[[], None],
    remove_files: Callable[[], None],
) -> None:
    """Put the new objects in, then the index and the list of quarantined branches, then all refs at once.

    Args:
        begin: makes the record by which an interrupted swap is known; called when nothing stands in the way any more.
        remove_files: takes the item out of the working tree.

    Raises:
        Moved: something changed since the successor was made; nothing was begun.
        GitBusy: somebody holds a lock; nothing was begun.
    """
    index = index_of(repository.git_dir)
    with _holding(repository, _locks(repository, plan, index)):
        if read_names(repository.layout) != plan.names or facts_of(index) != plan.index:
            raise Moved
        begin()
        _add_pack(repository, successor)
        remove_files()
        if plan.new_index:
            io.rename(str(successor.folder / INDEX), str(index))
            io.sync_folder(index.parent)
        renew(repository, plan.mapped)
        turn(repository.layout, plan.names, plan.mapped)


def finish(repository: Repository, successor: Successor, plan: Swap) -> int:
    """After the swap: reflogs, then the old objects. Returns how many files were removed.

    Raises:
        Moved: something names an old object again, or an object nobody had seen; or somebody packed the old objects.
    """
    edit_logs(repository.layout, plan.mapped, plan.traces)
    now = read_names(repository.layout)
    held = now.ids(heads=False) | staged(repository)
    if (held | now.ids()) & plan.gone or not held <= plan.known:
        raise Moved
    repository.git.close()
    removed = _remove_old(repository, successor, plan)
    if inventory(repository.git).keys() & plan.gone:
        raise Moved
    return removed


def release(repository: Repository, own: Path) -> None:
    """Remove the locks that an ended eraser left: they are second names of its own file."""
    places = [repository.common_dir / "packed-refs.lock", lock_of(index_of(repository.git_dir))]
    for folder, _, names in os.walk(repository.common_dir / "refs"):
        places += [Path(folder) / name for name in names if name.endswith(".lock")]
    for lock in places:
        with suppress(OSError):
            if os.path.samefile(lock, own):
                io.unlink(lock, missing_ok=True)


def _locks(repository: Repository, plan: Swap, index: Path) -> list[Path]:
    refs = [repository.common_dir / f"{ref}.lock" for ref in changed_loose(plan.names, plan.mapped)]
    return [lock_of(index), repository.common_dir / "packed-refs.lock", *refs]


@contextmanager
def _holding(repository: Repository, locks: Collection[Path]) -> Iterator[None]:
    own = repository.state / ERASE_FOLDER / LOCK
    io.write_file(own, b"")
    taken = []
    try:
        for lock in locks:
            try:
                io.link(str(own), str(lock))
            except FileExistsError:
                reason = lock_reason(repository.layout, lock) or f"{lock.name} was held a moment ago"
                raise GitBusy(reason, path=str(lock), hint="nothing was changed; try again when it is gone") from None
            taken.append(lock)
        yield
    finally:
        for lock in taken:
            io.unlink(lock, missing_ok=True)


def _add_pack(repository: Repository, successor: Successor) -> None:
    folder = repository.common_dir / "objects/pack"
    io.mkdir(folder)
    for path in successor.pack_files():
        with suppress(FileExistsError):
            io.link(str(path), str(folder / path.name))
    io.sync_folder(folder)


def staged(repository: Repository) -> set[str]:
    """The blobs that the index names."""
    out = repository.git.run("ls-files", "-t", "-s", "-z")
    rows = (row.partition(b"\t")[0].split(b" ") for row in out.split(b"\0")[:-1])
    return {row[2].decode() for row in rows if len(row) > 2 and row[1] != b"160000"}


def _remove_old(repository: Repository, successor: Successor, plan: Swap) -> int:
    top = repository.common_dir / "objects"
    ours = {f"pack/{path.name}" for path in successor.pack_files()}
    for name in _GRAPHS:
        remove_all(top / name)
    # Without its index a pack is nothing to git: no process meets half of one.
    old = sorted((name for name in plan.stock if name not in ours), key=lambda name: not name.endswith(".idx"))
    removed = sum(remove_all(top / name) for name in old if _holds_objects(name))
    for folder in {(top / name).parent for name in old}:
        io.sync_folder(folder)
    return removed


def _holds_objects(name: str) -> bool:
    folder, _, rest = name.rpartition("/")
    return folder == "pack" or "tmp_" in name or bool(_LOOSE.fullmatch(rest))


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
