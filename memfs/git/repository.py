"""The git repository of a workspace: finds or makes it, and reads HEAD, revisions, trees, blobs, ancestry and staging.

Importing this module starts no process and imports no GitPython.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from memfs.errors import GitFailed, HistoryError, HistoryUnavailable, MemfsError, PathEscape, WorkspaceClosed
from memfs.fs.lock import shared_property
from memfs.git import objects
from memfs.git.layout import (
    HEX,
    Facts,
    Head,
    Layout,
    Refs,
    Trusted,
    discover,
    facts_of,
    require_trusted,
    state_folder,
)
from memfs.git.objects import Object, Tree, TreeEntry
from memfs.model.item import object_id
from memfs.model.time import parse_time, parse_until, parse_when, utc_now
from memfs.startup import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memfs.git.busy import Obstacle
    from memfs.git.commit_object import Identity, ParsedCommit
    from memfs.git.process import GitCommands, StagedEntry
    from memfs.git.signing import Signing

_FIRST = datetime(1970, 1, 2, tzinfo=UTC)  # git reads no earlier time
_HINT = "give a commit, a branch, HEAD~2, a date such as 2026-03-01 or an age such as '3 days ago'"


def parse_moment(text: str, now: datetime, *, end: bool = False) -> datetime | None:
    """The point in time of a text such as ``2026-03-01``, ``7d``, ``3 days ago``, ``last week``; None for others.

    Args:
        end: a day, week or month means its end, else its beginning.
    """
    try:
        return (parse_until if end else parse_when)(text, now)
    except (ValueError, OverflowError):
        return None


def _resolved(git: GitCommands, text: str, now: datetime) -> str:
    """The commit that a revision or date names.

    A date means the newest commit of HEAD's own line that is not younger; a day means the end of it.
    """
    revision = text.strip()
    if not revision or len(revision) > 250 or not revision.isprintable() or revision.startswith("-"):
        raise HistoryUnavailable(f"{ascii(text)[:80]} does not name a revision", hint=_HINT)
    if commit := _commit(git, revision):
        return commit
    moment = parse_moment(revision, now, end=True)
    if moment is None:
        raise HistoryUnavailable(f"there is no revision {revision!a}", hint=_HINT)
    seconds = int(moment.astimezone(UTC).timestamp())
    found = b""
    if seconds >= 0 and _commit(git, "HEAD"):
        found = git.run("rev-list", "--first-parent", "--max-count=1", f"--min-age={seconds}", "HEAD").strip()
    if not found:
        reason = f"the history has no commit before {revision!a}"
        raise HistoryUnavailable(reason, hint="'memfs log' shows where it begins")
    return found.decode()


def _commit(git: GitCommands, text: str) -> str | None:
    request = f"{text}^{{commit}}\n".encode("utf-8", "surrogateescape")
    try:
        answer = git.run("cat-file", "--batch-check", data=request).decode("utf-8", "replace").rsplit(maxsplit=2)
    except GitFailed as error:
        _, fatal, reason = error.message.partition("fatal: ")
        if not fatal:
            raise
        raise HistoryUnavailable(f"{text!a} names no revision: {reason}", hint=_HINT) from error
    return answer[0] if len(answer) == 3 and answer[1] == "commit" else None


_COMMIT_HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")
_KEPT = 4096
_TREE_LINE = len(f"tree {objects.EMPTY_TREE}\n")
_PERSON = r"^(user|author|committer)\.(name|email)$"


class Repository:
    """One workspace's view of its git repository. Reads may run in several threads.

    Attributes:
        workspace, work_tree, git_dir, common_dir, prefix: see ``memfs.git.layout.Layout``.
        state: this workspace's own folder inside the git common folder, private to the user.
        allow_detached: whether commits may go to a detached HEAD.
        sign: when commits are signed: ``off``, ``try`` or ``require``.
    """

    def __init__(self, layout: Layout, allow_detached: bool = False, state: Path | None = None) -> None:
        self.layout = layout
        self.workspace, self.work_tree = layout.workspace, layout.work_tree
        self.git_dir, self.common_dir, self.prefix = layout.git_dir, layout.common_dir, layout.prefix
        self.allow_detached = allow_detached
        self.state = state or state_folder(layout)
        self._closed = False
        self.sign = "off"
        self._few_packed = 100  # objects that are read from packs without a git
        self._refs = Refs(layout)
        self._trees: dict[str, Tree] = {}
        self._roots: dict[str, str] = {}
        self._staged: tuple[object, Mapping[bytes, StagedEntry]] | None = None

    @classmethod
    def find(
        cls,
        workspace: Path,
        allow_detached: bool = False,
        trusted: Callable[[Path], Trusted] | None = None,
        state: Path | None = None,
    ) -> Repository | None:
        """The repository that holds a folder, None where there is none.

        Args:
            trusted: says which other owners this user trusts at a work tree, and which git folder to be its own.
            state: a private folder in place of the workspace's own, for a reader who can write nothing there.

        Raises:
            RepoUnsupported: bare, SHA-256, reftable or otherwise of a sort memfs does not handle.
            RepoUntrusted: it belongs to another user.
        """
        layout = discover(workspace)
        if layout is None:
            return None
        if layout.foreign or layout.elsewhere:
            known: Trusted = trusted(layout.work_tree) if trusted else (frozenset(), None)
            require_trusted(layout, _safe_folders() if layout.foreign else frozenset(), known)
        return cls(layout, allow_detached, state)

    @classmethod
    def create(cls, workspace: Path) -> Repository:
        """Make a repository in a folder, without templates, on the branch the person's settings name or ``main``.

        Raises:
            GitFailed: git is missing or refused.
        """
        from memfs.git.process import GitCommands  # as for ``git``

        git = GitCommands(None, workspace)
        branch = dict(git.settings(r"^init\.defaultbranch$")).get("init.defaultbranch", "main")
        # An empty GIT_DIR value would be taken for a folder: init alone runs without one.
        outside = {"GIT_DIR": str(workspace.absolute() / ".git"), "GIT_WORK_TREE": str(workspace.absolute())}
        git.run("init", "--quiet", "--template=", f"--initial-branch={branch}", variables=outside)
        repository = cls.find(workspace)
        if repository is None:
            raise HistoryError("git made no repository", path=str(workspace), hint="run git init there")
        return repository

    def close(self) -> None:
        """End the processes it keeps, for good."""
        self._closed = True
        if "git" in self.__dict__:
            self.git.close()
            self.git.closed = True

    def require_open(self) -> None:
        """Let only calls before ``close`` pass.

        Raises:
            WorkspaceClosed: a process that is started now would never be ended.
        """
        if self._closed:
            raise WorkspaceClosed(path=str(self.state))

    @shared_property
    def git(self) -> GitCommands:
        """The commands that may be run in it."""
        from memfs.git.process import GitCommands  # reading alone runs none

        made = GitCommands(self.layout, self.state)
        made.closed = self._closed
        return made

    # -- the present state ----------------------------------------------------------------------------------------
    def head(self) -> Head:
        """Where HEAD points, read again from git's files.

        Always answers: where those are damaged, ``damage`` says so, the commit is None, and commits wait (``busy``).
        """
        self.require_open()
        return self._refs.head()

    def head_commit(self) -> str | None:
        """HEAD's commit; None on a branch without one.

        Raises:
            HistoryUnavailable: git's files are damaged, so that it is unknown.
        """
        head = self.head()
        if head.damage:
            raise HistoryUnavailable(head.damage, hint="run git fsck")
        return head.commit

    def ref_commit(self, ref: str) -> str | None:
        """The commit a full ref name points to; None when it does not exist.

        Raises:
            HistoryUnavailable: its file is damaged.
        """
        self.require_open()
        return self._refs.commit(ref)

    def obstacle(self, *, processes: bool = True) -> Obstacle | None:
        """What prevents a commit to HEAD's branch.

        Args:
            processes: look also for a person's command that has not locked anything yet, or no longer.
        """
        from memfs.git.busy import obstacle, persons_command  # a process that only reads does not ask

        found = obstacle(self.layout, self.head(), self.allow_detached)
        return found or (persons_command(self.layout) if processes else None)

    def let_moves_end(self) -> None:
        """Wait a moment for a person's git that moves files."""
        from memfs.git.busy import let_moves_end  # as above

        self.require_open()
        let_moves_end(self.layout)

    @shared_property
    def signing(self) -> Signing:
        """Signs commits, as ``sign`` says when it is first asked."""
        from memfs.git.signing import Signing

        return Signing(self.git, self.sign)

    def busy(self) -> str:
        """Why commits must wait, in words; "" when they need not."""
        found = self.obstacle()
        return found.reason if found else ""

    def skipped_hooks(self) -> tuple[str, ...]:
        """The hooks that git would run for a commit here, and memfs does not."""
        configured = dict(self.git.settings(r"^core\.hookspath$")).get("core.hookspath", "")
        folder = self.work_tree / os.path.expanduser(configured) if configured else self.common_dir / "hooks"
        return tuple(
            name for name in _COMMIT_HOOKS if os.path.isfile(folder / name) and os.access(folder / name, os.X_OK)
        )

    def identity(self) -> Identity:
        """The person at work, by environment and git's configuration."""
        from memfs.git.commit_object import identity

        return identity(os.environ, dict(self.git.settings(_PERSON)))

    # -- paths ----------------------------------------------------------------------------------------------------
    def full(self, path: str) -> bytes:
        """A workspace path as git names it, below the work tree.

        Raises:
            PathEscape: it leads elsewhere.
        """
        try:
            name = os.fsencode(f"{self.prefix}/{path}" if self.prefix else path)
        except UnicodeEncodeError:
            raise PathEscape("no file can have such a name", path=ascii(path)[1:-1], hint="use a valid path") from None
        objects.split(name)
        return name

    def below(self, name: bytes) -> str | None:
        """A path that git names, as a workspace path; None when it is outside."""
        prefix = os.fsencode(self.prefix) + b"/" if self.prefix else b""
        return os.fsdecode(name[len(prefix) :]) if name.startswith(prefix) else None

    # -- objects --------------------------------------------------------------------------------------------------
    def object(self, name: str) -> Object:
        """An object by its id, verified.

        Raises:
            HistoryUnavailable: it is missing or damaged.
        """
        self.require_open()
        if not HEX.fullmatch(name):
            raise HistoryUnavailable(f"{name!a} is not an object id", hint="give all 40 digits")
        place = self.common_dir / "objects"
        found = objects.read_loose(place, name)
        if found is None and self._few_packed:  # a git that is kept reads many sooner, and takes as long to begin
            self._few_packed -= 1
            found = objects.read_packed(place, name)
        if found is None or object_id(found.kind, found.data) != name:
            found = self.git.object(name)
            if object_id(found.kind, found.data) != name:
                raise HistoryUnavailable(f"the object {name} is damaged", hint="run git fsck")
        return found

    def read_tree(self, name: str) -> Tree:
        """The names in a tree object; the recently used ones are kept."""
        kept = self._trees.get(name)
        if kept is None:
            kept = {} if name == objects.EMPTY_TREE else objects.parse_tree(self._of_kind(name, "tree"))
            _trim(self._trees)
            self._trees[name] = kept
        return kept

    def forget_trees(self) -> None:
        """Let go the trees that were read, for a process that stays: most are of commits that have passed."""
        self.require_open()
        self._trees.clear()

    def remember(self, made: Mapping[str, Tree]) -> None:
        """Keep trees that were just stored, so that the next commit need not read them."""
        if len(self._trees) + len(made) < _KEPT:
            self._trees.update(made)

    def commit_object(self, commit: str) -> ParsedCommit:
        """A commit, read."""
        from memfs.git.commit_object import parse_commit

        return parse_commit(self._of_kind(commit, "commit"))

    def _of_kind(self, name: str, kind: str) -> bytes:
        found = self.object(name)
        if found.kind != kind:
            raise HistoryUnavailable(f"{name} is a {found.kind}, not a {kind}", hint=f"give a {kind}")
        return found.data

    def root(self, commit: str) -> str:
        """The tree of a commit."""
        kept = self._roots.get(commit)
        if kept is None:
            head = self._of_kind(commit, "commit")[:_TREE_LINE]
            named = head[5:-1].decode("ascii", "replace") if head.startswith(b"tree ") and head.endswith(b"\n") else ""
            # Else it is read in full, which says what is wrong with it.
            kept = named if HEX.fullmatch(named) else self.commit_object(commit).tree
            _trim(self._roots)
            self._roots[commit] = kept
        return kept

    def blob(self, blob_id: str) -> bytes:
        """The content of a file, by its blob id."""
        return self.object(blob_id).data

    def blob_id(self, data: bytes) -> str:
        """What git would call these bytes."""
        return object_id("blob", data)

    # -- content at a revision ------------------------------------------------------------------------------------
    def resolve(self, revision: str) -> str:
        """The commit that a revision or a date names.

        Raises:
            HistoryUnavailable: there is none.
        """
        if HEX.fullmatch(revision):
            with suppress(HistoryUnavailable):
                if self.object(revision).kind == "commit":
                    return revision
        try:
            return _resolved(self.git, revision, utc_now())
        except HistoryUnavailable as error:
            if (self.common_dir / "shallow").exists():
                error.hint = "this clone is shallow: 'git fetch --unshallow' brings the history that it lacks"
            raise

    def entry(self, commit: str | None, path: str) -> TreeEntry | None:
        """What a workspace path names at a commit."""
        parts = objects.split(self.full(path))
        return objects.find(self.read_tree, self.root(commit) if commit else None, parts)

    def tree(
        self,
        revision: str,
        folder: str = "ContextMemory",
        expected: Mapping[str, str] = MappingProxyType({}),
        known: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, str]:
        """Every file below a workspace folder at a revision: path to blob id. Links are left out.

        Args:
            expected: what may be there; where a folder has just that, its trees are not read.
            known: folders below it with the ids of their trees; what is in one that has that tree is left out.
        """
        entry = self.entry(self.resolve(revision), folder)
        if entry is None or entry.mode != objects.FOLDER:
            return {}
        inside = f"{folder}/"
        below = {path: blob for path, blob in expected.items() if blob and path.startswith(inside)}
        ids = objects.tree_ids({os.fsencode(path[len(inside) :]): blob for path, blob in below.items()})
        if not known and ids[b""] == entry.id:
            return below
        ids |= {os.fsencode(path[len(inside) :]): tree for path, tree in known.items()}
        files, same = {}, []
        for name, found in objects.walk(self.read_tree, entry.id, known=ids):
            path = inside + os.fsdecode(name)
            if found.mode == objects.FOLDER:
                same.append(f"{path}/")
            else:
                files[path] = found.id
        return files | {path: blob for path, blob in below.items() if path.startswith(tuple(same))}

    def unchanged(self, commit: str, trees: Mapping[str, str]) -> dict[str, str]:
        """Those of some folders, by path, that have these trees at a commit."""
        self.require_open()
        found = ((path, self.entry(commit, path)) for path in trees)
        return {path: one.id for path, one in found if one and one == TreeEntry(objects.FOLDER, trees[path])}

    def read(self, revision: str, path: str) -> bytes | None:
        """A file's content at a revision; None when it was not there."""
        entry = self.entry(self.resolve(revision), path)
        return self.blob(entry.id) if entry and entry.mode in objects.REGULAR else None

    def head_blob(self, path: str) -> str | None:
        """The blob id a path has in HEAD's commit; None when it is not there.

        Raises:
            HistoryUnavailable: git's files or objects are damaged or missing, or git is. A caller that has the working
                file can go on without this answer.
        """
        self.require_open()
        try:
            entry = self.entry(self.head_commit(), path)
        except (HistoryUnavailable, PathEscape):
            raise
        except (MemfsError, OSError) as error:
            raise HistoryUnavailable(f"HEAD's files cannot be read: {error}", hint="run git fsck") from error
        return entry.id if entry and entry.mode in objects.REGULAR else None

    # -- the person's index ---------------------------------------------------------------------------------------
    def staged(self, paths: Iterable[str]) -> dict[str, str | None]:
        """The blob ids that the person's index holds for some paths, None where it holds nothing."""
        changed = self.staged_changes(self.head_commit(), facts_of(self.git_dir / "index"))
        return {
            path: changed[name].blob if (name := self.full(path)) in changed else self.head_blob(path) for path in paths
        }

    def staged_differently(self, paths: Iterable[str]) -> set[str]:
        """Those of the paths whose entry in the person's index differs from HEAD."""
        changed = self.staged_changes(self.head_commit(), facts_of(self.git_dir / "index"))
        return {path for path in paths if self.full(path) in changed}

    def left_out(self, paths: Iterable[str]) -> set[str]:
        """Those of the paths that git keeps out of the working tree by the person's wish (sparse checkout)."""
        from memfs.git.process import left_out  # as for ``git``

        absent = left_out(self.git)
        return {path for path in paths if self.full(path) in absent}

    def staged_changes(
        self, commit: str | None, facts: Facts, index: Path | None = None
    ) -> Mapping[bytes, StagedEntry]:
        """How the person's index differs from a commit; asked of git again only when either has changed.

        Args:
            facts: those of the person's index.
            index: a copy of it to read, None for itself.
        """
        from memfs.git.process import staged_changes  # as for ``git``

        kept = self._staged
        if kept is None or kept[0] != (facts, commit):
            kept = self._staged = ((facts, commit), staged_changes(self.git, commit, index))
        return kept[1]

    def restaged(self, commit: str, facts: Facts, paths: Collection[bytes]) -> None:
        """Note that an index with these facts was written, which agrees with a new commit about some paths."""
        kept = self._staged
        if kept is not None:
            others = {path: entry for path, entry in kept[1].items() if path not in paths}
            self._staged = ((facts, commit), others)


def _safe_folders() -> frozenset[str]:
    from memfs.git.process import GitCommands  # as for ``git``

    safe: set[str] = set()
    for _, folder in GitCommands(None, Path("/")).settings(r"^safe\.directory$"):
        # As git reads it: an empty value forgets the ones before it.
        safe = safe | {folder.rstrip("/") or "/"} if folder else set()
    return frozenset(safe)


def _trim(kept: dict[str, Any]) -> None:
    """Make room in a cache. Another thread may be at it too, and may read: nothing is asked twice of a dictionary."""
    if len(kept) >= _KEPT:
        kept.clear()


_PATIENCE = 600.0
"""Seconds for a question that may go through the whole of a long history: no answer must not pass for a "no"."""


def is_ancestor(repository: Repository, old: str, new: str) -> bool:
    """Whether a line of parents leads from ``new`` to ``old``; false too where one of them is not there."""
    if old == new:
        return True
    try:
        repository.git.run("merge-base", "--is-ancestor", old, new, timeout=_PATIENCE)
    except GitFailed:
        return False
    return True


def merge_bases(repository: Repository, one: str, other: str) -> tuple[str, ...]:
    """The best common ancestors of two commits, newest first; several where lines crossed, none of strangers.

    Of equally old ones the order is that of their ids, so that every clone has the same.

    Raises:
        HistoryUnavailable: a commit on the way to them is not in the repository.
    """
    if one == other:
        return (one,)
    try:
        found = repository.git.run("merge-base", "--all", one, other, accept=(0, 1), timeout=_PATIENCE)
    except GitFailed as error:
        raise HistoryUnavailable(
            f"where {one[:10]} and {other[:10]} met cannot be found: {error.message}",
            hint="a shallow clone lacks it: git fetch --unshallow",
        ) from error
    bases = sorted(found.decode().split())
    if len(bases) > 1:
        bases.sort(key=lambda base: repository.commit_object(base).time, reverse=True)
    return tuple(bases)


def since_filter(moment: datetime) -> str:
    """The option that makes git leave out older commits, and only these: one clock that was wrong hides none before."""
    return f"--since-as-filter={max(parse_time(moment), _FIRST):%Y-%m-%dT%H:%M:%S+00:00}"


def beyond(
    repository: Repository,
    tips: Iterable[str],
    known: Iterable[str] = (),
    *,
    most: int = 0,
    since: datetime | None = None,
) -> list[str]:
    """The commits that lead to some tips and not to what is known, none before one that came of it; newest first.

    Args:
        most: how many at most; 0 for all.
        since: leave out those that were committed before.

    Raises:
        GitFailed: a commit is not there.
    """
    bound = [f"--max-count={most}"] if most else []
    bound += [since_filter(since)] if since else []
    request = "\n".join((*tips, *(f"^{name}" for name in known), "")).encode()
    out = repository.git.run("rev-list", "--topo-order", *bound, "--stdin", data=request, timeout=_PATIENCE)
    return out.decode().split()


def blobs_in_history(repository: Repository, paths: Iterable[str]) -> frozenset[str]:
    """The blobs that commits of HEAD, a branch, a tag or another ref ever had at some paths.

    Memfs's own refs do not count, nor does a stash, which is easily dropped. None where git cannot walk the
    whole of that history.
    """
    if not (names := [repository.full(path) for path in paths]):
        return frozenset()
    passed_over = ("--exclude=refs/memfs/*", "--exclude=refs/stash")  # before --all, to which they apply
    request = b"\n".join((b"--", *names, b""))
    words = ("rev-list", *passed_over, "--all", "--objects", "--full-history", "--stdin")
    try:
        out = repository.git.run(*words, data=request, timeout=_PATIENCE)
    except HistoryError:
        return frozenset()
    return frozenset(row.partition(b" ")[0].decode() for row in out.splitlines())


def cut_off(repository: Repository) -> frozenset[str]:
    """The commits at which the history of a shallow clone ends; none in a whole one."""
    try:
        text = (repository.common_dir / "shallow").read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    return frozenset(text.split())


def holds_commit(repository: Repository, commit: str) -> bool:
    """Whether the repository has a commit, with its tree."""
    try:
        repository.read_tree(repository.root(commit))
    except HistoryUnavailable:
        return False
    return True


def at_a_tip(repository: Repository, path: str) -> bool:
    """Whether HEAD's commit or that of any ref has a file at a workspace path; so too where that is unknown.

    What memfs keeps outside git beside such a file is then no leftover: a checkout of that branch needs it.
    """
    try:
        return bool(blobs_at_tips(repository, path))
    except (MemfsError, OSError):
        return True


def blobs_at_tips(repository: Repository, path: str) -> set[str]:
    """The ids of the blobs that a workspace path has in HEAD's commit and in those of all refs.

    Raises:
        HistoryError: git or its files are damaged or missing.
    """
    listed = repository.git.run("for-each-ref", "--format=%(objecttype) %(objectname) %(*objecttype) %(*objectname)")
    commits = {words[-1] for line in listed.splitlines() if (words := os.fsdecode(line).split())[-2] == "commit"}
    head = repository.head_commit()
    entries = (repository.entry(commit, path) for commit in {*commits, *([head] if head else [])})
    return {entry.id for entry in entries if entry is not None}
