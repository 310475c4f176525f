"""Ranges of partitions that only got files: what their records say and the new files have is what all files have."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

from hoodie.metadata_writer import MetadataRecords
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.indexes import partition_stats
from hoodie.metadata_writer.indexes.partition_stats import PartitionStatsIndex
from hoodie.metadata_writer.update import TableUpdate
from hoodie.testing.lake import ROWS, Lake, row

pytestmark = pytest.mark.deep

NARROW = pa.schema([*ROWS, ("n", pa.int32()), ("x", pa.float64()), ("t", pa.string())])
WIDE = pa.schema([*ROWS, ("n", pa.int64()), ("x", pa.float64()), ("t", pa.string()), ("late", pa.int32())])


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every update of the index is made in both ways and compared; how many partitions were known before it."""
    known: list[int] = []
    quick, updated = partition_stats._ranges_before, PartitionStatsIndex.updated

    def both(source: PartitionStatsIndex, context: IndexContext, update: TableUpdate) -> Iterator[MetadataRecords]:
        def counted(*given: object) -> object:
            found = quick(*given)  # type: ignore[arg-type]
            known.append(len(found))
            return found

        answers = []
        for way in (lambda *_: {}, counted):
            monkeypatch.setattr(partition_stats, "_ranges_before", way)
            answers.append(list(updated(source, context, update)))
        slow, fast = answers
        assert [text(one) for one in fast] == [text(one) for one in slow]
        yield from fast

    monkeypatch.setattr(PartitionStatsIndex, "updated", both)
    return known


def text(records: MetadataRecords) -> str:
    """Rows and deletes by key; as text, in which NaN is NaN and zeros have signs."""
    return repr(records.rows.sort_by("key").to_pylist()) + repr(sorted(records.deletes.to_pylist()))


def rows_of(chance: random.Random, ts: int, schema: pa.Schema) -> pa.Table:
    rows = [
        row(
            f"k{chance.randint(0, 30):02d}",
            ts=ts,
            part=chance.choice("ab"),
            n=chance.choice([None, chance.randint(-9, 9)]),
            x=chance.choice([None, 0.0, -0.0, 2.5, math.nan if chance.random() < 0.2 else -7.0]),
            t=chance.choice([None, "é", "z" * chance.choice([1, 5_000])]),
            late=chance.choice([None, 3]),
        )
        for _ in range(chance.randint(1, 6))
    ]
    distinct = {one["id"]: one for one in rows}
    return pa.Table.from_pylist([{name: one[name] for name in schema.names} for one in distinct.values()], schema)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("seed", range(3))
def test_both_ways_agree_on_any_history(version: int, seed: int, kind: str, compared: list[int]) -> None:
    options = {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.partition.stats.enable": "true",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": 4,
        "hoodie.parquet.small.file.limit": 0 if seed % 2 else None,
        "hoodie.metadata.compact.max.delta.commits": 5,
    }
    chance, lake = random.Random(seed), Lake(version, options, schema=NARROW)
    for ts in range(1, 15):
        schema = NARROW if ts < 8 else WIDE
        operation = chance.choice(["upsert", "upsert", "upsert", "insert", "delete", "delete_partition"])
        operation = "upsert" if ts == 1 or (operation == "delete_partition" and ts % 3) else operation
        lake.write(operation, rows_of(chance, ts, schema))
    if kind == "MERGE_ON_READ":
        assert any(compared)
    lake.ensure_sound()
