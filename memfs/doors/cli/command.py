"""What every verb shares: its decorator, the global options, and opening the workspace.

Every verb takes ``-C``, ``--set`` and ``--json`` in the same way, and has examples in its help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import cached_property
from types import MappingProxyType

from memfs.dataclass import dataclass
from memfs.doors.cli.declare import PARAMETERS, Parameter, click, read
from memfs.doors.cli.output import Text, as_json, document, note, render, time_text
from memfs.errors import MemfsError
from memfs.startup import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from memfs.doors.cli.options import CommitReport
    from memfs.doors.cli.parser import VerbCommand
    from memfs.team.asof import Past
    from memfs.workspace import Workspace

Function = TypeVar("Function", bound=Callable[..., Any])


class Invocation:
    """What the global options say, which revision is asked, how safe a write is; one for each run of the command.

    Attributes:
        command: what runs, as it is called: ``memfs recall``.
        options: the first form of each of its options, by name.
        remarks: what is to be said on standard error at its end, each with what to do about it.
    """

    def __init__(self, json: bool = False) -> None:
        self.workspace: str | None = None
        self.settings: dict[str, str] = {}
        self.json = json
        self.past: Past | None = None
        self.landed: CommitReport | None = None
        self.command = "memfs"
        self.options: dict[str, str] = {}
        self.remarks: list[tuple[str, str]] = []


RUNNING: ContextVar[Invocation] = ContextVar("invocation")
"""What ``invocation`` gives to the command that runs."""


class Unclear(Exception):
    """An argument that cannot be understood: the command ends with exit code 2 and says what would be right."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


@dataclass(eq=False, repr=False)
class VerbDeclaration:
    """A function that is a verb, with its arguments and options; see ``verb``.

    Attributes:
        command: what click makes of it.
    """

    name: str
    function: Callable[..., Any]
    text: Callable[..., Text] | None
    exit_code: Callable[..., int] | None
    key: str
    lands: bool
    json: bool
    offers: Mapping[str, str]

    def __post_init__(self) -> None:
        self.in_workspace = self.function.__code__.co_varnames[:1] == ("workspace",)
        self.parameters: list[Any] = self.function.__dict__.pop(PARAMETERS, [])[::-1]  # click's own among them
        if self.json:
            given = {"is_flag": True, "help": "Print JSON, for programs.", "expose_value": not self.text}
            self.parameters.append(Parameter("Option", "--json", "as_json", **given))

    @cached_property
    def command(self) -> VerbCommand:
        from memfs.doors.cli.parser import command_of  # which imports click

        return command_of(self)

    def read(self, words: Sequence[str], asked: Invocation) -> dict[str, Any] | None:
        """What the words after the verb give its function; None where click must look at them."""
        given = read([*self.parameters, Parameter("Option", "-C", "--workspace", _PLACE)], words)
        if given is not None:
            asked.workspace = given.pop(_PLACE) or asked.workspace
            if self.text is not None:
                given.pop("as_json", None)
        return given

    def carry_out(self, given: Mapping[str, Any], call: Callable[..., Any] | None = None) -> Any:
        """Run the function, print its result, then what was remarked, and return the exit code of the result.

        Args:
            call: what calls the function, where that is not called by itself.
        """
        asked = invocation()
        asked.options = {one.name: one.opts[0] for one in self.parameters if one.opts}
        try:
            with opened() if self.in_workspace else nullcontext() as workspace:
                first = () if workspace is None else (workspace,)
                result = (call or self.function)(*first, **given)
            if self.text is None or result is None:
                return result
            more: dict[str, Any] = {name: value for name, value in given.items() if name == "dry_run"}
            if more.get("dry_run") and self.text is document and not asked.json:
                remark("a dry run: nothing was changed")
            if self.lands and asked.landed is not None:
                more |= as_json(asked.landed)
            if (past := asked.past) is not None:
                more["as_of"] = {"commit": past.commit, "time": past.time}
                for text in (f"as of {time_text(past.time)}, commit {past.commit[:10]}", *past.notes):
                    remark(text)
            shown = _apply(self.text, result, given)
            render({self.key: result} if self.key else result, shown, json=asked.json, more=more)
            return int(_apply(self.exit_code, result, given)) if self.exit_code is not None else 0
        finally:
            for text, hint in asked.remarks:
                note(text, hint)
            asked.remarks = []


_PLACE = "place of the workspace"


def _apply(function: Callable[..., Any], result: Any, given: Mapping[str, Any]) -> Any:
    """What a function makes of a result, and of those options that it takes besides."""
    names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    return function(result, **{name: given[name] for name in names})


def set_workspace(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
    """Keep the value of ``-C``, given before or after the verb."""
    if value is not None:
        ctx.ensure_object(Invocation).workspace = value
    return value


def set_settings(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Keep the values of ``--set``, given before or after the verb."""
    if values:
        from memfs.settings import spec_of  # most commands name no setting
    for written in values:
        key, equals, value = written.partition("=")
        if not equals:
            raise click.BadParameter("write KEY=VALUE, such as index.engine=sqlite", ctx, parameter)
        spec_of(key.strip())
        ctx.ensure_object(Invocation).settings[key.strip()] = value
    return values


def invocation() -> Invocation:
    """What the global options of the command that runs say."""
    return RUNNING.get()


def remark(text: str, hint: str = "") -> None:
    """Let the command say something on standard error at its end; nothing where there is no text."""
    if text:
        invocation().remarks.append((text, hint))


def verb(
    name: str,
    *,
    text: Callable[..., Text] | None = None,
    exit_code: Callable[..., int] | None = None,
    key: str = "",
    lands: bool = False,
    json: bool = True,
    offers: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Callable[..., Any]], VerbDeclaration]:
    """Make a function a verb: global options also after it, and its docstring as the help, with examples at its end.

    A function whose first argument is called ``workspace`` gets the one that is opened for it, and closed before
    anything is printed; others open what they need themselves.

    With ``text`` the function returns a dataclass, which is printed here: its fields with ``--json``, else what
    ``text`` makes of it (see ``output.render``) and of the options that it takes besides; JSON says, too, whether
    ``--dry-run`` was given. Without ``text`` the function prints by itself, and takes ``--json`` as ``as_json``.

    Args:
        exit_code: makes the exit code of the command likewise: a number, or whether something is amiss.
        key: the key of JSON that has the result, where that is a tuple of values.
        lands: whether JSON says how safe the item is that was written (see ``options.land``).
        json: whether the verb has ``--json``.
        offers: the types to choose from, which its help explains in a line each.
    """

    return lambda function: VerbDeclaration(name, function, text, exit_code, key, lands, json, offers)


def options(*given: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Several options as one decorator, in the order in which the help lists them."""

    def decorate(function: Function) -> Function:
        for option in reversed(given):
            function = option(function)
        return function

    return decorate


ANY_TIME = frozenset({"recall", "list", "show", "remember", "update", "hook"})
"""Verbs of which nothing that they print depends on what is committed already."""
COMMIT_SECONDS = 10.0
opener: Callable[..., Workspace] | None = None
"""What the verbs of this process get their workspace from, in place of ``open_workspace``; it takes the same."""


def by_interval(workspace: Workspace) -> bool:
    """Whether what is written may be committed a moment later, perhaps by another process."""
    return workspace.settings.history.commit == "interval"


@contextmanager
def opened() -> Iterator[Workspace]:
    """The workspace that ``-C``, ``MEMFS_WORKSPACE`` or the current folder names, closed afterwards.

    Raises:
        WorkspaceNotFound: there is none; the hint offers ``memfs init``.
        SettingInvalid: a value given with ``--set`` is none for its setting.
    """
    from memfs.errors import WorkspaceNotFound
    from memfs.store.access_log import served_to
    from memfs.workspace import open_workspace  # costs start-up time, which --help and completion must not pay

    asked = invocation()
    try:
        workspace = (opener or open_workspace)(
            asked.workspace, watch=False, settings=dict(asked.settings), one_shot=True
        )
    except WorkspaceNotFound as error:
        import shlex

        from memfs import private

        with suppress(MemfsError, OSError):  # a project may have private memory alone
            found = private.find(private.project_at(asked.workspace or "."))
            if found is not None:
                place = f"for this project's private memory use -C {shlex.quote(str(found))}"
                error.hint = f"{error.hint}; {place}" if error.hint else place
        raise
    alone = opener is None
    if alone and asked.command.partition(" ")[2] not in ANY_TIME and by_interval(workspace):
        from memfs.doors.resident.place import resident_of

        # what the commands before this one left to a resident is committed, as they would have done without one
        if workspace.parts.journal.operations() and resident_of(workspace.root):
            workspace.store.take_up(at_once=True, patience=COMMIT_SECONDS)
    workspace.behaviours.on("storage_threshold", _report_threshold)
    with workspace, served_to(door="cli"):
        yield workspace
        if workspace.wrote and workspace.quota.problem is not None:
            problem = workspace.quota.problem
            note(f"{problem.path or ''}: {problem.message}; {problem.hint}")
    if alone and workspace.settings.resident.auto:
        from memfs.doors.resident.place import begin, may_begin

        if may_begin(workspace.root, workspace.settings.resident.use):
            begin(workspace.root)


def _report_threshold(facts: Mapping[str, Any]) -> None:
    from memfs.admin.quota import sentence

    note(sentence(facts))


# -- completion ----------------------------------------------------------------------------------------------------
def complete_ids(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Ids that begin like this, from the names of the files alone."""
    import os

    from memfs.errors import WorkspaceNotFound
    from memfs.fs.workspace_location import MEMORY_FOLDER, find_workspace

    try:
        root = find_workspace(ctx.ensure_object(Invocation).workspace)
    except WorkspaceNotFound:
        return []
    found = []
    for folder in ("memories", "conventions"):
        for _place, _folders, names in os.walk(root / MEMORY_FOLDER / folder):
            found += [name.rpartition(".")[0] for name in names if name.endswith((".yaml", ".yml", ".json"))]
    return sorted(name for name in found if name.startswith(incomplete))


def complete_types(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """The types that begin like this: those a person is offered, or else any that is built in."""
    from memfs.model.kinds import BUILT_IN, OFFERED  # needed while completing only

    offered = [name for name in OFFERED if name.startswith(incomplete)]
    return offered or [kind.name for kind in BUILT_IN if kind.name.startswith(incomplete)]
