"""``init``: make a workspace, in a folder, in a repository of code, or on its own branch."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memfs import private, trust
from memfs.admin.store_builder import ignore_problems, install_driver, is_driver_named, missing, setting_lines
from memfs.config import first_policies
from memfs.config_names import SETTINGS_FILE
from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import invocation, remark, verb
from memfs.doors.cli.options import note_waiting
from memfs.doors.cli.output import OMIT, TEXT_ONLY, Note, Text, count, merge, styled
from memfs.doors.cli.private import join_private, offer_to_join
from memfs.errors import MemfsError, WorkspaceNotFound
from memfs.fs.workspace_location import MEMORY_FOLDER, find_workspace, place_in
from memfs.git.commit_object import MEMFS
from memfs.git.layout import discover
from memfs.git.repository import Repository
from memfs.settings import toml
from memfs.store.parts import FlushResult
from memfs.workspace import open_workspace

if TYPE_CHECKING:
    from memfs.team.own_branch import OwnBranch
    from memfs.workspace import Workspace


_MEANS = {
    "interval": "memfs commits by itself what it writes and what you edit, only its own files",
    "manual": "memory files are yours to commit with git; memfs commits only when asked ('memfs commit')",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InitResult:
    """What was made, or would be.

    Attributes:
        workspace: the folder of the workspace.
        created: whether it was made now.
        repository_made: whether a git repository was made for it, too, or would be.
        files: that were written, or would be.
        git_config: lines that would be set in git's configuration.
        policies: the settings that were chosen.
        adopted: files that were there already and are now in its history.
        commit: the newest commit of it; null where there is none.
        merge_driver: whether git merges memory files field by field from now on.
        own: the memory's own branch, where it has one; its fields are inlined.
        private: the private memory that is used here now, as in another clone.
        here: whether it is among the code of a repository.
        committed: commits that were made.
    """

    workspace: Path
    created: bool
    repository_made: bool = False
    files: tuple[str, ...] = ()
    git_config: tuple[str, ...] = field(default=(), metadata=OMIT)
    policies: Mapping[str, str] = field(default_factory=dict)
    adopted: tuple[str, ...] = ()
    commit: str | None = None
    merge_driver: bool = False
    own: OwnBranch | None = field(default=None, metadata=merge("branch origin? links? blocked?"))
    private: Path | None = field(default=None, metadata=OMIT)
    here: bool = field(default=False, metadata=TEXT_ONLY)
    committed: tuple[str, ...] = field(default=(), metadata=TEXT_ONLY)


def _text(done: InitResult, dry_run: bool) -> Text:
    if done.private is not None:
        yield f"Sessions here use {done.private}"
    elif done.own is not None:
        yield from _own_text(done, done.own, dry_run)
    else:
        yield from _made_text(done, dry_run)
    if done.merge_driver:
        yield "  set git to merge memory files field by field (merge.memfs in .git/config)"


def _made_text(done: InitResult, dry_run: bool) -> Text:
    made, wrote, chose = ("Would make", "would write", "would choose") if dry_run else ("Made", "wrote", "chose")
    what = "a workspace in" if done.files else "a git repository for the workspace in"
    if done.files or done.repository_made:
        yield f"{made} {what} {styled(str(done.workspace), fg='green', bold=True)}"
    else:
        yield f"{done.workspace} is a workspace already"
    if done.files and done.repository_made:
        yield "  and a git repository for it"
    yield from (f"  {wrote} {path}" for path in done.files)
    if SETTINGS_FILE in done.files:
        commit = done.policies["history.commit"]
        policy = ", ".join(f"{key} = {toml(value)}" for key, value in done.policies.items())
        yield f"  {chose} {policy}: {_MEANS[commit]}"
    yield from (f"  would set in .git/config: {line}" for line in done.git_config)
    if dry_run and not done.repository_made:
        yield "  would make no commit, branch, tag or other ref"
    yield from (f"  committed as {styled(commit[:12], fg='yellow')}" for commit in done.committed)
    if done.adopted:
        yield f"  including {count(len(done.adopted), 'existing file')}"
    if done.here and done.created:
        yield "  it is stored alongside the code, on each branch (--here); --own-branch gives all branches one memory"


def _own_text(done: InitResult, own: OwnBranch, dry_run: bool) -> Text:
    name = styled(own.branch, fg="green", bold=True)
    new = not own.already
    if not new:
        yield f"The memory is on its own branch already, {name}"
    elif dry_run:
        yield f"Would {'make' if done.created else 'use'} the branch {name}, unless a remote has it, and its memory"
    elif own.origin:
        yield f"Using the memory on the branch {name} of {own.origin}"
    else:
        yield f"{'Made a memory on its own branch,' if done.created else 'Using the memory on the branch'} {name}"
    yield f"  {'would be ' if dry_run and new else ''}checked out at {done.workspace}"
    if own.links:
        yield f"  linked as ContextMemory in {count(len(own.links), 'working tree')}, and left out of git there"
    if new and not dry_run:
        yield "  memfs commits to this branch by itself, and to no other; 'memfs sync' shares it"
    for top in own.blocked:
        yield Note(f"{top} has something else named ContextMemory, which is not part of the memory")


@verb("init", text=_text)
@click.argument("path", required=False, metavar="[PATH]", type=click.Path(file_okay=False))
@click.option("--user", is_flag=True, help="Make a personal workspace, for memories that belong to no project.")
@click.option("--here", is_flag=True, help="In a repository of code: a folder alongside the code, on each branch.")
@click.option("--own-branch", "own", is_flag=True, help="In a repository of code: one memory for all branches.")
@click.option("--nested", is_flag=True, help="Make one within the folder of another workspace.")
@click.option(
    "--join-private",
    "join",
    metavar="[KEY]",
    is_flag=False,
    flag_value="",
    help="Only let this clone use the private memory of another one, and add its own to it.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be done.")
def init(
    path: str | None, user: bool, here: bool, own: bool, nested: bool, join: str | None, dry_run: bool
) -> InitResult:
    """Make a workspace at PATH (by default the current folder), with a git repository if none is there.

    It writes three small files and sets git to merge memory files field by field; in a clone of a workspace it only
    sets up the merge. In an existing repository memfs never commits unless you ask. With --own-branch all branches of
    the code share one memory, on its own branch; 'memfs init' in a clone connects to it. With --user the workspace is
    in your data folder and has its own repository: 'memfs agent mcp' and programs in Python use it where no other is
    found, other commands where -C names it.

    Your private memory of a repository is that of one clone; --join-private lets another clone of the same origin use
    it. If there are several, KEY is the folder name of the one to join.

    Examples:
        memfs init notes
        memfs init --dry-run
        memfs init --own-branch
        memfs init --user
    """
    from memfs.facades.open_workspaces import open_user_workspace

    if here + own + user > 1:
        raise click.UsageError("--here, --own-branch and --user exclude each other")
    if path is not None and not path.strip():
        raise click.UsageError("name the folder, or leave PATH out for the current one")
    root = Path(invocation().workspace or ".", path or ".").resolve()
    if join is not None:
        join_private(private.project_at(root), join)
        return InitResult(workspace=root, created=False, private=private.find(private.project_at(root)))
    if not user:
        place = _nearest_folder(root)
        if not (nested or here) and (own or _is_own(root, place, dry_run)):
            return _set_up(place, dry_run)
        _refuse_nested(root, place, nested)
    if user and (dry_run or path is not None or invocation().workspace is not None):
        only_folders = "--dry-run is for a workspace in a folder, not for --user"
        raise click.UsageError(only_folders if dry_run else "name a folder or say --user, not both")
    if dry_run:
        return _plan(root)
    with open_user_workspace(watch=False) if user else _workspace(root) as workspace:
        created = workspace.created
        assert created is not None  # this is what create=True promises
        found = FlushResult(reason=created.reason)
        if created.repository_made:  # else what was there already would have no history to fall back on
            found = workspace.store.flush(adopt=True, message="Take in the memory that was here")
        note_waiting(found.reason)
        root, repository = workspace.root, workspace.repository
        driver = created.driver or install_driver(repository)
        if repository.identity().author == MEMFS:
            remark(
                f"git does not know your name: commits are by {MEMFS}", "set user.name and user.email with git config"
            )
        for problem in ignore_problems(repository):
            remark(problem.message, problem.hint or "")
    if not user:
        offer_to_join(private.project_at(root))
    made = bool(created.files) or created.repository_made
    committed = tuple(filter(None, (created.commit, *found.commits)))
    return InitResult(
        workspace=root,
        created=made,
        repository_made=created.repository_made,
        files=created.files,
        policies=created.policies if made else {},
        adopted=found.adopted,
        commit=committed[-1] if committed else None,
        merge_driver=driver,
        here=not (created.repository_made or here or nested),
        committed=committed,
    )


def _set_up(top: Path, dry_run: bool) -> InitResult:
    """Give the memory of a repository its own branch, or complete it.

    Raises:
        MemfsError: see ``memfs.team.own_branch.set_up``.
    """
    from memfs.team import own_branch

    own = own_branch.set_up(top, dry_run=dry_run)
    if not dry_run:
        offer_to_join(private.project_at(top))
    return InitResult(workspace=own.memory, created=own.made, commit=own.commit or None, own=own)


def _is_own(root: Path, place: Path, dry_run: bool) -> bool:
    """Whether the memory of the repository at a folder is on its own branch, or a remote offers it so."""
    from memfs.team.own_branch import is_offered

    layout = discover(place)
    if layout is None or root != layout.work_tree or (root / SETTINGS_FILE).exists():
        return False
    there = place_in(layout.common_dir) is not None
    return there or (not (root / MEMORY_FOLDER).is_dir() and is_offered(layout, ask=not dry_run))


def _workspace(root: Path) -> Workspace:
    place = _nearest_folder(root)
    around = Repository.find(place, trusted=trust.repository)
    if around is not None and not (root / MEMORY_FOLDER).is_dir():
        with closing(around):
            _refuse_beside(around, root.relative_to(place) / MEMORY_FOLDER)
    return open_workspace(root, create=True, watch=False)


def _nearest_folder(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.is_dir())


def _refuse_nested(root: Path, place: Path, nested: bool) -> None:
    """Refuse a second workspace within the first, where every verb would mean the inner one from then on.

    Args:
        place: the nearest folder that is there.

    Raises:
        MemfsError: it was not asked for, or would be in the outer one's own files.
    """
    try:
        outer = find_workspace(place)
    except WorkspaceNotFound:
        return
    if root.is_relative_to(outer / MEMORY_FOLDER):
        hint = "choose another folder"
        raise MemfsError("this folder belongs to the workspace around it", path=str(outer), hint=hint)
    if outer != root and not nested:
        hint = f"use it as it is, or make another in {shlex.quote(str(root))} with --nested"
        raise MemfsError("there is a workspace around this folder already", path=str(outer), hint=hint)


def _refuse_beside(around: Repository, content: Path) -> None:
    """Refuse to begin a second history in a clone that has one with a memory, of which nothing is checked out.

    Raises:
        MemfsError: the branch here has no commit yet, and one of a remote has memory in that folder.
    """
    if around.head().commit is not None:
        return
    form = "--format=%(if)%(symref)%(then)%(else)%(objectname) %(refname:lstrip=2)%(end)"
    listed = os.fsdecode(around.git.run("for-each-ref", form, "refs/remotes/")).splitlines()
    for commit, _, name in (line.partition(" ") for line in filter(None, listed)):
        if around.entry(commit, content.as_posix()) is not None:
            what = f"nothing is checked out in this clone, and {name} has a memory"
            hint = f"git switch {shlex.quote(name.partition('/')[2])} brings it here; then memfs init"
            raise MemfsError(what, path=str(around.work_tree), hint=hint)


def _plan(root: Path) -> InitResult:
    """Look, and write nothing: no folder is made, nor memfs's own in git's.

    Raises:
        RepoUnsupported: the repository is of a sort that memfs does not handle.
    """
    layout = discover(_nearest_folder(root))
    policies = first_policies(layout is None)
    named = layout is not None and is_driver_named(layout.common_dir)
    return InitResult(
        workspace=root,
        created=False,
        repository_made=layout is None,
        files=tuple(missing(root, policies)),
        git_config=() if named else setting_lines(),
        policies=policies,
    )
