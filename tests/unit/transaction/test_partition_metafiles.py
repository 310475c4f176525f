"""Partition metafiles are created side by side, once each."""

from __future__ import annotations

import threading
from dataclasses import replace

from hoodie.testing.counting_storage import Call, CountingStorage
from hoodie.testing.lake import Lake, row
from hoodie.transaction.partition_metafiles import create_partition_metafiles


def test_metafiles_of_many_partitions_are_created_at_the_same_time() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    together = threading.Barrier(8)

    def wait(call: Call) -> None:
        together.wait(10)  # breaks when they come one after the other

    handle = replace(lake.handle(), storage=CountingStorage(lake.storage, on_call=wait))
    create_partition_metafiles(handle, [f"new{n}" for n in range(8)], "20260101000000000")
    assert len([path for path in lake.files() if path.startswith("new")]) == 8


def test_a_metafile_that_is_there_stays() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    before = lake.files()
    create_partition_metafiles(lake.handle(), ["p"], "20260102000000000")
    assert lake.files() == before
