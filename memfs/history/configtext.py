"""The text of a git configuration file, with one section of it written anew.

Owns where a section goes and how a value is quoted. Every other byte stays as it is. It neither reads nor writes files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from memfs.history.configfile import parse_config

_HEADER = re.compile(r"\s*\[[^\]\n]*\]")
_KEY = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=|$|[#;])")


def with_section(text: str, section: str, name: str, values: Mapping[str, str]) -> str:
    """The text in which ``[section "name"]`` has these values; without values, these keys are gone from it.

    What stands there already stays to the byte. A section of which nothing is left goes, too.

    Args:
        values: by key; an empty mapping takes every such section out.
    """
    if values and _values(text, section, name) == dict(values):
        return text
    kept = _without(text, section, name, frozenset(values))
    if not values:
        return kept
    newline = "\r\n" if "\r\n" in text else "\n"
    if kept and not kept.endswith("\n"):
        kept += newline
    lines = [f'[{section} "{name}"]', *(f"\t{key} = {quoted(value)}" for key, value in values.items())]
    return kept + newline.join([*lines, ""])


def quoted(value: str) -> str:
    """A value as git reads it back the same, whatever is in it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _values(text: str, section: str, name: str) -> dict[str, str]:
    start = f"{section}.{name}."
    return {key[len(start) :]: value for key, value in parse_config(text).items() if key.startswith(start)}


def _without(text: str, section: str, name: str, keys: frozenset[str]) -> str:
    """The text without some keys of a section (all, where none is named); an empty section goes, too."""
    ours = re.compile(rf'\s*\[\s*{re.escape(section)}\s+"{re.escape(name)}"\s*\]\s*', re.IGNORECASE)
    out: list[str] = []
    block: list[str] | None = None  # the lines below one of our headers
    for line in _logical(text):
        if _HEADER.match(line):
            out += _rest(block)
            block = [line] if ours.fullmatch(line.rstrip("\r\n")) else None
            if block is not None:
                continue
        if block is None:
            out.append(line)
        elif not _goes(line, keys):
            block.append(line)
    return "".join([*out, *_rest(block)])


def _rest(block: list[str] | None) -> list[str]:
    return block if block and any(line.strip() for line in block[1:]) else []


def _goes(line: str, keys: frozenset[str]) -> bool:
    key = _KEY.match(line)
    return key is not None and (not keys or key[1].lower() in keys)


def _logical(text: str) -> list[str]:
    """The lines, each with those that continue it."""
    lines: list[str] = []
    continued = False
    for line in text.splitlines(keepends=True):
        if continued:
            lines[-1] += line
        else:
            lines.append(line)
        bare = line.rstrip("\r\n")
        continued = (len(bare) - len(bare.rstrip("\\"))) % 2 == 1
    return lines
