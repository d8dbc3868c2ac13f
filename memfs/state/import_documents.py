"""Import what an export holds, back into a workspace.

Everything is checked before the first document is stored, and each batch is stored whole or not at all. An import
that was cut short is finished by importing again: what is there already is passed over.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, cast

from memfs import errors
from memfs.dataclass import dataclass, field
from memfs.format import item_fields
from memfs.format.codec import schema_of
from memfs.format.plain import canonical, plain, same
from memfs.format.secrets import allowed, refuse_file
from memfs.format.text import shortlist
from memfs.fs import io
from memfs.fs.archive import batches
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
_BATCH = 5_000  # each is a commit, which writes the trees of whole folders again
_BATCH_BYTES = 8 << 20
_KEPT_BYTES = 16 << 20
"""Of so many bytes of records, what the check found to be done is kept; of the rest it is found once more."""
_SOURCE = "import"
_NAMED = 20
_TRIES = 5
_SKIP = "--skip-refused leaves out what cannot be imported"

Deeds = Sequence[DocumentChange] | Sequence[FilePlan]
"""What has to be done for a record: a document to write, or plans for a memory; nothing where it is there already."""
Due = tuple[ExportRecord, Deeds]


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


class Importer:
    """Stores documents that an export holds."""

    def __init__(self, reader: StateReader, store: Store, aggregates: Aggregates) -> None:
        self._reader, self._store, self._aggregates = reader, store, aggregates

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
        beside = self._reader.parts.repository.state
        with _opened(source, name, beside) as stream, self._store.looking_once():
            made = _Import(self._reader, self._store, stream, name, replace, allow_secret)
            done = made.store(made.check(skip_refused), dry_run)
        if done.iterations and not dry_run:
            try:
                self._aggregates.update()
            except errors.MemfsError as error:  # the documents are stored, whatever becomes of what follows from them
                self._store.note_failure(error)
        return done


@contextmanager
def _opened(source: str | os.PathLike[str] | BinaryIO, name: str, beside: Path) -> Iterator[BinaryIO]:
    """The file, so that it can be read twice: a pipe is copied into the folder ``beside``, under no name."""
    with ExitStack() as stack:
        stream = source
        if isinstance(stream, str | os.PathLike):
            with io.operation("open", name):
                stream = stack.enter_context(open(stream, "rb"))  # a person names it, so links are followed
        if not stream.seekable():
            with io.operation("read", name):
                copy = stack.enter_context(tempfile.TemporaryFile(dir=beside))
                shutil.copyfileobj(stream, copy)
            stream = cast(BinaryIO, copy)
        yield stream


class _Import:
    """One import: what is to be done for each record of a file, and the doing."""

    def __init__(
        self, reader: StateReader, store: Store, stream: BinaryIO, name: str, replace: bool, allow_secret: str
    ) -> None:
        self._reader, self._store, self._parts, self._files = reader, store, reader.parts, reader.files
        self._planner = Planner(reader.parts, store.index_sync)
        self._stream, self._name = stream, name
        self._replace, self._allow_secret = replace, allow_secret
        self._refused: dict[int, errors.MemfsError] = {}

    def check(self, skip_refused: bool) -> Iterable[Due]:
        """What is to be done for the records, each by its number, but for those that cannot be imported.

        Raises:
            ContentError, Conflict: one cannot, and none is to be left out for that.
        """
        made: dict[int, Due] = {}
        number = room = 0
        seen: dict[str, tuple[int | None, str]] = {}
        self._store.follow()
        self._reader.catch_up()
        for number, record in enumerate(_records(self._stream, self._name), 1):
            try:
                if isinstance(record, errors.ContentError):
                    raise record
                repeated = _is_repeated(record, seen)
                deeds: Deeds = () if repeated else self._deeds(record)
                room += record.size
                if repeated or room < _KEPT_BYTES:
                    made[number] = record, deeds
            except errors.StorageIO:  # the disk's doing, not the record's
                raise
            except errors.MemfsError as error:
                for one in (error, *error.also):
                    one.path = self._name
                    if isinstance(record, ExportRecord):
                        one.line, one.column = record.place, None
                        one.message = f"{record.path}: {one.message}" if record.path else one.message
                self._refused[number] = error
        if self._refused and not skip_refused:
            raise _summary(list(self._refused.values()), number)
        # a file of which all is known is not read again
        return made.values() if len(self._refused) + len(made) == number else self._again(made)

    def _again(self, made: dict[int, Due]) -> Iterator[Due]:
        for number, record in enumerate(_records(self._stream, self._name), 1):
            if number in made:
                yield made.pop(number)
            elif number not in self._refused and isinstance(record, ExportRecord):
                yield record, self._deeds(record)

    def _deeds(self, record: ExportRecord) -> Deeds:
        """What has to be done for a record.

        Raises:
            ContentError: it is not valid.
            Conflict: it is there with other content, and is not to be replaced or cannot be.
        """
        if record.type == AGGREGATE:
            return ()
        return self._plans(record) if record.type == MEMORY else self._changes(record)

    # -- documents ------------------------------------------------------------------------------------------------
    def _changes(self, record: ExportRecord) -> list[DocumentChange]:
        kind = document_kind(record.path)
        if not kind or kind not in ALL_TYPES:
            hint = "'memfs state export' shows where documents lie"
            raise errors.PathEscape("no document that can be imported lies there", hint=hint)
        if record.type != kind:
            raise errors.SchemaInvalid(f"a document of type {kind!r} lies there", field="type", hint=f"write {kind}")
        expected = self._present(record)
        if expected is None:
            return []
        try:
            data = self._parts.codec.write_document(record.document, record.path, schema_of(record.path))
        except errors.ItemTooLarge:  # it is checked when its large values have got files of their own
            pass
        else:
            refuse_file(data, record.path)
        return [DocumentChange(record.path, record.document, expected=expected)]

    def _present(self, record: ExportRecord) -> str | None:
        """The digest of the document that a record replaces, "" for none; None where it is there with equal content."""
        try:
            there = self._files.read(record.path)
        except FileNotFoundError:
            return self._archived(record)
        except errors.ContentError as error:
            raise errors.Conflict(
                f"what is there cannot be read: {error.message}", hint="repair it first: 'memfs check' says how"
            ) from error
        if not there.problem and same(plain(there.values), plain(record.document)):
            return None
        if not self._replace:
            raise errors.Conflict("it is there with other content", current=there.sha256, hint=_REPLACE)
        return there.sha256

    def _archived(self, record: ExportRecord) -> str | None:
        row = self._reader.index.row(record.path)
        if row is None or not row.archive:
            return ""
        if same(plain(self._reader.load(row)), plain(record.document)):
            return None
        raise errors.Conflict(
            "it is archived with other content", hint=f"unpack it first: memfs admin archive unpack {record.iteration}"
        )

    # -- memories -------------------------------------------------------------------------------------------------
    def _plans(self, record: ExportRecord) -> list[FilePlan]:
        """What stores a memory.

        Its file's text counts while it says the same as its fields: then it gets the very bytes it had. Otherwise the
        fields count, as somebody changed them.
        """
        item, secret = allowed(self._item(record), self._allow_secret)
        data = self._text(record, item)
        existing = self._store.get(item.id)
        if existing is not None:
            item = _with_times(item, record.document, existing)
            if (data is not None and existing.sha256 == sha256(data)) or _values(existing) == _values(item):
                return []
            if not self._replace and not _is_named(record):  # what an earlier import stored, and somebody changed here
                return []
            if not self._replace:
                raise errors.Conflict(
                    f"the memory {item.id!r} is there with other content", current=existing.sha256, hint=_REPLACE
                )
        if data is None or (existing is not None and existing.path != record.path):
            return self._planner.put(item, existing.sha256 if existing else "", self._allow_secret, plain=not secret)
        stored, reason = item.replace(path=record.path, sha256=sha256(data)), allowed(item)[1]
        plans = self._store.plan_restore({record.path: data})
        return [plan._replace(item=stored, vetted=False, reason=reason) for plan in plans]

    def _item(self, record: ExportRecord) -> MemoryItem:
        """The item that the fields describe, read as the file it could be: one home for what a valid item is."""
        own = {key: value for key, value in record.document.items() if key not in _GIVEN_BY_PLACE}
        own = {key: value for key, value in own.items() if value not in (None, "", [], {})}
        kind = self._parts.kinds.get(str(record.document.get("type") or "semantic"))
        place = f"{CONTENT}/{kind.folder}/{check_id(str(_id_of(record)))}.json"
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

    # -- storing --------------------------------------------------------------------------------------------------
    def store(self, due: Iterable[Due], dry_run: bool) -> ImportCounts:
        """Store what is due, batch by batch."""
        stored: Counter[str] = Counter()
        there: Counter[bool] = Counter()
        touched: set[int] = set()
        replaced = 0

        def wanted() -> Iterator[Due]:
            for record, deeds in due:
                if deeds:
                    yield record, deeds
                else:
                    there[record.type == AGGREGATE] += 1

        for _, rows in groupby(wanted(), key=lambda row: row[0].type == MEMORY):
            for batch in batches(rows, lambda row: row[0].size, _BATCH_BYTES, _BATCH):
                done = batch if dry_run else self._carried_out(batch, stored.total())
                there[False] += len(batch) - len(done)
                stored.update(record.type for record, _ in done)
                replaced += sum(map(_replaces, done))
                touched.update(one for record, _ in done if (one := iteration_of(record.path)) is not None)
        return ImportCounts(
            counts=dict(stored),
            replaced=replaced,
            same=there[False],
            derived=there[True],
            refused=tuple(self._refused.values()),
            iterations=tuple(sorted(touched)),
        )

    def _carried_out(self, batch: Sequence[Due], before: int) -> Sequence[Due]:
        """Store a batch as one commit; what somebody else stored of it at the same moment is left out of it."""
        one, more = ("memory", "memories") if batch[0][0].type == MEMORY else ("document", "documents")
        number = len(batch)
        message = f"Import {number:,} {one if number == 1 else more} from {os.path.basename(self._name)}"
        for left in reversed(range(_TRIES)):
            try:
                self._write([deed for _, deeds in batch for deed in deeds], message)
                return batch
            except (errors.StorageIO, errors.Conflict) as error:
                if isinstance(error, errors.StorageIO) or not left:
                    raise _interrupted(error, before, more) from None
            self._store.refresh()
            self._reader.catch_up()
            try:
                again = [(record, self._deeds(record)) for record, _ in batch]
            except errors.Conflict as error:
                raise _interrupted(error, before, more) from None
            batch = [(record, deeds) for record, deeds in again if deeds]
        return batch

    def _write(self, deeds: Sequence[DocumentChange | FilePlan], message: str) -> None:
        changes = [deed for deed in deeds if isinstance(deed, DocumentChange)]
        plans = [deed for deed in deeds if isinstance(deed, FilePlan)]
        if changes:
            self._files.write(changes, message, source=_SOURCE)
        if plans:
            self._store.carry_out(plans, message, source=_SOURCE, critical=False)


def _interrupted(error: errors.MemfsError, before: int, what: str) -> errors.MemfsError:
    stored = f"{before:,} {what} before this one are stored; " if before else ""
    error.hint = f"{stored}{(error.hint or 'try again').rstrip('.')}, then import again: it goes on from there"
    return error


def _replaces(due: Due) -> bool:
    """Whether a record takes the place of what was there."""
    return any(bool(deed.expected) if isinstance(deed, DocumentChange) else deed.before is not None for deed in due[1])


def _values(item: MemoryItem) -> Mapping[str, Any]:
    """What is compared: all but when the file was last written, which a replacement changes."""
    return {"id": item.id, "type": item.type, **item_fields.values(item), "updated": None}


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


def _is_repeated(record: ExportRecord, seen: dict[str, tuple[int | None, str]]) -> bool:
    """Whether a line without an id stands there already, word for word.

    Raises:
        DuplicateId: another record has its id or its place.
    """
    is_named = record.type != MEMORY or _is_named(record)
    name = str(_id_of(record)).casefold() if record.type == MEMORY else record.path
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
