"""What click makes of the declared verbs: commands, groups, actions, and the whole ``memfs``."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any

import click
from click.core import augment_usage_errors

from memfs import __version__
from memfs.doors.cli.app import GROUPS, GUESSES, HIDDEN, VERBS, Family, Verb, columns, short_page
from memfs.doors.cli.command import Invocation, Unclear, VerbDeclaration, invocation, set_settings, set_workspace
from memfs.doors.cli.declare import Parameter
from memfs.doors.cli.output import print_text


class VerbCommand(click.Command):
    """A command whose help ends with examples, and which prints what its function returns, and what it remarked."""

    verb: VerbDeclaration

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; what is wrong with them is reported for this verb."""
        with augment_usage_errors(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; see ``VerbDeclaration.carry_out``."""
        invocation().command = ctx.command_path
        return self.verb.carry_out(ctx.params, partial(ctx.invoke, self.verb.function))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click's own
        """Write the examples as they are."""
        if self.epilog:
            with formatter.section("Example" if self.epilog.count("\n") == 0 else "Examples"):
                for line in self.epilog.splitlines():
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def command_of(verb: VerbDeclaration) -> VerbCommand:
    """The command of a declared verb."""
    text, _, examples = inspect.cleandoc(verb.function.__doc__ or "").partition("\n\nExamples:\n")
    if verb.offers:
        rows = [f"  {name:<12} {use}" for name, use in verb.offers.items()]
        text = "\n".join((text, "", "\b", "Types:", *rows))
    parameters = [one.made() if isinstance(one, Parameter) else one for one in verb.parameters]
    shared: dict[str, Any] = {"hidden": True, "expose_value": False, "is_eager": True}
    parameters.append(click.Option(["-C", "--workspace"], callback=set_workspace, **shared))
    parameters.append(click.Option(["--set"], multiple=True, callback=set_settings, **shared))
    command = VerbCommand(
        verb.name, callback=verb.function, params=parameters, help=text, epilog=inspect.cleandoc(examples)
    )
    command.verb = verb
    return command


class Actions(click.Group):
    """A verb that does several things, each with its own help and options; without a word it does the first."""

    def __init__(self, name: str, help: str | None, *verbs: VerbDeclaration) -> None:
        """``help``: the docstring of its module."""
        super().__init__(name, help=help, commands={one.name: one.command for one in verbs})
        self.first = verbs[0].name
        self.options_metavar, self.subcommand_metavar = "", f"[{'|'.join(self.commands)}] ..."

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  the signature is click's
        """The actions, in their own order."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The actions with their first sentences, whole."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(200)) for name, one in self.commands.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let options without an action be those of the first."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = [self.first, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the action, or say which there are."""
        if args[0] not in self.commands and not ctx.resilient_parsing:
            from memfs.model.kinds import nearest  # wanted only when something is wrong

            hint = f"{nearest(args[0], self.commands)} there are {', '.join(self.commands)}".lstrip()
            raise Unclear(f"there is no '{ctx.command_path} {args[0]}'", hint)
        return super().resolve_command(ctx, args)


class Verbs(click.Group):
    """The verbs of the top level and the groups, or those of a group; each is imported when it is called."""

    verbs: Mapping[str, Verb] = VERBS
    groups: Mapping[str, Family] = GROUPS

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  the signature is click's
        """The names of verbs and groups."""
        return [*self.verbs, *self.groups]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The group, or the verb, of that name; a verb comes from the module of its name, or of its group's."""
        if cmd_name in self.groups:
            family = self.groups[cmd_name]
            made = Verbs(cmd_name, callback=_page, help=family.summary, invoke_without_command=True)
            made.verbs, made.groups = {verb.name: verb for verb in family.verbs}, {}
            return made
        if cmd_name not in self.verbs:
            return None
        name = cmd_name.replace("-", "_")
        module = self.verbs[cmd_name].module or (name if self.verbs is VERBS else self.name)
        imported = importlib.import_module(f"memfs.doors.cli.{module}")
        found: VerbDeclaration | click.Command = getattr(imported, f"{name}_", None) or getattr(imported, name)
        return found.command if isinstance(found, VerbDeclaration) else found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or say where it is now, or which one was probably meant."""
        name = args[0]
        if name.startswith("-") or ctx.resilient_parsing or name in self.verbs or name in self.groups:
            return super().resolve_command(ctx, args)
        grouped = [f"{one} {verb.name}" for one, family in GROUPS.items() for verb in family.verbs if verb.name == name]
        if ctx.parent is None and (meant := [GUESSES[name]] if name in GUESSES else grouped):
            raise Unclear(f"there is no verb '{name}'", f"did you mean 'memfs {meant[0]}'?")
        from memfs.model.kinds import nearest  # wanted only when something is wrong

        hint = nearest(name, self.list_commands(ctx)) or f"'{ctx.command_path} --help' lists them"
        raise Unclear(f"there is no verb '{name}'", hint)

    def get_help(self, ctx: click.Context) -> str:
        """A page made from the table alone."""
        if self.verbs is VERBS:
            return short_page()
        rows = [(verb.name, verb.summary) for verb in self.verbs.values()]
        return "\n".join([f"Usage: {ctx.command_path} VERB ...", "", self.help or "", "", *columns(rows)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Complete verbs and groups from the table, options as click does."""
        from click.shell_completion import CompletionItem  # needed while completing only

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        rows = [(verb.name, verb.summary) for verb in self.verbs.values() if verb not in HIDDEN]
        rows += [(name, family.summary) for name, family in self.groups.items()]
        return [CompletionItem(name, help=summary) for name, summary in rows if name.startswith(incomplete)]


_FREE = frozenset({"text", "question"})
"""Arguments that are a person's own words."""


def explained(error: click.UsageError, command: str) -> tuple[str, str]:
    """What to say of a mistake that click found, or a verb by itself, and what to do about it."""
    hint = f"see '{error.ctx.command_path if error.ctx is not None else command} --help'"
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        if not _FREE.isdisjoint(str(one.name) for one in error.ctx.command.params):
            hint += "; text that begins with '-' goes after '--'"
        elif error.ctx.parent is None and error.option_name == "--json":
            hint = "it goes after the verb, as in 'memfs status --json'"
    message = " ".join(error.format_message().split()).removesuffix(".")
    if message.startswith("Got unexpected extra") and error.ctx is not None:
        taken = [one for one in error.ctx.command.params if one.expose_value and not getattr(one, "is_flag", False)]
        if taken and all(isinstance(one, click.Option) for one in taken):
            hint = f"it goes after an option, such as {' or '.join(one.opts[-1] for one in taken[:3])}; {hint}"
    return message, hint


@click.pass_context
def _page(ctx: click.Context) -> None:
    """Print the help where no verb is named."""
    ctx.ensure_object(Invocation)
    if ctx.invoked_subcommand is None:
        print_text(ctx.get_help())


@click.group(
    cls=Verbs,
    invoke_without_command=True,
    subcommand_metavar="VERB ...",
    context_settings={"help_option_names": ["-h", "--help"]},
)
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
    help="Use this setting for this command only; 'memfs config --list' shows them.",
)
@click.version_option(__version__, message="memfs %(version)s", help="Print the version.")
def cli() -> None:
    """Memory for AI agents that lives as plain files in git."""
    _page()
