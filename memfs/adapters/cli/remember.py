"""``remember``: store one text, or import many from a JSONL file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memfs.adapters.cli.allowing import allow_secret_option, note_likely
from memfs.adapters.cli.asking import PHASE, known_type
from memfs.adapters.cli.draft import Draft, draft, standard_input
from memfs.adapters.cli.frame import Invocation, complete_types, opened, verb
from memfs.adapters.cli.landing import SOURCE, Landed, land
from memfs.adapters.cli.output import clean, count, note, print_json, print_raw, styled
from memfs.errors import IdExists, ItemNotFound
from memfs.files.textguard import findings
from memfs.model.ids import check_id
from memfs.model.kinds import OFFERED, nearest
from memfs.store.signing import signed_by

if TYPE_CHECKING:
    from memfs.model import MemoryItem
    from memfs.workspace import Workspace


@verb(
    "remember",
    example='memfs remember "We chose PostgreSQL for transactions" --type semantic --tag database\n'
    "git log -1 --format=%B | memfs remember - --type task_history --agent coder --session s42\n"
    "memfs remember --file notes.jsonl --tag imported",
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
@click.option("--replace", is_flag=True, help="With --id: change that item; what is not given stays as it was.")
@click.option(
    "--context", multiple=True, metavar="KEY=VALUE", help="A circumstance to match at recall; may be repeated."
)
@click.option("--data", multiple=True, metavar="KEY=VALUE", help="A field of its type's own; may be repeated.")
@click.option("--agent", metavar="NAME", help="The agent that says so. Without it the memory is a person's.")
@click.option("--session", metavar="NAME", help="The session it comes from.")
@click.option("--phase", type=PHASE, hidden=True, help="The phase of the work it comes from.")
@click.option("--role", metavar="ROLE", help="Who spoke: user, assistant or tool.")
@click.option("--tool", metavar="NAME", help="The tool it comes from.")
@click.option("--time", metavar="WHEN", help="When it happened: a date, a time, or an age such as 2d. Now by default.")
@click.option("--review", is_flag=True, help="Have it judged first, and stored only if it is worth it.")
@click.option("--allow-invisible", is_flag=True, help="Accept characters that hide text from a reader.")
@allow_secret_option
@click.option("--file", "file", metavar="F.jsonl", help="Import one JSON object per line; '-' reads standard input.")
@click.option("--skip-refused", is_flag=True, help="With --file: leave out the lines that are refused, and name them.")
@click.pass_context
def remember(
    ctx: click.Context,
    /,
    text: tuple[str, ...],
    file: str | None,
    replace: bool,
    review: bool,
    allow_invisible: bool,
    allow_secret: str,
    skip_refused: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Remember a text.

    TEXT '-' reads standard input. Every line of --file is an object with the fields of an item: content, title, tags,
    type, id, ...; the other options hold for all lines that say nothing else. If a line is wrong, nothing is stored,
    unless --skip-refused leaves it out. 'memfs import' takes Markdown files.

    Exit code 1: something was refused.
    """
    wanted = draft(**given)
    _refuse_unfit(ctx, replace=replace, named=bool(wanted.id), review=review, file=bool(file))
    if allow_invisible:
        ctx.ensure_object(Invocation).settings["security.allow_invisible"] = "true"
    if file:
        if text or wanted.id:
            raise click.UsageError("--file brings its own texts and ids; leave out TEXT and --id", ctx)
        chosen = {"replace": replace, "allow_secret": allow_secret, "skip_refused": skip_refused}
        return _import(ctx, file, wanted, chosen, as_json)
    if skip_refused:
        raise click.UsageError("--skip-refused is for the lines of --file", ctx)
    content = _content(ctx, text)
    if content is None and not wanted.title and not replace:
        raise click.UsageError("nothing to remember: give a text, or '-' to read standard input", ctx)
    if review:
        from memfs.adapters.cli.reviewing import review_text  # only what is judged needs it

        review_text(ctx, wanted, content or "", allow_secret, as_json)
        return 0
    item, landed = _store(ctx, wanted, content, replace, allow_secret)
    _advise(wanted, item, allow_invisible)
    if as_json:
        print_json({"id": item.id, "path": item.path, "sha256": item.sha256, "stored": True, **landed.json()})
    else:
        _print_stored(item, landed)
    return 0


def _refuse_unfit(ctx: click.Context, *, replace: bool, named: bool, review: bool, file: bool) -> None:
    if replace and not (named or file):
        raise click.UsageError("--replace needs --id: which item is to be changed?", ctx)
    if review and (replace or file):
        raise click.UsageError("--review judges one new text; leave out --replace and --file", ctx)


def _content(ctx: click.Context, words: tuple[str, ...]) -> str | None:
    if not words:
        return None
    if words[0] == "-" and len(words) > 1:
        raise click.UsageError("'-' reads the text from standard input: leave out the other words", ctx)
    content = standard_input().rstrip("\r\n") if words == ("-",) else " ".join(words)
    if not content.strip():
        raise click.UsageError("nothing to remember: the text is blank", ctx)
    return content


def _advise(wanted: Draft, item: MemoryItem, allow_invisible: bool) -> None:
    """Say what the person may not expect of what was stored."""
    for tag in wanted.tags:
        if "," in tag:
            words = " ".join(f"--tag {part.strip()}" for part in tag.split(",") if part.strip())
            note(f"{tag!r} is one tag; several are written {words}")
    note_likely(item)
    if allow_invisible and any(found.refused for text in (item.title, item.content) for found in findings(text)):
        note("it is read only where such characters are allowed: with --set security.allow_invisible=true,")
        note("or with MEMFS_SECURITY_ALLOW_INVISIBLE=true in the environment; elsewhere 'memfs check' reports it")


def _store(
    ctx: click.Context, wanted: Draft, content: str | None, replace: bool, allow_secret: str
) -> tuple[MemoryItem, Landed]:
    with opened(ctx) as workspace:
        item = _put(workspace, wanted, content, replace, allow_secret)
        return item, land(workspace, item)


def _put(workspace: Workspace, wanted: Draft, content: str | None, replace: bool, allow_secret: str) -> MemoryItem:
    wanted = wanted.in_branch_of(workspace.parts.policy.agent)
    if wanted.type is not None:
        known_type(workspace, wanted.type)
    if replace and wanted.id:
        existing = workspace.store.get(check_id(wanted.id))
        if existing is None:
            hint = nearest(wanted.id, workspace.store.following.ids()) or "leave out --replace to make it"
            raise ItemNotFound(f"there is no memory {wanted.id!r} to replace", hint=hint)
        changed = wanted.over(existing, content)
        with signed_by(wanted.origin()):  # not whoever wrote what is changed
            return workspace.store.put(changed, expected=existing.sha256, source=SOURCE, allow_secret=allow_secret)
    try:
        return workspace.store.put(wanted.fresh(content or ""), expected="", source=SOURCE, allow_secret=allow_secret)
    except IdExists as error:
        error.hint = "choose another, or change that item with --replace"
        raise


def _print_stored(item: MemoryItem, landed: Landed) -> None:
    print_raw(f"Remembered {styled(item.id, fg='green', bold=True)}")
    print_raw(f"  {clean(item.path)}")
    if landed.reason:
        note(f"stored; its commit waits: {landed.reason}")


def _import(ctx: click.Context, file: str, wanted: Draft, chosen: dict[str, Any], as_json: bool) -> int:
    from memfs.adapters.cli.importing import import_lines, refused_json  # a single memory does not need it

    with opened(ctx) as workspace:
        wanted = wanted.in_branch_of(workspace.parts.policy.agent)
        done = import_lines(workspace, file, wanted, **chosen)
        landed = land(workspace, done.items[-1] if done.items else None)
    if as_json:
        stored = [{"id": item.id, "path": item.path, "sha256": item.sha256} for item in done.items]
        print_json({"stored": len(stored), "items": stored, "refused": refused_json(done.refused), **landed.json()})
        return int(bool(done.refused))
    left = f"; {count(len(done.refused), 'line')} left out" if done.refused else ""
    print_raw(f"Remembered {len(done.items):,} from {clean(file)}{left}")
    if landed.reason:
        note(f"stored; their commit waits: {landed.reason}")
    return int(bool(done.refused))
