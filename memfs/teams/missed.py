"""Missed items: those that a merge of git's lost, brought back when it is over (B3; decision 47).

Git loses an item without a word where places collide: another one comes to lie in its place, or a folder that one side
renamed leads back to where the item began. Owns which merges are looked at, and what becomes of such an item. How
versions are joined is ``memfs.files.merge``'s business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from memfs.errors import ContentError, HistoryError, MemfsError, MergeRefused
from memfs.files import io
from memfs.files.merge.files import FileMerger
from memfs.history.ancestry import is_ancestor, merge_bases
from memfs.history.refs import HEX
from memfs.history.snapshots import snapshots
from memfs.model.ids import stem_of
from memfs.store import Store
from memfs.store.parts import CONTENT, READ_LIMIT, Parts, is_item
from memfs.teams.historyjoin import HistoryJoin
from memfs.teams.treejoin import TreeJoin
from memfs.upkeep.mergespool import SEEN, MergeSpool, is_due

_MESSAGE = "Bring back what a merge lost"
_MOST = 20


def bring_back(store: Store, parts: Parts, spool: MergeSpool) -> int:
    """Put items that merges lost back where they belong, unless a merge is still going on; how many there were.

    They are those of which the driver left a reminder, and those that both sides of a merge made since the last look
    have, and its outcome has not. Where one side removed an item, the edit of the other comes back with a record. A
    merge that was given up, or that another branch has, is left alone.

    Raises:
        Conflict, StorageIO: it stays to be done.
    """
    if not is_due(parts.repository):
        return 0
    head = parts.repository.head_commit()
    waiting = spool.missed()
    seen = _seen(parts)
    if not head or (seen == head and not waiting) or parts.repository.busy():
        return 0
    present = _present(parts)
    settled = [name for name, one in waiting.items() if _is_made(parts, one.merged, head)]
    contents: dict[str, bytes] = {}
    if seen != head:
        for commit in _merges(parts, seen, head):
            contents = dict(_lost(parts, commit, present)) | contents
    for name in settled:
        one = waiting[name]
        path = present.get(stem_of(one.path).casefold(), one.path)
        with suppress(HistoryError, ContentError, FileNotFoundError):  # erased since, or nobody can read it
            begun, own = (parts.repository.blob(blob) if blob else None for blob in (one.begun, one.own))
            there = parts.tree.read(path, READ_LIMIT).data if path in present.values() else None
            merged = FileMerger(parts.codec).merge(path, begun, own, there)
            if merged.data not in (None, there) and not merged.whole:
                contents[path] = merged.data or b""
    found = [store.plan_restore(path, data) for path, data in contents.items()]
    plans = [replace(plan, expected=plan.old_sha) for plan in found if plan is not None]
    if plans:
        store.carry_out(plans, _MESSAGE, source="merge")
    for name in settled:
        spool.drop(name)
    with suppress(MemfsError):  # it is looked at once more
        io.write_file(parts.repository.state / SEEN, head.encode())
    return len(plans)


def settle(spool: MergeSpool, names: set[str]) -> None:
    """Forget the reminders of items by name: they were brought to an end."""
    for key, one in spool.missed().items():
        if stem_of(one.path).casefold() in names:
            spool.drop(key)


def _seen(parts: Parts) -> str:
    with suppress(FileNotFoundError, MemfsError, UnicodeDecodeError):
        found = io.read_file(parts.repository.state / SEEN, 64).decode()
        return found if HEX.fullmatch(found) else ""
    return ""


def _is_made(parts: Parts, commits: tuple[str, ...], head: str) -> bool:
    return commits != (head,) and all(is_ancestor(parts.repository, commit, head) for commit in commits)


def _present(parts: Parts) -> dict[str, str]:
    """The items that there are, by name."""
    paths = (entry.path for entry in parts.tree.scan(CONTENT) if is_item(entry.path, parts.kinds))
    return {stem_of(path).casefold(): path for path in paths}


def _merges(parts: Parts, seen: str, head: str) -> list[str]:
    """The merges of two lines made since the last look, newest first; at the first look the newest commit alone."""
    known = [f"^{seen}", f"--max-count={_MOST}"] if seen else ["--no-walk"]
    with suppress(HistoryError):
        rows = parts.repository.git.run("rev-list", "--merges", "--parents", *known, head).decode().splitlines()
        return [row.split()[0] for row in rows if len(row.split()) == 3]
    return []


def _lost(parts: Parts, commit: str, present: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """The items that both parents of a merge have and nothing has now, as they should have come to be."""
    repository, join = parts.repository, TreeJoin(parts.repository, parts.codec, parts.kinds)
    with suppress(HistoryError, MergeRefused):
        ours, theirs = repository.commit_object(commit).parents
        sides = HistoryJoin(repository, join).sides(ours, theirs, merge_bases(repository, ours, theirs))
        missing = (join.names(sides[1]) & join.names(sides[2])) - present.keys()
        before, after = snapshots(repository, [ours, commit]) if missing else ({}, {})
        gone = (repository.below(path) for path in before if path not in after)
        kept = (repository.below(path) for path in after)
        missing &= join.names(filter(None, gone)) - join.names(filter(None, kept))
        own = [{path: side[path] for path in side if join.names([path]) & missing} for side in sides]
        for path, version in join.join(*own).versions.items():
            data = join.content(version)
            if data is not None:
                yield path, data
