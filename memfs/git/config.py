"""Reads one git configuration file without running git.

Understands enough of the format to learn how a repository is laid out before a process is started in it. Includes are
not followed, as git does not follow them for these keys either.
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


def quoted(value: str) -> str:
    """A value as git reads it back the same, whatever is in it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
