"""Functions of expression indexes give what Spark's functions of the same name give."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import Invalid, Unsupported
from hoodie.metadata_writer.index_functions import parse_function

AT = dt.datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=dt.UTC)
TIMES = pa.array([AT, None], pa.timestamp("us", "UTC"))
DAYS = pa.array([dt.date(1970, 1, 11), None])


@pytest.mark.parametrize(
    ("name", "options", "values", "expected"),
    [
        ("identity", {}, pa.array([3, None]), [3, None]),
        ("from_unixtime", {"format": "yyyy-MM-dd HH"}, pa.array([1001000, None]), ["1970-01-12 14", None]),
        ("from_unixtime", {}, pa.array([-1]), ["1969-12-31 23:59:59"]),
        ("date_format", {"format": "yyyy/MM"}, TIMES, ["2024/05", None]),
        ("year", {}, TIMES, [2024, None]),
        ("month", {}, DAYS, [1, None]),
        ("day", {}, DAYS, [11, None]),
        ("hour", {}, TIMES, [7, None]),
        ("to_date", {}, TIMES, [dt.date(2024, 5, 6), None]),
        ("to_date", {"format": "dd.MM.yyyy"}, pa.array(["06.05.2024", "x"]), [dt.date(2024, 5, 6), None]),
        ("to_timestamp", {"format": "yyyy-MM-dd"}, pa.array(["2024-05-06"]), [dt.datetime(2024, 5, 6, tzinfo=dt.UTC)]),
        ("unix_timestamp", {}, pa.array(["1970-01-01 00:01:00", None]), [60, None]),
        ("date_add", {"days": "3"}, DAYS, [dt.date(1970, 1, 14), None]),
        ("date_sub", {"days": "11"}, DAYS, [dt.date(1969, 12, 31), None]),
        ("upper", {}, pa.array(["aé", None]), ["AÉ", None]),
        ("LOWER", {}, pa.array(["ÀB"]), ["àb"]),
        ("trim", {}, pa.array(["  a b "]), ["a b"]),
        ("ltrim", {}, pa.array([" a "]), ["a "]),
        ("rtrim", {}, pa.array([" a "]), [" a"]),
        ("trim", {"trimString": "xy"}, pa.array(["yx a xy"]), [" a "]),
        ("rtrim", {"trimString": "x"}, pa.array(["xax"]), ["xa"]),
        ("length", {}, pa.array(["é€", None]), [2, None]),
        ("substring", {"pos": "2", "len": "2"}, pa.array(["hello", "h"]), ["el", ""]),
        ("substring", {"pos": "0", "len": "2"}, pa.array(["hello"]), ["he"]),
        ("substring", {"pos": "-3", "len": "2"}, pa.array(["hello", "h"]), ["ll", ""]),
        ("substring", {"pos": "-2", "len": "9"}, pa.array(["hello", "h"]), ["lo", "h"]),
        ("regexp_replace", {"pattern": "N(.)", "replacement": "$1M"}, pa.array(["N1"]), ["1M"]),
        ("regexp_extract", {"pattern": "N([0-9]+)", "idx": "1"}, pa.array(["aN12", "x", None]), ["12", "", None]),
    ],
)
def test_a_function_gives_sparks_result(
    name: str, options: dict[str, str], values: pa.Array, expected: list[Any]
) -> None:
    assert parse_function(name, options).of(values).to_pylist() == expected


def test_an_unknown_function_is_named_with_those_that_are_known() -> None:
    with pytest.raises(Unsupported, match="soundex") as caught:
        parse_function("soundex", {})
    assert "upper" in (caught.value.remedy or "")


def test_an_option_that_is_missing_is_asked_for() -> None:
    with pytest.raises(Invalid, match="'days'"):
        parse_function("date_add", {})


def test_a_column_of_another_type_is_an_error_of_its_own() -> None:
    with pytest.raises(Invalid, match="year"):
        parse_function("year", {}).of(pa.array([True]))


def test_years_of_five_digits_have_a_sign_as_in_java() -> None:
    function = parse_function("from_unixtime", {"format": "yyyy-MM-dd"})
    seconds = pa.array([1704088800000, 253402300799, 253402300800, 0, None], pa.int64())
    assert function.of(seconds).to_pylist() == ["+55970-06-05", "9999-12-31", "+10000-01-01", "1970-01-01", None]
