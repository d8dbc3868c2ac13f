"""Later: work of one facade that is done in the background, in the order in which it was given.

Owns that order, and telling what failed. What is done, it does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from memfs.pipeline.pools import Pools

if TYPE_CHECKING:
    from concurrent.futures import Future

Result = TypeVar("Result")


class Later:
    """One thread, begun when it is first needed. May be used from several threads."""

    def __init__(self) -> None:
        self._pools = Pools(threads=1)

    def submit(
        self, failed: Callable[[Exception], object], work: Callable[..., Result], *values: Any
    ) -> Future[Result]:
        """Have work done after what was given before; ``failed`` is told of what it raised."""
        doing = self._pools.submit("later", work, *values)
        doing.add_done_callback(lambda done: _tell(done, failed))
        return doing

    def close(self) -> None:
        """Wait until all is done."""
        self._pools.close(give_up=False)


def _tell(done: Future[Any], failed: Callable[[Exception], object]) -> None:
    error = None if done.cancelled() else done.exception()
    if isinstance(error, Exception):
        failed(error)
