"""Tables with a long past: thousands of upserts that each rewrote one file of every partition. For timing services.

1. Instants are as a writer leaves them: three state files each, workload profile and statistics inside.
2. Data files are tiny copies of one Parquet file: services that clean and archive look at names and sizes only, and
   readers of the table get rows.
3. Nothing goes through the writer, so a table of thousands of commits takes seconds to make.
"""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.records import to_avro
from hoodie.spec import (
    COMMIT,
    BaseFileName,
    CommitMetadata,
    FormatProfile,
    Instant,
    InstantTime,
    PartitionMetafile,
    PartitionWork,
    State,
    TableConfig,
    WriteStat,
    encode_partition_metafile,
    encode_table_config,
    format_instant_time,
    keys,
    profile_of,
    workload_profile,
)
from hoodie.spec.new_table import NewTable, new_table_properties
from hoodie.storage import Storage

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("qty", pa.int64())])

_WRITERS = 8


def make_long_table(storage: Storage, profile: FormatProfile, commits: int, partitions: int) -> TableConfig:
    """The config of the new table in `storage`: `commits` upserts, the n-th requested n minutes after `START`."""
    new = NewTable(name="long", record_key_fields=("id",), partition_fields=("part",), timezone="UTC")
    config = TableConfig(new_table_properties(profile, new))
    storage.put(keys.PROPERTIES_FILE, encode_table_config(config, START))
    profile = profile_of(config)
    names = [f"part={n:03d}" for n in range(partitions)]
    for name in names:
        metafile = encode_partition_metafile(PartitionMetafile(_time(0), 1), START)
        storage.put(f"{name}/{keys.PARTITION_METAFILE_PREFIX}", metafile)
    files = {name: _data_file(name) for name in names}
    with ThreadPoolExecutor(_WRITERS) as pool:
        list(pool.map(lambda number: _commit(storage, profile, number, files), range(commits)))
    return config


def _commit(storage: Storage, profile: FormatProfile, number: int, files: dict[str, bytes]) -> None:
    requested, before = _time(number), _time(number - 1) if number else "null"
    stats = {}
    for partition, data in files.items():
        name = BaseFileName(_file_id(partition), "0-1-2", requested).text
        storage.put(f"{partition}/{name}", data)
        stats[partition] = (
            WriteStat(
                file_id=_file_id(partition),
                path=f"{partition}/{name}",
                prev_commit=before,
                partition_path=partition,
                num_writes=1,
                num_update_writes=1,
                file_size_bytes=len(data),
                total_write_bytes=len(data),
            ),
        )
    done = CommitMetadata(stats, extra_metadata={keys.SCHEMA_EXTRA: to_avro(SCHEMA, "long")}, operation_type="UPSERT")
    work = {partition: PartitionWork(0, {_file_id(partition): (before, 1)}) for partition in files}
    contents = {
        State.REQUESTED: b"",
        State.INFLIGHT: profile.commit_codec.encode(workload_profile("UPSERT", work), COMMIT),
        State.COMPLETED: profile.commit_codec.encode(done, COMMIT),
    }
    for state, data in contents.items():
        instant = Instant(requested, COMMIT, state, _time(number, 30) if state is State.COMPLETED else None)
        storage.put(f"{profile.timeline_dir}/{profile.instant_names.file_name(instant)}", data)


def _time(number: int, seconds: int = 0) -> InstantTime:
    return format_instant_time(START + timedelta(minutes=number, seconds=seconds), "UTC")


def _file_id(partition: str) -> str:
    return f"{partition.replace('=', '-')}-0"


def _data_file(partition: str) -> bytes:
    rows = pa.table(
        {
            "_hoodie_commit_time": [_time(0)],
            "_hoodie_commit_seqno": [f"{_time(0)}_0_0"],
            "_hoodie_record_key": [partition],
            "_hoodie_partition_path": [partition],
            "_hoodie_file_name": ["long.parquet"],
            "id": [partition],
            "part": [partition],
            "qty": pa.array([1], pa.int64()),
        }
    )
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, store_schema=False)
    return buffer.getvalue()
