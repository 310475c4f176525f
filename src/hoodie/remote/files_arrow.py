"""Names and sizes of the files of partitions as an Arrow stream: no object for a file on either side.

1. A row is a partition: its path, the names of its files, their sizes in the order of the names. Any number of batches,
   each a partition only once in the stream.
2. It is read with care, as JSON is: another schema, nulls, packed buffers (whose size nobody knows before they are
   unpacked), a stream without its end, sizes below zero and names that lead elsewhere are no answer. A body is bounded
   where it is received (`timed_http`), and what is made of it is no larger.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Unsupported
from hoodie.remote.json_values import not_understood
from hoodie.remote.names import ensure_partition_name

MEDIA_TYPE: Final = "application/vnd.apache.arrow.stream"
SCHEMA: Final = pa.schema(
    [
        pa.field("partition", pa.string(), nullable=False),
        pa.field("names", pa.list_(pa.field("item", pa.string(), nullable=False)), nullable=False),
        pa.field("sizes", pa.list_(pa.field("item", pa.int64(), nullable=False)), nullable=False),
    ]
)

_BATCH_BYTES: Final = 64 << 20
_END: Final = b"\xff\xff\xff\xff\0\0\0\0"
_ELSEWHERE: Final = r"^\.{0,2}$|[/\x00]"
_U16, _U32, _I32 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<i")
_HEADER, _COMPRESSION = 2, 3
"""Which members of the tables `Message` and `RecordBatch` of Arrow's format these are."""


@dataclass(frozen=True, slots=True, eq=False)
class FileColumns:
    """The files of a partition: names, and sizes in their order."""

    names: pa.StringArray
    sizes: pa.Int64Array

    def items(self) -> Iterator[tuple[str, int]]:
        """Names and sizes."""
        return zip(self.names.to_pylist(), self.sizes.to_pylist(), strict=True)


NO_FILES: Final = FileColumns(pa.array([], pa.string()), pa.array([], pa.int64()))


def encode_files(found: Iterable[tuple[str, FileColumns]]) -> bytes:
    """The stream of partitions and their files.

    Raises:
        Unsupported: a file has a name that is no text.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        for some in _batches(found):
            writer.write_batch(_batch(some))
    return bytes(sink.getvalue())


def parse_files(body: bytes) -> dict[str, FileColumns]:
    """The files of partitions by their paths.

    Raises:
        Unavailable: it is no such stream, or says something impossible.
    """
    if not body.endswith(_END):
        raise not_understood("it is cut off")
    found: dict[str, FileColumns] = {}
    try:
        messages = iter(pa.ipc.MessageReader.open_stream(pa.py_buffer(body)))
        if not pa.ipc.read_schema(next(messages)).equals(SCHEMA):
            raise not_understood("it has other columns than files have")
        for message in messages:
            if message.type != "record batch" or _is_packed(bytes(message.metadata)):
                raise not_understood("it has other parts than plain batches of files")
            batch = pa.ipc.read_record_batch(message, SCHEMA)
            batch.validate(full=True)
            for partition, files in _parsed(batch):
                if partition in found:
                    raise not_understood("it tells of a partition twice")
                found[partition] = files
    except (pa.ArrowException, OSError, StopIteration, struct.error, IndexError) as error:
        raise not_understood(
            f"it is no Arrow stream: {str(error).splitlines()[0] if str(error) else 'nothing'}"
        ) from error
    return found


def _batches(found: Iterable[tuple[str, FileColumns]]) -> Iterator[list[tuple[str, FileColumns]]]:
    some: list[tuple[str, FileColumns]] = []
    size = 0
    for partition, files in found:
        more = files.names.nbytes + files.sizes.nbytes
        if some and size + more > _BATCH_BYTES:
            yield some
            some, size = [], 0
        some.append((partition, files))
        size += more
    if some:
        yield some


def _batch(some: list[tuple[str, FileColumns]]) -> pa.RecordBatch:
    names = pa.concat_arrays([files.names for _, files in some])
    try:
        names.validate(full=True)
    except pa.ArrowInvalid as error:
        raise Unsupported(
            "A file has a name that is no text, which an Arrow stream cannot tell", remedy="Ask for JSON"
        ) from error
    counts = pa.array([0, *(len(files.names) for _, files in some)], pa.int64())
    offsets = pc.cumulative_sum(counts).cast(pa.int32())
    columns = [
        pa.array([partition for partition, _ in some], pa.string()),
        pa.ListArray.from_arrays(offsets, names, type=SCHEMA.field("names").type),
        pa.ListArray.from_arrays(
            offsets, pa.concat_arrays([files.sizes for _, files in some]), type=SCHEMA.field("sizes").type
        ),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _parsed(batch: pa.RecordBatch) -> Iterator[tuple[str, FileColumns]]:
    partitions, names, sizes = batch.columns
    flat_names, flat_sizes = names.flatten(), sizes.flatten()
    if any(one.null_count for one in (*batch.columns, flat_names, flat_sizes)):
        raise not_understood("something is missing in it")
    if not names.value_lengths().equals(sizes.value_lengths()):
        raise not_understood("it has other numbers of names than of sizes")
    if pc.any(pc.match_substring_regex(flat_names, _ELSEWHERE), min_count=0).as_py():
        raise not_understood("it has a name of no file in a folder")
    if pc.any(pc.less(flat_sizes, 0), min_count=0).as_py():
        raise not_understood("it has a size below zero")
    begin = 0
    for partition, count in zip(partitions.to_pylist(), names.value_lengths().to_pylist(), strict=True):
        files = FileColumns(flat_names.slice(begin, count), flat_sizes.slice(begin, count))
        yield ensure_partition_name(partition), files
        begin += count


def _is_packed(metadata: bytes) -> bool:
    """Whether a message says that its buffers are compressed (`Message.header` → `RecordBatch.compression`, both
    FlatBuffers tables: a table begins with the way back to the list of its members, two bytes for each).
    """
    message = _U32.unpack_from(metadata)[0]
    header = message + _member(metadata, message, _HEADER)
    batch = header + _U32.unpack_from(metadata, header)[0]
    return _member(metadata, batch, _COMPRESSION) != 0


def _member(data: bytes, table: int, number: int) -> int:
    """How far behind a table's begin a member is; 0 where it has none."""
    members = table - _I32.unpack_from(data, table)[0]
    at = 4 + 2 * number
    return int(_U16.unpack_from(data, members + at)[0]) if at < _U16.unpack_from(data, members)[0] else 0
