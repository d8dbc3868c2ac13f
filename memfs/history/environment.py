"""The environment that our git processes run in, whatever the caller's is.

Owns what is dropped (every ``GIT_*``), what is switched off (hooks, monitors, pagers, prompts, replacement objects,
every transport), and how durable git's own writes are. Starts nothing.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from memfs.history.layout import Layout

_DROPPED = frozenset({"LANG", "LANGUAGE", "PAGER", "EDITOR", "VISUAL", "SSH_ASKPASS", "LESS", "LV", "TERM", "EMAIL"})
_FIXED = {
    "LC_ALL": "C",
    "LANGUAGE": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_PAGER": "cat",
    "GIT_EDITOR": ":",
    "GIT_ASKPASS": "",
    "GIT_DEFAULT_HASH": "sha1",
    "GIT_DEFAULT_REF_FORMAT": "files",
}
SETTINGS = {
    "advice.graftFileDeprecated": "false",  # it would stand before git's reason in every error
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.editor": ":",
    "core.askPass": "",
    "core.sshCommand": "false",
    "core.untrackedCache": "keep",
    "core.fsync": "committed,reference",
    "core.useReplaceRefs": "false",
    "credential.helper": "",
    "diff.external": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "log.showSignature": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
}
# How a person reaches their remotes: by environment, and by settings of their own that SETTINGS would switch off.
_PERSONS = ("GIT_CONFIG_", "GIT_SSH", "GIT_SSL_", "GIT_PROXY_", "GIT_HTTP_")
_FOR_REMOTES = frozenset({"core.sshCommand", "credential.helper", "protocol.allow"})
_AT_REMOTES = {
    "fetch.recurseSubmodules": "false",
    "fetch.writeCommitGraph": "false",
    "http.lowSpeedLimit": "1",
    "http.lowSpeedTime": "60",
    "push.followTags": "false",
    "push.gpgSign": "false",
    "push.recurseSubmodules": "no",
    "submodule.recurse": "false",
    "transfer.bundleURI": "false",
}
_DIGITS = 5


def scrubbed(outer: Mapping[str, str], layout: Layout | None, folder: Path) -> dict[str, str]:
    """The environment for a git process in this repository, or in none."""
    inner = {name: value for name, value in _plain(outer).items() if not name.startswith("GIT_")}
    for number, (name, value) in enumerate(SETTINGS.items()):
        inner[f"GIT_CONFIG_KEY_{number}"] = name
        inner[f"GIT_CONFIG_VALUE_{number}"] = value
    inner["GIT_CONFIG_COUNT"] = str(len(SETTINGS))
    return inner | _FIXED | _places(layout, folder)


def for_settings(outer: Mapping[str, str], layout: Layout | None, folder: Path) -> dict[str, str]:
    """The environment in which git tells the person's configuration: where it lies stays as the person set it."""
    inner = {
        name: value for name, value in _plain(outer).items() if name.startswith("GIT_CONFIG") or name[:4] != "GIT_"
    }
    return inner | _FIXED | _places(layout, folder)


def for_remote(outer: Mapping[str, str], git_dir: Path, objects: Path, protocols: Collection[str]) -> dict[str, str]:
    """The environment in which git talks to a remote: what the person configured for that holds, for these protocols.

    Args:
        git_dir: a folder of memfs's own that stands for a repository: the settings of the real one are not read.
        objects: the real one's objects.
    """
    inner = {name: value for name, value in _plain(outer).items() if name[:4] != "GIT_" or name.startswith(_PERSONS)}
    settings = {name: value for name, value in SETTINGS.items() if name not in _FOR_REMOTES} | _AT_REMOTES
    count = outer.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isdecimal() and len(count) < _DIGITS else 0
    for number, (name, value) in enumerate(settings.items(), first):
        inner[f"GIT_CONFIG_KEY_{number}"] = name
        inner[f"GIT_CONFIG_VALUE_{number}"] = value
    inner["GIT_CONFIG_COUNT"] = str(first + len(settings))
    places = {"GIT_DIR": str(git_dir), "GIT_OBJECT_DIRECTORY": str(objects)}
    return inner | _FIXED | places | {"GIT_ALLOW_PROTOCOL": ":".join(sorted(protocols))}


def search_path(outer: Mapping[str, str]) -> str:
    """Where programs are looked for: the folders of ``PATH`` that are the same wherever we stand."""
    return os.pathsep.join(filter(os.path.isabs, outer.get("PATH", os.defpath).split(os.pathsep)))


def _plain(outer: Mapping[str, str]) -> dict[str, str]:
    inner = {name: value for name, value in outer.items() if name not in _DROPPED and not name.startswith("LC_")}
    return inner | {"PATH": search_path(outer)}


def _places(layout: Layout | None, folder: Path) -> dict[str, str]:
    # The working folder stands for the working tree: git finds no files and no attributes there to act upon, and takes
    # every path from the top.
    return {"GIT_DIR": str(layout.git_dir) if layout else os.devnull, "GIT_WORK_TREE": str(folder)}
