"""SSH signatures: the only module that asks ``ssh-keygen``.

Owns the closed list of what it is asked, its environment and its time limit. Which key signs for whom is
``memfs.history.signing``'s business, and what a signature is worth that of those who ask.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path

from memfs.errors import MemfsError, SigningFailed
from memfs.files import io
from memfs.history import environment, signer

NAMESPACE = "git"
ACTIONS = frozenset({"sign", "verify", "find-principals", "check-novalidate"})
TIMEOUT = 20.0
LARGEST = 1 << 14
BEGIN, END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_PASSED = ("HOME", "TZ", "SSH_AUTH_SOCK")
_PUBLIC = (b"ssh-", b"ecdsa-", b"sk-")


def sign(data: bytes, key: Path, program: str = "") -> str:
    """The signature of some bytes, as git keeps it in a commit.

    Args:
        key: a private key without a passphrase, or a public key whose private one an SSH agent holds.
        program: a program of the person's that signs in place of ``ssh-keygen`` and takes the same arguments.

    Raises:
        SigningFailed: the key is not there, asks for a passphrase, or ``ssh-keygen`` refuses or is not installed.
    """
    held = ("-U",) if _held_by_agent(key) else ()
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
    """Whether a signature is a principal's, by a list of allowed signers, as things stood at a time."""
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
    """Whether a signature is of these bytes, whoever made it."""
    with _as_file(signature) as (name, descriptor):
        code, _, _ = _run("check-novalidate", "-n", NAMESPACE, "-s", name, data=data, keep=(descriptor,))
    return code == 0


@cache
def ssh_keygen() -> str:
    """Where ``ssh-keygen`` is; a folder of ``PATH`` that depends on where we stand is not looked into.

    Raises:
        SigningFailed: it is not installed.
    """
    found = shutil.which("ssh-keygen", path=environment.search_path(os.environ))
    if found is None:
        raise SigningFailed("ssh-keygen is not installed", hint="install OpenSSH 8.8 or later")
    return found


def _time_option(when: datetime) -> str:
    # In local time, as git passes it: times in a list of allowed signers are local, too.
    return f"-Overify-time={when.astimezone():%Y%m%d%H%M%S}"


def _held_by_agent(key: Path) -> bool:
    """Whether a file is a public key, whose private one only an agent can have."""
    try:
        begins = io.read_file(Path(os.path.realpath(key)), 1 << 16).lstrip()
    except (FileNotFoundError, NotADirectoryError):
        raise SigningFailed("there is no such key", path=str(key), hint="correct memfs.signingKey") from None
    except MemfsError as error:
        raise SigningFailed(f"the key cannot be read: {error.message}", path=str(key), hint=error.hint) from error
    private = Path(str(key).removesuffix(".pub"))
    return begins.startswith(_PUBLIC) and not (private != key and private.is_file())


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


def _environment(outer: Mapping[str, str]) -> dict[str, str]:
    inner = {name: outer[name] for name in _PASSED if name in outer}
    return {**inner, "PATH": environment.search_path(outer), "LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"}


def _run(
    action: str, *arguments: str, data: bytes, keep: Sequence[int] = (), program: str = ""
) -> tuple[int, bytes, str]:
    """Ask ``ssh-keygen``; it has no terminal on which it could ask back."""
    if action not in ACTIONS:
        raise SigningFailed(f"memfs does not run 'ssh-keygen -Y {action}'", hint="see memfs.history.sshsig.ACTIONS")
    command = (program or ssh_keygen(), "-Y", action, *arguments)
    return signer.run(command, data, _environment(os.environ), TIMEOUT, keep)
