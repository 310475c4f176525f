"""Damaged Avro rows and schemas: a table or `Corrupt`, in bounded time and memory.

Rows of random schemas get bytes changed, put in, taken out and cut off; schemas the same as text. What is still read
must be a sound table that, written again, reads the same.

`make test-deep` takes a sample. `HOODIE_FUZZ_SECONDS` makes each test run so long, `HOODIE_FUZZ_SEED` sets the first
seed.
"""

from __future__ import annotations

import json
import time
from itertools import chain
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import Corrupt, Invalid, Unsupported
from hoodie.records import RowBytes, decode_rows, encode_rows, from_avro
from hoodie.testing.fuzzing import fuzz_seeds, spliced_bytes
from hoodie.testing.random_avro import RandomAvro, number

SAMPLE = 150
FOUND = (7015592,)
"""A seed whose error once named a place behind the rows."""
LONGEST_SECONDS = 20.0
TELLING = [
    b"\x00",
    b"\x01",
    b"\x02",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff" * 10,
    number(2**31),
    number(-(2**63)),
    number(2**62),
]


def rows_of(source: RandomAvro, schema: object, *, is_whole: bool) -> RowBytes:
    """Some rows: damaged inside their own bounds, or all together so that the bounds are wrong."""
    count = source.chance.choice([1, 2, 70, 200])
    rows = [source.encode(schema, source.value(schema), source.chance) for _ in range(count)]
    if is_whole:
        at = source.chance.randrange(count)
        rows[at] = spliced_bytes(rows[at], source.chance, TELLING)
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    data = b"".join(rows)
    ends = np.cumsum(sizes)
    return RowBytes(data if is_whole else spliced_bytes(data, source.chance, TELLING), ends - sizes, ends)


@pytest.mark.parametrize("is_whole", [True, False])
def test_damaged_rows_are_read_soundly_or_refused(is_whole: bool) -> None:
    refused = 0
    for seed in chain(FOUND, fuzz_seeds(SAMPLE, first=20261121)):
        source = RandomAvro(seed, longest=source_length(seed))
        schema = source.record(1 + seed % 5)
        text = json.dumps(schema)
        rows = rows_of(source, schema, is_whole=is_whole)
        started = time.monotonic()
        try:
            decoded = decode_rows(rows, text, path="x.log", offset=7)
            decoded.validate(full=True)
            again = decode_rows(encode_rows(decoded, text), text)
            assert again.num_rows == decoded.num_rows, f"seed {seed}"
            assert encode_rows(again, text).data == encode_rows(decoded, text).data, f"seed {seed}"
        except Corrupt as error:
            refused += 1
            assert error.facts["path"] == "x.log"
            assert 7 <= error.facts["offset"] <= 7 + max(len(rows.data), int(rows.ends[-1])), f"seed {seed}"
        assert time.monotonic() - started < LONGEST_SECONDS, f"seed {seed}"
        skipped_columns_do_no_harm(rows, text, source.chance)
    assert refused > 0


def source_length(seed: int) -> int:
    return 300 if seed % 10 == 0 else 4


def skipped_columns_do_no_harm(rows: RowBytes, text: str, chance: Random) -> None:
    names = from_avro(text).names
    try:
        decode_rows(rows, text, columns=[chance.choice(names)]).validate(full=True)
    except Corrupt:
        return


def test_damaged_schemas_are_read_or_refused() -> None:
    for seed in fuzz_seeds(SAMPLE, first=20261121):
        source = RandomAvro(seed)
        schema = source.record(1 + seed % 5)
        rows = rows_of(source, schema, is_whole=True)
        text = spliced_bytes(json.dumps(schema).encode(), source.chance, TELLING).decode(errors="replace")
        try:
            decoded = decode_rows(rows, text)
            decoded.validate(full=True)
        except (Corrupt, Unsupported):
            continue
        try:
            encode_rows(decoded, text)
        except (Invalid, pa.ArrowInvalid) as error:
            raise AssertionError(f"seed {seed}: what was read cannot be written") from error
