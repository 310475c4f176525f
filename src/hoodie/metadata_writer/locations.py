"""Records of where keys are.

1. A file id made of a UUID, perhaps with a number behind it, is stored as two longs and an int (-1: no number), any
   other as text.
2. The instant is when the rows came there, as milliseconds since 1970 of its time in the table's zone; 0 for the
   instants of bootstraps, which are no times.
3. Keys of one slice differ in nothing but the key: one record is encoded for all of them.
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa

from hoodie.errors import Invalid
from hoodie.metadata.encode_records import encoded_alike
from hoodie.metadata.partitions import RecordType
from hoodie.metadata.record_index import LOCATION
from hoodie.metadata.records import KEY, TYPE
from hoodie.spec import AvroGeneration, InstantTime, TimeZone, parse_instant_time

_UUID: Final = re.compile(r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:-([0-9]{1,9}))?")
_NO_NUMBER: Final = -1
_UUID_ENCODING, _TEXT_ENCODING = 0, 1


def location_rows(keys: pa.Array, partition: str, file_id: str, millis: int, generation: AvroGeneration) -> pa.Table:
    """Records that say the keys are in this file group, as rows for `encode_records`."""
    match = _UUID.fullmatch(file_id)
    high, low = _halves(match[1]) if match else (-1, -1)
    number = int(match[2]) if match and match[2] else _NO_NUMBER
    location = {
        "partitionName": pa.array([partition], pa.string()),
        "fileIdHighBits": pa.array([high], pa.int64()),
        "fileIdLowBits": pa.array([low], pa.int64()),
        "fileIndex": pa.array([number], pa.int32()),
        "fileId": pa.array(["" if match else file_id], pa.string()),
        "instantTime": pa.array([millis], pa.int64()),
        "fileIdEncoding": pa.array([_UUID_ENCODING if match else _TEXT_ENCODING], pa.int32()),
    }
    record = pa.table(
        {
            KEY: pa.array([""], pa.string()),
            TYPE: pa.array([int(RecordType.RECORD_INDEX)], pa.int32()),
            LOCATION: pa.StructArray.from_arrays(list(location.values()), names=list(location)),
        }
    )
    return encoded_alike(keys, record, generation)


def instant_millis(instant: InstantTime, timezone: TimeZone) -> int:
    """The moment of an instant as the index has it."""
    try:
        return round(parse_instant_time(instant, timezone).timestamp() * 1000)
    except Invalid:
        return 0


def _halves(uuid: str) -> tuple[int, int]:
    """The UUID as two signed numbers."""
    data = bytes.fromhex(uuid.replace("-", ""))
    return int.from_bytes(data[:8], "big", signed=True), int.from_bytes(data[8:], "big", signed=True)
