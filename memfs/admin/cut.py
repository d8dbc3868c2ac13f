"""Cut old history: what was committed before a moment goes into a bundle and leaves the repository.

A person has to ask for it, and only the history of a repository that memfs made is cut. The state at the cut stays as
the new first commit; what came later is committed again above it, with the same contents, authors and dates.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memfs.admin.backup_file import prove_history
from memfs.admin.erase_purge import remotes
from memfs.admin.history_rewrite import (
    CUT,
    LOCK_WAIT,
    HistoryRewrite,
    is_shared,
    refuse_busy,
    refuse_damage,
    refuse_kind,
)
from memfs.dataclass import dataclass, replace
from memfs.errors import EraseRefused, MemfsError
from memfs.fs import io
from memfs.fs.archive import DigestStream, chunks_of
from memfs.fs.workspace_location import place_in
from memfs.git.commit_object import (
    EXPORT,
    CommitWriter,
    ParsedCommit,
    compose,
    encode_commit,
    parse_commit,
    trailer_value,
)
from memfs.git.maintenance import RepositorySnapshot, write_bundle
from memfs.git.refs import HEADS, HEX, NULL, renew_quarantine
from memfs.git.rewrite import PATIENCE, Before, Rewritten, Successor, Survey, cut_point, reached, rewrite, staged
from memfs.git.rewrite_text import NO_TRACES, edit_logs, read_names
from memfs.model import Problem
from memfs.model.item import object_id
from memfs.model.time import format_time
from memfs.store import Store
from memfs.store.parts import Parts

_AGAIN = "commits wait until then; the next memfs command tries again"
_STAYS = (HEADS, "refs/stash", "refs/notes/")


@dataclass(frozen=True, slots=True, kw_only=True)
class CutPlan:
    """What a cut of history does, or did.

    Attributes:
        before: the moment that was named.
        commit: the commit at which history is cut, "" where nothing can be.
        time: when that was committed.
        cut: how many commits go into the bundle and out of the repository, that one included.
        rewritten: how many later ones get a new id.
        tags: tags of commits that go; they go, too.
        unsigned: how many commits and tags lose a signature, which would be wrong.
        held_by: branches and stashes because of which nothing later is cut: they keep what they began with.
        elsewhere: remotes; they keep the old history until it is replaced there.
        refused: why it could not be done now, "" when nothing stands in the way.
        export: the bundle, None of a plan.
        sha256: of its bytes.
        head: HEAD's commit now, None of a plan.
    """

    before: datetime
    commit: str = ""
    time: datetime | None = None
    cut: int = 0
    rewritten: int = 0
    tags: tuple[str, ...] = ()
    unsigned: int = 0
    held_by: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    refused: str = ""
    export: Path | None = None
    sha256: str = ""
    head: str | None = None


class HistoryCut:
    """Cuts the history of one repository."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store = store
        self._parts = parts
        self._repository = parts.repository
        self._rewrite = HistoryRewrite(parts, "cut of history", code="CutUnfinished")

    def plan(self, before: datetime) -> CutPlan:
        """What ``cut`` would do; changes nothing."""
        look = _Look(self._parts, before)
        plan = look.plan
        if plan.commit:
            done = look.rewrite(object_id, "")
            plan = replace(plan, rewritten=done.commits, unsigned=done.unsigned)
        try:
            self._require_own()
            refuse_kind(self._repository)
            refuse_busy(self._repository)
        except EraseRefused as error:
            return replace(plan, refused=str(error))
        return plan

    def cut(self, before: datetime, export: Path) -> CutPlan:
        """Write what was committed before a moment into a bundle, and take it out of the repository.

        Args:
            before: commits older than this go, but for the last of them, whose contents become the first commit.
            export: a new file, outside of the workspace: ``git clone`` and ``git fetch`` read it.

        Returns:
            What was done; with ``commit`` "" nothing was: nothing is older, or lines of history run side by side.

        Raises:
            EraseRefused: history cannot be cut as things stand; nothing was changed.
            MemfsError: it was interrupted; where it had begun, the next opening of the workspace ends it.
        """
        self._require_own()
        refuse_kind(self._repository)
        self._require_free(export)
        flushed = self._store.flush(adopt=False)
        if flushed.reason:
            raise EraseRefused(flushed.reason, hint="cut when that is over")
        try:
            return self._carry_out(lambda: self._attempt(before, export), LOCK_WAIT)
        except MemfsError:
            if not self._rewrite.begun:
                io.unlink(export, missing_ok=True)
            raise

    def take_up(self) -> None:
        """End an interrupted cut when a workspace is opened; what came of it is among the store's notes."""
        if not self._begun():
            return
        done = self._rewrite.end_at_opening(self._store, lambda wait: self._carry_out(self._end, wait), _AGAIN)
        if done is not None:
            message = "a cut of history was interrupted, and has been ended now"
            if done.head is None:
                message = "a cut of history was interrupted before anything was cut: cut again, into another file"
            self._store.notes.append(Problem.warning("", "CutEnded", message, ""))

    # -- the steps ------------------------------------------------------------------------------------------------
    def _carry_out(self, attempt: Callable[[], CutPlan], patience: float) -> CutPlan:
        with self._rewrite.alone(patience):
            done = self._rewrite.attempts(attempt, patience)
            self._rewrite.clear(ended=True)
        self._rewrite.renew_graph()
        self._store.refresh()
        return done

    def _attempt(self, before: datetime, export: Path) -> CutPlan:
        repository = self._repository
        refuse_kind(repository)
        refuse_busy(repository)
        old = self._rewrite.before()
        look = _Look(self._parts, before)
        if not look.plan.commit:
            return look.plan
        strict = refuse_damage(repository)
        digest = look.export(export)
        successor = self._rewrite.successor()
        done = look.rewrite(successor.make, f"{export.name}, sha256 {digest}")
        self._put_in_place(successor, look.survey, old, done, strict)
        plan = replace(look.plan, rewritten=done.commits, unsigned=done.unsigned)
        return replace(plan, export=export, sha256=digest, head=repository.head_commit())

    def _end(self) -> CutPlan:
        """Remove what a killed cut left of the old history.

        Where nothing is cut yet nothing will be, and no head is noted.
        """
        repository = self._repository
        known = self._begun()
        nothing = CutPlan(before=datetime.now(UTC))
        if not known:
            return nothing
        mapped, gone = known["mapped"], set(known["gone"])
        if gone.intersection(read_names(repository.layout).refs.values()):
            renew_quarantine(repository, {new: old for old, new in mapped.items() if new != NULL})
            return nothing
        edit_logs(repository.layout, mapped, NO_TRACES)
        old = self._rewrite.before()
        survey = Survey(repository)
        named = ("--all", "--reflog", "--indexed-objects")  # what is named or staged, with all that it consists of
        gone -= _names_in(repository.git.run("rev-list", "--objects", *named, timeout=PATIENCE))
        survey.leave_out(gone)
        done = Rewritten(mapped={}, gone=frozenset(gone))
        self._put_in_place(self._rewrite.successor(), survey, old, done, strict=False)
        return replace(nothing, head=repository.head_commit())

    def _begun(self) -> dict[str, Any]:
        """What the cut that has begun noted; empty where none has. What no cut wrote is left to erase, which tells."""
        try:
            found = self._rewrite.record() or {}
            names = [*found["mapped"].keys(), *found["mapped"].values(), *found["gone"]]
            return found if all(map(HEX.fullmatch, names)) else {}
        except (MemfsError, KeyError, TypeError, AttributeError):
            return {}

    def _put_in_place(
        self, successor: Successor, survey: Survey, before: Before, done: Rewritten, strict: bool
    ) -> None:
        record = {"mapped": dict(done.mapped), "gone": sorted(done.gone)}
        self._rewrite.put_in_place(successor, survey, before, done, record, strict=strict)

    def _require_own(self) -> None:
        if place_in(self._repository.common_dir) == self._repository.work_tree:
            raise EraseRefused(
                "this memory has a branch in a repository of code, whose history memfs does not rewrite",
                hint="only the history of a repository that 'memfs init' made is cut",
            )
        if is_shared(self._repository):
            raise EraseRefused(
                "memfs did not make this repository: others may rely on its history",
                hint="only the history of a repository that 'memfs init' made is cut",
            )

    def _require_free(self, export: Path) -> None:
        place = Path(os.path.realpath(export))
        inside = (self._repository.work_tree, self._repository.common_dir)
        if any(place.is_relative_to(os.path.realpath(folder)) for folder in inside):
            raise EraseRefused("the export lies in the workspace", path=str(export), hint="name a file elsewhere")
        if os.path.lexists(export):
            raise EraseRefused("the file exists", path=str(export), hint="name a new one for the export")
        if not place.parent.is_dir():
            raise EraseRefused("there is no such folder", path=str(place.parent), hint="make it, or name another")


class _Look:
    """A repository looked at once: where it would be cut, and what that means."""

    def __init__(self, parts: Parts, before: datetime) -> None:
        self._repository = parts.repository
        self.survey = Survey(self._repository)
        out = self._repository.git.run("rev-list", "--glob=refs/notes/*", timeout=PATIENCE)
        notes = out.decode("ascii", "replace").split()
        self._parsed = {name: parse_commit(data) for name, data in self.survey.contents(self.survey.of_kind("commit"))}
        self._parents = {name: found.parents for name, found in self._parsed.items() if name not in notes}
        self._times = {name: int(found.time.timestamp()) for name, found in self._parsed.items()}
        self._names = read_names(self._repository.layout)
        self.replaced: dict[str, str] = {}
        self.plan = self._planned(parts, before)

    def _planned(self, parts: Parts, before: datetime) -> CutPlan:
        moment = int(before.timestamp())
        refs = {ref: found for ref, found in self._names.refs.items() if found in self._parents}
        tips = {found for ref, found in refs.items() if ref.startswith(_STAYS)}
        point = cut_point(self._parents, self._times, tips, moment)
        head = self._repository.head()
        plan = CutPlan(
            before=before,
            held_by=self._held_by(refs, head.commit, moment, point),
            elsewhere=tuple(sorted(name for name, _ in remotes(parts))),
        )
        if point is None:
            return plan
        old = reached(self._parents, [point])
        on = reached(self._parents, tips, old)
        stray = self._parents.keys() - old - on
        gone = old | {commit for commit in stray if self._times[commit] < moment}
        self.replaced = {**dict.fromkeys(gone, NULL), point: ""}
        tags = tuple(sorted(ref for ref, found in self._names.refs.items() if self._target(found) in gone - {point}))
        return replace(
            plan,
            commit=point,
            time=datetime.fromtimestamp(self._times[point], UTC),
            cut=len(gone),
            tags=tuple(ref.removeprefix("refs/tags/") for ref in tags if ref.startswith("refs/tags/")),
        )

    def _held_by(self, refs: dict[str, str], head: str | None, moment: int, point: str | None) -> tuple[str, ...]:
        """The branches that keep a later cut from being made than the one that is."""
        if head is None:
            return ()
        alone = cut_point(self._parents, self._times, [head], moment)
        if alone is None or alone == point:
            return ()
        stays = {ref: found for ref, found in refs.items() if ref.startswith(_STAYS)}
        holding = [ref for ref, found in stays.items() if alone not in reached(self._parents, [found])]
        return tuple(sorted(ref.removeprefix(HEADS) for ref in holding))

    def _target(self, name: str) -> str:
        """The object behind an annotated tag."""
        while (facts := self.survey.facts.get(name)) is not None and facts.kind == "tag":
            data = self._repository.object(name).data
            name = data.split(b"\n", 1)[0].removeprefix(b"object ").decode("ascii", "replace")
        return name

    # -- export ---------------------------------------------------------------------------------------------------
    def export(self, target: Path) -> str:
        """Write everything that goes into a bundle, and take it on trial; return the sha256 of its bytes."""
        branch = f"{HEADS}before-{self.plan.before:%Y-%m-%d}"
        refs = {branch: self.plan.commit}
        for ref, found in self._names.refs.items():
            if self.replaced.get(self._target(found)) == NULL:
                refs[ref if ref.startswith("refs/tags/") else f"refs/cut/{ref.removeprefix('refs/')}"] = found
        covered = reached(self._parents, map(self._target, refs.values()))
        stray = self.replaced.keys() - covered
        for commit in stray - {parent for one in stray for parent in self._parents[one]}:
            refs[f"refs/cut/{commit}"] = commit
        history = RepositorySnapshot(head=branch, refs=refs)
        fd = io.open_file(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            write_bundle(self._repository, history, fd, str(target))
            io.fsync(fd, str(target))
            io.sync_folder(target.parent)
            os.lseek(fd, 0, os.SEEK_SET)
            read = DigestStream(chunks_of(fd, os.fstat(fd).st_size, str(target)))
            prove_history(iter(read), history, target.with_name(f".{target.name}.proof.{os.getpid()}.tmp"))
            return read.digest[1]
        finally:
            os.close(fd)

    # -- rewriting ------------------------------------------------------------------------------------------------
    def rewrite(self, make: Callable[[str, bytes], str], exported: str) -> Rewritten:
        """Make the history that stays."""
        point = self.plan.commit
        first = make("commit", self._first(self._parsed[point], exported))
        replaced = {**self.replaced, point: first}
        done = rewrite(self._repository, self.survey, (), {}, NO_TRACES, make, replaced)
        return replace(done, gone=done.gone | self._content_of(replaced.keys()))

    def _first(self, point: ParsedCommit, exported: str) -> bytes:
        """The commit that stands for what was cut: what it says, no agent wrote."""
        committer = self._repository.identity().committer
        earlier = (name for commit in self.replaced for name in self._parsed[commit].trailers.get(EXPORT, ()))
        lines = [f"{EXPORT}: {trailer_value(name)}" for name in (*earlier, exported) if name]
        text = f"Cut the history before {format_time(self.plan.before)}\n\nIt led to {self.plan.commit}."
        text = "\n".join((text, *([""] if lines else []), *lines))
        return encode_commit(
            point.tree, (), committer, committer, point.time, compose(text, [CommitWriter(source=CUT)])
        )

    def _content_of(self, commits: Collection[str]) -> set[str]:
        """The trees and blobs that nothing but some commits holds."""
        survey = self.survey
        old = {survey.commits[commit][0] for commit in commits}
        later = {tree for commit, (tree, _) in survey.commits.items() if commit not in commits}
        # What no commit holds is somebody's, too.
        named = {self._target(name) for name in survey.of_kind("tag")} | {*self._names.refs.values()}
        loose = (named - survey.commits.keys()) | (survey.inner.keys() - survey.committed())
        kept = {survey.commits[self.plan.commit][0]} | later | loose | staged(self._repository)
        request = "".join(f"{name}\n" for name in (*old, *(f"^{one}" for one in kept)))
        out = self._repository.git.run("rev-list", "--objects", "--stdin", data=request.encode(), timeout=PATIENCE)
        return _names_in(out)


def _names_in(listed: bytes) -> set[str]:
    return {line[:40].decode("ascii") for line in listed.splitlines()}
