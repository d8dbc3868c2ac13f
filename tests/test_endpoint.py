"""The client of OpenAI-compatible services, against a real HTTP server that behaves and misbehaves (C3, M5)."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kit.model_server import ModelReply, ModelServer, Request, chat_reply, embeddings_reply
from kit.patience import LONG
from memfs.config import KEY_VARIABLES, load
from memfs.config_names import EMBEDDING_KEY, REVIEW_KEY
from memfs.endpoint import AnswerUnusable, Endpoint, chat_answer, key_of
from memfs.errors import EndpointFailed, ExtraMissing, SettingInvalid

SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
KEY = "sk-test-0123456789abcdef"
GOOD = chat_reply({"score": 7})


@pytest.fixture
def serving() -> Iterator[Callable[..., ModelServer]]:
    """Start servers that end with the test."""
    with ExitStack() as stack:
        yield lambda *answers: stack.enter_context(ModelServer(*answers))


@pytest.fixture
def endpoint_to() -> Callable[..., Endpoint]:
    """Make endpoints."""

    def make(server: ModelServer | str, **options: Any) -> Endpoint:
        return Endpoint(server if isinstance(server, str) else server.url, **options)

    return make


Serving = Callable[..., ModelServer]
EndpointTo = Callable[..., Endpoint]


def score(endpoint: Endpoint, **options: Any) -> dict[str, Any]:
    """One chat call."""
    return endpoint.chat_json("small", "You judge.", "Judge this.", SCHEMA, **options)


def failure(endpoint: Endpoint, **options: Any) -> str:
    """The error of one chat call."""
    with pytest.raises(EndpointFailed) as caught:
        score(endpoint, **options)
    assert KEY not in str(caught.value)
    return str(caught.value)


# -- speaking the protocol ----------------------------------------------------------------------------------------
def test_an_object_is_asked_for_as_the_protocol_has_it(serving: Serving, endpoint_to: EndpointTo) -> None:
    """Path, key, model, messages and schema arrive; the answer's object comes back (C3)."""
    server = serving(GOOD)
    assert score(endpoint_to(server, key=KEY)) == {"score": 7}
    (asked,) = server.asked
    assert (asked.path, asked.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert asked.headers["accept-encoding"] == "identity"
    assert asked.body["model"] == "small"
    assert [message["role"] for message in asked.body["messages"]] == ["system", "user"]
    assert asked.body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert "JSON" in asked.body["messages"][0]["content"]


def test_without_key_and_model_neither_is_sent(serving: Serving, endpoint_to: EndpointTo) -> None:
    """Local services need no key, and choose their model themselves."""
    server = serving(GOOD)
    endpoint_to(server).chat_json("", "You judge.", "Judge this.", SCHEMA)
    assert "authorization" not in server.asked[0].headers
    assert "model" not in server.asked[0].body


def test_vectors_come_back_in_the_order_of_the_texts(serving: Serving, endpoint_to: EndpointTo) -> None:
    """A service may answer in any order and numbers its vectors (M5)."""
    rows = [{"index": 1, "embedding": [0.0, 1.0]}, {"index": 0, "embedding": [1, 0]}]
    server = serving(ModelReply(body={"data": rows}))
    assert endpoint_to(server).embed("tiny", ["one", ""]) == [[1.0, 0.0], [0.0, 1.0]]
    assert (server.asked[0].path, server.asked[0].body["input"]) == ("/v1/embeddings", ["one", " "])


def test_no_texts_need_no_request(serving: Serving, endpoint_to: EndpointTo) -> None:
    """Nothing is asked for nothing."""
    server = serving(embeddings_reply([]))
    assert endpoint_to(server).embed("tiny", []) == []
    assert server.asked == []


def test_a_service_without_schemas_gets_a_request_that_it_understands(
    serving: Serving, endpoint_to: EndpointTo
) -> None:
    """What a service refuses is left out step by step, and not tried again in the next call."""

    def plain_only(asked: Request) -> ModelReply:
        known = {"model", "messages"} >= set(asked.body)
        return GOOD if known else ModelReply(status=400, body={"error": {"message": "unknown field"}})

    server = serving(plain_only)
    endpoint = endpoint_to(server)
    assert score(endpoint) == {"score": 7}
    steps = [set(asked.body) - {"model", "messages"} for asked in server.asked]
    assert steps == [{"response_format", "temperature"}, {"response_format"}, {"response_format"}, set()]
    score(endpoint)
    assert len(server.asked) == 5


def test_a_request_that_is_wrong_in_every_dialect_ends(serving: Serving, endpoint_to: EndpointTo) -> None:
    """A service that never understands is distinguished from one that is busy: no further retries."""
    server = serving(ModelReply(status=400, body={"error": {"message": "context too long"}}))
    assert "status 400: context too long" in failure(endpoint_to(server))
    assert len(server.asked) == 4


# -- asking again -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "first", [ModelReply(status=503), ModelReply(status=429), ModelReply(status=500), ModelReply(drop=True)]
)
def test_a_busy_service_is_asked_again(serving: Serving, endpoint_to: EndpointTo, first: ModelReply) -> None:
    """Overload, a broken answer and a dropped connection pass; the second answer counts."""
    server = serving(first, GOOD)
    assert score(endpoint_to(server)) == {"score": 7}
    assert len(server.asked) == 2


def test_retries_end(serving: Serving, endpoint_to: EndpointTo) -> None:
    """A service that stays broken is asked as often as agreed, and its words are in the error."""
    server = serving(ModelReply(status=500, body={"error": {"message": "no model loaded"}}))
    assert "status 500: no model loaded" in failure(endpoint_to(server, retries=2))
    assert len(server.asked) == 3


def test_a_service_that_keeps_failing_is_left_alone(serving: Serving, endpoint_to: EndpointTo) -> None:
    """After three calls without an answer the next one does not wait for it again."""
    server = serving(ModelReply(status=503))
    endpoint = endpoint_to(server, retries=0)
    for _ in range(3):
        assert "status 503" in failure(endpoint)
    assert "not asked, since it failed 3 times: status 503" in failure(endpoint)
    assert len(server.asked) == 3


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_will_not_change_is_not_asked_again(serving: Serving, endpoint_to: EndpointTo, status: int) -> None:
    """A wrong key or address fails at once, with the remedy."""
    server = serving(ModelReply(status=status, body={"error": {"message": f"Incorrect key {KEY}"}}))
    message = failure(endpoint_to(server, key=KEY))
    assert ("Incorrect key ***" in message, len(server.asked)) == (True, 1)
    assert REVIEW_KEY in message or "/v1" in message


# -- time and size ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("answer", [ModelReply(hold=True), ModelReply(drip="headers"), ModelReply(drip="body")])
def test_every_call_ends_in_time(serving: Serving, endpoint_to: EndpointTo, answer: ModelReply) -> None:
    """Silence, and headers or a body that trickle in without end, end with the time; the endpoint stays usable."""
    server = serving(lambda asked: answer if "stuck" in asked.body["messages"][1]["content"] else GOOD)
    endpoint = endpoint_to(server)
    started = time.monotonic()
    with pytest.raises(EndpointFailed, match=r"no answer within 0\.2 s"):
        endpoint.chat_json("small", "You judge.", "stuck", SCHEMA, seconds=0.2)
    assert time.monotonic() - started < LONG
    assert score(endpoint, seconds=LONG) == {"score": 7}


def test_one_late_call_does_not_break_another(serving: Serving, endpoint_to: EndpointTo) -> None:
    """Giving up on one call leaves the others their connections."""
    let_go = threading.Event()

    def slow(asked: Request) -> ModelReply:
        if "stuck" in asked.body["messages"][1]["content"]:
            return ModelReply(hold=True)
        let_go.wait(LONG)
        return GOOD

    endpoint = endpoint_to(serving(slow))
    found: list[dict[str, Any]] = []
    other = threading.Thread(target=lambda: found.append(score(endpoint)))
    other.start()
    with pytest.raises(EndpointFailed, match="no answer"):
        endpoint.chat_json("small", "You judge.", "stuck", SCHEMA, seconds=0.1)
    let_go.set()
    other.join()
    assert found == [{"score": 7}]


def test_no_thread_stays_behind(serving: Serving, endpoint_to: EndpointTo) -> None:
    """The thread of a call that was given up on ends when its connection is closed."""
    endpoint = endpoint_to(serving(ModelReply(drip="headers")))
    failure(endpoint, seconds=0.1)
    mine = [thread for thread in threading.enumerate() if thread.name == "memfs-endpoint"]
    for thread in mine:
        thread.join(LONG)
    assert not any(thread.is_alive() for thread in mine)


def test_a_huge_answer_is_not_read(serving: Serving, endpoint_to: EndpointTo) -> None:
    """An answer beyond all measure ends the call, whether it says its length or not."""
    assert "longer than" in failure(endpoint_to(serving(ModelReply(body=b"[" * (2 << 20)))))


def test_a_packed_answer_is_not_unpacked(serving: Serving, endpoint_to: EndpointTo) -> None:
    """Nothing is unpacked, so that a small answer cannot become a huge one."""
    packed = ModelReply(body=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})
    assert "packed" in failure(endpoint_to(serving(packed)))


def test_a_service_that_is_not_there_is_named(endpoint_to: EndpointTo) -> None:
    """Nobody listening: the error names the address and what the system said."""
    message = failure(endpoint_to("http://127.0.0.1:1/v1", retries=0))
    assert "http://127.0.0.1:1/v1" in message
    assert "refused" in message.lower()


# -- answers that are none ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (ModelReply(body=b"<html>hello</html>"), "not JSON"),
        (ModelReply(body=b""), "not JSON"),
        (ModelReply(body=b"\xff\xfe"), "not JSON"),
        (ModelReply(body=b"[" * 100_000), "not JSON"),
        (ModelReply(body=[]), "shape of the protocol"),
        (ModelReply(body={"choices": []}), "shape of the protocol"),
        (ModelReply(body={"choices": [{"message": "7"}]}), "shape of the protocol"),
        (chat_reply("It deserves a seven."), "not a JSON object"),
        (chat_reply("[7]"), "not a JSON object"),
        (chat_reply('{"score": NaN}'), "not a JSON object"),
        (chat_reply(""), "answered nothing"),
        (chat_reply(None), "answered nothing"),
        (chat_reply({"grade": 7}), "lacks 'score'"),
        (chat_reply(None, refusal="I cannot help with that."), "refused: I cannot help"),
        (chat_reply("", finish_reason="content_filter"), "refused"),
        (chat_reply('{"score"', finish_reason="length"), "cut off"),
    ],
)
def test_an_unusable_answer_is_reported_from_none(
    serving: Serving, endpoint_to: EndpointTo, answer: ModelReply, message: str
) -> None:
    """Malformed, misshapen, refused and cut answers each fail with their reason, and are not asked for again."""
    server = serving(answer)
    assert message in failure(endpoint_to(server))
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "content",
    [
        '```json\n{"score": 7}\n```',
        'Sure! Here it is:\n```\n{"score": 7}\n```\nAnything else?',
        'My verdict: {"score": 7}.',
        '<think>{"score": 1} would be mean.</think>{"score": 7}',
        [{"type": "text", "text": '{"score": '}, {"type": "text", "text": "7}"}],
    ],
)
def test_an_object_is_found_among_chatter(serving: Serving, endpoint_to: EndpointTo, content: Any) -> None:
    """Code blocks, pleasantries, thoughts and content in parts are what real models answer."""
    choice = {"message": {"role": "assistant", "content": content}}
    assert score(endpoint_to(serving(ModelReply(body={"choices": [choice]})))) == {"score": 7}


@pytest.mark.parametrize(
    "body",
    [
        {"data": []},
        {"data": [{"embedding": [1.0]}]},
        {"data": [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]},
        {"data": [{"embedding": [1.0]}, {"embedding": "AACAPw=="}]},
        {"data": [{"embedding": [1.0]}, {"embedding": [True]}]},
        {"data": [{"embedding": [1.0]}, {"embedding": []}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [2.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 7, "embedding": [2.0]}]},
        {"data": [{"embedding": [1.0]}, {"embedding": [10**400]}]},
        b'{"data": [{"embedding": [1.0]}, {"embedding": [1e999]}]}',
        {"error": "odd"},
    ],
)
def test_invalid_vectors_are_refused(serving: Serving, endpoint_to: EndpointTo, body: Any) -> None:
    """One vector of finite numbers for each text, all of one length, or none at all (M5)."""
    with pytest.raises(EndpointFailed):
        endpoint_to(serving(ModelReply(body=body))).embed("tiny", ["one", "two"])


def test_a_redirect_is_not_followed(serving: Serving, endpoint_to: EndpointTo) -> None:
    """A key and a memory go to the address that the user wrote, and to no other."""
    other = serving(GOOD)
    server = serving(ModelReply(status=307, headers={"Location": f"{other.url}/chat/completions?token={KEY}"}))
    assert "redirects to http://127.0.0.1" in failure(endpoint_to(server, key=KEY))
    assert (len(server.asked), len(other.asked)) == (1, 0)


def test_what_a_service_says_cannot_command_a_terminal(serving: Serving, endpoint_to: EndpointTo) -> None:
    """Foreign text in an error is short, in one line and printable."""
    body = json.dumps({"error": {"message": "\x1b[2J\u202edrawkcab\n" + "x" * 5000}}).encode()
    message = failure(endpoint_to(serving(ModelReply(status=418, body=body))))
    assert message.isprintable()
    assert len(message) < 300


# -- addresses and keys -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "address",
    [
        "",
        "api.openai.com/v1",
        "ftp://host/v1",
        "http://",
        "https://host:99999/v1",
        "https://host/v1?key=1",
        "file:///x",
    ],
)
def test_an_address_that_cannot_be_asked_is_refused_at_once(address: str) -> None:
    """Only http and https addresses without a query are addresses of a service."""
    with pytest.raises(SettingInvalid, match="address"):
        Endpoint(address)


def test_a_key_in_the_address_is_refused_and_not_shown() -> None:
    """The address is a setting, and settings are shown."""
    with pytest.raises(SettingInvalid) as caught:
        Endpoint(f"https://me:{KEY}@host/v1")
    assert REVIEW_KEY in str(caught.value)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("host", ["api.example.org", "8.8.8.8", "[2001:4860:4860::8888]"])
def test_a_key_does_not_leave_the_own_network_unencrypted(host: str) -> None:
    """http and a key are for the loopback and the own network only."""
    with pytest.raises(SettingInvalid, match="unencrypted"):
        Endpoint(f"http://{host}/v1", KEY)
    assert repr(Endpoint(f"https://{host}/v1", KEY)) == f"<Endpoint https://{host}/v1>"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "192.168.1.7", "litellm", "box.lan"])
def test_a_key_may_go_to_the_own_network(host: str) -> None:
    """A proxy in one's own network needs a key, and has no certificate."""
    assert host in repr(Endpoint(f"http://{host}:4000/v1", KEY))


@pytest.mark.parametrize("key", ["two words", "line\nX-Evil: 1", "ключ"])
def test_an_invalid_key_is_refused_and_not_shown(key: str) -> None:
    """A key goes into a header, where a line end would begin another."""
    with pytest.raises(SettingInvalid) as caught:
        Endpoint("https://host/v1", key)
    assert key not in str(caught.value)


def test_a_proxy_is_not_asked_for_the_own_machine(
    serving: Serving, endpoint_to: EndpointTo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy of the environment would see what was meant to stay on this machine."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert score(endpoint_to(serving(GOOD))) == {"score": 7}


def test_keys_come_from_variables_that_are_not_settings(tmp_path: Path) -> None:
    """A key beside the settings' variables is not a mistyped setting, and appears in none."""
    environ = {REVIEW_KEY: f" {KEY}\n", EMBEDDING_KEY: KEY}
    assert set(environ) == KEY_VARIABLES
    assert (key_of(REVIEW_KEY, environ), key_of(EMBEDDING_KEY, {})) == (KEY, "")
    assert KEY not in repr(load(tmp_path, environ=environ))


def test_a_missing_package_is_named_with_its_remedy(endpoint_to: EndpointTo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without httpx the call, and only the call, says what to install."""
    monkeypatch.setitem(sys.modules, "httpx", None)
    endpoint = endpoint_to("http://localhost/v1")
    with pytest.raises(ExtraMissing, match=r"gitmemfs\[llm\]"):
        score(endpoint)


def test_thoughts_without_end_cost_no_time() -> None:
    """An endless answer that begins with thinking is not taken for JSON at once, so that a call ends in time (C3)."""
    body = json.dumps({"choices": [{"message": {"content": "<think>" * 100_000}}]}).encode()
    began = time.process_time()
    with pytest.raises(AnswerUnusable, match="not a JSON object"):
        chat_answer(body, ["score"])
    assert time.process_time() - began < 2
