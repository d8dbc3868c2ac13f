"""Tree differences: which paths two commits have differently below a folder.

Owns the walk down two trees at once that enters only what differs, so that its cost is that of the change, not that of
the repository. What is done with the paths is not its business.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from memfs.history.objects import FOLDER, REGULAR, Entry, tree_of
from memfs.history.repository import Repository
from memfs.history.trees import DEEPEST


def changed_paths(repository: Repository, old: str, new: str, folder: str) -> Iterator[str]:
    """The workspace paths of the files below a folder that two commits have differently, in either of them or both.

    Raises:
        HistoryUnavailable: a commit or tree is not there, or damaged.
    """
    waiting = [(folder, repository.entry(old, folder), repository.entry(new, folder))]
    while waiting:
        path, before, after = waiting.pop()
        if before == after:
            continue
        if any(one is not None and one.mode in REGULAR for one in (before, after)):
            yield path
        if path.count("/") > DEEPEST or not (_is_folder(before) or _is_folder(after)):
            continue
        inside, beside = (repository.read_tree(tree_of(one)) for one in (before, after))
        differing = [name for name, entry in inside.items() if beside.get(name) != entry]
        differing += [name for name in beside if name not in inside]
        waiting += [(f"{path}/{os.fsdecode(name)}", inside.get(name), beside.get(name)) for name in differing]


def _is_folder(entry: Entry | None) -> bool:
    return entry is not None and entry.mode == FOLDER
