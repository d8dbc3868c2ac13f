"""``merge-driver``: join three versions of a memory file for git.

A call in git's own form goes straight to ``memfs.doors.cli.merge_request``, without click.
"""

from __future__ import annotations

from pathlib import Path

import click

from memfs.doors.cli.command import verb


@verb("merge-driver", json=False)
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("ours", type=click.Path(path_type=Path))
@click.argument("theirs", type=click.Path(path_type=Path))
@click.option("--path", "path", required=True, metavar="PATH", help="Of the file that is merged, below the work tree.")
@click.option("--marker-size", type=int, default=7, show_default=True, help="How long conflict markers are.")
def merge_driver(base: Path, ours: Path, theirs: Path, path: str, marker_size: int) -> int:
    """Join BASE, OURS and THEIRS field by field, and write the outcome over OURS.

    Git calls this with its temporary files wherever both sides changed a memory file; 'memfs init' arranges that. The
    exit code is 0 where the file is joined, and 1 where somebody has to decide first.

    Examples:
        git config merge.memfs.driver 'memfs merge-driver %O %A %B --marker-size %L --path %P'
    """
    from memfs.doors.cli import merge_request

    return merge_request.answer(merge_request.MergeRequest(base, ours, theirs, marker_size, path))
