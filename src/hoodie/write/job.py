"""One write operation as a value: the table it is for, what it is to do, and who does the work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.engine import Engine
from hoodie.metadata_writer import KnownMetadata, MetadataOptions
from hoodie.records import OpenInputs
from hoodie.remote import AskedServer
from hoodie.slices.bootstrap import BootstrapSource
from hoodie.spec import InstantTime
from hoodie.state.handle import TableHandle
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import Timeline
from hoodie.transaction import ConflictRule, NobodyElse, Transaction
from hoodie.view import GroupId
from hoodie.write.options import WriteOptions
from hoodie.write.update_strategy import Reject, UpdateStrategy


def _nothing_in_the_way(plans: Collection[InstantTime]) -> None:
    del plans


@dataclass(frozen=True, slots=True)
class Engines:
    """Where a commit may run: threads of the driver, or spread over the cluster (the same object without one)."""

    local: Engine
    spread: Engine


@dataclass(frozen=True, slots=True)
class Write:
    """One write operation, ready to run.

    `schema` is what rows are cast to, `table_schema` what the table has afterwards (data columns only; None: a delete
    in a table of which nobody knows the schema). `transaction` is what it becomes visible by. `sources` has the other
    halves of bootstrap skeletons among the file groups that the write looks at. `metadata`: how the metadata table is
    kept; `known`: what is known of it. `kept`: base files that the look-up leaves open for the tasks that write them
    anew, where both run in this process. `server`: the timeline server that is asked for the table's files. `rule`:
    what others may do meanwhile. `has_rings`: there may be rings of consistent hashing; `looks_bucketed`: the newest
    commit made file groups that look like simple buckets. `updates`: what becomes of pending clusterings that are in
    its way; `give_up` takes such off the timeline.
    """

    handle: TableHandle
    timeline: Timeline
    plans: PendingPlans
    options: WriteOptions
    engines: Engines
    schema: pa.Schema
    table_schema: pa.Schema | None
    transaction: Transaction
    sources: Mapping[GroupId, BootstrapSource] = field(default_factory=dict)
    metadata: MetadataOptions = field(default_factory=MetadataOptions)
    known: KnownMetadata | None = None
    kept: OpenInputs | None = None
    server: AskedServer | None = None
    rule: ConflictRule = field(default_factory=NobodyElse)
    has_rings: bool = False
    looks_bucketed: bool = False
    updates: UpdateStrategy = field(default_factory=Reject)
    give_up: Callable[[Collection[InstantTime]], None] = _nothing_in_the_way

    @property
    def instant(self) -> InstantTime:
        """The write's own."""
        return self.transaction.instant

    @property
    def overwritten(self) -> TableHandle | None:
        """The table of another kind whose place this one takes: the write is pending there until the switch."""
        home = self.transaction.handle
        return None if home is self.handle else home
