"""Transcripts of a page, replayed: what a page says was typed is typed, and must print what the page says.

A page has ```console blocks, whose ``$ `` lines (continued by ``> `` lines) are commands for ``sh``, each followed by
what it prints, errors too; and ```pycon blocks, which are doctests. All blocks of a page run in order in one folder.
``cd`` and variables stay within a console block; names of the pycon blocks stay through the page. ``...`` stands for
anything, and on a line of its own also for no line at all.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

SECONDS = 300.0
_BLOCK = re.compile(r"^```(console|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_END = "=== end of command"
_CALLED = re.compile(rf"^{_END} (\d+)\n", re.MULTILINE)
_PYTHON = """
import doctest, io, json, sys
blocks, answers = sys.stdin, sys.stdout
sys.stdin, sys.stdout = io.StringIO(), sys.stderr
names, flags = {"__name__": "__main__"}, doctest.ELLIPSIS
for line in blocks:
    printed = []
    test = doctest.DocTestParser().get_doctest(json.loads(line), names, "transcript", None, 0)
    test.globs = names
    doctest.DocTestRunner(verbose=False, optionflags=flags).run(test, out=printed.append, clear_globs=False)
    answers.write(json.dumps("".join(printed)) + "\\n")
    answers.flush()
"""


@dataclass(frozen=True)
class Step:
    """One command of a console block, and what it prints."""

    command: str
    expected: str


def blocks(text: str) -> list[tuple[str, str]]:
    """The transcripts of a page, in order: ``console`` or ``pycon``, and what is in the block."""
    return [(found[1], found[2]) for found in _BLOCK.finditer(text)]


def steps(block: str) -> Iterator[Step]:
    """The commands of a console block."""
    command: list[str] = []
    expected: list[str] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            if command:
                yield Step("\n".join(command), "\n".join(expected))
            command, expected = [line[2:]], []
        elif not command:
            raise AssertionError(f"a console block begins with a line that begins with '$ ', not with {line!r}")
        elif not expected and (line == ">" or line.startswith("> ")):
            command.append(line[2:])
        else:
            expected.append(line)
    yield Step("\n".join(command), "\n".join(expected))


def matches(expected: str, printed: str) -> bool:
    """Whether a command printed what the page says; space at the end of a line or of all does not count."""
    lines = [line.rstrip() for line in expected.rstrip().splitlines()]
    parts = [r"(?:.*\n)??" if line == "..." else _pattern(line) + r"\n" for line in lines]
    found = "".join(f"{line.rstrip()}\n" for line in printed.rstrip().splitlines())
    return re.fullmatch("".join(parts), found, re.DOTALL) is not None


def _pattern(line: str) -> str:
    return ".*?".join(re.escape(part) for part in re.split(r"\.{3,}", line))  # a sentence may end before the dots


class Replay:
    """Runs the blocks of one page in a folder; ends every process it began when it is left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._python: subprocess.Popen[str] | None = None
        self._groups: list[int] = []
        self.printed: list[tuple[str, str]] = []
        """Each command of a console block, and what it printed with its exit code."""

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._python is not None and kind is None:
            with self._python:
                pass
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)  # what a page left running, a server for instance

    def run(self, language: str, block: str) -> list[str]:
        """What is wrong with a block; an empty list when everything is as the page says."""
        return self._doctest(block) if language == "pycon" else self._shell(list(steps(block)))

    def _shell(self, steps: list[Step]) -> list[str]:
        """Each command in turn, by one shell; what it prints goes into a file, which a server may keep open."""
        script = "".join(f"{step.command}\nprintf '\\n{_END} %d\\n' $?\n" for step in steps)
        output = self._folder.parent / "printed"
        with output.open("wb") as file:
            shell = subprocess.Popen(
                ["sh", "-c", script],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._groups.append(shell.pid)
            shell.wait(SECONDS)
        cut = _CALLED.split(output.read_text(encoding="utf-8", errors="replace"))
        printed, codes = cut[:-1:2], cut[1::2]
        self.printed += [
            (step.command, f"{text}[{code}]") for step, text, code in zip(steps, printed, codes, strict=False)
        ]
        if len(printed) < len(steps):
            return [f"$ {steps[len(printed)].command}\nended the shell, which printed:\n{cut[-1]}"]
        return [wrong for ran in zip(steps, printed, codes, strict=True) for wrong in _judge(*ran)]

    def _doctest(self, block: str) -> list[str]:
        if self._python is None:
            self._python = subprocess.Popen(
                ["python", "-c", _PYTHON],
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self._groups.append(self._python.pid)
        assert self._python.stdin is not None
        assert self._python.stdout is not None
        print(json.dumps(block), file=self._python.stdin, flush=True)
        ready, _, _ = select.select([self._python.stdout], [], [], SECONDS)
        if not ready:
            raise subprocess.TimeoutExpired("a pycon block", SECONDS)
        answer = self._python.stdout.readline()
        wrong = json.loads(answer) if answer else f"the interpreter ended in this block:\n{block}"
        return [wrong] if wrong else []


def replay(text: str, folder: Path) -> list[str]:
    """What the transcripts of a page get wrong, up to the first block that is wrong."""
    return replayed(text, folder)[0]


def replayed(text: str, folder: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """What the transcripts of a page get wrong, up to the first block that is wrong, and what was typed and printed."""
    with Replay(folder) as running:
        for language, block in blocks(text):
            wrong = running.run(language, block)
            if wrong:
                return wrong, running.printed
    return [], running.printed


def _judge(step: Step, printed: str, code: str) -> Iterator[str]:
    if code != "0":
        right = "write 'command; echo $?' where that is right"
        yield f"$ {step.command}\nended with exit code {code} ({right}):\n{printed}"
    elif not matches(step.expected, printed):
        yield f"$ {step.command}\nexpected:\n{step.expected}\nprinted:\n{printed}"
