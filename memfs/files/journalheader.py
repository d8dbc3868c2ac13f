"""The journal's first line: what it says, and the checksum that tells whether it still says it.

Owns the line's form. What follows it is the journal's business.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from memfs.errors import FormatUnsupported, JournalDamaged

MARK_BYTES = 8
_NAME = "memfs-journal"
_NO_TIP = "-"
_TIP = re.compile(r"-|[0-9a-f]{40}")


@dataclass(slots=True)
class Header:
    """Generation and mark of a journal file, how many operations came before, how many it began with, and the tip."""

    generation: int = 0
    mark: bytes = b""
    total: int = 0
    kept: int = 0
    tip: str = ""


def parse(line: bytes, path: str) -> Header:
    """The header in a line.

    Raises:
        FormatUnsupported: it is of a newer memfs.
        JournalDamaged: it is none, or not what was written.
    """
    words = line.decode("ascii", "replace").split(" ")
    if len(words) < 2 or words[0] != _NAME:
        raise _damaged("the journal has no header", path)
    if words[1] != "1":
        raise FormatUnsupported(f"the journal is of format {words[1]}, known is 1", path=path, hint="use a newer memfs")
    try:
        _, _, generation, mark, total, kept, tip, *check = words
        # The first journals had no checksum.
        if check != [_checksum(" ".join(words[:7]))] if check else not _TIP.fullmatch(tip):
            raise ValueError
        return Header(int(generation), bytes.fromhex(mark), int(total), int(kept), "" if tip == _NO_TIP else tip)
    except ValueError:
        raise _damaged("the journal's header is damaged", path) from None


def line_of(header: Header) -> bytes:
    """The header as a line, its end included."""
    words = (_NAME, 1, header.generation, header.mark.hex(), header.total, header.kept, header.tip or _NO_TIP)
    text = " ".join(map(str, words))
    return f"{text} {_checksum(text)}\n".encode("ascii")


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode('ascii', 'replace')):08x}"


def _damaged(reason: str, path: str) -> JournalDamaged:
    return JournalDamaged(reason, path=path, hint="memfs repair saves its records into a new one")
