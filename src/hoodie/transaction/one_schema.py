"""Whether a write and what others did meanwhile leave one schema."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hoodie.state.table_schema import NEVER_CHANGES_SCHEMA
from hoodie.timeline import load_commit_metadata
from hoodie.transaction.moves import Mine, Move, schema_of
from hoodie.transaction.pending_commit import PendingCommit
from hoodie.transaction.write_conflict import WriteConflict, told


def ensure_one_schema(pending: PendingCommit, mine: Mine, moves: Sequence[Move]) -> None:
    """Checks that the schema this write leaves is that of everybody. A table has the schema of the commit that was
    requested last, for Hudi as well: who changes it gives way to one that began later, whatever that one says.

    Raises:
        WriteConflict: another has changed it meanwhile, or began later and has not.
    """
    writes = (one for one in moves if one.operation not in NEVER_CHANGES_SCHEMA)
    others = [one for one in writes if one.schema is not None and not one.schema.equals(mine.schema)]
    if mine.schema is None or not others:
        return
    before = _schema_before(pending)
    for one in others:
        is_newer = one.instant.is_completed and one.instant.requested > pending.inflight.requested
        if before is None or one.schema is None or not one.schema.equals(before) or is_newer:
            did = "began later and is completed" if is_newer else "changed it meanwhile"
            raise WriteConflict(
                f"The {pending.outcome.operation} {pending.inflight.requested} has another schema than "
                f"{told(one)}, which {did}",
                remedy="Nothing became visible; repeat the write. Rows that lack columns of the table need "
                "hoodie.write.set.null.for.missing.columns=true then, which fills them with nulls",
                instant=pending.inflight.requested,
                other=one.instant.requested,
                owner=one.owner,
            )


def _schema_before(pending: PendingCommit) -> pa.Schema | None:
    """The schema at the newest commit that was known when the write was planned. Reads commits until one has it."""
    handle = pending.handle
    for one in sorted(pending.planned_on.completed_writes(), key=lambda i: i.completed or i.requested, reverse=True):
        said = load_commit_metadata(handle.storage, handle.profile, one)
        schema = schema_of(said.extra_metadata or {})
        if schema is not None and said.operation_type not in NEVER_CHANGES_SCHEMA:
            return schema
    return None
