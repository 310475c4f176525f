"""Records in bytes: those of the format page, and schemas of both releases."""

import pyarrow as pa
import pytest

from hoodie.metadata.encode_records import encode_records
from hoodie.records import from_avro
from hoodie.spec import metadata_record_schema
from hoodie.testing.hand_metadata import files_record

NAME = "1b01ecab-d06e-4d3d-8b79-04b6eb2c6db3-0_0-15058-29396_20261121060906583.parquet"


def test_record_has_the_bytes_of_the_format_page():
    rows = pa.Table.from_pylist([files_record("p0", {NAME: 1_000_000})], schema=from_avro(metadata_record_schema()))
    keys, values = encode_records(rows)
    assert keys.to_pylist() == ["p0"]
    expected = "00 00 00 00 00 00 04 02 02 9c 01" + NAME.encode().hex() + "80 89 7a 00 00 00 00 00 00"
    assert values.to_pylist() == [bytes.fromhex(expected)]


@pytest.mark.parametrize(("generation", "members", "columns"), [("0.15", 11, 11), ("1.x", 13, 12)])
def test_schemas_grow_with_releases(generation, members, columns):
    schema = from_avro(metadata_record_schema(generation))
    assert len(schema) == columns
    assert schema.field("ColumnStatsMetadata").type.field("minValue").type.num_fields == members


def test_nothing_encodes_to_nothing():
    keys, values = encode_records(from_avro(metadata_record_schema()).empty_table())
    assert len(keys) == len(values) == 0
