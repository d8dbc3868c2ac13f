"""Lean imports: Whoosh without what it imports and never uses, which is half of what a first question costs.

Whoosh imports ``urllib.request``, and with it http, email and ssl, for a name that nothing in it uses; and asyncio by
way of a package from which it takes one decorator, which the standard library has too. The two modules of Whoosh that
do so are given stand-ins for these imports; nobody else sees them.
"""

from __future__ import annotations

import builtins
import functools
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import ModuleType, SimpleNamespace
from typing import Any


def _fetched(*arguments: Any) -> Any:
    from urllib.request import urlretrieve

    return urlretrieve(*arguments)  # noqa: S310  whoever calls it named the address


_STAND_INS: Mapping[str, Mapping[str, Any]] = {
    "whoosh.compat": {"urllib.request": SimpleNamespace(urlretrieve=_fetched)},
    "whoosh.reading": {"cached_property": SimpleNamespace(cached_property=functools.cached_property)},
}


def import_lean() -> None:
    """Import these modules of Whoosh, as far as nobody did; what cannot be done so is imported as usual later."""
    for name, stand_ins in _STAND_INS.items():
        if name not in sys.modules:
            with suppress(ImportError, AttributeError):
                _import(name, stand_ins)


def _import(name: str, stand_ins: Mapping[str, Any]) -> None:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return

    def lean(
        wanted: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> Any:
        given = stand_ins.get(wanted) if fromlist and not level else None
        if given is not None and all(hasattr(given, one) for one in fromlist):
            return given
        return builtins.__import__(wanted, globals, locals, fromlist, level)

    module: ModuleType = importlib.util.module_from_spec(spec)
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": lean}
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    package, _, own = name.rpartition(".")
    setattr(sys.modules[package], own, module)
