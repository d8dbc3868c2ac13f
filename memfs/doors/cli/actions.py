"""A verb that does several things, such as ``memfs team branch``: each an action with a help and options of its own."""

from __future__ import annotations

import click

from memfs.doors.cli.command import Unclear


class Actions(click.Group):
    """A verb that does several things, each with a help and options of its own; without a word it does the first."""

    def __init__(self, name: str, *commands: click.Command, help: str) -> None:
        super().__init__(name, help=help, commands={str(one.name): one for one in commands})
        self.first = str(commands[0].name)
        self.options_metavar, self.subcommand_metavar = "", f"[{'|'.join(self.commands)}] ..."

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  the signature is click's
        """The actions, in their own order."""
        return list(self.commands)

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
            raise Unclear(f"there is no '{ctx.command_path} {args[0]}'", f"there are {', '.join(self.commands)}")
        return super().resolve_command(ctx, args)
