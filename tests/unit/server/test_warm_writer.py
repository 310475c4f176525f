"""What a writer asks of storage to know its table does not grow with its files, once a service keeps views for it.

Tables are simulated: names and sizes of files that nobody opens. A listing counts as often as an object store is asked
for it, a thousand names at a time.
"""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn", reason="needs the extra `server`")

from hoodie.engine import LocalEngine
from hoodie.server.embedded import stop_embedded
from hoodie.spec import BaseFileName, CommitMetadata, WriteStat
from hoodie.state.handle import load_handle
from hoodie.table import Table
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.lake import Awake, Lake, row
from hoodie.timeline import complete, create_requested, new_instant_time, to_inflight

PARTITIONS = 10
PAGE = 1000
OPTIONS = {
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.parquet.small.file.limit": "1",  # none is small, which only their sizes tell
    "hoodie.datasource.write.operation": "insert",
}


def simulated(files: int) -> Lake:
    """A table with so many files, as one commit says."""
    lake = Lake(options=OPTIONS)
    lake.write("insert", [row("a", part=f"p{number}") for number in range(PARTITIONS)])
    handle = lake.handle()
    instant = new_instant_time(handle.env, handle.config.timezone, lake.table.timeline().last_time())
    stats: dict[str, list[WriteStat]] = {}
    for number in range(files):
        partition = f"p{number % PARTITIONS}"
        name = BaseFileName(f"f{number:07d}-0000-0000-0000-000000000000-0", "0-1-2", instant)
        handle.storage.put(f"{partition}/{name.text}", b"x")
        stats.setdefault(partition, []).append(
            WriteStat(
                file_id=name.file_id,
                path=f"{partition}/{name.text}",
                partition_path=partition,
                file_size_bytes=1,
                num_writes=1,
            )
        )
    requested = create_requested(handle.storage, handle.profile, instant, "commit", b"")
    inflight = to_inflight(handle.storage, handle.profile, requested, b"")
    (written,) = lake.commits()
    metadata = CommitMetadata(
        {name: tuple(some) for name, some in stats.items()},
        extra_metadata=written.extra_metadata,
        operation_type=written.operation_type,
    )
    payload = handle.profile.commit_codec.encode(metadata, "commit")
    complete(handle.storage, handle.profile, inflight, payload, handle.env, handle.config.timezone)
    return lake


def calls_of_a_commit(lake: Lake, **options: str) -> tuple[int, int]:
    """Calls of a write into all partitions, and how many of them listed data folders; the second of two such writes."""
    for turn in range(2):
        counted = CountingStorage(lake.storage)
        table = Table(load_handle(counted, Awake()), {**lake.options, **options}, LocalEngine(1))
        table.insert(lake._data([row(f"{turn}", part=f"p{number}") for number in range(PARTITIONS)]))
    listed = [call.path for call in counted.calls if call.op == "list_dir" and not call.path.startswith(".hoodie")]
    pages = sum(-(-len(lake.storage.list_dir(path).files) // PAGE) for path in listed)
    return len(counted.calls) - len(listed) + pages, pages


@pytest.mark.parametrize("sizes", [(100, 10_000), pytest.param((100, 1_000, 100_000), marks=pytest.mark.long)])
def test_a_warm_writer_asks_as_often_of_a_large_table_as_of_a_small_one(sizes: tuple[int, ...]) -> None:
    found = {}
    try:
        for files in sizes:
            lake = simulated(files)
            found[files] = (
                calls_of_a_commit(lake),
                calls_of_a_commit(lake, **{"hoodie.embed.timeline.server": "true"}),
            )
            stop_embedded()
    finally:
        stop_embedded()
    print("\nstorage calls of a commit into 10 partitions, and those that list data folders")
    for files, (without, warm) in found.items():
        print(f"{files:>8} files: {without[0]} and {without[1]} without, {warm[0]} and {warm[1]} with a service")
    assert {warm for _, warm in found.values()} == {found[sizes[0]][1]}
    assert all(warm[1] == 0 for _, warm in found.values())
    assert found[sizes[-1]][0][1] >= sizes[-1] // PAGE
    assert found[sizes[0]][1][0] < found[sizes[0]][0][0]
