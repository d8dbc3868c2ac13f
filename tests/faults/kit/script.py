"""Scripts: what a writer is to do, and what may be found when it died on the way.

Has the steps and the model they are judged by: a mapping from id to type and content. Both are made by the test's
process before the writer starts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from memfs import MemoryItem
from memfs.workspace import Workspace

Value = tuple[str, str]
"""Type and content of an item."""
State = Mapping[str, Value]
"""What a workspace holds, by id."""

NAMES = tuple(f"item-{number}" for number in range(12))
TYPES = ("knowledge", "episodic")
BEGINNING = "beginning"
"""The tag of the commit that holds ``FIRST``."""
FIRST: State = {name: ("knowledge", f"the first content of {name}") for name in NAMES[:6]}


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do.

    Attributes:
        verb: a name in ``VERBS``.
        writes: what each id then holds, None for nothing; empty where nothing an item says is changed.
    """

    verb: str
    writes: Mapping[str, Value | None]


def after(state: State, steps: Iterable[Step]) -> State:
    """What a workspace holds after these steps."""
    held: dict[str, Value] = dict(state)
    for step in steps:
        for name, value in step.writes.items():
            if value is None:
                held.pop(name, None)
            else:
                held[name] = value
    return held


def allowed(state: State, steps: Sequence[Step], acknowledged: int) -> list[State]:
    """What may be found when so many steps were acknowledged: just those, or the one that was under way as well."""
    return [after(state, steps[:acknowledged]), after(state, steps[: acknowledged + 1])]


# -- carrying out -------------------------------------------------------------------------------------------------
def _put(workspace: Workspace, step: Step) -> None:
    for name, value in step.writes.items():
        assert value is not None
        workspace.store.put(MemoryItem(value[1], value[0], id=name))


def _delete(workspace: Workspace, step: Step) -> None:
    for name in step.writes:
        workspace.store.delete(name)


def _batch(workspace: Workspace, step: Step) -> None:
    with workspace.store.batch("Several at once") as batch:
        for name, value in step.writes.items():
            if value is None:
                batch.delete(name)
            else:
                batch.put(MemoryItem(value[1], value[0], id=name))


def _rollback(workspace: Workspace, step: Step) -> None:
    for name in step.writes:
        workspace.history.restore(BEGINNING, name)


def _commit(workspace: Workspace, step: Step) -> None:
    workspace.store.flush()


def _reindex(workspace: Workspace, step: Step) -> None:
    workspace.store.reindex()
    workspace.store.fold()


def _maintain(workspace: Workspace, step: Step) -> None:
    workspace.history.maintain()


VERBS: Mapping[str, Callable[[Workspace, Step], None]] = {
    "put": _put,
    "delete": _delete,
    "batch": _batch,
    "rollback": _rollback,
    "commit": _commit,
    "reindex": _reindex,
    "maintain": _maintain,
}


def carry_out(workspace: Workspace, step: Step) -> None:
    """Do one step; on return it is acknowledged."""
    VERBS[step.verb](workspace, step)


EACH_VERB: Sequence[Step] = (
    Step("put", {NAMES[0]: ("knowledge", "changed")}),
    Step("put", {NAMES[1]: ("episodic", "moved to another folder")}),
    Step("delete", {NAMES[2]: None}),
    Step("batch", {NAMES[3]: None, NAMES[7]: ("knowledge", "new"), NAMES[4]: ("knowledge", "changed")}),
    Step("commit", {}),
    Step("rollback", {NAMES[0]: FIRST[NAMES[0]]}),
    Step("reindex", {}),
    Step("maintain", {}),
)


# -- making -------------------------------------------------------------------------------------------------------
def scripted(state: State, rng: random.Random, length: int) -> list[Step]:
    """Some steps that make sense one after the other, beginning with a state."""
    steps: list[Step] = []
    for number in range(length):
        step = _one(state, rng, f"{rng.getrandbits(32):08x} step {number}")
        state = after(state, [step])
        steps.append(step)
    return steps


def _one(state: State, rng: random.Random, text: str) -> Step:
    verb = rng.choices(
        ("put", "delete", "batch", "rollback", "commit", "reindex", "maintain"), (60, 10, 12, 3, 10, 3, 0.3)
    )[0]
    if verb in ("commit", "reindex", "maintain"):
        return Step(verb, {})
    if verb == "rollback":
        name = rng.choice(list(FIRST))
        return Step(verb, {name: FIRST[name]})
    if verb == "delete" and state:
        return Step(verb, {rng.choice(list(state)): None})
    names = rng.sample(NAMES, rng.randint(2, 5) if verb == "batch" else 1)
    writes: dict[str, Value | None] = {name: _value(rng, f"{text} of {name}") for name in names}
    if verb == "batch" and names[0] in state:
        writes[names[0]] = None
    return Step("batch" if verb == "batch" else "put", writes)


def _value(rng: random.Random, text: str) -> Value:
    """Mostly short; now and then larger than a page, where a torn write would show."""
    filler = " and so on" * rng.choice((0, 0, 0, 30, 3000))
    return rng.choice(TYPES), text + filler
