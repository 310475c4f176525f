"""Files of partitions as an Arrow stream: what was told comes back, and what cannot be is no answer."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import Unavailable, Unsupported
from hoodie.remote.files_arrow import NO_FILES, SCHEMA, FileColumns, encode_files, parse_files


def columns(*files: tuple[str, int]) -> FileColumns:
    return FileColumns(
        pa.array([name for name, _ in files], pa.string()), pa.array([size for _, size in files], pa.int64())
    )


def told(body: bytes) -> dict[str, list[tuple[str, int]]]:
    return {partition: list(files.items()) for partition, files in parse_files(body).items()}


def stream(*batches: dict[str, Any], schema: pa.Schema = SCHEMA, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            arrays = [pa.array(batch[field.name], field.type) for field in schema]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return bytes(sink.getvalue())


def one(partition: str = "p", names: Any = ("a.parquet",), sizes: Any = (1,)) -> dict[str, Any]:
    return {"partition": [partition], "names": [names], "sizes": [sizes]}


@pytest.mark.parametrize("batch_bytes", [1, 1 << 20])
def test_what_was_told_comes_back(batch_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoodie.remote.files_arrow._BATCH_BYTES", batch_bytes)
    files = {"": columns(("a", 0)), "p/q": columns(("né", 1 << 40), ("z", 2)), "empty": NO_FILES}
    assert told(encode_files(files.items())) == {name: list(one.items()) for name, one in files.items()}
    assert parse_files(encode_files([])) == {}


def test_a_name_that_is_no_text_cannot_be_told() -> None:
    names = pa.array([b"\xff.parquet"], pa.binary()).view(pa.string())
    with pytest.raises(Unsupported, match="no text"):
        encode_files([("p", FileColumns(names, pa.array([1], pa.int64())))])


MISSING = pa.schema([SCHEMA.field(0), SCHEMA.field(1)])
NULLABLE = pa.schema([field.with_nullable(True) for field in SCHEMA])
WRONG = {
    "another schema": stream({"partition": ["p"], "names": [["a"]]}, schema=MISSING),
    "another type": stream(
        {**one(), "sizes": [[1.5]]}, schema=SCHEMA.set(2, pa.field("sizes", pa.list_(pa.float64()), nullable=False))
    ),
    "nullable columns": stream(one(), schema=NULLABLE),
    "a partition twice": stream(one(), one()),
    "a partition outside": stream(one("../p")),
    "an absolute partition": stream(one("/p")),
    "the folder of the timeline": stream(one(".hoodie/p")),
    "a path as a name": stream(one(names=["../../etc/passwd"])),
    "an empty name": stream(one(names=[""])),
    "a step up": stream(one(names=[".."])),
    "a name that ends early": stream(one(names=["a\0.parquet"])),
    "more names than sizes": stream(one(names=["a", "b"])),
    "a size below zero": stream(one(sizes=[-1])),
    "packed buffers": stream(one(names=["a" * 100_000]), compression="zstd"),
    "also packed buffers": stream(one(names=["a" * 100_000]), compression="lz4"),
    "no stream": b"[]",
    "nothing": b"",
    "an end alone": b"\xff\xff\xff\xff\0\0\0\0",
    "a file of Arrow's": b"ARROW1\0\0" + stream(one()),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_is_no_answer(name: str) -> None:
    with pytest.raises(Unavailable, match="cannot be used"):
        parse_files(WRONG[name])


def test_what_is_cut_off_anywhere_or_changed_is_no_answer_or_a_whole_one() -> None:
    body = stream(one(), one("q", ["b.parquet", "c.parquet"], [2, 3]))
    for end in range(len(body)):
        with pytest.raises(Unavailable):
            parse_files(body[:end])
    for at in range(0, len(body), 3):
        damaged = bytearray(body)
        damaged[at] ^= 0x55
        try:
            found = told(bytes(damaged))
        except Unavailable:
            continue
        assert all("/" not in name and size >= 0 for files in found.values() for name, size in files)


def test_offsets_that_lead_out_of_a_buffer_are_no_answer() -> None:
    body = stream(one(names=["abcdefgh"]))
    at = body.rindex(struct.pack("<ii", 0, 8))
    with pytest.raises(Unavailable):
        parse_files(body[: at + 4] + struct.pack("<i", 1 << 30) + body[at + 8 :])
