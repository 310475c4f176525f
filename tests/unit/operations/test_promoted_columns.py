"""Columns that take a wider type, or come again after they were dropped: the rows of files from before, and filters."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
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
