"""Finds characters that a reader cannot see, and shows text from outside safely.

Refused: tag characters outside emoji flags, bidirectional controls, runs of variation selectors (all three carry text
that a person does not see and a model reads), NUL and lone surrogates. Warned about: zero-width characters and
direction marks, which occur in honest text and in emoji. Every door prints through ``shown`` or ``shown_line``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f"
_HIDING = (
    "[\U000e0000-\U000e007f]+|[\u202a-\u202e\u2066-\u2069]|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}|[\ufff9-\ufffb]"
)
_IMPOSSIBLE = "[\x00\ud800-\udfff]"
_UNSEEN = "[\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2060-\u2064\u3164\ufeff\uffa0]"
_SUSPECT = re.compile(
    "[\x00\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e01ef]"
)
# joiners are shown as they are between letters and signs that need them: in Persian, in emoji
UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e01ef]"
    "|(?<![^\x00-\x7f\u2000-\u206f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f\u2000-\u206f])"
)
"""A character that a terminal would obey or a reader not see; tabs and newlines are none."""
_JOINER = "\u200d"


class HiddenCharacter(NamedTuple):
    """A character, or a run of them, that a reader cannot see: where it begins and whether it is refused."""

    offset: int
    text: str
    refused: bool
    impossible: bool = False

    @property
    def codes(self) -> str:
        """Its first code points, such as ``U+202E``, and how many more there are."""
        codes = " ".join(f"U+{ord(character):04X}" for character in self.text[:4])
        return codes if len(self.text) <= 4 else f"{codes} and {len(self.text) - 4} more"


def findings(text: str) -> Iterator[HiddenCharacter]:
    """Every unseen character of the text, in order of kind; nothing for ordinary text, at the cost of one scan."""
    if text.isascii():
        if (nul := text.find("\0")) >= 0:
            yield HiddenCharacter(nul, "\0", refused=True, impossible=True)
        return
    if not _SUSPECT.search(text):
        return
    for match in re.finditer(_IMPOSSIBLE, text):
        yield HiddenCharacter(match.start(), match[0], refused=True, impossible=True)
    without_flags = re.sub(_FLAG, lambda flag: " " * len(flag[0]), text)
    for match in re.finditer(_HIDING, without_flags):
        yield HiddenCharacter(match.start(), match[0], refused=True)
    for match in re.finditer(_UNSEEN, text):
        if match[0] != _JOINER or not _joins_symbols(text, match.start()):
            yield HiddenCharacter(match.start(), match[0], refused=False)


def shown(text: str) -> str:
    """The text with every unseen or terminal-controlling character written as ``\\u{202E}``; tabs and newlines stay."""
    return UNSHOWN.sub(lambda match: f"\\u{{{ord(match[0]):X}}}", text)


def shown_line(text: str) -> str:
    """The text as one line, whatever it holds: as ``shown``, with newlines written as ``\\n``."""
    return shown(text).replace("\n", "\\n")


def _joins_symbols(text: str, at: int) -> bool:
    """Whether a zero-width joiner is inside an emoji, where it is ordinary."""
    return 0 < at < len(text) - 1 and ord(text[at - 1]) > 0x2000 and ord(text[at + 1]) > 0x2000
