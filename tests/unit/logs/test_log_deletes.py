"""Delete blocks: keys, partitions and ordering values, read and written."""

from __future__ import annotations

import io
import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import Corrupt, Invalid, Unsupported
from hoodie.logs import (
    BlockKind,
    Deletes,
    HeaderKey,
    encode_block,
    encode_deletes,
    parse_deletes,
    read_blocks,
    read_deletes,
)
from hoodie.logs.delete_schema import DELETE_LIST_SCHEMA
from hoodie.storage import MemoryStorage

NAMES = "org.apache.hudi.avro.model."

# Contents of real blocks: a delete operation; rows marked as deleted; none at all.
BY_OPERATION = bytes.fromhex("000000030000000f02020a6b3030303102047031040000")
BY_MARK = bytes.fromhex("000000030000002004020a6b303030320204703206a4a87a020a6b303030350204703206aaa87a00")
NONE = bytes.fromhex("000000030000000100")


def content(*records: tuple[str | None, str | None, Any]) -> bytes:
    """Content as fastavro writes it."""
    schema = fastavro.parse_schema(json.loads(DELETE_LIST_SCHEMA))
    rows = [{"recordKey": key, "partitionPath": partition, "orderingVal": value} for key, partition, value in records]
    body = io.BytesIO()
    fastavro.schemaless_writer(body, schema, {"deleteRecordList": rows})
    return struct.pack(">ii", 3, body.tell()) + body.getvalue()


def wrapped(name: str, value: Any) -> tuple[str, dict[str, Any]]:
    return NAMES + name, {"value": value}


def several(*values: Any) -> tuple[str, dict[str, Any]]:
    return NAMES + "ArrayWrapper", {"wrappedValues": list(values)}


def deletes(ordering: tuple[pa.Array, ...], is_default: list[bool]) -> Deletes:
    keys = pa.array([f"k{at}" for at in range(len(is_default))])
    return Deletes(keys, pa.array(["p"] * len(is_default)), ordering, np.array(is_default, dtype=np.bool_))


def test_deletes_of_a_delete_operation_go_by_time() -> None:
    found = parse_deletes(BY_OPERATION, "f", 0)
    assert (found.keys.to_pylist(), found.partitions.to_pylist()) == (["k0001"], ["p1"])
    assert found.ordering == ()
    assert found.is_default.tolist() == [True]
    assert encode_deletes(found) == BY_OPERATION


def test_deletes_of_marked_rows_have_the_ordering_values_of_their_rows() -> None:
    found = parse_deletes(BY_MARK, "f", 0)
    assert found.keys.to_pylist() == ["k0002", "k0005"]
    assert found.ordering[0].equals(pa.array([1002002, 1002005]))
    assert found.is_default.tolist() == [False, False]
    assert encode_deletes(found) == BY_MARK


def test_block_without_deletes_is_read_and_written() -> None:
    found = parse_deletes(NONE, "f", 0)
    assert len(found) == 0
    assert encode_deletes(found) == NONE


def test_block_on_storage_is_read(storage: MemoryStorage) -> None:
    header = {HeaderKey.INSTANT_TIME: "1"}
    data = encode_block(BlockKind.AVRO_DATA, header, b"") + encode_block(BlockKind.DELETE, header, BY_MARK)
    storage.put("p/.f-0_1.log.1_0-0-0", data)
    rows, block = read_blocks(storage, "p/.f-0_1.log.1_0-0-0", len(data))
    assert len(read_deletes(storage, block)) == 2
    with pytest.raises(Invalid, match="AVRO_DATA holds no deletes"):
        read_deletes(storage, rows)


@pytest.mark.parametrize(
    ("name", "value", "kind", "expected"),
    [
        ("BooleanWrapper", True, pa.bool_(), True),
        ("IntWrapper", -5, pa.int32(), -5),
        ("LongWrapper", 0, pa.int64(), 0),
        ("FloatWrapper", 1.5, pa.float32(), 1.5),
        ("DoubleWrapper", 0.1, pa.float64(), 0.1),
        ("BytesWrapper", b"\xff", pa.binary(), b"\xff"),
        ("StringWrapper", "", pa.string(), ""),
        ("DateWrapper", date(2024, 1, 2), pa.date32(), date(2024, 1, 2)),
        ("DecimalWrapper", Decimal("-1.5"), pa.decimal128(30, 15), Decimal("-1.500000000000000")),
        ("TimeMicrosWrapper", 5, pa.int64(), 5),
        (
            "TimestampMicrosWrapper",
            datetime(2024, 1, 2, 3, tzinfo=UTC),
            pa.timestamp("us", tz="UTC"),
            datetime(2024, 1, 2, 3, tzinfo=UTC),
        ),
    ],
)
def test_values_of_every_wrapper_come_in_its_type(name: str, value: Any, kind: pa.DataType, expected: Any) -> None:
    given = content(("a", "p", wrapped(name, value)), ("b", "p", wrapped("IntWrapper", 0)), ("c", None, None))
    found = parse_deletes(given, "f", 0)
    (ordering,) = found.ordering
    assert ordering.type == kind
    assert ordering.to_pylist() == [expected, None, None]
    assert found.is_default.tolist() == [False, True, True]
    assert found.partitions.to_pylist() == ["p", "p", None]
    again = parse_deletes(encode_deletes(found), "f", 0)
    assert again.ordering[0].equals(ordering)
    assert again.is_default.tolist() == [False, True, True]


def test_values_of_several_number_types_come_in_the_widest() -> None:
    values = [wrapped("IntWrapper", 3), wrapped("LongWrapper", 1 << 40), wrapped("IntWrapper", 0)]
    found = parse_deletes(content(*((str(at), "p", value) for at, value in enumerate(values))), "f", 0)
    assert found.ordering[0].equals(pa.array([3, 1 << 40, None], pa.int64()))
    values.append(wrapped("FloatWrapper", 0.5))
    found = parse_deletes(content(*((str(at), "p", value) for at, value in enumerate(values))), "f", 0)
    assert found.ordering[0].equals(pa.array([3.0, float(1 << 40), None, 0.5]))


def test_values_of_types_that_do_not_compare_are_refused() -> None:
    given = content(("a", "p", wrapped("IntWrapper", 3)), ("b", "p", wrapped("StringWrapper", "x")))
    with pytest.raises(Unsupported, match="int32, string") as caught:
        parse_deletes(given, "f", 7)
    assert caught.value.facts == {"path": "f", "offset": 7}


def test_several_ordering_fields_come_as_several_columns() -> None:
    given = content(
        ("a", "p", several(wrapped("LongWrapper", 1), wrapped("StringWrapper", "x"))),
        ("b", "p", wrapped("IntWrapper", 0)),
        ("c", "p", several(None, wrapped("StringWrapper", "y"))),
        ("d", "p", several()),
        ("e", "p", (NAMES + "ArrayWrapper", {"wrappedValues": None})),
        ("f", "p", several(wrapped("LongWrapper", 4), wrapped("StringWrapper", "z"))),
    )
    found = parse_deletes(given, "f", 0)
    first, second = found.ordering
    assert first.equals(pa.array([1, None, None, None, None, 4]))
    assert second.equals(pa.array(["x", None, "y", None, None, "z"]))
    assert found.is_default.tolist() == [False, True, False, True, True, False]


def test_several_ordering_fields_are_written_as_hudi_writes_them() -> None:
    given = content(
        ("k0", "p", several(wrapped("LongWrapper", 1), wrapped("StringWrapper", "x"))),
        ("k1", "p", wrapped("IntWrapper", 0)),
        ("k2", "p", several(wrapped("LongWrapper", 2), None)),
    )
    ordering = (pa.array([1, None, 2]), pa.array(["x", None, None]))
    assert encode_deletes(deletes(ordering, [False, True, False])) == given
    with pytest.raises(Unsupported, match="one ordering value"):
        encode_deletes(deletes(ordering, [False, True, False]), several_fields=False)


def test_dates_in_arrays_have_two_wrappers() -> None:
    day = date(2024, 1, 2)
    for name in ("DateWrapper", "LocalDateWrapper"):
        found = parse_deletes(content(("a", "p", several(wrapped(name, day)))), "f", 0)
        assert found.ordering[0].equals(pa.array([day]))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([Decimal("1.50"), None, Decimal("-7.25")], pa.decimal128(10, 2)),
        pa.array([1, None, 7], pa.timestamp("ms")),
        pa.array([1, None, 7], pa.timestamp("us", tz="UTC")),
        pa.array([1, None, 7], pa.int32()),
    ],
)
def test_values_of_like_types_are_written_in_their_wrapper(values: pa.Array) -> None:
    found = parse_deletes(encode_deletes(deletes((values,), [False, True, False])), "f", 0)
    assert found.ordering[0].cast(values.type).equals(values)


@pytest.mark.parametrize(
    "values", [pa.array([[1]]), pa.array([Decimal(10**20)], pa.decimal128(38, 0)), pa.array([1], pa.uint64())]
)
def test_values_without_wrapper_are_not_written(values: pa.Array) -> None:
    with pytest.raises(Invalid, match="rdering value"):
        encode_deletes(deletes((values,), [False]))


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        BY_MARK[:7],
        BY_MARK[:-1],
        BY_MARK + b"\0",
        struct.pack(">ii", 4, 1) + b"\0",
        struct.pack(">ii", 3, 1) + b"\xff",
        struct.pack(">ii", 3, 10) + b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        content((None, "p", None)),
        content(("k", "p", several(*[wrapped("IntWrapper", 1)] * 65)))[:8] + b"\x02\x02\x02k\x00\x1a",
    ],
)
def test_damaged_contents_are_corrupt(damaged: bytes) -> None:
    with pytest.raises(Corrupt) as caught:
        parse_deletes(damaged, "f", 7)
    assert caught.value.facts["path"] == "f"


def test_too_many_ordering_fields_are_refused() -> None:
    with pytest.raises(Unsupported, match="65 fields"):
        parse_deletes(content(("k", "p", several(*[wrapped("IntWrapper", 1)] * 65))), "f", 0)
