"""Retrieval: the forms of asking a workspace (C4, C5).

Owns what is refused, and that an answer rests on the files as they are now: together, in the background, or within a
deadline. Finding is ``memfs.pipeline.finding``'s business, what becomes of it that of ``memfs.pipeline.answering``.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from memfs.errors import QueryInvalid
from memfs.model import KindTable, Layer, MemoryItem, Phase, Query, Recall
from memfs.model.kinds import nearest
from memfs.pipeline.answering import Answering
from memfs.pipeline.deadline import Deadline
from memfs.pipeline.fence import fence
from memfs.pipeline.finding import Finder, Found, Helpers
from memfs.pipeline.pools import Pools
from memfs.pipeline.selection import Mark
from memfs.store.readable import Readable

if TYPE_CHECKING:
    from concurrent.futures import Future

    from memfs.pipeline.relevance import Relevance

_TEXT_LIMIT = 5_000
_TRIES = 2
_WIDER = 5
_WIDE, _WIDEST = 25, 625


class Recaller:
    """Answers questions from one workspace. May be used from several threads."""

    def __init__(
        self,
        store: Readable,
        preset_name: str,
        clock: Callable[[], datetime],
        kinds: KindTable | None = None,
        *,
        helpers: Helpers | None = None,
        tick: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            preset_name: the strategy of queries that name none.
            kinds: the types there are; without them any type may be asked for.
            helpers: what counts uses, reviews and finds by meaning.
            tick: tells seconds, for deadlines.
        """
        self._store = store
        self._preset_name = preset_name
        self._clock = clock
        self._kinds = kinds
        self._helpers = helpers or Helpers()
        self._finder = Finder(store, preset_name, clock, kinds, self._helpers)
        self._tick = tick
        self._pools = Pools()

    def search(
        self,
        query: Query | str,
        *,
        prove: bool = False,
        fenced: bool = False,
        leave_out: Callable[[MemoryItem], bool] | None = None,
        mark: Mark | None = None,
    ) -> Recall:
        """The best items for a question, from the files as they are now.

        Args:
            query: a query, or its text.
            prove: also say what the answer rests on (``Recall.fresh``).
            fenced: the hits will be shown by ``fenced``, so what that adds counts against ``max_tokens``.
            leave_out: tells which items the asker has already: they take nobody's place.
            mark: what items that tell the same have in common: the best of them is given, and the others repeat it.

        Raises:
            QueryInvalid: naming the field that cannot be understood, and the nearest type, layer, phase or strategy.
        """
        asked = self._checked(query)
        return self._search(asked, Deadline(asked.seconds, self._tick), prove, fenced, leave_out=leave_out, mark=mark)

    def search_many(
        self,
        queries: Iterable[Query | str],
        *,
        fenced: bool = False,
        leave_out: Callable[[MemoryItem], bool] | None = None,
    ) -> dict[str, Recall]:
        """The answers to several questions by their text, all found in one state of the index (C5).

        Args:
            fenced, leave_out: as ``search``.

        Raises:
            QueryInvalid: as ``search``; also where two different queries have one text.
        """
        asked = {text: self._checked(query) for text, query in _by_text(queries).items()}
        deadlines = [Deadline(query.seconds, self._tick) for query in asked.values()]
        found = self._found_together(list(asked.values()), deadlines)
        return {
            text: self._search(query, deadline, False, fenced, one, leave_out=leave_out)
            for (text, query), deadline, one in zip(asked.items(), deadlines, found, strict=True)
        }

    def submit(self, query: Query | str, *, prove: bool = False, fenced: bool = False) -> Future[Recall]:
        """``search`` in the background (C5).

        Raises:
            QueryInvalid: as ``search``, at once.
        """
        asked, here = self._checked(query), copy_context()  # to whom it goes, the caller's thread knows
        return self._pools.submit("recall", here.run, partial(self.search, asked, prove=prove, fenced=fenced))

    async def search_async(self, query: Query | str, *, prove: bool = False, fenced: bool = False) -> Recall:
        """``search`` without holding up the event loop (C5)."""
        import asyncio  # costs start-up time

        return await asyncio.wrap_future(self.submit(query, prove=prove, fenced=fenced))

    def over(self, store: Readable) -> Recaller:
        """One that answers from another store, by the same rules."""
        return Recaller(store, self._preset_name, self._clock, self._kinds, helpers=self._helpers, tick=self._tick)

    def reviewed_by(self, relevance: Relevance) -> Recaller:
        """This one with other judges of its answers; what both run in the background is one."""
        other = copy.copy(self)
        other._helpers = replace(self._helpers, relevance=lambda: relevance)
        return other

    def close(self) -> None:
        """Wait for what runs in the background; what has not begun is given up."""
        self._pools.close()

    @staticmethod
    def fenced(answer: Recall) -> str:
        """The hits of an answer as quoted data for a prompt (``memfs.pipeline.fence``); "" where there are none."""
        return fence(answer.hits)

    def _checked(self, query: Query | str) -> Query:
        query = Query(text=query) if isinstance(query, str) else query
        if not isinstance(query, Query):
            raise QueryInvalid(f"expected a Query or a text, got {ascii(query)[:60]}", field="query")
        self._helpers.permit()
        _check_known("layers", query.layers, [layer.value for layer in Layer])
        _check_known("phases", query.phases, [phase.value for phase in Phase])
        if self._kinds is not None:
            _check_known("types", query.types, [kind.name for kind in self._kinds])
        self._finder.strategy(query)
        text = query.text[:_TEXT_LIMIT] if query.text.strip() else ""
        return query if text == query.text else replace(query, text=text)

    def _search(
        self,
        query: Query,
        deadline: Deadline,
        prove: bool,
        fenced: bool,
        found: Found | None = None,
        *,
        leave_out: Callable[[MemoryItem], bool] | None = None,
        mark: Mark | None = None,
    ) -> Recall:
        """``found``: what was found already; looked for anew where files have changed since, or it is too little."""
        answer_with = partial(self._answering, query, deadline, fenced, leave_out, mark)
        answering = answer_with(found or self._found(query, deadline))
        for _ in range(_TRIES - 1):
            if deadline.passed or set(answering.missing) <= set(self._store.unread(query)):
                break
            self._store.refresh(answering.missing)
            answering = answer_with(self._found(query, deadline))
        wider = 1
        while answering.short and wider < (_WIDEST if mark is None else _WIDE):
            wider *= _WIDER
            answering = answer_with(self._found(query, deadline, wider))
        answer = answering.answer(self._store.unread(query))
        usage = self._helpers.usage() if answer.hits else None
        if usage is not None:
            places, now = {hit.item.id: hit.item.path for hit in answer.hits}, self._clock()
            usage.touch(list(places), now)
            usage.served.note("recall", places, now, question=query.text, paths=places)
        return replace(answer, fresh=self._store.freshness()) if prove else answer

    def _found(self, query: Query, deadline: Deadline, wider: int = 1) -> Found | None:
        if deadline.seconds is None:
            return self._finder.find(query, wider)
        finding = self._pools.submit("find", self._finder.find, query, wider)
        try:
            return finding.result(deadline.left())
        except TimeoutError:
            finding.cancel()
            return None

    def _found_together(self, queries: list[Query], deadlines: list[Deadline]) -> Sequence[Found | None]:
        """What is found for several queries in one state of the index; nothing where the last deadline passes first."""
        left = [deadline.left() for deadline in deadlines]
        bounded = [seconds for seconds in left if seconds is not None]
        if not left or len(bounded) < len(left):
            return self._finder.find_together(queries)
        finding = self._pools.submit("find", self._finder.find_together, queries)
        try:
            return finding.result(max(bounded))
        except TimeoutError:
            finding.cancel()
            return [None] * len(queries)

    def _answering(
        self,
        query: Query,
        deadline: Deadline,
        fenced: bool,
        leave_out: Callable[[MemoryItem], bool] | None,
        mark: Mark | None,
        found: Found | None,
    ) -> Answering:
        answering = Answering(self._store, query, deadline, self._helpers.relevance, fenced, leave_out, mark)
        answering.take(None if found is None else self._finder.order(query, found))
        return answering


def _by_text(queries: Iterable[Query | str]) -> dict[str, Query | str]:
    found: dict[str, Query | str] = {}
    for query in queries:
        text = query.text if isinstance(query, Query) else query
        if found.setdefault(text, query) != query:
            hint = "ask them apart, or in different words"
            raise QueryInvalid(f"two different queries ask {ascii(text)[:60]}", field="queries", hint=hint)
    return found


def _check_known(field: str, names: Iterable[str], known: list[str]) -> None:
    for name in names:
        if name not in known:
            hint = " ".join(filter(None, (nearest(name, known), f"the {field} are {', '.join(known)}")))
            raise QueryInvalid(f"there is no {field.removesuffix('s')} {name!r}", field=field, hint=hint)
