"""WordLlamaEmbedder: the mean of what a table of word pieces knows, read from the files of an installed package.

The package's own code is not imported: it would ask the network for a file that it has. Words are cut as its tokenizer
cuts them, by byte pair encoding: of two neighbours those are joined that make the piece with the lowest number.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import struct
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from importlib.util import find_spec
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import Any

from memfs.errors import CorruptRecord, ExtraMissing
from memfs.fs import io
from memfs.fs.lock import reset_on_fork
from memfs.search.embedder import Vector, unit
from memfs.search.vectors import numeric

_TABLE = "weights/l2_supercat_256.safetensors"
_TABLE_SHA256 = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
_PIECES = "tokenizers/l2_supercat_tokenizer_config.json"
_PIECES_SHA256 = "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
_DIMENSIONS, _HALF = 256, 2
_HEAD = b'{"embedding.weight":{"dtype":"F16","shape":[32000,256],"data_offsets":[0,16384000]}}    '
_START = 8 + len(_HEAD)
_TABLE_BYTES = _START + 32_000 * _DIMENSIONS * _HALF
_VOCABULARY, _MERGES = b'"vocab": ', b'"merges": '
_BYTE, _NO_PIECE = 3, 1 << 31
_TEXT_LIMIT = 20_000
_WORD = re.compile(r"\w{1,64}")
_KNOWN_WORDS = 50_000
_REINSTALL = "install it again: pip install --force-reinstall --no-deps wordllama"


class WordLlamaEmbedder:
    """Vectors of 256 numbers, thousands of texts a second; see ``memfs.search.embedder.Embedder``.

    A word counts as it is written and in small letters. One text alone, such as the question of a process that then
    ends, is embedded without NumPy, which takes longer to load than everything else here.
    """

    def __init__(self) -> None:
        """
        Raises:
            ExtraMissing: the packages of the extra ``embeddings`` are not installed.
        """
        self._folder = _folder()
        self.name = "wordllama-l2-supercat-256"
        self.dimensions = _DIMENSIONS
        self.weight = 0.15
        self.least = 0.2
        self.light = True
        self._lock = threading.RLock()
        reset_on_fork(self)
        self._cut = lru_cache(_KNOWN_WORDS)(self._cut_anew)

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """A vector for each text; what comes after its first 20,000 characters does not count.

        Raises:
            CorruptRecord: a file of the package is not the one that was published.
        """
        pieces = [self._pieces(text) for text in texts]
        return [self._mean(pieces[0])] if len(texts) == 1 else self._means(pieces)

    def _mean(self, pieces: Sequence[int]) -> Vector:
        total: Sequence[float] = [0.0] * _DIMENSIONS
        for piece in pieces:
            row = struct.unpack_from("<256e", self._table, _START + piece * _DIMENSIONS * _HALF)
            total = list(map(add, total, row))
        return unit(total)

    def _means(self, pieces: Sequence[Sequence[int]]) -> Sequence[Vector]:
        np = numeric()
        table = self._checked_table
        sums = np.zeros((len(pieces), _DIMENSIONS), dtype=np.float32)
        for place, numbers in enumerate(pieces):
            if numbers:
                table[numbers].sum(axis=0, dtype=np.float32, out=sums[place])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        found: Sequence[Vector] = sums / np.where(lengths > 0, lengths, 1)
        return found

    # -- words in pieces --------------------------------------------------------------------------------------------
    def _pieces(self, text: str) -> list[int]:
        words = _WORD.findall(text[:_TEXT_LIMIT])
        return [piece for word in words for form in (word, word.lower()) for piece in self._cut(form)]

    def _cut_anew(self, word: str) -> tuple[int, ...]:
        """The numbers of the pieces of a word."""
        known, parts = self._vocabulary, ["▁", *word]
        while len(parts) > 1:
            joined = [known.get(one + after, _NO_PIECE) for one, after in pairwise(parts)]
            least = min(joined)
            if least == _NO_PIECE:
                break
            place = joined.index(least)
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        numbers: list[int] = []
        for part in parts:
            numbers += [known[part]] if part in known else [_BYTE + byte for byte in part.encode("utf-8", "replace")]
        return tuple(numbers)

    # -- the package's files ----------------------------------------------------------------------------------------
    @cached_property
    def _vocabulary(self) -> Mapping[str, int]:
        path = self._folder / _PIECES
        try:
            data = io.read_file(path)
        except FileNotFoundError as error:
            raise _damage(path) from error
        _check(path, data, _PIECES_SHA256)
        # The pieces stand in the order of their numbers, before the merges, which follow from the numbers. Those with a
        # quotation mark or a backslash are in no word, and reading this as JSON takes four times longer.
        part = data[data.index(_VOCABULARY) + len(_VOCABULARY) : data.rindex(_MERGES)].decode()
        pieces = part.replace("\\\\", "\0").replace('\\"', "\0").split('"')[1::2]
        return dict(zip(pieces, range(len(pieces)), strict=True))

    @cached_property
    def _table(self) -> mmap.mmap:
        """The file, of which few rows are read; whether it is as long as it should be is looked at, the rest not."""
        path = self._folder / _TABLE
        try:
            with open(io.open_file(path, os.O_RDONLY), "rb") as file:
                table = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (FileNotFoundError, ValueError) as error:  # an empty file cannot be mapped
            raise _damage(path) from error
        if len(table) != _TABLE_BYTES or table[8:_START] != _HEAD:
            raise _damage(path)
        return table

    @cached_property
    def _checked_table(self) -> Any:
        """All its rows, after a look at each byte: what is made of them is kept."""
        np = numeric()
        with self._lock:
            _check(self._folder / _TABLE, self._table, _TABLE_SHA256)
            return np.frombuffer(self._table, dtype="<f2", offset=_START).reshape(-1, _DIMENSIONS)


def _folder() -> Path:
    """Where the package lies that holds the table.

    Raises:
        ExtraMissing: it, or what is needed beside it, is not installed.
    """
    for name in ("numpy", "wordllama"):
        if find_spec(name) is None:
            raise ExtraMissing(
                f"the model 'wordllama' needs the package {name}",
                field="semantic.model",
                hint="install it with: pip install 'gitmemfs[embeddings]', or choose 'hashing'",
            )
    found = find_spec("wordllama")
    assert found is not None
    assert found.submodule_search_locations is not None
    return Path(found.submodule_search_locations[0])


def _check(path: Path, data: Any, digest: str) -> None:
    if hashlib.sha256(data).hexdigest() != digest:
        raise _damage(path)


def _damage(path: Path) -> CorruptRecord:
    return CorruptRecord("this is not the file that was published", path=str(path), hint=_REINSTALL)
