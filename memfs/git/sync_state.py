"""Remembers which commit of each remote branch was joined last, and keeps replaced commits reachable.

Uses ``refs/memfs/seen/``, ``refs/memfs/rescue/`` and git's remote-tracking refs, and notes rewritings of history made
here, so that they are not taken for the remote's.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from memfs.errors import GitFailed, MemfsError
from memfs.fs import io
from memfs.git.ancestry import holds_commit, is_ancestor
from memfs.git.refs import HEX, NULL
from memfs.git.repository import Repository

_NOTE = "seen.json"
_SEEN, _RESCUE, _TRACKING = "refs/memfs/seen", "refs/memfs/rescue", "refs/remotes"
_LARGEST = 4 << 20


class RemoteHistory:
    """What one repository saw of its remotes."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._path = repository.state / _NOTE

    def tip(self, remote: str, branch: str) -> str | None:
        """The commit that was seen last; None where the branch never was."""
        name = f"{remote}/{branch}"
        return self._repository.ref_commit(_seen(name)) or self._repository.ref_commit(f"{_TRACKING}/{name}")

    def rewritten_here(self, remote: str, branch: str) -> str:
        """The commit that was seen last, where history was rewritten here since (an erase), so that it is another one
        now; "" where it was not.
        """
        name = f"{remote}/{branch}"
        noted = self._noted().get(name, ())
        seen = self._repository.ref_commit(_seen(name))
        if not noted or seen in noted:
            return ""
        if seen:  # a sync of another working tree may have moved it, along the same line; an erase leaves no such line
            return "" if any(self._on_one_line(seen, commit) for commit in noted) else noted[-1]
        # Without its ref an erase is known by what it removed: a sync that was killed has the note alone.
        return "" if holds_commit(self._repository, noted[-1]) else noted[-1]

    def _on_one_line(self, one: str, other: str) -> bool:
        return is_ancestor(self._repository, one, other) or is_ancestor(self._repository, other, one)

    def track(self, remote: str, branch: str, commit: str) -> None:
        """Let git's own name for the remote's branch follow."""
        with suppress(GitFailed):  # a person's git holds it, or an old branch's name is in its way: it is theirs
            self._update({f"{_TRACKING}/{remote}/{branch}": commit})

    def note(self, remote: str, branch: str, commit: str) -> None:
        """Remember what was joined."""
        name = f"{remote}/{branch}"
        before = self._repository.ref_commit(_seen(name))
        if before != commit:  # both are noted: killed in between, one of them is the ref's
            self._write({**self._noted(), name: (before or commit, commit)})
        self._update({_seen(name): commit})
        self.track(remote, branch, commit)

    def note_all(self) -> None:
        """Remember what was seen of every remote, before history is rewritten here."""
        seen = {_unseen(name): commit for name, commit in self._listed(_SEEN).items()}
        tracked = self._listed(_TRACKING)
        unseen = {name: commit for name, commit in tracked.items() if name not in seen}
        self._update({_seen(name): commit for name, commit in unseen.items()})
        if seen or tracked:
            noted = {name: (commit,) for name, commit in {**tracked, **seen}.items()}
            self._write({**noted, **self._noted()})

    def rescue(self, remote: str, branch: str, commit: str) -> str:
        """Keep a commit that the remote no longer has; return the ref that does."""
        folder = f"{_RESCUE}/{remote}/{branch}"
        for name, kept in self._listed(folder).items():
            if kept == commit:
                return f"{folder}/{name}"
        ref = f"{folder}/{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        while self._repository.ref_commit(ref) is not None:
            ref += "-more"
        self._update({ref: commit})
        return ref

    def _listed(self, folder: str) -> dict[str, str]:
        """The refs below a folder of refs that name commits."""
        form = "--format=%(objecttype) %(objectname) %(refname)"
        lines = os.fsdecode(self._repository.git.run("for-each-ref", form, f"{folder}/")).splitlines()
        rows = (line.split(" ", 2) for line in lines)
        return {ref.removeprefix(f"{folder}/"): commit for kind, commit, ref in rows if kind == "commit"}

    def _update(self, refs: Mapping[str, str]) -> None:
        """Move refs on from where they are now: the git of a killed sync, that comes late, moves none of them back."""
        while True:
            before = {ref: self._repository.ref_commit(ref) or NULL for ref in refs}
            orders = [f"update {ref} {new} {before[ref]}\n" for ref, new in refs.items() if new != before[ref]]
            if not orders:
                return
            variables = self._repository.identity().committer.in_reflogs
            data = os.fsencode("".join(orders))
            try:
                self._repository.git.run("update-ref", "--stdin", "-m", "memfs sync", data=data, variables=variables)
            except GitFailed:
                if all(before[ref] == (self._repository.ref_commit(ref) or NULL) for ref in refs):
                    raise

    def _noted(self) -> dict[str, tuple[str, ...]]:
        try:
            found = json.loads(io.read_file(self._path, _LARGEST))
        except (MemfsError, OSError, ValueError, RecursionError):
            return {}
        rows = found.items() if isinstance(found, dict) else ()
        return {name: tuple(commits) for name, commits in rows if _are_commits(commits)}

    def _write(self, noted: Mapping[str, Sequence[str]]) -> None:
        io.write_file(self._path, json.dumps(noted, sort_keys=True).encode())


def _seen(name: str) -> str:
    """The ref for a branch of a remote, none of which is a folder of another's: "a" may be gone, and "a/b" be there."""
    return f"{_SEEN}/{name.replace('%', '%%').replace('/', '%/')}"


def _unseen(name: str) -> str:
    return re.sub("%(.)", r"\1", name)


def _are_commits(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(name, str) and HEX.fullmatch(name) for name in found)
