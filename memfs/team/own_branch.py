"""Keep memory on its own branch: make it in a repository of code, find it in a clone, leave it again.

Every step can be repeated. The branch is prepared in a separate folder, and becomes the memory by one rename: until
then there is none, after it there is all of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from memfs import errors, trust
from memfs.admin.store_builder import first_files, install_driver
from memfs.config import first_policies
from memfs.config_names import SETTINGS_FILE
from memfs.dataclass import dataclass
from memfs.format.text import shortlist
from memfs.fs import atomic_replace, io, workspace_location
from memfs.fs.journal import Writer
from memfs.fs.lock import FileLock
from memfs.fs.tree import Tree
from memfs.fs.workspace_location import BRANCH, MEMORY_FOLDER, is_own
from memfs.git.commit_object import CommitChange, Group
from memfs.git.commits import build, store
from memfs.git.layout import HEADS, Layout, Refs, discover, read_config, read_small
from memfs.git.objects import EXECUTABLE, REGULAR
from memfs.git.process import child_lock, files_of, wait_for_children
from memfs.git.remote import LOCK, RemoteConnection, RemoteHistory, configured, remote_of
from memfs.git.repository import Repository
from memfs.model.time import utc_now

REF = HEADS + BRANCH
_BEGUN = "begun"
_RECORDS = "worktrees"
_MESSAGE = "Begin a memory on its own branch"
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBranch:
    """A repository's memory on its own branch, as it was set up or would be.

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


def set_up(top: Path, *, dry_run: bool = False) -> OwnBranch:
    """Give a repository of code its memory on its own branch; continues a setup that was interrupted.

    A branch of that name in this clone, or else on a remote, is taken up: then nothing is made.

    Args:
        top: a folder in a working tree of the repository.
        dry_run: say what would be done; nothing is written and no remote is asked.

    Raises:
        BranchRefused: a branch tracks memory among the code, or something is in the way.
        RepoUnsupported: there is no repository, or one of a sort memfs does not handle.
        RemoteUnreachable: a remote that may have the branch does not answer.
        GitFailed, StorageIO: the next call continues.
    """
    layout = discover(top)
    if layout is None:
        hint = "memfs init makes a workspace with its own repository"
        raise errors.RepoUnsupported("there is no git repository here", path=str(top), hint=hint)
    if dry_run:
        memory, commit = workspace_location.place_in(layout.common_dir), Refs(layout).commit(REF) or ""
        place = memory or layout.common_dir / "memfs/memory"
        return OwnBranch(memory=place, commit=commit, made=not commit, already=memory is not None)
    found = Repository.find(layout.work_tree, trusted=trust.repository)
    if found is None:
        raise errors.RepoUnsupported("there is no git repository here", path=str(top))
    with closing(found) as repository:
        record = repository.state.parent
        with FileLock(record / "commit.lock", root=repository.common_dir).hold("set up the memory's branch", _PATIENCE):
            wait_for_children(record)
            return _set_up(repository)


def _set_up(repository: Repository) -> OwnBranch:
    common = repository.common_dir
    memory, origin, made = workspace_location.place_in(common), "", False
    already = memory is not None
    if memory is None:
        refuse_tracked(repository)
        tip = repository.ref_commit(REF) or ""
        if not tip:
            tip, origin = _from_remote(repository)
            made = not tip
            if made:
                # A commit that holds the first files, durable before the branch has it.
                files = first_files(first_policies(True))
                changes = tuple(CommitChange(path=path, data=data) for path, data in files.items())
                group = Group(changes=changes, message=_MESSAGE, writers=(Writer(source="init"),), time=utc_now())
                chain = build(repository, [group], None, asked=True)
                store(repository, chain.objects)
                tip = chain.commits[-1]
            update_refs(repository, [f"create {REF} {tip}"], "memfs init")
        if repository.head().ref == REF:
            hint = "git switch to a branch of code first"
            raise errors.BranchRefused(
                f"the branch {BRANCH} is checked out here", path=str(repository.work_tree), hint=hint
            )
        memory = common / "memfs/memory"
        io.rename(str(_lay_out(repository, tip)), str(memory))  # in one step it becomes the memory
        io.sync_folder(memory.parent)
        workspace_location.settle(common)
    elif not workspace_location.settle(common):
        _register(repository, memory)
    if (begun := common / "memfs" / _BEGUN).is_dir():  # what was prepared is in place, or not wanted there
        io.remove_all(begun)
    _write_exclude(common, excluded=True)
    install_driver(repository)
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
    return OwnBranch(
        memory=memory,
        commit=repository.ref_commit(REF) or "",
        origin=origin,
        made=made,
        already=already,
        links=tuple(linked),
        blocked=tuple(blocked),
    )


def refuse_tracked(repository: Repository) -> None:
    """Refuse where a branch of code tracks the folder: checking it out would put it in the link's place.

    Raises:
        BranchRefused: naming such branches, and how to move the memory by hand.
    """
    found = sorted(tracked(repository))
    top = repository.work_tree
    if os.path.lexists(top / SETTINGS_FILE) or (
        os.path.lexists(top / MEMORY_FOLDER) and not workspace_location.is_link(top)
    ):
        found.insert(0, "the working tree")
    if found:
        raise errors.BranchRefused(
            f"{MEMORY_FOLDER}/ or {SETTINGS_FILE} is already in {shortlist(found)}",
            path=str(top),
            hint="take the files out of git there (git rm -r); then put them into the new ContextMemory/",
        )


def tracked(repository: Repository) -> Iterator[str]:
    """The branches, here and of remotes, that track memory; the memory's own and what leads to it left out."""
    form = "--format=%(if)%(symref)%(then)%(else)%(objectname) %(refname:lstrip=2)%(end)"
    listed = os.fsdecode(repository.git.run("for-each-ref", form, HEADS, "refs/remotes/")).splitlines()
    for commit, _, name in (line.partition(" ") for line in filter(None, listed)):
        if name == BRANCH or name.endswith(f"/{BRANCH}"):
            continue
        with suppress(errors.MemfsError):  # a partial clone lacks trees, and does not fetch them now
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
    """Whether this clone has the branch, or a remote does as far as the clone knows.

    Args:
        ask: ask the remotes of which the clone follows some branches only. One that does not answer has none here:
            a caller that asks for the branch by name gets an error.
    """
    config, refs = read_config(layout.common_dir / "config"), Refs(layout)
    remotes = {key.split(".", 1)[1].rpartition(".")[0] for key in config if key.startswith("remote.")}
    if refs.commit(REF) or any(refs.commit(f"refs/remotes/{name}/{BRANCH}") for name in remotes):
        return True
    # one without a * takes some branches only
    fetched = filter(None, (config.get(f"remote.{name}.fetch", "") for name in remotes))
    if not ask or all("*" in refspec for refspec in fetched):
        return False
    with suppress(errors.MemfsError):
        found = Repository.find(layout.work_tree, trusted=trust.repository)
        if found is not None:
            with closing(found) as repository:
                return bool(_from_remote(repository)[0])
    return False


def _register(repository: Repository, memory: Path) -> None:
    """Make git's record of the memory again, where somebody removed it; the files, edits included, stay as they are."""
    commit = repository.ref_commit(REF)
    if commit is None:
        hint = f"git branch {BRANCH} COMMIT brings it back; git reflog or git fsck finds the commit"
        raise errors.BranchRefused(f"the branch {BRANCH} is gone", path=str(memory), hint=hint)
    begun = _lay_out(repository, commit)
    io.write_file(memory / ".git", io.read_file(begun / ".git"), mode=0o644)
    workspace_location.settle(repository.common_dir)


def _lay_out(repository: Repository, commit: str) -> Path:
    """Make a working tree that holds only the memory, in a folder of memfs's own; what an interrupted call left of one
    is made again. No hook, filter or checkout runs: git registers the folder, memfs writes the files.
    """
    common = repository.common_dir
    folder = common / "memfs" / _BEGUN / "memory"
    io.remove_all(folder.parent)
    for name in io.listed(common / _RECORDS):
        if read_small(common / _RECORDS / name / "gitdir") == f"{folder}/.git":
            io.remove_all(common / _RECORDS / name)
    io.make_folders(folder.parent)
    with child_lock(common / "memfs") as held:
        repository.git.run("worktree", "add", "--quiet", "--no-checkout", str(folder), BRANCH, keep=(held,))
    layout = discover(folder)
    if layout is None:
        raise errors.BranchRefused("git made no working tree", path=str(folder), hint="run git worktree list")
    entries = files_of(repository.git, commit)
    memory = {path: one for path, one in entries.items() if is_own(os.fsdecode(path)) and one.mode in REGULAR}
    # The index holds every path of the branch; those that are not checked out are marked as missing on purpose.
    place = {"GIT_INDEX_FILE": str(layout.git_dir / "index")}
    rows = b"".join(b"%s %s\t%s\0" % (one.mode.encode(), one.id.encode(), path) for path, one in entries.items())
    repository.git.run("update-index", "-z", "--index-info", data=rows, variables=place)
    skipped = b"".join(path + b"\0" for path in entries if path not in memory)
    repository.git.run("update-index", "-z", "--skip-worktree", "--stdin", data=skipped, variables=place)
    with closing(Tree(folder)) as tree, tree.holding_folders():
        for path, entry in memory.items():
            tree.write(os.fsdecode(path), repository.blob(entry.id), durable=False)
    for path, entry in memory.items():
        if entry.mode == EXECUTABLE:
            io.chmod(str(folder / os.fsdecode(path)), 0o755)
    io.sync_everything(str(folder))
    return folder


def _write_exclude(common: Path, *, excluded: bool) -> None:
    def place() -> Path:
        found = Path(os.path.realpath(common / "info/exclude"))
        if found.parent != Path(os.path.realpath(common / "info")):
            raise errors.NotRegularFile("git's exclude file is a link to elsewhere", path=str(found), hint="replace it")
        return found

    def change(before: bytes | None, _: Path) -> tuple[bytes | None, None]:
        return (workspace_location.exclude(before, excluded) if before is not None or excluded else None), None

    if excluded:
        io.make_folders(common / "info")
    elif not (common / "info").is_dir():
        return
    atomic_replace.rewrite(place, change)


# -- leaving --------------------------------------------------------------------------------------------------------
def is_separate(repository: Repository) -> bool:
    """Whether a workspace is its repository's memory on its own branch."""
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
    _write_exclude(common, excluded=False)
    memory = workspace_location.place_in(common)
    commit = repository.ref_commit(REF)
    if branch and commit:
        update_refs(repository, [f"delete {REF} {commit}"], "memfs init")
    if memory is not None:
        record = os.path.basename(read_small(memory / ".git") or "")
        if record in io.listed(common / _RECORDS):  # no other name leads out of there
            io.remove_all(common / _RECORDS / record)
        io.remove_all(memory)
        with suppress(errors.StorageIO):  # others have theirs there, too
            io.rmdir(common / _RECORDS)
        io.sync_folder(common)


def update_refs(repository: Repository, orders: Iterable[str], reason: str) -> None:
    """Create, move or delete refs together, as orders of ``git update-ref``; the caller holds ``commit.lock``.

    Args:
        reason: for the reflog.

    Raises:
        GitFailed: git refused; none was moved.
    """
    data = os.fsencode("".join(f"{order}\n" for order in orders))
    with child_lock(repository.state.parent) as held:
        repository.git.run("update-ref", "--stdin", "-m", reason, data=data, keep=(held,))
