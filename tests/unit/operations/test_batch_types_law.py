"""The law of types: whatever type a column of a batch has, rows come back with the values that were given, or the batch
is refused and the table stays as it was.

1. Every type a table may have meets every type a batch may have, as key, partition, ordering and other column.
2. The key, partition and ordering columns keep their type; int may become long, and an ordering column a wider number.
   A row whose key is stored is changed, not added, unless the stored one is later.
3. A value that takes the type of the column is what that type says for it (`told`): the number 7 in a column of text is
   "7", the text "7" in one of numbers is 7. Floating numbers are what their shortest text says.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pytest

from hoodie.errors import HudiError, Invalid, Unsupported
from hoodie.testing.lake import Lake, logged_lake

POOLS: Final[Mapping[str, tuple[Any, ...]]] = {
    "numbers": (0, 1, -1, 7, 120, 300, 70_000, 2**31, 2**53 + 1, 0.5, -0.25, 0.1, 0.125, 1e300, 1e-30, math.nan),
    "texts": ("1", "1.0", "0.125", "a", "é", "x y", "2024-02-29", "2024-02-29 12:30:15"),
    "numerals": ("1", "7", "0.125", "-3.50", "1e2"),
    "binaries": (b"1", b"a", b"\xff"),
    "letters": (b"1", b"a", "é".encode()),
    "flags": (True, False),
    "days": (date(2024, 2, 29), date(1969, 7, 20)),
    "moments": tuple(datetime(2024, 2, 29, 12, 30, 15, micro, tzinfo=UTC) for micro in (0, 123_000, 123_456)),
    "nanoseconds": (1_709_209_815_123_456_789, 1_709_209_815_123_456_000),
    "micros": (1_709_209_815_123_456_000, -123_456_000),
    "times": (time(12, 30, 15, 123_456), time(0, 0)),
}
OF_POOLS: Final[Mapping[str, tuple[pa.DataType, ...]]] = {
    "numbers": (
        pa.int8(),
        pa.int32(),
        pa.int64(),
        pa.uint32(),
        pa.uint64(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(9, 2),
        pa.decimal128(38, 10),
    ),
    "texts": (pa.string(), pa.dictionary(pa.int32(), pa.string())),
    "numerals": (pa.large_string(), pa.dictionary(pa.int32(), pa.string())),
    "binaries": (pa.binary(),),
    "letters": (pa.binary(), pa.large_binary()),
    "flags": (pa.bool_(),),
    "days": (pa.date32(), pa.date64()),
    "moments": (
        pa.timestamp("s"),
        pa.timestamp("ms"),
        pa.timestamp("us"),
        pa.timestamp("us", "UTC"),
        pa.timestamp("us", "Asia/Tokyo"),
    ),
    "nanoseconds": (pa.timestamp("ns"), pa.timestamp("ns", "UTC")),
    "micros": (pa.timestamp("ns"), pa.timestamp("ns", "UTC")),
    "times": (pa.time32("ms"), pa.time64("us")),
}
WAYS: Final = {f"{pool}: {data_type}": (data_type, pool) for pool, types in OF_POOLS.items() for data_type in types}
"""Every kind of column that a batch may have."""
STORED: Final = tuple(
    f"{pool}: {data_type}"
    for pool, data_type in (
        ("numbers", pa.int32()),
        ("numbers", pa.int64()),
        ("numbers", pa.float32()),
        ("numbers", pa.float64()),
        ("numbers", pa.decimal128(9, 2)),
        ("numbers", pa.decimal128(38, 10)),
        ("texts", pa.string()),
        ("binaries", pa.binary()),
        ("flags", pa.bool_()),
        ("days", pa.date32()),
        ("moments", pa.timestamp("us")),
        ("moments", pa.timestamp("us", "UTC")),
    )
)
"""Those whose type is one that tables have."""
ROLES: Final = ("id", "part", "ts", "v")
PLAIN: Final = {"id": pa.int64(), "part": pa.string(), "ts": pa.int64(), "v": pa.string()}
WIDER: Final[Mapping[str, tuple[tuple[pa.DataType, pa.DataType], ...]]] = {
    "id": ((pa.int32(), pa.int64()),),
    "part": ((pa.int32(), pa.int64()),),
    "ts": (
        (pa.int32(), pa.int64()),
        (pa.int32(), pa.float64()),
        (pa.float32(), pa.float64()),
        (pa.decimal128(9, 2), pa.decimal128(38, 10)),
    ),
}

Meaning = tuple[str, Any]


def values_of(way: str) -> pa.Array:
    """The values of its pool that a type holds as they are."""
    data_type, pool = WAYS[way]
    return pa.concat_arrays([made for made in (one_of(value, data_type) for value in POOLS[pool]) if made is not None])


def one_of(value: Any, data_type: pa.DataType) -> pa.Array | None:
    if isinstance(value, int) and pa.types.is_timestamp(data_type):
        return pa.array([value], pa.int64()).cast(data_type)
    plain = value
    if isinstance(value, float | int) and pa.types.is_decimal(data_type):
        plain = Decimal(str(value))
    if isinstance(value, datetime) and data_type.tz is None:
        plain = value.replace(tzinfo=None)
    try:
        made = pa.array([plain]).cast(data_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return made if exact(made[0]) == exact(pa.scalar(plain)) else None


def exact(scalar: pa.Scalar) -> Meaning:
    """What a value means, whatever type holds it. Numbers are equal and hashed as numbers."""
    data_type, types = scalar.type, pa.types
    if types.is_timestamp(data_type):
        per_unit = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[data_type.unit]
        return "zoned" if data_type.tz else "local", scalar.value * per_unit
    if types.is_floating(data_type):
        return number(scalar.cast(pa.string()).as_py())
    value = scalar.as_py()
    is_number = isinstance(value, Decimal | int) and not isinstance(value, bool)
    return number(value) if is_number else (type(value).__name__, value)


def number(said: Any) -> Meaning:
    value = Decimal(said)
    return "number", "NaN" if value.is_nan() else value


def told(meaning: Meaning, given: pa.DataType, kept: pa.DataType) -> Meaning:
    """What a value of the type `given` means in a column of the type `kept`. Text of a number with a fraction stays a
    number: which of its spellings is stored does not matter here.
    """
    kind, value = meaning
    types = pa.types
    if types.is_string(kept) and kind in ("bytes", "date", "number"):
        if kind != "number":
            return "str", value.decode() if kind == "bytes" else value.isoformat()
        return ("str", str(value)) if types.is_integer(given) else meaning
    if kind == "str":
        if types.is_binary(kept):
            return "bytes", value.encode()
        if types.is_decimal(kept):
            return number(value)
        if types.is_date(kept):
            return "date", date.fromisoformat(value)
    return meaning


def is_same(found: Meaning, wanted: Meaning) -> bool:
    """Whether they mean the same; a text counts as the number it spells where a number is wanted."""
    return (number(found[1]) if (found[0], wanted[0]) == ("str", "number") else found) == wanted


def batch(role: str, values: pa.Array, first_key: int, text: str) -> pa.Table:
    """A row for each value; beside it, plain columns."""
    count = len(values)
    columns: dict[str, pa.Array] = {
        "id": pa.array(range(first_key, first_key + count), PLAIN["id"]),
        "part": pa.array(["p"] * count, PLAIN["part"]),
        "ts": pa.array([1] * count, PLAIN["ts"]),
        "v": pa.array([text] * count, PLAIN["v"]),
    }
    columns[role] = values
    return pa.table(columns)


def shown(role: str) -> tuple[str, str]:
    """The columns that are compared: the key and the other one."""
    return ("id", "v") if role == "id" else ("id", role)


def held(lake: Lake, role: str) -> dict[Meaning, Meaning]:
    """What the rows of the table mean, by key."""
    found = lake.table.scan(shown(role)).read_all()
    rows = dict(zip(*(map(exact, found.column(at)) for at in range(2)), strict=True))
    assert len(rows) == found.num_rows, "a key occurs twice"
    return rows


def meant(rows: pa.Table, role: str, kept: pa.DataType) -> dict[Meaning, Meaning]:
    """What rows of a batch mean in a table whose column has the type `kept`; the last one of a key counts."""
    columns = [
        [told(exact(value), values.type, kept) if name == role else exact(value) for value in values]
        for name, values in ((name, rows.column(name)) for name in shown(role))
    ]
    return dict(zip(*columns, strict=True))


OPTIONS: Final = {
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    "hoodie.metadata.enable": "false",
}


@pytest.mark.deep
@pytest.mark.sampled(4)
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("stored", STORED)
def test_rows_come_back_with_the_values_that_were_given_or_the_batch_is_refused(stored: str, role: str) -> None:
    """A batch that is refused for some of its values is offered again, value by value."""
    turn = STORED.index(stored) + ROLES.index(role)
    first = batch(role, values_of(stored), 0, "old")
    lake = None
    for given in WAYS:
        if lake is None:
            lake = new_lake(turn, role)
            try:
                lake.write("upsert", first)
            except (Invalid, Unsupported) as refusal:
                assert refusal.remedy
                assert lake.files() == {}
                return
            ensure_held(lake, role, meant(first, role, lake.table.schema.field(role).type), "the first batch itself")
        values = values_of(given)
        is_taken = has_taken(lake, role, given, values)
        if not is_taken and has_taken(lake, role, given, values[:1]):
            is_taken = True
            for at in range(1, len(values)):
                has_taken(lake, role, given, values[at : at + 1])
        if is_taken:
            lake = None


def new_lake(turn: int, role: str) -> Lake:
    """A table of either type and one of the versions; one that has an ordering column orders rows by it."""
    if turn % 2:
        return logged_lake((6, 8, 9)[turn % 3], **OPTIONS)
    return Lake(9 if role == "ts" else (6, 8, 9)[turn % 3], OPTIONS)


def has_taken(lake: Lake, role: str, given: str, values: pa.Array) -> bool:
    """Whether the table took a batch with such values; ensures that it holds what it should."""
    before, kept = held(lake, role), lake.table.schema.field(role).type
    second = batch(role, values, 0 if role != "part" else 100 + len(before), "new")
    try:
        lake.write("upsert", second)
    except HudiError as refusal:
        assert type(refusal) in (Invalid, Unsupported), refusal
        assert refusal.remedy, refusal
        ensure_held(lake, role, before, f"refused {given}")
        return False
    now = lake.table.schema.field(role).type
    assert role == "v" or now == kept or (kept, now) in WIDER[role], f"{kept} became {now} by {given}"
    new = meant(second, role, now)
    if role == "ts":
        new = {key: value for key, value in new.items() if key not in before or not is_later(before[key], value)}
    ensure_held(lake, role, before | new, f"took {given}")
    assert lake.table.validate() == []
    return True


def is_later(one: Meaning, other: Meaning) -> bool:
    """Whether a row with the first of two values of an ordering column is later; NaN is after all numbers."""
    if "NaN" in (one[1], other[1]):
        return other[1] != "NaN"
    return bool(one[1] > other[1])


def ensure_held(lake: Lake, role: str, wanted: Mapping[Meaning, Meaning], when: str) -> None:
    found = held(lake, role)
    assert found.keys() == wanted.keys(), when
    wrong = {key: (found[key], wanted[key]) for key in wanted if not is_same(found[key], wanted[key])}
    assert wrong == {}, when


@pytest.mark.parametrize("way", WAYS)
def test_a_first_batch_has_its_values_or_is_refused(way: str) -> None:
    lake = Lake(9)
    rows = batch("v", values_of(way), 0, "old")
    try:
        lake.write("upsert", rows)
    except (Invalid, Unsupported) as refusal:
        assert refusal.remedy
        assert lake.files() == {}
        assert WAYS[way][1] in ("times", "nanoseconds") or WAYS[way][0] == pa.uint64()
    else:
        ensure_held(lake, "v", meant(rows, "v", lake.table.schema.field("v").type), way)


def test_every_kind_of_type_is_among_them() -> None:
    assert all(len(values_of(way)) >= 1 for way in WAYS)
    assert len(list(itertools.product(STORED, WAYS, ROLES))) > 1000
