from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.records import partition_columns, partition_values
from hoodie.records.partition_values import unescaped


@dataclass(frozen=True)
class Layout:
    partition_fields: tuple[str, ...] = ("p",)
    partition_field_types: tuple[str, ...] = ()
    keygen_type: str = "SIMPLE"
    slash_dates: bool = False
    drop_partition_columns: bool = False


def value(path: str, kind: pa.DataType = pa.string(), **layout: bool) -> object:  # noqa: B008
    return partition_values(path, pa.schema([("p", kind)]), Layout(**layout)).get("p", "left to the file")


@pytest.mark.parametrize(
    ("path", "kind", "expected"),
    [
        ("a", pa.string(), "a"),
        ("p=a", pa.string(), "a"),
        ("p=-5", pa.int32(), -5),
        ("-9223372036854775808", pa.int64(), -(2**63)),
        ("1.0E10", pa.float64(), 1e10),
        ("p=-0.05", pa.decimal128(10, 2), Decimal("-0.05")),
        ("0E-10", pa.decimal128(20, 10), Decimal("0E-10")),
        ("true", pa.bool_(), True),
        ("p=2024-01-02", pa.date32(), date(2024, 1, 2)),
        ("p=2024-01-02 03%3A04%3A05.12", pa.timestamp("us", "UTC"), datetime(2024, 1, 2, 3, 4, 5, 120000)),
    ],
)
def test_values_have_the_type_of_the_table(path: str, kind: pa.DataType, expected: object) -> None:
    assert value(path, kind) == expected


@pytest.mark.parametrize("kind", [pa.string(), pa.int32(), pa.date32(), pa.timestamp("us")])
@pytest.mark.parametrize("path", ["__HIVE_DEFAULT_PARTITION__", "p=__HIVE_DEFAULT_PARTITION__"])
def test_the_default_partition_is_null_for_every_type(path: str, kind: pa.DataType) -> None:
    assert value(path, kind) is None


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("1704164645123456", pa.timestamp("us", "UTC")),
        ("x", pa.int32()),
        ("2147483648", pa.int32()),
        ("1_000", pa.int32()),
        ("1.234", pa.decimal128(10, 2)),
        ("yes", pa.bool_()),
        ("+10000-01-01", pa.date32()),
        ("6162ff", pa.binary()),
    ],
)
def test_text_that_is_no_value_of_the_type_is_left_to_the_file(path: str, kind: pa.DataType) -> None:
    assert value(path, kind) == "left to the file"


def test_escapes_are_undone_as_spark_undoes_them() -> None:
    assert unescaped("a%2Fb c") == "a/b c"
    assert unescaped("100% %zz %4") == "100% %zz %4"
    assert value("p=p%3Dq%2525") == "p=q%25"
    assert partition_values("p=x%2Fy", pa.schema([("p", pa.string())]), Layout(), unescape=False) == {"p": "x%2Fy"}


def test_a_single_field_may_span_folders() -> None:
    assert value("x/y z") == "x/y z"
    assert value("p=2024/01/02") == "2024/01/02"
    assert value("p=2024/01/02", pa.date32(), slash_dates=True) == date(2024, 1, 2)
    assert value("p=2024/01/02", slash_dates=True) == "2024/01/02"
    assert value("2024/01/02", pa.date32()) == "left to the file"


TWO = pa.schema([("a", pa.string()), ("b", pa.int32())])


def test_several_fields_take_one_segment_each() -> None:
    layout = Layout(("a", "b"), keygen_type="COMPLEX")
    assert partition_values("x/1", TWO, layout) == {"a": "x", "b": 1}
    assert partition_values("a=x%2Fy/b=__HIVE_DEFAULT_PARTITION__", TWO, layout) == {"a": "x/y", "b": None}
    assert partition_values("a=x/1", pa.schema([TWO.field("b")]), layout) == {"b": 1}


def test_hive_style_tells_fields_apart_even_when_a_value_spans_folders() -> None:
    layout = Layout(("a", "b"), keygen_type="COMPLEX")
    assert partition_values("a=x/y/b=1", TWO, layout) == {"a": "x/y", "b": 1}
    assert partition_values("x/y/1", TWO, layout) == {}
    assert partition_values("a=x/y/1", TWO, layout) == {}
    assert partition_values("", TWO, layout) == {}


def test_formatted_times_are_left_to_the_file() -> None:
    types = pa.schema([("s", pa.string()), ("t", pa.int64())])
    custom = Layout(("s", "t"), ("SIMPLE", "TIMESTAMP"), "CUSTOM")
    assert partition_values("a/20240102", types, custom) == {"s": "a"}
    assert partition_values("20240102", types, Layout(("t",), keygen_type="TIMESTAMP")) == {}


def test_dropped_columns_come_from_the_path_whatever_it_takes() -> None:
    dropped = Layout(("t",), keygen_type="TIMESTAMP", drop_partition_columns=True)
    types = pa.schema([("t", pa.string())])
    assert partition_values("2024/01/02", types, dropped) == {"t": "2024/01/02"}
    two = Layout(("a", "b"), keygen_type="COMPLEX", drop_partition_columns=True)
    with pytest.raises(Invalid, match="does not tell the value of 'a'"):
        partition_values("x/y/1", TWO, two)


def test_the_result_schema_keeps_order_and_types_but_for_timestamp_tables_and_dropped_columns() -> None:
    table = pa.schema([("t", pa.int64()), ("s", pa.string()), ("st", pa.struct([("a", pa.string())]))])
    simple = partition_columns(table, Layout(("s",)))
    assert simple.schema == table
    assert simple.from_path == {"s"}
    stamped = partition_columns(table, Layout(("t",), keygen_type="TIMESTAMP"))
    assert stamped.schema.field("t").type == pa.string()
    assert stamped.from_path == frozenset()
    custom = partition_columns(table, Layout(("s", "t"), ("SIMPLE", "TIMESTAMP"), "CUSTOM"))
    assert custom.schema == table
    assert custom.from_path == {"s"}
    nested = partition_columns(table, Layout(("st.a",)))
    assert nested.schema == table
    assert nested.from_path == frozenset()
    dropped = partition_columns(table, Layout(("s", "q"), keygen_type="COMPLEX", drop_partition_columns=True))
    assert dropped.schema.names == ["t", "s", "st", "q"]
    assert dropped.schema.field("q").type == pa.string()
    assert dropped.from_path == {"s", "q"}


def test_a_custom_table_without_types_is_read_from_its_files() -> None:
    untyped = Layout(("s", "t"), (), "CUSTOM")
    table = pa.schema([("s", pa.string()), ("t", pa.string())])
    assert partition_columns(table, untyped).from_path == frozenset()
    assert partition_values("south/2024010406", table, untyped) == {}
