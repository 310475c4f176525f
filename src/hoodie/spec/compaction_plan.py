"""Which file groups a compaction will rewrite: content of `compaction.requested`, as far as readers need it.

1. A group named by a pending plan has a slice at the plan's instant already, even while no base file is there.

It does not know storage, nor (yet) how a plan is made.
"""

from __future__ import annotations

from hoodie.errors import Corrupt
from hoodie.spec.avro_container import parse_container
from hoodie.spec.typed_values import folder_of, records_of, text_of

_RECORD = "HoodieCompactionPlan"


def parse_compaction_plan(data: bytes, path: str) -> tuple[tuple[str, str], ...]:
    """(partition path, file id) of every file group of the plan, in the plan's order.

    Raises:
        Corrupt: damaged, another kind of record, or a partition outside the table.
    """
    name, record = parse_container(data, path)
    if "operations" not in record:
        raise Corrupt(f"{path} holds a {name}, not a {_RECORD}", remedy="Restore the file from a copy", path=path)
    operations = records_of(record, "operations", path)
    return tuple((folder_of(one, "partitionPath", path), text_of(one, "fileId", path)) for one in operations)
