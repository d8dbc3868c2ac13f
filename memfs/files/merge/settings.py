"""Settings: versions of a TOML file, joined setting by setting where its lines touch (K4).

Owns which line names which setting, as far as joining lines needs it. Must not know what a setting means.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from memfs.files.merge.lines import Hunk, hunks
from memfs.files.merge.values import Clash, equal, merge

_EACH = {"additionalProperties": {"x-merge": "conflict"}}
_NAMED = re.compile(r"\s*([^#\[\]=\s][^\[\]=]*)=")


def merge_settings(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """A TOML file with the settings that either side changed.

    Returns:
        None where both changed one setting differently, where a version is no TOML, and where the text that would be
        made does not say just what is wanted.
    """
    try:
        texts = [version.decode("utf-8-sig") for version in (base, ours, theirs)]
        values = [_tables(text) for text in texts]
        wanted = merge(values[0], values[1], values[2], {})
        text = "".join(line for hunk in hunks(*map(_split, texts)) for line in _joined(hunk))
        if wanted.conflicts or not equal(_tables(text), wanted.values):
            return None
    except (ValueError, RecursionError):
        return None
    return text.encode("utf-8")


def clashing_settings(base: bytes, ours: bytes, theirs: bytes) -> tuple[Clash, ...]:
    """The settings that both sides changed, to different values: ``kept`` is ours; none where a version is no TOML."""
    try:
        begun, mine, other = (_tables(version.decode("utf-8-sig")) for version in (base, ours, theirs))
        return merge(begun, mine, other, {}, removals_stand=True).conflicts
    except (ValueError, RecursionError):
        return ()


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])


def _tables(text: str) -> dict[str, Any]:
    return tomllib.loads(text.replace("\r\n", "\n"))


def _joined(hunk: Hunk[str]) -> Sequence[str]:
    """The lines of a stretch, each that names a setting joined for itself."""
    if not hunk.clash:
        return hunk.joined
    base, ours, theirs = ({_key(line): _ended(line) for line in side} for side in (hunk.base, hunk.ours, hunk.theirs))
    return list(merge(base, ours, theirs, _EACH).values.values())


def _key(line: str) -> str:
    named = _NAMED.match(line)
    return named[1].rstrip() if named else line.strip()


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n"
