"""Regular expressions of schemas: a part of the syntax that means the same everywhere and cannot take for ever.

Owns which patterns are accepted and how they are rewritten for Python and for other engines. Refused are repeats inside
repeats, choices inside repeats, look-around and back-references; what remains costs at most a power of the text's
length that ``Pattern.limit`` keeps small. Must not know schemas.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

_MAX_PATTERN = 1000
_MAX_LOOPS = 3
_MAX_CHOICES = 64
_MAX_COUNT = 1000
_MIN_LIMIT = 64
_STEPS = 10_000_000
_NO_LIMIT = 1 << 24
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": r" \t\n\r\f\v"}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}


class PatternRefused(ValueError):
    """Not a pattern, or not one that is certain to end soon; ``complex`` tells the second."""

    def __init__(self, reason: str, is_complex: bool = False) -> None:
        super().__init__(reason)
        self.is_complex = is_complex


@dataclass(frozen=True, slots=True)
class Pattern:
    """A vetted pattern.

    Attributes:
        python: for Python's ``re``; ``$`` means the very end.
        portable: for engines that follow ECMAScript or RE2.
        degree: matching costs at most the text's length to this power.
        limit: longer texts are not matched.
    """

    python: str
    portable: str
    degree: int
    limit: int


@lru_cache(maxsize=512)
def vet(text: str) -> Pattern:
    """Accept a pattern.

    Raises:
        PatternRefused: saying why.
    """
    if len(text) > _MAX_PATTERN:
        raise PatternRefused(f"the pattern has {len(text)} characters, limit {_MAX_PATTERN}", is_complex=True)
    reader = _Reader(text)
    whole = reader.choice()
    if reader.at < len(text):
        raise PatternRefused("')' without '('")
    if whole.loops > _MAX_LOOPS or whole.choices > _MAX_CHOICES:
        raise PatternRefused("too many repeats or choices", is_complex=True)
    degree = whole.loops + (0 if whole.anchored else 1)
    limit = _NO_LIMIT if degree < 2 else int((_STEPS / whole.choices) ** (1 / degree))
    if limit < _MIN_LIMIT:
        raise PatternRefused(
            "too many repeats for a pattern that may begin anywhere; begin it with '^'", is_complex=True
        )
    return Pattern(whole.text.replace("\0", r"\Z"), whole.text.replace("\0", "$"), degree, limit)


@dataclass(slots=True)
class _Part:
    """A piece of a pattern, rewritten; NUL stands for the end anchor until the engine is known."""

    text: str
    varies: bool = False
    loops: int = 0
    choices: int = 1
    anchored: bool = False
    is_anchor: bool = False


class _Reader:
    """Reads the accepted syntax from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def choice(self) -> _Part:
        branches = [self._sequence()]
        while self._next("|"):
            branches.append(self._sequence())
        if len(branches) == 1:
            return branches[0]
        return _Part(
            "|".join(branch.text for branch in branches),
            varies=True,
            loops=sum(branch.loops for branch in branches),
            choices=sum(branch.choices for branch in branches),
            anchored=all(branch.anchored for branch in branches),
        )

    def _sequence(self) -> _Part:
        whole = _Part("")
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            part = self._repeated(self._atom())
            whole.anchored = whole.anchored or (not whole.text and part.anchored)
            whole.text += part.text
            whole.varies |= part.varies
            whole.loops += part.loops
            whole.choices *= part.choices
        return whole

    def _atom(self) -> _Part:
        character = self.text[self.at]
        self.at += 1
        if character == "(":
            return self._group()
        if character == "[":
            return _Part(self._class())
        if character == "\\":
            return _Part(self._escape())
        if character == "^":
            return _Part("^", anchored=True, is_anchor=True)
        if character == "$":
            return _Part("\0", is_anchor=True)
        if character == ".":
            return _Part(r"[^\n\r]")
        if character in "*+?{":
            self._refuse(f"nothing to repeat before {character!r}")
        return _Part(_literal(character))

    def _group(self) -> _Part:
        self.depth += 1
        if self.depth > 20:
            raise PatternRefused("groups nested deeper than 20", is_complex=True)
        if self._next("?") and not self._next(":"):
            raise PatternRefused("look-around, flags and names in groups are not accepted", is_complex=True)
        inner = self.choice()
        if not self._next(")"):
            self._refuse("'(' without ')'")
        self.depth -= 1
        inner.text = f"(?:{inner.text})"
        return inner

    def _repeated(self, part: _Part) -> _Part:
        counts = self._counts()
        if counts is None:
            return part
        low, high, written = counts
        lazy = "?" if self._next("?") else ""
        if self.at < len(self.text) and self.text[self.at] in "*+{":
            self._refuse("a repeat of a repeat")
        if part.is_anchor:
            self._refuse("a repeated '^' or '$'")
        if part.varies and high != 1:
            raise PatternRefused("a repeat of something that itself repeats or has choices", is_complex=True)
        if high is None or high - low > 8:
            part.loops += 1
        elif low == 0 and high == 1:
            part.choices += 1
        else:
            part.choices *= high - low + 1
        part.varies = part.varies or high != low
        part.anchored = part.anchored and low > 0
        part.text += written + lazy
        return part

    def _counts(self) -> tuple[int, int | None, str] | None:
        if self._next("*"):
            return 0, None, "*"
        if self._next("+"):
            return 1, None, "+"
        if self._next("?"):
            return 0, 1, "?"
        if not self._next("{"):
            return None
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at : end].partition(",") if end > 0 else ("", "", "")
        if not (low.isdecimal() and low.isascii() and (not high or (high.isdecimal() and high.isascii()))):
            self._refuse("'{' that does not count; write '\\{' for the character")
        self.at = end + 1
        least = int(low[:6])
        most = (int(high[:6]) if high else None) if comma else least
        if max(least, most or 0) > _MAX_COUNT:
            raise PatternRefused(f"a repeat of more than {_MAX_COUNT}", is_complex=True)
        if most is not None and most < least:
            self._refuse("a repeat whose limits are swapped")
        return least, most, "{" + f"{least}{comma}{'' if most is None or not comma else most}" + "}"

    def _escape(self) -> str:
        character = self.text[self.at : self.at + 1]
        self.at += 1
        if character.lower() in _CLASSES and character:
            return f"[{'^' if character.isupper() else ''}{_CLASSES[character.lower()]}]"
        return _literal(self._escaped_character(character))

    def _escaped_character(self, character: str) -> str:
        if character in _CONTROLS:
            return _CONTROLS[character]
        if not character or character.isalnum() or not character.isascii():
            raise PatternRefused(f"the escape '\\{character}' is not accepted", is_complex=character.isdigit())
        return character

    def _class(self) -> str:
        negated = self._next("^")
        parts: list[str] = []
        while not (parts and self._next("]")):
            low = self._member()
            if (
                len(low) == 1
                and self.text[self.at : self.at + 1] == "-"
                and self.text[self.at + 1 : self.at + 2] != "]"
            ):
                self.at += 1
                high = self._member()
                if len(high) != 1 or high < low:
                    self._refuse("a range whose ends are swapped")
                parts.append(f"{_literal(low)}-{_literal(high)}")
            else:
                parts.append(_literal(low) if len(low) == 1 else low)
        return f"[{'^' if negated else ''}{''.join(parts)}]"

    def _member(self) -> str:
        """One character of a class, or the ranges of ``\\d``, ``\\w``, ``\\s``."""
        character = self.text[self.at : self.at + 1]
        if not character or character == "]":
            self._refuse("'[' without ']', or an empty class")
        self.at += 1
        if character != "\\":
            return character
        escaped = self.text[self.at : self.at + 1]
        self.at += 1
        return _CLASSES[escaped] if escaped in _CLASSES else self._escaped_character(escaped)

    def _next(self, character: str) -> bool:
        if self.text.startswith(character, self.at):
            self.at += 1
            return True
        return False

    def _refuse(self, reason: str) -> NoReturn:
        raise PatternRefused(f"{reason} at character {self.at}")


def _literal(character: str) -> str:
    """A character as every engine reads it."""
    if character.isalnum() or ord(character) > 0x7F or character == "_":
        return character
    return f"\\x{ord(character):02x}"
