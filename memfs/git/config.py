"""Reads and edits one git configuration file without running git.

Understands enough of the format to learn how a repository is laid out before a process is started in it. Includes are
not followed, as git does not follow them for these keys either. An edit leaves every other line as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from memfs.fs import io

_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(=)?\s*(.*)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}
_LIMIT = 1 << 20


def read_config(path: Path) -> dict[str, str]:
    """The settings of a file as ``section.subsection.key``, section and key in lower case, the last one wins.

    A missing file is an empty one. A key without a value is ``true``.
    """
    try:
        text = io.read_file(path, _LIMIT).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return {}
    return parse_config(text)


def parse_config(text: str) -> dict[str, str]:
    """As ``read_config``, from text; lines that are not configuration are skipped."""
    found: dict[str, str] = {}
    section = ""
    for line in text.replace("\r\n", "\n").replace("\\\n", "").split("\n"):
        rest = line.strip()
        header = _SECTION.match(rest)
        if header:
            section = header[1].lower() + (f".{_unescaped(header[2])}" if header[2] is not None else "")
            rest = rest[header.end() :].strip()
        key = _KEY.match(rest)
        if key and section:
            found[f"{section}.{key[1].lower()}"] = _value(key[3]) if key[2] else "true"
    return found


def truth(settings: Mapping[str, str], name: str) -> bool:
    """Whether a setting is on, in git's words."""
    return settings.get(name, "").strip().lower() in ("true", "yes", "on", "1")


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _value(text: str) -> str:
    out: list[str] = []
    quoted = False
    characters = iter(text)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            out.append(_ESCAPES.get(following, following))
        elif character == '"':
            quoted = not quoted
        elif character in "#;" and not quoted:
            break
        else:
            out.append(character)
    return "".join(out).strip()


_HEADER = re.compile(r"\s*\[[^\]\n]*\]")
_SETTING = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=|$|[#;])")


def with_section(text: str, section: str, name: str, values: Mapping[str, str]) -> str:
    """The text in which ``[section "name"]`` has these values; without values, these keys are gone from it.

    What is there already stays to the byte. A section of which nothing is left goes, too.

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
    key = _SETTING.match(line)
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
