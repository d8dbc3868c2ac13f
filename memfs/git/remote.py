"""Lists, fetches and pushes branches of a remote, and remembers what was seen of it.

git runs in a folder of memfs's own with the objects of the real repository: no setting, hook or helper of the
repository takes part, only what the person configured for themselves. Never forces, and moves no ref of the repository.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from memfs.dataclass import dataclass
from memfs.errors import GitFailed, HistoryUnavailable, PushRefused, RemoteInvalid, RemoteUnreachable
from memfs.fs import io
from memfs.git import process as environment
from memfs.git.layout import HEADS, HEX, NULL, quoted, read_config, require_branch
from memfs.git.process import GitCommands, finish, git_program, start
from memfs.git.repository import Repository, holds_commit, is_ancestor

_NAME = re.compile(r"(?!.*(?:\.\.|//|\.lock(?:/|$)|/\.))[A-Za-z0-9_][A-Za-z0-9._/-]{0,100}(?<![./])")
_SCHEME = re.compile(r"([A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
_HELPER = re.compile(r"[A-Za-z0-9+.-]*::")
_LOGIN = re.compile(r"(?<=://)[^/\n]*@")
_REMOTE_KEY = re.compile(r"remote\.(.*)\.url")
_OBJECT_FOLDER = re.compile("pack|[0-9a-f]{2}")
"""The folders of git's objects that have packs or loose ones: caches beside them are of where they were made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A remote, as the repository names it.

    Attributes:
        name: its name.
        fetch, push: its addresses.
        local: whether it is a folder on this machine.
    """

    name: str
    fetch: str
    push: str
    local: bool

    @property
    def shown(self) -> str:
        """The address as it may be printed: without a password or token in it."""
        return without_login(self.fetch)


def without_login(text: str) -> str:
    """A text without the names, passwords and tokens that addresses in it carry."""
    return _LOGIN.sub("", text)


def configured(repository: Repository) -> tuple[str, ...]:
    """The names of the repository's remotes."""
    found = map(_REMOTE_KEY.fullmatch, read_config(repository.common_dir / "config"))
    return tuple(dict.fromkeys(one[1] for one in found if one))


def upstream(repository: Repository, branch: str) -> tuple[str, str]:
    """The remote and the branch there that a branch follows, each "" where the repository does not say."""
    config = read_config(repository.common_dir / "config")
    merge = config.get(f"branch.{branch}.merge", "")
    return config.get(f"branch.{branch}.remote", ""), merge.removeprefix(HEADS)


def remote_of(repository: Repository, name: str) -> Remote:
    """A remote by its name.

    Raises:
        RemoteInvalid: there is none of that name, or memfs does not connect to its address.
    """
    config = read_config(repository.common_dir / "config")
    fetch = config.get(f"remote.{name}.url", "")
    if not _NAME.fullmatch(name) or not fetch:
        known, named = configured(repository), ascii(name)[1:-1][:100]
        hint = f"the remotes are: {', '.join(known)}" if known else f"'git remote add {named} ADDRESS' adds it"
        raise RemoteInvalid(f"there is no remote {named!r}", hint=hint)
    given = config.get(f"remote.{name}.pushurl", "")
    fetch, push = _placed(repository, fetch), _placed(repository, given or fetch)
    local = {protocol_of(fetch), protocol_of(push)} == {"file"}
    return Remote(name=name, fetch=fetch, push=push, local=local)


def protocol_of(address: str) -> str:
    """The way of transport that an address asks for.

    Raises:
        RemoteInvalid: it would run a program, or is no address.
    """
    if not address or len(address) > 4096 or not address.isprintable() or address.startswith("-"):
        raise RemoteInvalid("the remote's address is not valid", hint="git remote set-url gives it another one")
    scheme = _SCHEME.match(address)
    if scheme and not _HELPER.match(address):
        known = "ssh" if scheme[1].lower() in ("ssh", "git+ssh", "ssh+git") else scheme[1].lower()
        if known not in environment.PROTOCOLS or scheme[2].startswith("-"):
            raise _not_taken(scheme[1])
        return known
    if _HELPER.match(address):
        raise _not_taken(address.partition("::")[0] + "::")
    before, colon, _ = address.partition(":")
    return "ssh" if colon and "/" not in before else "file"


def _not_taken(scheme: str) -> RemoteInvalid:
    return RemoteInvalid(
        f"memfs does not go to {ascii(scheme)[1:-1][:40]} addresses: they can run programs",
        hint="use https, ssh, or a path",
    )


def _placed(repository: Repository, address: str) -> str:
    """An address as it means the same from any folder: a relative path begins at the working tree."""
    if protocol_of(address) != "file" or "://" in address:
        return address
    common, top = repository.common_dir, repository.work_tree
    base = common.parent if top.is_relative_to(common) else top  # a memory within the git folder: the tree around that
    return os.path.normpath(os.path.join(base, os.path.expanduser(address)))


FOLDER = "remote"
LOCK = "sync.lock"
"""Its holder, in a workspace's state folder, may talk to remotes for that workspace."""
PATIENCE = 300.0
_FETCHED = "refs/memfs/fetched"
# A remote that is a folder has settings and hooks of its own, which git would run as this user.
_PLAIN_RECEIVER = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.alternateRefsCommand=true"),
    *("-c", "receive.autogc=false", "-c", "receive.denyCurrentBranch=refuse", "-c", "receive.procReceiveRefs="),
)
_RACED = re.compile(
    r"fetch first|non-fast-forward|stale info|failed to update ref|cannot lock ref|incorrect old value|already exists"
)
_HINTS = (
    (r"No space left|[Qq]uota exceeded",
     "free some space, here or there ('git prune' removes what a fetch left half-done); then sync again"),
    (r"resolve host|unable to access|Connection (?:refused|timed out|reset)|No route|unreachable|early EOF|hung up",
     "nothing is lost: sync again when the remote can be reached"),
    (r"Authentication|Permission denied|could not read (?:User|Pass)|prompts disabled|Host key|publickey|40[13]",
     "let git itself in once, with 'git fetch {name}'"),
    (r"does not appear to be a git|not found|does not exist|No such file",
     "'git remote -v' shows the address, 'git remote set-url {name} ADDRESS' corrects it"),
    (r"dubious ownership", "git config --global --add safe.directory FOLDER, if you trust that repository"),
)  # fmt: skip


class Raced(Exception):
    """Someone else pushed in between; fetch and try again. Never leaves the sync."""


class RemoteConnection:
    """A conversation with one remote. Its folder belongs to the holder of the workspace's sync lock."""

    def __init__(self, repository: Repository, remote: Remote) -> None:
        self._repository, self._remote = repository, remote
        # A name of its own: git may outlive a sync that was killed, and still write what that one asked for.
        self._folder = repository.state / FOLDER / secrets.token_hex(8)

    def branches(self) -> dict[str, str]:
        """The remote's branches by name, with their commits.

        Raises:
            RemoteUnreachable: with what git said, and what to do.
        """
        found = {}
        for line in self._run("ls-remote", "--heads", "--quiet", self._remote.name).splitlines():
            commit, _, ref = line.partition("\t")
            if HEX.fullmatch(commit) and ref.startswith(HEADS):
                found[ref.removeprefix(HEADS)] = commit
        return found

    def fetch(self, branch: str, known: Sequence[str], but: Collection[str] = frozenset()) -> str:
        """Bring the objects of a branch.

        Args:
            known: commits that are here, of which nothing need be sent.
            but: commits that must not come here.

        Returns:
            The branch's commit; "" where one of ``but`` leads to it: then nothing of it is here.

        Raises:
            RemoteUnreachable: with what git said, and what to do.
        """
        ref = require_branch(HEADS + branch)
        self._prepare(known)
        io.make_folders(self._folder / "objects")
        quiet = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance")
        self._run("fetch", *quiet, self._remote.name, f"{ref}:{_FETCHED}", fetches=True)
        commit = io.read_file(self._folder / _FETCHED).decode("ascii", "replace").strip()
        if not HEX.fullmatch(commit):
            raise HistoryUnavailable("git fetched no commit", hint="run git fsck")
        if but and not frozenset(but).isdisjoint(self._run("rev-list", commit, "--not", *known, fetches=True).split()):
            self.close()
            return ""
        self._take_over(self._folder / "objects")
        return commit

    def _take_over(self, aside: Path) -> None:
        """Move fetched objects to the repository's: the index of a pack, by which it is found, after the pack."""
        for above in filter(_OBJECT_FOLDER.fullmatch, sorted(os.listdir(aside))):
            folder = self._repository.common_dir / "objects" / above
            io.make_folders(folder)
            for name in sorted(os.listdir(aside / above), key=lambda name: name.endswith(".idx")):
                if not os.path.lexists(folder / name):
                    io.rename(str(aside / above / name), str(folder / name))
            io.sync_folder(folder)

    def push(self, commit: str, branch: str) -> None:
        """Move a branch of the remote forward to a commit, or make it; never force.

        Raises:
            Raced: the branch holds something that the commit does not.
            PushRefused: the remote takes no push to this branch.
            RemoteUnreachable: with what git said, and what to do.
        """
        ref = require_branch(HEADS + branch)
        quiet = ("--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no")
        output = self._run("push", *quiet, self._remote.name, f"{commit}:{ref}", accept=(0, 1))
        refused = [line for line in output.splitlines() if line.startswith("!")]
        if refused:
            reason = refused[0].rpartition("\t")[2]
            # the reason of a hook or a protected branch is in what the remote says, and there alone
            lines = (line.removeprefix("remote:").strip() for line in output.splitlines() if line.startswith("remote:"))
            said = " ".join(filter(None, lines))[:400]
            message = f"{reason}: {said}" if said else reason
            if _RACED.search(reason):
                raise Raced(message)
            hint = "nothing is lost: what was merged is committed here; ask whoever maintains the remote"
            if "checked out" in reason:
                hint = f"{branch} is checked out there: make that repository bare, or sync with another branch"
            raise PushRefused(f"{self._remote.name} does not take the push: {message}", hint=hint)
        if not any(line.startswith(("=", "*", " ")) and ref in line for line in output.splitlines()):
            raise self._failure("push", output)

    def close(self) -> None:
        """Remove the folder, and those of syncs that were killed."""
        above = self._folder.parent
        if above.is_symlink() or above.is_file():
            io.unlink(above)
        shutil.rmtree(above, ignore_errors=True)

    # -- internal -------------------------------------------------------------------------------------------------
    def _run(self, verb: str, *arguments: str, fetches: bool = False, accept: tuple[int, ...] = (0,)) -> str:
        """``fetches``: new objects go into the folder that was prepared, in place of the repository's."""
        objects = self._repository.common_dir / "objects"
        if not fetches:
            self._prepare(())
        env = environment.for_remote(os.environ, self._folder, self._folder / "objects" if fetches else objects)
        if fetches:
            env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = str(objects)
        # ssh is called as the person says, or else so that it never waits for an answer at the terminal
        named = {"GIT_SSH", "GIT_SSH_COMMAND"} & env.keys()
        if not named and not GitCommands(None, self._repository.state).settings(r"^core\.sshcommand$"):
            env["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes"
        process = start((git_program(), verb, *arguments), self._repository.state, env)
        try:
            code, out, err = finish(process, b"", PATIENCE)
        except GitFailed as error:
            reason = f"{self._remote.name} did not answer within {PATIENCE:g} seconds"
            raise RemoteUnreachable(reason, hint="nothing is lost: sync again when it can be reached") from error
        text = out.decode("utf-8", "replace")
        if code not in accept or (code and not text.strip()):
            raise self._failure(verb, err)
        return text + (f"\n{err}" if code else "")

    def _prepare(self, known: Iterable[str]) -> None:
        """Make the folder that takes the place of a repository again."""
        folder, remote = self._folder, self._remote
        self.close()
        io.make_private_folder(folder)
        io.make_folders(folder / "refs")
        tips = sorted(dict.fromkeys(known))
        packed = "# pack-refs with: peeled fully-peeled sorted \n" + "".join(
            f"{commit} refs/memfs/known/{number:06}\n" for number, commit in enumerate(tips)
        )
        files = {"HEAD": f"ref: {HEADS}none\n", "config": _config(remote), "packed-refs": packed}
        for name, text in files.items():
            io.write_file(folder / name, os.fsencode(text), durable=False)

    def _failure(self, verb: str, output: str) -> RemoteUnreachable:
        lines = [without_login(line).strip() for line in output.splitlines() if line.strip()]
        relevant = [line for line in lines if line.startswith(("fatal:", "error:", "ssh:", "remote:"))] or lines
        text = " ".join(relevant)[:500] or "git said nothing"
        whole = "\n".join(lines)
        hint = next((hint for pattern, hint in _HINTS if re.search(pattern, whole)), "try 'git fetch {name}' by hand")
        name = self._remote.name
        hint = f"{hint.format(name=name)} (memfs uses your own git configuration, and none of this repository's)"
        return RemoteUnreachable(f"git {verb} with {name} failed: {text}", hint=hint)


def _config(remote: Remote) -> str:
    lines = ["[core]", "\trepositoryformatversion = 0", "\tbare = true", f"[remote {quoted(remote.name)}]"]
    lines += [f"\turl = {quoted(remote.fetch)}", f"\tpushurl = {quoted(remote.push)}"]
    if remote.push == remote.fetch:
        lines.pop()  # or else the person's pushInsteadOf would not hold
    if remote.local:
        receiver = shlex.join([git_program(), *_PLAIN_RECEIVER, "receive-pack"])
        lines.append(f"\treceivepack = {quoted(receiver)}")
    return "\n".join(lines) + "\n"


_NOTE = "seen.json"
_SEEN, _RESCUE, _TRACKING = "refs/memfs/seen", "refs/memfs/rescue", "refs/remotes"
_LARGEST = 4 << 20
_ERASED, _MOST_ERASED = "", 1000
"""The name in the note, which no branch of a remote has, of commits that were replaced here."""


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
        return self._rewritten(f"{remote}/{branch}", self._noted())

    def _rewritten(self, name: str, notes: Mapping[str, Sequence[str]]) -> str:
        """The same of a remote's branch by its name, by these notes."""
        noted = notes.get(name, ())
        seen = self._repository.ref_commit(_seen(name))
        if not noted or seen in noted:
            return ""
        if seen:  # a sync of another working tree may have moved it, along the same line; an erase leaves no such line
            lines = [line for commit in noted for line in ((seen, commit), (commit, seen))]
            return "" if any(is_ancestor(self._repository, *line) for line in lines) else noted[-1]
        # Without its ref an erase is known by what it removed: a sync that was killed has the note alone.
        return "" if holds_commit(self._repository, noted[-1]) else noted[-1]

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
        """Remember the last that is known of every remote, before history is rewritten here.

        What a person pushed or fetched with git counts. A note of an earlier rewriting, which the remote has not
        followed yet, stays.
        """
        seen = {re.sub("%(.)", r"\1", name): commit for name, commit in self._listed(_SEEN).items()}
        tracked, notes = self._listed(_TRACKING), self._noted()
        tips: dict[str, str] = {}
        for name in {**tracked, **seen}:
            tips[name] = self._latest(seen.get(name, ""), (*notes.get(name, ()), tracked.get(name, "")))
        kept = {name: commits for name, commits in notes.items() if name not in tips or self._rewritten(name, notes)}
        if tips:
            self._write({**{name: (commit,) for name, commit in tips.items()}, **kept})
        self._update({_seen(name): commit for name, commit in tips.items()})

    def note_erased(self, commits: Iterable[str]) -> None:
        """Remember commits that are about to be replaced here: whatever they lead to is never fetched again."""
        noted = self._noted()
        self._write({**noted, _ERASED: tuple(dict.fromkeys([*noted.get(_ERASED, ()), *commits]))[-_MOST_ERASED:]})

    def erased(self) -> frozenset[str]:
        """Those of the remembered commits that were replaced, and are not here."""
        noted = self._noted().get(_ERASED, ())
        if not noted:
            return frozenset()
        # by git itself: this process may remember what it read before
        found = self._repository.git.run("cat-file", "--batch-check", data="\n".join((*noted, "")).encode())
        return frozenset(line.partition(" ")[0] for line in found.decode().splitlines() if line.endswith(" missing"))

    def _latest(self, seen: str, others: Iterable[str]) -> str:
        """The last of these commits along the line of the one that was seen; one of the others where none was."""
        for other in others:
            if (
                other
                and holds_commit(self._repository, other)
                and (not seen or is_ancestor(self._repository, seen, other))
            ):
                seen = other
        return seen

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
        found = io.read_record(self._path, _LARGEST)
        rows = found.items() if isinstance(found, dict) else ()
        return {
            name: tuple(commits)
            for name, commits in rows
            if isinstance(commits, list) and all(isinstance(one, str) and HEX.fullmatch(one) for one in commits)
        }

    def _write(self, noted: Mapping[str, Sequence[str]]) -> None:
        io.write_file(self._path, json.dumps(noted, sort_keys=True).encode())


def _seen(name: str) -> str:
    """The ref for a branch of a remote, none of which is a folder of another's: "a" may be gone, and "a/b" be there."""
    return f"{_SEEN}/{name.replace('%', '%%').replace('/', '%/')}"
