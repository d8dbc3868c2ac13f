"""``merge-driver``: join three versions of a memory file for git.

Git never takes one version for the merged file because memfs failed. Git starts a process for each file, so its own
form of the call is read without click, and nothing is imported that one file can do without.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from memfs.dataclass import NamedTuple
from memfs.doors.cli.command import verb
from memfs.doors.cli.declare import click
from memfs.doors.cli.output import secure
from memfs.errors import MemfsError
from memfs.team.merge_driver import FAILED, DriverResult, drive, give_up

_FILES, _WORDS = 3, 7
_DIGITS = 4


class MergeRequest(NamedTuple):
    """What git asks: its three temporary files, the length of conflict markers, and the path of the file."""

    base: Path
    ours: Path
    theirs: Path
    marker_size: int
    path: str


def parse_call(words: Sequence[str]) -> MergeRequest | None:
    """The call in ``BASE OURS THEIRS --marker-size N --path PATH``; None where the words are anything else."""
    if len(words) != _WORDS or any(word.startswith("-") for word in words[:_FILES]):
        return None
    size = words[4]
    if (words[3], words[5]) != ("--marker-size", "--path") or not (size.isdecimal() and len(size) <= _DIGITS):
        return None
    base, ours, theirs = map(Path, words[:_FILES])
    return MergeRequest(base, ours, theirs, int(size), words[6])


def answer(call: MergeRequest) -> int:
    """Join the file; the exit code for git."""
    secure()
    try:
        driven = drive(call.base, call.ours, call.theirs, call.path, marker_size=call.marker_size)
    except Exception as error:  # noqa: BLE001  whatever it is, git must not take our version for the outcome
        driven = _given_up(call, f"memfs could not merge it ({str(error) or type(error).__name__})")
    if driven.notes:
        from memfs.format.text import shown_line

        with suppress(OSError):  # the reader is gone: the outcome is the same
            for note in driven.notes:
                sys.stderr.write(f"memfs: {shown_line(note)}\n")
    return driven.code


def _given_up(call: MergeRequest, reason: str) -> DriverResult:
    """Both versions in the file; where not even that can be written, a code on which git's shell tries it itself."""
    try:
        return give_up(call.ours, call.theirs, call.path, reason, call.marker_size)
    except (MemfsError, OSError) as error:
        return DriverResult(code=FAILED, notes=(f"{call.path}: {reason}; {error}",))


@verb("merge-driver", json=False)
@click.argument("base")
@click.argument("ours")
@click.argument("theirs")
@click.option("--path", required=True, metavar="PATH", help="Path of the merged file, below the work tree.")
@click.option("--marker-size", type=int, default=7, show_default=True, help="Length of conflict markers.")
def merge_driver(base: str, ours: str, theirs: str, path: str, marker_size: int) -> int:
    """Merge BASE, OURS and THEIRS field by field, and write the outcome over OURS.

    Git calls this with its temporary files wherever both sides changed a memory file; 'memfs init' arranges that. The
    exit code is 0 where the file is merged, and 1 where there is a conflict to resolve.

    Examples:
        git config merge.memfs.driver 'memfs merge-driver %O %A %B --marker-size %L --path %P'
    """
    return answer(MergeRequest(Path(base), Path(ours), Path(theirs), marker_size, path))
