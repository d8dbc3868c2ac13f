"""Regular expressions, digests, JSON, paths and the names of types, at little cost to the start of a process.

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
from contextlib import suppress
from types import ModuleType, SimpleNamespace

__all__ = [
    "TYPE_CHECKING", "Any", "Generic", "Literal", "Protocol", "TypeVar",
    "blake2b", "compile_all", "import_module", "import_sparingly", "json", "regex", "runtime_checkable", "sha1",
    "sha256",
]  # fmt: skip

TYPE_CHECKING = False


def import_module(name: str) -> Any:
    """As ``importlib.import_module``, for whole names."""
    __import__(name)
    return sys.modules[name]


if TYPE_CHECKING:
    import json as json
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

    try:
        from _json import encode_basestring, encode_basestring_ascii, make_encoder, make_scanner
    except ImportError:
        import json
    else:
        _CONSTANTS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": -float("inf")}
        _PLAIN = {
            "strict": True, "object_hook": None, "object_pairs_hook": None,
            "parse_float": float, "parse_int": int, "parse_constant": _CONSTANTS.__getitem__,
        }  # fmt: skip

        class _Json:
            """The module ``json``. What it would give to its functions in C at once goes there without it."""

            def __getattr__(self, name):
                return getattr(import_module("json"), name)

            def loads(self, text, **given):
                plain = text
                if isinstance(text, bytes) and text[:1] in (b"{", b"[") and text[1:2] != b"\0":
                    plain = text.decode("utf-8", "surrogatepass")
                if isinstance(plain, str) and given.keys() <= _PLAIN.keys():
                    with suppress(ValueError, StopIteration):
                        value, end = make_scanner(SimpleNamespace(**_PLAIN | given))(plain, 0)
                        if not plain[end:].strip(" \t\n\r"):
                            return value
                return import_module("json").loads(text, **given)

            def dumps(self, value, *, ensure_ascii=True, separators=None, allow_nan=True, sort_keys=False, **given):
                if given.keys() - {"default"}:
                    own = {"ensure_ascii": ensure_ascii, "allow_nan": allow_nan, "sort_keys": sort_keys}
                    return import_module("json").dumps(value, separators=separators, **own, **given)
                quote = encode_basestring_ascii if ensure_ascii else encode_basestring
                marks = (separators or (", ", ": "))[::-1]
                unfit = given.get("default") or self._refuse
                return "".join(make_encoder({}, unfit, quote, None, *marks, sort_keys, False, allow_nan)(value, 0))

            def _refuse(self, value):
                return self.JSONEncoder().default(value)

        json = _Json()


class _Later(ModuleType):
    """A module that is imported when something of it is asked for, after its name is free again."""

    def __getattr__(self, name: str) -> Any:
        if (module := import_module(self.__name__)) is self:
            raise AttributeError(name)
        return getattr(module, name)


def import_sparingly() -> None:
    """Import ``pathlib`` and ``datetime``, for a command, without what they import themselves and it seldom needs:
    addresses, the paths of other systems, and dates in Python, which later versions do without.
    """
    if sys.version_info < (3, 12):
        sys.modules.setdefault("datetime", import_module("_datetime"))
    if sys.version_info >= (3, 13) or "pathlib" in sys.modules:
        return
    names = {"ntpath", "urllib.parse", "warnings"}.difference(sys.modules)
    sys.modules.update((name, _Later(name)) for name in names)
    if "urllib.parse" in names:  # else the import of its function would be one of the module
        later: Any = sys.modules["urllib.parse"]
        later.quote_from_bytes = lambda *values: import_module("urllib.parse").quote_from_bytes(*values)
    try:
        import_module("pathlib")
    finally:
        for name in names:
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
