"""Backups: where they go, when they are due, how many are kept.

Owns the schedule, the places, and the record of the last backup in the state folder. How one is made and read is the
business of ``memfs.upkeep.backup_make`` and ``memfs.upkeep.backup_file``.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from memfs.errors import LockTimeout, MemfsError, SettingInvalid, StorageIO
from memfs.files import io
from memfs.files.lock import FileLock
from memfs.home import base_folder
from memfs.model.occasion import Fire
from memfs.model.time import format_time, parse_time
from memfs.settings import BackupSettings
from memfs.store.parts import CONTENT, Parts
from memfs.upkeep.backup_file import Manifest, reading
from memfs.upkeep.backup_make import make, sweep_unfinished

_RECORD = "backups.json"
_LOCK = "backup.lock"
_SMALL = 1 << 16
_LOOK_EVERY = 30.0
_RETRY_AFTER = 900.0
_LONGEST_NAME = 60
_MOST_PLACES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One backup that was written and verified: where, how large, what it holds, older ones that were removed."""

    path: Path
    bytes: int
    manifest: Manifest
    removed: tuple[Path, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing had to be left out."""
        return not self.manifest.left_out

    @property
    def whole(self) -> bool:
        """Whether nothing is missing that should be there; links and pipes are left out on purpose."""
        return self.manifest.whole


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupState:
    """How a workspace stands with its backups.

    Attributes:
        last: when the last one was made, None where none is known; ``path`` is where.
        interval_hours: how often one is wanted, 0 for never.
        due: whether one should have been made by now.
        error: why the last try failed, "" when it did not.
    """

    last: datetime | None
    path: str
    interval_hours: float
    due: bool
    error: str = ""

    def age(self, now: datetime) -> float | None:
        """Seconds since the last one."""
        return (now - self.last).total_seconds() if self.last else None


class Backups:
    """The backups of one workspace."""

    def __init__(self, parts: Parts, settings: BackupSettings, fire: Fire) -> None:
        self._parts = parts
        self._settings = settings
        self._fire = fire
        self._lock = FileLock(parts.repository.state / _LOCK)
        self._looked = -_LOOK_EVERY

    # -- making -------------------------------------------------------------------------------------------------
    def make(self, to: Path | None = None) -> list[Made]:
        """Make a backup in every place that the settings name, or in one folder; remove those beyond ``copies``.

        Raises:
            SettingInvalid: a place lies inside what is backed up.
            StorageIO, LockTimeout, BackupInvalid: the first place where it failed; the others were served.
        """
        with self._lock.hold("backup", timeout=60):
            return self._make(self.places() if to is None else [_usable(to, self._parts)])

    def _make(self, places: Sequence[Path]) -> list[Made]:
        made, failed = [], None
        for place in places:
            try:
                made.append(self._make_in(place))
            except MemfsError as error:
                failed = failed or error
        if made:
            facts = {"at": format_time(self._parts.clock()), "path": str(made[0].path), "bytes": made[0].bytes}
            known = {*self._record().get("places", ()), *(str(one.path.parent) for one in made)}
            lacking = next((f"made without {one.manifest.left_out[0]}" for one in made if not one.whole), "")
            self._note(last=facts, error=str(failed or lacking), places=sorted(known)[:_MOST_PLACES])
            self._fire("backup_made", {"path": facts["path"], "bytes": facts["bytes"]})
            if lacking and failed is None:
                self._fire("backup_failed", {"error": lacking})
        else:
            self._note(error=str(failed))
        if failed is not None:
            self._fire("backup_failed", {"error": str(failed)})
            raise failed
        return made

    def _make_in(self, place: Path) -> Made:
        with io.operation("backup", place):  # a folder on the way may be closed to this user
            io.make_folders(place)
            path = self._free_name(place)
            manifest = make(self._parts, path, self.origin())
            removed = self._prune(place) if manifest.whole else []  # what lacks something takes the place of nothing
            return Made(path=path, bytes=path.stat().st_size, manifest=manifest, removed=tuple(removed))

    def _free_name(self, place: Path) -> Path:
        """The next name: numbered, since clocks go wrong and which one is the oldest decides what is removed."""
        last = max((int(path.name.split("-")[-2]) for path in self.kept(place)), default=0)
        return place / f"{self._stem()}-{last + 1:06d}-{self._parts.clock():%Y%m%dT%H%M%SZ}.tar"

    def _stem(self) -> str:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self._parts.tree.root.name)[:_LONGEST_NAME].strip("-.")
        return f"memfs-{name or 'workspace'}-{self.origin()}"

    # -- keeping ------------------------------------------------------------------------------------------------
    def places(self) -> list[Path]:
        """The folders that backups go to.

        Raises:
            SettingInvalid: one is not absolute, or lies inside what is backed up.
        """
        self._parts.require_open()
        named = [Path(target).expanduser() for target in self._settings.targets]
        return [_usable(place, self._parts) for place in named] or [own_folder()]

    def kept(self, place: Path | None = None) -> list[Path]:
        """This workspace's backups, oldest first, in one place or wherever it ever made one.

        Raises:
            StorageIO: a place cannot be read.
        """
        self._parts.require_open()
        # Who makes the first one chooses by what all are known, under the lock: until then none is ours.
        pattern = re.compile(re.escape(self._stem()) + r"-\d{6,}-\d{8}T\d{6}Z\.tar") if self._record() else None
        found = []
        for folder in [place] if place else self._all_places():
            with io.operation("list", folder):
                names = os.listdir(folder) if folder.is_dir() else []
            found += [folder / name for name in names if pattern and pattern.fullmatch(name)]
        return sorted(found, key=lambda path: (int(path.name.split("-")[-2]), path))

    def _all_places(self) -> Sequence[Path]:
        return list(dict.fromkeys([*self.places(), *map(Path, self._record().get("places", ()))]))

    def renew(self, failed: Callable[[MemfsError], None]) -> tuple[int, list[Path]]:
        """Put a new backup in the place of all there are, those that killed processes left unfinished among them.

        One that is being made ends first: it may hold what was there before.

        Args:
            failed: told why no new one could be made.

        Returns:
            How many went, and those that could not.

        Raises:
            LockTimeout: the one that is being made does not end.
        """
        self._parts.require_open()
        with self._lock.hold("backup", timeout=60):
            try:
                old = self.kept()
                for place in self._all_places():
                    sweep_unfinished(place)
            except MemfsError:  # a place that is none any more holds nothing that could be found
                return 0, []
            made: set[Path] = set()
            try:
                made = {found.path for found in self._make(self.places())} if old else set()
            except MemfsError as error:
                failed(error)
            for path in old:
                if path.parent in {found.parent for found in made} and path not in made:
                    io.unlink(path, missing_ok=True)
            left = [path for path in old if path.exists()]
            return len(old) - len(left), left

    def surplus(self, place: Path | None = None) -> list[Path]:
        """Those beyond ``copies`` in each place, oldest first."""
        return [path for folder in ([place] if place else self.places()) for path in self._surplus_in(folder)]

    def _surplus_in(self, place: Path) -> list[Path]:
        """Those that lack something are counted for themselves: they never take the place of a whole one."""
        kept = self.kept(place)
        if len(kept) <= self._settings.copies:
            return []
        whole = [path for path in kept if _is_whole(path)]
        others = [path for path in kept if path not in whole]
        return [*whole[: -self._settings.copies], *others[: -self._settings.copies]]

    def prune(self) -> list[Path]:
        """Remove the surplus; return what was removed."""
        with self._lock.hold("backup", timeout=60):
            return [path for place in self.places() for path in self._prune(place)]

    def _prune(self, place: Path) -> list[Path]:
        surplus = self._surplus_in(place)
        for path in surplus:
            io.unlink(path, missing_ok=True)
        return surplus

    # -- schedule -----------------------------------------------------------------------------------------------
    def state(self) -> BackupState:
        """How things stand now."""
        self._parts.require_open()
        record = self._record()
        last = record.get("last") or {}
        moment = parse_time(last["at"]) if last else None
        hours = self._settings.interval_hours
        age = (self._parts.clock() - moment).total_seconds() if moment else None
        due = hours > 0 and (age is None or not 0 <= age < hours * 3600)
        return BackupState(
            last=moment, path=last.get("path", ""), interval_hours=hours, due=due, error=record.get("error", "")
        )

    def keep_up(self) -> bool:
        """Make the backup that is due; a failure is recorded and told, never raised. Cheap when none is due.

        Returns:
            Whether one was made.
        """
        self._parts.require_open()
        now = time.monotonic()
        if self._settings.interval_hours <= 0 or now - self._looked < _LOOK_EVERY:
            return False
        self._looked = now
        try:
            with self._lock.hold("backup", timeout=0):
                if not self.state().due:
                    return False
                self._make(self.places())
        except LockTimeout:  # another process is at it
            return False
        except MemfsError:
            self._looked = now + _RETRY_AFTER
            return False
        return True

    def origin(self) -> str:
        """By which this workspace's backups are known among others: random, kept in its state."""
        self._parts.require_open()
        known = self._record().get("origin")
        if not known:
            known = secrets.token_hex(4)
            self._write({**self._record(), "origin": known, "home": self._home()})
        return str(known)

    def _home(self) -> list[str | int]:
        root = self._parts.tree.root
        with io.operation("look at", root):
            return [str(root), os.stat(root).st_ino]

    def _is_copied(self, record: Mapping[str, Any]) -> bool:
        """Whether a record came along with a copy. One that was moved keeps its inode, one put back its path."""
        path, inode = record.get("home") or self._home()
        return path != self._home()[0] and inode != self._home()[1]

    def _record(self) -> dict[str, Any]:
        try:
            found = json.loads(io.read_file(self._parts.repository.state / _RECORD, _SMALL))
            if not isinstance(found, dict) or not re.fullmatch(r"[0-9a-f]{8}", str(found.get("origin"))):
                return {}
            if found.get("last"):
                parse_time(found["last"]["at"])
            if not all(isinstance(place, str) for place in found.get("places", ())):
                return {}
            if self._is_copied(found):
                return {}
        except (FileNotFoundError, ValueError, KeyError, TypeError, MemfsError):
            return {}
        return found

    def _note(self, **facts: Any) -> None:
        record = {**self._record(), **facts, "home": self._home()}
        with suppress(StorageIO):  # a full disk does not undo a backup on another one
            self._write({"origin": secrets.token_hex(4), **record})

    def _write(self, record: Mapping[str, Any]) -> None:
        io.write_file(self._parts.repository.state / _RECORD, json.dumps(record).encode())


def own_folder() -> Path:
    """Where backups go that were given no place: the user's own data folder, outside of every workspace."""
    return base_folder("XDG_DATA_HOME", ".local/share") / "memfs" / "backups"


def _is_whole(path: Path) -> bool:
    try:
        with reading(path) as (manifest, _):
            return manifest.whole
    except MemfsError:
        return False


def _usable(place: Path, parts: Parts) -> Path:
    if not place.is_absolute():
        raise SettingInvalid(f"{str(place)!r} is not absolute", field="backup.targets", hint="name the whole path")
    resolved = Path(os.path.realpath(place))
    for inside in (parts.tree.root / CONTENT, parts.repository.common_dir, parts.repository.git_dir):
        if resolved.is_relative_to(inside):
            raise SettingInvalid(
                f"{str(place)!r} lies inside what is backed up", field="backup.targets", hint="name another folder"
            )
    return resolved
