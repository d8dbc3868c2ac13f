"""Review a change of memory as a pull request does: what it does, and what is wrong with it or worth a look.

Every finding has a stable code and a severity. Reads git's objects only: it needs no journal, no lock and no index, and
writes nothing. Secrets never reach the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from memfs.config_names import KINDS, SETTINGS_FILE
from memfs.dataclass import replace
from memfs.errors import ERROR, WARNING, HistoryUnavailable, ItemSyntaxError, ItemTooLarge, MemfsError, SettingInvalid
from memfs.format import secrets, toml_text
from memfs.format.codec import parse, remarks, schema_of
from memfs.format.item_fields import values
from memfs.format.plain import dotted
from memfs.format.schema import Schemas
from memfs.format.text import decode, findings, marker_line, shown
from memfs.fs.workspace_location import BRANCH
from memfs.git.commit_object import ParsedCommit
from memfs.git.log import OWN_PATHS, changed_paths
from memfs.git.objects import REGULAR
from memfs.git.repository import Repository, beyond, cut_off, merge_bases
from memfs.intake.contradictions import Neighbours, NeighbourSearch, is_transient
from memfs.learning import conflicts
from memfs.learning.conflicts import covers, holds, record_of
from memfs.model import MemoryItem
from memfs.model.ids import stem_of
from memfs.model.item import BY_TRUST, VOUCHED, gist
from memfs.model.state_paths import SIDECAR_SUFFIX, document_kind
from memfs.recall.conflict_notes import CONTRADICTS, OVER
from memfs.recall.versions import may_meet
from memfs.resources import template_text
from memfs.settings import Settings
from memfs.store.parts import CONTENT, READ_LIMIT
from memfs.store.reader import Reader
from memfs.team import review_report
from memfs.team.injection import Instruction, instructions
from memfs.team.review_report import ChangedPaths, Report, ReviewedItem, ReviewFinding, Side, finding, of_error

if TYPE_CHECKING:
    from memfs.team.asof import Travel

_MOST_IN_FILE = 5
_SHOWN = 80
_SNIFFED = 8_000
_KEPT_APART = (f"{CONTENT}/.schemas/",)


def file_findings(before: Side, after: Side, changed: ChangedPaths) -> Iterator[ReviewFinding]:
    """What is wrong with the files as they are after the change."""
    for path in changed.every:
        entry = after.entries.get(path)
        if entry is None:
            continue
        if not path.isprintable() or any(findings(path)) or shown(path) != path:
            yield finding("SuspectName", "its name holds characters that nobody sees", path=path, hint="rename it")
        if entry.mode not in REGULAR:
            what = "a link" if entry.mode == "120000" else "a submodule"
            yield finding("LinkInMemory", f"{what} is here", path=path, hint="replace it by a file")
        elif after.files.size(path) > READ_LIMIT:
            yield of_error(ItemTooLarge(f"{after.files.size(path)} bytes, limit {READ_LIMIT}", hint="split it"), path)
        else:
            yield from _content(before, after, path)


def _content(before: Side, after: Side, path: str) -> Iterator[ReviewFinding]:
    data = after.data(path) or b""
    if line := marker_line(data):
        hint = "memfs team conflicts resolve --all finishes the merge"
        yield finding("ConflictMarkers", "a merge left its markers here", path=path, line=line, hint=hint)
    else:
        yield from _form(after, path, data)
    yield from _secrets(before, path, data)
    yield from _orders(after, path, data)
    if path == f"{CONTENT}/.gitattributes" and data != template_text("gitattributes").encode():
        yield finding("AttributesChanged", "not as memfs lays them", path=path, hint="memfs check names conflicts")
    elif path.endswith(SIDECAR_SUFFIX) or (b"\0" in data[:_SNIFFED] and not after.is_item(path)):
        # memfs keeps such files beside git: what comes with a change was put there by somebody
        yield finding("NotLookedInto", "what it holds was not looked through", path=path, hint="keep it out of git")


# -- form ---------------------------------------------------------------------------------------------------------
def _form(after: Side, path: str, data: bytes) -> Iterator[ReviewFinding]:
    """What a schema or the reader says."""
    if after.is_item(path):
        found = after.codec.errors(data, path)
        yield from (of_error(error, path) for error in found[:_MOST_IN_FILE])
        if not found:
            yield from (review_report.of_problem(one, path) for one in remarks(decode(data), path))
        return
    if after.is_archived(path):
        found_there = after.item(path)
        if isinstance(found_there, MemfsError):
            yield of_error(found_there, path)
        return
    schema = schema_of(path)
    try:
        if schema:
            after.codec.read_document(data, path, schema)
        elif path == SETTINGS_FILE:
            yield from _settings_form(data)
        text = decode(data).text if data.strip() else ""
    except MemfsError as error:
        if schema or not isinstance(error, ItemSyntaxError) or b"\0" not in data[:_SNIFFED]:
            yield of_error(error, path)
        return
    for one in findings(text):
        line = text.count("\n", 0, one.offset) + 1
        severity, message = ERROR if one.refused else WARNING, f"unseen character {one.codes}"
        yield ReviewFinding(severity=severity, code="InvisibleCharacter", message=message, path=path, line=line)


def _settings_form(data: bytes) -> Iterator[ReviewFinding]:
    try:
        mapping = toml_text.parse(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        error = SettingInvalid("not UTF-8 text", hint="save it as UTF-8")
        yield of_error(error, SETTINGS_FILE)
    else:
        for wrong in Schemas().check_document(mapping, "memfs_toml")[:_MOST_IN_FILE]:
            found = SettingInvalid(wrong.message, field=dotted(wrong.path) or None, hint=wrong.hint or None)
            yield of_error(found, SETTINGS_FILE)


# -- secrets ------------------------------------------------------------------------------------------------------
def _secrets(before: Side, path: str, data: bytes) -> Iterator[ReviewFinding]:
    found = secrets.found_in_file(data, path)
    reason = secrets.reason_in_file(data, path) if found else ""
    if found and not reason:
        yield from (of_error(secrets.secret_error(one, path), path) for one in found[:_MOST_IN_FILE])
    elif found and reason != secrets.reason_in_file(before.data(path) or b"", path):
        message = f"{found[0].what} stays here, for a reason: {shown(reason)}"
        yield finding(
            "SecretAllowed", message, path=path, line=found[0].line, hint=f"see {secrets.ALLOWED!r} in the file"
        )
    elif not found:
        for one in secrets.find_likely(data.decode("utf-8", "replace"))[:2]:
            hint = "if it is one, take it out and revoke it"
            yield finding("PossibleSecret", "a long word without any order", path=path, line=one.line, hint=hint)


# -- orders -------------------------------------------------------------------------------------------------------
def _orders(after: Side, path: str, data: bytes) -> Iterator[ReviewFinding]:
    """Hidden instructions, in the file as it is, comments included, and in each text that is read from it."""
    if path.startswith(_KEPT_APART):
        return
    raw = instructions(data.decode("utf-8", "replace"))
    reported = {one.rule for one in raw if not one.quoted}
    yield from (_order(one, path) for one in raw)
    item = after.readable(path) if after.is_item(path) or after.is_archived(path) else None
    for name, text in review_report.texts_of(item) if item is not None else ():
        for one in instructions(text):
            if one.rule not in reported and not one.quoted:
                reported.add(one.rule)
                yield _order(one, path, name, _line_of(data, path, name))


def _order(one: Instruction, path: str, field: str = "", line: int | None = None) -> ReviewFinding:
    where = f" in {field}" if field else ""
    hidden = f", hidden in {one.disguise}" if one.disguise else ""
    name = "InstructionQuoted" if one.quoted else "HiddenInstruction"
    subject = "speaks of what" if one.quoted else "it"
    message = f"{subject} {one.what} (rule {one.rule}{where}{hidden}): {one.excerpt!r}"
    hint = "" if one.quoted else "state the fact only"
    return finding(name, message, path=path, line=line or (None if field else one.line), hint=hint)


def _line_of(data: bytes, path: str, field: str) -> int | None:
    try:
        return parse(data, path, allow_invisible=True).place(tuple(field.split("."))[:1]).line
    except (MemfsError, KeyError, IndexError):
        return None


# -- items --------------------------------------------------------------------------------------------------------
def item_findings(
    before: Side, after: Side, items: Iterable[ReviewedItem], changed: ChangedPaths
) -> Iterator[ReviewFinding]:
    """What is worth a look at in items, beside what is in their files."""
    for reviewed in items:
        old, new = reviewed.old, reviewed.new
        if new is None:
            continue
        if old is not None and _rank(new.trust) > _rank(old.trust):
            message = f"who vouches for it changes from {old.trust} to {new.trust}"
            yield finding("TrustRaised", message, path=new.path, id=new.id, hint="only a person can vouch for it")
        known = values(old).get("conflicts", []) if old is not None else []
        for clash in values(new).get("conflicts", []):  # what a merge could not decide, as the item itself says
            if clash not in known:
                field = clash.get("field") or "the whole memory"
                kept, lost = (
                    shown(repr(clash[key]))[:_SHOWN] if key in clash else "nothing" for key in ("kept", "lost")
                )
                message = f"of {field} a merge kept {kept} and not {lost}"
                hint = f"memfs team conflicts resolve {new.id} --keep kept; or --keep lost"
                yield finding("MergeConflict", message, path=new.path, id=new.id, hint=hint)
    yield from _twins(after, changed)
    for path in changed.others:
        if document_kind(path) == "conflict" and path in after.entries and path not in before.entries:
            hint = "'memfs team conflicts' lists what waits"
            yield finding("MergeConflict", "a record of what a merge could not decide", path=path, hint=hint)


def _rank(trust: str) -> int:
    return BY_TRUST.index(trust) if trust in BY_TRUST else -1


def _twins(after: Side, changed: ChangedPaths) -> Iterator[ReviewFinding]:
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


_MOST = 200
"""How many changed items are compared with the others."""
_NEIGHBOURS_SHOWN = 100


def neighbour_findings(
    before: Side, after: Side, items: Iterable[ReviewedItem], store: Reader
) -> Iterator[ReviewFinding]:
    """Pairs of items that do not go together, where the change adds one of them or changes what it says.

    Args:
        store: finds the items that there are after the change.
    """
    fresh = list(_fresh(before, after, items))
    neighbourhood = NeighbourSearch(store, after.kinds)
    reported: set[tuple[str, str]] = set()
    if len(fresh) > _MOST:
        message = f"{len(fresh):,} memories come or change; the first {_MOST} were compared with the others"
        yield finding("NotCompared", message, hint="'memfs team conflicts --scan' compares all of them")
    for item in fresh[:_MOST]:
        for one in _pair_findings(item, neighbourhood.of(item, after.time)):
            pair = conflicts.in_order(one.id, one.other)
            if pair not in reported:
                reported.add(pair)
                yield one


def _fresh(before: Side, after: Side, items: Iterable[ReviewedItem]) -> Iterator[MemoryItem]:
    """The items that are there and say something that they did not say before."""
    for one in items:
        old, new = one.old, one.new
        if new is None or is_transient(new) or not holds(new, after.time) or after.is_archived(new.path):
            continue
        if old is None or gist(old) != gist(new) or not holds(old, before.time):
            yield new


def _pair_findings(item: MemoryItem, found: Neighbours) -> Iterator[ReviewFinding]:
    for other, reason in found.contradicts:
        if _are_apart(item, other) and not covers(record_of(item, other), item, other):
            linked = any(link.to == other.id and link.relation == CONTRADICTS for link in (*item.links, *other.links))
            hint = (
                f"settle it: memfs team conflicts resolve {item.id} {other.id} --keep ID"
                if linked
                else "say which holds: supersedes, or another scope"
            )
            message = f"{reason.rstrip('.')}; {other.id} says: {_quote(other)}"
            yield finding("Contradiction", message, path=item.path, id=item.id, other=other.id, hint=hint)
    repeated = [found.repeated] if found.repeated is not None else []
    for other in (*repeated, *found.near):
        if not _are_apart(item, other) or other.status.strip() in OVER:
            continue
        message = f"{other.id} says {'' if other in repeated else 'nearly '}the same: {_quote(other)}"
        hint = "keep one of the two, or let one supersede the other"
        yield finding("NearDuplicate", message, path=item.path, id=item.id, other=other.id, hint=hint)


def _are_apart(one: MemoryItem, other: MemoryItem) -> bool:
    """Whether two items are two, of which neither takes the place of the other."""
    replaced = one.id in other.supersedes or other.id in one.supersedes
    return one.id != other.id and not replaced and may_meet(one, other)


def _quote(item: MemoryItem) -> str:
    text = shown(" ".join(gist(item).split()))
    return repr(text if len(text) <= _NEIGHBOURS_SHOWN else text[: _NEIGHBOURS_SHOWN - 1] + "\u2026")


_MOST_COMMITS = 2_000
_MOST_BLOBS = 20_000
_SHORT = 10


def shallow() -> HistoryUnavailable:
    """The error where a shallow clone lacks what a comparison needs."""
    return HistoryUnavailable(
        "this clone is shallow: it lacks the commits that both sides began from",
        hint="'git fetch --unshallow'; in a workflow, give actions/checkout 'fetch-depth: 0'",
    )


def history_findings(
    before: Side, after: Side, commits: Sequence[str], items: Sequence[ReviewedItem]
) -> Iterator[ReviewFinding]:
    """What the commits say, newest first."""
    repository = after.files.repository
    seen = {entry.id for side in (before, after) for entry in side.entries.values()}
    last: dict[str, ParsedCommit] = {}  # which commit wrote a path last
    for commit in commits[:_MOST_COMMITS]:
        parsed = repository.commit_object(commit)
        for secret in secrets.find(f"{parsed.subject}\n\n{parsed.body}")[:1]:
            yield _leak(f"the message of commit {commit[:_SHORT]} has {secret.what} (rule {secret.rule})", "")
        for path in sorted(_paths(repository, commit, parsed)):
            entry = repository.entry(commit, path)
            if len(parsed.parents) < 2:
                last.setdefault(path, parsed)
            if entry is None or entry.id in seen or len(seen) > _MOST_BLOBS:
                continue
            seen.add(entry.id)
            data = repository.blob(entry.id)
            if (found := secrets.found_in_file(data, path)) and not secrets.reason_in_file(data, path):
                what = f"{found[0].what} (rule {found[0].rule} at line {found[0].line})"
                yield _leak(f"commit {commit[:_SHORT]} has {what}, which the change took out again", path)
    if len(commits) > _MOST_COMMITS:
        yield finding("HistoryNotRead", f"{len(commits):,} commits; the newest {_MOST_COMMITS:,} were looked through")
    for one in items:
        # where an item says that a person vouches for it, and the commit that an agent brought it
        item, old, commit_of = one.new, one.old, last.get(one.change.path)
        if item is None or commit_of is None or not commit_of.author.is_agent or item.trust not in VOUCHED:
            continue
        if old is None or gist(old) != gist(item) or old.trust != item.trust:
            typed = item.origin.role == "user"
            message = f"{shown(commit_of.author.name)} is an agent, and says that trust is {item.trust}"
            severity = review_report.NOTE if typed else ""
            yield finding("TrustClaimed", message, path=item.path, id=item.id, severity=severity)


def _leak(message: str, path: str) -> ReviewFinding:
    hint = "revoke it; bring the change as commits that never had it"
    return finding("SecretInHistory", message, path=path, hint=hint)


def _paths(repository: Repository, commit: str, parsed: ParsedCommit) -> set[str]:
    """What a commit changed of memory: of a merge, what it has otherwise than each of its parents."""
    if not parsed.parents:
        return {*repository.tree(commit, CONTENT)}
    return set.intersection(
        *(
            {path for own in OWN_PATHS for path in changed_paths(repository, parent, commit, own)}
            for parent in parsed.parents
        )
    )


# -- the report ---------------------------------------------------------------------------------------------------
def _concealed(value: Any) -> Any:
    """A part of the report with the name of a rule in place of each secret."""
    if isinstance(value, review_report.FieldChange):
        key = value.field.rpartition(".")[2]
        sides = {name: secrets.redacted_value(getattr(value, name), key) for name in ("before", "after")}
        return review_report.FieldChange(field=secrets.redacted(value.field), **sides)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _concealed(getattr(value, one.name)) for one in fields(value)})
    if isinstance(value, str):
        return secrets.redacted(value)
    if isinstance(value, tuple):
        return tuple(map(_concealed, value))
    return secrets.redacted_value(value) if isinstance(value, Mapping) else value


_REMOTES = "refs/remotes/"
_OWN_BASES = (f"{_REMOTES}origin/{BRANCH}", BRANCH)
_BASES = (f"{_REMOTES}origin/HEAD", f"{_REMOTES}origin/main", f"{_REMOTES}origin/master", "main", "master")
_HINT = "write BASE..HEAD, such as main..HEAD"


class Reviews:
    """Reviews changes of one workspace's memory.

    Args:
        repository: where it is.
        settings: those that hold in this process.
        travel: goes to either side of a change.
    """

    def __init__(self, repository: Repository, settings: Settings, travel: Travel) -> None:
        self._repository, self._settings, self._travel = repository, settings, travel

    def report(self, revisions: str = "") -> Report:
        """What a range of commits does to memory: from what both ends began with to its head.

        Args:
            revisions: ``BASE..HEAD``; ``HEAD`` alone is what would come to the branch that is checked out, ``BASE..``
                means up to that branch, "" from the branch that ``origin`` calls its main one, or else ``main`` or
                ``master``.

        Raises:
            HistoryUnavailable: a revision does not exist, the two have nothing in common, the clone is too shallow, or
                all that a single one has is here already.
        """
        revisions = revisions.strip() or f"{self._main()}..HEAD"
        repository = self._repository
        if ".." not in revisions:  # the range of what a revision would bring
            here, there = repository.resolve("HEAD"), repository.resolve(revisions)
            if there in merge_bases(repository, here, there):  # most likely it is meant as the other end
                hint = f"name both ends: memfs review {revisions}..HEAD, or {revisions}~1..{revisions}"
                raise HistoryUnavailable(f"all of {revisions} is in this branch already", hint=hint)
            revisions = f"HEAD..{revisions}"
        left, _, right = revisions.partition("..")
        if not left:
            raise HistoryUnavailable(f"{revisions!a} names no beginning", hint=_HINT)
        base, head = repository.resolve(left), repository.resolve(right.removeprefix(".") or "HEAD")
        bases, cut = merge_bases(repository, base, head), cut_off(repository)
        commits = beyond(repository, [head], bases[:1]) if bases else []
        if (cut and not bases) or cut.intersection(commits):
            raise shallow()
        if not bases:
            raise HistoryUnavailable("the two have no commit in common", hint="name two branches of one history")
        invisible = self._settings.security.allow_invisible
        before, after = (Side(repository, commit, invisible) for commit in (bases[0], head))
        return self._report(before, after, revisions.removeprefix(_REMOTES), commits)

    def _main(self) -> str:
        """The branch that a pull request most likely is for."""
        head = self._repository.head_commit()
        for name in (*_OWN_BASES, *_BASES):
            with suppress(HistoryUnavailable):
                commit = self._repository.resolve(name)
                if name in _BASES or (head and merge_bases(self._repository, head, commit)):
                    return name
        raise HistoryUnavailable("nothing says what to compare with", hint=_HINT)

    def _report(self, before: Side, after: Side, title: str, commits: list[str]) -> Report:
        changed = review_report.changed_between(before, after)
        items = review_report.item_changes(before, after, changed)
        found: list[ReviewFinding] = []
        if after.broken_kinds is not None and KINDS not in changed.others:
            found.append(of_error(after.broken_kinds, KINDS))
        found += file_findings(before, after, changed)
        found += item_findings(before, after, items, changed)
        found += history_findings(before, after, commits, items)
        if changed.every:
            try:
                found += neighbour_findings(before, after, items, self._travel.at(after.files.commit).store)
            except (MemfsError, OSError) as error:
                found.append(finding("NotAsked", str(error)))
        made: Report = _concealed(
            Report(
                base="",
                head="",
                title=title,
                items=tuple(one.change for one in items),
                documents=tuple(review_report.document_changes(before, after, changed)),
                findings=review_report.in_order(found),
                commits=len(commits),
            )
        )
        return replace(made, base=before.files.commit, head=after.files.commit)  # ids may look like secrets
