"""Reading beside those who change the table: planned again where somebody's work came in between.

1. What is planned is made of several looks at storage. A rollback, restore, upgrade, overwrite, rebuild or clean
   between two of them leaves a plan that cannot be made, or one that mixes two states. A plan counts when no completed
   write it was made with has left the timeline since; else, and on errors, it is made anew from a fresh look.
2. An error that comes again while the table stays as it is, is the table's own. What the caller did wrong is said at
   once. A file that Hudi writes in place may be seen half written, so one that is damaged is looked at for longer; a
   metadata table that is made anew is waited for where there is no reading without it.
3. Rows: a file that is gone when it is opened was taken after it was planned. While no row was given the read is
   planned anew; after that it ends in `Unavailable`. A file that a fresh plan names again, and that is gone again, is
   lost: `Corrupt`.

At most `ATTEMPTS` plans are made; then it is `Unavailable`. The pauses between them grow to seconds: archiving takes
one instant after the other out of the timeline, on a slow store for that long. Every local read goes through here, and
the plans of Spark's reads do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from hoodie.engine import Engine
from hoodie.errors import Corrupt, HudiError, Invalid, Unavailable, Unsupported
from hoodie.query.read_plan import ReadPlan
from hoodie.query.run_read import Progress, run_read
from hoodie.slices.read_rows import is_gone
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.storage import Storage
from hoodie.timeline import Timeline

ATTEMPTS = 8
PAUSE_SECONDS = 0.05
IN_PLACE_PAUSE_SECONDS = 0.3

T = TypeVar("T")
Look = Callable[[], TableHandle]
"""Loads the table as it is now."""

PlannedRead = tuple[ReadPlan, Storage]
"""A plan, and the storage of the look it was made with: where files lie may be another one for the next."""

_Picture = tuple[object, ...]


def settled(look: Look, plan: Callable[[TableHandle, Timeline], T], sleep: Callable[[float], None]) -> T:
    """What `plan` makes of one state of the table; `sleep` waits between attempts.

    Raises:
        HudiError: what `plan` or `look` raise, when it is not somebody else's work that makes them fail.
        Unavailable: others changed the table beside every attempt.
    """
    failed: str | None = None
    for attempt in range(1, ATTEMPTS + 1):
        seen: _Picture | None = None
        try:
            handle = look()
            timeline = timeline_of(handle)
            seen = _picture(handle, timeline)
            found = plan(handle, timeline)
        except HudiError as error:
            is_same = seen is not None and seen == _look_again(look)
            in_place = bool(error.facts.get("written_in_place") or error.facts.get("made_anew"))
            is_said = isinstance(error, Invalid | Unsupported) or (str(error) == failed and not in_place)
            if attempt == ATTEMPTS or (is_same and is_said):
                raise
            failed = str(error) if is_same else None
            sleep(max(IN_PLACE_PAUSE_SECONDS if in_place else 0.0, _pause(attempt)))
            continue
        if _holds(look, handle, timeline):
            return found
        if attempt < ATTEMPTS:
            sleep(_pause(attempt))
    raise Unavailable(
        f"The table changed while it was looked at, {ATTEMPTS} times in a row: completed writes left its timeline",
        remedy="Read again when rollbacks, restores or archiving are through",
    )


def settled_rows(
    plan: Callable[[], PlannedRead], engine: Engine | None = None, progress: Progress | None = None
) -> pa.RecordBatchReader:
    """The rows of what `plan` gives, streamed; of another plan of the same query where its files went before a row was
    given.
    """
    planned = plan()
    return pa.RecordBatchReader.from_batches(planned[0].schema, _batches(planned, plan, engine, progress))


def _batches(
    planned: PlannedRead, plan_again: Callable[[], PlannedRead], engine: Engine | None, progress: Progress | None
) -> Iterator[pa.RecordBatch]:
    gone: set[str] = set()
    for attempt in range(1, ATTEMPTS + 1):
        is_begun = False
        try:
            for batch in run_read(*planned, engine, progress):
                is_begun = True
                yield batch
        except Unavailable as error:
            path = str(error.facts.get("path"))
            if is_begun or not is_gone(error) or attempt == ATTEMPTS:
                raise
            if path in gone:
                raise _lost(path) from error
            gone.add(path)
            again = plan_again()
            if not again[0].schema.equals(planned[0].schema):
                raise
            planned = again
            continue
        return


def _pause(attempt: int) -> float:
    return float(PAUSE_SECONDS * 2 ** (attempt - 1))


def _lost(path: str) -> Corrupt:
    return Corrupt(
        f"File {path} is gone, though the table names it",
        remedy="Restore it from a copy, or restore the table to an earlier instant",
        path=path,
    )


def _picture(handle: TableHandle, timeline: Timeline) -> _Picture:
    return (tuple(sorted(handle.config.raw.items())), timeline.instants)


def _look_again(look: Look) -> _Picture | None:
    try:
        handle = look()
        return _picture(handle, timeline_of(handle))
    except HudiError:
        return None


def _holds(look: Look, handle: TableHandle, timeline: Timeline) -> bool:
    """Whether all completed writes are still there. Lists the timeline; where there are none, looks at the properties:
    an upgrade may have moved them.
    """
    try:
        if not timeline.completed_writes():
            return look().config.has_version(handle.config.table_version)
        return set(timeline_of(handle).completed_writes()) >= set(timeline.completed_writes())
    except HudiError:
        return False
