"""Removes an item from single git objects, reflogs and refs: bytes in, bytes out.

Renames ids wherever they occur, and cuts texts that would betray the item. A commit or tag that changes loses its
signature.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from memfs.dataclass import dataclass
from memfs.fs import io
from memfs.git.commit_object import headers
from memfs.git.layout import Layout
from memfs.git.refs import NULL, PER_WORKTREE
from memfs.git.repository import Repository

ERASED = b"[erased]"
_TELLING = 12
_TO = slice(41, 81)  # of a line of a reflog: the id that the ref had afterwards
_SIGNED = (b"gpgsig", b"gpgsig-sha256", b"mergetag")
_NO_PARENT = b"parent " + NULL.encode()
_SIGNATURE = re.compile(rb"^-----BEGIN (?:PGP|SSH|SIGNED) (?:SIGNATURE|MESSAGE)-----", re.MULTILINE)
_ID = re.compile(rb"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")
_OWN = re.compile(rb"[-0-9 ]|[^\x00-\x7f]")
_NEVER = re.compile(rb"(?!)")
_ENTRY = re.compile(rb"(\d+) ([^\0]+)\0(.{20})", re.DOTALL)
_ID_ONLY = re.compile(rb"\d+ [^\0]+\0(.{20})", re.DOTALL)
_FOLDER = re.compile(rb"(?:1\d+ [^\0]+\0.{20})*+0?40000 ([^\0]+)\0(.{20})", re.DOTALL)


@dataclass(frozen=True)
class Traces:
    """What betrays an item.

    Attributes:
        versions: for each version its phrases: whole lines and values, as they are in a file.
        names: what it is called in messages: its ids, and its words as commits say them.
    """

    versions: tuple[frozenset[bytes], ...]
    names: tuple[bytes, ...]

    @cached_property
    def phrases(self) -> tuple[bytes, ...]:
        """Every phrase of every version, the longest first."""
        return tuple(sorted(frozenset().union(*self.versions), key=lambda phrase: (-len(phrase), phrase)))

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        return re.compile(b"|".join(map(re.escape, self.phrases))) if self.phrases else _NEVER

    @cached_property
    def telling(self) -> tuple[bytes, ...]:
        """The names that are so much its own that they go from any message, not only from those about the item."""
        return tuple(name for name in self.names if len(name) >= _TELLING and _OWN.search(name))

    @cached_property
    def _any_name(self) -> re.Pattern[bytes]:
        return _words(self.names)

    @cached_property
    def _telling_name(self) -> re.Pattern[bytes]:
        return _words(self.telling)

    def quoted_in(self, data: bytes) -> bool:
        """Whether some phrase is there."""
        return any(phrase in data for phrase in self.phrases)

    def copied_in(self, pieces: Iterable[bytes]) -> bool:
        """Whether all phrases of some version are in a text that comes in pieces."""
        found: set[bytes] = set()
        before = b""
        for data in pieces:
            window = before + data
            found.update(phrase for phrase in self.phrases if phrase not in found and phrase in window)
            before = window[-len(self.phrases[0]) :] if self.phrases else b""
        return any(version and version <= found for version in self.versions)

    def redact(self, text: bytes, names: bool = False) -> bytes:
        """The text without phrases and telling names; with ``names`` without the others, too."""
        plain = self._pattern.sub(ERASED, text)
        return (self._any_name if names else self._telling_name).sub(ERASED, plain)


NO_TRACES = Traces(versions=(), names=())


def _words(names: Collection[bytes]) -> re.Pattern[bytes]:
    if not names:
        return _NEVER
    words = b"|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rb"(?<![A-Za-z0-9._-])(?:%s)(?![A-Za-z0-9_-]|\.[A-Za-z0-9])" % words, re.IGNORECASE)


def entries(tree: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """Mode, name and binary id of everything in a tree, as it stands there."""
    return _ENTRY.findall(tree)


def folders(tree: bytes) -> list[tuple[bytes, str]]:
    """Name and id of the folders in a tree; the files between them are skipped without a look."""
    rows = []
    found = _FOLDER.match(tree)
    while found is not None:  # not by findall, which would look for a beginning at every byte
        rows.append((found[1], found[2].hex()))
        found = _FOLDER.match(tree, found.end())
    return rows


def ids(tree: bytes) -> set[bytes]:
    """The binary ids in a tree."""
    return set(_ID_ONLY.findall(tree))


def edit_tree(tree: bytes, cut: Collection[bytes], table: Mapping[bytes, bytes | None]) -> bytes:
    """A tree without some names, and with other ids; those that become None are left out.

    All other bytes stay as they are, so that an old tree of a strange form stays one.
    """
    kept = []
    for mode, name, found in entries(tree):
        new = table.get(found, found)
        if new is not None and name not in cut:
            kept.append(b"%s %s\0%s" % (mode, name, new))
    return b"".join(kept)


def named_in_commit(data: bytes) -> tuple[str, tuple[str, ...]]:
    """Tree and parents of a commit."""
    rows = [line.partition(b" ") for line in headers(data)[0]]
    tree = next((value.decode("ascii", "replace") for name, _, value in rows if name == b"tree"), "")
    return tree, tuple(value.decode("ascii", "replace") for name, _, value in rows if name == b"parent")


def edit_commit(data: bytes, replaced: Mapping[str, str], traces: Traces, names: bool) -> bytes:
    """A commit with other ids and a message without traces; one that changes loses its signatures.

    A parent that becomes ``NULL`` is left out.
    """
    rows, message = headers(data)
    new = [_replace_id(line, (b"tree", b"parent"), replaced) for line in rows]
    plain = traces.redact(message, names)
    if new == rows and plain == message:
        return data
    kept = [line for line in new if line.split(b" ", 1)[0] not in _SIGNED and line != _NO_PARENT]
    return b"\n".join(kept) + b"\n\n" + plain


def edit_tag(data: bytes, replaced: Mapping[str, str], traces: Traces) -> bytes:
    """As ``edit_commit``, for an annotated tag."""
    rows, message = headers(data)
    new = [_replace_id(line, (b"object",), replaced) for line in rows]
    plain = traces.redact(message)
    if new == rows and plain == message:
        return data
    signature = _SIGNATURE.search(plain)
    return b"\n".join(new) + b"\n\n" + (plain[: signature.start()] if signature else plain)


def is_signed(data: bytes) -> bool:
    """Whether a commit or tag carries a signature."""
    rows, message = headers(data)
    return any(line.startswith(b"gpgsig") for line in rows) or (
        rows[0].startswith(b"object ") and _SIGNATURE.search(message) is not None
    )


def edit_reflog(data: bytes, replaced: Mapping[str, str], traces: Traces) -> bytes:
    """A reflog with other ids, in its messages, too, and messages without traces.

    A step to a commit that becomes ``NULL`` is left out; one from there begins with nothing.
    """
    lines = []
    for line in data.split(b"\n"):
        if replaced.get(line[_TO].decode("ascii", "replace")) == NULL:
            continue
        facts, tab, message = edit_ids(line, replaced).partition(b"\t")
        lines.append(facts + tab + traces.redact(message))
    return b"\n".join(lines)


def edit_lines(data: bytes, replaced: Mapping[str, str]) -> bytes:
    """Lines that name objects, with other ids; those that name one which becomes ``NULL`` are left out."""
    lines = data.splitlines(keepends=True)
    return b"".join(edit_ids(line, replaced) for line in lines if NULL not in map(replaced.get, ids_in(line)))


def edit_ids(text: bytes, replaced: Mapping[str, str]) -> bytes:
    """A text with the ids in it replaced."""
    return _ID.sub(lambda found: replaced.get(found[0].decode(), found[0].decode()).encode(), text)


def ids_in(text: bytes) -> set[str]:
    """Every object id in a text."""
    return {found.decode() for found in _ID.findall(text)}


def _replace_id(line: bytes, fields: Collection[bytes], replaced: Mapping[str, str]) -> bytes:
    name, _, value = line.partition(b" ")
    if name not in fields:
        return line
    old = value.decode("ascii", "replace")
    return name + b" " + replaced.get(old, old).encode()


_HEADER = b"# pack-refs with: sorted \n"
_HEADS = re.compile(r"[A-Z_]*HEAD|AUTO_MERGE")
_MESSAGES = re.compile(r"[A-Z_]+(?:_EDITMSG|_MSG|_DESCRIPTION)|ADD_EDIT\.patch|SQUASH_MSG|MERGE_MSG")
_SMALL = 1 << 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What names objects at one moment.

    Attributes:
        refs: id by ref. Symbolic refs name no object and are left out.
        logs: content of each reflog, by its path below ``logs/``.
        heads: content of ``ORIG_HEAD``, ``FETCH_HEAD`` and their like, and of ``HEAD`` itself.
    """

    refs: Mapping[str, str]
    logs: Mapping[str, bytes]
    heads: Mapping[str, bytes]

    def ids(self, heads: bool = True) -> set[str]:
        """Every id that is named anywhere; without ``heads`` not those whose objects git does not keep."""
        found = set(self.refs.values())
        for text in (*self.logs.values(), *(self.heads.values() if heads else ())):
            found |= ids_in(text)
        return found - {NULL}


def read_names(repository: Repository) -> Names:
    """What names objects now.

    Raises:
        GitFailed: a ref cannot be read.
    """
    logs = repository.common_dir / "logs"
    out = repository.git.run("for-each-ref", "--format=%(objectname) %(refname) %(symref)")
    rows = (os.fsdecode(line).split(" ") for line in out.splitlines())
    return Names(
        refs={ref: found for found, ref, symbolic in rows if not symbolic},
        logs={path.relative_to(logs).as_posix(): io.read_file(path, _SMALL) for path in files_below(logs)},
        heads={path.name: io.read_file(path, _SMALL) for path in _files_like(_HEADS, repository.git_dir)},
    )


def packed_text(refs: Mapping[str, str]) -> bytes:
    """The content of ``packed-refs`` for these refs."""
    rows = sorted((os.fsencode(ref), found.encode()) for ref, found in refs.items())
    return _HEADER + b"".join(b"%s %s\n" % (found, ref) for ref, found in rows)


def changed_loose(layout: Layout, names: Names, mapped: Mapping[str, str]) -> list[str]:
    """The refs with a file of their own whose id changes."""
    return [ref for ref, found in names.refs.items() if found in mapped and _is_file(layout.common_dir / ref)]


def turn(layout: Layout, names: Names, mapped: Mapping[str, str]) -> None:
    """Change every ref at once; the caller holds their locks and that of ``packed-refs``.

    Until the last rename every ref names what it named before. A ref whose id becomes ``NULL`` is gone then.
    """
    common = layout.common_dir
    before = {ref: found for ref, found in names.refs.items() if not ref.startswith(PER_WORKTREE)}
    changed = changed_loose(layout, names, mapped)
    shared = [ref for ref in changed if ref in before]
    if shared:
        _rewrite(common / "packed-refs", packed_text(before))
    for ref in shared:
        io.unlink(common / ref, missing_ok=True)
    for folder in {(common / ref).parent for ref in shared}:
        io.sync_folder(folder)
    after = {ref: mapped.get(found, found) for ref, found in before.items()}
    if after != before:
        _rewrite(common / "packed-refs", packed_text({ref: found for ref, found in after.items() if found != NULL}))
    for ref in set(changed) - set(shared):
        _rewrite(common / ref, f"{mapped[names.refs[ref]]}\n".encode())


def edit_logs(layout: Layout, mapped: Mapping[str, str], traces: Traces) -> None:
    """Write the reflogs, ``ORIG_HEAD`` and its like again where they name what was replaced."""
    for path in files_below(layout.common_dir / "logs"):
        _edit(path, lambda data: edit_reflog(data, mapped, traces))
    if _is_file(layout.common_dir / "info/refs"):
        _edit(layout.common_dir / "info/refs", lambda data: edit_lines(data, mapped))
    for path in _files_like(_HEADS, layout.git_dir):
        if path.name != "HEAD":
            _edit(path, lambda data: traces.redact(edit_lines(data, mapped)))
    for path in _files_like(_MESSAGES, layout.git_dir):
        _edit(path, traces.redact)


def _edit(path: Path, edit: Callable[[bytes], bytes]) -> None:
    before = io.read_file(path, _SMALL)
    after = edit(before)
    if after and after != before:
        _rewrite(path, after)
    elif after != before:
        io.unlink(path, missing_ok=True)


def _rewrite(path: Path, data: bytes) -> None:
    mode = stat.S_IMODE(os.stat(path if path.exists() else path.with_name("HEAD")).st_mode)
    io.write_file(path, data, mode)
    if stat.S_IMODE(os.stat(path).st_mode) != mode:
        io.chmod(path, mode)


def _files_like(pattern: re.Pattern[str], folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if pattern.fullmatch(path.name) and _is_file(path)]


def files_below(folder: Path) -> Iterator[Path]:
    """Every regular file at or below a folder; no link is followed."""
    for place, _, names in os.walk(folder):
        yield from (path for name in sorted(names) if _is_file(path := Path(place) / name))


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False
