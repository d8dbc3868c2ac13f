"""Plans writes before anything is written: the path and bytes of each item, who signs it, and the commit's sentence.

A plan holds the bytes it was made against, so that a file that changed since is noticed. An agent's write never raises
trust. A sentence holds no secret and no character that a terminal would obey.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from memfs.dataclass import NamedTuple
from memfs.errors import Conflict, ContentError, IdExists, ItemNotFound, PathEscape, SchemaInvalid
from memfs.format.item_fields import ORDER
from memfs.format.text import shown
from memfs.fs.atomic_replace import sha256
from memfs.fs.tree import Content, refuse_rot
from memfs.fs.workspace_location import is_own
from memfs.model import MemoryItem, Origin, Stamp
from memfs.model.ids import check_id, new_id, stem_of
from memfs.model.item import BY_TRUST, Trust, lower_trust
from memfs.model.time import from_timestamp_ns
from memfs.startup import Any
from memfs.store.index_sync import IndexSync
from memfs.store.parts import CONTENT, READ_LIMIT, Parts

_signer: ContextVar[Origin | None] = ContextVar("memfs-signer", default=None)


@contextmanager
def signed_by(origin: Origin) -> Iterator[None]:
    """Within, commits of what this thread writes name this agent and session as the author."""
    token = _signer.set(origin)
    try:
        yield
    finally:
        _signer.reset(token)


def current_signer() -> Origin | None:
    """Who signs at present; None where the item's own author does."""
    return _signer.get()


def cap_trust(item: MemoryItem, before: MemoryItem | None) -> MemoryItem:
    """The item with no more trust than its words have.

    Those who vouched for an item did so for what it said. An agent that signs a write never raises trust, and new words
    of an agent have an agent's trust at most. So have new words whose item names another agent than before and would
    keep the trust of the old ones.

    Args:
        before: the item as it is; None where there is none.
    """
    if before is None:
        return item
    signer = current_signer()
    rewords = _words(item) != _words(before)
    agent = signer.agent if signer is not None else ""
    if not agent and rewords and item.trust == before.trust and item.origin.agent != before.origin.agent:
        agent = item.origin.agent
    if not agent or item.trust not in BY_TRUST:
        return item
    return item.replace(trust=lower_trust(item.trust, before.trust, *([Trust.AGENT.value] if rewords else ())))


def _words(item: MemoryItem) -> tuple[object, ...]:
    return item.title, item.content


_THERE = ("the document was removed since it was read", "there is such a document already")


class FilePlan(NamedTuple):
    """One file to be written or removed.

    Attributes:
        path: where.
        before: the bytes the plan was made against, None where the file was absent.
        after: the bytes to be, None to remove the file.
        item: the item as it will read back; for a removal, what is removed (None if it could not be read).
        rewritten: the person's comments could not be kept.
        expected: sha256 the caller last read, where they named it.
        reason: why a secret in the bytes may stay, "" where there is none.
        vetted: the bytes were searched for secrets already, field by field, or are in history.
        speaks: whether the item's origin says who wrote this change.
        mapping: what the bytes of an item say, where that is known.
    """

    path: str
    before: bytes | None
    after: bytes | None
    item: MemoryItem | None
    rewritten: bool = False
    expected: str = ""
    reason: str = ""
    vetted: bool = False
    speaks: bool = False
    mapping: Mapping[str, Any] | None = None

    @property
    def old_sha(self) -> str:
        """Hex digest of the bytes before, "" where absent."""
        return "" if self.before is None else sha256(self.before)

    @property
    def new_sha(self) -> str:
        """Hex digest of the bytes after, "" for a removal."""
        return "" if self.after is None else sha256(self.after)


class Planner:
    """Turns items into plans against the files as they are now."""

    def __init__(self, parts: Parts, index_sync: IndexSync) -> None:
        self._parts, self._index_sync = parts, index_sync

    def put(
        self, item: MemoryItem, expected: str | None, allow_secret: str = "", *, plain: bool = False
    ) -> list[FilePlan]:
        """The plan for storing an item: one file, and the removal of its old file if its type changed.

        Args:
            plain: it was looked for secrets in the item already, and there are none.

        Raises:
            IdInvalid, IdExists, Conflict.
            ContentError: as ``SecretDetected`` also where a recorded reason was given for other secrets than these.
        """
        from memfs.format.secrets import allowed, refuse_new  # what only reads does without

        given: object = item
        if not isinstance(given, MemoryItem):  # callers without a type checker slip easily from a text into an item
            found = type(given).__name__
            raise SchemaInvalid(f"expected a MemoryItem, got {found}", hint="write MemoryItem(text, type)")
        item, reason = (item, "") if plain else allowed(item, allow_secret)
        kind = self._parts.kinds.get(item.type)
        chosen = check_id(item.id) if item.id else new_id("" if reason else item.title or item.content)
        current_path = self._index_sync.locate_surely(chosen) if item.id else ""
        current = self._read(current_path)
        self._check_expected(chosen, current_path, current, expected)
        stays = current_path and self._parts.kinds.at(current_path.removeprefix(CONTENT + "/")) == kind
        existing = self._decode(current_path, current)
        if reason and not allow_secret:
            refuse_new(item, existing)
        item = cap_trust(self._with_times(item, chosen, existing), existing)
        month = f"/{item.created:%Y-%m}" if kind.dated and item.created else ""
        path = current_path if stays else f"{CONTENT}/{kind.folder}{month}/{item.id}.yaml"
        before = current.data if stays and current else None
        planned = self._encode(item, path, before, existing if stays else None)
        # Tags, a status, trust and so on may be changed by anyone, and the origin stays that of the words.
        speaks = existing is None or item.origin != existing.origin or _words(item) != _words(existing)
        plans = [planned._replace(speaks=speaks, expected=expected or "", reason=reason)]
        if current is not None and not stays:
            old, known = current.data, expected or ""
            plans.append(FilePlan(current_path, old, None, existing, expected=known, reason=reason))
        return plans

    def batch(self) -> Batch:
        """Begins to plan several writes that happen all or not at all."""
        return Batch(self)

    def delete(self, item_id: str, expected: str | None) -> FilePlan:
        """The plan for removing an item.

        Raises:
            ItemNotFound, Conflict.
        """
        path = self._index_sync.locate_surely(check_id(item_id))
        content = self._read(path)
        if content is None:
            raise ItemNotFound(f"no memory has the id {item_id!r}", hint="'memfs list' shows what there is")
        self._check_expected(item_id, path, content, expected)
        existing = self._decode(path, content)
        return FilePlan(path=path, before=content.data, after=None, item=existing, expected=expected or "")

    def document(self, path: str, data: bytes | None, expected: str | None = None) -> FilePlan:
        """The plan for writing a document whole, or removing it (None).

        Raises:
            PathEscape: memfs has no business with this file.
            Conflict: it is not what was expected.
        """
        if not is_own(path):
            raise PathEscape("memfs writes only memory", path=path, hint="use git for other files")
        content = self._read(path)
        current = "" if content is None else sha256(content.data)
        if expected is not None and expected != current:
            raise Conflict(
                "the document changed since it was read" if expected and current else _THERE[bool(current)],
                current=current,
                path=path,
                hint="read it again, apply your change to that, and write that",
            )
        before = content.data if content else None
        return FilePlan(path=path, before=before, after=data, item=None, expected=expected or "")

    def _read(self, path: str) -> Content | None:
        if not path:
            return None
        try:
            content = self._parts.seen.read(path, READ_LIMIT)
        except FileNotFoundError:
            return None
        refuse_rot(path, self._index_sync.stamp_of(path), content, self._parts.tree.root)
        return content

    def _decode(self, path: str, content: Content | None) -> MemoryItem | None:
        if content is None:
            return None
        try:
            return self._parts.codec.read(content.data, path, from_timestamp_ns(content.stamp.mtime_ns))
        except ContentError:
            return None

    @staticmethod
    def _check_expected(item_id: str, path: str, current: Content | None, expected: str | None) -> None:
        if expected is None:
            return
        found = sha256(current.data) if current else ""
        if expected == found:
            return
        if expected == "":
            raise IdExists(
                f"the id {item_id!r} is taken", path=path, hint="choose another id, or replace it on purpose"
            )
        raise Conflict(
            "the memory changed since it was read" if found else "the memory was removed since it was read",
            current=found,
            path=path or None,
            hint="read it again, apply your change to that, and store that",
        )

    def _with_times(self, item: MemoryItem, chosen: str, existing: MemoryItem | None) -> MemoryItem:
        """The item with its id and times."""
        now = self._parts.clock()
        now = now.replace(microsecond=now.microsecond // 1000 * 1000)  # finer than one writes, and shorter to read
        first = (existing.created or existing.timestamp) if existing else None
        created = item.created or first or now
        timestamp = item.timestamp or (existing.timestamp if existing else None) or created
        updated = now if existing else item.updated
        if (chosen, created, timestamp, updated) == (item.id, item.created, item.timestamp, item.updated):
            return item
        return item.replace(id=chosen, created=created, timestamp=timestamp, updated=updated)

    def _encode(self, item: MemoryItem, path: str, before: bytes | None, existing: MemoryItem | None) -> FilePlan:
        if existing is not None and before is not None and item.content == existing.content:
            same = item.replace(updated=existing.updated, path=existing.path, sha256=existing.sha256) == existing
            if same:
                return FilePlan(path=path, before=before, after=before, item=existing)
        encoded = self._parts.codec.write(item, path, before if existing is not None else None)
        stored = item.replace(path=path, sha256=sha256(encoded.data), durability="")
        rewritten = encoded.rewritten or (before is not None and existing is None)
        said = encoded.mapping or {}
        return FilePlan(
            path=path,
            before=before,
            after=encoded.data,
            item=stored,
            rewritten=rewritten,
            # nothing is in the file but the item: no comment, and no field of other programs
            vetted=existing is None or (b"#" not in encoded.data and said.keys() <= ORDER.keys()),
            mapping=encoded.mapping,
        )


def index_plans(index_sync: IndexSync, plans: Sequence[FilePlan], stamps: Mapping[str, Stamp]) -> None:
    """Let the index know of plans that were carried out, by the stamps of their files."""
    items = [
        (plan.item, stamps[plan.path], plan.mapping)
        for plan in plans
        if plan.item is not None and plan.after is not None
    ]
    index_sync.learn(items, [plan.path for plan in plans if plan.after is None])
    unread = [plan.path for plan in plans if plan.item is None and plan.after is not None]
    if unread:
        index_sync.refresh(unread)


WIDTH = 50
"""The most characters of a text in a sentence: with its verb and what follows it fits in 72 columns."""
_SHORTEST = 30


def excerpt(item: MemoryItem) -> str:
    """What an item is called in a sentence: its title, else its first line, without the full stop, cut to ``WIDTH``.

    Where a person allowed the item to hold a secret, or its words look like one, it is the item's id.
    """
    from memfs.format.secrets import find, reason_in

    line = " ".join((item.title.strip() or item.content.strip().partition("\n")[0]).split())
    if not line or reason_in(item.metadata) or find(line):
        return item.id
    text = shown(line.removesuffix("."))
    if len(text) <= WIDTH:
        return text
    kept = text[: WIDTH - 1]
    words = kept.rpartition(" ")[0]
    return (words if len(words) >= _SHORTEST else kept).rstrip(" ,;:-") + "…"


def describe(plans: Sequence[FilePlan]) -> str:
    """The sentence for a commit that carries these plans."""
    first, *others = plans
    ids = dict.fromkeys(stem_of(plan.path).casefold() for plan in plans)
    own = stem_of(first.path).casefold()
    # its item may have had another place until now, as where its type changes
    moves = any(plan.after is None and stem_of(plan.path).casefold() == own for plan in others)
    verb = "Forget" if first.after is None else "Remember" if first.before is None and not moves else "Update"
    note = " (comments could not be kept)" if first.rewritten else ""
    return f"{verb}: {item_label(first)}{and_more(len(ids))}{note}"


def combined_message(sentences: Sequence[str], message: str = "") -> str:
    """The message of a commit that carries several changes, each with a sentence of its own.

    Args:
        message: what the person says of them; "" to name the first, and how many there are.
    """
    if len(sentences) == 1 and sentences[0].startswith(message):
        return sentences[0]
    rows = [f"- {sentence}" for sentence in sentences if sentence != message]
    return "\n\n".join(filter(None, (message or f"{sentences[0]}{and_more(len(sentences))}", "\n".join(rows))))


def message_for_items(verb: str, items: Iterable[MemoryItem], reason: str = "") -> str:
    """The sentence for what was done to some items, such as ``Forget: We use tabs and 2 more (outdated)``."""
    found = list(items)
    named = excerpt(found[0]) if found else "nothing"
    return f"{verb}: {named}{and_more(len(found))}" + reason_suffix(reason)


def reason_suffix(reason: str) -> str:
    """How a sentence ends that has a reason, "" where there is none."""
    return f" ({text})" if (text := " ".join(reason.split())) else ""


def item_label(plan: FilePlan) -> str:
    """What a plan's item is called: its words, or its id where they cannot be read or are not to be shown."""
    return stem_of(plan.path) if plan.item is None or plan.reason else excerpt(plan.item)


def and_more(number: int) -> str:
    """How a sentence ends that names only the first of several."""
    return f" and {number - 1:,} more" if number > 1 else ""


class Batch:
    """What ``Store.batch`` hands to its block."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._paths: set[str] = set()
        self._ids: set[str] = set()
        self.plans: list[FilePlan] = []

    def put(self, item: MemoryItem, expected: str | None = None, *, allow_secret: str = "") -> MemoryItem:
        """Plan to store an item; see ``Store.put``. It is stored when the block ends."""
        plans = self._planner.put(item, expected, allow_secret)
        self._take(plans)
        stored = plans[0].item
        return item if stored is None else stored

    def delete(self, item_id: str, expected: str | None = None) -> MemoryItem | None:
        """Plan to remove an item; see ``Store.delete``."""
        plan = self._planner.delete(item_id, expected)
        self._take([plan])
        return plan.item

    def _take(self, plans: list[FilePlan]) -> None:
        paths = {plan.path.casefold() for plan in plans}
        ids = {stem_of(plan.path).casefold() for plan in plans}
        if paths & self._paths or ids & self._ids:
            raise Conflict(
                "this batch writes the same item twice", path=plans[0].path, hint="merge the two writes into one"
            )
        self._paths |= paths
        self._ids |= ids
        self.plans.extend(plans)
