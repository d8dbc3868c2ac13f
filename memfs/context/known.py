"""Decide whether an agent has a text already: in its prompt, or in the files that coding agents read on their own.

Texts are compared by passage, without their Markdown. Reading never leaves the repository.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path

from memfs.config_names import SETTINGS_FILE
from memfs.errors import MemfsError, NotRegularFile, PathEscape
from memfs.fs.tree import Tree
from memfs.recall.similarity import normalised
from memfs.startup import regex

_LOOKED_AT = 200_000
_LONGEST_TEXT = 20_000
_MOST_PARTS = 20
_MARKUP = regex(r"^[ \t]*(?:(?:[-*+>\u2022]|\d{1,3}[.)]|#{1,6}|\[[ xX]\])[ \t]+)+|^[ \t]*\||\|[ \t]*$", re.M)
_EMPHASIS = regex(r"\*\*|__|``?|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)|~~")
_LINK = regex(r"!?\[([^\[\]\n]{1,300})\]\([^()\n]{0,1000}\)")
_ESCAPE = regex(r"\\([!-/:-@\[-`{-~])")
_COMMENT = regex(r"<!--|-->")
_BREAK = regex(r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*+>|\u2022#]|\d{1,3}[.)]\s|```|~~~))|(?:```|~~~)\w*\n")
# What precedes a colon, unless it negates what follows: ``Never: push to main``.
_TURNED = r"\b(?:no|not|never|none|don'?t|do not|avoid|without|bad|wrong|stop|old|before|instead)\b"
_LABEL = regex(rf"(?!.{{0,60}}{_TURNED})[^.:!?\n]{{1,60}}: (?=\S)", re.I)
_SCOPE = regex(r"\s*\([^()\n]{0,200}[*/][^()\n]{0,200}\)$")
_SENTENCE = regex(r"(?<=[.!?;])\s+(?=\S)")


@lru_cache(maxsize=32)
def _passages_of(text: str) -> frozenset[str]:
    """The passages of a text, normalised: paragraphs, list items, lines and sentences. The same prompt, and the same
    files, come again and again.
    """
    short = text if len(text) <= 2 * _LOOKED_AT else f"{text[:_LOOKED_AT]}\n\n{text[-_LOOKED_AT:]}"
    return frozenset(plain for part in _passages(short) if (plain := normalised(part)))


class KnownText:
    """Texts an agent has before it asks for memory. May be used from several threads."""

    def __init__(self, *texts: str) -> None:
        """Take whole documents, such as a prompt; Markdown is read as what it says.

        Of a very long one the beginning and the end count.
        """
        self._texts = [f"\n{text}\n" for text in texts if text.strip()]
        self._passages = list(map(_passages_of, self._texts))

    def has(self, text: str) -> bool:
        """Whether a text, or else each sentence of it, occurs there in the same words.

        Letter case, spacing, Markdown and punctuation aside; and never with a denial, name or number that is not there.
        """
        if not self._passages or len(text) > _LONGEST_TEXT or not normalised(text):
            return False
        plain = bare(text)
        if any(f"\n{text.strip()}\n" in one for one in self._texts):  # whole lines, as they are
            return True
        if self._occurs(plain) or (plain.endswith(")") and self._occurs(_SCOPE.sub("", plain))):
            return True
        parts = [part for block in _blocks(text) for part in (list(_sentences(block)) or [block])]
        return 1 < len(parts) <= _MOST_PARTS and all(map(self._occurs, parts))

    def _occurs(self, text: str) -> bool:
        plain = normalised(text)
        return any(plain in one for one in self._passages)


def bare(text: str) -> str:
    """A text without its Markdown."""
    plain = _EMPHASIS.sub("", _LINK.sub(r"\1", _COMMENT.sub("\n\n", _MARKUP.sub("", text))))
    return _ESCAPE.sub(r"\1", plain).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _passages(text: str) -> Iterator[str]:
    """Paragraphs, lines and sentences, without Markdown; each also without a label before it: ``Style: use tabs``."""
    for part in _parts(text):
        yield part
        if ": " in part and (label := _LABEL.match(part)):
            yield part[label.end() :]


def _parts(text: str) -> Iterator[str]:
    for block in _blocks(text):
        yield block
        yield from _sentences(block)
        if "\n" in block:
            yield from filter(None, map(str.strip, block.split("\n")))


def _blocks(text: str) -> Iterator[str]:
    return filter(None, map(bare, _BREAK.split(_COMMENT.sub("\n\n", text)) if "\n" in text or "--" in text else [text]))


def _sentences(block: str) -> Iterator[str]:
    """The sentences of a block that has several."""
    parts = _SENTENCE.split(block)
    return iter(parts if len(parts) > 1 else ())


NAMES = ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", "AGENTS.md")
"""What is looked for in the workspace's folder and in each above it, up to the repository's top."""

_MOST_BYTES = 256 << 10
_DEEPEST = 32


class KnownFiles:
    """The files that agents read on their own: ``CLAUDE.md``, ``CLAUDE.local.md``, ``.claude/CLAUDE.md`` and
    ``AGENTS.md`` from the workspace up to the repository's top, and ``memfs.toml``.

    Of each the first 256 KiB count. Nothing outside the repository is read. May be used from several threads.
    """

    def __init__(self, root: Path, top: Path | None = None) -> None:
        """
        Args:
            root: the workspace's folder.
            top: the repository's top folder, ``root`` or above it; None means ``root``.
        """
        self._root = root.resolve()
        resolved = self._root if top is None else top.resolve()
        self._top = resolved if self._root.is_relative_to(resolved) else self._root

    def text(self, prompt: str = "") -> KnownText:
        """What they say at present, and the prompt; a file that cannot be read says nothing."""
        found: list[str] = []
        with suppress(MemfsError, OSError), closing(Tree(self._top)) as tree:
            for path in self._paths():
                with suppress(MemfsError, OSError, ValueError):  # ValueError: a link that leads out of the repository
                    found.append(self._text(tree, path))
        return KnownText(prompt, *found)

    def _paths(self) -> Iterator[str]:
        """Where they may be, below the repository's top."""
        here = self._root.relative_to(self._top).as_posix()
        folder = "" if here == "." else here
        yield posixpath.join(folder, SETTINGS_FILE)
        for _ in range(_DEEPEST):
            yield from (posixpath.join(folder, name) for name in NAMES)
            if not folder:
                return
            folder = posixpath.dirname(folder)

    def _text(self, tree: Tree, path: str) -> str:
        try:
            fd = tree.open_read(path)
        except (NotRegularFile, PathEscape):  # ``CLAUDE.md`` is often a link to ``AGENTS.md``
            fd = tree.open_read(str((self._top / path).resolve().relative_to(self._top)))
        try:
            return os.read(fd, _MOST_BYTES).decode("utf-8", "replace")
        finally:
            os.close(fd)
