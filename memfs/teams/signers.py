"""Signers: whom a list of allowed signers names.

Owns reading the first column of ``ssh-keygen``'s format, as far as it says for whom the list has a key. Whose key made
a signature, ``ssh-keygen`` tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from pathlib import Path

from memfs.errors import MemfsError, SigningFailed
from memfs.files import io

Principals = tuple[str, ...]
"""The patterns of one line."""
_LIMIT = 1 << 20


def read_signers(path: Path) -> tuple[Principals, ...]:
    """The principals that each line of a list names.

    Raises:
        SigningFailed: it is not there, or cannot be read.
    """
    try:
        text = io.read_file(path, _LIMIT).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        raise SigningFailed("there is no such list of signers", path=str(path), hint="correct the path") from None
    except MemfsError as error:
        reason = f"the list of signers cannot be read: {error.message}"
        raise SigningFailed(reason, path=str(path), hint=error.hint or "name another one") from error
    lines = (line.strip() for line in text.splitlines())
    return tuple(_first(line) for line in lines if line and not line.startswith("#"))


def lists_itself(listed: Iterable[Principals], principal: str) -> bool:
    """Whether any line is about a principal."""
    return any(_matches(patterns, principal) for patterns in listed)


def _first(line: str) -> Principals:
    quoted = re.match(r'"([^"]*)"', line)
    column = quoted[1] if quoted else line.split(None, 1)[0]
    return tuple(filter(None, column.split(",")))


def _matches(patterns: Principals, principal: str) -> bool:
    def one(pattern: str) -> bool:
        # Of the signs of fnmatch only * and ? mean something here.
        return re.fullmatch(translate(pattern.replace("[", "[[]")), principal) is not None

    if any(one(pattern[1:]) for pattern in patterns if pattern.startswith("!")):
        return False
    return any(one(pattern) for pattern in patterns if not pattern.startswith("!"))
