"""Check who signed the commits of the memory, and whether they are who they say they are.

Keys and lists of signers are never taken from the repository by itself. Reads only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from fnmatch import translate
from pathlib import Path

from memfs.dataclass import dataclass, replace
from memfs.errors import HistoryUnavailable, MemfsError, SigningFailed
from memfs.fs import io
from memfs.git.commit_object import AGENT, SESSION, Person, parse_commit, reads_one_way, without_signature
from memfs.git.log import OWN_PATHS, snapshots
from memfs.git.repository import Repository, beyond, merge_bases
from memfs.git.signing import BEGIN, matches, principals, verifies

Principals = tuple[str, ...]
"""The patterns of one line."""
_LIMIT = 1 << 20


def read_signers(path: Path) -> tuple[Principals, ...]:
    """The principals that each line of a list names.

    Raises:
        SigningFailed: it is not there, or cannot be read.
    """
    try:
        text = io.read_file(path, _LIMIT).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        raise SigningFailed("there is no such list of signers", path=str(path), hint="correct the path") from None
    except MemfsError as error:
        reason = f"the list of signers cannot be read: {error.message}"
        raise SigningFailed(reason, path=str(path), hint=error.hint or "name another one") from error
    lines = (line.strip() for line in text.splitlines())
    return tuple(_first(line) for line in lines if line and not line.startswith("#"))


def _first(line: str) -> Principals:
    quoted = re.match(r'"([^"]*)"', line)
    column = quoted[1] if quoted else line.split(None, 1)[0]
    return tuple(filter(None, column.split(",")))


def _matches(patterns: Principals, principal: str) -> bool:
    # Of the signs of fnmatch only * and ? mean something here; one that begins with ! takes what it matches out.
    plain = {pattern: translate(pattern.removeprefix("!").replace("[", "[[]")) for pattern in patterns}
    found = [pattern for pattern, expression in plain.items() if re.fullmatch(expression, principal)]
    return bool(found) and not any(pattern.startswith("!") for pattern in found)


def adds_nothing(repository: Repository, commit: str) -> bool:
    """Whether a merge holds of each file of the memory what one side made of it, and dropped nothing.

    That is so where of every file only one side has changed it since both began, and the merge has that side's; a
    merge like that decided nothing. Unknown where the clone is shallow, or both sides began more than once.
    """
    parents = repository.commit_object(commit).parents
    try:
        bases = merge_bases(repository, *parents) if len(parents) == 2 else ()
        if len(bases) != 1:
            return False
        sides = snapshots(repository, [commit, *parents, *bases])
    except HistoryUnavailable:
        return False
    paths = {path for side in sides for path in side if (repository.below(path) or "").partition("/")[0] in OWN_PATHS}
    rows = ([side.get(path) for side in sides] for path in paths)
    return all(
        (merged == ours and theirs in (base, ours)) or (merged == theirs and ours in (base, theirs))
        for merged, ours, theirs, base in rows
    )


_LONGEST = 200


class SignatureVerdict(StrEnum):
    """What a commit's signature is worth."""

    GOOD = "good"
    UNSIGNED = "unsigned"
    BAD = "bad"
    UNKNOWN_KEY = "unknown key"
    WRONG_PRINCIPAL = "wrong principal"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitCheck:
    """One commit, and what its signature is worth.

    Attributes:
        author, committer: as ``name <address>``; unproven unless the verdict is good.
        principals: whose key signed, by the list of allowed signers.
        reason: why the verdict is not good, in words.
        agent, session: by its trailers.
    """

    commit: str
    verdict: SignatureVerdict
    author: str
    committer: str
    time: datetime
    subject: str
    principals: tuple[str, ...] = ()
    reason: str = ""
    agent: str = ""
    session: str = ""


class Signatures:
    """Checks signatures of one repository's commits. Reads only."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def signers(self, given: str | os.PathLike[str] | None = None) -> Path:
        """The list of allowed signers: the given one, else the one that the person's own git settings name.

        Raises:
            SigningFailed: neither is there.
        """
        named = os.fspath(given) if given else self._repository.signing.settings().get("gpg.ssh.allowedsignersfile", "")
        if not named:
            raise SigningFailed(
                "no list of allowed signers",
                hint="give --allowed-signers FILE, or git config --global gpg.ssh.allowedSignersFile FILE",
            )
        path = Path(os.path.expanduser(named))
        if not given and not path.is_absolute():
            # A relative one would be looked for in whichever repository this is.
            raise SigningFailed("the list of signers needs its full path", path=named, hint="write ~/FILE")
        return Path(os.path.realpath(path))

    def verify(self, revisions: str = "HEAD", signers: str | os.PathLike[str] | None = None) -> list[CommitCheck]:
        """What the signature of each commit is worth that changed the memory, newest first.

        Good means: signed by a key that the list gives to the author at the time of the commit. Where the author is an
        agent for which the list has no key, the committer may sign for it.

        Args:
            revisions: ``A..B``, what B has and A has not; or one revision, with all that came before it.
            signers: a list of allowed signers, as ``ssh-keygen`` reads it.

        Raises:
            HistoryUnavailable: there is no such revision.
            SigningFailed: there is no such list, or ``ssh-keygen`` is missing.
        """
        path = self.signers(signers)
        listed = read_signers(path)
        revoked = self._repository.signing.settings().get("gpg.ssh.revocationfile", "")
        revocation = Path(os.path.realpath(os.path.expanduser(revoked))) if revoked else None
        return [_checked(commit, data, path, listed, revocation) for commit, data in self._touching(revisions)]

    def _touching(self, revisions: str) -> Iterator[tuple[str, bytes]]:
        """The commits of a range that changed the memory: of merges those that decided anything, or dropped a side."""
        before, dots, after = revisions.partition("..")
        last = self._repository.resolve((after.removeprefix(".") if dots else before) or "HEAD")
        known = [self._repository.resolve(before or "HEAD")] if dots else []
        for commit in beyond(self._repository, [last], known):
            data = self._repository.object(commit).data
            parents = parse_commit(data).parents
            mine = self._memory(commit)
            differs = any(self._memory(parent) != mine for parent in parents) if parents else any(mine or ())
            if differs and not (len(parents) > 1 and adds_nothing(self._repository, commit)):
                yield commit, data

    def _memory(self, commit: str) -> tuple[str | None, ...] | None:
        """The tree of the memory at a commit; None where the clone is shallow and lacks it."""
        try:
            found = [self._repository.entry(commit, path) for path in OWN_PATHS]
        except HistoryUnavailable:
            return None
        return tuple(f"{entry.mode} {entry.id}" if entry else None for entry in found)


def _checked(commit: str, data: bytes, path: Path, listed: tuple[Principals, ...], revoked: Path | None) -> CommitCheck:
    """What a commit's signature is worth, by a list of signers (as a file and as read) and of revoked keys."""
    parsed = parse_commit(data)
    found = CommitCheck(
        commit=commit,
        verdict=SignatureVerdict.GOOD,
        author=str(parsed.author),
        committer=str(parsed.committer),
        time=parsed.time,
        subject=parsed.subject,
        agent=", ".join(parsed.trailers.get(AGENT, ())),
        session=", ".join(parsed.trailers.get(SESSION, ())),
    )
    signed, signatures = without_signature(data)
    if not signatures:
        return replace(found, verdict=SignatureVerdict.UNSIGNED, reason="it has no signature")
    if len(signatures) > 1:
        return replace(found, verdict=SignatureVerdict.BAD, reason="it has more than one signature")
    if not reads_one_way(data):
        return replace(
            found, verdict=SignatureVerdict.BAD, reason="other programs may read another author or message from it"
        )
    if not signatures[0].startswith(BEGIN.encode()):
        return replace(found, verdict=SignatureVerdict.UNKNOWN_KEY, reason="it is signed, but not with an SSH key")
    signature, signers = signatures[0], [parsed.author]
    # An agent without a key of its own, case and script aside: no one else signs for a name that only looks like that
    # of an agent with a key.
    if parsed.author.is_agent and not any(_matches(patterns, parsed.author.email.lower()) for patterns in listed):
        signers.append(parsed.committer)
    for person in signers:
        if _plain(person) and verifies(signed, signature, person.email, path, parsed.time, revoked):
            return replace(found, principals=(person.email,))
    if not matches(signed, signature):
        return replace(found, verdict=SignatureVerdict.BAD, reason="the signature is not of this commit")
    named = tuple(principals(signature, path, parsed.time))
    if not named:
        late = principals(signature, path, None)
        reason = f"the key of {', '.join(late)} was not valid at that time" if late else "no listed signer has this key"
        return replace(found, verdict=SignatureVerdict.UNKNOWN_KEY, reason=reason)
    if not any(verifies(signed, signature, name, path, parsed.time, revoked) for name in named):
        reason = f"the key of {', '.join(named)} does not count: it was revoked, or may not sign commits"
        return replace(found, verdict=SignatureVerdict.BAD, principals=named, reason=reason)
    reason = f"signed by {', '.join(named)}, not by {' or '.join(person.email for person in signers)}"
    return replace(found, verdict=SignatureVerdict.WRONG_PRINCIPAL, principals=named, reason=reason)


def _plain(person: Person) -> bool:
    """Whether an address can be a principal: the author of a commit writes anything there."""
    return 0 < len(person.email) <= _LONGEST and person.email.isprintable() and not set(person.email) & set(' ,*?!"')
