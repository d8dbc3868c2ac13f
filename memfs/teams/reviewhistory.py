"""Review history: what the single commits of a change tell that its end does not (B2, B4).

Owns the walk over the commits between two sides: secrets that a later commit took out again, and who the commits say
wrote what. A squash keeps none of it; history does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from memfs.errors import HistoryUnavailable
from memfs.files.secrets import find, found_in_file, reason_in_file
from memfs.files.textguard import shown
from memfs.files.tomltext import FILE as SETTINGS
from memfs.history.ancestry import beyond, cut_off
from memfs.history.commitobject import AGENT, Parsed
from memfs.history.identity import agent as agent_person
from memfs.history.repository import Repository
from memfs.history.treediff import changed_paths
from memfs.model import MemoryItem
from memfs.model.item import VOUCHED
from memfs.pipeline.wording import gist
from memfs.store.parts import CONTENT
from memfs.teams.reviewcodes import finding
from memfs.teams.reviewsides import Side
from memfs.teams.reviewvalues import ARCHIVED, NOTE, REMOVED, Finding, ItemChange

_MOST_COMMITS = 2_000
_MOST_BLOBS = 20_000
_SHORT = 10


@dataclass
class _Seen:
    """What was looked at on the way: contents that were searched, and which commit wrote a path last."""

    blobs: set[str] = field(default_factory=set)
    last: dict[str, Parsed] = field(default_factory=dict)


def commits_between(repository: Repository, base: str | None, head: str) -> list[str]:
    """The commits that a head has and a base has not, newest first.

    Raises:
        HistoryUnavailable: the history between them is cut off (a shallow clone).
    """
    found = beyond(repository, [head], [base] if base else [])
    if cut_off(repository).intersection(found):
        raise shallow()
    return found


def shallow() -> HistoryUnavailable:
    """The error where a shallow clone lacks what a comparison needs."""
    return HistoryUnavailable(
        "this clone is shallow: it lacks the commits that both sides began from",
        hint="'git fetch --unshallow'; in a workflow, give actions/checkout 'fetch-depth: 0'",
    )


def history_findings(
    before: Side, after: Side, commits: Sequence[str], changes: Sequence[ItemChange]
) -> Iterator[Finding]:
    """What the commits tell, newest first."""
    seen = _Seen(blobs={entry.id for side in (before, after) for entry in side.files.values()})
    for commit in commits[:_MOST_COMMITS]:
        yield from _in_commit(after.repository, commit, seen)
    if len(commits) > _MOST_COMMITS:
        yield finding("HistoryNotRead", f"{len(commits):,} commits; the newest {_MOST_COMMITS:,} were looked through")
    for one in changes:
        yield from _claims(before, after, one, seen.last)


def _in_commit(repository: Repository, commit: str, seen: _Seen) -> Iterator[Finding]:
    parsed = repository.commit_object(commit)
    for secret in find(f"{parsed.subject}\n\n{parsed.body}")[:1]:
        yield _leak(f"the message of commit {commit[:_SHORT]} has {secret.what} (rule {secret.rule})", "")
    for path in sorted(_paths(repository, commit, parsed)):
        entry = repository.entry(commit, path)
        if len(parsed.parents) < 2:
            seen.last.setdefault(path, parsed)
        if entry is None or entry.id in seen.blobs or len(seen.blobs) > _MOST_BLOBS:
            continue
        seen.blobs.add(entry.id)
        data = repository.blob(entry.id)
        if (found := found_in_file(data, path)) and not reason_in_file(data, path):
            what = f"{found[0].what} (rule {found[0].rule} at line {found[0].line})"
            yield _leak(f"commit {commit[:_SHORT]} has {what}, which the change took out again", path)


def _leak(message: str, path: str) -> Finding:
    hint = "revoke it; bring the change as commits that never had it"
    return finding("SecretInHistory", message, path=path, hint=hint)


def _paths(repository: Repository, commit: str, parsed: Parsed) -> set[str]:
    """What a commit changed of memory: of a merge, what it has otherwise than each of its parents."""
    if not parsed.parents:
        return {*repository.tree(commit, CONTENT)}
    sides = [{*changed_paths(repository, parent, commit, CONTENT)} for parent in parsed.parents]
    settings = [{SETTINGS} & {*changed_paths(repository, parent, commit, SETTINGS)} for parent in parsed.parents]
    return set.intersection(*sides) | set.intersection(*settings)


# -- who says so --------------------------------------------------------------------------------------------------
def _claims(before: Side, after: Side, one: ItemChange, last: Mapping[str, Parsed]) -> Iterator[Finding]:
    """Where an item says something else of its origin than the commit that brought it."""
    commit = last.get(one.path)
    item = after.readable(one.path) if one.what not in (REMOVED, ARCHIVED) else None
    if item is None or commit is None:
        return
    old = before.readable(one.before or one.path)
    agents = _agents(commit)
    said = old is None or gist(old) != gist(item) or old.trust != item.trust
    if commit.author.is_agent and item.trust in VOUCHED and said:
        typed = item.origin.role == "user"
        message = f"{shown(commit.author.name)} is an agent, and says that trust is {item.trust}"
        yield finding("TrustClaimed", message, path=one.path, id=one.id, severity=NOTE if typed else "")
    named = item.origin.agent
    if named and agents and (old is None or old.origin.agent != named) and not _is_among(item, agents):
        others = ", ".join(sorted(shown(name) for name in agents))
        message = f"it names the agent {shown(named)}, the commit {others}"
        yield finding("OriginMismatch", message, path=one.path, id=one.id)


def _agents(commit: Parsed) -> set[str]:
    authors = {commit.author.name} if commit.author.is_agent else set()
    return {*commit.trailers.get(AGENT, ()), *authors}


def _is_among(item: MemoryItem, agents: set[str]) -> bool:
    mine = agent_person(item.origin.agent)
    return any(agent_person(name) == mine for name in agents)
