"""``recall``: ask a question, see what was remembered."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from memfs.adapters.cli.asking import filters, query
from memfs.adapters.cli.frame import opened, verb
from memfs.adapters.cli.mounting import left_out, note_left_out, recaller, unread_of
from memfs.adapters.cli.output import (
    clean,
    count,
    day,
    note,
    note_partial,
    note_problems,
    one_line,
    print_json,
    print_raw,
    styled,
    time_text,
    width,
)
from memfs.adapters.cli.recall_options import shape, shaping
from memfs.model.ids import of_mount
from memfs.model.query import MOST
from memfs.pipeline.disputes import OVER, disputes
from memfs.pipeline.fence import fence

if TYPE_CHECKING:
    from memfs.model import Hit, MemoryItem, Recall

_LINES_SHOWN = 3
_UNVOUCHED = frozenset({"agent", "tool"})


@verb(
    "recall",
    example='memfs recall "which database did we choose"\n'
    "memfs recall deploy --type procedural --since 30d --explain\n"
    'memfs recall "login bug" --agent coder --json\n'
    "memfs recall retries --context project=shop --budget 800 --fenced",
)
@click.argument("question", nargs=-1, required=True, metavar="QUERY...")
@click.option("-n", "--limit", type=click.IntRange(1, MOST), help="At most this many hits; 'recall.limit' by default.")
@filters
@shaping
@click.option("--explain", is_flag=True, help="Show the factors that made each score.")
@click.option("--own", is_flag=True, help="Leave out the workspaces that 'mounts' names.")
@click.option("--fenced", is_flag=True, help="Print the hits as quoted data, to be put before a model.")
@click.pass_context
def recall(
    ctx: click.Context,
    /,
    question: tuple[str, ...],
    limit: int | None,
    explain: bool,
    own: bool,
    fenced: bool,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Find what was remembered, best first.

    QUERY is a question or a few words; an item is found when it shares at least one word with it, in whatever form.
    An empty QUERY brings the newest items. What mounted workspaces hold is found, too; such ids begin with the mount's
    name.
    """
    with opened(ctx) as workspace:
        form = shape(workspace, chosen)
        asked = query(workspace, " ".join(question), limit or workspace.settings.recall.limit, **chosen)
        asked = replace(asked, **form)
        answer = recaller(workspace, own).search(asked, prove=as_json, fenced=fenced)
        absent = left_out(workspace, own)
        problems = workspace.store.problems()
        unread = unread_of(workspace, own, asked)
    if as_json:
        quoted = {"fenced": fence(answer.hits)} if fenced else {}
        print_json(_answer_json(answer, explain) | quoted)
    elif fenced and answer.hits:
        print_raw(clean(fence(answer.hits)))
    else:
        _print_answer(answer, explain)
    if not answer.hits and not answer.cut:
        note(_why_nothing(answer.query.text))
    _note_limits(answer)
    note_left_out(absent)
    if answer.partial and (unread or not (answer.cut or absent)):
        note_partial(unread)
    note_problems(problems)


def _answer_json(answer: Recall, explain: bool) -> dict[str, Any]:
    fresh = answer.fresh
    against = disputes([hit.item for hit in answer.hits])
    return {
        "query": answer.query.text,
        "hits": [_hit_json(hit, explain, against) for hit in answer.hits],
        "partial": answer.partial,
        "more": answer.more,
        "tokens": answer.tokens,
        "duplicates": dict(answer.duplicates),
        "cut": answer.cut,
        "absent": dict(answer.absent),
        "fresh": fresh and {"head": fresh.head, "dirty": fresh.dirty, "indexed": fresh.indexed},
    }


def _hit_json(hit: Hit, explain: bool, against: Mapping[str, list[str]]) -> dict[str, Any]:
    item = hit.item
    shown: dict[str, Any] = {
        "id": item.id,
        "type": item.type,
        "title": item.title,
        "content": item.content,
        "score": round(hit.score, 6),
        "timestamp": time_text(item.timestamp),
        "path": item.path,
        "tags": list(item.tags),
        "trust": item.trust,
    }
    if name := of_mount(item.id):
        shown["mount"] = name
    if item.status:
        shown["status"] = item.status
    if hit.stale:
        shown["stale"] = True
    if item.id in against:
        shown["contradicts"] = against[item.id]
    if explain:
        shown["reasons"] = {name: round(value, 6) for name, value in hit.reasons.items()}
    return shown


def _print_answer(answer: Recall, explain: bool) -> None:
    asked = bool(answer.query.text.strip())
    against = disputes([hit.item for hit in answer.hits])
    for number, hit in enumerate(answer.hits):
        if number:
            print_raw("")
        _print_hit(hit, explain, asked, against.get(hit.item.id, []))
    if answer.hits and not asked:
        note("nothing was asked, so these are the newest")
    if answer.more:
        note(f"the {'best' if asked else 'newest'} {count(len(answer.hits), 'hit')}; --limit shows more")


def _note_limits(answer: Recall) -> None:
    """Say what was left out, and why."""
    most = answer.query.max_tokens
    if answer.duplicates:
        note(f"left out what repeats a hit: {', '.join(answer.duplicates)}; --no-dedupe shows it")
    if most is not None and answer.hits:
        note(f"about {answer.tokens:,} of {most:,} tokens")
    if answer.cut:
        note(answer.cut)
    for name, reason in answer.absent.items():
        note(f"the reviewer {name!r} gave no answer: {reason}")


def _why_nothing(text: str) -> str:
    """What to say about an empty answer."""
    words = list(dict.fromkeys(re.findall(r"\w+", text.casefold())))
    if text.strip() and not words:
        return f"{text!r} holds no word to look for"
    from memfs.index.analyzer import STOP_WORDS  # wanted for an empty answer only

    if words and STOP_WORDS.issuperset(words):
        return f"too common to look for: {', '.join(words)}; add a word that says what it is about"
    return f"nothing found for {text!r}" if words else "nothing found"


def _print_hit(hit: Hit, explain: bool, scored: bool, against: Sequence[str]) -> None:
    item = hit.item
    facts = [item.type, day(item), *([f"{hit.score:.3f}"] if scored else [])]
    if item.trust in _UNVOUCHED:
        facts.append(f"by {item.trust} {item.origin.agent}".rstrip())
    if item.status in OVER:
        facts.append(item.status)
    if name := of_mount(item.id):
        facts.append(f"from {name}")
    print_raw(f"{styled(item.id, fg='green', bold=True)}  {styled('  '.join(facts), dim=True)}")
    if item.title:
        print_raw(f"  {styled(one_line(item.title, width() - 2), bold=True)}")
    for line in _first_lines(item):
        print_raw(f"  {line}")
    print_raw(f"  {styled(item.path, dim=True)}")
    if hit.stale:
        print_raw(f"  {styled('the file is invalid at present; this is its last good version', fg='yellow')}")
    if against:
        print_raw(f"  {styled('contradicts ' + ', '.join(against), fg='yellow')}")
    if explain:
        factors = "  ".join(f"{name} {value:.3g}" for name, value in hit.reasons.items())
        print_raw(f"  {styled('because', dim=True)} {clean(factors)}")


def _first_lines(item: MemoryItem) -> list[str]:
    room = max((width() or 100) - 2, 30)
    lines: list[str] = []
    for paragraph in item.content.splitlines():
        lines += textwrap.wrap(clean(paragraph.replace("\t", " ")), room)
        if len(lines) > _LINES_SHOWN:
            return [*lines[: _LINES_SHOWN - 1], one_line(lines[_LINES_SHOWN - 1], room - 2).rstrip("…") + " …"]
    return lines
