"""Convention sharing: conventions that go from one workspace into another, and back (seed 004, P7).

Owns what an import makes of each convention: it compares three versions, what the file says, what is here, and what was
imported last, and overwrites nothing that somebody changed here. The file's form is ``memfs.pipeline.conventionfile``'s
business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from memfs.errors import Conflict, IdExists, MemfsError, QueryInvalid
from memfs.files.secrets import find, refuse_item, refuse_text
from memfs.model import MemoryItem
from memfs.model.ids import new_id, slug
from memfs.model.item import Origin, Trust
from memfs.pipeline.conventionfile import IMPORTED, Shared, SharedFile, Source
from memfs.pipeline.conventions import ACCEPTED, KIND, PROPOSED, RETIRED, STATUSES, Conventions
from memfs.store import Store
from memfs.store.parts import Parts

NEW, UPDATED, SAME, KEPT, CONFLICT, GONE = "new", "updated", "same", "kept", "conflict", "retired"
KEEP, TAKE = "keep", "take"
_TRIES = 5
_NAMED = 5
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
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
    taken: tuple[Taken, ...]
    dry_run: bool = False

    def of(self, *outcomes: str) -> list[Taken]:
        """Those with one of these outcomes."""
        return [one for one in self.taken if one.outcome in outcomes]


class Sharing:
    """Exports and imports conventions of one workspace."""

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

    def named(self, name: str) -> Sharing:
        """The same under another name."""
        return Sharing(self._store, self._parts, self._conventions, self._revision_of, name)

    # -- export ---------------------------------------------------------------------------------------------------
    def export(self, statuses: Iterable[str] = (ACCEPTED,), ids: Sequence[str] = ()) -> SharedFile:
        """The conventions of these statuses, or those named, as others may have them (P7).

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
        entries = tuple(Shared.of(item) for item in items)
        if unfit := [one.id for one in entries if one.status not in STATUSES]:
            raise QueryInvalid(
                f"{unfit[0]!r} has a status of its own", field="status", hint=f"make it one of {', '.join(STATUSES)}"
            )
        return SharedFile(workspace=self.name, revision=revision, conventions=entries)

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
        """Store the conventions of a file, all or none, as one commit (P7).

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
        with suppress(_OnlyTried), self._store.batch(f"Import {what} from {done.workspace}", source=source) as batch:
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
                raise _OnlyTried

    def _taken(self, shared: SharedFile, accepted: bool, on_conflict: str) -> tuple[Taken, ...]:
        self._store.follow()
        here = [one.item for one in self._conventions.every()]
        matching = _Matching(here, shared.workspace, self.name)
        return tuple(self._decided(one, matching.of(one), shared, accepted, on_conflict) for one in shared.conventions)

    def _decided(
        self, theirs: Shared, ours: MemoryItem | None, shared: SharedFile, accepted: bool, on_conflict: str
    ) -> Taken:
        if ours is None:
            if theirs.status == RETIRED:
                return Taken(id=theirs.id, there=theirs.id, outcome=GONE, reason="retired there, and not here at all")
            return self._new(theirs, shared, accepted)
        here, was = Shared.of(ours).sha256, Source.of(ours)
        known = was.sha256 if was is not None and was.workspace == shared.workspace else ""
        back = theirs.came_from.sha256 if theirs.came_from is not None else ""
        say = _Say(ours, theirs, shared)
        if theirs.status == RETIRED:
            return say.without(GONE, "retired there; 'memfs convention retire' does so here")
        if theirs.sha256 == here and accepted and theirs.status == ACCEPTED and ours.status == PROPOSED:
            return say.replacing(UPDATED, accepted, "accepted there")
        if theirs.sha256 == here:
            return say.noting(SAME) if was is not None and known != here else say.without(SAME)
        if theirs.sha256 == known:
            return say.without(KEPT, "changed here since")
        if ours.status == RETIRED:
            return say.without(KEPT, "retired here")
        if here in (known, back):
            return say.replacing(UPDATED, accepted, "changed there since")
        if on_conflict == TAKE:
            return say.replacing(UPDATED, accepted, "theirs taken, as asked")
        if on_conflict == KEEP:
            return say.noting(KEPT, "ours kept, as asked")
        return say.without(CONFLICT, "changed here and there")

    def _new(self, theirs: Shared, shared: SharedFile, accepted: bool) -> Taken:
        chosen = self._free_id(theirs.id, shared)
        blank = MemoryItem(theirs.content or theirs.title, KIND, id=chosen)
        item = _filled(blank, theirs, shared, accepted)
        reason = "" if chosen == theirs.id else f"{theirs.id} is taken here"
        return Taken(id=chosen, there=theirs.id, outcome=NEW, reason=reason, item=item)

    def _free_id(self, wanted: str, shared: SharedFile) -> str:
        """An id that nothing here has, nor anything else of the file."""
        if not self._store.locate(wanted):
            return wanted
        name = f"{wanted[:80]}-{slug(shared.workspace) or 'imported'}"[:119].rstrip("-")
        theirs = {one.id.casefold() for one in shared.conventions}
        return new_id(wanted) if name.casefold() in theirs or self._store.locate(name) else name


class _OnlyTried(Exception):
    """Ends a batch before it is written. Never leaves this module."""


class _Matching:
    """Which convention here is which of a file."""

    def __init__(self, here: Iterable[MemoryItem], workspace: str, own_name: str) -> None:
        self._by_id: Mapping[str, MemoryItem] = {item.id: item for item in here}
        self._imported: dict[str, MemoryItem] = {}
        self._own_name = own_name
        for item in self._by_id.values():
            source = Source.of(item)
            if source is not None and source.workspace == workspace:
                self._imported.setdefault(source.id, item)

    def of(self, theirs: Shared) -> MemoryItem | None:
        """The one that was imported as this, that this was made from, or that has its id; None where none does."""
        back = theirs.came_from
        if (found := self._imported.get(theirs.id)) is not None:
            return found
        if back is not None and back.workspace == self._own_name and back.id in self._by_id:
            return self._by_id[back.id]
        return self._by_id.get(theirs.id)


@dataclass(frozen=True, slots=True)
class _Say:
    """The ways in which an import can end for a convention that is here."""

    ours: MemoryItem
    theirs: Shared
    shared: SharedFile

    def without(self, outcome: str, reason: str = "") -> Taken:
        """Nothing is written."""
        return Taken(id=self.ours.id, there=self.theirs.id, outcome=outcome, reason=reason)

    def noting(self, outcome: str, reason: str = "") -> Taken:
        """Ours stays, and says that it knows theirs."""
        item = self.ours.replace(metadata=_with_source(self.ours, self.theirs, self.shared))
        return self._writing(outcome, reason, item)

    def replacing(self, outcome: str, accepted: bool, reason: str) -> Taken:
        """Theirs takes the place of ours."""
        return self._writing(outcome, reason, _filled(self.ours, self.theirs, self.shared, accepted))

    def _writing(self, outcome: str, reason: str, item: MemoryItem) -> Taken:
        ours, there = self.ours, self.theirs.id
        if item == ours:
            return self.without(outcome, reason)
        return Taken(id=ours.id, there=there, outcome=outcome, reason=reason, item=item, expected=ours.sha256)


def _filled(item: MemoryItem, theirs: Shared, shared: SharedFile, accepted: bool) -> MemoryItem:
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


def _with_source(item: MemoryItem, theirs: Shared, shared: SharedFile) -> dict[str, object]:
    source = Source(workspace=shared.workspace, id=theirs.id, sha256=theirs.sha256, revision=shared.revision)
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
