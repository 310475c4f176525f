"""A delta commit that dies at any storage call: all of it or nothing, the next write heals, and no row is lost."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.engine import ArrowSource, LocalEngine
from hoodie.env import SystemEnv
from hoodie.services.ingest import Request
from hoodie.services.save import write_table
from hoodie.storage import open_storage
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import ROWS, Lake, logged_lake, row, table_of

pytestmark = pytest.mark.deep

SCHEMA = ROWS.append(pa.field("_hoodie_is_deleted", pa.bool_()))
_NUMBERS = itertools.count()


def prepared(version: int) -> Lake:
    """Two partitions, one of them with a log file already."""
    lake = logged_lake(version, SCHEMA, **{"hoodie.metadata.enable": False})
    lake.upsert(*(row(key) for key in "abc"), row("q", part="q"))
    lake.upsert(row("a", "a2", 2))
    return lake


def copied(lake: Lake) -> Lake:
    copy = replace(lake, uri=f"memory://crash-{next(_NUMBERS)}")
    for path, data in lake.files().items():
        copy.storage.put(path, data)
    return copy


def change(lake: Lake, storage: Any) -> None:
    """Updates, a marked delete and a new row in one delta commit."""
    rows = [row("a", "a3", 3), row("b", ts=3, _hoodie_is_deleted=True), row("q", "q3", 3, "q"), row("n", part="q")]
    source = ArrowSource(table_of(rows, SCHEMA))
    write_table(storage, Request("upsert", source, resolve(lake.options), LocalEngine(1)), SystemEnv())


BEFORE = {"a": "a2", "b": "a", "c": "a", "q": "a"}
AFTER = {"a": "a3", "c": "a", "n": "a", "q": "q3"}


def test_delta_commit_survives_a_crash_at_every_call(version: int) -> None:
    start = prepared(version)
    whole = copied(start)
    counting = CountingStorage(whole.storage)
    change(whole, counting)
    assert whole.values() == AFTER
    seen = set()
    for n in range(1, len(counting.calls) + 1):
        lake = copied(start)
        with pytest.raises(Crash):
            change(lake, CountingStorage(lake.storage, crash_at=n))
        found = lake.values()
        assert found in (BEFORE, AFTER), counting.calls[n - 1]
        seen.add(found == AFTER)
        lake.upsert(row("c", "healed", 9))
        assert lake.values() == {**found, "c": "healed"}, counting.calls[n - 1]
        lake.ensure_sound()
        open_storage(lake.uri).delete_dir("")
    assert seen == {False, True}
