"""Base files as they are written: footer, encodings, row groups, and nothing left after a failure."""

from __future__ import annotations

import errno
import gc
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import Invalid, Unavailable, Unsupported
from hoodie.records import (
    META_FIELDS,
    BaseFileOptions,
    BaseFileStats,
    BaseFileWriter,
    BaseFooter,
    BloomOptions,
    parse_codec,
    read_columns,
    read_footer,
    to_avro,
    with_meta,
)
from hoodie.records.schema import map_type
from hoodie.storage import MemoryStorage
from hoodie.testing.bounds import leaf_bounds

SMALL = BaseFileOptions(BloomOptions(entries=100))
SCHEMA = with_meta(pa.schema([("id", pa.int64()), ("price", pa.decimal128(10, 2)), ("tags", pa.list_(pa.string()))]))


def rows(first: int, count: int) -> pa.Table:
    ids = list(range(first, first + count))
    meta = [[value] * count for value in ("20261121060439000", "s", "k", "p", "f.parquet")]
    meta[1] = [f"20261121060439000_0_{at}" for at in ids]
    meta[2] = [f"k{at:05d}" for at in ids]
    tags = [None if at % 3 == 0 else ["a", None] for at in ids]
    arrays = [
        *(pa.array(values) for values in meta),
        pa.array(ids),
        pa.array(ids).cast(pa.decimal128(19, 0)).cast(pa.decimal128(10, 2)),
        pa.array(tags, pa.list_(pa.string())),
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def written(
    storage: MemoryStorage,
    path: str,
    *tables: tuple[pa.Table, bool],
    options: BaseFileOptions = SMALL,
    inherit: BaseFooter | None = None,
) -> BaseFileStats:
    with BaseFileWriter(storage, path, SCHEMA, options, table_name="t", inherit=inherit) as writer:
        for table, inherited in tables:
            writer.write(table, inherited=inherited)
    return writer.close()


def parquet(storage: MemoryStorage, path: str) -> Any:
    return pq.ParquetFile(pa.BufferReader(storage.read(path)))


def test_file_has_the_footer_of_hudi_and_gives_its_rows_back(storage: MemoryStorage) -> None:
    stats = written(storage, "p/f.parquet", (rows(0, 50), False))
    footer = read_footer(storage, "p/f.parquet")
    keys = {key.decode() for key in parquet(storage, "p/f.parquet").metadata.metadata}
    assert keys == {
        "org.apache.hudi.bloomfilter",
        "hoodie_bloom_filter_type_code",
        "hoodie_min_record_key",
        "hoodie_max_record_key",
        "parquet.avro.schema",
        "writer.model.name",
    }
    assert footer.avro_schema == to_avro(SCHEMA, "t")
    assert stats == BaseFileStats("p/f.parquet", storage.head("p/f.parquet").size_bytes, 50, "k00000", "k00049")
    assert (footer.min_key, footer.max_key, footer.rows, footer.size_bytes) == (
        "k00000",
        "k00049",
        50,
        stats.size_bytes,
    )
    assert footer.bloom_type == "DYNAMIC_V0"
    bloom = footer.bloom()
    assert bloom is not None
    assert bloom.contains(rows(0, 50)["_hoodie_record_key"]).all()
    assert read_columns(storage, "p/f.parquet").equals(rows(0, 50))


def test_simple_filter_has_no_type_code(storage: MemoryStorage) -> None:
    written(storage, "f", (rows(0, 5), False), options=BaseFileOptions(BloomOptions("SIMPLE", entries=100)))
    footer = read_footer(storage, "f")
    assert footer.bloom_type is None
    assert footer.bloom() is not None


def test_layout_is_what_parquet_avro_and_spark_read(storage: MemoryStorage) -> None:
    written(storage, "f", (rows(0, 5), False))
    schema = parquet(storage, "f").schema
    columns = {schema.column(at).path: schema.column(at) for at in range(len(schema))}
    assert list(columns) == [*META_FIELDS, "id", "price", "tags.list.element"]
    assert (columns["price"].physical_type, columns["price"].length) == ("FIXED_LEN_BYTE_ARRAY", 5)
    assert b"ARROW:schema" not in storage.read("f")


def test_rewrite_without_new_keys_copies_filter_and_range(storage: MemoryStorage) -> None:
    written(storage, "old", (rows(0, 90), False))
    old = read_footer(storage, "old")
    stats = written(storage, "new", (rows(0, 10), True), (rows(20, 10), True), inherit=old)
    new = read_footer(storage, "new")
    assert new.bloom_text == old.bloom_text
    assert (stats.min_key, stats.max_key, stats.rows) == ("k00000", "k00089", 20)


def test_rewrite_with_inserts_has_the_filter_of_a_fresh_build(storage: MemoryStorage) -> None:
    written(storage, "old", (rows(10, 90), False))
    old = read_footer(storage, "old")
    written(storage, "new", (rows(10, 90), True), (rows(0, 10), False), (rows(100, 150), False), inherit=old)
    written(storage, "fresh", (rows(10, 90), False), (rows(0, 10), False), (rows(100, 150), False))
    new, fresh = read_footer(storage, "new"), read_footer(storage, "fresh")
    assert new.bloom_text == fresh.bloom_text
    assert (new.min_key, new.max_key) == (fresh.min_key, fresh.max_key) == ("k00000", "k00249")


@pytest.mark.parametrize(
    "other", [BloomOptions(entries=101), BloomOptions("SIMPLE", entries=100), BloomOptions(entries=100, fpp=0.1)]
)
def test_filter_of_another_kind_is_built_anew_from_all_rows(storage: MemoryStorage, other: BloomOptions) -> None:
    written(storage, "old", (rows(0, 20), False))
    written(storage, "new", (rows(0, 20), True), options=BaseFileOptions(other), inherit=read_footer(storage, "old"))
    written(storage, "fresh", (rows(0, 20), False), options=BaseFileOptions(other))
    assert read_footer(storage, "new").bloom_text == read_footer(storage, "fresh").bloom_text


def test_old_file_without_filter_or_range_is_not_inherited(storage: MemoryStorage) -> None:
    written(storage, "old", (rows(0, 20), False), options=BaseFileOptions(bloom=None))
    old = read_footer(storage, "old")
    assert (old.bloom_text, old.min_key) == (None, None)
    written(storage, "new", (rows(0, 20), True), inherit=old)
    assert read_footer(storage, "new").min_key == "k00000"


FITTED = BaseFileOptions(BloomOptions(entries=2000, fitted=True))


def test_filter_is_fitted_to_the_keys_of_the_file_up_to_the_entries_that_are_wanted(storage: MemoryStorage) -> None:
    for count, entries in ((20, 256), (700, 1024), (1500, 2000)):
        tables = [(rows(first, 10), False) for first in range(0, count, 10)]
        written(storage, "f", *tables, options=FITTED)
        bloom = read_footer(storage, "f").bloom()
        assert bloom is not None
        assert bloom.entries == entries
        assert bloom.contains(rows(0, count)["_hoodie_record_key"]).all()
        assert not bloom.contains(rows(10_000, 1000)["_hoodie_record_key"]).any()


def test_fitted_filter_is_copied_continued_and_made_anew_when_the_file_has_grown(storage: MemoryStorage) -> None:
    written(storage, "old", (rows(0, 200), False), options=FITTED)
    first = read_footer(storage, "old")
    written(storage, "same", (rows(0, 200), True), options=FITTED, inherit=first)
    assert read_footer(storage, "same").bloom_text == first.bloom_text
    written(storage, "more", (rows(0, 200), True), (rows(200, 1000), False), options=FITTED, inherit=first)
    more = read_footer(storage, "more")
    found = more.bloom()
    assert found is not None
    assert (found.entries, found.row_count) == (256, 5)
    assert found.contains(rows(0, 1200)["_hoodie_record_key"]).all()
    written(storage, "anew", (rows(0, 1200), True), options=FITTED, inherit=more)
    written(storage, "fresh", (rows(0, 1200), False), options=FITTED)
    assert read_footer(storage, "anew").bloom_text == read_footer(storage, "fresh").bloom_text


def test_table_without_meta_columns_has_no_filter(storage: MemoryStorage) -> None:
    with BaseFileWriter(storage, "f", pa.schema([("a", pa.int32())])) as writer:
        writer.write(pa.table({"a": pa.array([1], pa.int32())}))
    footer = read_footer(storage, "f")
    assert (footer.bloom_text, footer.min_key, footer.rows) == (None, None, 1)
    assert footer.avro_schema is not None


def test_file_without_rows_is_a_good_file(storage: MemoryStorage) -> None:
    stats = written(storage, "f")
    footer = read_footer(storage, "f")
    assert (footer.rows, stats.rows, stats.min_key) == (0, 0, None)
    assert footer.bloom_text is not None
    assert read_columns(storage, "f").schema.equals(SCHEMA)


def test_row_groups_are_cut_by_bytes_however_rows_come(storage: MemoryStorage) -> None:
    table = rows(0, 3000)
    options = BaseFileOptions(SMALL.bloom, row_group_bytes=table.nbytes // 5)
    written(storage, "whole", (table, False), options=options)
    written(storage, "bits", *((table.slice(at, 70), False) for at in range(0, 3000, 70)), options=options)
    for path in ("whole", "bits"):
        footer = read_footer(storage, path)
        assert sum(footer.rows_per_group) == 3000
        assert 4 <= len(footer.rows_per_group) <= 7
        assert read_columns(storage, path).equals(table)


def test_dictionary_encoded_meta_columns_are_taken_and_come_back_plain(storage: MemoryStorage) -> None:
    table = rows(0, 40)
    encoded = table
    for name in ("_hoodie_commit_time", "_hoodie_file_name"):
        at = encoded.schema.get_field_index(name)
        encoded = encoded.set_column(at, name, encoded.column(at).dictionary_encode())
    small_index = table["_hoodie_partition_path"].combine_chunks().cast(pa.dictionary(pa.int8(), pa.string()))
    encoded = encoded.set_column(3, "_hoodie_partition_path", small_index)
    written(storage, "f", (encoded, False), (rows(40, 40), False))
    assert read_columns(storage, "f").equals(rows(0, 80))


def test_dictionaries_go_to_columns_that_repeat_only(storage: MemoryStorage) -> None:
    count = 30_000
    schema = with_meta(pa.schema([("unique", pa.string()), ("few", pa.string()), ("number", pa.int64())]))
    numbers = pa.array(np.random.default_rng(0).permutation(count))
    few = numbers.cast(pa.string()).to_numpy(zero_copy_only=False)
    arrays = [
        *(pa.array(["x"] * count) for _ in META_FIELDS),
        numbers.cast(pa.string()),
        pa.array([text[:1] for text in few]),
        numbers,
    ]
    with BaseFileWriter(storage, "f", schema, SMALL) as writer:
        writer.write(pa.Table.from_arrays(arrays, schema=schema))
    group = parquet(storage, "f").metadata.row_group(0)
    encodings = {
        group.column(at).path_in_schema: group.column(at).has_dictionary_page for at in range(group.num_columns)
    }
    assert [name for name, has in encodings.items() if not has] == [
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "unique",
        "number",
    ]
    assert group.column(6).has_column_index


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("zstd", "ZSTD"),
        ("GZIP", "GZIP"),
        ("snappy", "SNAPPY"),
        ("uncompressed", "UNCOMPRESSED"),
        ("", "UNCOMPRESSED"),
        ("lz4", "LZ4"),
    ],
)
def test_codecs_go_by_the_names_of_hudi(storage: MemoryStorage, name: str, codec: str) -> None:
    written(storage, "f", (rows(0, 5), False), options=BaseFileOptions(SMALL.bloom, codec=parse_codec(name)))
    assert parquet(storage, "f").metadata.row_group(0).column(0).compression == codec


def test_codecs_spark_cannot_read_are_refused() -> None:
    with pytest.raises(Unsupported):
        parse_codec("LZO")
    with pytest.raises(Invalid, match="zip2"):
        parse_codec("zip2")
    with pytest.raises(Invalid):
        BaseFileOptions(codec="zip2")  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        BaseFileOptions(row_group_bytes=0)


def test_rows_of_another_schema_are_refused_and_the_file_dropped(storage: MemoryStorage) -> None:
    wrong = [
        rows(0, 1).drop_columns(["id"]),
        rows(0, 1).set_column(5, "id", pa.array([1], pa.int32())),
        rows(0, 1).append_column("extra", pa.array([1])),
        rows(0, 1).select([*SCHEMA.names[::-1]]),
    ]
    for table, told in zip(wrong, ("lack the column `id`", "`id` is int32", "extra", "another order"), strict=True):
        with pytest.raises(Invalid, match=told):
            written(storage, "f", (table, False))
    assert list(storage.list("")) == []


def test_nulls_in_a_required_column_are_refused(storage: MemoryStorage) -> None:
    schema = pa.schema([pa.field("a", pa.int32(), nullable=False)])
    bad = pa.Table.from_arrays([pa.array([1, None], pa.int32())], schema=schema)
    with pytest.raises(Invalid), BaseFileWriter(storage, "f", schema) as writer:
        writer.write(bad)
    assert list(storage.list("")) == []


def fail_half_way(writer: BaseFileWriter) -> None:
    with writer:
        writer.write(rows(0, 100))
        raise KeyError


def test_exception_in_the_block_leaves_no_file(storage: MemoryStorage) -> None:
    writer = BaseFileWriter(storage, "f", SCHEMA, BaseFileOptions(SMALL.bloom, row_group_bytes=1000))
    with pytest.raises(KeyError):
        fail_half_way(writer)
    writer.abort()
    del writer
    gc.collect()
    assert list(storage.list("")) == []


class FullDisk:
    """A storage whose files fail after some bytes, as a full disk does."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.aborted = False
        self.closed = False

    def open_output(self, path: str) -> FullDisk:
        return self

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return 0

    def flush(self) -> None: ...

    def write(self, data: Any) -> int:
        size = len(memoryview(data))
        self.room -= size
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return size

    def abort(self) -> None:
        self.aborted = True

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("room", [0, 3, 2000, 6000])
def test_full_disk_is_unavailable_naming_the_file_and_drops_it(room: int) -> None:
    disk = FullDisk(room)
    options = BaseFileOptions(SMALL.bloom, row_group_bytes=2000)
    with (
        pytest.raises(Unavailable, match=r"p/f\.parquet.*No space left.*Free space"),
        BaseFileWriter(disk, "p/f.parquet", SCHEMA, options) as writer,
    ):
        writer.write(rows(0, 200))
    assert disk.aborted
    assert not disk.closed


def test_closing_twice_gives_the_same_answer_and_abort_after_it_nothing(storage: MemoryStorage) -> None:
    writer = BaseFileWriter(storage, "f", SCHEMA, SMALL)
    writer.write(rows(0, 3).to_batches()[0])
    assert writer.rows == 3
    assert writer.size_estimate() > 0
    stats = writer.close()
    writer.abort()
    assert writer.close() is stats
    assert storage.head("f").size_bytes == stats.size_bytes


NUMBERS = pa.schema(
    [
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("n", pa.int64()),
        ("s", pa.struct([("t", pa.string()), ("x", pa.float64())])),
        ("l", pa.list_(pa.float32())),
        ("m", map_type(pa.field("value", pa.list_(pa.float64())))),
        ("t", pa.list_(pa.string())),
    ]
)


def numbers(*values: float | None) -> pa.Table:
    """Each of the values in each of the columns of floats."""
    columns = {
        **dict.fromkeys("xf", values),
        "n": range(len(values)),
        "s": [{"t": "a", "x": value} for value in values],
        "l": [[value, 1.0] for value in values],
        "m": [[("k", [value])] for value in values],
        "t": [["a"] for _ in values],
    }
    return pa.table([pa.array(columns[field.name], field.type) for field in NUMBERS], schema=NUMBERS)


def numbers_file(storage: MemoryStorage, table: pa.Table, group_bytes: int = 1 << 20) -> pq.ParquetFile:
    options = BaseFileOptions(SMALL.bloom, row_group_bytes=group_bytes)
    with BaseFileWriter(storage, "n", NUMBERS, options, table_name="t") as writer:
        writer.write(table)
    assert writer.close().size_bytes == storage.head("n").size_bytes
    footer, told = read_footer(storage, "n"), writer.footer()
    assert told == footer
    assert told.native.equals(footer.native)
    assert repr(read_columns(storage, "n").to_pylist()) == repr(table.to_pylist())
    return parquet(storage, "n")


FLOATS = {"x", "f", "s.x", "l.list.element", "m.key_value.value.list.element"}


def test_floats_with_nan_have_no_bounds_and_those_of_zeros_hold_both_zeros(storage: MemoryStorage) -> None:
    found = leaf_bounds(numbers_file(storage, numbers(1.0, math.nan, None)))
    assert {path for path, said in found.items() if said == [None]} == FLOATS
    found = leaf_bounds(numbers_file(storage, numbers(0.0, -0.0, None)))
    assert str(found["x"]) == str(found["s.x"]) == "[(-0.0, 0.0)]"


@pytest.mark.parametrize("values", [[], [None], [math.nan], [math.inf, -math.inf, 1.0]], ids=str)
def test_floats_of_few_values_have_the_bounds_there_are(storage: MemoryStorage, values: list[float | None]) -> None:
    leaf_bounds(numbers_file(storage, numbers(*values)))


@pytest.mark.parametrize("at", [0, 500, 999, None])
def test_floats_have_bounds_in_all_row_groups_where_none_has_nan_and_else_in_no_one(
    storage: MemoryStorage, at: int | None
) -> None:
    """Hudi takes a row group without bounds for one of zeros, one without statistics for one of NULL."""
    values = [float(n % 7) for n in range(1000)]
    if at is not None:
        values[at] = math.nan
    table = numbers(*values)
    file = numbers_file(storage, table, group_bytes=table.nbytes // 5)
    assert file.num_row_groups > 4
    found = leaf_bounds(file)
    assert found.keys() > FLOATS
    assert all((bounds is None) == (at is not None) for path in FLOATS for bounds in found[path])
    assert all(file.metadata.row_group(group).column(2).has_column_index for group in range(file.num_row_groups))
