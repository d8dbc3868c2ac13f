"""``remember``: store one text, have it reviewed first, or import many from a JSONL file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Invocation, complete_tags, complete_types, opened, verb
from memfs.doors.cli.commit_report import SOURCE, CommitReport, land
from memfs.doors.cli.draft import Draft, decoded, draft, mapping_of, standard_input
from memfs.doors.cli.filters import PHASE, known_type
from memfs.doors.cli.options import allow_secret_option, note_likely
from memfs.doors.cli.output import (
    clean,
    count,
    note,
    one_line,
    print_json,
    print_raw,
    progress,
    styled,
    width,
    write_error,
)
from memfs.doors.cli.streams import read_input
from memfs.errors import ContentError, IdExists, ItemNotFound, MemfsError, StorageIO
from memfs.format.secrets import allowed
from memfs.format.text_guard import findings
from memfs.model.ids import check_id, new_id
from memfs.model.kinds import OFFERED, nearest
from memfs.model.time import utc_now
from memfs.store.authorship import signed_by

if TYPE_CHECKING:
    from memfs.model import MemoryItem
    from memfs.model.review import ReviewResult, StoreResult
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
@click.option(
    "--tag", "tags", multiple=True, metavar="TAG", shell_complete=complete_tags, help="A free word; may be repeated."
)
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
) -> tuple[MemoryItem, CommitReport]:
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
            hint = nearest(wanted.id, workspace.store.index_sync.ids()) or "leave out --replace to make it"
            raise ItemNotFound(f"there is no memory {wanted.id!r} to replace", hint=hint)
        changed = wanted.over(existing, content)
        with signed_by(wanted.origin()):  # not the author of what is changed
            return workspace.store.put(changed, expected=existing.sha256, source=SOURCE, allow_secret=allow_secret)
    try:
        return workspace.store.put(wanted.fresh(content or ""), expected="", source=SOURCE, allow_secret=allow_secret)
    except IdExists as error:
        error.hint = "choose another, or change that item with --replace"
        raise


def _print_stored(item: MemoryItem, landed: CommitReport) -> None:
    print_raw(f"Remembered {styled(item.id, fg='green', bold=True)}")
    print_raw(f"  {clean(item.path)}")
    if landed.reason:
        note(f"stored; its commit waits: {landed.reason}")


def _import(ctx: click.Context, file: str, wanted: Draft, chosen: dict[str, Any], as_json: bool) -> int:

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


def _json(result: StoreResult, item: MemoryItem | None, landed: CommitReport) -> dict[str, Any]:
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


_BATCH = 5000  # each batch is a commit that writes the whole month folder's tree again
_ERRORS_SHOWN = 20
_PAGES = (".md", ".markdown", ".mdc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """What became of a file's lines: the items stored, in order, and why the other lines were refused."""

    items: list[MemoryItem]
    refused: list[MemfsError]


def import_lines(
    workspace: Workspace,
    file: str,
    wanted: Draft,
    *,
    replace: bool = False,
    allow_secret: str = "",
    dry_run: bool = False,
    skip_refused: bool = False,
) -> Lines:
    """Store every line of a file, in order.

    Args:
        allow_secret: why lines may hold what looks like a secret.
        dry_run: only check them.
        skip_refused: leave out the lines that are wrong; each is named on standard error.

    Raises:
        ContentError: some lines are wrong; each was named on standard error, and nothing was stored.
        StorageIO: the file cannot be read, or a batch could not be stored; batches before it are.
    """
    name = "standard input" if file == "-" else file
    if file.lower().endswith(_PAGES):
        hint = f"'memfs import {file}' keeps it as a memory, 'memfs remember - < {file}' its bare text"
        raise ContentError("--file takes one JSON object a line, and this is Markdown", path=file, hint=hint)
    items, refused = _checked(workspace, name, _lines(file, name), wanted, replace, allow_secret)
    if refused and not skip_refused:
        raise ContentError(
            f"{len(refused)} of {count(len(items) + len(refused), 'line')} cannot be imported; nothing was stored",
            hint="correct the lines named above, or leave them out with --skip-refused",
        )
    if dry_run:
        return Lines(items=items, refused=refused)
    stored: list[MemoryItem] = []
    expected = None if replace else ""
    with progress("Storing") as step:
        for start in range(0, len(items), _BATCH):
            chunk = items[start : start + _BATCH]
            message = f"Import {count(len(chunk), 'memory', 'memories')} from {os.path.basename(name)}"
            with workspace.store.batch(message, source=SOURCE) as batch:
                planned = [batch.put(item, expected, allow_secret=allow_secret) for item in chunk]
            stored += planned
            step(len(stored), len(items))
    return Lines(items=stored, refused=refused)


def _lines(file: str, name: str) -> Iterator[tuple[int, str]]:
    try:
        data = read_input() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise StorageIO(f"cannot be read: {error.strerror}", path=file, hint="name a JSONL file") from error
    for number, line in enumerate(decoded(data, name).split("\n"), 1):
        if line.strip():
            yield number, line


def _checked(
    workspace: Workspace, file: str, lines: Iterator[tuple[int, str]], wanted: Draft, replace: bool, allow_secret: str
) -> tuple[list[MemoryItem], list[MemfsError]]:
    items: list[MemoryItem] = []
    wrong: list[MemfsError] = []
    seen: dict[str, int] = {}
    with progress("Checking") as step:
        rows = list(lines)
        workspace.store.refresh()  # so that a taken id is known without looking again for each line
        for done, (number, line) in enumerate(rows, 1):
            try:
                item = _item(workspace, wanted.onto(mapping_of(line)))
                _check_new(workspace, item, number, seen, replace)
                items.append(allowed(item, allow_secret)[0])
            except MemfsError as error:
                for one in (error, *error.also):
                    one.path, one.line = file, number
                wrong.append(error)
                if len(wrong) <= _ERRORS_SHOWN:
                    write_error(error)
            step(done, len(rows))
    if len(wrong) > _ERRORS_SHOWN:
        note(f"and {count(len(wrong) - _ERRORS_SHOWN, 'more line')}")
    return items, wrong


def refused_json(refused: list[MemfsError]) -> list[dict[str, Any]]:
    """The lines that were left out, as scripts read them."""
    return [{"line": error.line, "code": type(error).__name__, "reason": error.message} for error in refused]


def _item(workspace: Workspace, fields: Mapping[str, Any]) -> MemoryItem:
    own = dict(fields)
    kind = workspace.kinds.get(str(own.pop("type")))
    chosen = check_id(own.pop("id")) if "id" in own else new_id(str(own.get("title") or own.get("content") or ""))
    # read as the file it is about to become: one home for what a valid item is
    place = f"ContextMemory/{kind.folder}/{chosen}.json"
    data = json.dumps(own, ensure_ascii=False).encode("utf-8", "surrogatepass")
    item: MemoryItem = workspace.parts.codec.read(data, place, utc_now())
    kept = {"path": "", "sha256": ""}
    return item.replace(**kept) if "timestamp" in own else item.replace(**kept, timestamp=None)


def _check_new(workspace: Workspace, item: MemoryItem, number: int, seen: dict[str, int], replace: bool) -> None:
    folded = item.id.casefold()
    if folded in seen:
        raise IdExists(f"the id {item.id!r} stands in line {seen[folded]} already", hint="give each line its own id")
    seen[folded] = number
    if not replace and workspace.store.locate(item.id):
        raise IdExists(f"the id {item.id!r} is taken", hint="choose another, or change those items with --replace")
