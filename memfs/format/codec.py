"""Reads items and documents from bytes and writes them back, and lists the warnings for a valid file.

Reading decodes, guards, parses and checks against the schema; writing reads its result again and compares, so that
nothing is written that would not be read as the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from itertools import islice

from memfs import __version__
from memfs.config_names import KINDS, MEMORY_CONTEXT, MEMORY_CONTEXTS, RETENTION_POLICY, SYSTEM_CONFIG
from memfs.dataclass import NamedTuple
from memfs.errors import (
    ContentError,
    IdInvalid,
    ItemSyntaxError,
    ItemTooLarge,
    MemfsError,
    Problem,
    SchemaInvalid,
)
from memfs.format import item_fields
from memfs.format.plain import (
    DOCUMENT_PARTS,
    MAX_PARTS,
    FieldPath,
    dotted,
    hidden,
    hidden_error,
    plain,
    refuse_hidden,
    same,
)
from memfs.format.text import Text, decode, findings, position
from memfs.fs.workspace_location import MEMORY_FOLDER
from memfs.model.ids import check_id
from memfs.model.item import MemoryItem
from memfs.model.kinds import ITEM_LIMIT, Kind, KindTable, nearest
from memfs.model.state_paths import document_kind
from memfs.model.time import EPOCH
from memfs.startup import TYPE_CHECKING, Any, json, sha256

if TYPE_CHECKING:
    from memfs.format.schema import SchemaError, Schemas
    from memfs.format.splice import Order
    from memfs.format.yaml_text import NodePlace


class EncodedFile(NamedTuple):
    """A file's new bytes; ``rewritten`` says that an existing file lost its comments and layout, ``mapping`` what an
    item's file says.
    """

    data: bytes
    rewritten: bool
    mapping: Mapping[str, Any] | None = None


class ParsedFile(NamedTuple):
    """A file that could be read as a mapping."""

    data: bytes
    text: Text
    mapping: dict[str, Any]
    is_json: bool

    def place(self, path: FieldPath, of_key: bool = False) -> NodePlace:
        """Where a field is."""
        from memfs.format import json_text, yaml_text

        root = (json_text if self.is_json else yaml_text).tree(self.text.text)
        return yaml_text.place(root, self.text.text, path, of_key)


def parse(data: bytes, path: str, allow_invisible: bool = False, parts: int = MAX_PARTS) -> ParsedFile:
    """Read a file's bytes as a mapping: YAML, or JSON by the path's suffix.

    Args:
        parts: how many keys, values and ends of collections JSON may have.

    Raises:
        ContentError: with line, column and remedy.
    """
    text = decode(data)
    is_json = path.endswith(".json")
    for finding in findings(text.text) if not allow_invisible and not text.text.isascii() else ():
        if finding.refused:
            line, column = position(text.text, finding.offset)
            raise hidden_error(finding, line=line, column=column)
    if is_json:
        from memfs.format import json_text  # a command that finds all in the catalog reads neither

        mapping = json_text.load(text.text, parts)
    else:
        from memfs.format import yaml_text

        mapping = yaml_text.load(text.text)
    if not isinstance(mapping, dict):
        what = "a list" if isinstance(mapping, list) else "a single value"
        raise ItemSyntaxError(f"the file holds {what}, not keys and values", line=1, hint="write 'key: value' lines")
    parsed = ParsedFile(data, text, mapping, is_json)
    if "\\" in text.text:  # what is in the text as an escape is hidden just as well
        for field, finding in hidden(mapping, allow_invisible):
            spot = parsed.place(field)
            raise hidden_error(finding, line=spot.line, column=spot.column, field=dotted(field))
    return parsed


def render(
    mapping: Mapping[str, Any], path: str, parsed: ParsedFile | None, order: Order, parts: int = MAX_PARTS
) -> EncodedFile:
    """The bytes of a mapping.

    Args:
        parsed: the file that is there; only what differs from it changes.
        order: where keys belong in a file that has none yet.
        parts: as for ``parse``.

    Raises:
        ItemSyntaxError: the text could not be read back as the mapping.
    """
    if parsed is not None and same(parsed.mapping, mapping):
        return EncodedFile(parsed.text.encode(parsed.text.text), rewritten=False)
    ordered = {key: mapping[key] for key in (*order, *mapping) if key in mapping}
    if path.endswith(".json"):
        from memfs.format import json_text

        indent = json_text.indentation(parsed.text.text) if parsed else 2
        text = json_text.document(mapping if parsed else ordered, indent)
        return EncodedFile(_proved(text, mapping, path, parsed, parts), rewritten=False)
    if parsed is not None:
        spliced = _spliced(parsed, mapping, order)
        if spliced is not None:
            return EncodedFile(spliced, rewritten=False)
    from memfs.format import yaml_text

    text = (_heading(parsed.text.text) if parsed else "") + yaml_text.document(ordered)
    return EncodedFile(_proved(text, mapping, path, parsed), rewritten=parsed is not None)


def _proved(
    text: str, mapping: Mapping[str, Any], path: str, parsed: ParsedFile | None, parts: int = MAX_PARTS
) -> bytes:
    """The text as bytes, in the encoding and line ending of the file it replaces, once it reads back as the mapping."""
    frame = parsed.text if parsed else Text("")
    data = frame.encode(text.replace("\n", "\r\n") if frame.crlf else text)
    if not same(parse(data, path, allow_invisible=True, parts=parts).mapping, mapping):
        raise ItemSyntaxError("the text could not be read back as it was", hint="remove unusual characters")
    return data


def _spliced(parsed: ParsedFile, mapping: Mapping[str, Any], order: Order) -> bytes | None:
    """The old text with single fields changed, or None where that cannot be done or proved."""
    from memfs.format import splice, yaml_text  # what only reads is spared both

    text = parsed.text.text
    try:
        made = splice.replace_lines(text, parsed.mapping, mapping, order)
        if made is None:
            root = yaml_text.tree(text)
            if not text.endswith("\n"):
                text = splice.with_last_newline(text, root)
                root = yaml_text.tree(text)
            made = splice.splice(text, root, parsed.mapping, mapping, order)
        data = parsed.text.encode(made)
        return data if same(yaml_text.load(decode(data).text), mapping) else None
    except (splice.Unspliceable, ContentError):
        return None


def _heading(text: str) -> str:
    """The comment lines a file begins with; they survive a rewrite."""
    lines = text.splitlines()
    count = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "".join(f"{line}\n" for line in lines[:count])


def remarks(text: Text, path: str) -> Iterator[Problem]:
    """The warnings for a file that was read without error."""
    if text.bom:
        message = "the file begins with a byte order mark"
        yield Problem.warning(path, "ByteOrderMark", message, "save without it", line=1)
    if text.crlf:
        line = text.text.count("\n", 0, text.text.index("\r\n")) + 1
        yield Problem.warning(path, "CarriageReturn", "lines end in CR LF", "save with Unix line endings", line=line)
    for finding in islice(findings(text.text), 20):
        line, column = position(text.text, finding.offset)
        message = f"unseen character {finding.codes} at column {column}"
        yield Problem.warning(path, "InvisibleCharacter", message, "remove it unless it is meant", line=line)


SUFFIXES = (".yaml", ".yml", ".json")
DOCUMENT_LIMIT = 16 * ITEM_LIMIT


class Codec:
    """Reads and writes the files of one workspace; safe to share between threads.

    Args:
        schemas: what the mappings are checked against; None for the bundled ones alone.
        kinds: which folder holds which kind.
        allow_invisible: accept characters that hide text from a reader (``security.allow_invisible``).
    """

    def __init__(self, schemas: Schemas | None, kinds: KindTable, allow_invisible: bool = False) -> None:
        self._given, self.kinds, self._allow_invisible = schemas, kinds, allow_invisible
        self._last: tuple[bytes, str, ParsedFile] | None = None
        self._written: tuple[bytes, str, Mapping[str, Any]] = b"", "", {}

    @cached_property
    def schemas(self) -> Schemas:
        """What mappings are checked against."""
        from memfs.format.schema import Schemas  # a command that finds all in the catalog checks nothing

        return self._given or Schemas()

    # -- items ----------------------------------------------------------------------------------------------------
    def read(self, data: bytes, path: str, fallback: datetime, *, checked: bool = False) -> MemoryItem:
        """The item in a file.

        Args:
            data: the file's bytes.
            path: its path below the workspace.
            fallback: when it happened if the file says neither ``timestamp`` nor ``created``: the file's time.
            checked: these very bytes obeyed the schema before; spare the check.

        Raises:
            ContentError: naming path, line, column, field, what is wrong and what would be right.
            IdInvalid: the file's name cannot be an id.
        """
        return self.decoded(data, path, fallback, checked=checked)[0]

    def decoded(
        self, data: bytes, path: str, fallback: datetime, *, checked: bool = False
    ) -> tuple[MemoryItem, dict[str, Any]]:
        """As ``read``, with the mapping that the bytes hold."""
        kind, name = self.kind_at(path), _id_of(path)
        try:
            parsed = self._parse(data, path)
            if not checked:
                self._refuse(self.schemas.check_item(parsed.mapping, kind), path, parsed)
            digest = sha256(data).hexdigest()
            return self._build(parsed, kind, fallback, id=name, path=path, sha256=digest), parsed.mapping
        except MemfsError as error:
            _concealed(error.located(path), data)
            raise

    def item_of(self, mapping: dict[str, Any], path: str, fallback: datetime) -> MemoryItem:
        """As ``read``, of the JSON file that would hold a mapping; without path and digest."""
        kind, name = self.kind_at(path), _id_of(path)
        sound = _is_shallow(mapping) and next(hidden(mapping, self._allow_invisible), None) is None
        if sound and mapping.get("type", kind.name) == kind.name and not self.schemas.check_item(mapping, kind):
            with suppress(SchemaInvalid):  # as a file it would be refused in better words
                return item_fields.to_item(mapping, kind.name, fallback, id=name)
        data = json.dumps(mapping, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return self.read(data, path, fallback).replace(path="", sha256="")

    def allows(self, mapping: dict[str, Any], path: str, *, checked: bool = False) -> bool:
        """Whether a file may hold this: its name can be an id, and the schema of its kind allows it.

        Args:
            checked: by these ``rules`` the schema allowed it before; spare the check.

        Raises:
            IdInvalid, SchemaInvalid: its name cannot be that of an item's file.
        """
        return bool(_id_of(path)) and (checked or not self.schemas.check_item(mapping, self.kind_at(path)))

    @property
    def rules(self) -> str:
        """Names what decides, beside bytes and the name of the kind, what a file says, and whether it may say so."""
        own = json.dumps(
            [self._given.own if self._given else {}, {kind.name: kind.body for kind in self.kinds}], sort_keys=True
        )
        return f"{__version__} {self._allow_invisible} {own}"

    def errors(self, data: bytes, path: str) -> list[MemfsError]:
        """Everything that is wrong with an item's file, by line; nothing when ``read`` would accept it."""
        try:
            kind = self.kind_at(path)
            parsed = self._parse(data, path)
            found = self.schemas.check_item(parsed.mapping, kind)
            if not found:
                self.read(data, path, EPOCH)
        except MemfsError as error:
            return [_concealed(error.located(path), data)]
        return [_concealed(error, data) for error in self._all_located(parsed, path, found)]

    def write(self, item: MemoryItem, path: str, before: bytes | None = None, validate: bool = True) -> EncodedFile:
        """The bytes of an item's file.

        A fresh file is canonical. Of an existing one only the fields change in which the items differ; comments, key
        order, blank lines, line endings and the quoting of other fields stay.

        Args:
            before: the file's present, valid bytes; None for a fresh file.
            validate: check the result against the schema; without it the caller vouches for the item.

        Raises:
            ContentError: the item, or the file before, is not valid; nothing could be read back as the same item.
            IdInvalid: the path's name cannot be an id, or is not the item's.
        """
        kind, name = self.kind_at(path), _id_of(path)
        if item.id not in ("", name):
            raise IdInvalid(f"the item {item.id!r} cannot be written to {path!r}", hint="the file's name is the id")
        if item.memory_type != kind.name:
            hint = f"this is the folder of {kind.name!r}; write the item below the folder of its own type"
            raise SchemaInvalid(
                f"an item of type {item.memory_type!r} does not belong here", path=path, field="type", hint=hint
            )
        try:
            return self._encode(item, path, kind, before, validate)
        except MemfsError as error:
            error.located(path)
            raise

    # -- documents ------------------------------------------------------------------------------------------------
    def read_document(self, data: bytes, path: str, schema: str) -> dict[str, Any]:
        """The mapping in a configuration or state document: YAML or JSON by its suffix.

        Raises:
            ContentError: as ``read``.
        """
        try:
            parsed = self._parse_document(data, path)
            self._refuse(self.schemas.check_document(parsed.mapping, schema), path, parsed)
        except MemfsError as error:
            _concealed(error.located(path), data)
            raise
        return parsed.mapping

    def write_document(self, document: Mapping[str, Any], path: str, schema: str, before: bytes | None = None) -> bytes:
        """A document's bytes; of an existing one only what differs changes, as in ``write``.

        Raises:
            ContentError: the document, or the file before, is not valid.
        """
        try:
            mapping = plain(document)
            refuse_hidden(mapping, self._allow_invisible)
            self._refuse(self.schemas.check_document(mapping, schema))
            parsed = None if before is None else self._parse_document(before, path)
            return _limited(render(mapping, path, parsed, {}, DOCUMENT_PARTS).data, DOCUMENT_LIMIT)
        except MemfsError as error:
            error.located(path)
            raise

    def accepts(self, data: bytes, path: str) -> bool:
        """Whether the bytes of an item or document, by its path, are valid."""
        schema = schema_of(path)
        try:
            self.read_document(data, path, schema) if schema else self.read(data, path, EPOCH)
        except MemfsError:
            return False
        return True

    # -- reading --------------------------------------------------------------------------------------------------
    def kind_at(self, path: str) -> Kind:
        """The kind of the items in a file's folder.

        Raises:
            SchemaInvalid: the folder belongs to none.
        """
        kind = self.kinds.at(path.removeprefix(f"{MEMORY_FOLDER}/"))
        if kind is None:
            raise SchemaInvalid(
                "this folder belongs to no memory type",
                path=path,
                hint="move the file below 'ContextMemory/memories/<type>/' or 'ContextMemory/conventions/'",
            )
        return kind

    def _parse(self, data: bytes, path: str) -> ParsedFile:
        last = self._last  # a writer reads what it replaces, and replaces it then
        if last is None or last[0] is not data or last[1] != path:
            written, place, mapping = self._written
            if place == path and written == data:  # it was proved to hold just this
                parsed = ParsedFile(data, decode(data), dict(mapping), path.endswith(".json"))
            else:
                parsed = parse(_limited(data, ITEM_LIMIT), path, self._allow_invisible)
            last = self._last = data, path, parsed
        return last[2]

    def _parse_document(self, data: bytes, path: str) -> ParsedFile:
        return parse(_limited(data, DOCUMENT_LIMIT), path, self._allow_invisible, DOCUMENT_PARTS)

    def _refuse(self, found: list[SchemaError], path: str = "", parsed: ParsedFile | None = None) -> None:
        """Raise the first of what is wrong, which names the others; with its place in the file that was read."""
        if not found:
            return
        if parsed is not None:
            errors = self._all_located(parsed, path, found)
        else:
            errors = [
                SchemaInvalid(one.message, field=dotted(one.path) or None, hint=one.hint or None) for one in found
            ]
        errors[0].also = tuple(errors[1:])
        raise errors[0]

    def _all_located(self, parsed: ParsedFile, path: str, found: list[SchemaError]) -> list[SchemaInvalid]:
        errors = [self._located(parsed, path, error) for error in found]
        return sorted(errors, key=lambda error: (error.line or 0, error.column or 0))

    def _located(self, parsed: ParsedFile, path: str, error: SchemaError) -> SchemaInvalid:
        spot = parsed.place(error.path, error.of_key)
        message, hint = error.message, error.hint
        if error.unquoted and spot.typed:
            message = f"{spot.typed} looks like {error.unquoted}, but text is wanted"
            hint = f'quote it: "{spot.typed}"'
        return SchemaInvalid(
            message, path=path, line=spot.line, column=spot.column, field=dotted(error.path) or None, hint=hint or None
        )

    def _build(self, parsed: ParsedFile, kind: Kind, fallback: datetime, **where: str) -> MemoryItem:
        named = parsed.mapping.get("type", kind.name)
        try:
            if named == kind.name:
                return item_fields.to_item(parsed.mapping, kind.name, fallback, **where)
            names = [one.name for one in self.kinds]
            what, near = ("type", "") if named in names else ("unknown type", nearest(named, names))
            hint = near or f"write 'type: {kind.name}', remove the line, or move the file"
            fault = SchemaInvalid(f"{what} {named!r} in the folder of {kind.name!r}", field="type", hint=hint)
        except SchemaInvalid as error:
            fault = error
        from memfs.format.schema import SchemaError  # only wanted once something is wrong

        wrong = SchemaError(path=(fault.field or "content",), message=fault.message, hint=fault.hint or "")
        raise self._located(parsed, where["path"], wrong) from fault

    # -- writing --------------------------------------------------------------------------------------------------
    def _encode(self, item: MemoryItem, path: str, kind: Kind, before: bytes | None, validate: bool) -> EncodedFile:
        parsed = None
        # as a file gives it back: without a time of its own it happened when it was created
        timed = item.timestamp is not None or item.created is None
        settled = item if timed else item.replace(timestamp=item.created)
        if before is None:
            mapping = item_fields.fresh(item)
        else:
            parsed = self._parse(before, path)
            # without times of its own the file's time counted, and the item has it from there
            there = self._build(parsed, kind, item.timestamp or EPOCH, path=path)
            if not {"timestamp", "created"} & parsed.mapping.keys():
                there = there.replace(timestamp=None)
            mapping = item_fields.changed(parsed.mapping, there, settled)
        refuse_hidden(mapping, self._allow_invisible)
        if validate:
            self._refuse(self.schemas.check_item(mapping, kind))
        encoded = render(mapping, path, parsed, item_fields.ORDER)
        _limited(encoded.data, ITEM_LIMIT)
        # the mapping, which the bytes were proved to hold, gives the same item
        where = {"id": item.id, "path": item.path, "sha256": item.sha256}
        back = item_fields.to_item(mapping, kind.name, settled.timestamp or EPOCH, **where)
        if settled.timestamp is None:
            back = back.replace(timestamp=None)
        got = {} if back == settled else item_fields.values(back)
        for name, value in item_fields.values(settled).items() if got else ():
            if not same(value, got[name]) and value != got[name]:
                raise SchemaInvalid("this value could not be read back as the same", field=name, hint="simplify it")
        self._written = encoded.data, path, mapping
        return encoded._replace(mapping=mapping)


def _is_shallow(mapping: Mapping[str, Any]) -> bool:
    """Whether nothing in it is nested more than twice, so that no file is too deep for it."""
    parts = (
        part.values() if part.__class__ is dict else part for part in mapping.values() if part.__class__ in _COLLECTIONS
    )
    return not any(inner.__class__ in _COLLECTIONS for part in parts for inner in part)


_COLLECTIONS = frozenset({dict, list})


def _concealed(error: MemfsError, data: bytes) -> MemfsError:
    """The error without what of the file is secret."""
    from memfs.format.secrets import conceal

    for part in error.also:
        conceal(part, data)
    return conceal(error, data)


# -- names --------------------------------------------------------------------------------------------------------
def _id_of(path: str) -> str:
    name = path.rpartition("/")[2]
    suffix = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), None)
    if suffix is None:
        raise SchemaInvalid("not the name of an item's file", path=path, hint="end it with .yaml, .yml or .json")
    try:
        return check_id(name.removesuffix(suffix))
    except IdInvalid as error:
        error.located(path)
        raise


def _limited(data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise ItemTooLarge(f"{len(data)} bytes, limit {limit}", hint="split it into several")
    return data


CONTEXTS = f"{MEMORY_FOLDER}/context"
PRUNED = f"{MEMORY_FOLDER}/archive/pruned"
SCHEMAS = {
    SYSTEM_CONFIG: "system_config",
    RETENTION_POLICY: "retention_policy",
    MEMORY_CONTEXT: "memory_context",
    KINDS: "kinds",
}
_STATE_SCHEMAS = {"feedback": "feedback_given", "checkpoint": "checkpoint_manifest", "hypothesis_version": "hypothesis"}


def schema_of(path: str) -> str:
    """The name of the schema a document obeys, "" where it has none."""
    if path in SCHEMAS:
        return SCHEMAS[path]
    if kind := document_kind(path):
        return _STATE_SCHEMAS.get(kind, kind)
    if path.startswith(f"{CONTEXTS}/") and path.endswith(SUFFIXES):
        return "context"
    return "memory_context" if path.startswith(f"{MEMORY_CONTEXTS}/") and path.endswith(SUFFIXES) else ""
