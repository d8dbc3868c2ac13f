"""Plain contents: which contents of items are known to carry no conflict, so that nobody reads them again.

Owns that knowledge, in this process and, as a cache, between processes. A content is named by its blob id, so that what
is known of it stays true; a cache that is gone or damaged is made anew. What a conflict looks like, it does not know.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from memfs.errors import MemfsError
from memfs.files import io

_NAME = "plain-contents"
_BYTES = 20
_LARGEST = 64 << 20


class PlainContents:
    """The contents that carry no conflict. May be used from several threads, and by several processes.

    Args:
        folder: where the cache lies; where there is none, it is kept in this process alone.
    """

    def __init__(self, folder: Path) -> None:
        self._place = folder / _NAME
        self._known: set[bytes] | None = None
        self._grown = False

    def __contains__(self, blob: str) -> bool:
        return bytes.fromhex(blob) in self._all()

    def add(self, blob: str) -> None:
        """Note that a content carries none."""
        self._all().add(bytes.fromhex(blob))
        self._grown = True

    def keep(self, present: Collection[str]) -> None:
        """Write the cache, if there is something new: of the contents that are present, and no others."""
        if not self._grown or not self._place.parent.is_dir():
            return
        known = self._all() & {bytes.fromhex(blob) for blob in present}
        with suppress(MemfsError, OSError):  # the next process looks again
            io.write_file(self._place, b"".join(known), durable=False)
            self._grown = False

    def _all(self) -> set[bytes]:
        if self._known is None:
            try:
                data = io.read_file(self._place, _LARGEST)
            except (MemfsError, OSError):
                data = b""
            whole = len(data) % _BYTES == 0
            self._known = {data[at : at + _BYTES] for at in range(0, len(data), _BYTES)} if whole else set()
        return self._known
