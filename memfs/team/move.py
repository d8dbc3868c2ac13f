"""Move a repository's memory from the branches of its code to a branch of its own.

It goes with its history: the commits that changed memory, with their authors, dates and messages. Every step can be
repeated, and nothing is removed before it is at its new place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memfs.config import first_policies
from memfs.config_names import SETTINGS_FILE
from memfs.errors import BranchRefused, GitBusy, NotRegularFile
from memfs.format import toml_text
from memfs.fs import own_branch
from memfs.fs.atomic_replace import is_temporary
from memfs.fs.own_branch import BRANCH
from memfs.fs.tree import Tree
from memfs.fs.workspace_location import MEMORY_FOLDER, is_own
from memfs.git.ancestry import is_ancestor
from memfs.git.commit_object import CommitChange, CommitWriter, Group
from memfs.git.commits import build, store
from memfs.git.refs import read_list
from memfs.git.repository import Repository
from memfs.git.rewrite import extract
from memfs.model.state_paths import document_of_sidecar
from memfs.model.time import utc_now
from memfs.store import Store
from memfs.team.branches import share_sidecars
from memfs.team.own_branch import REF, set_up
from memfs.team.worktrees import first_of, remove_empty

_LARGEST = 1 << 30
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveResult:
    """What a move did, or would do.

    Attributes:
        workspace: where the memory is then.
        files: how many files moved.
        commits: how many commits of history went along.
        branch: the branch of its own.
    """

    workspace: Path
    files: int
    commits: int
    branch: str = BRANCH


def to_own_branch(store_: Store, repository: Repository, *, dry_run: bool = False) -> MoveResult:
    """Move the memory among the code to a branch of its own, with its history; its files are then yours to commit away.

    Args:
        store_: of the workspace among the code, which is closed next.

    Raises:
        BranchRefused: files that no commit has, an agent's branch, or another memory is in the way.
        GitBusy: what waits cannot be committed now.
        HistoryUnavailable: the clone is shallow.
    """
    if repository.prefix:
        hint = f"git mv {repository.prefix}/{MEMORY_FOLDER} and {SETTINGS_FILE} to the top, and commit"
        raise BranchRefused("the memory is not at the top of the repository", path=repository.prefix, hint=hint)
    _require_settled(store_, repository)
    head = repository.head_commit()
    tip, made = extract(repository, head, (MEMORY_FOLDER, SETTINGS_FILE)) if head else ("", {})
    present = _present(repository.work_tree)
    _require_committed(repository, head, present)
    there = repository.ref_commit(REF)
    if not tip or (there and not is_ancestor(repository, tip, there)):
        reason = f"the branch {BRANCH} has another history" if there else "no commit has this memory"
        raise BranchRefused(reason, hint=f"git branch -m {BRANCH} OLD sets it aside" if there else "memfs commit first")
    commits = sum(1 for item in made.values() if item.kind == "commit")
    memory = repository.common_dir / "memfs/memory"
    if dry_run:
        return MoveResult(workspace=memory, files=len(present), commits=commits)
    if not there:
        store(repository, made)
        tip = _settled(repository, tip)
    set_up(repository.work_tree, moved=there or tip)
    share_sidecars(repository.workspace, memory)
    _remove(store_, repository.work_tree, present)
    own_branch.link(repository.work_tree, repository.common_dir)
    return MoveResult(workspace=memory, files=len(present), commits=commits)


# -- conditions -----------------------------------------------------------------------------------------------------
def _require_settled(store_: Store, repository: Repository) -> None:
    if busy := repository.busy():
        raise GitBusy(busy, hint="move it when that is over")
    if not store_.by_hand:
        flushed = store_.flush(adopt=False)
        if flushed.reason:
            raise GitBusy(flushed.reason, hint="move it when that is over")
    if given := read_list(repository.common_dir):
        name = next(iter(given.values())).name
        raise BranchRefused(f"an agent works on the branch {name}", hint=f"memfs team branch merge {name}, or drop it")


def _require_committed(repository: Repository, head: str | None, present: Mapping[str, str]) -> None:
    committed = {**repository.tree(head), SETTINGS_FILE: repository.head_blob(SETTINGS_FILE)} if head else {}
    found = [path for path, blob in present.items() if committed.get(path) != blob and not document_of_sidecar(path)]
    if found:
        raise BranchRefused(f"no commit has {first_of(found)}", hint="memfs commit first")


def _present(top: Path) -> dict[str, str]:
    """The files of memory that lie in a folder, with what git would call their contents."""
    tree = Tree(top)
    try:
        paths = [entry.path for entry in tree.scan(MEMORY_FOLDER, hidden=True) if entry.regular]
        paths += [SETTINGS_FILE] if tree.entry(SETTINGS_FILE) is not None else []
        own = [path for path in paths if is_own(path) and not is_temporary(path.rpartition("/")[2])]
        return {path: tree.read(path, _LARGEST).stamp.blob for path in own}
    finally:
        tree.close()


# -- steps ----------------------------------------------------------------------------------------------------------
def _settled(repository: Repository, tip: str) -> str:
    """A commit on the extracted history after which memfs commits by itself."""
    text = (repository.read(tip, SETTINGS_FILE) or b"").decode("utf-8", "surrogateescape")
    for key, value in first_policies(True).items():
        table, _, name = key.rpartition(".")
        text = toml_text.with_value(text, table, name, value)
    group = Group(
        changes=(CommitChange(path=SETTINGS_FILE, data=text.encode("utf-8", "surrogateescape")),),
        message="Move the memory to a branch of its own",
        writers=(CommitWriter(source="move"),),
        time=utc_now(),
    )
    chain = build(repository, [group], tip, asked=True)
    store(repository, chain.objects)
    return chain.commits[-1]


def _remove(store_: Store, top: Path, present: Mapping[str, str]) -> None:
    """Remove what is at the other place from the working tree; what was written meanwhile stays."""
    tree = Tree(top)
    try:
        with store_.standing_still("move the memory"):
            for path in sorted(present, key=lambda path: path == SETTINGS_FILE):
                if _blob(tree, path) == present[path]:
                    tree.remove(path, durable=False)
    finally:
        tree.close()
    remove_empty(top / MEMORY_FOLDER)


def _blob(tree: Tree, path: str) -> str:
    try:
        return tree.read(path, _LARGEST).stamp.blob
    except (FileNotFoundError, NotRegularFile):
        return ""
