"""Delete lists in Java form. The bytes are what Hudi's own serialisation gives, equal in 0.15.0 and 1.2.0 where not
said otherwise.
"""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import Corrupt, Unsupported
from hoodie.logs import Deletes, parse_deletes

MODEL = b"org.apache.hudi.common.model."
KEYS = b"\x01\x00[L" + MODEL + b"HoodieKey\xbb\x01"
RECORDS = b"\x01\x00[L" + MODEL + b"DeleteRecord\xbb\x01"
FIRST_KEY = b"\x01\x01" + MODEL + b"HoodieKe\xf9"
FIRST_RECORD = b"\x01\x01" + MODEL + b"DeleteRecor\xe4\x01\x01\x02" + MODEL + b"HoodieKe\xf9"
NEXT_RECORD = b"\x01\x01\x01\x01\x02"
P_K = b"\x01\x01\x82p\x01\x82k"


def parse(body: bytes, version: int = 2) -> Deletes:
    return parse_deletes(struct.pack(">ii", version, len(body)) + body, "f", 100)


def records(*values: bytes) -> bytes:
    """An array of delete records of key k in partition p with these ordering values."""
    first, *more = values
    return b"".join(
        [RECORDS, bytes([len(values) + 1]), FIRST_RECORD, P_K, first, *(NEXT_RECORD + P_K + value for value in more)]
    )


def test_keys_come_with_their_partitions_and_go_by_time() -> None:
    found = parse(
        KEYS
        + b"\x06"
        + FIRST_KEY
        + b"\x01\x01p\xb1\x01k\xb1"
        + b"\x01\x01\x01\x01\x81\x01\x83\xc3\xa9\xe2\x82\xac"
        + b"\x01\x01\x03"  # the first key again
        + (b"\x01\x01\x01\x00\x01\xc7\x01" + b"k" * 70)
        + (b"\x01\x01\x01\x01" + b"x" * 62 + b"\xf8\x01\x85a\xed\xa0\xbd\xed\xb8\x80b"),
        version=1,
    )
    assert found.keys.to_pylist() == ["k1", "é€", "k1", "k" * 70, "a😀b"]
    assert found.partitions.to_pylist() == ["p1", "", "p1", None, "x" * 63]
    assert found.ordering == ()
    assert found.is_default.all()


@pytest.mark.parametrize(("start", "version"), [(KEYS, 1), (RECORDS, 2)])
def test_array_of_nothing_is_read(start: bytes, version: int) -> None:
    assert len(parse(start + b"\x01", version)) == 0


def test_records_share_objects_that_were_one() -> None:
    found = parse(
        RECORDS
        + b"\x04"
        + FIRST_RECORD
        + b"\x01\x01p\xb1\x01k\xb1\x02\x00"
        + NEXT_RECORD
        + b"\x01\x01p\xb1\x01k\xb2\x00"
        + b"\x01\x01\x01\x01\x02\x04\x09\x80\xc0\xec\x9c\xef\x8b\x04"  # the first record's key
    )
    assert found.keys.to_pylist() == ["k1", "k2", "k1"]
    assert found.ordering[0].to_pylist() == [None, None, 9_000_000_000_000]
    assert found.is_default.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["09 80c0ec9cef8b04", "09 ffbfec9cef8b04"], pa.int64(), [9_000_000_000_000, -9_000_000_000_000]),
        (["02 00", "02 0d"], pa.int32(), [None, -7]),
        (["02 0e", "09 80c0ec9cef8b04", "02 00"], pa.int64(), [7, 9_000_000_000_000, None]),
        (["0a 3ff8000000000000"], pa.float64(), [1.5]),
        (["04 3fc00000"], pa.float32(), [1.5]),
        (["05 01", "05 00"], pa.bool_(), [True, False]),
        (["03 01 81", "03 01 8261", "03 01 846162e282ac"], pa.string(), ["", "a", "ab€"]),
        (["03 05", "03 06"], pa.string(), ["p", "k"]),
        (["2e 01 04616263", "2e 01 03c3a9"], pa.string(), ["abc", "é"]),
        (["1e 01 04616263", "1e 07"], pa.string(), ["abc", "abc"]),
        (
            ["01 03 6a6176612e6d6174682e426967446563696d61ec 01 02fb08", "01 03 07", "01 03 01 020000"],
            pa.decimal128(5, 4),
            [Decimal("-0.0005"), Decimal("-0.0005"), Decimal("0.0000")],
        ),
        (
            ["01 03 6a6176612e73716c2e54696d657374616df0 01 fbd095ffbc31", "01 03 01 fbffffffffffffffff"],
            pa.timestamp("us", tz="UTC"),
            [datetime(2023, 11, 14, 22, 13, 20, 123000, UTC), datetime(1969, 12, 31, 23, 59, 59, 995000, UTC)],
        ),
        (["01 03 6a6176612e74696d652e4c6f63616c446174e5 01 e80f 0c 1f"], pa.date32(), [date(2024, 12, 31)]),
    ],
)
def test_ordering_values_of_every_class_are_read(values: list[str], kind: pa.DataType, expected: list[Any]) -> None:
    (ordering,) = parse(records(*(bytes.fromhex(value) for value in values))).ordering
    assert ordering.type == kind
    assert ordering.to_pylist() == expected


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("01 03 6a6176612e6d6174682e426967496e74656765f2 01 02 05", "java.math.BigInteger"),
        ("01 03 6a6176612e73716c2e446174e5 01 00", "java.sql.Date"),
        ("01 03 6a6176612e74696d652e4c6f63616c446174e5 01 ffffffff0f 01 01", "LocalDate in the year"),
        ("01 03 6a6176612e6d6174682e426967446563696d61ec 01 02 fb 80ffff0f", "BigDecimal with more than 38 digits"),
        ("07 0041", "class 7"),
    ],
)
def test_ordering_values_of_other_classes_are_named(value: str, words: str) -> None:
    with pytest.raises(Unsupported, match=words) as caught:
        parse(records(bytes.fromhex(value)))
    assert caught.value.facts == {"path": "f", "offset": 108}


def test_ordering_values_that_do_not_compare_are_refused() -> None:
    with pytest.raises(Unsupported, match="do not compare"):
        parse(records(b"\x02\x02", b"\x03\x01\x82x"))


GOOD = records(b"\x02\x02", b"\x02\x04")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00",
        KEYS + b"\x01",
        RECORDS[:-1] + b"\x00\x01",
        RECORDS + b"\x00",
        RECORDS + b"\xff\xff\xff\xff\x0f",
        RECORDS + b"\x02" + b"\x00",
        RECORDS + b"\x02" + FIRST_RECORD + b"\x00",
        RECORDS + b"\x02" + FIRST_RECORD + b"\x01\x01\x82p\x00\x00",
        RECORDS + b"\x02" + FIRST_RECORD + b"\x01\x02\x82k",
        RECORDS + b"\x02" + FIRST_RECORD + b"\x01\x63\x82k",
        RECORDS + b"\x02" + FIRST_RECORD + b"\x01\x01\x85\xed\xa0\xbd\xed",
        RECORDS + b"\x02" + FIRST_RECORD + b"\x01\x01\x82\xed\xa0\xbd\x01\x82k\x00",
        RECORDS + b"\x02" + FIRST_RECORD + b"\x01\x01\xff\xff\xff\xff\x7f",
        records(b"\x2e\x01\x02\xff"),
        records(b"\x2e\x04"),
        records(b"\x09" + b"\xff" * 8),
        records(b"\x02" + b"\xff" * 9 + b"\x01"),
        records(b"\x01\x09"),
        GOOD + b"\x00",
        GOOD[:-1],
    ],
)
def test_damage_is_corrupt(body: bytes) -> None:
    with pytest.raises(Corrupt) as caught:
        parse(body)
    assert caught.value.facts == {"path": "f", "offset": 108}


def test_names_of_classes_are_not_mistaken_for_each_other() -> None:
    with pytest.raises(Corrupt, match="is no array of org.apache.hudi.common.model.HoodieKey"):
        parse(GOOD, version=1)
