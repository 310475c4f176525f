"""Damaged base files, their footers, bloom filters and partition metafiles: a typed error that names the file, or rows
of the right shape, in bounded memory.

Pages have no checksum of their own: a changed value inside one is a value like another. So what is asked of rows is
that their number is that of the footer and that they are sound Arrow data.

`HOODIE_FUZZ_SECONDS=n` makes each test run that long.
"""

from __future__ import annotations

import base64
import io
import tarfile
import uuid
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from hoodie.errors import Corrupt, HudiError, Invalid, Unsupported
from hoodie.records import BloomFilter, iter_batches, read_columns, read_footer
from hoodie.records.condition import Comparison
from hoodie.spec import PartitionMetafile, encode_partition_metafile_parquet, parse_partition_metafile
from hoodie.storage import MemoryStorage
from hoodie.testing.fuzzing import damaged_bytes, fuzz_seeds
from hoodie.testing.memory import at_most_held

TABLES = Path(__file__).parents[1] / "golden" / "tables"
SAMPLE = 500
FOUND = (
    2997,
    3323,
    6137,
    7501,
    9178,
    9412,
    13925,
    16291,
    18241,
    28024,
    28914,
    123566,
    7252530,
    7395192,
    11007306,
    28081,
)
"""Seeds that once showed fewer rows than the footer has, without a word, or an error that did not say of which file;
of the last four two ended the process by ORC, one took 2 GiB, and one ended it by a footer.
"""
MAX_BYTES = 1 << 29
"""Memory that reading one of these small files may take at any moment."""

ROWS = pa.table(
    {
        "_hoodie_record_key": ["a", "b", "c"] * 40,
        "number": pa.array([1, None, 3] * 40),
        "small": pa.array([1, 2, 3] * 40, pa.int32()),
        "price": pa.array([Decimal("1.20"), None, Decimal("-3.40")] * 40, pa.decimal128(10, 2)),
        "day": pa.array([date(2024, 1, 2), None, date(1969, 12, 31)] * 40),
        "tags": pa.array([["x", None], [], None] * 40, pa.list_(pa.field("element", pa.string()))),
        "pair": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}] * 40),
        "marks": pa.array([[("k", 1)], [], None] * 40, pa.map_(pa.string(), pa.int64())),
    }
)

FILTERS = (
    (pc.field("price") != Decimal(1)) & pc.field("number").is_valid(),
    (pc.field("number") > 2) & (pc.field("_hoodie_record_key") < "zz") & (pc.field("day") < date(2030, 1, 1)),
)


def parquet_bytes(**options: object) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(ROWS, buffer, row_group_size=50, **options)
    return buffer.getvalue()


def orc_bytes() -> bytes:
    buffer = io.BytesIO()
    orc.write_table(ROWS.drop_columns(["marks"]), buffer)
    return buffer.getvalue()


@cache
def base_files() -> list[tuple[str, bytes]]:
    """Names and bytes: ours in several layouts, ORC, and some that Hudi wrote."""
    found = [
        ("p/plain.parquet", parquet_bytes(compression="none", use_dictionary=False)),
        ("p/zstd.parquet", parquet_bytes(compression="zstd")),
        ("p/snappy.parquet", parquet_bytes(compression="snappy", data_page_version="2.0")),
        ("p/delta.parquet", parquet_bytes(use_dictionary=False, column_encoding={"number": "DELTA_BINARY_PACKED"})),
        ("p/rows.orc", orc_bytes()),
    ]
    for name in ("0.15.0/cow_all_types", "1.2.0/cow_all_types", "1.2.0/cow_bloom_simple_filter", "1.2.0/cow_codecs"):
        with tarfile.open(TABLES / name / "table.tar.gz") as tar:
            bases = [one for one in tar if one.name.endswith(".parquet") and "/.hoodie" not in one.name]
            for member in bases[:2]:
                file = tar.extractfile(member)
                assert file is not None
                found.append((f"p/{member.name.rpartition('/')[2]}", file.read()))
    assert len(found) > 8
    return found


def damaged_file(data: bytes, seed: int) -> bytes:
    """Damage anywhere, or only in the footer: it is what steers reading, and small beside the rest."""
    if seed % 3 == 0:
        return damaged_bytes(data, seed)
    end = len(data) - 8
    start = max(0, end - int.from_bytes(data[end : end + 4], "little")) if data.endswith(b"PAR1") else end - 300
    return data[:start] + damaged_bytes(data[start:end], seed) + data[end:]


def ensure_handled(name: str, data: bytes, seed: int) -> None:
    """Footer, filter, all columns, streams in certain types and with conditions: sound, or an error with the path."""
    storage = MemoryStorage(uuid.uuid4().hex)
    try:
        storage.put(name, data)
        footer = read_footer(storage, name)
        if footer.bloom_text is not None and (bloom := footer.bloom()) is not None:
            assert len(bloom.contains(pa.array(["a", None, "ü"]))) == 3
        rows = 0
        for batch in iter_batches(storage, name, batch_rows=100):
            batch.validate()
            assert batch.schema.equals(footer.schema)
            rows += batch.num_rows
        assert rows == footer.rows, f"seed {seed}"
        whole = read_columns(storage, name, footer=footer)
        whole.validate()
        assert whole.num_rows == footer.rows, f"seed {seed}"
        list(iter_batches(storage, name, schema=ROWS.schema, batch_rows=64))
        for condition in FILTERS:
            list(iter_batches(storage, name, schema=ROWS.schema, filter=condition))
    except (Corrupt, Unsupported, Invalid) as error:
        assert error.facts.get("path") == name, f"seed {seed}: {error!r} {error.facts}"
    except HudiError as error:
        raise AssertionError(f"seed {seed}") from error
    finally:
        storage.forget()


def test_damaged_base_files() -> None:
    files = base_files()
    for name, data in files:
        ensure_handled(name, data, -1)
    for seed in chain(FOUND, fuzz_seeds(SAMPLE)):
        name, data = files[seed // 3 % len(files)]
        with at_most_held(MAX_BYTES):
            ensure_handled(name, damaged_file(data, seed), seed)


@cache
def paged_files() -> list[bytes]:
    """Files of many small pages with an index, which are read page by page."""
    count = 12_000
    rows = pa.table({"key": [f"key{at:08d}" for at in range(count)], "number": range(count), "text": ["a", "b"] * 6000})
    found = []
    for options in ({"compression": "gzip"}, {"use_dictionary": False}, {"data_page_version": "2.0"}):
        buffer = io.BytesIO()
        pq.write_table(rows, buffer, write_page_index=True, max_rows_per_page=300, write_batch_size=100, **options)
        found.append(buffer.getvalue())
    return found


def test_damaged_files_that_are_read_by_pages() -> None:
    wanted = Comparison("key", "in", pa.array(["key00000500", "key00007777", "nobody"]))
    schema = pa.schema({"number": pa.int64(), "key": pa.string(), "text": pa.string()})
    for seed in fuzz_seeds(SAMPLE):
        data = paged_files()[seed // 3 % 3]
        storage = MemoryStorage(uuid.uuid4().hex)
        # The indexes lie before the footer: damage there and in the footer steers reading.
        cut = len(data) - 30_000 if seed % 3 else 0
        storage.put("p/f.parquet", data[:cut] + damaged_bytes(data[cut:], seed))
        try:
            with at_most_held(MAX_BYTES):
                for batch in iter_batches(
                    storage,
                    "p/f.parquet",
                    schema=schema,
                    filter=pc.field("key").isin(wanted.values),
                    filter_columns=("key",),
                    condition=wanted,
                ):
                    batch.validate(full=True)
                    assert batch.schema.equals(schema)
        except (Corrupt, Unsupported, Invalid) as error:
            assert error.facts.get("path") == "p/f.parquet", f"seed {seed}: {error!r} {error.facts}"
        except HudiError as error:
            raise AssertionError(f"seed {seed}") from error
        finally:
            storage.forget()


@cache
def filters() -> list[tuple[str, str]]:
    """Kinds and texts of filters with keys in them; the second has several rows of bits."""
    keys = pa.array([f"key{at}" for at in range(100)])
    made = [BloomFilter.simple(50, 0.01), BloomFilter.dynamic(20, 0.01, 60)]
    for one in made:
        one.add(keys)
    return [(one.type_code, one.to_text()) for one in made]


def test_damaged_bloom_filters() -> None:
    keys = pa.array([f"key{at}" for at in range(100)])
    for seed in fuzz_seeds(SAMPLE):
        kind, text = filters()[seed % 2]
        data = base64.b64decode(text)
        if seed % 4 < 2:
            text = base64.b64encode(damaged_bytes(data[:25], seed)[:25] + data[25:]).decode()
        else:
            text = damaged_bytes(text.encode(), seed).decode("latin-1")
        try:
            found = BloomFilter.from_text(text, kind, 60)
        except (Corrupt, Unsupported):
            continue
        answers = found.contains(keys)
        assert answers.dtype == np.bool_
        assert len(answers) == len(keys)
        if found.type_code == "SIMPLE" or found.vector_size * found.row_count < 1 << 20:
            found.add(keys[:3])
            assert found.contains(keys[:3]).all(), f"seed {seed}"


def test_filter_for_no_keys_is_refused_because_adding_to_it_would_never_end() -> None:
    _, text = filters()[1]
    data = bytearray(base64.b64decode(text))
    data[13:17] = bytes(4)
    with pytest.raises(Corrupt, match="0 keys"):
        BloomFilter.from_text(base64.b64encode(bytes(data)).decode(), "DYNAMIC_V0")


def test_damaged_partition_metafiles_in_parquet() -> None:
    path = "p/.hoodie_partition_metadata.parquet"
    good = encode_partition_metafile_parquet(PartitionMetafile("20261121052208873", 1))
    assert parse_partition_metafile(good, path) == PartitionMetafile("20261121052208873", 1)
    for seed in chain((323, 24211), fuzz_seeds(SAMPLE)):  # names of columns that are no UTF-8
        try:
            found = parse_partition_metafile(damaged_bytes(good, seed), path)
        except Corrupt as error:
            assert error.facts["path"] == path
        else:
            assert isinstance(found.partition_depth, int)


@given(st.binary(max_size=300), st.sampled_from(["x.parquet", "x.orc"]), st.booleans())
@settings(max_examples=80, deadline=None)
def test_any_bytes_are_refused_with_an_error_of_ours(data: bytes, name: str, framed: bool) -> None:
    if framed:
        data = b"PAR1" + data + len(data).to_bytes(4, "little") + b"PAR1"
    ensure_handled(name, data, 0)
