"""Seconds to encode and decode commit metadata that replaces many file groups, as an insert_overwrite writes it.

RFC-19 of Hudi gives 100 ms and 115 ms for the ids of 300 000 groups. With full write stats beside them it is another
matter; that is measured too.
"""

from __future__ import annotations

import time
import uuid
from typing import Any

from hoodie.spec import V9, CommitMetadata, WriteStat

GROUPS = 300_000
PARTITIONS = 10
INSTANT = "20261121000000000"


def replace_metadata(*, with_stats: bool, repeat: int) -> dict[str, Any]:
    """`encode` and `decode`: seconds of each repetition, in the Avro of versions 8 and 9."""
    metadata = _metadata(with_stats=with_stats)
    encode, decode = [], []
    for _ in range(repeat):
        start = time.perf_counter()
        data = V9.commit_codec.encode(metadata, "replacecommit")
        middle = time.perf_counter()
        read = V9.commit_codec.parse(data, "bench.replacecommit")
        decode.append(time.perf_counter() - middle)
        encode.append(middle - start)
    if read.partition_to_replace_file_ids != metadata.partition_to_replace_file_ids:
        raise AssertionError("the metadata changed on its way")
    return {"encode": encode, "decode": decode, "bytes": len(data)}


def _metadata(*, with_stats: bool) -> CommitMetadata:
    replaced = {
        f"2026/11/{day:02d}": tuple(f"{uuid.uuid4()}-0" for _ in range(GROUPS // PARTITIONS))
        for day in range(1, PARTITIONS + 1)
    }
    stats = {name: tuple(_stat(name, file_id) for file_id in ids) for name, ids in replaced.items()}
    return CommitMetadata(
        partition_to_write_stats=stats if with_stats else {},
        compacted=False,
        extra_metadata={},
        operation_type="INSERT_OVERWRITE",
        partition_to_replace_file_ids=replaced,
    )


def _stat(partition: str, file_id: str) -> WriteStat:
    path = f"{partition}/{file_id}_0-1-2_{INSTANT}.parquet"
    return WriteStat(file_id=file_id, path=path, partition_path=partition, num_writes=1000, file_size_bytes=100_000)
