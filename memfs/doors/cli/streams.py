"""Make standard input, output and error safe to use, also when they are closed or full."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from memfs.errors import StorageIO

_UTF_8 = frozenset({"utf-8", "utf8"})


def secure() -> None:
    """Make the streams safe to use: what is closed leads nowhere, what a terminal cannot show is written as escapes.

    A closed stream's number would else be given to the next file that is opened, and our output written into it.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  it lives as long as we
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


class OutputLost(StorageIO):
    """Standard output cannot be written, so nothing more can be said there."""


def is_interactive() -> bool:
    """Whether a person sits at a terminal that is both our input and our output."""
    return somebody_types() and sys.stdout.isatty()


def somebody_types() -> bool:
    """Whether our input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def read_input() -> bytes:
    """All of standard input.

    Raises:
        StorageIO: it is closed or cannot be read.
    """
    try:
        if sys.stdin is None:
            raise OSError("it is closed")
        return sys.stdin.buffer.read()
    except OSError as error:
        raise StorageIO(f"standard input cannot be read: {error.strerror or error}") from error


def read_named(file: str, most: int = -1) -> bytes:
    """What the file that a person names holds, ``most`` bytes at most; links are followed, '-' is standard input.

    Raises:
        StorageIO: it cannot be read.
    """
    if file == "-":
        return read_input()
    try:
        with open(file, "rb") as stream:
            return stream.read(most)
    except OSError as error:
        raise StorageIO(f"cannot be read: {error.strerror}", path=file, hint="name a file") from error


def echo(text: str | bytes, stream: TextIO, color: bool | None = None) -> None:
    """Print a line on a stream, or bytes as they are; click is imported for what is more than plain text."""
    if isinstance(text, str) and "\x1b" not in text and (stream.encoding or "").lower() in _UTF_8:
        stream.write(f"{text}\n")
        stream.flush()
        return
    import click

    click.echo(text, stream, nl=isinstance(text, str), color=color)


def write(text: str | bytes, color: bool | None = None) -> None:
    """Print a line on standard output, or bytes as they are.

    Raises:
        OutputLost: it cannot be written; nothing more will be.
        BrokenPipeError: what reads it has gone.
    """
    try:
        echo(text, sys.stdout, color)
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output()
        raise OutputLost(f"the output cannot be written: {error.strerror or error}") from error


def drop_output() -> None:
    """Lead standard output nowhere, so that the interpreter does not stumble over it while it closes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
