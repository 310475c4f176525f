"""Any schema, any rows: decoded as fastavro reads them, encoded to the bytes it writes."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from hoodie.records import RowBytes, decode_rows, encode_rows, from_avro
from hoodie.testing.random_avro import RandomAvro, without_logical


def read(data: bytes, schema: Any) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(without_logical(schema)))


def laid_out(rows: list[bytes], gap: int) -> RowBytes:
    """Rows with other bytes before, between and behind them."""
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    ends = np.cumsum(sizes + gap)
    noise = b"\xa5" * gap
    return RowBytes(noise + noise.join(rows) + noise, ends - sizes, ends)


@pytest.mark.parametrize("seed", range(120))
def test_rows_of_a_random_schema_are_decoded_and_encoded_like_fastavro(seed: int) -> None:
    source = RandomAvro(seed)
    schema = source.record(1 + seed % 7)
    text = json.dumps(schema)
    values = [source.value(schema) for _ in range([0, 1, 3, 150, 400][seed % 5])]

    encoded = [source.encode(schema, value, source.chance) for value in values]
    assert [read(row, schema) for row in encoded] == [source.plain(schema, value) for value in values]
    rows = decode_rows(laid_out(encoded, seed % 4), text)

    expected = pa.Table.from_pylist([source.arrow(schema, value) for value in values], schema=from_avro(text))
    rows.validate(full=True)
    assert rows.equals(expected)
    canonical = [source.encode(schema, value) for value in values]
    again = encode_rows(rows, text)
    assert again.data == b"".join(canonical)
    assert [len(row) for row in canonical] == (again.ends - again.starts).tolist()
