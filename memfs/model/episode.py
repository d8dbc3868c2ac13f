"""Episodes and rules as values: what an agent was about to do, what it did, and how that ended; the advice that was
learned from it; and the globs by which a rule or a convention names the files it holds for.

Values are checked when they are made, so an inconsistent episode cannot exist.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache

from memfs.dataclass import KW_ONLY, NamedTuple, dataclass, field
from memfs.errors import SchemaInvalid
from memfs.model.item import moment_in, texts_in, unfit
from memfs.model.kinds import nearest
from memfs.model.time import Moment, utc_now
from memfs.startup import Any, regex


class Outcome(StrEnum):
    """How something ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSnapshot:
    """The situation an agent is in.

    Attributes:
        files: the files it is about, "/" separated, as the agent names them; without repetitions.
        context: what it is about to do, or the question it asks, in words.
        tool: what it is about to use.
        agent, session, task: who it is, in which session, at which task.
        circumstances: further facts by name, such as ``{"branch": "main"}``.
    """

    files: tuple[str, ...] = ()
    context: str = ""
    tool: str = ""
    agent: str = ""
    session: str = ""
    task: str = ""
    circumstances: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", _files(self.files))
        for name in ("context", "tool", "agent", "session", "task"):
            _check_text(name, getattr(self, name))
        if not isinstance(self.circumstances, Mapping):
            raise unfit("circumstances", "a mapping", self.circumstances)

    @classmethod
    def create(
        cls,
        files: Iterable[str | os.PathLike[str]] = (),
        context: str = "",
        *,
        tool: str = "",
        agent: str = "",
        session: str = "",
        task: str = "",
        circumstances: Mapping[str, Any] | None = None,
    ) -> StateSnapshot:
        """A snapshot of a situation.

        Args:
            files: paths of the files it is about.
            context: what is about to be done, in words.
            tool: the tool that is about to be used.
            agent, session, task: who is at work, where, on what.
            circumstances: what else may matter, by name.

        Raises:
            SchemaInvalid: a value is of the wrong sort; ``field`` names it.
        """
        named = {"tool": tool, "agent": agent, "session": session, "task": task}
        return cls(files=_files(files), context=context, circumstances=dict(circumstances or {}), **named)


@dataclass(frozen=True, slots=True)
class Action:
    """What an agent did.

    Attributes:
        tool: the tool that was used.
        description: what was done, in one sentence.
    """

    tool: str
    description: str = ""

    def __post_init__(self) -> None:
        _check_text("tool", self.tool)
        _check_text("description", self.description)
        if not self.tool.strip() and not self.description.strip():
            raise SchemaInvalid("an action needs a tool or a description", field="tool", hint="name the tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """What happened once.

    Attributes:
        state: the situation before.
        action: what was done in it.
        outcome: how it ended.
        error_message: what went wrong, "" where nothing did.
        timestamp: when.
        warned: ids of the items that the agent was warned with before; what they are worth is learned from that.
        id: of its item; "" until it is stored.
    """

    state: StateSnapshot
    action: Action
    outcome: Outcome
    error_message: str = ""
    timestamp: datetime
    warned: tuple[str, ...] = ()
    id: str = ""

    @classmethod
    def create(
        cls,
        state: StateSnapshot,
        action: Action,
        outcome: Outcome | str,
        error_message: str | None = None,
        *,
        timestamp: datetime | str | None = None,
        warned: Iterable[str] = (),
    ) -> Episode:
        """An episode that has not been stored.

        Args:
            state: the situation in which the agent acted.
            outcome: how it ended: ``success``, ``failure`` or ``partial``.
            error_message: what went wrong.
            timestamp: when; now by default.
            warned: ids of the items that the agent was warned with.

        Raises:
            SchemaInvalid: a value is of the wrong sort; ``field`` names it.
        """
        for name, value, sort in (("state", state, StateSnapshot), ("action", action, Action)):
            if not isinstance(value, sort):
                makers = {StateSnapshot: "StateSnapshot.create(files, context)", Action: "Action(tool, description)"}
                raise unfit(name, makers[sort], value)
        given: object = error_message
        if isinstance(given, BaseException):
            hint = 'give what it says: f"{type(error).__name__}: {error}"'
            raise SchemaInvalid("expected text, got an exception", field="error_message", hint=hint)
        _check_text("error_message", given or "")
        return cls(
            state=state,
            action=action,
            outcome=_outcome(outcome),
            error_message=error_message or "",
            timestamp=Moment.of(utc_now() if timestamp is None else moment_in("timestamp", timestamp)),
            warned=tuple(dict.fromkeys(warned)),
        )


def _outcome(value: Outcome | str) -> Outcome:
    try:
        return Outcome(value)
    except ValueError:
        known = [one.value for one in Outcome]
        hint = nearest(str(value), known) or f"the outcomes are {', '.join(known)}"
        raise SchemaInvalid(f"there is no outcome {ascii(value)[:60]}", field="outcome", hint=hint) from None


def _files(values: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise unfit("files", "a list of paths", values)
    found = []
    for number, value in enumerate(values):
        written = os.fspath(value) if isinstance(value, (str, os.PathLike)) else value
        if not isinstance(written, str):
            raise unfit(f"files.{number}", "a path", value)
        if written.strip():
            found.append(written.replace("\\", "/") if os.sep == "\\" else written)
    return tuple(dict.fromkeys(found))


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise unfit(name, "text", value)


EPISODE = "episode"
RULE = "rule"


THRESHOLD = 0.7
"""How much two situations are alike at least, and how sure a rule is, unless a caller says otherwise."""


class TriggerRow(NamedTuple):
    """What is known of one episode or rule.

    Attributes:
        id: its id.
        path: its file.
        blob: what the file held when this was made of it.
        sort: ``episode`` or ``rule``.
        outcome: how an episode ended, "" for a rule.
        tool: what was used, or what a rule is for; "" for any.
        files: an episode's files as they were named; a rule's globs.
        words: terms of what the agent was about to do, each once; of a rule, those of its pattern.
        deeds: terms of what an episode's agent did, each once.
        context: what was about to be done; like the next two cut to a few hundred characters.
        did: what was done; of a rule, what it advises.
        error: what went wrong.
        timestamp: when it happened.
        time: when an episode happened, or a rule was last written, in seconds since 1970.
        warned: ids of the items that the agent of an episode was warned with.
        agent, session, task: who it was, in which session, at which task.
        trust, status: of the item.
        confidence: of a rule, 0 to 1; 0 for an episode.
        pinned: whether it never fades.
        supersedes: ids of the items it replaces.
        expires: when it stops being true, in seconds since 1970; 0 for never.
        similarity: how much an episode resembles what was asked about, 0 to 1, age and later successes counted in.
    """

    id: str
    path: str
    blob: str
    sort: str
    outcome: str = ""
    tool: str = ""
    files: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    deeds: tuple[str, ...] = ()
    context: str = ""
    did: str = ""
    error: str = ""
    time: float = 0.0
    warned: tuple[str, ...] = ()
    agent: str = ""
    session: str = ""
    task: str = ""
    trust: str = ""
    status: str = ""
    confidence: float = 0.0
    pinned: bool = False
    supersedes: tuple[str, ...] = ()
    expires: float = 0.0
    similarity: float = 0.0

    @property
    def timestamp(self) -> datetime:
        """``time`` as a point in time."""
        return datetime.fromtimestamp(self.time, UTC)


# -- rules ----------------------------------------------------------------------------------------------------------
RETIRED = "retired"
"""The status of a rule that stopped holding: it is kept, and no longer delivered."""
ENDED = frozenset({RETIRED, "superseded", "rejected", "archived"})
"""The statuses in which a rule is not delivered, and an episode brings nothing to mind."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Advice for a situation.

    Attributes:
        pattern: words of a situation in which it applies; may be empty where ``files`` or ``tool`` say so.
        action: what to do then, in one sentence.
        confidence: how sure it is, 0 to 1.
        files: the files it is about, as globs: ``db/migrations/*.sql``; none for any.
        tool: what is about to be used, "" for any.
        error: what went wrong where it was not heeded.
        support, against: how many outcomes speak for it, and against it.
        helped: how many went well after an agent had been warned with it.
        learned_from: ids of the episodes it was learned from.
        id: of its item; "" until it is stored.
        trust: who vouches for it.
        status: "" while it holds, ``retired`` when it stopped holding.
        pinned: whether it is kept as it is, whatever the outcomes say.
    """

    pattern: str
    action: str
    confidence: float = 0.7
    _: KW_ONLY
    files: tuple[str, ...] = ()
    tool: str = ""
    error: str = ""
    support: int = 0
    against: int = 0
    helped: int = 0
    learned_from: tuple[str, ...] = ()
    id: str = ""
    trust: str = "agent"
    status: str = ""
    pinned: bool = False

    def __post_init__(self) -> None:
        for name in ("pattern", "action", "tool", "error", "id", "trust", "status"):
            _check_text(name, getattr(self, name))
        for name in ("files", "learned_from"):
            object.__setattr__(self, name, texts_in(name, getattr(self, name)))
        for name in ("support", "against", "helped"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise unfit(name, "a whole number of at least 0", value)
        sure = self.confidence
        if not isinstance(sure, (int, float)) or isinstance(sure, bool) or not 0 <= sure <= 1:
            raise unfit("confidence", "a number from 0 to 1", sure)
        if not self.action.strip():
            raise SchemaInvalid("a rule needs an action", field="action", hint="say what to do, in one sentence")
        if not self.pattern.strip() and not self.files and not self.tool.strip():
            hint = "name words of the situation, files, or a tool"
            raise SchemaInvalid("a rule needs a situation in which it applies", field="pattern", hint=hint)

    @property
    def holds(self) -> bool:
        """Whether it may be said to an agent."""
        return self.status not in ENDED

    def __str__(self) -> str:
        """The seed's bullet without its dash: the action, and how sure it is."""
        return f"{self.action} (confidence: {self.confidence:.0%})"


_FOLDERS = "**"
_SIGNS = regex(r"[*?]|\[[^\]/]*\]")

Part = str | re.Pattern[str]
"""What one name of a path must be; ``**`` for any number of folders."""


def fits(glob: str, path: str, *, anywhere: bool = False) -> bool:
    """Whether a glob means a file.

    ``*`` and ``?`` stay within one name, ``**`` stands for folders, ``[ab]`` is one of several characters, or what is
    written, since files are named so, too. A glob without ``/`` means a name in any folder; one that names a folder
    means all below it. An absolute path is meant by its end. What it takes grows with both lengths alone, whatever the
    glob.

    Args:
        anywhere: whether the glob may begin in any folder, and not at the top alone.
    """
    parts = _parts(glob)
    whole = plain(path)
    if not parts or len(whole) > 4096:
        return False
    begins = anywhere or whole.startswith("/") or len(parts) == 1
    return _match((_FOLDERS, *parts) if begins else parts, whole.split("/"))


def is_wild(glob: str) -> bool:
    """Whether a glob has a wildcard; brackets do not count, as file names have them."""
    return "*" in glob or "?" in glob


def literal_part(glob: str) -> str:
    """The longest piece of a glob that is in every path it means."""
    return max(_SIGNS.split(plain(glob.strip())), key=len).strip("/")


def plain(path: str) -> str:
    """A path without the ``./`` before it."""
    while path.startswith("./"):
        path = path[2:]
    return path


@lru_cache(maxsize=2048)
def _parts(glob: str) -> tuple[Part, ...]:
    """What a glob asks of a path, name by name; () for one that means nothing."""
    written = plain(glob.strip()).strip("/")
    if not written or len(written) > 300:
        return ()
    return tuple(_part(name) for name in written.split("/"))


def _part(name: str) -> Part:
    """Brackets are also taken as they are: files are named with them."""
    if name == _FOLDERS or not (is_wild(name) or "[" in name):
        return name
    return re.compile(f"{translate(name.replace('[^', '[!'))}|{re.escape(name)}", re.DOTALL)


def _match(parts: Sequence[Part], names: Sequence[str]) -> bool:
    """Whether the parts take a whole path, or the beginning of it that is a folder: how far they can take it."""
    reached = {0}
    for at, part in enumerate(parts):
        if part == _FOLDERS:
            reached = set(range(min(reached) + (at == len(parts) - 1), len(names) + 1))
        else:
            inside = [place for place in reached if place < len(names)]
            if isinstance(part, str):
                reached = {place + 1 for place in inside if names[place] == part}
            else:
                reached = {place + 1 for place in inside if part.fullmatch(names[place])}
        if not reached:
            return False
    return any(reached)
