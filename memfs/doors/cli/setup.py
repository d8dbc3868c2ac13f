"""``init`` and ``config``: make a workspace, and show how it is set."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs import private, trust
from memfs.admin import merge_driver_setup
from memfs.admin.format import EDITOR_FOLDER
from memfs.config import first_policies
from memfs.config_names import SETTINGS_FILE
from memfs.doors.cli.command import Invocation, verb
from memfs.doors.cli.output import clean, count, note, print_json, print_raw, styled
from memfs.doors.cli.streams import somebody_types
from memfs.errors import MemfsError, WorkspaceNotFound
from memfs.fs.own_branch import place_in
from memfs.fs.workspace_location import MEMORY_FOLDER, find_workspace
from memfs.git.layout import discover
from memfs.git.repository import Repository
from memfs.settings import toml
from memfs.store.values import FlushResult
from memfs.workspace import open_workspace

if TYPE_CHECKING:
    from memfs.admin.layout import CreateResult
    from memfs.team.own_branch import OwnBranch
    from memfs.workspace import Workspace


_MEANS = {
    "interval": "memfs commits by itself what it writes and what you edit, only its own files",
    "manual": "memory files are yours to commit with git; memfs commits only when asked ('memfs commit')",
}


@verb("init", example="memfs init notes\nmemfs init --dry-run\nmemfs init --own-branch\nmemfs init --user")
@click.argument("path", required=False, metavar="[PATH]", type=click.Path(file_okay=False))
@click.option("--user", is_flag=True, help="Make your own workspace, for what belongs to no other.")
@click.option("--here", is_flag=True, help="In a repository of code: a folder among the code, on its branches.")
@click.option("--own-branch", "own", is_flag=True, help="In a repository of code: one memory on a branch of its own.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before settling in an existing git repository.")
@click.option("--nested", is_flag=True, help="Make one within the folder of another workspace.")
@click.option("--editor", is_flag=True, help="Also write the schemas by which editors complete and check memory files.")
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be done.")
@click.pass_context
def init(
    ctx: click.Context,
    path: str | None,
    user: bool,
    here: bool,
    own: bool,
    yes: bool,
    nested: bool,
    editor: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make a workspace at PATH (the current folder unless named), with a git repository if none is there.

    It writes three small files and tells git how to join memory files field by field, in a fresh clone only the
    latter. Inside a repository that was there before it commits nothing, then or later, unless asked. With --own-branch
    all branches of the code share one memory, on a branch of its own, which a clone takes up again. With --user the
    workspace lies in your data folder and has a repository of its own: agents use it where no other is found.
    """
    if here + own + user > 1:
        raise click.UsageError("--here, --own-branch and --user exclude each other", ctx)
    if not (user or nested or here):
        top, yes = _decide(ctx, path, own, yes, editor, dry_run)
        if top is not None:
            set_up(top, editor=editor, dry_run=dry_run, as_json=as_json)
            _ask_to_join(top, silent=as_json or dry_run)
            return
    if dry_run:
        if user:
            raise click.UsageError("--dry-run is for a workspace in a folder, not for --user", ctx)
        _print_plan(_plan(_root(ctx, path, nested), editor), as_json)
        return
    with _user_workspace(ctx, path) if user else _workspace(ctx, path, yes, nested, editor) as workspace:
        created = workspace.created
        assert created is not None  # this is what create=True promises
        found = _take_in(workspace, created)
        driver = created.driver or merge_driver_setup.install(workspace.repository)
        exported = _export(workspace) if editor else 0
        shown = str(workspace.root)
    made = bool(created.files) or created.repository_made
    if as_json:
        facts = _created_json(shown, created if made else None, found)
        print_json({**facts, "merge_driver": driver, "schemas": exported})
    elif made:
        _print_created(shown, created, found)
        if not (created.repository_made or here or nested):
            print_raw("  it lies among the code, on its branches (--here); --own-branch gives all branches one memory")
    else:
        print_raw(f"{clean(shown)} is a workspace already")
    if driver and not as_json:
        print_raw("  told git to join memory files field by field (merge.memfs in .git/config)")
    if exported and not as_json:
        print_raw(f"  wrote {count(exported, 'file')} for editors into {EDITOR_FOLDER}/, which git leaves out")
    if found.reason:
        note(f"the commit waits: {found.reason}")
    _ask_to_join(Path(shown), silent=as_json or user)


def _ask_to_join(root: Path, *, silent: bool) -> None:
    """Ask whether a fresh clone uses the private memory of another one."""
    from memfs.doors.cli.private import ask_to_join

    if not silent:
        ask_to_join(private.project_at(root))


def _decide(
    ctx: click.Context, path: str | None, own: bool, yes: bool, editor: bool, dry_run: bool
) -> tuple[Path | None, bool]:
    """Where a memory gets a branch of its own, None where it does not; and whether anything is still to be asked."""
    top = _own_top(ctx, path, own, dry_run)
    if top is None and not (yes or dry_run) and (asked := _chosen_place(ctx, path, editor)):
        return (asked[1] if asked[0] == "own" else None), True
    return top, yes


def _own_top(ctx: click.Context, path: str | None, own: bool, dry_run: bool) -> Path | None:
    """The folder of the repository whose memory is to be on its own branch, or is there already; None for neither."""
    from memfs.team.own_branch import is_offered

    if path is not None and not path.strip():
        return None
    root = Path(ctx.ensure_object(Invocation).workspace or ".", path or ".").resolve()
    place = _nearest_folder(root)
    if own:
        return place
    layout = discover(place)
    if layout is None or root != layout.work_tree or (root / SETTINGS_FILE).exists():
        return None
    there = place_in(layout.common_dir) is not None
    return place if there or (not (root / MEMORY_FOLDER).is_dir() and is_offered(layout, ask=not dry_run)) else None


def _chosen_place(ctx: click.Context, path: str | None, editor: bool) -> tuple[str, Path] | None:
    """Ask once where the memory of a repository of code shall lie, where that is open and there is somebody to ask.

    Raises:
        MemfsError: the answer is a repository of its own.
    """
    root = _root(ctx, path, nested=False)
    layout = discover(root) if root.is_dir() and somebody_types() else None
    if layout is None or root != layout.work_tree or (root / MEMORY_FOLDER).is_dir():
        return None
    note(f"{root} is a git repository already. Where shall the memory lie?")
    note("  here   a folder among the code: reviewed with it, and each branch has its own (--here)")
    note("  own    a branch of its own: one memory for all branches, shared by 'memfs sync' (--own-branch)")
    note("  apart  a repository of its own, in a folder elsewhere: memfs init FOLDER")
    note("With 'here':")
    for line in _plan_lines(_plan(root, editor)):
        note(line)
    chosen = click.prompt("Which", type=click.Choice(["here", "own", "apart"]), default="here", err=True)
    if chosen == "apart":
        raise MemfsError("nothing was written", hint="memfs init FOLDER, outside of this repository")
    return str(chosen), root


def _root(ctx: click.Context, path: str | None, nested: bool) -> Path:
    if path is not None and not path.strip():
        raise click.UsageError("name the folder, or leave PATH out for the current one", ctx)
    root = Path(ctx.ensure_object(Invocation).workspace or ".", path or ".").resolve()
    _refuse_nested(root, _nearest_folder(root), nested)
    return root


def _workspace(ctx: click.Context, path: str | None, yes: bool, nested: bool, editor: bool) -> Workspace:
    root = _root(ctx, path, nested)
    place = _nearest_folder(root)
    around = Repository.find(place, trusted=trust.repository)
    if around is not None and not (root / MEMORY_FOLDER).is_dir():
        with closing(around):
            _refuse_beside(around, root.relative_to(place) / MEMORY_FOLDER)
        if not yes and somebody_types():
            _ask(_plan(root, editor))
    return open_workspace(root, create=True, watch=False)


def _user_workspace(ctx: click.Context, path: str | None) -> Workspace:
    from memfs.facades.open_workspaces import open_user_workspace

    if path is not None or ctx.ensure_object(Invocation).workspace is not None:
        raise click.UsageError("name a folder or say --user, not both", ctx)
    return open_user_workspace(watch=False)


def _take_in(workspace: Workspace, created: CreateResult) -> FlushResult:
    """Commit what was there already, where its repository is new: else it would have no history to fall back on."""
    if not created.repository_made:
        return FlushResult(reason=created.reason)
    return workspace.store.flush(adopt=True, message="Take in the memory that was here")


def _nearest_folder(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.is_dir())


def _export(workspace: Workspace) -> int:
    from memfs.admin.layout import export_schemas

    return len(export_schemas(workspace.parts.codec.schemas, workspace.root / EDITOR_FOLDER, ignored=True))


def _refuse_nested(root: Path, place: Path, wanted: bool) -> None:
    """Refuse a second workspace within the first, where every verb would mean the inner one from then on.

    Args:
        place: the nearest folder that is there.

    Raises:
        MemfsError: nobody asked for it, or it would lie in the outer one's own files.
    """
    try:
        outer = find_workspace(place)
    except WorkspaceNotFound:
        return
    if root.is_relative_to(outer / MEMORY_FOLDER):
        raise MemfsError(
            "this folder belongs to the workspace around it", path=str(outer), hint="choose another folder"
        )
    if outer != root and not wanted:
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
            raise MemfsError(
                f"nothing is checked out in this clone, and {name} has a memory",
                path=str(around.work_tree),
                hint=f"git switch {shlex.quote(name.partition('/')[2])} brings it here; then memfs init",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class InitPlan:
    """What ``init`` would do in a folder.

    Attributes:
        work_tree: of the repository that is there; "" where one would be made.
        files: that would be written.
        config: settings of git that would be written into the repository's own configuration, each as a line.
    """

    workspace: str
    work_tree: str
    files: tuple[str, ...]
    config: tuple[str, ...]
    policies: Mapping[str, str]


def _plan(root: Path, editor: bool) -> InitPlan:
    """Look, and write nothing: no folder is made, nor memfs's own in git's.

    Raises:
        RepoUnsupported: the repository is of a sort that memfs does not handle.
    """
    from memfs.admin.layout import missing

    layout = discover(_nearest_folder(root))
    policies = first_policies(layout is None)
    named = layout is not None and merge_driver_setup.named(layout.common_dir)
    files = missing(root, policies)
    if editor:
        files.append(f"{EDITOR_FOLDER}/")
    return InitPlan(
        workspace=str(root),
        work_tree=str(layout.work_tree) if layout is not None else "",
        files=tuple(files),
        config=() if named else merge_driver_setup.setting_lines(),
        policies=policies,
    )


def _print_plan(plan: InitPlan, as_json: bool) -> None:
    if as_json:
        facts = {"workspace": plan.workspace, "repository_made": not plan.work_tree, "files": list(plan.files)}
        commits = bool(plan.files) and not plan.work_tree
        refs = {"git_config": list(plan.config), "refs": [], "commits": int(commits)}
        print_json({**facts, **refs, "policies": dict(plan.policies), "dry_run": True})
        return
    for line in _plan_lines(plan):
        print_raw(clean(line))


def _plan_lines(plan: InitPlan) -> Iterator[str]:
    yield f"Would make a workspace in {plan.workspace}" if plan.files else f"{plan.workspace} is a workspace already"
    if not plan.work_tree:
        yield "  would make a git repository for it, and commit these files"
    for path in plan.files:
        yield f"  would write {path}"
    for line in plan.config:
        yield f"  would set in .git/config: {line}"
    if plan.work_tree:
        yield "  would make no commit, branch, tag or other ref"
    if plan.files:
        yield f"  would choose {_chosen(plan.policies)}"


def _chosen(policies: Mapping[str, str]) -> str:
    """The policy in one line, and what it means."""
    commit = policies["history.commit"]
    return ", ".join(f"{key} = {toml(value)}" for key, value in policies.items()) + f": {_MEANS[commit]}"


def _ask(plan: InitPlan) -> None:
    """Ask once whether memfs may settle in a repository that is there already.

    Raises:
        MemfsError: the answer is no.
    """
    note(f"{plan.work_tree} is a git repository already.")
    for line in _plan_lines(plan):
        note(line)
    if not click.confirm("Go ahead?", err=True):
        raise MemfsError("nothing was written")


def _created_json(root: str, created: CreateResult | None, found: FlushResult) -> dict[str, Any]:
    return {
        "workspace": root,
        "created": created is not None,
        "files": list(created.files) if created else [],
        "repository_made": created is not None and created.repository_made,
        "policies": dict(created.policies) if created else {},
        "adopted": list(found.adopted),
        "commit": found.commits[-1] if found.commits else created.commit if created else None,
    }


def _print_created(root: str, created: CreateResult, found: FlushResult) -> None:
    made = "Made a workspace in" if created.files else "Made a git repository for the workspace in"
    print_raw(f"{made} {styled(root, fg='green', bold=True)}")
    if created.files and created.repository_made:
        print_raw("  and a git repository for it")
    for path in created.files:
        print_raw(f"  wrote {clean(path)}")
    if SETTINGS_FILE in created.files:
        print_raw(f"  chose {clean(_chosen(created.policies))}")
    for commit in filter(None, (created.commit, *found.commits)):
        print_raw(f"  committed as {styled(commit[:12], fg='yellow')}")
    if found.adopted:
        print_raw(f"  with {count(len(found.adopted), 'file')} that stood there already")


def set_up(top: Path, *, editor: bool, dry_run: bool, as_json: bool) -> None:
    """Set it up, or complete it, and print what was done.

    Raises:
        MemfsError: see ``memfs.team.own_branch.set_up``.
    """
    from memfs.team import own_branch

    if editor:
        raise MemfsError("--editor is for a workspace in a folder", hint="memfs schema export writes the schemas")
    done = own_branch.set_up(top, dry_run=dry_run)
    if as_json:
        print_json({**facts(done), "dry_run": dry_run})
    else:
        show(done, dry_run)


def facts(done: OwnBranch) -> dict[str, object]:
    """What was done, for a program."""
    return {
        "workspace": str(done.memory),
        "branch": done.branch,
        "commit": done.commit or None,
        "origin": done.origin or None,
        "created": done.made,
        "links": [str(top) for top in done.links],
        "blocked": [str(top) for top in done.blocked],
    }


def show(done: OwnBranch, dry_run: bool) -> None:
    """What was done, for a person."""
    name = styled(done.branch, fg="green", bold=True)
    if done.already:
        print_raw(f"The memory is on its own branch already, {name}")
    elif dry_run:
        print_raw(
            f"Would {'make' if done.made else 'take up'} the branch {name}, unless a remote has it, and its memory"
        )
    elif done.origin:
        print_raw(f"Took up the memory on the branch {name} of {clean(done.origin)}")
    elif done.made:
        print_raw(f"Made a memory on its own branch, {name}")
    else:
        print_raw(f"Took up the memory on the branch {name}")
    print_raw(f"  {'would be ' if dry_run and not done.already else ''}checked out at {clean(str(done.memory))}")
    if done.links:
        print_raw(f"  linked as ContextMemory in {count(len(done.links), 'working tree')}, and left out of git there")
    if not done.already and not dry_run:
        print_raw("  memfs commits to this branch by itself, and to no other; 'memfs sync' shares it")
    for top in done.blocked:
        note(f"{clean(str(top))} has something else named ContextMemory, which is no part of the memory")
