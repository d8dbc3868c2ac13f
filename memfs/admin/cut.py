"""Cut old history: what was committed before a moment goes into a bundle and leaves the repository.

A person has to ask for it, and only the history of a repository that memfs made is cut. The state at the cut stays as
the new first commit; what came later is committed again above it, with the same contents, authors and dates.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from memfs.admin.backup_file import RepositorySnapshot, prove_history, write_bundle
from memfs.admin.erase import CUT, LOCK_WAIT, HistoryRewrite, is_shared, refuse_busy, refuse_kind
from memfs.admin.erase_purge import remotes
from memfs.dataclass import dataclass, replace
from memfs.errors import EraseRefused, MemfsError
from memfs.fs import io
from memfs.fs.archive import DigestStream, chunks_of
from memfs.fs.journal import Writer
from memfs.fs.workspace_location import place_in
from memfs.git import rewrite
from memfs.git.commit_object import EXPORT, compose, encode_commit, parse_commit, trailer_value
from memfs.git.layout import HEADS
from memfs.model import Problem
from memfs.model.time import format_time
from memfs.store import Store
from memfs.store.parts import Parts

_TAGS = "refs/tags/"
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
        elsewhere: remotes; they keep the old history until it is replaced there.
        refused: why it could not be done now, "" when nothing stands in the way.
        export: the bundle, None of a plan.
        sha256: of its bytes.
        head: HEAD's commit now, None of a plan.
        ended: what an interrupted cut was that has been ended before, "" where there was none.
    """

    before: datetime
    commit: str = ""
    time: datetime | None = None
    cut: int = 0
    rewritten: int = 0
    tags: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    refused: str = ""
    export: Path | None = None
    sha256: str = ""
    head: str | None = None
    ended: str = ""


class HistoryCut(HistoryRewrite[tuple[datetime, Path], CutPlan]):
    """Cuts the history of one repository.

    Attributes:
        ended: what the interrupted cut was that this has ended, "" where there was none.
    """

    what = "cut of history"
    code = "CutUnfinished"
    again = "commits wait until then; the next memfs command tries again"

    def __init__(self, store: Store, parts: Parts) -> None:
        super().__init__(store, parts)
        self._under_way: CutPlan | None = None  # what this one is carrying out, once its record is written
        self.ended = ""

    def plan(self, before: datetime) -> CutPlan:
        """What ``cut`` would do; changes nothing."""
        look = _Look(self._parts, before, rewrite.HistorySurvey(self._repository))
        plan = replace(look.plan, ended=self.ended)
        if plan.commit:
            done = rewrite.Rewriter(self._repository, look.survey, look.removal(""))
            plan = replace(plan, rewritten=done.commits)
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
            What was done; with ``commit`` "" nothing was: nothing is older, or lines of history run side by side. One
            that had been interrupted is ended first.

        Raises:
            EraseRefused: history cannot be cut as things stand; nothing was changed.
            MemfsError: it was interrupted; where it had begun, the next opening of the workspace ends it.
        """
        self._require_own()
        refuse_kind(self._repository)
        self._require_free(export)
        if self._known() is not None:
            self._end(LOCK_WAIT)
        flushed = self._store.flush(adopt=False)
        if flushed.reason:
            raise EraseRefused(flushed.reason, hint="cut when that is over")
        try:
            return replace(self._carry_out((before, export), LOCK_WAIT), ended=self.ended)
        except MemfsError:
            if not self._begun():
                io.unlink(export, missing_ok=True)
            raise

    def take_up(self) -> bool:
        """End an interrupted cut when a workspace is opened; what came of it is among the store's notes.

        Returns:
            Whether there was one, ended or not.
        """
        if self._known() is None:
            return False
        self._end_at_opening()
        return True

    # -- the steps ------------------------------------------------------------------------------------------------
    def _end(self, patience: float) -> None:
        known = self._known()
        self._carry_out(None, patience)
        if known is not None:
            exported = parse_commit(known.first).trailers.get(EXPORT, ("a bundle",))[-1]
            self.ended = f"{len(known.commits)} commits up to {known.last[:10]}, exported to {exported}"
            message = f"an interrupted cut of history was ended: {self.ended}"
            self._store.notes.append(Problem.warning("", "CutEnded", message, ""))

    def _carry_out(self, wanted: tuple[datetime, Path] | None, patience: float) -> CutPlan:
        self._under_way = None
        done = self._alone(wanted, patience)
        self._store.refresh()
        return done

    def _attempt(self, wanted: tuple[datetime, Path] | None) -> CutPlan:
        done = self._cut(wanted)
        self._clear(ended=True)
        return done

    def _cut(self, wanted: tuple[datetime, Path] | None) -> CutPlan:
        """Cut, or end what a killed process had begun to cut."""
        if wanted is not None and self._under_way is None and self._begun():
            raise EraseRefused(
                "an erase or a cut of history was interrupted", hint="the next memfs command here ends it"
            )
        known = self._known()
        survey, left_out = self._survey(known)
        plan = self._under_way or CutPlan(before=datetime.now(UTC))
        if known is not None:
            removal = replace(known, gone=left_out or _content_of(self._parts, survey, known))
        elif wanted is not None:
            before, export = wanted
            look = _Look(self._parts, before, survey)
            if not look.plan.commit:
                return look.plan
            plan = replace(look.plan, export=export, sha256=look.export(export))
            removal = look.removal(f"{export.name}, sha256 {plan.sha256}")
        else:  # another process ended it meanwhile
            return plan
        with self._swapped(survey, removal, {}) as done:
            if self._under_way is None:  # a second attempt would count only what the first has left
                self._under_way = plan = replace(plan, rewritten=done.commits)
        return replace(plan, head=self._repository.head_commit())

    def _known(self) -> rewrite.HistoryRemoval | None:
        """What the cut that has begun removes; None where none has. What no cut wrote is left to erase, which tells."""
        try:
            found = self._recorded()
        except MemfsError:
            return None
        return found[0] if found and found[0].commits else None

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

    def __init__(self, parts: Parts, before: datetime, survey: rewrite.HistorySurvey) -> None:
        self._parts = parts
        self._repository = parts.repository
        self.survey = survey
        out = self._repository.git.run("rev-list", "--glob=refs/notes/*", timeout=rewrite.PATIENCE)
        notes = out.decode("ascii", "replace").split()
        self._parsed = {name: parse_commit(data) for name, data in survey.contents(survey.of_kind("commit"))}
        self._parents = {name: found.parents for name, found in self._parsed.items() if name not in notes}
        self._times = {name: int(found.time.timestamp()) for name, found in self._parsed.items()}
        self._gone: set[str] = set()
        self._cut_refs: dict[str, str] = {}  # those of commits in whose place none stands
        self.plan = self._planned(before)

    def _planned(self, before: datetime) -> CutPlan:
        moment = int(before.timestamp())
        names = self.survey.names.refs
        tips = {one for ref, one in names.items() if one in self._parents and ref.startswith(_STAYS)}
        point = rewrite.cut_point(self._parents, self._times, tips, moment)
        plan = CutPlan(before=before, elsewhere=tuple(sorted(name for name, _ in remotes(self._parts))))
        if point is None:
            return plan
        old = rewrite.reached(self._parents, [point])
        stray = self._parents.keys() - old - rewrite.reached(self._parents, tips, old)
        self._gone = old | {commit for commit in stray if self._times[commit] < moment}
        for ref, found in names.items():
            if self.survey.tagged(found) in self._gone - {point}:
                self._cut_refs[ref] = found
        return replace(
            plan,
            commit=point,
            time=datetime.fromtimestamp(self._times[point], UTC),
            cut=len(self._gone),
            tags=tuple(ref.removeprefix(_TAGS) for ref in sorted(self._cut_refs) if ref.startswith(_TAGS)),
        )

    def export(self, target: Path) -> str:
        """Write everything that goes into a bundle, and take it on trial; return the sha256 of its bytes."""
        branch = f"{HEADS}before-{self.plan.before:%Y-%m-%d}"
        refs = {branch: self.plan.commit}
        for ref, found in self._cut_refs.items():
            refs[ref if ref.startswith(_TAGS) else f"refs/cut/{ref.removeprefix('refs/')}"] = found
        stray = self._gone - rewrite.reached(self._parents, map(self.survey.tagged, refs.values()))
        for commit in stray - {parent for one in stray for parent in self._parents[one]}:
            refs[f"refs/cut/{commit}"] = commit
        history = RepositorySnapshot(head=branch, refs=refs)
        with io.descriptor(io.open_file(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)) as fd:
            write_bundle(self._repository, history, fd, str(target))
            io.fsync(fd, str(target))
            io.sync_folder(target.parent)
            os.lseek(fd, 0, os.SEEK_SET)
            read = DigestStream(chunks_of(fd, os.fstat(fd).st_size, str(target)))
            prove_history(iter(read), history, target.with_name(f".{target.name}.proof.{os.getpid()}.tmp"))
            return read.digest[1]

    def removal(self, exported: str) -> rewrite.HistoryRemoval:
        """What goes, and the commit that stands for it: what that one says, no agent wrote."""
        point = self._parsed[self.plan.commit]
        committer = self._repository.identity().committer
        earlier = (name for commit in self._gone for name in self._parsed[commit].trailers.get(EXPORT, ()))
        lines = [f"{EXPORT}: {trailer_value(name)}" for name in (*earlier, exported) if name]
        text = f"Cut the history before {format_time(self.plan.before)}\n\nIt led to {self.plan.commit}."
        text = compose("\n".join((text, *([""] if lines else []), *lines)), [Writer(source=CUT)])
        first = encode_commit(point.tree, (), committer, committer, point.time, text)
        removal = rewrite.HistoryRemoval(commits=frozenset(self._gone), last=self.plan.commit, first=first)
        return replace(removal, gone=_content_of(self._parts, self.survey, removal))


def _content_of(parts: Parts, survey: rewrite.HistorySurvey, removal: rewrite.HistoryRemoval) -> frozenset[str]:
    """The trees and blobs that nothing but the commits that go holds."""
    git = parts.repository.git
    old = {survey.commits[commit][0] for commit in removal.commits & survey.commits.keys()}
    later = {tree for commit, (tree, _) in survey.commits.items() if commit not in removal.commits}
    # What no commit holds is somebody's, too.
    named = {survey.tagged(name) for name in survey.of_kind("tag")} | {*survey.names.refs.values()}
    loose = (named - survey.commits.keys()) | (survey.inner.keys() - survey.committed())
    kept = {rewrite.named_in_commit(removal.first)[0]} | later | loose | rewrite.staged(parts.repository)
    request = "".join(f"{name}\n" for name in (*old, *(f"^{one}" for one in kept)))
    out = git.run("rev-list", "--objects", "--stdin", data=request.encode(), timeout=rewrite.PATIENCE)
    return frozenset(rewrite.listed(out))
