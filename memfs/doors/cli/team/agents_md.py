"""``agents-md``: keep a block with the team's conventions in the file that agents read on their own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Invocation, opened, verb
from memfs.doors.cli.output import clean, count, note, print_json, print_raw, print_text, styled
from memfs.fs.own_branch import code_of

if TYPE_CHECKING:
    from memfs.context.agents_md import AgentsBlock, BlockCheck, BlockResult
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


@verb(
    "agents-md",
    example="memfs team agents-md show\nmemfs team agents-md write\n"
    "memfs team agents-md write --file CLAUDE.md --preferences\n"
    "memfs team agents-md check\nmemfs team agents-md remove",
)
@click.argument("action", type=click.Choice(["write", "check", "show", "remove"]))
@click.option(
    "--file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="By default AGENTS.md here, beside the code.",
)
@click.option("--preferences", "wanted", flag_value="yes", help="Preferences belong into it, too.")
@click.option("--no-preferences", "wanted", flag_value="no", help="None do; by default it is as it was.")
@click.option("--force", is_flag=True, help="With write, remove: even if somebody edited the block.")
@click.pass_context
def agents_md(
    ctx: click.Context, action: str, file: str | None, wanted: str | None, force: bool, as_json: bool
) -> None:
    """Keep a block with the conventions that are agreed on in AGENTS.md, or another file agents read on their own.

    'write' puts it in or brings it up to date, 'remove' takes it out again, byte for byte; 'show' prints it. Nothing
    outside the block is touched. Only what a person wrote or reviewed goes in. memfs does not commit the file.

    Exit code 1: with check, the block is not current.
    """
    if force and action not in ("write", "remove"):
        raise click.UsageError(f"'{action}' takes no --force", ctx)
    if wanted is not None and action == "remove":
        raise click.UsageError("'remove' takes no --preferences", ctx)
    preferences = None if wanted is None else wanted == "yes"
    with opened(ctx) as workspace:
        if action in ("write", "show"):
            workspace.repository.require_readable()
        block = block_of(ctx, workspace)
        if action == "show":
            _show(block, file, preferences, as_json)
        elif action == "check":
            if not _check(block, block.check(file, preferences), as_json):
                ctx.exit(1)
        else:
            write = action == "write"
            done = block.write(file, preferences=preferences, force=force) if write else block.remove(file, force=force)
            _tell(block, done, file, as_json)
            if write and done.value == "nothing" and not as_json:
                _note_left_out(block)
                note(_NOTHING)


def block_of(ctx: click.Context, workspace: Workspace) -> AgentsBlock:
    """The block beside the code: with a memory on its own branch, in the working tree in which memfs was called."""
    block = workspace.sources.agents_block
    code = code_of(workspace.root, Path(ctx.ensure_object(Invocation).workspace or "."))
    return block if code == workspace.root else block.beside(code)


def _show(block: AgentsBlock, file: str | None, preferences: bool | None, as_json: bool) -> None:
    text = block.check(file, preferences).wanted
    if as_json:
        print_json({"text": text, "tokens": _tokens(text), "left_out": [one.id for one in block.left_out()]})
        return
    if text:
        print_text(text.rstrip("\n"))
    _note_left_out(block)
    note(f"about {count(_tokens(text), 'token')}" if text else _NOTHING)


def _check(block: AgentsBlock, looked: BlockCheck, as_json: bool) -> bool:
    good = looked.standing.value == "current"
    if as_json:
        print_json({"file": str(looked.path), "standing": looked.standing.value, "line": looked.line or None})
        return good
    name = _name(block, str(looked.path))
    if good and not looked.line:
        print_raw(f"{styled(name, bold=True)} {styled('needs no block: nothing is agreed on yet', fg='green')}")
        return good
    place = f"{name}:{looked.line}" if looked.line else name
    print_raw(f"{styled(place, bold=True)} {styled(_STANDS[looked.standing.value], fg='green' if good else 'yellow')}")
    if not good:
        edited = looked.standing.value == "edited"
        note("'memfs team agents-md write" + (" --force' overwrites the edit" if edited else "' brings it up to date"))
    return good


def _tell(block: AgentsBlock, done: BlockResult, file: str | None, as_json: bool) -> None:
    looked = block.check(file)
    if as_json:
        facts: dict[str, Any] = {"file": str(looked.path), "done": done.value, "standing": looked.standing.value}
        print_json({**facts, "left_out": [one.id for one in block.left_out()]})
        return
    print_raw(f"{styled(_TOLD[done.value], fg='green')} {clean(_name(block, str(looked.path)))}")
    if done.value in ("created", "written", "updated"):
        note(f"about {count(_tokens(looked.wanted), 'token')}; commit the file yourself")
        _note_left_out(block)


def _note_left_out(block: AgentsBlock) -> None:
    if out := block.left_out():
        names = ", ".join(one.id for one in out[:5]) + (" and others" if len(out) > 5 else "")
        note(f"left out, as no person stands behind it: {names}; 'memfs team convention accept ID' does")


def _tokens(text: str) -> int:
    from memfs.recall.tokens import count_tokens

    return count_tokens(text)


def _name(block: AgentsBlock, path: str) -> str:
    return clean(os.path.relpath(path, block.folder))
