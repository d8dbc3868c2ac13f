"""``python -m benchmarks.retrieval.related``: make ``memfs/search/related.txt``, the English words that are used alike.

A line for each stem of a whole word in the table of ``wordllama``: the stems of the words nearest to it, at most ten,
with their cosine in tenths. Stems of which one begins with the other are left out, as are stop words, words of talk,
and what the English vocabulary of BERT has not as a whole word: words of other languages, and pieces. What the vectors
of all words have in common, their mean and the three directions in which they differ most, does not count.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import memfs.search
from memfs.search import analyzer, terms
from memfs.search.models import _WORDPIECES, WordLlamaEmbedder

_LEAST, _MOST, _COMMON = 0.33, 10, 3
_HEAD = (
    "# Stems of English words that are used alike, by the table of wordllama (MIT licence), with the cosine in tenths\n"
)


def main() -> int:
    """Write the file again."""
    embedder = WordLlamaEmbedder()
    words: dict[str, list[str]] = {}
    english = frozenset(_WORDPIECES.read_text(encoding="utf-8").split())
    for piece in embedder._vocabulary:
        word = piece[1:]
        if piece[0] == "▁" and len(word) > 2 and word in english and word.isascii() and word.isalpha():
            found = analyzer.terms(word)
            if len(found) == 1 and not {word, found[0]} & (analyzer.STOP_WORDS | terms.COMMON_WORDS):
                words.setdefault(found[0], []).append(word)
    stems = sorted(words)
    rows = np.array([np.sum(embedder.embed([*words[stem], ""]), axis=0) for stem in stems])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows -= rows.mean(axis=0)
    common = np.linalg.svd(rows, full_matrices=False)[2][:_COMMON]
    rows -= rows @ common.T @ common
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    lines = [_line(stem, stems, rows @ row) for stem, row in zip(stems, rows, strict=True)]
    Path(memfs.search.__path__[0], "related.txt").write_text("".join((_HEAD, *lines)), encoding="utf-8")
    return 0


def _line(stem: str, stems: list[str], cosines: Any) -> str:
    best = (place for place in np.argsort(-cosines)[: 4 * _MOST] if cosines[place] >= _LEAST)
    near = [(stems[place], round(10 * cosines[place])) for place in best if not _same_start(stem, stems[place])]
    return f"{stem} {' '.join(f'{other}{min(share, 9)}' for other, share in near[:_MOST])}\n" if near else ""


def _same_start(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


if __name__ == "__main__":
    sys.exit(main())
