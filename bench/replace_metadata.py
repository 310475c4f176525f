"""What commit metadata costs that replaces many file groups, as an insert_overwrite writes it: RFC-19's table.

`python -m bench.replace_metadata` prints all eight rows of it, in the Avro of versions 8 and 9 and the JSON of version
6: milliseconds, bytes, and memory at the highest. The benchmark measures the largest one, and full write stats beside
the ids, which the RFC does not.
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
import uuid
from typing import Any

from hoodie.spec import V6, V9, CommitMetadata, FormatProfile, WriteStat

GROUPS = 300_000
PARTITIONS = 10
INSTANT = "20261121000000000"
RFC = {
    1: {300: (55, 41), 3_000: (55, 42), 30_000: (93, 120), 300_000: (103, 130)},
    10: {300: (53, 32), 3_000: (68, 60), 30_000: (87, 104), 300_000: (97, 114)},
}
"""Partitions → groups → milliseconds to write and to read, in the RFC."""


def replace_metadata(*, with_stats: bool, repeat: int) -> dict[str, Any]:
    """`encode` and `decode`: seconds of each repetition, in the Avro of versions 8 and 9."""
    return measured(_metadata(GROUPS, PARTITIONS, with_stats=with_stats), V9, repeat)


def measured(metadata: CommitMetadata, profile: FormatProfile, repeat: int) -> dict[str, Any]:
    """`encode` and `decode`: seconds of each repetition; `bytes` of the metadata."""
    encode, decode = [], []
    for _ in range(repeat):
        start = time.perf_counter()
        data = profile.commit_codec.encode(metadata, "replacecommit")
        middle = time.perf_counter()
        read = profile.commit_codec.parse(data, "bench.replacecommit")
        decode.append(time.perf_counter() - middle)
        encode.append(middle - start)
    if read.partition_to_replace_file_ids != metadata.partition_to_replace_file_ids:
        raise AssertionError("the metadata changed on its way")
    return {"encode": encode, "decode": decode, "bytes": len(data)}


def _highest_bytes(metadata: CommitMetadata, profile: FormatProfile) -> int:
    """Memory that encoding and decoding take at the highest, beside the metadata."""
    tracemalloc.start()
    try:
        profile.commit_codec.parse(profile.commit_codec.encode(metadata, "replacecommit"), "bench.replacecommit")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _metadata(groups: int, partitions: int, *, with_stats: bool = False) -> CommitMetadata:
    replaced = {
        f"2026/11/{day:02d}": tuple(f"{uuid.uuid4()}-0" for _ in range(groups // partitions))
        for day in range(1, partitions + 1)
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


def main() -> None:
    """Prints the table."""
    print("| partitions | groups | | write, ms | RFC | read, ms | RFC | bytes | memory, MiB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for partitions, rows in RFC.items():
        for groups, (write_ms, read_ms) in rows.items():
            metadata = _metadata(groups, partitions)
            for name, profile in (("Avro", V9), ("JSON", V6)):
                found = measured(metadata, profile, 7)
                wrote, read = (statistics.median(found[step]) * 1000 for step in ("encode", "decode"))
                memory = _highest_bytes(metadata, profile) / 2**20
                print(
                    f"| {partitions} | {groups:,} | {name} | {wrote:.1f} | {write_ms} | {read:.1f} | {read_ms} "
                    f"| {found['bytes']:,} | {memory:.1f} |"
                )


if __name__ == "__main__":
    main()
