"""Write the hooks, the server and a skill into a folder that Claude Code loads as a plugin.

Files that somebody edited are not removed. Texts come from ``plugins/claude-code``, beside the package or in it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memfs.doors.claude_code import installer
from memfs.doors.claude_code.settings_file import SettingsChange, SettingsFile
from memfs.errors import MemfsError
from memfs.fs import io
from memfs.resources import plugin_text
from memfs.version import __version__

MANIFEST = ".claude-plugin/plugin.json"
_TEXTS = ("skills/memory/SKILL.md", "README.md")
_SUMMARY = "Memory that lives as plain files in git: remembers by itself, and reminds before it hurts."


def files() -> dict[str, str]:
    """Every file of the folder, by its path in it."""
    manifest = {
        "name": installer.COMMAND,
        "version": __version__,
        "description": _SUMMARY,
        "author": {"name": installer.COMMAND},
        "license": "Apache-2.0",
        "keywords": ["memory", "git", "agents"],
    }
    hooks = {event: [group] for event, group in installer.handler_groups(installer.COMMAND).items()}
    return {
        MANIFEST: _json(manifest),
        "hooks/hooks.json": _json({"description": _SUMMARY, "hooks": hooks}),
        ".mcp.json": _json({"mcpServers": {installer.COMMAND: installer.server_entry(installer.COMMAND)}}),
        **{name: plugin_text(f"claude-code/{name}") for name in _TEXTS},
    }


def lay(folder: Path, *, dry: bool = False) -> tuple[SettingsChange, ...]:
    """Write the files into a folder, or bring them up to date; others in it stay.

    Raises:
        MemfsError: the folder holds something else.
        StorageIO: it cannot be written.
    """
    _refuse_other(folder)
    done = []
    for name, text in files().items():
        file = SettingsFile(path=folder / name, within=folder)
        if not dry:
            _make_folders(file.path.parent)
        done.append(_change(file, text, dry))
    return tuple(done)


def remove(folder: Path, *, dry: bool = False) -> tuple[SettingsChange, ...]:
    """Take the files away again, and the folders that are then empty; what somebody edited stays.

    Raises:
        what ``lay`` raises.
    """
    _refuse_other(folder)
    done = []
    for name, text in reversed(files().items()):  # the manifest last: it says that the folder is memfs's
        file = SettingsFile(path=folder / name, within=folder)
        done.append(_change(file, None if file.read() == text else file.read(), dry))
    if not dry:
        for name in sorted({str(Path(name).parent) for name in files()} | {"skills"}, key=len, reverse=True):
            _remove_folder(folder / name)
    return tuple(done)


def _change(file: SettingsFile, text: str | None, dry: bool) -> SettingsChange:
    return file.preview(lambda _: text) if dry else file.rewrite(lambda _: text)


def _refuse_other(folder: Path) -> None:
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    manifest = SettingsFile(path=folder / MANIFEST, within=folder).read()
    try:
        said: Any = json.loads(manifest or "null")
    except ValueError:
        said = None
    if not isinstance(said, dict) or said.get("name") != installer.COMMAND:
        raise MemfsError("this folder holds something else", path=str(folder), hint="name a new or empty folder")


def _make_folders(folder: Path) -> None:
    if not folder.is_dir():
        _make_folders(folder.parent)
        io.mkdir(folder)
        io.sync_folder(folder.parent)


def _remove_folder(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        io.rmdir(folder)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
