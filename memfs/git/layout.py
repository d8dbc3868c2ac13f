"""Locates the repository around a folder: work tree, git folder, common folder, and memfs's state folder in it; reads
git's own files: configuration, HEAD, branches and other refs.

Refuses repositories that memfs does not handle or that belong to another user. No process is started, and no ref is
moved; a garbled ref raises instead of being guessed at. Includes of a configuration are not followed, as git does not
follow them for these keys either.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from memfs.dataclass import NamedTuple, dataclass
from memfs.errors import (
    HistoryError,
    HistoryUnavailable,
    MemfsError,
    NotRegularFile,
    RepoUnsupported,
    RepoUntrusted,
    StorageReadOnly,
)
from memfs.fs import io
from memfs.fs.tree import detects_edits
from memfs.model.item import RACY_NS
from memfs.startup import regex, sha256

ERASE_FOLDER = "erase"
"""The folder in a workspace's state that has what an erase is at, and its record below that folder."""
ERASE_RECORD = f"{ERASE_FOLDER}/record.json"
_SMALL = 8192
_KNOWN_EXTENSIONS = frozenset(
    {
        "noop",
        "preciousobjects",
        "partialclone",
        "worktreeconfig",
        "objectformat",
        "refstorage",
        "relativeworktrees",
        "compatobjectformat",
    }
)


Trusted = tuple[frozenset[int], Path | None]
"""Other users whose repository is trusted at a place, and a git folder that is trusted to be that place's own."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of one repository as seen from one workspace.

    Attributes:
        workspace: the workspace, links resolved.
        work_tree: top of the working tree that holds it.
        git_dir: this working tree's git folder, with its HEAD and index.
        common_dir: what all working trees share: objects, branches, configuration.
        prefix: the workspace below the work tree, "" or "a/b".
        foreign: folders of the repository that belong to another user, with whose they are.
        elsewhere: the git folder, where it is another working tree's and not this one's; None in ordinary repositories.
    """

    workspace: Path
    work_tree: Path
    git_dir: Path
    common_dir: Path
    prefix: str
    foreign: tuple[tuple[Path, int], ...] = ()
    elsewhere: Path | None = None

    @property
    def foreign_owners(self) -> frozenset[int]:
        """The other users to whom a part of the repository belongs."""
        return frozenset(owner for _, owner in self.foreign)


def discover(workspace: Path) -> Layout | None:
    """The repository that holds a folder, None where there is none.

    Raises:
        RepoUnsupported: bare, or of an object or ref format that memfs does not handle.
    """
    try:
        start = Path(os.path.realpath(workspace))
    except ValueError:  # no folder can have such a name
        return None
    for folder in (start, *start.parents):
        git_dir = entry = folder / ".git"
        if entry.is_file():
            text = read_small(entry) or ""
            git_dir = folder / text.removeprefix("gitdir:").strip()
            if not text.startswith("gitdir:") or _common_dir(git_dir) is None:
                raise RepoUnsupported(
                    ".git is a file that names no repository", path=str(entry), hint="run git worktree repair"
                )
        common_dir = _common_dir(git_dir)
        if common_dir is not None:
            return _layout(start, folder, Path(os.path.realpath(git_dir)), common_dir)
        if _common_dir(folder) is not None:
            raise RepoUnsupported("bare repository", path=str(folder), hint="use a clone with a working tree")
    return None


def require_trusted(
    layout: Layout, allowed: frozenset[str] = frozenset(), trusted: Trusted = (frozenset(), None)
) -> None:
    """Refuse a git folder that is another working tree's, and a repository of another user, unless this user trusts
    them here, or declared the work tree safe.

    Args:
        allowed: the folders that git's ``safe.directory`` names.
        trusted: the users, and the git folder, that are trusted at this place.

    Raises:
        RepoUntrusted: naming the folder and the command that trusts it.
    """
    owners, git_dir = trusted
    foreign = layout.foreign_owners - owners and "*" not in allowed and str(layout.work_tree) not in allowed
    if not foreign and layout.elsewhere in (None, git_dir):
        return
    from shlex import quote  # only errors need it

    trusts = f"memfs admin trust {quote(str(layout.workspace))}"
    if layout.elsewhere not in (None, git_dir):
        raise RepoUntrusted(
            f"its .git leads to {layout.elsewhere}, which does not know this working tree",
            path=str(layout.work_tree),
            hint=f"run git worktree repair, or if it is meant: {trusts}",
        )
    path = str(layout.foreign[0][0])
    raise RepoUntrusted("the repository belongs to another user", path=path, hint=f"if you trust that user: {trusts}")


def state_folder(layout: Layout) -> Path:
    """A workspace's own folder inside the git common folder, private to this user; made where it is not there.

    Raises:
        StorageReadOnly: a link is there, or the folder belongs to another user.
    """
    state = state_path(layout)
    for folder in (state.parent, state):
        links = [str(folder)] if folder.is_symlink() else []
        if not links:
            io.make_private_folder(folder)
            # Whatever is kept there, now or later, is reached by name: none may lead elsewhere.
            with os.scandir(folder) as entries:
                links = [entry.path for entry in entries if entry.is_symlink()]
        if links:
            raise StorageReadOnly("there is a link where memfs keeps its state", path=links[0], hint="remove it")
    return state


def state_path(layout: Layout) -> Path:
    """Where that folder is, whether it is there or not."""
    where = os.path.relpath(layout.git_dir, layout.common_dir)
    key = sha256(os.fsencode(f"{where}\0{layout.prefix}")).hexdigest()[:16]
    return layout.common_dir / "memfs" / key


def read_small(path: str | Path) -> str | None:
    """The stripped text of a small file such as HEAD; None when it is absent."""
    try:
        return os.fsdecode(io.read_file(path, _SMALL)).strip()
    except (FileNotFoundError, NotADirectoryError, NotRegularFile):
        return None


def is_bare(layout: Layout) -> bool:
    """Whether the common folder has no working tree of its own, only linked ones: its HEAD checks nothing out."""
    settings = read_config(layout.common_dir / "config")
    if truth(settings, "extensions.worktreeconfig"):
        settings |= read_config(layout.common_dir / "config.worktree")
    return truth(settings, "core.bare")


def _common_dir(git_dir: Path) -> Path | None:
    """What a git folder shares with those of other working trees; None where the folder is no git folder."""
    if not os.path.lexists(git_dir / "HEAD"):
        return None
    common = Path(os.path.realpath(git_dir / (read_small(git_dir / "commondir") or "")))
    return common if (common / "objects").is_dir() and (common / "refs").is_dir() else None


def _layout(workspace: Path, found_at: Path, git_dir: Path, common_dir: Path) -> Layout:
    mine = own_users()
    owners = {place: os.lstat(place).st_uid for place in (found_at, found_at / ".git", git_dir, common_dir)}
    foreign = tuple((place, owner) for place, owner in owners.items() if owner not in mine)
    settings = read_config(common_dir / "config")
    _require_format(settings, common_dir)
    if truth(settings, "extensions.worktreeconfig"):
        settings |= read_config(git_dir / "config.worktree")
    work_tree = found_at
    if git_dir == common_dir:
        if truth(settings, "core.bare"):
            raise RepoUnsupported("bare repository", path=str(git_dir), hint="use a clone with a working tree")
        if "core.worktree" in settings:
            work_tree = Path(os.path.realpath(git_dir / settings["core.worktree"]))
    if not workspace.is_relative_to(work_tree) or workspace.is_relative_to(git_dir):
        raise RepoUnsupported("the workspace is outside the working tree", path=str(workspace), hint="move it inside")
    below = workspace.relative_to(work_tree).as_posix()
    # A .git here may only say that the git folder is this tree's, which is another's by its own account: a repository
    # that came from elsewhere could so have its memories committed into one of this user's own.
    elsewhere = None
    if git_dir != common_dir:
        back = read_small(git_dir / "gitdir")
        known = back is not None and os.path.realpath(git_dir / back) == os.path.realpath(found_at) + "/.git"
        elsewhere = None if known and git_dir.parent == common_dir / "worktrees" else common_dir
    elif git_dir.name == ".git" and git_dir.parent != found_at:
        named = "core.worktree" in settings and work_tree == found_at
        tree_of_its_own = os.path.realpath(git_dir.parent / ".git") == str(git_dir)
        elsewhere = git_dir if tree_of_its_own and not named else None
    return Layout(workspace, work_tree, git_dir, common_dir, "" if below == "." else below, foreign, elsewhere)


def _require_format(settings: dict[str, str], common_dir: Path) -> None:
    where = str(common_dir)
    if settings.get("extensions.objectformat", "sha1").lower() != "sha1":
        raise RepoUnsupported("the repository uses SHA-256 object ids", path=where, hint="use a SHA-1 repository")
    if settings.get("extensions.refstorage", "files").lower() != "files":
        reason = "the repository keeps its refs in a reftable"
        raise RepoUnsupported(reason, path=where, hint="git refs migrate --ref-format=files")
    if settings.get("core.repositoryformatversion", "0").strip() not in ("0", "1"):
        raise RepoUnsupported("the repository format is newer than memfs knows", path=where, hint="upgrade memfs")
    for name in settings:
        section, _, key = name.partition(".")
        if section == "extensions" and key not in _KNOWN_EXTENSIONS:
            raise RepoUnsupported(f"the repository uses the extension '{key}'", path=where, hint="upgrade memfs")


def own_users() -> frozenset[int]:
    """The users whose files count as this user's own."""
    mine = {os.geteuid()}
    # As git does: root works in the repositories of the person who became root.
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdigit():
        mine.add(int(os.environ["SUDO_UID"]))
    return frozenset(mine)


_SECTION = regex(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = regex(r"([A-Za-z][A-Za-z0-9-]*)\s*(=)?\s*(.*)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}


def read_config(path: Path) -> dict[str, str]:
    """The settings of a file as ``section.subsection.key``, section and key in lower case, the last one wins.

    A missing file is an empty one. A key without a value is ``true``; lines that are not configuration are skipped.
    """
    try:
        text = io.read_file(path, 1 << 20).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return {}
    found: dict[str, str] = {}
    section = ""
    for line in text.replace("\r\n", "\n").replace("\\\n", "").split("\n"):
        rest = line.strip()
        header = _SECTION.match(rest)
        if header:
            name = re.sub(r"\\(.)", r"\1", header[2] or "")
            section = header[1].lower() + (f".{name}" if header[2] is not None else "")
            rest = rest[header.end() :].strip()
        key = _KEY.match(rest)
        if key and section:
            found[f"{section}.{key[1].lower()}"] = _value(key[3]) if key[2] else "true"
    return found


def truth(settings: Mapping[str, str], name: str) -> bool:
    """Whether a setting is on, in git's words."""
    return settings.get(name, "").strip().lower() in ("true", "yes", "on", "1")


def _value(text: str) -> str:
    out: list[str] = []
    quoted = False
    characters = iter(text)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            out.append(_ESCAPES.get(following, following))
        elif character == '"':
            quoted = not quoted
        elif character in "#;" and not quoted:
            break
        else:
            out.append(character)
    return "".join(out).strip()


def quoted(value: str) -> str:
    """A value as git reads it back the same, whatever is in it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


Facts = tuple[int, int, int] | None
"""Inode, size and time of change of a file; None when there is none."""


def facts_of(path: Path) -> Facts:
    """The facts that identify a file: a rename or a second name does not change them."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


HEX = regex(r"[0-9a-f]{40}")
NULL = "0" * 40
HEADS = "refs/heads/"
PER_WORKTREE = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")
"""Refs of which each working tree has its own."""
_BRANCH = regex(
    r"refs/heads/(?!/)(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.))[^\x00-\x20\x7f~^:?*\[\\.][^\x00-\x20\x7f~^:?*\[\\]*(?<![./])"
)
_CHECK = "run git fsck; what memfs wrote since waits until this is repaired"


class Head(NamedTuple):
    """Where HEAD points.

    Attributes:
        ref: the branch; None = detached, or not to be known.
        commit: None = a branch without a commit yet, or, where ``damage`` says so, not to be known.
        damage: what is wrong with git's own files, in words; "" when nothing is.
    """

    ref: str | None
    commit: str | None
    damage: str = ""

    @property
    def branch(self) -> str:
        """The branch as people name it; "" where HEAD is detached, or it is unknown."""
        return (self.ref or "").removeprefix(HEADS)


class Refs:
    """The refs of one working tree. Every call looks at the disk; what files say is kept while their facts prove it."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._packed: tuple[tuple[int, int, int] | None, Mapping[str, str]] = (None, {})
        self._small: dict[str, tuple[tuple[int, int, int, int], str]] = {}

    def head(self) -> Head:
        """Where HEAD points. Files that a power cut left empty or garbled are reported as damage, never guessed at."""
        path = f"{self._layout.git_dir}/HEAD"
        try:
            text = self._read(path) or (f"ref: {os.readlink(path)}" if os.path.islink(path) else "")
        except (MemfsError, OSError) as error:
            return Head(None, None, f"HEAD is unreadable: {error}")
        if HEX.fullmatch(text):
            return Head(None, text)
        ref = text.removeprefix("ref:").strip()
        if not text.startswith("ref:") or not _is_intact(ref):
            return Head(None, None, "HEAD is unreadable")
        try:
            return Head(ref, self.commit(ref))
        except HistoryUnavailable as error:
            return Head(ref, None, error.message)

    def commit(self, ref: str) -> str | None:
        """The commit a ref names; None when there is no such ref.

        Raises:
            HistoryUnavailable: its file is empty, garbled or cannot be read.
        """
        if not _is_intact(ref):
            return None
        named = ref
        for left in reversed(range(6)):  # a ref may name another one
            path = f"{self._layout.git_dir if named.startswith(PER_WORKTREE) else self._layout.common_dir}/{named}"
            try:
                text = self._read(path)
                text = self._packed_refs().get(named) if text is None else text
            except (MemfsError, OSError) as error:
                raise HistoryUnavailable(f"{ref!a} is unreadable: {error}", hint=_CHECK) from error
            if text is None or HEX.fullmatch(text):
                return text
            further = text.removeprefix("ref:").strip()
            if not text.startswith("ref:") or not left:
                break
            if not _is_intact(further):
                raise HistoryUnavailable(f"{further!a} is not a ref", hint=_CHECK)
            named = further
        raise HistoryUnavailable(f"{named} is unreadable", path=path, hint=_CHECK)

    def _read(self, path: str) -> str | None:
        """As ``read_small``; a file that was old when it was read, and has the same facts, is not read again."""
        with suppress(OSError):
            found = os.lstat(path)
            facts = found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
            if (known := self._small.get(path)) is not None and known[0] == facts:
                return known[1]
            old = time.time_ns() - max(facts[2:]) >= RACY_NS
            if (text := read_small(path)) is not None and old and self._detects_edits:
                self._small[path] = facts, text
            return text
        return read_small(path)

    @cached_property
    def _detects_edits(self) -> bool:
        return detects_edits(self._layout.git_dir)

    def _packed_refs(self) -> Mapping[str, str]:
        path = self._layout.common_dir / "packed-refs"
        try:
            facts = os.stat(path)
        except FileNotFoundError:
            return {}
        known = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        seen, packed = self._packed
        if known != seen:
            lines = os.fsdecode(io.read_file(path)).splitlines()
            packed = {line[41:]: line[:40] for line in lines if line[:1] not in ("#", "^", "")}
            self._packed = (known, packed)
        return packed


def _is_intact(ref: str) -> bool:
    """Whether a text can be a ref that is among the others; one cut off or filled up by a power cut cannot."""
    try:
        os.fsencode(ref)
    except UnicodeEncodeError:
        return False
    return ref.startswith("refs/") and "\0" not in ref and {"", ".", ".."}.isdisjoint(ref.split("/"))


def require_branch(ref: str) -> str:
    """Return the ref unchanged if it is a well-formed branch name such as ``refs/heads/main``.

    Raises:
        HistoryError: it is not.
    """
    if not is_branch(ref):
        raise HistoryError(f"{ref!a} is not a branch", hint="give a full name such as refs/heads/main")
    return ref


def is_branch(ref: str) -> bool:
    """Whether a text is a well-formed full name of a branch."""
    return _BRANCH.fullmatch(ref) is not None
