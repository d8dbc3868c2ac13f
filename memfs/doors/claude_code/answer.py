"""Answer an event of an agent's session: do the work that it asks for, and return what the hook prints.

Each program gets a context in the form in which it takes one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from memfs.doors.claude_code.hook import DRAINS, LEARNING_SECONDS, HookHost
from memfs.errors import MemfsError
from memfs.fs import append_log
from memfs.private import NAME
from memfs.sessions import spool
from memfs.sessions.respond import Responder, announce
from memfs.startup import Any, json
from memfs.store.access_log import served_to
from memfs.workspace import Workspace, open_workspace

Complain = Callable[[str], None]
_RESPONSES: Mapping[str, Callable[[Responder], str]] = {
    spool.SESSION_START: Responder.at_start,
    spool.PROMPT: Responder.at_prompt,
    spool.PRE_TOOL: Responder.before_tool,
    spool.SUBAGENT_START: Responder.at_subagent,
}


def answer(
    event: spool.SessionEvent,
    place: spool.SessionLocation,
    say: Callable[[str], None],
    complain: Complain,
    settings: Mapping[str, Any],
    host: HookHost | None = None,
) -> bool:
    """Do what an event asks for.

    What cannot be made into memories now stays in the spool, and keeps no answer back.

    Args:
        say: is given what is to be printed, before the workspace is closed, which may take a moment.
        complain: called with what went wrong without ending the answer.
        settings: values that win over the workspace's.
        host: what answers it, where that is a child of a resident process.

    Returns:
        Whether something is left to be learned (``learn``).

    Raises:
        MemfsError: the workspace cannot be opened or read.
    """
    starts = event.name == spool.SESSION_START
    if starts:
        announce(event, place)
    hosted = host is not None and place.memory == host.root
    if event.name in DRAINS and not starts and place.private:
        _drain(event, place, complain, settings, learned=not hosted)
        return False
    begin = host.open if host is not None else open_workspace
    # what was said before the session is part of its beginning
    drains = event.name in DRAINS and (not starts or spool.left_behind(place.state, event.session))
    if drains and place.private and place.memory is not None:
        try:
            _drain(event, place, complain, settings, learned=False)
        except MemfsError as error:
            complain(f"what was said waits: {error}")
    with _opened(place, complain, settings, begin) as workspace:
        if drains and workspace.root == place.root:
            _drain_in(workspace, event, place, complain)
        respond = _RESPONSES.get(event.name)
        if respond is not None:
            responder = Responder(workspace, event, place, command)
            with served_to("hook", event.agent, event.session), workspace.sources.mounts.scan_once():
                text = respond(responder)
                context = {"hookEventName": event.name, "additionalContext": text}  # nothing decides or blocks anything
                say(json.dumps({"hookSpecificOutput": context}) + "\n" if text else "")
                responder.note()
        if hosted:  # the resident does what is left
            return False
        if starts:
            return not workspace.is_learned
        if event.name in DRAINS:
            _count(workspace)
    return False


def learn(place: spool.SessionLocation, complain: Complain, settings: Mapping[str, Any]) -> None:
    """Learn from what is new, for a moment.

    Raises:
        MemfsError: the workspace cannot be opened or read.
    """
    with _opened(place, complain, settings, open_workspace) as workspace:
        _learn(workspace, complain)
        _count(workspace)


def _opened(
    place: spool.SessionLocation, complain: Complain, settings: Mapping[str, Any], begin: Callable[..., Workspace]
) -> Workspace:
    """The workspace that answers. Where the repository's memory cannot be opened, the private one answers alone."""
    if not place.private or place.memory is None:
        return begin(place.root, watch=False, settings=dict(settings), one_shot=True)
    beside = {f"mounts.{NAME}": str(place.root), **settings}
    try:
        return begin(place.memory, watch=False, settings=beside, one_shot=True, notes=place.state)
    except MemfsError as error:
        complain(f"the repository's memory is left out: {error}")
        return begin(place.root, watch=False, settings=dict(settings), one_shot=True)


def command() -> str:
    """How an agent's shell can call memfs."""
    named = (f"{folder}/memfs" for folder in os.environ.get("PATH", "").split(os.pathsep))
    if any(os.access(path, os.X_OK) and os.path.isfile(path) for path in named):
        return "memfs"
    import shlex  # seldom wanted, and the others

    from memfs.doors.claude_code.installer import program
    from memfs.doors.claude_code.settings_file import InstallScope

    return shlex.join(program(InstallScope.LOCAL))


def _drain(
    event: spool.SessionEvent,
    place: spool.SessionLocation,
    complain: Complain,
    settings: Mapping[str, Any],
    *,
    learned: bool,
) -> None:
    """Turn what waits into memories, in private memory, which is opened only where something waits.

    Args:
        learned: whether it also learns from them.
    """
    spooled = place.state / append_log.FOLDER
    if not append_log.waiting(spooled) and not spool.noted_sessions(spooled):
        return
    with open_workspace(place.root, watch=False, settings=dict(settings), one_shot=True) as workspace:
        _drain_in(workspace, event, place, complain)
        if learned:
            _learn(workspace, complain)
        workspace.sources.triggers.count()


def _drain_in(
    workspace: Workspace, event: spool.SessionEvent, place: spool.SessionLocation, complain: Complain
) -> None:
    """Turn what waits into memories: of every session at a start, else of this one, and of others if there is time."""
    from memfs.sessions.store import Drain

    session = None if event.name == spool.SESSION_START else event.session
    try:
        seconds = DRAINS[event.name]
        done = Drain(workspace, place.folder).run(session, seconds=seconds, others=True)
    except MemfsError as error:
        complain(f"what was said waits: {error}")
        return
    for sentence in done.refused:
        complain(sentence)


def _learn(workspace: Workspace, complain: Complain) -> None:
    """Learn from what is new, for a moment."""
    try:
        workspace.learner.run(LEARNING_SECONDS)
    except MemfsError as error:
        complain(f"nothing was learned: {error}")


def _count(workspace: Workspace) -> None:
    """Make what a step needs to know, which then is read from a cache."""
    workspace.sources.triggers.count()
    workspace.sources.mounts.each(lambda mount: mount.triggers.count())
