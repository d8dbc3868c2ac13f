"""Finds the commit that each line of a file comes from.

Reads blobs only: no conversion, ignored commit or other setting of the repository affects the answer.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memfs.errors import HistoryUnavailable
from memfs.git.log import Revision, one_line, revisions
from memfs.git.repository import Repository

_MOST_COMPARED = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameLine:
    """One line of a file and the commit it comes from; ``line`` counts from 1."""

    line: int
    text: str
    revision: Revision


def blame(repository: Repository, path: str, revision: str = "HEAD") -> list[BlameLine]:
    """Each line of a file at a revision with the commit that it comes from.

    Raises:
        HistoryUnavailable: the revision does not exist or has no such file.
        PathEscape: no file of the workspace can have that path.
    """
    commit = repository.resolve(revision)
    data = repository.read(commit, path)
    if data is None:
        raise HistoryUnavailable(f"it is not in {revision}", path=path, hint="see memfs log for when it was")
    lines = _lines(data)
    found = _origins(repository, path, commit, lines)
    known = {one.commit: one for one in revisions(repository, sorted(set(found.values())))}
    return [
        BlameLine(line=at + 1, text=line.decode("utf-8", "replace"), revision=known[found[at]])
        for at, line in enumerate(lines)
    ]


def _origins(repository: Repository, path: str, commit: str, lines: list[bytes]) -> dict[int, str]:
    """The commit of each line: a commit keeps what none of its parents has."""
    history = line_of(repository, [path], commit)
    start = next(iter(history), commit)
    waiting: dict[str, dict[int, int]] = {start: {at: at for at in range(len(lines))}}
    found: dict[int, str] = {}
    for one, parents in history.items():
        held = waiting.pop(one, {})
        for parent in parents:
            if held:
                passed = _passed(repository, path, one, parent, held)
                waiting.setdefault(parent, {}).update((there, final) for there, final in passed.values())
                held = {here: final for here, final in held.items() if here not in passed}
        found |= dict.fromkeys(held.values(), one)
    return found


def _passed(
    repository: Repository, path: str, child: str, parent: str, held: Mapping[int, int]
) -> dict[int, tuple[int, int]]:
    """Which of a child's lines its parent has: position in the child to position in the parent and in the result."""
    new, old = _content(repository, child, path), _content(repository, parent, path)
    if len(new) * len(old) > _MOST_COMPARED:
        blocks = [(at, at, 1) for at, (one, two) in enumerate(zip(old, new, strict=False)) if one == two]
    else:
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        blocks = [(block.a, block.b, block.size) for block in matcher.get_matching_blocks()]
    return {
        here: (there, held[here])
        for old_at, new_at, size in blocks
        for there, here in zip(range(old_at, old_at + size), range(new_at, new_at + size), strict=True)
        if here in held
    }


def line_of(repository: Repository, paths: Iterable[str], commit: str) -> dict[str, list[str]]:
    """The commits that changed one of some paths, children before parents, each with the nearest such parents."""
    names = b"".join(one_line(repository.full(path)) + b"\n" for path in paths)
    request = f"{commit}\n--\n".encode() + names
    out = repository.git.run("rev-list", "--topo-order", "--parents", "--stdin", data=request)
    words = (line.split() for line in out.decode().splitlines())
    return {first: parents for first, *parents in words}


def _content(repository: Repository, commit: str, path: str) -> list[bytes]:
    return _lines(repository.read(commit, path) or b"")


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    return lines if lines[-1] else lines[:-1]
