"""A file made of copied row groups and of rows has a footer that knows the keys of all of them, whatever footer the old
file had.
"""

from __future__ import annotations

import math
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie import Table
from hoodie.records import BaseFileOptions, BaseFileWriter, read_columns, read_footer, with_meta
from hoodie.records.bloom import SIMPLE, BloomOptions
from hoodie.records.parquet_layout import load_layout
from hoodie.records.patched_file import PatchedFileWriter, patched_like
from hoodie.records.schema import FILE_NAME_FIELD, KEY_FIELD
from hoodie.storage import MemoryStorage
from hoodie.testing.bounds import leaf_bounds

SCHEMA = with_meta(pa.schema([("v", pa.int64())]))
GROUP = 500
"""Rows of a row group."""

FOOTERS = {
    "like the new one": BloomOptions(),
    "fitted": BloomOptions(fitted=True),
    "none": None,
    "of another type": BloomOptions(filter_type=SIMPLE),
    "of another size": BloomOptions(entries=10),
    "of another rate": BloomOptions(fpp=0.1),
    "outgrown": BloomOptions(entries=16, fitted=True),
}


def rows(first: int, count: int) -> pa.Table:
    keys = pa.array([f"k{number:06d}" for number in range(first, first + count)])
    known = {KEY_FIELD: keys, "v": pa.array(range(count), pa.int64())}
    columns = [known.get(field.name, pa.nulls(count, field.type)) for field in SCHEMA]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


@pytest.mark.parametrize("wanted", [BloomOptions(), BloomOptions(fitted=True), BloomOptions(filter_type=SIMPLE)])
@pytest.mark.parametrize("old", FOOTERS.values(), ids=FOOTERS)
@pytest.mark.parametrize("has_inherit", [True, False])
def test_its_footer_knows_all_keys(old: BloomOptions | None, wanted: BloomOptions, has_inherit: bool) -> None:
    storage = MemoryStorage(str(uuid.uuid4()))
    with BaseFileWriter(
        storage, "old.parquet", SCHEMA, BaseFileOptions(bloom=old, row_group_bytes=rows(0, GROUP).nbytes)
    ) as writer:
        for number in range(4):
            writer.write(rows(number * GROUP, GROUP))
    footer = read_footer(storage, "old.parquet")
    assert len(footer.rows_per_group) == 4
    layout = load_layout(storage, footer)
    assert layout is not None
    assert patched_like(layout, SCHEMA) is layout
    with PatchedFileWriter(
        storage,
        "new.parquet",
        SCHEMA,
        BaseFileOptions(bloom=wanted),
        layout,
        None,
        table_name="t",
        inherit=footer if has_inherit else None,
    ) as patched:
        patched.copy(storage, layout, [0, 1])
        patched.write(rows(2 * GROUP, GROUP), inherited=True)
        patched.copy(storage, layout, [3])
        patched.write(rows(4 * GROUP, 7))
    found = read_footer(storage, "new.parquet")
    keys = read_columns(storage, "new.parquet", [KEY_FIELD]).column(0)
    assert sorted(keys.to_pylist()) == [f"k{number:06d}" for number in range(4 * GROUP + 7)]
    filtered = found.bloom()
    assert filtered is not None
    assert filtered.contains(keys).all()
    assert (found.min_key, found.max_key) == ("k000000", f"k{4 * GROUP + 6:06d}")
    assert patched.footer().bloom_text == found.bloom_text
    assert FILE_NAME_FIELD in found.schema.names


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_keys_of_a_file_that_outgrew_its_filter_are_found(tmp_path, version: str) -> None:
    """With options that nobody set: small files that are joined, grow, and are changed in one row group."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.index.type": "BLOOM",
        "hoodie.write.table.version": version,
        "hoodie.row.group.copy.min.bytes": "1",
    }

    def some(first: int, end: int, value: str, wide: int = 0) -> pa.Table:
        ids = [f"k{number:07d}" for number in range(first, end)]
        return pa.table({"id": ids, "v": [value + uuid.uuid4().hex * wide for _ in ids]})

    path = str(tmp_path / "t")
    Table.create(path, options=options)
    for number in range(3):
        Table.open(path, options=options).append(some(number * 100, (number + 1) * 100, "a", 8))
    Table.open(path, options=options).services.compact_base_files()
    Table.open(path, options=options).upsert(some(1000, 3000, "b"))
    Table.open(path, options=options).upsert(some(2999, 3000, "c"))
    done = Table.open(path, options=options).upsert(some(0, 5, "d"))
    assert (done.inserts, done.updates) == (0, 5)
    table = Table.open(path, options=options)
    ids = table.scan(columns=["id"]).read_all().column(0).to_pylist()
    assert len(ids) == len(set(ids)) == 2300
    assert table.lookup(["k0000007"]).read_all().num_rows == 1
    assert not table.validate(deep=True)


NUMBERS = with_meta(pa.schema([("x", pa.float64()), ("n", pa.int64()), ("of", pa.struct([("x", pa.float32())]))]))


def numbers(*values: float) -> pa.Table:
    keys = [f"k{number:06d}" for number in range(len(values))]
    known = {KEY_FIELD: keys, "x": values, "n": range(len(values)), "of": [{"x": value} for value in values]}
    columns = [pa.array(known.get(field.name, [None] * len(values)), field.type) for field in NUMBERS]
    return pa.Table.from_arrays(columns, schema=NUMBERS)


@pytest.mark.parametrize("value", [700.5, -0.0, math.nan], ids=["number", "zero", "NaN"])
@pytest.mark.parametrize("kind", ["columns", "rows", "rows behind it", "another column"])
@pytest.mark.parametrize("groups", [1, 3])
def test_floats_have_bounds_in_all_row_groups_or_in_none(groups: int, kind: str, value: float) -> None:
    """What is encoded in memory is a file of its own, which may have bounds where the file it is copied to has none."""
    storage = MemoryStorage(str(uuid.uuid4()))
    old, changed = numbers(*[1.0] * 200), numbers(*[1.0] * 199, value)
    options = BaseFileOptions(bloom=None, row_group_bytes=old.nbytes)
    with BaseFileWriter(storage, "old.parquet", NUMBERS, options) as written:
        for _ in range(groups):
            written.write(old)
    layout = load_layout(storage, read_footer(storage, "old.parquet"))
    assert layout is not None
    with PatchedFileWriter(
        storage, "new.parquet", NUMBERS, options, layout, None, table_name="t", inherit=None
    ) as writer:
        if kind == "columns":
            writer.change(storage, layout, 0, changed.select(["x", "of"]))
        elif kind == "another column":
            writer.change(storage, layout, 0, changed.select(["n"]))
        elif kind == "rows":
            writer.write(changed)
        else:
            writer.copy(storage, layout, [0])
        writer.copy(storage, layout, range(1, groups))
        if kind == "rows behind it":
            writer.write(changed)
    found = leaf_bounds(pq.ParquetFile(storage.open_input("new.parquet")))
    has_nan = math.isnan(value) and kind != "another column"
    assert [bounds is None for bounds in found["x"]] == [has_nan] * (groups + (kind == "rows behind it"))
    assert str(found["x"]) == str(found["of.x"])
