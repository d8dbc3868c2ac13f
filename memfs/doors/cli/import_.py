"""``import``: memories from an export, from Markdown, or from another memory."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.dataclass import dataclass, replace
from memfs.doors.claude_code.settings_file import user_folder
from memfs.doors.cli import output
from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.export import counted
from memfs.doors.cli.options import allow_secret_option, land
from memfs.model.item import VOUCHED, Trust
from memfs.model.kinds import CONVENTION, PROPOSED

if TYPE_CHECKING:
    from memfs.doors.importers import SkippedSource, SourceContent
    from memfs.intake.import_service import ImportResult
    from memfs.workspace import Workspace

_EXPORT, _MARKDOWN, _CLAUDE, _CONVENTIONS = "memfs", "markdown", "claude-code", "conventions"
_NAMED = 20
_WIDTH = 72


# -- what came of it ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did, or would do.

    Attributes:
        file: what was read.
        source: what wrote it: `memfs`, or the name of another memory.
        stored: how many memories were stored, those of an export that were replaced included.
        counts: how many by type.
        updated: how many of them, or besides them where another memory is the source, were here with other content.
        same: how many were here already with equal content.
        memories: of another memory, each that was not there already.
        skipped: what holds no memory.
        refused: what cannot be stored.
    """

    file: str
    source: str
    stored: int
    counts: Mapping[str, int]
    updated: int = 0
    same: int = 0
    memories: tuple[ImportResult, ...] = ()
    skipped: tuple[SkippedSource, ...] = ()
    refused: tuple[SkippedSource, ...] = ()


_ALSO = {
    "updated": "brought up to date",
    "same": "there already",
    "repeated": "said by others here",
    "kept": "edited here and left alone",
    "refused": "refused",
}


def _text(report: ImportReport, dry_run: bool) -> output.Text:
    by = {name: [one for one in report.memories if one.became == name] for name in ("stored", "updated", *_ALSO)}
    if (new := by["stored"] + by["updated"]) and dry_run:
        yield from _preview(new)
    if report.source == _EXPORT:
        left_out = len(report.refused)
        also = {"of them replaced": report.updated, "were there already": report.same, "left out": left_out}
        what = f"{counted(report.counts)} from {report.file}"
    else:
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(report.counts.items()))
        also = {words: report.same if name == "same" else len(by[name]) for name, words in _ALSO.items()}
        memories = output.count(report.stored, "memory", "memories") + (f" ({kinds})" if kinds else "")
        what = f"{memories} from {report.source}, {report.file}"
    did = output.styled("Would import" if dry_run else "Imported", fg="green")
    tail = ", ".join(f"{number:,} {words}" for words, number in also.items() if number)
    yield f"{did} {what}{tail and '; '}{tail}"
    if report.source == _EXPORT:
        return
    yield from _named("says what is here", ((one.arrival.where, one.reason) for one in by["repeated"]))
    against = [one for one in by["stored"] if one.contradicts]
    yield from _named(
        "contradicts", ((one.arrival.where, f"{one.id} contradicts {', '.join(one.contradicts)}") for one in against)
    )
    yield from _named(
        "kept", ((one.arrival.where, f"{one.reason}; --replace takes the source's") for one in by["kept"])
    )
    yield from _named("skipped", ((one.where, one.reason) for one in report.skipped))
    yield from _named("refused", ((one.where, one.reason) for one in report.refused))
    if any(one.arrival.item.type == CONVENTION and one.arrival.item.status in ("", PROPOSED) for one in new):
        yield output.Note("agents do not see a convention until 'memfs team convention accept ID'")
    if any(one.arrival.item.trust == "agent" for one in by["stored"]):
        yield output.Note(
            "an agent wrote these; --reviewed says that you looked through them, and gives them to agents automatically"
        )


def _preview(memories: Sequence[ImportResult]) -> output.Text:
    """The first memories that would be stored, a line each."""
    yield output.Table([
        (
            "~" if one.became == "updated" else "+",
            one.id,
            one.arrival.item.type,
            one.arrival.where,
            output.one_line(one.arrival.item.title or one.arrival.item.content, _WIDTH),
        )
        for one in memories[:_NAMED]
    ])  # fmt: skip
    if len(memories) > _NAMED:
        yield f"and {output.count(len(memories) - _NAMED, 'more memory', 'more memories')}"


def _named(word: str, rows: Iterable[tuple[str, str]]) -> output.Text:
    """The first of what is worth a look."""
    shown = (f"{where}: {reason}" for where, reason in rows)
    yield from (output.Note(line.strip()) for line in output.listed(f"{word}:", shown, _NAMED))


# -- the verb -----------------------------------------------------------------------------------------------------
@verb("import", text=_text, exit_code=lambda report: bool(report.refused))
@click.argument("files", nargs=-1, type=click.Path(exists=True, allow_dash=True), metavar="[PATH]...")
@click.option(
    "--from",
    "origin",
    type=click.Choice((_EXPORT, _CLAUDE, _MARKDOWN, _CONVENTIONS)),
    help="Default: detected from PATH.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be stored, and store nothing.")
@click.option("--replace", is_flag=True, help="Replace memories that differ.")
@click.option("--reviewed", is_flag=True, help="A person has looked through these: they count as reviewed.")
@allow_secret_option
def import_(files: tuple[str, ...], origin: str | None, **given: Any) -> ImportReport:
    """Import Markdown files, a 'memfs export', or another tool's memories; '-' reads standard input.

    A Markdown file, and each one in a folder, becomes a memory: its title is the front matter's, else the first
    heading, else the file's name; 'tags', 'type' and 'date' become the memory's own. '--from claude-code' reads Claude
    Code's memory of this project, or a folder of its memories; '--from conventions' takes from an export of another
    workspace what it agreed on, as proposals. Memories already stored are skipped, so importing again stores only what
    has changed; what was edited here stays, unless --replace. What is refused, such as a memory with a secret, is named
    and left out.

    A memory in an export that differs from the stored one is refused, unless --replace; history keeps the other. A line
    such as {"content": "...", "tags": ["x"]} is a memory, too. To copy a whole memory, pipe 'memfs export' into 'memfs
    import -'; 'memfs list --json' prints one document instead of lines.

    Exit code 1: something was refused.

    Examples:
        memfs import memories.jsonl
        memfs -C old export | memfs -C new import -
        memfs import notes/ --dry-run
        memfs import *.md
        memfs import --from claude-code
        memfs import --from conventions platform.jsonl
    """
    if not files and origin != _CLAUDE:
        raise click.UsageError("name a file or folder, or '-'; only '--from claude-code' knows its own")
    store = origin or _recognised(files)
    if len(files) > 1 and store != _MARKDOWN:
        raise click.UsageError("only Markdown files are imported together: name anything else by itself")
    if files == ("-",) and store != _EXPORT:
        raise click.UsageError(f"{store} cannot come from standard input: name a file or folder")
    if store == _EXPORT and given["reviewed"]:
        raise click.UsageError("--reviewed is for another tool's memories")
    with opened() as workspace:
        if store == _EXPORT:
            return _from_export(workspace, files[0], given)
        return _from_store(workspace, store, files, given)


def _recognised(files: Sequence[str]) -> str:
    """Which memory files are of: ``memfs`` for what memfs exports, and for what is none of them.

    Raises:
        ContentError: a folder that holds no notes.
    """
    from memfs.doors.importers import INDEX, SUFFIXES, refuse_whole

    if len(files) > 1 and all(file.endswith(SUFFIXES) or os.path.isdir(file) for file in files):
        return _MARKDOWN
    path = Path(files[0])
    if files[0] == "-" or not path.is_dir():
        return _MARKDOWN if path.suffix in SUFFIXES else _EXPORT
    refuse_whole(path)
    return _CLAUDE if (path / INDEX).exists() or _is_claudes_own(path) else _MARKDOWN


def _is_claudes_own(path: Path) -> bool:
    """Whether a folder is the one in which Claude Code keeps what it remembers of all projects."""
    return path.resolve() == user_folder().resolve()


# -- another memory -----------------------------------------------------------------------------------------------
def _from_store(workspace: Workspace, store: str, files: Sequence[str], given: Mapping[str, Any]) -> ImportReport:
    """Take in what another memory keeps.

    Args:
        files: Markdown files and folders, else one file or folder; none for Claude Code's own.
    """
    from memfs.doors.importers import SkippedSource
    from memfs.intake.import_service import ImportService

    name, taken = _read(workspace, store, files)
    arrivals = taken.arrivals
    if given["reviewed"]:
        for place, one in enumerate(arrivals):
            if one.item.trust not in VOUCHED:
                arrivals[place] = replace(one, item=one.item.replace(trust=Trust.REVIEWED.value))
    arriving = ImportService(workspace.store, workspace.parts)
    fates = arriving.take_in(
        taken.tool,
        arrivals,
        message=f"Import from {taken.tool}: {os.path.basename(os.path.normpath(name))}",
        replace=given["replace"],
        allow_secret=given["allow_secret"],
        dry_run=given["dry_run"],
    )
    if not given["dry_run"]:
        land(workspace)
    became = Counter(fate.became.value for fate in fates)
    refused = [one for one in taken.skipped if one.refused]
    refused += [SkippedSource(fate.arrival.where, fate.reason) for fate in fates if fate.became == "refused"]
    return ImportReport(
        file=name,
        source=taken.tool,
        stored=became["stored"],
        counts=dict(Counter(fate.arrival.item.type for fate in fates if fate.became == "stored")),
        updated=became["updated"],
        same=became["same"],
        memories=tuple(one for one in fates if one.became != "same"),
        skipped=tuple(one for one in taken.skipped if not one.refused),
        refused=tuple(refused),
    )


def _read(workspace: Workspace, store: str, files: Sequence[str]) -> tuple[str, SourceContent]:
    from memfs.doors import importers

    found, paths = workspace.repository, [Path(file) for file in files]
    if store == _CONVENTIONS:
        return files[0], importers.read_conventions(paths[0], workspace.parts)
    if store == _CLAUDE and (not paths or _is_claudes_own(paths[0])):
        main = found.common_dir.parent  # Claude Code has one memory for all working trees of a repository
        paths = [importers.claude_folder((workspace.root, found.work_tree, main))]
    name = str(paths[0]) if len(paths) == 1 else f"{len(paths):,} paths"
    return name, importers.read(paths, found.work_tree, workspace.kinds, store)


# -- an export ----------------------------------------------------------------------------------------------------
def _from_export(workspace: Workspace, file: str, given: Mapping[str, Any]) -> ImportReport:
    """Store what an export holds, or lines that are memories by themselves; what is refused is named at once."""
    from memfs.doors.importers import SkippedSource
    from memfs.state.transfer import import_memories

    name = "standard input" if file == "-" else file
    chosen = {key: given[key] for key in ("replace", "dry_run", "allow_secret")}
    if file == "-" and sys.stdin is None:
        output.read_input()  # says what is wrong with it
    source = sys.stdin.buffer if file == "-" else file
    done = import_memories(workspace.parts, workspace.store, source, **chosen)
    hints: set[str | None] = set()
    for error in done.refused[:_NAMED]:
        if error.hint in hints:
            error.hint = None
        hints.add(error.hint)
        output.write_error(error)
    land(workspace)
    return ImportReport(
        name,
        _EXPORT,
        done.stored,
        {"memory": done.stored} if done.stored else {},
        updated=done.replaced,
        same=done.same,
        refused=tuple(
            SkippedSource(f"{error.path or name}:{error.line or 0}", error.sentence) for error in done.refused
        ),
    )
