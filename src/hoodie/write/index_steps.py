"""The steps of a write that have to do with its index, beside tagging: opening it, and telling it of the commit."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hoodie.engine import Engine
from hoodie.errors import HudiError
from hoodie.index import IndexedTable, IndexedWrite, KeyedRows, WrittenGroup, group_by_partition
from hoodie.spec import Instant
from hoodie.state.handle import TableHandle
from hoodie.transaction import PendingCommit
from hoodie.view import FileSlice, View
from hoodie.write.file_task import FileTask
from hoodie.write.incoming import Incoming
from hoodie.write.incoming_keys import every_key
from hoodie.write.job import Write
from hoodie.write.log_task import LogTask
from hoodie.write.plan import PlannedFile

log = logging.getLogger(__name__)

NO_ROWS: Final = every_key(Incoming((), pa.schema([])))
"""Of a write that only takes file groups away."""


def begin_indexed(  # noqa: PLR0917
    write: Write,
    rows: KeyedRows,
    view: View,
    slices: Sequence[FileSlice],
    replaced: Collection[str],
    engine: Engine,
) -> IndexedWrite:
    """The index at work on the write of `rows`, which replaces all file groups of the partitions `replaced`. Raises as
    `WriteIndex.begin`.
    """
    options = write.options
    table = IndexedTable(
        handle=write.handle,
        timeline=write.timeline,
        instant=write.instant,
        view=view,
        slices_of=group_by_partition(slices),
        local=write.engines.local,
        spread=engine,
        replaced=frozenset(replaced),
        is_new=write.overwritten is not None,
        generator=None if options.populate_meta_fields else options.keys,
    )
    return options.index.begin(table, rows)


def written_groups(files: Sequence[PlannedFile], tasks: Sequence[FileTask | LogTask]) -> list[WrittenGroup]:
    """What a write has done to file groups; the tasks are those of the files, in their order."""
    return [
        WrittenGroup(
            file.partition,
            task.file_id if isinstance(task, FileTask) else task.place.file_id,
            file.insert_positions,
            file.update_positions,
            file.drop_positions,
        )
        for file, task in zip(files, tasks, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class IndexParticipant:
    """A `Participant`: an index that must know where keys went before the write completes. It withdraws as well as it
    can: what is left of a write that failed does not count.
    """

    index: IndexedWrite
    groups: Sequence[WrittenGroup]

    def prepare(self, pending: PendingCommit) -> None:
        """See `Participant`."""
        del pending
        self.tell()

    def tell(self) -> None:
        """Tells the index, also where the write completes in a way of its own."""
        self.index.before_commit(self.groups)

    def withdraw(self, handle: TableHandle, inflight: Instant) -> TableHandle:
        """See `Participant`."""
        try:
            self.index.withdraw()
        except HudiError as error:
            log.warning("the index could not forget the failed write %s: %s", inflight.requested, error.cause)
        return handle


def tell_index(write: Write, index: IndexedWrite, groups: Sequence[WrittenGroup]) -> None:
    """Tells the index of the write that has completed. The write stands, whatever becomes of that: errors are logged,
    also those of a caller's own index, which may be of any kind.
    """
    try:
        index.after_commit(groups)
    except Exception as error:
        name = write.options.index.traits.name
        log.warning("index %s could not be told of the commit %s: %s", name, write.instant, error)
