"""Signs commits and verifies signatures, with OpenPGP, X.509 and SSH keys.

``history.sign`` uses keys that only the person names, in the environment or in their own git settings. Any other commit
is signed where ``commit.gpgsign`` says so; the repository may choose among the person's keys, but never which program
signs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from memfs.config_names import SIGNING_KEY
from memfs.errors import GitFailed, MemfsError, Problem, SigningFailed
from memfs.fs import io
from memfs.fs.journal import Writer
from memfs.fs.lock import reset_on_fork
from memfs.git import process as environment
from memfs.git.commit_object import sanitised, sole_agent, with_signature
from memfs.startup import TYPE_CHECKING

if TYPE_CHECKING:
    from memfs.git.process import GitCommands


PASSPHRASE_SECONDS = 120.0
_PASSED = (
    *("HOME", "GNUPGHOME", "GPG_TTY", "TERM", "TZ", "LANG", "LC_ALL", "SSH_AUTH_SOCK"),
    *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
)


def run(
    command: Sequence[str], data: bytes, env: Mapping[str, str], timeout: float, keep: Sequence[int] = ()
) -> tuple[int, bytes, str]:
    """Run a program with ``data`` on its input; code, output and messages.

    Args:
        timeout: seconds.
        keep: descriptors that it inherits.

    Raises:
        SigningFailed: it did not answer in time, and was ended.
        StorageIO: it cannot be started.
    """
    pipe = subprocess.PIPE
    name = os.path.basename(command[0])
    with io.operation(name, command[1]):
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, cwd="/", env=env, pass_fds=keep, start_new_session=True
        )
    try:
        return environment.finish(process, data, timeout)
    except GitFailed:
        hint = "is a hardware key waiting to be touched, or a passphrase to be typed?"
        raise SigningFailed(f"{name} did not answer within {timeout:g} seconds", hint=hint) from None


def gpg_signature(data: bytes, key: str, program: str) -> str:
    """The OpenPGP or X.509 signature of some bytes, as git keeps it in a commit.

    A passphrase is asked for by the person's own ``gpg-agent``, as when they commit with git.

    Args:
        key: what names the key to the program: an id, a fingerprint, or ``Name <address>``.
        program: where it is.

    Raises:
        SigningFailed: it did not sign, for the reason it gives.
    """
    command = (program, "--status-fd=2", "-bsau", key)
    code, out, err = run(command, data, _environment(), PASSPHRASE_SECONDS)
    if code or "[GNUPG:] SIG_CREATED" not in err or not out.startswith(b"-----BEGIN "):
        lines = [line for line in err.splitlines() if line.strip() and not line.startswith("[GNUPG:]")]
        reason = lines[-1] if lines else f"{os.path.basename(program)} ended with {code}"
        raise SigningFailed(
            f"the key {key} cannot sign: {reason}", hint="'gpg --list-secret-keys' names those you have"
        )
    return out.decode("ascii", "replace").replace("\r", "")


def find_program(named: str, hint: str) -> str:
    """Where a program is; a folder of ``PATH`` that depends on the working folder is not looked into.

    Raises:
        SigningFailed: it is not installed, or named by a path that depends on the working folder.
    """
    path = os.path.expanduser(named)
    if os.sep in path and not os.path.isabs(path):
        raise SigningFailed("a signing program needs its full path", path=named, hint=hint)
    found = shutil.which(path, path=environment.search_path(os.environ))
    if found is None:
        raise SigningFailed(f"{named} is not installed", hint=hint)
    return found


def _environment() -> dict[str, str]:
    inner = {name: os.environ[name] for name in _PASSED if name in os.environ}
    if "GPG_TTY" not in inner:
        with suppress(OSError, ValueError):
            inner["GPG_TTY"] = os.ttyname(sys.stdin.fileno())
    return {**inner, "PATH": environment.search_path(os.environ)}


NAMESPACE = "git"
TIMEOUT = 20.0
LARGEST = 1 << 14
BEGIN, END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"


def sign(data: bytes, key: Path, program: str = "") -> str:
    """The signature of some bytes, as git keeps it in a commit.

    Args:
        key: a private key without a passphrase, or a public key whose private one an SSH agent holds.
        program: a program of the person's that signs in place of ``ssh-keygen`` and takes the same arguments.

    Raises:
        SigningFailed: the key is not there, asks for a passphrase, or ``ssh-keygen`` refuses or is not installed.
    """
    try:
        begins = io.read_file(Path(os.path.realpath(key)), 1 << 16).lstrip()
    except (FileNotFoundError, NotADirectoryError):
        raise SigningFailed("there is no such key", path=str(key), hint="correct memfs.signingKey") from None
    except MemfsError as error:
        raise SigningFailed(f"the key cannot be read: {error.message}", path=str(key), hint=error.hint) from error
    # a public key without its private one beside it: only an agent can have that
    private = Path(str(key).removesuffix(".pub"))
    public = begins.startswith((b"ssh-", b"ecdsa-", b"sk-"))
    held = ("-U",) if public and not (private != key and private.is_file()) else ()
    code, out, err = _run("sign", "-n", NAMESPACE, "-f", str(key), *held, data=data, program=program)
    if code or not out.startswith(BEGIN.encode()):
        reason = err.strip().splitlines()[-1] if err.strip() else f"ssh-keygen ended with {code}"
        raise SigningFailed(
            f"the key cannot sign: {reason}",
            path=str(key),
            hint="use a key without a passphrase, or load it into ssh-agent and name its .pub file",
        )
    return out.decode("ascii", "replace").strip() + "\n"


def verifies(
    data: bytes, signature: bytes, principal: str, signers: Path, when: datetime, revoked: Path | None = None
) -> bool:
    """Whether a signature is a principal's, by a list of allowed signers, as of a time.

    Args:
        data: what was signed.
        signers: the file that lists who may sign with which key.
        when: the time at which the key had to be valid.
        revoked: the file of keys that are revoked.
    """
    options = ("-r", str(revoked)) if revoked is not None else ()
    with _as_file(signature) as (name, descriptor):
        code, _, _ = _run(
            "verify",
            *("-n", NAMESPACE, "-f", str(signers), "-I", principal, "-s", name, _time_option(when), *options),
            data=data,
            keep=(descriptor,),
        )
    return code == 0


def principals(signature: bytes, signers: Path, when: datetime | None) -> list[str]:
    """Whose key made a signature, by a list of allowed signers; without a time, keys that are out of date count too."""
    options = (_time_option(when),) if when is not None else ()
    with _as_file(signature) as (name, descriptor):
        code, out, _ = _run("find-principals", "-f", str(signers), "-s", name, *options, data=b"", keep=(descriptor,))
    return [] if code else [line for line in out.decode("utf-8", "replace").splitlines() if line.strip()]


def matches(data: bytes, signature: bytes) -> bool:
    """Whether a signature is of these bytes, no matter who made it."""
    with _as_file(signature) as (name, descriptor):
        code, _, _ = _run("check-novalidate", "-n", NAMESPACE, "-s", name, data=data, keep=(descriptor,))
    return code == 0


def _time_option(when: datetime) -> str:
    # In local time, as git passes it: times in a list of allowed signers are local, too.
    return f"-Overify-time={when.astimezone():%Y%m%d%H%M%S}"


@contextmanager
def _as_file(signature: bytes) -> Iterator[tuple[str, int]]:
    """A signature as a file that only our child can open: ``ssh-keygen`` takes it from no other place."""
    if len(signature) > LARGEST:
        signature = b""  # larger than any there is: none
    reader, writer = os.pipe()
    try:
        try:
            os.write(writer, signature)  # a pipe holds as much at once
        finally:
            os.close(writer)
        yield f"/dev/fd/{reader}", reader
    finally:
        os.close(reader)


def _run(
    action: str, *arguments: str, data: bytes, keep: Sequence[int] = (), program: str = ""
) -> tuple[int, bytes, str]:
    """Ask ``ssh-keygen``; it has no terminal on which it could ask back."""
    command = (program or find_program("ssh-keygen", "install OpenSSH 8.8 or later"), "-Y", action, *arguments)
    env = _environment() | {"LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"}
    return run(command, data, env, TIMEOUT, keep)


OFF, REQUIRE = "off", "require"
_KEYS = r"^(memfs\.(.*\.)?signingkey|user\.signingkey|gpg\.format|gpg\.ssh\.(allowedsignersfile|revocationfile))$"
_AS_GIT = r"^(commit\.gpgsign|gpg\.format|user\.signingkey)$"
_PROGRAMS = r"^gpg\.(.*\.)?program$"
_USUAL = {"openpgp": "gpg", "x509": "gpgsm"}
_LITERAL = ("key::", "ssh-", "ecdsa-", "sk-")
_HINT_GIT = "git config --global user.signingKey names your key"
_HINT = "git config --global memfs.signingKey ~/.ssh/KEY, or memfs.AGENT.signingKey for an agent of that name"


class Signing:
    """Signs the commits of one repository."""

    def __init__(self, git: GitCommands, mode: str = OFF) -> None:
        """``mode``: ``off``; ``try`` signs where there is a key that works; with ``require`` commits wait else."""
        self.mode, self._git = mode, git
        self._notes: list[Problem] = []
        self._guard = threading.Lock()
        reset_on_fork(self)

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
            if key is None and self.mode == REQUIRE:
                raise SigningFailed(f"there is no key that signs for {agent or 'you'}", hint=_HINT)
            return commit if key is None else with_signature(commit, sign(commit, key))
        except SigningFailed as error:
            if self.mode == REQUIRE:
                raise
            self._note(error)
            return commit

    def _signed_as_git(self, commit: bytes) -> bytes:
        chosen = dict(self._git.settings(_AS_GIT))
        if "commit.gpgsign" not in chosen or chosen["commit.gpgsign"].lower() not in ("true", "yes", "on", "1", ""):
            return commit
        programs = dict(self._git.settings(_PROGRAMS, own=True))
        form, key = chosen.get("gpg.format") or "openpgp", chosen.get("user.signingkey", "")
        try:
            if form == "ssh":
                return with_signature(commit, _by_ssh(commit, key, programs.get("gpg.ssh.program", "")))
            if form not in _USUAL:
                raise SigningFailed(f"git knows no signatures of the sort {form}", field="gpg.format")
            named = programs.get(f"gpg.{form}.program") or (form == "openpgp" and programs.get("gpg.program"))
            program = find_program(named or _USUAL[form], f"install it, or set gpg.{form}.program")
            if not key:  # git looks for one of the committer's
                committer = re.search(rb"^committer (.*?> )", commit, re.MULTILINE)
                key = committer[1].decode("utf-8", "replace").strip() if committer else ""
            return with_signature(commit, gpg_signature(commit, key, program))
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
        names = (f"memfs.{agent}.signingkey", f"memfs.{sanitised(agent)}.signingkey")
        own = next((settings[name] for name in names if name in settings), "") if agent else ""
        named = own or os.environ.get(SIGNING_KEY, "") or settings.get("memfs.signingkey", "")
        if not named and settings.get("gpg.format") == "ssh":
            named = settings.get("user.signingkey", "")
        return _path(named) if named else None

    def settings(self) -> Mapping[str, str]:
        """What the person's own git settings say of keys and signers; none of the repository's."""
        return dict(self._git.settings(_KEYS, own=True))

    def take_notes(self) -> list[Problem]:
        """What went wrong since this was last asked."""
        with self._guard:
            notes, self._notes = self._notes, []
        return notes

    def problems(self) -> list[Problem]:
        """What keeps a person's commits from being signed, tried out now."""
        if self.mode == OFF:
            return []
        try:
            key = self.key_of("")
            if key is None and self.mode == REQUIRE:
                raise SigningFailed("there is no key that signs for you", hint=_HINT)
            if key is not None:
                sign(b"", key)
        except MemfsError as error:
            return [_problem(error, self.mode)]
        return []

    def _note(self, error: MemfsError) -> None:
        found = _problem(error, self.mode)
        with self._guard:
            if found not in self._notes:
                self._notes.append(found)


def _by_ssh(commit: bytes, key: str, program: str) -> str:
    """A signature by the key that ``user.signingkey`` names by its path, or in words of its own."""
    found = find_program(program, "correct gpg.ssh.program") if program else ""
    if not key:
        raise SigningFailed("no key is named", hint=_HINT_GIT)
    literal = key.removeprefix("key::") if key.startswith(_LITERAL) else ""
    if not literal:
        return sign(commit, _path(key), found)
    with tempfile.NamedTemporaryFile("w", prefix="memfs-", suffix=".pub") as file:  # ssh-keygen takes files only
        file.write(f"{literal}\n")
        file.flush()
        return sign(commit, Path(file.name), found)


def _path(named: str) -> Path:
    path = Path(os.path.expanduser(named))
    if not path.is_absolute():
        # A relative one would be another key in every folder, also one that came with a clone.
        raise SigningFailed("a signing key needs its full path", path=named, hint="write ~/.ssh/KEY")
    return path


def _problem(error: MemfsError, mode: str) -> Problem:
    what = "commits wait" if mode == REQUIRE else "commits are not signed"
    return Problem.warning(error.path or "", error.code, f"{what}: {error.message}", error.hint or _HINT)
