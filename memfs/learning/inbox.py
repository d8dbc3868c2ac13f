"""Inbox: what memfs suggests to remember, and what was decided about it; and what private memory shares with others.

The inbox is one file in the workspace's state folder, outside git. Suggestions are never recalled. A refusal is final:
the same thing is not suggested again, however many memories speak for it; accepting it withdraws the refusal. Sharing
an item again does nothing twice: it records what it was shared as, and a copy is imported like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from memfs.dataclass import dataclass
from memfs.errors import Conflict, ContentError, CorruptRecord, FormatUnsupported, IdExists, ItemNotFound, MemfsError
from memfs.format.secrets import reason_in, refuse_item
from memfs.fs import io
from memfs.fs.lock import FileLock
from memfs.intake.episode_item import episode_of
from memfs.intake.import_service import FROM, Arrival, Became, ImportResult, ImportService
from memfs.model import MemoryItem, Origin, Query, Trust
from memfs.model.ids import check_id
from memfs.model.item import VOUCHED, gist
from memfs.model.kinds import MemoryType, nearest
from memfs.model.learning import Source, Suggestion, SuggestionDecision
from memfs.model.time import EPOCH, format_time, parse_time
from memfs.recall.conflict_notes import OVER
from memfs.recall.similarity import normalised
from memfs.startup import Any, json
from memfs.store import Store
from memfs.store.parts import CONTENT, Parts
from memfs.store.plan import current_signer, signed_by
from memfs.store.store import retry_on_conflict

FILE = "inbox.json"
FORMAT = 1
MOST_FOUND = 500
"""The most patterns and rules that wait: until some are decided about, no further ones are noted."""
MOST_HEARD = 2000
"""The most of the others that wait: the oldest are dropped."""
SOURCE = "inbox"
_LARGEST = 64 << 20
_BARE = {"type": "knowledge", "evidence": [], "reason": "", "item": "content: '-'\n"}
_FOUND = frozenset({Source.PATTERN, Source.RULE})

Row = dict[str, Any]
Stat = tuple[int, int, int]


class Inbox:
    """The suggestions of one workspace. May be used from several threads and processes."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store, self._parts = store, parts
        self._path = parts.repository.state / FILE
        self._lock = FileLock(self._path.with_suffix(".lock"), root=parts.repository.common_dir)
        self._read: tuple[Stat | None, tuple[Suggestion, ...]] = (None, ())

    # -- asking -----------------------------------------------------------------------------------------------------
    def all(self) -> tuple[Suggestion, ...]:
        """Every suggestion, those decided about included, oldest first. One that cannot be read is left out.

        Raises:
            CorruptRecord, FormatUnsupported, StorageIO: the file cannot be read.
        """
        self._store.require_open()
        try:
            facts = io.facts(self._path)
        except FileNotFoundError:
            return ()
        stat = facts.st_ino, facts.st_size, facts.st_mtime_ns
        known, found = self._read
        if known != stat:
            parsed = (self._suggestion(row) for row in self._rows())
            found = tuple(one for one in parsed if one is not None)
            self._read = (stat, found)
        return found

    def waiting(self) -> list[Suggestion]:
        """Those not decided yet and not yet a memory, the best supported first. Raises as ``all``."""
        open_ones = [one for one in self.all() if not one.decision and not self._store.locate(one.id)]
        return sorted(open_ones, key=lambda one: (-one.count, one.made, one.id))

    def get(self, suggestion_id: str) -> Suggestion | None:
        """The suggestion of that id, None where there is none. Raises as ``all``."""
        return next((one for one in self.all() if one.id == suggestion_id), None)

    def find(self, reference: str) -> Suggestion:
        """The suggestion of an id, or of the beginning of one.

        Raises:
            ItemNotFound: none, or more than one, has that id.
            CorruptRecord, FormatUnsupported, StorageIO: as ``all``.
        """
        known = {one.id: one for one in self.all()}
        if reference in known:
            return known[reference]
        starting = [name for name in known if reference and name.startswith(reference)]
        if len(starting) == 1:
            return known[starting[0]]
        listed = f"it could be {', '.join(sorted(starting)[:5])}" if starting else nearest(reference, known)
        hint = listed or "'memfs inbox' lists what waits"
        raise ItemNotFound(f"no suggestion is called {reference!r}", hint=hint)

    # -- suggesting -------------------------------------------------------------------------------------------------
    def add(self, suggestions: Iterable[Suggestion]) -> list[Suggestion]:
        """Note suggestions, durably; one that waits is brought up to date, one that was decided about stays decided.

        What was suggested before in the same words is not suggested again.

        Returns:
            Those that are new.

        Raises:
            SecretDetected, SchemaInvalid: one cannot be stored as a memory; nothing was noted.
            CorruptRecord, FormatUnsupported, LockTimeout, StorageIO: nothing was noted.
        """
        given = {one.id: one for one in suggestions}
        for one in given.values():
            refuse_item(one.item)
        if not given:
            return []
        fresh: list[Suggestion] = []

        def change(rows: list[Row]) -> None:
            known = {row.get("id"): row for row in rows}
            kept = {_words(one.item) for one in self.all()}
            waiting = sum(map(_is_found, rows))
            for one in given.values():
                row = known.get(one.id)
                if row is None and _words(one.item) not in kept and (one.source not in _FOUND or waiting < MOST_FOUND):
                    rows.append(self._row(one))
                    fresh.append(one)
                    waiting += one.source in _FOUND
                elif row is not None and not row.get("decision"):
                    row.update(self._row(one), made=row.get("made"))
            heard = [row for row in rows if not row.get("decision") and not _is_found(row)]
            late = {row.get("id") for row in heard[: max(len(heard) - MOST_HEARD, 0)]}
            rows[:] = [row for row in rows if row.get("id") not in late]

        self._change(change)
        return fresh

    def drop(self, ids: Iterable[str]) -> None:
        """Withdraw suggestions for which nothing speaks any more; what was decided about stays. Raises as ``add``."""
        gone = set(ids)

        def change(rows: list[Row]) -> None:
            rows[:] = [row for row in rows if row.get("id") not in gone or row.get("decision")]

        if gone:
            self._change(change)

    # -- deciding ---------------------------------------------------------------------------------------------------
    def accept(
        self,
        suggestions: Sequence[Suggestion],
        *,
        trust: str = Trust.REVIEWED.value,
        source: str = SOURCE,
        verb: str = "Accept",
    ) -> list[MemoryItem]:
        """Make memories of suggestions, in one commit; one that is a memory already stays as it is.

        Args:
            suggestions: what ``find`` gave; their items may have another content, type or title.
            trust: who vouches for them from now on, unless a person does already; "" leaves that as it is.
            source, verb: which door it came through, and how the commit says it.

        Returns:
            The memories, in the order of the suggestions.

        Raises:
            IdExists: something else has the id of one.
            ContentError, StorageIO: nothing was stored.
        """

        def accepted() -> list[MemoryItem]:
            self._store.follow()
            return self._stored(suggestions, trust, source, verb)

        # somebody may accept the same at this very moment
        stored = retry_on_conflict(accepted, tries=4, on=(Conflict, IdExists))
        self._decide([one.id for one in suggestions], SuggestionDecision.ACCEPTED)
        return stored

    def _stored(self, suggestions: Sequence[Suggestion], trust: str, source: str, verb: str) -> list[MemoryItem]:
        there = {one.id: self._there(one) for one in suggestions}
        fresh = [one for one in suggestions if there[one.id] is None]
        if not fresh:
            return [item for item in there.values() if item is not None]
        title = f"a {fresh[0].source}: {gist(fresh[0].item)[:80]}" if len(fresh) == 1 else f"{len(fresh)} suggestions"
        # the person who accepts it speaks, not the one who was heard
        with signed_by(Origin()), self._store.batch(f"{verb} {title}", source=source) as batch:
            for one in fresh:
                vouched = one.item.trust in VOUCHED or not trust
                item = one.item if vouched else one.item.replace(trust=trust)
                there[one.id] = batch.put(item, expected="", allow_secret=reason_in(item.metadata))
        return [item for item in there.values() if item is not None]

    def _there(self, one: Suggestion) -> MemoryItem | None:
        """The memory that an accepted suggestion became, as of a process that was killed before it noted that."""
        known = self._store.get(one.id)
        if known is not None and known.type != one.item.type:
            raise IdExists(f"{one.id} is a {known.type}", path=known.path, hint="rename that item, or refuse this one")
        return known

    def refuse(self, suggestions: Sequence[Suggestion]) -> None:
        """Never suggest these again.

        Raises:
            Conflict: one of them is a memory; nothing was refused.
            CorruptRecord, FormatUnsupported, LockTimeout, StorageIO: nothing was refused.
        """
        for one in suggestions:
            if path := self._store.locate(one.id):
                raise Conflict(f"{one.id} was accepted", path=path, hint=f"'memfs forget {one.id}' removes it")
        self._decide([one.id for one in suggestions], SuggestionDecision.REFUSED)

    def _decide(self, ids: Sequence[str], decision: SuggestionDecision) -> None:
        def change(rows: list[Row]) -> None:
            for row in rows:
                if row.get("id") in ids:
                    row["decision"] = decision.value

        self._change(change)

    # -- the file ---------------------------------------------------------------------------------------------------
    def _rows(self) -> list[Row]:
        try:
            return rows_of(io.read_file(self._path, _LARGEST), str(self._path))
        except FileNotFoundError:
            return []

    def _change(self, change: Callable[[list[Row]], object]) -> None:
        """Change the file's rows, durably and in one step; rows that cannot be read stay as they are."""
        with self._lock.hold("noting suggestions", timeout=10.0):
            io.sweep(self._path.parent, f".{FILE}.")
            rows = self._rows()
            before = data_of(rows)
            change(rows)
            after = data_of(rows)
            if after != before:
                io.write_file(self._path, after)

    def _row(self, one: Suggestion) -> Row:
        return {
            "id": one.id,
            "type": one.item.type,
            "source": one.source.value,
            "count": one.count,
            "evidence": list(one.evidence),
            "reason": one.reason,
            "made": format_time(one.made),
            "decision": one.decision.value,
            "item": text_of(self._parts, one.item),
        }

    def _suggestion(self, row: Row) -> Suggestion | None:
        try:
            place = _place(self._parts, MemoryItem("-", str(row["type"]), id=str(row["id"])))
            item = self._parts.codec.read(str(row["item"]).encode(), place, EPOCH)
            stated = None if item.timestamp == EPOCH else item.timestamp
            return Suggestion(
                item=item.replace(path="", sha256="", created=None, updated=None, timestamp=stated),
                source=Source(row["source"]),
                count=int(row["count"]),
                evidence=tuple(map(str, row["evidence"])),
                reason=str(row["reason"]),
                made=parse_time(row["made"]),
                decision=SuggestionDecision(row["decision"]),
            )
        except (MemfsError, KeyError, TypeError, ValueError) as error:
            self._store.note_failure(
                CorruptRecord(f"a suggestion cannot be read: {error}", path=str(self._path), hint="remove its entry")
            )
            return None


def text_of(parts: Parts, item: MemoryItem) -> str:
    """The text that an item's file would hold.

    Raises:
        SchemaInvalid: it cannot be a file.
    """
    bare = item.replace(path="", sha256="", created=None, updated=None)
    return parts.codec.write(bare, _place(parts, item)).data.decode()


def _place(parts: Parts, item: MemoryItem) -> str:
    return f"{CONTENT}/{parts.kinds.get(item.type).folder}/{check_id(item.id)}.yaml"


def rows_of(data: bytes, path: str) -> list[Row]:
    """The rows that the file's bytes hold.

    Raises:
        CorruptRecord: they hold none.
        FormatUnsupported: a newer memfs wrote them.
    """
    hint = "restore it from a backup, or remove it: then what was refused may be suggested again"
    try:
        document = json.loads(data)
        version, rows = document["format"], document["suggestions"]
        if isinstance(version, int) and version > FORMAT:
            raise FormatUnsupported(f"suggestions of format {version}", path=path, hint="use a newer memfs")
        if version == FORMAT and isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            return rows
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptRecord(f"suggestions cannot be read: {error}", path=path, hint=hint) from error
    raise CorruptRecord("suggestions cannot be read: they are not a list of format 1", path=path, hint=hint)


def data_of(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The bytes of a file that holds these rows."""
    return (json.dumps({"format": FORMAT, "suggestions": rows}, ensure_ascii=False, indent=1) + "\n").encode()


def erased(data: bytes, quotes: Callable[[bytes], bool], ids: Collection[str]) -> tuple[bytes, int]:
    """A file's bytes without what quotes an item, and how many suggestions that concerned.

    Of one that was decided about the decision stays, without what it was made from.

    Args:
        quotes: whether a text quotes the item.
        ids: what the item was called.

    Raises:
        CorruptRecord, FormatUnsupported: its content is unknown.
    """

    def concerns(row: Row) -> bool:
        named = {str(row.get("id")), *map(str, row.get("evidence") or ())}
        words = "\n".join(map(str, row.values()))
        plain = words.replace('\\"', '"').replace("''", "'")
        return not named.isdisjoint(ids) or any(quotes(one.encode("utf-8", "replace")) for one in (words, plain))

    rows = rows_of(data, FILE)
    kept = [row for row in rows if not concerns(row)]
    decided = [{**row, **_BARE} for row in rows if row.get("decision") and concerns(row)]
    return data_of([*kept, *(row for row in decided if not concerns(row))]), len(rows) - len(kept)


def _words(item: MemoryItem) -> tuple[str, str, str]:
    """The key by which two suggestions say the same."""
    return item.type, item.title, normalised(item.content)


def _is_found(row: Row) -> bool:
    """Whether it waits and would be found again in what is stored."""
    return not row.get("decision") and row.get("source") in _FOUND


# -- sharing private memory -------------------------------------------------------------------------------------------
SHARED_AS = "shared_as"
"""The key below ``metadata`` of a private item that names its copy; ``no`` where it is to stay private."""
KEPT = "no"
_SPOKEN = frozenset({"session_id", "promoted_ids", "promoted_in", "promoted_from", "promoted_as", "told_by", "done_by"})
"""Facts of a session: they name what a person typed there, by its first words."""
_EVIDENCE = frozenset({"examples", "learned_from", "warned"})
"""Of a pattern, a rule or an episode: the words and names of what it rests on."""
_OF_A_SESSION = frozenset(
    {MemoryType.WORKING.value, MemoryType.CONTEXT.value, MemoryType.INTERACTION.value, MemoryType.CONVERSATION.value}
)
"""Types that hold what was said in a session as it was said."""
_NOT_OFFERED = _OF_A_SESSION | {MemoryType.PROSPECTIVE.value}
_MOST = 10_000
_THERE = frozenset({Became.STORED, Became.UPDATED, Became.SAME, Became.REPEATED})


@dataclass(frozen=True, slots=True)
class ShareResult:
    """What became of one item.

    Attributes:
        item: as it is in private memory.
        fate: what became of its copy.
        unmarked: why the item does not name its copy, "" where it does.
    """

    item: MemoryItem
    fate: ImportResult
    unmarked: str = ""


class ShareService:
    """Copies items of private memory into another workspace's memory."""

    def __init__(self, private: Store, import_service: ImportService) -> None:
        """
        Args:
            private: where the items are.
            import_service: takes in what comes to the other workspace.
        """
        self._private, self._import_service = private, import_service

    def items(self, references: Iterable[str]) -> list[MemoryItem]:
        """The items that a person means, each once.

        Raises:
            ItemNotFound: there is no such item, or several begin so.
            ContentError: its file is invalid, or it is of a type that holds what was said in a session.
        """
        found = {item.id: item for item in map(self._private.find, references)}
        for item in found.values():
            if item.type in _OF_A_SESSION:
                hint = "say it in words of your own: memfs remember TEXT"
                raise ContentError(f"{item.id} holds what was said in a session, and stays private", hint=hint)
        return list(found.values())

    def unsaved(self, items: Iterable[MemoryItem]) -> list[str]:
        """The paths of those that somebody edited by hand, where the edit is in no commit yet."""
        return self._private.hand_edits([item.path for item in items])

    def run(
        self, items: Sequence[MemoryItem], *, replace: bool = False, allow_secret: str = "", dry_run: bool = False
    ) -> list[ShareResult]:
        """Copy items, as one batch: all of it or nothing; what is refused, such as a secret, is left out and named.

        A copy has the item's id, words, trust and origin, and no link to what stays private; the commit's author is who
        shares. What a team changed in a copy stays as it is.

        Args:
            items: as ``items`` gave them.
            replace: what was edited there is replaced, too.
            allow_secret: why what looks like a secret may stay, as for ``Store.put``.
            dry_run: report what would become of each, and write nothing.

        Raises:
            Conflict, StorageIO: as ``Store.batch``; nothing was copied.
        """
        first = gist(items[0]).partition("\n")[0][:60] if items else ""
        message = f"Share {first}" if len(items) == 1 else f"Share {len(items)} memories"
        copies = [_copy(item) for item in items]
        with signed_by(current_signer() or Origin()):  # who publishes, and not whose words it has
            fates = self._import_service.take_in(
                "private", copies, message=message, replace=replace, allow_secret=allow_secret, dry_run=dry_run
            )
        pairs = list(zip(items, fates, strict=True))
        return [ShareResult(item, fate, "" if dry_run else self._marked(item, fate)) for item, fate in pairs]

    def _marked(self, item: MemoryItem, fate: ImportResult) -> str:
        """Let an item name its copy; why it could not, "" where it does."""
        if fate.became not in _THERE or item.metadata.get(SHARED_AS) == fate.id:
            return ""
        try:
            mark(self._private, item, fate.id)
        except (ContentError, ItemNotFound, Conflict) as error:  # somebody is at it: sharing again names it
            return error.message
        return ""


def waiting(private: Store, limit: int = _MOST) -> list[MemoryItem]:
    """What private memory holds that could be shared and was not, the newest first; what is over is left out, and
    so are episodes: what they teach is shared as a rule.
    """
    found = private.select(Query(limit=limit))
    return [
        item
        for item in found
        if item.type not in _NOT_OFFERED
        and SHARED_AS not in item.metadata
        and item.status not in OVER
        and episode_of(item) is None
    ]


def mark(private: Store, item: MemoryItem, shared_as: str = KEPT) -> MemoryItem:
    """Note on an item what it was shared as, or that it is to stay private: then it waits no longer.

    Raises:
        Conflict, ContentError, StorageIO: as ``Store.put``.
    """
    verb = "Keep private" if shared_as == KEPT else "Share"
    changed = item.replace(metadata={**item.metadata, SHARED_AS: shared_as})
    return private.put(changed, expected=item.sha256, message=f"{verb} {item.id}", source="share")


def _copy(item: MemoryItem) -> Arrival:
    facts = {key: value for key, value in item.metadata.items() if key not in (*_SPOKEN, SHARED_AS, FROM)}
    data = {key: value for key, value in item.data.items() if key not in _EVIDENCE}
    copy = item.replace(
        id="", path="", sha256="", created=None, updated=None, links=(), supersedes=(), data=data, metadata=facts
    )
    return Arrival(key=item.id, item=copy, name=item.id, where=item.id, id=item.id)
