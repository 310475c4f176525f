"""How a write begins, completes or is aborted: instants, table lock, conflicts (docs/design/0019-transactions.md)."""

from hoodie.transaction.concurrency import has_several_writers
from hoodie.transaction.conflicts import AlsoNew, ConflictRule, GroupsUnchanged, NobodyElse, PlanSetAside, StillPending
from hoodie.transaction.early_detection import parse_early_detection
from hoodie.transaction.locking import (
    SINGLE_WRITER,
    HeldThroughout,
    Locking,
    LockPolicy,
    TakenAtBothEnds,
    executor_lock,
    locking,
    write_policy,
)
from hoodie.transaction.looked_at import LookedAt
from hoodie.transaction.lookout import EarlyConflict
from hoodie.transaction.marking import markers_for
from hoodie.transaction.moves import WRITER_EXTRA
from hoodie.transaction.outcome import Committed, Outcome
from hoodie.transaction.overlaps import GroupsApart
from hoodie.transaction.overwrites import LOOKED_EXTRA
from hoodie.transaction.own_files import load_own_files
from hoodie.transaction.own_run import OwnRun
from hoodie.transaction.participant import Participant
from hoodie.transaction.pending_commit import PendingCommit
from hoodie.transaction.revived_keys import NoneRevived
from hoodie.transaction.strategies import plans_rule, writers_rule
from hoodie.transaction.transaction import InstantTaken, Transaction
from hoodie.transaction.write_conflict import WriteConflict

__all__ = [
    "LOOKED_EXTRA",
    "SINGLE_WRITER",
    "WRITER_EXTRA",
    "AlsoNew",
    "Committed",
    "ConflictRule",
    "EarlyConflict",
    "GroupsApart",
    "GroupsUnchanged",
    "HeldThroughout",
    "InstantTaken",
    "LockPolicy",
    "Locking",
    "LookedAt",
    "NobodyElse",
    "NoneRevived",
    "Outcome",
    "OwnRun",
    "Participant",
    "PendingCommit",
    "PlanSetAside",
    "StillPending",
    "TakenAtBothEnds",
    "Transaction",
    "WriteConflict",
    "executor_lock",
    "has_several_writers",
    "load_own_files",
    "locking",
    "markers_for",
    "parse_early_detection",
    "plans_rule",
    "write_policy",
    "writers_rule",
]
