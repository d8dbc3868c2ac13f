"""Exports and imports conventions as one readable file, and copies items of private memory into what others see.

The format is version 1 of ``docs/conventions.md``. A file carries what a convention says, not who said it or what it
weighs here. Importing or sharing again does nothing twice: an item records what it was shared as, and a copy is
imported like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memfs.dataclass import dataclass
from memfs.errors import (
    Conflict,
    ContentError,
    FormatUnsupported,
    ItemNotFound,
    MemfsError,
    QueryInvalid,
    SchemaInvalid,
)
from memfs.format.codec import Codec
from memfs.format.secrets import refuse_item, refuse_text
from memfs.intake.episode_item import episode_of
from memfs.intake.import_service import FROM, Arrival, Became, ImportResult, ImportService, id_of
from memfs.learning.conventions import Conventions
from memfs.model import MemoryItem, Query
from memfs.model.ids import check_id
from memfs.model.item import Origin, Trust
from memfs.model.kinds import ACCEPTED, CONVENTION, PROPOSED, RETIRED, MemoryType
from memfs.model.time import format_time, parse_time
from memfs.model.tokens import gist
from memfs.recall.conflict_notes import OVER
from memfs.store import Store
from memfs.store.parts import Parts
from memfs.store.plan import current_signer, signed_by

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
            values = codec.read_document(data, path, SCHEMA)
            if (version := values["format_version"]) > VERSION:
                message = f"version {version} of the format is newer than {VERSION}"
                raise FormatUnsupported(message, field="format_version", hint="update memfs")
            workspace = checked_name(values["workspace"], "workspace")
            return cls(workspace=workspace, conventions=tuple(map(_convention, values["conventions"])))
        except MemfsError as error:
            error.path = name
            raise


def _as_document(name: str) -> str:
    """A name by whose ending the codec knows the format; YAML where it has none."""
    return name if name.endswith(_SUFFIXES) else f"{name}.yaml"


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
        self._store, self._parts, self._conventions = store, parts, conventions

    def export(self, name: str = "") -> SharedFile:
        """What is accepted here, as others may have it.

        Args:
            name: how others know this workspace; its folder's name by default.

        Raises:
            QueryInvalid: the name is none.
            SecretDetected: one holds what looks like a secret, even where it may stay here.
        """
        items = {one.id: one.item for one in self._conventions.every() if one.status == ACCEPTED}
        for item in items.values():
            try:
                refuse_item(item.replace(metadata={}))  # whatever allows a secret to stay here
            except MemfsError as error:
                raise error.located(item.path) from None
        return SharedFile(
            workspace=checked_name(name or self._parts.tree.root.name),
            conventions=tuple(items[one] for one in sorted(items)),
        )

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
            replace: one that was edited here is replaced, too; history keeps the edit.
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


SOURCE = "private"
"""What private memory is called as a source."""
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
            dry_run: tell what would become of each, and write nothing.

        Raises:
            Conflict, StorageIO: as ``Store.batch``; nothing was copied.
        """
        first = gist(items[0]).partition("\n")[0][:60] if items else ""
        message = f"Share {first}" if len(items) == 1 else f"Share {len(items)} memories"
        copies = [_copy(item) for item in items]
        with signed_by(current_signer() or Origin()):  # who publishes, and not whose words it has
            fates = self._import_service.take_in(
                SOURCE, copies, message=message, replace=replace, allow_secret=allow_secret, dry_run=dry_run
            )
        pairs = list(zip(items, fates, strict=True))
        if dry_run:
            return [ShareResult(item, fate) for item, fate in pairs]
        return [ShareResult(item, fate, self._marked(item, fate)) for item, fate in pairs]

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
