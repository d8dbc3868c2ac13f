"""Says by its path what form a memory file has: its merge rules, its schema, and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memfs.errors import ContentError, IdInvalid, ItemTooLarge
from memfs.format import item_fields
from memfs.format.codec import DOCUMENT_LIMIT, PRUNED, SUFFIXES, schema_of
from memfs.format.plain import DOCUMENT_PARTS, MAX_PARTS, FieldPath
from memfs.format.render import EncodedFile, ParsedFile, parse, render
from memfs.fs.workspace_location import MEMORY_FOLDER
from memfs.model.kinds import ITEM_LIMIT, Kind

if TYPE_CHECKING:
    from memfs.format.codec import Codec
    from memfs.format.schema_errors import SchemaError
    from memfs.format.splice import Order

CONFLICTS = "conflicts"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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

    @property
    def order(self) -> Order:
        """Where keys belong that a file does not have yet."""
        return item_fields.ORDER if self.kind else {}

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
        return render(mapping, self.path, before, self.order, self._parts)

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
    kind = _kind_of(path, codec)
    if kind is not None and path.endswith(SUFFIXES):
        return _item(path, kind, codec)
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


def _item(path: str, kind: Kind, codec: Codec) -> Form:
    home = path if kind is codec.kinds.at(path.removeprefix(f"{MEMORY_FOLDER}/")) else _home(path, kind)
    return Form(
        path=path,
        rules=codec.schemas.item_rules(kind),
        records=True,
        kind=kind.name,
        check=lambda mapping: codec.schemas.check_item(mapping, kind),
        prove=lambda data: codec.read(data, home, _EPOCH, checked=True),
    )


def _kind_of(path: str, codec: Codec) -> Kind | None:
    """The kind of an item at a path; what was pruned lies below the name of its kind."""
    if path.startswith(f"{PRUNED}/"):
        name = path[len(PRUNED) + 1 :].partition("/")[0]
        return codec.kinds.get(name) if name in codec.kinds else None
    return codec.kinds.at(path.removeprefix(f"{MEMORY_FOLDER}/")) if path.startswith(f"{MEMORY_FOLDER}/") else None


def _home(path: str, kind: Kind) -> str:
    return f"{MEMORY_FOLDER}/{kind.folder}/{path.rpartition('/')[2]}"
