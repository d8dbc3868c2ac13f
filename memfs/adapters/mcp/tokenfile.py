"""Token: what a client must show to be served over HTTP.

Owns where it comes from: a file only its owner can read, the environment, or chance. Who checks it is ``guard``.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from memfs.errors import SettingInvalid
from memfs.files import io

VARIABLE = "MEMFS_MCP_TOKEN"
_FIT = re.compile(r"[\x21-\x7e]{16,512}")
_MOST = 4096


@dataclass(frozen=True, slots=True)
class Token:
    """The token, and where it comes from in words; ``fresh`` when nobody knows it yet."""

    text: str = field(repr=False)
    origin: str
    fresh: bool = False


def token_from(file: str | None, environ: Mapping[str, str]) -> Token:
    """The token of this server (B5): from the file, else from ``MEMFS_MCP_TOKEN``, else a new one.

    Args:
        file: its path; where nothing is there a new token is written into it, readable by this user alone.
        environ: the environment.

    Raises:
        SettingInvalid: what was given is no token, or others can read the file.
        StorageIO: the file cannot be read or written.
    """
    if file is not None:
        return Token(_kept(Path(file)), f"in {file}")
    if environ.get(VARIABLE):
        return Token(_checked(environ[VARIABLE], VARIABLE), f"from {VARIABLE}")
    return Token(secrets.token_hex(24), "made for this start", fresh=True)


def _kept(path: Path) -> str:
    """The token in a file, which is made where it is not there; two who make it at once get the same."""
    if not os.path.lexists(path):
        beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
        io.write_file(beside, secrets.token_hex(24).encode() + b"\n")
        try:
            with suppress(FileExistsError):  # another was quicker
                io.link(str(beside), str(path))
        finally:
            io.unlink(beside)
        io.sync_folder(path.parent)
    return _checked(_read(path), str(path))


def _read(path: Path) -> str:
    """What a file holds that only its owner can read.

    Raises:
        SettingInvalid: others can read or change it.
        StorageIO, NotRegularFile: it cannot be read.
    """
    descriptor = io.open_file(os.path.realpath(path), os.O_RDONLY)
    try:
        facts = os.fstat(descriptor)
        if facts.st_uid not in (os.getuid(), 0) or stat.S_IMODE(facts.st_mode) & 0o077:
            raise SettingInvalid(
                "others can read the token", path=str(path), field="token-file", hint=f"chmod 600 {path}"
            )
        return io.read_regular(descriptor, str(path), _MOST).decode("ascii", "replace")
    finally:
        os.close(descriptor)


def _checked(written: str, origin: str) -> str:
    token = written.strip()
    if _FIT.fullmatch(token) is None:
        raise SettingInvalid(
            f"{origin} holds no token",
            field="token",
            hint="a token is one line of 16 to 512 visible ASCII characters without spaces",
        )
    return token
