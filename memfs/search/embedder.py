"""Embedders turn texts into vectors that are near each other where the texts have similar meanings.

Holds the protocol, the table of names, and two embedders without a model on this machine: hashed features, and an
OpenAI-compatible service.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite, log, sqrt
from typing import Protocol
from zlib import crc32

from memfs.errors import EndpointFailed, SettingInvalid
from memfs.model.kinds import nearest
from memfs.search import analyzer

Vector = Sequence[float]

_BATCH = 64
_TEXT_LIMIT = 20_000
_WORD = re.compile(r"\w+")
_GRAM = 3
_GRAM_WEIGHT = 0.4


class Embedder(Protocol):
    """Turns texts into vectors. Every embedder passes ``memfs.testing.embedder_contract``.

    Attributes:
        name: names the model and everything that changes its vectors: vectors of two names are never compared.
        dimensions: how long its vectors are; 0 while that is not known.
        weight: how much its nearness counts beside the text score, both measured in their own spread.
        least: an item without a word of the question must be at least so near to it, -1 to 1.
        light: whether it takes no more than a moment for a few texts: a command that asks embeds what is new.
    """

    name: str
    dimensions: int
    weight: float
    least: float
    light: bool

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """A vector for each text, in order: of length 1, or all zeros where there is nothing in the text.

        May be called from several threads.

        Raises:
            EndpointFailed: a service did not answer, or not usably.
        """
        ...


class Service(Protocol):
    """The part of ``memfs.endpoint.Endpoint`` that an embedder needs."""

    def embed(self, model: str, texts: Sequence[str]) -> Sequence[Vector]:
        """A vector for each text, as the model there makes it."""
        ...


class HashingEmbedder:
    """Hashed stems and letter triples: no model, nothing to install, the same on every machine.

    It knows likeness of spelling and of words, not of sense: "car" and "automobile" lie apart.
    """

    def __init__(self, dimensions: int = 512) -> None:
        self.name = f"hashing-{dimensions}"
        self.dimensions = dimensions
        self.weight = 0.1
        self.least = 0.35
        self.light = True

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """See ``Embedder``."""
        return [self._one(text[:_TEXT_LIMIT]) for text in texts]

    def _one(self, text: str) -> Vector:
        vector = [0.0] * self.dimensions
        for feature, weight in _features(text).items():
            code = crc32(feature.encode("utf-8", "surrogatepass"))
            vector[code % self.dimensions] += weight if code & 0x8000_0000 else -weight
        return unit(vector)


def _features(text: str) -> Mapping[str, float]:
    counts: dict[str, float] = {}
    for stem in analyzer.terms(text):
        counts[stem] = counts.get(stem, 0.0) + 1.0
    found = {f"w{stem}": 1.0 + log(count) for stem, count in counts.items()}
    for word in set(_WORD.findall(text.lower())):
        framed = f"<{word}>"
        for start in range(len(framed) - _GRAM + 1):
            gram = f"g{framed[start : start + _GRAM]}"
            found[gram] = found.get(gram, 0.0) + _GRAM_WEIGHT
    return found


class EndpointEmbedder:
    """A model behind an OpenAI-compatible service. The texts leave this machine."""

    def __init__(self, service: Service, model: str) -> None:
        """``service``: asks it, such as ``memfs.endpoint.Endpoint``."""
        self.name = model
        self.dimensions = 0
        self.weight = 0.6
        self.least = 0.3
        self.light = False
        self._service = service

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """See ``Embedder``."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), _BATCH):
            part = texts[start : start + _BATCH]
            # a service refuses a text of nothing, and one that is no text
            sent = [text[:_TEXT_LIMIT].encode("utf-8", "replace").decode() if text.strip() else "-" for text in part]
            vectors += map(self._checked, self._service.embed(self.name, sent), part)
        if len(vectors) != len(texts):
            reason = f"{len(vectors)} vectors came back for {len(texts)} texts"
            raise EndpointFailed(reason, field="embeddings", hint="try another model")
        return vectors

    def _checked(self, vector: Vector, text: str) -> Vector:
        self.dimensions = self.dimensions or len(vector)
        if not vector or len(vector) != self.dimensions or not all(map(isfinite, vector)):
            raise EndpointFailed(
                f"{self.name} gave a vector that cannot be compared with its others",
                field="embeddings",
                hint="look at what the service runs under this name",
            )
        return unit(vector) if text.strip() else [0.0] * len(vector)


def unit(vector: Vector) -> Vector:
    """The vector brought to length 1; one of zeros stays."""
    length = sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else list(vector)


def _minilm() -> Embedder:
    from memfs.search.models import MiniLmEmbedder

    return MiniLmEmbedder()


def _wordllama() -> Embedder:
    from memfs.search.models import WordLlamaEmbedder

    return WordLlamaEmbedder()


LOCAL: Mapping[str, Callable[[], Embedder]] = {"hashing": HashingEmbedder, "wordllama": _wordllama, "minilm": _minilm}
"""The embedders that need no service, by the name settings give them."""
_registered: dict[str, Callable[[], Embedder]] = {}
_ALSO = {"all-minilm-l6-v2": "minilm", "sentence-transformers/all-minilm-l6-v2": "minilm"}


def register_embedder(name: str, make: Callable[[], Embedder]) -> None:
    """Let ``embedding_model: NAME`` mean an embedder of one's own, in this process.

    Args:
        name: what the memory context calls it.
        make: gives the embedder, such as its class; called once for each workspace that asks for it.

    Raises:
        SettingInvalid: a built-in embedder has the name, it is none, or ``make`` cannot be called.
    """
    given: object = make
    if not name.strip() or name in {*LOCAL, *_ALSO} or not callable(given):
        why = "makes no embedder" if not callable(given) else "cannot be the name of another embedder"
        raise SettingInvalid(f"{name!r} {why}", field="embedding_model", hint="give a new name, and a class")
    _registered[name] = make


def embedder(model: str, service: Service | None = None) -> Embedder:
    """The embedder that a model's name means.

    Args:
        model: a name in ``LOCAL`` or a registered one, or with a service the name of a model there.
        service: asks an OpenAI-compatible endpoint.

    Raises:
        SettingInvalid: no local embedder has that name; the hint says what can be done.
        ExtraMissing: it needs packages that are not installed.
    """
    if service is not None:
        return EndpointEmbedder(service, model)
    name = _ALSO.get(model.casefold(), model)
    found = {**LOCAL, **_registered}
    if name not in found:
        known = f"there are {', '.join(found)}; a service's model needs its address as semantic.endpoint"
        known = f"{known} (in a memory context: embedding_endpoint)"
        hint = " ".join(filter(None, (nearest(name, found), known)))
        raise SettingInvalid(f"no embedder here is called {model!r}", field="embedding_model", hint=hint)
    return found[name]()
