"""Start, close and list iterations, the rounds of work of a multi-agent system.

Closing one writes its statistics into its header, ``system_state.json``; closing it again brings them up to date.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from memfs.config import first_retention_policy
from memfs.config_names import RETENTION_POLICY
from memfs.errors import Conflict, IterationInvalid
from memfs.model import state_paths
from memfs.model.state_query import Iteration, StateQuery
from memfs.model.time import format_time, parse_time, time_in
from memfs.state.metrics import sum_up
from memfs.store.state_files import DocumentChange, State
from memfs.store.store import retry_on_conflict

if TYPE_CHECKING:
    from memfs.state.reader import StateReader
    from memfs.store.parts import Fire


_NUMBERS = "give a number from 1 to 999,999,999,999; without one it is that after the newest there is"


class Iterations:
    """The iterations of one workspace. May be used from several threads, and by several processes at once."""

    def __init__(self, reader: StateReader, clock: Callable[[], datetime], fire: Fire) -> None:
        """``fire`` raises ``iteration_closed``."""
        self._files = reader.files
        self._reader = reader
        self._clock = clock
        self._fire = fire

    # -- opening and closing --------------------------------------------------------------------------------------
    def start(self, number: int | None = None) -> Iteration:
        """Open an iteration; one that is open already is given back as it is.

        Args:
            number: which; None is the one after the newest, open or closed.

        Returns:
            The iteration, durable on return.

        Raises:
            IterationInvalid: it was closed or archived, or the number is none.
            StorageIO, ContentError: it could not be stored; or its header, edited by hand, is invalid.
        """
        return retry_on_conflict(lambda: self._started(number))

    def close(self, number: int | None = None) -> Iteration:
        """Close an iteration and sum it up; one that is closed is summed up again, with what came late.

        Args:
            number: which; None is the newest that is open.

        Raises:
            IterationInvalid: there is no such iteration, or none is open, or it was archived.
            StorageIO, ContentError: as for ``start``.
        """
        wanted = self._reader.open_iteration() if number is None else number
        if wanted is None:
            raise IterationInvalid("no iteration is open", hint="'memfs state iteration start' opens one")
        return retry_on_conflict(lambda: self._end(wanted))

    def _started(self, number: int | None) -> Iteration:
        newest = self._reader.latest_iteration()
        wanted = (newest or 0) + 1 if number is None else number
        found = self.header(wanted)
        if wanted < 1:
            raise IterationInvalid(f"{wanted} is not the number of an iteration", field="iteration", hint=_NUMBERS)
        if found is None:
            self._refuse_archived(wanted)
            return self._begin(wanted, first=newest is None)
        if number is None:
            raise Conflict("another process has just started it", path=found.path)
        if found.values.get("status") == "closed":
            raise IterationInvalid(
                f"iteration {wanted} is closed",
                path=found.path,
                field="iteration",
                hint=f"start another: the next is {(newest or wanted) + 1}",
            )
        return self.show(wanted)

    def _begin(self, number: int, *, first: bool) -> Iteration:
        opened = self._clock()
        values = {"iteration": number, "status": "open", "opened": format_time(opened)}
        changes = [DocumentChange(_header_path(number), values, "")]
        if first and not self._files.exists(RETENTION_POLICY):
            changes.append(DocumentChange(RETENTION_POLICY, first_retention_policy(), ""))
        self._files.write(changes, f"Start iteration {number}", critical=True)
        return Iteration(number=number, status="open", opened=parse_time(opened))

    def _end(self, number: int) -> Iteration:
        header = self.header(number)
        if header is None:
            raise self._missing(number)
        first = header.values.get("status") != "closed"
        closed = self._clock() if first else time_in(header.values.get("closed"))
        opened = time_in(header.values.get("opened"))
        found = self._reader.rows(StateQuery(iterations=(number,)))
        statistics = sum_up((row.facts for row in found), opened, closed)
        values = {**header.values, "status": "closed", "statistics": statistics}
        if closed is not None:
            values["closed"] = format_time(closed)
        if values != header.values:
            self._files.write(
                [DocumentChange(header.path, values, header.sha256)], f"Close iteration {number}", critical=True
            )
        self._fire("iteration_closed", {"iteration": number, "statistics": statistics})
        return self.show(number)

    # -- looking --------------------------------------------------------------------------------------------------
    def show(self, number: int) -> Iteration:
        """One iteration, from its archive where it lies there.

        Raises:
            IterationInvalid: there is no such iteration.
            ContentError, StorageIO: its header cannot be read.
        """
        try:
            statistics = self._reader.load(_header_path(number)).get("statistics")
        except FileNotFoundError:
            statistics = None
        found = next((one for one in self._reader.iterations() if one.number == number), None)
        if found is None:
            raise self._missing(number)
        given = statistics if isinstance(statistics, Mapping) else {}
        return replace(found, statistics=given, counts=self._reader.index.counts((number,)))

    def list(self) -> builtins.list[Iteration]:
        """Every iteration by number, archived ones too, without their statistics, which ``show`` has."""
        counted = self._reader.index.counts_by_iteration()
        return [replace(one, counts=counted.get(one.number, {})) for one in self._reader.iterations()]

    def current(self) -> int:
        """The newest open iteration; where none is open, the one after the newest is started."""
        return retry_on_conflict(self._current)

    def _current(self) -> int:
        found = self._reader.open_iteration()
        if found is not None:
            return found
        try:
            return self.start((self._reader.latest_iteration() or 0) + 1).number
        except IterationInvalid as error:  # another process has just started and closed that one
            raise Conflict(error.message, path=error.path) from error

    def into(self, number: int | None) -> int:
        """The iteration that a document goes into: the one asked for, started where it is not there, or the current.

        A closed one takes what comes late.

        Raises:
            IterationInvalid: it was archived, or the number is none.
        """
        if number is None:
            return self.current()
        return number if self.header(number) is not None else self.start(number).number

    def header(self, number: int) -> State | None:
        """The header of an iteration in the tree, None where there is none.

        Raises:
            IterationInvalid: the number is none.
            ContentError, StorageIO: it cannot be read.
        """
        return self._files.find(_header_path(number))

    def _refuse_archived(self, number: int) -> None:
        if any(row.number == number and row.archive for row in self._reader.iterations()):
            raise IterationInvalid(
                f"iteration {number} is archived",
                field="iteration",
                hint=f"'memfs admin archive unpack {number}' brings it back",
            )

    def _missing(self, number: int) -> IterationInvalid:
        self._refuse_archived(number)
        newest = self._reader.latest_iteration()
        hint = "'memfs state iteration start' opens one" if newest is None else f"the newest is {newest}"
        return IterationInvalid(f"there is no iteration {number}", field="iteration", hint=hint)


def _header_path(number: int) -> str:
    try:
        return state_paths.system_state_path(number)
    except ValueError as error:
        raise IterationInvalid(str(error), field="iteration", hint=_NUMBERS) from None
