"""World: a made-up code base with a made-up build, and the work to be done in it.

The agent's tools act on it, and it says how that ends. Nothing here knows of memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

EARLY = ("kestrel", "nordpost", "bluevan", "tern", "packet")
LATER = ("heron", "sprint", "osprey", "dovetail", "meridian")
OTHERS = ("docs/returns.md", "web/dashboard.ts", "tests/test_labels.py")
STALE = "AssertionError: carriers/table.json is older than the adapters. Call regenerate_table before you submit."


def tool(name: str, description: str, **arguments: str) -> dict[str, Any]:
    """A tool as a function with a JSON schema; all its arguments are texts."""
    parameters = {
        "type": "object",
        "properties": {key: {"type": "string", "description": told} for key, told in arguments.items()},
        "required": list(arguments),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    tool("edit_file", "Change a file.", path="Which file.", change="What to change, in words."),
    tool("regenerate_table", "Make carriers/table.json anew from all adapters."),
    tool("submit", "Run the build and, if it passes, hand the work in.", summary="What was done, in one sentence."),
]


@dataclass(frozen=True, slots=True)
class Job:
    """Something to be done.

    Attributes:
        text: as it is told to the agent.
        files: what it is about.
        by_script: a script does it, one that was written before there was a memory and asks nobody.
    """

    number: int
    text: str
    files: tuple[str, ...]
    by_script: bool = False

    @property
    def ticket(self) -> str:
        """How people call it."""
        return f"WB-{self.number}"

    @property
    def touches_carrier(self) -> bool:
        """Whether it is work in which the mistake can be made."""
        return any(file.startswith("carriers/") for file in self.files)


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answers; ``passed`` is None for all but ``submit``."""

    text: str
    passed: bool | None = None


def jobs() -> Iterator[Job]:
    """Work without end. The second half of the carriers comes when the first is well known."""
    places = [*EARLY] * 9 + [*LATER, *EARLY] * 1_000
    asked = (
        "Map the new status codes of {}",
        "Read the weight of {} in grams",
        "Mind the time zone of {}",
    )
    for number, carrier in enumerate(places):
        yield Job(3 * number + 1, asked[number % 3].format(carrier), (f"carriers/{carrier}.py",), number % 3 == 2)
        file = OTHERS[number % 3]
        yield Job(3 * number + 2, f"Bring the wording of {file} up to date", (file,))
        if number % 20 == 10:
            yield Job(3 * number + 3, f"Note what went wrong with {carrier} lately", ("docs/carriers.md",))


@dataclass(slots=True)
class World:
    """The code base of one moment.

    Attributes:
        makes_table_itself: the build does what had to be done by hand; from then on the old mistake is none.
    """

    makes_table_itself: bool = False
    _table_is_old: bool = False
    _done: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """A fresh checkout."""
        self._table_is_old = False
        self._done = []

    @property
    def done(self) -> str:
        """What was done since the beginning of the job, in words."""
        return " and ".join(self._done) or "Changed nothing"

    def use(self, name: str, arguments: Mapping[str, Any]) -> Result:
        """Use a tool."""
        if name == "edit_file" and arguments.get("path"):
            path = str(arguments["path"])
            self._table_is_old |= path.startswith("carriers/")
            return self._note(f"Edited {path}")
        if name == "regenerate_table":
            self._table_is_old = False
            return self._note("regenerated the carrier table")
        if name == "submit":
            if self._table_is_old and not self.makes_table_itself:
                return Result(f"{STALE}\nThe build failed.", passed=False)
            return Result("The build passed; handed in.", passed=True)
        return Result(f"There is no tool {name!r} that takes these arguments.")

    def _note(self, what: str) -> Result:
        if what not in self._done:
            self._done.append(what)
        return Result("Done.")
