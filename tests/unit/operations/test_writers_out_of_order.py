"""A writer that began first and commits last: what it records is newer than what others did, its instant earlier."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hoodie.testing.interleaved import SEVERAL, write_around
from hoodie.testing.lake import ROWS, Lake, row, table_of
from hoodie.transaction import WriteConflict

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
APART = {"hoodie.parquet.small.file.limit": "0", "hoodie.merge.small.file.group.candidates.limit": "0"}
INDEXED = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
WIDER = ROWS.append(pa.field("c", pa.int64()))


def lake_of(version: int, kind: str, **options: Any) -> Lake:
    lake = Lake(version, {**SEVERAL, **APART, "hoodie.datasource.write.table.type": kind, **options})
    lake.upsert(row("x"), row("y", part="q"))
    return lake


@pytest.mark.parametrize("kind", TYPES)
def test_filters_find_its_rows(version: int, kind: str) -> None:
    lake = lake_of(version, kind)
    first = table_of([row("k", "A", 2)], ROWS)
    write_around(lake, "upsert", first, lambda: lake.upsert(row("b", "B", 2)))
    assert lake.values(filter="v = 'A'") == {"k": "A"}
    assert lake.values(filter="v = 'B'") == {"b": "B"}
    lake.ensure_sound()
    for number in range(3):
        lake.upsert(row(f"z{number}", "z", 2, part="q"), hoodie__metadata__compact__max__delta__commits="2")
    assert lake.values(filter="v = 'A'") == {"k": "A"}
    lake.ensure_sound()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("whole", [False, True], ids=["a key", "its partition"])
def test_its_keys_are_found_though_they_were_deleted_meanwhile(version: int, kind: str, whole: bool) -> None:
    lake = lake_of(version, kind, **INDEXED)
    lake.upsert(row("k", "old"))
    by_index = {"hoodie.index.type": "RECORD_INDEX"}

    def deleted() -> None:
        if whole:
            lake.table.delete_partition("p")
        else:
            lake.write("delete", [row("k", ts=9)], by_index)

    write_around(lake, "insert", table_of([row("k", "A", 2)], ROWS), deleted)
    left = {"k": "A", "y": "a"} if whole else {"k": "A", "x": "a", "y": "a"}
    assert lake.values() == left
    assert lake.table.lookup(["k"]).read_all()["v"].to_pylist() == ["A"]
    assert lake.values(filter="id = 'k'") == {"k": "A"}
    lake.ensure_sound()
    lake.write("upsert", [row("k", "C", 10)], by_index)
    assert lake.values() == {**left, "k": "C"}
    lake.ensure_sound()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("part", ["p", "q"])
@pytest.mark.parametrize("retries", [0, 1])
def test_its_new_column_stays_or_it_gives_way(version: int, kind: str, part: str, retries: int) -> None:
    """The schema is that of the commit which was requested last, as Hudi reads it."""
    lake = lake_of(version, kind)
    rows = table_of([{**row("k", "A", 2, part=part), "c": 7}], WIDER)
    again = {"hoodie.write.num.retries.on.conflict.failures": str(retries)}
    beside = lambda: lake.upsert(row("b", "B", 2))  # noqa: E731
    if retries:
        write_around(lake, "upsert", rows, beside, again)
        assert "c" in lake.table.schema.names
        assert lake.rows(("id", "c"), filter="c = 7") == [("k", 7)]
    else:
        with pytest.raises(WriteConflict, match="began later"):
            write_around(lake, "upsert", rows, beside)
        assert lake.values() == {"b": "B", "x": "a", "y": "a"}
    lake.ensure_sound()


@pytest.mark.parametrize("service", ["compact", "cluster"])
def test_a_new_column_goes_with_services_which_say_no_schema(version: int, service: str) -> None:
    lake = lake_of(version, "MERGE_ON_READ")
    for turn in (2, 3):
        lake.upsert(row("x", str(turn), turn))

    def served() -> object:
        sort = {"hoodie.clustering.plan.strategy.sort.columns": "v"}
        return lake.table.services.compact() if service == "compact" else lake.table.services.cluster(**sort)

    rows = table_of([{**row("k", "A", 2, part="r"), "c": 7}], WIDER)
    write_around(lake, "upsert", rows, lambda: [served()])
    assert lake.rows(("id", "c"), filter="c = 7") == [("k", 7)]
    assert lake.values() == {"k": "A", "x": "3", "y": "a"}
