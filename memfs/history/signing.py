"""Signing: which key signs the commits of whom (B2).

Owns the choice of the key and what becomes of a commit whose key does not work. ``history.sign`` signs by keys that
the person alone names, in the environment or in their own git settings. A commit that was asked for is signed as git
would sign it, where ``commit.gpgsign`` says so: the repository may say so too, and which of the person's keys, but
never which program signs.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from memfs.errors import MemfsError, SigningFailed
from memfs.files.forked import renewed_in_child
from memfs.history import signer
from memfs.history.commitobject import with_signature
from memfs.history.group import Writer
from memfs.history.identity import sanitised, sole_agent
from memfs.history.sshsig import sign
from memfs.model.problem import WARNING, Problem

if TYPE_CHECKING:
    from memfs.history.git import GitCommands

OFF, TRY, REQUIRE = "off", "try", "require"
VARIABLE = "MEMFS_SIGNING_KEY"
_KEYS = r"^(memfs\.(.*\.)?signingkey|user\.signingkey|gpg\.format|gpg\.ssh\.(allowedsignersfile|revocationfile))$"
_AS_GIT = r"^(commit\.gpgsign|gpg\.format|user\.signingkey)$"
_PROGRAMS = r"^gpg\.(.*\.)?program$"
_TRUE = frozenset({"true", "yes", "on", "1", ""})
_USUAL = {"openpgp": "gpg", "x509": "gpgsm"}
_LITERAL = ("key::", "ssh-", "ecdsa-", "sk-")
_HINT_GIT = "git config --global user.signingKey names your key"
_HINT = "git config --global memfs.signingKey ~/.ssh/KEY, or memfs.AGENT.signingKey for an agent of that name"


class Signing:
    """Signs the commits of one repository."""

    def __init__(self, git: GitCommands, mode: str = OFF) -> None:
        """``mode``: ``off``; ``try`` signs where there is a key that works; with ``require`` commits wait else."""
        self.mode = mode
        self._git = git
        self._notes: list[Problem] = []
        self._guard = threading.Lock()
        renewed_in_child(self)

    def signed(self, commit: bytes, writers: Iterable[Writer], *, asked: bool = False) -> bytes:
        """A commit object with its signature, or as it is where it is not to be signed.

        Args:
            asked: a person asked for the commit, so that ``commit.gpgsign`` holds as for one of git's.

        Raises:
            SigningFailed: it must be signed and cannot be.
        """
        if self.mode == OFF:
            return self._signed_as_git(commit) if asked else commit
        agent = sole_agent(writers)
        try:
            key = self.key_of(agent)
            if key is None:
                if self.mode == TRY:
                    return commit
                raise SigningFailed(f"there is no key that signs for {agent or 'you'}", hint=_HINT)
            return with_signature(commit, sign(commit, key))
        except SigningFailed as error:
            if self.mode == REQUIRE:
                raise
            self._note(error)
            return commit

    def _signed_as_git(self, commit: bytes) -> bytes:
        chosen = dict(self._git.settings(_AS_GIT))
        if "commit.gpgsign" not in chosen or chosen["commit.gpgsign"].lower() not in _TRUE:
            return commit
        programs = dict(self._git.own_settings(_PROGRAMS))
        form, key = chosen.get("gpg.format") or "openpgp", chosen.get("user.signingkey", "")
        try:
            if form == "ssh":
                return with_signature(commit, _by_ssh(commit, key, programs.get("gpg.ssh.program", "")))
            if form not in _USUAL:
                raise SigningFailed(f"git knows no signatures of the sort {form}", field="gpg.format")
            named = programs.get(f"gpg.{form}.program") or (form == "openpgp" and programs.get("gpg.program"))
            program = signer.find_program(named or _USUAL[form], f"install it, or set gpg.{form}.program")
            return with_signature(commit, signer.gpg_signature(commit, key or _committer(commit), program))
        except SigningFailed as error:
            error.message = f"commit.gpgsign is set, and {error.message}"
            error.hint = f"{error.hint or _HINT_GIT}; or 'git config commit.gpgsign false'"
            raise

    def key_of(self, agent: str = "") -> Path | None:
        """The key that signs for an agent, "" for the person: an agent's own, else the person's; None: there is none.

        Raises:
            SigningFailed: it is not named by a path.
        """
        settings = self.settings()
        own = next((settings[name] for name in _names(agent) if name in settings), "") if agent else ""
        named = own or os.environ.get(VARIABLE, "") or settings.get("memfs.signingkey", "")
        if not named and settings.get("gpg.format") == "ssh":
            named = settings.get("user.signingkey", "")
        return _path(named) if named else None

    def settings(self) -> Mapping[str, str]:
        """What the person's own git settings say of keys and signers; none of the repository's."""
        return dict(self._git.own_settings(_KEYS))

    def take_notes(self) -> list[Problem]:
        """What went wrong since this was last asked."""
        with self._guard:
            notes, self._notes = self._notes, []
        return notes

    def problems(self, agents: Iterable[str] = ()) -> list[Problem]:
        """What keeps commits from being signed, tried out now."""
        if self.mode == OFF:
            return []
        found = []
        for agent in ("", *agents):
            try:
                key = self.key_of(agent)
                if key is None and self.mode == REQUIRE:
                    raise SigningFailed(f"there is no key that signs for {agent or 'you'}", hint=_HINT)
                if key is not None:
                    sign(b"", key)
            except MemfsError as error:
                found.append(_problem(error, self.mode))
        return list(dict.fromkeys(found))

    def _note(self, error: MemfsError) -> None:
        found = _problem(error, self.mode)
        with self._guard:
            if found not in self._notes:
                self._notes.append(found)


def _by_ssh(commit: bytes, key: str, program: str) -> str:
    """A signature by the key that ``user.signingkey`` names by its path, or in words of its own."""
    found = signer.find_program(program, "correct gpg.ssh.program") if program else ""
    if not key:
        raise SigningFailed("no key is named", hint=_HINT_GIT)
    literal = key.removeprefix("key::") if key.startswith(_LITERAL) else ""
    if not literal:
        return sign(commit, _path(key), found)
    with tempfile.NamedTemporaryFile("w", prefix="memfs-", suffix=".pub") as file:  # ssh-keygen takes files only
        file.write(f"{literal}\n")
        file.flush()
        return sign(commit, Path(file.name), found)


def _committer(commit: bytes) -> str:
    """Whom git looks for a key of where none is named: the committer."""
    found = re.search(rb"^committer (.*?> )", commit, re.MULTILINE)
    return found[1].decode("utf-8", "replace").strip() if found else ""


def _names(agent: str) -> Iterable[str]:
    """What the settings may call an agent's key."""
    return dict.fromkeys((f"memfs.{agent}.signingkey", f"memfs.{sanitised(agent)}.signingkey"))


def _path(named: str) -> Path:
    path = Path(os.path.expanduser(named))
    if not path.is_absolute():
        # A relative one would be another key in every folder, also one that came with a clone.
        raise SigningFailed("a signing key is named by its whole path", path=named, hint="write ~/.ssh/KEY")
    return path


def _problem(error: MemfsError, mode: str) -> Problem:
    what = "commits wait" if mode == REQUIRE else "commits are not signed"
    return Problem(
        path=error.path or "",
        code=error.code,
        message=f"{what}: {error.message}",
        hint=error.hint or _HINT,
        severity=WARNING,
    )
