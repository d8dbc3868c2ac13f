"""The command ``memfs`` as a whole: find the verb, take global options, and end on errors and interrupts.

A verb is imported only when it is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from memfs.dataclass import NamedTuple
from memfs.doors.cli.command import RUNNING, Invocation, Unclear, VerbDeclaration
from memfs.doors.cli.declare import click
from memfs.doors.cli.output import OutputLost, drop_output, print_json, secure, write, write_error
from memfs.errors import MemfsError, QueryInvalid, SettingInvalid
from memfs.startup import import_module


class Verb(NamedTuple):
    """One verb: its name, a summary of at most 30 characters where it is an everyday verb, and its module.

    The module is one of this package, where that is neither the one of its name nor of its group.
    """

    name: str
    summary: str
    module: str = ""


class Family(NamedTuple):
    """A group of verbs that are called by its name and theirs, such as ``memfs admin gc``."""

    summary: str
    verbs: tuple[Verb, ...]


EVERYDAY: tuple[Verb, ...] = (
    Verb("init", "Create a workspace."),
    Verb("remember", "Remember a text."),
    Verb("recall", "Find what was remembered."),
    Verb("list", "List the newest memories."),
    Verb("show", "Show one memory."),
    Verb("update", "Change one memory."),
    Verb("forget", "Remove memories."),
    Verb("commit", "Commit pending changes."),
    Verb("log", "Show the history."),
    Verb("diff", "Compare two revisions."),
    Verb("undo", "Take back what was written."),
    Verb("restore", "Bring back an earlier state."),
    Verb("inbox", "Decide about suggestions."),
    Verb("share", "Publish private memories."),
    Verb("sync", "Pull and push memory."),
    Verb("review", "Review a pull request."),
    Verb("status", "Show the workspace's state."),
    Verb("check", "Find problems; --fix them."),
    Verb("config", "Show or change settings."),
)
"""What the short help lists."""

MORE: tuple[Verb, ...] = (
    Verb("import", "Import an export, Markdown, or another tool's memories.", "import_"),
    Verb("export", "Write memories out, as lines that import reads back."),
    Verb("serve", "Answer commands faster, from a workspace kept open."),
    Verb("semantic", "Switch search by meaning on or off."),
    Verb("deinit", "Remove memfs from a repository, and the files on request."),
)
"""What the short help names in one line."""

HIDDEN: tuple[Verb, ...] = (
    Verb("hook", "Reply to an event from an agent's session."),
    Verb("mcp", "Serve this memory over MCP."),
    Verb("merge-driver", "Merge three versions of a file; git calls it."),
)
"""What users' files call by this name, for good."""

GROUPS: Mapping[str, Family] = {
    "agent": Family(
        "Connect agents and give them their memory.",
        (
            Verb("install", "Let an agent's program use this memory."),
            Verb("uninstall", "Take out what install put in."),
            Verb("hook", "Reply to an event from an agent's session.", "hook"),
            Verb("mcp", "Serve this memory over MCP.", "mcp"),
            Verb("inject", "Print the memory to put into an agent's system prompt."),
            Verb("warn", "Print what a situation brings to mind before a step."),
            Verb("episode", "Record what agents did, and how it ended."),
            Verb("correct", "Keep what a person corrects or prefers."),
            Verb("feedback", "Say whether an item helped."),
            Verb("consolidate", "End a session: keep what matters, clear the rest."),
        ),
    ),
    "team": Family(
        "Conventions, conflicts and access of a team.",
        (
            Verb("convention", "Propose, accept, retire and share what a team agrees on."),
            Verb("conflicts", "List conflicts and resolve them.", "conflicts"),
            Verb("blame", "Show who wrote each field of an item."),
            Verb("bisect", "Find the commit that broke an answer."),
            Verb("verify", "Check who signed the commits of the memory."),
            Verb("agents-md", "Keep accepted conventions in AGENTS.md."),
            Verb("access", "Show who was given an item, and when."),
        ),
    ),
    "state": Family(
        "Iterations, checkpoints and documents of multi-agent runs.",
        (
            Verb("iteration", "Start, close and show rounds of work."),
            Verb("store", "Store documents of agents."),
            Verb("show", "Print the state, whole or in part."),
            Verb("search", "Find documents by their words."),
            Verb("resume", "Print the state saved under a token."),
            Verb("export", "Write documents out, for analysis elsewhere."),
            Verb("checkpoint", "Save the state at one moment, and continue from it."),
            Verb("feedback", "Print what the meta-review says to an agent."),
            Verb("analyze", "Show how an agent did, and the weight that this suggests."),
            Verb("trends", "Show the patterns that meta-reviews name."),
        ),
    ),
    "admin": Family(
        "Backups, cleanup, index and format.",
        (
            Verb("backup", "Write, verify and restore backups.", "backup"),
            Verb("gc", "Make room without losing anything."),
            Verb("cut", "Cut off old history."),
            Verb("reindex", "Rebuild the search index."),
            Verb("erase", "Remove an item from history, too, with proof."),
            Verb("prune", "Move weak items into the archive."),
            Verb("archive", "Pack iterations closed long ago; they stay readable."),
            Verb("trust", "Let a workspace enable what its files ask for."),
            Verb("schema", "Write the schemas by which editors check memory files."),
            Verb("migrate", "Bring the files to this memfs's version of the format."),
            Verb("watch", "Follow changes of the files until interrupted."),
        ),
    ),
}
"""The groups."""

VERBS: dict[str, Verb] = {verb.name: verb for verb in (*EVERYDAY, *MORE, *HIDDEN)}

GUESSES: Mapping[str, str] = {
    **dict.fromkeys(("get", "cat", "view", "read"), "show"),
    **dict.fromkeys(("find", "query", "ask", "search"), "recall"),
    **dict.fromkeys(("add", "save", "put", "write"), "remember"),
    **dict.fromkeys(("rm", "remove", "delete"), "forget"),
    **dict.fromkeys(("push", "pull"), "sync"),
    **dict.fromkeys(("doctor", "validate"), "check"),
    **dict.fromkeys(("stats", "usage"), "status --storage"),
    **dict.fromkeys(("set", "settings"), "config"),
    **dict.fromkeys(("cleanup", "maintain"), "admin gc"),
    "ls": "list",
    "history": "log",
    "revert": "undo",
    "repair": "check --fix",
    "rollback": "restore --from",
    "edit": "update --edit",
    "new": "remember --edit",
    "feedback": "agent feedback",
    "backup": "admin backup create",
}
"""What other programs call our verbs; a verb of a group is found without its group."""

_COMPLETE = "_MEMFS_COMPLETE"
REFUSED, UNCLEAR, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141


def short_page() -> str:
    """Everyday verbs, and where the others are."""
    rows = [(verb.name, verb.summary) for verb in EVERYDAY]
    half = (len(rows) + 1) // 2
    left, right = list(columns(rows[:half])), list(columns(rows[half:]))
    pairs = [f"{one:<39}{other}".rstrip() for one, other in zip(left, [*right, ""], strict=False)]
    groups = [(f"memfs {name}", family.summary) for name, family in GROUPS.items()]
    return "\n".join([
        "Usage: memfs [-C FOLDER] [--set KEY=VALUE] [--version] VERB ...", "",
        "Memory for AI agents that lives as plain files in git.", "",
        *pairs, "",
        f"  also: {', '.join(verb.name for verb in MORE)}",
        *columns(groups, 12), "",
        "'memfs help VERB' explains a verb or a group; --json prints JSON.",
    ])  # fmt: skip


def columns(rows: Sequence[tuple[str, str]], width: int = 0) -> Iterator[str]:
    """Names and what is said of each, in two columns; ``width``: that of the first, 0 for that of the longest name."""
    space = width or max((len(name) for name, _ in rows), default=0)
    yield from (f"  {name:<{space}}  {summary}" for name, summary in rows)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 refused, 2 undecided (also: could not be understood).

    What goes wrong is reported on standard error, and with ``--json`` as a document on standard output instead.
    """
    secure()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    asked = Invocation(json="--json" in words[: words.index("--") if "--" in words else None])
    before = RUNNING.set(asked)
    try:
        code = _answered(words, asked)
        if code is None:
            from memfs.doors.cli.parser import cli  # imports click, which plain questions do without

            code = cli.main(words, prog_name="memfs", standalone_mode=False, obj=asked)
        sys.stdout.flush()
    except MemfsError as error:
        return _report(asked, error, error.code, UNCLEAR if _is_typed(error, words) else REFUSED)
    except Unclear as error:
        failure = MemfsError(" ".join(error.message.split()), hint=error.hint or f"see '{asked.command} --help'")
        return _report(asked, failure, "Usage", UNCLEAR)
    except BrokenPipeError:
        drop_output()
        return PIPE_CLOSED
    except click.UsageError as error:
        from memfs.doors.cli.parser import explained

        message, hint = explained(error, asked.command)
        return _report(asked, MemfsError(message, hint=hint), "Usage", UNCLEAR)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except OSError as error:  # what the library does not expect is refused with the system's words
        failure = MemfsError(error.strerror or str(error), path=error.filename)
        return _report(asked, failure, type(error).__name__, REFUSED)
    finally:
        RUNNING.reset(before)
    return code if isinstance(code, int) else 0


PLAIN = frozenset({"list", "recall", "remember", "show", "status"})
"""The verbs that are declared without click, so that a plain call of them does without it."""


def _answered(words: list[str], asked: Invocation) -> int | None:
    """The exit code of a plain call of an everyday verb, and of a call for help; None where click must look at it."""
    if words in ([], ["-h"], ["--help"]) and _COMPLETE not in os.environ:
        write(short_page())
        return 0
    placed = words[:1] == ["-C"] and len(words) > 2 and not words[1].startswith("-")
    name, *rest = words[2:] if placed else words or [""]
    if name not in PLAIN or _COMPLETE in os.environ:
        return None
    imported = import_module(f"memfs.doors.cli.{name}")
    verb: VerbDeclaration = getattr(imported, f"{name}_", None) or getattr(imported, name)
    given = verb.read(rest, asked)
    if given is None:
        return None
    if placed and asked.workspace is None:
        asked.workspace = words[1]
    asked.command = f"memfs {name}"
    code = verb.carry_out(given)
    return code if isinstance(code, int) else 0


def _is_typed(error: MemfsError, words: Sequence[str]) -> bool:
    """Whether an error is about what was typed, and not about what a file says."""
    if error.path is not None:
        return False
    field = error.field or ""  # without one it is a name that is none
    named = not field or any(word == field or word.startswith((f"{field}=", f"--{field}")) for word in words)
    return isinstance(error, QueryInvalid) or (isinstance(error, SettingInvalid) and named)


def _report(asked: Invocation, error: MemfsError, code: str, exit_code: int) -> int:
    """Say what went wrong, as a person or a program reads it; returns the exit code."""
    if not asked.json or isinstance(error, OutputLost):
        write_error(error)
        return exit_code
    for one in error.also:
        write_error(one)
    document = {"code": code, "message": error.message, "path": error.path, "field": error.field, "hint": error.hint}
    try:
        print_json({"error": document})
    except OutputLost as lost:
        write_error(error)
        write_error(lost)
    except BrokenPipeError:  # the reader is gone: the exit code says it
        drop_output()
    return exit_code
