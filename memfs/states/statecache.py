"""State cache: documents and answers that were asked for before, as long as they are worth their room.

Owns how many bytes are kept and what goes first: what was asked for least, counted by use, where old uses fade. Whether
what is kept is still true, its users find out.
"""

from __future__ import annotations

import marshal
import os
import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

_MOST_BYTES = 64 << 20
_FADES_AFTER = 500
_OVERHEAD = 400


@dataclass(slots=True)
class _Kept:
    data: bytes
    proof: Any
    turn: int


class StateCache:
    """Keeps plain values by key, each with its proof. May be used from several threads.

    Values are kept as bytes: nobody who changes what was handed out changes what is kept.

    Attributes:
        hits, misses: how often what was asked for could be used.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most_bytes
        self._guard = threading.Lock()
        self._process = os.getpid()
        self._kept: dict[Hashable, _Kept] = {}
        self._asked: dict[Hashable, float] = {}
        self._turn = 0
        self.bytes = 0
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._kept)

    def proof(self, key: Hashable) -> Any:
        """What vouches for the kept value, None where nothing is kept; counts as asking for it."""
        with self._mine():
            self._turn += 1
            if self._turn % _FADES_AFTER == 0:
                self._fade()
            self._asked[key] = self._asked.get(key, 0.0) + 1.0
            kept = self._kept.get(key)
            if kept is None:
                return None
            kept.turn = self._turn
            return kept.proof

    def value(self, key: Hashable) -> Any:
        """A copy of the kept value.

        Raises:
            KeyError: it has gone.
        """
        with self._mine():
            data = self._kept[key].data
        return marshal.loads(data)  # noqa: S302  # our own bytes, from this process's memory

    def keep(self, key: Hashable, value: Any, proof: Any) -> None:
        """Keep a value, where it is worth the room; a value that is not plain is not kept."""
        try:
            data = marshal.dumps(value)
        except ValueError:
            return
        with self._mine():
            self._remove(key)
            size = len(data) + _OVERHEAD
            if size > self._most // 4:
                return
            self._kept[key] = _Kept(data, proof, self._turn)
            self.bytes += size
            if self.bytes > self._most:
                self._make_room(key)

    def clear(self) -> None:
        """Keep nothing."""
        with self._mine():
            self._kept.clear()
            self.bytes = 0

    def count(self, hit: bool) -> None:
        """Count whether what was asked for could be used."""
        with self._mine():
            if hit:
                self.hits += 1
            else:
                self.misses += 1

    def _mine(self) -> threading.Lock:
        if os.getpid() != self._process:  # a forked child: the lock may have been held by a thread it has not
            self._process, self._guard = os.getpid(), threading.Lock()
        return self._guard

    def _remove(self, key: Hashable) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.bytes -= len(kept.data) + _OVERHEAD

    def _make_room(self, latest: Hashable) -> None:
        """Let go what was asked for least and longest ago, until there is some room again."""
        order = sorted(self._kept, key=lambda key: (self._asked.get(key, 0.0), self._kept[key].turn))
        for key in order:
            if self.bytes <= self._most * 3 // 4:
                break
            if key != latest:
                self._remove(key)

    def _fade(self) -> None:
        """Old uses count half, so that what was asked for long ago does not stay for ever."""
        self._asked = {key: uses / 2 for key, uses in self._asked.items() if uses >= 0.5 or key in self._kept}
