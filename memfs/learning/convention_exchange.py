"""Exports the conventions of a workspace to one readable file, and imports such a file.

The format is version 1 of ``docs/conventions.md``. A file carries what a convention says, not who said it or what it
weighs here; importing it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memfs.dataclass import dataclass
from memfs.errors import ContentError, FormatUnsupported, MemfsError, QueryInvalid, SchemaInvalid
from memfs.format.codec import Codec
from memfs.format.render import parse
from memfs.format.secrets import refuse_item, refuse_text
from memfs.intake.import_service import FROM, Arrival, Became, ImportResult, ImportService, id_of
from memfs.learning.conventions import STATUSES, Conventions, require_status
from memfs.model import MemoryItem
from memfs.model.ids import check_id
from memfs.model.item import Origin, Trust
from memfs.model.kinds import ACCEPTED, CONVENTION, PROPOSED, RETIRED
from memfs.model.time import format_time, parse_time
from memfs.store import Store
from memfs.store.parts import Parts

FORMAT = "memfs-conventions"
VERSION = 1
SCHEMA = "shared_conventions"
LARGEST = 4 << 20
_THEIR_OWN = frozenset({"accepted"})
"""What of the body each team says for itself: when it accepted it."""
_SUFFIXES = (".yaml", ".yml", ".json")
_HEADING = "# Conventions of {name}, for other workspaces: 'memfs team convention import' takes them in.\n"
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFile:
    """A file of conventions: the workspace they come from, and they themselves."""

    workspace: str
    conventions: tuple[MemoryItem, ...] = ()

    def encode(self, codec: Codec, name: str) -> bytes:
        """Its bytes: the same for the same conventions; YAML, or JSON by the name's ending.

        Raises:
            ContentError: they are too many, or too large.
        """
        document = {
            "format": FORMAT,
            "format_version": VERSION,
            "workspace": self.workspace,
            "conventions": [_entry(one) for one in self.conventions],
        }
        path = _as_document(name)
        data = codec.write_document(document, path, SCHEMA)
        if not path.endswith(".json"):
            data = _HEADING.format(name=self.workspace.encode("ascii", "replace").decode()).encode() + data
        if len(data) > LARGEST:
            raise ContentError(
                f"the conventions take {len(data):,} bytes, more than {LARGEST:,}", hint="export fewer of them"
            )
        return data

    @classmethod
    def decode(cls, data: bytes, name: str, codec: Codec) -> SharedFile:
        """What such a file holds.

        Raises:
            ContentError: it is not such a file; with line or field.
            FormatUnsupported: a newer version wrote it.
        """
        path = _as_document(name)
        try:
            if len(data) > LARGEST:
                raise ContentError(f"{len(data):,} bytes, limit {LARGEST:,}", hint="this is no file of conventions")
            _refuse_other(parse(data, path).mapping)
            values = codec.read_document(data, path, SCHEMA)
            workspace = checked_name(values["workspace"], "workspace")
            return cls(workspace=workspace, conventions=tuple(map(_convention, values["conventions"])))
        except MemfsError as error:
            error.path = name
            raise


def _as_document(name: str) -> str:
    """A name by whose ending the codec knows the format; YAML where it has none."""
    return name if name.endswith(_SUFFIXES) else f"{name}.yaml"


def _refuse_other(values: Mapping[str, Any]) -> None:
    if values.get("format") != FORMAT:
        raise SchemaInvalid(
            "this is no file of conventions", field="format", hint="'memfs team convention export FILE' writes one"
        )
    version = values.get("format_version")
    if isinstance(version, int) and version > VERSION:
        raise FormatUnsupported(
            f"version {version} of the format is newer than {VERSION}", field="format_version", hint="update memfs"
        )


def _entry(item: MemoryItem) -> dict[str, Any]:
    """A convention as the file has it."""
    values = {
        "id": item.id,
        "status": item.status.strip() or PROPOSED,
        "title": item.title,
        "content": item.content,
        "tags": list(item.tags),
        "expires": format_time(item.expires) if item.expires else "",
        "data": {name: value for name, value in item.data.items() if name not in _THEIR_OWN},
    }
    return {name: value for name, value in values.items() if value}


def _convention(values: Mapping[str, Any]) -> MemoryItem:
    refuse_text(values["id"], "id")
    title = values.get("title", "")
    content = values.get("content", "").strip() or title
    if not content.strip():
        raise SchemaInvalid(f"{values['id']} says nothing", field="content", hint="write content, a title, or both")
    return MemoryItem(
        content,
        CONVENTION,
        id=check_id(values["id"]),
        title=title,
        tags=tuple(dict.fromkeys(values.get("tags", ()))),
        expires=parse_time(values["expires"]) if "expires" in values else None,
        data={name: value for name, value in values.get("data", {}).items() if name not in _THEIR_OWN},
        status=values.get("status", PROPOSED),
    )


def checked_name(name: str, field: str = "name") -> str:
    """The name of a workspace as others read it, in commits and on terminals.

    Raises:
        QueryInvalid: it is too long, or no single line.
        SecretDetected.
    """
    line = " ".join(name.split())
    if not line or len(line) > _LONGEST_NAME or not name.isprintable():
        raise QueryInvalid(
            f"{ascii(name)[:60]} is no name for a workspace", field=field, hint=f"one line, at most {_LONGEST_NAME}"
        )
    refuse_text(line, field)
    return line


class ConventionExchange:
    """Exports and imports conventions of one workspace."""

    def __init__(self, store: Store, parts: Parts, conventions: Conventions) -> None:
        self._store = store
        self._parts = parts
        self._conventions = conventions

    def export(self, statuses: Iterable[str] = (ACCEPTED,), ids: Sequence[str] = (), name: str = "") -> SharedFile:
        """The conventions of these statuses, or those named, as others may have them.

        Args:
            name: how others know this workspace; its folder's name by default.

        Raises:
            ItemNotFound, QueryInvalid: there is no such convention or status.
            SecretDetected: one holds what looks like a secret, even where it may stay here.
        """
        wanted = tuple(statuses)
        for status in wanted:
            require_status(status)
        chosen = map(self._conventions.find, ids) if ids else self._conventions.every()
        items = {one.id: one.item for one in chosen if ids or one.status in wanted}
        for item in items.values():
            if item.status.strip() not in ("", *STATUSES):
                hint = f"make it one of {', '.join(STATUSES)}"
                raise QueryInvalid(f"{item.id!r} has a status of its own", field="status", hint=hint)
            try:
                refuse_item(item.replace(metadata={}))  # whatever allows a secret to stay here
            except MemfsError as error:
                raise error.located(item.path) from None
        return SharedFile(workspace=self._name(name), conventions=tuple(items[one] for one in sorted(items)))

    def encode(self, shared: SharedFile, file_name: str) -> bytes:
        """The bytes of the file; see ``SharedFile.encode``."""
        return shared.encode(self._parts.codec, file_name)

    def take_in(
        self, data: bytes, file_name: str, *, accepted: bool = False, replace: bool = False, dry_run: bool = False
    ) -> list[ImportResult]:
        """Store the conventions of a file, as one commit; what is refused, such as a secret, is left out and named.

        What is new comes in as ``proposed`` and of trust ``tool``, until somebody here accepts it. One that was
        imported before is updated where nobody changed it here. What is retired, here or there, stays as it is.
        Importing a file again changes nothing.

        Args:
            data: the file's bytes.
            file_name: what to call it in errors; its ending says whether it is JSON.
            accepted: what the other workspace accepted counts as accepted here, too, and as ``reviewed``.
            replace: one that was edited here and has changed there is replaced, too; history keeps the edit.
            dry_run: only say what would be done.

        Returns:
            What became of each; those of which nothing is to be stored come last.

        Raises:
            ContentError, FormatUnsupported, IdInvalid, QueryInvalid: the file cannot be taken in.
            Conflict, StorageIO: as ``Store.batch``; nothing was stored.
        """
        shared = SharedFile.decode(data, file_name, self._parts.codec)
        source = f"conventions of {shared.workspace}"
        self._store.follow()
        here = {one.id: one.item for one in self._conventions.every()}
        arrivals: list[Arrival] = []
        settled: list[ImportResult] = []
        for theirs in shared.conventions:
            keeps_id = not self._store.locate(theirs.id) or _came_from(here.get(theirs.id), source)
            one = _arrival(theirs, source, accepted, keeps_id)
            ours = here.get(id_of(source, one)) or here.get(theirs.id)
            if (done := _settled(theirs, one, ours, source)) is not None:
                settled.append(done)
            else:
                arrivals.append(one)
        service = ImportService(self._store, self._parts)
        taken = service.take_in(source, arrivals, message=f"Import {source}", replace=replace, dry_run=dry_run)
        return [*taken, *settled]

    def _name(self, name: str) -> str:
        """How others know this workspace: as it is told, else by its folder where that can be a name."""
        if name:
            return checked_name(name)
        try:
            return checked_name(self._parts.tree.root.name)
        except MemfsError:
            return "workspace"


def _came_from(item: MemoryItem | None, source: str) -> bool:
    """Whether an item was imported from a source."""
    recorded = item.metadata.get(FROM) if item is not None else None
    return isinstance(recorded, Mapping) and recorded.get("source") == source


def _arrival(theirs: MemoryItem, source: str, accepted: bool, keeps_id: bool) -> Arrival:
    """A convention of a file: text from outside, unless somebody vouches for it."""
    holds = accepted and theirs.status == ACCEPTED
    item = theirs.replace(
        id="",
        status=ACCEPTED if holds else PROPOSED,
        trust=(Trust.REVIEWED if holds else Trust.TOOL).value,
        origin=Origin(tool=source),
    )
    return Arrival(key=theirs.id, item=item, name=theirs.id, where=theirs.id, id=theirs.id if keeps_id else "")


def _settled(theirs: MemoryItem, one: Arrival, ours: MemoryItem | None, source: str) -> ImportResult | None:
    """What becomes of a convention of which nothing is to be stored; None where that is to be seen.

    Args:
        ours: the convention here that it came in as, or that has its id.
    """
    name = ours.id if ours is not None else ""
    if theirs.status == RETIRED:
        reason = "retired there; 'memfs team convention retire' does so here"
        return ImportResult(arrival=one, became=Became.KEPT, id=name, reason=reason)
    if ours is None:
        return None
    if not _came_from(ours, source):
        same = _entry(ours) | {"status": ""} == _entry(theirs) | {"status": ""}
        return ImportResult(arrival=one, became=Became.SAME, id=name) if same else None
    if ours.status == RETIRED:
        return ImportResult(arrival=one, became=Became.KEPT, id=name, reason="retired here")
    return None
