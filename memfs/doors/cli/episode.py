"""``episode``: record what agents did, list it, and learn rules from how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.commit_report import SOURCE, CommitReport, land
from memfs.doors.cli.filters import as_of, as_of_json, note_past, past_at
from memfs.doors.cli.inject import situation, spoken, state_of
from memfs.doors.cli.output import clean, count, note, one_line, print_json, print_raw, print_table, styled, time_text
from memfs.model.ids import of_mount
from memfs.model.suggestion import Keep

if TYPE_CHECKING:
    from memfs.learning.rule_analysis import FailureAnalysis
    from memfs.model.episode import Episode, TriggerRow
    from memfs.workspace import Workspace

_REDACTED = "[redacted: "
_OUTCOMES = ("success", "failure", "partial")
_SHOWN = 20
_FOR_RECORD = ("tool", "about", "error", "warned")
_CHOOSING = ("outcome", "files", "agent", "session", "task")


@verb(
    "episode",
    example='memfs episode record "edited the token check" --file src/auth.py --tool edit --outcome failure '
    '--error "test_login failed"\n'
    "memfs episode list --outcome failure\nmemfs episode analyze",
)
@click.argument("action", type=click.Choice(["record", "list", "analyze"]))
@click.argument("text", nargs=-1, metavar="[TEXT]...")
@click.option("--outcome", type=click.Choice(_OUTCOMES), help="How it ended; of a list, only these.")
@situation
@click.option("--tool", default="", metavar="NAME", help="The tool that was used.")
@click.option("--about", default="", metavar="TEXT", help="What was about to be done; what was done by default.")
@click.option("--error", default="", metavar="TEXT", help="What went wrong; '-' reads standard input.")
@click.option(
    "--warned",
    multiple=True,
    metavar="ID",
    help="An item the agent was warned with, besides those that 'memfs warn' told.",
)
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=_SHOWN, help="List at most so many; 20.")
@as_of
@click.pass_context
def episode(
    ctx: click.Context,
    /,
    action: str,
    text: tuple[str, ...],
    outcome: str | None,
    limit: int,
    as_of: str | None,
    as_json: bool,
    **told: Any,
) -> None:
    """Record what an agent did, list what was recorded, or learn rules from it.

    'record' stores TEXT, what was done, with how it ended. After every 100 episodes the failures are analysed into
    rules, which wait in 'memfs inbox' unless learning.rules is 'write'; 'analyze' does so now. 'list' shows the newest
    first. Without --agent an episode is a person's report.
    """
    if as_of is not None and action != "list":
        raise click.UsageError(f"'{action}' takes no --as-of", ctx)
    if action == "record":
        _record(ctx, spoken(ctx, text), outcome, told, as_json)
        return
    refused = _unfit(action, {**told, "outcome": outcome})
    if text or refused:
        raise click.UsageError(f"'{action}' takes no {refused[0] if refused else 'text'}", ctx)
    with opened(ctx) as workspace:
        if action == "list":
            _list(workspace, outcome, told, limit, as_of, as_json)
            return
        keep = Keep.WRITE if workspace.learner.keep("rules") is Keep.WRITE else Keep.SUGGEST
        found = workspace.sources.rules.analyze(keep=keep)
        landed = land(workspace, None)
    _tell_analysis(found, landed, keep, as_json)


def _unfit(action: str, given: dict[str, Any]) -> list[str]:
    """Options that were given and mean nothing to an action."""
    refused = _FOR_RECORD if action == "list" else (*_FOR_RECORD, *_CHOOSING)
    return [f"--{'file' if name == 'files' else name}" for name in refused if given[name]]


# -- recording ----------------------------------------------------------------------------------------------------
def _record(ctx: click.Context, did: str, outcome: str | None, told: dict[str, Any], as_json: bool) -> None:
    from memfs.model.episode import Action, Episode  # --help does without it

    if outcome is None:
        raise click.UsageError("say with --outcome how it ended", ctx)
    if not did.strip() and not told["tool"].strip():
        raise click.UsageError("nothing to record: say what was done, or with which --tool", ctx)
    error = spoken(ctx, ("-",)) if told["error"] == "-" else told["error"]
    named = {name: told[name] for name in ("agent", "session", "task")}
    state = state_of(told["about"] or did, told["files"], told["tool"], **named)
    with opened(ctx) as workspace:
        warned = (*told["warned"], *workspace.sources.warned.of(state))
        made = Episode.create(state, Action(told["tool"], did), outcome, error, warned=warned)
        stored = workspace.sources.episodes.record(made, trust="agent" if told["agent"] else "human", source=SOURCE)
        landed = land(workspace, workspace.store.get(stored.id))
        unknown = [one for one in told["warned"] if not of_mount(one) and workspace.store.get(one) is None]
    for one in unknown:
        note(f"--warned {one}: no memory is called so; kept as it was given")
    if _REDACTED in stored.error_message and _REDACTED not in error:
        note("what looks like a secret in the error was blacked out")
    if as_json:
        print_json({**_json_of(stored), **landed.json()})
    else:
        print_raw(f"Recorded {styled(stored.id, fg='green', bold=True)}  {stored.outcome.value}")
    if landed.reason:
        note(f"stored; its commit waits: {landed.reason}")


def _json_of(one: Episode) -> dict[str, Any]:
    return {
        "id": one.id,
        "outcome": one.outcome.value,
        "tool": one.action.tool,
        "did": one.action.description,
        "about": one.state.context,
        "files": list(one.state.files),
        "error": one.error_message,
        "warned": list(one.warned),
        "timestamp": time_text(one.timestamp),
    }


# -- listing ------------------------------------------------------------------------------------------------------
def _list(
    workspace: Workspace, outcome: str | None, told: dict[str, Any], limit: int, as_of: str | None, as_json: bool
) -> None:
    past = past_at(workspace, as_of) if as_of is not None else None
    every = workspace.sources.triggers.rows("episode")[::-1] if past is None else past.episodes()
    wanted = {"outcome": outcome, **{name: told[name] for name in ("agent", "session", "task")}}
    files = set(told["files"])
    rows = [
        row
        for row in every
        if all(not value or getattr(row, name) == value for name, value in wanted.items())
        and (not files or files & set(row.files))
    ]
    if as_json:
        print_json({"episodes": [_row_json(row) for row in rows[:limit]], "count": len(rows), **as_of_json(past)})
        return
    print_table([_row(row) for row in rows[:limit]], dim=(0, 1))
    further = f"; {len(rows) - limit:,} more with --limit" if len(rows) > limit else ""
    note_past(past)
    note(count(len(rows), "episode") + further)


def _row(row: TriggerRow) -> tuple[str, ...]:
    what = ": ".join(filter(None, (row.did or row.context, row.error)))
    return row.timestamp.date().isoformat(), row.id, row.outcome, ", ".join(row.files[:2]), one_line(what, 0)


def _row_json(row: TriggerRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "outcome": row.outcome,
        "tool": row.tool,
        "did": row.did,
        "about": row.context,
        "files": list(row.files),
        "error": row.error,
        "warned": list(row.warned),
        "timestamp": time_text(row.timestamp),
        "path": row.path,
    }


# -- learning -----------------------------------------------------------------------------------------------------
def _tell_analysis(found: FailureAnalysis, landed: CommitReport, keep: Keep, as_json: bool) -> None:
    if as_json:
        rules = [{"id": rule.id, "action": rule.action, "confidence": rule.confidence} for rule in found.found]
        changes = {name: list(getattr(found, name)) for name in ("changed", "retired", "doubted")}
        print_json({"read": found.read, "found": rules, "kept": keep.value, **changes, **landed.json()})
        return
    for rule in found.found:
        word = "Learned" if keep is Keep.WRITE else "Suggest"
        print_raw(f"{word} {styled(rule.id, fg='green', bold=True)}  {styled(f'{rule.confidence:.0%}', dim=True)}")
        print_raw(f"  {clean(one_line(rule.action, 0))}")
    words = {"changed": "brought up to date", "retired": "retired", "doubted": "doubtful"}
    for name, word in words.items():
        for rule_id in getattr(found, name):
            print_raw(f"{rule_id}  {styled(word, dim=True)}")
    waits = "; 'memfs inbox' accepts or refuses them" if found.found and keep is not Keep.WRITE else ""
    note(f"read {count(found.read, 'episode')}: {count(len(found.found), 'rule')} found{waits}")
    if landed.reason:
        note(f"stored; its commit waits: {landed.reason}")
