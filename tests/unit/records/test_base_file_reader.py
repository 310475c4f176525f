"""Base files of every Hudi writer read the same; damaged ones are named."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie.errors import Corrupt, HudiError, Invalid, Missing
from hoodie.records import align, iter_batches, read_columns, read_footer, storable
from hoodie.storage import MemoryStorage
from hoodie.testing.golden import difference

GOLDEN = Path(__file__).parents[2] / "golden" / "records"
WITH_ROWS = sorted(path.name.removesuffix(".rows.parquet") for path in GOLDEN.glob("*.rows.parquet"))


def put(storage: MemoryStorage, name: str) -> str:
    storage.put(name, (GOLDEN / name).read_bytes())
    return name


def put_table(storage: MemoryStorage, table: pa.Table, **options: Any) -> str:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **{"store_schema": False} | options)
    storage.put("t.parquet", sink.getvalue().to_pybytes())
    return "t.parquet"


def all_rows(storage: MemoryStorage, path: str, **options: Any) -> list[dict[str, Any]]:
    return [row for batch in iter_batches(storage, path, **options) for row in batch.to_pylist()]


@pytest.mark.parametrize("name", WITH_ROWS)
def test_rows_are_those_hudi_reads(storage: MemoryStorage, name: str) -> None:
    expected = pq.read_table(GOLDEN / f"{name}.rows.parquet")
    schema = storable(expected.schema)
    path = put(storage, f"{name}.parquet")
    found = pa.Table.from_batches(iter_batches(storage, path, schema=schema), schema)
    assert difference(found, align(expected, schema)) is None


@pytest.mark.parametrize("name", WITH_ROWS)
def test_footer_schema_is_the_stored_one_whatever_the_list_layout(storage: MemoryStorage, name: str) -> None:
    footer = read_footer(storage, put(storage, f"{name}.parquet"))
    wanted = storable(pq.read_schema(GOLDEN / f"{name}.rows.parquet"))
    common = [column for column in footer.schema if column.name in wanted.names]
    assert [str(column) for column in common] == [str(wanted.field(column.name)) for column in common]
    assert (footer.avro_schema is None) == name.startswith(("bag_lists", "row_writer"))
    assert footer.rows == sum(footer.rows_per_group)


def test_orc_files_read_like_parquet(storage: MemoryStorage) -> None:
    path = put(storage, "orc_0.15.0.orc")
    footer = read_footer(storage, path)
    keys = read_columns(storage, path, ["_hoodie_record_key"])[0]
    bloom = footer.bloom()
    assert bloom is not None
    assert bloom.contains(keys).all()
    assert (footer.rows, footer.min_key, footer.max_key, footer.avro_schema is not None) == (10, "k0000", "k0027", True)
    schema = pa.schema([("qty", pa.int64()), ("absent", pa.date32())])
    rows = all_rows(storage, path, schema=schema, batch_rows=4)
    assert len(rows) == 10
    assert rows[0] == {"qty": -801, "absent": None}


def test_columns_come_in_the_order_asked_for(storage: MemoryStorage) -> None:
    path = put_table(storage, pa.table({"a": [1, 2], "b": ["x", "y"], "s": [{"p": 1}, {"p": 2}]}))
    assert read_columns(storage, path, ["s", "a"]).to_pylist() == [{"s": {"p": 1}, "a": 1}, {"s": {"p": 2}, "a": 2}]
    assert read_columns(storage, path, []).num_rows == 2
    footer = read_footer(storage, path)
    assert read_columns(storage, path, ["b"], footer=footer)["b"].to_pylist() == ["x", "y"]
    with pytest.raises(Invalid, match=r"`z`.*Columns are a, b, s"):
        read_columns(storage, path, ["z"])


def test_target_schema_fills_promotes_and_selects(storage: MemoryStorage) -> None:
    path = put_table(storage, pa.table({"a": pa.array([1.1, None], pa.float32()), "b": [1, 2]}))
    schema = pa.schema([("new", pa.string()), ("a", pa.float64()), ("b", pa.int64())])
    assert all_rows(storage, path, schema=schema) == [{"new": None, "a": 1.1, "b": 1}, {"new": None, "a": None, "b": 2}]
    assert all_rows(storage, path, schema=schema, columns=["b", "new"])[0] == {"b": 1, "new": None}
    assert [batch.num_rows for batch in iter_batches(storage, path, schema=pa.schema([("new", pa.int32())]))] == [2]


def test_int96_millis_and_nanos_come_as_micros(storage: MemoryStorage) -> None:
    moment = datetime(2024, 1, 2, 3, 4, 5, 678000)
    nested = pa.array([{"t": moment}], pa.struct([("t", pa.timestamp("us"))]))
    path = put_table(
        storage,
        pa.table({"x": [1], "t": pa.array([moment], pa.timestamp("us")), "s": nested}),
        use_deprecated_int96_timestamps=True,
    )
    assert read_footer(storage, path).schema.field("t").type == pa.timestamp("us", "UTC")
    aware = moment.replace(tzinfo=UTC)
    assert all_rows(storage, path) == [{"x": 1, "t": aware, "s": {"t": aware}}]
    for unit in ("ms", "ns"):
        put_table(storage, pa.table({"t": pa.array([moment], pa.timestamp(unit))}))
        assert read_columns(storage, path)["t"].to_pylist() == [moment]
        assert read_columns(storage, path).schema.field("t").type == pa.timestamp("us")


def test_old_bloom_key_is_found(storage: MemoryStorage) -> None:
    path = "old.parquet"
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, pa.schema([("a", pa.int64())]), store_schema=False) as writer:
        writer.add_key_value_metadata({"com.uber.hoodie.bloomfilter": "text", "avro.schema": "{}"})
    storage.put(path, sink.getvalue().to_pybytes())
    footer = read_footer(storage, path)
    assert (footer.bloom_text, footer.bloom_type, footer.avro_schema) == ("text", None, "{}")
    with pytest.raises(Corrupt):
        footer.bloom()


def test_batches_are_bounded_by_rows_and_by_bytes(storage: MemoryStorage) -> None:
    path = put_table(storage, pa.table({"a": list(range(1000))}), row_group_size=400)
    assert [batch.num_rows for batch in iter_batches(storage, path, batch_rows=300)] == [300, 100, 300, 100, 200]
    wide = pa.table({"a": [chr(65 + at % 26) * 200_000 + str(at) for at in range(300)]})
    put_table(storage, wide, use_dictionary=False)
    sizes = [batch.nbytes for batch in iter_batches(storage, path)]
    assert max(sizes) < 32 * 1024 * 1024
    assert len(sizes) >= 3


FLAT = pa.table(
    {
        "n": pa.array([1, 2, None, 11, 12, 13, 21, None, 23], pa.int64()),
        "s": ["a", "b", "c", "k", "l", "m", "x", "y", "z"],
        "d": pa.array([date(2024, 1, day) for day in range(1, 10)]),
        "t": pa.array([datetime(2024, 1, day, tzinfo=UTC) for day in range(1, 10)], pa.timestamp("us", "UTC")),
        "m": pa.array([Decimal(day) for day in range(1, 10)], pa.decimal128(10, 2)),
        "f": pa.array([float(day) for day in range(9)], pa.float32()),
        "u": pa.array([None] * 3 + ["v"] * 6),
    }
)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (pc.field("day").isin(["2024-01-01"]), 1),  # Arrow does not compare texts with the bounds of dates
        (pc.field("large").isin([1.0, 2.0]), 0),  # nor floats with a bound that none is equal to
    ],
    ids=["day", "large"],
)
def test_a_group_is_read_where_its_bounds_cannot_be_compared(
    storage: MemoryStorage, condition: pc.Expression, rows: int
) -> None:
    table = pa.table({"day": pa.array([date(2024, 1, 1)]), "large": pa.array([2**53 + 1])})
    assert len(all_rows(storage, put_table(storage, table), filter=condition)) == rows


@pytest.mark.parametrize(
    ("expression", "groups"),
    [
        (pc.field("n") == 12, [1]),
        (pc.field("n") > 13, [2]),
        (pc.field("n") >= 13, [1, 2]),
        (pc.field("n") < 2, [0]),
        (pc.field("n") <= 11, [0, 1]),
        (pc.field("n").isin([2, 23]), [0, 2]),
        (pc.field("s") == "l", [1]),
        (pc.field("d") > pa.scalar(date(2024, 1, 7)), [2]),
        (pc.field("t") < pa.scalar(datetime(2024, 1, 2, tzinfo=UTC)), [0]),
        (pc.field("m") >= Decimal("8.00"), None),
        (pc.field("u").is_null(), [0]),
        (pc.field("u").is_valid(), [1, 2]),
        (pc.field("u") != "w", [1, 2]),
        (pc.field("n") == 11.5, None),
        (pc.field("f") > 7.5, None),
    ],
    ids=str,
)
def test_filters_keep_the_right_rows_and_skip_row_groups(
    storage: MemoryStorage, expression: pc.Expression, groups: list[int] | None
) -> None:
    path = put_table(storage, FLAT, row_group_size=3)
    expected = FLAT.filter(expression).to_pylist()
    assert all_rows(storage, path, filter=expression) == expected
    assert all_rows(storage, path, filter=expression, columns=["s"]) == [{"s": row["s"]} for row in expected]
    # Arrow does not use the statistics of a group with nulls for comparisons.
    if groups is not None and "n" not in str(expression).split()[0].strip("("):
        damaged = bytearray(storage.read(path))
        meta = read_footer(storage, path).native
        for group in set(range(3)) - set(groups):
            for at in range(meta.row_group(group).num_columns):
                column = meta.row_group(group).column(at)
                start = column.dictionary_page_offset or column.data_page_offset
                damaged[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
        storage.put(path, bytes(damaged))
        assert all_rows(storage, path, filter=expression) == expected


def test_filters_on_promoted_and_absent_columns_do_not_skip_wrongly(storage: MemoryStorage) -> None:
    path = put_table(storage, pa.table({"n": pa.array([5, 100], pa.int32())}))
    schema = pa.schema([("n", pa.string()), ("new", pa.int32())])
    assert all_rows(storage, path, schema=schema, filter=pc.field("n") > "2") == [{"n": "5", "new": None}]
    assert len(all_rows(storage, path, schema=schema, filter=pc.field("new").is_null())) == 2
    assert all_rows(storage, path, schema=schema, filter=pc.field("new") == 1) == []


def test_filters_that_do_not_fit_are_refused(storage: MemoryStorage) -> None:
    path = put_table(storage, FLAT)
    for condition in (pc.field("zz") == 1, pc.field("n") == "x"):
        with pytest.raises(Invalid):
            all_rows(storage, path, filter=condition)


@pytest.mark.parametrize("suffix", ["parquet", "orc"])
def test_files_that_are_none_are_corrupt_and_named(storage: MemoryStorage, suffix: str) -> None:
    name = "orc_0.15.0.orc" if suffix == "orc" else "simple_filter_1.2.0.parquet"
    good = (GOLDEN / name).read_bytes()
    path = f"p=1/bad.{suffix}"
    for data in (b"", b"PAR1", b"garbage" * 100, good[:-20], good[: len(good) // 2]):
        storage.put(path, data)
        for read in (
            lambda: read_footer(storage, path),
            lambda: read_columns(storage, path),
            lambda: all_rows(storage, path),
        ):
            with pytest.raises(Corrupt, match=path) as raised:
                read()
            assert raised.value.facts["path"] == path
            assert raised.value.remedy


def test_missing_file_is_missing(storage: MemoryStorage) -> None:
    with pytest.raises(Missing):
        read_footer(storage, "no.parquet")


def test_random_damage_never_raises_anything_foreign(storage: MemoryStorage) -> None:
    good = (GOLDEN / "two_level_lists_1.2.0.parquet").read_bytes()
    chance = random.Random(4)
    outcomes = set()
    for _ in range(150):
        bad = bytearray(good)
        for _ in range(chance.randrange(1, 5)):
            bad[len(bad) - 1 - chance.randrange(chance.choice([300, 6000, len(bad)]))] = chance.randrange(256)
        storage.put("f.parquet", bytes(bad))
        try:
            footer = read_footer(storage, "f.parquet")
            all_rows(storage, "f.parquet")
            footer.bloom()
            outcomes.add("read")
        except HudiError as error:
            outcomes.add(type(error).__name__)
    assert "Corrupt" in outcomes
