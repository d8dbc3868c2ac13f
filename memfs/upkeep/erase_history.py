"""The part of an erase that concerns the repository: one attempt at taking a target out of files and history.

Owns the order of the steps (docs/decisions/0019-erase.md, 2 to 9); the caller holds both locks, and tries again when
the repository moved meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from memfs.errors import EraseRefused, GitFailed, ItemNotFound, ItemTooLarge, MemfsError, NotRegularFile, PathEscape
from memfs.files import io
from memfs.files.placing import FileChanged, sha256
from memfs.files.tree import Tree
from memfs.history.repository import Facts, Repository, facts_of
from memfs.history.rewrite import Rewritten, rewrite
from memfs.history.rewrite_conditions import is_shared, refuse_damage, refuse_kind, refuse_state
from memfs.history.rewrite_names import Names, new_names, read_names
from memfs.history.rewrite_successor import Successor
from memfs.history.rewrite_survey import PATIENCE, Survey
from memfs.history.rewrite_swap import Swap, finish, stock, swap
from memfs.history.seen import Seen
from memfs.history.settle import index_of
from memfs.model.stamp import object_id
from memfs.store.edits import HandEdits
from memfs.store.parts import CONTENT, Parts
from memfs.upkeep import erase_record
from memfs.upkeep.erase_purge import holds, out_of_reach
from memfs.upkeep.erase_target import Finder, Named, Target
from memfs.upkeep.erase_values import Plan

_LARGEST = 1 << 31


@dataclass(frozen=True, slots=True)
class _Before:
    """The repository as it was before anything was looked at: what came later is neither removed nor overwritten."""

    stock: tuple[str, ...]
    index: Facts
    names: Names


class HistoryErase:
    """Takes targets out of one workspace's files and repository."""

    def __init__(self, parts: Parts, edits: HandEdits) -> None:
        self._parts = parts
        self._edits = edits
        self._repository: Repository = parts.repository

    def plan(self, named: Named) -> Plan:
        """What an erase would do; changes nothing."""
        survey = Survey(self._repository)
        target = Finder(self._parts, survey, named).find()
        self._require_found(target)
        done = _rewrite(self._repository, survey, target, object_id)
        plan = self._plan(target, done, read_names(self._repository.layout))
        try:
            refuse_kind(self._repository)
            self._refuse_state(target)
        except EraseRefused as error:
            return replace(plan, refused=str(error))
        return plan

    def attempt(self, named: Named, known: Target | None) -> tuple[Target, Plan, int]:
        """Take a target out; return it, what was done, and how many signatures were lost.

        Raises:
            Moved: the repository changed meanwhile.
            EraseRefused, GitBusy: it cannot be rewritten as things stand.
        """
        repository = self._repository
        erase_record.clear(repository, ended=False)
        refuse_kind(repository)
        Seen(repository).note_all()
        before = _Before(stock(repository), facts_of(index_of(repository.git_dir)), read_names(repository.layout))
        survey = Survey(repository)
        if known is not None and not before.names.ids() & known.gone:
            # No name holds them any more: some may be removed already, and what stands above those cannot be rewritten.
            survey.leave_out(known.gone)
        target = Finder(self._parts, survey, named, known).find()
        if known is None:
            self._require_found(target)
        self._refuse_state(target)
        strict = refuse_damage(repository)
        successor = Successor(repository, erase_record.successor_folder(repository))
        successor.begin()
        done = _rewrite(repository, survey, target, successor.make)
        plan = self._succeed(successor, survey, target, done, before)
        successor.check(strict)
        plan = replace(plan, gone=plan.gone.union(known.gone) - plan.known) if known else plan
        shown = self._plan(target, done, plan.names)
        swap(
            repository,
            successor,
            plan,
            begin=lambda: erase_record.write(repository, target, plan.gone),
            remove_files=lambda: self._remove_files(target),
        )
        finish(repository, successor, plan)
        self._renew_graph()
        return target, shown, done.unsigned

    def _succeed(self, successor: Successor, survey: Survey, target: Target, done: Rewritten, before: _Before) -> Swap:
        """Build the second repository."""
        names = before.names
        successor.pack(survey.facts.keys() - done.gone)
        successor.name(new_names(names, done.mapped, target.traces))
        new_index = successor.write_index(self._in_index(target))
        commits = survey.commits.keys()
        tips = {old: done.mapped[old] for old in names.refs.values() if old in done.mapped and old in commits}
        notes = {found for ref, found in names.refs.items() if ref.startswith("refs/notes/")}
        pairs = {old: new for old, new in tips.items() if old not in notes}
        successor.compare(pairs, target.blobs, {*target.paths})
        return Swap(
            names=names,
            index=before.index,
            stock=before.stock,
            mapped=done.mapped,
            gone=done.gone,
            known=frozenset(survey.facts.keys() - done.gone).union(done.mapped.values()),
            new_index=new_index,
            traces=target.traces,
        )

    def _in_index(self, target: Target) -> set[bytes]:
        out = self._repository.git.run("ls-files", "-t", "-s", "-z")
        found = set()
        for row in out.split(b"\0")[:-1]:
            facts, _, path = row.partition(b"\t")
            if target.means(path) or facts.split(b" ")[2].decode() in target.blobs:
                found.add(path)
        return found

    def _refuse_state(self, target: Target) -> None:
        waiting = {
            self._repository.full(change.path)
            for operation in self._parts.journal.operations()
            for change in operation.changes
            if not holds(change, self._parts, target)
        }
        refuse_state(self._repository, waiting, lambda path: target.means(path) and self._may_go(path, target))

    def _may_go(self, path: bytes, target: Target) -> bool:
        """Whether nothing stands at a path, or a version that is known: a person's edit of it is not."""
        try:
            return object_id("blob", io.read_file(self._repository.work_tree / os.fsdecode(path))) in target.blobs
        except FileNotFoundError:
            return True
        except MemfsError:
            return False

    def _remove_files(self, target: Target) -> None:
        """Remove the working files that hold a version; what a person put in their place stays."""
        for local in self._edits.own_paths():
            if self._parts.is_local(local) and target.named.means(local):
                self._parts.tree.remove(local)
        tree = Tree(self._repository.work_tree)
        try:
            for path in sorted({*target.paths, *target.copies}):
                name = os.fsdecode(path)
                try:
                    data = tree.read(name, _LARGEST).data
                    if self._repository.blob_id(data) in target.blobs or len(data.strip()) == 0:
                        tree.remove(name, over=sha256(data))
                except (FileNotFoundError, NotRegularFile, ItemTooLarge, PathEscape, FileChanged):
                    continue
            # A killed writer, an eraser among them, leaves contents under names of its own.
            below = {entry.path.rpartition("/")[0] for entry in self._parts.tree.scan(CONTENT, hidden=True)}
            folders = {self._repository.full(folder) for folder in below if folder}
            for folder in folders | {path.rpartition(b"/")[0] for path in {*target.paths, *target.copies}}:
                tree.sweep(os.fsdecode(folder))
        finally:
            tree.close()

    def _renew_graph(self) -> None:
        if self._repository.head_commit() is not None:
            options = ("write", "--reachable", "--changed-paths", "--split", "--no-progress")
            with suppress(GitFailed):  # a cache, and somebody else may be writing it
                self._repository.git.run("commit-graph", *options, timeout=PATIENCE)

    def _require_found(self, target: Target) -> None:
        on_disk = any(map(target.named.means, self._edits.own_paths()))
        if not target.paths and not target.blobs and not on_disk and not target.traces.versions:
            raise ItemNotFound(
                f"nothing is or ever was called {target.named.reference!r}", hint="give the whole id, or a path"
            )

    def _plan(self, target: Target, done: Rewritten, names: Names) -> Plan:
        below, secondary = self._repository.below, self._parts.secondary
        return Plan(
            reference=target.named.reference,
            paths=tuple(sorted(below(path) or os.fsdecode(path) for path in target.paths)),
            copies=tuple(os.fsdecode(path) for path in target.copies),
            versions=len(target.blobs),
            loose=target.loose,
            commits=done.commits,
            refs=sum(found in done.mapped for found in names.refs.values()),
            waiting=len(self._parts.journal.operations()) + len(secondary.operations() if secondary else ()),
            quotes=target.quotes,
            shared=is_shared(self._repository),
            unreachable=tuple(out_of_reach(self._parts)),
        )


def _rewrite(repository: Repository, survey: Survey, target: Target, make: Callable[[str, bytes], str]) -> Rewritten:
    return rewrite(repository, survey, target.blobs, target.cuts, target.traces, make)
