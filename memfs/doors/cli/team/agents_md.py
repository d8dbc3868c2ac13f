"""Keep a block with the conventions that are agreed on in AGENTS.md, or another file agents read on their own.

Only what a person wrote or reviewed goes in. memfs does not commit the file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import invocation, verb
from memfs.doors.cli.output import OMIT, TEXT_ONLY, Block, Note, Text, count, styled
from memfs.doors.cli.parser import Actions
from memfs.fs.own_branch import code_of

if TYPE_CHECKING:
    from memfs.context.agents_md import AgentsBlock, BlockResult, BlockStatus
    from memfs.workspace import Workspace

_TOLD = {
    "created": "Created",
    "written": "Wrote the block into",
    "updated": "Updated the block in",
    "same": "The block is current in",
    "removed": "Took the block out of",
    "deleted": "Deleted, as it held the block alone:",
    "nothing": "Nothing to do in",
}
_NOTHING = "nothing is agreed on yet; 'memfs team convention' shows what could be"
_STANDS = {
    "current": "is current",
    "stale": "is not what is agreed on",
    "missing": "has no block",
    "edited": "has a block that somebody edited",
}


_file = click.option(
    "--file", metavar="FILE", type=click.Path(dir_okay=False), help="By default AGENTS.md here, beside the code."
)
_preferences = click.option(
    "--preferences/--no-preferences",
    default=None,
    help="Whether preferences belong into it, too; by default as it was.",
)
_force = click.option("--force", is_flag=True, help="Even if somebody edited the block.")


def block_of(workspace: Workspace) -> AgentsBlock:
    """The block beside the code: with a memory on its own branch, in the working tree in which memfs was called."""
    block = workspace.sources.agents_block
    code = code_of(workspace.root, Path(invocation().workspace or "."))
    return block if code == workspace.root else block.beside(code)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReport:
    """The block of a file.

    Attributes:
        file: the file.
        standing: how it compares with what is agreed on.
        line: the line on which the block begins; null where it has none.
        done: what became of the file, where it was to be changed.
        text: all that the block is to say; "" where nothing is agreed on.
        tokens: about how many tokens that has.
        left_out: ids of what is not in it, as no person stands behind it.
        name: the file, from the folder of the code.
    """

    file: Path
    standing: BlockStatus
    line: int | None
    done: BlockResult | None = field(default=None, metadata=OMIT)
    text: str
    tokens: int
    left_out: tuple[str, ...]
    name: str = field(metadata=TEXT_ONLY)


def _report(
    block: AgentsBlock, file: str | None, preferences: bool | None = None, done: BlockResult | None = None
) -> BlockReport:
    from memfs.recall.tokens import count_tokens

    found = block.check(file, preferences)
    return BlockReport(
        file=found.path,
        standing=found.standing,
        line=found.line or None,
        done=done,
        text=found.wanted,
        tokens=count_tokens(found.wanted),
        left_out=tuple(one.id for one in block.left_out()),
        name=os.path.relpath(found.path, block.folder),
    )


def _left_out_note(ids: tuple[str, ...]) -> Text:
    if ids:
        names = ", ".join(ids[:5]) + (" and others" if len(ids) > 5 else "")
        yield Note(f"left out, as no person stands behind it: {names}; 'memfs team convention accept ID' does")


# -- check --------------------------------------------------------------------------------------------------------
def _check_text(found: BlockReport) -> Text:
    good = found.standing.value == "current"
    if good and not found.line:
        yield f"{styled(found.name, bold=True)} {styled('needs no block: nothing is agreed on yet', fg='green')}"
        return
    place = f"{found.name}:{found.line}" if found.line else found.name
    yield f"{styled(place, bold=True)} {styled(_STANDS[found.standing.value], fg='green' if good else 'yellow')}"
    if not good:
        how = " --force' overwrites the edit" if found.standing.value == "edited" else "' brings it up to date"
        yield Note(f"'memfs team agents-md write{how}")


@verb("check", text=_check_text, exit_code=lambda found: found.standing.value != "current")
@_file
@_preferences
def _check(workspace: Workspace, file: str | None, preferences: bool | None) -> BlockReport:
    """Say whether the block is what is agreed on. Exit code 1: it is not current.

    Examples:
        memfs team agents-md check
    """
    return _report(block_of(workspace), file, preferences)


# -- show ---------------------------------------------------------------------------------------------------------
def _show_text(shown: BlockReport) -> Text:
    if shown.text:
        yield Block(shown.text.rstrip("\n"))
    yield from _left_out_note(shown.left_out)
    yield Note(f"about {count(shown.tokens, 'token')}" if shown.text else _NOTHING)


@verb("show", text=_show_text)
@_file
@_preferences
def _show(workspace: Workspace, file: str | None, preferences: bool | None) -> BlockReport:
    """Print what the block is to say.

    Examples:
        memfs team agents-md show --preferences
    """
    workspace.repository.require_readable()
    return _report(block_of(workspace), file, preferences)


# -- write, remove ------------------------------------------------------------------------------------------------
def _written_text(written: BlockReport) -> Text:
    done = written.done.value if written.done is not None else "nothing"
    yield f"{styled(_TOLD[done], fg='green')} {written.name}"
    if done in ("created", "written", "updated"):
        yield Note(f"about {count(written.tokens, 'token')}; commit the file yourself")
        yield from _left_out_note(written.left_out)


def _write_text(written: BlockReport) -> Text:
    yield from _written_text(written)
    if not written.text:
        yield from _left_out_note(written.left_out)
        yield Note(_NOTHING)


@verb("write", text=_write_text)
@_file
@_preferences
@_force
def _write(workspace: Workspace, file: str | None, preferences: bool | None, force: bool) -> BlockReport:
    """Put the block into the file, or bring it up to date. Nothing outside the block is touched.

    Examples:
        memfs team agents-md write
        memfs team agents-md write --file CLAUDE.md --preferences
    """
    workspace.repository.require_readable()
    block = block_of(workspace)
    return _report(block, file, done=block.write(file, preferences=preferences, force=force))


@verb("remove", text=_written_text)
@_file
@_force
def _remove(workspace: Workspace, file: str | None, force: bool) -> BlockReport:
    """Take the block out again, byte for byte; a file that held nothing else goes.

    Examples:
        memfs team agents-md remove
    """
    block = block_of(workspace)
    return _report(block, file, done=block.remove(file, force=force))


agents_md = Actions("agents-md", __doc__, _check, _show, _write, _remove)
