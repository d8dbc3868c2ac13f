"""Reading history: who changed what, when and why.

Owns the values that a log is made of and the text of ``diff`` and ``show``. Every text is memfs's own: no colour, no
pager, no conversion or external program of the repository's takes part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memfs.errors import HistoryUnavailable
from memfs.history.commitobject import parse_commit
from memfs.history.difftext import differences
from memfs.history.objects import FOLDER, REGULAR
from memfs.history.refs import HEX
from memfs.history.repository import Repository
from memfs.history.revisions import parse_moment
from memfs.history.worktree import working_files
from memfs.model.time import format_time, parse_time, utc_now

OWN_PATHS = ("ContextMemory", "memfs.toml")
SHORT = 10
_FIRST = datetime(1970, 1, 2, tzinfo=UTC)  # git reads no earlier time


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One commit as a person reads it.

    Attributes:
        commit, short: its id, whole and abbreviated.
        author, email: who wrote it; an agent where the commit names one.
        committer: whose repository it was written in.
        time: when it was committed.
        subject, body: the message without its trailers.
        trailers: ``Memfs-Agent`` and its like, each with all its values.
        paths: what it changed below the workspace, against its first parent.
    """

    commit: str
    short: str
    author: str
    email: str
    committer: str
    time: datetime
    subject: str
    body: str
    trailers: Mapping[str, tuple[str, ...]]
    paths: tuple[str, ...]


def log(
    repository: Repository,
    paths: Iterable[str] = (),
    limit: int = 20,
    since: str | datetime | None = None,
    revision: str = "",
) -> list[Revision]:
    """The newest commits that touched some workspace paths, newest first; without paths, any of memfs's own.

    Args:
        since: leave out commits before this time; a datetime or text such as ``7d``, ``2026-03-01``.
        revision: the newest commit that counts, or a date; "" for HEAD.

    Raises:
        HistoryUnavailable: ``since`` is not a point in time, there is no such revision, or git's files are damaged.
    """
    head = repository.resolve(revision) if revision else repository.head_commit()
    if head is None or limit <= 0:
        return []
    arguments = [f"--max-count={limit}", *_since(since)]
    names = [one_line(repository.full(path)) for path in (tuple(paths) or OWN_PATHS)]
    request = b"\n".join((head.encode(), b"--", *names, b""))
    out = repository.git.run("rev-list", *arguments, "--stdin", data=request)
    return revisions(repository, out.decode().split())


def diff(repository: Repository, a: str, b: str | None = None, paths: Iterable[str] = ()) -> str:
    """The patch from one revision to another, or to the working files where ``b`` is None; "" when nothing differs.

    Raises:
        HistoryUnavailable: a revision does not exist.
    """
    wanted = tuple(paths) or OWN_PATHS
    before = _files(repository, repository.resolve(a), wanted)
    if b is not None:
        return differences(before, _files(repository, repository.resolve(b), wanted), repository.blob)
    contents = working_files(repository, wanted)
    after = {path: repository.blob_id(data) for path, data in contents.items()}
    made = {after[path]: data for path, data in contents.items()}
    return differences(before, after, lambda blob: made[blob] if blob in made else repository.blob(blob))


def show(repository: Repository, revision: str, paths: Iterable[str] = ()) -> str:
    """One commit: who, when, why, and its patch against its first parent.

    Raises:
        HistoryUnavailable: the revision does not exist.
    """
    commit = repository.resolve(revision)
    shown = revisions(repository, [commit])[0]
    parents = repository.commit_object(commit).parents
    wanted = tuple(paths) or OWN_PATHS
    before = _files(repository, parents[0], wanted) if parents else {}
    patch = differences(before, _files(repository, commit, wanted), repository.blob)
    return "\n".join((*_heading(shown), "", patch)) if patch else "\n".join((*_heading(shown), ""))


def _heading(shown: Revision) -> list[str]:
    lines = [f"commit {shown.commit}", f"Author: {shown.author} <{shown.email}>", f"Date: {format_time(shown.time)}"]
    lines += ["", f"    {shown.subject}"]
    if shown.body:
        lines += ["", *(f"    {line}".rstrip() for line in shown.body.splitlines())]
    trailers = [f"    {name}: {value}" for name, values in shown.trailers.items() for value in values]
    return [*lines, "", *trailers] if trailers else lines


def _since(since: str | datetime | None) -> list[str]:
    if since is None:
        return []
    moment = since if isinstance(since, datetime) else parse_moment(since, utc_now())
    if moment is None:
        raise HistoryUnavailable(f"{since!a} is not a point in time", hint="2026-03-01, 7d, '3 days ago'")
    # As a filter: one commit made while a clock was wrong must not hide those before it.
    return [f"--since-as-filter={max(parse_time(moment), _FIRST):%Y-%m-%dT%H:%M:%S+00:00}"]


def one_line(name: bytes) -> bytes:
    """Return a path as git's input takes it.

    Raises:
        HistoryUnavailable: it holds a line break.
    """
    if b"\n" in name:
        raise HistoryUnavailable("a path holds a line break", path=ascii(name)[2:-1], hint="rename the file")
    return name


def _files(repository: Repository, commit: str, paths: Sequence[str]) -> dict[str, str]:
    files: dict[str, str] = {}
    for path in paths:
        entry = repository.entry(commit, path)
        if entry is not None and entry.mode == FOLDER:
            files |= repository.tree(commit, path)
        elif entry is not None and entry.mode in REGULAR:
            files[path] = entry.id
    return files


def revisions(repository: Repository, commits: Sequence[str]) -> list[Revision]:
    """Some commits, by their ids, as a person reads them."""
    changed = _changed(repository, commits)
    found = []
    for commit in commits:
        read = parse_commit(repository.object(commit).data)
        found.append(
            Revision(
                commit=commit,
                short=commit[:SHORT],
                author=read.author.name,
                email=read.author.email,
                committer=read.committer.name,
                time=read.time,
                subject=read.subject,
                body=read.body,
                trailers=read.trailers,
                paths=changed.get(commit, ()),
            )
        )
    return found


def _changed(repository: Repository, commits: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What each commit changed below the workspace, against its first parent."""
    if not commits:
        return {}
    arguments = ("-r", "-z", "--root", "--no-renames", "--name-only", "--no-ext-diff", "--diff-merges=first-parent")
    out = repository.git.run("diff-tree", *arguments, "--stdin", data="\n".join((*commits, "")).encode())
    changed: dict[str, list[str]] = {}
    current: list[str] = []
    for field in out.split(b"\0")[:-1]:
        name = field.decode("ascii", "replace")
        if HEX.fullmatch(name) and name in commits:
            current = changed.setdefault(name, [])
            continue
        path = repository.below(field)
        if path is not None:
            current.append(path)
    return {name: tuple(paths) for name, paths in changed.items()}
