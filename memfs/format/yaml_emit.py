"""Writes plain values as YAML that a person likes to read.

Block collections, sequences not indented below their key, multi-line text as ``|`` blocks, and quotes wherever a YAML
1.1 or 1.2 reader could take text for something else. Lines are never folded, so ``grep`` and ``sed`` work.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MAX_FLOW = 100

# letters first, nothing that begins another token; ':' and '#' only where they cannot end a key or begin a comment
_SAFE_START = re.compile(r"[^\W_]|[/_(+]|\.(?=[^\W\d_]|/)|-(?=[^\s-])|[\u00a1-\uffef\U00010000-\U0001ffff]")
_UNSAFE = re.compile(
    r":(?= |\Z)| #|\s\Z|[\x00-\x1f\x7f-\xa0\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\uffff\U000e0000-\U000e00ff]"
)
_UNSAFE_IN_FLOW = re.compile(r"[\[\]{},:?#&*!|>'\"%@`]")
# what YAML 1.1 or 1.2, or somebody's reader, resolves to something that is not text
_WORDS = frozenset(
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
    lines: list[str] = []
    for key, value in mapping.items():
        lines.extend(entry(key, value, indent))
    return lines


def entry(key: str, value: Any, indent: int) -> list[str]:
    """The lines of one ``key: value``."""
    head, body = parts(value, indent, indent)
    return [f"{' ' * indent}{scalar(key, in_flow=False)}:{' ' if head else ''}{head}", *body]


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
        return literal(value, indent + 2) if "\n" in value and _fits_literal(value) else (scalar(value), [])
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
        return _fraction(value)
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


def _fraction(value: float) -> str:
    written = repr(value)
    if "." in written or "e" not in written:
        return written
    mantissa, exponent = written.split("e")
    return f"{mantissa}.0e{exponent}"


def _text(text: str, in_flow: bool) -> str:
    if _is_plain(text) and not (in_flow and _UNSAFE_IN_FLOW.search(text)):
        return text
    if text and not _ESCAPED.search(text.replace('"', "").replace("\\", "")):
        if "'" not in text:
            return f"'{text}'"
        if '"' not in text and "\\" not in text:
            return f'"{text}"'
        return "'" + text.replace("'", "''") + "'"
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _is_plain(text: str) -> bool:
    return (
        _SAFE_START.match(text) is not None
        and _UNSAFE.search(text) is None
        and text not in _WORDS
        and _LIKE_NUMBER.fullmatch(text) is None
    )


def _fits_literal(text: str) -> bool:
    """Whether a ``|`` block can hold the text: something to see on its last line, no characters that need an escape."""
    last = text.rstrip("\n").rpartition("\n")[2]
    return bool(last.strip()) and _NOT_LITERAL.search(text) is None


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    short = _SHORT.get(character)
    if short:
        return short
    code = ord(character)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
