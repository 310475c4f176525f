"""Damaged HFiles: entries, `Corrupt` or `Unsupported`, in bounded time and memory.

Files of all writers get bytes changed, put in, taken out and cut off, preferably where they are not zero; and so do the
parts behind the compression, which damage of a whole file seldom reaches: index blocks, entries, file info, and what
each codec unpacks. What is still read must be sound, and look-ups must find nothing that a scan does not give.

`make test-deep` takes a sample. `HOODIE_FUZZ_SECONDS` makes each test run so long, `HOODIE_FUZZ_SEED` sets the first
seed.
"""

from __future__ import annotations

import bz2
import contextlib
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from hoodie.errors import Corrupt, Unsupported
from hoodie.hfile import BloomMeta, Codec, HFile, HFileOptions, KeyValues, encode_hfile, open_hfile
from hoodie.hfile.block_index import encode_index_entry, full_key, parse_lower_index, parse_root_index
from hoodie.hfile.codec import decompress
from hoodie.hfile.entries import parse_entries
from hoodie.hfile.file_info import encode_file_info, parse_file_info
from hoodie.testing.fuzzing import anywhere, fuzz_chances, spliced_bytes
from hoodie.testing.memory import at_most_held

SAMPLE = 150
LONGEST_SECONDS = 20.0
MAX_BYTES = 1024**3
GOLDEN = Path(__file__).parents[1] / "golden" / "hfile"
TELLING = [b"\0", b"\1", b"\x7f", b"\x80", b"\xff", b"\0\0\0\0", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80" + bytes(7)]


def damaged(content: bytes, chance: Random, *, same_size: bool = False) -> bytes:
    return spliced_bytes(content, chance, TELLING, place=place, same_size=same_size)


def place(content: bytearray, chance: Random) -> int:
    """A position, seldom one with a zero."""
    for _ in range(20):
        at = anywhere(content, chance)
        if at < len(content) and content[at]:
            return at
    return anywhere(content, chance)


def opened(data: bytes) -> HFile:
    return open_hfile(lambda start, length: data[start : start + length], len(data), "a.hfile")


def ensure_sound(part: KeyValues) -> None:
    assert len(part.keys) == len(part.starts) == len(part.ends)
    part.keys.validate(full=True)
    assert (part.starts <= part.ends).all()
    assert not len(part) or (part.starts[0] >= 0 and part.ends[-1] <= len(part.data))
    assert (part.starts[1:] >= part.ends[:-1]).all()


def read_all(data: bytes) -> int:
    """How many entries were read in all ways there are."""
    file = opened(data)
    assert file.schema is None or isinstance(file.schema, str)
    assert file.last_key is None or isinstance(file.last_key, bytes)
    known: set[tuple[bytes, bytes]] = set()
    for part in file.scan():
        ensure_sound(part)
        known.update(zip(part.keys.to_pylist(), part.values.to_pylist(), strict=True))
    keys = sorted({key for key, _ in known})
    for found in (file.lookup(keys[::3]), file.with_prefixes([key[:5] for key in keys[::20]])):
        ensure_sound(found)
        assert known.issuperset(zip(found.keys.to_pylist(), found.values.to_pylist(), strict=True))
    file.meta("bloomFilter")
    return len(known)


def ensure_refused_or_read(read: Callable[[], object]) -> None:
    started = time.monotonic()
    with at_most_held(MAX_BYTES):
        try:
            read()
        except Corrupt as error:
            assert error.facts["path"] == "a.hfile"
            assert isinstance(error.facts["offset"], int)
        except Unsupported as error:
            assert error.facts["path"] == "a.hfile"
    assert time.monotonic() - started < LONGEST_SECONDS


def our_file(codec: Codec, count: int = 120) -> bytes:
    keys = [f"key-{number:05d}" for number in range(count)]
    values = pa.array([b"v" * (number % 50) for number in range(count)], pa.binary())
    bloom = BloomMeta("SIMPLE", "QUJD" * 20)
    options = HFileOptions(codec=codec, block_bytes=1024)
    return encode_hfile(pa.array(keys), values, schema='{"type": "bytes"}', bloom=bloom, options=options)


FILES = {
    **{path.stem: path.read_bytes() for path in sorted(GOLDEN.glob("*.hfile"))},
    "ours_gz": our_file(Codec.GZ),
    "ours_none": our_file(Codec.NONE),
    "ours_empty": our_file(Codec.NONE, 0),
}


@pytest.mark.parametrize("name", FILES)
def test_damaged_file_is_refused_or_read(name: str) -> None:
    for chance in fuzz_chances(SAMPLE):
        data = damaged(FILES[name], chance, same_size=chance.random() < 0.7)
        ensure_refused_or_read(lambda data=data: read_all(data))


@pytest.mark.parametrize("name", FILES)
def test_damaged_end_of_a_file_is_refused_or_read(name: str) -> None:
    whole = FILES[name]
    for chance in fuzz_chances(SAMPLE):
        cut = opened(whole).trailer.load_on_open_offset if chance.random() < 0.5 else len(whole) - 4096
        data = whole[:cut] + damaged(whole[cut:], chance, same_size=True)
        ensure_refused_or_read(lambda data=data: read_all(data))


def test_damaged_entries_are_refused_or_read() -> None:
    entry = struct.Struct(">iih")
    suffix = full_key(b"")[2:]
    for chance in fuzz_chances(SAMPLE):
        even = chance.random() < 0.3
        sizes = [(5, 9) if even else (chance.randrange(20), chance.randrange(60)) for _ in range(40)]
        content = b"".join(
            entry.pack(key + 12, value, key) + b"k" * key + suffix + b"v" * value + b"\0" for key, value in sizes
        )
        blocks = [(0, content), (5000, damaged(content, chance))]
        ensure_refused_or_read(lambda blocks=blocks: ensure_sound(parse_entries(blocks, "a.hfile")))


def test_damaged_indexes_are_refused_or_read() -> None:
    keys = [f"key-{number:05d}".encode() for number in range(40)]
    entries = [encode_index_entry(full_key(key), 100 * at, 100) for at, key in enumerate(keys)]
    root = b"".join(entries)
    bodies = [struct.pack(">qi", 100 * at, 100) + full_key(key) for at, key in enumerate(keys)]
    ends = [sum(map(len, bodies[:at])) for at in range(len(bodies) + 1)]
    lower = struct.pack(f">{len(ends) + 1}i", len(keys), *ends) + b"".join(bodies)
    assert parse_lower_index(lower, "a.hfile", 0) == parse_root_index(root, len(keys), "a.hfile", 0)
    for chance in fuzz_chances(SAMPLE):
        count = chance.choice([len(keys), len(keys), 1, 2**31, -1, chance.randrange(100)])
        content, below = damaged(root, chance), damaged(lower, chance)
        ensure_refused_or_read(lambda content=content, count=count: parse_root_index(content, count, "a.hfile", 0))
        ensure_refused_or_read(lambda below=below: parse_lower_index(below, "a.hfile", 0))


def test_damaged_file_info_is_refused_or_read() -> None:
    content = encode_file_info({f"name {number}": b"v" * number for number in range(20)})
    for chance in fuzz_chances(SAMPLE):
        data = damaged(content, chance)
        ensure_refused_or_read(lambda data=data: parse_file_info(data, "a.hfile", 0))


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec not in (Codec.LZO, Codec.NONE)])
def test_damaged_compressed_bytes_are_refused_or_unpacked_to_the_promised_size(codec: Codec) -> None:
    content = b"".join(b"%d the quick brown fox " % number for number in range(500))
    match codec:
        case Codec.GZ:
            packed = zlib.compress(content, wbits=31)
        case Codec.BZIP2:
            packed = bz2.compress(content)
        case Codec.ZSTD:
            packed = bytes(pa.compress(content, "zstd", asbytes=True))
        case _:
            chunk = pa.compress(content, {Codec.SNAPPY: "snappy"}.get(codec, "lz4_raw"), asbytes=True)
            packed = struct.pack(">ii", len(content), len(chunk)) + chunk
    assert decompress(codec, memoryview(packed), len(content)) == content
    for chance in fuzz_chances(SAMPLE):
        size = chance.choice([len(content)] * 8 + [0, 1, len(content) + 1, 2**29])
        started = time.monotonic()
        with contextlib.suppress(ValueError):
            assert len(decompress(codec, memoryview(damaged(packed, chance)), size)) == size
        assert time.monotonic() - started < LONGEST_SECONDS
