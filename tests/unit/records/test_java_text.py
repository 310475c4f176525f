from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.records.java_text import TextForm, ensure_text, java_text


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.int32(), [0, -5, None], ["0", "-5", None]),
        (pa.bool_(), [True, False], ["true", "false"]),
        (pa.large_string(), ["é", ""], ["é", ""]),
        (pa.string_view(), ["v"], ["v"]),
        (pa.decimal128(10, 2), [Decimal("1.10"), Decimal("-0.05")], ["1.10", "-0.05"]),
        (pa.decimal128(20, 10), [Decimal("0"), Decimal("1E-7")], ["0E-10", "1.000E-7"]),
        (pa.binary(), [b"ab\xff", b"", None], ["6162ff", "", None]),
        (pa.binary(2), [b"\x00\x10"], ["0010"]),
        (pa.null(), [None], [None]),
        (pa.time64("us"), [1], ["1"]),
    ],
    ids=str,
)
def test_values_are_written_as_java_writes_them(
    kind: pa.DataType, values: list[object], expected: list[object]
) -> None:
    assert java_text(pa.array(values, kind)).to_pylist() == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (-1.25e-9, "-1.25E-9"),
        (1e21, "1.0E21"),
        (100.0, "100.0"),
        (-0.0, "-0.0"),
        (5e-324, "4.9E-324"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_doubles_switch_to_an_exponent_where_java_does(value: float, text: str) -> None:
    assert java_text(pa.array([value, None])).to_pylist() == [text, None]


def test_floats_print_the_digits_of_a_float() -> None:
    floats = pa.array([1.1, 16777216.0, 3.4e38, 1e-45, 0.001], pa.float32())
    assert java_text(floats).to_pylist() == ["1.1", "1.6777216E7", "3.4E38", "1.4E-45", "0.001"]


def test_dates_are_iso_and_far_years_carry_a_sign() -> None:
    days = pa.array([19724, 2932896, 2932897, -719529], pa.int32()).cast(pa.date32())
    assert java_text(days).to_pylist() == ["2024-01-02", "9999-12-31", "+10000-01-01", "-0001-12-31"]
    assert java_text(pa.array([date(2024, 1, 2)], pa.date64())).to_pylist() == ["2024-01-02"]


MOMENT = datetime(2024, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_a_timestamp_is_its_micros_on_the_avro_path(unit: str) -> None:
    assert java_text(pa.array([MOMENT], pa.timestamp(unit, "UTC"))).to_pylist() == ["1704164645123456"]


def test_a_timestamp_is_java_sql_text_in_the_writers_zone_when_asked() -> None:
    moments = pa.array([MOMENT, datetime(2024, 1, 2, 3, 4, 5, 100000, tzinfo=UTC), None], pa.timestamp("us", "UTC"))
    assert java_text(moments, TextForm("sql")).to_pylist() == [
        "2024-01-02 03:04:05.123",
        "2024-01-02 03:04:05.1",
        None,
    ]
    assert java_text(moments, TextForm("sql", "Asia/Tokyo")).to_pylist()[0] == "2024-01-02 12:04:05.123"
    assert java_text(pa.array([-1], pa.timestamp("us", "UTC")), TextForm("sql")).to_pylist() == [
        "1970-01-01 00:00:00.0"
    ]


def test_a_timestamp_without_zone_stays_a_number() -> None:
    assert java_text(pa.array([5], pa.timestamp("us")), TextForm("sql")).to_pylist() == ["5"]


def test_slices_of_binary_columns_are_read_from_their_own_place() -> None:
    assert java_text(pa.array([b"\x01", b"\x02\x03", b"\x04"])[1:]).to_pylist() == ["0203", "04"]


@pytest.mark.parametrize("values", [[], [None], [b""], [None, b""]])
def test_binary_columns_without_bytes_have_no_digits(values: list[bytes | None]) -> None:
    expected = [None if value is None else "" for value in values]
    assert java_text(pa.array(values, pa.binary())).to_pylist() == expected


def test_nested_columns_have_no_text() -> None:
    with pytest.raises(Invalid, match=r"partition column 'p' is a list.*field inside the struct"):
        ensure_text(pa.list_(pa.int32()), "p", "partition column")
