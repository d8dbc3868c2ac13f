"""Redaction: a text or value with the name of a rule in place of each secret, fit to be shown or kept (B6).

Owns what is taken out beside what a rule found: the rest of the word, the block of a private key. Must not know items,
the store or git.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memfs.files.secrets import find, visible

HIDDEN = "[redacted]"
"""What stands for a text of which it cannot be told where its secrets end."""
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----")
_KEY_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----")
_REST_OF_WORD = re.compile(r"[A-Za-z0-9+/_=-]+")
_TRIES = 60


def redacted(text: str) -> str:
    """The text with the name of a rule in place of each secret, up to the end of its word or block."""
    text = _without_key_blocks(text)
    for _ in range(_TRIES):
        found = find(text)
        if not found:
            return text
        text = visible(text)
        for finding in reversed(found):
            rest = _REST_OF_WORD.match(text, finding.end)
            end = rest.end() if rest else finding.end
            text = f"{text[: finding.start]}[redacted: {finding.rule}]{text[end:]}"
    return HIDDEN


def redacted_value(value: Any, key: str = "") -> Any:
    """A plain value with each text in it redacted; ``key`` is the name it has, which may be telling."""
    if isinstance(value, str):
        found = find(f"{key}: {value}") if key and redacted(value) == value else []
        return f"[redacted: {found[0].rule}]" if found else redacted(value)
    if isinstance(value, Mapping):
        return {redacted(str(name)): redacted_value(part, str(name)) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(redacted_value(part, key) for part in value)
    return value


def _without_key_blocks(text: str) -> str:
    """Private keys are found by how they begin; they go up to their end, or that of the text."""
    parts, place = [], 0
    for begin in _KEY_BEGINS.finditer(text):
        if begin.start() >= place:
            end = _KEY_ENDS.search(text, begin.end())
            parts += [text[place : begin.start()], "[redacted: private-key]"]
            place = end.end() if end else len(text)
    return "".join((*parts, text[place:]))
