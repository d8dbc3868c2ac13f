"""``init`` and ``config``: making a workspace, and seeing how it is set."""

from __future__ import annotations

import os
import shlex
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs import trust
from memfs.adapters.cli.frame import Invocation, check_key, opened, verb
from memfs.adapters.cli.output import clean, count, note, print_json, print_raw, print_table, styled
from memfs.adapters.cli.streams import somebody_types
from memfs.adapters.cli.trusting import note_ignored
from memfs.config import find_workspace
from memfs.errors import MemfsError, WorkspaceNotFound
from memfs.files.whereabouts import MEMORY_FOLDER
from memfs.history.repository import Repository
from memfs.setting_values import toml
from memfs.settings import SPECS
from memfs.store.values import Flushed
from memfs.upkeep import mergedriver
from memfs.workspace import open_workspace

if TYPE_CHECKING:
    from memfs.upkeep.layout import Created
    from memfs.workspace import Workspace

_SCHEMAS = "ContextMemory/.schemas/"


@verb("init", example="memfs init notes\nmemfs init . --yes\nmemfs init --user")
@click.argument("path", required=False, metavar="[PATH]", type=click.Path(file_okay=False))
@click.option("--user", is_flag=True, help="Make your own workspace, for what belongs to no other.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before settling in an existing git repository.")
@click.option("--nested", is_flag=True, help="Make one within the folder of another workspace.")
@click.pass_context
def init(ctx: click.Context, path: str | None, user: bool, yes: bool, nested: bool, as_json: bool) -> None:
    """Make a workspace at PATH (the current folder unless named), with a git repository if none is there.

    In a fresh clone it installs the merge driver, by which git joins memory files field by field. Inside an existing
    repository memfs commits only its own files, and asks once before it does so. With --user the
    workspace lies in your data folder and has a repository of its own: agents use it where no other is found.
    """
    with _user_workspace(ctx, path) if user else _workspace(ctx, path, yes, nested) as workspace:
        created = workspace.created
        assert created is not None  # this is what create=True promises
        found = _take_in(workspace, created)
        driver = created.driver or mergedriver.install(workspace.repository)
        shown = str(workspace.root)
    made = bool(created.files) or created.repository_made
    if as_json:
        facts = _created_json(shown, created if made else None, found)
        print_json({**facts, "merge_driver": driver})
    elif made:
        _print_created(shown, created, found)
    else:
        print_raw(f"{clean(shown)} is a workspace already")
    if driver and not as_json:
        print_raw("  told git to join memory files field by field (merge.memfs in .git/config)")
    if found.reason:
        note(f"the commit waits: {found.reason}")


def _workspace(ctx: click.Context, path: str | None, yes: bool, nested: bool) -> Workspace:
    if path is not None and not path.strip():
        raise click.UsageError("name the folder, or leave PATH out for the current one", ctx)
    root = Path(ctx.ensure_object(Invocation).workspace or ".", path or ".").resolve()
    place = root if root.is_dir() else _nearest_folder(root)
    _refuse_nested(root, place, nested)
    around = Repository.find(place, trusted=trust.repository)
    if around is not None and not (root / "ContextMemory").is_dir():
        with closing(around):
            _refuse_beside(around, root.relative_to(place) / "ContextMemory")
        if not yes:
            _ask(around.work_tree)
    return open_workspace(root, create=True, watch=False)


def _user_workspace(ctx: click.Context, path: str | None) -> Workspace:
    from memfs.facades.opening import open_user_workspace  # wanted once in a person's life

    if path is not None or ctx.ensure_object(Invocation).workspace is not None:
        raise click.UsageError("name a folder or say --user, not both", ctx)
    return open_user_workspace(watch=False)


def _take_in(workspace: Workspace, created: Created) -> Flushed:
    """Commit what stood there already, where its repository is new: else it would have no history to fall back on."""
    if not created.repository_made:
        return Flushed(reason=created.reason)
    return workspace.store.flush(adopt=True, message="Take in the memory that was here")


def _nearest_folder(path: Path) -> Path:
    return next(folder for folder in path.parents if folder.is_dir())


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


def _ask(work_tree: Path) -> None:
    """Ask once whether memfs may settle in a repository that is there already.

    Raises:
        MemfsError: the answer is no, or there is nobody to ask.
    """
    if not somebody_types():
        raise MemfsError(
            "this is a git repository already, and memfs would commit its own files there",
            path=str(work_tree),
            hint="say so with --yes",
        )
    note(f"{work_tree} is a git repository already.")
    note("It would get memfs.toml and ContextMemory/ in a commit of their own; nothing else is ever committed.")
    note("Its .git/config would name memfs as the program that joins memory files.")
    if not click.confirm("Go ahead?", err=True):
        raise MemfsError("nothing was written")


def _created_json(root: str, created: Created | None, found: Flushed) -> dict[str, Any]:
    return {
        "workspace": root,
        "created": created is not None,
        "files": list(created.files) if created else [],
        "repository_made": created is not None and created.repository_made,
        "policies": dict(created.policies) if created else {},
        "adopted": list(found.adopted),
        "commit": found.commits[-1] if found.commits else created.commit if created else None,
    }


def _print_created(root: str, created: Created, found: Flushed) -> None:
    made = "Made a workspace in" if created.files else "Made a git repository for the workspace in"
    print_raw(f"{made} {styled(root, fg='green', bold=True)}")
    if created.files and created.repository_made:
        print_raw("  and a git repository for it")
    schemas = [path for path in created.files if path.startswith(_SCHEMAS)]
    for path in created.files:
        if path not in schemas:
            print_raw(f"  wrote {clean(path)}")
    if schemas:
        print_raw(f"  wrote {count(len(schemas), 'schema')} into {_SCHEMAS} for editors")
    for key, value in created.policies.items() if "memfs.toml" in created.files else ():
        print_raw(f"  chose {clean(f'{key} = {toml(value)}')}")
    for commit in filter(None, (created.commit, *found.commits)):
        print_raw(f"  committed as {styled(commit[:12], fg='yellow')}")
    if found.adopted:
        print_raw(f"  with {count(len(found.adopted), 'file')} that stood there already")


@verb("config", example="memfs config\nmemfs config index.engine\nMEMFS_INDEX_ENGINE=sqlite memfs config --json")
@click.argument("key", required=False, metavar="[KEY]", shell_complete=lambda *given: _keys(given[-1]))
@click.pass_context
def config(ctx: click.Context, key: str | None, as_json: bool) -> None:
    """Show the settings, and where each value comes from: the default, memfs.toml with its line, or a variable."""
    with opened(ctx) as workspace:
        settings, root = workspace.settings, workspace.root
    rows = {name: {"value": settings.get(name), "origin": origin} for name, origin in settings.origins.items()}
    if key is not None:
        if key not in rows:
            check_key(key)
            raise MemfsError(f"{key} is not set", hint=f"set it with --set {key}=..., or in memfs.toml")
        value = rows[key]["value"]
        if as_json:
            variable = SPECS[key].variable if key in SPECS else None
            print_json({"key": key, **rows[key], "variable": variable})
        else:
            print_raw(value if isinstance(value, str) else toml(value))
    elif as_json:
        print_json({"settings": rows})
    else:
        print_table([(name, toml(row["value"]), row["origin"]) for name, row in rows.items()], dim=())
    note_ignored(root)


def _keys(incomplete: str) -> list[str]:
    return [key for key in SPECS if key.startswith(incomplete)]
