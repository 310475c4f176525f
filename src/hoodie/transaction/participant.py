"""Who has to know what a write did before the write completes, such as the metadata table, or an index outside."""

from __future__ import annotations

from typing import Protocol

from hoodie.spec import Instant
from hoodie.state.handle import TableHandle
from hoodie.transaction.pending_commit import PendingCommit


class Participant(Protocol):
    """A party of the commit. Implemented by the metadata table; whatever readers believe together with the timeline.

    1. What `prepare` stores counts only once the instant is completed: readers leave out entries of pending instants.
       So a crash between `prepare` and the completed instant shows nothing; the rollback of the instant withdraws it.
    2. Both are called under the table lock, by the thread that commits, and may be called again for the same instant.
    3. The contract is the class `ParticipantContract` in `hoodie.testing`.
    """

    def prepare(self, pending: PendingCommit) -> None:
        """Stores what the write did.

        Raises:
            HudiError: it could not; the write does not complete. Never `CommitUnknown`: nothing is visible yet.
        """
        ...

    def withdraw(self, handle: TableHandle, inflight: Instant) -> TableHandle:
        """The handle of the table, after what was stored for the instant is gone; nothing may have been."""
        ...
