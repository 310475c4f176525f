"""The error of a write that has to give way, and how it tells of the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hoodie.errors import Conflict
from hoodie.storage.lock_holder import this_holder
from hoodie.transaction.moves import Move
from hoodie.transaction.pending_commit import PendingCommit
from hoodie.view import GroupId

REPEAT_THE_WRITE: Final = (
    "Nothing became visible; repeat the write, or let it be repeated (hoodie.write.num.retries.on.conflict.failures)"
)
KEYS_TOLD: Final = 10


class WriteConflict(Conflict):
    """What another writer did meanwhile does not go with this write, which may be repeated. Facts: `instant`, `other`,
    `operation` and `other_operation`, `writer` (this one, a `LockHolder`) and `owner` (the other, where it said it),
    `groups`, `partitions` and `keys`, up to ten of this write's own.
    """


def write_conflict(  # noqa: PLR0917
    pending: PendingCommit,
    other: Move,
    groups: Iterable[GroupId],
    own_keys: Sequence[str],
    what: str = "the same file groups",
    did: str = "",
) -> WriteConflict:
    """The error that tells who has to give way to whom, and why: what the other `did`, and to `what`."""
    said = sorted(groups)
    partitions = sorted({partition for partition, _ in said})
    named = ", ".join(file_id for _, file_id in said[:3]) + (" …" if len(said) > 3 else "")
    of_keys = f"; keys of it: {', '.join(own_keys)}" if own_keys else ""
    return WriteConflict(
        f"The {pending.outcome.operation} {pending.inflight.requested} cannot be committed: {told(other)} "
        f"{did or ('changed' if other.instant.is_completed else 'plans to rewrite')} {what} meanwhile "
        f"({len(said)}: {named}, in {', '.join(repr(one) for one in partitions[:3])}{of_keys})",
        remedy=REPEAT_THE_WRITE,
        instant=pending.inflight.requested,
        operation=pending.outcome.operation,
        other=other.instant.requested,
        other_operation=other.operation,
        writer=this_holder(pending.outcome.operation.lower(), pending.handle.env),
        owner=other.owner,
        groups=tuple(said),
        partitions=tuple(partitions),
        keys=tuple(own_keys),
    )


def told(other: Move) -> str:
    """The other in the middle of a message, with who made it."""
    by = "" if other.owner is None else f" by process {other.owner.process} on {other.owner.host}"
    return f"the {other.operation or other.instant.action} {other.instant.requested}{by}"
