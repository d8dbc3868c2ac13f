"""``init --own-branch``: setting up a memory on a branch of its own, and saying what that did."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memfs.adapters.cli.output import clean, count, note, print_json, print_raw, styled
from memfs.errors import MemfsError

if TYPE_CHECKING:
    from memfs.teams.ownbranch import OwnBranch


def set_up(top: Path, *, editor: bool, dry_run: bool, as_json: bool) -> None:
    """Set it up, or complete it, and print what was done.

    Raises:
        MemfsError: see ``memfs.teams.ownbranch.set_up``.
    """
    from memfs.teams import ownbranch

    if editor:
        raise MemfsError("--editor is for a workspace in a folder", hint="memfs schema export writes the schemas")
    done = ownbranch.set_up(top, dry_run=dry_run)
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
