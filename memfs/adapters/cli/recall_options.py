"""What shapes an answer: the options of recall beside its filters.

Owns how a strategy, a token budget, circumstances and a deadline are written on the command line. What they do to an
answer is the pipeline's business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from memfs.adapters.cli.draft import pair
from memfs.adapters.cli.frame import Unclear
from memfs.errors import QueryInvalid
from memfs.pipeline.strategies import strategy

if TYPE_CHECKING:
    from memfs.teams.past import Past
    from memfs.workspace import Workspace

_LONGEST = 3600.0
_MOST_TOKENS = 10_000_000
_OPTIONS = (
    click.option("--strategy", default="", metavar="NAME",
                 help="How to rank: default, time_weighted, learning or fading; 'recall.preset' by default."),
    click.option("--budget", type=click.IntRange(1, _MOST_TOKENS), metavar="TOKENS",
                 help="All hits together hold at most so many tokens; 'recall.max_tokens' by default."),
    click.option("--context", "context", multiple=True, metavar="KEY=VALUE",
                 help="A circumstance of the moment: items that share one rank higher; may be repeated."),
    click.option("--no-dedupe", is_flag=True, help="Show hits that repeat a better one, too."),
    click.option("--deadline", type=click.FloatRange(0, _LONGEST, min_open=True), metavar="SECONDS",
                 help="After so long, show what was found until then."),
)  # fmt: skip


def shaping(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options that shape an answer."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def shape(workspace: Workspace, chosen: dict[str, Any], past: Past | None = None) -> dict[str, Any]:
    """The fields of a query that these options and the workspace's settings make; takes the options out of ``chosen``.

    Where a revision is asked, the settings are those of ``past``.

    Raises:
        Unclear: a circumstance has no name or no value, or there is no such strategy.
    """
    settings = workspace.settings.recall if past is None else past.settings
    return {
        "strategy": _known(chosen.pop("strategy")),
        "max_tokens": chosen.pop("budget") or settings.max_tokens or None,
        "context": dict(pair(written) for written in chosen.pop("context")),
        "deduplicate": not chosen.pop("no_dedupe") and settings.deduplicate,
        "seconds": chosen.pop("deadline"),
    }


def _known(name: str) -> str:
    if name:
        try:
            strategy(name)
        except QueryInvalid as error:
            raise Unclear.of(error, "--strategy") from error
    return name
