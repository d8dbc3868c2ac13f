"""Import what an export holds, back into a workspace.

Everything is checked before the first document is stored, and each batch is stored whole or not at all. An import
that was cut short is finished by importing again: what is there already is passed over.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from memfs import errors
from memfs.dataclass import dataclass, field
from memfs.format import item_fields
from memfs.format.codec import schema_of
from memfs.format.plain import canonical, plain, same
from memfs.format.secrets import allowed, refuse_file
from memfs.format.text import shortlist
from memfs.fs import io
from memfs.fs.atomic_replace import sha256
from memfs.model.ids import check_id, slug, stem_of, suffix_of
from memfs.model.item import MemoryItem
from memfs.model.state_paths import document_kind, iteration_of
from memfs.state.aggregates import Aggregates
from memfs.state.export import AGGREGATE, ALL_TYPES, MEMORY, ExportRecord, format_of, json_line, read_json_lines
from memfs.state.reader import StateReader
from memfs.store import Store
from memfs.store.parts import CONTENT
from memfs.store.plan import FilePlan, Planner
from memfs.store.state_files import DocumentChange

_REPLACE = "import with --replace to have it so, or take the record out"
_SUFFIX = 8
_GIVEN_BY_PLACE = ("id", "type")
_TELLING = ("type", "title", "content", "tags", "timestamp", "origin")
"""What makes a line without an id the memory that an earlier import stored."""


def _values(item: MemoryItem) -> Mapping[str, Any]:
    """What is compared: all but when the file was last written, which a replacement changes."""
    return {"id": item.id, "type": item.type, **item_fields.values(item), "updated": None}


def _digest(data: bytes | None) -> str:
    return "" if data is None else sha256(data)


_BATCH = 5_000  # each is a commit, which writes the trees of whole folders again
_BATCH_BYTES = 8 << 20
_KEPT_BYTES = 16 << 20
"""Of so many bytes of records, what the check found to be done is kept; of the rest it is found once more."""
_CHUNK = 1 << 20
_SOURCE = "import"
_NAMED = 20
_TRIES = 5
_SKIP = "--skip-refused leaves out what cannot be imported"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCounts:
    """What an import did.

    Attributes:
        counts: documents stored, by type; ``replaced`` of them were there with other content.
        same: how many were there already with equal content.
        derived: how many aggregates were passed over, as they are computed from the rest.
        refused: why records were left out; ``path`` is the file, ``line`` where the record is in it.
        iterations: which were touched.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    replaced: int = 0
    same: int = 0
    derived: int = 0
    refused: tuple[errors.MemfsError, ...] = ()
    iterations: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        """How many documents were stored."""
        return sum(self.counts.values())


Deeds = tuple[list[DocumentChange], list[FilePlan]]
"""What has to be done for a record: documents to write, or plans for a memory."""
Due = tuple[ExportRecord, Deeds]


@dataclass(slots=True)
class _Batch:
    """What is stored as one commit: documents or memories, each by the record that asks for it."""

    deeds: list[tuple[ExportRecord, Deeds]] = field(default_factory=list)
    bytes: int = 0

    def takes(self, changes: Sequence[DocumentChange]) -> bool:
        """Whether there is room, and what is in it is of the same sort."""
        same_sort = not self.deeds or bool(self.deeds[-1][1][0]) == bool(changes)
        return same_sort and len(self.deeds) < _BATCH and self.bytes < _BATCH_BYTES

    def changes(self) -> list[DocumentChange]:
        """The documents to write."""
        return [change for _, (changes, _) in self.deeds for change in changes]

    def plans(self) -> list[FilePlan]:
        """The plans for memories."""
        return [plan for _, (_, plans) in self.deeds for plan in plans]


@dataclass(slots=True)
class _Tally:
    """What was done so far."""

    counts: Counter[str] = field(default_factory=Counter)
    replaced: int = 0
    same: int = 0
    derived: int = 0
    touched: set[int] = field(default_factory=set)

    def add(self, batch: _Batch) -> None:
        """Count what was stored."""
        for record, (changes, plans) in batch.deeds:
            self.counts[record.type] += 1
            self.replaced += any(change.expected for change in changes) or any(
                plan.before is not None for plan in plans
            )
            self.touched.update(() if (one := iteration_of(record.path)) is None else (one,))


class Importer:
    """Stores documents that an export holds."""

    def __init__(self, reader: StateReader, store: Store, aggregates: Aggregates) -> None:
        self._files = reader.files
        self._reader, self._store = reader, store
        self._parts = reader.parts
        self._planner = Planner(reader.parts, store.index_sync)
        self._aggregates = aggregates

    def read(
        self,
        source: str | os.PathLike[str] | BinaryIO,
        *,
        replace: bool = False,
        dry_run: bool = False,
        skip_refused: bool = False,
        allow_secret: str = "",
    ) -> ImportCounts:
        """Store every document of an export; one that is there already with equal content stays as it is.

        Args:
            source: a file by name, or an open binary file, which need not be seekable.
            replace: documents that differ are replaced; without it they are conflicts.
            dry_run: tell what would be stored, and store nothing.
            skip_refused: leave out the records that cannot be imported.
            allow_secret: why memories may hold what looks like a secret.

        Raises:
            Conflict: documents are there with other content. Nothing was stored.
            ContentError: records are no valid documents; ``also`` has the first of them. Nothing was stored.
            QueryInvalid: by its name it is CSV or Parquet.
            StorageIO: the file cannot be read; or a batch could not be stored, those before it are.
        """
        name = _name_of(source)
        if format_of(name) not in ("", "jsonl"):
            hint = "let 'memfs export --format jsonl' write it"
            raise errors.QueryInvalid(
                "an import takes JSON Lines; CSV and Parquet are for other programs", path=name, hint=hint
            )
        # each new id would be looked for among all files; what is written meanwhile, the write itself finds out
        with self._opened(source, name) as stream, self._store.looking_once():
            refused, made, whole = self._check(stream, name, replace, allow_secret, skip_refused)
            # a file of which all is known is not read again
            due = made.values() if whole else self._due(stream, name, replace, allow_secret, refused, made)
            done = self._store_all(due, name, replace, allow_secret, dry_run, tuple(refused.values()))
        if done.iterations and not dry_run:
            try:
                self._aggregates.update()
            except errors.MemfsError as error:  # the documents are stored, whatever becomes of what follows from them
                self._store.note_failure(error)
        return done

    # -- the file -------------------------------------------------------------------------------------------------
    @contextmanager
    def _opened(self, source: str | os.PathLike[str] | BinaryIO, name: str) -> Iterator[BinaryIO]:
        """The file, so that it can be read twice."""
        if not isinstance(source, str | os.PathLike):
            with self._seekable(source, name) as stream:
                yield stream
            return
        with io.operation("open", name):
            opened = open(source, "rb")  # noqa: SIM115  closed below; a person names it, so links are followed
        with opened, self._seekable(opened, name) as stream:
            yield stream

    @contextmanager
    def _seekable(self, source: BinaryIO, name: str) -> Iterator[BinaryIO]:
        if source.seekable():
            yield source
            return
        place = self._parts.repository.state / f".import.{os.getpid()}.{id(source):x}.tmp"
        fd = io.open_file(place, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        with os.fdopen(fd, "rb") as copy:
            io.unlink(place)
            with io.operation("read", name):
                while chunk := source.read(_CHUNK):
                    io.write_all(fd, chunk, str(place))
            yield copy

    # -- checking -------------------------------------------------------------------------------------------------
    def _check(
        self, stream: BinaryIO, name: str, replace: bool, reason: str, skip_refused: bool
    ) -> tuple[dict[int, errors.MemfsError], dict[int, Due], bool]:
        """Why records cannot be imported, by their number; without ``skip_refused`` one refuses the whole file.

        Also what has to be done for the others, as far as there is room for it, and whether there was for all.
        """
        refused: dict[int, errors.MemfsError] = {}
        made: dict[int, Due] = {}
        number = room = 0
        seen: dict[str, tuple[int | None, str]] = {}
        self._store.follow()
        self._reader.catch_up()
        for number, record in enumerate(_records(stream, name), 1):
            try:
                if isinstance(record, errors.ContentError):
                    raise record
                chosen = _id_of(record) if record.type == MEMORY else ""
                if _is_repeated(record, chosen, seen):
                    made[number] = record, ([], [])
                    continue
                taken = self._taken(record, replace, reason, check=True, chosen=chosen)
                room += record.size
                if room < _KEPT_BYTES:
                    made[number] = record, taken
            except errors.StorageIO:  # the disk's doing, not the record's
                raise
            except errors.MemfsError as error:
                for one in (error, *error.also):
                    one.path = name
                    if isinstance(record, ExportRecord):
                        one.line, one.column = record.place, None
                        one.message = f"{record.path}: {one.message}" if record.path else one.message
                refused[number] = error
        if refused and not skip_refused:
            raise _summary(list(refused.values()), number)
        return refused, made, len(refused) + len(made) == number

    def _taken(
        self, record: ExportRecord, replace: bool, reason: str, *, check: bool = False, chosen: Any = None
    ) -> Deeds:
        """What has to be done for a record; nothing where it is there already. ``chosen``: a memory's id, if known."""
        if record.type == AGGREGATE:
            return [], []
        if record.type == MEMORY:
            return [], self._plans(record, replace, reason, chosen or _id_of(record))
        change = self._change(record, replace, check=check)
        return [change] if change else [], []

    # -- documents ------------------------------------------------------------------------------------------------
    def _change(self, record: ExportRecord, replace: bool, *, check: bool) -> DocumentChange | None:
        """The change that stores a document; None where it is there with equal content.

        Args:
            check: whether to see if it is valid; who writes it finds out in any case.

        Raises:
            PathEscape: no document of that type lies there.
            ContentError: it is not valid.
            Conflict: it is there with other content, and is not to be replaced or cannot be.
        """
        kind = document_kind(record.path)
        if not kind or kind not in ALL_TYPES:
            hint = "'memfs state export' shows where documents lie"
            raise errors.PathEscape("no document that can be imported lies there", hint=hint)
        if record.type != kind:
            raise errors.SchemaInvalid(f"a document of type {kind!r} lies there", field="type", hint=f"write {kind}")
        change = self._needed(record, replace)
        if change is not None and check:
            self._require_valid(record)
        return change

    def _needed(self, record: ExportRecord, replace: bool) -> DocumentChange | None:
        try:
            there = self._files.read(record.path)
        except FileNotFoundError:
            return self._new(record)
        except errors.ContentError as error:
            raise errors.Conflict(
                f"what is there cannot be read: {error.message}", hint="repair it first: 'memfs check' says how"
            ) from error
        if not there.problem and same(plain(there.values), plain(record.document)):
            return None
        if not replace:
            raise errors.Conflict("it is there with other content", current=there.sha256, hint=_REPLACE)
        return DocumentChange(record.path, record.document, expected=there.sha256)

    def _new(self, record: ExportRecord) -> DocumentChange | None:
        row = self._reader.index.row(record.path)
        if row is None or not row.archive:
            return DocumentChange(record.path, record.document, expected="")
        if same(plain(self._reader.load(row)), plain(record.document)):
            return None
        raise errors.Conflict(
            "it is archived with other content", hint=f"unpack it first: memfs admin archive unpack {record.iteration}"
        )

    def _require_valid(self, record: ExportRecord) -> None:
        """The checks of a write, without one."""
        try:
            data = self._parts.codec.write_document(record.document, record.path, schema_of(record.path))
        except errors.ItemTooLarge:
            return  # it is checked when its large values have got files of their own
        refuse_file(data, record.path)

    # -- memories -------------------------------------------------------------------------------------------------
    def _plans(self, record: ExportRecord, replace: bool, allow_secret: str, chosen: Any) -> list[FilePlan]:
        """What stores a memory, nothing where it is there with equal content.

        Its file's text counts while it says the same as its fields: then it gets the very bytes it had. Otherwise the
        fields count, as somebody changed them.

        Raises:
            ContentError: it is not valid.
            Conflict: it is there with other content, and is not to be replaced.
        """
        item, secret = allowed(self._item(record, chosen), allow_secret)
        data = self._text(record, item)
        existing = self._store.get(item.id)
        if existing is not None:
            item = _with_times(item, record.document, existing)
        if existing is not None and (existing.sha256 == _digest(data) or _values(existing) == _values(item)):
            return []
        if existing is not None and not replace:
            if not _is_named(record):  # what an earlier import stored, and somebody changed here since
                return []
            raise errors.Conflict(
                f"the memory {item.id!r} is there with other content", current=existing.sha256, hint=_REPLACE
            )
        if data is None or (existing is not None and existing.path != record.path):
            return self._planner.put(item, existing.sha256 if existing else "", allow_secret, plain=not secret)
        return self._restored(record.path, data, item)

    def _item(self, record: ExportRecord, named: Any) -> MemoryItem:
        """The item that the fields describe, read as the file it could be: one home for what a valid item is."""
        own = {key: value for key, value in record.document.items() if key not in _GIVEN_BY_PLACE}
        own = {key: value for key, value in own.items() if value not in (None, "", [], {})}
        kind = self._parts.kinds.get(str(record.document.get("type") or "semantic"))
        chosen = check_id(str(named))
        place = f"{CONTENT}/{kind.folder}/{chosen}.json"
        data = json.dumps(own, ensure_ascii=False).encode("utf-8", "surrogatepass")
        item: MemoryItem = self._parts.codec.read(data, place, self._parts.clock())
        return item.replace(path="", sha256="")

    def _text(self, record: ExportRecord, item: MemoryItem) -> bytes | None:
        """The bytes to restore, None where the fields count."""
        kind = self._parts.kinds.at(record.path.removeprefix(f"{CONTENT}/"))
        if not record.text or kind is None or kind.name != item.type or stem_of(record.path) != item.id:
            return None
        data = record.text.encode()
        there = self._parts.codec.read(data, record.path, item.timestamp or self._parts.clock())
        return data if _values(there) == _values(item) else None

    def _restored(self, path: str, data: bytes, item: MemoryItem) -> list[FilePlan]:
        stored, reason = item.replace(path=path, sha256=sha256(data)), allowed(item)[1]
        plans = self._store.plan_restore({path: data})
        return [plan._replace(item=stored, vetted=False, reason=reason) for plan in plans]

    # -- storing --------------------------------------------------------------------------------------------------
    def _store_all(
        self,
        due: Iterable[Due],
        name: str,
        replace: bool,
        reason: str,
        dry_run: bool,
        refused: tuple[errors.MemfsError, ...],
    ) -> ImportCounts:
        tally, batch = _Tally(), _Batch()

        def store() -> None:
            if batch.deeds and not dry_run:
                self._carry_out(batch, name, tally, replace, reason)
            tally.add(batch)

        for record, deeds in due:
            tally.derived += record.type == AGGREGATE
            if not any(deeds):
                tally.same += record.type != AGGREGATE
                continue
            if not batch.takes(deeds[0]):
                store()
                batch = _Batch()
            batch.deeds.append((record, deeds))
            batch.bytes += record.size
        store()
        return ImportCounts(
            counts=dict(tally.counts),
            replaced=tally.replaced,
            same=tally.same,
            derived=tally.derived,
            refused=refused,
            iterations=tuple(sorted(tally.touched)),
        )

    def _due(
        self, stream: BinaryIO, name: str, replace: bool, reason: str, refused: Collection[int], made: dict[int, Due]
    ) -> Iterator[Due]:
        """The records that are not refused, with what has to be done for them, ``made`` for some already."""
        for number, record in enumerate(_records(stream, name), 1):
            if number in made:
                yield made.pop(number)
            elif number not in refused and isinstance(record, ExportRecord):
                yield record, self._taken(record, replace, reason)

    def _carry_out(self, batch: _Batch, name: str, tally: _Tally, replace: bool, reason: str) -> None:
        """Store a batch; what somebody else stored of it at the same moment is left out of it, and counts as there."""
        number, tries = len(batch.deeds), 0
        one, more = ("document", "documents") if batch.deeds[0][1][0] else ("memory", "memories")
        message = f"Import {number:,} {one if number == 1 else more} from {os.path.basename(name)}"
        try:
            while not self._is_stored(batch, message, tries := tries + 1):
                self._store.refresh()
                self._reader.catch_up()
                anew = [(record, self._taken(record, replace, reason)) for record, _ in batch.deeds]
                batch.deeds = [(record, deeds) for record, deeds in anew if any(deeds)]
        except (errors.StorageIO, errors.Conflict) as error:
            before = tally.counts.total()
            stored = f"{before:,} {more} before this one are stored; " if before else ""
            error.hint = f"{stored}{(error.hint or 'try again').rstrip('.')}, then import again: it goes on from there"
            raise
        tally.same += number - len(batch.deeds)

    def _is_stored(self, batch: _Batch, message: str, tries: int) -> bool:
        """Store it as one commit; False where somebody was quicker with a part of it."""
        try:
            if changes := batch.changes():
                self._files.write(changes, message, source=_SOURCE)
            elif plans := batch.plans():
                self._store.carry_out(plans, message, source=_SOURCE, critical=False)
        except errors.Conflict:
            if tries == _TRIES:
                raise
            return False
        return True


def _name_of(source: str | os.PathLike[str] | BinaryIO) -> str:
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else getattr(source, "name", "")
    return name if isinstance(name, str) and name and not name.startswith("<") else "standard input"


def _with_times(item: MemoryItem, said: Mapping[str, Any], existing: MemoryItem) -> MemoryItem:
    """The item with the times of the one that is there, where its record names none."""
    if said.get("created"):
        return item
    return item.replace(
        created=existing.created, timestamp=item.timestamp if said.get("timestamp") else existing.timestamp
    )


def _id_of(record: ExportRecord) -> Any:
    """What a memory's record gives as its id; else one that follows from what it says, the same at every import."""
    said = record.document
    if named := said.get("id") or (stem_of(record.path) if record.path else ""):
        return named
    suffix = suffix_of(canonical([said.get(key) or "" for key in _TELLING]).encode(), _SUFFIX)
    return f"{slug(str(said.get('title') or said.get('content') or '')) or 'memory'}-{suffix}"


def _is_named(record: ExportRecord) -> bool:
    """Whether a memory's record says by itself which memory it is."""
    return bool(record.document.get("id") or record.path)


def _is_repeated(record: ExportRecord, chosen: Any, seen: dict[str, tuple[int | None, str]]) -> bool:
    """Whether a line without an id stands there already, word for word.

    Args:
        chosen: a memory's id.

    Raises:
        DuplicateId: another record has its id or its place.
    """
    is_named = record.type != MEMORY or _is_named(record)
    name = str(chosen).casefold() if record.type == MEMORY else record.path
    said = "" if is_named else sha256(json_line(record))
    place, earlier = seen.setdefault(name, (record.place, said))
    if place == record.place:
        return False
    if said and said == earlier:
        return True
    raise errors.DuplicateId(f"it stands in line {place} already", hint="keep one of the two")


def _summary(refused: Sequence[errors.MemfsError], total: int) -> errors.MemfsError:
    """One error for all that is wrong with a file."""
    found = refused[0]
    if len(refused) > 1:
        alike: dict[tuple[str, str | None], list[errors.MemfsError]] = {}
        for error in refused:
            alike.setdefault((error.message, error.hint), []).append(error)
        sort = errors.Conflict if all(isinstance(error, errors.Conflict) for error in refused) else errors.ContentError
        many = f"{len(refused):,} of {total:,} records cannot be imported; nothing was stored"
        message = f"{many}. The first: {found.message}"
        if len(alike) == 1:
            message += f"; likewise line {shortlist(str(error.line) for error in refused[1:] if error.line)}"
        line = found.line
        found = sort(message, path=found.path, hint=found.hint)
        found.line = line
        found.also = tuple([same[0] for same in alike.values()][:_NAMED]) if len(alike) > 1 else ()
    found.hint = "; ".join(filter(None, (found.hint, _SKIP)))
    return found


def _records(stream: BinaryIO, name: str) -> Iterator[ExportRecord | errors.ContentError]:
    """The records of a file from its beginning, in their order, or why one is none.

    Raises:
        ContentError: a line is too long to be read; with the file's name.
    """
    stream.seek(0)
    try:
        yield from read_json_lines(stream)
    except errors.ContentError as error:
        raise error.located(name) from None
    except OSError as error:
        raise io.storage_error(error, "read", name) from error
