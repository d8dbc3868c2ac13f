"""Programs that sign: ``ssh-keygen``, ``gpg`` and ``gpgsm``, started with a time limit and none of our streams.

Owns starting and ending them, and what ``gpg`` and ``gpgsm`` are asked. Which key signs for whom, it does not know.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from memfs.errors import SigningFailed
from memfs.files import io
from memfs.history import environment

PASSPHRASE_SECONDS = 120.0
_CREATED = "[GNUPG:] SIG_CREATED "
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
        out, err = process.communicate(data, timeout)
    except subprocess.TimeoutExpired:
        hint = "is a hardware key waiting to be touched, or a passphrase to be typed?"
        raise SigningFailed(f"{name} did not answer within {timeout:g} seconds", hint=hint) from None
    finally:
        _end(process)
    return process.returncode, out, err.decode("utf-8", "replace")


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
    code, out, err = run(command, data, _environment(os.environ), PASSPHRASE_SECONDS)
    if code or _CREATED not in err or not out.startswith(b"-----BEGIN "):
        said = [line for line in err.splitlines() if line.strip() and not line.startswith("[GNUPG:]")]
        reason = said[-1] if said else f"{os.path.basename(program)} ended with {code}"
        raise SigningFailed(
            f"the key {key} cannot sign: {reason}", hint="'gpg --list-secret-keys' names those you have"
        )
    return out.decode("ascii", "replace").replace("\r", "")


def find_program(named: str, hint: str) -> str:
    """Where a program is; a folder of ``PATH`` that depends on where we stand is not looked into.

    Raises:
        SigningFailed: it is not installed, or named by a path that depends on where we stand.
    """
    path = os.path.expanduser(named)
    if os.sep in path and not os.path.isabs(path):
        raise SigningFailed("a program that signs is named by its whole path", path=named, hint=hint)
    found = shutil.which(path, path=environment.search_path(os.environ))
    if found is None:
        raise SigningFailed(f"{named} is not installed", hint=hint)
    return found


def _environment(outer: Mapping[str, str]) -> dict[str, str]:
    inner = {name: outer[name] for name in _PASSED if name in outer}
    if "GPG_TTY" not in inner:
        with suppress(OSError, ValueError):
            inner["GPG_TTY"] = os.ttyname(sys.stdin.fileno())
    return {**inner, "PATH": environment.search_path(outer)}


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()
