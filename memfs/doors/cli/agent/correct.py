"""``agent correct``: keep what a person corrects or prefers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.draft import spoken
from memfs.doors.cli.filters import pair
from memfs.doors.cli.options import SOURCE, allow_secret_option, land
from memfs.doors.cli.output import Note, Text, count, merge, one_line, styled
from memfs.recall.conflict_notes import CONTRADICTS

if TYPE_CHECKING:
    from memfs.model import MemoryItem

_PASSED_SHOWN = 3


@dataclass(frozen=True, slots=True)
class KeptPreference:
    """A preference that was kept, or made stronger.

    Attributes:
        item: of which these fields stand beside the others.
        contradicts: ids of the items that say otherwise.
    """

    item: MemoryItem = field(metadata=merge("id content path"))
    contradicts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CorrectionReport:
    """What was kept of what a person said.

    Attributes:
        preferences: what is told from now on.
        passed_over: sentences that were not kept, as they neither correct nor prefer.
    """

    preferences: tuple[KeptPreference, ...]
    passed_over: tuple[str, ...]


def _text(done: CorrectionReport) -> Text:
    for one in done.preferences:
        yield f"{styled(one.item.id, fg='green', bold=True)}  {one_line(one.item.content, 100)}"
        for other in one.contradicts:
            yield f"  contradicts {other}: this one is told; 'memfs team conflicts' settles it"
    if not done.preferences:
        yield Note("no sentence corrects or prefers: nothing was kept")
    for sentence in done.passed_over[:_PASSED_SHOWN]:
        yield Note(f"not kept, as it neither corrects nor prefers: {one_line(sentence, 80)}")
    if (more := len(done.passed_over) - _PASSED_SHOWN) > 0:
        yield Note(f"nor were {count(more, 'further sentence')}")


@verb("correct", text=_text, lands=True)
@click.argument("text", nargs=-1, required=True, metavar="TEXT...")
@click.option("--speaker", default="", metavar="NAME", help="Who says so.")
@click.option("--agent", default="", metavar="NAME", help="The agent it is said to.")
@click.option("--session", default="", metavar="NAME", help="The session it is said in.")
@click.option("--task", default="", metavar="NAME", help="The task it is said at.")
@click.option("--context", multiple=True, metavar="KEY=VALUE", help="A circumstance in which it holds; repeatable.")
@click.option("--only-corrections", is_flag=True, help="Keep nothing where no sentence corrects or prefers.")
@allow_secret_option
def correct(text: tuple[str, ...], context: tuple[str, ...], only_corrections: bool, **known: str) -> CorrectionReport:
    """Keep what a person corrects or prefers; agents are told from then on.

    Each sentence of TEXT that corrects or prefers becomes a preference of trust 'human', or else TEXT as a whole. What
    was said before is united with it, and what it contradicts is linked. '-' reads standard input.

    Examples:
        memfs agent correct "Don't use print for logging"
        memfs agent correct "No, always run the tests with -x" --speaker Ada --session s42
    """
    from memfs.learning.corrections import corrections, passed_over  # --help does without it

    message, circumstances = spoken(text), dict(pair(written) for written in context)
    with opened() as workspace:
        preferences = workspace.sources.preferences
        items = preferences.record(message, context=circumstances, whole=not only_corrections, source=SOURCE, **known)
        land(workspace, items[-1] if items else None)
    against = [tuple(link.to for link in item.links if link.relation == CONTRADICTS) for item in items]
    kept = tuple(map(KeptPreference, items, against))
    # where nothing was kept, or the message as a whole, no sentence was passed over
    return CorrectionReport(kept, tuple(passed_over(message)) if items and corrections(message) else ())
