"""Ranges in an expression index have the type that Spark gives the function's result, in every file, also in one
without rows: Hudi joins ranges of one type only, and its next write fails on others.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie.config import Config
from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.metadata import open_metadata_table
from hoodie.metadata_writer import IndexContext, MetadataOptions, build_index, expression_index
from hoodie.metadata_writer.data_files import committed_files
from hoodie.metadata_writer.expression_values import ExpressionTask
from hoodie.metadata_writer.index_functions import parse_function
from hoodie.metadata_writer.indexes.expression_index import records_of_files, records_of_partition
from hoodie.records import with_meta
from hoodie.state.handle import load_handle, timeline_of
from hoodie.testing.lake import ROWS, Lake, row

ENGINE = LocalEngine(1)
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
WIDE = pa.schema(
    [
        *ROWS,
        ("flag", pa.bool_()),
        ("small", pa.int32()),
        ("seconds", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("bytes", pa.binary()),
        ("money", pa.decimal128(12, 3)),
        ("wealth", pa.decimal128(38, 10)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("text", pa.string()),
    ]
)
AT = dt.datetime(2024, 5, 6, 7, 8, 9, 123456)
VALUES: dict[str, Any] = {
    "flag": True,
    "small": 3,
    "seconds": 1_001_000,
    "float": 1.5,
    "double": 2.5,
    "bytes": b"\x01",
    "money": Decimal("1.5"),
    "wealth": Decimal("1.5"),
    "day": AT.date(),
    "at": AT.replace(tzinfo=dt.UTC),
    "local": AT,
    "text": "2024-05-06 07:08:09",
}
INT, LONG, TEXT, DATE, MOMENT = (3, None), (4, None), (7, None), (12, None), (16, None)
CASES: list[tuple[str, str, dict[str, str], tuple[int, str | None], str | None]] = [
    ("identity", "flag", {}, (2, None), "member0"),
    ("identity", "small", {}, INT, "member1"),
    ("identity", "seconds", {}, LONG, "member2"),
    ("identity", "float", {}, (5, None), "member3"),
    ("identity", "double", {}, (6, None), "member4"),
    ("identity", "text", {}, TEXT, "member6"),
    ("identity", "bytes", {}, (8, None), "member5"),
    ("identity", "money", {}, (10, "12,3"), "member8"),
    ("identity", "wealth", {}, (10, "38,10"), None),
    ("identity", "day", {}, DATE, "member7"),
    ("identity", "at", {}, MOMENT, "member10"),
    ("identity", "local", {}, (19, None), "member2"),
    ("from_unixtime", "seconds", {"format": "yyyy-MM-dd"}, TEXT, "member6"),
    ("date_format", "at", {"format": "yyyy"}, TEXT, "member6"),
    ("unix_timestamp", "text", {}, LONG, "member2"),
    ("to_timestamp", "text", {}, MOMENT, "member10"),
    ("to_timestamp", "local", {}, MOMENT, "member10"),
    ("to_date", "at", {}, DATE, "member7"),
    ("year", "day", {}, INT, "member1"),
    ("month", "at", {}, INT, "member1"),
    ("day", "at", {}, INT, "member1"),
    ("hour", "at", {}, INT, "member1"),
    ("date_add", "day", {"days": "1"}, DATE, "member7"),
    ("date_sub", "at", {"days": "1"}, DATE, "member7"),
    ("upper", "text", {}, TEXT, "member6"),
    ("lower", "text", {}, TEXT, "member6"),
    ("trim", "text", {}, TEXT, "member6"),
    ("ltrim", "text", {}, TEXT, "member6"),
    ("rtrim", "text", {}, TEXT, "member6"),
    ("length", "text", {}, INT, "member1"),
    ("substring", "text", {"pos": "1", "len": "4"}, TEXT, "member6"),
    ("regexp_replace", "text", {"pattern": "-", "replacement": "/"}, TEXT, "member6"),
    ("regexp_extract", "text", {"pattern": "([0-9]+)", "idx": "1"}, TEXT, "member6"),
]
"""Function, column, options → the number (with digits) that V2 gives the type, the wrapper that V1 uses."""


@pytest.fixture(scope="module", params=KINDS)
def emptied(request: pytest.FixtureRequest) -> Lake:
    """A table of two partitions: all rows of one are deleted, there is a row of nulls in the other."""
    lake = Lake(9, {"hoodie.datasource.write.table.type": request.param}, schema=WIDE)
    lake.upsert(row("a", **VALUES), row("b", part="q", **VALUES))
    lake.upsert(row("n"))
    lake.write("delete", [row("b", part="q")])
    return lake


@pytest.mark.parametrize("index_version", ["V1", "V2"])
@pytest.mark.parametrize(("function", "column", "options", "kind", "wrapper"), CASES, ids=str)
def test_every_file_has_the_type_of_the_result(
    function: str,
    column: str,
    options: Mapping[str, str],
    kind: tuple[int, str | None],
    wrapper: str | None,
    index_version: str,
    emptied: Lake,
) -> None:
    handle = load_handle(emptied.storage, SystemEnv())
    context = IndexContext(handle, timeline_of(handle), ENGINE, MetadataOptions(config=Config()), {})
    files = tuple(committed_files(context))
    known = parse_function(function, options)
    task = ExpressionTask(emptied.storage, "expr_index_x", column, known, index_version, with_meta(WIDE), files)
    found = stats_of(records_of_files(task).rows) + stats_of(records_of_partition(task).rows)
    assert any(one["valueCount"] == 0 for one in found)
    if index_version == "V2":
        assert {tuple(one["valueType"].values()) for one in found} == {kind}
    else:
        assert all("valueType" not in one for one in found)
        assert {member for one in found for member in members(one)} == ({wrapper} if wrapper else set())
    assert all(not members(one) for one in found if one["valueCount"] == one["nullCount"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", [8, 9])
def test_what_a_delete_empties_has_the_type_of_the_others(version: int, kind: str) -> None:
    lake = Lake(version, {"hoodie.metadata.enable": "true", "hoodie.datasource.write.table.type": kind}, schema=WIDE)
    lake.upsert(row("a", **VALUES), row("b", part="q", **VALUES))
    handle = load_handle(lake.storage, SystemEnv())
    build_index(handle, expression_index("day", "seconds", "from_unixtime"), ENGINE)
    build_index(handle, expression_index("at", "text", "to_timestamp"), ENGINE)
    lake.write("delete", [row("b", part="q")])
    table = open_metadata_table(lake.storage, load_handle(lake.storage, SystemEnv()).config, lake.table.timeline())
    assert table is not None
    for name, number, wrapper in (("day", 7, "member6"), ("at", 16, "member10")):
        found = stats_of(table.records(f"expr_index_{name}"))
        assert any(one["valueCount"] == 0 for one in found)
        types = {(one["valueType"] or {}).get("typeOrdinal") for one in found}
        assert types == ({number} if version == 9 else {None})
        wrappers = {member for one in found for member in members(one)}
        assert wrappers == {"member2" if wrapper == "member10" and version == 9 else wrapper}


def test_filters_have_the_size_that_the_options_of_their_index_say() -> None:
    lake = Lake(9, {"hoodie.metadata.enable": "true", "hoodie.index.bloom.num_entries": "50"})
    lake.upsert(row("a"))
    small = {"filtertype": "SIMPLE", "numentries": "10", "fpp": "0.1"}
    for name, options in (("small", small), ("plain", {})):
        index = expression_index(name, "v", "upper", options, using="bloom_filters")
        build_index(load_handle(lake.storage, SystemEnv()), index, ENGINE)
    lake.upsert(row("b", "c", part="q"))
    table = open_metadata_table(lake.storage, load_handle(lake.storage, SystemEnv()).config, lake.table.timeline())
    assert table is not None
    kinds, sizes = {}, {}
    for name in ("small", "plain"):
        filters = table.records(f"expr_index_{name}").column("BloomFilterMetadata").to_pylist()
        kinds[name] = {one["type"] for one in filters}
        sizes[name] = {len(one["bloomFilter"]) for one in filters}
        assert len(filters) == 2
    assert kinds == {"small": {"SIMPLE"}, "plain": {"DYNAMIC_V0"}}
    assert max(sizes["small"]) < min(sizes["plain"])


def test_a_timestamp_of_milliseconds_counts_micros_as_in_spark() -> None:
    for zone in ("UTC", None):
        millis = pa.array([1714979289123, None], pa.timestamp("ms", zone))
        found = parse_function("identity", {}).of(millis)
        assert found.type == pa.timestamp("us", zone)
        assert found.cast(pa.int64()).to_pylist() == [1714979289123000, None]


def stats_of(rows: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.column("ColumnStatsMetadata").to_pylist()
    return found


def members(stats: Mapping[str, Any]) -> set[str]:
    """The wrappers the bounds stand in."""
    bounds = (stats[end] or {} for end in ("minValue", "maxValue"))
    return {name for bound in bounds for name, value in bound.items() if value is not None}
