"""``check``: what is wrong with a workspace, and its repair."""

from __future__ import annotations

import click

from memfs.adapters.cli.frame import opened, verb
from memfs.adapters.cli.output import count, print_json, print_problem, print_raw, problem_json, styled, write_error
from memfs.errors import MemfsError
from memfs.model.problem import ERROR

_COULD_NOT_TELL = 2


@verb("check", example="memfs check\nmemfs check --fix\nmemfs check --json || echo 'look at your memory'")
@click.option("--fix", is_flag=True, help="Repair what can be repaired without losing anything.")
@click.option("--strict", is_flag=True, help="Count warnings as problems.")
@click.pass_context
def check(ctx: click.Context, fix: bool, strict: bool, as_json: bool) -> int:
    """Look for problems: invalid files, twins, damaged history, a stale index.

    Exit code 0: none. 1: problems were found. 2: the workspace could not be checked.
    """
    try:
        with opened(ctx) as workspace:
            fixed = workspace.checker.repair() if fix else []
            problems = workspace.checker.check()
    except MemfsError as error:
        write_error(error)
        return _COULD_NOT_TELL
    if as_json:
        print_json({"problems": [problem_json(problem) for problem in problems], **({"fixed": fixed} if fix else {})})
    else:
        for sentence in fixed:
            print_raw(f"{styled('Fixed', fg='green')}: {sentence}")
        for problem in problems:
            print_problem(problem)
        errors = sum(problem.severity == ERROR for problem in problems)
        warnings = len(problems) - errors
        found = [count(errors, "problem")] if errors else []
        found += [count(warnings, "warning")] if warnings else []
        print_raw(" and ".join(found) if found else "No problems found")
    return int(any(strict or problem.severity == ERROR for problem in problems))
