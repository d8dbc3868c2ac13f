"""Ledger: what each area weighs, shared by all processes of a workspace without a scan for each write.

Owns one small file in the state folder: the bytes of the last measurement, what was written since, and which thresholds
were crossed. It is an account, not a truth: where it is missing, torn or cannot be written, measuring heals it.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from memfs.errors import MemfsError
from memfs.files import io
from memfs.upkeep.areas import AREAS, DERIVED, HISTORY, TOTAL

FILE = "ledger"
LEVELS = ("", "warning", "critical", "full")
_SIZE = 2048
_CRC = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What is known.

    Attributes:
        at, history_at: when everything, and when the history, was measured; seconds since 1970.
        base: bytes by area, then.
        since: bytes written since, by area; less than nothing where more was removed. For the history it is how much
            it may have grown at most: enough to say when to measure, and not counted as used.
        levels: the highest threshold crossed, by quota, until use falls well below it.
        refused: when a write was last refused and that was told, by quota.
    """

    at: float = 0.0
    history_at: float = 0.0
    base: Mapping[str, int] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, float] = field(default_factory=dict)

    def used(self, area: str) -> int:
        """The bytes of an area, as far as is known."""
        grown = 0 if area == HISTORY else self.since.get(area, 0)
        return max(0, self.base.get(area, 0) + grown)

    @property
    def total(self) -> int:
        """The bytes of all areas that count."""
        return sum(self.used(area) for area in (self.base.keys() | self.since.keys()) - DERIVED)

    @property
    def unmeasured(self) -> int:
        """By how much the history may have grown since it was measured."""
        return self.since.get(HISTORY, 0)


class Ledger:
    """The account on disk. Reading needs no lock; ``write`` is called under the store's lock."""

    def __init__(self, state: Path) -> None:
        self._path = state / FILE
        self._kept: Account | None = None
        self._unwritten = False

    def read(self) -> Account | None:
        """The account as all processes know it; None where nothing was measured yet."""
        if self._unwritten:
            return self._kept
        try:
            fd = io.open_file(self._path, os.O_RDONLY | os.O_NONBLOCK)
        except (FileNotFoundError, MemfsError):
            return None
        try:
            return _parsed(os.pread(fd, _SIZE, 0))
        except OSError:
            return None
        finally:
            os.close(fd)

    def write(self, account: Account) -> None:
        """Set the account. Where the disk refuses, this process goes on with its own until it can be written."""
        self._kept = account
        text = json.dumps(asdict(account), separators=(",", ":")).encode("ascii")
        record = b"%08x" % zlib.crc32(text) + text
        self._unwritten = True
        with suppress(MemfsError, FileNotFoundError, FileExistsError):
            fd = io.open_file(self._path, os.O_WRONLY | os.O_CREAT)
            try:
                with io.operation("account", self._path):
                    os.pwrite(fd, record.ljust(_SIZE), 0)
                self._unwritten = False
            finally:
                os.close(fd)


def _parsed(data: bytes) -> Account | None:
    text = data[_CRC:].rstrip(b" ")
    if data[:_CRC] != b"%08x" % zlib.crc32(text):
        return None
    try:
        account = Account(**json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return None
    return account if _sound(account) else None


def _sound(account: Account) -> bool:
    """Whether everything is of the type and has the names that it should: anybody may have written the file."""
    tables = (account.base, account.since, account.levels, account.refused)
    if not all(isinstance(table, dict) and table.keys() <= {*AREAS, TOTAL} for table in tables):
        return False
    moments = (account.at, account.history_at, *account.refused.values())
    sizes = (*account.base.values(), *account.since.values())
    return (
        all(type(moment) in (int, float) and math.isfinite(moment) for moment in moments)
        and all(type(size) is int for size in sizes)
        and all(isinstance(level, str) and level in LEVELS for level in account.levels.values())
    )
