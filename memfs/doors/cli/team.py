"""The verbs of ``memfs team``, but for ``conflicts``: conventions, signatures and access."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli import output
from memfs.doors.cli.command import Unclear, complete_ids, opened, remark, verb
from memfs.doors.cli.options import SOURCE, as_of, block_of, land, named, past_at, since
from memfs.doors.cli.parser import Actions
from memfs.model import Query
from memfs.model.item import VOUCHED
from memfs.model.query import MOST, moment

if TYPE_CHECKING:
    from memfs.context.agents_md import AgentsBlock, BlockResult, BlockStatus
    from memfs.learning.conventions import Convention
    from memfs.store.access_log import AccessRecord
    from memfs.team.bisect import BisectResult
    from memfs.team.blame import LearnedFrom
    from memfs.team.verify import CommitCheck
    from memfs.workspace import Workspace
_SHORT = 10
_SHOWN = 20


# -- convention ---------------------------------------------------------------------------------------------------
_STATUSES = ("accepted", "proposed", "retired")

_reason = click.option("--reason", metavar="TEXT", default="", help="Why, for the commit.")


# -- convention list ----------------------------------------------------------------------------------------------
def _row(one: Convention) -> tuple[str, ...]:
    held = one.status == "accepted" and one.trust not in VOUCHED
    coming = bool(one.item.supersedes) and one.status == "proposed"
    remarks = (
        f"trust {one.trust}, not told to agents" if held else "",
        f"to replace {', '.join(one.item.supersedes)}" if coming else "",
    )
    where, notes = ", ".join(one.scope) or "everywhere", "; ".join(filter(None, remarks))
    return one.status or "no status", where, one.owner, one.id, notes, output.one_line(str(one))


def _convention_list_text(found: tuple[Convention, ...]) -> output.Text:
    yield output.Table([_row(one) for one in found], dim=(1,))
    number = len(found)
    yield output.Note(
        output.count(number, "convention") + ("" if number else "; 'memfs team convention propose TEXT' makes one")
    )
    if any(one.status in ("", "proposed") for one in found):
        yield output.Note("only those that are accepted hold; 'memfs team convention accept ID' decides")


@verb("list", text=_convention_list_text, key="conventions")
@click.option("--status", "statuses", multiple=True, type=click.Choice(_STATUSES), help="Only these; may be repeated.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="Those that hold for this file.")
@as_of
def _convention_list(
    workspace: Workspace, statuses: tuple[str, ...], files: tuple[str, ...], as_of: str | None
) -> tuple[Convention, ...]:
    """Show all of them, whatever their status.

    Examples:
        memfs team convention
        memfs team convention list --file src/api/login.py
    """
    past = past_at(workspace, as_of)
    every = (workspace.sources.conventions if past is None else past.conventions).every()
    found = [one for one in every if (not statuses or one.status in statuses) and one.holds_for(files)]
    return tuple(found)


# -- convention propose, accept, retire ---------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ConventionDecision:
    """What was decided about conventions.

    Attributes:
        status: the status that was asked for.
        changed: ids of those that have another status now.
        path: the file of a new one.
        lines: each of them, with the status it has.
    """

    status: str
    changed: tuple[str, ...]
    path: str = field(default="", metadata=output.OMIT)
    lines: tuple[tuple[str, str], ...] = field(default=(), metadata=output.TEXT_ONLY)


def _decision_text(done: ConventionDecision) -> output.Text:
    return (f"{output.styled(status, fg='green')} {name}" for status, name in done.lines)


def _decide(ids: tuple[str, ...], status: str, reason: str) -> ConventionDecision:
    with opened() as workspace:
        changed = workspace.sources.agreements.decide(ids, status, reason, SOURCE)
        if changed:
            land(workspace)
        remark("" if changed else f"all of them are {status} already")
        if changed and status == "accepted" and "conventions" not in workspace.settings.memory.automatic:
            remark("agents see it after 'memfs team agents-md write', or with \"conventions\" in memory.automatic")
    lines = tuple((one.status, one.id) for one in changed)
    return ConventionDecision(status, tuple(one.id for one in changed), lines=lines)


@verb("propose", text=_decision_text)
@click.argument("names", nargs=-1, required=True, metavar="TEXT|ID...", shell_complete=complete_ids)
@click.option("--title", metavar="TEXT", default="", help="A short name.")
@click.option("--id", metavar="ID", default="", help="The id it is to have.")
@click.option("--owner", metavar="NAME", default="", help="The person or team to ask.")
@click.option("--scope", multiple=True, metavar="GLOB", help="Files it holds for; may be repeated.")
@click.option("--supersedes", multiple=True, metavar="ID", help="What it replaces; may be repeated.")
@click.option("--rationale", metavar="TEXT", default="", help="Why it is so.")
@_reason
def _convention_propose(names: tuple[str, ...], reason: str, **fields: Any) -> ConventionDecision:
    """Propose a convention; agents do not see it yet.

    TEXT is in quotes; the ID of one that was accepted takes the acceptance back.

    Examples:
        memfs team convention propose 'Columns hold UTC with an explicit Z.' --title 'Times are UTC' --scope 'src/**'
    """
    if len(names) > 1 or not any(letter.isspace() for letter in names[0].strip()):  # an id has no blanks
        if given := [name for name, value in fields.items() if value]:
            raise Unclear(f"--{given[0]} describes a new convention", "give its text, in quotes")
        return _decide(names, "proposed", reason)
    with opened() as workspace:
        made = workspace.sources.agreements.propose(names[0], **fields, reason=reason, source=SOURCE)
        land(workspace)
    remark(f"agents do not see it until 'memfs team convention accept {made.id}'")
    return ConventionDecision("proposed", (made.id,), made.item.path, (("proposed", made.id),))


@verb("accept", text=_decision_text)
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=complete_ids)
@_reason
def _convention_accept(ids: tuple[str, ...], reason: str) -> ConventionDecision:
    """Accept it, so that agents see it, and retire what it supersedes.

    Examples:
        memfs team convention accept times-are-utc --reason 'team meeting of 3 March'
    """
    return _decide(ids, "accepted", reason)


@verb("retire", text=_decision_text)
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=complete_ids)
@_reason
def _convention_retire(ids: tuple[str, ...], reason: str) -> ConventionDecision:
    """Retire it, so that agents no longer see it.

    Examples:
        memfs team convention retire tabs-not-spaces
    """
    return _decide(ids, "retired", reason)


convention = Actions(
    "convention",
    "Show what the team agreed on, and decide about it.",
    _convention_list,
    _convention_propose,
    _convention_accept,
    _convention_retire,
)


# -- blame --------------------------------------------------------------------------------------------------------


def _blame_text(found: tuple[LearnedFrom, ...]) -> output.Text:
    rows = [(one.commit[:_SHORT], f"{one.time:%Y-%m-%d}", written_by(one), one) for one in found]
    names = max((len(who) for _, _, who, _ in rows), default=0)
    for commit, day, who, one in rows:
        head = f"{commit} {day} {who.ljust(names)}  {output.clean(one.field)}: "
        room = max(output.width() - len(head), 20) if output.width() else 0
        place = f"{output.styled(commit, fg='yellow')} {output.styled(day, dim=True)} {who.ljust(names)}"
        value = output.one_line(output.readable(one.value), room)
        yield f"{place}  {output.styled(output.clean(one.field), bold=True)}: {value}"


def written_by(one: LearnedFrom) -> str:
    """Who wrote it, in the fewest words: the agent with its session, else the author; then door and tool."""
    who = one.agent or one.author
    session = f"session {one.session}" if one.session else ""
    through = f"via {one.source}" if one.source else ""
    tool = f"with {one.tool}" if one.tool and one.tool != one.source else ""
    return output.one_line(", ".join(filter(None, (who, session, through, tool))))


@verb("blame", text=_blame_text, key="fields")
@click.argument("id", metavar="ID|PATH", shell_complete=complete_ids)
@click.argument("field", required=False, default="", metavar="[FIELD]")
@click.option(
    "--as-of", "as_of", metavar="REV", default="HEAD", show_default=True, help="The version at this revision or date."
)
def blame(workspace: Workspace, id: str, field: str, as_of: str) -> tuple[LearnedFrom, ...]:
    """Show which commit brought each field of an item, when, and who wrote it: agent, session, interface and tool.

    Each element of a list counts by itself. With FIELD only that one and what is below it, such as content, tags or
    origin. Changes that are not committed yet are not shown.

    Examples:
        memfs team blame use-postgresql-for-transactions-7h2k9q
        memfs team blame use-postgresql title --as-of 2026-03-01
    """
    return tuple(workspace.teams.blame.fields(named(workspace, id) or id, field, as_of))


# -- bisect -------------------------------------------------------------------------------------------------------
_COLOURS = {"added": "green", "changed": "yellow", "removed": "red"}


def _bisect_text(found: BisectResult) -> output.Text:
    culprit, revision = found.culprit, found.culprit.revision
    head = f"{output.styled(revision.short, fg='yellow')} {output.styled(f'{revision.time:%Y-%m-%d}', dim=True)}"
    yield f"{output.styled('broken by', fg='red')} {head} {revision.author}: {output.one_line(revision.subject, 0)}"
    named = (("agent", culprit.agents), ("session", culprit.sessions), ("through", culprit.sources))
    if whose := ", ".join(f"{word} {' and '.join(values)}" for word, values in named if values):
        yield f"  {whose}"
    if unread := ", ".join(one[:_SHORT] for one in culprit.or_earlier[:5]):
        yield f"  or one of those before it that could not be read: {unread}"
    yield f"  {found.expect}"
    yield f"    before  {_listed(found.before)}"
    yield f"    after   {_listed(found.after)}"
    yield from (f"  {output.styled(f'{what:<7}', fg=_COLOURS[what])} {path}" for what, path in found.changes[:_SHOWN])
    if (more := len(found.changes) - _SHOWN) > 0:
        yield f"  and {output.count(more, 'more file')}"
    name = revision.short
    yield output.Note(f"'memfs diff {name}^ {name}' shows the change, 'memfs undo --commit {name}' takes it back")
    yield from map(output.Note, found.notes)


def _listed(ids: tuple[str, ...]) -> str:
    return ", ".join(ids[:5]) + (" ..." if len(ids) > 5 else "") if ids else "nothing"


@verb("bisect", text=_bisect_text)
@click.option("--good", required=True, metavar="REV", help="A commit, tag or date at which the expectation was met.")
@click.option("--bad", default="HEAD", show_default=True, metavar="REV", help="One at which it is no longer met.")
@click.option(
    "--expect",
    required=True,
    metavar="'QUERY => ID'",
    help="The item that a question brings; '=> !ID': must not bring.",
)
@click.option("-n", "--limit", type=click.IntRange(1, MOST), help="Among this many hits; 'recall.limit' by default.")
def bisect(workspace: Workspace, good: str, bad: str, expect: str, limit: int | None) -> BisectResult:
    """Find the commit that broke an answer, and say whose it is.

    Both ends are asked first; then the commits between them that changed the memory are searched by bisection, each
    with the full ranking as it was. Commits that cannot be read are skipped. Nothing is checked out or changed.

    Exit code 2: the expectation is not met at --good, or is met at --bad.

    Examples:
        memfs team bisect --good v1.0 --expect "which database => use-postgresql"
        memfs team bisect --good "3 weeks ago" --bad HEAD --expect "deploy => deploy-by-tag" --limit 3
        memfs team bisect --good HEAD~40 --expect "tabs or spaces => !use-tabs" --json
    """
    from memfs.team.bisect import Expectation

    expectation = Expectation.read(expect, Query(limit=limit or workspace.settings.recall.limit))
    return workspace.teams.bisect.find(expectation, good, bad)


# -- verify -------------------------------------------------------------------------------------------------------
_GOOD = "good"


@dataclass(frozen=True, slots=True)
class VerifiedRange:
    """Who signed the commits of a range.

    Attributes:
        range: the range as it was asked for.
        good: whether all of them are good.
        commits: the commits, newest first, or those that are not good.
    """

    range: str
    good: bool
    commits: tuple[CommitCheck, ...]


def _verify_text(checked: VerifiedRange) -> output.Text:
    for one in checked.commits:
        good = one.verdict == _GOOD
        verdict = output.styled(f"{one.verdict.value:<15}", fg="green" if good else "red", bold=not good)
        yield f"{output.styled(one.commit[:_SHORT], fg='yellow')}  {verdict}  {one.author}"
        yield f"    {output.one_line(one.subject, 100)}"
        if not good:
            yield f"    {one.reason}"


@verb("verify", text=_verify_text, exit_code=lambda found: not found.good)
@click.argument("range", required=False, default="HEAD", metavar="[RANGE]")
@click.option(
    "--allowed-signers",
    metavar="FILE",
    type=click.Path(),
    help="Who may sign, with which key; else the file that your git setting gpg.ssh.allowedSignersFile names.",
)
@click.option("--bad", is_flag=True, help="Print only those that are not good.")
def verify(workspace: Workspace, range: str, allowed_signers: str | None, bad: bool) -> VerifiedRange:
    """Check who signed the commits that changed the memory.

    RANGE is A..B, what B has and A has not, or one revision with all that came before it; HEAD by default. A commit is
    good when its author's key signed it, or the committer's for an agent that has none. Exit code 1: not all are good,
    or it is unknown.

    Examples:
        memfs team verify origin/main..HEAD
        memfs team verify --allowed-signers ~/team/allowed_signers
    """
    checked = workspace.teams.signatures.verify(range, allowed_signers)
    wrong = [one for one in checked if one.verdict != _GOOD]
    counts = f"{output.count(len(checked), 'commit')}, {f'{len(wrong)} not good' if wrong else 'all good'}"
    remark(counts if checked else "no commit there changes the memory")
    return VerifiedRange(range, not wrong, tuple(wrong if bad else checked))


# -- agents-md ----------------------------------------------------------------------------------------------------
_file = click.option(
    "--file", metavar="FILE", type=click.Path(dir_okay=False), help="By default AGENTS.md here, beside the code."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReport:
    """The block of a file.

    Attributes:
        file: the file.
        status: how it compares with what is agreed on.
        line: the line on which the block begins; null where it has none.
        done: what became of the file, where it was to be changed.
        text: all that the block is to say; "" where nothing is agreed on.
        tokens: about how many tokens that has.
        left_out: ids of what is not in it, as no person vouches for it.
        name: the file, from the folder of the code.
    """

    file: Path
    status: BlockStatus
    line: int | None
    done: BlockResult | None = field(default=None, metadata=output.OMIT)
    text: str
    tokens: int
    left_out: tuple[str, ...]
    name: str = field(metadata=output.TEXT_ONLY)


def _report(block: AgentsBlock, file: str | None, done: BlockResult | None = None) -> BlockReport:
    from memfs.model.item import count_tokens

    found = block.check(file)
    return BlockReport(
        file=found.path,
        status=found.status,
        line=found.line or None,
        done=done,
        text=found.expected,
        tokens=count_tokens(found.expected),
        left_out=tuple(one.id for one in block.left_out()),
        name=os.path.relpath(found.path, block.folder),
    )


# -- agents-md check ----------------------------------------------------------------------------------------------
def _block_text(found: BlockReport) -> output.Text:
    """What became of the block, or its state, and what to do about it."""
    state = found.done or found.status
    line = f":{found.line}" if found.line else ""
    yield f"{output.styled(state.value, fg='green')}  {found.name}{line}"
    if found.done is None and found.status.value != "current":
        force = " --force' overwrites the edit" if found.status.value == "edited" else "' brings it up to date"
        yield output.Note(f"'memfs team agents-md write{force}")
    elif found.done is not None and found.done.value in ("created", "written", "updated"):
        yield output.Note(f"about {output.count(found.tokens, 'token')}; commit the file yourself")
    if not found.text:
        yield output.Note("no convention is accepted yet; 'memfs team convention' lists the proposals")
    if found.done is not None and found.left_out:
        names = ", ".join(found.left_out[:5]) + (" and others" if len(found.left_out) > 5 else "")
        yield output.Note(f"left out, as no person vouches for it: {names}; 'memfs team convention accept ID' does")


@verb("check", text=_block_text, exit_code=lambda found: found.status.value != "current")
@_file
def _agents_md_check(workspace: Workspace, file: str | None) -> BlockReport:
    """Check that the block is up to date. Exit code 1: it is not.

    Examples:
        memfs team agents-md check
    """
    return _report(block_of(workspace), file)


# -- agents-md write ----------------------------------------------------------------------------------------------
@verb("write", text=_block_text)
@_file
@click.option("--force", is_flag=True, help="Even if somebody edited the block.")
def _agents_md_write(workspace: Workspace, file: str | None, force: bool) -> BlockReport:
    """Put the block into the file, or bring it up to date. Nothing outside the block is touched.

    Examples:
        memfs team agents-md write
        memfs team agents-md write --file CLAUDE.md
    """
    block = block_of(workspace)
    return _report(block, file, done=block.write(file, force=force))


agents_md = Actions(
    "agents-md",
    """Keep a block with the conventions that are agreed on in AGENTS.md, or another file agents read on their own.

    Only what a person wrote or reviewed goes in. memfs does not commit the file.
    """,
    _agents_md_check,
    _agents_md_write,
)


# -- access -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AccessReport:
    """What was handed out, and to whom.

    Attributes:
        served: the answers, newest first.
        total: how many there are without --limit.
        kept: whether it is written down at all (`served.log`).
    """

    served: tuple[AccessRecord, ...]
    total: int
    kept: bool


def _access_text(report: AccessReport) -> output.Text:
    for one in report.served:
        who = "".join(f", {word} {name}" for word, name in (("agent", one.agent), ("session", one.session)) if name)
        yield f"{one.time:%Y-%m-%d %H:%M:%S}  {one.way} through {one.door}{who}"
        yield f"  {', '.join(one.ids)}"
    kept = "" if report.kept else "; served.log is off: nothing more is recorded"
    yield output.Note(f"{output.count(report.total, 'answer')}{kept}")


@verb("access", text=_access_text)
@click.argument("id", required=False, metavar="[ID]", shell_complete=complete_ids)
@click.option("--agent", default="", metavar="NAME", help="Only what this agent was given.")
@click.option("--session", default="", metavar="NAME", help="Only what this session was given.")
@since
@click.option(
    "-n", "--limit", type=click.IntRange(1), default=50, show_default=True, help="At most this many, newest first."
)
def access(
    workspace: Workspace, id: str | None, agent: str, session: str, since: str | None, limit: int
) -> AccessReport:
    """Show which items were served, when, through which interface and to whom; with ID, only when that one was.

    The record is this machine's own, private and bounded: 'served.days' and 'served.megabytes' say how much is kept.

    Examples:
        memfs team access
        memfs team access use-postgresql-for-transactions-7h2k9q --since 7d
        memfs team access --agent coder --json
    """
    ids = [named(workspace, id) or id] if id else []
    log = workspace.usage.served
    rows = log.find(ids, agent=agent, session=session, since=moment("--since", since))
    remark(log.problem)
    return AccessReport(tuple(rows[:limit]), len(rows), workspace.settings.served.log)
