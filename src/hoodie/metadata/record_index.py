"""The record index: in which file group each key lies.

1. A record says partition and file id. An id made of a UUID and a number is stored as two longs and an int (encoding
   0), any other as text (encoding 1).
2. `instant` is when the row came there, as epoch milliseconds; here it is the instant time again.
3. An index for the whole table knows each key once; one that is cut by partitions may know it in several of them.
4. Only the blocks that may hold a key are read, and only the keys asked for are merged: the size of the index matters
   little.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Corrupt
from hoodie.metadata.damage import REBUILD
from hoodie.metadata.merge import merge_newest
from hoodie.metadata.partitions import RECORD_INDEX, data_partition_groups, group_of_keys
from hoodie.metadata.records import KEY, Wanted
from hoodie.metadata.store import MetadataStore
from hoodie.spec import TimeZone, format_instant_millis, keys

LOCATION: Final = "recordIndexMetadata"

LOCATIONS: Final = pa.schema(
    [
        pa.field("record_key", pa.string(), nullable=False),
        pa.field("partition", pa.string(), nullable=False),
        pa.field("file_id", pa.string(), nullable=False),
        pa.field("instant", pa.string()),
    ]
)
"""Columns of what `locate` gives."""


def locate(
    store: MetadataStore, record_keys: pa.Array | Collection[str], partitions: Collection[str] | None = None
) -> pa.Table:
    """Where keys are: a row of `LOCATIONS` for each key that is known (several in an index cut by partitions), in no
    particular order. `partitions` limits the answer to partitions of the table.

    Raises:
        Corrupt: the index is damaged. Invalid: there is no record index.
    """
    names = pa.array(record_keys, pa.string()) if not isinstance(record_keys, pa.Array) else record_keys
    names = names.cast(pa.string()).drop_null().unique()
    groups = data_partition_groups(group.file_id for group in store.groups(RECORD_INDEX))
    if partitions is not None and "" not in groups:
        groups = {partition: found for partition, found in groups.items() if partition in partitions}
    wanted: dict[str, Wanted] = {}
    for file_ids in groups.values():
        numbers = group_of_keys(names, len(file_ids))
        for number in np.unique(numbers).tolist():
            wanted[file_ids[number]] = Wanted(keys=names.filter(pa.array(numbers == number)))
    parts = store.read(RECORD_INDEX, wanted, (LOCATION,))
    found = [locations(merge_newest(group), store.config.timezone) for group in parts if group]
    table = pa.concat_tables([LOCATIONS.empty_table(), *found])
    if partitions is None:
        return table
    return table.filter(pc.is_in(table.column("partition"), value_set=pa.array(list(partitions), pa.string())))


def locations(rows: pa.Table, timezone: TimeZone) -> pa.Table:
    """Records of the index as rows of `LOCATIONS`.

    Raises:
        Corrupt: a record has no partition or no file id.
    """
    if LOCATION not in rows.column_names or rows.column(LOCATION).null_count:
        raise _damaged("a record without location")
    found = rows.column(LOCATION).combine_chunks()
    partitions, file_ids = pc.struct_field(found, "partitionName"), _file_ids(found)
    if partitions.null_count or file_ids.null_count:
        raise _damaged("a location without partition or file id")
    table = {
        "record_key": rows.column(KEY),
        "partition": partitions,
        "file_id": file_ids,
        "instant": _instants(pc.struct_field(found, "instantTime"), timezone),
    }
    return pa.table(table, schema=LOCATIONS)


def _file_ids(found: pa.StructArray) -> pa.Array:
    """The file id of each location. Few are different, so each is spelled once."""
    is_text = _integers(found, "fileIdEncoding") == 1
    numbers = [_integers(found, name) for name in ("fileIdHighBits", "fileIdLowBits", "fileIndex")]
    # One value of 24 bytes for each row: hashing them is many times faster than sorting rows.
    packed = pa.py_buffer(np.ascontiguousarray(np.stack(numbers, axis=1)))
    coded = pa.FixedSizeBinaryArray.from_buffers(pa.binary(24), len(found), [None, packed]).dictionary_encode()
    distinct = np.frombuffer(b"".join(coded.dictionary.to_pylist()), dtype=np.int64).reshape(-1, 3)
    spelled = pa.array([_uuid_file_id(*one) for one in distinct.tolist()], pa.string())
    from_uuid = spelled.take(coded.indices)
    return pc.if_else(pa.array(is_text), pc.struct_field(found, "fileId"), from_uuid)


def _uuid_file_id(high: int, low: int, number: int) -> str:
    digits = f"{high & _LONG:016x}{low & _LONG:016x}"
    uuid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return uuid if number < 0 else f"{uuid}-{number}"


_LONG: Final = 0xFFFF_FFFF_FFFF_FFFF


def _integers(found: pa.StructArray, name: str) -> npt.NDArray[np.int64]:
    values = pc.fill_null(pc.struct_field(found, name), -1)
    return np.asarray(values.to_numpy(zero_copy_only=False)).astype(np.int64)


def _instants(millis: pa.Array, timezone: TimeZone) -> pa.Array:
    distinct = millis.dictionary_encode()
    texts: Mapping[int, str | None] = {ms: _instant(ms, timezone) for ms in distinct.dictionary.to_pylist()}
    return pa.array([texts[ms] for ms in distinct.dictionary.to_pylist()], pa.string()).take(distinct.indices)


def _instant(epoch_ms: int, timezone: TimeZone) -> str | None:
    try:
        return format_instant_millis(epoch_ms, timezone)
    except (OverflowError, ValueError):
        return None


def _damaged(what: str) -> Corrupt:
    path = f"{keys.METADATA_TABLE_DIR}/{RECORD_INDEX}"
    return Corrupt(f"{path} is damaged: it has {what}", remedy=REBUILD, path=path)
