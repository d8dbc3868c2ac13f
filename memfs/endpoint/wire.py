"""Wire: one HTTP request that ends when its time is over, whatever the other side does.

Owns ``httpx`` and the connections. Follows no redirect, unpacks nothing, and reads no more than it is told to. What the
bytes mean is not known here.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memfs.errors import ExtraMissing
from memfs.version import __version__

if TYPE_CHECKING:
    import httpx


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


@dataclass(slots=True)
class _Lane:
    """Connections that several calls share; after one call was given up on, the last of the others closes them."""

    client: httpx.Client
    waiting: int = 0
    retired: bool = False


class Wire:
    """Sends requests to one service. May be used from several threads."""

    def __init__(self, headers: Mapping[str, str], *, proxied: bool, encrypted: bool) -> None:
        """
        Args:
            headers: sent with every request.
            proxied: whether the proxy variables of the environment count.
            encrypted: whether certificates are needed; reading those of the system takes a while.
        """
        self._headers = {"User-Agent": f"memfs/{__version__}", "Accept-Encoding": "identity", **headers}
        self._proxied, self._encrypted = proxied, encrypted
        self._open: list[_Lane] = []  # one, once something was asked
        self._owner = 0
        self._lock = threading.Lock()
        weakref.finalize(self, _close, self._open)  # who is given an endpoint rarely knows when it is done with

    def post(self, url: str, body: bytes, *, seconds: float, most: int) -> Reply | Silence:
        """Send it, and wait for the whole answer.

        A thread of its own asks, since neither the look-up of a name nor an answer that trickles in can be timed out.

        Args:
            seconds: for everything, from the look-up of the name to the last byte.
            most: bytes of an answer; a longer one is not read to its end.

        Raises:
            ExtraMissing: ``httpx`` is not installed.
        """
        lane = self._join()
        answers: list[Reply | Silence] = []
        ended = threading.Event()

        def ask() -> None:
            try:
                answers.append(_exchange(lane.client, url, body, seconds, most))
            finally:
                ended.set()

        finished = False
        try:
            threading.Thread(target=ask, name="memfs-endpoint", daemon=True).start()
            finished = ended.wait(seconds)
        finally:
            self._leave(lane, finished)
        if not finished:
            return _late(seconds)
        return answers[0] if answers else Silence("the request broke off")

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        with self._lock:
            lanes, self._open[:] = self._open[:], []
        _close(lanes)

    def _join(self) -> _Lane:
        with self._lock:
            if not self._open or self._open[0].retired or self._owner != os.getpid():
                self._open[:], self._owner = [_Lane(self._client())], os.getpid()
            lane = self._open[0]
            lane.waiting += 1
            return lane

    def _leave(self, lane: _Lane, finished: bool) -> None:
        with self._lock:
            lane.waiting -= 1
            lane.retired = lane.retired or not finished
            over = lane.retired and not lane.waiting
        if over:
            lane.client.close()

    def _client(self) -> httpx.Client:
        try:
            import ssl  # both here: they take 0.2 s, and most processes ask no model

            import httpx
        except ImportError as error:
            raise ExtraMissing(
                "asking a model's service needs the package 'httpx'", hint="pip install 'gitmemfs[llm]'"
            ) from error
        trusted: ssl.SSLContext | bool = True if self._encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # nobody
        own = None if self._proxied else httpx.HTTPTransport(verify=trusted)  # one that is given knows no proxies
        return httpx.Client(headers=self._headers, verify=trusted, follow_redirects=False, transport=own)


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


def _close(lanes: list[_Lane]) -> None:
    for lane in lanes:
        lane.client.close()


def _late(seconds: float) -> Silence:
    return Silence(f"no answer within {seconds:.3g} s", again=False)
