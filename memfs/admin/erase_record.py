"""Record that an erase, or a cut of history, has begun, so that the next process to open the workspace finishes it.

The record is durable before anything is removed. It holds lines of what is erased, so it lies in the private state
folder and is removed last. ``ErasePlan`` and ``EraseResult`` are what an erase reports.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memfs.admin.erase_proof import EraseProof
from memfs.admin.erase_target import EraseName, Target
from memfs.errors import CorruptRecord, MemfsError, StorageIO
from memfs.fs import io
from memfs.git.busy import ERASE_FOLDER, ERASE_RECORD
from memfs.git.refs import HEX
from memfs.git.repository import Repository
from memfs.git.rewrite_swap import SWAP_LOCK, release, remove_all
from memfs.git.rewrite_text import Traces


def folder(repository: Repository) -> Path:
    """Where an erase of this workspace keeps its files."""
    return repository.state / ERASE_FOLDER


def successor_folder(repository: Repository) -> Path:
    """A folder for the second repository: never one that an earlier attempt's git could still be writing to."""
    return folder(repository) / f"new-{secrets.token_hex(4)}"


def begun(repository: Repository) -> bool:
    """Whether an erase of this workspace has begun and not ended."""
    return os.path.lexists(repository.state / ERASE_RECORD)


def write(repository: Repository, target: Target, gone: Collection[str]) -> None:
    """Make it durable that this target is to be erased, and these objects with it."""
    record = {
        "folder": _inode(repository),
        "reference": target.named.reference,
        "is_path": target.named.is_path,
        "paths": sorted(os.fsdecode(path) for path in target.paths),
        "blobs": sorted(target.blobs),
        "versions": [sorted(phrase.hex() for phrase in version) for version in target.traces.versions],
        "gone": sorted(gone),
        "names": [name.hex() for name in target.traces.names],
    }
    io.write_file(repository.state / ERASE_RECORD, json.dumps(record).encode("ascii"))


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut of history that has begun: new id by old one, and the objects that were about to be removed."""

    mapped: Mapping[str, str]
    gone: frozenset[str]


def write_cut(repository: Repository, mapped: Mapping[str, str], gone: Collection[str]) -> None:
    """Make it durable that history is being cut."""
    record = {"folder": _inode(repository), "mapped": dict(mapped), "gone": sorted(gone)}
    io.write_file(repository.state / ERASE_RECORD, json.dumps(record).encode("ascii"))


def read_cut(repository: Repository) -> Cut | None:
    """The cut of history that has begun here; None where there is none, or it is an erase that has begun."""
    try:
        found = json.loads(io.read_file(repository.state / ERASE_RECORD))
        if found["folder"] != _inode(repository):
            return None
        cut = Cut(dict(found["mapped"]), frozenset(found["gone"]))
        names = [*cut.mapped.keys(), *cut.mapped.values(), *cut.gone]
        return cut if all(HEX.fullmatch(name) for name in names) else None
    except (MemfsError, OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def read(repository: Repository) -> Target:
    """What the erase that has begun was about.

    Raises:
        CorruptRecord: the record cannot be read.
    """
    path = repository.state / ERASE_RECORD
    try:
        found = json.loads(io.read_file(path))
        _require_form(found)
        versions = tuple(frozenset(map(bytes.fromhex, version)) for version in found["versions"])
        target = Target(
            named=EraseName(reference=found["reference"], is_path=found["is_path"]),
            paths=frozenset(os.fsencode(path) for path in found["paths"]),
            blobs=frozenset(found["blobs"]),
            cuts={},
            copies=(),
            loose=0,
            traces=Traces(versions=versions, names=tuple(map(bytes.fromhex, found["names"]))),
            quotes=(),
            gone=frozenset(found["gone"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise CorruptRecord(
            "the record of an interrupted erase is damaged", path=str(path), hint=f"remove {path} and erase again"
        ) from None
    if found["folder"] != _inode(repository):
        raise CorruptRecord(
            "the record of an interrupted erase was not made here: it came with a copy of the repository",
            path=str(path),
            hint=f"remove {path}; if {target.named.reference!r} is to go, erase it again",
        )
    return target


def _require_form(found: object) -> None:
    """Raise ValueError where a value has not the type that ``write`` gave it."""
    row = found if isinstance(found, dict) else {}
    plain = isinstance(row.get("reference"), str) and isinstance(row.get("is_path"), bool)
    lists = [row.get(name) for name in ("paths", "blobs", "gone", "names", "versions")]
    if not plain or not all(isinstance(value, list) for value in lists):
        raise ValueError
    versions = row["versions"]
    rows = [row["paths"], row["blobs"], row["gone"], row["names"], *versions]
    if not all(isinstance(value, list) and all(isinstance(one, str) for one in value) for value in rows):
        raise ValueError
    if not all(HEX.fullmatch(name) for name in (*row["blobs"], *row["gone"])):
        raise ValueError


def _inode(repository: Repository) -> int:
    """By what a record is bound to where it was made: an archive or a clone cannot bring one that history obeys."""
    return os.stat(folder(repository)).st_ino


def clear(repository: Repository, ended: bool) -> None:
    """Remove what an erase left: its locks and its half-made repository; with ``ended`` the record, first of all.

    The caller holds ``commit.lock``: the process that began is dead or has ended.
    """
    place = folder(repository)
    if ended:
        io.unlink(repository.state / ERASE_RECORD, missing_ok=True)
    if not place.is_dir():
        return
    release(repository, place / SWAP_LOCK)
    io.unlink(place / SWAP_LOCK, missing_ok=True)
    for name in sorted(os.listdir(place)):
        # a git process that outlived its eraser may still write there: then it stays for the next time
        if name != ERASE_RECORD.rpartition("/")[2]:
            with suppress(StorageIO):
                remove_all(place / name)
    if not begun(repository):
        with suppress(StorageIO):
            remove_all(place)
        io.sync_folder(place.parent)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasePlan:
    """What an erase would do.

    Attributes:
        reference: what was named.
        paths: the paths it ever had; ``copies``: other paths where the same bytes were; they go, too.
        versions: how many contents it had, ``loose`` of them in no commit.
        commits, refs: how many commits would be rewritten, how many refs would move.
        waiting: how many writes would be committed first.
        quotes: files that hold a line of it and stay.
        shared: whether memfs did not make the repository, so that rewriting it must be asked for.
        unreachable: where it may be and memfs cannot go.
        backups: those made before, which a new one would replace; ``backups_elsewhere``: those a person has to delete.
        refused: why it could not be done now, "" when nothing stands in the way.
    """

    reference: str
    paths: tuple[str, ...]
    copies: tuple[str, ...]
    versions: int
    loose: int
    commits: int
    refs: int
    waiting: int
    quotes: tuple[str, ...]
    shared: bool
    unreachable: tuple[str, ...]
    refused: str = ""
    backups: tuple[Path, ...] = ()
    backups_elsewhere: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseResult:
    """What an erase did, and the proof.

    Attributes:
        plan: as it was carried out.
        unsigned: how many commits and tags lost their signature, which would be wrong now.
        purged: how many pieces each other place held.
        proof: what was read afterwards, and every hit in it.
        head: HEAD's commit now.
        left: backups made before that no new one could replace; they may hold it until a person deletes them.
    """

    plan: ErasePlan
    unsigned: int
    purged: Mapping[str, int]
    proof: EraseProof
    head: str | None
    left: tuple[Path, ...] = ()
