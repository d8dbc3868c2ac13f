"""``state aggregates``: three files that sum up all iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass
from memfs.doors.cli.command import verb
from memfs.doors.cli.options import land
from memfs.doors.cli.output import Note, Table, Text
from memfs.model.state_paths import AGGREGATE_NAMES, aggregate_path

if TYPE_CHECKING:
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class MadeAggregates:
    """The aggregates.

    Attributes:
        changed: the files that changed.
        paths: all of them.
        behind: the iterations whose documents say something else by now.
    """

    changed: tuple[str, ...]
    paths: tuple[str, ...]
    behind: tuple[int, ...]


def _text(made: MadeAggregates) -> Text:
    rows = [(f"  {path}", "changed" if path in made.changed else "as it was") for path in made.paths]
    yield Table(rows, dim=(1,))
    if not rows:
        yield Note("there is nothing to sum up yet")


@verb("aggregates", text=_text)
@click.option("--rebuild", is_flag=True, help="Rebuild them from the documents alone.")
def aggregates(workspace: Workspace, rebuild: bool) -> MadeAggregates:
    """Bring the three files in ContextMemory/aggregates up to date, and say which of them changed.

    They follow from the documents of the iterations, archived ones included: --rebuild gives the same bytes as bringing
    them up to date, unless somebody edited them.

    Examples:
        memfs state aggregates
        memfs state aggregates --rebuild
    """

    states = workspace.states
    changed = states.aggregates.rebuild() if rebuild else states.aggregates.update()
    if changed:
        land(workspace)
    paths = tuple(path for path in map(aggregate_path, AGGREGATE_NAMES) if states.files.exists(path))
    return MadeAggregates(tuple(changed), paths, tuple(states.aggregates.behind()))
