"""Asks a model's service for a JSON object or for vectors, within a time limit.

Speaks the OpenAI-compatible protocol in the dialects of known services, retries, and leaves a failing service alone for
a while. Addresses are checked, and no error holds the key.
"""

from __future__ import annotations

import ipaddress
import json
import math
import os
import random
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from memfs.config_names import EMBEDDING_KEY, REVIEW_KEY
from memfs.dataclass import dataclass
from memfs.errors import EndpointFailed, ExtraMissing, SettingInvalid
from memfs.fs.executor import in_daemon
from memfs.version import __version__

if TYPE_CHECKING:
    import ssl

    import httpx


_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_SHOWN = 120


class AnswerUnusable(ValueError):
    """The answer is not what was asked for; the text says why."""


def chat_answer(body: bytes, wanted: Iterable[str]) -> dict[str, Any]:
    """The JSON object in the first choice of a chat answer.

    Models that were asked to answer with an object and nothing else put it into a code block or behind their thoughts
    all the same; there it is found.

    Args:
        wanted: the keys it must have.

    Raises:
        AnswerUnusable: the model refused, was cut off, or gave no such object.
    """
    choices = _mapping(read(body)).get("choices")
    choice = _mapping(choices[0] if isinstance(choices, list) and choices else None)
    message = _mapping(choice.get("message"))
    refusal = message.get("refusal")
    if refusal or choice.get("finish_reason") == "content_filter":
        raise AnswerUnusable(f"the model refused: {excerpt(str(refusal or 'its filter stepped in'))}")
    if choice.get("finish_reason") == "length":
        raise AnswerUnusable("the model's answer was cut off")
    text = _text(message.get("content"))
    answer = _object_in(text)
    if missing := [key for key in wanted if key not in answer]:
        raise AnswerUnusable(f"the model's answer lacks {missing[0]!r}: {excerpt(text)}")
    return answer


def vectors(body: bytes, count: int) -> list[list[float]]:
    """The vectors of an embeddings answer, in the order of the texts.

    Raises:
        AnswerUnusable: there are not ``count`` vectors of one length, of finite numbers.
    """
    rows = _mapping(read(body)).get("data")
    if not isinstance(rows, list) or len(rows) != count:
        got = len(rows) if isinstance(rows, list) else "no"
        raise AnswerUnusable(f"{got} vectors came back for {count} texts")
    found: dict[int, list[float]] = {}
    for position, row in enumerate(map(_mapping, rows)):
        place = row.get("index", position)
        found[place if type(place) is int else position] = _vector(row.get("embedding"))
    if set(found) != set(range(count)) or len({len(vector) for vector in found.values()}) > 1:
        raise AnswerUnusable("the vectors are not numbered through, or not of one length")
    return [found[place] for place in range(count)]


def complaint(body: bytes) -> str:
    """What an answer that is an error says, shortened; "" where it says nothing readable."""
    try:
        answer = read(body)
    except AnswerUnusable:
        return excerpt(body[: 4 * _SHOWN].decode("utf-8", "replace"))
    said = answer.get("error", answer.get("message", answer.get("detail", ""))) if isinstance(answer, dict) else answer
    return excerpt(str(said.get("message", said) if isinstance(said, dict) else said))


def excerpt(text: str) -> str:
    """The beginning of a foreign text in one line, without characters that a terminal would obey."""
    plain = "".join(character if character.isprintable() else " " for character in text[: 4 * _SHOWN])
    line = " ".join(plain.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


def read(body: bytes | str) -> Any:
    """JSON as its standard has it: no NaN, no infinity.

    Raises:
        AnswerUnusable: it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        shown = body if isinstance(body, str) else body[: 4 * _SHOWN].decode("utf-8", "replace")
        raise AnswerUnusable(f"the answer is not JSON: {excerpt(shown) or 'it is empty'}") from error


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise AnswerUnusable("the answer does not have the shape of the protocol")
    return value


def _text(content: object) -> str:
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(content, str) or not content.strip():
        raise AnswerUnusable("the model answered nothing")
    return _without_thoughts(content).strip()


def _without_thoughts(text: str) -> str:
    """The text without what is between ``<think>`` and ``</think>``, in time that grows with its length only."""
    kept, at = [], 0
    while (start := text.find("<think>", at)) >= 0 and (end := text.find("</think>", start)) >= 0:
        kept.append(text[at:start])
        at = end + len("</think>")
    return "".join([*kept, text[at:]])


def _object_in(text: str) -> dict[str, Any]:
    fenced = _FENCED.search(text)
    for part in (text, fenced[1] if fenced else "", text[text.find("{") : text.rfind("}") + 1]):
        try:
            answer = read(part)
        except AnswerUnusable:
            continue
        if isinstance(answer, dict):
            return answer
    raise AnswerUnusable(f"the model's answer is not a JSON object: {excerpt(text)}")


def _vector(value: object) -> list[float]:
    if not isinstance(value, list) or not value or not all(type(one) in (float, int) for one in value):
        raise AnswerUnusable("a vector is not a list of numbers")
    try:
        vector = [float(one) for one in value]
    except OverflowError as error:
        raise AnswerUnusable("a vector has a number beyond all bounds") from error
    if not all(map(math.isfinite, vector)):
        raise AnswerUnusable("a vector has a number beyond all bounds")
    return vector


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back; the names of ``headers`` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Silence:
    """Why nothing usable came back, and whether it is worth asking again."""

    reason: str
    again: bool = True


class Wire:
    """Sends requests to one service. May be used from several threads.

    A request ends when its time is over, whatever the other side does. No redirect is followed, nothing is
    decompressed, and an answer is read only up to its limit.
    """

    def __init__(self, headers: Mapping[str, str], *, proxied: bool, encrypted: bool) -> None:
        """
        Args:
            headers: sent with every request.
            proxied: whether the proxy variables of the environment count.
            encrypted: whether certificates are needed; reading those of the system takes a while.
        """
        self._headers = {"User-Agent": f"memfs/{__version__}", "Accept-Encoding": "identity", **headers}
        self._proxied, self._encrypted = proxied, encrypted
        self._trusted: ssl.SSLContext | None = None

    def post(self, url: str, body: bytes, *, seconds: float, most: int) -> Reply | Silence:
        """Send it, and wait for the whole answer.

        A thread of its own asks, since neither the look-up of a name nor an answer that trickles in can be timed out.

        Args:
            seconds: for everything, from the look-up of the name to the last byte.
            most: bytes of an answer; a longer one is not read to its end.

        Raises:
            ExtraMissing: ``httpx`` is not installed.
        """
        with self._client() as client:  # its end is that of a thread that was given up on
            asked = in_daemon("memfs-endpoint", lambda: _exchange(client, url, body, seconds, most))
            try:
                return Silence("the request broke off") if asked.exception(seconds) else asked.result()
            except TimeoutError:
                return _late(seconds)

    def _client(self) -> httpx.Client:
        try:
            import ssl  # both here: they take 0.2 s, and most processes ask no model

            import httpx
        except ImportError as error:
            raise ExtraMissing(
                "asking a model's service needs the package 'httpx'", hint="pip install 'gitmemfs[llm]'"
            ) from error
        if self._trusted is None:
            context = (
                httpx.create_ssl_context() if self._encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            )  # nobody
            self._trusted = context
        own = None if self._proxied else httpx.HTTPTransport(verify=self._trusted)  # one that is given knows no proxies
        return httpx.Client(headers=self._headers, verify=self._trusted, follow_redirects=False, transport=own)


def _exchange(client: httpx.Client, url: str, body: bytes, seconds: float, most: int) -> Reply | Silence:
    import httpx

    deadline = time.monotonic() + seconds
    try:
        with client.stream("POST", url, content=body, timeout=seconds) as response:
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                return Silence("the answer is packed although it must not be", again=False)
            found = bytearray()
            for piece in response.iter_raw():
                found += piece
                if len(found) > most:
                    return Silence(f"the answer is longer than {most:,} bytes", again=False)
                if time.monotonic() > deadline:
                    return _late(seconds)  # an answer that trickles in keeps each single read within its time
            return Reply(response.status_code, dict(response.headers), bytes(found))
    except httpx.TimeoutException:
        return _late(seconds)
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, RuntimeError) as error:
        return Silence(f"{type(error).__name__}: {error}")


def _late(seconds: float) -> Silence:
    return Silence(f"no answer within {seconds:.3g} s", again=False)


_CHAT_BYTES = 1 << 20
_VECTOR_BYTES = 128 << 10
_BACKOFF = 0.2
_PATIENCE, _REST, _LONGEST_REST = 3, 30.0, 300.0
_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_NOT_UNDERSTOOD = frozenset({400, 422})
_OWN_NETWORK = (".localhost", ".local", ".lan", ".internal", ".home.arpa")
_HINTS = {
    401: f"the key comes from {REVIEW_KEY} for reviews, from {EMBEDDING_KEY} for embeddings",
    403: f"the key comes from {REVIEW_KEY} for reviews, from {EMBEDDING_KEY} for embeddings",
    404: "look at the address, which mostly ends in /v1, and at the model's name",
    405: "look at the address, which mostly ends in /v1",
}


def key_of(variable: str, environ: Mapping[str, str] | None = None) -> str:
    """The key in an environment variable, "" where there is none; a key is never read from a file."""
    return (os.environ if environ is None else environ).get(variable, "").strip()


class Endpoint:
    """One OpenAI-compatible service. May be used from several threads.

    Every call ends within its seconds, with a usable answer or with an error. After three calls in a row without any
    answer the service is left alone for half a minute, or for as long as it asks, so that many writes do not each wait
    for it.
    """

    def __init__(self, base_url: str, key: str = "", seconds: float = 5.0, retries: int = 2) -> None:
        """
        Args:
            base_url: what the protocol's paths are appended to, such as ``https://api.openai.com/v1``.
            key: sent as a bearer token; "" sends none.
            seconds: for one call with all its retries.
            retries: how often a busy or broken service is asked again within that time.

        Raises:
            SettingInvalid: the address cannot be asked, or the key would travel unencrypted.
        """
        parts = _checked(base_url, key)
        self._base = parts.geturl().rstrip("/")
        self._key = key
        self._seconds, self._retries = seconds, retries
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        proxied = not _is_loopback(parts.hostname or "")
        self._wire = Wire(headers, proxied=proxied, encrypted=proxied or parts.scheme == "https")
        self._dialects: dict[str, int] = {}
        self._failures, self._rests_until, self._last = 0, 0.0, ""

    def __repr__(self) -> str:
        return f"<Endpoint {self._base}>"

    def chat_json(
        self, model: str, system: str, user: str, schema: Mapping[str, Any], *, seconds: float | None = None
    ) -> dict[str, Any]:
        """A model's answer as a JSON object that has the keys the schema requires.

        What the values are is not checked: not every service holds its model to a schema, and the asker knows best.

        Args:
            model: its name; "" leaves the choice to the service.
            system, user: its instructions, and what it is asked.
            schema: JSON Schema of the object, sent along.
            seconds: other than the endpoint's own.

        Raises:
            EndpointFailed: no usable answer in time: the service failed, the model refused, or its answer is no such
                object.
            ExtraMissing: ``httpx`` is not installed.
        """
        prompt = f"{system}\n\nAnswer with one JSON object and nothing else. Its JSON schema: {json.dumps(schema)}"
        messages = [{"role": "system", "content": prompt}, {"role": "user", "content": user}]
        plain: dict[str, Any] = {"messages": messages, **({"model": model} if model else {})}
        shape = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
        dialects = (
            {**plain, "response_format": shape, "temperature": 0},
            {**plain, "response_format": shape},  # reasoning models take no temperature
            {**plain, "response_format": {"type": "json_object"}},  # older services know no schemas
            plain,
        )
        body = self._ask("/chat/completions", dialects, _CHAT_BYTES, seconds)
        try:
            return chat_answer(body, schema.get("required", ()))
        except AnswerUnusable as error:
            raise self._failed(str(error)) from None

    def embed(self, model: str, texts: Sequence[str], *, seconds: float | None = None) -> list[list[float]]:
        """One vector a text, in their order, all of one length.

        Everything goes into one request; services take at most some hundred texts in one.

        Raises:
            EndpointFailed: no usable answer in time.
            ExtraMissing: ``httpx`` is not installed.
        """
        if not texts:
            return []
        wanted = [text or " " for text in texts]  # services refuse an empty text
        plain: dict[str, Any] = {"input": wanted, **({"model": model} if model else {})}
        dialects = ({**plain, "encoding_format": "float"}, plain)
        body = self._ask("/embeddings", dialects, _CHAT_BYTES + _VECTOR_BYTES * len(wanted), seconds)
        try:
            return vectors(body, len(wanted))
        except AnswerUnusable as error:
            raise self._failed(str(error)) from None

    # -- asking ---------------------------------------------------------------------------------------------------
    def _ask(self, path: str, dialects: Sequence[Mapping[str, Any]], most: int, seconds: float | None) -> bytes:
        """The body of a successful answer, in the first dialect that the service understands."""
        deadline = time.monotonic() + (self._seconds if seconds is None else seconds)
        self._check_rest()
        attempt, level = 0, min(self._dialects.get(path, 0), len(dialects) - 1)
        while True:
            body = json.dumps(dialects[level]).encode()
            left = max(deadline - time.monotonic(), 0.001)
            reply = self._wire.post(self._base + path, body, seconds=left, most=most)
            status = reply.status if isinstance(reply, Reply) else 0
            if isinstance(reply, Reply) and status == 200:
                self._dialects[path], self._failures = level, 0
                return reply.body
            if status in _NOT_UNDERSTOOD and level + 1 < len(dialects):
                level += 1
                continue
            asked = _asked_wait(reply)
            wait = asked if asked is not None else _BACKOFF * 2**attempt * random.uniform(0.5, 1)  # noqa: S311 - no secret
            worth = reply.again if isinstance(reply, Silence) else status in _BUSY
            if not worth or attempt >= self._retries or time.monotonic() + wait >= deadline:
                raise self._unanswered(reply, asked)
            attempt += 1
            time.sleep(wait)

    def _unanswered(self, reply: Reply | Silence, asked: float | None) -> EndpointFailed:
        reason, hint = _reason(reply)
        if isinstance(reply, Silence) or reply.status in _BUSY:
            self._failures += 1
            self._last = self._without_key(reason)
            rest = asked or (_REST if self._failures >= _PATIENCE else 0.0)
            self._rests_until = time.monotonic() + min(rest, _LONGEST_REST)
        return self._failed(reason, hint)

    def _check_rest(self) -> None:
        if (rest := self._rests_until - time.monotonic()) > 0:
            hint = f"it is asked again in {rest:.0f} s"
            raise self._failed(f"not asked, since it failed {self._failures} times: {self._last}", hint)

    def _failed(self, reason: str, hint: str = "") -> EndpointFailed:
        return EndpointFailed(f"{self._base}: {self._without_key(reason)}", hint=hint or None)

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


# -- addresses and keys -------------------------------------------------------------------------------------------
def _checked(base_url: str, key: str) -> SplitResult:
    try:
        parts = urlsplit(base_url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise _unfit(f"{excerpt(base_url)!r} is no address") from error
    if parts.username is not None or parts.password is not None:
        raise _unfit("the address holds a name or password", f"put the key into {REVIEW_KEY} or {EMBEDDING_KEY}")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise _unfit(f"{excerpt(base_url)!r} is no address of a service")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise _unfit("the key has characters that no key has", f"look at {REVIEW_KEY} and {EMBEDDING_KEY}")
    if key and parts.scheme == "http" and not _is_own_network(host):
        raise _unfit(f"the key would travel unencrypted to {host}", f"write https://{parts.netloc}{parts.path}")
    return parts


def _unfit(message: str, hint: str = "write it like https://api.openai.com/v1") -> SettingInvalid:
    return SettingInvalid(message, hint=hint)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _is_own_network(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_OWN_NETWORK)
    return address.is_loopback or address.is_private or address.is_link_local


# -- what went wrong ----------------------------------------------------------------------------------------------
def _reason(reply: Reply | Silence) -> tuple[str, str]:
    if isinstance(reply, Silence):
        return excerpt(reply.reason), ""
    if 300 <= reply.status < 400:
        place = urlsplit(reply.headers.get("location", ""))
        elsewhere = excerpt(f"{place.scheme}://{place.hostname}") if place.hostname else "another path"
        return f"it redirects to {elsewhere}, which is not followed", "write the final address"
    said = complaint(reply.body)
    return f"status {reply.status}{': ' + said if said else ''}", _HINTS.get(reply.status, "")


def _asked_wait(reply: Reply | Silence) -> float | None:
    """How many seconds the service asks to be left alone, None where it says nothing."""
    written = reply.headers.get("retry-after", "").strip() if isinstance(reply, Reply) else ""
    return float(written[:9]) if written.isascii() and written.isdecimal() else None
