"""What verbs share that handle items: options that choose items, points in time and revisions, names by id or path,
``--allow-secret REASON``, and the commit at the end.

A text with a secret that no reason allows is refused before it is written.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from memfs import errors, private
from memfs.config_names import SETTINGS_FILE
from memfs.dataclass import dataclass
from memfs.doors.cli import output
from memfs.doors.cli.command import Unclear, complete_types, invocation, options, remark
from memfs.doors.cli.declare import click
from memfs.fs.workspace_location import code_of, named_workspace
from memfs.model import Layer, Phase, Query
from memfs.model.ids import of_mount, stem_of, without_mount
from memfs.model.query import moment
from memfs.startup import TYPE_CHECKING, Any
from memfs.store.parts import CONTENT, ITEM_SUFFIXES

if TYPE_CHECKING:
    from typing import overload

    from memfs.context.agents_md import AgentsBlock
    from memfs.model import MemoryItem
    from memfs.state.parts import States
    from memfs.team.asof import Past
    from memfs.workspace import Workspace


def _reason(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str:
    if value is not None and not value.strip():
        raise click.BadParameter("say why the secret may stay", ctx, parameter)
    if value is not None and value.startswith("--"):
        message = f"{value} was taken for the reason; say why the secret may stay, in quotes, before the next option"
        raise click.BadParameter(message, ctx, parameter)
    return (value or "").strip()


allow_secret_option = click.option(
    "--allow-secret",
    metavar="REASON",
    callback=_reason,
    help="Accept what looks like a key or password; the reason is kept in the item and in the commit.",
)


def allow_in(workspace: Workspace, paths: Collection[str], reason: str) -> None:
    """Write the reason into those of the files that are items and need one; an invalid file stays as it is.

    Raises:
        SecretDetected, ContentError: the reason is none.
    """
    if not reason:
        return
    from memfs.format.secrets import check_reason
    from memfs.store.write import allow_in_file

    check_reason(reason)
    for path in paths:
        if workspace.store.index_sync.is_item(path):
            with suppress(errors.ContentError, FileNotFoundError):
                allow_in_file(workspace.parts, path, reason)
    workspace.store.refresh(paths)


def confirm_rewrite(question: str, plan: output.Text) -> None:
    """Show what a rewrite of history would do, and ask.

    Raises:
        EraseRefused: there is no one to ask.
        Abort: the answer is no.
    """
    if invocation().json or not output.is_interactive():
        hint = "look at --dry-run first, then repeat it with --yes"
        raise errors.EraseRefused("this rewrites history and cannot be undone", hint=hint)
    output.render(None, plan, json=False)
    click.confirm(question, abort=True, err=True)


def remark_likely(item: MemoryItem) -> None:
    """Remark that a stored text may hold a key that no rule knows."""
    from memfs.format.secrets import find_likely, reason_in

    found = [] if reason_in(item.metadata) else find_likely(f"{item.title}\n{item.content}")
    if found:
        remark(f"line {max(found[0].line - 1, 1)} holds a long word without any order; if it is a key, take it out:")
        remark(f"memfs forget {item.id}")


def reference(workspace: Workspace, written: str) -> str:
    """What a person means by an id or a path: an id stays as it is, a path becomes one from the workspace's folder.

    Raises:
        PathEscape: the path leads out of the workspace.
    """
    if is_path(written):
        return place(workspace, written)
    below = _below(workspace.root, os.path.join(os.getcwd(), written)) if written else None
    is_here = below is not None and os.path.lexists(workspace.root / below)  # in the current folder, by this name
    return place(workspace, written) if is_here and not workspace.store.locate(written) else written


def item_named(workspace: Workspace, written: str) -> MemoryItem:
    """The item that a person means by an id or a path.

    Raises:
        ItemNotFound, ContentError: there is none, or its file is invalid; the hint says what brings it back.
        Unclear: it is a folder, or a file whose id another one has.
    """
    name = reference(workspace, written)
    if is_path(name) and (workspace.root / name).is_dir():
        hint = f"'{invocation().command} ID' takes one memory; 'memfs list --path {written}' lists those in the folder"
        raise Unclear(f"{written} is a folder", hint)
    _refuse_private(written)
    workspace.store.look()
    item = item_found(workspace, name)
    hint = "rename this file, or remove it"
    for twin in workspace.store.problems():
        if twin.code == "DuplicateId" and stem_of(twin.path).casefold() == item.id.casefold():
            if twin.path == item.path:
                raise Unclear(f"{twin.path}: {twin.message}", hint)
            remark(f"{twin.path}: {twin.message}", hint)
    return item


def item_found(workspace: Workspace, name: str) -> MemoryItem:
    """The item of an id or a path as the store knows it.

    Raises:
        ItemNotFound, ContentError: as ``item_named``.
    """
    try:
        return workspace.store.find(name)
    except errors.ItemNotFound as error:
        error.hint = _way_back(workspace, name) or error.hint
        raise


def _way_back(workspace: Workspace, target: str) -> str:
    """What brings back an item that was pruned or forgotten; "" where it is there, or no commit holds it."""
    with suppress(errors.MemfsError):
        if (pruned := workspace.pruner.pruned.find(target)) is not None:
            return f"it was pruned into {pruned.path}: 'memfs restore {pruned.id}' brings it back"
        if last_held(workspace, target):
            return f"it was forgotten: 'memfs restore {named(workspace, target)}' brings it back"
    return ""


def last_held(workspace: Workspace, target: str) -> str | None:
    """The newest revision that holds an item which is gone; None where it is there.

    Raises:
        ItemNotFound: no commit ever had it.
    """
    name = str(named(workspace, target))
    found = [] if workspace.history.holds(name) else workspace.history.log(name, 1)
    for revision in (end for one in found for end in (one.short, f"{one.short}~1")):
        with suppress(errors.HistoryUnavailable):
            workspace.history.content(revision, name)
            return revision
    return None


def _refuse_private(written: str) -> None:
    """Say where a private memory is changed.

    Raises:
        ItemNotFound: it is the name of one.
    """
    if of_mount(written) == private.NAME:
        hint = f'memfs -C "$(memfs status --private)" {invocation().command.partition(" ")[2]} {without_mount(written)}'
        raise errors.ItemNotFound(f"{written!r} is in your private memory, a separate workspace", hint=hint)


def named(workspace: Workspace, target: str | None, revision: str = "") -> str | None:
    """The id that the beginning of one means, or the path that one means; what is unreadable stays.

    Of what is gone, the id at a revision, or in the history.

    Raises:
        ItemNotFound: the beginning of several.
    """
    if target is None:
        return None
    named = reference(workspace, target)
    if named != target or is_path(named):
        return named
    try:
        return workspace.store.find(target).id
    except errors.ContentError:
        return target
    except errors.ItemNotFound:
        _refuse_private(target)
        return workspace.history.begun(target, revision)


def place(workspace: Workspace, written: str) -> str:
    """The path from the workspace's folder that a written path means, whether a file or a folder.

    Raises:
        PathEscape: the path leads out of the workspace.
    """
    root, plain = workspace.root, written.replace("\\", "/")
    whole = os.path.normpath(plain).partition("/")[0] in (CONTENT, SETTINGS_FILE)
    bases = (os.getcwd(), str(root), *(() if whole else (str(root / CONTENT),)))
    tried = bases[:1] if os.path.isabs(plain) else bases
    below = (_below(root, os.path.join(base, plain)) for base in tried)  # only what belongs to the memory
    candidates = list(dict.fromkeys(filter(None, below)))
    if not candidates:
        hint = f"name a file below {root / CONTENT}, or another workspace with -C"
        raise errors.PathEscape("the path leads out of the memory of this workspace", path=written, hint=hint)
    there = next((path for path in candidates if os.path.lexists(root / path)), "")
    return there or next((path for path in candidates[:-1] if workspace.history.has_seen(path)), candidates[-1])


def is_path(written: str) -> bool:
    """Whether a text is written as a path, not as an id."""
    return "/" in written or written.endswith(ITEM_SUFFIXES) or written in (".", "..", CONTENT, SETTINGS_FILE)


def _below(root: Path, path: str) -> str | None:
    """A path from the workspace's folder, None where it belongs to no memory; the folder itself means all of it."""
    tidy = os.path.normpath(path)
    # links on the way are followed, the last name is not: the store refuses a link in place of an item
    real = os.path.join(os.path.realpath(os.path.dirname(tidy)), os.path.basename(tidy))
    inner = os.path.relpath(real, root).replace(os.sep, "/")
    if inner == ".":
        return CONTENT
    return inner if inner in (CONTENT, SETTINGS_FILE) or inner.startswith(CONTENT + "/") else None


# -- commits ------------------------------------------------------------------------------------------------------
AT_ONCE = frozenset({"interval", "each", "batch"})
"""Policies under which a command that wrote commits before it ends."""


SOURCE = "cli"
"""The door's name in commit trailers."""


@dataclass(frozen=True, slots=True)
class CommitReport:
    """How safe a write is.

    Attributes:
        durability: `file`, `commit`, or `fallback` where the workspace's own storage takes nothing at present.
        revision: the commit that holds it; null where none does yet.
    """

    durability: str = "file"
    revision: str | None = None


def land(workspace: Workspace, item: MemoryItem | None = None) -> None:
    """Commit what was written if the policy says so, and let the command say how safe the item is now.

    A person's edits that have rested were committed before it was written (``Store.adopt_rested``); others wait.
    """
    reason = ""
    if workspace.settings.history.commit in AT_ONCE and not workspace.store.commits_later:
        reason = workspace.store.flush(adopt=False).reason
    landed = CommitReport()
    if item is not None and not workspace.store.commits_later and workspace.is_committed(item):
        landed, reason = CommitReport("commit", workspace.repository.head().commit), ""
    elif item is not None and workspace.parts.durability(item.path) == "fallback":
        landed, storage = CommitReport("fallback"), workspace.store.storage()
        reason = f"it is in {storage.secondary} for now: {storage.reason or 'earlier writes wait there'}"
    note_waiting(reason)
    root, asked = workspace.root, invocation()
    if not (asked.workspace or named_workspace()):
        with suppress(OSError):  # the folder is gone
            here = Path.cwd()
            below = (one for one in (here, *here.parents) if one != root and one.is_relative_to(root))
            if any(os.path.lexists(one / ".git") for one in below):
                remark(f"stored in {root}, above this repository", "'memfs init' makes a separate workspace here")
    asked.landed = landed


def note_waiting(reason: str) -> None:
    """Let the command say at its end why the commit of what it wrote waits; nothing where there is no reason."""
    remark(f"stored, but not committed yet: {reason}" if reason else "")


# -- files of the workspace -------------------------------------------------------------------------------------------
def write_setting(workspace: Workspace, key: str, value: Any, message: str) -> bool:
    """Write a setting into ``memfs.toml``, None to take it out, as a separate change; whether the file changed."""
    from memfs.config import changed  # few verbs change settings

    plans = workspace.store.plan_restore({SETTINGS_FILE: changed(workspace.root, key, value) or None})
    if plans:
        own = [plan._replace(expected=plan.old_sha) for plan in plans]
        workspace.store.carry_out(own, message, source="config")
        land(workspace)
    return bool(plans)


def refuse_overruled(key: str, origin: str) -> None:
    """Refuse where a variable or an argument goes before the file.

    Raises:
        SettingInvalid: naming it.
    """
    from memfs.config import is_of_the_process  # as above

    if is_of_the_process(origin):
        message = f"{SETTINGS_FILE} was changed, but {origin} takes precedence"
        raise errors.SettingInvalid(message, path=SETTINGS_FILE, field=key, hint="take that away")


def block_of(workspace: Workspace) -> AgentsBlock:
    """The block beside the code: with a memory on its own branch, in the working tree in which memfs was called."""
    block = workspace.sources.agents_block
    code = code_of(workspace.root, Path(invocation().workspace or "."))
    return block if code == workspace.root else block.beside(code)


# -- texts ------------------------------------------------------------------------------------------------------------
def spoken(words: tuple[str, ...]) -> str:
    """The text that the words of a command line are; '-' reads standard input. Its lines end as an editor ends them.

    Raises:
        Unclear: there are words beside '-'.
        StorageIO: standard input is closed or cannot be read.
        ItemSyntaxError: it is not UTF-8.
    """
    if words[:1] == ("-",) and len(words) > 1:
        raise Unclear("'-' reads the text from standard input", "leave out the other words")
    text = decoded(output.read_input(), "standard input").rstrip("\r\n") if words == ("-",) else " ".join(words)
    return text.replace("\r\n", "\n")


def decoded(data: bytes, name: str) -> str:
    """UTF-8 bytes as text.

    Raises:
        ItemSyntaxError: naming the line that is not.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise errors.ItemSyntaxError("not UTF-8 text", path=name, line=line, hint="save it as UTF-8") from error


# -- items --------------------------------------------------------------------------------------------------------
def note_served(workspace: Workspace, items: Iterable[MemoryItem]) -> None:
    """Note that items were handed out: the reader of what is printed may be an agent."""
    workspace.usage.served.note("read", [item.id for item in items], workspace.parts.clock())


def waiting_text(found: Sequence[MemoryItem], number: int) -> output.Text:
    """What could be shared: text, type, day and id; and how many there are."""
    for item in found:
        yield output.styled(output.one_line(item.title or item.content, 72), bold=True)
        yield f"  {item.id}  {output.styled(f'{item.type}  {output.day(item)}', dim=True)}"
    more = number - len(found)
    further = f"; {more:,} more with --limit" if more > 0 else ""
    yield output.Note(f"{output.count(number, 'private memory', 'private memories')} could be shared{further}")
    if found:
        yield output.Note(
            "'memfs share ID' copies one into this workspace, 'memfs share ID --keep-private' removes it from this list"
        )


PHASE = click.Choice([phase.value for phase in Phase])
since = click.option("--since", metavar="WHEN", help="Not before this date, time or age: 2026-03-01, 7d, 'last week'.")
"""Give a verb the option by which time begins."""
span = options(
    since,
    click.option("--until", metavar="WHEN", help="Not after this date (that day or month included), time or age."),
)
"""Give a verb the options by which time begins and ends."""
filters = options(
    click.option("--type", "types", multiple=True, metavar="TYPE", shell_complete=complete_types,
                 help="Only this type; repeat to allow several types."),
    click.option("--layer", "layers", multiple=True, type=click.Choice([layer.value for layer in Layer]),
                 help="Only this layer; repeat to allow several layers."),
    click.option("--tag", "tags", multiple=True, metavar="TAG",
                 help="Only items with this tag; repeat to require several tags."),
    click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only what this agent wrote."),
    click.option("--session", "sessions", multiple=True, metavar="NAME", help="Only from this session."),
    click.option("--phase", "phases", multiple=True, type=PHASE, hidden=True,
                 help="Only from this phase of the work."),
    span,
    click.option("--path", metavar="FOLDER", default="", help="Only files below this folder (or this file)."),
)  # fmt: skip
"""Give a verb the options that choose items."""


def query(
    workspace: Workspace,
    text: str,
    limit: int,
    *,
    path: str,
    since: str | None,
    until: str | None,
    past: Past | None = None,
    **names: Any,
) -> Query:
    """The query that the options describe; ``past`` is the revision that is asked, None for the present.

    Raises:
        SettingInvalid, QueryInvalid, Unclear: a type or a span of time that cannot be understood.
        PathEscape: a folder outside the workspace.
    """
    for name in names["types"]:
        (workspace if past is None else past).kinds.get(name)
    now = past.now if past is not None else None
    begin, end = moment("--since", since, now=now), moment("--until", until, end=True, now=now)
    if begin is not None and end is not None and end < begin:
        raise Unclear(f"--until {until} is before --since {since}", "exchange the two: --since takes the earlier one")
    chosen: dict[str, Any] = {key: frozenset(values) for key, values in names.items()}
    folder = place(workspace, path) if path else ""
    return Query(text=text, limit=limit, since=begin, until=end, path=folder, **chosen)


def pair(written: str, example: str = "--context branch=main") -> tuple[str, str]:
    """A circumstance as ``--context`` takes it, or a field as ``--data`` does.

    Raises:
        Unclear: it has no name, or no value.
    """
    name, equals, value = written.partition("=")
    if not equals or not name.strip():
        raise Unclear(f"{example.split()[0]}: {written!r} has no name and value", f"write {example}")
    return name.strip(), value


as_of = click.option(
    "--as-of", metavar="REV", help="Show it as of this revision or date: HEAD~3, a branch, 2026-03-01, '3 days ago'."
)
"""Give a verb the option that names a revision; the verb gets ``as_of``, None where it is not given."""


if TYPE_CHECKING:

    @overload
    def past_at(workspace: Workspace, revision: str) -> Past: ...
    @overload
    def past_at(workspace: Workspace, revision: str | None) -> Past | None: ...


def past_at(workspace: Workspace, revision: str | None) -> Past | None:
    """The memory at a revision, of which the answer is then; None where none is named.

    A terminal is shown how far its first reading is.
    """
    if revision is None:
        return None
    with output.progress("Reading the past") as step:
        past = workspace.teams.past.at(revision, progress=step)
        _ = past.items.index
    invocation().past = past
    return past


def state_at(workspace: Workspace, revision: str | None) -> States:
    """What to ask for the state of a multi-agent system, at present or at a revision.

    Payloads of archives and large values, which no commit holds, are read where they are now.
    """
    past = past_at(workspace, revision)
    return workspace.states if past is None else workspace.states.at(past.files)
