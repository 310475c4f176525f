"""Records of the metadata table as Avro bytes.

In HFiles the field `key` is empty: the entry's key is the key.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.metadata.records import KEY
from hoodie.records import encode_rows
from hoodie.spec import AvroGeneration, metadata_record_schema

ENCODED: Final = "avro"
"""Column of records that are Avro values already (binary, or a dictionary of them)."""


def encode_records(rows: pa.Table, generation: AvroGeneration = "1.x") -> tuple[pa.Array, pa.Array]:
    """Keys and Avro values of records, for an HFile. `rows` has the columns of the metadata record schema or some of
    them; absent ones are null. Or it has, beside the key, the column `ENCODED`.

    Raises:
        Invalid: a value does not fit.
    """
    keys = rows.column(KEY).combine_chunks().cast(pa.string())
    if ENCODED in rows.column_names:
        return keys, rows.column(ENCODED).combine_chunks().cast(pa.large_binary())
    blank = pa.array([""], pa.string()).take(pa.array([0] * len(keys), pa.int32()))
    encoded = encode_rows(
        rows.set_column(rows.schema.get_field_index(KEY), KEY, blank), metadata_record_schema(generation)
    )
    offsets = pa.array([*encoded.starts[:1].tolist(), *encoded.ends.tolist()], pa.int64()) if len(encoded) else None
    if offsets is None:
        return keys, pa.array([], pa.large_binary())
    buffers = [None, offsets.buffers()[1], pa.py_buffer(encoded.data)]
    return keys, pa.Array.from_buffers(pa.large_binary(), len(keys), buffers)


def encoded_alike(keys: pa.Array, record: pa.Table, generation: AvroGeneration) -> pa.Table:
    """Records of many keys that differ in nothing else, as rows for `encode_records`. `record`: one of them."""
    _, values = encode_records(record, generation)
    codes = pa.array(np.zeros(len(keys), np.int32))
    return pa.table({KEY: keys, ENCODED: pa.DictionaryArray.from_arrays(codes, values.cast(pa.binary()))})
