"""What an embedder adds to recall, and the vectors that are made behind the scenes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from memfs import MemoryItem, Origin, Query, Workspace, open_workspace, register_embedder
from memfs.catalog.database import FILE
from memfs.errors import EndpointFailed, MemfsError, SettingInvalid
from memfs.model.item import whole
from memfs.recall.embeddings import EmbeddingIndex, Embeddings, VectorSearch
from memfs.search import embedder as embedders
from memfs.search.embedder import EndpointEmbedder, Vector
from memfs.search.vectors import VectorTable

Opened = Callable[..., Workspace]
CONTEXT = "ContextMemory/configuration/memory_context.yaml"
SYNONYMS = (("automobile", "car", "vehicle"), ("violin", "fiddle"), ("soup", "broth"))


class SynonymEmbedder:
    """Understands a handful of words; a stand-in for a model."""

    def __init__(self) -> None:
        self.name = "synonyms"
        self.dimensions = len(SYNONYMS) + 1
        self.weight = 0.6
        self.least = 0.3
        self.light = False
        self.asked: list[str] = []
        self.fails: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        self.gate.wait(60)
        if self.fails is not None:
            raise self.fails
        self.asked += texts
        return [self._one(text.lower()) for text in texts]

    def _one(self, text: str) -> Vector:
        vector = [float(any(word in text for word in words)) for words in SYNONYMS]
        return embedders.unit([*vector, 0.2])


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> SynonymEmbedder:
    """The one embedder of the test, as ``embedding_model: synonyms``."""
    made = SynonymEmbedder()
    monkeypatch.setattr(embedders, "LOCAL", {"synonyms": lambda: made, "hashing": embedders.HashingEmbedder})
    return made


@pytest.fixture
def workspace(opened: Opened, embedder: SynonymEmbedder) -> Workspace:
    """A workspace that is searched by meaning too."""
    made = opened()
    choose(made, "vector_db", "synonyms")
    return made


def choose(workspace: Workspace, storage: str, model: str) -> None:
    """Write the memory context as a person would."""
    (workspace.root / CONTEXT).write_text(
        "metadata:\n  type: memory\n  name: Test\npolymorphic_config:\n  memory_config:\n"
        f"    storage_type: {storage}\n    embedding_model: {model}\n"
    )


def put(workspace: Workspace, **contents: str) -> None:
    """Store items by id."""
    for name, content in contents.items():
        workspace.store.put(MemoryItem(content, id=name))


def found(workspace: Workspace, query: Query | str) -> list[str]:
    """The ids of the hits, once every item has its vector."""
    meaning = workspace.meaning.current()
    if meaning is not None and meaning.embeddings.problem == "" and not embedder_fails(meaning):
        meaning.embeddings.catch_up()
    return [hit.item.id for hit in workspace.recaller.search(query).hits]


def embedder_fails(meaning: VectorSearch) -> bool:
    """Whether the embedder of the test is to fail."""
    return getattr(meaning.embeddings.embedder, "fails", None) is not None


def at_once(workspace: Workspace, query: str) -> list[str]:
    """The ids of the hits, whatever is lacking."""
    return [hit.item.id for hit in workspace.recaller.search(query).hits]


def meaning_of(workspace: Workspace) -> VectorSearch:
    """Its meaning, which must be asked for."""
    meaning = workspace.meaning.wanted()
    assert meaning is not None
    return meaning


def embeddings_of(workspace: Workspace) -> Embeddings:
    """Its embeddings, when all that is lacking was made."""
    made = meaning_of(workspace).embeddings
    made.settle()
    return made


@pytest.mark.parametrize("engine", ["memory", "whoosh", "sqlite"])
def test_what_shares_no_word_is_found_by_its_meaning(opened: Opened, embedder: SynonymEmbedder, engine: str) -> None:
    """With every engine, folded or fresh, and the reasons say so (M5)."""
    workspace = opened(index__engine=engine)
    choose(workspace, "vector_db", "synonyms")
    put(workspace, motor="A car needs oil", string="Fiddle strings break", filler="Nothing of either")
    if engine != "memory":
        workspace.store.fold()
    put(workspace, fresh="Another vehicle")
    assert embeddings_of(workspace).catch_up() == 4
    hits = workspace.recaller.search("automobile").hits
    assert {hit.item.id for hit in hits} == {"motor", "fresh"}
    assert hits[0].reasons["text"] == pytest.approx(hits[0].reasons["meaning"])


@pytest.mark.parametrize("engine", ["memory", "whoosh", "sqlite"])
def test_where_meaning_is_searched_words_used_alike_are_too(
    opened: Opened, embedder: SynonymEmbedder, engine: str
) -> None:
    """By every engine, also where no vector is near; without a model only words that are shared count."""
    workspace = opened(index__engine=engine)
    put(workspace, film="A film about a fiddle", soup="A bowl of soup")
    if engine != "memory":
        workspace.store.fold()
    assert found(workspace, "movie") == []
    choose(workspace, "vector_db", "hashing")
    assert found(workspace, "movie") == []
    choose(workspace, "vector_db", "synonyms")
    assert found(workspace, "movie") == ["film"]


def test_a_model_that_counts_little_moves_little_of_what_words_found(
    workspace: Workspace, embedder: SynonymEmbedder
) -> None:
    """An item with the words gains or loses half the model's weight of its text score at most; one without is found."""
    embedder.weight = 0.2
    put(workspace, one="repair the automobile", two="repair the roof", three="repair it", motor="A car needs oil")
    assert found(workspace, "repair automobile")[0] == "one"
    reasons = {hit.item.id: hit.reasons for hit in workspace.recaller.search("repair automobile").hits}
    assert "motor" in reasons
    for name in ("one", "two", "three"):
        words = reasons[name]["text"] - reasons[name]["meaning"]
        assert 0 < abs(reasons[name]["meaning"]) <= 0.1 * words + 1e-9


def test_meaning_counts_more_where_a_talk_is_the_question(workspace: Workspace, embedder: SynonymEmbedder) -> None:
    """Of its many words few are what it is about; a light model is asked for each turn."""
    embedder.weight, embedder.light = 0.2, True
    put(workspace, one="repair the automobile", two="repair the roof", three="repair it")
    talk = "Ann: repair a violin\nAssistant: repair it?\nAnn: my automobile"
    embeddings_of(workspace).catch_up()
    hits = workspace.recaller.search(talk).hits
    assert any(abs(hit.reasons["meaning"]) > 0.1 * (hit.reasons["text"] - hit.reasons["meaning"]) for hit in hits)
    assert embedder.asked[-3:] == ["Ann: repair a violin\n", "Assistant: repair it?\n", "Ann: my automobile"]


def test_words_and_meaning_together_decide(workspace: Workspace) -> None:
    """Of two items with the word, the one that means it comes first (M5)."""
    put(workspace, other="repair the roof", one="repair the car", more="repair the fence")
    assert found(workspace, "repair my vehicle") == ["one", "more", "other"]


def test_an_answer_says_that_vectors_are_lacking(workspace: Workspace, embedder: SynonymEmbedder) -> None:
    """The first question after a new memory finds it by its meaning, or says that it is partial and why (M5)."""
    put(workspace, a="A car")
    assert found(workspace, "automobile") == ["a"]
    put(workspace, b="A vehicle")
    embedder.gate.clear()
    answer = workspace.recaller.search("automobile")
    assert answer.partial
    assert "no vector yet" in answer.cut
    embedder.gate.set()
    embeddings_of(workspace)
    answer = workspace.recaller.search("automobile")
    assert ([hit.item.id for hit in answer.hits], answer.partial) == (["a", "b"], False)


def test_a_custom_embedder_is_registered_by_name(opened: Opened) -> None:
    """What is registered is what ``embedding_model`` names; a built-in name, or what makes nothing, is refused (M5)."""
    register_embedder("test-synonyms", SynonymEmbedder)
    workspace = opened()
    choose(workspace, "vector_db", "test-synonyms")
    put(workspace, a="The car would not start")
    meaning = workspace.meaning.wanted()
    assert meaning is not None
    meaning.embeddings.catch_up()
    assert [hit.item.id for hit in workspace.recaller.search("automobile").hits] == ["a"]
    for name, make in (("hashing", SynonymEmbedder), ("mine", None), (" ", SynonymEmbedder)):
        with pytest.raises(SettingInvalid, match="embedding_model"):
            register_embedder(name, make)  # type: ignore[arg-type]


def test_candidates_of_a_pattern_are_looked_for_by_meaning(workspace: Workspace, embedder: SynonymEmbedder) -> None:
    """What means nearly the same, from 0.8 on, is compared with a new memory, too (M5)."""
    put(workspace, a="car in the yard", b="soup in the yard", c="a vehicle")
    meaning = workspace.meaning.wanted()
    assert meaning is not None
    meaning.embeddings.catch_up()
    new = MemoryItem("automobile at the gate", "knowledge", id="d")
    assert meaning.like(new, 10) == ["a", "c"]
    embedder.asked.clear()
    workspace.patterns.learn(new)
    assert embedder.asked == ["automobile at the gate"]


def test_a_process_that_answers_once_embeds_no_item(workspace: Workspace, embedder: SynonymEmbedder) -> None:
    """It asks for the question's vector where items have some, and compares items by those that are kept (D3)."""
    put(workspace, a="A car", b="A vehicle")
    once = EmbeddingIndex(
        workspace.store, workspace.parts.index, lambda: workspace.memory_config, background=False
    ).wanted()
    assert once is not None
    query = Query(text="automobile")
    workspace.store.follow()
    once.prepare([query])
    assert (embedder.asked, once.knows(query), once.behind()) == ([], False, True)
    assert once.like(MemoryItem("automobile", id="a"), 10) == []
    meaning_of(workspace).embeddings.catch_up()
    embedder.asked.clear()
    once.prepare([query])
    assert (embedder.asked, once.knows(query), once.behind()) == (["automobile"], True, False)
    assert once.like(workspace.store.find("a"), 10) == ["b"]
    assert embedder.asked == ["automobile"]


def test_a_command_embeds_a_few_new_items_with_a_light_model(workspace: Workspace, embedder: SynonymEmbedder) -> None:
    """So that what was remembered a moment ago is found by its meaning without a resident; many are left to others."""
    embedder.light = True
    put(workspace, a="A car", b="A soup")
    workspace.store.follow()

    def command() -> VectorSearch:
        index, config = workspace.parts.index, workspace.memory_config
        made = EmbeddingIndex(workspace.store, index, lambda: config, background=False).wanted()
        assert made is not None
        made.prepare([Query(text="automobile")])
        return made

    first = command()
    assert ({*embedder.asked}, first.behind()) == ({"A car", "A soup", "automobile"}, False)
    embedder.asked.clear()
    assert not command().behind()
    assert embedder.asked == ["automobile"]
    put(workspace, **{f"many{number}": f"Violin {number}" for number in range(40)})
    workspace.store.follow()
    assert command().behind()


def test_filters_hold_for_what_meaning_finds(workspace: Workspace) -> None:
    """Type, tags and the like restrict it as they restrict the rest (M5)."""
    put(workspace, one="A car")
    workspace.store.put(MemoryItem("A vehicle", "episodic", id="two", tags=("red",)))
    assert found(workspace, "automobile") == ["one", "two"]
    assert found(workspace, Query(text="automobile", types=frozenset({"episodic"}))) == ["two"]
    assert found(workspace, Query(text="automobile", tags=frozenset({"blue"}))) == []
    assert found(workspace, Query(text="automobile", limit=1)) == ["one"]


def test_what_is_forgotten_or_changed_is_not_found_by_its_old_meaning(workspace: Workspace) -> None:
    """A removed item is gone at once, a changed one has its new vector (M5)."""
    put(workspace, one="A car", two="A vehicle")
    assert found(workspace, "automobile") == ["one", "two"]
    workspace.store.delete("one")
    put(workspace, two="A fiddle")
    embeddings_of(workspace)
    assert found(workspace, "automobile") == []
    assert found(workspace, "violin") == ["two"]
    embeddings = embeddings_of(workspace)
    assert embeddings.status().embedded == embeddings.status().items == 1


def test_a_question_that_means_nothing_known_finds_nothing(workspace: Workspace) -> None:
    """Meaning does not fill up an answer with what is merely the nearest (M5)."""
    put(workspace, one="A car", two="A fiddle")
    assert found(workspace, "automobile violin") == ["one", "two"]
    assert found(workspace, "xylophone") == []


def test_neighbours_in_a_talk_lend_of_their_meaning(workspace: Workspace) -> None:
    """The answer beside the question with a similar meaning gains (M5)."""
    for number, line in enumerate(["Do you own a car?", "Yes, since May", "Lunch was late", "It rained"]):
        origin = Origin(session="s", sequence=number)
        workspace.store.put(MemoryItem(line, "conversation", id=f"l{number}", origin=origin))
    for number in range(3):
        put(workspace, **{f"x{number}": "since then nothing"})
    embeddings_of(workspace).catch_up()
    shares = {
        hit.item.id: hit.reasons["meaning"] for hit in workspace.recaller.search("since when the automobile").hits
    }
    assert shares["l0"] > shares["l1"] > shares["x0"]


def test_several_questions_are_embedded_at_once(workspace: Workspace, embedder: SynonymEmbedder) -> None:
    """And a question that is asked again is not embedded again (M5)."""
    put(workspace, one="A car", two="A fiddle")
    embeddings_of(workspace).catch_up()
    answers = workspace.recaller.search_many(["automobile", "violin"])
    assert {text: [hit.item.id for hit in answer.hits] for text, answer in answers.items()} == {
        "automobile": ["one"],
        "violin": ["two"],
    }
    before = len(embedder.asked)
    assert found(workspace, "automobile") == ["one"]
    assert len(embedder.asked) == before


@pytest.mark.parametrize(
    "error", [EndpointFailed("no answer"), RuntimeError("out of memory")], ids=["its own", "foreign"]
)
def test_words_alone_decide_while_the_embedder_fails(
    workspace: Workspace, embedder: SynonymEmbedder, error: Exception
) -> None:
    """The answer comes all the same, and the problem is named once (M5)."""
    put(workspace, one="A red car", two="A red automobile")
    embedder.fails = error
    assert found(workspace, "automobile") == ["two"]
    assert found(workspace, "automobile") == ["two"]
    failed = [problem for problem in workspace.store.problems() if problem.code == "EndpointFailed"]
    assert len(failed) == 1
    assert str(error.args[0]) in failed[0].message
    with pytest.raises(EndpointFailed):
        embeddings_of(workspace).catch_up()
    embedder.fails = None
    assert embeddings_of(workspace).catch_up() == 2
    assert embeddings_of(workspace).problem == ""


def test_recall_does_not_wait_for_a_slow_embedder_of_items(workspace: Workspace, embedder: SynonymEmbedder) -> None:
    """It uses what is there, and the rest is made meanwhile (M5)."""
    put(workspace, one="A car")
    assert found(workspace, "automobile") == ["one"]
    put(workspace, two="A vehicle", three="one more automobile")
    embedder.gate.clear()
    assert at_once(workspace, "automobile") == ["three", "one"]
    assert meaning_of(workspace).embeddings.status().running
    embedder.gate.set()
    assert embeddings_of(workspace).status().embedded == 3
    assert at_once(workspace, "automobile") == ["three", "one", "two"]


def test_vectors_outlive_the_process_and_unchanged_texts(
    opened: Opened, workspace: Workspace, embedder: SynonymEmbedder
) -> None:
    """Only texts that were never embedded are embedded, whatever else of the item changes (M5)."""
    put(workspace, one="A car", two="A fiddle")
    assert embeddings_of(workspace).catch_up() == 2
    workspace.close()
    again = opened(workspace.root)
    item = again.store.get("one")
    assert item is not None
    again.store.put(item.replace(importance=2.0))
    put(again, three="A car")
    before = list(embedder.asked)
    assert embeddings_of(again).catch_up() == 0
    assert embedder.asked == before
    assert found(again, "automobile") == ["one", "three"]


def test_an_interrupted_embedding_goes_on_where_it_stopped(workspace: Workspace, embedder: SynonymEmbedder) -> None:
    """Each batch is kept at once (M5)."""
    put(workspace, **{f"n{number}": f"car {number}" for number in range(40)})
    embeddings = meaning_of(workspace).embeddings
    seen: list[tuple[int, int]] = []
    original, batches = embedder.embed, [0]

    def third_fails(texts: Sequence[str]) -> Sequence[Vector]:
        batches[0] += 1
        if batches[0] == 3:
            raise EndpointFailed("the line is cut")
        return original(texts)

    embedder.embed = third_fails  # type: ignore[method-assign]
    with pytest.raises(EndpointFailed):
        embeddings.catch_up()
    assert embeddings.status().embedded == 32
    assert embeddings.catch_up(lambda done, total: seen.append((done, total))) == 8
    assert seen == [(8, 8)]
    assert embeddings.status().embedded == 40


def test_the_model_may_change_while_the_workspace_is_open(workspace: Workspace, embedder: SynonymEmbedder) -> None:
    """The next recall uses the new one; the old one's vectors stay for a while; off is off (M5)."""
    put(workspace, one="A car", two="postgresql tuning")
    assert found(workspace, "automobile") == ["one"]
    choose(workspace, "vector_db", "hashing")
    assert found(workspace, "automobile") == []
    assert found(workspace, "postgersql tunign")[:1] == ["two"]
    assert embeddings_of(workspace).status().model == "hashing-512"
    choose(workspace, "file_based", "synonyms")
    assert workspace.meaning.current() is None
    choose(workspace, "vector_db", "synonyms")
    embedder.asked.clear()
    assert found(workspace, "automobile") == ["one"]
    assert embedder.asked == ["automobile"]


def test_an_unknown_embedder_is_named_and_words_decide(workspace: Workspace) -> None:
    """The seed's own example names a model of a service: without one recall works on (M5)."""
    put(workspace, one="An automobile")
    choose(workspace, "vector_db", "text-embedding-ada-002")
    assert found(workspace, "automobile") == ["one"]
    with pytest.raises(SettingInvalid, match="ada-002"):
        workspace.meaning.wanted()
    assert [problem.code for problem in workspace.store.problems()] == ["SettingInvalid"]


def test_without_a_choice_nothing_is_embedded(opened: Opened) -> None:
    """The default needs no model, and keeps no vectors (M5)."""
    workspace = opened()
    put(workspace, one="An automobile")
    assert workspace.meaning.wanted() is None
    assert found(workspace, "automobile") == ["one"]
    assert not (workspace.parts.index.folder / FILE).exists()


def test_the_offline_default_needs_nothing_installed(tmp_path: Path) -> None:
    """``vector_db`` with the default model finds by spelling and words, and survives reopening (M5)."""
    memory = {"storage_type": "vector_db"}
    settings = {"index.engine": "memory", "history.commit": "manual"}
    with open_workspace(tmp_path / "w", create=True, watch=False, settings=settings, memory=memory) as workspace:
        put(workspace, one="postgresql database tuning", two="tomato soup")
        assert found(workspace, "postgersql databse")[:1] == ["one"]
        assert embeddings_of(workspace).status().model == "hashing-512"


def test_erasing_an_item_takes_its_vectors_too(workspace: Workspace) -> None:
    """What was embedded could be guessed from them (M5)."""
    put(workspace, one="A car", two="A fiddle")
    assert embeddings_of(workspace).catch_up() == 2
    workspace.store.flush()
    assert workspace.eraser.erase("one").proof.hits == ()
    assert found(workspace, "violin") == ["two"]


def test_the_text_of_an_item_is_what_it_says() -> None:
    """Title and content; circumstances are not part of its meaning (M5)."""
    assert whole(MemoryItem("content", title="Title", tags=("tag",))) == "Title\ncontent"
    assert whole(MemoryItem("content")) == "content"
    assert whole(MemoryItem("", title="Title")) == "Title"


def test_a_problem_behind_the_scenes_does_not_end_the_process(workspace: Workspace, embedder: SynonymEmbedder) -> None:
    """It is reported among the store's problems, and tried again later (M5)."""
    embedder.fails = EndpointFailed("asleep")
    put(workspace, one="An automobile")
    embeddings = meaning_of(workspace).embeddings
    embeddings.keep_up(5)
    assert embeddings.problem == "asleep"
    assert any(
        isinstance(problem.message, str) and "asleep" in problem.message for problem in workspace.store.problems()
    )
    assert embeddings.status().problem == "asleep"


def test_vectors_that_cannot_be_read_cost_no_answer(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words decide, and the problem is reported (M5)."""
    put(workspace, one="An automobile", two="A car")
    assert found(workspace, "automobile") == ["one", "two"]

    def broken(*_: object) -> None:
        raise MemfsError("the disk fails")

    monkeypatch.setattr(meaning_of(workspace).embeddings.vectors, "similarities", broken)
    assert found(workspace, "automobile") == ["one"]
    assert [problem.message for problem in workspace.store.problems()] == ["the disk fails"]


def test_a_service_finds_by_meaning_where_the_context_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTP, with the key from the environment; while it is away words decide (M5)."""
    pytest.importorskip("httpx")
    from kit.model_server import ModelServer, Request, embeddings_reply

    monkeypatch.setenv("MEMFS_EMBEDDING_KEY", "k-123")
    embedder = SynonymEmbedder()
    settings = {"index.engine": "memory", "history.commit": "manual"}
    with ModelServer(lambda asked: embeddings_reply(embedder.embed(asked.body["input"]))) as server:
        memory = {"storage_type": "vector_db", "embedding_model": "some-model", "embedding_endpoint": server.url}
        with open_workspace(tmp_path / "w", create=True, watch=False, settings=settings, memory=memory) as workspace:
            put(workspace, one="A car", two="A fiddle")
            assert found(workspace, "automobile") == ["one"]
            first: Request = server.asked[0]
            assert (first.body["model"], first.headers["authorization"]) == ("some-model", "Bearer k-123")
            assert sorted(first.body["input"]) == ["A car", "A fiddle"]
    with open_workspace(tmp_path / "w", watch=False, settings=settings, memory=memory) as workspace:
        assert at_once(workspace, "car") == ["one"]
        assert "EndpointFailed" in [problem.code for problem in workspace.store.problems()]


def test_two_processes_may_embed_at_once(opened: Opened, workspace: Workspace, embedder: SynonymEmbedder) -> None:
    """Neither waits for the other for long, and every item has its vector in the end (M5)."""
    put(workspace, **{f"n{number}": f"car {number}" for number in range(40)})
    other = opened(workspace.root)
    other.store.follow()
    made: list[int] = []
    threads = [
        threading.Thread(target=lambda one=one: made.append(meaning_of(one).embeddings.catch_up()))
        for one in (workspace, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 40 <= sum(made) <= 80
    for one in (workspace, other):
        status = meaning_of(one).embeddings.status()
        assert (status.embedded, status.items) == (40, 40)
        assert len(at_once(one, "automobile")) == 10


def test_threads_that_ask_first_share_one_embedder(
    workspace: Workspace, embedder: SynonymEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of threads that ask at once none makes an embedder of its own, whose thread and file nobody would close (M5)."""
    made: list[None] = []

    def slowly() -> SynonymEmbedder:
        made.append(None)
        time.sleep(0.05)
        return embedder

    monkeypatch.setitem(embedders.LOCAL, "synonyms", slowly)
    meaning, begin = workspace.meaning, threading.Barrier(4)
    got: list[VectorSearch | None] = []

    def ask() -> None:
        begin.wait(60)
        got.append(meaning.wanted())

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert (len(made), len(got), len(set(map(id, got)))) == (1, 4, 1)


def test_a_process_that_asks_little_reads_the_vectors_in_one_piece(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the index's base, as they are since: one that changed lacks its own, one that is gone is not found."""
    workspace = opened(index__engine="sqlite")
    kept = [workspace.store.put(MemoryItem(text)) for text in ("a blue truck", "a red violin", "tomato soup")]
    workspace.parts.index.fold()

    def brief() -> Embeddings:
        table = VectorTable(tmp_path / "vectors", "m")
        return Embeddings(
            embedders.HashingEmbedder(), table, workspace.parts.index, workspace.store.read, print, brief=True
        )

    first = brief()
    assert first.catch_up() == 3
    vectors = first.vectors.get_all()
    first.close()
    looked_up: list[str] = []
    found = VectorTable.found
    monkeypatch.setattr(
        VectorTable, "found", lambda self, wanted, **of: looked_up.extend(wanted) or found(self, wanted, **of)
    )
    assert brief().vectors.get_all() == vectors
    assert looked_up == []
    workspace.store.put(kept[0].replace(content="a green truck"))
    workspace.store.delete(kept[1].id)
    later = brief()
    assert sorted(later.vectors.get_all()) == [kept[2].id]
    assert len(looked_up) == 1
    assert later.catch_up() == 1
    workspace.parts.index.fold()
    assert sorted(brief().vectors.get_all()) == sorted((kept[0].id, kept[2].id))


def test_a_secret_is_not_sent_to_a_service(workspace: Workspace) -> None:
    """What holds a secret, an item allowed to or a question, does not leave this machine (B6)."""
    secret = "ghp_" + "a8F3kQ9zLm2XvT7bR4nW6yC1dE5hJ0pS3uVt"
    sent: list[str] = []

    class Listening:
        def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
            sent.extend(texts)
            return [[1.0, 2.0] for _ in texts]

    workspace.store.put(MemoryItem(f"the key is {secret}"), allow_secret="it is no real one")
    made = Embeddings(
        EndpointEmbedder(Listening(), "m"), VectorTable(None, "m"), workspace.parts.index, workspace.store.read, print
    )
    assert made.catch_up() == workspace.store.count()
    assert list(made.embed([f"what is {secret}"])) == [[0.0, 0.0]]
    assert sent
    assert secret not in "".join(sent)
