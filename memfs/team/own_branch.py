"""Keep memory on its own branch: make it in a repository of code, find it in a clone, move there, leave it again.

Every step can be repeated. The branch is laid out in a folder of its own, and becomes the memory by one rename: until
then there is none, after it there is all of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memfs import errors, trust
from memfs.admin import layout as workspace_layout
from memfs.config import first_policies
from memfs.config_names import SETTINGS_FILE
from memfs.dataclass import dataclass
from memfs.format import toml_text
from memfs.format.text import shortlist
from memfs.fs import atomic_replace, io, workspace_location
from memfs.fs.lock import FileLock
from memfs.fs.tree import Tree
from memfs.fs.workspace_location import BRANCH, MEMORY_FOLDER, is_own
from memfs.git.commit_object import CommitChange, CommitWriter, Group, headers
from memfs.git.commits import build, store
from memfs.git.layout import Layout, discover, read_config
from memfs.git.objects import EMPTY_TREE, Objects, add, encode_tree
from memfs.git.process import wait_for_children
from memfs.git.refs import HEADS, Refs, read_list
from memfs.git.remote import LOCK, RemoteConnection, RemoteHistory, configured, remote_of
from memfs.git.repository import Repository, cut_off, is_ancestor
from memfs.model.state_paths import document_of_sidecar
from memfs.model.time import utc_now
from memfs.team import worktrees

if TYPE_CHECKING:
    from memfs.store import Store

REF = HEADS + BRANCH
_BEGUN = "begun"
_MESSAGE = "Begin a memory on its own branch"
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBranch:
    """A repository's memory on a branch of its own, as it was set up or would be.

    Attributes:
        memory: where it is checked out: the workspace.
        branch: the branch's name; ``commit``: its tip, "" where a dry run would make the first.
        origin: the remote that had the branch already, "" where none did.
        made: whether the branch was made here now.
        already: whether all of it was there before.
        links: the working trees with a link to it.
        blocked: the working trees where something else is in the link's place.
    """

    memory: Path
    branch: str = BRANCH
    commit: str = ""
    origin: str = ""
    made: bool = False
    already: bool = False
    links: tuple[Path, ...] = ()
    blocked: tuple[Path, ...] = ()


def set_up(top: Path, *, dry_run: bool = False, moved: str = "") -> OwnBranch:
    """Give a repository of code its memory on a branch of its own; goes on with what was begun before.

    A branch of that name in this clone, or else on a remote, is taken up: then nothing is made.

    Args:
        top: a folder in a working tree of the repository.
        dry_run: say what would be done; nothing is written and no remote is asked.
        moved: a commit that the branch shall begin at, instead of a fresh one; a branch that tracks memory is no
            obstacle then.

    Raises:
        BranchRefused: a branch tracks memory among the code, or something is in the way.
        RepoUnsupported: there is no repository, or one of a sort memfs does not handle.
        RemoteUnreachable: a remote that may have the branch does not answer.
        GitFailed, StorageIO: the next call goes on.
    """
    layout = discover(top)
    if layout is None:
        hint = "memfs init makes a workspace with a repository of its own"
        raise errors.RepoUnsupported("there is no git repository here", path=str(top), hint=hint)
    if dry_run:
        return _plan(layout)
    found = Repository.find(layout.work_tree, trusted=trust.repository)
    if found is None:
        raise errors.RepoUnsupported("there is no git repository here", path=str(top))
    with closing(found) as repository:
        record = repository.state.parent
        with FileLock(record / "commit.lock", home=repository.common_dir).hold("set up the memory's branch", _PATIENCE):
            wait_for_children(record)
            return _set_up(repository, moved)


def _set_up(repository: Repository, moved: str) -> OwnBranch:
    common = repository.common_dir
    memory, origin, made = workspace_location.place_in(common), "", False
    already = memory is not None
    if memory is None:
        tip = repository.ref_commit(REF) or ""
        if not tip:
            if not moved:
                refuse_tracked(repository)
            tip, origin = ("", "") if moved else _from_remote(repository)
            made = not tip
            tip = tip or moved or _first_commit(repository)
            worktrees.update_refs(repository, [f"create {REF} {tip}"], "memfs init")
        elif not moved:
            refuse_tracked(repository)
        if repository.head().ref == REF:
            hint = "git switch to a branch of code first"
            raise errors.BranchRefused(
                f"the branch {BRANCH} is checked out here", path=str(repository.work_tree), hint=hint
            )
        memory = _check_out(repository, tip)
    elif not workspace_location.settle(common):
        _register(repository, memory)
    if (begun := common / "memfs" / _BEGUN).is_dir():  # what was laid out is in its place, or not wanted there
        io.remove_all(begun)
    _write_exclude(common, wanted=True)
    workspace_layout.install_driver(repository)
    links, blocked = _links(common)
    return OwnBranch(
        memory=memory,
        commit=repository.ref_commit(REF) or "",
        origin=origin,
        made=made,
        already=already,
        links=links,
        blocked=blocked,
    )


def _plan(layout: Layout) -> OwnBranch:
    common = layout.common_dir
    memory = workspace_location.place_in(common)
    commit = Refs(layout).commit(REF) or ""
    tops = tuple(top for top in workspace_location.work_trees(common) if not os.path.lexists(top / SETTINGS_FILE))
    return OwnBranch(
        memory=memory or common / "memfs/memory",
        commit=commit,
        made=not commit,
        already=memory is not None,
        links=tuple(top for top in tops if workspace_location.is_link(top) or not os.path.lexists(top / MEMORY_FOLDER)),
        blocked=tuple(
            top for top in tops if os.path.lexists(top / MEMORY_FOLDER) and not workspace_location.is_link(top)
        ),
    )


def refuse_tracked(repository: Repository) -> None:
    """Refuse where a branch of code tracks the folder: checking it out would put it in the link's place.

    Raises:
        BranchRefused: naming such branches, and what moves the memory.
    """
    found = sorted(tracked(repository))
    top = repository.work_tree
    if os.path.lexists(top / SETTINGS_FILE) or (
        os.path.lexists(top / MEMORY_FOLDER) and not workspace_location.is_link(top)
    ):
        found.insert(0, "the working tree")
    if found:
        raise errors.BranchRefused(
            f"{shortlist(found)} has {MEMORY_FOLDER}/ or {SETTINGS_FILE} among the code",
            path=str(top),
            hint="memfs admin move moves it to a branch of its own; other branches merge that first",
        )


def tracked(repository: Repository) -> Iterator[str]:
    """The branches, here and of remotes, that track memory; the memory's own and what leads to it left out."""
    form = "--format=%(if)%(symref)%(then)%(else)%(objectname) %(refname:lstrip=2)%(end)"
    listed = os.fsdecode(repository.git.run("for-each-ref", form, HEADS, "refs/remotes/")).splitlines()
    for commit, _, name in (line.partition(" ") for line in filter(None, listed)):
        if name == BRANCH or name.endswith(f"/{BRANCH}"):
            continue
        with suppress(errors.MemfsError):  # a partial clone lacks trees, and asks nobody for them now
            if repository.entry(commit, MEMORY_FOLDER) or repository.entry(commit, SETTINGS_FILE):
                yield name


# -- the branch -----------------------------------------------------------------------------------------------------
def _from_remote(repository: Repository) -> tuple[str, str]:
    """The tip of the branch on a remote, whose history is brought here, and the remote's name; "" where none has it.

    Raises:
        RemoteUnreachable: one that was reached before does not answer: it may have the branch.
    """
    for name in sorted(configured(repository), key=lambda name: (name != "origin", name)):
        known = repository.ref_commit(f"refs/remotes/{name}/{BRANCH}")
        with FileLock(repository.state / LOCK).hold("look for the memory", _PATIENCE):
            talk = RemoteConnection(repository, remote_of(repository, name))
            try:
                if BRANCH not in talk.branches():
                    continue
                tip = talk.fetch(BRANCH, ())
            except errors.RemoteUnreachable as error:
                if known:
                    return known, name
                if repository.git.run("for-each-ref", "--count=1", f"refs/remotes/{name}/"):  # it was reached before
                    error.hint = f"it may have the branch {BRANCH}: repeat it when {name} can be reached"
                    raise
                continue
            finally:
                talk.close()
        RemoteHistory(repository).track(name, BRANCH, tip)
        return tip, name
    return "", ""


def is_offered(layout: Layout, *, ask: bool) -> bool:
    """Whether this clone has the branch, or a remote does as far as the clone can tell.

    Args:
        ask: ask the remotes of which the clone follows some branches only. One that does not answer has none here:
            a caller that asks for the branch by name gets an error.
    """
    config, refs = read_config(layout.common_dir / "config"), Refs(layout)
    remotes = {key.split(".", 1)[1].rpartition(".")[0] for key in config if key.startswith("remote.")}
    if refs.commit(REF) or any(refs.commit(f"refs/remotes/{name}/{BRANCH}") for name in remotes):
        return True
    if not ask or not any(_is_narrow(config, name) for name in remotes):
        return False
    with suppress(errors.MemfsError):
        found = Repository.find(layout.work_tree, trusted=trust.repository)
        if found is not None:
            with closing(found) as repository:
                return bool(_from_remote(repository)[0])
    return False


def _is_narrow(config: Mapping[str, str], remote: str) -> bool:
    """Whether a clone is set to follow some of the remote's branches only."""
    fetched = config.get(f"remote.{remote}.fetch", "")
    return bool(fetched) and "*" not in fetched


def _first_commit(repository: Repository) -> str:
    files = workspace_layout.first_files(first_policies(True))
    changes = tuple(CommitChange(path=path, data=data) for path, data in files.items())
    return new_commit(repository, changes, _MESSAGE)


def new_commit(
    repository: Repository, changes: Sequence[CommitChange], message: str, *, source: str = "init", parent: str = ""
) -> str:
    """Make a commit that holds these changes, durably; no branch has it yet."""
    group = Group(changes=tuple(changes), message=message, writers=(CommitWriter(source=source),), time=utc_now())
    chain = build(repository, [group], parent or None, asked=True)
    store(repository, chain.objects)
    return chain.commits[-1]


# -- the working tree -----------------------------------------------------------------------------------------------
def _check_out(repository: Repository, commit: str) -> Path:
    """Lay the branch out, and let it become the memory in one step."""
    record = repository.common_dir / "memfs"
    begun = record / _BEGUN / "memory"
    worktrees.lay_out(repository, begun, REF, commit)
    io.rename(str(begun), str(record / "memory"))
    io.sync_folder(record)
    workspace_location.settle(repository.common_dir)
    return record / "memory"


def _register(repository: Repository, memory: Path) -> None:
    """Make git's record of the memory again, where somebody removed it; the files, edits included, stay as they are."""
    commit = repository.ref_commit(REF)
    if commit is None:
        hint = f"git branch {BRANCH} COMMIT brings it back; git reflog or git fsck finds the commit"
        raise errors.BranchRefused(f"the branch {BRANCH} is gone", path=str(memory), hint=hint)
    begun = repository.common_dir / "memfs" / _BEGUN / "memory"
    worktrees.lay_out(repository, begun, REF, commit)
    io.write_file(memory / ".git", io.read_file(begun / ".git"), mode=0o644)
    workspace_location.settle(repository.common_dir)


def _links(common: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    linked: list[Path] = []
    blocked: list[Path] = []
    for top in workspace_location.work_trees(common):
        if os.path.lexists(top / SETTINGS_FILE):  # a branch of the memory is checked out there
            continue
        try:
            done = workspace_location.link(top, common)
        except (errors.MemfsError, OSError):
            done = False
        (linked if done else blocked).append(top)
    return tuple(linked), tuple(blocked)


def _write_exclude(common: Path, *, wanted: bool) -> None:
    def place() -> Path:
        found = Path(os.path.realpath(common / "info/exclude"))
        if found.parent != Path(os.path.realpath(common / "info")):
            raise errors.NotRegularFile("git's exclude file is a link to elsewhere", path=str(found), hint="replace it")
        return found

    def change(before: bytes | None, _: Path) -> tuple[bytes | None, None]:
        return (workspace_location.exclude(before, wanted) if before is not None or wanted else None), None

    if wanted:
        io.make_folders(common / "info")
    elif not (common / "info").is_dir():
        return
    atomic_replace.rewrite(place, change)


# -- leaving --------------------------------------------------------------------------------------------------------
def is_separate(repository: Repository) -> bool:
    """Whether a workspace is its repository's memory on a branch of its own."""
    return workspace_location.place_in(repository.common_dir) == repository.work_tree


def linked(repository: Repository) -> list[Path]:
    """The working trees of code that have a link to the memory."""
    return [top for top in workspace_location.work_trees(repository.common_dir) if workspace_location.is_link(top)]


def take_out(repository: Repository, *, branch: bool) -> None:
    """Take away the links, what git leaves out because of them, the working tree, and with ``branch`` the branch.

    The caller holds ``commit.lock``, and knows that nothing is lost. Every step can be repeated.
    """
    common = repository.common_dir
    for top in workspace_location.work_trees(common):
        with suppress(errors.MemfsError, OSError):
            workspace_location.unlink(top)
    _write_exclude(common, wanted=False)
    memory = workspace_location.place_in(common)
    layout = worktrees.at(memory, repository) if memory is not None else None
    commit = repository.ref_commit(REF) or ""
    if branch and commit:
        worktrees.update_refs(repository, [f"delete {REF} {commit}"], "memfs init")
    if layout is not None:
        worktrees.take_away(
            layout, repository, commit
        )  # with its state folder, in which git's processes work: it goes last


# -- moving there ---------------------------------------------------------------------------------------------------


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
        raise errors.BranchRefused("the memory is not at the top of the repository", path=repository.prefix, hint=hint)
    _require_settled(store_, repository)
    head = repository.head_commit()
    tip, made = _extracted(repository, head) if head else ("", {})
    present = _present(repository.work_tree)
    _require_committed(repository, head, present)
    there = repository.ref_commit(REF)
    if not tip or (there and not is_ancestor(repository, tip, there)):
        reason = f"the branch {BRANCH} has another history" if there else "no commit has this memory"
        raise errors.BranchRefused(
            reason, hint=f"git branch -m {BRANCH} OLD sets it aside" if there else "memfs commit first"
        )
    commits = sum(1 for item in made.values() if item.kind == "commit")
    memory = repository.common_dir / "memfs/memory"
    if dry_run:
        return MoveResult(workspace=memory, files=len(present), commits=commits)
    if not there:
        store(repository, made)
        tip = _settled(repository, tip)
    set_up(repository.work_tree, moved=there or tip)
    worktrees.share_sidecars(repository.workspace, memory)
    _remove(store_, repository.work_tree, present)
    workspace_location.link(repository.work_tree, repository.common_dir)
    return MoveResult(workspace=memory, files=len(present), commits=commits)


_DROPPED = (b"tree ", b"parent ", b"gpgsig", b"mergetag ")


def _extracted(repository: Repository, commit: str) -> tuple[str, Objects]:
    """The history of the memory alone that leads to a commit.

    Authors, dates and messages stay; commits that changed nothing of it are left out. Signatures go, since they are
    of other bytes. The same history always gives the same commits.

    Returns:
        The last commit of the extracted history, "" where no commit has a memory; and all new objects.

    Raises:
        HistoryUnavailable: the clone lacks a part of the history.
    """
    if cut_off(repository):
        raise errors.HistoryUnavailable("this clone is shallow: it lacks history", hint="git fetch --unshallow")
    wanted = {MEMORY_FOLDER.encode(), SETTINGS_FILE.encode()}
    made: Objects = {}
    became: dict[str, str] = {}
    trees: dict[str, str] = {}
    out = repository.git.run("rev-list", "--topo-order", "--reverse", "--parents", commit, timeout=600)
    for line in out.decode("ascii").splitlines():
        name, *before = line.split()
        kept = {path: entry for path, entry in repository.read_tree(repository.root(name)).items() if path in wanted}
        tree = add(made, "tree", encode_tree(kept)) if kept else EMPTY_TREE
        parents = list(dict.fromkeys(became[parent] for parent in before if became.get(parent)))
        if not parents and tree == EMPTY_TREE:
            continue
        if len(parents) == 1 and trees[parents[0]] == tree:
            became[name] = parents[0]
            continue
        if tree == EMPTY_TREE:
            add(made, "tree", b"")
        rows, message = headers(repository.object(name).data)
        first = [f"tree {tree}".encode(), *(f"parent {parent}".encode() for parent in parents)]
        kept_rows = [row for row in rows if not row.startswith(_DROPPED)]
        became[name] = add(made, "commit", b"\n".join([*first, *kept_rows]) + b"\n\n" + message)
        trees[became[name]] = tree
    return became.get(commit, ""), made


def _require_settled(store_: Store, repository: Repository) -> None:
    if busy := repository.busy():
        raise errors.GitBusy(busy, hint="move it when that is over")
    if not store_.by_hand:
        store_.flush_now("move it when that is over")
    if given := read_list(repository.common_dir):
        name = next(iter(given.values())).name
        raise errors.BranchRefused(
            f"an agent works on the branch {name}", hint=f"memfs team branch merge {name}, or drop it"
        )


def _require_committed(repository: Repository, head: str | None, present: Mapping[str, str]) -> None:
    committed = {**repository.tree(head), SETTINGS_FILE: repository.head_blob(SETTINGS_FILE)} if head else {}
    found = [path for path, blob in present.items() if committed.get(path) != blob and not document_of_sidecar(path)]
    if found:
        raise errors.BranchRefused(f"no commit has {shortlist(found)}", hint="memfs commit first")


def _present(top: Path) -> dict[str, str]:
    """The files of memory that lie in a folder, with what git would call their contents."""
    with closing(Tree(top)) as tree:
        return {
            path: worktrees.blob_now(tree, os.fsencode(path)) for path in worktrees.memory_files(tree) if is_own(path)
        }


def _settled(repository: Repository, tip: str) -> str:
    """A commit on the extracted history after which memfs commits by itself."""
    text = (repository.read(tip, SETTINGS_FILE) or b"").decode("utf-8", "surrogateescape")
    for key, value in first_policies(True).items():
        table, _, name = key.rpartition(".")
        text = toml_text.with_value(text, table, name, value)
    change = CommitChange(path=SETTINGS_FILE, data=text.encode("utf-8", "surrogateescape"))
    return new_commit(repository, (change,), "Move the memory to a branch of its own", source="move", parent=tip)


def _remove(store_: Store, top: Path, present: Mapping[str, str]) -> None:
    """Remove what is at the other place from the working tree; what was written meanwhile stays."""
    with closing(Tree(top)) as tree, store_.standing_still("move the memory"):
        for path in sorted(present, key=lambda path: path == SETTINGS_FILE):
            if worktrees.blob_now(tree, os.fsencode(path)) == present[path]:
                tree.remove(path, durable=False)
    worktrees.remove_empty(top / MEMORY_FOLDER)
