"""A session of the OpenAI Agents SDK, whose conversation is kept in a workspace.

An item of the SDK comes back as it was stored, and items keep their order. Needs ``pip install
'gitmemfs[openai-agents]'``.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from memfs.dataclass import replace
from memfs.errors import Conflict, ContentError, ExtraMissing, IdExists, ItemNotFound, SchemaInvalid
from memfs.facades.open_workspaces import SignedFacade
from memfs.format.plain import hidden, plain
from memfs.intake.episode_item import clean_text
from memfs.model import MemoryItem, Query
from memfs.model.ids import slug
from memfs.model.item import Origin, Trust
from memfs.model.query import MOST, Candidate
from memfs.store.store import retry_on_conflict
from memfs.workspace import Workspace

try:
    from agents.memory import SessionSettings
except ImportError as error:
    raise ExtraMissing.of("a session of the OpenAI Agents SDK", "openai-agents", ("agents",), error) from error

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

SOURCE = "openai-agents"
_KIND = "conversation"
_MOST_SHOWN = 20_000
_MOST_IN_ONE = 400_000  # characters of JSON in one file, which may have 1 MiB
_TRIES = 100
_TAKEN_OUT = "taken out of the session"


class MemfsSession:
    """A conversation of the OpenAI Agents SDK, kept as files that people can read.

    Follows the SDK's ``Session`` protocol: what ``add_items`` has returned from survives kill -9, items come back as
    they were and in the order in which they were added, and several processes may use one session at once.

    Attributes:
        session_id: names the conversation.
        session_settings: the SDK's settings; ``limit`` holds where ``get_items`` is given none.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        path: str | os.PathLike[str] | None = None,
        *,
        session_settings: SessionSettings | Mapping[str, Any] | None = None,
        agent: str = "",
        allow_secret: str = "",
        workspace: Workspace | None = None,
    ) -> None:
        """Choose the conversation and the workspace that keeps it, as every facade does.

        Args:
            session_id: any text; sessions of the same name share one conversation.
            path: a folder; see ``memfs.facades.open_workspaces.Facade``.
            session_settings: the SDK's settings, or their values by name.
            agent: who is recorded as the agent of what is stored; without a name, the door's own.
            allow_secret: why items that hold what looks like a secret may be stored; without it they are refused.
            workspace: an open workspace to work in, instead of ``path``.

        Raises:
            SchemaInvalid: the name of the session is empty or too long.
            WorkspaceNotFound: see ``path``.
        """
        if not isinstance(session_id, str) or not 1 <= len(session_id.strip()) <= 200:
            raise SchemaInvalid("a session's name has 1 to 200 characters", field="session_id", hint="name it shorter")
        self.session_id = session_id
        given = dict(session_settings) if isinstance(session_settings, Mapping) else session_settings
        self.session_settings = SessionSettings(**given) if isinstance(given, dict) else given or SessionSettings()
        shown = " ".join(clean_text(session_id, 200).split()) or "session"  # the ids distinguish what looks the same
        origin = Origin(agent=agent or SOURCE, session=shown)
        self._talk = _Talk(session_id, path, origin=origin, allow_secret=allow_secret, workspace=workspace)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The conversation, oldest item first.

        Args:
            limit: how many of the latest items; None: as the settings say, else all; a negative one: all.

        Raises:
            ContentError, StorageIO: the conversation cannot be read at present.
        """
        asked = self.session_settings.limit if limit is None and self.session_settings is not None else limit
        return await asyncio.to_thread(self._talk.latest, asked)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items to the end of the conversation, all or none of them.

        Raises:
            SecretDetected: one holds what looks like a secret, and no reason to keep it was given.
            ContentError, StorageIO: nothing was added.
            TypeError, ValueError: one cannot be written as JSON.
        """
        if items:
            await asyncio.to_thread(self._talk.add, items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the latest item out of the conversation; None where it is empty. History keeps it.

        Raises:
            StorageIO: nothing was taken out.
        """
        return await asyncio.to_thread(self._talk.pop)

    async def clear_session(self) -> None:
        """Take out all items; history keeps them.

        Raises:
            StorageIO: nothing was taken out.
        """
        await asyncio.to_thread(self._talk.clear)

    def close(self) -> None:
        """End the session, which commits what waits for that, and the use of the workspace. May be repeated."""
        self._talk.finish()


# -- the conversation --------------------------------------------------------------------------------------------
class _Talk(SignedFacade):
    """The items of one conversation in one workspace, by number."""

    def __init__(self, name: str, path: str | os.PathLike[str] | None, **chosen: Any) -> None:
        super().__init__(path, source=SOURCE, **chosen)
        self.name = name

    def latest(self, limit: int | None) -> list[TResponseInputItem]:
        """The latest items, oldest first; what a person made unreadable is left out."""
        if limit == 0:
            return []
        found: list[tuple[list[MemoryItem], TResponseInputItem]] = []
        for number in sorted(self._numbers(), reverse=True):
            item = self._read(number)
            if item is not None:
                found.append(item)
            if limit is not None and len(found) == limit:
                break
        self.served([file.id for files, _ in reversed(found) for file in files])
        return [item for _, item in reversed(found)]

    def add(self, items: Sequence[Any]) -> None:
        """Add items behind the last one; of two writers who want the same place one takes the next."""

        def added() -> None:
            number = max(self._numbers(), default=0) + 1
            files = [file for at, item in enumerate(items) for file in self._files(item, number + at)]
            self.write([(file, "") for file in files], f"Add {len(items)} items to the session {self._shown}")

        retry_on_conflict(added, tries=_TRIES, on=(Conflict, IdExists))

    def pop(self) -> TResponseInputItem | None:
        """Remove the last item that can be read and return it."""

        def popped() -> TResponseInputItem | None:
            """Where another took it, the one before."""
            found = next(filter(None, map(self._read, sorted(self._numbers(), reverse=True))), None)
            if found is None:
                return None
            self.served([file.id for file in found[0]])
            gone = [(file.id, file.sha256) for file in found[0]]
            self.write(gone, f"Take the last item out of the session {self._shown}", reason=_TAKEN_OUT)
            return found[1]

        return retry_on_conflict(popped, tries=_TRIES, on=(Conflict, ItemNotFound))

    def clear(self) -> None:
        """Remove all items, also those that somebody adds meanwhile."""

        def cleared() -> None:
            for _ in range(_TRIES):
                if not (ids := [candidate.id for candidate in self._candidates()]):
                    return
                self.write([(one, None) for one in ids], f"Clear the session {self._shown}", reason=_TAKEN_OUT)

        retry_on_conflict(cleared, tries=_TRIES, on=(Conflict, ItemNotFound))

    # -- one item ------------------------------------------------------------------------------------------------
    def _files(self, item: Any, number: int) -> Iterator[MemoryItem]:
        """The files of an item of the SDK: one with the item, or several with pieces of its JSON where none holds it.

        Raises:
            TypeError, ValueError: JSON cannot hold it.
        """
        try:
            written = json.dumps(item)
            value = json.loads(written)
        except RecursionError:
            raise ValueError("an item is nested too deeply") from None
        facts = value if isinstance(value, dict) else {}
        sort, name = str(facts.get("type") or "message"), facts.get("name")
        role = "tool" if sort.endswith("_output") else _line(str(facts.get("role") or "assistant"))
        tool = _line(name) if sort.endswith("_call") and isinstance(name, str) else ""
        text = clean_text("\n".join(_content_lines(facts)), _MOST_SHOWN)
        bodies: list[dict[str, Any]] = [{"item": value}]
        if len(written) > _MOST_IN_ONE or not _holds(value):
            starts = range(0, len(written), _MOST_IN_ONE)
            bodies = [{"json": written[start : start + _MOST_IN_ONE]} for start in starts]
            bodies[0] = {"parts": len(starts), **bodies[0]}
        for part, data in enumerate(bodies):
            yield MemoryItem(
                text if not part else f"The item {self._id(number)} goes on here.",
                _KIND,
                id=self._id(number, part),
                title="" if text else _line(sort),
                trust=Trust.TOOL.value if role == "tool" else Trust.AGENT.value,
                origin=replace(self._origin, role=role, sequence=number, tool=tool),
                data=data,
            )

    def _read(self, number: int) -> tuple[list[MemoryItem], TResponseInputItem] | None:
        """The files of one item and what it is, None where it is gone or cannot be read."""
        try:
            head = self.workspace.store.get(self._id(number))
            if head is None:
                return None
            if "item" in head.data:
                return [head], cast("TResponseInputItem", head.data["item"])
            parts = [self.workspace.store.get(self._id(number, part)) for part in range(1, int(head.data["parts"]))]
            files = [head, *filter(None, parts)]
            return files, json.loads("".join(str(file.data["json"]) for file in files))
        except (ContentError, KeyError, TypeError, ValueError):
            return None

    # -- which there are -----------------------------------------------------------------------------------------
    def _candidates(self) -> list[Candidate]:
        query = Query(types=frozenset({_KIND}), sessions=frozenset({self._shown}), limit=MOST)
        return [found for found in self.workspace.store.candidates(query) if found.id.startswith(self._stem)]

    def _numbers(self) -> set[int]:
        """The numbers of the items there are."""
        candidates = self._candidates()
        ends = (candidate.id.removeprefix(self._stem) for candidate in candidates)
        found = {int(end) for end in ends if re.fullmatch(r"[0-9]{6,12}", end)}
        if len(candidates) == MOST:  # no query gives more: what came before them is looked for by name
            locate = self.workspace.store.locate
            found |= {number for number in range(1, min(found, default=1)) if locate(self._id(number))}
        return found

    @property
    def _stem(self) -> str:
        digest = hashlib.sha256(self.name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
        return f"{slug(self._shown) or 'session'}-{digest}-"

    @property
    def _shown(self) -> str:
        return self._origin.session

    def _id(self, number: int, part: int = 0) -> str:
        return f"{self._stem}{number:06d}" + (f".{part}" if part else "")


# -- an item of the SDK ------------------------------------------------------------------------------------------
def _holds(value: Any) -> bool:
    """Whether a file can hold a value so that it comes back as it was."""
    try:
        return plain(value) == value and next(hidden(value), None) is None
    except ContentError:
        return False


def _line(text: str) -> str:
    return " ".join(clean_text(text, 90).split())


def _content_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """What a person would call the text of an item."""
    if isinstance(facts.get("name"), str) and "arguments" in facts:
        yield f"{facts['name']}({facts['arguments']})"
    for key in ("content", "output", "summary", "text", "refusal"):
        yield from _texts(facts.get(key))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, dict):
        for key in ("text", "refusal", "content"):
            yield from _texts(value.get(key))
