"""Turns a mapping into the bytes of its file, and parses a file into a mapping.

Changes single fields of an existing file where that is safe, and else writes it whole. Bytes are returned only after
they were read back as the same mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memfs.dataclass import NamedTuple
from memfs.errors import ContentError, ItemSyntaxError
from memfs.format import json_text
from memfs.format.plain import MAX_PARTS, FieldPath, Node, NodePlace, dotted, hidden, hidden_error, place, same
from memfs.format.text import Text, decode, findings, position

if TYPE_CHECKING:
    from memfs.format.splice import Order


class EncodedFile(NamedTuple):
    """A file's new bytes; ``rewritten`` says that an existing file lost its comments and layout."""

    data: bytes
    rewritten: bool


class ParsedFile(NamedTuple):
    """A file that could be read as a mapping."""

    text: Text
    mapping: dict[str, Any]
    is_json: bool

    def place(self, path: FieldPath, of_key: bool = False) -> NodePlace:
        """Where a field is."""
        from memfs.format import yaml_text

        root: Node = (json_text if self.is_json else yaml_text).tree(self.text.text)
        return place(root, self.text.text, path, of_key)


def parse(data: bytes, path: str, allow_invisible: bool = False, parts: int = MAX_PARTS) -> ParsedFile:
    """Read a file's bytes as a mapping: YAML, or JSON by the path's suffix.

    Args:
        parts: how many keys, values and ends of collections JSON may have.

    Raises:
        ContentError: with line, column and remedy.
    """
    text = decode(data)
    is_json = path.endswith(".json")
    if not allow_invisible:
        _refuse_hidden_text(text.text)
    if is_json:
        mapping = json_text.load(text.text, parts)
    else:
        from memfs.format import yaml_text  # a command that finds all in the catalog reads no YAML

        mapping = yaml_text.load(text.text)
    if not isinstance(mapping, dict):
        what = "a list" if isinstance(mapping, list) else "a single value"
        raise ItemSyntaxError(f"the file holds {what}, not keys and values", line=1, hint="write 'key: value' lines")
    parsed = ParsedFile(text, mapping, is_json)
    if "\\" in text.text:
        _refuse_escaped(parsed, allow_invisible)
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
    from memfs.format import yaml_text
    from memfs.format.splice import Unspliceable, splice, with_last_newline  # what only reads is spared it

    text = parsed.text.text
    try:
        root = yaml_text.tree(text)
        if not text.endswith("\n"):
            text = with_last_newline(text, root)
            root = yaml_text.tree(text)
        data = parsed.text.encode(splice(text, root, parsed.mapping, mapping, order))
        return data if same(yaml_text.load(decode(data).text), mapping) else None
    except (Unspliceable, ContentError):
        return None


def _heading(text: str) -> str:
    """The comment lines a file begins with; they survive a rewrite."""
    lines = text.splitlines()
    count = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "".join(f"{line}\n" for line in lines[:count])


def _refuse_hidden_text(text: str) -> None:
    if text.isascii():
        return
    for finding in findings(text):
        if finding.refused:
            line, column = position(text, finding.offset)
            raise hidden_error(finding, line=line, column=column)


def _refuse_escaped(parsed: ParsedFile, allow_invisible: bool) -> None:
    """What is in the text as an escape is hidden just as well."""
    for path, finding in hidden(parsed.mapping, allow_invisible):
        spot = parsed.place(path)
        raise hidden_error(finding, line=spot.line, column=spot.column, field=dotted(path))
