"""Tables as a metadata-only bootstrap leaves them: skeletons in the table, data columns in files of another storage."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.hfile import encode_hfile
from hoodie.records import META_FIELDS, BaseFileOptions, BaseFileWriter, BloomOptions, with_meta
from hoodie.spec import (
    METADATA_BOOTSTRAP_INSTANT,
    BaseFileName,
    Instant,
    State,
    TableConfig,
    WriteStat,
    encode_table_config,
    keys,
    parse_base_file_name,
)
from hoodie.spec.bootstrap_index import BOOTSTRAP_PARTITIONS_FILE, partition_key
from hoodie.storage import MemoryStorage, Storage
from hoodie.testing.hand_table import at, new_name
from hoodie.testing.lake import Awake, Lake
from hoodie.timeline import load_commit_metadata

_STATUS = {
    "type": "record",
    "name": "HoodieFileStatus",
    "fields": [
        {"name": "path", "type": {"type": "record", "name": "P", "fields": [{"name": "uri", "type": "string"}]}},
        {"name": "length", "type": "long"},
    ],
}
_ENTRY = {
    "type": "record",
    "name": "HoodieBootstrapPartitionMetadata",
    "fields": [
        {"name": "bootstrapPartitionPath", "type": "string"},
        {"name": "partitionPath", "type": "string"},
        {"name": "fileIdToBootstrapFile", "type": {"type": "map", "values": _STATUS}},
    ],
}
_OPTIONS = BaseFileOptions(bloom=BloomOptions(entries=50))


def bootstrapped(lake: Lake, *, told_bytes: int | None = None) -> MemoryStorage:
    """Makes the one commit of the lake a bootstrap; the storage of the source files. They have no column of their
    partition. `told_bytes`: how long the index says that each of them is.
    """
    storage, table = lake.storage, lake.table
    timeline, config = table.timeline(), table.config
    (done,) = timeline.completed_writes()
    said = load_commit_metadata(storage, timeline.profile, done)
    source = MemoryStorage(new_name())
    stats: dict[str, tuple[WriteStat, ...]] = {}
    entries: dict[str, dict[str, Any]] = {}
    for partition, stat in said.write_stats():
        made, data = _split(storage, stat, config.partition_fields)
        name = f"part-{len(entries.get(partition, ()))}.parquet"
        source.put(f"{partition}/{name}", data)
        length = len(data) if told_bytes is None else told_bytes
        entries.setdefault(partition, {})[made.file_id or ""] = {"path": {"uri": f"/old/{name}"}, "length": length}
        stats[partition] = (*stats.get(partition, ()), made)
    for path in lake.files():
        if f"/{done.requested}" in path:
            storage.delete(path)
    metadata = replace(said, partition_to_write_stats=stats, operation_type="BOOTSTRAP")
    for state in State:
        completed = at(1) if state is State.COMPLETED else None
        instant = Instant(METADATA_BOOTSTRAP_INSTANT, done.action, state, completed)
        content = timeline.profile.commit_codec.encode(metadata, done.action) if completed else b""
        path = f"{timeline.profile.timeline_dir}/{timeline.profile.instant_names.file_name(instant)}"
        storage.put(path, content)
    storage.put(BOOTSTRAP_PARTITIONS_FILE, _index(entries))
    raw = {**config.raw, "hoodie.bootstrap.base.path": source.uri}
    storage.put(keys.PROPERTIES_FILE, encode_table_config(TableConfig(raw), Awake().now()))
    return source


def _split(storage: Storage, stat: WriteStat, path_columns: tuple[str, ...]) -> tuple[WriteStat, bytes]:
    """Makes a skeleton of a base file; its write stat, and a parquet file of the other columns."""
    path = stat.path or ""
    folder, _, file = path.rpartition("/")
    old = parse_base_file_name(file)
    assert old is not None
    name = BaseFileName(old.file_id.removesuffix("-0"), old.write_token, METADATA_BOOTSTRAP_INSTANT)
    rows = pq.read_table(io.BytesIO(storage.read(path)))
    count, schema = rows.num_rows, with_meta(pa.schema([]))
    texts = {
        "_hoodie_commit_time": [name.instant] * count,
        "_hoodie_commit_seqno": [f"{name.instant}_0_{number}" for number in range(count)],
        "_hoodie_file_name": [name.text] * count,
    }
    columns = [pa.array(texts[one], pa.string()) if one in texts else rows.column(one) for one in schema.names]
    writer = BaseFileWriter(storage, f"{folder}/{name.text}", schema, _OPTIONS)
    writer.write(pa.table(columns, schema=schema))
    written = writer.close()
    storage.delete(path)
    buffer = io.BytesIO()
    pq.write_table(rows.drop_columns([*META_FIELDS, *path_columns]), buffer)
    made = stat._replace(file_id=name.file_id, path=f"{folder}/{name.text}", file_size_bytes=written.size_bytes)
    return made, buffer.getvalue()


def _index(entries: dict[str, dict[str, Any]]) -> bytes:
    values = []
    for partition in sorted(entries):
        record = {
            "bootstrapPartitionPath": partition,
            "partitionPath": partition,
            "fileIdToBootstrapFile": entries[partition],
        }
        buffer = io.BytesIO()
        fastavro.writer(buffer, _ENTRY, [record])
        values.append(buffer.getvalue())
    return encode_hfile(pa.array([partition_key(one) for one in sorted(entries)]), pa.array(values, pa.binary()))
