"""Sentences: a message taken apart, without what is not said in words.

Owns what is left out: code, quoted lines, tables, headings, marks of emphasis and of lists. What a sentence says is the
business of others.
"""

from __future__ import annotations

import re

from memfs.pipeline.cues import ends

_LOOKED_AT = 20_000
_CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.M | re.S)
_LEFT_OUT = re.compile(r"^[ \t]*(?:>|\||#{1,6} |<!--|[-=*_]{3,}[ \t]*$).*$", re.M)
_WRAPPED = re.compile(r"(?<![.!?:;\n])\n[ \t]*(?=[a-z])")
_MARK = re.compile(r"(?:[-*+\u2022\u2713\u2705]|\d{1,3}[.)]|\[[ xX]\])\s+")
_EMPHASIS = re.compile(r"(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)")


def sentences(text: str) -> list[str]:
    """The sentences of a message in order, each once; of a long one, those of its first 20,000 characters."""
    plain = _WRAPPED.sub(" ", _LEFT_OUT.sub("", _CODE.sub("\n", text[:_LOOKED_AT])))
    found: dict[str, None] = {}
    for part in ends().split(plain):
        sentence = part.strip()
        while mark := _MARK.match(sentence):
            sentence = sentence[mark.end() :].strip()
        sentence = _EMPHASIS.sub("", sentence).strip()
        if sentence:
            found[" ".join(sentence.split())] = None
    return list(found)
