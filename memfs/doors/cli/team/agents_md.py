"""``agents-md``: keep a block with the team's conventions in the file that agents read on their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Actions, Invocation, opened, verb
from memfs.doors.cli.output import TEXT_ONLY, Block, Note, clean, count, styled
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


def _file(function: Callable[..., Any]) -> Callable[..., Any]:
    text = "By default AGENTS.md here, beside the code."
    return click.option("--file", metavar="FILE", type=click.Path(dir_okay=False), help=text)(function)


def _preferences(function: Callable[..., Any]) -> Callable[..., Any]:
    text = "Whether preferences belong into it, too; by default as it was."
    return click.option("--preferences/--no-preferences", default=None, help=text)(function)


_force = click.option("--force", is_flag=True, help="Even if somebody edited the block.")


def block_of(ctx: click.Context, workspace: Workspace) -> AgentsBlock:
    """The block beside the code: with a memory on its own branch, in the working tree in which memfs was called."""
    block = workspace.sources.agents_block
    code = code_of(workspace.root, Path(ctx.ensure_object(Invocation).workspace or "."))
    return block if code == workspace.root else block.beside(code)


def _left_out(block: AgentsBlock) -> tuple[str, ...]:
    return tuple(one.id for one in block.left_out())


def _left_out_note(ids: tuple[str, ...]) -> Iterator[Note]:
    if ids:
        names = ", ".join(ids[:5]) + (" and others" if len(ids) > 5 else "")
        yield Note(f"left out, as no person stands behind it: {names}; 'memfs team convention accept ID' does")


def _tokens(text: str) -> int:
    from memfs.recall.tokens import count_tokens

    return count_tokens(text)


# -- check --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class CheckedBlock:
    """How a file compares with what is agreed on.

    Attributes:
        file: the file.
        standing: how it compares.
        line: the line on which its block begins; null where it has none.
        name: the file, from the folder of the code.
    """

    file: Path
    standing: BlockStatus
    line: int | None
    name: str = field(metadata=TEXT_ONLY)

    @property
    def exit_code(self) -> int:
        """1 where the block is not current."""
        return int(self.standing.value != "current")


def _check_text(found: CheckedBlock) -> Iterator[str | Note]:
    good = not found.exit_code
    if good and not found.line:
        yield f"{styled(found.name, bold=True)} {styled('needs no block: nothing is agreed on yet', fg='green')}"
        return
    place = f"{found.name}:{found.line}" if found.line else found.name
    yield f"{styled(place, bold=True)} {styled(_STANDS[found.standing.value], fg='green' if good else 'yellow')}"
    if not good:
        how = " --force' overwrites the edit" if found.standing.value == "edited" else "' brings it up to date"
        yield Note(f"'memfs team agents-md write{how}")


@verb("check", text=_check_text, example="memfs team agents-md check")
@_file
@_preferences
@click.pass_context
def _check(ctx: click.Context, file: str | None, preferences: bool | None) -> CheckedBlock:
    """Say whether the block is what is agreed on. Exit code 1: it is not current."""
    with opened(ctx) as workspace:
        block = block_of(ctx, workspace)
        found = block.check(file, preferences)
    return CheckedBlock(found.path, found.standing, found.line or None, os.path.relpath(found.path, block.folder))


# -- show ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class BlockText:
    """What the block is to say.

    Attributes:
        text: all of it; "" where nothing is agreed on.
        tokens: about how many tokens it has.
        left_out: ids of what is not in it, as no person stands behind it.
    """

    text: str
    tokens: int
    left_out: tuple[str, ...]


def _show_text(shown: BlockText) -> Iterator[Block | Note]:
    if shown.text:
        yield Block(shown.text.rstrip("\n"))
    yield from _left_out_note(shown.left_out)
    yield Note(f"about {count(shown.tokens, 'token')}" if shown.text else _NOTHING)


@verb("show", text=_show_text, example="memfs team agents-md show --preferences")
@_file
@_preferences
@click.pass_context
def _show(ctx: click.Context, file: str | None, preferences: bool | None) -> BlockText:
    """Print what the block is to say."""
    with opened(ctx) as workspace:
        workspace.repository.require_readable()
        block = block_of(ctx, workspace)
        text = block.check(file, preferences).wanted
        return BlockText(text, _tokens(text), _left_out(block))


# -- write, remove ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class WrittenBlock:
    """What became of a file.

    Attributes:
        file: the file.
        done: what was done.
        standing: how it compares with what is agreed on now.
        left_out: ids of what is not in the block, as no person stands behind it.
        name: the file, from the folder of the code.
        tokens: about how many tokens the block has.
        empty: whether nothing was to be written.
    """

    file: Path
    done: BlockResult
    standing: BlockStatus
    left_out: tuple[str, ...]
    name: str = field(metadata=TEXT_ONLY)
    tokens: int = field(metadata=TEXT_ONLY)
    empty: bool = field(default=False, metadata=TEXT_ONLY)


def _written_text(written: WrittenBlock) -> Iterator[str | Note]:
    yield f"{styled(_TOLD[written.done.value], fg='green')} {clean(written.name)}"
    if written.done.value in ("created", "written", "updated"):
        yield Note(f"about {count(written.tokens, 'token')}; commit the file yourself")
        yield from _left_out_note(written.left_out)
    if written.empty:
        yield from _left_out_note(written.left_out)
        yield Note(_NOTHING)


def _written(block: AgentsBlock, done: BlockResult, file: str | None, *, write: bool) -> WrittenBlock:
    found = block.check(file)
    name, tokens = os.path.relpath(found.path, block.folder), _tokens(found.wanted)
    empty = write and done.value == "nothing"
    return WrittenBlock(found.path, done, found.standing, _left_out(block), name, tokens, empty)


@verb(
    "write",
    text=_written_text,
    example="memfs team agents-md write\nmemfs team agents-md write --file CLAUDE.md --preferences",
)
@_file
@_preferences
@_force
@click.pass_context
def _write(ctx: click.Context, file: str | None, preferences: bool | None, force: bool) -> WrittenBlock:
    """Put the block into the file, or bring it up to date. Nothing outside the block is touched."""
    with opened(ctx) as workspace:
        workspace.repository.require_readable()
        block = block_of(ctx, workspace)
        return _written(block, block.write(file, preferences=preferences, force=force), file, write=True)


@verb("remove", text=_written_text, example="memfs team agents-md remove")
@_file
@_force
@click.pass_context
def _remove(ctx: click.Context, file: str | None, force: bool) -> WrittenBlock:
    """Take the block out again, byte for byte; a file that held nothing else goes."""
    with opened(ctx) as workspace:
        block = block_of(ctx, workspace)
        return _written(block, block.remove(file, force=force), file, write=False)


agents_md = Actions(
    "agents-md",
    _check,
    _show,
    _write,
    _remove,
    help="""Keep a block with the conventions that are agreed on in AGENTS.md, or another file agents read on their own.

    Only what a person wrote or reviewed goes in. memfs does not commit the file.""",
)
