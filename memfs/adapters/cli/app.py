"""The command ``memfs`` as a whole: finding the verb, global options, and how errors and interrupts end.

Imports no verb until it is asked for. Knows nothing of what the verbs do.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

import click

from memfs.adapters.cli.frame import Invocation, set_settings, set_workspace
from memfs.adapters.cli.output import complain, print_raw, write_error
from memfs.adapters.cli.streams import drop_output, secure
from memfs.adapters.cli.verbs import ALIASES, FAMILIES, VERBS
from memfs.errors import MemfsError

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
        command: click.Command = getattr(importlib.import_module(f"memfs.adapters.cli.{module}"), attribute)
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
