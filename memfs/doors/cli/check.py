"""``check``: find what is wrong with a workspace, and put it right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import complete_ids, opened, verb
from memfs.doors.cli.hook import hook_problems
from memfs.doors.cli.options import reference
from memfs.doors.cli.output import OMIT, TEXT_ONLY, Text, count, styled
from memfs.errors import ERROR, UNKNOWN, WARNING, MemfsError
from memfs.model import Problem

if TYPE_CHECKING:
    from memfs.admin.repair import Repair

_COULD_NOT_TELL = 2
_WORDS = {
    ERROR: ("problem", "problems"),
    WARNING: ("warning", "warnings"),
    UNKNOWN: ("thing that could not be checked", "things that could not be checked"),
}


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What is wrong, and what was repaired.

    Attributes:
        problems: what is wrong now, by path; with the severity ``unknown`` what could not be checked.
        repairs: what ``--fix`` did, or cannot do.
        error: why nothing could be checked.
    """

    problems: tuple[Problem, ...]
    repairs: tuple[Repair, ...] = field(default=(), metadata=OMIT)
    error: MemfsError | None = field(default=None, metadata=TEXT_ONLY)


def _code(found: CheckReport, strict: bool) -> int:
    """0: nothing is wrong, 1: something is, 2: it could not be checked."""
    severities = {problem.severity for problem in found.problems}
    left = any(not one.done for one in found.repairs)
    if ERROR in severities or left or (strict and WARNING in severities):
        return 1
    return _COULD_NOT_TELL if UNKNOWN in severities else 0


def _text(found: CheckReport) -> Text:
    if found.error is not None:
        yield found.error
        return
    for one in found.repairs:
        word, colour = ("Fixed", "green") if one.done else ("Left", "red")
        yield f"{styled(word, fg=colour)}: {f'{one.path}: '.removeprefix(': ') + one.sentence}"
    yield from found.problems
    numbers = {severity: sum(problem.severity == severity for problem in found.problems) for severity in _WORDS}
    counts = [count(number, *_WORDS[severity]) for severity, number in numbers.items() if number]
    yield " and ".join(counts) if counts else "No problems found"


@verb("check", text=_text, exit_code=_code)
@click.argument("items", nargs=-1, metavar="[ID|PATH]...", shell_complete=complete_ids)
@click.option("--fix", is_flag=True, help="Repair what can be repaired without losing anything.")
@click.option("--integrity", is_flag=True, help="Read every byte: files, journal, index and git's objects.")
@click.option("--strict", is_flag=True, help="Count warnings as problems.")
def check(items: tuple[str, ...], fix: bool, integrity: bool, **_: bool) -> CheckReport:
    """Look for problems in these items, or in the whole workspace: invalid files, damage, a stale index.

    --fix brings back what the disk damaged, from git or the journal, after copying the damaged bytes aside ('memfs
    restore --displaced' lists them); it also removes temporary files, and rebuilds the index. What a person's edit made
    invalid is left alone, unless the item is named: then its last good version comes back. Nothing is committed. If a
    change that counts as damage is yours after all, 'touch' the file: it then counts as an edit.

    --integrity reads every checkpoint, item and document, the journal and the index, and lets git check its objects.

    Exit code 0: no problems. 1: there are some, or something was not repaired. 2: the workspace, or a part of it,
    could not be checked.

    Examples:
        memfs check
        memfs check --integrity
        memfs check --fix
        memfs check --fix ContextMemory/memories/semantic/2026-03/x.yaml
        memfs check --json || echo 'look at your memory'
    """
    try:
        with opened() as workspace:
            paths = frozenset(workspace.repairer.file(reference(workspace, name)) for name in items)
            repairs: list[Repair] = []
            if fix:
                repairs = workspace.repairer.repair(sorted(paths)) if paths else workspace.checker.repair()
            problems = [*workspace.checker.check(integrity=integrity), *hook_problems(workspace)]
    except MemfsError as error:
        return CheckReport((Problem.of(error, severity=UNKNOWN),), error=error)
    chosen = tuple(problem for problem in problems if not paths or problem.path in paths)
    return CheckReport(chosen, tuple(repairs))
