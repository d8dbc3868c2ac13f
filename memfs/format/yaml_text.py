"""Reads the YAML that memfs allows, and writes it as a person likes to read it; the only module that imports ``yaml``.

Loads the YAML 1.2 core schema event by event on libyaml's parser, without aliases, tags, duplicate keys, second
documents, deep nesting or too many values. PyYAML's own load and compose are never called: its C composer recurses and
ends the process on deep input, and its resolver reads YAML 1.1.

``yes no on off y n`` are text; so are dates, ``1:30``, digits with a leading zero (``010``) and ``1234e56`` (more often
the id of a commit than a number). Integers beyond 64 bits, infinity and NaN are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import ReaderError

from memfs.dataclass import NamedTuple, dataclass, field
from memfs.errors import (
    AliasForbidden,
    ContentError,
    DuplicateKey,
    ItemSyntaxError,
    ItemTooDeep,
    ItemTooLarge,
    TagForbidden,
)
from memfs.format.plain import MAX_DEPTH, MAX_KEY, MAX_PARTS, FieldPath, finite_number, whole_number
from memfs.startup import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from typing import NoReturn

# CParser alone, without constructor and resolver, which are not used; SafeLoader where PyYAML came without libyaml
_PARSER: Any = getattr(yaml.cyaml, "CParser", yaml.SafeLoader) if yaml.__with_libyaml__ else yaml.SafeLoader

_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_LONGEST_TAG = 60  # characters of a tag that an error quotes
_NUMBER_STARTS = frozenset("-+.0123456789")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_OTHER_BASE = re.compile(r"0(?:o[0-7]+|x[0-9a-fA-F]+)")
_FRACTION = re.compile(r"[-+]?(?:0|[1-9][0-9]*)?\.(?:[0-9]+(?:[eE][-+]?[0-9]+)?|(?<=[0-9]\.)(?:[eE][-+]?[0-9]+)?)")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_STYLES: dict[str | None, Style] = {"|": "block", ">": "block", "'": "quoted", '"': "quoted"}


# -- positions ----------------------------------------------------------------------------------------------------
Shape = Literal["scalar", "map", "seq"]
Style = Literal["plain", "quoted", "block", "flow"]


@dataclass(slots=True)
class Node:
    """One value: its range in the text, its style, its parts, and the line of each key."""

    kind: Shape
    start: int
    end: int
    line: int
    column: int
    style: Style
    value: Any = None
    entries: list[KeyNode] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)

    def entry(self, key: str) -> KeyNode | None:
        """The entry of a mapping with that key."""
        return next((entry for entry in self.entries if entry.key == key), None)


@dataclass(slots=True)
class KeyNode:
    """A key of a mapping, its range and place, and its value."""

    key: str
    start: int
    end: int
    line: int
    column: int
    value: Node


class NodePlace(NamedTuple):
    """Where a field is, 1-based, and how its value was typed ("" for a collection)."""

    line: int
    column: int
    typed: str = ""


def place(root: Node, text: str, path: FieldPath, of_key: bool = False) -> NodePlace:
    """Where the field at ``path`` is: its key, or its value; the nearest enclosing place where it is absent."""
    node, found = root, NodePlace(root.line, root.column + 1)
    for depth, part in enumerate(path):
        if node.kind == "map":
            entry = node.entry(str(part))
            if entry is None:
                return found
            node = entry.value
            if (of_key and depth == len(path) - 1) or node.start == node.end:
                found = NodePlace(entry.line, entry.column + 1)
                continue
        elif node.kind == "seq" and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
        else:
            return found
        typed = text[node.start : node.end] if node.kind == "scalar" else ""
        found = NodePlace(node.line, node.column + 1, typed)
    return found


# -- reading ------------------------------------------------------------------------------------------------------
def load(text: str, parts: int = MAX_PARTS) -> Any:
    """The value of a YAML text, made of dict, list, str, int, float, bool and None.

    Args:
        parts: how many keys, values and ends of collections there may be.

    Raises:
        ItemSyntaxError, ItemTooDeep, AliasForbidden, TagForbidden, DuplicateKey: with line, column and remedy.
    """
    try:
        return _guarded(text, partial(_load, most=parts))
    except _RepeatedKey:
        return tree(text, parts)  # raises, and knows both lines


def tree(text: str, parts: int = MAX_PARTS) -> Node:
    """The same as positions: each value's place in the text, for error messages and for changing single fields.

    Args:
        parts: how many keys, values and ends of collections there may be.

    Raises:
        the same errors as ``load``.
    """
    root: Node = _guarded(text, partial(_tree, most=parts))
    return root


def resolve(text: str) -> Any:
    """What an unquoted scalar means.

    Raises:
        ValueError: a number outside 64 bit, infinite or not a number.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    if _INTEGER.fullmatch(text):
        return whole_number(text)
    if _OTHER_BASE.fullmatch(text):
        return whole_number(text, partial(int, base=0))
    if _FRACTION.fullmatch(text):
        return finite_number(text)
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is not a finite number")
    return text


# -- the event loop -----------------------------------------------------------------------------------------------
def _guarded(text: str, build: Callable[[Callable[[], Any]], Any], parse: Any = _PARSER) -> Any:
    parser = parse(text)
    try:
        return build(parser.get_event)
    except yaml.MarkedYAMLError as error:
        if "nesting depth" in str(error.problem) and parse is not yaml.SafeLoader:
            return _guarded(text, build, yaml.SafeLoader)  # newer C parsers refuse before they say where
        raise _syntax_error(error, text) from error
    except ReaderError as error:
        raise ItemSyntaxError(f"character U+{error.character:04X} is not allowed", hint="remove it") from error
    finally:
        parser.dispose()


def _load(get: Callable[[], Any], most: int) -> Any:
    """One pass over the events with a stack of open collections, so that depth costs no recursion."""
    root = _first(get)
    if root.__class__ is ScalarEvent:
        value = _scalar(root)
        _last(get)
        return value
    _check(root)
    top: Any = {} if root.__class__ is MappingStartEvent else []
    stack: list[Any] = []
    current, key, event = top, None, root
    for _ in range(most):
        event = get()
        kind = event.__class__
        if kind is ScalarEvent:
            if current.__class__ is list:
                current.append(_scalar(event))
            elif key is None:
                key = _key(event, current)
            else:
                current[key] = _scalar(event)
                key = None
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            stack.append(current)
            _check(event)
            if len(stack) >= MAX_DEPTH:
                _too_deep(event)
            child: Any = {} if kind is MappingStartEvent else []
            if current.__class__ is list:
                current.append(child)
            elif key is None:
                _not_text(event)
            else:
                current[key] = child
            current, key = child, None
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            if not stack:
                break
            current, key = stack.pop(), None
        else:
            _refuse_alias(event)
    else:
        _too_many(event, most)
    _last(get)
    return top


def _tree(get: Callable[[], Any], most: int) -> Node:
    """As ``_load``, keeping every place."""
    root = _node(_first(get))
    stack: list[Node] = []
    current, key = root, None
    for _ in range(most if root.kind != "scalar" else 0):
        event = get()
        kind = event.__class__
        if kind is MappingEndEvent or kind is SequenceEndEvent:
            _close(current, event)
            if not stack:
                break
            current, key = stack.pop(), None
        elif current.kind == "map" and key is None:
            key = _entry_key(event, current)
        else:
            child = _node(event)
            if key is not None:
                at = key.start_mark
                entry = KeyNode(key.value, at.index, key.end_mark.index, at.line + 1, at.column, child)
                current.entries.append(entry)
            else:
                current.items.append(child)
            key = None
            if child.kind != "scalar":
                stack.append(current)
                current = child
                if len(stack) >= MAX_DEPTH:
                    _too_deep(event)
    else:
        if root.kind != "scalar":
            _too_many(event, most)
    _last(get)
    return root


def _entry_key(event: Any, mapping: Node) -> Any:
    if event.__class__ is not ScalarEvent:
        _not_text(event)
    line = _line(event)
    first = mapping.lines.setdefault(event.value, line)
    if len(mapping.lines) == len(mapping.entries):
        _refuse(DuplicateKey, event, f"key {event.value!r} at line {line}, first at line {first}", "keep one of them")
    _key(event, ())
    return event


def _node(event: Any) -> Node:
    start, end = event.start_mark, event.end_mark
    kind = event.__class__
    if kind is ScalarEvent:
        style = _STYLES.get(event.style, "plain")
        return Node("scalar", start.index, end.index, start.line + 1, start.column, style, value=_scalar(event))
    _check(event)
    shape: Shape = "map" if kind is MappingStartEvent else "seq"
    style = "flow" if event.flow_style else "block"
    return Node(shape, start.index, end.index, start.line + 1, start.column, style)


def _close(node: Node, event: Any) -> None:
    """A flow collection ends at its bracket, a block collection with its last part (the mark is behind comments)."""
    if node.style == "flow":
        node.end = event.end_mark.index
    else:
        parts = node.items or [entry.value for entry in node.entries]
        node.end = parts[-1].end if parts else node.start


def _first(get: Callable[[], Any]) -> Any:
    event = get()
    while event.__class__ is not DocumentStartEvent:
        if event.__class__ is StreamEndEvent:
            raise ItemSyntaxError("the file holds no data", line=1, hint="write 'key: value' lines")
        event = get()
    if event.tags:
        _refuse(TagForbidden, event, f"line {_line(event)}: %TAG is not allowed", "remove it")
    return get()


def _last(get: Callable[[], Any]) -> None:
    event = get()
    while event.__class__ is DocumentEndEvent:
        event = get()
    if event.__class__ is not StreamEndEvent:
        _refuse(ItemSyntaxError, event, "a second document begins", "one file holds one document; remove this '---'")


def _scalar(event: Any) -> Any:
    if event.anchor is not None or event.tag is not None:
        _check(event)
    if not event.implicit[0]:
        return event.value
    try:
        return resolve(event.value)
    except ValueError as error:
        _refuse(ItemSyntaxError, event, str(error), "put it in quotes if it is text")


def _key(event: Any, there: Any) -> str:
    if event.anchor is not None or event.tag is not None:
        _check(event)
    key: str = event.value
    if key in there:
        raise _RepeatedKey
    if not key or len(key) > MAX_KEY or (key == "<<" and event.implicit[0]):
        hint = "quote it if it is meant as a key" if key else "write 'key: value'"
        what = "merge keys are not allowed" if key == "<<" else f"a key has {len(key)} characters"
        _refuse(ItemSyntaxError, event, what, hint if len(key) <= MAX_KEY else f"use at most {MAX_KEY}")
    return key


class _RepeatedKey(Exception):
    """The quick pass met a key twice; the other pass says where."""


def _check(event: Any) -> None:
    if event.__class__ is AliasEvent or event.anchor is not None:
        _refuse_alias(event)
    if event.tag is not None:
        message = f"line {_line(event)}: the tag {event.tag[:_LONGEST_TAG]!r} is not allowed"
        _refuse(TagForbidden, event, message, "remove it")


# -- errors -------------------------------------------------------------------------------------------------------
def _refuse(kind: type[ContentError], event: Any, message: str, hint: str) -> NoReturn:
    mark = event.start_mark
    raise kind(message, line=mark.line + 1, column=mark.column + 1, hint=hint)


def _refuse_alias(event: Any) -> NoReturn:
    message = f"line {_line(event)}: anchors and aliases are not allowed"
    _refuse(AliasForbidden, event, message, "write the value out")


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _not_text(event: Any) -> NoReturn:
    if event.__class__ is AliasEvent:
        _refuse_alias(event)
    _refuse(ItemSyntaxError, event, "a key must be text", "write 'key: value'")


def _too_deep(event: Any) -> NoReturn:
    _refuse(ItemTooDeep, event, f"nesting deeper than {MAX_DEPTH} at line {_line(event)}", "flatten it")


def _too_many(event: Any, most: int) -> NoReturn:
    message = f"line {_line(event)}: more than {most} keys, values and ends of collections before it"
    _refuse(ItemTooLarge, event, message, "split it into several items")


_WORDS = (
    ("cannot start any token", "an unquoted value begins with a reserved character", "put the value in quotes"),
    ("mapping values are not allowed", "': ' inside unquoted text", "put the text in quotes"),
    ("could not find expected ':'", "this line is neither 'key: value' nor part of a text", "indent it or add ':'"),
    ("found a tab character", "a tab is used where spaces are expected", "indent with spaces"),
    ("found unexpected end of stream", "a quote or bracket is never closed", "close it"),
    ("did not find expected ',' or", "a bracket is never closed", "close it, or put a ',' between its parts"),
    ("expected <block end>", "this line is not indented like its neighbours", "align it with the lines above"),
    ("did not find expected key", "this line is not indented like its neighbours", "align it, or quote the value"),
    ("did not find expected '-'", "this line is not indented like its neighbours", "align it with the lines above"),
    ("invalid Unicode character escape", "not valid Unicode: the escape names no character", "remove it"),
    ("unknown escape character", "a backslash in double quotes begins an unknown escape", "use single quotes"),
)


def _syntax_error(error: yaml.MarkedYAMLError, text: str) -> ItemSyntaxError:
    problem = error.problem or error.context or "not YAML"
    # what is never closed is shown where it was opened
    mark = (error.context_mark if "end of stream" in problem else None) or error.problem_mark or error.context_mark
    if mark is None:
        return ItemSyntaxError(f"not valid YAML: {problem}", hint="correct the file")
    line, column = mark.line + 1, mark.column + 1
    if text[mark.index : mark.index + 1] == "\t":
        problem = "found a tab character"
    for words, message, hint in _WORDS:
        if words in problem:
            return ItemSyntaxError(message, line=line, column=column, hint=hint)
    return ItemSyntaxError(f"not valid YAML: {problem}", line=line, column=column, hint="correct this line")


MAX_FLOW = 100

# letters first, nothing that begins another token; ':' and '#' only where they cannot end a key or begin a comment
_SAFE_START = re.compile(r"[^\W_]|[/_(+]|\.(?=[^\W\d_]|/)|-(?=[^\s-])|[\u00a1-\uffef\U00010000-\U0001ffff]")
_UNSAFE = re.compile(
    r":(?= |\Z)| #|\s\Z|[\x00-\x1f\x7f-\xa0\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\uffff\U000e0000-\U000e00ff]"
)
_UNSAFE_IN_FLOW = re.compile(r"[\[\]{},:?#&*!|>'\"%@`]")
# what YAML 1.1 or 1.2, or another reader, resolves to something that is not text
_PLAIN_WORDS = frozenset(
    word
    for name in ("null", "true", "false", "yes", "no", "on", "off", "y", "n")
    for word in (name, name.upper(), name.capitalize())
) | {"~", "=", "<<", "---", "..."}
_LIKE_NUMBER = re.compile(r"[-+.]*[0-9][-+0-9a-fA-FxXoOtTzZ_.,: \t]*|[-+]?\.(?:inf|nan)", re.IGNORECASE)
_ESCAPED = re.compile(
    '["\\\\\x00-\x1f\x7f-\xa0\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f'
    "\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\uffff\U000e0000-\U000e00ff]"
)
_NOT_LITERAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def document(mapping: Mapping[str, Any]) -> str:
    """A whole file: the mapping's entries in their order, ending in one newline."""
    return "\n".join(entries(mapping, 0)) + "\n" if mapping else "{}\n"


def entries(mapping: Mapping[str, Any], indent: int) -> list[str]:
    """The lines of a block mapping."""
    return [line for key, value in mapping.items() for line in entry(key, value, indent)]


def entry(key: str, value: Any, indent: int) -> list[str]:
    """The lines of one ``key: value``."""
    head, body = parts(value, indent, indent)
    return [f"{' ' * indent}{_key_text(key, False)}:{' ' if head else ''}{head}", *body]


def element(value: Any, indent: int) -> list[str]:
    """The lines of one ``- value`` of a block sequence."""
    pad = " " * indent
    if isinstance(value, Mapping) and value:
        lines = entries(value, indent + 2)
        return [f"{pad}- {lines[0][indent + 2 :]}", *lines[1:]]
    if isinstance(value, list) and value:
        lines = [line for part in value for line in element(part, indent + 2)]
        return [f"{pad}- {lines[0][indent + 2 :]}", *lines[1:]]
    head, body = parts(value, indent, indent)
    return [f"{pad}- {head}", *body]


def parts(value: Any, indent: int, sequence_indent: int) -> tuple[str, list[str]]:
    """What goes on the key's own line, and the lines below it."""
    if value.__class__ is str:
        # a ``|`` block holds what has something to see on its last line, and no characters that need an escape
        fits = "\n" in value and value.rstrip("\n").rpartition("\n")[2].strip() and not _NOT_LITERAL.search(value)
        return literal(value, indent + 2) if fits else (scalar(value), [])
    if isinstance(value, Mapping) and value:
        return "", entries(value, indent + 2)
    if isinstance(value, list) and value:
        return "", [line for part in value for line in element(part, sequence_indent)]
    return scalar(value), []


def literal(text: str, indent: int) -> tuple[str, list[str]]:
    """The header and the lines of a ``|`` block."""
    body = text.rstrip("\n")
    ending = len(text) - len(body)
    chomp = "" if ending == 1 else "+" if ending else "-"
    # without the number a reader would take leading blanks of the text for indentation
    number = "2" if body[0] in " \t\n" else ""
    pad = " " * indent
    lines = [pad + line if line else "" for line in body.split("\n")]
    return f"|{number}{chomp}", lines + [""] * (ending - 1)


def scalar(value: Any, in_flow: bool = False) -> str:
    """A value on one line."""
    if value.__class__ is str:
        return _text(value, in_flow)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, float):
        mantissa, sign, exponent = repr(value).partition("e")
        return f"{mantissa}.0e{exponent}" if sign and "." not in mantissa else repr(value)
    if isinstance(value, Mapping):
        return flow(value)
    return flow(value) if isinstance(value, list) else str(value)


def flow(value: Any) -> str:
    """A collection, or a scalar inside one, on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(key, in_flow=True)}: {flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value, in_flow=True)


def _text(text: str, in_flow: bool) -> str:
    if (
        _SAFE_START.match(text) is not None
        and _UNSAFE.search(text) is None
        and text not in _PLAIN_WORDS
        and (text[0] > "9" or _LIKE_NUMBER.fullmatch(text) is None)
        and not (in_flow and _UNSAFE_IN_FLOW.search(text))
    ):
        return text
    if text and not _ESCAPED.search(text.replace('"', "").replace("\\", "")):
        if "'" not in text:
            return f"'{text}'"
        if '"' not in text and "\\" not in text:
            return f'"{text}"'
        return "'" + text.replace("'", "''") + "'"
    return '"' + _ESCAPED.sub(_escape, text) + '"'


_key_text = lru_cache(maxsize=1024)(_text)


def _escape(match: re.Match[str]) -> str:
    if match[0] in _SHORT:
        return _SHORT[match[0]]
    code = ord(match[0])
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
