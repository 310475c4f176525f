"""One write operation as a value: the table it is for, what it is to do, and who does the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.engine import Engine
from hoodie.metadata_writer import KnownMetadata, MetadataOptions
from hoodie.slices.bootstrap import BootstrapSource
from hoodie.spec import InstantTime
from hoodie.state.handle import TableHandle
from hoodie.state.pending_plans import PendingPlans
from hoodie.timeline import Timeline
from hoodie.view import GroupId
from hoodie.write.options import WriteOptions


@dataclass(frozen=True, slots=True)
class Engines:
    """Where a commit may run: threads of the driver, or spread over the cluster (the same object without one)."""

    local: Engine
    spread: Engine


@dataclass(frozen=True, slots=True)
class Write:
    """One write operation, ready to run.

    `schema` is what rows are cast to, `table_schema` what the table has afterwards (data columns only; None: a delete
    in a table of which nobody knows the schema). `instant` is the write's own. `overwritten` is the table of another
    kind whose place this one takes: the write is pending there until the switch. `guard` raises when this writer may
    have been taken for dead; it is asked right before the write completes. `sources` has the other halves of bootstrap
    skeletons among the file groups that the write looks at. `metadata`: how the metadata table is kept; `known`:
    what is known of it.
    """

    handle: TableHandle
    timeline: Timeline
    plans: PendingPlans
    options: WriteOptions
    engines: Engines
    schema: pa.Schema
    table_schema: pa.Schema | None
    instant: InstantTime
    overwritten: TableHandle | None = None
    guard: Callable[[], None] | None = None
    sources: Mapping[GroupId, BootstrapSource] = field(default_factory=dict)
    metadata: MetadataOptions = field(default_factory=MetadataOptions)
    known: KnownMetadata | None = None
