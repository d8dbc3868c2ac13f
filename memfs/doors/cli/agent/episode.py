"""Record what an agent did, list what was recorded, or learn rules from how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.agent.inject import situation, state_of
from memfs.doors.cli.command import opened, remark, verb
from memfs.doors.cli.draft import spoken
from memfs.doors.cli.filters import as_of, past_at
from memfs.doors.cli.options import SOURCE, land
from memfs.doors.cli.output import Note, Table, Text, count, merge, one_line, styled
from memfs.doors.cli.parser import Actions
from memfs.model.episode import Action, Episode, TriggerRow
from memfs.model.ids import of_mount
from memfs.model.suggestion import Keep

if TYPE_CHECKING:
    from memfs.learning.rule_analysis import FailureAnalysis
    from memfs.workspace import Workspace

_REDACTED = "[redacted: "
_OUTCOMES = click.Choice(["success", "failure", "partial"])


# -- record -------------------------------------------------------------------------------------------------------
def _recorded_text(done: Episode) -> Text:
    yield f"Recorded {styled(done.id, fg='green', bold=True)}  {done.outcome.value}"


@verb("record", text=_recorded_text, lands=True)
@click.argument("text", nargs=-1, metavar="[TEXT]...")
@click.option("--outcome", type=_OUTCOMES, required=True, help="How it ended.")
@situation
@click.option("--tool", default="", metavar="NAME", help="The tool that was used.")
@click.option("--about", default="", metavar="TEXT", help="What was about to be done; what was done by default.")
@click.option("--error", default="", metavar="TEXT", help="What went wrong; '-' reads standard input.")
@click.option(
    "--warned",
    multiple=True,
    metavar="ID",
    help="An item the agent was warned with, besides those that 'memfs agent warn' told.",
)
def record(
    text: tuple[str, ...], outcome: str, files: tuple[str, ...], about: str, error: str, **named: Any
) -> Episode:
    """Record TEXT, what was done, with how it ended; '-' reads standard input.

    Without --agent it is a person's report.

    Examples:
        memfs agent episode record "edited the login" --file auth.py --tool edit --outcome failure --error "test failed"
    """

    did, warned = spoken(text), named.pop("warned")
    if not did.strip() and not named["tool"].strip():
        raise click.UsageError("nothing to record: say what was done, or with which --tool")
    error = spoken(("-",)) if error == "-" else error
    state = state_of(about or did, files, **named)
    with opened() as workspace:
        told = (*warned, *workspace.sources.warned.of(state))
        made = Episode.create(state, Action(named["tool"], did), outcome, error, warned=told)
        trust = "agent" if named["agent"] else "human"
        stored = workspace.sources.episodes.record(made, trust=trust, source=SOURCE)
        land(workspace, workspace.store.get(stored.id))
        for one in warned:
            if not of_mount(one) and workspace.store.get(one) is None:
                remark(f"--warned {one}: no memory is called so; kept as it was given")
    if _REDACTED in stored.error_message and _REDACTED not in error:
        remark("what looks like a secret in the error was blacked out")
    return stored


# -- list ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class EpisodeList:
    """Episodes, the newest first.

    Attributes:
        episodes: as many as were asked for.
        count: how many there are.
    """

    episodes: tuple[TriggerRow, ...]
    count: int


def _list_text(found: EpisodeList) -> Text:
    yield Table([_row(one) for one in found.episodes], dim=(0, 1))
    more = found.count - len(found.episodes)
    yield Note(count(found.count, "episode") + (f"; {more:,} more with --limit" if more else ""))


def _row(one: TriggerRow) -> tuple[str, ...]:
    what = ": ".join(filter(None, (one.did or one.context, one.error)))
    return one.timestamp.date().isoformat(), one.id, one.outcome, ", ".join(one.files[:2]), one_line(what, 0)


@verb("list", text=_list_text)
@click.option("--outcome", type=_OUTCOMES, help="Only those that ended so.")
@situation
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=20, help="List at most so many; 20.")
@as_of
def list_(
    workspace: Workspace, files: tuple[str, ...], limit: int, as_of: str | None, **wanted: str | None
) -> EpisodeList:
    """List what was recorded, the newest first.

    Examples:
        memfs agent episode list --outcome failure
    """
    past = past_at(workspace, as_of)
    every = workspace.sources.triggers.rows("episode")[::-1] if past is None else past.episodes()
    rows = [
        row
        for row in every
        if all(not value or getattr(row, name) == value for name, value in wanted.items())
        and (not files or set(files) & set(row.files))
    ]
    return EpisodeList(tuple(rows[:limit]), len(rows))


# -- analyze ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class EpisodeAnalysis:
    """What analysing the failures came to.

    Attributes:
        done: what became of rules; of which these fields stand beside the others.
        kept: `write` where they are stored, `suggest` where they wait in the inbox.
    """

    done: FailureAnalysis = field(metadata=merge("read found changed retired doubted"))
    kept: Keep


def _analysis_text(analysis: EpisodeAnalysis) -> Text:
    done, found, writes = analysis.done, analysis.done.found, analysis.kept is Keep.WRITE
    for rule in found:
        word = "Learned" if writes else "Suggest"
        yield f"{word} {styled(rule.id, fg='green', bold=True)}  {styled(f'{rule.confidence:.0%}', dim=True)}"
        yield f"  {one_line(rule.action, 0)}"
    words = {"brought up to date": done.changed, "retired": done.retired, "doubtful": done.doubted}
    yield from (f"{rule_id}  {styled(word, dim=True)}" for word, ids in words.items() for rule_id in ids)
    waits = "; 'memfs inbox' accepts or refuses them" if found and not writes else ""
    yield Note(f"read {count(done.read, 'episode')}: {count(len(found), 'rule')} found{waits}")


@verb("analyze", text=_analysis_text, lands=True)
def analyze(workspace: Workspace) -> EpisodeAnalysis:
    """Analyse the failures into rules now, as is done after every 100 episodes.

    Rules wait in 'memfs inbox' unless learning.rules is 'write'.

    Examples:
        memfs agent episode analyze
    """
    keep = Keep.WRITE if workspace.learner.keep("rules") is Keep.WRITE else Keep.SUGGEST
    done = workspace.sources.rules.analyze(keep=keep)
    land(workspace)
    return EpisodeAnalysis(done, keep)


episode = Actions("episode", __doc__, list_, record, analyze)
