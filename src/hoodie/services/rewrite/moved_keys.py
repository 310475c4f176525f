"""A write index that lies outside of the table, as a party of a rewrite: keys come into other groups."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.index import FollowsRewrites, MovedFile
from hoodie.spec import Instant
from hoodie.state.handle import TableHandle
from hoodie.transaction import PendingCommit
from hoodie.write.key_options import key_generator


@dataclass(frozen=True, slots=True)
class MovedKeys:
    """A `Participant`: the index hears of the files that take the place of others. It takes nothing back: what it then
    says of a rewrite that did not complete is not believed.
    """

    index: FollowsRewrites
    engine: Engine
    config: Config

    def prepare(self, pending: PendingCommit) -> None:
        """See `Participant`."""
        handle = pending.handle
        files = [
            MovedFile(stat.path, stat.partition_path, stat.file_id)
            for stat in pending.outcome.stats
            if stat.path is not None and stat.file_id is not None
        ]
        generator = None
        if not handle.config.populate_meta_fields:
            generator = key_generator(handle.config, handle.profile, self.config)
        self.index.follow(handle.storage, files, pending.inflight.requested, self.engine, generator)

    def withdraw(self, handle: TableHandle, inflight: Instant) -> TableHandle:
        """See `Participant`."""
        del inflight
        return handle
