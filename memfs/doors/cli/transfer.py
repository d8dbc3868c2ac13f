"""``export`` and ``import``: take documents and memories out of the workspace, and back in."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from memfs.doors.cli.command import Unclear, opened, verb
from memfs.doors.cli.commit_report import land
from memfs.doors.cli.filters import when
from memfs.doors.cli.options import allow_secret_option
from memfs.doors.cli.output import (
    clean,
    count,
    note,
    one_line,
    print_json,
    print_raw,
    print_table,
    progress,
    styled,
    write_error,
)
from memfs.doors.cli.streams import drop_output, read_input
from memfs.errors import MemfsError, StorageIO

if TYPE_CHECKING:
    from memfs.doors.cli.lines import Lines
    from memfs.doors.importers.source_files import SkippedSource, SourceContent
    from memfs.intake.import_service import ImportResult
    from memfs.state.export import ExportResult, Filters, Out
    from memfs.state.import_documents import ImportCounts
    from memfs.workspace import Workspace


MARKDOWN = "markdown"
STORES = ("claude-code", "agents-md", "mcp-memory", "mem0", "basic-memory", MARKDOWN)
"""The names of ``memfs.doors.importers.formats``, which --help need not import."""
_NAMED = 20
_WIDTH = 72
_STDIN = "standard input"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The options of an import from another memory."""

    dry_run: bool = False
    replace: bool = False
    reviewed: bool = False
    allow_secret: str = ""
    as_json: bool = False


def import_store(workspace: Workspace, store: str, files: Sequence[str], wishes: Wishes) -> int:
    """Take in what another memory keeps, and tell what became of it.

    Args:
        files: Markdown files and folders, else one file or folder; none for Claude Code's own.

    Returns:
        The exit code: 1 where something was refused.
    """
    name, taken = _read(workspace, store, files)
    fates, gone = _taken_in(workspace, store, name, taken, wishes)
    reason = "" if wishes.dry_run else land(workspace, None).reason
    if wishes.as_json:
        print_json({**_json(name, store, fates, taken.skipped, wishes.dry_run), "gone": gone})
    else:
        _tell(name, store, fates, taken.skipped, wishes)
        _name("gone", ((one, "it is no longer there; 'memfs forget' it if it no longer holds") for one in gone))
    if reason:
        note(f"stored; the commit waits: {reason}")
    return int(any(fate.became == "refused" for fate in fates) or any(one.refused for one in taken.skipped))


def _taken_in(
    workspace: Workspace, store: str, name: str, taken: SourceContent, wishes: Wishes
) -> tuple[list[ImportResult], list[str]]:
    """What became of each memory, and the ids of those that are no longer there."""
    from memfs.intake.import_service import ImportService

    arrivals = taken.arrivals
    if wishes.reviewed:
        arrivals = [replace(one, item=_vouched_for(one.item)) for one in arrivals]
    arriving = ImportService(workspace.store, workspace.parts)
    with progress("Importing") as step:
        fates = arriving.take_in(
            store,
            arrivals,
            message=f"Import from {store}: {os.path.basename(os.path.normpath(name))}",
            replace=wishes.replace,
            allow_secret=wishes.allow_secret,
            dry_run=wishes.dry_run,
            step=step,
        )
    return fates, [item.id for item in arriving.gone(store, fates, taken.covers)]


def _read(workspace: Workspace, store: str, files: Sequence[str]) -> tuple[str, SourceContent]:
    from memfs.doors.importers import markdown_notes
    from memfs.doors.importers.claude_code import memory_folder
    from memfs.doors.importers.formats import read

    if store == markdown_notes.NAME:
        name = files[0] if len(files) == 1 else f"{len(files):,} paths"
        return name, markdown_notes.read(map(Path, files), workspace.repository.work_tree, workspace.kinds)
    file = files[0] if files else None
    if file == "-":
        return _STDIN, read(store, Path(_STDIN), read_input())
    path = Path(file) if file else None
    if store == "claude-code" and (path is None or path.is_dir()):
        found = workspace.repository
        main = found.common_dir.parent  # Claude Code has one memory for all working trees of a repository
        path = memory_folder(path, (workspace.root, found.work_tree, main))
    assert path is not None  # only Claude Code's own folder need not be named
    return str(path), read(store, path)


def _vouched_for(item: Any) -> Any:
    from memfs.model.item import VOUCHED, Trust

    return item if item.trust in VOUCHED else item.replace(trust=Trust.REVIEWED.value)


# -- for programs -------------------------------------------------------------------------------------------------
def _json(
    name: str, store: str, fates: Sequence[ImportResult], skipped: Iterable[SkippedSource], dry_run: bool
) -> dict[str, Any]:
    became = Counter(fate.became.value for fate in fates)
    return {
        "file": name,
        "from": store,
        "dry_run": dry_run,
        "stored": became["stored"],
        "counts": _kinds(fates),
        "updated": became["updated"],
        "same": became["same"],
        "memories": [
            {
                "where": fate.arrival.where,
                "became": fate.became.value,
                "id": fate.id or None,
                "type": fate.arrival.item.type,
                "reason": fate.reason,
                "near": list(fate.near),
                "contradicts": list(fate.contradicts),
            }
            for fate in fates
            if fate.became != "same"
        ],
        "skipped": [{"where": one.where, "reason": one.reason} for one in skipped if not one.refused],
        "refused": [{"where": one.where, "reason": one.reason} for one in skipped if one.refused],
    }


def _kinds(fates: Iterable[ImportResult]) -> dict[str, int]:
    return dict(Counter(fate.arrival.item.type for fate in fates if fate.became == "stored"))


# -- for people ---------------------------------------------------------------------------------------------------
def _tell(
    name: str, store: str, fates: Sequence[ImportResult], skipped: Sequence[SkippedSource], wishes: Wishes
) -> None:
    stored = [fate for fate in fates if fate.became == "stored"]
    if wishes.dry_run:
        _preview(fate for fate in fates if fate.became in ("stored", "updated"))
    did = "Would import" if wishes.dry_run else "Imported"
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(_kinds(fates).items()))
    what = count(len(stored), "memory", "memories") + (f" ({kinds})" if kinds else "")
    also = [f"{number:,} {words}" for sort, words in _ALSO.items() if (number := _number(fates, sort))]
    tail = f"; {', '.join(also)}" if also else ""
    print_raw(f"{styled(did, fg='green')} {what} from {store}, {clean(name)}{tail}")
    _name("says what is here", ((fate.arrival.where, fate.reason) for fate in fates if fate.became == "repeated"))
    _name("contradicts", _contradictions(stored))
    _name("kept", ((fate.arrival.where, f"{fate.reason}; --replace takes the source's") for fate in _kept(fates)))
    _name("skipped", ((one.where, one.reason) for one in skipped if not one.refused))
    _name("refused", ((one.where, one.reason) for one in skipped if one.refused))
    _name("refused", ((fate.arrival.where, fate.reason) for fate in fates if fate.became == "refused"))
    if stored and any(fate.arrival.item.trust == "agent" for fate in stored):
        note("an agent wrote these; --reviewed says that you looked through them, and lets them be told unasked")


_ALSO = {
    "updated": "brought up to date",
    "same": "there already",
    "repeated": "said by others here",
    "kept": "edited here and left alone",
    "refused": "refused",
}


def _number(fates: Iterable[ImportResult], became: str) -> int:
    return sum(fate.became == became for fate in fates)


def _kept(fates: Iterable[ImportResult]) -> Iterable[ImportResult]:
    return (fate for fate in fates if fate.became == "kept")


def _contradictions(stored: Iterable[ImportResult]) -> Iterable[tuple[str, str]]:
    return (
        (fate.arrival.where, f"{fate.id} contradicts {', '.join(fate.contradicts)}")
        for fate in stored
        if fate.contradicts
    )


def _preview(fates: Iterable[ImportResult]) -> None:
    """The first memories that would be stored, a line each."""
    rows = []
    shown = list(fates)
    for fate in shown[:_NAMED]:
        item = fate.arrival.item
        text = one_line(item.title or item.content, _WIDTH)
        rows.append(("~" if fate.became == "updated" else "+", fate.id, item.type, fate.arrival.where, text))
    print_table(rows)
    if len(shown) > _NAMED:
        print_raw(f"and {count(len(shown) - _NAMED, 'more memory', 'more memories')}")


def _name(word: str, rows: Iterable[tuple[str, str]]) -> None:
    """Name what is worth a look, on standard error, so many at most."""
    shown = [f"{word}: {where}: {reason}" for where, reason in rows]
    for line in shown[:_NAMED]:
        note(line)
    if len(shown) > _NAMED:
        note(f"and {len(shown) - _NAMED:,} more")


_FORMATS = ("jsonl", "csv", "parquet")
_PEEK = 1 << 16


# -- export -------------------------------------------------------------------------------------------------------
@verb(
    "export",
    example="memfs export state.jsonl\n"
    'memfs export outputs.csv --type agent_output --agent "Evolution Agent" --iteration 3-7\n'
    "memfs export --type hypothesis --since 7d | jq .document.rating\n"
    "memfs export memories.jsonl --type memory",
)
@click.argument("file", required=False, type=click.Path(dir_okay=False), metavar="[FILE]")
@click.option("--format", "form", type=click.Choice(_FORMATS), help="By default, what FILE's ending says, else jsonl.")
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only this type of document, or memory; repeat it."
)
@click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only of or about this agent; repeat it.")
@click.option("--iteration", "iterations", multiple=True, metavar="N[-M]", help="Only these iterations; repeat it.")
@click.option("--since", metavar="WHEN", help="Not before this date, time or age.")
@click.option("--until", metavar="WHEN", help="Not after this date (that day included), time or age.")
@click.option("--replace", is_flag=True, help="Replace FILE if it is there.")
@click.pass_context
def export(
    ctx: click.Context, /, file: str | None, form: str | None, replace: bool, as_json: bool, **given: Any
) -> int:
    """Write state documents, or memories, for analysis elsewhere; 'memfs import' takes them back.

    Without FILE, or with '-', they go to standard output. Without --type, everything below iterations/ is exported.

    Exit code 1: refused, or a document could not be read and is missing.
    """
    target = None if file in (None, "-") else Path(str(file)).absolute()
    if target is None and as_json:
        raise click.UsageError("--json tells what went into FILE; the export itself goes to standard output", ctx)
    filters = _filters(given)
    chosen = form or _format_of(target)
    if target is None and chosen == "parquet" and sys.stdout.isatty():
        raise click.UsageError("Parquet is not for a terminal: name a FILE", ctx)
    with opened(ctx) as workspace:
        workspace.repository.require_readable()
        with _sink(workspace, target, replace) as sink, progress("Exporting") as step:
            seen = step if sys.stderr.isatty() else None
            done = workspace.states.exporter.write(sink, chosen, filters, seen)
    _tell_export(done, target, as_json)
    return int(bool(done.missing))


def _format_of(target: Path | None) -> str:
    from memfs.state.export_formats import format_of

    return (format_of(target.name) if target is not None else "") or "jsonl"


def _filters(given: Mapping[str, Any]) -> Filters:
    from memfs.errors import QueryInvalid
    from memfs.state.export import Filters

    numbers = tuple(number for written in given["iterations"] for number in _span(written))
    since, until = when(given["since"], "since"), when(given["until"], "until", end=True)
    try:
        return Filters(types=given["types"], agents=given["agents"], iterations=numbers, since=since, until=until)
    except QueryInvalid as error:
        raise Unclear.of(error, f"--{(error.field or '').removesuffix('s')}") from error


def _span(written: str) -> range:
    first, dash, last = written.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()) or len(written) > 30:
        raise Unclear(f"--iteration: {written!r} is no iteration", "write 3, or 3-7")
    begin, end = int(first), int(last or first)
    if end < begin or end - begin > 1_000_000:
        raise Unclear(f"--iteration: {written!r} is no span", "write the smaller number first")
    return range(begin, end + 1)


def _tell_export(done: ExportResult, target: Path | None, as_json: bool) -> None:
    for sentence in done.missing[:_NAMED]:
        note(f"missing: {sentence}")
    if len(done.missing) > _NAMED:
        note(f"and {count(len(done.missing) - _NAMED, 'more document')}")
    if as_json:
        shown = {"file": str(target), "documents": done.total, "counts": dict(done.counts), "bytes": done.bytes}
        print_json({**shown, "missing": list(done.missing)})
    elif target is not None:
        print_raw(f"{styled('Exported', fg='green')} {_counted(done.counts)} to {target} ({done.bytes:,} bytes)")


def _counted(counts: Mapping[str, int]) -> str:
    parts = [f"{number:,} {kind}" for kind, number in counts.items()]
    return f"{count(sum(counts.values()), 'document')}" + (f" ({', '.join(parts)})" if parts else "")


# -- where it goes ------------------------------------------------------------------------------------------------
@contextmanager
def _sink(workspace: Workspace, target: Path | None, replace: bool) -> Iterator[Out]:
    from memfs.state.export import Out, out_file

    if target is not None:
        with out_file(workspace.root, target, replace) as file:
            yield file
        return
    out = Out(_print_bytes)
    yield out
    out.flush()


def _print_bytes(data: bytes) -> None:
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output()
        raise StorageIO(f"the output cannot be written: {error.strerror or error}") from error


# -- import -------------------------------------------------------------------------------------------------------
@verb(
    "import",
    example="memfs import state.jsonl\nmemfs import outputs.jsonl --replace\n"
    "memfs export -C old | memfs import - -C new\nmemfs import notes.jsonl\n"
    "memfs import notes/ --dry-run\nmemfs import *.md\nmemfs import --from claude-code\nmemfs import CLAUDE.md\n"
    "memfs import memory.jsonl --from mcp-memory",
)
@click.argument("files", nargs=-1, type=click.Path(allow_dash=True), metavar="[PATH]...")
@click.option("--from", "origin", type=click.Choice(("memfs", *STORES)), help="By default, what PATH looks like.")
@click.option("--dry-run", is_flag=True, help="Show what would be stored, and store nothing.")
@click.option("--replace", is_flag=True, help="Replace what is there with other content.")
@click.option("--skip-refused", is_flag=True, help="Of an export, leave out the lines that are refused, and name them.")
@click.option("--reviewed", is_flag=True, help="A person has looked through it: it counts as reviewed.")
@allow_secret_option
@click.pass_context
def import_(ctx: click.Context, /, files: tuple[str, ...], as_json: bool, **given: Any) -> int:
    """Store Markdown files, what 'memfs export' wrote, or what another memory keeps; '-' reads standard input.

    A Markdown file, and each one in a folder, becomes a memory. Other memories are Claude Code's memory folder,
    AGENTS.md and CLAUDE.md, the reference MCP memory server, mem0 and basic-memory. What is there already is passed
    over, so importing again stores only what has changed.

    Of an export, nothing is stored if anything in it cannot be, unless --skip-refused leaves that out. Lines without a
    document, such as {"content": "..."}, are memories as 'memfs remember --file' takes them. Of Markdown and another
    memory, what is refused is named and left out.

    Exit code 1: something was refused.
    """
    origin = given["origin"]
    if not files and origin != "claude-code":
        raise click.UsageError("name a file or folder, or '-'; only '--from claude-code' knows its own", ctx)
    groups = _groups(files, origin or "")
    if len(groups) > 1 and any(store == "memfs" for store, _ in groups):
        raise click.UsageError("an export of memfs is imported by itself: name it alone", ctx)
    if groups[0][0] == "memfs":
        if given["reviewed"]:
            raise click.UsageError("--reviewed is for what another memory keeps", ctx)
        return _import_export(ctx, files[0], as_json, given)
    if as_json and len(groups) > 1:
        raise click.UsageError("--json tells of one import: name what is of one sort, or say --from", ctx)
    wishes = Wishes(as_json=as_json, **_chosen(given))
    with opened(ctx) as workspace:
        return max(import_store(workspace, store, paths, wishes) for store, paths in groups)


def _groups(files: Sequence[str], store: str) -> list[tuple[str, list[str]]]:
    """What is imported in one go: Markdown files together, anything else by itself, in the order they were named."""
    groups: list[tuple[str, list[str]]] = []
    for file in files:
        found = store or _recognised(file)
        same = next((paths for name, paths in groups if name == found == MARKDOWN), None)
        if same is None:
            groups.append((found, [file]))
        else:
            same.append(file)
    return groups or [(store, [])]


def _import_export(ctx: click.Context, name: str, as_json: bool, given: Mapping[str, Any]) -> int:
    """Store what ``memfs export`` wrote, or lines that are memories by themselves."""
    chosen = {key: given[key] for key in ("replace", "dry_run", "skip_refused")}
    done: ImportCounts | None = None
    with opened(ctx) as workspace:
        if _holds_bare_items(name):
            lines = _import_items(workspace, name, allow_secret=given["allow_secret"], **chosen)
            stored, refused = len(lines.items), len(lines.refused)
        elif given["allow_secret"]:
            raise click.UsageError("--allow-secret is for lines that are memories without a document", ctx)
        else:
            done = _import_documents(workspace, name, **chosen)
            stored, refused = done.total, done.refused
        reason = land(workspace, None).reason
    _tell_import(name, stored, refused, done, as_json, given["dry_run"])
    if reason:
        note(f"stored; the commit waits: {reason}")
    return int(bool(refused))


def _chosen(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in ("dry_run", "replace", "reviewed", "allow_secret")}


def _recognised(file: str) -> str:
    """Which memory a file or folder is of: ``memfs`` for what memfs exports, and for what is none of them."""
    from memfs.doors.importers.formats import detect

    return detect(Path(file), _beginning(file) if file == "-" else None) or "memfs"


def _import_documents(workspace: Workspace, file: str, **chosen: bool) -> ImportCounts:
    told = 0

    def tell(error: MemfsError) -> None:
        nonlocal told
        told += 1
        if told <= _NAMED:
            write_error(error)

    source: str | BinaryIO = sys.stdin.buffer if file == "-" else file
    try:
        with progress("Importing") as step:
            return workspace.states.importer.read(source, **chosen, tell=tell, step=step)
    except MemfsError as error:
        if told:
            error.hint = "; ".join(filter(None, (error.hint, "--skip-refused leaves out what cannot be imported")))
        raise


def _import_items(workspace: Workspace, file: str, **chosen: Any) -> Lines:
    from memfs.doors.cli.draft import Draft
    from memfs.doors.cli.lines import import_lines

    return import_lines(workspace, file, Draft(context={}, data={}), **chosen)


def _holds_bare_items(file: str) -> bool:
    """Whether the first line is a memory by itself, as people write them, and not a record with its document."""
    first = _beginning(file).removeprefix(b"\xef\xbb\xbf").lstrip()
    try:
        value = json.loads(first.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False  # cut off, or wrong: reading the whole file says where
    return isinstance(value, dict) and "document" not in value


def _beginning(file: str) -> bytes:
    if file != "-":
        try:
            with Path(file).open("rb") as stream:
                return stream.readline(_PEEK) if stream.seekable() else b""
        except OSError as error:
            raise StorageIO(f"cannot be read: {error.strerror}", path=file, hint="name a file") from error
    if sys.stdin is None:
        read_input()  # says what is wrong with it
    given: Any = sys.stdin.buffer
    if not given.seekable():
        return bytes(given.peek(_PEEK)) if isinstance(given, BufferedReader) else b""
    place = given.tell()
    beginning = bytes(given.readline(_PEEK))
    given.seek(place)
    return beginning


def _tell_import(file: str, stored: int, refused: int, done: ImportCounts | None, as_json: bool, dry_run: bool) -> None:
    if as_json:
        facts = {"stored": stored, "counts": dict(done.counts) if done else {"memory": stored}}
        more = {"replaced": done.replaced, "same": done.same, "derived": done.derived} if done else {}
        print_json({"file": file, **facts, **more, "refused": refused, **({"dry_run": True} if dry_run else {})})
        return
    what = _counted(done.counts) if done else count(stored, "memory", "memories")
    also = []
    if done is not None and done.replaced:
        also.append(f"{done.replaced:,} of them replaced")
    if done is not None and done.same:
        also.append(f"{done.same:,} were there already")
    if done is not None and done.derived:
        also.append(f"{done.derived:,} computed from the rest")
    if refused:
        also.append(f"{refused:,} left out")
    did = styled("Would import" if dry_run else "Imported", fg="green")
    print_raw(f"{did} {what} from {file}" + (f"; {', '.join(also)}" if also else ""))
