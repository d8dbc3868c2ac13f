"""``update``: change fields of an item, or edit its file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import Unclear, complete_ids, complete_types, opened, verb
from memfs.doors.cli.draft import draft, text_of, weighing
from memfs.doors.cli.options import SOURCE, allow_secret_option, item_found, item_named, land, reference, remark_likely
from memfs.doors.cli.output import OMIT, Text, styled
from memfs.errors import ContentError, ItemNotFound
from memfs.model.item import Link
from memfs.store.plan import signed_by
from memfs.store.reader import path_of
from memfs.store.store import retry_on_conflict

if TYPE_CHECKING:
    from memfs.model import MemoryItem, Problem
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedItem:
    """What became of an item.

    Attributes:
        id: its id.
        path: its file.
        sha256: of the file; not where that is invalid.
        changed: whether it is another than before.
        problems: with --edit, what is wrong with the file.
    """

    id: str
    path: str
    sha256: str = field(default="", metadata=OMIT)
    changed: bool
    problems: tuple[Problem, ...] = field(default=(), metadata=OMIT)


def _text(done: UpdatedItem) -> Text:
    word = "Saved, but invalid:" if done.problems else "Updated" if done.changed else "Unchanged"
    yield f"{word} {styled(done.id, fg='green', bold=True)}"
    yield f"  {done.path}"
    yield from done.problems


@verb("update", text=_text, exit_code=lambda done: bool(done.problems), lands=True)
@click.argument("id", metavar="ID", shell_complete=complete_ids)
@click.argument("text", nargs=-1, metavar="[TEXT]...")
@click.option("--title", help="A short name.")
@click.option("--type", "type", metavar="TYPE", shell_complete=complete_types, help="What sort of memory.")
@click.option(
    "--tag", "tags", multiple=True, metavar="[+|-]TAG", help="+TAG adds, -TAG removes; TAG alone: only these."
)
@weighing
@click.option("--status", help="The stage of a plan or a convention, such as done or accepted; '' for none.")
@click.option("--link", "links", multiple=True, metavar="[RELATION=]ID", help="Link it to another item; -ID removes.")
@click.option("--context", multiple=True, metavar="KEY=VALUE", help="A circumstance to match at recall.")
@click.option("--data", multiple=True, metavar="KEY=VALUE", help="A type-specific field.")
@click.option("--time", metavar="WHEN", help="When it happened: a date, a time, or an age such as 2d.")
@click.option("--agent", metavar="NAME", help="The agent that changes it; you by default.")
@click.option("--session", metavar="NAME", help="The session it does so in.")
@click.option("--edit", is_flag=True, help="Open its file in your editor ($VISUAL, $EDITOR) instead.")
@allow_secret_option
def update(id: str, text: tuple[str, ...], edit: bool, allow_secret: str, **given: Any) -> UpdatedItem:
    """Change an item: its text where one is given ('-' reads standard input), and the fields that are named.

    Everything else in the file stays, including hand-written parts. Whoever changes the text becomes its author; the
    commit names who changed other fields. When an agent changes more than importance or pin, the item's trust drops to
    'agent' at most. After --edit your text stays in the file even if it is wrong; until it is right, recall uses the
    last good version. 'memfs restore' brings back an earlier state.

    Exit code 1: refused, or the edited file is invalid.

    Examples:
        memfs update deploy-day "We deploy on Tuesdays" --tag +ops --tag -draft
        memfs update use-postgresql --importance 5 --pin --expires 2027-01-01
        memfs update use-postgresql --link supersedes=use-mysql
        memfs update use-postgresql --edit
    """
    asked = bool(text) or any(value is not None and value != () for value in given.values())
    if edit and asked:
        raise Unclear("with --edit everything is changed in the editor", "leave out the text and the other options")
    if not (edit or asked):
        raise Unclear("nothing to change", "give a text, a field such as --title or --tag, or --edit")
    with opened() as workspace:
        if edit:
            return _edit(workspace, id, allow_secret)
        content = text_of(text)
        before, item = retry_on_conflict(lambda: _updated(workspace, id, content, allow_secret, **given))
        if content:
            remark_likely(item)
        land(workspace, item)
    changed = (item.sha256, item.path) != (before.sha256, before.path)
    return UpdatedItem(id=item.id, path=item.path, sha256=item.sha256, changed=changed)


def _edit(workspace: Workspace, name: str, allow_secret: str) -> UpdatedItem:
    from memfs.doors.cli.editor import edit_file  # most changes name their fields

    done = edit_file(workspace, _path_of(workspace, name), allow_secret)
    item = workspace.store.read(done.path) if not done.problems else None
    land(workspace, item)
    return UpdatedItem(
        id=item.id if item else name,
        path=done.path,
        sha256=item.sha256 if item else "",
        changed=done.changed,
        problems=done.problems,
    )


def _updated(
    workspace: Workspace,
    name: str,
    content: str | None,
    allow_secret: str,
    *,
    tags: tuple[str, ...],
    links: tuple[str, ...],
    **given: Any,
) -> tuple[MemoryItem, MemoryItem]:
    """An item before and after; where others change it meanwhile, Conflict says so, and trying again keeps theirs."""
    drafted = draft(**given)
    if given["type"] is not None:
        workspace.kinds.get(given["type"])
    before = item_named(workspace, name)
    changes = drafted.changes(before, content)
    if tags:  # those written without a sign instead of its own, else its own, more or less some
        plain = [tag for tag in tags if tag[:1] not in ("+", "-")]
        gone = {tag[1:] for tag in tags if tag.startswith("-")}
        every = dict.fromkeys([*(plain or before.tags), *(tag[1:] for tag in tags if tag.startswith("+"))])
        changes["tags"] = tuple(tag for tag in every if tag not in gone)
    if links:
        changes["links"] = _links(workspace, before, links)
    with signed_by(drafted.origin):  # not the author of what is changed
        return before, workspace.update(
            before.id, expected=before.sha256, source=SOURCE, allow_secret=allow_secret, **changes
        )


def _links(workspace: Workspace, item: MemoryItem, written: Sequence[str]) -> tuple[Link, ...]:
    links = list(item.links)
    for text in written:
        relation, equals, name = text.partition("=")
        name = name if equals else text
        if name.startswith("-"):
            links = [link for link in links if link.to != name[1:]]
            continue
        to = workspace.store.find(name.removeprefix("+")).id
        made = Link(to=to, relation=relation if equals else "relates")
        links += [made] if made not in links else []
    return tuple(links)


def _path_of(workspace: Workspace, written: str) -> str:
    """The file of an item, also when it cannot be read at present."""
    named = reference(workspace, written)
    try:
        return item_found(workspace, named).path
    except ContentError as error:
        if error.path:
            return error.path
        raise
    except ItemNotFound:
        path = path_of(named)
        if workspace.store.edit_finder.is_own(path) and workspace.parts.tree.entry(path) is not None:
            return path
        raise
