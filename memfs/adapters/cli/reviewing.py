"""``remember --review``: what the reviewers say of a text, and what became of it.

Owns how a verdict is shown. Judging and storing is the intake's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from memfs.adapters.cli.asking import known_type
from memfs.adapters.cli.draft import Draft
from memfs.adapters.cli.frame import opened
from memfs.adapters.cli.landing import SOURCE, Landed, land
from memfs.adapters.cli.output import clean, note, one_line, print_json, print_raw, styled, width
from memfs.errors import IdExists

if TYPE_CHECKING:
    from memfs.model import MemoryItem
    from memfs.model.review import ReviewResult, StoreResult

_REASONS = 4
_POINTS = re.compile(r"(.*) \(([+-])[\d.]+\)")


def review_text(ctx: click.Context, wanted: Draft, content: str, allow_secret: str, as_json: bool) -> None:
    """Have a text judged, store it if it is worth it, and say so; exit code 1 where it is not stored."""
    with opened(ctx) as workspace:
        wanted = wanted.in_branch_of(workspace.parts.policy.agent)
        if wanted.type is not None:
            known_type(workspace, wanted.type)
        try:
            result = workspace.intake.store(wanted.fresh(content), source=SOURCE, allow_secret=allow_secret)
        except IdExists as error:
            error.hint = "choose another, or change that item with --replace and without --review"
            raise
        item = workspace.store.get(result.memory_id) if result.memory_id else None
        landed = land(workspace, item)
    if as_json:
        print_json(_json(result, item, landed))
    else:
        _print(result, item)
        if landed.reason:
            note(f"stored; its commit waits: {landed.reason}")
    if not result.stored:
        ctx.exit(1)


def _json(result: StoreResult, item: MemoryItem | None, landed: Landed) -> dict[str, Any]:
    where = {"path": item.path, "sha256": item.sha256, **landed.json()} if item is not None else {}
    return {
        "id": result.memory_id,
        "stored": result.stored,
        "reason": result.reason,
        "score": round(result.consensus_score, 3),
        "reviewers": list(_verdicts(result.review)),
        "merged_into": result.merged_into,
        "near": list(result.near),
        "contradicts": list(result.contradicts),
        **where,
    }


def _verdicts(review: ReviewResult | None) -> Iterator[dict[str, Any]]:
    if review is None:
        return
    for name, score in review.agent_scores.items():
        yield {"name": name, "score": round(score, 3), "reason": review.reasons.get(name, "")}
    for name, reason in review.absent.items():
        yield {"name": name, "score": None, "reason": reason}


def _sentences(result: StoreResult) -> list[str]:
    """Why a text was stored or not, in words: who judged it and by how much is for scripts."""
    review = result.review
    if review is None or result.merged_into or not review.agent_scores:
        return [result.reason]
    verdict = "worth keeping" if result.stored else "not worth keeping (without --review it is stored as it is)"
    told = "; ".join(_telling(review, "+" if result.stored else "-"))
    left_out = [f"a reviewer is left out: {why}" for why in review.absent.values()]
    return [f"{verdict}: {told}" if told else verdict, *left_out]


def _telling(review: ReviewResult, sign: str) -> list[str]:
    """What the reviewers said for or against a text, each once; one that gives no points counts either way."""
    parts = [part for name in review.agent_scores for part in review.reasons.get(name, "").split("; ") if part]
    found = [(part, _POINTS.fullmatch(part)) for part in parts]
    return list(
        dict.fromkeys(part if mark is None else mark[1] for part, mark in found if mark is None or mark[2] == sign)
    )


def _print(result: StoreResult, item: MemoryItem | None) -> None:
    if item is not None:
        done = "Merged into" if result.merged_into else "Remembered"
        print_raw(f"{done} {styled(item.id, fg='green', bold=True)}")
        print_raw(f"  {clean(item.path)}")
    else:
        print_raw(styled("Not stored", fg="yellow", bold=True))
    for sentence in _sentences(result):
        print_raw(f"  {one_line(sentence, width() - 2)}")
    for what, ids in (("contradicts", result.contradicts), ("says nearly the same as", result.near)):
        for name in ids:
            print_raw(f"  {styled(what, fg='yellow')} {clean(name)}; see 'memfs show {clean(name)}'")
