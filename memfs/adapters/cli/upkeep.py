"""``status``, ``check``, ``stats``, ``watch``, ``reindex``, ``maintain``: how the workspace stands, and its care."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import click

from memfs.adapters.cli.frame import opened, verb
from memfs.adapters.cli.output import (
    clean,
    count,
    note,
    note_problems,
    plain,
    print_json,
    print_json_line,
    print_problem,
    print_raw,
    print_table,
    problem_json,
    progress,
    styled,
    write_error,
)
from memfs.errors import MemfsError
from memfs.model.problem import ERROR
from memfs.upkeep.tally import Tally, tally

if TYPE_CHECKING:
    from memfs.watch import Noticed
    from memfs.workspace import Workspace

_COULD_NOT_TELL = 2


@verb("status", example="memfs status\nmemfs -C ~/project status --json")
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Show how the workspace stands: items, git branch, what waits for a commit, the index, and problems."""
    with opened(ctx) as workspace:
        facts = _status(workspace)
        invalid = frozenset(workspace.checker.invalid_edits()) if facts["hand_edits"] else frozenset()
        problems = workspace.store.problems()
        root = str(workspace.root)
    if as_json:
        print_json({**facts, "problems": [problem_json(problem) for problem in problems]})
    else:
        _print_status(root, facts, invalid)
        for problem in problems:
            print_problem(problem)
    note_problems(problems)


def _status(workspace: Workspace) -> dict[str, Any]:
    items = workspace.store.count()  # brings the index in step first
    pending = workspace.store.pending()
    head = workspace.repository.head()
    fresh = not workspace.store.refresh()  # nothing left to learn: the index says what the files say
    edits = workspace.store.hand_edits()
    return {
        "items": items,
        "head": head.commit,
        "branch": head.ref.removeprefix("refs/heads/") if head.ref else None,
        "pending_commits": pending.count,
        "pending_reason": pending.reason,
        "hand_edits": edits,
        "index": {"engine": workspace.settings.index.engine, "fresh": fresh},
    }


def _print_status(root: str, facts: dict[str, Any], invalid: frozenset[str]) -> None:
    branch = facts["branch"] or "detached HEAD"
    at = f" at {facts['head'][:12]}" if facts["head"] else ", no commits yet"
    waiting = count(facts["pending_commits"], "change") if facts["pending_commits"] else "nothing"
    reason = f" ({facts['pending_reason']})" if facts["pending_reason"] else ""
    edits = facts["hand_edits"]
    rows = {
        "workspace": root,
        "branch": f"{branch}{at}",
        "items": f"{facts['items']:,}",
        "to commit": f"{waiting}{reason}" + (f", {count(len(edits), 'hand edit')}" if edits else ""),
        "index": f"{facts['index']['engine']}, {'fresh' if facts['index']['fresh'] else 'stale'}",
    }
    for name, value in rows.items():
        print_raw(f"{styled(f'{name:<11}', dim=True)}{clean(value)}")
    for path in edits:
        wrong = "  invalid: 'memfs commit' leaves it alone" if path in invalid else ""
        print_raw(f"{'':11}{styled('edited', fg='yellow')} {clean(path)}{wrong}")


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


@verb("stats", example="memfs stats\nmemfs stats --json")
@click.pass_context
def stats(ctx: click.Context, as_json: bool) -> None:
    """Count the items by type and layer, and say what content, history and index weigh."""
    with opened(ctx) as workspace:
        facts = tally(workspace.store, workspace.parts)
        problems = workspace.store.problems()
    if as_json:
        print_json(_tally_json(facts))
    else:
        _print_tally(facts)
    note_problems(problems)


def _tally_json(facts: Tally) -> dict[str, Any]:
    return {
        "items": facts.items,
        "types": facts.types,
        "layers": facts.layers,
        "bytes": {"content": facts.content_bytes, "history": facts.history_bytes, "index": facts.index_bytes},
        "bytes_by_type": facts.type_bytes,
    }


def _print_tally(facts: Tally) -> None:
    sizes = {"content": facts.content_bytes, "history": facts.history_bytes, "index": facts.index_bytes}
    print_raw(styled(count(facts.items, "item"), bold=True))
    print_table(
        [(f"  {name}", f"{number:>9,}", _bytes(facts.type_bytes[name])) for name, number in facts.types.items()]
    )
    print_raw(styled("Layers", bold=True))
    print_table([(f"  {layer}", f"{number:>9,}") for layer, number in facts.layers.items()])
    print_raw(styled("Size", bold=True))
    print_table([(f"  {name}", _bytes(size)) for name, size in sizes.items()])


def _bytes(number: int) -> str:
    return f"{number:>13,} bytes"


@verb("watch", example="memfs watch\nmemfs watch --json | tee changes.jsonl")
@click.pass_context
def watch(ctx: click.Context, as_json: bool) -> None:
    """Follow changes of the files, by hand or by git, and keep the index fresh, until interrupted."""
    from memfs.watch import Watcher  # watchdog is slow to start, and no other verb needs it

    ended = threading.Event()

    def tell(noticed: Noticed) -> None:
        try:
            _print_noticed(noticed, as_json)
        except BrokenPipeError:  # we are on the watcher's thread: let the command's own end
            ended.set()

    with opened(ctx) as workspace:
        settings = workspace.settings
        quiet = settings.history.adopt_after_seconds if settings.history.adopt == "auto" else None

        def watcher() -> Watcher:
            return Watcher(workspace.store, workspace.root, settings.watch, quiet_seconds=quiet, listener=tell)

        workspace.store.watch_with(watcher, at_once=True)
        note(f"watching {workspace.root}; Ctrl-C ends it")
        ended.wait()
    raise BrokenPipeError


def _print_noticed(noticed: Noticed, as_json: bool) -> None:
    found = {name: list(getattr(noticed.refreshed, name)) for name in ("added", "changed", "removed")}
    if as_json:
        print_json_line({"reason": noticed.reason, **found, "error": noticed.error})
        return
    for name, paths in found.items():
        for path in paths:
            print_raw(f"{styled(f'{name:<8}', dim=True)} {clean(path)}")
    if noticed.error:
        note(noticed.error)


@verb("reindex", example="memfs reindex")
@click.pass_context
def reindex(ctx: click.Context, as_json: bool) -> None:
    """Build the search index anew from the files. Nothing is lost by it: the index is only a cache."""
    began = time.monotonic()
    with opened(ctx) as workspace:
        with progress("Indexing") as step:
            items = workspace.store.reindex(progress=step)
        engine = workspace.settings.index.engine
        problems = workspace.store.problems()
    seconds = round(time.monotonic() - began, 3)
    if as_json:
        print_json({"items": items, "engine": engine, "seconds": seconds})
    else:
        print_raw(f"Indexed {count(items, 'item')} with {engine} in {seconds:.1f} s")
    note_problems(problems)


@verb("maintain", example="memfs maintain")
@click.pass_context
def maintain(ctx: click.Context, as_json: bool) -> None:
    """Pack the history, write the commit-graph that makes log quick, and fold fresh items into the index."""
    with opened(ctx) as workspace:
        done = workspace.history.maintain()
        folded = workspace.store.fold()
    facts = {name: getattr(done, name) for name in type(done).__slots__}
    if as_json:
        print_json({**plain(facts), "folded": folded})
        return
    for name, value in {**facts, "index folded": "yes" if folded else "another process is at it"}.items():
        label = name.replace("_", " ")
        print_raw(f"{styled(f'{label:<16}', dim=True)}{clean(str(value))}")
