"""What readers and writers of Spark were told, as options of Hudi."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.spark.arrow_types import is_natively_readable, spark_schema
from hoodie.spark.reader import _without_globs
from hoodie.spark.worker_frame import bytes_of
from hoodie.spark.writer import path_of, with_overwrite_mode, with_partitioning, without_path

OPERATION = "hoodie.datasource.write.operation"
PARTITION = "hoodie.datasource.write.partitionpath.field"


def test_partition_by_stands_for_the_partition_fields() -> None:
    assert with_partitioning({}, ("a", "b")) == {PARTITION: "a,b"}
    assert with_partitioning({PARTITION: "a"}, ()) == {PARTITION: "a"}
    assert with_partitioning({PARTITION: "a, b"}, ("a", "b")) == {PARTITION: "a, b"}
    assert with_partitioning({PARTITION: "ts:TIMESTAMP"}, ("ts",)) == {PARTITION: "ts:TIMESTAMP"}


def test_partition_by_of_a_custom_key_generator_is_of_the_simple_kind() -> None:
    options = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator"}
    assert with_partitioning(options, ("a",))[PARTITION] == "a:simple"


def test_partition_by_that_contradicts_the_options_is_refused() -> None:
    with pytest.raises(Invalid, match=r"partitionBy\(city\) and .*=country contradict"):
        with_partitioning({PARTITION: "country"}, ("city",))


def test_dynamic_overwrite_replaces_the_partitions_met() -> None:
    dynamic = {OPERATION: "insert_overwrite"}
    assert with_overwrite_mode({"partitionoverwritemode": "dynamic"}, "overwrite", None) == dynamic
    assert with_overwrite_mode({OPERATION: "bulk_insert"}, "overwrite", "DYNAMIC") == dynamic
    assert with_overwrite_mode({"partitionOverwriteMode": "static"}, "overwrite", "DYNAMIC") == {}
    assert with_overwrite_mode({"partitionOverwriteMode": "dynamic"}, "append", None) == {}
    whole = {OPERATION: "insert_overwrite_table"}
    assert with_overwrite_mode(whole, "overwrite", "DYNAMIC") == whole
    with pytest.raises(Invalid, match="STATIC or DYNAMIC"):
        with_overwrite_mode({"partitionOverwriteMode": "some"}, "overwrite", "STATIC")


def test_the_path_is_an_argument_or_an_option_in_any_case() -> None:
    assert path_of("/a", {"path": "/b"}) == "/a"
    assert path_of(None, {"Path": "/b"}) == "/b"
    assert without_path({"PATH": "/b", "x": "y"}) == {"x": "y"}
    with pytest.raises(Invalid, match="path is missing"):
        path_of(None, {})


def test_wildcards_of_old_scripts_are_dropped_and_others_refused() -> None:
    assert _without_globs("/base/*/*/") == "/base"
    assert _without_globs("s3://b/t/*") == "s3://b/t"
    assert _without_globs("/base") == "/base"
    with pytest.raises(Invalid, match="wildcards"):
        _without_globs("/base/2024*/x")


@pytest.mark.parametrize(
    ("text", "size"), [("134217728b", 128 << 20), ("64m", 64 << 20), ("1g", 1 << 30), ("77", 77), ("?", 128 << 20)]
)
def test_byte_sizes_of_spark_are_understood(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize(
    ("stored", "wanted", "readable"),
    [
        (pa.int32(), pa.int32(), True),
        (pa.int32(), pa.int64(), True),
        (pa.int32(), pa.float64(), True),
        (pa.int32(), pa.float32(), False),
        (pa.int64(), pa.float64(), False),
        (pa.float32(), pa.float64(), False),
        (pa.int64(), pa.string(), False),
        (pa.int64(), pa.int32(), False),
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"), True),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), False),
        (pa.decimal128(10, 2), pa.decimal128(12, 4), True),
        (pa.decimal128(10, 2), pa.decimal128(10, 4), False),
        (pa.decimal128(15, 2), pa.decimal128(16, 2), True),
        (pa.decimal128(9, 2), pa.decimal128(10, 2), False),
        (pa.decimal128(9, 2), pa.decimal128(18, 2), False),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), True),
        (pa.list_(pa.int64()), pa.list_(pa.string()), False),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), True),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int64()), ("b", pa.string())]), True),
        (pa.struct([("a", pa.int64())]), pa.struct([("a", pa.string())]), False),
        (pa.int32(), pa.struct([("a", pa.int64())]), False),
    ],
)
def test_what_sparks_reader_can_widen(stored: pa.DataType, wanted: pa.DataType, readable: bool) -> None:
    assert is_natively_readable(stored, wanted) is readable


def test_comments_and_time_zones_reach_the_spark_schema() -> None:
    pytest.importorskip("pyspark")
    schema = pa.schema(
        [
            pa.field("a", pa.timestamp("us", "UTC"), metadata={b"comment": b"when"}),
            pa.field("b", pa.timestamp("us"), nullable=False),
        ]
    )
    made = spark_schema(schema)
    assert made.simpleString() == "struct<a:timestamp,b:timestamp_ntz>"
    assert made["a"].metadata == {"comment": "when"}
    assert not made["b"].nullable
