"""The verbs of ``memfs agent``: connect agents, and give them their memory."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs import private
from memfs.dataclass import dataclass, field, replace
from memfs.doors.claude_code import installer
from memfs.doors.claude_code.installer import project_folder
from memfs.doors.claude_code.settings_file import InstallScope, SettingsChange
from memfs.doors.cli.command import complete_ids, invocation, opened, options, remark, verb
from memfs.doors.cli.options import SOURCE, allow_secret_option, land, note_waiting, pair, reference, spoken
from memfs.doors.cli.output import OMIT, Block, Note, Text, count, merge, one_line, styled
from memfs.doors.cli.parser import Actions
from memfs.doors.cli.private import offer_to_join
from memfs.errors import MemfsError
from memfs.fs.workspace_location import find_workspace, is_workspace
from memfs.model.episode import Action, Episode, StateSnapshot
from memfs.model.ids import of_mount
from memfs.recall.conflict_notes import contradicted
from memfs.store.parts import FlushResult

if TYPE_CHECKING:
    from memfs.context.deliver import DeliveryResult
    from memfs.learning.consolidation import ConsolidationResult
    from memfs.model import MemoryItem
    from memfs.workspace import Workspace


# -- install ------------------------------------------------------------------------------------------------------
_DONE = {"created": "Created", "changed": "Changed", "deleted": "Deleted", "same": "Nothing to do in"}
_WOULD = _DONE | {"created": "Would create", "changed": "Would change", "deleted": "Would delete"}
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


_CLAUDE_CODE = "claude-code"


@dataclass(frozen=True, slots=True)
class Installation:
    """What was put into a program's settings, or taken out of them.

    Attributes:
        program: its name.
        change: where the settings are, and what became of them, or would; its fields are inlined.
        diff: the lines that would come and go, with `--dry-run`.
    """

    program: str
    change: SettingsChange = field(metadata=merge("file=path done"))
    diff: str = field(default="", metadata=OMIT)


def _scope(ctx: click.Context, parameter: click.Parameter, given: bool) -> None:
    if given and (other := ctx.params.setdefault("scope", parameter.name)) != parameter.name:
        raise click.UsageError(f"--{other} and --{parameter.name} exclude each other")


at_program = options(
    click.argument("program", type=click.Choice((_CLAUDE_CODE,)), metavar="PROGRAM"),
    click.option(
        "--project", is_flag=True, expose_value=False, callback=_scope, help="The project's settings (the default)."
    ),
    click.option(
        "--local", is_flag=True, expose_value=False, callback=_scope, help="Your own settings in this project."
    ),
    click.option(
        "--user", is_flag=True, expose_value=False, callback=_scope, help="Your own settings, for all your projects."
    ),
    click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing."),
)
"""Give a verb the options that name a program's settings."""


def changes(done: Installation, dry_run: bool) -> Text:
    """What became of the file, with the diff of what would."""
    lines = filter(None, done.diff.split("\n"))
    yield from (styled(line.rstrip("\r"), fg=_COLOURS.get(line[:1])) for line in lines)
    word = (_WOULD if dry_run else _DONE)[done.change.done.value]
    yield f"{styled(word, fg='green')} {shown(done.change.path)}"


@verb("install", text=changes)
@click.option(
    "--into",
    type=click.Choice(["private", "repository"]),
    default="private",
    help="Where sessions are kept: in each person's private memory (the default), or in the repository's.",
)
@at_program
def install(program: str, dry_run: bool, into: str, scope: str | None = None) -> Installation:
    """Put memfs's hooks into the settings of Claude Code, so that it remembers and is reminded by itself.

    PROGRAM is claude-code; for others there is the MCP server, 'memfs mcp'.

    What a person types and what the agent answers and does is recorded then, in that person's private memory of the
    project: a folder outside the repository that nobody else can read. 'memfs share' copies from there what others
    should see. With '--into repository' what sessions teach goes into the repository's memory instead, where all who
    can read the repository can read it; what quotes a person is suggested in that person's inbox instead.

    Other settings in the file stay what and where they are; installing again brings memfs's part up to date. No
    workspace is needed, and memfs does not commit the file. 'memfs status --private' shows what is kept,
    'memfs agent uninstall PROGRAM' turns it off.

    Examples:
        memfs agent install claude-code --dry-run
        memfs agent install claude-code
        memfs agent install claude-code --user
    """
    project, chosen = project_folder(invocation().workspace), InstallScope(scope or InstallScope.PROJECT)
    done = installer.install(chosen, project, into_repository=into == "repository", dry=dry_run)
    installed = not dry_run and done.done != "same"
    if installed or dry_run:  # what will be recorded, where, and who can read it
        remark("from the next session on, what you type and what the agent answers and does is recorded")
        if into == "repository":
            place = f"{shown(project)}/ContextMemory/"
            remark(f"what sessions teach is stored in {place}, readable by everyone with access to the repository")
            inbox = "it is suggested in the inbox, and you decide with 'memfs inbox'"
            remark(f"what quotes you stays on this machine: {inbox}")
        else:
            folder = private.find(private.project_at(project)) if chosen is not InstallScope.USER else None
            remark(f"it goes into your private memory: {folder or private.projects_folder()!s}")
            remark("nobody else can read it, and a repository gets nothing but what you copy with 'memfs share'")
            if chosen is InstallScope.PROJECT:
                remark("with these settings each person who works here has a private memory of their own")
        if not is_workspace(project):
            remark("'memfs init' makes the workspace that other commands ask for; sessions work without it")
    if installed:
        option = "" if chosen is InstallScope.PROJECT else f" --{chosen.value}"
        remark("in a session, /hooks lists the hooks")
        looks = "memfs status" if into == "repository" else "memfs status --private"
        remark(f"'{looks}' shows where and what it keeps; 'memfs agent uninstall claude-code{option}' turns it off")
    if not (dry_run or invocation().json or into == "repository" or chosen is InstallScope.USER):
        offer_to_join(private.project_at(project))
    return Installation(program, done, _diff(done) if dry_run else "")


def shown(path: Path) -> str:
    """A path as short as it can be written from here."""
    beside = os.path.relpath(path)
    return str(path) if beside.startswith("..") else beside


def _diff(one: SettingsChange) -> str:
    from difflib import unified_diff  # like what else only installing needs: other verbs of agents start sooner

    versions = (one.before, one.after)
    before, after = (shown(one.path) if data is not None else os.devnull for data in versions)
    old, new = ((data or b"").decode("utf-8", "replace").removesuffix("\n").split("\n") for data in versions)
    return "\n".join(unified_diff(old, new, before, after, lineterm=""))


# -- uninstall ----------------------------------------------------------------------------------------------------
@verb("uninstall", text=changes)
@at_program
def uninstall(program: str, dry_run: bool, scope: str | None = None) -> Installation:
    """Take memfs's hooks out of a program's settings again.

    Other settings stay what and where they are; a file that says nothing else goes. What was remembered stays.

    Examples:
        memfs agent uninstall claude-code --dry-run
        memfs agent uninstall claude-code --user
    """
    project = project_folder(invocation().workspace)
    done = installer.uninstall(InstallScope(scope or InstallScope.PROJECT), project, dry=dry_run)
    if not dry_run:
        from memfs.doors.resident.place import stop as end_resident

        with suppress(MemfsError):
            end_resident(find_workspace(project))  # a hook may have begun it
    return Installation(program, done, _diff(done) if dry_run else "")


# -- inject -------------------------------------------------------------------------------------------------------
situation = options(
    click.option("--file", "files", multiple=True, metavar="PATH", help="A file the work is about; may be repeated."),
    click.option("--agent", default="", metavar="NAME", help="The agent's name."),
    click.option("--session", default="", metavar="NAME", help="The session it works in."),
    click.option("--task", default="", metavar="NAME", help="The task it is working on."),
)
"""Give a verb the options that describe the situation an agent is in."""
max_tokens = click.option(
    "--max-tokens", type=click.IntRange(0, 10**7), metavar="N", help="Maximum tokens; 0: no limit."
)
"""Give a verb the option that says what room a prompt has."""


def delivered(workspace: Workspace, given: DeliveryResult, nothing: str) -> DeliveryResult:
    """What was put together, with what sources lack: trust, something to run, success; all that it lacks is remarked.

    Args:
        nothing: what to say where nothing is given.
    """
    problems = tuple(dict.fromkeys((*workspace.sources.plugins.problems(), *given.problems)))
    if given.left_out:
        remark(f"{count(given.left_out, 'entry', 'entries')} had no room; --max-tokens gives more")
    for problem in problems:
        remark(f"{problem.message}; {problem.hint}")
    if not given.texts and not given.left_out:
        repeated = f"everything that is remembered is in the agent's files already: {', '.join(given.repeated)}"
        remark(repeated if given.repeated else nothing)
    return replace(given, problems=problems)


def delivered_text(given: DeliveryResult) -> Text:
    """The text."""
    if given.texts:
        yield Block(given.text)


@verb("inject", text=delivered_text)
@click.argument("text", nargs=-1, metavar="[TEXT]...")
@situation
@max_tokens
def inject(text: tuple[str, ...], files: tuple[str, ...], max_tokens: int | None, **named: Any) -> DeliveryResult:
    """Print the memory to put into an agent's system prompt, as quoted data.

    TEXT says what the work is about, where that is known: preferences that fit it come first; '-' reads standard input.
    What CLAUDE.md or AGENTS.md says already is left out. Nothing is printed where there is nothing to
    say.

    Examples:
        memfs agent inject
        memfs agent inject --agent coder --max-tokens 600
        memfs agent inject --file src/auth.py "change the login" --json
    """
    state = StateSnapshot.create(files, spoken(text), **named)
    with opened() as workspace, redirect_stdout(sys.stderr):  # what a source of others prints is no context
        given = workspace.sources.delivery.automatic(state, max_tokens=max_tokens)
        if named["agent"]:
            land(workspace)  # that it was given feedback is recorded
        return delivered(workspace, given, "nothing is remembered that belongs in every prompt")


# -- warn ---------------------------------------------------------------------------------------------------------
@verb("warn", text=delivered_text)
@click.argument("text", nargs=-1, metavar="[TEXT]...")
@situation
@click.option("--tool", default="", metavar="NAME", help="The tool that is about to be used.")
@max_tokens
def warn(text: tuple[str, ...], files: tuple[str, ...], max_tokens: int | None, **named: Any) -> DeliveryResult:
    """Print what a situation brings to mind before a step: past failures like it, and rules learned from them.

    TEXT says what is about to be done; '-' reads standard input. Nothing is printed where nothing matches. What was
    printed is remembered: 'memfs agent episode record' with the same --file, --agent and --session writes it into the
    episode.

    Examples:
        memfs agent warn --file src/auth.py "change the login"
        memfs agent warn --tool bash "drop the staging database" --json
    """
    state = StateSnapshot.create(files, spoken(text), **named)
    if not (state.context.strip() or state.files or state.tool):
        raise click.UsageError("nothing to go by: say what is about to be done, or name a --file")
    with opened() as workspace, redirect_stdout(sys.stderr):  # what a source of others prints is no context
        given = workspace.sources.delivery.triggered(state, max_tokens=max_tokens)
        return delivered(workspace, given, "nothing is remembered of situations like this")


# -- episode ------------------------------------------------------------------------------------------------------
_REDACTED = "[redacted: "


# -- episode record -----------------------------------------------------------------------------------------------
@verb(
    "record", text=lambda done: [f"Recorded {styled(done.id, fg='green', bold=True)}  {done.outcome.value}"], lands=True
)
@click.argument("text", nargs=-1, metavar="[TEXT]...")
@click.option("--outcome", type=click.Choice(["success", "failure", "partial"]), required=True, help="How it ended.")
@situation
@click.option("--tool", default="", metavar="NAME", help="The tool that was used.")
@click.option("--about", default="", metavar="TEXT", help="What was about to be done; what was done by default.")
@click.option("--error", default="", metavar="TEXT", help="What went wrong; '-' reads standard input.")
@click.option(
    "--warned",
    multiple=True,
    metavar="ID",
    help="An item the agent was warned with, besides those that 'memfs agent warn' gave.",
)
def _episode_record(
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
    state = StateSnapshot.create(files, about or did, **named)
    with opened() as workspace:
        warnings = (*warned, *workspace.sources.warned.of(state))
        made = Episode.create(state, Action(named["tool"], did), outcome, error, warned=warnings)
        trust = "agent" if named["agent"] else "human"
        stored = workspace.sources.episodes.record(made, trust=trust, source=SOURCE)
        land(workspace, workspace.store.get(stored.id))
        for one in warned:
            if not of_mount(one) and workspace.store.get(one) is None:
                remark(f"--warned {one}: no memory has that id; kept as it was given")
    if _REDACTED in stored.error_message and _REDACTED not in error:
        remark("what looks like a secret in the error was blacked out")
    return stored


episode = Actions(
    "episode",
    "Record what an agent did, and how it ended.",
    _episode_record,
)


# -- correct ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class CorrectionReport:
    """What was kept of what a person said.

    Attributes:
        preferences: what agents are given from now on, as `show` has them.
    """

    preferences: tuple[MemoryItem, ...]


def _correct_text(done: CorrectionReport) -> Text:
    for item in done.preferences:
        yield f"{styled(item.id, fg='green', bold=True)}  {one_line(item.content, 100)}"
        for other in contradicted(item):
            yield f"  contradicts {other}: this one is given; 'memfs team conflicts' settles it"


@verb("correct", text=_correct_text, lands=True)
@click.argument("text", nargs=-1, required=True, metavar="TEXT...")
@click.option("--speaker", default="", metavar="NAME", help="Who says so.")
@click.option("--agent", default="", metavar="NAME", help="The agent it is said to.")
@click.option("--session", default="", metavar="NAME", help="The session it is said in.")
@click.option("--task", default="", metavar="NAME", help="The task it is said at.")
@click.option("--context", multiple=True, metavar="KEY=VALUE", help="A context in which it holds; may be repeated.")
@allow_secret_option
def correct(workspace: Workspace, text: tuple[str, ...], context: tuple[str, ...], **known: str) -> CorrectionReport:
    """Keep what a person corrects or prefers; agents are given it from then on.

    Each sentence of TEXT that corrects or prefers becomes a preference of trust 'human', or else TEXT as a whole. It is
    merged with earlier statements, and what it contradicts is linked. '-' reads standard input.

    Examples:
        memfs agent correct "Don't use print for logging"
        memfs agent correct "No, always run the tests with -x" --speaker Ada --session s42
    """
    circumstances = dict(pair(written) for written in context)
    items = workspace.sources.preferences.record(spoken(text), context=circumstances, source=SOURCE, **known)
    land(workspace, items[-1])
    return CorrectionReport(tuple(items))


# -- feedback -----------------------------------------------------------------------------------------------------
_SIGNALS = {"+": True, "good": True, "yes": True, "-": False, "bad": False, "no": False}


@dataclass(frozen=True, slots=True)
class FeedbackReport:
    """What a signal changed.

    Attributes:
        id: of the item.
        importance: what it counts for now.
        before: what it counted for.
        due: whether a bad signal made it weak enough to be pruned.
    """

    id: str
    importance: float
    before: float
    due: bool


def _feedback_text(done: FeedbackReport) -> Text:
    yield f"{styled(done.id, fg='green', bold=True)}  importance {done.before:g} -> {done.importance:g}"
    if done.due:
        yield Note("it is weak enough to be pruned; 'memfs admin prune --dry-run' lists what is due")


@verb("feedback", text=_feedback_text, lands=True)
@click.argument("id", metavar="ID", shell_complete=complete_ids)
@click.argument("signal", metavar="good|bad", type=click.Choice(list(_SIGNALS)))
@click.option("--reason", default="", help="Why, for the history.")
def feedback(workspace: Workspace, id: str, signal: str, reason: str) -> FeedbackReport:
    """Say whether an item helped (good, yes, +) or did not (bad, no, -).

    Its importance changes, in its file, and with it its place in answers.

    Examples:
        memfs agent feedback use-postgresql-for-transactions-7h2k9q good
        memfs agent feedback old-decision-4k8m2p bad --reason "it misled the migration"
    """
    helped = _SIGNALS[signal]
    before = workspace.store.find(reference(workspace, id))
    item = workspace.feedback.give(before.id, helped, reason, source=SOURCE)
    land(workspace, item)
    due = not helped and any(weak.item.id == item.id for weak in workspace.pruner.due())
    return FeedbackReport(item.id, item.importance, before.importance, due)


# -- consolidate --------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ConsolidatedSession:
    """What became of a session's working memory.

    Attributes:
        done: of which these fields are inlined.
        revision: the commit of all that; null where there is none.
    """

    done: ConsolidationResult = field(metadata=merge("session read cleared pinned left promoted"))
    revision: str | None


def _consolidated_text(ended: ConsolidatedSession) -> Text:
    done = ended.done
    if not done.read:
        yield f"The session {done.session} has no working memory"
        return
    kept = f"{len(done.promoted):,} kept, {len(done.cleared):,} cleared"
    yield f"{count(done.read, 'working memory', 'working memories')} of {done.session}: {kept}"
    yield from (f"  {one.item.id}  {one_line(one.item.content, 100)}" for one in done.promoted)
    yield from (f"  {name} is pinned, and stays" for name in done.pinned)
    yield from (f"  {name} stays: {reason}" for name, reason in done.left.items())


@verb("consolidate", text=_consolidated_text)
@click.option("--session", required=True, metavar="NAME", help="Which session ended.")
def consolidate(workspace: Workspace, session: str) -> ConsolidatedSession:
    """End a session: keep what matters of its working memory as knowledge, and clear the rest, in one commit.

    Kept are decisions, lessons and outcomes, what is important or was recalled often, what was said repeatedly, and
    what several have in common. Pinned items are not touched. Pending changes are committed first; the command that
    undoes it all is printed. With history.commit = "manual" nothing is committed.

    Examples:
        memfs agent consolidate --session 2026-03-01-morning
    """
    commits = not workspace.store.by_hand
    if commits:
        workspace.store.flush(adopt=False)  # else the commit would hold more than can be taken back together
    done = workspace.consolidation.run(session)
    flushed = workspace.store.flush(adopt=False) if done.cleared and commits else FlushResult()
    note_waiting(flushed.reason)
    revision = flushed.commits[-1] if flushed.commits else None
    remark(f"'memfs undo --commit {revision[:12]}' takes it back" if revision else "")
    return ConsolidatedSession(done, revision)
