"""Read what another workspace agreed on from its export, as proposals.

The name of the file says whose conventions they are. What they say comes along, and not who said it or what it weighs.
"""

from __future__ import annotations

from pathlib import Path

from memfs.doors.importers.markdown import SourceContent
from memfs.errors import MemfsError
from memfs.fs import io
from memfs.intake.import_service import is_edited, taken_from
from memfs.model import MemoryItem, Trust
from memfs.model.kinds import ACCEPTED, CONVENTION, PROPOSED
from memfs.state.transfer import ExportRecord, item_of, read_json_lines
from memfs.store.parts import Parts

NAME = "conventions"
_THEIR_OWN = frozenset({"accepted"})
"""What of the body each team says for itself: when it accepted it."""


def read(path: Path, parts: Parts) -> SourceContent:
    """The conventions that were accepted there; what is no memory is refused, and the others are left out.

    Raises:
        ItemTooLarge: a line is too long to be read. StorageIO: the file cannot be read.
    """
    taken = SourceContent(f"{NAME} of {path.stem}", Trust.TOOL)
    with io.operation("read", path), path.open("rb") as stream:
        for record in read_json_lines(stream):
            if isinstance(record, ExportRecord):
                _take(record, f"{path.name}:{record.place}", parts, taken)
            else:
                taken.skip(f"{path.name}:{record.line}", record.message, refused=True)
    return taken


def _left_out(item: MemoryItem) -> str:
    """Why an item is not taken in; "" where it is."""
    if item.type != CONVENTION:
        return "no convention"
    if item.status != ACCEPTED:
        return f"{item.status or PROPOSED} there"
    handed_on = str(taken_from(item).get("source")).startswith(f"{NAME} of ") and not is_edited(item)
    return "no convention of theirs: they imported it" if handed_on else ""


def _take(record: ExportRecord, where: str, parts: Parts, taken: SourceContent) -> None:
    try:
        item = item_of(record, parts)
    except MemfsError as error:
        taken.skip(where, error.message, refused=True)
        return
    if reason := _left_out(item):
        taken.skip(where, reason)
        return
    taken.take(
        item.content,
        CONVENTION,
        where=where,
        key=item.id,
        name=item.id,
        facts={"id": item.id},
        title=item.title,
        tags=item.tags,
        expires=item.expires,
        status=PROPOSED,
        data={name: value for name, value in item.data.items() if name not in _THEIR_OWN},
    )
