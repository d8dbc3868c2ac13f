"""Regular expressions that are compiled when they are first needed; a command uses a few of those its modules name."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

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
