"""``recall``: find what was remembered, now or at a revision, and compare the answers of two revisions."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Unclear, opened, verb
from memfs.doors.cli.filters import as_of, as_of_json, filters, note_past, pair, past_at, query
from memfs.doors.cli.mounts import left_out, note_left_out, recaller, unread_of
from memfs.doors.cli.output import (
    clean,
    conflict_json,
    count,
    day,
    note,
    note_partial,
    note_problems,
    one_line,
    print_json,
    print_raw,
    print_text,
    styled,
    time_text,
    width,
)
from memfs.errors import QueryInvalid
from memfs.model.ids import of_mount
from memfs.model.kinds import CONVENTION
from memfs.model.query import MOST
from memfs.recall.conflict_notes import OVER, disputes, undecided, unresolved_note
from memfs.recall.fence import fence, withheld
from memfs.recall.ranking import strategy
from memfs.recall.rerank import relevance_percents

if TYPE_CHECKING:
    from memfs.model import Hit, MemoryItem, Problem, Query, Recall
    from memfs.team.asof import Past
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


_LINES_SHOWN = 3
_FEW = 2
_UNVOUCHED = frozenset({"agent", "tool"})


@verb(
    "recall",
    example='memfs recall "which database did we choose"\n'
    "memfs recall deploy --type procedural --since 30d --explain\n"
    'memfs recall "login bug" --agent coder --json\n'
    "memfs recall retries --context project=shop --budget 800 --fenced\n"
    "memfs recall deploy --as-of '3 days ago'\n"
    "memfs recall deploy --diff HEAD~20..HEAD",
)
@click.argument("question", nargs=-1, required=True, metavar="QUERY...")
@click.option("-n", "--limit", type=click.IntRange(1, MOST), help="At most this many hits; 'recall.limit' by default.")
@filters
@shaping
@click.option("--explain", is_flag=True, help="Show the factors that made each score.")
@click.option("--own", is_flag=True, help="Leave out the workspaces that 'mounts' names.")
@as_of
@click.option("--diff", metavar="A..B", help="How the answer differs between two revisions, and which commit did it.")
@click.option("--fenced", is_flag=True, help="Print the hits as quoted data, to be put before a model.")
@click.pass_context
def recall(
    ctx: click.Context,
    /,
    question: tuple[str, ...],
    limit: int | None,
    explain: bool,
    own: bool,
    as_of: str | None,
    diff: str | None,
    fenced: bool,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Find what was remembered, best first.

    QUERY is a question or a few words; an item is found when it shares at least one word with it, in whatever form.
    An empty QUERY brings the newest items. What mounted workspaces hold is found, too; such ids begin with the mount's
    name.
    """
    if diff is not None:
        _refuse_beside_diff(ctx, {"--as-of": as_of, "--fenced": fenced, "--explain": explain})
    with opened(ctx) as workspace:
        past = past_at(workspace, as_of) if as_of is not None else None
        asked = _query(workspace, " ".join(question), limit, chosen, past)
        if diff is not None:
            from memfs.doors.cli.answer_diff import compare  # rarely asked for

            compare(workspace, asked, diff, as_json)
            return
        answer, lacks = _search(workspace, asked, own, past, prove=as_json, fenced=fenced)
    if as_json:
        quoted = {"fenced": fence(answer.hits)} if fenced else {}
        print_json(_answer_json(answer, explain) | {"hint": lacks.hint} | quoted | as_of_json(past))
    elif fenced and answer.hits:
        print_text(fence(answer.hits))
    else:
        _print_answer(answer, explain)
    _note_limits(answer)
    note_past(past)
    _note_lacks(answer, lacks)


@dataclass(frozen=True, slots=True)
class _Lacks:
    """What an answer may lack: mounts that were not asked, files that were not read; what is wrong, and a remedy."""

    absent: Sequence[Problem]
    unread: Sequence[str]
    problems: Sequence[Problem]
    hint: str = ""


def _query(workspace: Workspace, text: str, limit: int | None, chosen: dict[str, Any], past: Past | None) -> Query:
    """What is asked, shaped by the options, else by the settings of the present or of that revision."""
    form = shape(workspace, chosen, past)
    limit = limit or (workspace.settings.recall if past is None else past.settings).limit
    return replace(query(workspace, text, limit, past=past, **chosen), **form)


def _search(
    workspace: Workspace, asked: Query, own: bool, past: Past | None, *, prove: bool, fenced: bool
) -> tuple[Recall, _Lacks]:
    """The answer of the present, or of a revision."""
    recall = recaller(workspace, own) if past is None else past.recall
    answer = recall.search(asked, prove=prove, fenced=fenced, leave_out=withheld if fenced else None)
    if past is not None:
        return answer, _Lacks((), past.store.unread(asked), past.store.problems())
    absent = left_out(workspace, own)
    hint = _hint(workspace) if _missed(answer) else ""
    return answer, _Lacks(absent, unread_of(workspace, own, asked), workspace.store.problems(), hint)


def _missed(answer: Recall) -> bool:
    """Whether words alone found nothing, or next to nothing: at most two memories, without half of what was asked."""
    if answer.semantic or len(answer.hits) > _FEW or not answer.query.text.strip():
        return False
    from memfs.recall.tokens import whole
    from memfs.search.analyzer import terms

    asked = set(terms(answer.query.text))
    return bool(asked) and not any(2 * len(asked & set(terms(whole(hit.item)))) >= len(asked) for hit in answer.hits)


def _hint(workspace: Workspace) -> str:
    """What may find more than words did; "" where the workspace is empty, or its problems name what is amiss."""
    if not workspace.store.count():
        return ""
    if workspace.words_only:
        return "meaning was not searched; 'memfs semantic on' switches it on"
    return "no memory is embedded yet; 'memfs semantic on' embeds them" if workspace.by_meaning else ""


def _refuse_beside_diff(ctx: click.Context, options: Mapping[str, object]) -> None:
    if given := [word for word, value in options.items() if value]:
        raise click.UsageError(f"--diff and {given[0]} exclude each other", ctx)


def _answer_json(answer: Recall, explain: bool) -> dict[str, Any]:
    fresh = answer.fresh
    against = disputes([hit.item for hit in answer.hits])
    rows = [_hit_json(hit, explain, against) for hit in answer.hits]
    for row, relevance in zip(rows, relevance_percents(answer.query.text, answer.hits), strict=False):
        row["relevance"] = relevance
    return {
        "query": answer.query.text,
        "hits": rows,
        "partial": answer.partial,
        "more": answer.more,
        "tokens": answer.tokens,
        "duplicates": dict(answer.duplicates),
        "cut": answer.cut,
        "absent": dict(answer.absent),
        "semantic": answer.semantic,
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
    if left := undecided(item):
        shown["conflicts"] = [conflict_json(one) for one in left]
    if item.id in against:
        shown["contradicts"] = against[item.id]
    if explain:
        shown["reasons"] = {name: round(value, 6) for name, value in hit.reasons.items()}
    return shown


def _print_answer(answer: Recall, explain: bool) -> None:
    asked = bool(answer.query.text.strip())
    against = disputes([hit.item for hit in answer.hits])
    relevant = relevance_percents(answer.query.text, answer.hits) or [0] * len(answer.hits)
    for number, (hit, relevance) in enumerate(zip(answer.hits, relevant, strict=True)):
        if number:
            print_raw("")
        _print_hit(hit, explain, relevance, against.get(hit.item.id, []))
    if answer.hits and not asked:
        note("nothing was asked, so these are the newest")
    if answer.more:
        note(f"the {'best' if asked else 'newest'} {count(len(answer.hits), 'hit')}; --limit shows more")


def _note_limits(answer: Recall) -> None:
    """Say why nothing was found, or what was left out."""
    if not answer.hits and not answer.cut:
        note(_why_nothing(answer.query.text))
    most = answer.query.max_tokens
    if answer.duplicates:
        note(f"left out what repeats a hit: {', '.join(answer.duplicates)}; --no-dedupe shows it")
    if most is not None and answer.hits:
        note(f"about {answer.tokens:,} of {most:,} tokens")
    if answer.cut:
        note(answer.cut)
    for reason in dict.fromkeys(answer.absent.values()):
        note(f"a reviewer gave no answer: {reason}")


def _note_lacks(answer: Recall, lacks: _Lacks) -> None:
    """Say what could not be asked or read, and what may find more."""
    if lacks.hint:
        note(lacks.hint)
    note_left_out(lacks.absent)
    if answer.partial and (lacks.unread or not (answer.cut or lacks.absent)):
        note_partial(lacks.unread)
    note_problems(lacks.problems)


def _why_nothing(text: str) -> str:
    """What to say about an empty answer."""
    words = list(dict.fromkeys(re.findall(r"\w+", text.casefold())))
    if text.strip() and not words:
        return f"{text!r} holds no word to look for"
    from memfs.search.analyzer import STOP_WORDS

    if words and STOP_WORDS.issuperset(words):
        return f"too common to look for: {', '.join(words)}; add a word that says what it is about"
    return f"nothing found for {text!r}" if words else "nothing found"


def _print_hit(hit: Hit, explain: bool, relevance: int, against: Sequence[str]) -> None:
    item = hit.item
    facts = [item.type, day(item), *([f"relevance {relevance}"] if relevance else [])]
    if item.trust in _UNVOUCHED:
        facts.append(f"by {item.trust} {item.origin.agent}".rstrip())
    if item.status in OVER or item.type == CONVENTION:
        facts.append(item.status or "no status")
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
    if left := unresolved_note(item):
        print_raw(f"  {styled(left, fg='yellow')}")
    if against:
        print_raw(f"  {styled('contradicts ' + ', '.join(against), fg='yellow')}")
    if explain:
        factors = "  ".join(f"{name} {value:.3g}" for name, value in hit.reasons.items())
        print_raw(f"  {styled('because', dim=True)} score {hit.score:.3g} from {clean(factors)}")


def _first_lines(item: MemoryItem) -> list[str]:
    room = max((width() or 100) - 2, 30)
    lines: list[str] = []
    for paragraph in item.content.splitlines():
        lines += textwrap.wrap(clean(paragraph.replace("\t", " ")), room)
        if len(lines) > _LINES_SHOWN:
            return [*lines[: _LINES_SHOWN - 1], one_line(lines[_LINES_SHOWN - 1], room - 2).rstrip("…") + " …"]
    return lines
