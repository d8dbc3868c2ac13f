"""Reads and writes JSON as strictly as YAML is read.

Refuses duplicate keys, deep nesting, NaN, infinity and integers beyond 64 bits. The standard library parses; as JSON is
YAML, the places of values are those that the YAML parser finds.
"""

from __future__ import annotations

import re
from contextlib import suppress

from memfs.errors import AliasForbidden, DuplicateKey, ItemSyntaxError, TagForbidden
from memfs.format.plain import MAX_DEPTH, MAX_KEY, MAX_PARTS, finite_number, whole_number
from memfs.format.text import position
from memfs.startup import TYPE_CHECKING, Any, json, regex

if TYPE_CHECKING:
    from typing import NoReturn

    from memfs.format.yaml_text import Node

_TOKEN = regex(
    r'"[^"\\]*(?:\\.[^"\\]*)*"|(?P<constant>NaN|-?Infinity)|'
    r"(?P<number>-?(?:0|[1-9][0-9]*)(?P<fraction>(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?))",
    re.DOTALL,
)
_BEFORE_COLON = regex(r"(?<![ \r\n])[ \r\n]+(?=:)")
_SURROGATE = regex(r"\\u[dD]([89a-fA-F][0-9a-fA-F]{2})")
_STRING = regex(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_RUNS = regex(r"[\[{]+|[\]}]+")
# legal inside JSON strings, but line breaks or invisible to other readers
_ESCAPED = regex("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")


def load(text: str, parts: int | None = MAX_PARTS, first: int = 1) -> Any:
    """The value of a JSON text, made of dict, list, str, int, float, bool and None.

    Args:
        parts: how many keys, values and ends of collections there may be; None where the text is known to be memfs's,
            or the caller counts them.
        first: the line of the file at which the text begins, for errors.

    Raises:
        ItemSyntaxError, ItemTooDeep, ItemTooLarge, DuplicateKey: with line, column and remedy.
    """
    if parts is not None:
        _check_size(text, parts)
    try:
        return json.loads(
            text,
            object_pairs_hook=_pairs,
            parse_int=whole_number,
            parse_float=finite_number,
            parse_constant=_no_constant,
        )
    except json.JSONDecodeError as error:
        raise _syntax_error(error, text, first) from None
    except RecursionError:
        _check_size(text, len(text))
        raise
    except ValueError:
        _refuse_value(text, first)
        raise ItemSyntaxError("not valid JSON", line=first, hint="correct the file") from None


def tree(text: str) -> Node:
    """The same as positions.

    Raises:
        the same errors as ``load``.
    """
    from memfs.format import yaml_text  # only who changes or refuses a file asks for places

    load(text, None)
    root = yaml_text.tree(_as_yaml(text), len(text))
    nodes = [root]
    for node in nodes:
        for entry in node.entries:
            entry.key = json.loads(text[entry.start : entry.end])
        nodes += [*node.items, *(entry.value for entry in node.entries)]
    return root


def _as_yaml(text: str) -> str:
    """A text of the same length that YAML allows: without escapes of half characters, signs that it has not, tabs (none
    is in quotes), and lines between a key and its colon.
    """
    plain = _SURROGATE.sub(r"\\u1\1", _BEFORE_COLON.sub(lambda blank: " " * len(blank[0]), text.replace("\t", " ")))
    return _ESCAPED.sub(lambda sign: chr(0xE000 + ord(sign[0]) % 4096), plain)


def document(value: Any, indent: int | str = 2) -> str:
    """A whole file: indented, keys in their order, characters as they are, ending in one newline."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def indentation(text: str) -> int | str:
    """What an existing file indents with: its first indented line's blanks; 2 where it has none."""
    match = re.search(r"\n([ \t]+)\S", text)
    return match[1] if match else 2


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs) or not all(0 < len(key) <= MAX_KEY for key in mapping):
        raise ValueError("keys")
    return mapping


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a finite number")


def _check_size(text: str, most: int) -> None:
    """Refuse deep nesting and too many values before the recursive standard parser sees them; YAML's knows where."""
    opening = text.count("[") + text.count("{")
    if opening <= MAX_DEPTH and 2 * opening + text.count(",") + text.count(":") <= most:
        return
    signs = _STRING.sub("", text)
    depth = deepest = 0
    for run in _RUNS.findall(signs) if opening > MAX_DEPTH else ():
        depth += len(run) if run[0] in "[{" else -len(run)
        deepest = max(deepest, depth)
    if sum(map(signs.count, "[]{},:")) <= most and deepest <= MAX_DEPTH:
        return
    from memfs.format import yaml_text

    with suppress(AliasForbidden, DuplicateKey, ItemSyntaxError, TagForbidden):  # what is no JSON, JSON's parser says
        yaml_text.load(_as_yaml(text), most)


# -- errors -------------------------------------------------------------------------------------------------------
_MESSAGES = (
    ("Expecting value", "expected a value", "write text in double quotes, a number, true, false, null, [...] or {...}"),
    ("Expecting property name", "expected a key in double quotes", 'write "key": value'),
    ("Expecting ':'", "expected ':' after the key", 'write "key": value'),
    ("Expecting ','", "expected ',' or the end of the collection", "separate parts with ','"),
    ("Extra data", "something follows the end of the JSON value", "remove it"),
)


def _syntax_error(error: json.JSONDecodeError, text: str, first: int) -> ItemSyntaxError:
    before, at = text[: error.pos].rstrip(), text[error.pos : error.pos + 1]
    message = f"not valid JSON: {error.msg[0].lower()}{error.msg[1:].removesuffix(' at').removesuffix(' starting')}"
    hint = "correct the text in quotes"
    for words, meaning, remedy in _MESSAGES:
        if error.msg.startswith(words):
            message, hint = meaning, remedy
    if text.startswith(("//", "/*", "#"), error.pos):
        message, hint = "a comment, which JSON does not allow", "remove it"
    elif "trailing comma" in error.msg or (before.endswith(",") and at in ("]", "}")):
        message, hint = f"',' before '{at if at != ',' else '}'}'", "remove it"
    return ItemSyntaxError(message, line=first - 1 + error.lineno, column=error.colno, hint=hint)


def _refuse_value(text: str, first: int) -> None:
    """Name the place of what JSON allows and memfs does not: a number out of range, or a key."""
    for token in _TOKEN.finditer(text):
        try:
            if token["number"]:
                (finite_number if token["fraction"] else whole_number)(token["number"])
            elif token["constant"]:
                _no_constant(token["constant"])
        except ValueError as error:
            line, column = position(text, token.start())
            hint = "put it in quotes if it is text"
            raise ItemSyntaxError(str(error), line=first - 1 + line, column=column, hint=hint) from None
    from memfs.format import yaml_text

    yaml_text.tree("\n" * (first - 1) + _as_yaml(text), len(text))
