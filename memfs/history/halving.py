"""Halving: which commit splits a stretch of history in two, as ``git bisect`` chooses it.

Owns asking git for it. What is looked for in the stretch, it does not know.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from memfs.history.log import OWN_PATHS, one_line
from memfs.history.repository import Repository

_MIDDLE = b"bisect_rev='"
_LEFT = b"bisect_all="


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The commits that lead to one and not to others, as far as they changed the memory.

    Attributes:
        end: the commit they lead to.
        without: it and what leads to it is left out, for each.
    """

    end: str
    without: tuple[str, ...]


def middle(repository: Repository, stretch: Stretch) -> tuple[str, int]:
    """The commit that halves a stretch, and how many commits the stretch has; "" and 0 for an empty one.

    Raises:
        GitFailed: git cannot tell.
    """
    out = repository.git.run("rev-list", "--bisect-vars", "--stdin", data=_asked(repository, stretch))
    lines = out.splitlines()
    found = next((line for line in lines if line.startswith(_MIDDLE)), _MIDDLE)
    count = next((line for line in lines if line.startswith(_LEFT)), _LEFT + b"0")
    name = found.removeprefix(_MIDDLE).rstrip(b"'").decode()
    return (name, int(count.removeprefix(_LEFT))) if name else ("", 0)


def by_distance(repository: Repository, stretch: Stretch) -> list[str]:
    """All commits of a stretch, those nearest to its middle first.

    Raises:
        GitFailed: git cannot tell.
    """
    out = repository.git.run("rev-list", "--bisect-all", "--stdin", data=_asked(repository, stretch))
    return [line.split(None, 1)[0].decode() for line in out.splitlines() if line]


def within(repository: Repository, stretch: Stretch, paths: Iterable[str] = OWN_PATHS, most: int = 0) -> list[str]:
    """The commits of a stretch that changed some workspace paths, newest first; ``most`` 0 means all of them.

    Raises:
        GitFailed: git cannot tell.
    """
    bound = [f"--max-count={most}"] if most else []
    out = repository.git.run("rev-list", *bound, "--stdin", data=_asked(repository, stretch, tuple(paths)))
    return out.decode().split()


def _asked(repository: Repository, stretch: Stretch, paths: Collection[str] = OWN_PATHS) -> bytes:
    names = [one_line(repository.full(path)) for path in paths]
    left_out = [f"^{commit}".encode() for commit in stretch.without]
    return b"\n".join((stretch.end.encode(), *left_out, b"--", *names, b""))
