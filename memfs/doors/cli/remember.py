"""``remember``: store one text, have it reviewed first, or write it in an editor."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import Unclear, complete_types, invocation, opened, remark, verb
from memfs.doors.cli.declare import click
from memfs.doors.cli.draft import draft, named_as_given, text_of, weighing
from memfs.doors.cli.options import PHASE, SOURCE, allow_secret_option, land, remark_likely
from memfs.doors.cli.output import MERGE, OMIT, Text, merge, one_line, styled, width
from memfs.errors import ContentError, IdExists
from memfs.format.text import findings
from memfs.model import Layer
from memfs.model.ids import slug, stem_of
from memfs.model.kinds import CONVENTION, OFFERED, PROPOSED
from memfs.model.time import utc_now
from memfs.startup import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memfs.model import MemoryItem, Problem
    from memfs.model.learning import StoreResult
    from memfs.workspace import Workspace

_LOOKED_AT = 16
_STATED = ("type", "title", "content", "origin", "trust", "status", "context", "data")
_POINTS = re.compile(r"(.*) \(([+-])[\d.]+\)")


@dataclass(frozen=True, slots=True)
class ReviewerVerdict:
    """What one reviewer thinks of a text.

    Attributes:
        name: its name.
        score: 0 to 1; null where it gave none.
        reason: why.
    """

    name: str
    score: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class ReviewedText:
    """What became of a text that was judged first.

    Attributes:
        result: why it is stored, or not.
        score: 0 to 1, of all reviewers.
        reviewers: what each of them thinks.
    """

    result: StoreResult = field(metadata=merge("reason merged_into near contradicts"))
    score: float
    reviewers: tuple[ReviewerVerdict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredText:
    """What was stored.

    Attributes:
        id: the id of its memory, where it was stored.
        item: its memory.
        stored: whether it was stored.
        review: with --review, what was said of it.
        problems: with --edit, what is wrong with the file.
    """

    id: str | None = field(default=None, metadata=OMIT)
    item: MemoryItem | None = field(default=None, metadata={"merge": "path sha256"})
    stored: bool
    review: ReviewedText | None = field(default=None, metadata=MERGE)
    problems: tuple[Problem, ...] = field(default=(), metadata=OMIT)


def text_of_stored(done: StoredText) -> Text:
    """What is reported of a text that was stored, or was not."""
    if done.item is not None:
        word = "Merged into" if done.review is not None and done.review.result.merged_into else "Remembered"
        word = word if done.stored else "Already stored as"
        yield f"{word} {styled(done.item.id, fg='green', bold=True)}"
        yield f"  {done.item.path}"
    elif not done.problems:
        yield styled("Not stored", fg="yellow", bold=True)
    yield from done.problems
    if done.review is not None:
        yield from (f"  {one_line(sentence, width() - 2)}" for sentence in _sentences(done.review.result))
        for what, ids in (
            ("contradicts", done.review.result.contradicts),
            ("says nearly the same as", done.review.result.near),
        ):
            yield from (f"  {styled(what, fg='yellow')} {name}; see 'memfs show {name}'" for name in ids)


@verb(
    "remember",
    text=text_of_stored,
    exit_code=lambda done: bool(done.problems or (done.review is not None and not done.stored)),
    lands=True,
    offers=OFFERED,
)
@click.argument("text", nargs=-1, metavar="[TEXT]...")
@click.option(
    "--type",
    "type",
    metavar="TYPE",
    shell_complete=complete_types,
    help="What sort of memory, as named above; semantic by default.",
)
@click.option("--title", help="A short name; the id is made from it.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A free word; may be repeated.")
@click.option("--id", "id", metavar="ID", help="Name the item yourself; refused when the id is taken.")
@click.option(
    "--context", multiple=True, metavar="KEY=VALUE", help="A circumstance to match at recall; may be repeated."
)
@click.option("--data", multiple=True, metavar="KEY=VALUE", help="A type-specific field; may be repeated.")
@weighing
@click.option("--agent", metavar="NAME", help="The agent that wrote this. Without it the memory is a person's.")
@click.option("--session", metavar="NAME", help="The session it comes from.")
@click.option("--phase", type=PHASE, hidden=True, help="The phase of the work it comes from.")
@click.option("--role", type=click.Choice(["user", "assistant", "tool"]), help="Who spoke.")
@click.option("--tool", metavar="NAME", help="The tool it comes from.")
@click.option("--time", metavar="WHEN", help="When it happened: a date, a time, or an age such as 2d. Now by default.")
@click.option("--review", is_flag=True, help="Judge it first, and store it only if it is worth keeping.")
@click.option("--edit", is_flag=True, help="Write it in your editor, from the template of its type.")
@click.option("--allow-invisible", is_flag=True, help="Accept characters that hide text from a reader.")
@allow_secret_option
def remember(
    text: tuple[str, ...], review: bool, edit: bool, allow_invisible: bool, allow_secret: str, **given: Any
) -> StoredText:
    """Remember a text.

    TEXT '-' reads standard input. --edit opens $VISUAL or $EDITOR; a template left unchanged stores nothing. What is
    already stored word for word, under an id made from its words, is not stored twice.
    'memfs import' takes many memories at once, from a file of JSON lines or from Markdown; 'memfs update' changes what
    is stored.

    Exit code 1: something was refused.

    Examples:
        memfs remember "We chose PostgreSQL for transactions" --type semantic --tag database
        git log -1 --format=%B | memfs remember - --type task_history --agent coder --session s42
        memfs remember "The freeze lasts until March" --importance 5 --expires 30d
        memfs remember --edit --type convention --title "Name branches after issues"
    """
    if edit and (text or review):
        raise Unclear("the text of --edit is written in the editor", "leave out the text and --review")
    if allow_invisible:
        invocation().settings["security.allow_invisible"] = "true"
    if edit:
        return _edit(allow_secret, **given)
    drafted = draft(**given)
    content = text_of(text) or ""
    if not (content or drafted.fields.get("title")):
        raise Unclear("nothing to remember", "give a text, '-' to read standard input, or --edit")
    with opened() as workspace:
        if given["type"] is not None:
            workspace.kinds.get(given["type"])
        fresh = drafted.fresh(content)
        if fresh.type == CONVENTION and not fresh.status:
            fresh = fresh.replace(status=PROPOSED)
        try:
            with named_as_given(text):
                if review:
                    return _reviewed(workspace, fresh, allow_secret)
                if given["id"] is None and (there := _repeated(workspace, fresh, {*drafted.fields})):
                    return StoredText(id=there.id, item=there, stored=False)
                item = workspace.store.put(fresh, expected="", source=SOURCE, allow_secret=allow_secret)
        except IdExists as error:
            error.hint = f"choose another, or change that item with 'memfs update {given['id']}'"
            raise
        land(workspace, item)
    if item.type == CONVENTION and item.status == PROPOSED:
        remark(f"agents do not see it until 'memfs team convention accept {item.id}'")
    _advise(given["tags"], item, allow_invisible)
    remark_likely(item)
    return StoredText(id=item.id, item=item, stored=True)


def _repeated(workspace: Workspace, fresh: MemoryItem, given: set[str]) -> MemoryItem | None:
    """The item that says the same, and has what was given, by the id that its words made; None for what happened."""
    kind, store = workspace.kinds.get(fresh.type), workspace.store
    begins = f"{slug(fresh.title or fresh.content)}-"
    if kind.layer != Layer.SEMANTIC:
        return None
    for path in islice(store.paths_named(kind.folder, begins), _LOOKED_AT):
        with suppress(ContentError, FileNotFoundError):
            item = store.read(path)
            same = (getattr(item, name) == getattr(fresh, name) for name in (*_STATED, *given - {"memory_type"}))
            if all(same) and not item.has_expired(utc_now()):
                return item
    return None


def _edit(allow_secret: str, **given: Any) -> StoredText:
    kind, title, id_ = (given.pop(name) for name in ("type", "title", "id"))
    if any(value not in (None, ()) for value in given.values()):
        raise Unclear("with --edit there is only --type, --title and --id", "write the rest in the editor")
    from memfs.doors.cli.editor import edit_new  # few memories are written so

    with opened() as workspace:
        done = edit_new(workspace, workspace.kinds.get(kind or "semantic"), title, id_, allow_secret)
        item = workspace.store.read(done.path) if done.changed and not done.problems else None
        if item is not None:
            land(workspace, item)
    return StoredText(id=stem_of(done.path), item=item, stored=item is not None, problems=done.problems)


def _advise(tags: Sequence[str], item: MemoryItem, allow_invisible: bool) -> None:
    """Remark what the person may not expect of what was stored."""
    for tag in tags:
        if "," in tag:
            words = " ".join(f"--tag {part.strip()}" for part in tag.split(",") if part.strip())
            remark(f"{tag!r} is one tag; several are written {words}")
    if allow_invisible and any(found.refused for text in (item.title, item.content) for found in findings(text)):
        remark("it is read only where such characters are allowed: with --set security.allow_invisible=true,")
        remark("or with MEMFS_SECURITY_ALLOW_INVISIBLE=true in the environment; elsewhere 'memfs check' reports it")


def _reviewed(workspace: Workspace, fresh: MemoryItem, allow_secret: str) -> StoredText:
    """Have a text judged, and store it if it is worth it."""
    result = workspace.intake.store(fresh, source=SOURCE, allow_secret=allow_secret)
    item = workspace.store.get(result.memory_id) if result.memory_id else None
    if item is not None:
        land(workspace, item)
    verdicts: list[ReviewerVerdict] = []
    if (judged := result.review) is not None:
        scores, reasons = judged.agent_scores.items(), judged.reasons
        verdicts += [ReviewerVerdict(name, round(score, 3), reasons.get(name, "")) for name, score in scores]
        verdicts += [ReviewerVerdict(name, None, reason) for name, reason in judged.absent.items()]
    review = ReviewedText(result, round(result.consensus_score, 3), tuple(verdicts))
    return StoredText(id=result.memory_id, item=item, stored=result.stored, review=review)


def _sentences(result: StoreResult) -> list[str]:
    """Why a text was stored or not, in words: who judged it and by how much is for scripts.

    What the reviewers said for or against it comes once; what gives no points counts either way.
    """
    review = result.review
    if review is None or result.merged_into or not review.agent_scores:
        return [result.reason]
    verdict = "worth keeping" if result.stored else "not worth keeping (without --review it is stored as it is)"
    sign, said = "+" if result.stored else "-", dict[str, None]()
    for part in (part for name in review.agent_scores for part in review.reasons.get(name, "").split("; ") if part):
        mark = _POINTS.fullmatch(part)
        if mark is None or mark[2] == sign:
            said[part if mark is None else mark[1]] = None
    reasons = "; ".join(said)
    left_out = [f"a reviewer is left out: {why}" for why in review.absent.values()]
    return [f"{verdict}: {reasons}" if reasons else verdict, *left_out]
