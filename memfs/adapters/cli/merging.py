"""``merge-driver``: what git calls to join three versions of a memory file.

Owns its arguments, its exit code and what a person reads of it on standard error. How versions are joined is
``memfs.teams.driver``'s business.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from memfs.adapters.cli.frame import verb
from memfs.adapters.cli.output import clean
from memfs.errors import MemfsError

if TYPE_CHECKING:
    from memfs.teams.driver import Driven


@verb(
    "merge-driver",
    example="git config merge.memfs.driver 'memfs merge-driver %O %A %B --marker-size %L --path %P'",
    json=False,
)
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("ours", type=click.Path(path_type=Path))
@click.argument("theirs", type=click.Path(path_type=Path))
@click.option("--path", "path", required=True, metavar="PATH", help="Of the file that is merged, below the work tree.")
@click.option("--marker-size", type=int, default=7, show_default=True, help="How long conflict markers are.")
@click.pass_context
def merge_driver(ctx: click.Context, base: Path, ours: Path, theirs: Path, path: str, marker_size: int) -> None:
    """Join BASE, OURS and THEIRS field by field, and write the outcome over OURS.

    Git calls this with its temporary files wherever both sides changed a memory file; 'memfs init' arranges that. The
    exit code is 0 where the file is joined, and 1 where somebody has to decide first.
    """
    from memfs.teams import driver  # brings the schemas, which --help does without

    try:
        driven = driver.drive(base, ours, theirs, path, marker_size=marker_size)
    except Exception as error:  # noqa: BLE001  whatever it is, git must not take our version for the outcome
        reason = str(error) or type(error).__name__
        driven = _given_up(ours, theirs, path, f"memfs could not join it ({reason})", marker_size)
    for note in driven.notes:
        click.echo(f"memfs: {clean(note)}", err=True)
    ctx.exit(driven.code)


def _given_up(ours: Path, theirs: Path, path: str, reason: str, marker_size: int) -> Driven:
    """Both versions in the file; where not even that can be written, a code on which git's shell tries it itself."""
    from memfs.teams import driver  # see above

    try:
        return driver.give_up(ours, theirs, path, reason, marker_size)
    except (MemfsError, OSError) as error:
        return driver.Driven(code=driver.FAILED, notes=(f"{path}: {reason}; {error}",))
