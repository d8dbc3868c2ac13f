"""Events: what each event of a session means to a hook: whether it is kept, answered, and how long all of it may take.

A table, read before anything heavy is imported.
"""

from __future__ import annotations

from collections.abc import Mapping

from memfs.capture.event import (
    LETTA,
    PRE_COMPACT,
    PRE_TOOL,
    PROMPT,
    SESSION_END,
    SESSION_START,
    STOP,
    SUBAGENT_START,
    SUBAGENT_STOP,
    TASK_DONE,
    TOOL_DONE,
    TOOL_FAILED,
)

LIMITS: Mapping[str, float] = {
    SESSION_START: 6.0,
    PROMPT: 2.0,
    PRE_TOOL: 1.5,
    TOOL_DONE: 1.0,
    TOOL_FAILED: 1.0,
    TASK_DONE: 1.0,
    PRE_COMPACT: 10.0,
    STOP: 15.0,
    SUBAGENT_START: 2.0,
    SUBAGENT_STOP: 30.0,
    SESSION_END: 1.0,
}
"""After so many seconds a hook ends, done or not; an agent's program waits longer than that."""
UNKNOWN_LIMIT = 1.0
MAKING_LIMIT = 4.5
"""An event for which private memory must be made first, once a project, has at least so many seconds."""
MAKES_NONE = frozenset({PRE_TOOL, SUBAGENT_START, SESSION_END})
"""Events for which none is made where there is no memory at all: they have nothing to tell or to end."""
DRAINS: Mapping[str, float] = {SESSION_START: 0.5, PRE_COMPACT: 2.5, STOP: 2.5, SUBAGENT_STOP: 20.0}
"""The events at which what waits becomes memories, and after how many seconds nothing more is begun: a person waits.
What is left then, the next ones take."""
LEARNING_SECONDS = 1.0
"""How long a session's start learns from what is new: a person waits."""
ONLY_ANSWERED = frozenset({PRE_TOOL, SUBAGENT_START})
"""Events that are answered and not kept: what they tell, the event after them tells again."""
OPENS = frozenset({PROMPT, *ONLY_ANSWERED, *DRAINS})
"""The events for which the workspace is opened; the others end as soon as they are kept."""
PLAIN_CLIENTS = frozenset({LETTA})
"""Programs that give their agent what a hook prints as it stands."""
