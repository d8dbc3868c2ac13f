"""KnownText: what an agent is told anyway, so that memory does not say it again (seed 004, P6).

Owns when a text is said in others, whatever their Markdown. Which files agents are told on their own is
``memfs.sources.known_files``' business; what is left out, ``memfs.sources.delivery``'s.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache

from memfs.pipeline.contradictions import contradiction
from memfs.pipeline.likeness import SAME, Shape, alike, normalised

_LOOKED_AT = 200_000
_LONGEST_TEXT = 20_000
_MOST_PARTS = 20
_COMPARED = 30
_MARKUP = re.compile(r"^[ \t]*(?:(?:[-*+>\u2022]|\d{1,3}[.)]|#{1,6}|\[[ xX]\])[ \t]+)+|^[ \t]*\||\|[ \t]*$", re.M)
_EMPHASIS = re.compile(r"\*\*|__|``?|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)|~~")
_LINK = re.compile(r"!?\[([^\[\]\n]{1,300})\]\([^()\n]{0,1000}\)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_COMMENT = re.compile(r"<!--|-->")
_BREAK = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*+>|\u2022#]|\d{1,3}[.)]\s|```|~~~))|(?:```|~~~)\w*\n")
# What stands before a colon, unless it turns round what follows: ``Never: push to main``.
_TURNED = r"\b(?:no|not|never|none|don'?t|do not|avoid|without|bad|wrong|stop|old|before|instead)\b"
_LABEL = re.compile(rf"(?!.{{0,60}}{_TURNED})[^.:!?\n]{{1,60}}: (?=\S)", re.I)
_SCOPE = re.compile(r"\s*\([^()\n]{0,200}[*/][^()\n]{0,200}\)$")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=\S)")


class Passages:
    """The passages of one text: paragraphs, list items, lines and sentences. May be used from several threads."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def texts(self) -> frozenset[str]:
        """Each passage, normalised."""
        return frozenset(plain for part in _passages(self._text) if (plain := normalised(part)))

    @cached_property
    def _shapes(self) -> tuple[tuple[Shape, ...], dict[str, list[int]]]:
        """The passages as likeness looks at them, and which of them have a stem."""
        shapes = tuple(Shape(part) for part in dict.fromkeys(_passages(self._text)))
        having: dict[str, list[int]] = {}
        for place, shape in enumerate(shapes):
            for stem in set(shape.stems):
                having.setdefault(stem, []).append(place)
        return shapes, having

    def say(self, shape: Shape) -> bool:
        """Whether one of them says the same."""
        if shape.plain in self.texts:
            return True
        shapes, having = self._shapes
        shared = Counter(place for stem in set(shape.stems) for place in having.get(stem, ()))
        near = (shapes[place] for place, _ in shared.most_common(_COMPARED))
        return any(alike(shape, one, SAME) >= SAME and not contradiction(shape.text, one.text) for one in near)


@lru_cache(maxsize=4)
def _taken_apart(text: str) -> Passages:
    """The same prompt comes again and again."""
    return Passages(text if len(text) <= 2 * _LOOKED_AT else f"{text[:_LOOKED_AT]}\n\n{text[-_LOOKED_AT:]}")


class KnownText:
    """Texts an agent has before it asks for memory. May be used from several threads."""

    def __init__(self, *texts: str, passages: Iterable[Passages] = ()) -> None:
        """Take whole documents, such as a prompt; Markdown is read as what it says.

        Of a very long one the beginning and the end count.

        Args:
            passages: of documents that were taken apart before.
        """
        self._passages = (*(_taken_apart(text) for text in texts if text.strip()), *passages)

    def has(self, text: str) -> bool:
        """Whether a text, or else each sentence of it, stands there in the same words, or nearly.

        Letter case, spacing, Markdown and punctuation aside; and never with a denial, name or number of its own.
        """
        if not self._passages or len(text) > _LONGEST_TEXT or not normalised(text):
            return False
        plain = bare(text)
        if self._said(plain) or self._said(_SCOPE.sub("", plain)):
            return True
        parts = list(_finest(text))
        return 1 < len(parts) <= _MOST_PARTS and all(map(self._said, parts))

    def _said(self, text: str) -> bool:
        shape = Shape(text)
        return any(one.say(shape) for one in self._passages)


def bare(text: str) -> str:
    """A text without its Markdown."""
    plain = _EMPHASIS.sub("", _LINK.sub(r"\1", _COMMENT.sub("\n\n", _MARKUP.sub("", text))))
    return _ESCAPE.sub(r"\1", plain).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _passages(text: str) -> Iterator[str]:
    """Paragraphs, lines and sentences, without Markdown; each also without a label before it: ``Style: use tabs``."""
    for part in _parts(text):
        yield part
        if label := _LABEL.match(part):
            yield part[label.end() :]


def _parts(text: str) -> Iterator[str]:
    for block in _blocks(text):
        yield block
        yield from _sentences(block)
        if "\n" in block:
            yield from filter(None, map(str.strip, block.split("\n")))


def _finest(text: str) -> Iterator[str]:
    return (part for block in _blocks(text) for part in (list(_sentences(block)) or [block]))


def _blocks(text: str) -> Iterator[str]:
    return filter(None, map(bare, _BREAK.split(_COMMENT.sub("\n\n", text))))


def _sentences(block: str) -> Iterator[str]:
    """The sentences of a block that has several."""
    parts = _SENTENCE.split(block)
    return iter(parts if len(parts) > 1 else ())
