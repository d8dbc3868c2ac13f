"""``check`` and ``repair``: find what is wrong with a workspace, and put it right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.agent.hook import hook_problems
from memfs.doors.cli.command import complete_ids, opened, verb
from memfs.doors.cli.options import reference
from memfs.doors.cli.output import (
    clean,
    count,
    note,
    plain,
    print_json,
    print_problem,
    print_raw,
    problem_json,
    styled,
    write_error,
)
from memfs.errors import MemfsError
from memfs.model.problem import ERROR, UNKNOWN, WARNING

if TYPE_CHECKING:
    from memfs.admin.repair import Repair
    from memfs.model import Problem

_COULD_NOT_TELL = 2


@verb(
    "check",
    example="memfs check\nmemfs check --integrity\nmemfs check --fix\nmemfs check --json || echo 'look at your memory'",
)
@click.option("--fix", is_flag=True, help="Repair what can be repaired without losing anything.")
@click.option("--integrity", is_flag=True, help="Read every byte: files, journal, index and git's objects.")
@click.option("--strict", is_flag=True, help="Count warnings as problems.")
@click.pass_context
def check(ctx: click.Context, fix: bool, integrity: bool, strict: bool, as_json: bool) -> int:
    """Look for problems: invalid files, twins, damaged history, a stale index.

    Exit code 0: none. 1: problems were found. 2: the workspace, or a part of it, could not be checked.
    """
    try:
        with opened(ctx) as workspace:
            fixed = workspace.checker.repair() if fix else []
            problems = [*workspace.checker.check(integrity=integrity), *hook_problems(workspace)]
    except MemfsError as error:
        write_error(error)
        return _COULD_NOT_TELL
    if as_json:
        print_json({"problems": [problem_json(problem) for problem in problems], **({"fixed": fixed} if fix else {})})
    else:
        _print_findings(fixed, problems)
    found = {problem.severity for problem in problems}
    if ERROR in found or (strict and WARNING in found):
        return 1
    return _COULD_NOT_TELL if UNKNOWN in found else 0


def _print_findings(fixed: list[str], problems: list[Problem]) -> None:
    for sentence in fixed:
        print_raw(f"{styled('Fixed', fg='green')}: {clean(sentence)}")
    for problem in problems:
        print_problem(problem)
    numbers = {severity: sum(problem.severity == severity for problem in problems) for severity in _WORDS}
    found = [count(number, *_WORDS[severity]) for severity, number in numbers.items() if number]
    print_raw(" and ".join(found) if found else "No problems found")


_WORDS = {
    ERROR: ("problem", "problems"),
    WARNING: ("warning", "warnings"),
    UNKNOWN: ("thing that could not be checked", "things that could not be checked"),
}


@verb(
    "repair",
    example="memfs repair --dry-run\nmemfs repair\nmemfs repair ContextMemory/memories/semantic/2026-03/x.yaml",
)
@click.argument("items", nargs=-1, metavar="[ID|PATH]...", shell_complete=complete_ids)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.pass_context
def repair(ctx: click.Context, items: tuple[str, ...], dry_run: bool, as_json: bool) -> int:
    """Put right what the disk damaged, from git, the journal or the files; the damaged bytes are kept.

    A file that a person's edit made invalid is only listed. One that is named gets its last good version back.

    Exit code 0: nothing is wrong any more. 1: something is (or, with --dry-run, would be repaired).
    """
    with opened(ctx) as workspace:
        paths = [reference(workspace, name) for name in items]
        done = workspace.repairer.repair(paths, dry_run=dry_run)
    if as_json:
        print_json({"repairs": [_repair_json(row) for row in done], "dry_run": dry_run})
    else:
        for row in done:
            _print_repair(row, dry_run)
    if not done:
        note("nothing is damaged" if not items else "nothing is wrong with what was named")
    return int(any(not row.done for row in done))


def _repair_json(row: Repair) -> dict[str, Any]:
    return plain({name: getattr(row, name) for name in type(row).__slots__})  # type: ignore[no-any-return]


def _print_repair(row: Repair, dry_run: bool) -> None:
    if not row.possible:
        word, colour = "Left", "red"
    else:
        word, colour = ("Would repair", "yellow") if dry_run else ("Repaired", "green")
    print_raw(f"{styled(word, fg=colour)} {clean(f'{row.path}: ' if row.path else '')}{clean(row.sentence)}")
