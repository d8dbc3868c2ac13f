"""A repository that holds one item in every way a repository can, and the search that finds it again.

A person's own git makes it beside memfs, and looks at what is left.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from memfs import MemoryItem
from memfs.workspace import Workspace, open_workspace

ITEM = "plan-for-the-tower-7h2k9q"
FIRST = "The vault of the tower opens with heron-4711"
SECOND = "The vault of the tower opens with kestrel-0815"
THIRD = "The vault of the tower opens with osprey-2342"
STASHED = "The vault of the tower opens with falcon-9001"
LOOSE = "The vault of the tower opens with magpie-3141"
NEEDLES = (b"heron-4711", b"kestrel-0815", b"osprey-2342", b"falcon-9001", b"magpie-3141", ITEM.encode())
COPY, QUOTE, OTHER = "docs/copy.yaml", "docs/quote.md", "the-other-one-3k9m2p"
SETTINGS = {"index.engine": "whoosh", "history.commit": "manual"}
_SAME = "\nIt stands on the northern hill, and nobody minds it.\n"


@dataclass(slots=True)
class Nasty:
    """The repository.

    Attributes:
        root: its working tree, which is the workspace, too.
        kept: what the tree of each branch held besides the item when it was made.
    """

    root: Path
    kept: dict[str, list[str]] = field(default_factory=dict)

    def git(self, *words: str, check: bool = True, data: bytes = b"", **variables: str) -> str:
        """The person's own git."""
        done = subprocess.run(
            ["git", "-C", str(self.root), *words],
            check=False,
            capture_output=True,
            input=data,
            env={**os.environ, **variables},
        )
        assert not check or done.returncode == 0, (words, done.stderr.decode(), done.stdout.decode())
        return done.stdout.decode("utf-8", "surrogateescape")

    def open(self, **settings: object) -> Workspace:
        """Open the workspace."""
        return open_workspace(self.root, watch=False, settings={**SETTINGS, **settings})

    def write(self, path: str, text: str) -> Path:
        """Write a file by hand."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def found(self, needles: tuple[bytes, ...] = NEEDLES) -> list[str]:
        """Everything that holds a needle: every object unpacked, and every file, of git or not, as it is on disk."""
        lowered = [needle.lower() for needle in needles]
        hits = []
        batch = subprocess.run(
            ["git", "-C", str(self.root), "cat-file", "--batch-all-objects", "--batch", "--unordered"],
            check=True,
            capture_output=True,
        ).stdout.lower()
        hits += [f"object {needle!r}" for needle in lowered if needle in batch]
        for top in (self.root, Path(os.environ["XDG_CACHE_HOME"])):
            for folder, _, names in os.walk(top):
                paths = [Path(folder) / name for name in names]
                for path in [path for path in paths if not path.is_symlink()]:
                    raw = path.read_bytes().lower()
                    hits += [f"{path} {needle!r}" for needle in lowered if needle in raw]
        return hits

    def trees(self) -> dict[str, list[str]]:
        """For every branch and tag, its files with their blobs, without the item and its copy."""
        refs = self.git("for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags").split()
        return {
            ref: [
                row
                for row in self.git("ls-tree", "-r", f"{ref}^{{tree}}").splitlines()
                if ITEM not in row and not row.endswith(COPY)
            ]
            for ref in refs
        }

    def log(self) -> list[str]:
        """Author, dates and tree-independent facts of every commit of all branches, oldest first."""
        form = "%an <%ae> %at %cn %ct"
        return self.git(
            "log", "--all", "--topo-order", "--reverse", f"--format={form}", "--exclude=refs/notes/*"
        ).splitlines()

    def whole(self) -> None:
        """The repository is whole, and the tree is clean."""
        self.git("fsck", "--full", "--strict")
        assert self.git("status", "--porcelain") == ""
        locks = [path for path in (self.root / ".git").rglob("*.lock") if "memfs" not in path.parts]
        assert locks == []


def make(root: Path, shared: bool = True) -> Nasty:
    """Make one; ``shared``: a team's repository that memfs joined."""
    root.mkdir(parents=True)
    nasty = Nasty(root)
    if shared:
        nasty.git("init", "-q")
        nasty.write("src/main.c", "int main(void) { return 0; }\n").chmod(0o755)
        (root / "link").symlink_to("src/main.c")
        nasty.git("add", ".")
        nasty.git("commit", "-qm", "Begin the program")
    with open_workspace(root, create=True, watch=False, settings=SETTINGS) as workspace:
        _history_of_item(nasty, workspace)
    _by_hand(nasty)
    nasty.kept = nasty.trees()
    return nasty


def _put(workspace: Workspace, text: str, kind: str = "knowledge", name: str = ITEM) -> None:
    workspace.store.put(MemoryItem(text + _SAME, kind, id=name, title=f"Tower {name[:3]}"))
    assert workspace.store.flush(adopt=True).reason == ""


def _history_of_item(nasty: Nasty, workspace: Workspace) -> None:
    _put(workspace, "Bread is baked at six", name=OTHER)
    _put(workspace, FIRST)
    nasty.git("branch", "feature")
    nasty.git("tag", "light")
    nasty.git("repack", "-q", "-a", "-d")
    _put(workspace, SECOND)
    nasty.git("tag", "-a", "v1", "-m", f"Release\n\n{SECOND}")
    nasty.git("tag", "-a", "v1-again", "-m", "A tag of a tag", "v1")
    nasty.git("pack-refs", "--all")
    _put(workspace, THIRD, kind="episodic")
    workspace.recaller.text(THIRD) if hasattr(workspace.recaller, "text") else None
    workspace.store.fold()


def _by_hand(nasty: Nasty) -> None:
    git = nasty.git
    item = next((nasty.root / "ContextMemory").rglob(f"{ITEM}.yaml"))
    where = item.relative_to(nasty.root).as_posix()
    nasty.write(COPY, item.read_text())
    nasty.write(QUOTE, f"They say: {THIRD}\n")
    git("add", ".")
    git("commit", "-qm", f"Copy {ITEM}\n\n{THIRD}")
    git("checkout", "-q", "feature")
    nasty.write("src/feature.c", "int feature;\n")
    git("add", ".")
    git("commit", "-qm", "A feature")
    git("checkout", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "Merge the feature", "feature")
    # amended, so that the commit before is only in the reflog
    nasty.write("src/main.c", "int main(void) { return 1; }\n")
    git("commit", "-qam", "Wrong")
    git("commit", "-q", "--amend", "-m", "Right")
    # stashed twice, one of them dropped
    for text in (STASHED, STASHED + " for now"):
        item.write_text(item.read_text().replace(THIRD, text))
        nasty.write("src/main.c", "int main(void) { return 2; }\n")
        git("stash", "-q")
    git("stash", "drop", "-q")
    git("notes", "add", "-m", "Seen", "HEAD")
    git("notes", "add", "-m", "Nothing of it", "v1^{commit}")
    git("hash-object", "-w", "--stdin", data=item.read_bytes().replace(THIRD.encode(), LOOSE.encode()))
    _signed(nasty)
    git("update-ref", "refs/remotes/origin/main", "HEAD~1")
    git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git("config", "remote.origin.url", "https://user:token@example.org/team.git")
    git("reset", "-q", "--soft", "HEAD~1")
    git("reset", "-q", "--soft", "ORIG_HEAD")
    git("commit-graph", "write", "--reachable")
    nasty.write(".git/rr-cache/0a/preimage", f"<<<<<<<\n{FIRST}\n")
    assert git("ls-files", "--", where).strip() == where
    assert git("status", "--porcelain") == ""


def _signed(nasty: Nasty) -> None:
    """A signed commit on a branch of its own: the signature is none that anybody could check."""
    raw = nasty.git("cat-file", "commit", "HEAD").encode("utf-8", "surrogateescape")
    head, _, _ = raw.partition(b"\n\n")
    message = b"Signed\n"
    lines = b"\ngpgsig -----BEGIN SSH SIGNATURE-----\n abc\n -----END SSH SIGNATURE-----\n\n"
    made = nasty.git("hash-object", "-t", "commit", "-w", "--stdin", data=head + lines + message).strip()
    nasty.git("branch", "signed", made)
