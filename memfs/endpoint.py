"""Asks a model's service for a JSON object or for vectors, within a time limit.

Speaks the OpenAI-compatible protocol in the dialects of known services, retries, and leaves a failing service alone for
a while. Addresses are checked, and no error holds the key.
"""

from __future__ import annotations

import ipaddress
import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from memfs import __version__
from memfs.config_names import EMBEDDING_KEY, REVIEW_KEY
from memfs.dataclass import NamedTuple
from memfs.errors import EndpointFailed, ExtraMissing, SettingInvalid
from memfs.fs.executor import in_daemon

if TYPE_CHECKING:
    import ssl

    import httpx


_SHOWN = 120
_CHAT_BYTES = 1 << 20
_VECTOR_BYTES = 128 << 10
_BACKOFF = 0.2
_PATIENCE, _REST = 3, 30.0
_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_NOT_UNDERSTOOD = frozenset({400, 422})
_OWN_NETWORK = (".localhost", ".local", ".lan", ".internal", ".home.arpa")
_KEY_HINT = f"the key comes from {REVIEW_KEY} for reviews, from {EMBEDDING_KEY} for embeddings"
_ADDRESS_HINT = "look at the address, which mostly ends in /v1, and at the model's name"
_HINTS = {401: _KEY_HINT, 403: _KEY_HINT, 404: _ADDRESS_HINT, 405: _ADDRESS_HINT}


class AnswerUnusable(ValueError):
    """The answer is not what was asked for; the text says why."""


# -- answers ------------------------------------------------------------------------------------------------------
def chat_answer(body: bytes, keys: Sequence[str]) -> dict[str, Any]:
    """The JSON object in the first choice of a chat answer.

    Models that were asked to answer with an object and nothing else put it into a code block or behind their thoughts
    all the same; there it is found.

    Args:
        keys: the keys it must have.

    Raises:
        AnswerUnusable: the model refused, was cut off, or gave no such object.
    """
    try:
        choice = _read(body)["choices"][0]
        message = choice["message"]
        content, refusal = message.get("content"), message.get("refusal")
    except (TypeError, LookupError, AttributeError) as error:
        raise AnswerUnusable("the answer does not have the shape of the protocol") from error
    if refusal or choice.get("finish_reason") == "content_filter":
        raise AnswerUnusable(f"the model refused: {_excerpt(str(refusal or 'its filter stepped in'))}")
    if choice.get("finish_reason") == "length":
        raise AnswerUnusable("the model's answer was cut off")
    if isinstance(content, list):
        content = "".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
    if not isinstance(content, str) or not content.strip():
        raise AnswerUnusable("the model answered nothing")
    text = content.rpartition("</think>")[2]
    try:
        answer = _read(text[text.find("{") : text.rfind("}") + 1])
    except AnswerUnusable:
        raise AnswerUnusable(f"the model's answer is not a JSON object: {_excerpt(text)}") from None
    if missing := [key for key in keys if key not in answer]:
        raise AnswerUnusable(f"the model's answer lacks {missing[0]!r}: {_excerpt(text)}")
    found: dict[str, Any] = answer
    return found


def _vectors(body: bytes, count: int) -> list[list[float]]:
    """The vectors of an embeddings answer, in the order of the texts.

    Raises:
        AnswerUnusable: there are not ``count`` vectors of one length, of finite numbers.
    """
    try:
        rows = _read(body)["data"]
        found = {row.get("index", place): row["embedding"] for place, row in enumerate(rows)}
        numbers = all(type(number) in (float, int) for vector in found.values() for number in vector)
        vectors = [[float(number) for number in found[place]] for place in range(count)] if numbers else []
    except (TypeError, LookupError, AttributeError, ValueError, OverflowError) as error:
        raise AnswerUnusable(f"no {count} vectors of numbers came back") from error
    lengths = {len(vector) for vector in vectors}
    finite = all(map(math.isfinite, chain.from_iterable(vectors)))
    if len(found) != count or len(lengths) != 1 or 0 in lengths or not finite:
        raise AnswerUnusable(f"what came back for {count} texts are not as many vectors of one length")
    return vectors


def _read(body: bytes | str) -> Any:
    """JSON as its standard has it: no NaN, no infinity.

    Raises:
        AnswerUnusable: it is not JSON, or nested too deeply.
    """

    def refuse(name: str) -> float:
        raise ValueError(f"{name} is not JSON")

    try:
        return json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        shown = body if isinstance(body, str) else body[: 4 * _SHOWN].decode("utf-8", "replace")
        raise AnswerUnusable(f"the answer is not JSON: {_excerpt(shown) or 'it is empty'}") from error


def _excerpt(text: str) -> str:
    """The beginning of a foreign text in one line, without characters that a terminal would obey."""
    plain = "".join(character if character.isprintable() else " " for character in text[: 4 * _SHOWN])
    line = " ".join(plain.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


# -- asking -------------------------------------------------------------------------------------------------------
class _Reply(NamedTuple):
    """What came back: a body of some status, or of status 0 where ``reason`` says why nothing usable came.

    ``again``: whether it is worth asking again.
    """

    status: int
    body: bytes = b""
    reason: str = ""
    again: bool = False


class Endpoint:
    """One OpenAI-compatible service. May be used from several threads.

    Every call ends within its seconds, with a usable answer or with an error, whatever the other side does. No redirect
    is followed, nothing is decompressed, and an answer is read only up to a limit. After three calls in a row without
    any answer the service is left alone for half a minute, so that many writes do not each wait for it.
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
        self._headers = {"User-Agent": f"memfs/{__version__}", "Accept-Encoding": "identity"}
        self._headers |= {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        self._proxied = not _is_own_network(parts.hostname or "")
        self._trusted: ssl.SSLContext | None = None
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
        inputs = [text or " " for text in texts]  # services refuse an empty text
        plain: dict[str, Any] = {"input": inputs, **({"model": model} if model else {})}
        dialects = ({**plain, "encoding_format": "float"}, plain)
        body = self._ask("/embeddings", dialects, _CHAT_BYTES + _VECTOR_BYTES * len(inputs), seconds)
        try:
            return _vectors(body, len(inputs))
        except AnswerUnusable as error:
            raise self._failed(str(error)) from None

    def _ask(self, path: str, dialects: Sequence[Mapping[str, Any]], most: int, seconds: float | None) -> bytes:
        """The body of a successful answer, in the first dialect that the service understands."""
        deadline = time.monotonic() + (self._seconds if seconds is None else seconds)
        if (rest := self._rests_until - time.monotonic()) > 0:
            hint = f"it is asked again in {rest:.0f} s"
            raise self._failed(f"not asked, since it failed {self._failures} times: {self._last}", hint)
        attempt, level = 0, self._dialects.get(path, 0)
        while True:
            left = max(deadline - time.monotonic(), 0.001)
            reply = self._posted(path, json.dumps(dialects[level]).encode(), left, most)
            if reply.status == 200:
                self._dialects[path], self._failures = level, 0
                return reply.body
            if reply.status in _NOT_UNDERSTOOD and level + 1 < len(dialects):
                level += 1
                continue
            wait = _BACKOFF * 2**attempt
            worth = reply.again or reply.status in _BUSY
            if not worth or attempt >= self._retries or time.monotonic() + wait >= deadline:
                raise self._unanswered(reply)
            attempt += 1
            time.sleep(wait)

    def _posted(self, path: str, body: bytes, seconds: float, most: int) -> _Reply:
        """Send a request, and wait for the whole answer: of at most ``most`` bytes, and for ``seconds``.

        A thread of its own asks, since neither the look-up of a name nor an answer that trickles in can be timed out.
        """
        try:
            import httpx  # takes 0.2 s, and most processes ask no model
        except ImportError as error:
            raise ExtraMissing.of("asking a model's service", "llm", ("httpx",), error) from error
        if self._base.startswith("https:") and self._trusted is None:
            self._trusted = httpx.create_ssl_context()  # reads the certificates of the system, once
        client = httpx.Client(headers=self._headers, verify=self._trusted or False, trust_env=self._proxied)
        with client:  # its end is that of a thread that was given up on
            reply = in_daemon("memfs-endpoint", lambda: _exchange(client, self._base + path, body, seconds, most))
            try:
                return _Reply(0, reason="the request broke off") if reply.exception(seconds) else reply.result()
            except TimeoutError:
                return _Reply(0, reason=f"no answer within {seconds:.3g} s")

    def _unanswered(self, reply: _Reply) -> EndpointFailed:
        reason = reply.reason or f"status {reply.status}"
        try:
            complaint = str(json.loads(reply.body)["error"]["message"])
        except (ValueError, TypeError, LookupError, RecursionError):
            complaint = reply.body[: 4 * _SHOWN].decode("utf-8", "replace")
        if complaint := _excerpt(complaint):
            reason += f": {complaint}"
        if not reply.status or reply.status in _BUSY:
            self._failures += 1
            self._last = self._without_key(reason)
            self._rests_until = time.monotonic() + (_REST if self._failures >= _PATIENCE else 0.0)
        return self._failed(reason, _HINTS.get(reply.status, ""))

    def _failed(self, reason: str, hint: str = "") -> EndpointFailed:
        return EndpointFailed(f"{self._base}: {self._without_key(reason)}", hint=hint or None)

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


def _exchange(client: httpx.Client, url: str, body: bytes, seconds: float, most: int) -> _Reply:
    import httpx

    deadline = time.monotonic() + seconds
    try:
        with client.stream("POST", url, content=body, timeout=seconds) as response:
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                return _Reply(0, reason="the answer is packed although it must not be")
            if response.is_redirect:
                place = urlsplit(response.headers["location"])
                elsewhere = _excerpt(f"{place.scheme}://{place.hostname}") if place.hostname else "another path"
                return _Reply(response.status_code, reason=f"it redirects to {elsewhere}, which is not followed")
            found = bytearray()
            for piece in response.iter_raw():
                found += piece
                if len(found) > most:
                    return _Reply(0, reason=f"the answer is longer than {most:,} bytes")
                if time.monotonic() > deadline:  # an answer that trickles in keeps each single read within its time
                    break
            else:
                return _Reply(response.status_code, bytes(found))
    except httpx.TimeoutException:
        pass
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, RuntimeError, ValueError) as error:
        return _Reply(0, reason=_excerpt(f"{type(error).__name__}: {error}"), again=True)
    return _Reply(0, reason=f"no answer within {seconds:.3g} s")


# -- addresses and keys -------------------------------------------------------------------------------------------
def key_of(variable: str, environ: Mapping[str, str] | None = None) -> str:
    """The key in an environment variable, "" where there is none; a key is never read from a file."""
    return (os.environ if environ is None else environ).get(variable, "").strip()


def _checked(base_url: str, key: str) -> SplitResult:
    try:
        parts = urlsplit(base_url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise _unfit(f"{_excerpt(base_url)!r} is not an address") from error
    if parts.username is not None or parts.password is not None:
        raise _unfit("the address holds a name or password", f"put the key into {REVIEW_KEY} or {EMBEDDING_KEY}")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise _unfit(f"{_excerpt(base_url)!r} is not an address of a service")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise _unfit("the key has characters that no key has", f"look at {REVIEW_KEY} and {EMBEDDING_KEY}")
    if key and parts.scheme == "http" and not _is_own_network(host):
        raise _unfit(f"the key would travel unencrypted to {host}", f"write https://{parts.netloc}{parts.path}")
    return parts


def _unfit(message: str, hint: str = "write it like https://api.openai.com/v1") -> SettingInvalid:
    return SettingInvalid(message, hint=hint)


def _is_own_network(host: str) -> bool:
    """Whether a host is this machine or in its own network, where no proxy is asked and a key may go unencrypted."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_OWN_NETWORK)
    return address.is_loopback or address.is_private or address.is_link_local
