"""The metadata table as a party of a write's commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hoodie.engine import Engine, LocalEngine
from hoodie.errors import CommitUnknown, Unavailable
from hoodie.metadata_writer.file_facts import FileFacts
from hoodie.metadata_writer.known import KnownMetadata
from hoodie.metadata_writer.options import MetadataOptions
from hoodie.metadata_writer.record import record_update, undo_update
from hoodie.metadata_writer.update import TableUpdate
from hoodie.records import from_avro
from hoodie.spec import Instant, keys
from hoodie.state.handle import TableHandle
from hoodie.transaction import PendingCommit

_LOCAL: Final = LocalEngine()


@dataclass(frozen=True, slots=True)
class MetadataParticipant:
    """A `Participant`: the metadata table knows the write before it completes, as the options want it kept. The engine
    does what is much work there; `known` is what is known of the metadata table since the table lock was taken, before
    this write is prepared for the first time. `facts`: what is known of some of its files beside their statistics, by
    path. Nothing happens where a table has none.
    """

    engine: Engine = _LOCAL
    options: MetadataOptions = field(default_factory=MetadataOptions)
    known: KnownMetadata | None = None
    facts: Mapping[str, FileFacts] = field(default_factory=dict)

    def prepare(self, pending: PendingCommit) -> None:
        """See `Participant`: a delta commit of the metadata table at the instant of the write.

        Raises:
            Unavailable: it is not known whether the metadata table has it.
        """
        if not pending.handle.config.has_metadata_table:
            return
        update = self._update(pending)
        known = self.known if pending.seen is None else None  # others were at work meanwhile
        try:
            record_update(pending.handle, update, self.engine, self.options, pending.timeline, known)
        except CommitUnknown as unknown:
            # Whatever the metadata table says of it, the write itself is not completed, and can be aborted.
            raise Unavailable(
                f"The metadata table could not be told of {update.instant}: {unknown.cause}",
                remedy="Nothing became visible; repeat the write",
                instant=update.instant,
            ) from unknown

    def withdraw(self, handle: TableHandle, inflight: Instant) -> TableHandle:
        """See `Participant`: the delta commit is rolled back without a record."""
        if not handle.config.has_metadata_table:
            return handle
        return undo_update(handle, inflight, None, self.engine)

    def _update(self, pending: PendingCommit) -> TableUpdate:
        outcome, inflight = pending.outcome, pending.inflight
        schema = outcome.extra_metadata.get(keys.SCHEMA_EXTRA)
        return TableUpdate(
            instant=inflight.requested,
            action=inflight.comparable_action,
            stats=outcome.stats,
            facts=self.facts,
            schema=from_avro(schema) if schema else None,
            replaced=outcome.replaced or {},
            keeps_rows=outcome.compacted,
            knows_inserts=outcome.knows_inserts,
        )
