"""Everything in a git folder that names objects: refs, reflogs, ``ORIG_HEAD`` and its like; read, and written anew.

Owns the form of those files and the order in which all refs change at once. Which id becomes which it is told.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from memfs.errors import HistoryUnavailable
from memfs.files import io
from memfs.history.layout import Layout
from memfs.history.refs import HEX, NULL, PER_WORKTREE, parse_packed
from memfs.history.rewrite_text import Traces, edit_lines, edit_reflog, ids_in

_HEADER = b"# pack-refs with: sorted \n"
_HEADS = re.compile(r"[A-Z_]*HEAD|AUTO_MERGE")
_MESSAGES = re.compile(r"[A-Z_]+(?:_EDITMSG|_MSG|_DESCRIPTION)|ADD_EDIT\.patch|SQUASH_MSG|MERGE_MSG")
_SMALL = 1 << 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What names objects at one moment.

    Attributes:
        packed, loose: id by ref; a loose one holds before a packed one. Symbolic refs name no object and are left out.
        logs: content of each reflog, by its path below ``logs/``.
        heads: content of ``ORIG_HEAD``, ``FETCH_HEAD`` and their like, and of ``HEAD`` itself.
    """

    packed: Mapping[str, str]
    loose: Mapping[str, str]
    logs: Mapping[str, bytes]
    heads: Mapping[str, bytes]

    @property
    def refs(self) -> dict[str, str]:
        """The id that each ref names."""
        return {**self.packed, **self.loose}

    def ids(self, heads: bool = True) -> set[str]:
        """Every id that is named anywhere; without ``heads`` not those whose objects git does not keep."""
        found = set(self.refs.values())
        for text in (*self.logs.values(), *(self.heads.values() if heads else ())):
            found |= ids_in(text)
        return found - {NULL}


def read_names(layout: Layout) -> Names:
    """What names objects now.

    Raises:
        HistoryUnavailable: a ref cannot be read.
    """
    common = layout.common_dir
    loose = {}
    for path in _files(common / "refs"):
        ref = path.relative_to(common).as_posix()
        if ref.endswith(".lock"):
            continue
        text = os.fsdecode(io.read_file(path, _SMALL)).strip()
        if text.startswith("ref:"):
            continue
        if not HEX.fullmatch(text):
            raise HistoryUnavailable(f"{ref} is unreadable", path=str(path), hint="run git fsck")
        loose[ref] = text
    logs = {
        path.relative_to(common / "logs").as_posix(): io.read_file(path, _SMALL) for path in _files(common / "logs")
    }
    heads = {
        path.name: io.read_file(path, _SMALL)
        for path in sorted(layout.git_dir.iterdir())
        if _HEADS.fullmatch(path.name) and _is_file(path)
    }
    return Names(packed=_read_packed(common / "packed-refs"), loose=loose, logs=logs, heads=heads)


def packed_text(refs: Mapping[str, str]) -> bytes:
    """The content of ``packed-refs`` for these refs."""
    rows = sorted((os.fsencode(ref), found.encode()) for ref, found in refs.items())
    return _HEADER + b"".join(b"%s %s\n" % (found, ref) for ref, found in rows)


def changed_loose(names: Names, mapped: Mapping[str, str]) -> list[str]:
    """The refs with a file of their own whose id changes."""
    return [ref for ref, found in names.loose.items() if found in mapped]


def turn(layout: Layout, names: Names, mapped: Mapping[str, str]) -> None:
    """Change every ref at once; the caller holds their locks and that of ``packed-refs``.

    Until the last rename every ref names what it named before. A ref whose id becomes ``NULL`` is gone then.
    """
    common = layout.common_dir
    changed = changed_loose(names, mapped)
    shared = [ref for ref in changed if not ref.startswith(PER_WORKTREE)]
    before = {**names.packed, **{ref: names.loose[ref] for ref in shared}}
    if shared:
        _rewrite(common / "packed-refs", packed_text(before))
    for ref in shared:
        io.unlink(common / ref, missing_ok=True)
    for folder in {(common / ref).parent for ref in shared}:
        io.sync_folder(folder)
    after = _turned(before, mapped)
    if after != before:
        _rewrite(common / "packed-refs", packed_text(after))
    for ref in set(changed) - set(shared):
        _rewrite(common / ref, f"{mapped[names.loose[ref]]}\n".encode())


def edit_logs(layout: Layout, mapped: Mapping[str, str], traces: Traces) -> int:
    """Write the reflogs, ``ORIG_HEAD`` and its like anew where they name what was replaced; return how many files."""
    count = 0
    for path in _files(layout.common_dir / "logs"):
        count += _edit(path, lambda data: edit_reflog(data, mapped, traces))
    if _is_file(layout.common_dir / "info/refs"):
        count += _edit(layout.common_dir / "info/refs", lambda data: edit_lines(data, mapped))
    for path in sorted(layout.git_dir.iterdir()):
        if path.name != "HEAD" and _HEADS.fullmatch(path.name) and _is_file(path):
            count += _edit(path, lambda data: traces.redact(edit_lines(data, mapped)))
        elif _MESSAGES.fullmatch(path.name) and _is_file(path):
            count += _edit(path, lambda data: traces.redact(data))
    return count


def new_names(names: Names, mapped: Mapping[str, str], traces: Traces) -> Names:
    """What will name objects when all is done."""
    return Names(
        packed=_turned(names.refs, mapped),
        loose={},
        logs={path: edit_reflog(data, mapped, traces) for path, data in names.logs.items()},
        heads={name: edit_lines(data, mapped) for name, data in names.heads.items()},
    )


def _turned(refs: Mapping[str, str], mapped: Mapping[str, str]) -> dict[str, str]:
    after = {ref: mapped.get(found, found) for ref, found in refs.items()}
    return {ref: found for ref, found in after.items() if found != NULL}


def _edit(path: Path, edit: Callable[[bytes], bytes]) -> int:
    before = io.read_file(path, _SMALL)
    after = edit(before)
    if after == before:
        return 0
    if after:
        _rewrite(path, after)
    else:
        io.unlink(path, missing_ok=True)
    return 1


def _rewrite(path: Path, data: bytes) -> None:
    mode = stat.S_IMODE(os.stat(path if path.exists() else path.with_name("HEAD")).st_mode)
    io.write_file(path, data, mode)
    if stat.S_IMODE(os.stat(path).st_mode) != mode:
        io.chmod(path, mode)


def _read_packed(path: Path) -> dict[str, str]:
    try:
        return parse_packed(io.read_file(path))
    except FileNotFoundError:
        return {}


def _files(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (path for name in sorted(names) if _is_file(path := Path(place) / name))


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False
