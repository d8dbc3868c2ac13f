"""``agent consolidate``: end a session, keep what matters of its working memory, and clear the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import click

from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.output import TEXT_ONLY, Note, clean, count, one_line, styled


@dataclass(frozen=True, slots=True)
class PromotedMemory:
    """What is kept as knowledge.

    Attributes:
        id: its id.
        content: what it says.
        why: what makes it matter.
        sources: ids of the working memories it was made of.
        known: whether an item that says the same was there, and was brought up to date.
    """

    id: str
    content: str
    why: str
    sources: tuple[str, ...]
    known: bool


@dataclass(frozen=True, slots=True)
class ConsolidatedSession:
    """What became of a session's working memory.

    Attributes:
        session: which.
        read: how many working memories it had.
        promoted: what is kept.
        cleared: ids of the working memories that were removed.
        pinned: ids of those that are pinned, which were not touched.
        left: ids of those that stay because they could not be read or kept, with why.
        revision: the commit of all that; null where there is none.
        dry_run: whether nothing was changed.
        waits: why the commit waits.
    """

    session: str
    read: int
    promoted: tuple[PromotedMemory, ...]
    cleared: tuple[str, ...]
    pinned: tuple[str, ...]
    left: Mapping[str, str]
    revision: str | None
    dry_run: bool
    waits: str = field(default="", metadata=TEXT_ONLY)


def _text(done: ConsolidatedSession) -> Iterator[str | Note]:
    for one in done.promoted:
        word = "Would keep" if done.dry_run else "Kept"
        yield f"{word} {styled(one.id, fg='green', bold=True)}  {styled(one.why, dim=True)}"
        yield f"  {one_line(one.content, 100)}"
    if done.read:
        told = f"{count(len(done.cleared), 'working memory', 'working memories')} of session {clean(done.session)}"
        yield f"{'Would clear' if done.dry_run else 'Cleared'} {told}"
    else:
        yield Note(f"there is no working memory of session {clean(done.session)}")
    if done.pinned:
        yield f"  {count(len(done.pinned), 'pinned one', 'pinned ones')} not touched"
    if done.revision:
        yield f"  to take it back: git revert {done.revision[:12]}"
    if done.waits:
        yield Note(f"the commit waits: {done.waits}")
    for name, why in done.left.items():
        yield Note(f"{name} stays: {why}")


@verb("consolidate", text=_text, example="memfs agent consolidate --session 2026-03-01-morning --dry-run")
@click.option("--session", required=True, metavar="NAME", help="Which session ended.")
@click.option("--dry-run", is_flag=True, help="Only say what would be kept and cleared.")
@click.pass_context
def consolidate(ctx: click.Context, session: str, dry_run: bool) -> ConsolidatedSession:
    """End a session: keep what matters of its working memory as knowledge, and clear the rest, in one commit.

    Kept are decisions, lessons and outcomes, what is important or was recalled often, what was said repeatedly, and
    what several have in common. Pinned items are not touched. What waits is committed before; the command that takes
    all back is printed. With history.commit = "manual" nothing is committed.
    """
    with opened(ctx) as workspace:
        commits = not dry_run and not workspace.store.by_hand
        if commits:
            workspace.store.flush(adopt=False)  # else the commit would hold more than can be taken back together
        done = workspace.consolidation.run(session, dry_run=dry_run)
        flushed = workspace.store.flush(adopt=False) if done.cleared and commits else None
    return ConsolidatedSession(
        done.session,
        done.read,
        tuple(
            PromotedMemory(one.item.id, one.item.content, one.why, tuple(one.sources), one.known)
            for one in done.promoted
        ),
        done.cleared,
        done.pinned,
        done.left,
        flushed.commits[-1] if flushed is not None and flushed.commits else None,
        dry_run,
        flushed.reason if flushed is not None else "",
    )
