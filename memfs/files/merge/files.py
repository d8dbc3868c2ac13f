"""Files: how two changed versions of one memory file become one (K4, B3).

Owns the way from three files' bytes to one: what is taken as it is, which version wins where only one can, and what
becomes of a file that nobody can read. Must not know git, nor who records a conflict that a file cannot carry itself.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from memfs.errors import ContentError, MemfsError
from memfs.files.merge.forms import CONFLICTS, Form, form_of
from memfs.files.merge.healing import healed
from memfs.files.merge.layout import Version, laid_out
from memfs.files.merge.lines import MARKER, merge_lines, whole_marked
from memfs.files.merge.recorded import DELETED, EDITED, ONE, OTHER, followed, record, within
from memfs.files.merge.settings import clashing_settings, merge_settings
from memfs.files.merge.values import Clash, Merged, merge
from memfs.files.merge.vouching import vouched
from memfs.files.plain import canonical
from memfs.files.whereabouts import MEMORY_FOLDER
from memfs.model.statepaths import document_kind
from memfs.model.time import time_in

if TYPE_CHECKING:
    from memfs.files.codec import Codec

Preference = Literal["later", "ours"]
"""Whose value stands where only one can: that of the version updated later, or ours."""
_MOMENTS = ("updated", "timestamp", "closed", "given", "written", "created")
_MADE = frozenset({"aggregate"})
_SEALED = frozenset({"checkpoint"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldConflict:
    """A field in which one version's value gave way.

    Attributes:
        field: its dotted name; "" for the file as a whole.
        kept: what stands in the result, as plain values; None where the field, or the file, is gone.
        lost: what would stand there if the other version's change had been taken; None where that had removed the
            field. For the whole file the two are words: ``edited``, ``deleted``, ``one version``, ``another version``.
    """

    field: str
    kept: Any
    lost: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMerge:
    """What became of a file.

    Attributes:
        data: its bytes; None where it is to be absent.
        conflicts: the fields in which one version's value gave way, in the order of the file.
        recorded: whether ``data`` carries its conflicts itself (an item does, in ``conflicts``); else the caller keeps
            a record of them.
        whole: whether the file could not be joined by fields, since a version could not be read, or the file has none
            and its lines clash: ``data`` has both, between conflict markers where they clash, and needs a person.
            The conflicts are then those of settings, ours and theirs: neither stands.
        reason: where ``whole``, what was wrong, in one sentence.
    """

    data: bytes | None
    conflicts: tuple[FieldConflict, ...] = ()
    recorded: bool = False
    whole: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What is to be joined; ``base`` is empty where there was none."""

    path: str
    base: bytes
    ours: bytes
    theirs: bytes
    prefer: Preference
    by: str
    now: datetime | None
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
        by: str = "",
        now: datetime | None = None,
        record: bool = True,
        marker_size: int = MARKER,
    ) -> FileMerge:
        """Join two versions of a file that began from one, by the rules of its schema (K4, B3).

        Independent edits are both in the result. The result of an item or document is always valid, unless neither
        version is. With ``later`` it makes no difference which version is called ours, to the byte. A file that one
        side removed and the other changed stays, with a conflict.

        Args:
            path: where the file lies, below the workspace ("/" separated); it says what the file is.
            base: what both began from; None where they have nothing in common.
            ours, theirs: the versions; None where a side has no such file.
            prefer: whose value stands where only one can; with ``ours`` also a removal stands against a change.
            by: who is told as the writer of a value that gave way, "" for whom the version itself names.
            now: when the versions met, for the records of conflicts; the later ``updated`` of the two by default, so
                that two clones which join the same versions write the same bytes.
            record: whether an item tells of conflicts in its field ``conflicts``.
            marker_size: how long the conflict markers of what cannot be joined are.

        Returns:
            The joined file. Versions that are equal give themselves, byte for byte.
        """
        if ours == theirs or theirs == base:
            return FileMerge(data=ours)
        if ours == base:
            return FileMerge(data=theirs)
        request = _Request(
            path=path,
            base=base or b"",
            ours=ours or b"",
            theirs=theirs or b"",
            prefer=prefer,
            by=by,
            now=now,
            record=record,
            marker_size=marker_size,
        )
        if ours is None or theirs is None:
            return self._kept(request, removed_by_us=ours is None)
        if _is_made(path):
            return _one_of(request, silently=True)
        if document_kind(path) in _SEALED or _is_archive_index(path):
            return _one_of(request)
        return self._joined(request)

    def strangers(
        self, path: str, base: bytes | None, ours: bytes | None, theirs: bytes | None
    ) -> frozenset[Literal["ours", "theirs"]]:
        """Which versions are of another item than the base (B3).

        Where one side forgot an item and remembered one much like it, git takes the file for renamed, and the one
        item's versions for the other's. They are told by ``created``, which stays for an item's life; what has none,
        and two that were created in the same second, cannot be told.
        """
        made = self._created(path, base)
        sides: tuple[tuple[Literal["ours", "theirs"], bytes | None], ...] = (("ours", ours), ("theirs", theirs))
        others = {name: self._created(path, data) for name, data in sides} if made else {}
        return frozenset(name for name, moment in others.items() if moment and moment != made)

    # -- internal -----------------------------------------------------------------------------------------------
    def _created(self, path: str, data: bytes | None) -> datetime | None:
        return time_in(self._mapping(path, data).get("created"))

    def _mapping(self, path: str, data: bytes | None) -> Mapping[str, Any]:
        """What an item says; nothing where it is none."""
        try:
            form = form_of(path, self._codec) if data else None
            return form.read(data or b"").mapping if form and form.kind else {}
        except MemfsError:
            return {}

    def _joined(self, request: _Request) -> FileMerge:
        try:
            form = form_of(request.path, self._codec)
            if form is None:
                return _by_lines(request)
            ours = _read(form, request.ours, "ours")
            theirs = _read(form, request.theirs, "theirs")
            return _by_fields(request, form, ours, theirs)
        except _Unreadable as error:
            return _unread(request, str(error))
        except MemfsError as error:
            return _unread(request, error.sentence)

    def _kept(self, request: _Request, removed_by_us: bool) -> FileMerge:
        """One side removed the file, the other changed it."""
        if request.prefer == "ours" and removed_by_us:
            return FileMerge(data=None, conflicts=(FieldConflict(field="", kept=DELETED, lost=EDITED),))
        data = request.theirs if removed_by_us else request.ours
        told = self._with_removal(request, data) if request.record else None
        conflict = FieldConflict(field="", kept=EDITED, lost=DELETED)
        return FileMerge(data=told or data, conflicts=(conflict,), recorded=told is not None)

    def _with_removal(self, request: _Request, data: bytes) -> bytes | None:
        """An item that tells it was removed elsewhere; None where it cannot."""
        try:
            form = form_of(request.path, self._codec)
            if form is None or not form.records:
                return None
            parsed = form.read(data)
            moment = request.now or time_in(parsed.mapping.get("updated"))
            entry = record(Clash(field="", kept=EDITED, lost=DELETED), "", request.by, moment)
            values = _with_records(parsed.mapping, [entry], "")
            return None if form.faults(values) else form.write(values, parsed).data
        except MemfsError:
            return None


class _Unreadable(Exception):
    """A version that holds no keys and values."""


# -- by fields ----------------------------------------------------------------------------------------------------
def _by_fields(request: _Request, form: Form, ours: Version, theirs: Version) -> FileMerge:
    """Both versions joined by the rules of their schema; the one that wins where only one can is called ours."""
    if request.prefer == "later" and _is_later(theirs, ours, not form.kind):
        ours, theirs = theirs, ours
    begun = _begun(form, request.base)
    removals_stand = request.prefer == "ours"
    merged = merge(begun, ours.mapping, theirs.mapping, form.rules, removals_stand=removals_stand)
    if form.records and CONFLICTS in merged.values:
        merged = Merged(values=_with_records(merged.values, [], _sha256(theirs)), conflicts=merged.conflicts)
    result = healed(form, merged, ours.mapping, theirs.mapping)
    if result is None:
        raise _Unreadable("neither version is valid")
    if form.kind:
        result = vouched(result, ours.mapping, theirs.mapping)
    told = None
    if form.records and request.record:
        result = _followed(form, result, begun, (ours, theirs))
        told = _told(request, form, result, ours, theirs)
    data = laid_out(form, told or result.values, request.base, ours, theirs)
    conflicts = tuple(FieldConflict(field=one.field, kept=one.kept, lost=one.lost) for one in result.conflicts)
    return FileMerge(data=data, conflicts=conflicts, recorded=told is not None)


def _followed(form: Form, result: Merged, begun: Mapping[str, Any], versions: tuple[Version, ...]) -> Merged:
    """With the records that one side alone has speaking of what stands: the other side decided about none of them."""
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


def _told(request: _Request, form: Form, result: Merged, ours: Version, theirs: Version) -> dict[str, Any] | None:
    """The values with a record of each conflict; None where there is none, or no room for it in the file."""
    if not result.conflicts:
        return None
    moments = [time_in(version.mapping.get("updated")) for version in (ours, theirs)]
    now = request.now or max((moment for moment in moments if moment), default=None)
    losers = [ours if clash.yielded else theirs for clash in result.conflicts]
    for brief in (False, True):
        entries = [
            record(clash, _sha256(loser), request.by or _writer(loser), now, brief=brief)
            for clash, loser in zip(result.conflicts, losers, strict=True)
        ]
        values = _with_records(result.values, entries, _sha256(theirs))
        if not form.faults(values):
            return values
    return None


def _with_records(values: Mapping[str, Any], entries: list[dict[str, Any]], lost_sha256: str) -> dict[str, Any]:
    known = values.get(CONFLICTS)
    if known is not None and not (isinstance(known, list) and all(isinstance(one, dict) for one in known)):
        return dict(values)  # somebody's slip, which the schema names
    return {**values, CONFLICTS: within([*(known or ()), *entries], lost_sha256)}


def _read(form: Form, data: bytes, whose: str) -> Version:
    try:
        return Version(data=data, parsed=form.read(data))
    except ContentError as error:
        place = f"line {error.line}: " if error.line else ""
        raise _Unreadable(f"{whose}: {place}{error.sentence}") from error


def _begun(form: Form, base: bytes) -> Mapping[str, Any]:
    """The values both began from; without any, nothing is common."""
    try:
        return form.read(base).mapping if base else {}
    except ContentError:
        return {}


def _is_later(one: Version, other: Version, is_document: bool) -> bool:
    """Whether a version was changed after another; of two with the same times one is chosen by what they hold."""
    for name in _MOMENTS if is_document else _MOMENTS[:1]:
        here, there = (time_in(version.mapping.get(name)) for version in (one, other))
        if here != there:
            return there is None or (here is not None and here > there)
    told = [(canonical(version.mapping), version.data) for version in (one, other)]
    return told[0] > told[1]


def _writer(version: Version) -> str:
    origin = version.mapping.get("origin")
    named = origin.get("agent") or origin.get("speaker") if isinstance(origin, Mapping) else ""
    return named if isinstance(named, str) else ""


def _sha256(version: Version) -> str:
    return hashlib.sha256(version.data).hexdigest()


# -- as a whole ---------------------------------------------------------------------------------------------------
def _is_made(path: str) -> bool:
    """Whether memfs makes the file anew from others, so that either version will do."""
    return document_kind(path) in _MADE or path.startswith(f"{MEMORY_FOLDER}/.schemas/")


def _is_archive_index(path: str) -> bool:
    """Whether the file is valid in exactly the bytes that memfs wrote, as a checkpoint's manifest is."""
    return path.startswith(f"{MEMORY_FOLDER}/archive/") and path.endswith(".index.json")


def _one_of(request: _Request, silently: bool = False) -> FileMerge:
    """One of two versions, the same whichever is called ours, unless ours is preferred."""
    data = request.ours
    if request.prefer == "later":
        data = max(request.ours, request.theirs, key=lambda version: (len(version), version))
    conflict = FieldConflict(field="", kept=ONE, lost=OTHER)
    return FileMerge(data=data, conflicts=() if silently else (conflict,))


def _by_lines(request: _Request) -> FileMerge:
    """A file without fields of its own; a clean result is the same whichever version is called ours."""
    if b"\0" in request.ours or b"\0" in request.theirs:
        return FileMerge(data=request.ours, whole=True, reason="not text: nothing was joined, ours stands")
    sides = (request.ours, request.theirs) if request.ours > request.theirs else (request.theirs, request.ours)
    joined = merge_lines(request.base, *sides)
    is_toml = request.path.endswith(".toml")
    if joined.clean and (not is_toml or _is_toml(joined.data)):
        return FileMerge(data=joined.data)
    settings = merge_settings(request.base, *sides) if is_toml else None
    if settings is not None:
        return FileMerge(data=settings)
    reason = "what the lines of both come to is not TOML" if joined.clean else "both changed the same lines"
    marked = merge_lines(request.base, request.ours, request.theirs, request.marker_size)
    both = whole_marked(request.ours, request.theirs, request.marker_size)
    clashes = clashing_settings(request.base, request.ours, request.theirs) if is_toml else ()
    told = tuple(FieldConflict(field=one.field, kept=one.kept, lost=one.lost) for one in clashes)
    return FileMerge(data=both if marked.clean else marked.data, whole=True, reason=reason, conflicts=told)


def _unread(request: _Request, reason: str) -> FileMerge:
    """Both versions, with conflict markers where their lines clash; who called decides what to do with it."""
    if b"\0" in request.ours or b"\0" in request.theirs:
        return FileMerge(data=request.ours, whole=True, reason=reason)
    joined = merge_lines(request.base, request.ours, request.theirs, request.marker_size)
    return FileMerge(data=joined.data, whole=True, reason=reason)


def _is_toml(data: bytes) -> bool:
    try:
        tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return False
    return True
