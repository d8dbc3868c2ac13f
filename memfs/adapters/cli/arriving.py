"""``import`` of what other memories keep: how it is asked for, and what is told of it.

Owns the words and the JSON. How a store's files are read, and what becomes of each memory, is decided elsewhere.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memfs.adapters.cli.landing import land
from memfs.adapters.cli.output import clean, count, note, one_line, print_json, print_raw, print_table, progress, styled
from memfs.adapters.cli.streams import read_input

if TYPE_CHECKING:
    from memfs.adapters.importing.places import Skipped, Taken
    from memfs.pipeline.arriving import Fate
    from memfs.workspace import Workspace

MARKDOWN = "markdown"
STORES = ("claude-code", "agents-md", "mcp-memory", "mem0", "basic-memory", MARKDOWN)
"""The names of ``memfs.adapters.importing.formats``, which --help need not import."""
_NAMED = 20
_WIDTH = 72
_STDIN = "standard input"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The options of an import from another memory."""

    dry_run: bool = False
    replace: bool = False
    reviewed: bool = False
    allow_secret: str = ""
    as_json: bool = False


def import_store(workspace: Workspace, store: str, files: Sequence[str], wishes: Wishes) -> int:
    """Take in what another memory keeps, and tell what became of it.

    Args:
        files: Markdown files and folders, else one file or folder; none for Claude Code's own.

    Returns:
        The exit code: 1 where something was refused.
    """
    name, taken = _read(workspace, store, files)
    fates, gone = _taken_in(workspace, store, name, taken, wishes)
    reason = "" if wishes.dry_run else land(workspace, None).reason
    if wishes.as_json:
        print_json({**_json(name, store, fates, taken.skipped, wishes.dry_run), "gone": gone})
    else:
        _tell(name, store, fates, taken.skipped, wishes)
        _name("gone", ((one, "it is no longer there; 'memfs forget' it if it no longer holds") for one in gone))
    if reason:
        note(f"stored; the commit waits: {reason}")
    return int(any(fate.became == "refused" for fate in fates) or any(one.refused for one in taken.skipped))


def _taken_in(
    workspace: Workspace, store: str, name: str, taken: Taken, wishes: Wishes
) -> tuple[list[Fate], list[str]]:
    """What became of each memory, and the ids of those that are no longer there."""
    from memfs.pipeline.arriving import Arriving  # --help is spared what it imports

    arrivals = taken.arrivals
    if wishes.reviewed:
        arrivals = [replace(one, item=_vouched_for(one.item)) for one in arrivals]
    arriving = Arriving(workspace.store, workspace.parts)
    with progress("Importing") as step:
        fates = arriving.take_in(
            store,
            arrivals,
            message=f"Import from {store}: {os.path.basename(os.path.normpath(name))}",
            replace=wishes.replace,
            allow_secret=wishes.allow_secret,
            dry_run=wishes.dry_run,
            step=step,
        )
    return fates, [item.id for item in arriving.gone(store, fates, taken.covers)]


def _read(workspace: Workspace, store: str, files: Sequence[str]) -> tuple[str, Taken]:
    from memfs.adapters.importing import markdown_notes  # as above
    from memfs.adapters.importing.claude_code import memory_folder
    from memfs.adapters.importing.formats import read

    if store == markdown_notes.NAME:
        name = files[0] if len(files) == 1 else f"{len(files):,} paths"
        return name, markdown_notes.read(map(Path, files), workspace.repository.work_tree, workspace.kinds)
    file = files[0] if files else None
    if file == "-":
        return _STDIN, read(store, Path(_STDIN), read_input())
    path = Path(file) if file else None
    if store == "claude-code" and (path is None or path.is_dir()):
        found = workspace.repository
        main = found.common_dir.parent  # Claude Code has one memory for all working trees of a repository
        path = memory_folder(path, (workspace.root, found.work_tree, main))
    assert path is not None  # only Claude Code's own folder need not be named
    return str(path), read(store, path)


def _vouched_for(item: Any) -> Any:
    from memfs.model.item import VOUCHED, Trust

    return item if item.trust in VOUCHED else item.replace(trust=Trust.REVIEWED.value)


# -- for programs -------------------------------------------------------------------------------------------------
def _json(name: str, store: str, fates: Sequence[Fate], skipped: Iterable[Skipped], dry_run: bool) -> dict[str, Any]:
    became = Counter(fate.became.value for fate in fates)
    return {
        "file": name,
        "from": store,
        "dry_run": dry_run,
        "stored": became["stored"],
        "counts": _kinds(fates),
        "updated": became["updated"],
        "same": became["same"],
        "memories": [
            {
                "where": fate.arrival.where,
                "became": fate.became.value,
                "id": fate.id or None,
                "type": fate.arrival.item.type,
                "reason": fate.reason,
                "near": list(fate.near),
                "contradicts": list(fate.contradicts),
            }
            for fate in fates
            if fate.became != "same"
        ],
        "skipped": [{"where": one.where, "reason": one.reason} for one in skipped if not one.refused],
        "refused": [{"where": one.where, "reason": one.reason} for one in skipped if one.refused],
    }


def _kinds(fates: Iterable[Fate]) -> dict[str, int]:
    return dict(Counter(fate.arrival.item.type for fate in fates if fate.became == "stored"))


# -- for people ---------------------------------------------------------------------------------------------------
def _tell(name: str, store: str, fates: Sequence[Fate], skipped: Sequence[Skipped], wishes: Wishes) -> None:
    stored = [fate for fate in fates if fate.became == "stored"]
    if wishes.dry_run:
        _preview(fate for fate in fates if fate.became in ("stored", "updated"))
    did = "Would import" if wishes.dry_run else "Imported"
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(_kinds(fates).items()))
    what = count(len(stored), "memory", "memories") + (f" ({kinds})" if kinds else "")
    also = [f"{number:,} {words}" for sort, words in _ALSO.items() if (number := _number(fates, sort))]
    tail = f"; {', '.join(also)}" if also else ""
    print_raw(f"{styled(did, fg='green')} {what} from {store}, {clean(name)}{tail}")
    _name("says what is here", ((fate.arrival.where, fate.reason) for fate in fates if fate.became == "repeated"))
    _name("contradicts", _contradictions(stored))
    _name("kept", ((fate.arrival.where, f"{fate.reason}; --replace takes the source's") for fate in _kept(fates)))
    _name("skipped", ((one.where, one.reason) for one in skipped if not one.refused))
    _name("refused", ((one.where, one.reason) for one in skipped if one.refused))
    _name("refused", ((fate.arrival.where, fate.reason) for fate in fates if fate.became == "refused"))
    if stored and any(fate.arrival.item.trust == "agent" for fate in stored):
        note("an agent wrote these; --reviewed says that you looked through them, and lets them be told unasked")


_ALSO = {
    "updated": "brought up to date",
    "same": "there already",
    "repeated": "said by others here",
    "kept": "edited here and left alone",
    "refused": "refused",
}


def _number(fates: Iterable[Fate], became: str) -> int:
    return sum(fate.became == became for fate in fates)


def _kept(fates: Iterable[Fate]) -> Iterable[Fate]:
    return (fate for fate in fates if fate.became == "kept")


def _contradictions(stored: Iterable[Fate]) -> Iterable[tuple[str, str]]:
    return (
        (fate.arrival.where, f"{fate.id} contradicts {', '.join(fate.contradicts)}")
        for fate in stored
        if fate.contradicts
    )


def _preview(fates: Iterable[Fate]) -> None:
    """The first memories that would be stored, a line each."""
    rows = []
    shown = list(fates)
    for fate in shown[:_NAMED]:
        item = fate.arrival.item
        text = one_line(item.title or item.content, _WIDTH)
        rows.append(("~" if fate.became == "updated" else "+", fate.id, item.type, fate.arrival.where, text))
    print_table(rows)
    if len(shown) > _NAMED:
        print_raw(f"and {count(len(shown) - _NAMED, 'more memory', 'more memories')}")


def _name(word: str, rows: Iterable[tuple[str, str]]) -> None:
    """Name what is worth a look, on standard error, so many at most."""
    shown = [f"{word}: {where}: {reason}" for where, reason in rows]
    for line in shown[:_NAMED]:
        note(line)
    if len(shown) > _NAMED:
        note(f"and {len(shown) - _NAMED:,} more")
