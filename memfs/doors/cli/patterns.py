"""``patterns`` and ``consolidate``: show what memories have in common, and end a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.filters import as_of, as_of_json, note_past, pair, past_at
from memfs.doors.cli.output import clean, count, note, one_line, print_json, print_raw, print_table, styled
from memfs.learning.pattern_learner import patterns_in
from memfs.model.query import MOST

if TYPE_CHECKING:
    from memfs.learning.consolidation import ConsolidationResult
    from memfs.model import Hit, MemoryItem

_SUGGESTED = 5
_SHOWN = 100


@verb(
    "patterns",
    example='memfs patterns\nmemfs patterns "create a login for the auditor" --context project=shop',
)
@click.argument("text", nargs=-1, metavar="[TEXT]...")
@click.option("--context", multiple=True, metavar="KEY=VALUE", help="A circumstance of the moment; may be repeated.")
@click.option("-n", "--limit", type=click.IntRange(1, MOST), help="At most so many: 100 of all, 5 of the fitting ones.")
@as_of
@click.pass_context
def patterns(
    ctx: click.Context,
    text: tuple[str, ...],
    context: tuple[str, ...],
    limit: int | None,
    as_of: str | None,
    as_json: bool,
) -> None:
    """Show what several memories have in common, the most frequent first.

    With TEXT or --context those that fit what is at hand are shown, the best first. Patterns that were found and that
    nobody accepted yet are in 'memfs inbox'.
    """
    if as_of is not None and (text or context):
        raise click.UsageError("--as-of lists what there was: it goes with no TEXT or --context", ctx)
    circumstances = dict(pair(written) for written in context)
    with opened(ctx) as workspace:
        past = None
        if text or context:
            workspace.repository.require_readable()
            hits = workspace.patterns.suggest(" ".join(text), circumstances, limit or _SUGGESTED)
            shown: list[tuple[MemoryItem, Hit | None]] = [(hit.item, hit) for hit in hits]
            more = 0
        else:
            workspace.repository.require_readable()
            past = past_at(workspace, as_of) if as_of is not None else None
            every = workspace.patterns.all() if past is None else patterns_in(past.store.select)
            shown = [(item, None) for item in every[: limit or (MOST if as_json else _SHOWN)]]
            more = len(every) - len(shown)
    if as_json:
        print_json({"patterns": [_pattern_json(item, hit) for item, hit in shown], **as_of_json(past)})
        return
    print_table([_row(item) for item, _ in shown], dim=(0, 1))
    note_past(past)
    further = f"; {more:,} more with --limit" if more else ""
    if not shown and past is None:
        further = "; 'memfs inbox' looks for them"
    note(count(len(shown), "pattern") + further)


def _row(item: MemoryItem) -> tuple[str, ...]:
    data = item.data
    seen, sure = data.get("occurrences", 0), data.get("confidence", 0.0)
    return f"{seen:>5,} x", f"{sure:.2f}", str(data.get("pattern_type", "")), one_line(item.content, 0), item.id


def _pattern_json(item: MemoryItem, hit: Hit | None) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": item.id, "template": item.content, **item.data, "path": item.path}
    if hit is not None:
        shown |= {
            "score": round(hit.score, 6),
            "reasons": {name: round(value, 6) for name, value in hit.reasons.items()},
        }
    return shown


@verb("consolidate", example="memfs consolidate --session 2026-03-01-morning --dry-run")
@click.option("--session", required=True, metavar="NAME", help="Which session ended.")
@click.option("--dry-run", is_flag=True, help="Only say what would be kept and cleared.")
@click.pass_context
def consolidate(ctx: click.Context, session: str, dry_run: bool, as_json: bool) -> None:
    """End a session: keep what matters of its working memory as knowledge, and clear the rest, in one commit.

    Kept are decisions, lessons and outcomes, what is important or was recalled often, what was said repeatedly, and
    what several have in common. Pinned items are not touched.
    """
    with opened(ctx) as workspace:
        commits = not dry_run and not workspace.store.by_hand
        if commits:
            workspace.store.flush(adopt=False)  # else the commit would hold more than can be taken back together
        done = workspace.consolidation.run(session, dry_run=dry_run)
        flushed = workspace.store.flush(adopt=False) if done.cleared and commits else None
    revision = flushed.commits[-1] if flushed is not None and flushed.commits else None
    if as_json:
        print_json(_consolidated_json(done, revision))
    else:
        _print_consolidated(done, revision)
    if flushed is not None and flushed.reason:
        note(f"the commit waits: {flushed.reason}")
    for name, why in done.left.items():
        note(f"{name} stays: {why}")


def _consolidated_json(done: ConsolidationResult, revision: str | None) -> dict[str, Any]:
    return {
        "session": done.session,
        "read": done.read,
        "promoted": [
            {
                "id": one.item.id,
                "content": one.item.content,
                "why": one.why,
                "from": list(one.sources),
                "known": one.known,
            }
            for one in done.promoted
        ],
        "cleared": list(done.cleared),
        "pinned": list(done.pinned),
        "left": dict(done.left),
        "revision": revision,
        "dry_run": done.dry_run,
    }


def _print_consolidated(done: ConsolidationResult, revision: str | None) -> None:
    for one in done.promoted:
        word = "Would keep" if done.dry_run else "Kept"
        print_raw(f"{word} {styled(one.item.id, fg='green', bold=True)}  {styled(one.why, dim=True)}")
        print_raw(f"  {one_line(one.item.content, 100)}")
    if not done.read:
        note(f"there is no working memory of session {clean(done.session)}")
        return
    told = f"{count(len(done.cleared), 'working memory', 'working memories')} of session {clean(done.session)}"
    print_raw(f"{'Would clear' if done.dry_run else 'Cleared'} {told}")
    if done.pinned:
        print_raw(f"  {count(len(done.pinned), 'pinned one', 'pinned ones')} not touched")
    if revision:
        print_raw(f"  to take it back: git revert {revision[:12]}")
