"""A damaged file of index definitions: the doctor goes on without it.

Secondary and expression indexes are lost with it, as nothing else says what they index. Whether the record index is cut
by partitions is told by the names of its file groups: made anew as a global one it would lead to second copies.
"""

from __future__ import annotations

import logging

from hoodie.errors import Corrupt
from hoodie.metadata import RECORD_INDEX, load_index_definitions
from hoodie.metadata.index_definitions import DEFAULT_PATH
from hoodie.metadata.partitions import EXPRESSION_PREFIX, SECONDARY_PREFIX, data_partition_groups
from hoodie.metadata_writer.definitions import store_index_definitions
from hoodie.metadata_writer.indexes.record_index import record_index_definition
from hoodie.metadata_writer.partition_state import kept_partitions, withdraw
from hoodie.metadata_writer.slots import listed_file_ids
from hoodie.spec import keys
from hoodie.state.handle import TableHandle
from hoodie.storage import NestedStorage

log = logging.getLogger(__name__)


def with_readable_definitions(handle: TableHandle) -> TableHandle:
    """The handle of the table after a damaged file of definitions was replaced, and the indexes that only it knew were
    dropped, with a warning.

    Raises:
        Corrupt: the properties name a file outside the table.
    """
    try:
        load_index_definitions(handle.storage, handle.config)
    except Corrupt as damage:
        if damage.facts.get("path") != DEFAULT_PATH:
            raise
        kept = kept_partitions(handle)
        lost = [name for name in kept if name.startswith((SECONDARY_PREFIX, EXPRESSION_PREFIX))]
        log.warning(
            "table %s loses these indexes, make them again: %s (%s)",
            handle.config.name,
            ", ".join(lost) or "none",
            damage.cause,
        )
        is_partitioned = RECORD_INDEX in kept and _is_cut_by_partitions(handle)
        handle = withdraw(handle, lost)
        return store_index_definitions(
            handle, {RECORD_INDEX: record_index_definition(partitioned=True)} if is_partitioned else {}
        )
    return handle


def _is_cut_by_partitions(handle: TableHandle) -> bool:
    file_ids = listed_file_ids(NestedStorage(handle.storage, keys.METADATA_TABLE_DIR), RECORD_INDEX)
    return bool(file_ids) and "" not in data_partition_groups(file_ids)
