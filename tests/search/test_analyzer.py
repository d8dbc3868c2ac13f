"""The analyzer: which terms a text has."""

from __future__ import annotations

import json
import logging
import pydoc
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfs.model import MemoryItem, Origin
from memfs.search import analyzer
from memfs.search import terms as question
from memfs.search.analyzer import MOST_PASSAGES, passages, richest_sentence, terms, weighted_terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("committing commits committed", ["commit"] * 3),
        ("running planned logging", ["run", "plan", "log"]),
        ("The Crème Brûlée is on the Straße in Łódź", ["creme", "brule", "strass", "lodz"]),
        ("ﬁne ＡＢＣ ①", ["fine", "abc", "1"]),
        ("Ёлка и ёж, который", ["елк", "еж"]),
        ("snake_case_name", ["snakecasenam", "snake", "case", "name"]),
        ("getUserName", ["getusernam", "get", "user", "name"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("MAX_RETRIES __init__", ["maxretri", "max", "retri", "init"]),
        ("v10 2026-03-01 a1b2c3d", ["v10", "2026", "03", "01", "a1b2c3d"]),
        ("数据库连接", ["数据", "据库", "库连", "连接"]),
        ("猫", ["猫"]),
        ("用PostgreSQL", ["用", "postgresql", "postgr", "sql"]),
        ("हिन्दी", ["हिन्द"]),
        ("What did we decide about the port?", ["decid", "port"]),
        ("don't John's", ["john"]),
        ("Who is it?", ["who", "is", "it"]),
        ("", []),
        ("?! \0 \ud800 --", []),
    ],
)
def test_terms_of_a_text(text: str, expected: list[str]) -> None:
    """Stems, folded case and accents, parts of names, pairs of unspaced scripts, no stop words but never to nothing."""
    assert terms(text) == expected


@settings(deadline=None)
@given(st.text())
def test_terms_are_plain_for_every_engine(text: str) -> None:
    """Whatever the text, a term is not empty, has no space, quote or ASCII punctuation, and can be encoded."""
    for term in terms(text):
        assert term
        assert term.encode()
        assert all(character.isalnum() or not character.isascii() for character in term)
        assert not any(character.isspace() for character in term)


@settings(deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=40))
def test_case_does_not_matter_within_words(text: str) -> None:
    """Lower-case text has terms in common with itself in upper case, unless it has none at all."""
    lowered = text.casefold()
    if all(character.isascii() for character in lowered) and "_" not in lowered:
        assert terms(lowered) == terms(lowered.upper())


@settings(deadline=None)
@given(st.text(min_size=1))
def test_an_item_is_found_by_its_own_text(text: str) -> None:
    """Every term of a query for an item's own content is a term of the item."""
    ((weights, length),) = weighted_terms(MemoryItem(content=text))
    assert set(question.weights(text)) <= set(weights)
    assert length >= len(weights)


def test_single_characters_of_unspaced_scripts_can_be_asked_for() -> None:
    """Documents hold single characters as well as pairs, so that a query of one character finds them."""
    ((weights, _),) = weighted_terms(MemoryItem(content="数据库"))
    assert set(question.weights("库")) <= set(weights)


def test_fields_have_weights() -> None:
    """Title 2; content, tags and speaker 1; values of metadata, context and data and the agent's name 0.5."""
    ((weights, length),) = weighted_terms(
        MemoryItem(
            content="alpha beta",
            title="alpha",
            tags=("gamma",),
            metadata={"unsearched": ["delta", {"deeper": 5432}], "yes": True, "none": None},
            context={"branch": "epsilon"},
            data={"steps": [{"text": "zeta"}]},
            origin=Origin(speaker="Ada", agent="scout", session="hidden"),
        )
    )
    whole = {"alpha": 3.0, "beta": 1.0, "gamma": 1.0, "ada": 1.0}
    half = dict.fromkeys(["delta", "5432", "epsilon", "zeta", "scout"], 0.5)
    assert (weights, length) == (whole | half, 10)


def test_long_queries_are_bounded() -> None:
    """A query of thousands of words asks for its first 128 distinct terms; a word of any length is cut the same way."""
    many = " ".join(f"w{number} w0" for number in range(5000))
    assert list(question.weights(many)) == [f"w{number}" for number in range(128)]
    assert terms("x" * 100_000) == ["x" * 64]


def test_repeats_are_asked_once() -> None:
    """A repeated word in a query does not count twice."""
    assert list(question.weights("errors error ERROR pool")) == ["error", "pool"]


WORDS = "running committed generously skies dying evening internal geologist universities organization relational past"


def test_stems_do_not_depend_on_pystemmer() -> None:
    """With PyStemmer installed or not, terms are the same; the index's identity says which it was."""
    script = (
        "import sys\n"
        "if sys.argv[1] == 'without': sys.modules['Stemmer'] = None\n"
        "from memfs.search import analyzer\n"
        "print(analyzer.identity())\n"
        "print(analyzer.terms(sys.stdin.read()))\n"
    )
    vocabulary = WORDS + " ".join(pydoc.render_doc(module) for module in (json, logging, subprocess))
    with_it, without = (
        subprocess.run(
            [sys.executable, "-c", script, way], input=vocabulary, capture_output=True, text=True, check=True
        ).stdout.split("\n", 1)
        for way in ("with", "without")
    )
    assert with_it[1] == without[1]
    assert len(with_it[1]) > 10_000
    assert "compiled" not in without[0]
    assert ("compiled" in with_it[0]) is (with_it[0] != without[0])


def test_identity_changes_with_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another analyzer version has another identity."""
    before = analyzer.identity()
    monkeypatch.setattr(analyzer, "VERSION", analyzer.VERSION + 1)
    analyzer.identity.cache_clear()
    after = analyzer.identity()
    analyzer.identity.cache_clear()
    assert before != after


@given(st.text(alphabet="ab .\n-:?\u3002\u00fc", max_size=30), st.integers(1, 3000))
def test_passages_are_the_whole_text_in_order(piece: str, times: int) -> None:
    """Passages follow each other without a gap; there are few, and none is empty."""
    content = piece * times
    found = passages(content)
    assert "".join(content[start:end] for start, end in found) == content
    assert 1 <= len(found) <= MOST_PASSAGES
    assert all(start < end for start, end in found) or not content


def test_passages_are_cut_between_sentences() -> None:
    """A short text is one passage; a long one is cut after sentences, and hard where there are none."""
    assert passages("Short. And simple.") == [(0, 18)]
    sentence = "This is one sentence of about fifty characters. "
    found = passages(sentence * 30)
    assert len(found) == 4
    assert all(200 <= end - start <= 600 and not end % len(sentence) for start, end in found)
    assert max(end - start for start, end in passages("x" * 5000)) <= 600


def test_only_the_first_passage_holds_what_is_not_content() -> None:
    """Title, tags and speaker count in every passage; values of metadata, context and data only in the first one."""
    first, *others = weighted_terms(
        MemoryItem("Some words. " * 100, title="alpha", tags=("beta",), metadata={"of": "gamma"})
    )
    assert {"alpha", "beta", "gamma"} <= set(first[0])
    assert all({"alpha", "beta"} <= set(weights) and "gamma" not in weights for weights, _ in others)
    assert others


def test_the_richest_sentence_holds_most_of_what_is_asked() -> None:
    """It is the one whose terms are worth most together; the first of equal ones, and the beginning where none fits."""
    text = "The pool is full. The zebra drinks. A zebra and its pool."
    assert text[richest_sentence(text, {"zebra": 1.0, "pool": 1.0}) :] == "A zebra and its pool."
    assert text[richest_sentence(text, {"zebra": 1.0}) :].startswith("The zebra")
    assert richest_sentence(text, {"giraff": 1.0}) == 0


@pytest.mark.parametrize(
    ("code", "text", "asked"),
    [
        ("de", "Die Verbindungen zur Datenbank werden gekündigt", "Welche Verbindung zu den Datenbanken?"),
        ("fr", "Les connexions au réseau sont fermées", "Quelle connexion à ce réseau ?"),
        ("es", "Las conexiones de la base de datos se cierran solas", "¿Cuándo se cierra la conexión?"),
        ("pt", "As conexões do banco de dados não são fechadas", "Qual conexão não foi fechada?"),
        ("it", "Le connessioni della rete sono chiuse", "Quale connessione è della rete?"),
        ("nl", "De verbindingen met de server worden gesloten", "Welke verbinding wordt gesloten?"),
        ("sv", "Anslutningarna till servern är stängda", "Vilken anslutning är inte stängd?"),
        ("fi", "Palvelimien asetukset ovat hakemistossa", "Missä palvelimen asetuksen?"),
        ("pl", "Połączenia z serwerem są zamknięte", "Które połączenie jest zamknięte?"),
        ("tr", "Ayarları bu dosyalar için değil", "Hangi ayar gibi dosya?"),
        ("tr", "Bu veritabanları için yedek var", "Hangi veritabanı gibi?"),
        ("ru", "Подключения к серверу закрыты", "Какое подключение?"),
        ("el", "Οι συνδέσεις με τον διακομιστή είναι κλειστές", "Ποια σύνδεση;"),
    ],
)
def test_an_inflected_word_is_found_in_its_language(code: str, text: str, asked: str) -> None:
    """A question shares a term with a text in its language whose words have another form."""
    assert code in analyzer.languages(text) + tuple(map(analyzer.language_of, text.lower().split()))
    ((held, _),) = weighted_terms(MemoryItem(content=text))
    assert weights_above_half(asked) & set(held) - {*text.lower().split()}


def weights_above_half(text: str) -> set[str]:
    return {term for term, worth in question.weights(text).items() if worth > 0.5}


def test_a_word_of_another_language_keeps_its_english_term() -> None:
    """Borrowed words, names and words without a sentence around them are found as before, at a quarter of the worth."""
    german = "Wir haben das caching der Anfragen und die Verbindungen für Beyoncé eingebaut"
    ((held, _),) = weighted_terms(MemoryItem(content=german))
    assert {"cach", "caching", "verbind", "verbindungen", "beyonc"} <= set(held)
    assert set(terms("caching")) | set(terms("Verbindungen")) <= set(held)
    asked = question.weights("Welche Verbindungen gibt es?")
    assert asked == {"verbind": 1.0, "verbindungen": 0.25}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Kim fixed bug 105", "Kim"),
        ("Mia owns billing", "mia"),
        ("ES cluster upgraded", "ES"),
        ("Elle wrote docs", "elle"),
    ],
)
def test_a_name_that_is_a_stop_word_elsewhere_is_found(text: str, name: str) -> None:
    """A short text that is taken for another language for one of its words still has that word as a term."""
    ((weights, _),) = weighted_terms(MemoryItem(text, "semantic"))
    assert {*terms(f"where is {name}")} <= weights.keys()


def test_english_stays_english() -> None:
    """Names, foreign titles and accents within English text show no other language; code and lists do neither."""
    for text in (
        "Los Angeles",
        "We met in a café near La Défense, and Müller said no.",
        "The movie Das Boot is about a submarine in the war.",
        "I need to go, take care!",
        "postgres connection pool",
        "SELECT a, e FROM da WHERE la = 1;",
        "",
    ):
        assert analyzer.languages(text) == (), text


def test_no_stemmer_but_the_english_one_is_made_for_english() -> None:
    """A process that meets English texts only has one stemmer; another one is made when its language is met."""
    analyzer._stemmer.cache_clear()
    terms("the unheardofness of the unheardof pools is closed")
    assert analyzer._stemmer.cache_info().currsize == 1
    terms("die unerhörten Verbindungen der Datenbanken sind geschlossen")
    assert analyzer._stemmer.cache_info().currsize == 2
