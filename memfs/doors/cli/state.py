"""The verbs of ``memfs state``: iterations, documents and checkpoints of multi-agent systems."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from memfs.dataclass import dataclass, replace
from memfs.doors.cli.command import Unclear, opened, remark, verb
from memfs.doors.cli.declare import click
from memfs.doors.cli.export import ExportReport, export_options, export_text, exported, incomplete
from memfs.doors.cli.options import as_of, decoded, land, past_at, span, state_at
from memfs.doors.cli.output import (
    Block,
    Document,
    Note,
    Table,
    Text,
    as_json,
    count,
    document,
    note,
    read_named,
    somebody_types,
    styled,
    time_text,
)
from memfs.doors.cli.parser import Actions
from memfs.errors import ContentError, ItemSyntaxError, IterationInvalid, MemfsError
from memfs.format import json_text
from memfs.model.query import moment

if TYPE_CHECKING:
    from memfs.model.state_documents import (
        Acknowledgement,
        AgentFeedback,
        Analysis,
        RecoveryState,
        RetrievedState,
        TrendReport,
    )
    from memfs.model.state_facts import Iteration
    from memfs.state.checkpoint_store import Checkpoint
    from memfs.state.retrieval import StateHit
    from memfs.workspace import Workspace


# -- iteration ----------------------------------------------------------------------------------------------------
def _iteration_text(one: Iteration) -> Text:
    yield f"Iteration {one.number} is {_status(one)}"


def _iteration_list_text(found: tuple[Iteration, ...]) -> Text:
    yield Table(
        [
            (f"{one.number:>5}", _status(one), time_text(one.opened) or "", count(sum(one.counts.values()), "document"))
            for one in found
        ],
        dim=(2,),
    )
    yield Note(count(len(found), "iteration") + ("" if found else "; 'memfs state iteration start' opens one"))


def _status(one: Iteration) -> str:
    return "archived" if one.archive else one.status


_number = click.argument("number", required=False, type=click.IntRange(1), metavar="[N]")


@verb("start", text=_iteration_text, key="iteration")
@_number
def _iteration_start(workspace: Workspace, number: int | None) -> Iteration:
    """Open iteration N, by default the one after the newest.

    Examples:
        memfs state iteration start
    """
    found = workspace.states.iterations.start(number)
    land(workspace)
    return found


@verb("close", text=_iteration_text, key="iteration")
@_number
def _iteration_close(workspace: Workspace, number: int | None) -> Iteration:
    """Close iteration N, by default the newest open one, and sum it up.

    Examples:
        memfs state iteration close
    """
    found = workspace.states.iterations.close(number)
    land(workspace)
    return found


@verb("show", text=document, key="iteration")
@_number
def _iteration_show(workspace: Workspace, number: int | None) -> Iteration:
    """Show iteration N, by default the newest.

    Examples:
        memfs state iteration show
        memfs state iteration show 3
    """
    number = number or workspace.states.reading.latest_iteration()
    if number is None:
        raise IterationInvalid("there is no iteration yet", hint="'memfs state iteration start' opens one")
    return workspace.states.iterations.show(number)


@verb("list", text=_iteration_list_text, key="iterations")
@as_of
def _iteration_list(workspace: Workspace, as_of: str | None) -> tuple[Iteration, ...]:
    """List all iterations, archived ones too.

    Examples:
        memfs state iteration list --json
    """
    return tuple(state_at(workspace, as_of).iterations.list())


iteration = Actions(
    "iteration",
    "Start, close and show the rounds of work in which a multi-agent system stores its state.",
    _iteration_list,
    _iteration_start,
    _iteration_close,
    _iteration_show,
)


# -- store --------------------------------------------------------------------------------------------------------
_TYPES = ("state_update", "agent_output", "meta_review", "hypothesis", "tournament_result")
_STDIN = "standard input"


def _store_text(stored: tuple[Acknowledgement, ...]) -> Text:
    for ack in stored:
        yield f"Stored {ack.path}"
        for name in ("checkpoint_id", "continuation_token"):
            if value := getattr(ack, name):
                yield f"  {name.replace('_', ' ')}  {value}"
        if ack.checkpoint_problem:
            yield Note(f"the update is stored, but no checkpoint was made: {ack.checkpoint_problem}")
        for name in ack.conflicts:
            yield Note(f"somebody else had changed {name}, too: their value is in history and in conflicts/")
    if not stored:
        yield Note("there was nothing to store")


@verb("store", text=_store_text, key="stored")
@click.argument("kind", type=click.Choice(_TYPES), metavar="TYPE")
@click.argument("file", default="", type=click.Path(dir_okay=False, allow_dash=True), metavar="[FILE]")
def store(kind: str, file: str) -> tuple[Acknowledgement, ...]:
    """Store documents of the TYPE state_update, agent_output, meta_review, hypothesis or tournament_result.

    They are read from FILE, or from standard input: one JSON object, or one a line. Each field of a hypothesis takes
    the place of the stored one.

    Exit code 1: refused; what came before the refused document is stored.

    Examples:
        memfs state store agent_output output.json
        echo '{"winner": "h2", "loser": "h1"}' | memfs state store tournament_result
    """
    name = _STDIN if file in ("", "-") else file
    if not file and somebody_types():
        note("reading a JSON object from standard input; end it with Ctrl-D")
    documents = _documents(decoded(read_named(file or "-"), name), name)
    stored: list[Acknowledgement] = []
    with opened() as workspace:
        put = getattr(workspace.states.recorder, kind)
        for line, values in documents:
            try:
                stored.append(put(values))
            except MemfsError as error:
                error.path, error.line, error.column = name, line, None
                if stored:
                    error.hint = f"{error.hint or 'correct it'}; the {len(stored)} before it are stored"
                raise
        land(workspace)
        return tuple(stored)


def _documents(text: str, name: str) -> list[tuple[int, dict[str, Any]]]:
    """The documents in a text, with the line at which each begins: one as a whole, or one a line."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) > 1:
        try:
            _mapping(lines[0][1], 1)
        except ContentError:
            lines = [(1, text)]
    try:
        return [(number, _mapping(line, number)) for number, line in lines]
    except ContentError as error:
        raise error.located(name) from None


def _mapping(text: str, number: int) -> dict[str, Any]:
    value = json_text.load(text, parts=None, first=number)
    if not isinstance(value, dict):
        raise ItemSyntaxError("not a JSON object", line=number, hint="write one object per line")
    return value


# -- show ---------------------------------------------------------------------------------------------------------
@verb("show", text=lambda shown: [Document(as_json(shown))])
@click.option("--request", type=click.Choice(["full", "partial", "summary"]), help="How much of it.")
@click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only this agent; may be repeated.")
@click.option("--component", "components", multiple=True, metavar="NAME", help="Only this part; may be repeated.")
@click.option("--hypothesis", "hypotheses", multiple=True, metavar="ID", help="Only this one; may be repeated.")
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Only this figure; may be repeated.")
@click.option("--iteration", "iterations", multiple=True, type=int, metavar="N", help="Only this one; may be repeated.")
@span
@click.option("--deadline", type=click.FloatRange(0), metavar="SECONDS", help="Only what is found by then.")
@click.option("--whole", is_flag=True, help="All of it, however long that takes.")
@as_of
def show(
    workspace: Workspace,
    request: str | None,
    since: str | None,
    until: str | None,
    deadline: float | None,
    whole: bool,
    as_of: str | None,
    **named: Any,
) -> RetrievedState:
    """Print the present state of a multi-agent system, or what the options name, as JSON.

    Examples:
        memfs state show --request summary
        memfs state show --agent "Evolution Agent" --metric pending_reviews --since 7d
    """
    if whole and deadline is not None:
        raise click.UsageError("'--whole' has no deadline")
    filters = {name: values or None for name, values in named.items()}
    chosen = request or ("partial" if any(filters.values()) else "full")
    start, end = moment("--since", since), moment("--until", until, end=True)
    limit = math.inf if whole else deadline
    states = state_at(workspace, as_of)
    return states.retrieval.retrieve(chosen, start=start, end=end, deadline=limit, **filters)


# -- search -------------------------------------------------------------------------------------------------------
def _search_text(hits: tuple[StateHit, ...]) -> Text:
    for hit in hits:
        yield f"{hit.path}  {hit.kind}"
        yield f"  {hit.excerpt}"
    if not hits:
        yield Note("nothing found")


@verb("search", text=_search_text, key="hits")
@click.argument("words", nargs=-1, required=True, metavar="WORDS...")
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="At most this many.")
@click.option("--agent", "agents", multiple=True, metavar="NAME", help="By or about this agent; may be repeated.")
@click.option("--iteration", "iterations", multiple=True, type=int, metavar="N", help="Only this one; may be repeated.")
@span
@as_of
def search(
    workspace: Workspace, words: tuple[str, ...], since: str | None, until: str | None, as_of: str | None, **given: Any
) -> tuple[StateHit, ...]:
    """Find documents by their words, archived ones too.

    Examples:
        memfs state search kinase inhibitors
        memfs state search kinase --iteration 3 --agent Ranking
    """
    from memfs.state.retrieval import search_states

    start, end = moment("--since", since), moment("--until", until, end=True)
    states = state_at(workspace, as_of)
    return tuple(search_states(states.reading, " ".join(words), start=start, end=end, **given))


# -- resume -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class KeptState:
    """What was saved under a token.

    Attributes:
        token: the token.
        state: whatever the agent kept.
    """

    token: str
    state: Any


@verb("resume", text=lambda kept: [Document(kept.state)])
@click.argument("token", metavar="TOKEN")
def resume(workspace: Workspace, token: str) -> KeptState:
    """Print the state that an agent saved under a continuation token, as JSON.

    Examples:
        memfs state resume ct-3-5d41402abc4b2a76b9719d911017c592
    """
    return KeptState(token, workspace.states.continuations.resume(token))


# -- export -------------------------------------------------------------------------------------------------------
@verb("export", text=export_text, exit_code=incomplete)
@export_options
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only this type of document; may be repeated.")
@click.option("--iteration", "spans", multiple=True, metavar="N[-M]", help="Only these iterations; may be repeated.")
def export(types: tuple[str, ...], spans: tuple[str, ...], **given: Any) -> ExportReport:
    """Write state documents into FILE, or to standard output, as JSON Lines.

    A line is {"path", "type", "iteration", "sha256", "document"}. CSV and Parquet have a column for each field and are
    for other programs. Without --type everything below iterations/ is exported, archived iterations included; the type
    aggregate are the files that sum them up.

    Exit code 1: refused, or a document could not be read and is missing.

    Examples:
        memfs state export state.jsonl
        memfs state export outputs.csv --type agent_output --agent "Evolution Agent" --iteration 3-7
        memfs state export --type hypothesis --since 7d | jq .document.rating
    """
    numbers: list[int] = []
    for written in spans:
        first, dash, last = written.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(written) > 30:
            raise Unclear(f"--iteration: {written!r} is not an iteration", "write 3, or 3-7")
        begin, end = int(first), int(last or first)
        if end < begin or end - begin > 1_000_000:
            raise Unclear(f"--iteration: {written!r} is not a span", "write the smaller number first")
        numbers += range(begin, end + 1)
    return exported(types=types, iterations=tuple(numbers), **given)


# -- checkpoint ---------------------------------------------------------------------------------------------------


# -- checkpoint create --------------------------------------------------------------------------------------------
def _made_text(one: Checkpoint) -> Text:
    weight = f"{count(one.files, 'document')}, {one.bytes:,} bytes, packed {one.payload_bytes:,}"
    yield f"{styled('Created', fg='green')} {one.id}: {weight}, verified"


@verb("create", text=_made_text)
@click.option("--reason", default="", metavar="TEXT", help="Why, for the manifest.")
def _checkpoint_create(workspace: Workspace, reason: str) -> Checkpoint:
    """Make a checkpoint and verify it, while others may keep writing.

    It holds iterations, aggregates, configuration and context; memories and archives are not part of it. Killed before
    it is durable and read back, there is no new checkpoint. Its manifest is in git, its payload beside it is not.

    Examples:
        memfs state checkpoint create --reason 'before the tournament'
    """
    return workspace.states.checkpoints.create(reason=reason)


# -- checkpoint list ----------------------------------------------------------------------------------------------
def _checkpoint_list_text(listed: tuple[Checkpoint, ...], as_of: str | None) -> Text:
    if not listed:
        none_yet = "No checkpoints yet: 'memfs state checkpoint create' makes one"
        yield "There was no checkpoint" if as_of else none_yet
    yield Table([
        (
            one.id,
            "" if one.iteration is None else f"iteration {one.iteration}",
            "" if one.problem and not one.files else count(one.files, "document"),
            f"packed {count(one.payload_bytes, 'byte')}",
            one.problem or one.reason,
        )
        for one in listed
    ])  # fmt: skip


@verb("list", text=_checkpoint_list_text, key="checkpoints")
@as_of
def _checkpoint_list(workspace: Workspace, as_of: str | None) -> tuple[Checkpoint, ...]:
    """List the checkpoints there are, newest first.

    Examples:
        memfs state checkpoint list --as-of 2026-03-01
    """
    past = past_at(workspace, as_of)
    return tuple(workspace.states.checkpoints.list(past.files if past else None))


# -- checkpoint recover -------------------------------------------------------------------------------------------
@verb("recover", text=document)
@click.argument("checkpoint_id", metavar="[ID]", required=False)
@click.option("--component", "components", multiple=True, metavar="NAME", help="Only this; may be repeated.")
@click.option("--restore", is_flag=True, help="Bring back documents that are missing or differ.")
def _checkpoint_recover(checkpoint_id: str | None, components: tuple[str, ...], restore: bool) -> RecoveryState:
    """Say what to continue from after a crash; nothing is changed.

    By the newest checkpoint that verifies, or by ID, it says what that holds, which tasks in flight were completed
    since, which are to be done again, and where each component continues. A component is an agent, system, hypotheses,
    tournament, feedback, configuration, context, aggregates, or a name in recovery_metadata. With --restore, what is
    newer and not in the checkpoint stays, what is archived stays archived, and what is replaced is in history.

    Exit code 1: no checkpoint can be used.

    Examples:
        memfs state checkpoint recover --json
        memfs state checkpoint recover ckpt_20260301_1000 --component Ranking --restore
    """
    with opened() as workspace:
        return workspace.states.checkpoints.recover(checkpoint_id, list(components) or None, restore)


checkpoint = Actions(
    "checkpoint",
    "Keep the whole state of a multi-agent system as it is at one moment, and continue from it after a crash.",
    _checkpoint_list,
    _checkpoint_create,
    _checkpoint_recover,
)


# -- feedback -----------------------------------------------------------------------------------------------------
def _feedback_text(feedback: AgentFeedback) -> Text:
    if feedback.text:
        yield Block(feedback.text.rstrip("\n"))
    yield from map(Note, feedback.remarks)
    if not feedback.text and not feedback.version:
        yield Note("there is no meta-review yet")


@verb("feedback", text=_feedback_text)
@click.argument("agent", metavar="AGENT")
@click.option("--no-record", is_flag=True, help="Only look: do not record that the agent was given it.")
def feedback(workspace: Workspace, agent: str, no_record: bool) -> AgentFeedback:
    """Print what the newest meta-review has to say to an agent, ready for its prompt.

    It is the agent's own feedback, what is meant for everybody, priorities and patterns; what reviewers wrote is in
    it as quoted data. That the agent was given this version is recorded once in an iteration, so that 'memfs state
    analyze' can measure what it brought.

    Examples:
        memfs state feedback "Evolution Agent"
        memfs state feedback Scout --no-record
    """
    given = workspace.states.feedback.for_agent(agent, record=not no_record)
    if given.recorded:
        land(workspace)
    return given


# -- analyze ------------------------------------------------------------------------------------------------------
def _analyze_text(analysis: Analysis) -> Text:
    yield f"{styled(analysis.agent, bold=True)}  {count(analysis.outputs, 'output')}"
    rows = (
        ("improvement", analysis.improvement_rate, analysis.improvement_basis),
        ("diversity", analysis.diversity, analysis.diversity_basis),
    )
    yield Table([(f"  {name}", _figure(value), basis) for name, value, basis in rows], (2,))
    for one in analysis.strategies[:8]:
        works = "works" if one.successful else "does not stand out"
        share = one.success_rate if one.success_rate is not None else one.improvement
        yield f"  strategy {one.name}: {_figure(share)} in {count(one.uses, 'use')}, {works}"
    for effect in analysis.feedback:
        if any(one.effect is not None for one in effect.metrics):
            yield f"  feedback of iteration {effect.from_iteration}: {effect.verdict}; {effect.reason}"
    weights = f"{analysis.current_weight:g} -> {analysis.suggested_weight:g}"
    yield f"  suggested weight  {styled(weights, bold=True)}  ({analysis.weight_source})"
    yield from (f"    {reason}" for reason in analysis.reasons)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


@verb("analyze", text=_analyze_text)
@click.argument("agent", metavar="AGENT")
@click.option(
    "--iterations", type=click.IntRange(1, 10_000), default=10, show_default=True, help="How many to look at."
)
def analyze(workspace: Workspace, agent: str, iterations: int) -> Analysis:
    """Show how an agent did over the last iterations: improvement, diversity, what strategies and feedback brought, and
    the weight that this suggests, with its reasons.

    Nothing is changed: who steers the agents decides about weights.

    Examples:
        memfs state analyze "Evolution Agent"
        memfs state analyze Scout --iterations 20
    """
    return workspace.states.analysis.analyze(agent, iterations)


# -- trends -------------------------------------------------------------------------------------------------------
def _trends_text(report: TrendReport) -> Text:
    yield Table(
        [
            (one.direction, count(one.reviews, "review"), f"iterations {one.first_seen} to {one.last_seen}", one.name)
            for one in report.patterns
        ]
    )


@verb("trends", text=_trends_text)
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True, help="At most this many.")
@as_of
def trends(workspace: Workspace, limit: int, as_of: str | None) -> TrendReport:
    """Show the patterns that meta-reviews name, strongest first: when they were seen, and how they develop.

    Examples:
        memfs state trends
        memfs state trends --limit 5 --json
    """
    from memfs.state.aggregates import pattern_trends

    report = pattern_trends(state_at(workspace, as_of).reading)
    left = len(report.patterns) - limit
    more = f"; {left} more, see --limit" if left > 0 else ""
    found = count(len(report.patterns), "pattern")
    remark(f"{found} in the reviews of {count(len(report.iterations), 'iteration')}{more}")
    return replace(report, patterns=report.patterns[:limit])
