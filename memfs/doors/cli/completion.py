"""``admin completion``: print the script by which a shell completes verbs, options, types and ids.

Shells run it each time they start, so it imports nothing of a workspace.
"""

from __future__ import annotations

import os

import click
from click.shell_completion import get_completion_class

from memfs.doors.cli.command import verb
from memfs.doors.cli.output import print_text
from memfs.doors.cli.parser import cli

_SHELLS = ("bash", "zsh", "fish")


@verb("completion", json=False)
@click.argument("shell", required=False, type=click.Choice(_SHELLS))
def completion(shell: str | None) -> None:
    """Print the script that lets your shell complete verbs, options, types and ids. SHELL is yours by default.

    Examples:
        eval "$(memfs admin completion bash)"                          # in ~/.bashrc
        eval "$(memfs admin completion zsh)"                           # in ~/.zshrc
        memfs admin completion fish > ~/.config/fish/completions/memfs.fish
    """
    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    made = get_completion_class(name)
    if made is None:
        raise click.UsageError(f"name the shell: {', '.join(_SHELLS)}")
    print_text(made(cli, {}, "memfs", "_MEMFS_COMPLETE").source())
