"""Surveys what a repository names, rewrites history without some blobs or commits, and swaps the outcome in.

Kept is what refs, reflogs and the index lead to; what nothing names goes. The rewritten repository is built beside the
old one; its objects are complete and checked before anything of the old one changes, and the swap begins only while
that is what was rewritten.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from graphlib import TopologicalSorter
from pathlib import Path

from memfs.dataclass import dataclass, field
from memfs.errors import EraseRefused, GitFailed
from memfs.fs import io
from memfs.git import objects
from memfs.git.busy import lock_reason
from memfs.git.commit_object import headers
from memfs.git.commits import index_of, keep_date, lock_of
from memfs.git.layout import NULL, PER_WORKTREE, Layout, facts_of
from memfs.git.objects import EMPTY_TREE, SUBMODULE, Object
from memfs.git.process import GitCommands, contents, entries_of, files_of
from memfs.git.repository import Repository
from memfs.model.item import object_id

ERASED = b"[erased]"
_TO = slice(41, 81)  # of a line of a reflog: the id that the ref had afterwards
_SIGNED = (b"gpgsig", b"gpgsig-sha256", b"mergetag")
_NO_PARENT = b"parent " + NULL.encode()
_SIGNATURE = re.compile(rb"^-----BEGIN (?:PGP|SSH|SIGNED) (?:SIGNATURE|MESSAGE)-----", re.MULTILINE)
_ID = re.compile(rb"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")
_OWN = re.compile(rb"[-0-9 ]|[^\x00-\x7f]")
_NEVER = re.compile(rb"(?!)")
_ENTRY = re.compile(rb"(\d+) ([^\0]+)\0(.{20})", re.DOTALL)
_ID_ONLY = re.compile(rb"\d+ [^\0]+\0(.{20})", re.DOTALL)
_FOLDER = re.compile(rb"(?:1\d+ [^\0]+\0.{20})*+0?40000 ([^\0]+)\0(.{20})", re.DOTALL)


@dataclass(frozen=True)
class Traces:
    """What betrays an item.

    Attributes:
        versions: for each version its phrases: whole lines and values, as they are in a file.
        names: what it is called in messages: its ids, and its words as commits say them.
    """

    versions: tuple[frozenset[bytes], ...]
    names: tuple[bytes, ...]

    @cached_property
    def phrases(self) -> tuple[bytes, ...]:
        """Every phrase of every version, the longest first."""
        return tuple(sorted(frozenset().union(*self.versions), key=lambda phrase: (-len(phrase), phrase)))

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        return re.compile(b"|".join(map(re.escape, self.phrases))) if self.phrases else _NEVER

    @cached_property
    def distinctive(self) -> tuple[bytes, ...]:
        """The names so specific to it that they are removed from any message, not only from those about the item."""
        return tuple(name for name in self.names if len(name) >= 12 and _OWN.search(name))

    def quoted_in(self, data: bytes) -> bool:
        """Whether some phrase is there."""
        return any(phrase in data for phrase in self.phrases)

    def copied_in(self, pieces: Iterable[bytes]) -> bool:
        """Whether all phrases of some version are in a text that comes in pieces."""
        found: set[bytes] = set()
        before = b""
        for data in pieces:
            window = before + data
            found.update(phrase for phrase in self.phrases if phrase not in found and phrase in window)
            before = window[-len(self.phrases[0]) :] if self.phrases else b""
        return any(version and version <= found for version in self.versions)

    def redact(self, text: bytes, names: bool = False) -> bytes:
        """The text without phrases and revealing names; with ``names`` without the others, too."""
        plain = self._pattern.sub(ERASED, text)
        return _words(self.names if names else self.distinctive).sub(ERASED, plain)


NO_TRACES = Traces(versions=(), names=())


@cache
def _words(names: tuple[bytes, ...]) -> re.Pattern[bytes]:
    if not names:
        return _NEVER
    words = b"|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rb"(?<![A-Za-z0-9._-])(?:%s)(?![A-Za-z0-9_-]|\.[A-Za-z0-9])" % words, re.IGNORECASE)


def entries(tree: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """Mode, name and binary id of everything in a tree, as written there."""
    return _ENTRY.findall(tree)


def folders(tree: bytes) -> list[tuple[bytes, str]]:
    """Name and id of the folders in a tree; the files between them are skipped without a look."""
    rows = []
    found = _FOLDER.match(tree)
    while found is not None:  # not by findall, which would look for a beginning at every byte
        rows.append((found[1], found[2].hex()))
        found = _FOLDER.match(tree, found.end())
    return rows


def ids(tree: bytes) -> set[bytes]:
    """The binary ids in a tree."""
    return set(_ID_ONLY.findall(tree))


def edit_tree(tree: bytes, cut: Collection[bytes], table: Mapping[bytes, bytes | None]) -> bytes:
    """A tree without some names, and with other ids; those that become None are left out.

    All other bytes stay as they are, so that an old tree of a strange form stays one.
    """
    kept = []
    for mode, name, found in entries(tree):
        new = table.get(found, found)
        if new is not None and name not in cut:
            kept.append(b"%s %s\0%s" % (mode, name, new))
    return b"".join(kept)


def named_in_commit(data: bytes) -> tuple[str, tuple[str, ...]]:
    """Tree and parents of a commit."""
    rows = [line.partition(b" ") for line in headers(data)[0]]
    tree = next((value.decode("ascii", "replace") for name, _, value in rows if name == b"tree"), "")
    return tree, tuple(value.decode("ascii", "replace") for name, _, value in rows if name == b"parent")


def edit_object(data: bytes, replaced: Mapping[str, str], traces: Traces, names: bool = False) -> bytes:
    """A commit or annotated tag with other ids and a message without traces; one that changes loses its signatures.

    A parent that becomes ``NULL`` is left out.
    """
    rows, message = headers(data)
    new = []
    for line in rows:
        name, _, value = line.partition(b" ")
        old = value.decode("ascii", "replace")
        changes = name in (b"tree", b"parent", b"object") and old in replaced
        new.append(name + b" " + replaced[old].encode() if changes else line)
    plain = traces.redact(message, names)
    if new == rows and plain == message:
        return data
    kept = [line for line in new if line.split(b" ", 1)[0] not in _SIGNED and line != _NO_PARENT]
    signature = _SIGNATURE.search(plain) if rows[0].startswith(b"object ") else None  # of a tag
    return b"\n".join(kept) + b"\n\n" + (plain[: signature.start()] if signature else plain)


def edit_reflog(data: bytes, replaced: Mapping[str, str], traces: Traces) -> bytes:
    """A reflog with other ids, in its messages, too, and messages without traces.

    A step to a commit that becomes ``NULL`` is left out; one from there begins with nothing.
    """
    lines = []
    for line in data.split(b"\n"):
        if replaced.get(line[_TO].decode("ascii", "replace")) == NULL:
            continue
        facts, tab, message = edit_ids(line, replaced).partition(b"\t")
        lines.append(facts + tab + traces.redact(message))
    return b"\n".join(lines)


def edit_lines(data: bytes, replaced: Mapping[str, str]) -> bytes:
    """Lines that name objects, with other ids; those that name one which becomes ``NULL`` are left out."""
    lines = data.splitlines(keepends=True)
    return b"".join(edit_ids(line, replaced) for line in lines if NULL not in map(replaced.get, ids_in(line)))


def edit_ids(text: bytes, replaced: Mapping[str, str]) -> bytes:
    """A text with the ids in it replaced."""
    return _ID.sub(lambda found: replaced.get(found[0].decode(), found[0].decode()).encode(), text)


def ids_in(text: bytes) -> set[str]:
    """Every object id in a text."""
    return {found.decode() for found in _ID.findall(text)}


_HEADER = b"# pack-refs with: sorted \n"
_HEADS = re.compile(r"[A-Z_]*HEAD|AUTO_MERGE")
_MESSAGES = re.compile(r"[A-Z_]+(?:_EDITMSG|_MSG|_DESCRIPTION)|ADD_EDIT\.patch")
_SMALL = 1 << 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What names objects at one moment.

    Attributes:
        refs: id by ref. Symbolic refs name no object and are left out.
        logs: content of each reflog, by its path below ``logs/``.
        heads: content of ``ORIG_HEAD``, ``FETCH_HEAD`` and their like, and of ``HEAD`` itself.
    """

    refs: Mapping[str, str]
    logs: Mapping[str, bytes]
    heads: Mapping[str, bytes]

    def ids(self, heads: bool = True) -> set[str]:
        """Every id that is named anywhere; without ``heads`` not those whose objects git does not keep."""
        found = set(self.refs.values())
        for text in (*self.logs.values(), *(self.heads.values() if heads else ())):
            found |= ids_in(text)
        return found - {NULL}


def read_names(repository: Repository) -> Names:
    """What names objects now.

    Raises:
        GitFailed: a ref cannot be read.
    """
    logs = repository.common_dir / "logs"
    out = repository.git.run("for-each-ref", "--format=%(objectname) %(refname) %(symref)")
    rows = (os.fsdecode(line).split(" ") for line in out.splitlines())
    return Names(
        refs={ref: found for found, ref, symbolic in rows if not symbolic},
        logs={path.relative_to(logs).as_posix(): io.read_file(path, _SMALL) for path in files_below(logs)},
        heads={path.name: io.read_file(path, _SMALL) for path in _files_like(_HEADS, repository.git_dir)},
    )


def packed_text(refs: Mapping[str, str]) -> bytes:
    """The content of ``packed-refs`` for these refs."""
    rows = sorted((os.fsencode(ref), found.encode()) for ref, found in refs.items())
    return _HEADER + b"".join(b"%s %s\n" % (found, ref) for ref, found in rows)


def changed_loose(layout: Layout, names: Names, mapped: Mapping[str, str]) -> list[str]:
    """The refs with a file of their own whose id changes."""
    return [ref for ref, found in names.refs.items() if found in mapped and _is_file(layout.common_dir / ref)]


def turn(layout: Layout, names: Names, mapped: Mapping[str, str]) -> None:
    """Change every ref at once; the caller holds their locks and that of ``packed-refs``.

    Until the last rename every ref names what it named before. A ref whose id becomes ``NULL`` is gone then.
    """
    common = layout.common_dir
    before = {ref: found for ref, found in names.refs.items() if not ref.startswith(PER_WORKTREE)}
    changed = changed_loose(layout, names, mapped)
    shared = [ref for ref in changed if ref in before]
    if shared:
        _rewrite(common / "packed-refs", packed_text(before))
    for ref in shared:
        io.unlink(common / ref, missing_ok=True)
    for folder in {(common / ref).parent for ref in shared}:
        io.sync_folder(folder)
    after = {ref: mapped.get(found, found) for ref, found in before.items()}
    if after != before:
        _rewrite(common / "packed-refs", packed_text({ref: found for ref, found in after.items() if found != NULL}))
    for ref in set(changed) - set(shared):
        _rewrite(common / ref, f"{mapped[names.refs[ref]]}\n".encode())


def edit_logs(layout: Layout, mapped: Mapping[str, str], traces: Traces) -> None:
    """Write the reflogs, ``ORIG_HEAD`` and its like again where they name what was replaced."""
    for path in files_below(layout.common_dir / "logs"):
        _edit(path, lambda data: edit_reflog(data, mapped, traces))
    if _is_file(layout.common_dir / "info/refs"):
        _edit(layout.common_dir / "info/refs", lambda data: edit_lines(data, mapped))
    for path in _files_like(_HEADS, layout.git_dir):
        if path.name != "HEAD":
            _edit(path, lambda data: traces.redact(edit_lines(data, mapped)))
    for path in _files_like(_MESSAGES, layout.git_dir):
        _edit(path, traces.redact)


def _edit(path: Path, edit: Callable[[bytes], bytes]) -> None:
    before = io.read_file(path, _SMALL)
    after = edit(before)
    if after and after != before:
        _rewrite(path, after)
    elif after != before:
        io.unlink(path, missing_ok=True)


def _rewrite(path: Path, data: bytes) -> None:
    mode = stat.S_IMODE(os.stat(path if path.exists() else path.with_name("HEAD")).st_mode)
    io.write_file(path, data, mode)
    if stat.S_IMODE(os.stat(path).st_mode) != mode:
        io.chmod(path, mode)


def _files_like(pattern: re.Pattern[str], folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if pattern.fullmatch(path.name) and _is_file(path)]


def files_below(folder: Path) -> Iterator[Path]:
    """Every regular file at or below a folder; no link is followed."""
    for place, _, names in os.walk(folder):
        yield from (path for name in sorted(names) if _is_file(path := Path(place) / name))


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


PATIENCE = 3600.0
INDEX = "index"
SWAP_LOCK = "lock"
_AT_ONCE = 5_000
_BYTES_AT_ONCE = 32 << 20
_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n"

Means = Callable[[bytes], bool]


class MovedRef(Exception):
    """The repository changed meanwhile: look again. Never leaves the eraser."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRemoval:
    """What is to be taken out of history.

    Attributes:
        blobs: what disappears wherever it is.
        paths: what disappears from the index whatever it holds.
        cuts: by tree, the names that disappear from it whatever they hold.
        traces: what is taken out of messages and reflogs.
        commits: those that disappear: their children have one parent less, and their tags are gone.
        last: the one of them that another one replaces; ``first``: the content of that one.
    """

    blobs: frozenset[str] = frozenset()
    paths: frozenset[bytes] = frozenset()
    cuts: Mapping[str, Collection[bytes]] = field(default_factory=dict)
    traces: Traces = NO_TRACES
    commits: frozenset[str] = frozenset()
    last: str = ""
    first: bytes = b""


# -- the survey -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """Kind and size of an object."""

    kind: str
    size: int


@dataclass(slots=True)
class Versions:
    """What any commit has at the paths that are to be removed.

    Attributes:
        blobs: blob to the paths it had.
        cuts: for each tree with such an entry, the names in it.
    """

    blobs: dict[str, set[bytes]] = field(default_factory=dict)
    cuts: dict[str, set[bytes]] = field(default_factory=dict)


class HistorySurvey:
    """What a repository names, as it is now: what comes later is neither removed nor overwritten.

    Attributes:
        names: what names objects; ``index`` the facts of the index.
        stock: the files that hold objects, below ``objects/``.
        facts: kind and size of each object by id.
        commits: tree and parents by commit.
        inner: for each tree, the trees in it.
    """

    def __init__(self, repository: Repository, *, everything: bool = False) -> None:
        """``everything``: also the objects that nothing names."""
        self._repository = repository
        top = repository.common_dir / "objects"
        self.stock = [path.relative_to(top).as_posix() for path in files_below(top)]
        self.names = read_names(repository)
        self.index = facts_of(index_of(repository.git_dir))
        self.facts = inventory(repository.git, None if everything else named(repository))
        self.commits = {name: named_in_commit(data) for name, data in self.contents(self.of_kind("commit"))}
        trees = self.contents(self.of_kind("tree"))
        self.inner = {name: tuple(found for _, found in folders(data)) for name, data in trees}
        self._holding: dict[frozenset[str], dict[str, set[str]]] = {}

    def of_kind(self, kind: str) -> list[str]:
        """The ids of all objects of a kind."""
        return [name for name, facts in self.facts.items() if facts.kind == kind]

    def contents(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Each of some objects with its content."""
        return contents(self._repository.git, {name: self.facts[name].size for name in names}, PATIENCE)

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

    def paths(self, blobs: Collection[str]) -> set[bytes]:
        """Every path at which any commit has one of some blobs."""
        direct = self.holding(blobs)
        affected = self.above(direct)
        files = self._files(lambda inner, _: inner in affected)
        return {path for tree, path, blob in files if blob in direct.get(tree, ())}

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
                if mode not in (b"40000", b"040000"):
                    yield tree, path, binary.hex()
                elif enters(binary.hex(), path + b"/"):
                    waiting.append((binary.hex(), path + b"/"))

    # -- by content -----------------------------------------------------------------------------------------------
    def holding(self, blobs: Collection[str]) -> dict[str, set[str]]:
        """The trees that hold some blobs directly: tree to blobs."""
        key = frozenset(blobs)
        if key not in self._holding:
            wanted = {bytes.fromhex(blob) for blob in key}
            rows = ((tree, wanted & ids(data)) for tree, data in (self.contents(self.inner) if wanted else ()))
            self._holding[key] = {tree: {binary.hex() for binary in held} for tree, held in rows if held}
        return self._holding[key]

    def above(self, below: Iterable[str]) -> set[str]:
        """Some trees, and every tree that holds one of them, however deep."""
        outer: dict[str, list[str]] = {tree: [] for tree in self.inner}
        for tree, inner in self.inner.items():
            for name in inner:
                outer.setdefault(name, []).append(tree)
        return reached(outer, below)

    def tagged(self, name: str) -> str:
        """The object behind an annotated tag, or the object itself."""
        while (facts := self.facts.get(name)) is not None and facts.kind == "tag":
            name = _target(self._repository.object(name).data)
        return name


def inventory(
    git: GitCommands, names: Iterable[str] | None = None, variables: Mapping[str, str] | None = None
) -> dict[str, ObjectFacts]:
    """Some objects, or all there are, with their kinds and sizes."""
    form = "--batch-check=%(objectname) %(objecttype) %(objectsize)"
    asked = (form, "--batch-all-objects") if names is None else (form,)
    request = "".join(f"{name}\n" for name in names or ()).encode()
    out = git.run("cat-file", *asked, data=request, variables=variables, timeout=PATIENCE)
    rows = (line.split(" ") for line in out.decode("ascii", "replace").splitlines())
    return {name: ObjectFacts(kind, int(size)) for name, kind, size in rows}


def named(repository: Repository) -> set[str]:
    """Every object that a ref, a reflog or the index leads to."""
    words = ("--objects", "--all", "--reflog", "--indexed-objects")
    out = repository.git.run("rev-list", *words, timeout=PATIENCE)
    return {line[:40].decode("ascii") for line in out.splitlines()}


def staged(repository: Repository) -> set[str]:
    """The blobs that the index names."""
    return {entry.blob for entry in entries_of(repository.git) if entry.mode != SUBMODULE}


# -- the rewriting ----------------------------------------------------------------------------------------------------
class Rewriter:
    """Takes one removal out of a repository.

    Attributes:
        mapped: new id by old one, of every object that is replaced; ``NULL`` where nothing takes its place.
        gone: every object that is to disappear: what is removed, and what is replaced.
        commits: how many commits were replaced.
    """

    def __init__(
        self, repository: Repository, survey: HistorySurvey, removal: HistoryRemoval, folder: Path | None = None
    ) -> None:
        """Make all objects that the rewritten history consists of.

        Args:
            folder: where the second repository is built; without one nothing is written.
        """
        self._repository = repository
        self._git = repository.git
        self._survey, self._removal = survey, removal
        self._folder = folder or Path()
        self._stores = folder is not None
        self._waiting: dict[str, Object] = {}
        self._bytes = 0
        self._made: set[str] = set()
        self._held: dict[str, frozenset[str]] = {}
        self.mapped: dict[str, str] = dict.fromkeys(removal.commits, NULL)
        self.gone = {*removal.blobs, *removal.commits}
        self.commits = 0
        if folder is not None:
            io.make_private_folder(folder)
            for name in ("refs", "objects", "objects/pack", "objects/info", "made", "made/pack"):
                io.mkdir(folder / name, 0o700)
        if removal.last:
            self.mapped[removal.last] = self._make("commit", removal.first)
        self._rewrite_trees()
        self._rewrite_commits()
        self._rewrite_tags()
        self.gone -= self._made

    def _make(self, kind: str, data: bytes) -> str:
        name = object_id(kind, data)
        if name not in self._made and self._stores:
            self._waiting[name] = Object(kind, data)
            self._bytes += len(data)
            if len(self._waiting) >= _AT_ONCE or self._bytes >= _BYTES_AT_ONCE:
                self._flush()
        self._made.add(name)
        return name

    def _flush(self) -> None:
        if self._waiting:
            places = {"GIT_OBJECT_DIRECTORY": str(self._folder / "made")}
            data = objects.pack(self._waiting)
            self._git.run("index-pack", "--stdin", data=data, variables=places, timeout=PATIENCE)
        self._waiting, self._bytes = {}, 0

    def _replace(self, old: str, kind: str, before: bytes, after: bytes) -> None:
        if after != before:
            self.mapped[old] = self._make(kind, after)
            self.gone.add(old)

    def _rewrite_trees(self) -> None:
        survey, removal = self._survey, self._removal
        direct = survey.holding(removal.blobs)
        table: dict[bytes, bytes | None] = dict.fromkeys(map(bytes.fromhex, removal.blobs))
        affected = survey.above([*direct, *removal.cuts])
        sorter = TopologicalSorter({tree: set(affected.intersection(survey.inner[tree])) for tree in affected})
        sorter.prepare()
        while level := sorter.get_ready():  # each in a later level than the trees in it
            for tree, data in survey.contents(level):
                inner = (self._held.get(name, frozenset()) for name in survey.inner[tree])
                self._held[tree] = frozenset(direct.get(tree, ())).union(*inner)
                after = edit_tree(data, removal.cuts.get(tree, ()), table)
                if after:
                    self._replace(tree, "tree", data, after)
                elif data:  # nothing will name it: the folder goes from the tree above
                    self.mapped[tree] = EMPTY_TREE
                    self.gone.add(tree)
                if tree in self.mapped:
                    table[bytes.fromhex(tree)] = bytes.fromhex(self.mapped[tree]) if after else None
            sorter.done(*level)

    def _rewrite_commits(self) -> None:
        commits = self._survey.commits
        parents = {commit: above for commit, (_, above) in commits.items()}
        held = {commit: self._held.get(tree, frozenset()) for commit, (tree, _) in commits.items()}
        for commit in oldest_first(parents, parents):
            if commit in self.gone:
                continue
            # the message of a commit that wrote, changed or removed the item may name it in a word
            before = [held.get(parent, frozenset()) for parent in parents[commit]] or [frozenset()]
            touches = any(one != held[commit] for one in before)
            data = self._repository.object(commit).data
            after = edit_object(data, self.mapped, self._removal.traces, touches)
            if after != data:
                self.commits += 1
                if named_in_commit(after)[0] == EMPTY_TREE and commits[commit][0] != EMPTY_TREE:
                    self._make("tree", b"")
            self._replace(commit, "commit", data, after)

    def _rewrite_tags(self) -> None:
        raw = dict(self._survey.contents(self._survey.of_kind("tag")))
        for name in oldest_first({name: (_target(data),) for name, data in raw.items()}, raw):
            data = raw[name]
            if self.mapped.get(_target(data)) == NULL:
                self.mapped[name] = NULL
                self.gone.add(name)
                continue
            after = edit_object(data, self.mapped, self._removal.traces)
            self._replace(name, "tag", data, after)

    def first_replaced(self) -> list[str]:
        """The commits that are replaced, but for those that came of another one."""
        replaced = self._survey.commits.keys() & self.gone
        return sorted(commit for commit in replaced if replaced.isdisjoint(self._survey.commits[commit][1]))

    # -- the second repository ------------------------------------------------------------------------------------
    def build(self) -> None:
        """Complete the second repository, and check that nothing is missing in it but what was to go.

        Raises:
            EraseRefused: it is not what it should be; the old repository is as it was.
        """
        entries = entries_of(self._git)
        removal = self._removal
        self._write_index({one.path for one in entries if one.path in removal.paths or one.blob in removal.blobs})
        # Whatever names an object names one of these afterwards: refs, reflogs and the index.
        before = self._survey.names.ids(heads=False) | ({one.blob for one in entries if one.mode != SUBMODULE})
        there = before & self._survey.facts.keys()  # a reflog may outlive what it names
        named = {self.mapped.get(name, name) for name in there} - {NULL, *removal.blobs}
        self._pack(named)
        io.write_file(self._folder / "config", _CONFIG, durable=False)
        io.write_file(self._folder / "HEAD", b"ref: refs/heads/main\n", durable=False)
        rows = packed_text({f"refs/named/{name}": name for name in named})
        io.write_file(self._folder / "packed-refs", rows, durable=False)
        self._compare()
        try:
            fsck(self._repository, {"GIT_DIR": str(self._folder)})
        except GitFailed as error:
            raise EraseRefused(
                f"the rewritten history did not pass its check: {error.message}",
                hint="nothing was changed; run 'git fsck --full' and report this",
            ) from error

    def _pack(self, named: Collection[str]) -> None:
        """Write the pack: whatever some objects lead to, of the old repository or made."""
        self._flush()
        old = self._repository.common_dir / "objects"
        places = {
            "GIT_OBJECT_DIRECTORY": str(self._folder / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{self._folder / 'made'}:{old}",
        }
        if named:
            request = "".join(f"{name}\n" for name in sorted(named)).encode()
            base = str(self._folder / "objects/pack/pack")
            self._git.run("pack-objects", "-q", "--revs", base, data=request, variables=places, timeout=PATIENCE)
        for path in self._pack_files():
            _sync(path)
        io.sync_folder(self._folder / "objects/pack")

    def _pack_files(self) -> list[Path]:
        """The files of the pack; the index, without which git does not see the others, last."""
        found = [path for path in (self._folder / "objects/pack").iterdir() if not path.name.startswith("tmp_")]
        return sorted(found, key=lambda path: path.suffix == ".idx")

    def _write_index(self, without: Collection[bytes]) -> None:
        """Copy the person's index, where there is one, without some paths and what git remembers of conflicts."""
        source, target = self._repository.git_dir / INDEX, self._folder / INDEX
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

    def _compare(self) -> None:
        """Check that each commit that a ref names and the one in its place have the same tree, but for removals."""
        refs = self._survey.names.refs
        notes = {found for ref, found in refs.items() if ref.startswith("refs/notes/")}
        for old in (set(refs.values()) & self._survey.commits.keys() & self.mapped.keys()) - notes:
            new = self.mapped[old]
            if new == NULL:
                continue
            before = files_of(self._git, old, {}, PATIENCE)
            after = files_of(self._git, new, {"GIT_DIR": str(self._folder)}, PATIENCE)
            blobs, paths = self._removal.blobs, self._removal.paths
            if {path: row for path, row in before.items() if row.id not in blobs and path not in paths} != after:
                raise EraseRefused(
                    f"the rewritten commit {new} differs from {old} in more than what was to go",
                    hint="nothing was changed; please report this",
                )

    # -- the swap -------------------------------------------------------------------------------------------------
    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold git's locks of the index and of every ref that changes.

        Raises:
            MovedRef: something changed since the survey.
            EraseRefused: another process holds a lock.
        """
        repository, own = self._repository, self._folder.parent / SWAP_LOCK
        index, common = index_of(repository.git_dir), repository.common_dir
        refs = [common / f"{ref}.lock" for ref in changed_loose(repository.layout, self._survey.names, self.mapped)]
        io.write_file(own, b"")
        taken = []
        try:
            for lock in (lock_of(index), common / "packed-refs.lock", *refs):
                try:
                    io.link(str(own), str(lock))
                except FileExistsError:
                    reason = lock_reason(repository.layout, lock) or f"{lock.name} was held a moment ago"
                    hint = "nothing was changed; try again when it is gone"
                    raise EraseRefused(reason, path=str(lock), hint=hint) from None
                taken.append(lock)
            if read_names(repository) != self._survey.names or facts_of(index) != self._survey.index:
                raise MovedRef
            yield
        finally:
            for lock in taken:
                io.unlink(lock, missing_ok=True)

    def add_pack(self) -> None:
        """Put the new objects beside the old ones."""
        folder = self._repository.common_dir / "objects/pack"
        io.mkdir(folder)
        for path in self._pack_files():
            with suppress(FileExistsError):
                io.link(str(path), str(folder / path.name))
        io.sync_folder(folder)

    def turn(self) -> None:
        """Put the index in place, then all refs at once. The locks are held."""
        index, new_index = index_of(self._repository.git_dir), self._folder / INDEX
        if new_index.exists() and io.read_file(new_index) != io.read_file(index):
            io.rename(str(new_index), str(index))
            io.sync_folder(index.parent)
        turn(self._repository.layout, self._survey.names, self.mapped)

    def finish(self) -> None:
        """After the swap: reflogs, then the old objects.

        Raises:
            MovedRef: something names an old object again, or an unseen object; or another process packed the old
                objects.
        """
        repository = self._repository
        lost = dict.fromkeys(self._survey.names.ids() - self._survey.facts.keys(), NULL)
        edit_logs(repository.layout, {**lost, **self.mapped}, self._removal.traces)
        packed = inventory(repository.git, variables={"GIT_DIR": str(self._folder)}).keys()
        if not read_names(repository).ids() | staged(repository) <= packed:
            raise MovedRef
        repository.git.close()
        top = repository.common_dir / "objects"
        ours = {f"pack/{path.name}" for path in self._pack_files()}
        for name in ("info/commit-graph", "info/commit-graphs", "info/packs", "pack/multi-pack-index"):
            io.remove_all(top / name)
        # Without its index a pack is nothing to git: no process meets half of one.
        old = sorted({*self._survey.stock} - ours, key=lambda name: (not name.endswith(".idx"), name))
        for name in old:
            io.unlink(top / name, missing_ok=True)
        for folder in {(top / name).parent for name in old}:
            if folder.is_dir():
                io.sync_folder(folder)
        if inventory(repository.git).keys() & self.gone:
            raise MovedRef


def _target(tag: bytes) -> str:
    return tag.split(b"\n", 1)[0].removeprefix(b"object ").decode("ascii", "replace")


def fsck(repository: Repository, variables: Mapping[str, str] | None = None) -> None:
    """Check a whole repository.

    Raises:
        GitFailed: it is damaged.
    """
    repository.git.run("fsck", "--full", "--no-dangling", "--no-progress", variables=variables, timeout=PATIENCE)


def release(repository: Repository, own: Path) -> None:
    """Remove the locks that an ended eraser left: they are second names of its own file."""
    refs = (path for path in files_below(repository.common_dir / "refs") if path.suffix == ".lock")
    for lock in (repository.common_dir / "packed-refs.lock", lock_of(index_of(repository.git_dir)), *refs):
        with suppress(OSError):
            if os.path.samefile(lock, own):
                io.unlink(lock, missing_ok=True)


def _sync(path: Path) -> None:
    with io.descriptor(io.open_file(path, os.O_RDONLY)) as fd:
        io.fsync(fd, str(path))


# -- graphs -----------------------------------------------------------------------------------------------------------
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
        latest[commit] = max((times[commit], *above))
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
