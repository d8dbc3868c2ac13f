"""Merges two changed versions of one memory file: values, comments, layout and trust.

The result is valid wherever both versions are, and is no better trusted than the version its words come from. What
cannot be merged is kept whole, with the reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from memfs.dataclass import dataclass, replace
from memfs.errors import ContentError, IdInvalid, ItemTooLarge, MemfsError
from memfs.format import item_fields, toml_text
from memfs.format.codec import DOCUMENT_LIMIT, PRUNED, SUFFIXES, EncodedFile, ParsedFile, parse, render, schema_of
from memfs.format.field_merge import (
    DELETED,
    EDITED,
    ONE,
    OTHER,
    FieldConflict,
    FieldMerge,
    equal,
    followed,
    merge,
    merge_lines,
    record,
    within,
)
from memfs.format.plain import DOCUMENT_PARTS, MAX_PARTS, FieldPath, canonical, same
from memfs.format.text import MARKER, whole_marked
from memfs.fs.workspace_location import MEMORY_FOLDER
from memfs.model.item import Trust, lower_trust
from memfs.model.kinds import ITEM_LIMIT
from memfs.model.state_paths import document_kind
from memfs.model.time import EPOCH, time_in

if TYPE_CHECKING:
    from memfs.format.codec import Codec
    from memfs.format.schema import SchemaError

CONFLICTS = "conflicts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a structured file is.

    Attributes:
        path: its path below the workspace.
        rules: its schema, with the ``x-merge`` of each field.
        records: whether it can record itself what was overridden.
        kind: the name of the item's kind; "" for documents.
        check: what is wrong with plain values, by its schema.
        prove: reads bytes as the workspace does.
    """

    path: str
    rules: Mapping[str, Any]
    records: bool
    kind: str
    check: Callable[[Mapping[str, Any]], list[SchemaError]]
    prove: Callable[[bytes], object]

    def read(self, data: bytes) -> ParsedFile:
        """The bytes as a mapping, whether that obeys the schema or not.

        Raises:
            ContentError: they are not keys and values.
        """
        if len(data) > self._limit:
            raise ItemTooLarge(f"{len(data)} bytes, limit {self._limit}", hint="split it into several")
        return parse(data, self.path, allow_invisible=True, parts=self._parts)

    def write(self, mapping: Mapping[str, Any], before: ParsedFile | None) -> EncodedFile:
        """The bytes of a mapping, with the layout of the file before where it can be kept.

        Raises:
            ContentError: they could not be read back as the mapping.
        """
        return render(mapping, self.path, before, item_fields.ORDER if self.kind else {}, self._parts)

    def faults(self, mapping: Mapping[str, Any]) -> list[FieldPath]:
        """The fields that are not valid; the empty path for the whole."""
        found = [error.path for error in self.check(mapping)]
        if not found:
            try:
                data = self.write(mapping, None).data
                if len(data) > self._limit:
                    found = [("content",) if self.kind else ()]
                else:
                    self.prove(data)
            except (ContentError, IdInvalid) as error:
                found = [tuple((error.field or "").split(".")) if error.field else ()]
        return found

    @property
    def _limit(self) -> int:
        return ITEM_LIMIT if self.kind else DOCUMENT_LIMIT

    @property
    def _parts(self) -> int:
        return MAX_PARTS if self.kind else DOCUMENT_PARTS


def form_of(path: str, codec: Codec) -> Form | None:
    """The form of the file at a path, None where it is text to memfs.

    Raises:
        SettingInvalid: the item's kind names a body that does not exist.
    """
    inside = path.removeprefix(f"{MEMORY_FOLDER}/")
    kind = codec.kinds.at(inside) if inside != path else None
    home = path
    if path.startswith(f"{PRUNED}/"):  # what was pruned is below the name of its kind
        name = path[len(PRUNED) + 1 :].partition("/")[0]
        kind = codec.kinds.get(name) if name in codec.kinds else None
        home = f"{MEMORY_FOLDER}/{kind.folder}/{path.rpartition('/')[2]}" if kind else path
    if kind is not None and path.endswith(SUFFIXES):
        return Form(
            path=path,
            rules=codec.schemas.item_rules(kind),
            records=True,
            kind=kind.name,
            check=lambda mapping: codec.schemas.check_item(mapping, kind),
            prove=lambda data: codec.read(data, home, EPOCH, checked=True),
        )
    schema = schema_of(path)
    if not schema:
        return None
    return Form(
        path=path,
        rules=codec.schemas.rules(schema),
        records=False,
        kind="",
        check=lambda mapping: codec.schemas.check_document(mapping, schema),
        prove=lambda data: codec.read_document(data, path, schema),
    )


def laid_out(form: Form, wanted: Mapping[str, Any], base: bytes, ours: ParsedFile, theirs: ParsedFile) -> bytes:
    """The bytes of a joined file.

    A text joined by lines that says just what is wanted is taken as it is, with the comments of both. Else what differs
    is put into our text, which keeps its own.

    Raises:
        ContentError: nothing could be written that reads back as wanted.
    """
    joined = merge_lines(base, ours.data, theirs.data)
    with suppress(ContentError):
        if joined.clean and same(form.read(joined.data).mapping, wanted):
            return joined.data
    return form.write(wanted, ours).data


def healed(form: Form, merged: FieldMerge, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> FieldMerge | None:
    """The joined values, valid: where fields at fault keep them from it with ours in these, else one version whole.

    Args:
        merged: what the rules made.
        ours: the version that wins where only one can.

    Returns:
        The values with every conflict; None where neither version is valid either.
    """
    merged = _typed(form, merged)
    faults = form.faults(merged.values)
    if not faults:
        return merged
    fields = {str(path[0]) for path in faults if path}
    values = {name: value for name, value in merged.values.items() if name not in fields}
    values |= {name: ours[name] for name in ours if name in fields}
    clashes = [FieldConflict(field=name, kept=ours.get(name), lost=theirs.get(name)) for name in sorted(fields)]
    others = [one for one in merged.conflicts if _top(one) not in fields]
    choices = [FieldMerge(values=values, conflicts=(*others, *clashes))]
    for whole, yielded in ((ours, False), (theirs, True)):
        conflict = FieldConflict(field="", kept=ONE, lost=OTHER, yielded=yielded)
        choices.append(_typed(form, FieldMerge(values=dict(whole), conflicts=(conflict,))))
    return next((one for one in choices if not form.faults(one.values)), None)


def _typed(form: Form, merged: FieldMerge) -> FieldMerge:
    """An item's type is its folder's, whatever the versions say."""
    if not form.kind or merged.values.get("type", form.kind) == form.kind:
        return merged
    conflicts = tuple(clash for clash in merged.conflicts if clash.field != "type")
    return FieldMerge(values={**merged.values, "type": form.kind}, conflicts=conflicts)


_TRUST, _ORIGIN = "trust", "origin"
_WORDS = ("title", "content", "data")


def vouched(merged: FieldMerge, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> FieldMerge:
    """The joined item with no more trust than the version has that its words come from; of words from both, the lower.

    Where one version's words were overridden, it is also said by whom the other's are: a mixture names no one.

    Args:
        merged: the joined values, and what was overridden.
        ours: the version that wins where only one can.
    """
    said = [merged.values.get(name) or None for name in _WORDS]
    sources = [side for side in (ours, theirs) if equal([side.get(name) or None for name in _WORDS], said)]
    if len(sources) == 1 and any(_top(one) in _WORDS for one in merged.conflicts):
        spoken = {_ORIGIN: sources[0][_ORIGIN]} if _ORIGIN in sources[0] else {}
        values = {name: value for name, value in merged.values.items() if name != _ORIGIN} | spoken
        merged = FieldMerge(values=values, conflicts=tuple(one for one in merged.conflicts if _top(one) != _ORIGIN))
    merged_trust = _trust(merged.values)
    trust = lower_trust(merged_trust, *map(_trust, sources or (ours, theirs)))
    if len(sources) == 2 or trust == merged_trust:
        return merged
    clash = FieldConflict(field=_TRUST, kept=trust, lost=merged_trust, yielded=_trust(ours) == merged_trust)
    others = tuple(one for one in merged.conflicts if one.field != _TRUST)
    return replace(merged, values={**merged.values, _TRUST: trust}, conflicts=(*others, clash))


def _top(conflict: FieldConflict) -> str:
    return conflict.field.partition(".")[0]


def _trust(values: Mapping[str, Any]) -> str:
    trust = values.get(_TRUST, Trust.HUMAN.value)
    return trust if isinstance(trust, str) else ""


Preference = Literal["later", "ours"]
"""Whose value is kept where only one can be: that of the version updated later, or ours."""
_MOMENTS = ("updated", "timestamp", "closed", "given", "written", "created")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMerge:
    """What became of a file.

    Attributes:
        data: its bytes; None where it is to be absent.
        conflicts: the fields in which one version's value was overridden, in the order of the file.
        recorded: whether ``data`` carries its conflicts itself (an item does, in ``conflicts``); else the caller keeps
            a record of them.
        whole: whether the file could not be joined by fields, since a version could not be read, or the file has none
            and its lines clash: ``data`` has both, between conflict markers where they clash, and needs a person.
        reason: where ``whole``, what was wrong, in one sentence.
    """

    data: bytes | None
    conflicts: tuple[FieldConflict, ...] = ()
    recorded: bool = False
    whole: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Request:
    """What is to be joined; ``base`` is empty where there was none."""

    path: str
    base: bytes
    ours: bytes
    theirs: bytes
    prefer: Preference
    record: bool
    marker_size: int


class FileMerger:
    """Joins versions of memory files. Keeps nothing; may be used from several threads.

    Args:
        codec: of the workspace: reads and writes its items and documents, knows their schemas and kinds.
    """

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def merge(
        self,
        path: str,
        base: bytes | None,
        ours: bytes | None,
        theirs: bytes | None,
        *,
        prefer: Preference = "later",
        record: bool = True,
        marker_size: int = MARKER,
    ) -> FileMerge:
        """Join two versions of a file that began from one, by the rules of its schema.

        Independent edits are both in the result. The result of an item or document is always valid, unless neither
        version is. With ``later`` it makes no difference which version is called ours, to the byte. A file that one
        side removed and the other changed stays, with a conflict.

        Args:
            path: the file's path below the workspace ("/" separated); it says what the file is.
            base: what both began from; None where they have nothing in common.
            ours, theirs: the versions; None where a side has no such file.
            prefer: whose value is kept where only one can be; with ``ours`` a removal, too, wins over a change.
            record: whether an item records conflicts in its field ``conflicts``, with the later ``updated`` of the two
                for its time, so that two clones which join the same versions write the same bytes.
            marker_size: how long the conflict markers of what cannot be joined are.

        Returns:
            The joined file. Versions that are equal give themselves, byte for byte.
        """
        if ours == theirs or theirs == base:
            return FileMerge(data=ours)
        if ours == base:
            return FileMerge(data=theirs)
        request = _Request(path, base or b"", ours or b"", theirs or b"", prefer, record, marker_size)
        if ours is None or theirs is None:
            return self._kept(request, removed_by_us=ours is None)
        kind = document_kind(path)
        # memfs makes the file again from others, so that either version will do
        made = kind == "aggregate" or path.startswith(f"{MEMORY_FOLDER}/.schemas/")
        # the file is valid in exactly the bytes that memfs wrote, as a checkpoint's manifest is
        index = path.startswith(f"{MEMORY_FOLDER}/archive/") and path.endswith(".index.json")
        if made or kind == "checkpoint" or index:
            data = max(request.ours, request.theirs, key=lambda version: (len(version), version))
            conflict = FieldConflict(field="", kept=ONE, lost=OTHER)
            return FileMerge(data=data if prefer == "later" else ours, conflicts=() if made else (conflict,))
        return self._joined(request)

    def unrelated(
        self, path: str, base: bytes | None, ours: bytes | None, theirs: bytes | None
    ) -> frozenset[Literal["ours", "theirs"]]:
        """Which versions are of another item than the base.

        Where one side forgot an item and remembered one much like it, git takes the file for renamed, and the one
        item's versions for the other's. They are recognised by ``created``, which stays for an item's life; what has
        none, and two that were created in the same second, cannot be distinguished.
        """
        made = self._created(path, base)
        sides: tuple[tuple[Literal["ours", "theirs"], bytes | None], ...] = (("ours", ours), ("theirs", theirs))
        others = {name: self._created(path, data) for name, data in sides} if made else {}
        return frozenset(name for name, moment in others.items() if moment and moment != made)

    # -- internal -----------------------------------------------------------------------------------------------
    def _created(self, path: str, data: bytes | None) -> datetime | None:
        """When an item was created; None where it does not say, or is none."""
        try:
            form = form_of(path, self._codec) if data else None
            return time_in(form.read(data or b"").mapping.get("created")) if form and form.kind else None
        except MemfsError:
            return None

    def _joined(self, request: _Request) -> FileMerge:
        try:
            form = form_of(request.path, self._codec)
            if form is None:
                return _by_lines(request)
            ours = _read_version(form, request.ours, "ours")
            return _by_fields(request, form, ours, _read_version(form, request.theirs, "theirs"))
        except _Unreadable as error:
            return _unread(request, str(error))
        except MemfsError as error:
            return _unread(request, error.sentence)

    def _kept(self, request: _Request, removed_by_us: bool) -> FileMerge:
        """One side removed the file, the other changed it."""
        if request.prefer == "ours" and removed_by_us:
            return FileMerge(data=None, conflicts=(FieldConflict(field="", kept=DELETED, lost=EDITED),))
        data = request.theirs if removed_by_us else request.ours
        with_record = self._with_removal(request.path, data) if request.record else None
        conflict = FieldConflict(field="", kept=EDITED, lost=DELETED)
        return FileMerge(data=with_record or data, conflicts=(conflict,), recorded=with_record is not None)

    def _with_removal(self, path: str, data: bytes) -> bytes | None:
        """An item that says it was removed elsewhere; None where it cannot."""
        try:
            form = form_of(path, self._codec)
            if form is None or not form.records:
                return None
            parsed = form.read(data)
            moment = time_in(parsed.mapping.get("updated"))
            entry = record(FieldConflict(field="", kept=EDITED, lost=DELETED), "", now=moment)
            values = _with_records(parsed.mapping, [entry], "")
            return None if form.faults(values) else form.write(values, parsed).data
        except MemfsError:
            return None


class _Unreadable(Exception):
    """A version that holds no keys and values."""


# -- by fields ----------------------------------------------------------------------------------------------------
def _by_fields(request: _Request, form: Form, ours: ParsedFile, theirs: ParsedFile) -> FileMerge:
    """Both versions joined by the rules of their schema; the one that wins where only one can is called ours."""
    if request.prefer == "later" and _is_later(theirs, ours, not form.kind):
        ours, theirs = theirs, ours
    begun: Mapping[str, Any] = {}  # without values that both began from, nothing is common
    with suppress(ContentError):
        begun = form.read(request.base).mapping if request.base else {}
    removals_stand = request.prefer == "ours"
    merged = merge(begun, ours.mapping, theirs.mapping, form.rules, removals_stand=removals_stand)
    if form.records and CONFLICTS in merged.values:
        merged = FieldMerge(values=_with_records(merged.values, [], _sha256(theirs)), conflicts=merged.conflicts)
    result = healed(form, merged, ours.mapping, theirs.mapping)
    if result is None:
        raise _Unreadable("neither version is valid")
    if form.kind:
        result = vouched(result, ours.mapping, theirs.mapping)
    with_records = None
    if form.records and request.record:
        result = _followed(form, result, begun, (ours, theirs))
        with_records = _with_conflicts(form, result, ours, theirs)
    data = laid_out(form, with_records or result.values, request.base, ours, theirs)
    return FileMerge(data=data, conflicts=result.conflicts, recorded=with_records is not None)


def _followed(form: Form, result: FieldMerge, begun: Mapping[str, Any], versions: tuple[ParsedFile, ...]) -> FieldMerge:
    """With records that only one side has updated to the present value: the other side decided about none of them."""
    known = result.values.get(CONFLICTS)
    if not known:
        return result
    found = {canonical(entry): entry for entry in known}
    for key in found.keys() - _records_in(begun):
        having = [one.mapping for one in versions if key in _records_in(one.mapping)]
        if len(having) == 1:
            found[key] = followed(found[key], having[0], result.values)
    values = {**result.values, CONFLICTS: within([one for one in found.values() if one], "")}
    return result if values == result.values or form.faults(values) else replace(result, values=values)


def _records_in(values: Mapping[str, Any]) -> frozenset[str]:
    known = values.get(CONFLICTS)
    return frozenset(map(canonical, known)) if isinstance(known, list) else frozenset()


def _with_conflicts(form: Form, result: FieldMerge, ours: ParsedFile, theirs: ParsedFile) -> dict[str, Any] | None:
    """The values with a record of each conflict; None where there is none, or no room for it in the file."""
    if not result.conflicts:
        return None
    moments = [time_in(version.mapping.get("updated")) for version in (ours, theirs)]
    now = max((moment for moment in moments if moment), default=None)
    losers = [ours if clash.yielded else theirs for clash in result.conflicts]
    for brief in (False, True):
        entries = [
            record(clash, _sha256(loser), _writer(loser), now, brief=brief)
            for clash, loser in zip(result.conflicts, losers, strict=True)
        ]
        values = _with_records(result.values, entries, _sha256(theirs))
        if not form.faults(values):
            return values
    return None


def _with_records(values: Mapping[str, Any], entries: list[dict[str, Any]], lost_sha256: str) -> dict[str, Any]:
    known = values.get(CONFLICTS)
    if known is not None and not (isinstance(known, list) and all(isinstance(one, dict) for one in known)):
        return dict(values)  # a person's slip, which the schema names
    return {**values, CONFLICTS: within([*(known or ()), *entries], lost_sha256)}


def _read_version(form: Form, data: bytes, whose: str) -> ParsedFile:
    try:
        return form.read(data)
    except ContentError as error:
        place = f"line {error.line}: " if error.line else ""
        raise _Unreadable(f"{whose}: {place}{error.sentence}") from error


def _is_later(one: ParsedFile, other: ParsedFile, is_document: bool) -> bool:
    """Whether a version was changed after another; of two with the same times one is chosen by what they hold."""
    for name in _MOMENTS if is_document else _MOMENTS[:1]:
        here, there = (time_in(version.mapping.get(name)) for version in (one, other))
        if here != there:
            return there is None or (here is not None and here > there)
    keys = [(canonical(version.mapping), version.data) for version in (one, other)]
    return keys[0] > keys[1]


def _writer(version: ParsedFile) -> str:
    origin = version.mapping.get("origin")
    named = origin.get("agent") or origin.get("speaker") if isinstance(origin, Mapping) else ""
    return named if isinstance(named, str) else ""


def _sha256(version: ParsedFile) -> str:
    return hashlib.sha256(version.data).hexdigest()


# -- as a whole ---------------------------------------------------------------------------------------------------
def _by_lines(request: _Request) -> FileMerge:
    """A file without fields of its own; a clean result is the same whichever version is called ours."""
    if b"\0" in request.ours or b"\0" in request.theirs:
        return FileMerge(data=request.ours, whole=True, reason="not text: nothing was joined, ours is kept")
    sides = (request.ours, request.theirs) if request.ours > request.theirs else (request.theirs, request.ours)
    joined = merge_lines(request.base, *sides)
    is_toml = request.path.endswith(".toml")
    if joined.clean and (not is_toml or toml_text.is_toml(joined.data)):
        return FileMerge(data=joined.data)
    reason = "what the lines of both come to is not TOML" if joined.clean else "both changed the same lines"
    marked = merge_lines(request.base, request.ours, request.theirs, request.marker_size)
    both = whole_marked(request.ours, request.theirs, request.marker_size)
    return FileMerge(data=both if marked.clean else marked.data, whole=True, reason=reason)


def _unread(request: _Request, reason: str) -> FileMerge:
    """Both versions, with conflict markers where their lines clash; who called decides what to do with it."""
    if b"\0" in request.ours or b"\0" in request.theirs:
        return FileMerge(data=request.ours, whole=True, reason=reason)
    joined = merge_lines(request.base, request.ours, request.theirs, request.marker_size)
    return FileMerge(data=joined.data, whole=True, reason=reason)
