"""The records of an index as they stand in the metadata table, and as the same index made anew would have them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.metadata.encode_records import encode_records
from hoodie.metadata_writer import IndexContext, MetadataOptions, MetadataRecords, RecordTask
from hoodie.metadata_writer.indexes.registry import index_of
from hoodie.records import RowBytes, decode_rows
from hoodie.spec import metadata_record_schema
from hoodie.state.handle import timeline_of
from hoodie.testing.lake import Lake

_VARYING: Final = ("instantTime", "timestamp")
"""Members that say when: an index made anew knows when files were written, not when keys came."""


def ensure_true(lake: Lake) -> None:
    """Fails where an index does not say what the same index made anew from the table's files says."""
    for partition in lake.metadata().partitions:
        if partition != "files":
            there, made = stored_records(lake, partition), initial_records(lake, partition)
            # Log files of failed writes stay in version 6, and only who makes an index anew looks into them.
            said = {
                key: record
                for key, record in made.items()
                if key in there or lake.version > 6 or not _is_of_log(record)
            }
            assert there == said, partition


def index_context(lake: Lake) -> IndexContext:
    """What an index of the table may look at now."""
    handle, known = lake.handle(), lake.metadata().definitions
    options = MetadataOptions(config=resolve(lake.options))
    return IndexContext(handle, timeline_of(handle), LocalEngine(1), options, known)


def initial_records(lake: Lake, partition: str) -> dict[tuple[str, str], Any]:
    """The records of a partition as initialising it now would make them, by key and data partition."""
    index = index_of(partition, index_context(lake))
    assert index is not None
    travelled = pickle.loads(pickle.dumps(list(index.initial(index_context(lake)))))
    made = [records.make(records.argument) if isinstance(records, RecordTask) else records for records in travelled]
    generation = lake.handle().profile.avro_generation
    return {
        (record["key"], some.data_partition): _plain(record) for some in made for record in _rows_of(some, generation)
    }


def stored_records(lake: Lake, partition: str) -> dict[tuple[str, str], Any]:
    """The records as they stand in the metadata table; those of a partitioned record index with their partition."""
    table = lake.metadata()
    by_partition = partition == "record_index" and table.definitions["record_index"].is_partitioned
    found = {}
    for record in table.records(partition).to_pylist():
        data_partition = record["recordIndexMetadata"]["partitionName"] if by_partition else ""
        found[record["key"], data_partition] = _plain(record)
    return found


def _rows_of(records: MetadataRecords, generation: Any) -> Iterator[dict[str, Any]]:
    """The records as they are read back."""
    keys, values = encode_records(records.rows, generation)
    lengths = pc.binary_length(values).to_pylist()
    ends = pa.array(lengths, pa.int64()).to_numpy().cumsum()
    data = b"".join(values.to_pylist())
    found = decode_rows(RowBytes(data, ends - lengths, ends), metadata_record_schema(generation)) if len(keys) else None
    for key, record in zip(keys.to_pylist(), found.to_pylist() if found is not None else [], strict=True):
        yield {**record, "key": key}


def _plain(value: Any) -> Any:
    """The value without what is absent and what varies."""
    if isinstance(value, dict):
        names = (name for name in value if name not in _VARYING and not name.startswith("_"))
        members = {name: _plain(value[name]) for name in names}
        return {name: member for name, member in members.items() if member is not None}
    return value


def _is_of_log(record: dict[str, Any]) -> bool:
    stats = record.get("ColumnStatsMetadata")
    return stats is not None and bool(stats["fileName"].startswith("."))
