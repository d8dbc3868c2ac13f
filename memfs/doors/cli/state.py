"""``state``: store documents of a multi-agent system, and ask for its state."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Unclear, opened, verb
from memfs.doors.cli.commit_report import land
from memfs.doors.cli.draft import decoded, mapping_of, standard_input
from memfs.doors.cli.filters import as_of, as_of_json, note_past, state_at, when
from memfs.doors.cli.output import clean, note, print_json, print_raw, styled
from memfs.doors.cli.streams import somebody_types
from memfs.errors import ContentError, MemfsError, QueryInvalid, StorageIO

if TYPE_CHECKING:
    from memfs.model.state_documents import Acknowledgement
    from memfs.state.record import StateRecorder
    from memfs.team.asof import Past
    from memfs.workspace import Workspace

_ASKED = (
    "agents",
    "components",
    "hypotheses",
    "metrics",
    "iterations",
    "since",
    "until",
    "deadline",
    "request_type",
    "whole",
)
_SOUGHT = ("agents", "iterations", "since", "until", "limit")
_NAMES = {"start": "--since", "end": "--until", "request_type": "--request"}


@verb(
    "state",
    example="memfs state store agent_output output.json\n"
    """echo '{"winner": "h2", "loser": "h1"}' | memfs state store tournament_result\n"""
    "memfs state show --request summary\n"
    'memfs state show --agent "Evolution Agent" --metric pending_reviews --since 7d\n'
    "memfs state search 'kinase inhibitors' --iteration 3\n"
    "memfs state resume ct-3-5d41402abc4b2a76b9719d911017c592",
)
@click.argument("action", type=click.Choice(["store", "show", "search", "resume"]))
@click.argument("what", required=False, metavar="[TYPE|WORDS|TOKEN]")
@click.argument("file", required=False, type=click.Path(dir_okay=False, allow_dash=True), metavar="[FILE]")
@click.option(
    "--request", "request_type", type=click.Choice(["full", "partial", "summary"]), help="With show: how much of it."
)
@click.option("--agent", "agents", multiple=True, metavar="NAME", help="With show and search: this agent; repeatable.")
@click.option("--component", "components", multiple=True, metavar="NAME", help="With show: this part; repeatable.")
@click.option("--hypothesis", "hypotheses", multiple=True, metavar="ID", help="With show: this one; repeatable.")
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="With show: this figure; repeatable.")
@click.option(
    "--iteration",
    "iterations",
    multiple=True,
    type=click.IntRange(0),
    metavar="N",
    help="With both; repeatable.",
)
@click.option("--since", metavar="WHEN", help="With show and search: not before this date, time or age.")
@click.option("--until", metavar="WHEN", help="With show and search: not after it.")
@click.option("--deadline", type=click.FloatRange(0), metavar="SECONDS", help="With show: what is found by then.")
@click.option("-n", "--limit", type=click.IntRange(1, 1000), metavar="N", help="With search: at most so many, 10.")
@click.option("--whole", is_flag=True, help="With show: all of it, however long that takes.")
@as_of
@click.pass_context
def state(
    ctx: click.Context,
    /,
    action: str,
    what: str | None,
    file: str | None,
    as_of: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Store documents of a multi-agent system, and ask for its state.

    'store' takes a document of the TYPE state_update, agent_output, meta_review, hypothesis or tournament_result from
    FILE, or from standard input: one JSON object, or one a line. 'show' prints the present state, or what the options
    name, as JSON. 'search' finds documents by their words, archived ones too. 'resume' prints what was kept under a
    continuation token.

    Exit code 1: refused; of 'store' what came before the refused document is stored.
    """
    others = {"show": {"limit"}, "search": {*_ASKED} - {*_SOUGHT}}.get(action, {*_ASKED, *_SOUGHT})
    if any(given[name] not in (None, (), False) for name in others):
        theirs = "'search'" if action == "show" else "'show'"
        raise click.UsageError(f"'{action}' takes none of the options of {theirs} alone", ctx)
    if action == "search" and (what is None or file is not None):
        raise click.UsageError("'search' takes WORDS, quoted as one", ctx)
    if action == "show" and what is not None:
        raise click.UsageError("'show' takes options only, such as --agent NAME", ctx)
    if as_of is not None and action not in ("show", "search"):
        raise click.UsageError(f"'{action}' takes no --as-of", ctx)
    if given["whole"] and given["deadline"] is not None:
        raise click.UsageError("'--whole' has no deadline", ctx)
    if action == "resume" and (what is None or file is not None):
        raise click.UsageError("'resume' takes a TOKEN", ctx)
    with opened(ctx) as workspace:
        if action != "store":
            workspace.repository.require_readable()
        if action == "store":
            _store(workspace, _checked(ctx, what), file, as_json)
        elif action == "resume":
            print_json(workspace.states.continuations.resume(str(what)))
        else:
            with state_at(workspace, as_of) as (then, past):
                if action == "show":
                    print_json({**_asked(then, given), **as_of_json(past)})
                else:
                    _search(then, past, str(what), given, as_json)


# -- store --------------------------------------------------------------------------------------------------------
_CALLS: Mapping[str, Callable[[StateRecorder], Callable[[dict[str, Any]], Acknowledgement]]] = {
    "state_update": lambda recorder: recorder.state_update,
    "agent_output": lambda recorder: recorder.agent_output,
    "meta_review": lambda recorder: recorder.meta_review,
    "hypothesis": lambda recorder: recorder.hypothesis,
    "tournament_result": lambda recorder: recorder.tournament_result,
}


def _checked(ctx: click.Context, what: str | None) -> str:
    if what in _CALLS:
        return str(what)
    said = "'store' takes a TYPE" if what is None else f"there is no type {what!r} to be stored"
    raise click.UsageError(f"{said}: {', '.join(_CALLS)}", ctx)


def _store(workspace: Workspace, kind: str, file: str | None, as_json: bool) -> None:
    name = "standard input" if file in (None, "-") else str(file)
    if name == "standard input" and file is None and somebody_types():
        note("reading a JSON object from standard input; end it with Ctrl-D")
    store = _CALLS[kind](workspace.states.recorder)
    told: list[dict[str, Any]] = []
    for line, values in _documents(_text(file, name), name):
        try:
            ack = store(values)
        except MemfsError as error:
            error.path, error.line, error.column = name, line, None
            if told:
                error.hint = f"{error.hint or 'correct it'}; the {len(told)} before it are stored"
            raise
        told.append(ack.to_dict())
        if not as_json:
            _tell(ack)
    reason = land(workspace, None).reason
    if as_json:
        print_json({"stored": told})
    elif not told:
        note("there was nothing to store")
    if reason:
        note(f"stored; its commit waits: {reason}")


def _text(file: str | None, name: str) -> str:
    if file in (None, "-"):
        return standard_input()
    try:
        return decoded(Path(str(file)).read_bytes(), name)
    except OSError as error:
        raise StorageIO(f"cannot be read: {error.strerror}", path=name, hint="name a file of JSON") from error


def _documents(text: str, name: str) -> list[tuple[int, dict[str, Any]]]:
    """The documents in a text, with the line at which each begins: one as a whole, or one a line."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    try:
        if len(lines) < 2 or not _whole(lines[0][1]):
            return [(1, mapping_of(text))] if lines else []
    except ContentError as error:
        error.line = getattr(error.__cause__, "lineno", 1)
        raise error.located(name) from None
    found = []
    for number, line in lines:
        try:
            found.append((number, mapping_of(line)))
        except ContentError as error:
            error.line = number
            raise error.located(name) from None
    return found


def _whole(line: str) -> bool:
    try:
        mapping_of(line)
    except ContentError:
        return False
    return True


def _tell(ack: Acknowledgement) -> None:
    print_raw(f"Stored {ack.path}")
    for name in ("checkpoint_id", "continuation_token"):
        if value := getattr(ack, name):
            print_raw(f"  {name.replace('_', ' ')}  {value}")
    if ack.checkpoint_problem:
        note(f"the update is stored, but no checkpoint was made: {ack.checkpoint_problem}")
    for field in ack.conflicts:
        note(f"somebody else had changed {field}, too: their value is in history and in conflicts/")


# -- show ---------------------------------------------------------------------------------------------------------
def _asked(workspace: Workspace, given: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: given[name] or None for name in ("agents", "components", "hypotheses", "iterations", "metrics")}
    since, until = when(given["since"], "since"), when(given["until"], "until", end=True)
    deadline = math.inf if given["whole"] else given["deadline"]
    chosen = given["request_type"] or ("partial" if any(named.values()) else "full")
    try:
        found = workspace.states.retrieval.retrieve(chosen, start=since, end=until, deadline=deadline, **named)
    except QueryInvalid as error:
        raise Unclear.of(error, _NAMES.get(error.field or "", f"--{(error.field or '').removesuffix('s')}")) from error
    answer: dict[str, Any] = found.to_dict()
    return answer


# -- search -------------------------------------------------------------------------------------------------------
def _search(workspace: Workspace, past: Past | None, text: str, given: Mapping[str, Any], as_json: bool) -> None:
    from memfs.state.search import search_states

    since, until = when(given["since"], "since"), when(given["until"], "until", end=True)
    found = search_states(
        workspace.states.reading,
        text,
        given["limit"] or 10,
        agents=given["agents"],
        iterations=given["iterations"],
        start=since,
        end=until,
    )
    if as_json:
        print_json({"query": text, "hits": [hit.to_dict() for hit in found], **as_of_json(past)})
        return
    for hit in found:
        where = f"  (in the archive {clean(hit.archive)})" if hit.archive else ""
        print_raw(f"{styled(clean(hit.path), fg='yellow')}{where}")
        print_raw(f"  {clean(hit.excerpt)}")
    if not found:
        note("no document holds any of these words")
    note_past(past)
