"""``private``: show this user's private memory of the project at hand, and join that of another clone."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs import private as private_memory
from memfs.doors.cli.command import Invocation, Unclear, verb
from memfs.doors.cli.output import clean, count, note, print_json, print_raw, styled
from memfs.doors.cli.streams import is_interactive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memfs.workspace import Workspace


@verb(
    "private",
    example='memfs private\nmemfs private --path\nmemfs private --join\nmemfs -C "$(memfs private --path)" list',
)
@click.option("--path", "only_path", is_flag=True, help="Print the folder and nothing else.")
@click.option("--join", "joins", is_flag=True, help="Use the private memory of another clone of the same origin here.")
@click.option("--of", "key", metavar="KEY", default="", help="With --join: the one in the folder of this name.")
@click.option("--yes", is_flag=True, help="With --join: do not ask.")
@click.pass_context
def private(ctx: click.Context, /, only_path: bool, joins: bool, key: str, yes: bool, as_json: bool) -> None:
    """Show where your private memory of this project lies, and what it holds.

    Hooks keep there what you type to an agent and what its sessions teach: outside the repository, readable by you
    alone. Nothing of it reaches others unless you say 'memfs share'. All branches and worktrees of a repository have
    one together; a copy, a fork or a fresh clone begins with none. --join lets a clone use the private memory of
    another clone of the same origin, and brings along what it had of its own.
    """
    project = private_memory.project_at(ctx.ensure_object(Invocation).workspace or ".")
    if joins:
        _join(project, key, yes)
    folder = private_memory.find(project)
    if only_path:
        if folder is None:
            raise Unclear(
                "there is no private memory of this project yet", "hooks make it: memfs agent install claude-code"
            )
        print_raw(str(folder))
        return
    facts = _facts(project, folder)
    if as_json:
        print_json(facts)
    else:
        _tell(facts)


def private_folder(workspace: Workspace) -> Path | None:
    """The folder of the private memory that is read beside a workspace, None where there is none."""
    named = workspace.settings.mounts.get(private_memory.NAME, "")
    folder = Path(named)
    return folder if named and private_memory.holds(folder) else None


def private_facts(workspace: Workspace) -> dict[str, Any]:
    """The part of ``memfs status --json``: where private memory lies and what it holds; None where there is none."""
    folder = private_folder(workspace)
    return {"private": None if folder is None else {"folder": str(folder), **counts(folder)}}


def private_row(facts: Mapping[str, Any]) -> dict[str, str]:
    """The row of ``memfs status``."""
    found = facts["private"]
    return {} if found is None else {"private": f"{_held(found)}, {found['folder']}"}


def ask_to_join(project: private_memory.Project) -> None:
    """Ask, at a terminal, whether a clone that has no private memory yet uses that of another clone of its origin."""
    found = private_memory.clones(project) if private_memory.find(project) is None else []
    if found and not is_interactive():
        note(f"another clone has a private memory: {_where(found[0])}; 'memfs private --join' uses it here, too")
    elif found and click.confirm(f"Use the private memory of {_where(found[0])} here, too?", err=True):
        _joined(project, found[0])


def _join(project: private_memory.Project, key: str, yes: bool) -> None:
    folders = private_memory.projects_folder()
    found = [one for one in folders.glob("[a-z0-9]*") if one.name == key] if key else private_memory.clones(project)
    if not found:
        hint = f"'memfs private --join --of KEY' names one; the keys are the folders in {folders}"
        raise Unclear("no other clone of this origin has a private memory", hint)
    if len(found) > 1:
        raise Unclear("several clones have one", "name it with --of: " + ", ".join(one.name for one in found))
    if not yes:
        if not is_interactive():
            raise Unclear(f"this would use the private memory of {_where(found[0])}", "add --yes")
        click.confirm(f"Use the private memory of {_where(found[0])} here, too?", abort=True, err=True)
    _joined(project, found[0])


def _joined(project: private_memory.Project, folder: Path) -> None:
    """Let a project use a private memory, and bring along what it had of its own."""
    from memfs.sessions.join import join

    if brought := join(project, folder):
        note(f"{count(brought, 'memory', 'memories')} of this clone went along")
    note(f"sessions here use {folder}")


def _where(folder: Path) -> str:
    record = private_memory.read_record(folder)
    path = record.homes[-1].path if record is not None and record.homes else str(folder)
    return clean(path.removesuffix("/.git"))


def _facts(project: private_memory.Project, folder: Path | None) -> dict[str, Any]:
    others = [{"folder": str(one), "home": _where(one)} for one in private_memory.clones(project)]
    held = counts(folder) if folder is not None else {}
    return {"project": str(project.place), "folder": str(folder) if folder else None, **held, "clones": others}


def counts(folder: Path) -> dict[str, int]:
    """How many items there are by sort, from the names of the files alone."""
    items = working = 0
    for place, _, names in os.walk(folder / "ContextMemory" / "memories"):
        number = sum(name.endswith((".yaml", ".yml", ".json")) for name in names)
        inside = os.path.relpath(place, folder / "ContextMemory" / "memories").split(os.sep)[0] == "working"
        items, working = items + number * (not inside), working + number * inside
    return {"items": items, "working": working}


def _held(found: Mapping[str, Any]) -> str:
    working = f" and {found['working']:,} of sessions under way" if found["working"] else ""
    return f"{count(found['items'], 'memory', 'memories')}{working}"


def _tell(facts: Mapping[str, Any]) -> None:
    clones: Sequence[Mapping[str, str]] = facts["clones"]
    rows = {"project": facts["project"], "folder": facts["folder"] or "none yet: hooks make it"}
    rows |= {"holds": _held(facts), "readable": "by you alone; outside the repository"} if facts["folder"] else {}
    rows |= {"also": f"{clones[0]['home']} is a clone of the same origin, with {clones[0]['folder']}"} if clones else {}
    for name, value in rows.items():
        print_raw(f"{styled(f'{name:<10}', dim=True)}{clean(value)}")
    if facts["folder"]:
        note(f"to list it: memfs -C {shlex.quote(facts['folder'])} list")
        note("'memfs share' lists what could be shared")
    else:
        note("'memfs agent install claude-code' sets up the hooks")
    if clones:
        note("'memfs private --join' uses the other clone's here, too")
