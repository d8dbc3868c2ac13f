"""Secrets are found in texts, items and files; names, digests and code are not taken for them (B6, faults row 19)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from kit import secret_samples
from memfs.errors import ContentError, MemfsError, SchemaInvalid, SecretDetected
from memfs.format import secrets
from memfs.model import Link, MemoryItem, Origin

PLACE = "ContextMemory/memories/semantic/2026-03/x.yaml"
DOCUMENT = "ContextMemory/context/x.yaml"
PLANTED = secret_samples.planted()
CLEAN = secret_samples.clean()
KEY = secret_samples.aws_key()
MEBIBYTE = 1 << 20
GENEROUS = 20.0
HOSTILE = [
    *(
        "eyJ",
        "eyJaaaaaaa.",
        "eyJaaaaaaa.eyJ",
        "sk-",
        "sk-ant-",
        "ghp_",
        "AKIA",
        "A",
        "a1",
        "-",
        "xoxb-",
        ".",
        "M.",
        "sig=%",
    ),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "\\n",
        "token",
        "token token=",
        "password: ",
        "password'''   ",
        "secret_",
    ),
    *(
        "api_key",
        "key",
        "key-",
        "x=",
        "AccountKey=",
        "--password ",
        "curl -u a ",
        "curl ",
        "machine a login b ",
        "machine",
    ),
    *("://a:", "://", "bearer ", "Authorization: Basic ", '"auth": "', "\u0130", "\u200b", " "),
]


def rules(text: str) -> list[str]:
    """The rules that find something in a text."""
    return [finding.rule for finding in secrets.find(text)]


# -- the corpus ---------------------------------------------------------------------------------------------------
def test_the_corpus_is_large_enough_to_mean_something() -> None:
    """At least 80 secrets of 14 kinds and 200 clean texts are tried (B6)."""
    assert len(PLANTED) >= 80
    assert len({rule for rule, _ in PLANTED}) >= 14
    assert len(CLEAN) >= 200


@pytest.mark.parametrize("number", range(len(PLANTED)))
def test_every_planted_secret_is_found(number: int) -> None:
    """Alone, in a sentence, in a YAML file and in a JSON file (faults row 19)."""
    rule, secret = PLANTED[number]
    assert rule in rules(secret)
    assert rule in rules(f"Yesterday it was\n{secret}\nand that was that.")
    yaml = "content: |\n" + "".join(f"  {line}\n" for line in f"It was\n{secret}\n".splitlines())
    with pytest.raises(SecretDetected):
        secrets.refuse_file(yaml.encode(), PLACE)
    document = json.dumps({"content": f"It was {secret} then"}, indent=2)
    with pytest.raises(SecretDetected):
        secrets.refuse_file(document.encode(), PLACE.replace(".yaml", ".json"))


@pytest.mark.parametrize("before", ["GET /callback?id_token=", "session=", "x: ", '{"a":"', "(", "a=b&c="])
def test_a_secret_is_found_wherever_a_value_is(before: str) -> None:
    """Errors quote URLs, cookies and settings (faults row 19)."""
    rows = secret_samples.row_19().items()
    assert [rule for rule, secret in rows if not rules(f"{before}{secret}")] == []


@pytest.mark.parametrize("number", range(len(PLANTED)))
def test_the_error_names_rule_and_line_and_never_the_value(number: int) -> None:
    """Not even six characters in a row of a secret are in its error (faults row 19)."""
    rule, secret = PLANTED[number]
    with pytest.raises(SecretDetected) as caught:
        secrets.refuse_item(MemoryItem(f"one\ntwo\n{secret}\nfour"))
    error = caught.value
    assert error.field == "content"
    assert f"rule {rule} at line " in error.message
    message = f"{error} {error!r}"
    known = f"one two four {secrets.find.__doc__} password token passphrase Bearer Authorization machine login"
    pieces = [secret[at : at + 6] for at in range(len(secret) - 5)]
    values = [piece for piece in pieces if any(map(str.isdigit, piece)) and piece not in known]
    assert [piece for piece in values if piece in message] == []


@pytest.mark.parametrize(
    "before",
    [
        *("the password is ", "Passwort: ", "Kennwort = ", "Mot de passe : ", "The root password of staging is now "),
        *("Das Passwort für den Zugang zur Datenbank lautet ", "Le mot de passe de la base est ", "密码：", "密码是"),
        *("La contraseña del servidor es ", "A senha do servidor é ", "La password del server è ", "パスワードは"),
        *(
            "Het wachtwoord voor staging is ",
            "Пароль от сервера: ",
            "The root password was changed to ",
            "password of staging: ",
        ),
    ],
)
@pytest.mark.parametrize("value", ["correct7horse7battery", "S3cr3t!Pa55w0rd"])
def test_a_password_in_prose_is_found_in_every_language(before: str, value: str) -> None:
    """What a person would say aloud is refused, too, where the value looks like a password (B6)."""
    assert rules(f"As agreed:\n{before}{value}") == ["assigned-secret"]


def test_no_clean_text_is_taken_for_a_secret() -> None:
    """Prose, code, URLs that contain sk-, stand-ins, digests and ids pass (B6)."""
    assert [(text, rules(text)) for text in CLEAN if rules(text)] == []


def test_no_clean_text_is_worth_a_warning() -> None:
    """Digests and names are not even called suspicious."""
    assert [text for text in CLEAN if secrets.find_likely(text)] == []


def test_a_table_without_rules_fails_the_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """The corpus catches a detector that detects nothing, or only half."""
    monkeypatch.setattr(secrets, "_BY_BEGINNING", {})
    missed = [rule for rule, secret in PLANTED if rule not in rules(secret)]
    assert len(missed) > len(PLANTED) / 2
    monkeypatch.setattr(secrets, "_INSIDE_CALLS", [])
    monkeypatch.setattr(secrets, "_CONTEXT_CALLS", [])
    assert [rule for rule, secret in PLANTED if rules(secret)] == []


# -- where they hide ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("field", "item"),
    [
        ("content", MemoryItem(f"a\nb {KEY}")),
        ("title", MemoryItem("x", title=KEY)),
        ("id", MemoryItem("x", id=KEY)),
        ("tags", MemoryItem("x", tags=("a", KEY))),
        ("type", MemoryItem("x", KEY)),
        ("status", MemoryItem("x", status=KEY)),
        ("supersedes", MemoryItem("x", supersedes=(KEY,))),
        ("links", MemoryItem("x", links=(Link(to=KEY),))),
        ("origin.agent", MemoryItem("x", origin=Origin(agent=KEY))),
        ("origin.session", MemoryItem("x", origin=Origin(session=KEY))),
        ("context.branch", MemoryItem("x", context={"branch": KEY})),
        ("metadata.a.b", MemoryItem("x", metadata={"a": {"b": [1, KEY]}})),
        ("metadata", MemoryItem("x", metadata={KEY: 1})),
        ("metadata", MemoryItem("x", metadata={KEY: "text"})),
        ("data.password", MemoryItem("x", data={"password": "Tr0ub4dor" + "&3"})),
    ],
)
def test_every_field_of_an_item_is_looked_at(field: str, item: MemoryItem) -> None:
    """Keys of mappings, too; the error names the field."""
    with pytest.raises(SecretDetected) as caught:
        secrets.refuse_item(item)
    assert caught.value.field == field
    assert KEY not in str(caught.value)


def test_two_fields_do_not_make_a_secret_together() -> None:
    """A content that ends in such a word says nothing of the title after it."""
    secrets.refuse_item(MemoryItem("Enter your password:", title="abc12345 is the build"))


@pytest.mark.parametrize(
    ("data", "path", "line"),
    [
        (f"content: a\n# old: {KEY}\n".encode(), PLACE, 2),
        (f"content: a\r\ntags: [{KEY}]\r\n".encode(), PLACE, 2),
        (f"content: a\n# old: {KEY}\n".encode("utf-16"), PLACE, 2),
        (f"content: 'a\n  {KEY[:4]}\u200b{KEY[4:]}'\n".encode(), PLACE, 2),
        (f"content: \xff {KEY}".encode("latin-1"), PLACE, 1),
        (f'content: "\\x41{KEY[1:]}"\n'.encode(), PLACE, 1),
        (f'{{"a": {{"b": "\\u0041{KEY[1:]}"}}}}'.encode(), DOCUMENT.replace("yaml", "json"), 1),
        (f"[index]\n# {KEY}\n".encode(), "memfs.toml", 2),
        (b"content: a\n", f"ContextMemory/memories/semantic/{KEY}.yaml", 1),
    ],
    ids=["comment", "crlf", "utf-16", "zero-width", "no-utf-8", "yaml-escape", "json-escape", "settings", "name"],
)
def test_every_byte_of_a_file_is_looked_at(data: bytes, path: str, line: int) -> None:
    """Comments, escapes, other encodings, unseen characters and the file's name hide nothing."""
    with pytest.raises(SecretDetected) as caught:
        secrets.refuse_file(data, path)
    assert (caught.value.path, caught.value.line) == (path, line)


def test_a_long_word_without_order_is_only_worth_a_warning() -> None:
    """What no rule knows is not refused; what is named as a digest is not even suspicious (B6)."""
    word = "q7Zr" + "T2mK9xWb" + "4LpVn8Ys3Dc6"
    assert rules(f"It said {word} and no more.") == []
    assert [finding.line for finding in secrets.find_likely(f"a\nIt said {word} and no more.")] == [2]
    assert secrets.find_likely(f"integrity: sha512-{word}") == []


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_grows_with_the_text_and_no_faster(piece: str, scale: Callable[[int, int], int]) -> None:
    """A mebibyte made to make a rule backtrack is done in seconds (faults row 16)."""
    heads = ("", "-" * 5 + "BEGIN RSA PRIVATE KEY" + "-" * 5, "sk-ant-", "password = ", "eyJaaaaaaa.eyJ")
    for head in heads:
        text = head + piece * (scale(MEBIBYTE // 4, MEBIBYTE) // len(piece) // len(heads))
        began = time.process_time()
        secrets.find(text)
        secrets.find_likely(text)
        assert time.process_time() - began < GENEROUS


def test_at_most_twenty_places_are_named() -> None:
    """A file full of keys is not answered with as many errors."""
    assert len(secrets.find("\n".join([KEY] * 1000))) == 20


# -- letting one stay ---------------------------------------------------------------------------------------------
def test_a_reason_lets_a_secret_stay_and_is_recorded() -> None:
    """The reason goes into the item's metadata; an item that needs none stays as it was (B6)."""
    item, reason = secrets.allowed(MemoryItem(KEY, metadata={"a": 1}), "Amazon's own example")
    assert (item.metadata, reason) == ({"a": 1, "secret_allowed": "Amazon's own example"}, "Amazon's own example")
    assert secrets.allowed(item) == (item, "Amazon's own example")
    harmless = MemoryItem("harmless")
    assert secrets.allowed(harmless, "no need") == (harmless, "")


@pytest.mark.parametrize("reason", ["two\nlines", "x" * 201, f"it is {KEY}"], ids=["lines", "long", "secret"])
def test_a_reason_is_one_short_line_without_a_secret(reason: str) -> None:
    """It goes into the commit's message, where nothing can take it back."""
    with pytest.raises(ContentError) as caught:
        secrets.allowed(MemoryItem(KEY), reason)
    assert KEY not in str(caught.value)
    with pytest.raises(ContentError):
        secrets.allowed(MemoryItem("harmless", metadata={"secret_allowed": reason}))


def test_a_file_gives_its_reason_where_a_person_can_see_it() -> None:
    """An item below metadata, another file in a comment; a content that only quotes such a line allows nothing."""
    assert secrets.refuse_file(f"content: {KEY}\nmetadata:\n  secret_allowed: it is public\n".encode(), PLACE)
    assert secrets.refuse_file(f"# secret_allowed: it is public\na: {KEY}\n".encode(), DOCUMENT) == "it is public"
    document = json.dumps({"secret_allowed": "it is public", "a": KEY})
    assert secrets.refuse_file(document.encode(), DOCUMENT.replace("yaml", "json")) == "it is public"
    assert secrets.refuse_file(b"content: harmless\nmetadata: {secret_allowed: why}\n", PLACE) == ""
    for quoted in (f"content: |\n  # secret_allowed: so they say\n  {KEY}\n", f"# secret_allowed: x\ncontent: {KEY}\n"):
        with pytest.raises(SecretDetected):
            secrets.refuse_file(quoted.encode(), PLACE)
    for wrong in ("7", "''", "[a]", f"'{KEY}'"):
        with pytest.raises(SecretDetected):
            secrets.refuse_file(f"content: {KEY}\nmetadata:\n  secret_allowed: {wrong}\n".encode(), PLACE)


# -- other errors -------------------------------------------------------------------------------------------------
def test_another_error_does_not_quote_a_secret() -> None:
    """An error that shows the value it complains of is reported without it."""
    data = f"importance: {KEY}\n".encode()
    error: MemfsError = SchemaInvalid(f"'{KEY}' is not a number", path=PLACE, line=1, field="importance")
    error.__cause__ = ValueError(KEY)
    secrets.conceal(error, data)
    assert KEY not in f"{error} {error!r} {error.__cause__}"
    assert error.line == 1
    other = SchemaInvalid("11 is greater than 10", path=PLACE, field="importance")
    assert secrets.conceal(other, data).message == "11 is greater than 10"
