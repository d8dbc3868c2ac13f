"""Known: what one handle last read or wrote of documents that others change, too.

Owns that memory alone: it is what a three-way merge begins from. How documents are merged is ``shared``'s business.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from memfs.files.forked import renewed_in_child
from memfs.model.shape import plain

_MOST = 10_000
_MOST_CHARACTERS = 64_000_000
_NUMBERS_FOR_EACH = 20


class Known:
    """The versions that the user of one handle knows, by document and thread. May be used from several threads.

    What a caller changes is judged against what that caller last saw: two threads that both read a count of 5 and both
    store 6 have counted twice. A thread that saw nothing goes by what the handle's others saw last.
    """

    def __init__(self, since: int | None = None, most: int = _MOST, most_characters: int = _MOST_CHARACTERS) -> None:
        """Remember ``most`` versions, of so many characters in all; the oldest are forgotten first.

        Args:
            since: when the handle was opened, in nanoseconds since 1970; by default now.
        """
        self._most, self._most_characters = most, most_characters
        self._characters = 0
        self.since = time.time_ns() if since is None else since
        self._guard = threading.Lock()
        renewed_in_child(self)
        self._seen: OrderedDict[tuple[str, str, int], str] = OrderedDict()
        self._numbers: OrderedDict[tuple[str, str, int], dict[str, int | float]] = OrderedDict()

    def saw(self, kind: str, name: str, values: Mapping[str, Any]) -> None:
        """The caller was given, or handed over, these values of the document of that kind and id.

        They are kept as they are now, whatever the caller does with them.
        """
        text = json.dumps(plain(values))
        with self._guard:
            for thread in (threading.get_ident(), 0):
                self._characters += len(text) - len(self._seen.pop((kind, name, thread), ""))
                self._seen[kind, name, thread] = text
                self._numbers.pop((kind, name, thread), None)
            while len(self._seen) > 2 and (
                len(self._seen) > 2 * self._most or self._characters > 2 * self._most_characters
            ):
                self._forget(*self._seen.popitem(last=False))

    def _forget(self, key: tuple[str, str, int], text: str) -> None:
        self._characters -= len(text)
        numbers = {name: value for name, value in json.loads(text).items() if isinstance(value, int | float)}
        self._numbers[key] = numbers
        while len(self._numbers) > _NUMBERS_FOR_EACH * self._most:
            self._numbers.popitem(last=False)

    def saw_hypotheses(self, versions: Iterable[Mapping[str, Any]]) -> None:
        """The caller was given these hypotheses; of several versions of one, the last is what counts."""
        for values in versions:
            if isinstance(name := values.get("id"), str):
                self.saw("hypothesis", name, values)

    def last(self, kind: str, name: str) -> dict[str, Any] | None:
        """What the caller last saw, None where that is not known."""
        with self._guard:
            text = self._seen.get((kind, name, threading.get_ident())) or self._seen.get((kind, name, 0))
        return json.loads(text) if text else None

    def numbers(self, kind: str, name: str) -> dict[str, int | float] | None:
        """The numbers in a version that was seen and is forgotten else; None where none was seen.

        Without them, a counter that is stored again would be taken for counted anew, and added to itself.
        """
        with self._guard:
            found = self._numbers.get((kind, name, threading.get_ident()))
            return self._numbers.get((kind, name, 0)) if found is None else found
