"""Overrides: what one caller wants otherwise than its workspace's settings say (seed 004, P5).

Owns that values and further sources hold for this caller alone, and come along into a forked child. What they do, the
deliverer knows that they are given to.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memfs.errors import SettingInvalid
from memfs.files.forked import renewed_in_child

if TYPE_CHECKING:
    from memfs.sources.delivery import Deliverer
    from memfs.sources.plugin import MemoryPlugin


class Overrides:
    """Values over ``[memory]``, and sources of the caller's own. May be used from several threads."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._added: list[tuple[MemoryPlugin, Mapping[str, Any] | None]] = []
        self._made: tuple[Deliverer, Deliverer] | None = None
        self._changing = threading.RLock()
        renewed_in_child(self)

    def over(self, usual: Deliverer) -> Deliverer:
        """The deliverer with what is wanted otherwise; the usual one where nothing is."""
        return self._own(usual) if self._values or self._added else usual

    def configure(self, usual: Deliverer, config: Mapping[str, Any]) -> None:
        """Let values win over those before, and over the settings.

        Raises:
            SettingInvalid: as ``Deliverer.configure``; nothing was changed.
        """
        given = config["memory"] if isinstance(config, Mapping) and set(config) == {"memory"} else config
        with self._changing:
            values = _merged(self._values, given)
            self._own(usual).configure(values)
            self._values = values

    def add(self, usual: Deliverer, plugin: MemoryPlugin, config: Mapping[str, Any] | None) -> None:
        """Ask a source of the caller's own, too.

        Raises:
            SettingInvalid: as ``Plugins.add``.
        """
        with self._changing:
            self._own(usual).plugins.add(plugin, config)
            self._added.append((plugin, config))

    def _own(self, usual: Deliverer) -> Deliverer:
        """A deliverer of this caller alone."""
        with self._changing:
            if self._made is None or self._made[0] is not usual:  # the first use, or the first in a forked child
                own = usual.apart()
                if self._values:
                    own.configure(self._values)
                for plugin, config in self._added:
                    own.plugins.add(plugin, config)
                self._made = (usual, own)
            return self._made[1]


def _merged(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Values with other ones over them; tables are merged, everything else is replaced."""
    if not isinstance(given, Mapping):
        raise SettingInvalid(f"expected a table, got {ascii(given)[:60]}", field="memory")
    merged = dict(values)
    for name, value in given.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = {**merged[name], **value} if both else value
    return merged
