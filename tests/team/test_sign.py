"""Commits are signed with the key of the one who wrote them, and what a signature is worth can be checked (B2)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from memfs.doors.cli.app import run
from memfs.errors import HistoryUnavailable, SigningFailed
from memfs.git import signing as sshsig
from memfs.git.commit_object import sanitised, with_signature, without_signature
from memfs.model import MemoryItem, Origin
from memfs.team.verify import CommitCheck, SignatureVerdict
from memfs.workspace import Workspace

Git = Callable[..., str]
Open = Callable[..., Workspace]
ADA, BOT = "ada@example.org", "coder@agent.memfs"


@dataclass(frozen=True)
class Keys:
    """Keys of a person, an agent and a stranger, and a list that names the first two."""

    folder: Path

    def __getitem__(self, name: str) -> Path:
        return self.folder / name

    def public(self, name: str) -> str:
        """The public half, as a list of signers has it."""
        return (self.folder / f"{name}.pub").read_text().rpartition(" ")[0]

    def listing(self, *lines: str) -> Path:
        """A list of allowed signers; the person and the agent by default."""
        path = self.folder / "signers"
        text = lines or (f"{ADA} {self.public('ada')}", f"{BOT} {self.public('coder')}")
        path.write_text("# who may sign\n" + "\n".join(text) + "\n")
        return path


@pytest.fixture
def keys(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Keys:
    """Three keys, made once, in a folder of the test's own."""
    made = tmp_path_factory.getbasetemp() / "keys"
    if not made.exists():
        made.mkdir()
        for name in ("ada", "coder", "mallory"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(made / name)]
            subprocess.run(command, check=True)
    folder = tmp_path / "keys"
    folder.mkdir()
    for source in made.iterdir():
        target = folder / source.name
        target.write_bytes(source.read_bytes())
        target.chmod(0o600)
    return Keys(folder)


@pytest.fixture
def configured(own_world: Path, keys: Keys) -> Keys:
    """The person has a key, and an agent one of its own."""
    configure(own_world, f"[memfs]\n\tsigningKey = {keys['ada']}\n")
    configure(own_world, f'[memfs "coder"]\n\tsigningKey = {keys["coder"]}\n')
    configure(own_world, f'[gpg]\n\tformat = ssh\n[gpg "ssh"]\n\tallowedSignersFile = {keys.listing()}\n')
    return keys


def configure(home: Path, text: str) -> None:
    """Add to the person's git settings."""
    with (home / ".gitconfig").open("a") as file:
        file.write(text)


def item(text: str, agent: str = "") -> MemoryItem:
    """A memory of a person's, or of an agent's."""
    return MemoryItem(text, id=text.split()[0].lower(), origin=Origin(agent=agent, session="s1" if agent else ""))


def write(workspace: Workspace, text: str, agent: str = "") -> str:
    """Store and commit one memory; the commit."""
    workspace.store.put(item(text, agent))
    done = workspace.store.flush(adopt=False)
    assert done.reason == ""
    return done.commits[-1]


def verdicts(checked: list[CommitCheck]) -> list[str]:
    """The words alone, newest first."""
    return [one.verdict.value for one in checked]


def verdict(workspace: Workspace, commit: str, keys: Keys) -> CommitCheck:
    """What one commit is worth."""
    return workspace.teams.signatures.verify(f"{commit}~1..{commit}", keys.listing())[0]


def by_git(root: Path, commit: str) -> bool:
    """What ``git verify-commit`` says."""
    done = subprocess.run(["git", "-C", str(root), "verify-commit", commit], capture_output=True, check=False)
    return done.returncode == 0


# -- signing ------------------------------------------------------------------------------------------------------
def test_each_signs_with_the_own_key(opened: Open, configured: Keys, git: Git) -> None:
    """A person's commit carries the person's signature, an agent's the agent's; git says the same (B2)."""
    workspace = opened(history__sign="require")
    first = write(workspace, "Deploys happen on Tuesdays")
    second = write(workspace, "Backups run at night", agent="coder")
    found = workspace.teams.signatures.verify(f"{first}~1..HEAD")
    assert [(one.verdict, one.principals) for one in found] == [
        (SignatureVerdict.GOOD, (BOT,)),
        (SignatureVerdict.GOOD, (ADA,)),
    ]
    assert by_git(workspace.root, first)
    assert by_git(workspace.root, second)
    assert (found[0].agent, found[0].session) == ("coder", "s1")
    git(workspace.root, "fsck", "--strict")


def test_without_the_setting_nothing_is_signed(opened: Open, configured: Keys, git: Git) -> None:
    """A key alone signs nothing: signing is asked for."""
    workspace = opened()
    commit = write(workspace, "Deploys happen on Tuesdays")
    assert "gpgsig" not in git(workspace.root, "cat-file", "commit", commit)
    assert verdict(workspace, commit, configured).verdict is SignatureVerdict.UNSIGNED
    assert not by_git(workspace.root, commit)


def test_an_agent_without_a_key_is_signed_for_by_the_person(opened: Open, configured: Keys) -> None:
    """Where the list has no key of the agent, the committer answers for it; where it has one, only that key does."""
    workspace = opened(history__sign="require")
    commit = write(workspace, "Backups run at night", agent="helper")
    assert verdict(workspace, commit, configured).principals == (ADA,)
    strict = configured.listing(f"{ADA} {configured.public('ada')}", f"*@agent.memfs {configured.public('coder')}")
    found = workspace.teams.signatures.verify(f"{commit}~1..{commit}", strict)
    assert verdicts(found) == ["wrong principal"]


def test_a_repository_names_no_key(opened: Open, keys: Keys, git: Git) -> None:
    """What is in the repository's own configuration signs nothing and vouches for nobody (row 41)."""
    workspace = opened(history__sign="require")
    for name, value in (
        ("memfs.signingKey", str(keys["mallory"])),
        ("user.signingKey", str(keys["mallory"])),
        ("gpg.format", "ssh"),
        ("gpg.ssh.program", "/bin/false"),
        ("gpg.ssh.allowedSignersFile", str(keys.listing())),
    ):
        git(workspace.root, "config", name, value)
    workspace.store.put(item("Deploys happen on Tuesdays"))
    assert "no key that signs for you" in workspace.store.flush(adopt=False).reason
    with pytest.raises(SigningFailed, match="no list of allowed signers"):
        workspace.teams.signatures.verify()


def test_git_settings_for_signing_are_understood(
    opened: Open, keys: Keys, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signing with git by SSH needs no second setting; a variable wins over it, an agent's own key over that."""
    configure(own_world, f"[user]\n\tsigningKey = {keys['ada']}\n")
    signing = opened(history__sign="require").repository.signing
    assert signing.key_of() is None  # without a format it names a key of OpenPGP
    assert [(one.code, "no key" in one.message) for one in signing.problems()] == [("SigningFailed", True)]
    configure(own_world, "[gpg]\n\tformat = ssh\n")
    assert (signing.key_of(), signing.problems()) == (keys["ada"], [])
    monkeypatch.setenv("MEMFS_SIGNING_KEY", str(keys["mallory"]))
    configure(own_world, f'[memfs "{sanitised("a <coder>")}"]\n\tsigningKey = {keys["coder"]}\n')
    assert (signing.key_of(), signing.key_of("a <coder>")) == (keys["mallory"], keys["coder"])
    assert sshsig.sign(b"", keys["ada.pub"]).startswith(sshsig.BEGIN)  # its private half is beside it


@pytest.mark.parametrize("mode", ["try", "require"])
def test_a_key_that_does_not_work_loses_nothing(opened: Open, configured: Keys, git: Git, mode: str) -> None:
    """With ``try`` the commit is made unsigned and that is said; with ``require`` it waits, and lands with the key."""
    workspace = opened(history__sign=mode)
    saved = configured["ada"].read_bytes()
    configured["ada"].write_bytes(b"this is no key\n")
    workspace.store.put(item("Deploys happen on Tuesdays"))
    done = workspace.store.flush(adopt=False)
    codes = [problem.code for problem in workspace.store.problems()]
    if mode == "try":
        assert (len(done.commits), done.waiting, codes) == (1, 0, ["SigningFailed"])
        assert "gpgsig" not in git(workspace.root, "cat-file", "commit", "HEAD")
        return
    assert (done.commits, done.waiting) == ((), 1)
    assert "the key cannot sign" in done.reason
    configured["ada"].write_bytes(saved)
    assert workspace.store.flush(adopt=False).waiting == 0
    assert by_git(workspace.root, "HEAD")


def test_a_key_with_a_passphrase_asks_nobody(opened: Open, configured: Keys) -> None:
    """Nobody sits at a terminal: the commit waits and says why, at once."""
    command = ["ssh-keygen", "-q", "-p", "-N", "secret phrase", "-f", str(configured["ada"])]
    subprocess.run(command, check=True, capture_output=True)
    workspace = opened(history__sign="require")
    workspace.store.put(item("Deploys happen on Tuesdays"))
    assert "passphrase" in workspace.store.flush(adopt=False).reason


@pytest.mark.parametrize(("named", "reason"), [("keys/ada", "full path"), ("/nowhere/ada", "no such key")])
def test_a_key_is_named_by_its_whole_path(opened: Open, own_world: Path, named: str, reason: str) -> None:
    """A relative path would be another key in every clone."""
    configure(own_world, f"[memfs]\n\tsigningKey = {named}\n")
    workspace = opened(history__sign="require")
    workspace.store.put(item("Deploys happen on Tuesdays"))
    assert reason in workspace.store.flush(adopt=False).reason
    assert [problem.code for problem in workspace.repository.signing.problems()] == ["SigningFailed"]


# -- checking -----------------------------------------------------------------------------------------------------
def rewritten(git: Git, root: Path, commit: str, old: str, new: str) -> str:
    """A commit like another, with something changed in its text."""
    text = git(root, "cat-file", "commit", commit)
    assert old in text
    path = root / ".git" / "forged"
    path.write_text(text.replace(old, new, 1))
    return git(root, "hash-object", "-t", "commit", "-w", str(path)).strip()


def test_a_tampered_commit_is_bad(opened: Open, configured: Keys, git: Git) -> None:
    """A changed message, author, tree or time under an old signature is found, as git finds it (B2)."""
    workspace = opened(history__sign="require")
    commit = write(workspace, "Deploys happen on Tuesdays")
    tree = git(workspace.root, "rev-parse", f"{commit}~1^{{tree}}").strip()
    own = git(workspace.root, "rev-parse", f"{commit}^{{tree}}").strip()
    for old, new in (("Deploys", "Secrets"), ("author Ada", "author Eve"), (own, tree), (" +0000", " +0100")):
        forged = rewritten(git, workspace.root, commit, old, new)
        found = workspace.teams.signatures.verify(f"{commit}~1..{forged}", configured.listing())
        assert verdicts(found) == (["bad"] if new != tree else [])
        assert not by_git(workspace.root, forged)


def test_a_replayed_signature_is_bad(opened: Open, configured: Keys, git: Git) -> None:
    """A signature taken from another commit, or made for another purpose, says nothing of this one."""
    workspace = opened(history__sign="require")
    first, second = write(workspace, "Deploys happen on Tuesdays"), write(workspace, "Backups run at night")
    data = workspace.repository.object(first).data
    _, signatures = without_signature(data)
    unsigned, _ = without_signature(workspace.repository.object(second).data)
    forged = with_signature(unsigned, signatures[0].decode())
    file = ["ssh-keygen", "-Y", "sign", "-n", "file", "-f", str(configured["ada"])]
    other = subprocess.run(file, input=unsigned, capture_output=True, check=True).stdout.decode()
    twice = with_signature(with_signature(unsigned, other), signatures[0].decode())
    for bytes_ in (forged, with_signature(unsigned, other), twice):
        path = workspace.root / ".git" / "forged"
        path.write_bytes(bytes_)
        name = git(workspace.root, "hash-object", "-t", "commit", "-w", str(path)).strip()
        found = workspace.teams.signatures.verify(f"{first}..{name}", configured.listing())
        assert verdicts(found) == ["bad"]
        assert not by_git(workspace.root, name)


def test_a_stolen_name_is_found(opened: Open, configured: Keys, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit in another's name, signed with a key of the own, is good to git and wrong here (B2)."""
    workspace = opened(history__sign="require")
    lines = (f"{ADA} {configured.public('ada')}", f"mallory@example.org {configured.public('mallory')}")
    signers = configured.listing(*lines)
    monkeypatch.setenv("MEMFS_SIGNING_KEY", str(configured["mallory"]))
    commit = write(workspace, "Deploys happen on Fridays")
    found = workspace.teams.signatures.verify(f"{commit}~1..{commit}", signers)[0]
    assert (found.verdict, found.principals) == (SignatureVerdict.WRONG_PRINCIPAL, ("mallory@example.org",))
    assert by_git(workspace.root, commit)
    first_unknown = workspace.teams.signatures.verify(f"{commit}~1..{commit}", configured.listing())[0]
    assert first_unknown.verdict is SignatureVerdict.UNKNOWN_KEY
    assert not by_git(workspace.root, commit)


ANN = "author Ann <ann@example.org> 1790000000 +0000"
OWN = f"author Ada <{ADA}> 1790000000 +0000"
BY = f"committer Ada <{ADA}> 1790000000 +0000"


@pytest.mark.parametrize(
    ("headers", "good"),
    [
        ((OWN, BY), True),
        ((OWN, ANN, BY), False),
        ((ANN, OWN, BY), False),
        ((f"author Ann <ann@example.org> <{ADA}> 1790000000 +0000", BY), False),
        ((OWN, BY, BY), False),
        ((OWN, BY, "gpgsigned by nobody"), False),
    ],
    ids=["plain", "later", "earlier", "addresses", "committers", "unsigned header"],
)
def test_a_commit_that_programs_read_differently_is_bad(
    opened: Open, configured: Keys, git: Git, headers: tuple[str, ...], good: bool
) -> None:
    """A person with a key cannot make a commit that memfs finds good, and that git shows as somebody else's (B2)."""
    workspace = opened()
    commit = write(workspace, "First fact.")
    tree = git(workspace.root, "rev-parse", f"{commit}^{{tree}}").strip()
    raw = "\n".join((f"tree {tree}", *headers, "", "Forged\n"))
    signed = "\n".join(line for line in raw.split("\n") if not line.startswith("gpgsigned"))
    made = with_signature(raw.encode(), sshsig.sign(signed.encode(), configured["ada"]))
    command = ["git", "-C", str(workspace.root), "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
    forged = subprocess.run(command, input=made, capture_output=True, check=True).stdout.decode().strip()
    (checked,) = workspace.teams.signatures.verify(forged, configured.listing())
    assert (checked.verdict is SignatureVerdict.GOOD) is good, checked


def test_no_name_that_looks_like_an_agents_goes_by_the_committers_key(opened: Open, configured: Keys, git: Git) -> None:
    """An agent with a key of its own is nobody's to sign for, however its name is written (B2)."""
    workspace = opened()
    made = []
    for name in ("scout@agent.memfs", BOT, BOT.replace("c", "C", 1)):
        (workspace.root / "ContextMemory" / f"{name}.txt").write_text(name)
        git(workspace.root, "add", "--all")
        config = ("-c", "user.email=" + ADA, "-c", f"user.signingkey={configured['ada']}")
        git(workspace.root, *config, "commit", "--quiet", "-S", "-m", "x", "--author", f"X <{name}>")
        made.append(git(workspace.root, "rev-parse", "HEAD").strip())
    found = [verdict(workspace, commit, configured).verdict for commit in made]
    assert found == [SignatureVerdict.GOOD, SignatureVerdict.WRONG_PRINCIPAL, SignatureVerdict.WRONG_PRINCIPAL]


def test_times_and_revocations_count(opened: Open, configured: Keys, own_world: Path, git: Git) -> None:
    """A key holds from and until the days the list says, by the commit's time; one taken back signs nothing."""
    workspace = opened(history__sign="require")
    commit = write(workspace, "Deploys happen on Tuesdays")
    wanted = f"{commit}~1..{commit}"
    key = configured.public("ada")
    for options, expected in (
        ('valid-after="20200101"', "good"),
        ('valid-before="20200101"', "unknown key"),
        ('namespaces="git"', "good"),
        ('namespaces="file"', "bad"),
    ):
        signers = configured.listing(f"{ADA} {options} {key}")
        assert verdicts(workspace.teams.signatures.verify(wanted, signers)) == [expected], options
        assert by_git(workspace.root, commit) == (expected == "good")
    revoked = configured.folder / "revoked"
    revoked.write_text((configured.folder / "ada.pub").read_text())
    configure(own_world, f'[gpg "ssh"]\n\trevocationFile = {revoked}\n')
    assert verdicts(workspace.teams.signatures.verify(wanted, configured.listing())) == ["bad"]
    assert not by_git(workspace.root, commit)


def test_a_key_that_is_out_of_date_still_vouches_for_its_time(opened: Open, configured: Keys, git: Git) -> None:
    """What was signed while the key held stays good (B2)."""
    workspace = opened()
    tree = git(workspace.root, "rev-parse", "HEAD^{tree}").strip()
    raw = f"tree {tree}\nauthor Ada <{ADA}> 1600000000 +0000\ncommitter Ada <{ADA}> 1600000000 +0000\n\nOld\n".encode()
    path = workspace.root / ".git" / "old"
    path.write_bytes(with_signature(raw, sshsig.sign(raw, configured["ada"])))
    commit = git(workspace.root, "hash-object", "-t", "commit", "-w", str(path)).strip()
    for until, expected in (("20201231", "good"), ("20200801", "unknown key")):
        signers = configured.listing(f'{ADA} valid-before="{until}" {configured.public("ada")}')
        assert verdicts(workspace.teams.signatures.verify(commit, signers)) == [expected]


def test_other_signatures_and_names_are_distinguished(opened: Open, configured: Keys, git: Git) -> None:
    """OpenPGP is named as such, and an address that could be a pattern is nobody's."""
    workspace = opened(history__sign="require")
    commit = write(workspace, "Deploys happen on Tuesdays")
    unsigned, _signatures = without_signature(workspace.repository.object(commit).data)
    pgp = with_signature(unsigned, "-----BEGIN PGP SIGNATURE-----\n\nabc\n-----END PGP SIGNATURE-----\n")
    starred = unsigned.replace(b"author Ada Person <ada@example.org>", b"author Ada <*>", 1)
    signed = with_signature(starred, sshsig.sign(starred, configured["ada"]))
    for data, expected in ((pgp, "unknown key"), (signed, "wrong principal")):
        path = workspace.root / ".git" / "forged"
        path.write_bytes(data)
        name = git(workspace.root, "hash-object", "-t", "commit", "-w", str(path)).strip()
        assert verdicts(workspace.teams.signatures.verify(f"{commit}~1..{name}", configured.listing())) == [expected]


def test_only_commits_of_the_memory_are_asked_about(opened: Open, configured: Keys, git: Git) -> None:
    """Code needs no signature, nor does a merge that only brings lines together; one that drops a line does."""
    workspace = opened(history__sign="require")
    root = workspace.root
    begin = write(workspace, "Deploys happen on Tuesdays")
    git(root, "switch", "-q", "-c", "side")
    (root / "code.py").write_text("x = 1\n")
    git(root, "add", "code.py")
    git(root, "commit", "-q", "-m", "code")
    write(workspace, "Backups run at night")
    git(root, "switch", "-q", "main")
    write(workspace, "Tests run in a sandbox")
    git(root, "merge", "-q", "--no-ff", "-m", "both", "side")
    found = workspace.teams.signatures.verify(f"{begin}..HEAD", configured.listing())
    assert verdicts(found) == ["good", "good"]
    git(root, "switch", "-q", "-c", "other", begin)
    write(workspace, "Lunch is at noon")
    git(root, "merge", "-q", "-s", "ours", "-m", "dropped", "main")
    assert verdicts(workspace.teams.signatures.verify("HEAD~1..HEAD", configured.listing()))[0] == "unsigned"


def test_a_range_must_be_there(opened: Open, configured: Keys) -> None:
    """An unknown revision, a missing list and an empty range say what they are."""
    workspace = opened()
    with pytest.raises(HistoryUnavailable):
        workspace.teams.signatures.verify("nowhere..HEAD")
    with pytest.raises(SigningFailed, match="no such list"):
        workspace.teams.signatures.verify("HEAD", configured.folder / "missing")
    assert workspace.teams.signatures.verify("HEAD..HEAD") == []


def test_the_verb_reports_and_exits(
    opened: Open, configured: Keys, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``memfs team verify`` names each commit, and its exit code is for CI (B2)."""
    workspace = opened(history__sign="require")
    commit = write(workspace, "Deploys happen on Tuesdays")
    monkeypatch.chdir(workspace.root)
    assert run(["team", "verify", f"{commit}~1..{commit}"]) == 0
    assert "good" in capsys.readouterr().out
    assert run(["team", "verify", "--json"]) == 1  # the workspace's first commit was made before there was a key
    assert '"unsigned"' in capsys.readouterr().out
