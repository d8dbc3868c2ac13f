"""``recall``: find what was remembered, now or at a revision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from memfs import trust
from memfs.dataclass import dataclass, field, replace
from memfs.doors.cli import output
from memfs.doors.cli.command import complete_ids, invocation, opened, options, remark, verb
from memfs.doors.cli.declare import click
from memfs.doors.cli.options import as_of, filters, pair, past_at, query, spoken
from memfs.format.text import shortlist
from memfs.model.ids import of_mount
from memfs.model.kinds import CONVENTION
from memfs.model.query import MOST
from memfs.recall.conflict_notes import OVER, disputes, undecided, unresolved_note
from memfs.recall.ranking import relevance_percents, strategy
from memfs.settings import MOUNTS
from memfs.startup import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memfs.model import EarlierVersion, HitPassage, MemoryItem, Problem, Query, Recall, RecordedConflict
    from memfs.recall.absence import WhyNot
    from memfs.team.asof import Past
    from memfs.workspace import Workspace


shaping = options(
    click.option("--strategy", default="", metavar="NAME",
                 help="How to rank: default, time_weighted, learning or fading; 'recall.preset' by default."),
    click.option("--budget", type=click.IntRange(1, 10_000_000), metavar="TOKENS",
                 help="Maximum tokens for all hits together; 'recall.max_tokens' by default."),
    click.option("--context", multiple=True, metavar="KEY=VALUE",
                 help="A circumstance of the moment: items that share one rank higher; may be repeated."),
    click.option("--no-dedupe", is_flag=True, help="Show duplicates of better hits, too."),
    click.option("--deadline", type=click.FloatRange(0, 3600, min_open=True), metavar="SECONDS",
                 help="Stop after this long and show what has been found."),
)  # fmt: skip
"""Give a verb the options that shape an answer."""
_LINES_SHOWN = 3
_PASSAGE_LINES = 6
_UNVOUCHED = frozenset({"agent", "tool"})


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An item that was found.

    Attributes:
        item: of which these fields are inlined.
        content: what it says; where ``shortened``, only its passage.
        score: what it was ranked by.
        relevance: the share of the question that it covers, in percent; not without a question.
        mount: the mounted workspace that it is from.
        stale: whether its file is currently invalid, and this is its last good version.
        passage: what of a long content answers best.
        shortened: whether only the passage had room in the budget.
        conflicts: what was displaced in it when branches were joined, until that is decided.
        contradicts: ids of other hits of which only one can hold beside it.
        earlier: earlier versions of what it says, the latest first.
        reasons: the factors that made the score, where they were asked for.
    """

    item: MemoryItem = field(metadata=output.merge("id type title timestamp path tags trust status?"))
    content: str
    score: float
    relevance: int | None = field(default=None, metadata=output.OMIT)
    mount: str = field(default="", metadata=output.OMIT)
    stale: bool = field(default=False, metadata=output.OMIT)
    passage: HitPassage | None = field(default=None, metadata=output.OMIT)
    shortened: bool = field(default=False, metadata=output.OMIT)
    conflicts: tuple[RecordedConflict, ...] = field(default=(), metadata=output.OMIT)
    contradicts: tuple[str, ...] = field(default=(), metadata=output.OMIT)
    earlier: tuple[EarlierVersion, ...] = field(default=(), metadata=output.OMIT)
    reasons: Mapping[str, float] = field(default_factory=dict, metadata=output.OMIT)


@dataclass(frozen=True, slots=True)
class FoundItems:
    """The answer to a question.

    Attributes:
        query: what was asked.
        hits: what was found, best first.
        answer: all of it; of which these fields are inlined.
        hint: what may find more.
        fenced: the hits as quoted data, where that was asked for.
        filtered: with ``--explain``, ids of what would be among the hits without the filters.
    """

    query: str
    hits: tuple[FoundItem, ...]
    answer: Recall = field(
        metadata=output.merge(
            "partial more nothing_fits? tokens duplicates cut without_room? absent anchor? semantic fresh"
        )
    )
    hint: str = ""
    fenced: str | None = field(default=None, metadata=output.OMIT)
    filtered: tuple[str, ...] = field(default=(), metadata=output.OMIT)


def _text(found: FoundItems) -> output.Text:
    if found.fenced is not None and found.hits:
        yield output.Block(found.fenced)
        return
    for number, hit in enumerate(found.hits):
        if number:
            yield ""
        yield from _hit_text(hit)


def _hit_text(hit: FoundItem) -> output.Text:
    item = hit.item
    facts = [item.type, output.day(item), *([f"relevance {hit.relevance}"] if hit.relevance else [])]
    if item.trust in _UNVOUCHED:
        facts.append(f"by {item.trust} {item.origin.agent}".rstrip())
    if item.status in OVER or item.type == CONVENTION:
        facts.append(item.status or "no status")
    if hit.mount:
        facts.append(f"from {hit.mount}")
    if (found := hit.passage) is not None:
        which = f"line {found.line}" if found.line == found.last_line else f"lines {found.line} to {found.last_line}"
        line_count = item.content.rstrip().count("\n") + 1
        facts.append(f"{which} of {line_count:,}")
    yield f"{output.styled(item.id, fg='green', bold=True)}  {output.styled('  '.join(facts), dim=True)}"
    if item.title:
        yield f"  {output.styled(output.one_line(item.title, output.width() - 2), bold=True)}"
    yield from (f"  {line}" for line in _lines(item.content, found))
    yield f"  {output.styled(item.path, dim=True)}"
    if hit.stale:
        yield f"  {output.styled('the file is currently invalid; showing its last good version', fg='yellow')}"
    if left := unresolved_note(item):
        yield f"  {output.styled(left, fg='yellow')}"
    if hit.contradicts:
        yield f"  {output.styled('contradicts ' + ', '.join(hit.contradicts), fg='yellow')}"
    for one in hit.earlier:
        yield f"  {output.styled(output.one_line(f'earlier: {one}', output.width() - 2), dim=True)}"
    if hit.reasons:
        yield _because(hit.score, hit.reasons)


def _because(score: float, reasons: Mapping[str, float]) -> str:
    factors = "  ".join(f"{name} {value:.3g}" for name, value in reasons.items())
    return f"  {output.styled('because', dim=True)} score {score:.3g} from {factors}"


def _why_not_text(result: WhyNot) -> output.Text:
    yield f"{output.styled(result.id, fg='green', bold=True)}  {result.explanation}"
    if result.score is not None:
        yield _because(result.score, result.reasons)
    if result.needed is not None and result.score is not None and result.reason != "hit":
        yield f"  the last hit has a score of {result.needed:.3g}"
    lacking = result.lacking if result.shared else ()  # else the explanation has named them all
    for heading, words in (("it has", result.shared), ("it lacks", lacking)):
        if words:
            yield f"  {heading} {output.one_line(', '.join(words), 100)}"
    if result.passage is not None:
        yield f"  its best passage: {output.one_line(result.passage.text, 100)}"
    for note in result.notes:
        yield f"  {note}"


def _lines(content: str, found: HitPassage | None) -> list[str]:
    """The first lines of a content; of a long one its passage, from the best sentence on where it is too long."""
    if found is None:
        return _first_lines(content, _LINES_SHOWN)
    lines = _first_lines(found.within(content), _PASSAGE_LINES + 1)
    if len(lines) <= _PASSAGE_LINES:
        return lines
    return _first_lines(found.within(content, sentence=True), _PASSAGE_LINES)


def _first_lines(text: str, most: int) -> list[str]:
    """A text in at most ``most`` lines: the last one ends in ``…`` where there would be more."""
    room = max((output.width() or 100) - 2, 30)
    lines: list[str] = []
    for paragraph in text.lstrip().splitlines():
        lines += islice(_wrapped(output.clean(paragraph.replace("\t", " ")).rstrip(), room), most + 1)
        if len(lines) > most:
            return [*lines[: most - 1], output.one_line(lines[most - 1], room - 2).rstrip("…") + " …"]
    return lines


def _wrapped(text: str, room: int) -> Iterator[str]:
    """A text in lines that end between words, where they can. To load ``textwrap`` takes longer than this."""
    while text:
        cut = text.rfind(" ", 0, room + 1)
        if len(text) <= room or cut <= 0 or text[:cut].isspace():
            cut = room
        yield text[:cut].rstrip()
        text = text[cut:].lstrip()


def _limits(answer: Recall) -> Iterator[str]:
    """Why nothing was found, or what was left out."""
    asked = bool(answer.query.text.strip())
    if answer.hits and not asked:
        yield "no query given; showing the newest"
    if answer.nothing_fits and answer.hits:
        yield "there may be no good match: no hit contains much of the query"
    if answer.more:
        yield f"the {'best' if asked else 'newest'} {output.count(len(answer.hits), 'hit')}; --limit shows more"
    if not answer.hits and not answer.cut:
        yield f"nothing found for {answer.query.text!r}" if asked else "nothing found"
        from memfs.search.analyzer import tokens  # the search has loaded it

        if {bool(terms) for _, terms in tokens(answer.query.text)} == {False}:
            yield "its words are too common to search for"
    if answer.duplicates:
        yield f"left out duplicates: {shortlist(answer.duplicates)}; --no-dedupe shows them"
    if answer.query.max_tokens is not None and answer.hits:
        yield f"about {answer.tokens:,} of {answer.query.max_tokens:,} tokens"
    yield answer.cut
    yield from (f"a reviewer gave no answer: {reason}" for reason in dict.fromkeys(answer.absent.values()))


@verb("recall", text=_text)
@click.argument("question", nargs=-1, metavar="[QUERY]...")
@click.option("-n", "--limit", type=click.IntRange(1, MOST), help="At most this many hits; 'recall.limit' by default.")
@filters
@shaping
@click.option("--explain", is_flag=True, help="Show the factors that made each score.")
@click.option("--why-not", metavar="ID", shell_complete=complete_ids, help="Say why this memory is not among the hits.")
@click.option("--own", is_flag=True, help="Leave out the workspaces that 'mounts' names.")
@as_of
@click.option("--fenced", is_flag=True, help="Print the hits as quoted data, to give to a model.")
def recall(
    question: tuple[str, ...],
    limit: int | None,
    explain: bool,
    why_not: str | None,
    own: bool,
    as_of: str | None,
    fenced: bool,
    **chosen: Any,
) -> FoundItems | None:
    """Find what was remembered, best first.

    QUERY is a question or a few words; '-' reads standard input. An item is found when it shares at least one word with
    the query, in any inflection. An id finds its item. Without a QUERY the newest items are shown. Items of mounted
    workspaces are found, too; their ids begin with the mount's name.

    Examples:
        memfs recall "which database did we choose"
        memfs recall deploy --type procedural --since 30d --explain
        memfs recall "login bug" --why-not fix-login
        memfs recall "login bug" --agent coder --json
        memfs recall retries --context project=shop --budget 800 --fenced
        memfs recall deploy --as-of '3 days ago'
    """
    text = spoken(question)
    with opened() as workspace, workspace.store.scan_once():
        past = past_at(workspace, as_of)
        asked = _query(workspace, text, limit, chosen, past)
        if why_not is not None:
            result = workspace.why_not(why_not, asked, to_agents=fenced, own=own, past=past)
            output.render(result, _why_not_text(result), json=invocation().json)
            return None
        mounted = past is None and not own and bool(workspace.settings.mounts)  # else they need not be imported
        recall = past.recall if past else workspace.sources.mounts.recall if mounted else workspace.recaller
        leave_out = None
        if fenced:
            from memfs.recall.fence import fence, withheld  # for hits that are put before a model alone

            leave_out = withheld
        answer = recall.search(asked, prove=invocation().json, fenced=fenced, leave_out=leave_out)
        store = past.store if past else workspace.store
        hint = "" if answer.hits or answer.cut or not store.count() else _hint(workspace, chosen)
        beside = workspace.sources.mounts.opened() if mounted and not asked.path else ()
        unread = (*store.unread(asked), *(path for mount in beside for path in mount.unread(asked)))
        left_out = [] if past or own else _left_out(workspace)
        for said in (*_limits(answer), hint):
            remark(said)
        for problem in left_out:
            remark(problem.message + (f"; {problem.hint}" if problem.hint else ""))
        partial = answer.partial and (unread or not (answer.cut or left_out))
        remark(output.partial_note(unread) if partial else output.problems_note(len(store.problems())))
        quoted = fence(answer.hits) if fenced else None
        if explain and (anchor := answer.anchor) is not None:
            remark(f"the times count from {anchor.day}: {anchor.id} tells of '{anchor.event}'")
        filtered = recall.filtered(asked) if explain else ()
        if filtered:
            remark(f"the filters left out {', '.join(filtered)}; --why-not ID says more of one")
        return FoundItems(answer.query.text, tuple(_found(answer, explain)), answer, hint, quoted, filtered)


def _found(answer: Recall, explain: bool) -> Iterator[FoundItem]:
    items = [hit.item for hit in answer.hits]
    against = disputes(items)
    relevant = relevance_percents(answer.query.text, answer.hits)
    for hit, relevance in zip(answer.hits, relevant or (None for _ in items), strict=True):
        yield FoundItem(
            hit.item,
            content=hit.passage.text if hit.passage is not None and hit.shortened else hit.item.content,
            score=round(hit.score, 6),
            relevance=relevance,
            mount=of_mount(hit.item.id),
            stale=hit.stale,
            passage=hit.passage,
            shortened=hit.shortened,
            conflicts=tuple(undecided(hit.item)),
            contradicts=tuple(against.get(hit.item.id, ())),
            earlier=hit.earlier,
            reasons={name: round(value, 6) for name, value in hit.reasons.items()} if explain else {},
        )


def _query(workspace: Workspace, text: str, limit: int | None, chosen: dict[str, Any], past: Past | None) -> Query:
    """What is asked, shaped by the options, else by the settings of the present or of that revision.

    The options that shape it are taken out of ``chosen``: the others choose items.

    Raises:
        Unclear: a circumstance has no name or no value.
        QueryInvalid: there is no such strategy.
    """
    if chosen["strategy"]:
        strategy(chosen["strategy"])
    settings = workspace.settings.recall if past is None else past.settings
    form = {
        "strategy": chosen.pop("strategy"),
        "max_tokens": chosen.pop("budget") or settings.max_tokens or None,
        "context": dict(pair(written) for written in chosen.pop("context")),
        "deduplicate": not chosen.pop("no_dedupe") and settings.deduplicate,
        "seconds": chosen.pop("deadline"),
    }
    return replace(query(workspace, text, limit or settings.limit, past=past, **chosen), **form)


def _left_out(workspace: Workspace) -> list[Problem]:
    """Why mounts were not asked: they cannot be, or the file that names them is not trusted."""
    status, mounts = trust.status_of(workspace.root), workspace.settings.mounts
    named = (want.key for want in status.wants if want.key.startswith(f"{MOUNTS}."))
    ignored = [key for key in named if key.removeprefix(f"{MOUNTS}.") not in mounts]
    untrusted = status.problems(*ignored) if ignored else []
    return [*untrusted, *(workspace.sources.mounts.refused() if mounts else [])]


def _hint(workspace: Workspace, chosen: Mapping[str, Any]) -> str:
    """What may find more than nothing: without the filters, or by meaning."""
    given = ", ".join(form for name, form in invocation().options.items() if chosen.get(name))
    if given:
        return f"only what fits {given} was searched; leave that out to search all"
    return "search by meaning is off; 'memfs semantic on' switches it on" if workspace.words_only else ""
