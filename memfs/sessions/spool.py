"""The events of an agent's session, read from the JSON that a hook gets, and kept until they become memories.

Every spelling that programs use is understood, and what an event holds is bounded. Events are durable once they are
added, and come back in order, by session. Any number of processes may add to it at once. Notes are written in one
piece after the memories, so that the next drain continues from there whatever is killed; they hold digests in place of
texts that may be secret. Nothing is opened to find the place, and little imported, so that a hook which only keeps an
event ends at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from memfs import private
from memfs.dataclass import dataclass, field
from memfs.errors import ItemSyntaxError, MemfsError, Problem, RepoUnsupported, WorkspaceNotFound
from memfs.fs import append_log, io
from memfs.fs.workspace_location import find_workspace, named_workspace
from memfs.git.layout import Layout, discover, state_folder
from memfs.model.time import format_time, time_in, utc_now
from memfs.private import Project
from memfs.startup import Any, json, regex, sha256

LARGEST = 1 << 16
"""How many bytes one event takes at most, as JSON."""
LARGEST_INPUT = 1 << 26
"""How many bytes a hook's input may have to be read at all."""

CLAUDE_CODE = "claude-code"
PROMPT, TOOL_DONE, TOOL_FAILED, TASK_DONE = "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "TaskCompleted"
SESSION_START, SESSION_END = "SessionStart", "SessionEnd"
STOP, PRE_COMPACT, PRE_TOOL = "Stop", "PreCompact", "PreToolUse"
SUBAGENT_START, SUBAGENT_STOP = "SubagentStart", "SubagentStop"
EVENTS = (
    SESSION_START,
    PROMPT,
    PRE_TOOL,
    TOOL_DONE,
    TOOL_FAILED,
    TASK_DONE,
    PRE_COMPACT,
    STOP,
    SUBAGENT_START,
    SUBAGENT_STOP,
    SESSION_END,
)
"""The events that memfs answers or keeps, in the order of a session."""

_PLAIN = {name.lower(): name for name in EVENTS}
_NAME = "hook_event_name"
_TEXTS = ("name", "session", "moment", "cwd", "client")
_TAKEN = frozenset({_NAME, "session_id", "cwd"})
_LONGEST_NAME = 64
_LONGEST_SESSION = 200
_LONGEST_PATH = 4096
_LONGEST_TEXT = 24_000
_LONGEST_OF_TOOL = 4_000  # whole files come with each edit, and are not worth remembering
_MOST_MEMBERS = 256
_DEEPEST = 8
_CUT = "\n[... {} characters left out ...]\n"


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """One event of an agent's session.

    Attributes:
        name: what happened, as Claude Code names it: ``UserPromptSubmit``.
        session: the session's id, "" when the program named none.
        moment: when it was heard, ISO 8601, UTC.
        cwd: the folder in which the agent works, "" when unknown.
        client: the program that reported it: ``claude-code``.
        fields: everything else that was reported, bounded in size.
    """

    name: str
    session: str = ""
    moment: str = field(default_factory=lambda: format_time(utc_now()))
    cwd: str = ""
    client: str = CLAUDE_CODE
    fields: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def text(self, name: str) -> str:
        """A field as text; "" where it is absent or no text."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def mapping(self, name: str) -> Mapping[str, Any]:
        """A field as a mapping; an empty one where it is absent or none."""
        value = self.fields.get(name)
        return value if isinstance(value, Mapping) else {}

    @property
    def agent(self) -> str:
        """The sort of agent that it is about: a subagent's type, "" for the one that the person talks to."""
        return _line(self.text("agent_type"))[:_LONGEST_NAME]

    @property
    def tool(self) -> str:
        """The tool that it is about, "" for none."""
        return self.text("tool_name")


def canonical_name(name: str) -> str:
    """An event's name as Claude Code writes it, from any case: ``user-prompt-submit`` means ``UserPromptSubmit``."""
    plain = "".join(character for character in name if character.isalnum()).lower()
    return _PLAIN.get(plain, _clean(name.strip())[:_LONGEST_NAME])


def parse(given: bytes | str, name: str = "") -> SessionEvent:
    """Read what a program hands to its hook.

    Args:
        given: JSON, an object. Fields of the wrong sort are kept as they are: ``text`` and ``mapping`` pass them over.
        name: what happened, where the caller knows it better than the input.

    Raises:
        ItemSyntaxError: it is no JSON object, or no event is named.
    """
    hint = "a hook gets one JSON object on standard input"
    if len(given) > LARGEST_INPUT:
        raise ItemSyntaxError("the hook's input is too large", hint=hint)
    try:
        text = given.decode("utf-8-sig", "replace") if isinstance(given, bytes) else given
        fields = json.loads(text, parse_int=_number, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise ItemSyntaxError("the hook's input is not JSON", hint=hint) from error
    if not isinstance(fields, dict):
        raise ItemSyntaxError("the hook's input is not a JSON object", hint=hint)
    named = name or fields.get(_NAME)
    if not isinstance(named, str) or not named:
        raise ItemSyntaxError("no event is named", field=_NAME, hint="give the event's name as an argument")
    session, cwd = fields.get("session_id"), fields.get("cwd")
    return bounded(
        SessionEvent(
            name=canonical_name(named),
            session=str(session if isinstance(session, str | int) else ""),
            cwd=_clean(cwd)[:_LONGEST_PATH] if isinstance(cwd, str) else "",
            fields={key: value for key, value in fields.items() if key not in _TAKEN},
        )
    )


def bounded(event: SessionEvent) -> SessionEvent:
    """The event in at most ``LARGEST`` bytes: long texts keep beginning and end, and the session's name is one line."""
    about_tool = event.name in (PRE_TOOL, TOOL_DONE, TOOL_FAILED)
    longest, members = _LONGEST_OF_TOOL if about_tool else _LONGEST_TEXT, _MOST_MEMBERS
    session = _line(event.session)[:_LONGEST_SESSION].strip()
    while True:
        fields = _cut(dict(event.fields), longest, members, 0)
        cut = SessionEvent(event.name, session, event.moment, event.cwd, event.client, MappingProxyType(fields))
        if len(encoded(cut)) <= LARGEST or members < 1:
            return cut
        longest, members = longest // 2, members // 2


def encoded(event: SessionEvent) -> bytes:
    """The event as one line of JSON, without its newline."""
    record = {**{name: getattr(event, name) for name in _TEXTS}, "fields": dict(event.fields)}
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def decoded(line: bytes) -> SessionEvent | None:
    """The event that such a line holds; None where it holds none, whatever somebody wrote there."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not isinstance(record.get("fields"), dict):
        return None
    texts = {name: text for name in _TEXTS if isinstance(text := record.get(name), str)}
    return SessionEvent(**texts, fields=MappingProxyType(record["fields"])) if len(texts) == len(_TEXTS) else None


def _number(digits: str) -> int | str:
    """A whole number; one too large to matter stays a text, which costs no time to read."""
    return int(digits) if len(digits) < 19 else digits


def _cut(value: Any, longest: int, members: int, depth: int) -> Any:
    if isinstance(value, str):
        return _shortened(_clean(value), longest)
    if isinstance(value, bool | int | None):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if depth >= _DEEPEST:
        return "[...]"
    if isinstance(value, Mapping):
        some = list(value.items())[:members]
        return {_clean(str(key))[:_LONGEST_NAME]: _cut(inner, longest, members, depth + 1) for key, inner in some}
    if isinstance(value, list | tuple):
        return [_cut(inner, longest, members, depth + 1) for inner in value[:members]]
    return _shortened(_clean(str(value)), longest)


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    begin = longest * 2 // 3
    end = longest - begin
    return text[:begin] + _CUT.format(len(text) - longest) + (text[-end:] if end else "")


def _line(text: str) -> str:
    """A name on one line."""
    return " ".join(_clean(text).split())


def _clean(text: str) -> str:
    """The text as UTF-8 can hold it: halves of characters become question marks."""
    return text.encode("utf-8", "replace").decode()


_COMMAND = regex(r"/[A-Za-z][\w:-]*(?:\s|$)")
_MARKUP = regex(r"<(?:command-(?:name|message|args)|local-command-\w+|system-reminder|task-notification)>")


def own_words(event: SessionEvent) -> str:
    """What a person said in a prompt; "" where a program said it, or it is a command to the program."""
    text = event.text("prompt").strip()
    if (text[0:1] == "/" and _COMMAND.match(text)) or (text[0:1] == "<" and _MARKUP.match(text)):
        return ""
    return text if event.text("source") in ("", "user", "sdk") else ""


def by_person(event: SessionEvent) -> bool:
    """Whether a person typed it, and not a program that drives the agent."""
    return event.text("source") in ("", "user")


# -- what waits ------------------------------------------------------------------------------------------------------
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
_UNNAMED = "unnamed"


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """One event that waits.

    Attributes:
        event: what was reported.
        key: a digest of it and its moment, by which it is known whenever it is taken.
        end: where its line ends in the session's file.
    """

    event: SessionEvent
    key: str
    end: int


@dataclass(frozen=True, slots=True)
class Look:
    """What is in a file of the spool: events in order, lines that are damaged, and where the last whole line ends."""

    events: list[PendingEvent]
    damaged: list[bytes]
    end: int


class Spool:
    """The waiting events of one workspace, by session. Any number of processes may add to it at once."""

    def __init__(self, state: Path) -> None:
        """``state``: the workspace's state folder (``Place.state``, ``workspace.repository.state``)."""
        self.folder = state / append_log.FOLDER

    def append(self, event: SessionEvent) -> None:
        """Keep an event; on return it survives kill -9 and a power cut.

        Raises:
            StorageFull, StorageReadOnly, StorageIO: it could not be kept.
            LockTimeout: a process that was stopped holds the session's file.
        """
        kept = bounded(event)
        text, path = encoded(kept), self.path(kept.session)
        try:
            append_log.append(path, text)
        except FileNotFoundError:
            io.make_private_folder(self.folder)
            append_log.append(path, text)

    def path(self, session: str) -> Path:
        """The file in which a session's events wait."""
        return self.folder / f"{file_name(session)}{append_log.SUFFIX}"

    def waiting(self) -> int:
        """How many events wait, of all sessions."""
        return sum(len(self.look(path).events) for path in append_log.waiting(self.folder))

    def look(self, path: Path) -> Look:
        """What is in one of the spool's files.

        Raises:
            NotRegularFile, StorageIO: it cannot be read.
        """
        lines, damaged = append_log.read(path)
        events = [
            PendingEvent(event, sha256(line.text).hexdigest()[:16], line.end)
            for line in lines
            if (event := decoded(line.text)) is not None
        ]
        return Look(events, damaged, lines[-1].end if lines else 0)


def file_name(session: str) -> str:
    """A session's name as a file's stem: as it is where that is safe, else a digest."""
    if not session:
        return _UNNAMED
    if _SAFE.fullmatch(session) and session != _UNNAMED:
        return session
    return f"_{sha256(session.encode('utf-8', 'replace')).hexdigest()[:32]}"


# -- notes -----------------------------------------------------------------------------------------------------------
SUFFIX = ".notes.json"
_MOST = 500
_LARGEST = 4 << 20


@dataclass(slots=True)
class SessionNotes:
    """What is known of one session.

    Attributes:
        session: whose notes these are.
        heard: when the last event came, ISO 8601.
        upto, last: where the line ends that was taken last, and its key.
        head, tries: the key of the event that is to be taken first, and how often that was begun.
        todos: by digest of its text, the stage a todo was in last, and since when it is being worked on.
        tasks: by its id, what a task is about, and since when it is being worked on.
        done: digests of the tasks that are reported as done, with when.
        failures: digest of what failed, and of how; empty where it worked since.
        seen: digests of the latest events with when they came, to notice one that is reported twice.
        steps: what was done lately, in words, cleaned.
        episodes: how many episodes the session has given.
        ended: whether the session said that it ended.
    """

    session: str = ""
    heard: str = ""
    upto: int = 0
    last: str = ""
    head: str = ""
    tries: int = 0
    todos: dict[str, list[str]] = field(default_factory=dict)
    tasks: dict[str, list[str]] = field(default_factory=dict)
    done: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    episodes: int = 0
    ended: bool = False


def noted_sessions(folder: Path) -> list[Path]:
    """The files of notes in a spool's folder."""
    return list(folder.glob(f"*{SUFFIX}"))


def read_notes(path: Path) -> SessionNotes:
    """The notes in a file; empty ones where it is not there or holds something else."""
    stored, empty = io.read_record(path, _LARGEST), SessionNotes()
    if not isinstance(stored, dict):
        return empty
    names = SessionNotes.__annotations__
    return SessionNotes(**{name: stored[name] for name in names if _fits(stored.get(name), getattr(empty, name))})


def write_notes(path: Path, notes: SessionNotes) -> None:
    """Keep notes in a file, in one piece; of long lists, what is newest.

    Raises:
        StorageIO: as the system says; what was there before is kept.
    """
    for kept in (notes.todos, notes.tasks, notes.done, notes.failures, notes.seen):
        for key in list(kept)[: max(len(kept) - _MOST, 0)]:
            del kept[key]
    io.write_file(path, json.dumps({name: getattr(notes, name) for name in SessionNotes.__annotations__}).encode())


DIES_AFTER = timedelta(hours=12)
"""How long a session is silent until it has ended though no event said so."""


def died(notes: SessionNotes, now: datetime) -> bool:
    """Whether a session was silent for so long that it has ended."""
    heard = time_in(notes.heard)
    return heard is not None and now - heard > DIES_AFTER


def left_behind(state: Path, session: str) -> bool:
    """Whether something is to become memories before a session starts: of another session any event that waits, or its
    end; of this one what it reported before.

    Args:
        state: the workspace's state folder.
    """
    spool, own, now = Spool(state), file_name(session), utc_now()
    for path in append_log.waiting(spool.folder):
        if path.stem != own or any(one.event.name != SESSION_START for one in spool.look(path).events):
            return True
    return any(notes.ended or died(notes, now) for notes in map(read_notes, noted_sessions(spool.folder)))


def digest(*parts: str) -> str:
    """A digest in place of texts that are not kept."""
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:20]


def _fits(value: object, like: object) -> bool:
    if type(value) is not type(like):
        return False
    if isinstance(value, Mapping):
        return all(isinstance(one, str) or _texts(one) for one in value.values())
    return not isinstance(value, list) or _texts(value)


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


# -- what goes wrong -------------------------------------------------------------------------------------------------
_LARGEST_LOG = 128 * 1024
_LONGEST = 500
_REPORTED_FOR = timedelta(days=3)


def note_error(state: Path, event: str, sentence: str) -> None:
    """Write down what went wrong in a hook. Never raises because of the disk."""
    row = [format_time(utc_now()), event[:_LONGEST], " ".join(sentence.split())[:_LONGEST]]
    with suppress(MemfsError, OSError):
        append_log.note(state / append_log.ERRORS, json.dumps(row).encode(), _LARGEST_LOG)


def problems(state: Path, now: datetime | None = None) -> list[Problem]:
    """What went wrong in hooks within the last days, as one problem.

    Args:
        state: the workspace's state folder.
    """
    log, since = state / append_log.ERRORS, (now or utc_now()) - _REPORTED_FOR
    rows = [row for row in append_log.noted(log, _LARGEST_LOG) if list(map(type, row)) == [str, str, str]]
    found = [row for row in rows if (moment := time_in(row[0])) is not None and moment >= since]
    if not found:
        return []
    at, event, sentence = found[-1]
    times = "once" if len(found) == 1 else f"{len(found)} times"
    message = f"hooks failed {times} in the last three days; last {event} at {at[:16]}Z: {sentence}"
    hint = f"{log} has all of it; what is older than three days is no longer reported"
    return [Problem.warning("", "HookFailed", message, hint)]


PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"
REPOSITORY = "repository"
"""Into the repository's memory, instead of the private one."""


@dataclass(frozen=True, slots=True)
class SessionLocation:
    """Where a session's memory goes, and where it comes from.

    Attributes:
        root: the workspace that it goes to.
        state: that one's state folder, private to this user.
        folder: that from which files are named: the repository's memory, else the project.
        memory: the repository's memory, which is read with it; None where there is none.
    """

    root: Path
    state: Path
    folder: Path
    memory: Path | None = None

    @classmethod
    def within(cls, root: Path, state: Path) -> SessionLocation:
        """The place where a workspace keeps what its own sessions report."""
        return cls(root, state, root, root)

    @property
    def read(self) -> Path:
        """The workspace that answers: the repository's with the private one beside it, else the private one alone."""
        return self.memory or self.root

    @property
    def private(self) -> bool:
        """Whether what a session reports goes to private memory."""
        return self.memory != self.root


@dataclass(frozen=True, slots=True)
class AgentLocation:
    """Where an agent works: its project, and the repository's memory, None where there is none."""

    project: Project
    memory: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder from which files are named: that of the code where memory, on its own branch, is in git."""
        git = self.project.git
        within = self.memory is not None and git is not None and self.memory.is_relative_to(git)
        return self.project.folder if self.memory is None or within else self.memory


def find_place(
    cwd: str = "", environ: Mapping[str, str] | None = None, *, folder: str = "", into: str = ""
) -> SessionLocation:
    """The place for an agent that works in a folder, made where it is not there: that may take some seconds.

    Args:
        cwd: the folder; "" means the current one.
        environ: the environment, the process's own by default.
        folder: one that goes before all of that, as after ``-C``.
        into: ``repository`` for the repository's memory, where there is one; else private memory.

    Raises:
        WorkspaceNotFound: ``MEMFS_WORKSPACE`` names a folder that holds no workspace.
        RepoUnsupported, RepoUntrusted, StorageIO: memfs cannot keep anything there.
    """
    found = agent_location(cwd, environ, folder=folder)
    place = known_place(found, into)
    return make_place(found, place) if place is None or place.private else place


def agent_location(cwd: str = "", environ: Mapping[str, str] | None = None, *, folder: str = "") -> AgentLocation:
    """What an agent works at.

    The project is that of the folder that was named, else the one that ``CLAUDE_PROJECT_DIR`` names, so that an agent
    that goes into another folder keeps its memory, else the one around the agent's folder. The repository's memory is
    what ``MEMFS_WORKSPACE`` names, else the workspace around it in the same repository.

    Raises:
        WorkspaceNotFound: as ``find_place``.
    """
    known = os.environ if environ is None else environ
    named = (folder, known.get(PROJECT_VARIABLE, ""), cwd)
    start = next((one for one in named if one and os.path.isdir(one)), ".")
    project, memory = private.project_at(start), None
    if not folder and named_workspace(known):
        return AgentLocation(project, find_workspace(environ=known))
    if project.git is not None:
        with suppress(WorkspaceNotFound, OSError, ValueError):
            memory = find_workspace(start)
    if memory is not None and private.project_at(memory).place != project.place:
        memory = None  # that of another project, which this one is in
    return AgentLocation(project, memory)


def known_place(found: AgentLocation, into: str = "") -> SessionLocation | None:
    """The place for what an agent works at, None where that is yet to be made.

    Raises:
        StorageReadOnly: private memory is open to others.
        RepoUnsupported, RepoUntrusted, StorageIO: as ``find_place``.
    """
    if into == REPOSITORY and found.memory is not None:
        return SessionLocation.within(found.memory, state_of(found.memory))
    root = private.find(found.project)
    layout = discover(root) if root is not None else None
    if root is None or layout is None or layout.work_tree != root:  # half made, in a folder inside another's
        return None
    return SessionLocation(root, _state(root, layout), found.folder, found.memory)


def make_place(found: AgentLocation, known: SessionLocation | None = None) -> SessionLocation:
    """The place in private memory, made where it is not there, and brought up to date where the project has moved.

    Args:
        known: the place as it was found a moment ago.

    Raises:
        RepoUnsupported, StorageIO: memfs cannot keep anything there.
    """
    root = private.claim(found.project)
    place = known if known is not None and known.root == root else known_place(found)
    if place is None:
        from memfs.workspace import open_workspace  # wanted once a project

        open_workspace(root, create=True, watch=False, own_repository=True).close()
        place = SessionLocation(root, state_of(root), found.folder, found.memory)
    return place


def state_of(root: Path) -> Path:
    """The state folder of a workspace.

    Raises:
        RepoUnsupported, RepoUntrusted, StorageIO: memfs cannot keep anything there.
    """
    layout = discover(root)
    if layout is None:
        raise RepoUnsupported("this workspace is in no git repository", path=str(root), hint="run memfs init there")
    return _state(root, layout)


def _state(root: Path, layout: Layout) -> Path:
    if layout.foreign or layout.elsewhere:  # whether that is trusted, takes more than a hook otherwise needs
        from memfs import trust
        from memfs.git.repository import Repository

        found = Repository.find(root, trusted=trust.repository)
        assert found is not None  # it has a layout
        return found.state
    return state_folder(layout)
