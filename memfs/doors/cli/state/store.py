"""``state store``: store documents of a multi-agent system."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Unclear, opened, verb
from memfs.doors.cli.draft import decoded
from memfs.doors.cli.options import land
from memfs.doors.cli.output import Note, Text, note
from memfs.doors.cli.streams import read_named, somebody_types
from memfs.errors import ContentError, ItemSyntaxError, MemfsError
from memfs.format import json_text

if TYPE_CHECKING:
    from memfs.model.state_documents import Acknowledgement

_TYPES = ("state_update", "agent_output", "meta_review", "hypothesis", "tournament_result")
_STDIN = "standard input"


def _text(stored: tuple[Acknowledgement, ...]) -> Text:
    for ack in stored:
        yield f"Stored {ack.path}"
        for name in ("checkpoint_id", "continuation_token"):
            if value := getattr(ack, name):
                yield f"  {name.replace('_', ' ')}  {value}"
        if ack.checkpoint_problem:
            yield Note(f"the update is stored, but no checkpoint was made: {ack.checkpoint_problem}")
        for name in ack.conflicts:
            yield Note(f"somebody else had changed {name}, too: their value is in history and in conflicts/")
    if not stored:
        yield Note("there was nothing to store")


@verb("store", text=_text, key="stored")
@click.argument("kind", type=click.Choice(_TYPES), metavar="TYPE")
@click.argument("file", default="", type=click.Path(dir_okay=False, allow_dash=True), metavar="[FILE]")
@click.option(
    "--base",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="The hypothesis as it was read: what others stored since then holds, too.",
)
def store(kind: str, file: str, base: str | None) -> tuple[Acknowledgement, ...]:
    """Store documents of the TYPE state_update, agent_output, meta_review, hypothesis or tournament_result.

    They are read from FILE, or from standard input: one JSON object, or one a line. With --base, wins, losses, matches
    and reviews of all who changed a hypothesis at once add up; without it each field takes the place of the stored one.

    Exit code 1: refused; what came before the refused document is stored.

    Examples:
        memfs state store agent_output output.json
        echo '{"winner": "h2", "loser": "h1"}' | memfs state store tournament_result
        memfs state store hypothesis changed.json --base read.json
    """
    name = _name(file)
    if base is not None and kind != "hypothesis":
        raise Unclear("--base is for a hypothesis", "leave it out: other documents are not counted in by several")
    if base is not None and _name(base) == name == _STDIN:
        raise Unclear("FILE and --base cannot both be standard input", "name a file for one of them")
    if not file and somebody_types():
        note("reading a JSON object from standard input; end it with Ctrl-D")
    documents = _documents(_contents(file), name)
    if base is not None and len(documents) != 1:
        raise Unclear(f"--base is for one hypothesis, and {name} holds {len(documents)}", "store them one by one")
    read = _base(base) if base is not None else None
    stored: list[Acknowledgement] = []
    with opened() as workspace:
        recorder = workspace.states.recorder
        put = partial(recorder.hypothesis, base=read) if kind == "hypothesis" else getattr(recorder, kind)
        for line, values in documents:
            try:
                stored.append(put(values))
            except MemfsError as error:
                error.path, error.line, error.column = name, line, None
                if stored:
                    error.hint = f"{error.hint or 'correct it'}; the {len(stored)} before it are stored"
                raise
        land(workspace)
        return tuple(stored)


def _base(file: str) -> dict[str, Any]:
    try:
        return _mapping(_contents(file), 1)
    except ContentError as error:
        raise error.located(_name(file)) from None


def _name(file: str) -> str:
    return _STDIN if file in ("", "-") else file


def _contents(file: str) -> str:
    return decoded(read_named(file or "-"), _name(file))


def _documents(text: str, name: str) -> list[tuple[int, dict[str, Any]]]:
    """The documents in a text, with the line at which each begins: one as a whole, or one a line."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    try:
        if len(lines) < 2 or not _whole(lines[0][1]):
            return [(1, _mapping(text, 1))] if lines else []
    except ContentError as error:
        raise error.located(name) from None
    found = []
    for number, line in lines:
        try:
            found.append((number, _mapping(line, number)))
        except ContentError as error:
            raise error.located(name) from None
    return found


def _mapping(text: str, number: int) -> dict[str, Any]:
    value = json_text.load(text, parts=None, first=number)
    if not isinstance(value, dict):
        raise ItemSyntaxError("not a JSON object", line=number, hint="write one object per line")
    return value


def _whole(line: str) -> bool:
    try:
        _mapping(line, 1)
    except ContentError:
        return False
    return True
