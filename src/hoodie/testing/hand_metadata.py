"""Metadata tables put together by hand, file by file, beside a table that may be of any kind.

1. Records are dictionaries in the shape a scan of a metadata table gives: members of unions are `member0`, `member1`.
2. Nothing is checked: what must be wrong can be made. Instants are completed at once.
3. The table around gets the properties that say which partitions are ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.hfile import HFileOptions, encode_hfile
from hoodie.logs import BlockKind, Deletes, HeaderKey, encode_block, encode_deletes
from hoodie.metadata.encode_records import encode_records
from hoodie.metadata.keys import ALL_PARTITIONS
from hoodie.records import from_avro
from hoodie.spec import (
    DELTA_COMMIT,
    FormatProfile,
    Instant,
    InstantTime,
    State,
    TableConfig,
    encode_table_config,
    keys,
    metadata_record_schema,
    profile_of,
)
from hoodie.storage import NestedStorage, Storage
from hoodie.timeline import load_table_config

FIRST: InstantTime = "00000000000000000"
"""Instant of the first initialisation."""

_SAVED_AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class HandMetadata:
    """The metadata table of the table in `outer`, which must have its properties already."""

    outer: Storage
    partitions: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        config = load_table_config(self.outer)
        self.storage = NestedStorage(self.outer, keys.METADATA_TABLE_DIR)
        own = TableConfig(
            {
                keys.NAME: f"{config.name}_metadata",
                keys.TYPE: "MERGE_ON_READ",
                keys.VERSION: str(config.table_version),
                keys.BASE_FILE_FORMAT: "HFILE",
                keys.POPULATE_META_FIELDS: "false",
                keys.RECORD_KEY_FIELDS: "key",
                keys.PAYLOAD_CLASS: "org.apache.hudi.metadata.HoodieMetadataPayload",
            }
        )
        self.profile: FormatProfile = profile_of(own)
        self.storage.put(keys.PROPERTIES_FILE, encode_table_config(own, _SAVED_AT))

    def commit(self, requested: InstantTime, completed: InstantTime | None = None, action: str = DELTA_COMMIT) -> None:
        """A completed write on the metadata table's timeline."""
        for state in State:
            done = (completed or f"{requested[:14]}900") if state is State.COMPLETED else None
            name = self.profile.instant_names.file_name(Instant(requested, action, state, done))
            self.storage.put(f"{self.profile.timeline_dir}/{name}", b"")

    def base(
        self,
        partition: str,
        file_id: str,
        instant: InstantTime,
        records: pa.Table | Sequence[Mapping[str, Any]],
        options: HFileOptions | None = None,
    ) -> str:
        """A base file; its path below the metadata table."""
        self._ready(partition)
        path = f"{partition}/{file_id}_0-0-0_{instant}.hfile"
        self.storage.put(path, self.hfile(records, options))
        return path

    def log(
        self,
        partition: str,
        file_id: str,
        instant: InstantTime,
        records: pa.Table | Sequence[Mapping[str, Any]] = (),
        *,
        deleted: Iterable[str] = (),
        base_instant: InstantTime | None = None,
        version: int = 1,
    ) -> str:
        """A log file with one block of records, then one of deletes (either only if there are any)."""
        self._ready(partition)
        dropped = list(deleted)
        blocks = []
        header = {
            HeaderKey.INSTANT_TIME: instant,
            HeaderKey.SCHEMA: metadata_record_schema(self.profile.avro_generation),
        }
        if len(records):
            blocks.append(encode_block(BlockKind.HFILE_DATA, header, self.hfile(records)))
        if dropped or not blocks:
            partitions = pa.array([partition] * len(dropped), pa.string())
            gone = Deletes(pa.array(dropped, pa.string()), partitions, (), np.ones(len(dropped), dtype=np.bool_))
            blocks.append(encode_block(BlockKind.DELETE, header, encode_deletes(gone)))
        path = f"{partition}/.{file_id}_{base_instant or instant}.log.{version}_0-0-{version}"
        self.storage.put(path, b"".join(blocks))
        return path

    def hfile(self, records: pa.Table | Sequence[Mapping[str, Any]], options: HFileOptions | None = None) -> bytes:
        """An HFile with the records."""
        generation = self.profile.avro_generation
        if not isinstance(records, pa.Table):
            records = pa.Table.from_pylist(
                [dict(one) for one in records], schema=from_avro(metadata_record_schema(generation))
            )
        names, values = encode_records(records, generation)
        return encode_hfile(names, values, schema=metadata_record_schema(generation), options=options)

    def _ready(self, partition: str) -> None:
        if partition not in self.partitions:
            self.partitions.add(partition)
            config = load_table_config(self.outer)
            listed = {keys.METADATA_PARTITIONS: ",".join(sorted(self.partitions))}
            self.outer.put(keys.PROPERTIES_FILE, encode_table_config(config.with_changes(listed), _SAVED_AT))


def files_record(key: str, live: Mapping[str, int] | None = None, gone: Iterable[str] = ()) -> dict[str, Any]:
    """A record of the partition `files`: names with sizes, and tombstones."""
    entries = [(name, {"size": size, "isDeleted": False}) for name, size in (live or {}).items()]
    entries += [(name, {"size": 0, "isDeleted": True}) for name in gone]
    return {"key": key, "type": 1 if key == ALL_PARTITIONS else 2, "filesystemMetadata": entries}


def stats_record(key: str, column: str, name: str, bounds: tuple[Any, Any], **more: Any) -> dict[str, Any]:
    """A record of statistics; bounds are members of the union (`{"member1": {"value": 3}}`) or None."""
    counts = {"valueCount": 10, "nullCount": 0, "totalSize": 1, "totalUncompressedSize": 1}
    flags = {"isDeleted": False, "isTightBound": False}
    stats = {"fileName": name, "columnName": column, "minValue": bounds[0], "maxValue": bounds[1], **counts, **flags}
    return {"key": key, "type": 3, "ColumnStatsMetadata": {**stats, **more}}


def location_record(key: str, partition: str, **more: Any) -> dict[str, Any]:
    """A record of the record index, of encoding 0 with the file id `00..01-00..02-0` unless `more` says otherwise."""
    place = {"partitionName": partition, "fileIdHighBits": 1, "fileIdLowBits": 2, "fileIndex": 0, "fileId": ""}
    location = {**place, "instantTime": 0, "fileIdEncoding": 0, **more}
    return {"key": key, "type": 5, "recordIndexMetadata": location}
