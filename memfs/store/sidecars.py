"""Sidecars: values too large for a state document, kept compressed in files beside it.

A sidecar is named by its digest, and is durable and read back before a document may refer to it. A reference that leads
away from the document's own folder is never followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from memfs import errors
from memfs.dataclass import dataclass
from memfs.format import json_text
from memfs.format.plain import FieldPath, dotted
from memfs.format.secrets import found_in_value, secret_error
from memfs.fs import io
from memfs.fs.archive import compress, decompress
from memfs.fs.atomic_replace import sha256
from memfs.model.state_paths import document_of_sidecar, sidecar_path
from memfs.startup import json
from memfs.store.parts import Parts
from memfs.store.plan import FilePlan

Read = Callable[[str], bytes]
"""Gives the bytes of a sidecar, or ``FileNotFoundError``."""

KEY = "$sidecar"
SIDECAR_LIMIT = 1 << 30
_LEVEL = 3
_MOST_BYTES = 8 << 20
_MOST_PARTS = 100_000
_WORTH_BYTES = 1 << 16
_WORTH_PARTS = 1_000
_DIGEST = 64


@dataclass(frozen=True, slots=True)
class SpilledValue:
    """A value that was taken out of a document: where it goes, and its text as JSON."""

    path: str
    value: Any
    data: bytes


@dataclass(frozen=True, slots=True)
class _SizedValue:
    field: FieldPath
    bytes: int
    parts: int


def holds_reference(data: bytes) -> bool:
    """Whether a document's bytes may hold a reference; quick, for every read."""
    return b'"$sidecar"' in data


# -- taking out ---------------------------------------------------------------------------------------------------
def refuse_reserved(values: Any) -> None:
    """Refuse a caller's own key of that name: it would be taken for a reference.

    Raises:
        SchemaInvalid: naming the field.
    """
    for field, _ in references(values):
        raise errors.SchemaInvalid(
            f"the key {KEY!r} is memfs's own", field=dotted(field) or KEY, hint="use another key"
        )


def spill(
    values: dict[str, Any], path: str, fits: Callable[[Mapping[str, Any]], bool]
) -> tuple[dict[str, Any], list[SpilledValue]]:
    """Take as few values out of a document as make it small enough.

    Args:
        values: the document; it is left alone.
        path: where it is.
        fits: whether a document with references in it still obeys its schema.

    Returns:
        The document with references, and what they refer to.

    Raises:
        ItemTooLarge: naming the largest field that cannot be taken out.
    """
    taken: list[SpilledValue] = []
    while True:
        sized: list[_SizedValue] = []
        whole = _measure(values, (), sized)
        over_bytes, over_parts = whole.bytes - _MOST_BYTES, whole.parts - _MOST_PARTS
        if over_bytes <= 0 and over_parts <= 0:
            return values, taken
        # the smallest that suffices alone comes first, then the others from the largest down
        enough = {one.field for one in sized if one.bytes >= over_bytes and one.parts >= over_parts}
        sized.sort(key=lambda one: (0, one.bytes) if one.field in enough else (1, -one.bytes))
        for one in sized:
            value: Any = values
            for key in one.field:
                value = value[key]
            data = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")
            spilled = SpilledValue(sidecar_path(path, sha256(data)), value, data)
            name = spilled.path.rpartition("/")[2]
            reference = {KEY: {"file": name, "sha256": sha256(data), "bytes": len(data)}}
            reduced = _replaced(values, one.field, reference)
            if fits(reduced):
                values = reduced
                taken.append(spilled)
                break
        else:
            largest = max(sized, key=lambda one: (one.bytes, one.parts), default=whole)
            raise errors.ItemTooLarge(
                f"about {whole.bytes} bytes in {whole.parts} parts are too much for one document",
                field=dotted(largest.field) or None,
                hint="split it over several documents, or keep it in a field that may hold anything",
            )


def _measure(value: Any, field: FieldPath, found: list[_SizedValue]) -> _SizedValue:
    """About how many bytes and parts a value takes in a document; what is worth taking out is added to ``found``."""
    if isinstance(value, Mapping):
        inner = [_measure(part, (*field, key), found) for key, part in value.items()]
        size = sum(len(key) + 6 + 2 * len(field) for key in value)
    elif isinstance(value, list):
        inner = [_measure(part, (*field, at), found) for at, part in enumerate(value)]
        size = len(value) * (4 + 2 * len(field))
    else:
        inner = []
        size = len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    sized = _SizedValue(field, size + sum(one.bytes for one in inner), 2 + sum(one.parts for one in inner) + len(inner))
    if field and KEY not in field and (sized.bytes >= _WORTH_BYTES or sized.parts >= _WORTH_PARTS):
        found.append(sized)
    return sized


def _replaced(value: Any, field: FieldPath, new: Any) -> Any:
    if not field:
        return new
    head, rest = field[0], field[1:]
    if isinstance(value, list):
        return [_replaced(part, rest, new) if at == head else part for at, part in enumerate(value)]
    return {key: _replaced(part, rest, new) if key == head else part for key, part in value.items()}


# -- writing ------------------------------------------------------------------------------------------------------
def keep(parts: Parts, spilled: SpilledValue, critical: bool) -> None:
    """Write a sidecar: on return it is durable, and what it holds was read back.

    Raises:
        SecretDetected: it holds what looks like a secret.
        ItemTooLarge, QuotaExceeded, StorageIO: nothing refers to what may have been written.
    """
    if len(spilled.data) > SIDECAR_LIMIT:
        raise errors.ItemTooLarge(
            f"{len(spilled.data)} bytes, limit {SIDECAR_LIMIT}", path=spilled.path, hint="split it"
        )
    if found := found_in_value(spilled.value):
        raise secret_error(found[0], document_of_sidecar(spilled.path))
    with suppress(FileNotFoundError, errors.ContentError):
        _read(reader_of(parts), spilled.path, sha256(spilled.data), len(spilled.data))
        io.touch(parts.tree.root / spilled.path)  # a young one is not removed before its document is written
        return
    compressed = compress(spilled.data, _LEVEL)
    parts.quota_guard.prepare()
    try:
        _write(parts, spilled, compressed, critical)
    except errors.QuotaExceeded as refused:
        parts.quota_guard.make_room(refused)
        _write(parts, spilled, compressed, critical)
    parts.quota_guard.settle()


def _write(parts: Parts, spilled: SpilledValue, compressed: bytes, critical: bool) -> None:
    plans = [FilePlan(path=spilled.path, before=None, after=compressed, item=None)]
    with parts.lock.hold("write a sidecar"):
        parts.quota_guard.check_room(plans, critical)
        parts.tree.write(spilled.path, compressed)
        _read(reader_of(parts), spilled.path, sha256(spilled.data), len(spilled.data))
        parts.quota_guard.wrote(plans)


# -- reading ------------------------------------------------------------------------------------------------------
def references(value: Any, field: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """Every reference in a document, with its field."""
    if isinstance(value, Mapping):
        if KEY in value:
            yield field, value[KEY]
            return
        for key, part in value.items():
            yield from references(part, (*field, key))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from references(part, (*field, at))


def reader_of(parts: Parts) -> Read:
    """Reads sidecars that are in the tree."""
    return lambda path: parts.tree.read(path, SIDECAR_LIMIT).data


def fill(values: Any, path: str, read: Read) -> Any:
    """A document, or a value of it, with every reference replaced by the value it names.

    Raises:
        ContentError: naming the field: a reference that memfs did not write, a sidecar that is not here.
        CorruptItem: a sidecar is damaged.
    """
    for field, reference in list(references(values)):
        values = _replaced(values, field, _value(reference, path, field, read))
    return values


def named_in(data: bytes, path: str) -> list[str]:
    """The paths of the sidecars that a document's bytes refer to; none where it cannot be read."""
    if not holds_reference(data):
        return []
    try:
        return named_by(json_text.load(data.decode("utf-8"), parts=None), path)
    except (errors.MemfsError, UnicodeDecodeError):
        return []


def named_by(values: Any, path: str) -> list[str]:
    """The paths of the sidecars that a document, or a value of it, refers to.

    Raises:
        ContentError: memfs did not write one of the references.
    """
    return [_checked(reference, path)[0] for _, reference in references(values)]


def verify(parts: Parts, data: bytes, path: str) -> Iterator[errors.ContentError]:
    """Read every sidecar that a document's bytes refer to, and say what is wrong with it."""
    if not holds_reference(data):
        return
    for field, reference in references(json_text.load(data.decode("utf-8"), parts=None)):
        try:
            _value(reference, path, field, reader_of(parts))
        except errors.ContentError as error:
            yield error


def _checked(reference: Any, path: str) -> tuple[str, str, int]:
    """The path, digest and size a reference names, if memfs wrote it for this document."""
    if isinstance(reference, Mapping):
        digest, size, name = reference.get("sha256"), reference.get("bytes"), reference.get("file")
        if isinstance(digest, str) and len(digest) == _DIGEST and type(size) is int and 0 <= size <= SIDECAR_LIMIT:
            beside = sidecar_path(path, digest)
            if document_of_sidecar(beside) == path and name == beside.rpartition("/")[2]:
                return beside, digest, size
    raise errors.ContentError("not a reference that memfs wrote", path=path, hint=f"the key {KEY!r} is memfs's own")


def _value(reference: Any, path: str, field: FieldPath, read: Read) -> Any:
    try:
        beside, digest, size = _checked(reference, path)
        return json_text.load(_read(read, beside, digest, size).decode("utf-8"), parts=None)
    except FileNotFoundError:
        raise errors.ContentError(
            f"the value is stored in {beside}, which is missing",
            path=path,
            field=dotted(field),
            hint="such files are not in git: copy it from where it was written, or from a backup or checkpoint",
        ) from None
    except errors.ContentError as error:
        error.path, error.field = path, dotted(field)
        raise


def _read(read: Read, path: str, digest: str, size: int) -> bytes:
    compressed = read(path)
    try:
        data = decompress(compressed, size, path)
        if sha256(data) == digest:
            return data
        reason = f"expected {digest}"
    except errors.CorruptRecord as error:
        reason = error.message
    hint = "copy the file from where it was written, or from a backup or checkpoint"
    raise errors.CorruptItem(f"the file {path} is damaged: {reason}", path=path, hint=hint)
