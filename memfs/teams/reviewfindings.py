"""Review findings: what is wrong, or worth a look, in the files that a change touches (B4; faults rows 17 to 19).

Owns the checks of single files and of ids. What a change does to answers, budget and history is found by the modules
beside this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memfs.errors import ItemSyntaxError, ItemTooLarge, MemfsError, SettingInvalid
from memfs.files import textguard, tomltext
from memfs.files.decoding import decode
from memfs.files.fields import values
from memfs.files.markers import marker_line
from memfs.files.plain import dotted
from memfs.files.remarks import remarks
from memfs.files.rendering import parse
from memfs.files.schema import Schemas
from memfs.files.secrets import ALLOWED, find_likely, found_in_file, reason_in_file, secret_error
from memfs.files.secrets import Finding as Secret
from memfs.files.tomltext import FILE as SETTINGS
from memfs.history.objects import REGULAR
from memfs.model import MemoryItem
from memfs.model.ids import stem_of
from memfs.model.item import BY_TRUST
from memfs.model.problem import ERROR, WARNING
from memfs.model.statepaths import SIDECAR_SUFFIX, document_kind
from memfs.resources import template_text
from memfs.settings import MOUNTS, SPECS
from memfs.store.documents import is_own_file, schema_of
from memfs.store.parts import CONTENT, READ_LIMIT
from memfs.teams.instructions import Instruction, instructions
from memfs.teams.reviewchanges import Changed, mapping_in, texts_of
from memfs.teams.reviewcodes import finding, of_error, of_problem
from memfs.teams.reviewsides import Side
from memfs.teams.reviewvalues import ARCHIVED, REMOVED, Finding, ItemChange

_MOST_IN_FILE = 5
_SHOWN = 80
_SNIFFED = 8_000
_KEPT_APART = (f"{CONTENT}/.schemas/",)
_STATES = ("iterations/", "checkpoints/", "threads/", "aggregates/", "archive/")


def file_findings(before: Side, after: Side, changed: Changed) -> Iterator[Finding]:
    """What is wrong with the files as they are after the change."""
    for path in after.unmerged:
        hint = "memfs resolve finishes the merge"
        yield finding("Unmerged", "several versions of this file wait for a decision", path=path, hint=hint)
    for path in changed.every:
        entry = after.files.get(path)
        if entry is None:
            continue
        yield from _name(path)
        if entry.mode not in REGULAR:
            what = "a link" if entry.mode == "120000" else "a submodule"
            yield finding("LinkInMemory", f"{what} stands here", path=path, hint="replace it by a file")
        elif after.size(path) > READ_LIMIT:
            yield of_error(ItemTooLarge(f"{after.size(path)} bytes, limit {READ_LIMIT}", hint="split it"), path)
        else:
            yield from _content(before, after, path)


def _name(path: str) -> Iterator[Finding]:
    if not path.isprintable() or any(textguard.findings(path)) or textguard.shown(path) != path:
        yield finding("SuspectName", "its name holds characters that nobody sees", path=path, hint="rename it")


def _content(before: Side, after: Side, path: str) -> Iterator[Finding]:
    data = after.data(path) or b""
    if line := marker_line(data):
        hint = "memfs resolve finishes the merge"
        yield finding("ConflictMarkers", "a merge left its markers here", path=path, line=line, hint=hint)
    else:
        yield from _form(after, path, data)
    yield from _secrets(before, path, data)
    yield from _orders(after, path, data)
    if path == SETTINGS:
        yield from _settings(before, path, data)
    elif path == f"{CONTENT}/.gitattributes" and data != template_text("gitattributes").encode():
        yield finding("AttributesChanged", "not as memfs lays them", path=path, hint="memfs check names conflicts")
    elif path.endswith(SIDECAR_SUFFIX) or (b"\0" in data[:_SNIFFED] and not after.is_item(path)):
        # memfs keeps such files beside git: what comes with a change was put there by somebody
        yield finding("NotLookedInto", "what it holds was not looked through", path=path, hint="keep it out of git")
    elif not _is_known(after, path):
        yield finding("UnknownFile", "memfs does not know this file", path=path, hint="keep other files elsewhere")


def _is_known(after: Side, path: str) -> bool:
    if after.is_item(path) or after.is_archived(path) or is_own_file(path) or path.startswith(_KEPT_APART):
        return True
    return path.removeprefix(f"{CONTENT}/").startswith(_STATES)


# -- form ---------------------------------------------------------------------------------------------------------
def _form(after: Side, path: str, data: bytes) -> Iterator[Finding]:
    """What a schema or the reader says."""
    if after.is_item(path):
        found = after.codec.errors(data, path)
        yield from (of_error(error, path) for error in found[:_MOST_IN_FILE])
        if not found:
            yield from (of_problem(one, path) for one in remarks(decode(data), path))
        return
    if after.is_archived(path):
        found_there = after.item(path)
        if isinstance(found_there, MemfsError):
            yield of_error(found_there, path)
    else:
        yield from _document(after, path, data)


def _document(after: Side, path: str, data: bytes) -> Iterator[Finding]:
    schema = schema_of(path)
    try:
        if schema:
            after.codec.read_document(data, path, schema)
        elif path == SETTINGS:
            yield from _settings_form(data)
        text = decode(data).text if data.strip() else ""
    except MemfsError as error:
        if schema or not isinstance(error, ItemSyntaxError) or b"\0" not in data[:_SNIFFED]:
            yield of_error(error, path)
        return
    for one in textguard.findings(text):
        line = text.count("\n", 0, one.offset) + 1
        severity, message = ERROR if one.refused else WARNING, f"unseen character {one.codes}"
        yield Finding(severity=severity, code="InvisibleCharacter", message=message, path=path, line=line)


def _settings_form(data: bytes) -> Iterator[Finding]:
    try:
        mapping = tomltext.parse(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        error = SettingInvalid("not UTF-8 text", hint="save it as UTF-8")
        yield of_error(error, SETTINGS)
    else:
        for wrong in Schemas().check_document(mapping, "memfs_toml")[:_MOST_IN_FILE]:
            found = SettingInvalid(wrong.message, field=dotted(wrong.path) or None, hint=wrong.hint or None)
            yield of_error(found, SETTINGS)


def _settings(before: Side, path: str, data: bytes) -> Iterator[Finding]:
    """Settings that loosen what protects a reader, or reach outside, which a repository's file may only ask for."""
    old, new = (mapping_in(one, path) or {} for one in (before.data(path), data))
    for key, value in _settings_in(new):
        spec = SPECS.get(key)
        personal = key.startswith(f"{MOUNTS}.") or (
            spec is not None and (spec.foreign(value) if isinstance(value, list) else spec.personal)
        )
        if personal and (key, value) not in list(_settings_in(old)) and (spec is None or value != spec.default):
            shown = textguard.shown(repr(value))[:_SHOWN]
            hint = "say in the pull request what it is for"
            yield finding(
                "SettingPersonal", f"{key} = {shown} asks for more than a file may decide", path=path, hint=hint
            )


def _settings_in(tables: object) -> Iterator[tuple[str, object]]:
    for table, entries in tables.items() if isinstance(tables, dict) else ():
        for name, value in entries.items() if isinstance(entries, dict) else ():
            if isinstance(value, dict):
                yield from ((f"{table}.{name}.{inner}", deeper) for inner, deeper in value.items())
            else:
                yield f"{table}.{name}", value


# -- secrets ------------------------------------------------------------------------------------------------------
def _secrets(before: Side, path: str, data: bytes) -> Iterator[Finding]:
    found = found_in_file(data, path)
    reason = reason_in_file(data, path) if found else ""
    if found and not reason:
        yield from (of_error(secret_error(one, path), path) for one in found[:_MOST_IN_FILE])
    elif found and reason != reason_in_file(before.data(path) or b"", path):
        message = f"{found[0].what} stays here, for a reason: {textguard.shown(reason)}"
        yield finding("SecretAllowed", message, path=path, line=found[0].line, hint=f"see {ALLOWED!r} in the file")
    elif not found:
        yield from (_likely(one, path) for one in find_likely(data.decode("utf-8", "replace"))[:2])


def _likely(one: Secret, path: str) -> Finding:
    hint = "if it is one, take it out and revoke it"
    return finding("PossibleSecret", "a long word without any order", path=path, line=one.line, hint=hint)


# -- orders -------------------------------------------------------------------------------------------------------
def _orders(after: Side, path: str, data: bytes) -> Iterator[Finding]:
    """Hidden instructions, in the file as it stands, comments included, and in each text that is read from it."""
    if path.startswith(_KEPT_APART):
        return
    raw = instructions(data.decode("utf-8", "replace"))
    told = {one.rule for one in raw if not one.quoted}
    yield from (_order(one, path) for one in raw)
    item = after.readable(path) if after.is_item(path) or after.is_archived(path) else None
    for field, text in texts_of(item) if item is not None else ():
        for one in instructions(text):
            if one.rule not in told and not one.quoted:
                told.add(one.rule)
                yield _order(one, path, field, _line_of(data, path, field))


def _order(one: Instruction, path: str, field: str = "", line: int | None = None) -> Finding:
    where = f" in {field}" if field else ""
    hidden = f", hidden in {one.disguise}" if one.disguise else ""
    name = "InstructionQuoted" if one.quoted else "HiddenInstruction"
    said = "speaks of what" if one.quoted else "it"
    message = f"{said} {one.what} (sign {one.rule}{where}{hidden}): {one.excerpt!r}"
    hint = "" if one.quoted else "state the fact; who reads it decides what to do"
    return finding(name, message, path=path, line=line or (None if field else one.line), hint=hint)


def _line_of(data: bytes, path: str, field: str) -> int | None:
    try:
        return parse(data, path, allow_invisible=True).place(tuple(field.split("."))[:1]).line
    except (MemfsError, KeyError, IndexError):
        return None


# -- items --------------------------------------------------------------------------------------------------------
def item_findings(before: Side, after: Side, changes: Iterable[ItemChange], changed: Changed) -> Iterator[Finding]:
    """What is worth a look at in items, beside what stands in their files."""
    names = {stem_of(path).casefold() for path in after.items}
    shelved = {stem_of(path).casefold() for path in after.files if after.is_archived(path)}
    for one in changes:
        old = before.readable(one.before or one.path)
        new = after.readable(one.path)
        if one.what in (REMOVED, ARCHIVED) and old is not None and old.pinned:
            yield finding("PinnedRemoved", "it is pinned, and goes", path=one.path, id=one.id)
        if new is None or one.what in (REMOVED, ARCHIVED):
            continue
        if old is not None and _rank(new.trust) > _rank(old.trust):
            message = f"who stands behind it goes from {old.trust} to {new.trust}"
            yield finding("TrustRaised", message, path=one.path, id=one.id, hint="only a person can vouch for it")
        yield from _recorded(old, new)
        yield from _references(old, new, names | shelved)
    yield from _twins(after, changed)
    yield from _records(before, after, changed)


def _rank(trust: str) -> int:
    return BY_TRUST.index(trust) if trust in BY_TRUST else -1


def _recorded(old: MemoryItem | None, new: MemoryItem) -> Iterator[Finding]:
    """What a merge could not decide, as the item itself says."""
    known = values(old).get("conflicts", []) if old is not None else []
    for clash in values(new).get("conflicts", []):
        if clash not in known:
            field = clash.get("field") or "the whole memory"
            kept, lost = (textguard.shown(repr(clash.get(name)))[:_SHOWN] for name in ("kept", "lost"))
            message = f"of {field} a merge kept {kept} and not {lost}"
            hint = f"memfs resolve {new.id}"
            yield finding("MergeConflict", message, path=new.path, id=new.id, hint=hint)


def _references(old: MemoryItem | None, new: MemoryItem, names: set[str]) -> Iterator[Finding]:
    known = set(_named(old)) if old is not None else set()
    for name in dict.fromkeys(_named(new)):
        if name not in known and name.casefold() not in names and ":" not in name:
            message = f"it names {textguard.shown(name)!r}, which is not there"
            yield finding("ReferenceUnknown", message, path=new.path, id=new.id)


def _named(item: MemoryItem) -> Iterator[str]:
    yield from item.supersedes
    yield from (link.to for link in item.links)


def _twins(after: Side, changed: Changed) -> Iterator[Finding]:
    """Ids that several files have, of which the change touches one."""
    holders: dict[str, list[str]] = {}
    for path in after.items:
        holders.setdefault(stem_of(path).casefold(), []).append(path)
    touched = set(changed.items)
    for paths in holders.values():
        if len(paths) > 1 and touched.intersection(paths):
            first, *others = sorted(paths, key=lambda path: (path in touched, path))
            for path in others:
                message = f"{first} has the same id"
                yield finding("DuplicateId", message, path=path, id=stem_of(path), hint="rename one of the two files")


def _records(before: Side, after: Side, changed: Changed) -> Iterator[Finding]:
    """Records of conflicts between state documents that came, and wait for a decision."""
    for path in changed.others:
        if document_kind(path) == "conflict" and path in after.files and path not in before.files:
            hint = "memfs resolve lists what waits"
            yield finding("MergeConflict", "a record of what a merge could not decide", path=path, hint=hint)
