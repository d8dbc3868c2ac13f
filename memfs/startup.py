"""Regular expressions and digests that add little to the start of a process.

An expression is compiled when it is first needed; a command uses a few of those its modules name. The digests do
without OpenSSL: to load it takes a quarter of the time in which Python starts. Whoever digests megabytes takes
``hashlib``, which is several times as quick then.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, AnyStr, cast

__all__ = ["blake2b", "compile_all", "regex", "sha1", "sha256"]

if TYPE_CHECKING:
    from hashlib import blake2b, sha1, sha256
else:
    try:  # what ``hashlib`` itself falls back on
        from _blake2 import blake2b
        from _sha1 import sha1

        sha256 = import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:  # an interpreter that was built otherwise
        from hashlib import blake2b, sha1, sha256

_known: list[_Pattern] = []


def compile_all() -> None:
    """Compile all that modules have named so far, for a process whose children are to find that done."""
    for one in _known:
        _ = one.match


class _Pattern:
    """Has the methods of the compiled expression once one of them is asked for."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._given: tuple[Any, int] = text, flags
        _known.append(self)

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__[name] = getattr(re.compile(*self._given), name)
        return value


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As ``re.compile``, but later; for a constant of a module. A mistake in it is noticed at its first use.

    The functions of ``re`` do not take it: call its methods.
    """
    return cast("re.Pattern[AnyStr]", _Pattern(text, flags))
