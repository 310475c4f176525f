"""Columns that take a wider type, or come again after they were dropped: the rows of files from before, and filters."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie import Table
from hoodie.engine import LocalEngine
from hoodie.errors import Invalid
from hoodie.services.clustering.slice_facts import RangeSource
from hoodie.services.health import looked_at
from hoodie.testing.lake import Lake, logged_lake

VERSIONS = [6, 9]
MADE = pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
DROP = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}
DEFAULT = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"


def lake_of(version: int, made: Any, **options: str) -> Lake:
    return Lake(version, options) if made is Lake else logged_lake(version, **options)


def rows_of(
    ids: str, *, ts: Any = 1, ts_type: pa.DataType | None = None, **columns: tuple[list[Any], pa.DataType]
) -> pa.Table:
    count = len(ids)
    rows = {"id": list(ids), "part": ["p"] * count, "ts": pa.array([ts] * count, ts_type or pa.int64())}
    return pa.table({**rows, **{name: pa.array(values, kind) for name, (values, kind) in columns.items()}})


@pytest.mark.parametrize("stats", ["true", "false"])
@pytest.mark.parametrize("version", VERSIONS)
@MADE
def test_filters_find_floats_that_have_become_doubles(version: int, made: Any, stats: str) -> None:
    """0.1 as a float lies above 0.1; it is 0.1 once the column is a double, and bounds from before are, too."""
    lake = lake_of(version, made, **{"hoodie.metadata.index.column.stats.enable": stats})
    lake.write("upsert", rows_of("a", v=([0.1], pa.float32())))
    lake.write("upsert", rows_of("b", v=([2.0], pa.float64())).set_column(1, "part", pa.array(["q"])))
    for condition, found in {
        "v = 0.1": "a",
        "v <= 0.1": "a",
        "v < 0.2": "a",
        "v > 0.1": "b",
        "v in (0.1, 2)": "ab",
    }.items():
        assert [row["id"] for row in lake.table.scan(filter=condition).read_all().to_pylist()] == list(found), condition


GROWN = [
    pytest.param([-65.4, 0.1, 0.7, None], pa.float32(), pa.float64(), ["-65.4D", "0.1D", "0.7D"], id="floats"),
    pytest.param([-5, 16_777_217, 7, None], pa.int32(), pa.float64(), ["-5", "16777217", "7.5"], id="ints"),
    pytest.param([1 - 2**54, 2**53 + 1, 7], pa.int64(), pa.float64(), [f"{2**53 + 1}", f"{-(2**54)}D"], id="longs"),
]


@pytest.mark.parametrize(("values", "narrow", "wide", "literals"), GROWN)
@pytest.mark.parametrize("version", [6, 8, 9])
@MADE
def test_statistics_from_before_a_promotion_are_sound_and_lose_no_row(
    version: int, made: Any, values: list[Any], narrow: pa.DataType, wide: pa.DataType, literals: list[str]
) -> None:
    """`validate` said of -65.4, which was a float, that it begins at -65.4000015258789."""
    options = {f"hoodie.metadata.index.{kind}.stats.enable": "true" for kind in ("column", "partition")}
    promoting = {"hoodie.write.schema.promotions": "all"}
    lake = lake_of(version, made, **options, **promoting)
    for name, value in zip("abcd", values, strict=False):
        lake.write("upsert", rows_of(name, v=([value], narrow)).set_column(1, "part", pa.array([f"p{name}"])))
    lake.write("upsert", rows_of("z", v=([2.5], wide)))
    lake.write("insert", rows_of("y", v=([3.5], wide)).set_column(1, "part", pa.array(["pa"])))
    assert lake.table.validate() == []
    for literal, operator in itertools.product(literals, ("=", "<", "<=", ">", ">=", "<>")):
        found = [
            table.scan(["id"], f"v {operator} {literal}").read_all().sort_by("id")
            for table in (lake.table, Table.open(lake.uri, options={"hoodie.enable.data.skipping": "false"}))
        ]
        assert found[0] == found[1], (operator, literal)


@pytest.mark.parametrize(
    ("before", "after", "first", "second"),
    [
        (pa.array([0.1], pa.float32()), pa.array([0.1]), (0.1, 0.1), (0.1, 0.1)),
        (pa.array([7], pa.int32()), pa.array(["7"]), None, ("7", "7")),
        (
            pa.array([Decimal("1.25")], pa.decimal128(5, 2)),
            pa.array([Decimal("1.25")], pa.decimal128(9, 4)),
            (12_500, 12_500),
            (12_500, 12_500),
        ),
    ],
    ids=["floats", "texts", "decimals"],
)
@pytest.mark.parametrize("stats", ["true", "false"])
def test_plans_of_a_clustering_compare_files_by_what_their_rows_show(
    before: pa.Array, after: pa.Array, first: Any, second: Any, stats: str
) -> None:
    """Ranges by footers were those of the old type: of numbers that became texts no plan could be made."""
    promoting = {"hoodie.write.schema.promotions": "all", "hoodie.parquet.small.file.limit": "0"}
    lake = Lake(9, {"hoodie.metadata.index.column.stats.enable": stats, **promoting})
    lake.write("insert", rows_of("a").append_column("v", before))
    lake.write("insert", rows_of("b").append_column("v", after))
    handle = lake.handle()
    view, findings = looked_at(handle)
    assert not findings
    ranges = RangeSource(handle, view.timeline, lake.table.schema, LocalEngine()).load(view.slices_at(), ["v"])
    bounds = [(span.low, span.high) for of_slice in ranges.values() for span in of_slice.values()]
    assert sorted(bounds) == [span for span in (first, second) if span is not None]
    assert lake.table.services.preview("cluster", **{"hoodie.clustering.plan.strategy.sort.columns": "v"}).notes


@pytest.mark.parametrize("block", ["parquet", "avro"])
@pytest.mark.parametrize("version", VERSIONS)
@MADE
def test_a_delete_from_before_ties_with_a_row_of_the_wider_ordering_type(version: int, made: Any, block: str) -> None:
    given = {"hoodie.logfile.data.block.format": block}
    if version == 6:
        given["hoodie.datasource.write.payload.class"] = DEFAULT
    lake = lake_of(version, made, **given)
    deleted = {"_hoodie_is_deleted": ([True], pa.bool_()), "v": ([None], pa.string())}
    stored = {"_hoodie_is_deleted": ([False], pa.bool_())}
    lake.write("upsert", rows_of("b", ts=0.1, ts_type=pa.float32(), **stored, v=(["old"], pa.string())))
    lake.write("upsert", rows_of("b", ts=0.1, ts_type=pa.float32(), **deleted))
    lake.write("upsert", rows_of("b", ts=0.1, ts_type=pa.float64(), **stored, v=(["new"], pa.string())))
    assert lake.rows(("id", "v")) == [("b", "new")]


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=["another type", "the same type"])
@pytest.mark.parametrize("version", VERSIONS)
@MADE
def test_a_dropped_column_comes_again_when_no_file_has_it(version: int, made: Any, kind: pa.DataType) -> None:
    lake = lake_of(version, made)
    lake.write("upsert", rows_of("ab", v=(["a", "b"], pa.string()), x=(["old", "old"], pa.string())))
    lake.write("upsert", rows_of("c", v=(["c"], pa.string())).set_column(1, "part", pa.array(["q"])), DROP)
    again = rows_of("d", v=(["d"], pa.string()), x=([None if kind == pa.string() else 7], kind))
    with pytest.raises(Invalid, match="`x` was dropped from table .* 1 file groups still hold its old values"):
        lake.write("upsert", again)
    assert [row[0] for row in lake.rows(("id",))] == ["a", "b", "c"]
    lake.write("insert_overwrite_table", lake.table.scan().read_all())
    lake.write("upsert", again)
    assert dict(lake.rows(("id", "x"))) == {"a": None, "b": None, "c": None, "d": again.column("x")[0].as_py()}


def test_a_field_of_a_struct_that_was_dropped_is_a_column_too() -> None:
    lake = Lake(9, {})
    before, after = pa.struct([("n", pa.int64()), ("x", pa.string())]), pa.struct([("n", pa.int64())])
    lake.write("upsert", rows_of("a", s=([{"n": 1, "x": "old"}], before)))
    lake.write("upsert", rows_of("b", s=([{"n": 2}], after)).set_column(1, "part", pa.array(["q"])), DROP)
    with pytest.raises(Invalid, match=r"`s.x` was dropped"):
        lake.write("upsert", rows_of("c", s=([{"n": 1, "x": "new"}], before)))


def test_a_table_that_was_overwritten_takes_any_column() -> None:
    lake = Lake(9, {})
    lake.write("upsert", rows_of("a", x=(["old"], pa.string())))
    lake.write("insert_overwrite_table", rows_of("b"), DROP)
    lake.write("upsert", rows_of("c", x=([3], pa.int64())))
    assert dict(lake.rows(("id", "x"))) == {"b": None, "c": 3}
