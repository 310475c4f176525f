"""Types of files that Spark cannot read as the table's: one footer of each commit, several at a time."""

from __future__ import annotations

import threading
import time

import pyarrow as pa

from hoodie.spark.differing_types import load_differing_types
from hoodie.testing.counting_storage import Call, CountingStorage
from hoodie.testing.lake import Lake, row


def test_one_footer_of_each_commit_is_read_side_by_side() -> None:
    lake = Lake()
    for part in "abcd":
        lake.upsert(row(f"{part}1", part=part), row(f"{part}2", part=f"{part}{part}"))
    files = lake.table.read_plan().files
    threads: set[int] = set()

    def note(_: Call) -> None:
        threads.add(threading.get_ident())
        time.sleep(0.02)

    counting = CountingStorage(lake.storage, on_call=note)
    wanted = lake.table.schema.set(lake.table.schema.get_field_index("v"), pa.field("v", pa.int64()))
    found = load_differing_types(counting, files, wanted)
    assert found == dict.fromkeys({file.instant for file in files}, (("v", pa.string()),))
    assert (len(files), len(found), len({call.path for call in counting.calls})) == (8, 4, 4)
    assert len(threads) == 4
