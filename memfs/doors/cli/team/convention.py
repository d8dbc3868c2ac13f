"""``convention``: show, decide about, export and import what the team agreed on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import complete_ids, opened, verb
from memfs.doors.cli.commit_report import SOURCE, land
from memfs.doors.cli.filters import as_of, as_of_json, note_past, past_at
from memfs.doors.cli.output import clean, count, note, one_line, print_json, print_raw, print_table, styled
from memfs.doors.cli.streams import read_input
from memfs.errors import StorageIO
from memfs.model.item import VOUCHED

if TYPE_CHECKING:
    from memfs.learning.convention_exchange import ConventionExchange, Import
    from memfs.learning.conventions import Convention
    from memfs.workspace import Workspace

_STATUSES = ("accepted", "proposed", "retired")
_DECIDING = {"propose": "proposed", "accept": "accepted", "retire": "retired"}
_DESCRIBING = ("--title", "--owner", "--scope", "--supersedes", "--rationale")
_ACTIONS = ("list", *_DECIDING, "export", "import")
_GIVEN = {
    "list": {"--status", "--file", "--as-of"},
    **{action: {"--reason"} for action in _DECIDING},
    "propose": {"--reason", "--id", *_DESCRIBING},
    "export": {"--status", "--id", "--name", "--replace"},
    "import": {"--name", "--accepted", "--keep", "--take", "--dry-run"},
}


@verb(
    "convention",
    example="memfs team convention\nmemfs team convention list --file src/api/login.py\n"
    "memfs team convention propose 'Columns hold UTC with an explicit Z.' --title 'Times are UTC' --scope 'src/**'\n"
    "memfs team convention accept times-are-utc --reason 'team meeting of 3 March'\n"
    "memfs team convention export team-conventions.yaml\n"
    "memfs team convention import ../platform/team-conventions.yaml --dry-run",
)
@click.argument("action", required=False, default="list", type=click.Choice(_ACTIONS))
@click.argument("names", nargs=-1, metavar="[TEXT | ID... | FILE]", shell_complete=complete_ids)
@click.option("--status", "statuses", multiple=True, type=click.Choice(_STATUSES), help="Only these; may be repeated.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="With list: those that hold for this file.")
@click.option("--title", metavar="TEXT", help="With propose: a short name.")
@click.option("--owner", metavar="NAME", help="With propose: the person or team to ask.")
@click.option("--scope", multiple=True, metavar="GLOB", help="With propose: files it holds for; may be repeated.")
@click.option("--supersedes", multiple=True, metavar="ID", help="With propose: what it replaces; may be repeated.")
@click.option("--rationale", metavar="TEXT", help="With propose: why.")
@click.option(
    "--id",
    "ids",
    multiple=True,
    metavar="ID",
    help="With propose: the id it is to have. With export: this one; may be repeated.",
)
@click.option("--name", metavar="NAME", help="What other workspaces call this one; its folder's name by default.")
@click.option("--replace", is_flag=True, help="With export: write over a file that is there.")
@click.option("--accepted", is_flag=True, help="With import: what they accepted is accepted here, too.")
@click.option("--keep", is_flag=True, help="With import: where both sides changed one, ours stays.")
@click.option("--take", is_flag=True, help="With import: where both sides changed one, theirs replaces ours.")
@click.option("--dry-run", is_flag=True, help="With import: only say what would be done.")
@click.option("--reason", metavar="TEXT", help="With propose, accept, retire: why, for the commit.")
@as_of
@click.pass_context
def convention(ctx: click.Context, /, action: str, names: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Show what the team agreed on, decide about it, and share it with other workspaces.

    'list' shows all. 'propose TEXT' writes one down that reaches no agent yet, 'accept ID' lets it and retires what it
    supersedes, 'retire ID' ends it; 'propose ID' takes an acceptance back. 'export FILE' writes what is accepted into
    one readable file ('-' prints it); 'import FILE' takes such a file in as one commit: what is new comes in as
    'proposed', what nobody changed here is updated, and where both sides changed one, nothing is imported without
    --keep or --take.
    Importing again changes nothing.
    """
    _check(ctx, action, names, options)
    with opened(ctx) as workspace:
        if action in ("list", "export"):
            workspace.repository.require_readable()
        if action == "list":
            _list(workspace, options["statuses"], options["files"], options["as_of"], as_json)
        elif action == "export":
            _export(workspace, names[0], options, as_json)
        elif action == "import":
            _import(workspace, names[0], options, as_json)
        elif action == "propose" and _is_text(names):
            _propose(workspace, names[0], options, as_json)
        else:
            _decide(workspace, names, _DECIDING[action], options["reason"] or "", as_json)


def _check(ctx: click.Context, action: str, names: tuple[str, ...], options: dict[str, Any]) -> None:
    words = {"statuses": "--status", "files": "--file", "ids": "--id", "dry_run": "--dry-run", "as_of": "--as-of"}
    for name, value in options.items():
        word = words.get(name, f"--{name}")
        if value and word not in _GIVEN[action]:
            raise click.UsageError(f"'{action}' takes no {word}", ctx)
    wanted: dict[str, tuple[Callable[[int], bool], str]] = {
        "list": (lambda number: number == 0, "no names"),
        "export": (lambda number: number == 1, "one FILE"),
        "import": (lambda number: number == 1, "one FILE"),
        "propose": (lambda number: number > 0, "a TEXT in quotes, or one ID or more"),
    }
    fits, told = wanted.get(action, (lambda number: number > 0, "one ID or more"))
    if not fits(len(names)):
        raise click.UsageError(f"'{action}' takes {told}", ctx)
    if action == "propose":
        _check_proposal(ctx, names, options)
    if options["keep"] and options["take"]:
        raise click.UsageError("--keep and --take exclude each other", ctx)
    if options["ids"] and options["statuses"]:
        raise click.UsageError("--id and --status exclude each other", ctx)


def _check_proposal(ctx: click.Context, names: tuple[str, ...], options: dict[str, Any]) -> None:
    given = [word for word in (*_DESCRIBING, "--id") if options["ids" if word == "--id" else word.removeprefix("--")]]
    if given and not _is_text(names):
        raise click.UsageError(f"{given[0]} describes a new convention: give its text, in quotes", ctx)
    if len(options["ids"]) > 1:
        raise click.UsageError("a convention has one --id", ctx)


# -- list and decide ----------------------------------------------------------------------------------------------
def _list(
    workspace: Workspace, statuses: tuple[str, ...], files: tuple[str, ...], as_of: str | None, as_json: bool
) -> None:
    past = past_at(workspace, as_of) if as_of is not None else None
    found = [
        one
        for one in (workspace.sources.conventions if past is None else past.conventions).every()
        if (not statuses or one.status in statuses) and one.holds_for(files)
    ]
    if as_json:
        print_json({"conventions": [_json(one) for one in found], **as_of_json(past)})
        return
    print_table([_row(one) for one in found], dim=(1,))
    note_past(past)
    note(count(len(found), "convention") + ("" if found else "; memfs team convention propose 'TEXT' makes one"))
    if any(one.status in ("", "proposed") for one in found):
        note("only those that are accepted hold; 'memfs team convention accept ID' decides")


def _row(one: Convention) -> tuple[str, ...]:
    held = one.status == "accepted" and one.trust not in VOUCHED
    remarks = (f"trust {one.trust}, not told to agents" if held else "", _replacing(one))
    where = ", ".join(one.scope) or "everywhere"
    told = "; ".join(filter(None, remarks))
    return one.status or "no status", where, one.owner, one.id, told, one_line(str(one), 0)


def _replacing(one: Convention) -> str:
    """What it takes the place of, as long as that is still to come."""
    return f"to replace {', '.join(one.supersedes)}" if one.supersedes and one.status == "proposed" else ""


def _json(one: Convention) -> dict[str, Any]:
    return {
        "id": one.id,
        "status": one.status,
        "title": one.title,
        "content": one.item.content,
        "owner": one.owner,
        "scope": list(one.scope),
        "supersedes": list(one.supersedes),
        "trust": one.trust,
        "pinned": one.item.pinned,
        "path": one.item.path,
        "sha256": one.item.sha256,
    }


def _is_text(names: tuple[str, ...]) -> bool:
    """Whether what was written on the command line is a convention's text: an id has no blanks."""
    return len(names) == 1 and any(letter.isspace() for letter in names[0].strip())


def _propose(workspace: Workspace, text: str, options: dict[str, Any], as_json: bool) -> None:
    from memfs.learning.conventions import Proposal

    said = {name: options[name] or "" for name in ("title", "owner", "rationale")}
    name = options["ids"][0] if options["ids"] else ""
    proposal = Proposal(text=text, id=name, scope=options["scope"], supersedes=options["supersedes"], **said)
    made = workspace.sources.agreements.propose(proposal, options["reason"] or "", SOURCE)
    landed = land(workspace, made.item)
    if as_json:
        print_json({"status": "proposed", "changed": [made.id], "path": made.item.path, **landed.json()})
        return
    print_raw(f"{styled('proposed', fg='green')} {clean(made.id)}")
    note(f"no agent is told of it until 'memfs team convention accept {clean(made.id)}'")
    if landed.reason:
        note(f"stored; its commit waits: {landed.reason}")


def _decide(workspace: Workspace, names: tuple[str, ...], status: str, reason: str, as_json: bool) -> None:
    changed = workspace.sources.agreements.decide(names, status, reason, SOURCE)
    waits = land(workspace, None).reason if changed else ""
    if as_json:
        print_json({"status": status, "changed": [one.id for one in changed]})
        return
    for one in changed:
        print_raw(f"{styled(one.status, fg='green')} {clean(one.id)}")
    if not changed:
        note(f"all of them are {status} already")
    elif status == "accepted" and "conventions" not in workspace.settings.memory.automatic:
        note("agents are told by 'memfs team agents-md write', or with \"conventions\" in memory.automatic")
    if waits:
        note(f"stored; its commit waits: {waits}")


# -- export and import --------------------------------------------------------------------------------------------
def _sharing(workspace: Workspace, options: dict[str, Any]) -> ConventionExchange:
    sharing = workspace.sources.sharing
    return sharing.named(options["name"]) if options["name"] else sharing


def _export(workspace: Workspace, file: str, options: dict[str, Any], as_json: bool) -> None:
    from memfs.state.export import out_file

    sharing = _sharing(workspace, options)
    shared = sharing.export(options["statuses"] or ("accepted",), options["ids"])
    data = sharing.encode(shared, file)
    if file == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with out_file(workspace.root, Path(file), options["replace"]) as target:
        target.write(data)
    ids = [one.id for one in shared.conventions]
    if as_json:
        facts = {"file": file, "workspace": shared.workspace, "revision": shared.revision or None}
        print_json({**facts, "conventions": ids, "bytes": len(data)})
        return
    print_raw(
        f"{styled('Exported', fg='green')} {count(len(ids), 'convention')} of {clean(shared.workspace)} to {file}"
    )


def _import(workspace: Workspace, file: str, options: dict[str, Any], as_json: bool) -> None:
    chosen = "keep" if options["keep"] else "take" if options["take"] else ""
    done = _sharing(workspace, options).take_in(
        _read(file),
        "standard input" if file == "-" else file,
        accepted=options["accepted"],
        on_conflict=chosen,
        dry_run=options["dry_run"],
        source=SOURCE,
    )
    waits = "" if done.dry_run else land(workspace, None).reason
    if as_json:
        print_json(_import_json(done))
        return
    _tell(done)
    if waits:
        note(f"stored; its commit waits: {waits}")


def _read(file: str) -> bytes:
    from memfs.learning.convention_exchange import LARGEST

    if file == "-":
        return read_input()
    try:
        with Path(file).open("rb") as stream:  # a person names it, so links are followed
            return stream.read(LARGEST + 1)
    except OSError as error:
        raise StorageIO(f"cannot be read: {error.strerror}", path=file, hint="name a file") from error


def _tell(done: Import) -> None:
    rows = [(one.outcome, one.id, one.reason) for one in done.taken if one.outcome != "same"]
    print_table([(f"  {outcome}", name, reason) for outcome, name, reason in rows])
    counts = {word: len(done.of(word)) for word in ("new", "updated", "kept", "conflict", "retired", "same")}
    told = ", ".join(f"{number} {word}" for word, number in counts.items() if number) or "nothing"
    print_raw(f"{'Would import' if done.dry_run else 'Imported'} from {clean(done.workspace)}: {told}")
    proposed = [one for one in done.taken if one.item is not None and one.item.status == "proposed"]
    if proposed and not done.dry_run:
        note("what came in is proposed; 'memfs team convention accept ID' makes it one of yours")


def _import_json(done: Import) -> dict[str, Any]:
    return {
        "workspace": done.workspace,
        "revision": done.revision or None,
        "dry_run": done.dry_run,
        "conventions": [
            {"id": one.id, "there": one.there, "outcome": one.outcome, "reason": one.reason} for one in done.taken
        ],
    }
