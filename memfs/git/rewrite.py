"""Surveys every object of a repository, rewrites history without some blobs or commits, and swaps the outcome in.

Objects are read in bulk, reachable or not. The rewritten repository is built beside the old one; its objects are
complete and checked before anything of the old one changes, and the swap begins only while that is what was rewritten.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import MappingProxyType

from memfs.dataclass import dataclass, field
from memfs.errors import EraseRefused, GitBusy, GitFailed, HistoryUnavailable
from memfs.fs import io
from memfs.git import objects
from memfs.git.busy import ERASE_FOLDER, lock_reason
from memfs.git.commit_object import headers
from memfs.git.layout import Facts, facts_of
from memfs.git.objects import EMPTY_TREE, SUBMODULE, Object, Objects, add, encode_tree
from memfs.git.process import GitCommands, contents, entries_of, files_of
from memfs.git.refs import NULL, renew_quarantine
from memfs.git.repository import Repository, cut_off
from memfs.git.rewrite_text import (
    NO_TRACES,
    Names,
    Traces,
    changed_loose,
    edit_commit,
    edit_logs,
    edit_reflog,
    edit_tag,
    edit_tree,
    entries,
    folders,
    ids,
    is_signed,
    named_in_commit,
    packed_text,
    read_names,
    turn,
    turned,
)
from memfs.git.transaction import index_of, keep_date, lock_of
from memfs.model.item import object_id

Make = Callable[[str, bytes], str]
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """What a rewriting came to.

    Attributes:
        mapped: new id by old one, of every object that is replaced.
        gone: every object that is to disappear: the blobs, and what is replaced.
        traces: what was taken out of messages, and is to go from reflogs.
        commits: how many commits were replaced; ``unsigned``: how many of them, and of tags, lost a signature.
    """

    mapped: Mapping[str, str]
    gone: frozenset[str]
    traces: Traces = NO_TRACES
    commits: int = 0
    unsigned: int = 0


def rewrite(
    repository: Repository,
    survey: Survey,
    blobs: Collection[str],
    cuts: Mapping[str, Collection[bytes]],
    traces: Traces,
    make: Make,
    replaced: Mapping[str, str] = _NOTHING,
) -> Rewritten:
    """Make all objects that history without some blobs, or some commits, consists of.

    Args:
        blobs: what is to disappear, wherever it is.
        cuts: names that disappear from a tree whatever they hold.
        traces: what is taken out of messages.
        make: stores an object, returns its id.
        replaced: commits that disappear, with the one that takes their place, or ``NULL``: who names such a one as
            a parent has one parent less, and a tag of it is gone.
    """
    return _Rewriter(repository, survey, frozenset(blobs), cuts, traces, make, dict(replaced)).run()


@dataclass(slots=True)
class _Rewriter:
    repository: Repository
    survey: Survey
    blobs: frozenset[str]
    cuts: Mapping[str, Collection[bytes]]
    traces: Traces
    store: Make
    mapped: dict[str, str]
    made: set[str] = field(default_factory=set)
    held: dict[str, frozenset[str]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    unsigned: int = 0
    commits: int = 0

    def run(self) -> Rewritten:
        self.gone |= self.blobs | self.mapped.keys()
        self._trees()
        touching = self._touching()
        parents = {commit: above for commit, (_, above) in self.survey.commits.items()}
        for commit in oldest_first(parents, parents):
            if commit not in self.gone:
                self._commit(commit, commit in touching)
        self._tags()
        return Rewritten(
            mapped=self.mapped,
            gone=frozenset(self.gone - self.made),
            traces=self.traces,
            commits=self.commits,
            unsigned=self.unsigned,
        )

    def _make(self, kind: str, data: bytes) -> str:
        name = self.store(kind, data)
        self.made.add(name)
        return name

    def _replace(self, old: str, kind: str, before: bytes, after: bytes) -> None:
        if after != before:
            self.mapped[old] = self._make(kind, after)
            self.gone.add(old)

    # -- trees ----------------------------------------------------------------------------------------------------
    def _trees(self) -> None:
        direct = self.survey.holding(self.blobs)
        table: dict[bytes, bytes | None] = dict.fromkeys(map(bytes.fromhex, self.blobs))
        affected = self.survey.above([*direct, *self.cuts])
        for level in _levels({tree: set(affected.intersection(self.survey.inner[tree])) for tree in affected}):
            for tree, data in self.survey.contents(level):
                inner = (self.held.get(name, frozenset()) for name in self.survey.inner[tree])
                self.held[tree] = frozenset(direct.get(tree, ())).union(*inner)
                cut = self.cuts.get(tree, ())
                after = edit_tree(data, cut, table)
                if after:
                    self._replace(tree, "tree", data, after)
                elif data:  # nobody will name it: the folder goes from the tree above
                    self.mapped[tree] = EMPTY_TREE
                    self.gone.add(tree)
                if tree in self.mapped:
                    table[bytes.fromhex(tree)] = bytes.fromhex(self.mapped[tree]) if after else None

    # -- commits --------------------------------------------------------------------------------------------------
    def _touching(self) -> set[str]:
        """The commits that wrote, changed or removed the item: their messages may name it in a word."""
        commits = self.survey.commits
        nothing: frozenset[str] = frozenset()

        def held(commit: str) -> frozenset[str]:
            return self.held.get(commits[commit][0], nothing) if commit in commits else nothing

        return {
            commit
            for commit, (_, parents) in commits.items()
            if any(held(parent) != held(commit) for parent in parents) or (not parents and held(commit))
        }

    def _commit(self, commit: str, touching: bool) -> None:
        tree, _ = self.survey.commits[commit]
        data = self.repository.object(commit).data
        after = edit_commit(data, self.mapped, self.traces, touching)
        if after != data:
            self.commits += 1
            self.unsigned += is_signed(data)
            if named_in_commit(after)[0] == EMPTY_TREE and tree != EMPTY_TREE:
                self._make("tree", b"")
        self._replace(commit, "commit", data, after)

    # -- tags -----------------------------------------------------------------------------------------------------
    def _tags(self) -> None:
        raw = dict(self.survey.contents(self.survey.of_kind("tag")))

        def edit(name: str) -> None:
            data = raw.pop(name)
            target = data.split(b"\n", 1)[0].removeprefix(b"object ").decode("ascii", "replace")
            if target in raw:
                edit(target)
            if self.mapped.get(target) == NULL:
                self.mapped[name] = NULL
                self.gone.add(name)
                return
            after = edit_tag(data, self.mapped, self.traces)
            self.unsigned += after != data and is_signed(data)
            self._replace(name, "tag", data, after)

        while raw:
            edit(next(iter(raw)))


Parents = Mapping[str, tuple[str, ...]]


def cut_point(parents: Parents, times: Mapping[str, int], tips: Iterable[str], before: int) -> str | None:
    """The newest commit older than ``before`` through which every line from the tips leads, all above it being older,
    too.

    Args:
        parents: of each commit.
        times: when each was committed, in seconds since 1970.
        tips: the commits that stay whatever their age.

    Returns:
        None where there is none, or nothing lies above it.
    """
    order = oldest_first(parents, tips)
    latest: dict[str, int] = {}
    for commit in order:
        above = (latest[parent] for parent in parents[commit] if parent in latest)
        latest[commit] = max(times[commit], *above, times[commit])
    open_lines = {commit for commit in tips if commit in parents}
    for commit in reversed(order):
        if open_lines == {commit} and latest[commit] < before:
            return commit if parents[commit] else None
        open_lines.discard(commit)
        open_lines.update(parent for parent in parents[commit] if parent in parents)
    return None


def oldest_first(parents: Parents, tips: Iterable[str]) -> list[str]:
    """The commits that lead to some tips, none before one that it came of."""
    commits = reached(parents, tips)
    sorter = TopologicalSorter({commit: commits.intersection(parents[commit]) for commit in commits})
    return list(sorter.static_order())


def _levels(inside: Mapping[str, Collection[str]]) -> Iterator[tuple[str, ...]]:
    """Trees, each in a later level than those in it."""
    sorter = TopologicalSorter(inside)
    sorter.prepare()
    while sorter.is_active():
        level = sorter.get_ready()
        yield level
        sorter.done(*level)


def reached(links: Mapping[str, Collection[str]], begin: Iterable[str], without: Collection[str] = ()) -> set[str]:
    """What the links lead to from some objects on, these included; what has no links, or is in ``without``, is not."""
    found: set[str] = set()
    waiting = list(begin)
    while waiting:
        name = waiting.pop()
        if name in links and name not in found and name not in without:
            found.add(name)
            waiting.extend(links[name])
    return found


_DROPPED = (b"tree ", b"parent ", b"gpgsig", b"mergetag ")


def extract(repository: Repository, commit: str, names: Iterable[str]) -> tuple[str, Objects]:
    """The history that leads to a commit, of some names at the top of its trees.

    Authors, dates and messages stay; commits that changed none of the paths are left out. Signatures go, since they are
    of other bytes. The same history always gives the same commits.

    Returns:
        The last commit of the extracted history, "" where the names never were there; and all new objects.

    Raises:
        HistoryUnavailable: the clone lacks a part of the history.
    """
    if cut_off(repository):
        raise HistoryUnavailable("this clone is shallow: it lacks history", hint="git fetch --unshallow")
    wanted = {name.encode() for name in names}
    made: Objects = {}
    became: dict[str, str] = {}
    trees: dict[str, str] = {}
    out = repository.git.run("rev-list", "--topo-order", "--reverse", "--parents", commit, timeout=600)
    for line in out.decode("ascii").splitlines():
        name, *before = line.split()
        root = repository.root(name)
        kept = {path: entry for path, entry in repository.read_tree(root).items() if path in wanted}
        tree = add(made, "tree", encode_tree(kept)) if kept else EMPTY_TREE
        parents = list(dict.fromkeys(became[parent] for parent in before if became.get(parent)))
        if not parents and tree == EMPTY_TREE:
            continue
        same = [parent for parent in parents if trees[parent] == tree]
        if len(parents) == 1 and same:
            became[name] = parents[0]
            continue
        if tree == EMPTY_TREE:
            add(made, "tree", b"")
        became[name] = add(made, "commit", _encoded(repository.object(name).data, tree, parents))
        trees[became[name]] = tree
    return became.get(commit, ""), made


def _encoded(data: bytes, tree: str, parents: Iterable[str]) -> bytes:
    rows, message = headers(data)
    kept = [row for row in rows if not row.startswith(_DROPPED)]
    first = [f"tree {tree}".encode(), *(f"parent {parent}".encode() for parent in parents)]
    return b"\n".join([*first, *kept]) + b"\n\n" + message


PATIENCE = 3600.0
_FOLDERS = (b"40000", b"040000")

Means = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """Kind and size of an object."""

    kind: str
    size: int


@dataclass(slots=True)
class Versions:
    """What is, in any commit, at the paths that are meant.

    Attributes:
        blobs: blob to the paths it had.
        cuts: for each tree with such an entry, the names in it.
    """

    blobs: dict[str, set[bytes]] = field(default_factory=dict)
    cuts: dict[str, set[bytes]] = field(default_factory=dict)


class Survey:
    """All objects of a repository, as they are now.

    Attributes:
        facts: kind and size by id.
        commits: tree and parents by commit.
        inner: for each tree, the trees in it.
    """

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._git = repository.git
        self.facts = inventory(repository.git)
        self.commits = {name: named_in_commit(data) for name, data in self.contents(self.of_kind("commit"))}
        self.inner: dict[str, tuple[str, ...]] = {}
        for name, data in self.contents(self.of_kind("tree")):
            self.inner[name] = tuple(found for _, found in folders(data))
        self._holding: dict[frozenset[str], dict[str, set[str]]] = {}

    def of_kind(self, kind: str) -> list[str]:
        """The ids of all objects of a kind."""
        return [name for name, facts in self.facts.items() if facts.kind == kind]

    def contents(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Each of some objects with its content."""
        return contents(self._git, {name: self.facts[name].size for name in names}, PATIENCE)

    def leave_out(self, names: Collection[str]) -> None:
        """Go on as if some objects were not there."""
        for name in names:
            self.facts.pop(name, None)
            self.commits.pop(name, None)
            self.inner.pop(name, None)
        self._holding.clear()

    # -- by path --------------------------------------------------------------------------------------------------
    def versions(self, folder: bytes, means: Means) -> Versions:
        """What any commit has below a folder at a path that is meant."""
        inside = folder + b"/"

        def leads_there(_: str, path: bytes) -> bool:
            return inside.startswith(path) or path.startswith(inside)

        found = Versions()
        meant = cache(means)
        for tree, path, blob in self._files(leads_there):
            if path.startswith(inside) and meant(path) and blob in self.facts:
                found.blobs.setdefault(blob, set()).add(path)
                found.cuts.setdefault(tree, set()).add(path.rpartition(b"/")[2])
        return found

    def paths(self, blobs: Collection[str]) -> dict[bytes, set[str]]:
        """Every path at which any commit has one of some blobs, with those blobs."""
        direct = self.holding(blobs)
        affected = self.above(direct)
        found: dict[bytes, set[str]] = {}
        for tree, path, blob in self._files(lambda inner, _: inner in affected):
            if blob in direct.get(tree, ()):
                found.setdefault(path, set()).add(blob)
        return found

    def _files(self, enters: Callable[[str, bytes], bool]) -> Iterator[tuple[str, bytes, str]]:
        """Each file of the trees of all commits that can be reached by entering some: its tree, path and blob.

        Args:
            enters: whether a tree is to be looked into, by its id and its path, which ends with a slash but at the top.
        """
        seen: set[tuple[str, bytes]] = set()
        waiting = [(tree, b"") for tree, _ in self.commits.values() if enters(tree, b"")]
        while waiting:
            tree, above = place = waiting.pop()
            if place in seen or tree not in self.inner:  # git may have thrown it away already
                continue
            seen.add(place)
            # Not through the repository's cache of trees: a large history has too many to be kept.
            for mode, name, binary in entries(self._repository.object(tree).data):
                path = above + name
                if mode not in _FOLDERS:
                    yield tree, path, binary.hex()
                elif enters(binary.hex(), path + b"/"):
                    waiting.append((binary.hex(), path + b"/"))

    # -- by content -----------------------------------------------------------------------------------------------
    def holding(self, blobs: Collection[str]) -> dict[str, set[str]]:
        """The trees that hold some blobs directly: tree to blobs."""
        asked = frozenset(blobs)
        if asked not in self._holding:
            wanted = {bytes.fromhex(blob) for blob in asked}
            found = {}
            for tree, data in self.contents(self.inner) if wanted else ():
                held = wanted & ids(data)
                if held:
                    found[tree] = {binary.hex() for binary in held}
            self._holding[asked] = found
        return self._holding[asked]

    def above(self, below: Iterable[str]) -> set[str]:
        """Some trees, and every tree that holds one of them, however deep."""
        outer: dict[str, list[str]] = {tree: [] for tree in self.inner}
        for tree, inner in self.inner.items():
            for name in inner:
                outer.setdefault(name, []).append(tree)
        return reached(outer, below)

    def committed(self) -> set[str]:
        """Every tree that a commit, reachable or not, holds."""
        return reached(self.inner, (tree for tree, _ in self.commits.values()))


def inventory(git: GitCommands) -> dict[str, ObjectFacts]:
    """Every object with its kind and size."""
    form = "--batch-check=%(objectname) %(objecttype) %(objectsize)"
    out = git.run("cat-file", "--batch-all-objects", form, timeout=PATIENCE)
    found = {}
    for line in out.decode("ascii", "replace").splitlines():
        name, kind, size = line.split(" ")
        found[name] = ObjectFacts(kind, int(size))
    return found


_AT_ONCE = 5_000
_BYTES_AT_ONCE = 32 << 20
_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
INDEX = "index"


class Successor:
    """One rewritten repository beside the old one.

    Attributes:
        folder: where it lies; its layout is that of a git folder.
    """

    def __init__(self, repository: Repository, folder: Path) -> None:
        self._repository = repository
        self._git = repository.git
        self.folder = folder
        self._old = repository.common_dir / "objects"
        self._made: dict[str, Object] = {}
        self._known: set[str] = set()
        self._bytes = 0

    def begin(self) -> None:
        """Make its folders, removing what an earlier attempt left."""
        io.remove_all(self.folder)
        io.make_private_folder(self.folder)
        for name in ("refs", "objects", "objects/pack", "objects/info", "made", "made/pack"):
            io.mkdir(self.folder / name, 0o700)
        io.write_file(self.folder / "config", _CONFIG, durable=False)

    # -- objects --------------------------------------------------------------------------------------------------
    def make(self, kind: str, data: bytes) -> str:
        """Store an object; return its id."""
        name = object_id(kind, data)
        if name not in self._known:
            self._known.add(name)
            self._made[name] = Object(kind, data)
            self._bytes += len(data)
            if len(self._made) >= _AT_ONCE or self._bytes >= _BYTES_AT_ONCE:
                self._flush()
        return name

    def _flush(self) -> None:
        if self._made:
            places = {"GIT_OBJECT_DIRECTORY": str(self.folder / "made")}
            data = objects.pack(self._made)
            self._git.run("index-pack", "--stdin", data=data, variables=places, timeout=PATIENCE)
        self._made, self._bytes = {}, 0

    def pack(self, kept: Iterable[str]) -> None:
        """Write the pack: some objects of the old repository, and all that were made."""
        self._flush()
        names = sorted(self._known.union(kept))
        places = {
            "GIT_OBJECT_DIRECTORY": str(self.folder / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{self.folder / 'made'}:{self._old}",
        }
        if names:
            request = "".join(f"{name}\n" for name in names).encode()
            base = str(self.folder / "objects/pack/pack")
            self._git.run("pack-objects", "-q", base, data=request, variables=places, timeout=PATIENCE)
        for path in self.pack_files():
            _sync(path)
        io.sync_folder(self.folder / "objects/pack")

    def pack_files(self) -> list[Path]:
        """The files of its pack; the index, without which git does not see the others, last."""
        found = [path for path in (self.folder / "objects/pack").iterdir() if not path.name.startswith("tmp_")]
        return sorted(found, key=lambda path: path.suffix == ".idx")

    # -- names ----------------------------------------------------------------------------------------------------
    def name(self, names: Names, done: Rewritten) -> None:
        """Give it refs, reflogs and HEAD as they will be when all is done."""
        io.write_file(self.folder / "HEAD", names.heads["HEAD"], durable=False)
        io.write_file(self.folder / "packed-refs", packed_text(turned(names.refs, done.mapped)), durable=False)
        for path, data in names.logs.items():
            place = self.folder / "logs" / path
            io.make_private_folder(place.parent)
            io.write_file(place, edit_reflog(data, done.mapped, done.traces), durable=False)

    def write_index(self, without: Collection[bytes]) -> None:
        """Copy the person's index, where there is one, without some paths and what git remembers of conflicts."""
        source, target = self._repository.git_dir / INDEX, self.folder / INDEX
        try:
            data = io.read_file(source)
        except FileNotFoundError:
            return
        facts = os.stat(source)
        io.write_file(target, data, facts.st_mode & 0o777, durable=False)
        if not without and b"REUC" not in data:
            return
        lines = b"".join(b"0 %s\t%s\0" % (NULL.encode(), path) for path in sorted(without))
        options = ("--clear-resolve-undo", "-z", "--index-info")
        self._git.run("update-index", *options, data=lines, variables={"GIT_INDEX_FILE": str(target)})
        keep_date(target, facts.st_mtime_ns)
        _sync(target)

    # -- check ----------------------------------------------------------------------------------------------------
    def check(self, strict: bool) -> None:
        """Look at every object, every ref and reflog, and the index.

        Raises:
            EraseRefused: something is missing or damaged; the old repository is as it was.
        """
        try:
            fsck(self._repository, strict, {"GIT_DIR": str(self.folder)})
        except GitFailed as error:
            raise EraseRefused(
                f"the rewritten history did not pass its check: {error.message}",
                hint="nothing was changed; run 'git fsck --full --strict' and report this",
            ) from error

    def compare(self, pairs: Mapping[str, str], gone: Collection[str], without: Collection[bytes]) -> None:
        """Check that each old tree minus the item is its new tree.

        Args:
            pairs: new commit by old one.
            gone: blobs that are left out; ``without``: paths that are.

        Raises:
            EraseRefused: one is not.
        """
        new_place = {"GIT_DIR": str(self.folder)}
        for old, new in pairs.items():
            before, after = files_of(self._git, old, {}, PATIENCE), files_of(self._git, new, new_place, PATIENCE)
            wanted = {path: entry for path, entry in before.items() if entry.id not in gone and path not in without}
            if wanted != after:
                raise EraseRefused(
                    f"the rewritten commit {new} differs from {old} in more than the item",
                    hint="nothing was changed; please report this",
                )


def fsck(repository: Repository, strict: bool, variables: Mapping[str, str] | None = None) -> None:
    """Check a whole repository.

    Raises:
        GitFailed: it is damaged.
    """
    options = ("--full", "--no-dangling", "--no-progress", *(("--strict",) if strict else ()))
    repository.git.run("fsck", *options, variables=variables, timeout=PATIENCE)


def _sync(path: Path) -> None:
    fd = io.open_file(path, os.O_RDONLY)
    try:
        io.fsync(fd, str(path))
    finally:
        os.close(fd)


SWAP_LOCK = "lock"
_LOOSE = re.compile(r"[0-9a-f]{38}")
_FAN = re.compile(r"[0-9a-f]{2}")
_GRAPHS = ("info/commit-graph", "info/commit-graphs", "info/packs", "pack/multi-pack-index")


class MovedRef(Exception):
    """The repository changed meanwhile: look again. Never leaves the eraser."""


@dataclass(frozen=True, slots=True)
class Before:
    """A repository before anything was looked at: what came later is neither removed nor overwritten.

    Attributes:
        names: what named objects; ``index`` the facts of the index.
        stock: the files that held objects, below ``objects/``.
    """

    names: Names
    index: Facts
    stock: tuple[str, ...]

    @staticmethod
    def of(repository: Repository) -> Before:
        """As it is now."""
        held = _stock(repository)
        return Before(read_names(repository.layout), facts_of(index_of(repository.git_dir)), held)


def _stock(repository: Repository) -> tuple[str, ...]:
    """Every file that holds objects, and every half of one, below ``objects/``."""
    top = repository.common_dir / "objects"
    found = []
    for name in sorted(os.listdir(top)):
        if _FAN.fullmatch(name):
            found += [f"{name}/{inner}" for inner in sorted(os.listdir(top / name))]
        elif name.startswith("tmp_"):
            found.append(name)
    if (top / "pack").is_dir():
        found += [f"pack/{name}" for name in sorted(os.listdir(top / "pack"))]
    return tuple(found)


def swap(
    repository: Repository,
    successor: Successor,
    before: Before,
    done: Rewritten,
    begin: Callable[[], None],
    remove_files: Callable[[], None],
) -> None:
    """Put the new objects in, then the index and the list of quarantined branches, then all refs at once.

    Args:
        begin: makes the record by which an interrupted swap is known; called when nothing prevents it any more.
        remove_files: takes the item out of the working tree.

    Raises:
        MovedRef: something changed since the successor was made; nothing was begun.
        GitBusy: somebody holds a lock; nothing was begun.
    """
    index, common = index_of(repository.git_dir), repository.common_dir
    refs = [common / f"{ref}.lock" for ref in changed_loose(before.names, done.mapped)]
    with _holding(repository, [lock_of(index), common / "packed-refs.lock", *refs]):
        if read_names(repository.layout) != before.names or facts_of(index) != before.index:
            raise MovedRef
        begin()
        _add_pack(repository, successor)
        remove_files()
        new_index = successor.folder / INDEX
        if new_index.exists() and io.read_file(new_index) != io.read_file(index):
            io.rename(str(new_index), str(index))
            io.sync_folder(index.parent)
        renew_quarantine(repository, done.mapped)
        turn(repository.layout, before.names, done.mapped)


def finish(
    repository: Repository, successor: Successor, before: Before, done: Rewritten, known: Collection[str]
) -> None:
    """After the swap: reflogs, then the old objects.

    Args:
        known: every object that stays or was made.

    Raises:
        MovedRef: something names an old object again, or an object nobody had seen; or somebody packed the old objects.
    """
    edit_logs(repository.layout, done.mapped, done.traces)
    now = read_names(repository.layout)
    held = now.ids(heads=False) | staged(repository)
    if (held | now.ids()) & done.gone or not held <= set(known):
        raise MovedRef
    repository.git.close()
    _remove_old(repository, successor, before)
    if inventory(repository.git).keys() & done.gone:
        raise MovedRef


def release(repository: Repository, own: Path) -> None:
    """Remove the locks that an ended eraser left: they are second names of its own file."""
    places = [repository.common_dir / "packed-refs.lock", lock_of(index_of(repository.git_dir))]
    for folder, _, names in os.walk(repository.common_dir / "refs"):
        places += [Path(folder) / name for name in names if name.endswith(".lock")]
    for lock in places:
        with suppress(OSError):
            if os.path.samefile(lock, own):
                io.unlink(lock, missing_ok=True)


@contextmanager
def _holding(repository: Repository, locks: Collection[Path]) -> Iterator[None]:
    own = repository.state / ERASE_FOLDER / SWAP_LOCK
    io.write_file(own, b"")
    taken = []
    try:
        for lock in locks:
            try:
                io.link(str(own), str(lock))
            except FileExistsError:
                reason = lock_reason(repository.layout, lock) or f"{lock.name} was held a moment ago"
                raise GitBusy(reason, path=str(lock), hint="nothing was changed; try again when it is gone") from None
            taken.append(lock)
        yield
    finally:
        for lock in taken:
            io.unlink(lock, missing_ok=True)


def _add_pack(repository: Repository, successor: Successor) -> None:
    folder = repository.common_dir / "objects/pack"
    io.mkdir(folder)
    for path in successor.pack_files():
        with suppress(FileExistsError):
            io.link(str(path), str(folder / path.name))
    io.sync_folder(folder)


def staged(repository: Repository) -> set[str]:
    """The blobs that the index names."""
    return {entry.blob for entry in entries_of(repository.git) if entry.mode != SUBMODULE}


def _remove_old(repository: Repository, successor: Successor, before: Before) -> None:
    top = repository.common_dir / "objects"
    ours = {f"pack/{path.name}" for path in successor.pack_files()}
    for name in _GRAPHS:
        io.remove_all(top / name)
    # Without its index a pack is nothing to git: no process meets half of one.
    old = sorted((name for name in before.stock if name not in ours), key=lambda name: not name.endswith(".idx"))
    for name in filter(_holds_objects, old):
        io.remove_all(top / name)
    for folder in {(top / name).parent for name in old}:
        io.sync_folder(folder)


def _holds_objects(name: str) -> bool:
    folder, _, rest = name.rpartition("/")
    return folder == "pack" or "tmp_" in name or bool(_LOOSE.fullmatch(rest))
