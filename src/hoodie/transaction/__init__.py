"""How a write begins, completes or is aborted: instants, table lock, conflicts (docs/design/0019-transactions.md)."""

from hoodie.transaction.conflicts import ConflictRule, GroupsUnchanged, NobodyElse, PlanSetAside, StillPending
from hoodie.transaction.locking import (
    SINGLE_WRITER,
    HeldThroughout,
    Locking,
    LockPolicy,
    TakenAtBothEnds,
    executor_lock,
    locking,
)
from hoodie.transaction.marking import markers_for
from hoodie.transaction.outcome import Committed, Outcome
from hoodie.transaction.participant import Participant
from hoodie.transaction.pending_commit import PendingCommit
from hoodie.transaction.transaction import InstantTaken, Transaction

__all__ = [
    "SINGLE_WRITER",
    "Committed",
    "ConflictRule",
    "GroupsUnchanged",
    "HeldThroughout",
    "InstantTaken",
    "LockPolicy",
    "Locking",
    "NobodyElse",
    "Outcome",
    "Participant",
    "PendingCommit",
    "PlanSetAside",
    "StillPending",
    "TakenAtBothEnds",
    "Transaction",
    "executor_lock",
    "locking",
    "markers_for",
]
