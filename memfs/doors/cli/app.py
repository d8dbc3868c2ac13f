"""The command ``memfs`` as a whole: find the verb, take global options, and end on errors and interrupts.

A verb is imported only when it is called.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from memfs.doors.cli.command import Invocation, set_settings, set_workspace
from memfs.doors.cli.output import complain, print_raw, write_error
from memfs.doors.cli.streams import drop_output, secure
from memfs.errors import MemfsError


class Verb(NamedTuple):
    """One verb: its name, ``module:attribute`` below this package, a summary, and a second name."""

    name: str
    home: str
    summary: str
    alias: str = ""


FAMILIES: dict[str, tuple[Verb, ...]] = {
    "Remember and find": (
        Verb("remember", "remember:remember", "Remember a text.", "add"),
        Verb("recall", "recall:recall", "Find what was remembered.", "search"),
        Verb("show", "items:show", "Show one item, now or at a revision."),
        Verb("list", "items:list_", "List items, newest first."),
        Verb("context", "context:context", "Keep keys and values of a session or workflow."),
        Verb("inbox", "inbox:inbox", "Decide what becomes of what memfs worked out by itself."),
        Verb("patterns", "patterns:patterns", "Show what several memories have in common."),
        Verb("consolidate", "patterns:consolidate", "End a session: keep what matters, clear the rest."),
        Verb("feedback", "feedback:feedback", "Say whether an item helped."),
        Verb("forget", "items:forget", "Remove items; history keeps them."),
        Verb("erase", "erase:erase", "Remove an item from history, too, with proof."),
    ),
    "Give agents their memory": (
        Verb("inject", "inject:inject", "Print what belongs into an agent's system prompt."),
        Verb("warn", "inject:warn", "Print what a situation brings to mind before a step."),
        Verb("episode", "episode:episode", "Record what agents did, and learn rules from it."),
        Verb("correct", "inject:correct", "Keep what a person corrects or prefers."),
        Verb("agents-md", "agents_md:agents_md", "Keep what is agreed on in AGENTS.md."),
        Verb("conflicts", "conflicts:conflicts", "Show what cannot both hold, and decide about it."),
    ),
    "Meet agents where they are": (
        Verb("install", "install:install", "Let an agent's program use this memory."),
        Verb("uninstall", "install:uninstall", "Take out what install put in, to the byte."),
        Verb("private", "private:private", "Show where your private memory of this project lies."),
        Verb("share", "share:share", "Copy private memory into the memory that others see."),
        Verb("hook", "hook:hook", "Answer an event of an agent's session."),
        Verb("mcp", "mcp:mcp", "Serve this memory to programs that speak MCP."),
    ),
    "Write by hand": (
        Verb("new", "edit:new", "Start an item from its kind's template."),
        Verb("edit", "edit:edit", "Open an item in your editor and check it afterwards."),
    ),
    "History": (
        Verb("commit", "history:commit", "Commit what waits, hand edits included."),
        Verb("log", "history:log", "Show the commits of the memory or of one item."),
        Verb("diff", "history:diff", "Show what changed between two revisions."),
        Verb("blame", "blame:blame", "Show who taught each field of an item."),
        Verb("rollback", "history:rollback", "Bring back an earlier state, as a new commit."),
        Verb("recover", "history:recover", "Bring back what a change by hand displaced."),
    ),
    "Work as a team": (
        Verb("review", "review:review", "Report what a pull request changes in memory."),
        Verb("convention", "convention:convention", "Propose, accept, retire and share what a team agrees on."),
        Verb("sync", "sync:sync", "Exchange memory with a remote, losing nothing of either side."),
        Verb("branch", "branch:branch", "Give an agent a branch of its own, and merge or drop it."),
        Verb("resolve", "resolve:resolve", "Decide what a merge could not, and finish it."),
        Verb("undo", "undo:undo", "Take back what a session, an agent or a commit wrote."),
        Verb("served", "served:served", "Show who was given an item, and when."),
        Verb("bisect", "bisect:bisect", "Find the commit that broke an answer."),
        Verb("verify", "verify:verify", "Check who signed the commits of the memory."),
        Verb("merge-driver", "merge_driver:merge_driver", "Join three versions of a file; git calls it."),
    ),
    "Multi-agent state": (
        Verb("iteration", "iteration:iteration", "Start, close and show rounds of work."),
        Verb("state", "state:state", "Store documents of agents, and ask for their state."),
        Verb("checkpoint", "checkpoint:checkpoint", "Keep the state of one moment, and go on from it."),
        Verb("feedback-for", "insight:feedback_for", "Print what the meta-review says to an agent."),
        Verb("analyze", "insight:analyze", "Show how an agent did, and the weight that this suggests."),
        Verb("trends", "insight:trends", "Show the patterns that meta-reviews name."),
        Verb("aggregates", "insight:aggregates", "Sum up all iterations in three files."),
        Verb("export", "transfer:export", "Write documents or memories out, for analysis elsewhere."),
        Verb("import", "transfer:import_", "Store what an export, or another memory, holds."),
    ),
    "Care": (
        Verb("status", "status:status", "Show how the workspace stands."),
        Verb("check", "check:check", "Look for problems, and repair them with --fix.", "doctor"),
        Verb("repair", "check:repair", "Put right what the disk damaged."),
        Verb("stats", "maintenance:stats", "Count items by type and layer, and what they weigh."),
        Verb("watch", "maintenance:watch", "Follow changes of the files until interrupted."),
        Verb("reindex", "maintenance:reindex", "Build the search index anew."),
        Verb("migrate", "maintenance:migrate", "Bring the files to this memfs's version of the format."),
        Verb("maintain", "maintenance:maintain", "Pack the history and fold the index."),
        Verb("prune", "feedback:prune", "Move weak items into the archive."),
        Verb("archive", "archive:archive", "Pack iterations closed long ago; they stay readable."),
        Verb("usage", "archive:usage", "Show what each area and iteration weighs."),
        Verb("cleanup", "backup:cleanup", "Make room without losing anything."),
        Verb("backup", "backup:backup", "Write a verified backup into one file."),
        Verb("restore", "backup:restore", "Make a workspace anew from a backup."),
    ),
    "Set up": (
        Verb("init", "setup:init", "Make a workspace."),
        Verb("semantic", "semantic:semantic", "Switch search by meaning on or off, and see how far it is."),
        Verb("config", "setup:config", "Show the settings and where each came from."),
        Verb("schema", "schema:schema", "Write the schemas by which editors check memory files."),
        Verb("plugins", "plugins:plugins", "Show what gives agents their context, and whether it works."),
        Verb("trust", "trust:trust", "Let a workspace enable what its files ask for."),
        Verb("admin", "admin:admin", "Move the memory to a branch of its own, or back."),
        Verb("deinit", "deinit:deinit", "Take memfs out of a repository, and the files on request."),
        Verb("completion", "completion:completion", "Print the completion script for a shell."),
    ),
}
VERBS: dict[str, Verb] = {verb.name: verb for family in FAMILIES.values() for verb in family}
ALIASES: dict[str, str] = {verb.alias: verb.name for verb in VERBS.values() if verb.alias}


REFUSED, UNCLEAR, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141


class Verbs(click.Group):
    """The group of all verbs, each loaded when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  the signature is click's
        """The names of the verbs, without aliases."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The verb of that name or alias, imported now."""
        verb = VERBS.get(ALIASES.get(cmd_name, cmd_name))
        if verb is None:
            return None
        module, _, attribute = verb.home.partition(":")
        command: click.Command = getattr(importlib.import_module(f"memfs.doors.cli.{module}"), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or say which one was probably meant."""
        name = args[0]
        if name.startswith("-") or ctx.resilient_parsing or name in VERBS or name in ALIASES:
            return super().resolve_command(ctx, args)
        import difflib  # costs start-up time and is wanted only when something is wrong

        close = difflib.get_close_matches(name, [*VERBS, *ALIASES], n=1)
        hint = f"did you mean '{close[0]}'?" if close else "'memfs --help' lists them"
        raise click.UsageError(f"there is no verb '{name}' ({hint})", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs by family, from the table alone."""
        for family, verbs in FAMILIES.items():
            with formatter.section(family):
                shown = [(f"{verb.name}, {verb.alias}" if verb.alias else verb.name, verb.summary) for verb in verbs]
                formatter.write_dl(shown, col_max=18, col_spacing=2)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Complete verbs from the table, options as click does."""
        from click.shell_completion import CompletionItem  # needed while completing only

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [
            CompletionItem(name, help=VERBS[ALIASES.get(name, name)].summary)
            for name in (*VERBS, *ALIASES)
            if name.startswith(incomplete)
        ]


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from memfs.version import __version__  # one more file to read, wanted only here

        print_raw(f"memfs {__version__}")
        ctx.exit()


@click.group(cls=Verbs, subcommand_metavar="VERB ...", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-C",
    "--workspace",
    metavar="FOLDER",
    expose_value=False,
    is_eager=True,
    callback=set_workspace,
    help="Work in this workspace instead of MEMFS_WORKSPACE or the one around the current folder.",
)
@click.option(
    "--set",
    multiple=True,
    metavar="KEY=VALUE",
    expose_value=False,
    is_eager=True,
    callback=set_settings,
    help="Use this setting for this command only; 'memfs config' lists them.",
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Print the version."
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Memory for AI agents that lives as plain files in git.

    Remember a text, find it again with a question; every memory is one file that people may edit, and git keeps its
    history. Each verb explains itself with --help, and prints JSON with --json.
    """
    ctx.ensure_object(Invocation)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 refused, 2 could not tell (also: could not be understood)."""
    secure()
    try:
        code = cli.main(arguments, prog_name="memfs", standalone_mode=False, obj=Invocation())
        sys.stdout.flush()
    except MemfsError as error:
        write_error(error)
        return REFUSED
    except click.UsageError as error:
        verb = f" {error.ctx.info_name}" if error.ctx is not None and error.ctx.parent is not None else ""
        message = " ".join(error.format_message().split())  # click puts each choice on a line
        complain(message, hint=getattr(error, "hint", None) or f"see 'memfs{verb} --help'")
        return UNCLEAR
    except click.ClickException as error:
        complain(error.format_message())
        return REFUSED
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        drop_output()
        return PIPE_CLOSED
    except OSError as error:  # what the library does not expect is refused with the system's words
        complain(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
        return REFUSED
    return code if isinstance(code, int) else 0
