from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import Invalid, Unsupported
from hoodie.records import KeyGenerator, key_options
from hoodie.records.civil import civil_date, days_in_month, days_since_epoch
from hoodie.records.joda_format import parse_pattern, print_one
from hoodie.records.joda_zones import UTC_ZONE, zone_named

PREFIX = "hoodie.keygen.timebased."
MS = 1704164645123  # 2024-01-02 03:04:05.123, a Tuesday


def paths(values: pa.Array, prefix: str = PREFIX, **settings: str) -> list[str]:
    """Partition paths of a TIMESTAMP table; settings are named by their key with `_` for `.`."""
    options = {prefix + name.replace("_", "."): value for name, value in settings.items()}
    styles = {
        name: options.pop(prefix + name.replace("_", "."), None) is not None for name in ("hive_style", "url_encode")
    }
    generator = KeyGenerator(
        key_options("TIMESTAMP", record_fields="id", partition_fields="t", timestamp_options=options, **styles)
    )
    return generator.partition_paths(pa.RecordBatch.from_arrays([values], ["t"])).to_pylist()


def printed(pattern: str, zone: str = "UTC", millis: int = MS) -> str:
    return print_one(parse_pattern(pattern), millis, zone_named(zone))


@pytest.mark.parametrize(
    ("kind", "value"),
    [("EPOCHMILLISECONDS", MS), ("UNIX_TIMESTAMP", MS // 1000), ("EPOCHMICROSECONDS", MS * 1000 + 456)],
)
def test_numbers_are_read_in_the_unit_of_the_kind(kind: str, value: int) -> None:
    found = paths(pa.array([value]), timestamp_type=kind, output_dateformat="yyyy-MM-dd HH:mm:ss")
    assert found == ["2024-01-02 03:04:05"]


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        ("DAYS", "1970-01-03 00:00:00.000"),
        ("hours", "1970-01-01 02:00:00.000"),
        ("MINUTES", "1970-01-01 00:02:00.000"),
        (None, "1970-01-01 00:00:02.000"),
        ("MICROSECONDS", "1970-01-01 00:00:00.000"),
    ],
)
def test_a_scalar_has_its_own_unit(unit: str | None, text: str) -> None:
    settings = {} if unit is None else {"timestamp_scalar_time_unit": unit}
    found = paths(pa.array([2]), timestamp_type="SCALAR", output_dateformat="yyyy-MM-dd HH:mm:ss.SSS", **settings)
    assert found == [text]


def test_null_is_one_unit_after_the_epoch_not_the_default_partition() -> None:
    null = pa.array([None], pa.int64())
    assert paths(null, timestamp_type="UNIX_TIMESTAMP", output_dateformat="ss") == ["01"]
    assert paths(null, timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy/MM/dd HH") == ["1970/01/01 00"]
    text = paths(
        pa.array([None, "2024-01-02 05"]),
        timestamp_type="DATE_STRING",
        input_dateformat="yyyy-MM-dd HH",
        output_dateformat="yyyyMMddHH",
    )
    assert text == ["1970010100", "2024010205"]


def test_dates_floats_and_decimals_are_their_long_value() -> None:
    days = pa.array([19724], pa.int32()).cast(pa.date32())
    scalar = {"timestamp_type": "SCALAR", "timestamp_scalar_time_unit": "DAYS", "output_dateformat": "yyyyMMdd"}
    assert paths(days, **scalar) == ["20240102"]
    assert paths(pa.array([19724.9, float("nan"), -0.5]), **scalar) == ["20240102", "19700101", "19700101"]
    assert paths(pa.array([19724.9]).cast(pa.decimal128(10, 1)), **scalar) == ["20240102"]


def test_far_numbers_stay_at_the_end_of_time_as_in_java() -> None:
    ends = pa.array([2**63 - 1, -(2**63)])
    found = paths(ends, timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyy-MM-dd")
    assert found == ["292278994-08-17", "-292275055-05-16"]


def test_a_timestamp_column_is_its_micros_unless_consistent() -> None:
    moment = pa.array([datetime(2024, 1, 2, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    settings = {PREFIX + "timestamp.type": "EPOCHMILLISECONDS", PREFIX + "output.dateformat": "yyyy"}
    rows = pa.RecordBatch.from_arrays([moment], ["t"])
    for consistent, year in ((False, "55972"), (True, "2024")):
        options = key_options(
            "TIMESTAMP",
            record_fields="id",
            partition_fields="t",
            timestamp_options=settings,
            consistent_timestamps=consistent,
        )
        assert KeyGenerator(options).partition_paths(rows).to_pylist() == [year]


def test_encoding_and_hive_style_apply_to_the_formatted_time() -> None:
    settings = {"timestamp_type": "EPOCHMILLISECONDS", "output_dateformat": "yyyy/MM HH:mm"}
    assert paths(pa.array([MS]), **settings) == ["2024/01 03:04"]
    assert paths(pa.array([MS]), hive_style="x", url_encode="x", **settings) == ["t=2024%2F01 03%3A04"]


def test_the_older_prefix_still_works() -> None:
    found = paths(
        pa.array([MS]),
        prefix="hoodie.deltastreamer.keygen.timebased.",
        timestamp_type="EPOCHMILLISECONDS",
        output_dateformat="yyyy",
    )
    assert found == ["2024"]


def test_zones_apply_to_output_input_or_both() -> None:
    number = {"timestamp_type": "EPOCHMILLISECONDS", "output_dateformat": "HH:mm ZZ"}
    assert paths(pa.array([MS]), **number) == ["03:04 +00:00"]
    assert paths(pa.array([MS]), output_timezone="Asia/Kolkata", **number) == ["08:34 +05:30"]
    assert paths(pa.array([MS]), output_timezone="Asia/Kolkata", timezone="GMT+8", **number) == ["11:04 +08:00"]
    text = {
        "timestamp_type": "DATE_STRING",
        "input_dateformat": "yyyy-MM-dd HH:mm",
        "output_dateformat": "dd HH:mm ZZ",
        "input_timezone": "America/New_York",
    }
    moment = pa.array(["2024-01-02 03:04"])
    assert paths(moment, **text) == ["02 03:04 -05:00"]
    assert paths(moment, output_timezone="Asia/Tokyo", **text) == ["02 17:04 +09:00"]


def test_a_text_keeps_the_offset_it_carries_when_no_zone_is_set() -> None:
    texts = pa.array(["2024-01-02T03:04:05+02:00", "2024-01-02T03:04:05Z", "2024-01-02T03:04:05-0330"])
    settings = {
        "timestamp_type": "DATE_STRING",
        "input_dateformat": "yyyy-MM-dd'T'HH:mm:ssZ",
        "output_dateformat": "HH ZZ",
    }
    assert paths(texts, **settings) == ["03 +02:00", "03 +00:00", "03 -03:30"]
    assert paths(texts, output_timezone="UTC", **settings) == ["01 +00:00", "03 +00:00", "06 +00:00"]


def test_several_input_formats_are_tried_in_turn() -> None:
    texts = pa.array(["2024-01-02", "20240103", "2024-01-02"])
    settings = {"timestamp_type": "MIXED", "output_dateformat": "yyyy/MM/dd"}
    assert paths(texts, input_dateformat="yyyy-MM-dd, yyyyMMdd", **settings) == [
        "2024/01/02",
        "2024/01/03",
        "2024/01/02",
    ]
    semicolons = {"input_dateformat": "yyyy-MM-dd;yyyyMMdd", "input_dateformat_list_delimiter_regex": ";"}
    assert paths(texts, **semicolons, **settings)[1] == "2024/01/03"


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("y-M-d", "2024-1-2", "2024-01-02 00:00:00.000"),
        ("MM/dd/yy", "01/02/99", "1999-01-02 00:00:00.000"),
        ("MM/dd/yy", "01/02/45", "2045-01-02 00:00:00.000"),
        ("MM/dd/yy", "01/02/0046", "0046-01-02 00:00:00.000"),
        ("d MMM yyyy", "2 JAN 2024", "2024-01-02 00:00:00.000"),
        ("d MMM yyyy", "2 january 2024", "2024-01-02 00:00:00.000"),
        ("E d MMM yyyy", "Tue 2 Jan 2024", "2024-01-02 00:00:00.000"),
        ("yyyy-DDD", "2024-366", "2024-12-31 00:00:00.000"),
        ("yyyy-MM-dd h:mm a", "2024-01-02 12:05 am", "2024-01-02 00:05:00.000"),
        ("yyyy-MM-dd K:mm a", "2024-01-02 0:05 PM", "2024-01-02 12:05:00.000"),
        ("yyyy-MM-dd kk", "2024-01-02 24", "2024-01-02 00:00:00.000"),
        ("ss.SSS", "05.1", "1970-01-01 00:00:05.100"),
        ("ss.SSSSSS", "05.123456", "1970-01-01 00:00:05.123"),
        ("MM-dd", "02-29", "2000-02-29 00:00:00.000"),
        ("yyyyMMddHHmm", "202401020304", "2024-01-02 03:04:00.000"),
        ("yyyy", "-0044", "-0044-01-01 00:00:00.000"),
        ("yyyy-MM-dd z", "2024-07-02 EST", "2024-07-02 04:00:00.000"),
        ("yyyy-MM-dd ZZZ", "2024-01-02 Asia/Tokyo", "2024-01-01 15:00:00.000"),
        ("'at' HH''mm", "AT 03'04", "1970-01-01 03:04:00.000"),
    ],
)
def test_text_is_read_as_joda_reads_it(pattern: str, text: str, expected: str) -> None:
    found = paths(
        pa.array([text]),
        timestamp_type="DATE_STRING",
        input_dateformat=pattern,
        output_dateformat="yyyy-MM-dd HH:mm:ss.SSS",
        output_timezone="UTC",
    )
    assert found == [expected]


def test_text_of_the_usual_width_and_any_other_read_alike() -> None:
    settings = {"timestamp_type": "DATE_STRING", "output_dateformat": "yyyyMMdd HHmmssSSS"}
    pattern = "yyyy-MM-dd'T'HH:mm:ss.SS"
    texts = ["2024-01-02T03:04:05.67", "2024-1-2T3:4:5.6", "2024-01-02t03:04:05.67", None, "2024-01-02T03:04:05.67"]
    assert paths(pa.array(["x", *texts])[1:], input_dateformat=pattern, **settings) == [
        "20240102 030405670",
        "20240102 030405600",
        "20240102 030405670",
        "19700101 000000000",
        "20240102 030405670",
    ]
    assert paths(pa.array(["1234"]), input_dateformat="SSSS", **settings) == ["19700101 000000123"]
    for hostile in ("2024-0\x2f-02", "2024-01:02", "２０２４", "é024-01-0"):
        with pytest.raises(Invalid, match="does not fit"):
            paths(pa.array([hostile]), input_dateformat="yyyy-MM-dd", **settings)


@pytest.mark.parametrize(
    ("pattern", "text", "message"),
    [
        ("yyyy-MM-dd", "garbage", "'garbage' does not fit the date format"),
        ("yyyy-MM-dd", "", "does not fit"),
        ("yyyy-MM-dd", "2024-01-02 03", "does not fit"),
        ("yyyy-MM-dd", "2024-13-01", "out of range"),
        ("yyyy-MM-dd", "2023-02-29", "day of month is out of range"),
        ("yyyy-DDD", "2023-366", "day of year is out of range"),
        ("yyyy-MM-dd HH", "2024-01-02 24", "out of range"),
        ("E d MMM yyyy", "Mon 2 Jan 2024", "weekday is out of range"),
    ],
)
def test_text_that_is_no_date_is_refused_with_column_and_value(pattern: str, text: str, message: str) -> None:
    with pytest.raises(Invalid, match=message) as error:
        paths(pa.array([text]), timestamp_type="DATE_STRING", input_dateformat=pattern, output_dateformat="yyyy")
    assert error.value.facts["column"] == "t"
    assert error.value.facts["value"] == text


def test_a_time_the_clock_jumped_over_is_refused_and_one_it_repeats_is_the_earlier() -> None:
    settings = {
        "timestamp_type": "DATE_STRING",
        "input_dateformat": "yyyy-MM-dd HH:mm",
        "output_dateformat": "HH:mm",
        "input_timezone": "America/New_York",
        "output_timezone": "UTC",
    }
    assert paths(pa.array(["2024-11-03 01:30", "2050-07-01 00:00"]), **settings) == ["05:30", "04:00"]
    with pytest.raises(Invalid, match="does not exist in time zone America/New_York"):
        paths(pa.array(["2024-03-10 02:30"]), **settings)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZZ", "2024-01-02T03:04:05.123+00:00"),
        ("yy y yyyyy", "24 2024 02024"),
        ("C YYYY G", "20 2024 AD"),
        ("M MM MMM MMMM", "1 01 Jan January"),
        ("e E EEEE", "2 Tue Tuesday"),
        ("D DDD", "2 002"),
        ("xxxx-'W'ww-e", "2024-W01-2"),
        ("h hh a K k", "3 03 AM 3 3"),
        ("S SS SSSSSS", "1 12 123000"),
        ("z Z ZZ ZZZ", "UTC +0000 +00:00 UTC"),
        ("zzzz", "Coordinated Universal Time"),
        ("''yyyy'' 'at'", "'2024' at"),
    ],
)
def test_patterns_print_as_joda_prints_them(pattern: str, expected: str) -> None:
    assert printed(pattern) == expected


def test_zone_fields_show_the_zone_in_force() -> None:
    assert printed("HH z Z ZZZ", "America/New_York") == "22 EST -0500 America/New_York"
    assert printed("HH z", "America/New_York", millis=1720000000000) == "05 EDT"
    assert printed("HH z", "GMT+05:30") == "08 +05:30"
    assert printed("HH z", "EST") == "22 EST"
    summer_2050 = int(np.datetime64("2050-07-01T12:00", "ms").astype(np.int64))
    assert printed("HH z", "America/New_York", millis=summer_2050) == "08 EDT"


@pytest.mark.parametrize("name", ["Nowhere/Land", "+05:30", "UTC+1", ""])
def test_a_zone_java_would_silently_take_for_utc_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="Unknown time zone"):
        zone_named(name)


def test_offsets_of_a_zone_go_on_after_the_last_transition_on_file() -> None:
    zone = zone_named("Europe/Berlin")
    summers = np.array([np.datetime64(f"{year}-07-01", "ms").astype(np.int64) for year in (2024, 2040, 2400, 9999)])
    assert zone.offsets_ms(summers).tolist() == [7_200_000] * 4
    far = np.array([summers[0] + 12_600 * 31_556_952_000])
    assert zone.offsets_ms(far).tolist() == [7_200_000]
    assert zone.instants_ms(summers).tolist() == (summers - 7_200_000).tolist()
    assert UTC_ZONE.instants_ms(summers) is summers


@pytest.mark.parametrize("pattern", ["yyyy-q", "n", "yyyyT"])
def test_unknown_pattern_letters_are_refused(pattern: str) -> None:
    with pytest.raises(Invalid, match="means nothing"):
        parse_pattern(pattern)


@pytest.mark.parametrize("pattern", ["xxxx-'W'ww", "G yyyy", "E", "yyyy yyyy", "yyyy zzzz"])
def test_patterns_that_can_only_be_printed_are_not_supported_for_input(pattern: str) -> None:
    with pytest.raises(Unsupported, match="Date format"):
        paths(pa.array(["2024"]), timestamp_type="DATE_STRING", input_dateformat=pattern, output_dateformat="yyyy")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"output_dateformat": "yyyy"}, "needs hoodie.keygen.timebased.timestamp.type"),
        ({"timestamp_type": "WEIRD", "output_dateformat": "yyyy"}, "timestamp.type is 'WEIRD'"),
        ({"timestamp_type": "UNIX_TIMESTAMP"}, "needs hoodie.keygen.timebased.output.dateformat"),
        ({"timestamp_type": "DATE_STRING", "output_dateformat": "yyyy"}, "input.dateformat"),
        (
            {"timestamp_type": "SCALAR", "output_dateformat": "yyyy", "timestamp_scalar_time_unit": "WEEKS"},
            "'WEEKS'",
        ),
    ],
)
def test_incomplete_settings_are_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        paths(pa.array([1]), **settings)


@pytest.mark.parametrize(
    ("kind", "values"),
    [("EPOCHMILLISECONDS", ["2024"]), ("UNIX_TIMESTAMP", [True]), ("MIXED", [1]), ("DATE_STRING", [1.5])],
)
def test_values_that_do_not_suit_the_kind_are_refused(kind: str, values: list[object]) -> None:
    with pytest.raises(Invalid, match="Partition column 't'"):
        paths(pa.array(values), timestamp_type=kind, input_dateformat="yyyy", output_dateformat="yyyy")


def test_a_format_that_leaves_its_folder_is_refused() -> None:
    with pytest.raises(Invalid, match="empty folder"):
        paths(pa.array([MS]), timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy//MM")


def test_custom_fields_go_each_their_own_way() -> None:
    options = key_options(
        record_fields="id",
        partition_fields="s:simple,t:timestamp",
        timestamp_options={PREFIX + "timestamp.type": "EPOCHMILLISECONDS", PREFIX + "output.dateformat": "yyyyMM"},
    )
    rows = pa.RecordBatch.from_arrays([pa.array(["a", None]), pa.array([MS, None])], ["s", "t"])
    assert KeyGenerator(options).partition_paths(rows).to_pylist() == [
        "a/202401",
        "__HIVE_DEFAULT_PARTITION__/197001",
    ]


def test_calendar_arithmetic_agrees_with_datetime64_over_many_centuries() -> None:
    days = np.arange(-1_000_000, 4_000_000, 997, dtype=np.int64)
    year, month, day = civil_date(days)
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    assert (months.astype(np.int64) == (year - 1970) * 12 + month - 1).all()
    assert (days_since_epoch(year, month, day) == days).all()
    lengths = ((months + 1).astype("datetime64[D]") - months.astype("datetime64[D]")).astype(np.int64)
    assert (days_in_month(year, month) == lengths).all()
