"""Exports the conventions of a workspace to one readable file, and imports such a file.

The format is version 1 of ``docs/conventions.md``. A file carries what a convention says, not who said it or what it
weighs here; importing it again changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum, auto
from typing import Any

from memfs.errors import (
    Conflict,
    ContentError,
    DuplicateId,
    FormatUnsupported,
    IdExists,
    MemfsError,
    QueryInvalid,
    SchemaInvalid,
)
from memfs.format.codec import Codec
from memfs.format.plain import canonical, plain
from memfs.format.render import parse
from memfs.format.secrets import find, refuse_item, refuse_text
from memfs.learning.conventions import STATUSES, Conventions
from memfs.model import MemoryItem
from memfs.model.ids import check_id, new_id, slug
from memfs.model.item import Origin, Trust
from memfs.model.kinds import ACCEPTED, CONVENTION, PROPOSED, RETIRED
from memfs.model.time import format_time, parse_time
from memfs.store import Store
from memfs.store.parts import Parts

FORMAT = "memfs-conventions"
VERSION = 1
SCHEMA = "shared_conventions"
LARGEST = 4 << 20
IMPORTED = "imported"
"""The key below ``metadata`` that says where a convention came from, and what it said then."""
_THEIR_OWN = frozenset({"accepted"})
"""What of the body each team says for itself: when it accepted it."""
_SUFFIXES = (".yaml", ".yml", ".json")
_HEADING = (
    "# Conventions of {name}, for other workspaces: 'memfs team convention import' takes them in.\n"
    "# Whoever edits one by hand takes its sha256 out.\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConventionSource:
    """Where a convention was imported from, and the digest of what it said then."""

    workspace: str
    id: str
    sha256: str = ""
    revision: str = ""

    @classmethod
    def of(cls, item: MemoryItem) -> ConventionSource | None:
        """What an item says of its import; None where it was not imported, or says nothing that has a sense."""
        written = item.metadata.get(IMPORTED)
        if not isinstance(written, Mapping):
            return None
        values = {name: written.get(name, "") for name in ("workspace", "id", "sha256", "revision")}
        if not all(isinstance(value, str) for value in values.values()) or not values["id"]:
            return None
        return cls(**values)

    def noted(self) -> dict[str, str]:
        """As an item says it."""
        return {name: value for name, value in asdict(self).items() if value}


def digest(item: MemoryItem) -> str:
    """The sha256 of what a convention says: title, content, tags, expires and data, whatever its id and status."""
    return hashlib.sha256(canonical(plain(_says(item))).encode()).hexdigest()


def _says(item: MemoryItem) -> dict[str, Any]:
    """What travels of a convention."""
    values = {
        "title": item.title,
        "content": item.content,
        "tags": list(item.tags),
        "expires": format_time(item.expires) if item.expires else "",
        "data": {name: value for name, value in item.data.items() if name not in _THEIR_OWN},
    }
    return {name: value for name, value in values.items() if value}


def _status(item: MemoryItem) -> str:
    return item.status.strip() or PROPOSED


def _entry(item: MemoryItem) -> dict[str, Any]:
    """A convention as the file has it."""
    origin = ConventionSource.of(item)
    back = {"workspace": origin.workspace, "id": origin.id, "sha256": origin.sha256} if origin else {}
    whole = bool(back) and all(back.values())
    return {
        "id": item.id,
        "status": _status(item),
        **_says(item),
        **({"came_from": back} if whole else {}),
        "sha256": digest(item),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFile:
    """A file of conventions: the workspace they come from, the commit that holds them, and they themselves."""

    workspace: str
    revision: str = ""
    conventions: tuple[MemoryItem, ...] = ()

    def encode(self, codec: Codec, name: str) -> bytes:
        """Its bytes: the same for the same conventions of the same revision; YAML, or JSON by the name's ending.

        Raises:
            ContentError: they are too many, or too large.
        """
        document = {
            "format": FORMAT,
            "format_version": VERSION,
            "workspace": self.workspace,
            **({"revision": self.revision} if self.revision else {}),
            "conventions": [_entry(one) for one in self.conventions],
        }
        data = codec.write_document(document, _as_document(name), SCHEMA)
        if not _as_document(name).endswith(".json"):
            shown = self.workspace.encode("ascii", "replace").decode()
            data = _HEADING.format(name=shown).encode() + data
        if len(data) > LARGEST:
            raise ContentError(
                f"the conventions take {len(data):,} bytes, more than {LARGEST:,}", hint="export fewer of them"
            )
        return data

    @classmethod
    def decode(cls, data: bytes, name: str, codec: Codec) -> SharedFile:
        """What such a file holds.

        Raises:
            ContentError: it is not such a file, or somebody changed a convention and left its digest; with line or
                field.
            FormatUnsupported: a newer version wrote it.
            DuplicateId: two of its conventions have one id.
        """
        path = _as_document(name)
        try:
            if len(data) > LARGEST:
                raise ContentError(f"{len(data):,} bytes, limit {LARGEST:,}", hint="this is no file of conventions")
            _refuse_other(parse(data, path).mapping)
            values = codec.read_document(data, path, SCHEMA)
            _refuse_unprintable(values["workspace"], "workspace")
            found = tuple(_convention(entry, at) for at, entry in enumerate(values["conventions"]))
            _refuse_twice(found)
        except MemfsError as error:
            error.path = name
            raise
        return cls(workspace=values["workspace"], revision=values.get("revision", ""), conventions=found)


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


def _convention(values: Mapping[str, Any], at: int) -> MemoryItem:
    where = f"conventions.{at}"
    back = values.get("came_from")
    if back:
        _refuse_unprintable(back["workspace"], f"{where}.came_from.workspace")
    found = MemoryItem(
        values.get("content", ""),
        CONVENTION,
        id=check_id(values["id"]),
        title=values.get("title", ""),
        tags=tuple(dict.fromkeys(values.get("tags", ()))),
        expires=parse_time(values["expires"]) if "expires" in values else None,
        data={name: value for name, value in values.get("data", {}).items() if name not in _THEIR_OWN},
        status=values.get("status", PROPOSED),
        metadata={IMPORTED: back} if back else {},
    )
    if not (found.title.strip() or found.content.strip()):
        raise SchemaInvalid(f"{found.id} says nothing", field=where, hint="write content, a title, or both")
    if values.get("sha256", digest(found)) != digest(found):
        raise ContentError(
            f"{found.id} is not what its sha256 says: somebody changed it",
            field=f"{where}.sha256",
            hint="export it again; or, where the change is wanted, take the sha256 out",
        )
    return found


def _refuse_unprintable(name: str, where: str) -> None:
    """The name of a workspace goes into commits and onto terminals."""
    if not name.isprintable() or not name.strip():
        raise SchemaInvalid(f"{ascii(name)[:60]} is no name for a workspace", field=where, hint="write one line")


def _refuse_twice(found: Iterable[MemoryItem]) -> None:
    seen: set[str] = set()
    for one in found:
        if one.id.casefold() in seen:
            raise DuplicateId(f"{one.id!r} stands in it twice", field="conventions", hint="keep one of the two")
        seen.add(one.id.casefold())


NEW, UPDATED, SAME, KEPT, CONFLICT, GONE = "new", "updated", "same", "kept", "conflict", "retired"
KEEP, TAKE = "keep", "take"
_TRIES = 5
_NAMED = 5
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ConventionImport:
    """What an import makes of one convention.

    Attributes:
        id: of the item here; of one that does not come in, its id there.
        there: its id in the workspace it comes from.
        outcome: ``new``, ``updated``, ``same``, ``kept``, ``conflict`` or ``retired``.
        reason: why, in a few words.
        item: what is written; None where nothing is.
        expected: sha256 of the file that it takes the place of, "" for none.
    """

    id: str
    there: str
    outcome: str
    reason: str = ""
    item: MemoryItem | None = None
    expected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """What an import did, or would do: where the file came from, and what became of each convention."""

    workspace: str
    revision: str
    taken: tuple[ConventionImport, ...]
    dry_run: bool = False

    def of(self, *outcomes: str) -> list[ConventionImport]:
        """Those with one of these outcomes."""
        return [one for one in self.taken if one.outcome in outcomes]


class ConventionExchange:
    """Exports and imports conventions of one workspace.

    An import compares three versions of each convention: what the file says, what is here, and what was imported last.
    It overwrites nothing that somebody changed here.
    """

    def __init__(
        self, store: Store, parts: Parts, conventions: Conventions, revision_of: Callable[[str], str], name: str = ""
    ) -> None:
        """``revision_of`` gives a commit that holds a file as it is now, "" where none does; ``name`` is how others
        know this workspace, by default its folder's.
        """
        self._store = store
        self._parts = parts
        self._conventions = conventions
        self._revision_of = revision_of
        self.name = _checked_name(name) if name else _folder_name(parts.tree.root.name)

    def named(self, name: str) -> ConventionExchange:
        """The same under another name."""
        return ConventionExchange(self._store, self._parts, self._conventions, self._revision_of, name)

    # -- export ---------------------------------------------------------------------------------------------------
    def export(self, statuses: Iterable[str] = (ACCEPTED,), ids: Sequence[str] = ()) -> SharedFile:
        """The conventions of these statuses, or those named, as others may have them.

        Raises:
            ItemNotFound, QueryInvalid: there is no such convention or status.
            SecretDetected: one holds what looks like a secret, even where it may stay here.
        """
        wanted = tuple(statuses)
        for status in wanted:
            if status not in STATUSES:
                raise QueryInvalid(
                    f"there is no status {ascii(status)[:60]}", field="status", hint=f"one of {', '.join(STATUSES)}"
                )
        if ids:
            chosen = {one.id: one.item for one in map(self._conventions.find, ids)}
            items = [chosen[name] for name in sorted(chosen)]
        else:
            every = self._conventions.every()
            items = sorted((one.item for one in every if one.status in wanted), key=lambda item: item.id)
        for item in items:
            _refuse_secret(item)
        revisions = {self._revision_of(item.path) for item in items}
        revision = revisions.pop() if len(revisions) == 1 else ""
        if unfit := [one.id for one in items if _status(one) not in STATUSES]:
            raise QueryInvalid(
                f"{unfit[0]!r} has a status of its own", field="status", hint=f"make it one of {', '.join(STATUSES)}"
            )
        return SharedFile(workspace=self.name, revision=revision, conventions=tuple(items))

    def encode(self, shared: SharedFile, file_name: str) -> bytes:
        """The bytes of the file; see ``SharedFile.encode``."""
        return shared.encode(self._parts.codec, file_name)

    # -- import ---------------------------------------------------------------------------------------------------
    def take_in(
        self,
        data: bytes,
        file_name: str,
        *,
        accepted: bool = False,
        on_conflict: str = "",
        dry_run: bool = False,
        source: str = "",
    ) -> Import:
        """Store the conventions of a file, all or none, as one commit.

        What is new comes in as ``proposed`` and of trust ``tool``, until somebody here accepts it. One that was
        imported before is updated where nobody changed it here; where both sides changed it, it is a conflict, and
        nothing of the file is stored. Importing a file again changes nothing.

        Args:
            data: the file's bytes.
            file_name: what to call it in errors; its ending says whether it is JSON.
            accepted: what the other workspace accepted counts as accepted here, too, and as ``reviewed``.
            on_conflict: ``keep`` leaves what is here and takes note of theirs; ``take`` replaces it.
            dry_run: only say what would be done; conflicts are outcomes then, not errors.
            source: which door it came through, for the commit's trailers.

        Raises:
            Conflict: both sides changed a convention; or others keep changing them.
            ContentError, DuplicateId, FormatUnsupported, IdInvalid: the file cannot be taken in. Nothing was stored.
            StorageIO: nothing was stored.
        """
        if on_conflict not in ("", KEEP, TAKE):
            raise QueryInvalid(f"{on_conflict!r} is neither", field="on_conflict", hint=f"'{KEEP}' or '{TAKE}'")
        shared = SharedFile.decode(data, file_name, self._parts.codec)
        for _ in range(_TRIES):
            taken = self._taken(shared, accepted, on_conflict)
            done = Import(workspace=shared.workspace, revision=shared.revision, taken=taken, dry_run=dry_run)
            if not dry_run:
                _refuse_conflicts(done, file_name)
            try:
                self._store_all(done, file_name, source)
            except (Conflict, IdExists):
                self._store.follow()
                continue
            return done
        raise Conflict("others keep changing the conventions", path=file_name, hint="try again")

    def _store_all(self, done: Import, file_name: str, source: str) -> None:
        writing = [(one, one.item) for one in done.taken if one.item is not None]
        if not writing:
            return
        what = f"{len(writing)} convention{'s' * (len(writing) != 1)}"
        with self._store.batch(f"Import {what} from {done.workspace}", source=source) as batch:
            for one, item in writing:
                try:
                    batch.put(item, expected=one.expected)
                except (Conflict, IdExists):
                    raise
                except MemfsError as error:
                    there = "a convention" if find(one.there) else one.there  # the id may be what is refused
                    error.field = f"{there}: {error.field}" if error.field else there
                    error.path = file_name
                    raise
            if done.dry_run:  # what would be refused was refused by now
                batch.plans.clear()

    def _taken(self, shared: SharedFile, accepted: bool, on_conflict: str) -> tuple[ConventionImport, ...]:
        self._store.follow()
        here = [one.item for one in self._conventions.every()]
        matching = _ConventionMatch(here, shared.workspace, self.name)
        return tuple(self._decided(one, matching.of(one), shared, accepted, on_conflict) for one in shared.conventions)

    def _decided(
        self, theirs: MemoryItem, ours: MemoryItem | None, shared: SharedFile, accepted: bool, on_conflict: str
    ) -> ConventionImport:
        if ours is None:
            return self._new(theirs, shared, accepted)
        outcome, change, reason = _compared(theirs, ours, shared, accepted, on_conflict)
        item = ours
        if change is _Change.THEIRS:
            item = _filled(ours, theirs, shared, accepted)
        elif change is _Change.SOURCE:
            item = ours.replace(metadata=_with_source(ours, theirs, shared))
        return ConventionImport(
            id=ours.id,
            there=theirs.id,
            outcome=outcome,
            reason=reason,
            item=item if item != ours else None,
            expected=ours.sha256,
        )

    def _new(self, theirs: MemoryItem, shared: SharedFile, accepted: bool) -> ConventionImport:
        if theirs.status == RETIRED:
            reason = "retired there, and not here at all"
            return ConventionImport(id=theirs.id, there=theirs.id, outcome=GONE, reason=reason)
        chosen = self._free_id(theirs.id, shared)
        blank = MemoryItem(theirs.content or theirs.title, CONVENTION, id=chosen)
        item = _filled(blank, theirs, shared, accepted)
        reason = "" if chosen == theirs.id else f"{theirs.id} is taken here"
        return ConventionImport(id=chosen, there=theirs.id, outcome=NEW, reason=reason, item=item)

    def _free_id(self, wanted: str, shared: SharedFile) -> str:
        """An id that nothing here has, nor anything else of the file."""
        if not self._store.locate(wanted):
            return wanted
        name = f"{wanted[:80]}-{slug(shared.workspace) or 'imported'}"[:119].rstrip("-")
        theirs = {one.id.casefold() for one in shared.conventions}
        return new_id(wanted) if name.casefold() in theirs or self._store.locate(name) else name


class _Change(Enum):
    """What an import writes of a convention that is here: nothing, that ours knows theirs, or theirs."""

    NOTHING = auto()
    SOURCE = auto()
    THEIRS = auto()


def _compared(
    theirs: MemoryItem, ours: MemoryItem, shared: SharedFile, accepted: bool, on_conflict: str
) -> tuple[str, _Change, str]:
    """What becomes of a convention that is here, what is written for it, and why.

    Three versions are compared: theirs, ours, and what was imported last, or what they took from here.
    """
    said, here, was, back = digest(theirs), digest(ours), ConventionSource.of(ours), ConventionSource.of(theirs)
    known = was.sha256 if was is not None and was.workspace == shared.workspace else ""
    if theirs.status == RETIRED:
        return GONE, _Change.NOTHING, "retired there; 'memfs team convention retire' does so here"
    if said == here and accepted and theirs.status == ACCEPTED and ours.status == PROPOSED:
        return UPDATED, _Change.THEIRS, "accepted there"
    if said == here:
        return SAME, _Change.NOTHING if was is None or known == here else _Change.SOURCE, ""
    if said == known:
        return KEPT, _Change.NOTHING, "changed here since"
    if ours.status == RETIRED:
        return KEPT, _Change.NOTHING, "retired here"
    if here == known or (back is not None and here == back.sha256):
        return UPDATED, _Change.THEIRS, "changed there since"
    if on_conflict == TAKE:
        return UPDATED, _Change.THEIRS, "theirs taken, as asked"
    if on_conflict == KEEP:
        return KEPT, _Change.SOURCE, "ours kept, as asked"
    return CONFLICT, _Change.NOTHING, "changed here and there"


class _ConventionMatch:
    """Which convention here is which of a file."""

    def __init__(self, here: Iterable[MemoryItem], workspace: str, own_name: str) -> None:
        self._by_id: Mapping[str, MemoryItem] = {item.id: item for item in here}
        self._imported: dict[str, MemoryItem] = {}
        self._own_name = own_name
        for item in self._by_id.values():
            source = ConventionSource.of(item)
            if source is not None and source.workspace == workspace:
                self._imported.setdefault(source.id, item)

    def of(self, theirs: MemoryItem) -> MemoryItem | None:
        """The one that was imported as this, that this was made from, or that has its id; None where none does."""
        back = ConventionSource.of(theirs)
        if (found := self._imported.get(theirs.id)) is not None:
            return found
        if back is not None and back.workspace == self._own_name and back.id in self._by_id:
            return self._by_id[back.id]
        return self._by_id.get(theirs.id)


def _filled(item: MemoryItem, theirs: MemoryItem, shared: SharedFile, accepted: bool) -> MemoryItem:
    """An item with what a convention of a file says: text from outside, unless somebody vouches for it."""
    holds = accepted and theirs.status == ACCEPTED
    return item.replace(
        title=theirs.title,
        content=theirs.content,
        tags=theirs.tags,
        expires=theirs.expires,
        data=dict(theirs.data),
        status=ACCEPTED if holds else PROPOSED,
        trust=Trust.REVIEWED.value if holds else Trust.TOOL.value,
        origin=Origin(tool=f"conventions of {shared.workspace}"),
        metadata=_with_source(item, theirs, shared),
    )


def _with_source(item: MemoryItem, theirs: MemoryItem, shared: SharedFile) -> dict[str, object]:
    source = ConventionSource(workspace=shared.workspace, id=theirs.id, sha256=digest(theirs), revision=shared.revision)
    return {**item.metadata, IMPORTED: source.noted()}


def _refuse_conflicts(done: Import, file_name: str) -> None:
    found = [one.id for one in done.of(CONFLICT)]
    if not found:
        return
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    raise Conflict(
        f"changed both here and in {done.workspace}: {', '.join(found[:_NAMED])}{more}; nothing was imported",
        path=file_name,
        hint="see --dry-run; then --keep leaves what is here, --take replaces it",
    )


def _refuse_secret(item: MemoryItem) -> None:
    """Refuse what looks like a secret, whatever allows it to stay here."""
    bare = {name: value for name, value in item.metadata.items() if name == IMPORTED}
    try:
        refuse_item(item.replace(metadata=bare))
    except MemfsError as error:
        raise error.located(item.path) from None


def _folder_name(name: str) -> str:
    """The name of a folder, where that can be one of a workspace."""
    try:
        return _checked_name(name)
    except MemfsError:
        return "workspace"


def _checked_name(name: str) -> str:
    """The name of a workspace as others read it.

    Raises:
        QueryInvalid: it is too long, or no single line.
    """
    line = " ".join(name.split())
    if not line or len(line) > _LONGEST_NAME or not line.isprintable():
        raise QueryInvalid(
            f"{ascii(name)[:60]} is no name for a workspace", field="name", hint=f"one line, at most {_LONGEST_NAME}"
        )
    refuse_text(line, "name")
    return line
