"""Commits that were asked for are signed as git signs them (D1)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Memfs, git


@pytest.fixture
def project(tmp_path: Path, bare: Memfs) -> Path:
    """A code repository whose commits are to be signed, with a workspace and an item that waits."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q")
    (root / "code.py").write_text("print()\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Begin")
    git(root, "config", "commit.gpgsign", "true")
    assert bare("init", str(root)).code == 0
    assert bare("-C", str(root), "remember", "the port is 8080", "--id", "port").code == 0
    return root


@pytest.fixture
def ssh_key(own_world: Path, project: Path) -> Path:
    """A key that the repository names, and git knows whose it is."""
    key = own_world / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    signers = own_world / "signers"
    signers.write_text(f"ada@example.org {(own_world / 'key.pub').read_text()}")
    for name, value in {
        "gpg.format": "ssh",
        "user.signingkey": str(key),
        "gpg.ssh.allowedSignersFile": str(signers),
    }.items():
        git(project, "config", name, value)
    return key


@pytest.fixture
def gpg(own_world: Path) -> Iterator[Path]:
    """The person's OpenPGP key, in a folder of its own with a short name, as sockets need."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="gpg") as folder:
        os.environ["GNUPGHOME"] = folder
        made = ["gpg", "--batch", "--passphrase", "", "--quick-gen-key", "Ada Person <ada@example.org>", "ed25519"]
        try:
            subprocess.run([*made, "sign", "never"], check=True, capture_output=True)
            yield Path(folder)
        except FileNotFoundError:
            pytest.skip("gpg is not installed")
        finally:
            subprocess.run(["gpgconf", "--kill", "all"], check=False)
            del os.environ["GNUPGHOME"]


def signatures(root: Path) -> list[str]:
    """How git judges each commit, newest first, but the one that was there before."""
    return git(root, "log", "--format=%G?").split()[:-1]


def test_an_ssh_key_signs_what_was_asked_for(project: Path, bare: Memfs, ssh_key: Path) -> None:
    """``memfs commit`` and ``undo`` make signed commits (D1)."""
    assert bare("-C", str(project), "commit").code == 0
    assert signatures(project) == ["G", "G"]
    assert bare("-C", str(project), "undo", "--commit", "HEAD").code == 0
    assert signatures(project) == ["G", "G", "G"]


def test_an_openpgp_key_signs_what_was_asked_for(project: Path, bare: Memfs, gpg: Path) -> None:
    """Without a named key it is the committer's, as with git (D1)."""
    ran = bare("-C", str(project), "commit")
    assert ran.code == 0, ran.err
    assert signatures(project) == ["G", "G"]


def test_a_key_that_cannot_sign_commits_nothing_and_loses_nothing(project: Path, bare: Memfs, own_world: Path) -> None:
    """The error names the reason and the remedy; everything waits until it is put right (D1)."""
    git(project, "config", "gpg.format", "ssh")
    before = git(project, "rev-parse", "HEAD")
    ran = bare("-C", str(project), "commit")
    assert ran.code == 1
    assert "commit.gpgsign is set, and no key is named" in ran.err
    assert "git config --global user.signingKey" in ran.err
    git(project, "config", "user.signingkey", str(own_world / "gone"))
    assert "there is no such key" in bare("-C", str(project), "commit").err
    assert git(project, "rev-parse", "HEAD") == before
    git(project, "config", "commit.gpgsign", "false")
    assert bare("-C", str(project), "commit", "--json").json["waiting"] == 0
    assert signatures(project) == ["N", "N"]


def test_a_program_that_the_repository_names_is_never_run(project: Path, bare: Memfs, tmp_path: Path) -> None:
    """Which program signs is the person's own to say: a clone's configuration may name whatever it likes (D1)."""
    canary, evil = tmp_path / "canary", tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {canary}\nexit 1\n")
    evil.chmod(0o755)
    for name in ("gpg.program", "gpg.openpgp.program", "gpg.ssh.program", "gpg.x509.program"):
        git(project, "config", name, str(evil))
    for form in ("openpgp", "ssh", "x509"):
        git(project, "config", "gpg.format", form)
        git(project, "config", "user.signingkey", "/nowhere")
        assert bare("-C", str(project), "commit").code == 1
    assert not canary.exists()


def test_the_persons_own_program_signs(project: Path, bare: Memfs, own_world: Path, tmp_path: Path) -> None:
    """``gpg.program`` in the person's own settings is what git would run (D1)."""
    program = tmp_path / "mygpg"
    program.write_text(
        '#!/bin/sh\ncat > /dev/null\necho "[GNUPG:] SIG_CREATED " >&2\n'
        "echo '-----BEGIN PGP SIGNATURE-----'; echo; echo $3; echo '-----END PGP SIGNATURE-----'\n"
    )
    program.chmod(0o755)
    with (own_world / ".gitconfig").open("a") as file:
        file.write(f"[gpg]\n\tprogram = {program}\n[user]\n\tsigningkey = ABCD\n")
    assert bare("-C", str(project), "commit").code == 0
    assert "gpgsig -----BEGIN PGP SIGNATURE-----\n \n ABCD\n" in git(project, "cat-file", "commit", "HEAD")


def test_hooks_that_do_not_run_are_named(project: Path, bare: Memfs, ssh_key: Path) -> None:
    """The commit is made without them, and says so once (D1)."""
    hook = project / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    ran = bare("-C", str(project), "commit")
    assert ran.code == 0
    assert "the hooks of this repository did not run: pre-commit" in ran.err
    assert "hooks" not in bare("-C", str(project), "commit").err


def test_commits_that_memfs_makes_by_itself_ask_for_no_key(root: Path, memfs: Memfs) -> None:
    """Where memfs commits by itself, ``history.sign`` alone says whether they are signed; ``commit`` is asked for."""
    git(root, "config", "commit.gpgsign", "true")
    git(root, "config", "gpg.format", "ssh")
    assert memfs("remember", "the port is 8080", "--id", "port").code == 0
    assert git(root, "log", "-1", "--format=%s").startswith("Remember")


def test_forget_commits_nothing_and_can_be_taken_back(project: Path, bare: Memfs, ssh_key: Path) -> None:
    """An item that no commit holds is kept aside, and the printed command brings it back (D1)."""
    before = git(project, "rev-parse", "HEAD")
    ran = bare("-C", str(project), "forget", "port")
    assert "to bring it back: memfs restore port --displaced" in ran.out
    assert git(project, "rev-parse", "HEAD") == before
    assert bare("-C", str(project), "restore", "port", "--displaced").code == 0
    assert "8080" in bare("-C", str(project), "show", "port").out
