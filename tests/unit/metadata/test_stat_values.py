"""Bounds out of statistics records: both versions, every wrapper, and those nobody should believe."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hoodie.metadata.stat_values import ranges_of
from hoodie.records import from_avro
from hoodie.records.condition import Comparison
from hoodie.spec import metadata_record_schema
from hoodie.testing.hand_metadata import stats_record

STATS = from_avro(metadata_record_schema()).field("ColumnStatsMetadata").type
OLD_STATS = from_avro(metadata_record_schema("0.15")).field("ColumnStatsMetadata").type


def bounds(low, high, wanted, ordinal=None, added=None, stats_type=STATS, **more):
    wrapped = tuple(None if one is None else {one[0]: {"value": one[1]}} for one in (low, high))
    if ordinal is not None:
        more["valueType"] = {"typeOrdinal": ordinal, "additionalInfo": added}
    record = stats_record("k", "c", "f", wrapped, **more)["ColumnStatsMetadata"]
    if stats_type is OLD_STATS:
        record.pop("isTightBound")
    found = ranges_of(pa.array([record], stats_type), wanted)
    return found.low[0].as_py(), found.high[0].as_py()


UTC_US = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("low", "high", "wanted", "expected"),
    [
        (("member0", False), ("member0", True), pa.bool_(), (False, True)),
        (("member1", -3), ("member1", 4), pa.int32(), (-3, 4)),
        (("member1", -3), ("member1", 4), pa.int64(), (-3, 4)),
        (("member1", 3), ("member1", 4), pa.float64(), (3.0, 4.0)),
        (("member2", -3), ("member2", 4), pa.int64(), (-3, 4)),
        (("member3", 0.5), ("member3", 1.5), pa.float32(), (0.5, 1.5)),
        (("member3", 0.5), ("member3", 1.5), pa.float64(), (0.5, 1.5)),
        (("member4", 0.5), ("member4", 1.5), pa.float64(), (0.5, 1.5)),
        (("member6", "a"), ("member6", "é"), pa.string(), ("a", "é")),
        (("member7", 0), ("member7", 1), pa.date32(), (date(1970, 1, 1), date(1970, 1, 2))),
        (("member1", 0), ("member1", 1), pa.date32(), (date(1970, 1, 1), date(1970, 1, 2))),
        (
            ("member8", Decimal("1.5")),
            ("member8", Decimal("2.25")),
            pa.decimal128(10, 2),
            (Decimal("1.50"), Decimal("2.25")),
        ),
        (
            ("member10", 0),
            ("member10", 1),
            UTC_US,
            (datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, 0, 0, 0, 1, UTC)),
        ),
        (("member2", 0), ("member2", 0), UTC_US, (datetime(1970, 1, 1, tzinfo=UTC),) * 2),
    ],
)
@pytest.mark.parametrize("stats_type", [STATS, OLD_STATS], ids=["1.x", "0.15"])
def test_version_one_is_typed_by_its_wrapper(low, high, wanted, expected, stats_type):
    assert bounds(low, high, wanted, stats_type=stats_type) == expected


@pytest.mark.parametrize(
    ("member", "ordinal", "added", "stored", "wanted", "expected"),
    [
        ("member0", 2, None, True, pa.bool_(), True),
        ("member1", 3, None, 7, pa.int32(), 7),
        ("member2", 4, None, 7, pa.int64(), 7),
        ("member3", 5, None, 1.5, pa.float32(), 1.5),
        ("member4", 6, None, 1.5, pa.float64(), 1.5),
        ("member6", 7, None, "x", pa.string(), "x"),
        ("member5", 10, "10,2", b"\x02\x3f\x7b\x1f\x41", pa.decimal128(10, 2), Decimal("96549681.29")),
        ("member5", 10, "10,2", b"\xfd\xf7\x22\xea\x87", pa.decimal128(10, 2), Decimal("-87386412.73")),
        ("member5", 10, "5,0", b"\xff", pa.decimal128(5, 0), Decimal(-1)),
        ("member1", 12, None, 1, pa.date32(), date(1970, 1, 2)),
        ("member2", 15, None, 1, pa.timestamp("ms", tz="UTC"), datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)),
        ("member2", 15, None, 1, UTC_US, datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)),
        ("member2", 16, None, 1, UTC_US, datetime(1970, 1, 1, 0, 0, 0, 1, UTC)),
        ("member2", 19, None, 1, pa.timestamp("us"), datetime(1970, 1, 1, 0, 0, 0, 1)),
        ("member6", 11, None, "b5a1", pa.string(), "b5a1"),
    ],
)
def test_version_two_is_typed_by_its_number(member, ordinal, added, stored, wanted, expected):
    assert bounds((member, stored), (member, stored), wanted, ordinal, added) == (expected, expected)


@pytest.mark.parametrize(
    ("member", "ordinal", "added", "stored", "wanted"),
    [
        ("member1", 3, None, 7, pa.string()),  # text orders otherwise than numbers
        ("member4", 6, None, 1.5, pa.float32()),  # narrower than what was written
        ("member2", 16, None, 1, pa.timestamp("ms", tz="UTC")),
        ("member2", 19, None, 1, UTC_US),  # another clock
        ("member5", 8, None, b"x", pa.binary()),
        ("member5", 9, None, b"x", pa.binary()),
        ("member5", 10, "99,2", b"\x01", pa.decimal128(10, 2)),
        ("member5", 10, None, b"\x01", pa.decimal128(10, 2)),
        ("member5", 10, "10,2", b"\x01" * 17, pa.decimal128(10, 2)),
        ("member5", 10, "38,0", b"\x7f" * 16, pa.decimal128(10, 0)),  # does not fit
        ("member1", 99, None, 7, pa.int32()),
        ("member6", 7, None, "\ue000", pa.string()),  # where Java's order differs
        ("member6", 7, None, "a😀", pa.string()),
        ("member4", 6, None, float("nan"), pa.float64()),
        ("member4", 6, None, 0.0, pa.float64()),  # what a file with NaN gives
        ("member4", 6, None, -0.0, pa.float64()),
    ],
)
def test_what_cannot_be_believed_is_unknown(member, ordinal, added, stored, wanted):
    assert bounds((member, stored), (member, stored), wanted, ordinal, added) == (None, None)


def test_that_all_is_null_is_not_believed_beside_bounds_of_zeros():
    """Hudi says so of a column of floats without statistics, and gives all rows up."""
    zeros, numbers = ({"member4": {"value": 0.0}},) * 2, ({"member4": {"value": 1.5}},) * 2
    records = [
        stats_record("k", "c", "f", bounds, valueCount=10, nullCount=nulls)["ColumnStatsMetadata"]
        for bounds, nulls in ((zeros, 10), (zeros, 4), (numbers, 4), ((None, None), 10))
    ]
    found = ranges_of(pa.array(records, STATS), pa.float64())
    assert found.nulls.to_pylist() == [None, 4, 4, 10]
    assert found.may_pass(Comparison("c", "is not null", pa.array([]))).tolist() == [True, True, True, False]
    assert found.may_pass(Comparison("c", ">", pa.array([5.0]))).tolist() == [True, True, True, False]


DECIMAL = pa.decimal128(10, 2)


@pytest.mark.parametrize(
    ("wanted", "member", "ordinal", "added", "pairs"),
    [
        (pa.float64(), "member4", 6, None, [(-1.0, 7.0, 0), (0.0, 7.0, 0), (-7.0, -0.0, 2), (1.0, 7.0, 2)]),
        (pa.int64(), "member2", 4, None, [(-1, 7, 1), (0, 7, 3), (-7, 0, 2), (1, 7, 2), (-1, 7, 0)]),
        (pa.date32(), "member1", 12, None, [(-1, 7, 1), (0, 7, 3), (-7, 0, 2), (1, 7, 2), (-1, 7, 0)]),
        (UTC_US, "member2", 16, None, [(-1, 7, 1), (0, 7, 3), (-7, 0, 2), (1, 7, 2), (-1, 7, 0)]),
        (pa.bool_(), "member0", 2, None, [(False, True, 1), (False, False, 3), (False, True, 1), (True, True, 1)]),
        (DECIMAL, "member5", 10, "10,2", [(b"\xff", b"\x07", 1), (b"\x00", b"\x07", 3), (b"\xff", b"\x00", 2)]),
        (pa.string(), "member6", 7, None, [("a", "z", 1), ("a", "z", 3), ("", "z", 1)]),
    ],
)
def test_bounds_are_not_believed_that_hudi_may_have_joined_with_those_of_a_row_group_without_any(
    wanted, member, ordinal, added, pairs
):
    """It takes such a row group for zeros, or for no text, and mostly its rows for NULL."""
    doubted = 3
    kinds = {"typeOrdinal": ordinal, "additionalInfo": added}
    records = [
        stats_record(
            "k", "c", "f", ({member: {"value": low}}, {member: {"value": high}}), nullCount=nulls, valueType=kinds
        )["ColumnStatsMetadata"]
        for low, high, nulls in pairs
    ]
    found, checked = (ranges_of(pa.array(records, STATS), wanted, in_doubt=in_doubt) for in_doubt in (False, True))
    known = len(pairs) - doubted
    for bound in (found.low, found.high):
        assert bound.is_valid().to_pylist() == [False] * doubted + [True] * known
    assert checked.low.null_count == 0
    assert found.nulls.to_pylist() == [nulls for _, _, nulls in pairs]


@pytest.mark.parametrize(
    ("wanted", "members", "has_values"),
    [
        (pa.int64(), ({"member2": {"value": 0}},) * 2, True),
        (pa.int64(), (None, None), False),
        (pa.bool_(), ({"member0": {"value": False}},) * 2, True),
        (pa.string(), (None, None), True),
        (pa.binary(), (None, None), True),
        (DECIMAL, (None, None), True),
    ],
)
def test_that_all_is_null_is_not_believed_where_hudi_says_so_of_a_file_without_statistics(wanted, members, has_values):
    record = stats_record("k", "c", "f", members, valueCount=10, nullCount=10)["ColumnStatsMetadata"]
    found = ranges_of(pa.array([record], STATS), wanted)
    assert found.may_pass(Comparison("c", "is not null", pa.array([]))).tolist() == [has_values]


@pytest.mark.parametrize(
    "wanted",
    [pa.struct([("a", pa.int32())]), pa.list_(pa.string()), pa.map_(pa.string(), pa.int8()), pa.binary(4), pa.null()],
)
def test_of_columns_without_statistics_rows_are_known(wanted):
    """Who asks for the counts of a partition gets records of its keys, too."""
    record = stats_record("k", "c", "f", ({"member6": {"value": "a"}},) * 2, valueCount=10, nullCount=0)
    found = ranges_of(pa.array([record["ColumnStatsMetadata"], None], STATS), wanted)
    assert found.rows.to_pylist() == [10, None]
    assert found.may_pass(Comparison("c", "is null", pa.array([]))).tolist() == [False, True]
    assert found.may_pass(Comparison("c", "is not null", pa.array([]))).tolist() == [True, True]


def test_one_bound_may_be_unknown():
    assert bounds(("member6", "a"), ("member6", "😀"), pa.string(), 7) == ("a", None)
    assert bounds(None, ("member1", 5), pa.int32(), 3) == (None, 5)


def test_tombstone_and_missing_record_know_nothing():
    gone = stats_record("k", "c", "f", ({"member1": {"value": 1}}, {"member1": {"value": 1}}), isDeleted=True)
    found = ranges_of(pa.array([gone["ColumnStatsMetadata"], None], STATS), pa.int32())
    assert [column.null_count for column in (found.low, found.high, found.rows, found.nulls)] == [2, 2, 2, 2]


def test_records_of_different_types_are_read_side_by_side():
    records = [
        stats_record("a", "c", "f", ({"member1": {"value": 1}},) * 2, valueType={"typeOrdinal": 3}),
        stats_record("b", "c", "g", ({"member2": {"value": 2**40}},) * 2, valueType={"typeOrdinal": 4}),
        stats_record("c", "c", "h", (None, None), valueType={"typeOrdinal": 1}, nullCount=10),
        stats_record("d", "c", "i", ({"member1": {"value": 4}},) * 2),
    ]
    found = ranges_of(pa.array([one["ColumnStatsMetadata"] for one in records], STATS), pa.int64())
    assert found.low.to_pylist() == [1, 2**40, None, 4]
