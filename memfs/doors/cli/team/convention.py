"""Show what the team agreed on, decide about it, and share it with other workspaces."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import Unclear, complete_ids, opened, remark, verb
from memfs.doors.cli.filters import as_of, past_at
from memfs.doors.cli.options import SOURCE, land
from memfs.doors.cli.output import OMIT, TEXT_ONLY, Note, Table, Text, count, one_line, styled
from memfs.doors.cli.parser import Actions
from memfs.doors.cli.streams import read_named, write
from memfs.model.item import VOUCHED

if TYPE_CHECKING:
    from memfs.intake.import_service import ImportResult
    from memfs.learning.conventions import Convention
    from memfs.workspace import Workspace

_STATUSES = ("accepted", "proposed", "retired")

_status = click.option(
    "--status", "statuses", multiple=True, type=click.Choice(_STATUSES), help="Only these; may be repeated."
)
_reason = click.option("--reason", metavar="TEXT", default="", help="Why, for the commit.")


# -- list ---------------------------------------------------------------------------------------------------------
def _row(one: Convention) -> tuple[str, ...]:
    held = one.status == "accepted" and one.trust not in VOUCHED
    coming = bool(one.supersedes) and one.status == "proposed"
    remarks = (
        f"trust {one.trust}, not told to agents" if held else "",
        f"to replace {', '.join(one.supersedes)}" if coming else "",
    )
    where, told = ", ".join(one.scope) or "everywhere", "; ".join(filter(None, remarks))
    return one.status or "no status", where, one.owner, one.id, told, one_line(str(one))


def _list_text(found: tuple[Convention, ...]) -> Text:
    yield Table([_row(one) for one in found], dim=(1,))
    number = len(found)
    yield Note(count(number, "convention") + ("" if number else "; memfs team convention propose 'TEXT' makes one"))
    if any(one.status in ("", "proposed") for one in found):
        yield Note("only those that are accepted hold; 'memfs team convention accept ID' decides")


@verb("list", text=_list_text, key="conventions")
@_status
@click.option("--file", "files", multiple=True, metavar="PATH", help="Those that hold for this file.")
@as_of
def _list(
    workspace: Workspace, statuses: tuple[str, ...], files: tuple[str, ...], as_of: str | None
) -> tuple[Convention, ...]:
    """Show all of them, whatever their status.

    Examples:
        memfs team convention
        memfs team convention list --file src/api/login.py
    """
    workspace.repository.require_readable()
    past = past_at(workspace, as_of)
    every = (workspace.sources.conventions if past is None else past.conventions).every()
    found = [one for one in every if (not statuses or one.status in statuses) and one.holds_for(files)]
    return tuple(found)


# -- propose, accept, retire --------------------------------------------------------------------------------------
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
    path: str = field(default="", metadata=OMIT)
    lines: tuple[tuple[str, str], ...] = field(default=(), metadata=TEXT_ONLY)


def _decision_text(done: ConventionDecision) -> Text:
    return (f"{styled(status, fg='green')} {name}" for status, name in done.lines)


def _decide(ids: tuple[str, ...], status: str, reason: str) -> ConventionDecision:
    with opened() as workspace:
        changed = workspace.sources.agreements.decide(ids, status, reason, SOURCE)
        if changed:
            land(workspace)
        remark("" if changed else f"all of them are {status} already")
        if changed and status == "accepted" and "conventions" not in workspace.settings.memory.automatic:
            remark("agents are told by 'memfs team agents-md write', or with \"conventions\" in memory.automatic")
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
def _propose(names: tuple[str, ...], reason: str, **said: Any) -> ConventionDecision:
    """Write a convention down that reaches no agent yet.

    TEXT is in quotes; the ID of one that was accepted takes the acceptance back.

    Examples:
        memfs team convention propose 'Columns hold UTC with an explicit Z.' --title 'Times are UTC' --scope 'src/**'
    """
    if len(names) > 1 or not any(letter.isspace() for letter in names[0].strip()):  # an id has no blanks
        if given := [name for name, value in said.items() if value]:
            raise Unclear(f"--{given[0]} describes a new convention", "give its text, in quotes")
        return _decide(names, "proposed", reason)
    with opened() as workspace:
        made = workspace.sources.agreements.propose(names[0], **said, reason=reason, source=SOURCE)
        land(workspace)
    remark(f"no agent is told of it until 'memfs team convention accept {made.id}'")
    return ConventionDecision("proposed", (made.id,), made.item.path, (("proposed", made.id),))


@verb("accept", text=_decision_text)
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=complete_ids)
@_reason
def _accept(ids: tuple[str, ...], reason: str) -> ConventionDecision:
    """Let it reach agents, and retire what it supersedes.

    Examples:
        memfs team convention accept times-are-utc --reason 'team meeting of 3 March'
    """
    return _decide(ids, "accepted", reason)


@verb("retire", text=_decision_text)
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=complete_ids)
@_reason
def _retire(ids: tuple[str, ...], reason: str) -> ConventionDecision:
    """End it.

    Examples:
        memfs team convention retire tabs-not-spaces
    """
    return _decide(ids, "retired", reason)


# -- export -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ConventionExport:
    """What was written for other workspaces.

    Attributes:
        file: the file.
        workspace: what they call this one.
        conventions: their ids.
        bytes: how long the file is.
    """

    file: str
    workspace: str
    conventions: tuple[str, ...]
    bytes: int


def _export_text(done: ConventionExport) -> Text:
    number = count(len(done.conventions), "convention")
    yield f"{styled('Exported', fg='green')} {number} of {done.workspace} to {done.file}"


@verb("export", text=_export_text)
@click.argument("file", metavar="FILE")
@_status
@click.option("--id", "ids", multiple=True, metavar="ID", help="This one instead; may be repeated.")
@click.option(
    "--name", metavar="NAME", default="", help="What other workspaces call this one; its folder's name by default."
)
@click.option("--replace", is_flag=True, help="Write over a file that is there.")
def _export(
    file: str, statuses: tuple[str, ...], ids: tuple[str, ...], name: str, replace: bool
) -> ConventionExport | None:
    """Write what is accepted into one readable file; '-' prints it.

    Examples:
        memfs team convention export team-conventions.yaml
    """
    if ids and statuses:
        raise Unclear("--id and --status exclude each other", "give one of them")
    from memfs.state.export import out_file

    with opened() as workspace:
        workspace.repository.require_readable()
        sharing = workspace.sources.sharing
        shared = sharing.export(statuses or ("accepted",), ids, name)
        data = sharing.encode(shared, file)
        if file == "-":
            write(data)
            return None
        with out_file(workspace.root, Path(file), replace) as target:
            target.write(data)
    found = tuple(one.id for one in shared.conventions)
    return ConventionExport(file, shared.workspace, found, len(data))


# -- import -------------------------------------------------------------------------------------------------------
def _import_text(done: tuple[ImportResult, ...], dry_run: bool) -> Text:
    yield Table([(f"  {one.became}", one.id or one.arrival.key, one.reason) for one in done if one.became != "same"])
    counts = Counter(one.became for one in done)
    told = ", ".join(f"{number} {word}" for word, number in counts.items()) or "nothing"
    yield f"{'Would import' if dry_run else 'Imported'}: {told}"


@verb(
    "import", text=_import_text, key="conventions", exit_code=lambda done: any(one.became == "refused" for one in done)
)
@click.argument("file", metavar="FILE")
@click.option("--accepted", is_flag=True, help="What they accepted is accepted here, too.")
@click.option("--replace", is_flag=True, help="Where both sides changed one, theirs replaces ours.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
def _import(workspace: Workspace, file: str, accepted: bool, replace: bool, dry_run: bool) -> tuple[ImportResult, ...]:
    """Take in a file that another workspace exported, as one commit.

    What is new comes in as 'proposed', what nobody changed here is updated, and where both sides changed one, ours
    stays without --replace. Importing again changes nothing.

    Exit code 1: something was refused.

    Examples:
        memfs team convention import ../platform/team-conventions.yaml --dry-run
    """
    from memfs.learning.convention_exchange import LARGEST  # --help does without it

    name = "standard input" if file == "-" else file
    data = read_named(file, LARGEST + 1)
    done = workspace.sources.sharing.take_in(data, name, accepted=accepted, replace=replace, dry_run=dry_run)
    if not dry_run:
        land(workspace)
    if not accepted and any(one.became in ("stored", "updated") for one in done):
        remark("what comes in is proposed; 'memfs team convention accept ID' makes it one of yours")
    return tuple(done)


convention = Actions("convention", __doc__, _list, _propose, _accept, _retire, _export, _import)
