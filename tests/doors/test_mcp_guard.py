"""Who may talk to the server over HTTP, and where the token comes from."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from memfs.doors.mcp.http import MOST_BYTES, AccessGuard, guarded, token_from
from memfs.errors import NotRegularFile, SettingInvalid

TOKEN = "a" * 40
GOOD = {"Host": "127.0.0.1:8377", "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}


def status(method: str = "POST", path: str = "/mcp", *more: tuple[str, str], **changed: str | None) -> int:
    """How a request with these headers is refused; 0 where it is let through."""
    headers = GOOD | {name.replace("_", "-"): value for name, value in changed.items()}
    written = [(name.encode(), value.encode()) for name, value in [*headers.items(), *more] if value is not None]
    refusal = AccessGuard(8377, TOKEN).refusal(method, path, written)
    return refusal.status if refusal else 0


@pytest.mark.parametrize("host", ["127.0.0.1:8377", "localhost:8377", "[::1]:8377", "LocalHost:8377"])
def test_a_client_of_this_machine_with_the_token_passes(host: str) -> None:
    """The names of this machine are let through, in any case, with and without their own origin (B5)."""
    assert status(Host=host) == 0
    assert status(Host=host, Origin=f"http://{host}") == 0
    assert status("GET", Host=host, Content_Type=None) == 0
    assert status("DELETE", Host=host, Content_Type=None) == 0


@pytest.mark.parametrize(
    "host",
    [
        None, "", "evil.example", "evil.example:8377", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:83770",
        "127.0.0.1.evil.example:8377", "localhost.evil.example:8377", "127.0.0.1:8377@evil.example",
        "evil.example#127.0.0.1:8377", "127.0.0.2:8377", "0.0.0.0:8377", "[::]:8377", "127.1:8377", "2130706433:8377",
        "127.0.0.1:8377 ", "127.0.0.1:8377.", "localhost.:8377", "127.0.0.1:8377, evil.example",
    ],
)  # fmt: skip
def test_any_other_host_is_refused(host: str | None) -> None:
    """A web page whose name was made to lead here is stopped by that name (faults 48, DNS rebinding)."""
    assert status(Host=host) == 403


@pytest.mark.parametrize(
    "origin",
    [
        "null", "", "http://evil.example", "https://127.0.0.1:8377", "http://127.0.0.1", "http://127.0.0.1:8378",
        "http://127.0.0.1:8377.evil.example", "http://localhost:8377/", "file://", "http://evil.example:8377",
        "http://127.0.0.1:8377 http://evil.example",
    ],
)  # fmt: skip
def test_any_other_origin_is_refused(origin: str) -> None:
    """A web page of another place is refused whatever else it knows (faults 48)."""
    assert status(Origin=origin) == 403


def test_a_second_host_or_origin_hides_nothing() -> None:
    """Headers sent twice are no way around the checks (faults 48)."""
    assert status("POST", "/mcp", ("host", "evil.example")) == 403
    assert status("POST", "/mcp", ("Host", "127.0.0.1:8377")) == 403
    assert status("POST", "/mcp", ("origin", "http://evil.example"), Origin="http://127.0.0.1:8377") == 403
    assert status("POST", "/mcp", ("authorization", f"Bearer {TOKEN}")) == 401


@pytest.mark.parametrize(
    "written", [None, "", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[1:]}",
                f"Bearer {TOKEN.upper()}", f"Bearer {TOKEN} {TOKEN}", "Bearer ä" * 3],
)  # fmt: skip
def test_without_the_token_nothing_is_answered(written: str | None) -> None:
    """Reading needs the token as well as writing does, and what is wrong is not told (faults 48)."""
    assert [status(method, Authorization=written) for method in ("POST", "GET", "DELETE", "OPTIONS")] == [401] * 4
    assert status("GET", "/other", Authorization=written) == 401


def test_only_the_protocol_is_served() -> None:
    """Other paths, methods and bodies are refused before the body is looked at (faults 48)."""
    assert [status("GET", path) for path in ("/", "/mcp/", "/mcp/../mcp", "//mcp", "http://evil.example/mcp")] == [
        404
    ] * 5
    assert [status(method) for method in ("OPTIONS", "PUT", "HEAD", "PATCH", "TRACE", "post")] == [405] * 6
    for kind in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"):
        assert status(Content_Type=kind) == 415
    assert status(Content_Type="Application/JSON; charset=utf-8") == 0
    assert status("POST", "/mcp", ("content-type", "text/plain")) == 415
    assert status(Content_Length=str(MOST_BYTES)) == 0
    assert [status(Content_Length=size) for size in (str(MOST_BYTES + 1), "100000000", "-1", "1e3", "")] == [413] * 5


def test_nothing_but_http_is_let_through() -> None:
    """A connection of another sort, such as a web socket, never reaches the server (faults 48)."""
    reached: list[str] = []

    async def app(scope: Any, *_: Any) -> None:
        reached.append(scope["type"])

    asyncio.run(guarded(app, AccessGuard(8377, TOKEN))({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    headers = [(name.lower().encode(), value.encode()) for name, value in GOOD.items()]
    scope = {"type": "websocket", "method": "GET", "path": "/mcp", "headers": headers}
    with pytest.raises(ValueError, match="websocket"):
        asyncio.run(guarded(app, AccessGuard(8377, TOKEN))(scope, None, None))  # type: ignore[arg-type]
    assert reached == ["lifespan"]


def test_the_token_stands_in_no_text_of_ours() -> None:
    """What is printed of a guard or a token, in a traceback say, does not tell it (B5)."""
    assert TOKEN not in repr(AccessGuard(8377, TOKEN))
    assert TOKEN not in repr(token_from(None, {"MEMFS_MCP_TOKEN": TOKEN}))


# -- where the token comes from ----------------------------------------------------------------------------------
def test_each_start_has_a_token_of_its_own() -> None:
    """Nobody can know the token of a server that was given none (B5)."""
    first, second = token_from(None, {}), token_from(None, {})
    assert first.text != second.text
    assert min(len(first.text), len(second.text)) >= 32
    assert first.fresh


def test_a_token_is_kept_in_a_file_of_ones_own(tmp_path: Path) -> None:
    """The file is made once, readable by this user alone, and then holds for every start (B5)."""
    made = token_from(str(tmp_path / "token"), {"MEMFS_MCP_TOKEN": TOKEN})
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert token_from(str(tmp_path / "token"), {}) == made
    assert not made.fresh
    assert os.listdir(tmp_path) == ["token"]


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """A file that is open to others is named with what makes it private (B5)."""
    file = tmp_path / "token"
    file.write_text(TOKEN)
    for mode in (0o644, 0o640, 0o602):
        file.chmod(mode)
        with pytest.raises(SettingInvalid, match="others can read") as refused:
            token_from(str(file), {})
        assert refused.value.hint == f"chmod 600 {file}"


@pytest.mark.parametrize(
    "text", ["", "short", "two words of a token", "ä" * 30, "a" * 513, "line\n" + "b" * 20, "\0" * 20]
)
def test_what_is_no_token_is_refused(text: str, tmp_path: Path) -> None:
    """A token that can be guessed, or does not fit into a header, is refused and not repeated (B5)."""
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(SettingInvalid, match="holds no token"):
        token_from(str(file), {})
    if text and "\0" not in text:
        with pytest.raises(SettingInvalid, match="MEMFS_MCP_TOKEN holds no token"):
            token_from(None, {"MEMFS_MCP_TOKEN": text})


def test_a_folder_or_pipe_is_no_token_file(tmp_path: Path) -> None:
    """What is no file is refused at once; a pipe keeps nobody waiting (faults 13)."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "pipe").chmod(0o600)
    (tmp_path / "folder").mkdir(mode=0o700)
    for name in ("pipe", "folder"):
        with pytest.raises(NotRegularFile):
            token_from(str(tmp_path / name), {})


def test_servers_that_start_at_once_agree_on_the_token(tmp_path: Path) -> None:
    """Whoever makes the file first decides; the others take what it holds (B5)."""
    found: list[str] = []
    start = threading.Barrier(8)

    def take() -> None:
        start.wait()
        found.append(token_from(str(tmp_path / "token"), {}).text)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert os.listdir(tmp_path) == ["token"]
