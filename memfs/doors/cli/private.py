"""What verbs say of this user's private memory of a project, and how a clone joins that of another one."""

from __future__ import annotations

import os
from pathlib import Path

from memfs import private as private_memories
from memfs.dataclass import dataclass
from memfs.doors.cli.command import Unclear, remark
from memfs.doors.cli.output import clean, count, note
from memfs.startup import TYPE_CHECKING

if TYPE_CHECKING:
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class PrivateClone:
    """Another clone of the same origin that has private memory.

    Attributes:
        folder: where that is.
        home: where the clone is.
    """

    folder: Path
    home: str


@dataclass(frozen=True, slots=True)
class PrivateMemory:
    """This user's private memory of a project.

    Attributes:
        project: the project's folder.
        folder: where it is; null where hooks have made none yet.
        items: how many memories it holds.
        working: how many of sessions under way.
        clones: other clones of the same origin that have one of their own.
    """

    project: Path
    folder: Path | None
    items: int
    working: int
    clones: tuple[PrivateClone, ...]

    def held(self) -> str:
        """What it holds, and where, on one line."""
        working = f" and {self.working:,} of sessions under way" if self.working else ""
        return f"{count(self.items, 'memory', 'memories')}{working}, {self.folder}"

    def report(self) -> None:
        """Remark what it holds, and what can be done with it."""
        import shlex  # which 'status' does without

        remark(f"{self.held()}; readable by you alone, outside the repository")
        remark(f"to list it: memfs -C {shlex.quote(str(self.folder))} list")
        remark("'memfs share' lists what could be shared")
        for one in self.clones[:1]:
            remark(f"{one.home} is a clone of the same origin; 'memfs init --join-private' uses its memory here, too")


def private_memory(project: private_memories.Project, folder: Path | None) -> PrivateMemory:
    """Private memory of a project, in the folder it has."""
    clones = tuple(PrivateClone(one, _where(one)) for one in private_memories.clones(project))
    held = counts(folder) if folder is not None else {"items": 0, "working": 0}
    return PrivateMemory(project.place, folder, held["items"], held["working"], clones)


def private_folder(workspace: Workspace) -> Path | None:
    """The folder of the private memory that is read beside a workspace, None where there is none."""
    named = workspace.settings.mounts.get(private_memories.NAME, "")
    folder = Path(named)
    return folder if named and private_memories.holds(folder) else None


def offer_to_join(project: private_memories.Project) -> None:
    """Say to a clone that has no private memory yet that it could use that of another clone of its origin."""
    found = private_memories.clones(project) if private_memories.find(project) is None else []
    if found:
        note(f"another clone has a private memory: {_where(found[0])}; 'memfs init --join-private' uses it here, too")


def join_private(project: private_memories.Project, key: str) -> None:
    """Use the private memory of another clone of the same origin here, or that in the folder named ``key``; what this
    clone has goes along.

    Raises:
        Unclear: there is none or there are several.
    """
    folders = private_memories.projects_folder()
    found = [one for one in folders.glob("[a-z0-9]*") if one.name == key] if key else private_memories.clones(project)
    if not found:
        hint = f"'memfs init --join-private KEY' names one; the keys are the folders in {folders}"
        raise Unclear("no other clone of this origin has a private memory", hint)
    if len(found) > 1:
        names = " or ".join(one.name for one in found)
        raise Unclear("several clones have one", f"name it: memfs init --join-private {names}")
    from memfs.sessions.store import join

    if brought := join(project, found[0]):
        note(f"{count(brought, 'memory', 'memories')} of this clone moved there, too")


def _where(folder: Path) -> str:
    record = private_memories.read_record(folder)
    path = record.homes[-1].path if record is not None and record.homes else str(folder)
    return clean(path.removesuffix("/.git"))


def counts(folder: Path) -> dict[str, int]:
    """How many items there are by sort, from the names of the files alone."""
    items = working = 0
    for place, _, names in os.walk(folder / "ContextMemory" / "memories"):
        number = sum(name.endswith((".yaml", ".yml", ".json")) for name in names)
        inside = os.path.relpath(place, folder / "ContextMemory" / "memories").split(os.sep)[0] == "working"
        items, working = items + number * (not inside), working + number * inside
    return {"items": items, "working": working}
