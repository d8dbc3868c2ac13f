"""Regular expressions, digests, paths and the names of types, at little cost to the start of a process.

An expression is compiled when it is first needed; a command uses a few of those its modules name. The digests do
without OpenSSL: to load it takes a quarter of the time in which Python starts. To digest megabytes take
``hashlib``, which is several times as quick then.

Annotations are not evaluated, so that the modules of everyday commands need nothing of ``typing``: type checkers see it
here, and a running program what is enough for the bases of its classes.
"""

from __future__ import annotations

import re
import sys
from abc import ABCMeta
from importlib import import_module
from types import ModuleType

__all__ = [
    "TYPE_CHECKING", "Any", "Generic", "Literal", "Protocol", "TypeVar",
    "blake2b", "compile_all", "import_pathlib", "regex", "runtime_checkable", "sha1", "sha256",
]  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import blake2b, sha1, sha256
    from typing import Any, AnyStr, Generic, Literal, Protocol, TypeVar, runtime_checkable
else:
    Any = object

    def TypeVar(name: str, **_):  # noqa: ARG001, N802  the standard library's name
        """Any type."""
        return object

    class _Structural(ABCMeta):
        def __instancecheck__(cls, one):
            names = vars(cls).get("_names")
            return super().__instancecheck__(one) or (names is not None and all(hasattr(one, name) for name in names))

    class Protocol(metaclass=_Structural):
        """What other classes are like, without being derived from it; may be subscripted, as its other names."""

        __slots__ = ()

        def __class_getitem__(cls, _):
            return cls

    Generic = Literal = Protocol

    def runtime_checkable(cls):
        """Have ``isinstance`` check whether an object has all that a protocol names."""
        cls._names = [name for name in {**vars(cls), **vars(cls).get("__annotations__", {})} if name[0] != "_"]
        return cls

    try:  # what ``hashlib`` itself falls back on
        from _blake2 import blake2b
        from _sha1 import sha1

        sha256 = import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:  # an interpreter that was built otherwise
        from hashlib import blake2b, sha1, sha256


def import_pathlib() -> None:
    """Import ``pathlib``, for a command, without ``urllib.parse``, which takes longer than itself: only ``Path.as_uri``
    needs it, and imports it then.
    """
    name = "urllib.parse"
    if sys.version_info >= (3, 13) or not sys.modules.keys().isdisjoint(("pathlib", name)):
        return
    given = sys.modules[name] = ModuleType(name)
    given.quote_from_bytes = lambda *values: import_module(name).quote_from_bytes(*values)  # type: ignore[attr-defined]
    try:
        import_module("pathlib")
    finally:
        del sys.modules[name]


_known: list[_Pattern] = []


def compile_all() -> None:
    """Compile all that modules have named so far, for a process whose children are to find that done."""
    for expression in _known:
        _ = expression.match


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
    return _Pattern(text, flags)  # type: ignore[return-value]
