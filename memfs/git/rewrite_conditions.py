"""Checks whether history may be rewritten at all.

Each refusal names its reason and the way out. Only looks; nothing is changed.
"""

from __future__ import annotations

import os
import time
import tomllib
from itertools import pairwise
from pathlib import Path

from memfs.config_names import SETTINGS_FILE
from memfs.errors import EraseRefused, GitFailed
from memfs.fs import io
from memfs.git.busy import running_git, situation
from memfs.git.commit_object import SOURCE, parse_commit
from memfs.git.layout import read_config
from memfs.git.repository import Repository
from memfs.git.rewrite import PATIENCE
from memfs.git.rewrite_swap import fsck

CUT = "cut"
"""The source of a commit that stands for the history before it."""
_WAY_OUT = (
    "'memfs team branch drop' those of agents, where need be after 'memfs team branch merge'; "
    "'git worktree remove' the others, or 'git worktree prune' those gone"
)
_PATIENCE = 5.0
_PAUSE = 0.05
# What only reads, or lasts as long as an editor is open, is in nobody's way.
_HARMLESS = frozenset(
    {"blame", "cat-file", "check-ignore", "config", "credential-cache--daemon", "describe", "diff", "for-each-ref"}
    | {"fsmonitor--daemon", "grep", "log", "ls-files", "ls-tree", "rev-list", "rev-parse", "show", "status"}
)
# What a killed memfs may have left at work: it would bring back what is taken out, or write into what is prepared.
_OF_OURS = frozenset(
    {"commit-graph", "fetch", "index-pack", "pack-objects", "push", "repack", "unpack-objects", "update-index"}
    | {"update-ref"}
)


def refuse_kind(repository: Repository) -> None:
    """Refuse a repository whose objects are not all its own, or which others work in.

    Raises:
        EraseRefused: with the way out.
    """
    for check in _KINDS:
        check(repository)


def refuse_damage(repository: Repository) -> bool:
    """Refuse a damaged repository; return whether it passes git's strict check, which old ones may not.

    Raises:
        EraseRefused: it is damaged.
    """
    try:
        fsck(repository, strict=True)
    except GitFailed:
        try:
            fsck(repository, strict=False)
        except GitFailed as error:
            raise EraseRefused(
                f"the repository is damaged: {error.message}", hint="'git fsck --full' names what is missing"
            ) from error
        return False
    return True


def refuse_busy(repository: Repository) -> None:
    """Refuse while git is in the middle of something, or a person's own command runs.

    Raises:
        EraseRefused: with the way out.
    """
    until = time.monotonic() + _PATIENCE
    while True:
        found = situation(repository.layout, repository.head(), allow_detached=False)
        reason = found.reason if found else _running(repository)
        if not reason:
            return
        if (found and not found.transient) or time.monotonic() >= until:
            hint = "'git switch' to a branch first" if reason == "HEAD is detached" else "finish it first"
            raise EraseRefused(reason, hint=hint)
        time.sleep(_PAUSE)


def _running(repository: Repository) -> str:
    layout = repository.layout
    for process in running_git():
        folder = Path(process.folder)
        inside = folder.is_relative_to(layout.work_tree) or folder.is_relative_to(layout.common_dir)
        ours = folder.is_relative_to(layout.common_dir / "memfs")
        if inside and (process.verb in _OF_OURS if ours else process.verb not in _HARMLESS):
            return f"git {process.verb} is running (process {process.pid})"
    return ""


# -- sorts of repositories ------------------------------------------------------------------------------------------
def _no_other_trees(repository: Repository) -> None:
    folder = repository.common_dir / "worktrees"
    others = sorted(os.listdir(folder)) if folder.is_dir() else []
    if repository.work_tree.is_relative_to(repository.common_dir):
        raise EraseRefused(
            "a memory on its own branch shares its repository with code",
            hint="do it in a clone of that branch alone: see 'Erasing' in docs/teams/own-branch.md",
        )
    if repository.git_dir != repository.common_dir:
        raise EraseRefused(
            "this is a linked working tree, and others use the same history",
            hint=f"run it in the main working tree; before, {_WAY_OUT}",
        )
    if others:
        raise EraseRefused(
            f"other working trees use this history: {', '.join(others)}",
            hint=_WAY_OUT,
        )


def _no_foreign_objects(repository: Repository) -> None:
    top = repository.common_dir / "objects"
    if (
        any(path.is_symlink() for path in (top, *top.iterdir()))
        or os.stat(top).st_dev != os.stat(repository.state).st_dev
    ):
        raise EraseRefused("the objects lie elsewhere", path=str(top), hint="move them into the git folder")
    for name in ("alternates", "http-alternates"):
        if (top / "info" / name).exists():
            raise EraseRefused(
                "the repository borrows objects from another one",
                path=str(top / "info" / name),
                hint="'git repack -a -d' and remove that file; then erase in the other one, too",
            )


def _whole(repository: Repository) -> None:
    if (repository.common_dir / "shallow").exists():
        raise EraseRefused("this is a shallow clone", hint="'git fetch --unshallow' first")
    settings = read_config(repository.common_dir / "config")
    promised = any(name.startswith("remote.") and name.endswith(".promisor") for name in settings)
    if promised or "extensions.partialclone" in settings:
        raise EraseRefused("this is a partial clone", hint="clone it anew without --filter")


def _not_replaced(repository: Repository) -> None:
    common = repository.common_dir
    packed = common / "packed-refs"
    named = packed.exists() and b" refs/replace/" in io.read_file(packed)
    if named or any(names for _, _, names in os.walk(common / "refs/replace")) or (common / "info/grafts").exists():
        raise EraseRefused(
            "the repository replaces objects by others", hint="'git replace -d' them, and remove .git/info/grafts"
        )


def _plain_index(repository: Repository) -> None:
    if any(name.startswith("sharedindex.") for name in os.listdir(repository.git_dir)):
        raise EraseRefused(
            "the index is split", hint="'git update-index --no-split-index' and remove .git/sharedindex.*"
        )


def _no_submodule(repository: Repository) -> None:
    parts = repository.common_dir.parts
    if any(above == ".git" and name == "modules" for above, name in pairwise(parts)):
        raise EraseRefused(
            "this repository is a submodule: the one above it names its commits",
            hint="clone it on its own, erase there, and name the new commit above",
        )


_KINDS = (_no_other_trees, _no_foreign_objects, _whole, _not_replaced, _plain_index, _no_submodule)


def is_shared(repository: Repository) -> bool:
    """Whether memfs did not make the repository: its first commit would be memfs's own, and say so.

    That is the one of ``init``, or the one that a cut of the history of such a repository put first.
    """
    head = repository.head_commit()
    if head is None:
        return repository.prefix != ""
    roots = repository.git.run("rev-list", "--max-parents=0", head, timeout=PATIENCE).decode().split()
    if len(roots) != 1 or repository.prefix:
        return True
    first = parse_commit(repository.object(roots[0]).data)
    settings = repository.read(roots[0], SETTINGS_FILE)
    try:
        adopt = tomllib.loads((settings or b"").decode()).get("history", {}).get("adopt")
    except (ValueError, AttributeError):
        adopt = None
    sources = first.trailers.get(SOURCE, ())
    return CUT not in sources and ("init" not in sources or adopt != "auto")
