"""Declares arguments and options in click's words, and reads plain command lines by them without importing click.

Whatever is more than plain, such as a mistake, help or completion, is for click, which is given the same declarations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from memfs.startup import TYPE_CHECKING, Any, import_module

PARAMETERS = "__click_params__"
"""Where decorators leave the parameters of a function, the last first, as click has it."""
_PLAIN = frozenset(
    {"callback", "default", "expose_value", "help", "hidden", "is_eager", "is_flag", "metavar", "multiple", "nargs"}
    | {"required", "shell_complete", "type"}
)
_DIGITS = 9


class Sort:
    """The type of a parameter, made when click needs it."""

    def __init__(self, name: str, *given: Any, **named: Any) -> None:
        """``name``: of click's class, which gets the rest."""
        self.name, self.given, self.named = name, given, named

    def made(self) -> Any:
        """Click's type."""
        return getattr(import_module("click"), self.name)(*self.given, **self.named)

    def read(self, written: str) -> str | int | None:
        """The value that is plainly of this type; None where click must look."""
        if self.name == "Choice":
            return written if written in self.given[0] else None
        if self.name == "IntRange" and written.isascii() and written.isdigit() and len(written) <= _DIGITS:
            least, most = self.given
            return int(written) if least <= int(written) <= most else None
        return None


class Parameter:
    """One argument or option; called with a function, it declares itself there."""

    def __init__(self, sort: str, *names: str, **given: Any) -> None:
        """``sort``: ``Argument`` or ``Option``."""
        self.sort, self.names, self.given = sort, names, given
        self.opts = [name.partition("/")[0] for name in names if name.startswith("-")]
        plain = [name for name in names if not name.startswith("-")]
        self.name = plain[0] if plain else max(self.opts, key=len).lstrip("-").replace("-", "_")
        self.off = [off for name in names if (off := name.partition("/")[2])]
        self.flag = bool(given.get("is_flag") or self.off)

    def __call__(self, function: Any) -> Any:
        """The function that takes it, as click's own decorators leave it."""
        function.__dict__.setdefault(PARAMETERS, []).append(self)
        return function

    def made(self) -> Any:
        """Click's parameter."""
        given = {key: value.made() if isinstance(value, Sort) else value for key, value in self.given.items()}
        return getattr(import_module("click"), self.sort)(list(self.names), **given)

    @property
    def usual(self) -> Any:
        """Its value where it is not given."""
        usual: Any = () if self.given.get("multiple") else None
        value = self.given.get("default", False if self.flag else usual)
        return self.given["callback"](None, None, value) if "callback" in self.given else value

    def read(self, written: str) -> Any:
        """The value that is plainly meant; None where click must look."""
        kind = self.given.get("type", str)
        if self.flag or "callback" in self.given:
            return None
        return kind.read(written) if isinstance(kind, Sort) else written if kind is str else None


def read(parameters: Sequence[Any], words: Sequence[str]) -> dict[str, Any] | None:
    """The values that plain words give to parameters, by name; None where click must look."""
    if not all(isinstance(one, Parameter) and one.given.keys() <= _PLAIN for one in parameters):
        return None
    rest: list[str] = []
    found: dict[str, Any] = {}
    for one, value in _options_in(words, parameters, rest):
        if one is None or value is None:
            return None
        found[one.name] = (*found.get(one.name, ()), value) if one.given.get("multiple") else value
    for one in parameters:
        if one.sort == "Option":
            if one.name not in found and one.given.get("required"):
                return None
        elif one.given.get("nargs") == -1 and (rest or not one.given.get("required")):
            found[one.name], rest = tuple(rest), []
        elif not one.given.keys() & {"nargs", "type", "default", "required"} and len(rest) == 1:
            found[one.name] = rest.pop()
        else:
            return None
    return None if rest else {one.name: found.get(one.name, one.usual) for one in parameters}


def _options_in(
    words: Sequence[str], parameters: Sequence[Parameter], rest: list[str]
) -> Iterator[tuple[Parameter | None, Any]]:
    """Each option with its value, None where that is not plain; other words go to ``rest``."""
    options = {name: one for one in parameters for name in (*one.opts, *one.off)}
    waiting = iter(words)
    for word in waiting:
        if word == "--":
            rest += waiting
        elif not word.startswith("-") or word == "-":
            rest.append(word)
        else:
            name, equals, value = word.partition("=")
            one = options.get(name)
            if one is not None and one.flag:
                yield one, None if equals or "callback" in one.given else name in one.opts
            elif one is not None and equals and name.startswith("--"):
                yield one, one.read(value)
            else:
                value = next(waiting, "-")
                yield one, None if one is None or equals or value.startswith("-") else one.read(value)


if TYPE_CHECKING:
    import click as click
else:

    class _Click:
        """Click as far as declarations need it; the rest of it is imported when it is used."""

        option = staticmethod(partial(Parameter, "Option"))
        argument = staticmethod(partial(Parameter, "Argument"))
        Choice = staticmethod(partial(Sort, "Choice"))
        IntRange = staticmethod(partial(Sort, "IntRange"))
        FloatRange = staticmethod(partial(Sort, "FloatRange"))

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module("click"), name)

    click = _Click()
