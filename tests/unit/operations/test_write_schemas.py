"""Schemas over the life of a table: every type there and back, and what a write may change."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.testing.lake import ROWS, Lake, row, table_of

pytestmark = pytest.mark.sampled(4)

FILL = "hoodie.write.set.null.for.missing.columns"
RECONCILE = "hoodie.datasource.write.reconcile.schema"
DROP_COLUMNS = "hoodie.datasource.write.schema.allow.auto.evolution.column.drop"

DEEP = pa.struct([("n", pa.int64()), ("tags", pa.list_(pa.string())), ("more", pa.map_(pa.string(), pa.float64()))])
# name → type given, type that comes back, a value, another value
TYPES: dict[str, tuple[pa.DataType, pa.DataType, object, object]] = {
    "boolean": (pa.bool_(), pa.bool_(), True, False),
    "byte": (pa.int8(), pa.int32(), -128, 127),
    "short": (pa.int16(), pa.int32(), -32768, 5),
    "unsigned short": (pa.uint16(), pa.int32(), 65535, 0),
    "int": (pa.int32(), pa.int32(), -(2**31), 2**31 - 1),
    "unsigned int": (pa.uint32(), pa.int64(), 2**32 - 1, 0),
    "long": (pa.int64(), pa.int64(), -(2**63), 2**63 - 1),
    "half": (pa.float16(), pa.float32(), 0.5, -2.0),
    "float": (pa.float32(), pa.float32(), 1.5, float("-inf")),
    "double": (pa.float64(), pa.float64(), 1e300, -0.0),
    "string": (pa.string(), pa.string(), "héllo 😀", ""),
    "large string": (pa.large_string(), pa.string(), "x", "y" * 5000),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), pa.string(), "red", "blue"),
    "binary": (pa.binary(), pa.binary(), b"\x00\xff", b""),
    "large binary": (pa.large_binary(), pa.binary(), b"1", b"2"),
    "fixed binary": (pa.binary(3), pa.binary(), b"abc", b"\x00\x00\x00"),
    "date": (pa.date32(), pa.date32(), dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    "date64": (pa.date64(), pa.date32(), dt.date(1969, 12, 31), dt.date(2024, 2, 29)),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        pa.timestamp("us", "UTC"),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
        dt.datetime(2024, 2, 29, tzinfo=dt.UTC),
    ),
    "timestamp of a zone": (
        pa.timestamp("ms", "Europe/Berlin"),
        pa.timestamp("us", "UTC"),
        dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        dt.datetime(2024, 7, 1, tzinfo=dt.UTC),
    ),
    "local timestamp": (
        pa.timestamp("us"),
        pa.timestamp("us"),
        dt.datetime(2024, 1, 1, 0, 0, 0, 1),
        dt.datetime(1900, 1, 1),
    ),
    "seconds": (pa.timestamp("s"), pa.timestamp("us"), dt.datetime(2024, 1, 1), dt.datetime(1900, 1, 1)),
    "decimal": (pa.decimal128(10, 2), pa.decimal128(10, 2), Decimal("-1.50"), Decimal("99999999.99")),
    "wide decimal": (pa.decimal128(38, 10), pa.decimal128(38, 10), Decimal("1e-10"), Decimal(10**27)),
    "list": (pa.list_(pa.int64()), pa.list_(pa.int64()), [1, None, 3], []),
    "large list": (pa.large_list(pa.string()), pa.list_(pa.string()), ["a"], [None]),
    "fixed list": (pa.list_(pa.int32(), 2), pa.list_(pa.int32()), [1, 2], [3, None]),
    "list of lists": (pa.list_(pa.list_(pa.bool_())), pa.list_(pa.list_(pa.bool_())), [[True], None, []], None),
    "map": (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int32()), [("a", 1), ("b", None)], []),
    "struct": (
        DEEP,
        DEEP,
        {"n": 1, "tags": ["x", None], "more": [("k", 0.5)]},
        {"n": None, "tags": None, "more": None},
    ),
    "list of structs": (pa.list_(DEEP), pa.list_(DEEP), [{"n": 2, "tags": [], "more": []}, None], []),
    "map of structs": (
        pa.map_(pa.string(), DEEP),
        pa.map_(pa.string(), DEEP),
        [("a", {"n": 1, "tags": [], "more": []})],
        None,
    ),
}


def typed(name: str, ids: list[str], values: list[object], ts: int) -> pa.Table:
    given = TYPES[name][0]
    column = pa.array(values, pa.string()).cast(given) if pa.types.is_dictionary(given) else _array(values, given)
    plain = table_of([row(one, ts=ts, part="p" if n % 2 else "q") for n, one in enumerate(ids)])
    return plain.append_column("c", column)


def _array(values: list[object], kind: pa.DataType) -> pa.Array:
    if pa.types.is_float16(kind):
        return pa.array(values, pa.float32()).cast(kind)
    return pa.array(values, kind)


def same(found: pa.DataType, wanted: pa.DataType) -> bool:
    return str(found).replace("element", "item") == str(wanted).replace("element", "item")


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
@pytest.mark.parametrize("name", TYPES)
def test_every_type_survives_insert_update_and_rewrite(version: int, name: str, operation: str) -> None:
    _, stored, one, other = TYPES[name]
    lake = Lake(version)
    lake.write(operation, typed(name, ["a", "b", "c", "d"], [one, other, None, one], 1))
    lake.write("upsert", typed(name, ["a", "n", "c"], [other, None, one], 2))
    found = lake.table.scan(columns=["id", "c"]).read_all()
    values = dict(zip(found["id"].to_pylist(), found["c"].to_pylist(), strict=True))
    # `a` moved its partition with its place in the list: both rows are there.
    assert {key: values[key] for key in ("b", "d", "n")} == {"b": other, "d": one, "n": None}
    assert same(found.schema.field("c").type, stored), found.schema.field("c").type
    assert same(lake.table.schema.field("c").type, stored)
    lake.ensure_sound()


NANOS = pa.timestamp("ns")
NANOS_WITHIN = {
    "plain": (NANOS, "c", lambda nanos: nanos),
    "zoned": (pa.timestamp("ns", "UTC"), "c", lambda nanos: nanos),
    "struct": (pa.struct([("t", NANOS)]), "c.t", lambda nanos: {"t": nanos}),
    "list": (pa.large_list(NANOS), "c.element", lambda nanos: [nanos]),
    "map": (pa.map_(pa.string(), NANOS), "c.value", lambda nanos: [("k", nanos)]),
    "struct in list": (pa.list_(pa.struct([("t", NANOS)])), "c.element.t", lambda nanos: [{"t": nanos}]),
}


@pytest.mark.parametrize("name", NANOS_WITHIN)
def test_nanoseconds_that_would_be_cut_are_refused_and_whole_micros_pass(name: str) -> None:
    kind, path, made = NANOS_WITHIN[name]
    lake = Lake()
    for operation in ("insert", "upsert", "bulk_insert"):
        with pytest.raises(Invalid, match=f"Column `{path}` has timestamps with nanoseconds"):
            lake.write(operation, with_column([row("a"), row("b")], "c", [made(1_000), made(1_000_000_001_999)], kind))
    assert lake.files() == {}
    lake.write("upsert", with_column([row("a"), row("b")], "c", [made(1_000_000_001_000), None], kind))
    assert "1970-01-01 00:16:40.000001" in str(lake.table.scan(columns=["c"]).read_all()["c"].combine_chunks())


def test_ordering_values_that_differ_in_nanoseconds_only_are_refused(version: int) -> None:
    lake = Lake(version)
    first, second = (
        table_of([row("a")]).drop_columns("ts").append_column("ts", pa.array([nanos], NANOS))
        for nanos in (1_000, 1_001)
    )
    lake.write("upsert", first)
    with pytest.raises(Invalid, match="Column `ts` has timestamps with nanoseconds") as caught:
        lake.write("upsert", second)
    assert "floor" in str(caught.value.remedy)
    lake.write("upsert", first)
    assert len(lake.rows(("id",))) == 1


@pytest.mark.parametrize(
    "kind", [pa.null(), pa.time32("s"), pa.duration("s"), pa.uint64(), pa.map_(pa.int32(), pa.string())]
)
def test_types_hudi_cannot_hold_are_refused_before_anything_is_made(kind: pa.DataType) -> None:
    lake = Lake()
    with pytest.raises(Invalid, match="Column `c`.*type"):
        lake.write("upsert", table_of([row("a")]).append_column("c", pa.nulls(1, kind)))
    assert lake.files() == {}


# --- evolution


def with_column(rows: list[dict[str, object]], name: str, values: list[object], kind: pa.DataType) -> pa.Table:
    return table_of(rows).append_column(name, pa.array(values, kind))


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite"])
def test_new_columns_are_added_and_null_in_older_rows(version: int, operation: str) -> None:
    lake = Lake(version)
    lake.upsert(row("a"), row("b", part="q"))
    lake.write(operation, with_column([row("c", part="r")], "extra", [7], pa.int32()))
    assert lake.rows(("id", "extra")) == [("a", None), ("b", None), ("c", 7)]
    lake.write("upsert", with_column([row("a", "a2", 2)], "extra", [1], pa.int32()))
    assert lake.rows(("id", "extra")) == [("a", 1), ("b", None), ("c", 7)]
    assert [field for field in lake.table.schema.names if not field.startswith("_")] == [
        "id",
        "part",
        "ts",
        "v",
        "extra",
    ]
    lake.ensure_sound()


def test_new_fields_inside_structs_are_added(version: int) -> None:
    lake = Lake(version)
    lake.write("upsert", with_column([row("a"), row("b")], "s", [{"x": 1}, None], pa.struct([("x", pa.int32())])))
    wider = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])
    lake.write("upsert", with_column([row("b", ts=2), row("c")], "s", [{"x": 2**40, "y": ["k"]}, None], wider))
    assert lake.rows(("id", "s")) == [("a", {"x": 1, "y": None}), ("b", {"x": 2**40, "y": ["k"]}), ("c", None)]


@pytest.mark.parametrize(
    ("before", "after", "first", "second", "expected"),
    [
        (pa.int32(), pa.int64(), 1, 2**40, [1, 2**40]),
        (pa.int32(), pa.float64(), 1, 0.5, [1.0, 0.5]),
        (pa.int64(), pa.string(), 1, "x", ["1", "x"]),
        (pa.float32(), pa.float64(), 1.1, 2.2, [1.1, 2.2]),
        (pa.int64(), pa.int32(), 2**40, 1, [2**40, 1]),
        (pa.string(), pa.int32(), "x", 1, ["x", "1"]),
        (
            pa.decimal128(5, 2),
            pa.decimal128(9, 2),
            Decimal("1.50"),
            Decimal("2.25"),
            [Decimal("1.50"), Decimal("2.25")],
        ),
    ],
    ids=str,
)
def test_types_are_promoted(version, before, after, first, second, expected) -> None:
    lake = Lake(version)
    lake.write("upsert", with_column([row("a"), row("z", part="q")], "c", [first, first], before))
    by_option = {"hoodie.write.schema.promotions": "all"} if after == pa.string() else {}
    lake.write("upsert", with_column([row("b")], "c", [second], after), by_option)
    # a was rewritten with the new type, z is still in a file of the old one
    assert [value for _, value in lake.rows(("id", "c"))] == [*expected, expected[0]]
    lake.ensure_sound()


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_ordering_column_may_be_promoted_under_a_global_index(index: str) -> None:
    schema = ROWS.set(2, pa.field("ts", pa.int32()))
    lake = Lake(9, {"hoodie.index.type": index}, schema=schema)
    lake.upsert(row("a", ts=5), row("b", ts=5))
    lake.schema = ROWS
    lake.upsert(row("a", "late", 4, "q"), row("b", "far", 2**40, "q"))
    assert lake.rows(("id", "part", "v")) == [("a", "p", "a"), ("b", "q", "far")]


def test_column_that_is_missing_is_an_error_unless_nulls_are_wanted(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"), row("b"))
    before = lake.files()
    fewer = table_of([row("a", ts=2), row("c")]).select(["id", "part", "ts"])
    with pytest.raises(Invalid, match=f"Column `v`.*missing.*{FILL}"):
        lake.write("upsert", fewer)
    assert lake.files() == before
    lake.write("upsert", fewer, {FILL: "true"})
    assert lake.values() == {"a": None, "b": "a", "c": None}
    lake.write("upsert", fewer, {RECONCILE: "true"})
    lake.write("upsert", fewer, {DROP_COLUMNS: "true"})
    assert "v" not in lake.table.schema.names
    lake.ensure_sound()


@pytest.mark.parametrize("column", ["part", "ts", "id"])
def test_columns_that_steer_the_table_are_never_filled_with_nulls(column: str) -> None:
    lake = Lake()
    lake.upsert(row("a"))
    before = lake.files()
    fewer = table_of([row("a", ts=2)]).drop_columns([column])
    with pytest.raises(
        Invalid, match=f"no column '{column}', the (record key|partition|ordering) column of table lake"
    ):
        lake.write("upsert", fewer, {FILL: "true"})
    assert lake.files() == before


def test_incompatible_type_names_the_column_and_both_types(version: int) -> None:
    lake = Lake(version)
    lake.write("upsert", with_column([row("a")], "c", [1], pa.int32()))
    before = lake.files()
    for kind, value in ((pa.bool_(), True), (pa.date32(), dt.date(2024, 1, 1)), (pa.list_(pa.int32()), [1])):
        with pytest.raises(Invalid, match=r"Column `c` is int32 in the table.*Cast the column"):
            lake.write("upsert", with_column([row("a", ts=2)], "c", [value], kind))
    assert lake.files() == before


def test_value_that_does_not_fit_is_found_before_anything_is_written(version: int) -> None:
    lake = Lake(version)
    lake.write("upsert", with_column([row("a")], "c", [dt.date(2024, 1, 1)], pa.date32()))
    before = lake.files()
    with pytest.raises(Invalid, match="Column `c`"):
        lake.write("upsert", with_column([row("b")], "c", ["no date"], pa.string()))
    assert lake.files() == before


def test_required_columns_refuse_nulls_until_the_rows_say_that_they_may_have_them(version: int) -> None:
    schema = ROWS.append(pa.field("must", pa.int32(), nullable=False))
    lake = Lake(version, schema=schema)
    lake.upsert(row("a", must=1))
    before = lake.files()
    broken = pa.Table.from_arrays([*table_of([row("b")]).columns, pa.nulls(1, pa.int32())], schema=schema)
    with pytest.raises(Invalid, match="(?i)column .must. is (required|declared non-nullable)"):
        lake.write("upsert", broken)
    assert lake.files() == before
    lake.write("upsert", with_column([row("b")], "must", [None], pa.int32()))
    assert lake.rows(("id", "must")) == [("a", 1), ("b", None)]


def test_column_of_nulls_takes_the_tables_type() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    rows = table_of([row("b")]).set_column(3, "v", pa.nulls(1))
    lake.write("upsert", rows)
    assert lake.values() == {"a": "a", "b": None}


def test_column_order_and_meta_columns_of_the_input_do_not_matter(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"), row("b", part="q"))
    read = lake.table.scan().read_all()
    shuffled = read.select([*reversed(read.schema.names)])
    done = lake.write("upsert", shuffled)
    assert (done.updates, done.inserts) == (2, 0)
    assert lake.rows(("id", "part", "ts", "v")) == [("a", "p", 1, "a"), ("b", "q", 1, "a")]
    assert lake.rows(("_hoodie_commit_time",)) == [(done.instant,)] * 2
    lake.write("delete", lake.table.scan(filter="id = 'a'"))
    assert lake.values() == {"b": "a"}


@pytest.mark.parametrize("twins", [["x", "x"], ["x", "X"]])
def test_column_names_must_differ_without_regard_to_case(twins: list[str]) -> None:
    lake = Lake()
    rows = table_of([row("a")])
    for name in twins:
        rows = rows.append_column(name, pa.array([1]))
    with pytest.raises(Invalid, match="more than once"):
        lake.write("upsert", rows)
    assert lake.files() == {}


@pytest.mark.parametrize("name", ["id", "part", "ts", "v"])
def test_a_column_that_is_there_twice_is_named_whatever_it_is_for(name: str) -> None:
    lake = Lake()
    lake.upsert(row("a"))
    rows = table_of([row("a")])
    with pytest.raises(Invalid, match=f"more than once .*: {name}, {name}"):
        lake.write("upsert", rows.append_column(name, rows.column(name)))
