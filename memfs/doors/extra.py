"""What doors to frameworks share: to end with a ``with`` block, and to say which packages are missing."""

from __future__ import annotations

from collections.abc import Collection
from typing import Self

from memfs.errors import ExtraMissing


def missing(what: str, extra: str, packages: Collection[str], error: ImportError) -> ImportError | ExtraMissing:
    """The error to raise where an import failed: the same, where it is a fault of memfs's own."""
    if str(error.name).partition(".")[0] not in packages:
        return error
    said = f"{what} needs packages that are not installed, or newer ones"
    return ExtraMissing(said, hint=f"pip install 'gitmemfs[{extra}]'")


class Closable:
    """Ends with the block of a ``with`` or ``async with``."""

    def close(self) -> None:
        """End the use of what is open. May be repeated."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        from asyncio import to_thread  # costs start-up time

        await to_thread(self.close)
