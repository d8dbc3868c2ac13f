"""PastIndex: from the files of a revision to what is searched.

Owns which file has an id that two claim, and that what an index of a nearby revision holds already is not made again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from memfs.errors import DuplicateId
from memfs.index.documents import Document, Unfit
from memfs.index.treeindex import Share, TreeIndex
from memfs.index.treepart import TreePart
from memfs.index.treeshelf import TreeShelf
from memfs.model.ids import stem_of
from memfs.teams.pastreading import unfit

Documents = Callable[[Mapping[str, str]], Mapping[str, Document | Unfit]]


@dataclass(frozen=True, slots=True)
class Built:
    """The index of a tree, and by path what is wrong with the files that are not in it."""

    index: TreeIndex
    left: Mapping[str, Unfit]


@dataclass(frozen=True, slots=True)
class _Claim:
    """A file that claims an id: the oldest gets it, of equally old ones the first by path."""

    since: int
    path: str
    number: int | None = None

    def before(self, other: _Claim) -> bool:
        return (self.since, self.path) < (other.since, other.path)


def built(shelf: TreeShelf, tree: str, files: Mapping[str, str], documents: Documents, moment: int) -> Built:
    """The index of a tree.

    Args:
        shelf: keeps what was made before.
        tree: its id.
        files: path to mark of every file that should hold an item.
        documents: gives what a search needs of files.
        moment: the time of items whose files name none, in microseconds.
    """
    part = shelf.exact(tree) or shelf.near(files, moment)
    if part is not None:
        return _over(part, files, documents, moment)
    fit, left = _sorted(documents(files), moment)
    owners, twins = _owners(_Claim(one.since, path) for path, one in fit.items())
    part = _part(fit, files, [claim.path for claim in owners.values()], moment)
    shelf.keep(tree, part)
    return Built(TreeIndex([Share(part)]), {**left, **twins})


def _over(part: TreePart, files: Mapping[str, str], documents: Documents, moment: int) -> Built:
    """The index of a tree over the part of another, or of the same one at another time."""
    paths = part.columns.paths
    kept = set(part.numbers_in(files, moment))
    held = {paths[number] for number in kept}
    fit, left = _sorted(documents({path: mark for path, mark in files.items() if path not in held}), moment)
    claims = [_Claim(one.since, path) for path, one in fit.items()]
    rivals = _rivals(part, kept, claims)
    owners, twins = _owners([*rivals, *claims])
    kept -= {claim.number for claim in rivals} - {claim.number for claim in owners.values()}
    shares = [Share(part, frozenset(range(len(part))) - kept)]
    fresh = [claim.path for claim in owners.values() if claim.number is None]
    if fresh:
        shares.append(Share(_part(fit, files, fresh, moment)))
    return Built(TreeIndex(shares), {**left, **twins})


def _rivals(part: TreePart, kept: Collection[int], claims: Iterable[_Claim]) -> list[_Claim]:
    """The claims of a part's documents that others contest: among themselves no two claim one id."""
    contested = {stem_of(claim.path).casefold() for claim in claims}
    numbers = [number for key in contested if (number := part.owners.get(key)) in kept and number is not None]
    return [_Claim(part.since[number], part.columns.paths[number], number) for number in numbers]


def _sorted(found: Mapping[str, Document | Unfit], moment: int) -> tuple[dict[str, Document], dict[str, Unfit]]:
    fit = {path: one.at(moment) for path, one in found.items() if isinstance(one, Document)}
    return fit, {path: one for path, one in found.items() if isinstance(one, Unfit)}


def _part(fit: Mapping[str, Document], files: Mapping[str, str], paths: Iterable[str], moment: int) -> TreePart:
    order = sorted(paths)
    return TreePart.of([fit[path] for path in order], [files[path] for path in order], moment)


def _owners(claims: Iterable[_Claim]) -> tuple[dict[str, _Claim], dict[str, Unfit]]:
    """Who has each id, compared without case, and what is wrong with the others."""
    owners: dict[str, _Claim] = {}
    losers: list[_Claim] = []
    for claim in claims:
        key = stem_of(claim.path).casefold()
        known = owners.get(key)
        if known is None or claim.before(known):
            owners[key] = claim
        if known is not None:
            losers.append(known if owners[key] is claim else claim)
    return owners, {claim.path: _twin(claim, owners[stem_of(claim.path).casefold()]) for claim in losers}


def _twin(claim: _Claim, owner: _Claim) -> Unfit:
    error = DuplicateId(f"the id {stem_of(claim.path)!r} belongs to {owner.path}", hint="rename this file")
    return unfit(error, claim.path)
