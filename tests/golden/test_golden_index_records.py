"""Records of indexes computed here from golden tables' own files are those that Hudi made of the same files.

What differs on purpose, and is left out: bounds of floats where values are NaN (Hudi stores zeros or NaN, which lose
rows; here they are computed), of bytes in log files (Hudi compares signed bytes), of partitions that Hudi widened by
replaced files, and the times at which keys and filters came.

Set `HOODIE_GOLDEN_DIR` to run the full set.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie import Table
from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.metadata import MetadataTable, open_metadata_table
from hoodie.metadata.encode_records import encode_records
from hoodie.metadata.keys import secondary_keys
from hoodie.metadata_writer import (
    IndexContext,
    MetadataOptions,
    MetadataRecords,
    RecordTask,
    expression_index,
    secondary_index,
)
from hoodie.metadata_writer.indexes.expression_index import ExpressionIndex
from hoodie.metadata_writer.indexes.registry import index_of
from hoodie.metadata_writer.indexes.secondary_index import SecondaryIndex
from hoodie.metadata_writer.metadata_index import MetadataIndex
from hoodie.records import RowBytes, decode_rows
from hoodie.slices.bootstrap import is_skeleton
from hoodie.spec import metadata_record_schema
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.testing.golden import GoldenTable, golden_tables
from hoodie.view import list_files

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FULL = os.environ.get("HOODIE_GOLDEN_DIR")
TABLES = [
    table
    for table in golden_tables((ROOT / FULL).resolve() if FULL else HERE / "tables")
    if (table.folder / "expected" / "metadata_table.jsonl.gz").exists()
    and not table.name.rpartition("/")[2].startswith("mor_torn_log")  # damaged by hand after they were indexed
    and not table.name.endswith("_alter_table")  # columns go by ids: no such table is written here
]
SETTINGS = {"hoodie.index.bloom.num_entries": "500"}
"""What golden tables were written with."""

STATS, BLOOM = "ColumnStatsMetadata", "BloomFilterMetadata"
WHEN = ("instantTime", "timestamp")
SAME_SHAPE = {"member7": "member1", "member8": "member5"}
"""Hudi 0.15's records do not tell these wrappers from others of equal shape."""

Unpack = Callable[[GoldenTable], Path]
Opened = Callable[[Path], TableHandle]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_records_made_anew_are_those_of_hudi(table: GoldenTable, unpacked: Unpack, opened: Opened) -> None:
    handle = opened(unpacked(table))
    timeline = timeline_of(handle)
    metadata = open_metadata_table(handle.storage, handle.config, timeline)
    assert metadata is not None
    there = {file.path.rpartition("/")[2] for part in list_files(handle.storage) for file in part.everything}
    for partition in metadata.partitions:
        if partition == "files":
            continue
        theirs = {
            key: one
            for key, one in _theirs(metadata, partition).items()
            if (one.get(STATS) or {}).get("fileName", "").rpartition("/")[2] in {*there, ""} or one["type"] == 6
        }
        ours = _ours(handle, metadata, partition)
        if partition == "bloom_filters":  # a filter does not say of which file it is, and removed ones may be left
            theirs = {key: one for key, one in theirs.items() if key in ours}
        for key in theirs.keys() & ours.keys():
            _ensure_alike(ours[key], theirs[key], f"{partition} {key}")
        if partition in ("record_index", "bloom_filters") or partition.startswith("secondary_index_"):
            assert ours.keys() == theirs.keys(), partition
        else:
            assert theirs.keys() <= ours.keys(), partition


def test_indexes_know_the_values_of_bootstrap_sources(opened: Opened, tmp_path: Path) -> None:
    table = next(one for one in TABLES if one.name.endswith("1.2.0/cow_bootstrap_metadata_only"))
    path = table.unpack(tmp_path)
    Table.open(str(path)).services.rollback(timeline_of(opened(path)).completed()[-1].requested)
    handle = opened(path)
    rows = Table.open(str(path)).scan(columns=["_hoodie_record_key", "ts"]).read_all()
    context = IndexContext(handle, timeline_of(handle), LocalEngine(1), MetadataOptions(config=resolve(SETTINGS)), {})
    slices = context.view().slices_at()
    assert any(is_skeleton(part, handle.config) for part in slices)
    by_value = [one for made in _made(SecondaryIndex(secondary_index("ts", "ts")), context) for one in made]
    wanted = secondary_keys(rows["ts"].combine_chunks().cast(pa.string()), rows["_hoodie_record_key"].combine_chunks())
    assert sorted(one["key"] for one in by_value) == sorted(wanted.to_pylist())
    live = {part.base.path.rpartition("/")[2] for part in slices if part.base is not None}
    ranges = [
        one[STATS] for made in _made(ExpressionIndex(expression_index("ts", "ts", "identity")), context) for one in made
    ]
    of_files = [one for one in ranges if one["fileName"] in live]
    assert len(of_files) == len(live)
    assert sum(one["valueCount"] for one in of_files) == rows.num_rows
    assert min(_bare(one["minValue"]) for one in of_files)[1] == pc.min(rows["ts"]).as_py()
    assert max(_bare(one["maxValue"]) for one in of_files)[1] == pc.max(rows["ts"]).as_py()


def _made(source: MetadataIndex, context: IndexContext) -> Iterator[list[dict[str, Any]]]:
    """The records a source begins with, as they are read back."""
    for one in source.initial(context):
        records = one.make(one.argument) if isinstance(one, RecordTask) else one
        yield list(_rows(records, context.handle.profile.avro_generation))


def _ours(handle: TableHandle, metadata: MetadataTable, partition: str) -> dict[Any, dict[str, Any]]:
    known = metadata.definitions
    context = IndexContext(
        handle, timeline_of(handle), LocalEngine(1), MetadataOptions(config=resolve(SETTINGS)), known
    )
    source = index_of(partition, context)
    if source is None:
        pytest.fail(f"{partition} has no source")
    made = [one.make(one.argument) if isinstance(one, RecordTask) else one for one in source.initial(context)]
    rows = ((one, some.data_partition) for some in made for one in _rows(some, handle.profile.avro_generation))
    return {(one["key"], data_partition): one for one, data_partition in rows}


def _theirs(metadata: MetadataTable, partition: str) -> dict[Any, dict[str, Any]]:
    known = metadata.definitions.get(partition)
    by_partition = partition == "record_index" and known is not None and known.is_partitioned
    found = {}
    for one in metadata.records(partition).to_pylist():
        found[one["key"], one["recordIndexMetadata"]["partitionName"] if by_partition else ""] = one
    return found


def _rows(records: MetadataRecords, generation: Any) -> Iterator[dict[str, Any]]:
    keys, values = encode_records(records.rows, generation)
    if len(keys):
        data = values.to_pylist()
        ends = pa.array([len(one) for one in data], pa.int64()).to_numpy().cumsum()
        starts = ends - [len(one) for one in data]
        decoded = decode_rows(RowBytes(b"".join(data), starts, ends), metadata_record_schema(generation)).to_pylist()
        yield from ({**one, "key": key} for key, one in zip(keys.to_pylist(), decoded, strict=True))


def _ensure_alike(mine: dict[str, Any], theirs: dict[str, Any], what: str) -> None:
    for name, expected in theirs.items():
        got: Any = mine.get(name)
        if name == STATS and expected is not None:
            _ensure_stats(got or {}, expected, what, of_partition=theirs["type"] == 6)
        elif name == BLOOM and expected is not None and len(got["bloomFilter"]) != len(expected["bloomFilter"]):
            continue  # made by SQL without the option for its size
        elif isinstance(expected, dict):
            assert {key: one for key, one in (got or {}).items() if key in expected and key not in WHEN} == {
                key: one for key, one in expected.items() if key not in WHEN
            }, what
        else:
            assert got == expected, (what, name)


def _ensure_stats(mine: dict[str, Any], theirs: dict[str, Any], what: str, *, of_partition: bool) -> None:
    if of_partition and mine["valueCount"] != theirs["valueCount"]:
        return
    for name, expected in theirs.items():
        if name in ("minValue", "maxValue"):
            got, wanted = _bare(mine[name]), _bare(expected)
            known = _bare(mine["minValue"]), _bare(mine["maxValue"])
            if known[1][1] == math.inf:  # NaN is there, or infinity
                continue
            if wanted == (wanted[0], 0) and got[1] is None:  # nothing but nulls: zeros in some releases
                continue
            if isinstance(wanted[1], bytes) and (of_partition or theirs["fileName"].startswith(".")):
                continue
            assert got == wanted, (what, theirs["columnName"], name)
        elif name == "valueType":
            assert mine.get(name) == expected or expected is None, (what, theirs["columnName"], name)
        elif name in mine:  # 0.15 does not know all that 1.2 writes into tables of version 6
            assert mine[name] == expected, (what, theirs["columnName"], name)


def _bare(wrapped: dict[str, Any] | None) -> tuple[str, Any]:
    members = ((name, one["value"]) for name, one in (wrapped or {}).items() if one is not None)
    name, value = next(members, ("", None))
    return SAME_SHAPE.get(name, name), value
