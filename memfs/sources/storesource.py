"""Store source: what our sources have in common that ask one store.

Owns taking the source's own table ``[memory.<source>]``, where an unknown key is refused by its name, and that a
store's answer may be given at once or awaited, so that a source takes any store with the right methods. What is asked,
and what is made of the answer, each source knows.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

from memfs.errors import SettingInvalid
from memfs.model.episode import StateSnapshot
from memfs.model.kinds import nearest
from memfs.setting_values import checked
from memfs.settings import SPECS
from memfs.sources.plugin import Selection


class StoreSource(ABC):
    """A source that asks a store (``memfs.sources.plugin.ItemSource``). Its settings are attributes of their names.

    Args:
        store: what is asked; each source says what it must offer.
    """

    name: ClassVar[str]
    layer: ClassVar[str]

    def __init__(self, store: Any) -> None:
        self.store = store
        for name, value in defaults(self.settings_of()).items():
            setattr(self, name, value)

    def configure(self, config: Mapping[str, Any]) -> None:
        """Take the table ``[memory.<name>]``; what does not stand in it stays as it is.

        Raises:
            SettingInvalid: a key is unknown, or its value of the wrong sort or out of bounds; ``field`` names it.
        """
        for name, value in checked_table(self.name, config, self.settings_of()).items():
            setattr(self, name, value)

    @classmethod
    def settings_of(cls) -> str:
        """The source whose settings these are: one that derives from ours has them under another name, too."""
        return next((name for one in cls.__mro__ if (name := one.__dict__.get("name", "")) and defaults(name)), "")

    def select(self, state: StateSnapshot) -> Selection:
        """What the store has for a situation; nothing where nothing fits."""
        return self._selection(answered(self._ask(state)))

    async def get_context(self, state: StateSnapshot) -> str | None:
        """The same as text; "" without any."""
        return self._text(self._selection(await awaited(self._ask(state))))

    @abstractmethod
    def _ask(self, state: StateSnapshot) -> Any:
        """The store's answer, or what is to be awaited for it."""

    @abstractmethod
    def _selection(self, found: Any) -> Selection:
        """What of an answer is told."""

    def _text(self, selection: Selection) -> str | None:
        return str(selection)


# -- tables -------------------------------------------------------------------------------------------------------
def defaults(source: str) -> dict[str, Any]:
    """The values of a source's table where nothing is set."""
    beginning = f"memory.{source}."
    return {key.removeprefix(beginning): spec.default for key, spec in SPECS.items() if key.startswith(beginning)}


def checked_table(source: str, config: Mapping[str, Any], settings_of: str = "") -> dict[str, Any]:
    """The checked values of a source's table, those that stand in it only.

    Args:
        settings_of: the source that has the same settings, where its name is another one.

    Raises:
        SettingInvalid: as ``StoreSource.configure``.
    """
    if not isinstance(config, Mapping):
        raise SettingInvalid(f"expected a table, got {ascii(config)[:60]}", field=f"memory.{source}")
    return {name: _value(source, name, value, settings_of or source) for name, value in config.items()}


def _value(source: str, name: str, value: Any, settings_of: str) -> Any:
    spec = SPECS.get(f"memory.{settings_of}.{name}")
    if spec is None:
        known = defaults(settings_of)
        hint = nearest(name, known) or f"the keys are {', '.join(known)}"
        raise SettingInvalid(f"unknown setting {name!a}", field=f"memory.{source}.{name}", hint=hint)
    return checked(value, spec)


# -- answers ------------------------------------------------------------------------------------------------------
async def awaited(answer: Any) -> Any:
    """The answer itself, where it has to be awaited too."""
    return await answer if inspect.isawaitable(answer) else answer


def answered(answer: Any) -> Any:
    """As ``awaited``, for a caller that cannot await: what has to be awaited gets an event loop in a thread of its own,
    as the caller's thread may run one already.
    """
    if not inspect.isawaitable(answer):
        return answer
    import asyncio  # the workspace's own stores answer at once, and spare a process what this takes to import
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, "memfs-asking") as alone:
        return alone.submit(asyncio.run, _result(answer)).result()


async def _result(answer: Awaitable[Any]) -> Any:
    return await answer


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a function has a parameter of that name."""
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of some built-in functions nothing is known
        return False
    return any(one.name == name or one.kind is inspect.Parameter.VAR_KEYWORD for one in known)
