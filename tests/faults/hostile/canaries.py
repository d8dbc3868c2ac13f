"""A hostile repository: whatever of it is run leaves a canary.

Plants every setting, hook, attribute and file by which a repository that came from elsewhere can make git, or a program
that reads it, run something. ``sing`` is the control: ordinary git, which must leave canaries.
"""

from __future__ import annotations

import os
import pickle
import subprocess
from pathlib import Path

HOOKS = (
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-pre-submit",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
)
ATTRIBUTES = "* filter=evil diff=evil merge=evil\n"


class Canaries:
    """The marks that a hostile repository leaves when something of it runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        self._scripts = folder.with_name(folder.name + "-scripts")
        self._scripts.mkdir(exist_ok=True)

    def found(self) -> list[str]:
        """What has run so far."""
        return sorted(path.name for path in self.folder.iterdir())

    def script(self, name: str, place: Path | None = None) -> str:
        """A program that leaves a mark with this name."""
        path = place or self._scripts / name
        path.write_text(f"#!/bin/sh\necho ran >> '{self.folder}/{name}'\ncat 2>/dev/null </dev/null\nexit 0\n")
        path.chmod(0o755)
        return str(path)

    def pickled(self, name: str) -> bytes:
        """A pickle that leaves a mark when it is loaded."""
        return pickle.dumps(_Mark(f"echo ran >> '{self.folder}/{name}'"))


class _Mark:
    def __init__(self, command: str) -> None:
        self._command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (self._command,)


def plant(root: Path, canaries: Canaries) -> None:
    """Make the repository around a workspace hostile in every way there is."""
    git_dir = root / ".git"
    _plant_config(root, git_dir, canaries)
    (git_dir / "hooks").mkdir(exist_ok=True)
    (root / ".evil-hooks").mkdir()
    for name in HOOKS:
        canaries.script(f"hook {name}", git_dir / "hooks" / name)
        canaries.script(f"hooksPath {name}", root / ".evil-hooks" / name)
    (git_dir / "info").mkdir(exist_ok=True)
    (git_dir / "info" / "attributes").write_text(ATTRIBUTES)
    (root / ".gitattributes").write_text(ATTRIBUTES)
    for folder in (root / "ContextMemory/memories", root / "ContextMemory/memories/knowledge"):
        (folder / ".gitattributes").write_text(ATTRIBUTES)
    _plant_repositories(root, canaries)
    _plant_indexes(root, canaries)
    _plant_programs(root, canaries)


def _plant_config(root: Path, git_dir: Path, canaries: Canaries) -> None:
    run = canaries.script
    included = root / ".included"
    included.write_text(f"[core]\n\tfsmonitor = {run('included fsmonitor')}\n\tpager = {run('included pager')}\n")
    sections = {
        "core": {
            "fsmonitor": run("fsmonitor"),
            "hooksPath": ".evil-hooks",
            "sshCommand": run("sshCommand"),
            "pager": run("pager"),
            "editor": run("editor"),
            "askPass": run("askPass"),
            "gitProxy": run("gitProxy"),
            "alternateRefsCommand": run("alternateRefsCommand"),
            "attributesFile": str(root / ".gitattributes"),
            "untrackedCache": "true",
            "splitIndex": "true",
            "sharedRepository": "0666",
        },
        "pager": {
            verb: run(f"pager {verb}") for verb in ("log", "diff", "show", "blame", "status", "branch", "config")
        },
        "credential": {"helper": "!" + run("credential")},
        "diff": {"external": run("diff.external")},
        'diff "evil"': {"textconv": run("textconv"), "command": run("diff.command"), "cachetextconv": "true"},
        'filter "evil"': {"clean": run("clean"), "smudge": run("smudge"), "required": "true"},
        'merge "evil"': {"driver": run("merge driver")},
        "gpg": {"program": run("gpg.program"), "format": "openpgp"},
        'gpg "ssh"': {"program": run("gpg.ssh"), "defaultKeyCommand": run("defaultKeyCommand")},
        "commit": {"gpgSign": "true", "template": str(root / ".gitattributes")},
        "tag": {"gpgSign": "true"},
        "log": {"showSignature": "true"},
        "sequence": {"editor": run("sequence.editor")},
        "interactive": {"diffFilter": run("diffFilter")},
        "uploadpack": {"packObjectsHook": run("packObjectsHook")},
        "gc": {"auto": "1", "recentObjectsHook": run("recentObjectsHook")},
        "maintenance": {"auto": "true"},
        "alias": {verb: "!" + run(f"alias {verb}") for verb in ("st", "ls-tree", "cat-file", "log", "status")},
        "init": {"templateDir": str(root / ".evil-template")},
        'hook "evil"': {"command": run("hook.command"), "event": "reference-transaction"},
        'submodule "evil"': {"url": "ext::" + run("submodule url"), "update": "!" + run("submodule update")},
        'remote "origin"': {
            "url": "ext::" + run("ext url"),
            "fetch": "+refs/heads/*:refs/remotes/origin/*",
            "uploadpack": run("remote.uploadpack"),
            "promisor": "true",
            "partialclonefilter": "blob:none",
            "proxy": run("proxy"),
        },
        "include": {"path": str(included)},
        'includeIf "gitdir:/"': {"path": str(included)},
    }
    with (git_dir / "config").open("a") as file:
        for section, values in sections.items():
            file.write(f"[{section}]\n")
            for name, value in values.items():
                file.write(f'\t{name} = "{value}"\n')
    template = root / ".evil-template" / "hooks"
    template.mkdir(parents=True)
    run("template post-checkout", template / "post-checkout")


def _plant_repositories(root: Path, canaries: Canaries) -> None:
    """Bare repositories in the working tree, where git would find one from inside."""
    for place in (root / "ContextMemory/memories/bare.git", root / "bare"):
        (place / "objects").mkdir(parents=True)
        (place / "refs").mkdir()
        (place / "HEAD").write_text("ref: refs/heads/main\n")
        (place / "config").write_text(
            f"[core]\n\tbare = false\n\tworktree = {root}\n\tfsmonitor = {canaries.script('embedded fsmonitor')}\n"
        )
    (root / ".gitmodules").write_text(
        f'[submodule "evil"]\n\tpath = ContextMemory/memories/evil\n\turl = ext::{canaries.script("gitmodules url")}\n'
        f"\tupdate = !{canaries.script('gitmodules update')}\n"
    )


def _plant_indexes(root: Path, canaries: Canaries) -> None:
    """Search indexes that run something when they are opened, wherever a program might look for one."""
    folders = (
        ".memfs",
        ".memfs/index",
        ".cache/memfs",
        "ContextMemory/.index",
        "ContextMemory/index",
        ".git/memfs/index",
    )
    for folder in folders:
        (root / folder).mkdir(parents=True, exist_ok=True)
        for name in ("_MAIN_1.toc", "MAIN_WRITELOCK", "index.pickle", "current", "stamps"):
            (root / folder / name).write_bytes(canaries.pickled(f"pickle {folder.replace('/', '_')} {name}"))


def _plant_programs(root: Path, canaries: Canaries) -> None:
    """Programs and modules with the names of those that memfs uses."""
    canaries.script("git in the tree", root / "git")
    canaries.script("editor in the tree", root / "vi")
    for module in ("yaml", "click", "whoosh", "watchdog", "snowballstemmer", "sitecustomize", "conftest"):
        (root / f"{module}.py").write_text(
            f"import pathlib\npathlib.Path({str(canaries.folder / ('module ' + module))!r}).write_text('ran')\n"
            f"raise ImportError('planted')\n"
        )


def sing(root: Path) -> None:
    """The control: what a person does with ordinary git in such a repository."""
    (root / "ContextMemory/memories/knowledge/touched.yaml").write_text("content: touched\n")
    for words in (["status"], ["add", "-A"], ["diff", "HEAD"], ["log", "-p", "-1"], ["commit", "-m", "x"]):
        subprocess.run(["git", "-C", str(root), *words], capture_output=True, check=False, stdin=subprocess.DEVNULL)
