"""What ``resolve``, ``status`` and ``check`` do with a workspace that a merge keeps from opening."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Invocation
from memfs.doors.cli.output import (
    clean,
    count,
    note,
    one_line,
    plain,
    print_json,
    print_problem,
    print_raw,
    problem_json,
    readable,
    styled,
)

if TYPE_CHECKING:
    from memfs.model import Problem
    from memfs.team.open_merges import MergeOutcome, Side
    from memfs.team.resolve import BlockedMerge

_LONGEST = 200


def blocked_at(ctx: click.Context) -> Path | None:
    """The workspace's folder where conflict markers keep it closed; None where they do not.

    Raises:
        WorkspaceNotFound: there is no workspace.
    """
    from memfs.fs.workspace_location import find_workspace
    from memfs.team.resolve import broken

    root = find_workspace(ctx.ensure_object(Invocation).workspace)
    return root if broken(root) else None


def mend(root: Path, names: tuple[str, ...], side: Side, dry_run: bool) -> list[MergeOutcome]:
    """Join, or take one version of, the files that keep a workspace closed, as far as they are meant."""
    from memfs.team.resolve import Foundations

    with Foundations(root) as foundations:
        return foundations.finish(names, side=side, dry_run=dry_run)


def list_blocked(root: Path, as_json: bool) -> None:
    """Print which files keep a workspace closed, where in them, and both values."""
    found = _blocked(root)
    if as_json:
        print_json({"waiting": len(found), "blocked": [_json(one) for one in found]})
        return
    for one in found:
        places = ", ".join(f"{first}-{last}" for first, last in one.lines)
        print_raw(f"{styled('open', fg='yellow')}  {clean(one.path)}  {one.outcome.open.what}, lines {places}")
        words = ("ours", "theirs") if one.outcome.undecided else ("kept", "lost")
        for conflict in one.outcome.conflicts:
            print_raw(f"  two values of {clean(conflict.field)}" if conflict.field else "  two versions")
            for word, value in zip(words, (conflict.kept, conflict.lost), strict=True):
                shown = "nothing" if value is None else readable(value)
                print_raw(f"    {styled(word, bold=True)}  {one_line(shown, _LONGEST)}")
        how = f"{clean(one.path)} --ours|--theirs" if one.outcome.undecided else clean(one.path)
        print_raw(styled(f"  memfs resolve {how}", dim=True))
    note(f"the workspace opens when {count(len(found), 'file')} {'is' if len(found) == 1 else 'are'} decided about")


def tell_problems(root: Path, as_json: bool) -> None:
    """Print, as a check does, what keeps a workspace closed."""
    found: list[Problem] = [one.problem for one in _blocked(root)]
    if as_json:
        print_json({"problems": [problem_json(problem) for problem in found]})
        return
    for problem in found:
        print_problem(problem)
    note("the workspace does not open until that is decided, and nothing else could be looked at")


def _blocked(root: Path) -> list[BlockedMerge]:
    from memfs.team.resolve import Foundations

    with Foundations(root) as foundations:
        return foundations.blocked()


def _json(one: BlockedMerge) -> dict[str, Any]:
    words = ("ours", "theirs") if one.outcome.undecided else ("kept", "lost")
    return {
        "path": one.path,
        "what": one.outcome.open.what,
        "lines": [list(span) for span in one.lines],
        "values": [
            {"field": conflict.field, words[0]: plain(conflict.kept), words[1]: plain(conflict.lost)}
            for conflict in one.outcome.conflicts
        ],
        "reason": one.outcome.undecided,
    }
