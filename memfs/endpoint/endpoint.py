"""Endpoint: asks a model for a JSON object or for vectors, within a time limit.

Owns which addresses and keys are taken, the requests of the protocol in the dialects that services understand, when to
ask again, and when to leave a failing service alone for a while. No error holds the key.
"""

from __future__ import annotations

import ipaddress
import json
import os
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

from memfs.endpoint import answers
from memfs.endpoint.wire import Reply, Silence, Wire
from memfs.errors import EndpointFailed, SettingInvalid

REVIEW_KEY, EMBEDDING_KEY = "MEMFS_REVIEW_KEY", "MEMFS_EMBEDDING_KEY"
"""Environment variables with the keys; a key is never read from a file."""
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
    """The key in an environment variable, "" where there is none."""
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
            SettingInvalid: the address is none that can be asked, or the key would travel unencrypted.
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
            system, user: what it is told, and what it is asked.
            schema: JSON Schema of the object, sent along.
            seconds: other than the endpoint's own.

        Raises:
            EndpointFailed: no usable answer in time: the service failed, the model refused, or its answer is no such
                object.
            ExtraMissing: ``httpx`` is not installed.
        """
        told = f"{system}\n\nAnswer with one JSON object and nothing else. Its JSON schema: {json.dumps(schema)}"
        messages = [{"role": "system", "content": told}, {"role": "user", "content": user}]
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
            return answers.chat_answer(body, schema.get("required", ()))
        except answers.Unusable as error:
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
            return answers.vectors(body, len(wanted))
        except answers.Unusable as error:
            raise self._failed(str(error)) from None

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._wire.close()

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
        raise _unfit(f"{answers.excerpt(base_url)!r} is no address") from error
    if parts.username is not None or parts.password is not None:
        raise _unfit("the address holds a name or password", f"put the key into {REVIEW_KEY} or {EMBEDDING_KEY}")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise _unfit(f"{answers.excerpt(base_url)!r} is no address of a service")
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
        return answers.excerpt(reply.reason), ""
    if 300 <= reply.status < 400:
        place = urlsplit(reply.headers.get("location", ""))
        elsewhere = answers.excerpt(f"{place.scheme}://{place.hostname}") if place.hostname else "another path"
        return f"it redirects to {elsewhere}, which is not followed", "write the final address"
    said = answers.complaint(reply.body)
    return f"status {reply.status}{': ' + said if said else ''}", _HINTS.get(reply.status, "")


def _asked_wait(reply: Reply | Silence) -> float | None:
    """How many seconds the service asks to be left alone, None where it says nothing."""
    written = reply.headers.get("retry-after", "").strip() if isinstance(reply, Reply) else ""
    if not written:
        return None
    if written.isascii() and written.isdecimal():
        return float(written[:9])
    from email.utils import parsedate_to_datetime  # here: a date is rare, and the module is slow to load

    try:
        return max(parsedate_to_datetime(written).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError, OSError):
        return None
