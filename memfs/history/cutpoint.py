"""The commit at which history can be cut: before some moment, and on every line that leads on from there.

Where two lines of history run side by side no commit stands for both, and what they began with is needed to merge them:
history is then cut where they parted, or before. Reads a survey; changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

Parents = Mapping[str, tuple[str, ...]]


def cut_point(parents: Parents, times: Mapping[str, int], tips: Iterable[str], before: int) -> str | None:
    """The newest commit older than ``before`` through which every line from the tips leads, all above it being older,
    too.

    Args:
        parents: of each commit.
        times: when each was committed, in seconds since 1970.
        tips: the commits that stay whatever their age.

    Returns:
        None where there is none, or nothing lies above it.
    """
    order = newest_first(parents, tips)
    latest: dict[str, int] = {}
    for commit in reversed(order):
        above = (latest[parent] for parent in parents[commit] if parent in latest)
        latest[commit] = max(times[commit], *above, times[commit])
    open_lines = {commit for commit in tips if commit in parents}
    for commit in order:
        if open_lines == {commit} and latest[commit] < before:
            return commit if parents[commit] else None
        open_lines.discard(commit)
        open_lines.update(parent for parent in parents[commit] if parent in parents)
    return None


def newest_first(parents: Parents, tips: Iterable[str]) -> list[str]:
    """The commits that lead to some tips, none before one that came of it."""
    reached = above(parents, tips)
    children = dict.fromkeys(reached, 0)
    for commit in reached:
        for parent in set(parents[commit]) & reached:
            children[parent] += 1
    ready = [commit for commit, count in children.items() if not count]
    order = []
    while ready:
        commit = ready.pop()
        order.append(commit)
        for parent in set(parents[commit]) & reached:
            children[parent] -= 1
            if not children[parent]:
                ready.append(parent)
    return order


def above(parents: Parents, tips: Iterable[str], without: Collection[str] = ()) -> set[str]:
    """Some commits and all that lead to them; not what is in ``without``, nor what only that leads to."""
    found: set[str] = set()
    waiting = list(tips)
    while waiting:
        commit = waiting.pop()
        if commit in parents and commit not in found and commit not in without:
            found.add(commit)
            waiting.extend(parents[commit])
    return found
