"""Row groups copied to another base file: the same rows, bounds and pages, and a footer as if they had been decoded."""

from __future__ import annotations

import itertools
import math
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie.errors import Corrupt
from hoodie.records import (
    FILE_NAME_FIELD,
    KEY_FIELD,
    BaseFileOptions,
    BaseFileWriter,
    BloomOptions,
    iter_batches,
    read_columns,
    read_footer,
    verify_base_file,
    with_meta,
)
from hoodie.records.base_file_writer import avro_text
from hoodie.records.joined_keys import joined_keys
from hoodie.records.page_index import footer_before_end
from hoodie.records.parquet_layout import ParquetLayout, chunks_of, load_layout, why_not_joined
from hoodie.records.row_group_copy import RowGroupCopy
from hoodie.records.thrift import BINARY, I32, I64, STRUCT, Field, Struct, parse_struct
from hoodie.storage import MemoryStorage
from hoodie.testing.bounds import leaf_bounds

BLOOM = BloomOptions(entries=1000)
DATA = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.string())),
        ("of", pa.struct([("x", pa.float64()), ("y", pa.map_(pa.string(), pa.int32()))])),
    ]
)
SCHEMA = with_meta(DATA)


def rows(first: int, count: int) -> pa.Table:
    ids = list(range(first, first + count))
    meta = [[value] * count for value in ("20261121060439000", "s", "", "p", f"file-{first}.parquet")]
    meta[1] = [f"20261121060439000_0_{at}" for at in ids]
    meta[2] = [f"k{at:05d}" for at in ids]
    columns = [
        pa.array(ids),
        pa.array([Decimal(at) / 4 for at in ids], pa.decimal128(10, 2)),
        pa.array([None if at % 5 == 0 else at for at in ids], pa.timestamp("us", tz="UTC")),
        pa.array([None if at % 3 == 0 else ["a", None] for at in ids], pa.list_(pa.string())),
        pa.array([{"x": at / 2, "y": [("k", at)]} for at in ids], DATA.field("of").type),
    ]
    return pa.Table.from_arrays([*map(pa.array, meta), *columns], schema=SCHEMA)


_NAMES = itertools.count()


class Files:
    """Base files in memory, the copy of them, and what decoding would have given."""

    def __init__(self) -> None:
        self.storage = MemoryStorage(f"copies-{next(_NAMES)}")
        self.sources: list[str] = []

    def add(self, table: pa.Table, **options: object) -> str:
        path = f"source-{len(self.sources)}.parquet"
        given = {"bloom": BLOOM, **options}
        with BaseFileWriter(self.storage, path, table.schema, BaseFileOptions(**given), table_name="t") as writer:
            writer.write(table)
        self.sources.append(path)
        return path

    def layouts(self) -> list:
        found = [load_layout(self.storage, read_footer(self.storage, path)) for path in self.sources]
        assert all(found)
        return found

    def why(self, schema: pa.Schema = SCHEMA) -> str | None:
        return why_not_joined(self.layouts(), schema)

    def copy(self, bloom: BloomOptions | None = BLOOM, name: str | None = "new.parquet") -> RowGroupCopy:
        layouts = self.layouts()

        def keys_of(footer):
            return read_columns(self.storage, footer.path, [KEY_FIELD], footer=footer).column(0)

        text = avro_text(layouts[0].footer.schema, "t")
        keys = joined_keys([one.footer for one in layouts], text, BaseFileOptions(bloom=bloom), keys_of)
        with RowGroupCopy(self.storage, "new.parquet", layouts[0], name, lambda: keys) as writer:
            for one in layouts:
                writer.copy(self.storage, one)
        return writer

    def decoded(self, bloom: BloomOptions = BLOOM) -> pa.Table:
        table = pa.concat_tables([read_columns(self.storage, path) for path in self.sources])
        place = table.schema.get_field_index(FILE_NAME_FIELD)
        names = pa.repeat(pa.scalar("new.parquet"), table.num_rows)
        table = table.set_column(place, table.schema.field(place), names)
        options = BaseFileOptions(bloom=bloom)
        with BaseFileWriter(self.storage, "decoded.parquet", SCHEMA, options, table_name="t") as writer:
            writer.write(table)
        return table


@pytest.fixture
def files() -> Files:
    found = Files()
    found.add(rows(0, 300), row_group_bytes=20_000)
    found.add(rows(300, 100), codec="gzip")
    found.add(rows(400, 50), codec="none", page_bytes=100)
    return found


def test_the_copy_is_what_decoding_would_have_written(files: Files) -> None:
    wanted = files.decoded()
    writer = files.copy()
    stats = writer.close()
    verify_base_file(files.storage, "new.parquet")
    assert read_columns(files.storage, "new.parquet").equals(wanted)
    footer, decoded = (read_footer(files.storage, path) for path in ("new.parquet", "decoded.parquet"))
    assert (footer.schema, footer.avro_schema) == (decoded.schema, decoded.avro_schema)
    assert (footer.min_key, footer.max_key, footer.bloom_type) == ("k00000", "k00449", decoded.bloom_type)
    assert footer.bloom_text == decoded.bloom_text
    assert (stats.rows, stats.min_key, stats.max_key) == (450, "k00000", "k00449")
    assert stats.size_bytes == files.storage.head("new.parquet").size_bytes
    told = writer.footer()
    assert told == footer
    assert told.native.equals(footer.native)
    assert footer.native.num_row_groups == sum(len(one.groups) for one in files.layouts())


def test_bounds_and_indexes_lead_to_the_rows(files: Files) -> None:
    files.copy()
    native = read_footer(files.storage, "new.parquet").native
    place = SCHEMA.get_field_index("id")
    for at in range(native.num_row_groups):
        chunk = native.row_group(at).column(place)
        assert chunk.has_column_index
        assert chunk.has_offset_index
        assert native.row_group(at).column(SCHEMA.get_field_index(FILE_NAME_FIELD)).statistics.max == "new.parquet"
    found = list(iter_batches(files.storage, "new.parquet", filter=pc.field("id") == 431, filter_columns=["id"]))
    assert pa.Table.from_batches(found).column("id").to_pylist() == [431]


def test_another_reader_finds_the_same(files: Files, tmp_path: object) -> None:
    connection = pytest.importorskip("duckdb").connect()
    files.copy()
    path = f"{tmp_path}/new.parquet"
    with open(path, "wb") as out:
        out.write(files.storage.read("new.parquet"))
    said = connection.sql(f'SELECT count(*), sum(id), count("at"), sum("of".x), max({FILE_NAME_FIELD}) FROM \'{path}\'')
    assert said.fetchall() == [(450, sum(range(450)), 360, sum(range(450)) / 2, "new.parquet")]
    assert connection.sql(f"SELECT tags FROM '{path}' WHERE id = 349").fetchall() == [(["a", None],)]
    connection.close()
    assert pq.ParquetFile(path, page_checksum_verification=True).read().num_rows == 450


def test_some_row_groups_can_be_copied_and_the_name_left_as_it_is(files: Files) -> None:
    (first, *_) = files.layouts()
    keys = joined_keys([first.footer], avro_text(SCHEMA, "t"), BaseFileOptions(bloom=None), None)
    with RowGroupCopy(files.storage, "part.parquet", first, None, lambda: keys) as writer:
        writer.copy(files.storage, first, {1})
    rest = read_columns(files.storage, "part.parquet")
    sizes = first.footer.rows_per_group
    assert rest.column("id").to_pylist() == list(range(sizes[0], sizes[0] + sizes[1]))
    assert set(rest.column(FILE_NAME_FIELD).to_pylist()) == {"file-0.parquet"}
    assert read_footer(files.storage, "part.parquet").bloom_text is None


@pytest.mark.parametrize(
    ("bloom", "says_no"),
    [
        (BLOOM, True),
        (BloomOptions(entries=300, max_entries=300), True),
        (BloomOptions(entries=20, max_entries=40), False),
        (BloomOptions(fitted=True), True),
    ],
    ids=["joined", "made anew", "hopeless", "fitted"],
)
def test_no_key_is_lost_whatever_becomes_of_the_filters(files: Files, bloom: BloomOptions, says_no: bool) -> None:
    files.copy(bloom)
    footer = read_footer(files.storage, "new.parquet")
    found = footer.bloom()
    assert found is not None
    assert found.contains(read_columns(files.storage, "new.parquet", [KEY_FIELD]).column(0)).all()
    assert found.contains(pa.array(["another"]))[0] != says_no


def test_fitted_filters_are_joined_where_they_have_the_size_of_the_new_one() -> None:
    files, bloom = Files(), BloomOptions(fitted=True)
    for first in (0, 60, 120):
        files.add(rows(first, 60), bloom=bloom)
    files.copy(bloom).close()
    files.decoded(bloom)
    joined, decoded = (read_footer(files.storage, path) for path in ("new.parquet", "decoded.parquet"))
    assert joined.bloom_text == decoded.bloom_text
    assert len(joined.bloom_text or "") < 2_000


def test_a_range_that_no_footer_says_is_read(files: Files) -> None:
    files.add(rows(900, 10), bloom=None)
    assert files.copy().close().max_key == "k00909"


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (rows(0, 5).drop_columns("price"), "other columns"),
        (rows(0, 5).cast(SCHEMA.set(5, pa.field("id", pa.int32()))), "other columns"),
        (rows(0, 5).cast(SCHEMA.set(5, pa.field("id", pa.int64(), nullable=False))), "other columns"),
    ],
    ids=["fewer", "another type", "required"],
)
def test_files_of_another_schema_are_not_copied(files: Files, table: pa.Table, why: str) -> None:
    assert files.why() is None
    files.add(table)
    assert why in (files.why() or "")


def test_files_of_another_library_or_of_old_lists_are_not_copied(files: Files) -> None:
    out = pa.BufferOutputStream()
    pq.write_table(rows(0, 5), out, use_compliant_nested_type=False, store_schema=False)
    with files.storage.open_output("old.parquet") as file:
        file.write(out.getvalue().to_pybytes())
    files.sources.append("old.parquet")
    assert "in different ways" in (files.why() or "")
    (_, second, *_) = layouts = files.layouts()[:3]
    second.meta[6] = second.meta[6]._replace(value=b"parquet-mr version 1.13.1")
    assert "different libraries" in (why_not_joined(layouts, SCHEMA) or "")


def test_a_damaged_page_is_found_and_nothing_is_left(files: Files) -> None:
    data = bytearray(files.storage.read("source-0.parquet"))
    data[len(data) // 4] ^= 0x40
    files.storage.delete("source-0.parquet")
    with files.storage.open_output("source-0.parquet") as file:
        file.write(bytes(data))
    with pytest.raises(Corrupt) as caught:
        files.copy()
    assert caught.value.facts["path"] == "source-0.parquet"
    assert not any(info.path == "new.parquet" for info in files.storage.list(""))


def test_row_groups_without_rows_are_left_out(files: Files) -> None:
    """Some writers store one in the file of a write without rows; its pages lie nowhere."""
    with_empty = rows(450, 10)
    sink = files.storage.open_output("source-3.parquet")
    meta = read_footer(files.storage, files.sources[0]).native.metadata
    with pq.ParquetWriter(sink, SCHEMA.with_metadata(None), store_schema=False) as writer:
        writer.add_key_value_metadata({key: value for key, value in meta.items() if key != b"ARROW:schema"})
        writer.write_table(with_empty.slice(0, 0).cast(SCHEMA.with_metadata(None)))
        writer.write_table(with_empty.cast(SCHEMA.with_metadata(None)))
    sink.close()
    files.sources.append("source-3.parquet")
    layout = files.layouts()[-1]
    assert layout.footer.rows_per_group == (0, 10)
    assert layout.filled == [1]
    files.copy()
    verify_base_file(files.storage, "new.parquet")
    found = read_footer(files.storage, "new.parquet")
    assert 0 not in found.rows_per_group
    assert read_columns(files.storage, "new.parquet").num_rows == 460


FLOATS = pa.schema([("x", pa.float64()), ("f", pa.float32()), ("of", pa.struct([("x", pa.float64())]))])


def numbers(*values: float | None) -> pa.Table:
    columns = [values, values, [{"x": value} for value in values]]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, FLOATS, strict=True)], FLOATS)


@pytest.mark.parametrize(
    ("tables", "bounds"),
    [
        (([1.0, 2.0], [3.0, 4.0]), [(1.0, 2.0), (3.0, 4.0)]),
        (([0.0, -0.0], [5.0] * 150), [(-0.0, 0.0), (5.0, 5.0), (5.0, 5.0)]),
        (([1.0, 2.0], [None, None]), [(1.0, 2.0), None]),
        (([-0.0], []), [(-0.0, 0.0)]),
        (([1.0, math.nan], []), [None]),
        (([1.0, 2.0], [math.nan, 100.0]), [None, None]),
        (([1.0, 2.0], [*[5.0] * 149, math.nan]), [None, None, None]),
    ],
    ids=["each", "several of one", "NULL in one", "alone", "NaN alone", "NaN in one", "NaN in one of several"],
)
def test_floats_have_bounds_in_all_row_groups_or_in_none(
    tables: tuple[list[float], ...], bounds: list[tuple[float, float] | None]
) -> None:
    """Hudi takes a row group without bounds for one of zeros, and joins the bounds of all."""
    files = Files()
    for values in tables:
        files.add(numbers(*values), row_group_bytes=numbers(*[5.0] * 75).nbytes)
    files.copy(bloom=None).close()
    verify_base_file(files.storage, "new.parquet")
    found = leaf_bounds(pq.ParquetFile(files.storage.open_input("new.parquet")))
    assert {path: str(said) for path, said in found.items()} == dict.fromkeys(("x", "f", "of.x"), str(bounds))
    rows = read_columns(files.storage, "new.parquet").column("x").to_pylist()
    assert str(rows) == str([value for values in tables for value in values])


@pytest.mark.parametrize("says_nulls", [True, False])
def test_floats_of_other_writers_lose_bounds_that_are_not_in_all_row_groups(says_nulls: bool) -> None:
    """Also half floats. The number of nulls stays where it was said."""
    files, half = Files(), pa.array(np.array([1, 2, 3, 4], np.float16))
    for path, table in (
        ("source-0.parquet", numbers(1.0, 2.0, 3.0, 4.0).append_column("h", half)),
        ("source-1.parquet", numbers(math.nan, 4.0).append_column("h", half[:2])),
    ):
        with files.storage.open_output(path) as out:
            pq.write_table(
                table,
                out,
                row_group_size=2,
                write_page_index=True,
                store_schema=False,
                write_statistics=path == "source-0.parquet" or ["f"],
            )
        files.sources.append(path)
    (first, second) = files.layouts()
    for chunk in chunks_of(second.groups[0]):
        if says_nulls and 12 not in chunk[3].value:
            chunk[3].value[12] = Field(STRUCT, {3: Field(I64, 0)})
    keys = joined_keys([first.footer, second.footer], avro_text(FLOATS, "t"), BaseFileOptions(bloom=None), None)
    with RowGroupCopy(files.storage, "new.parquet", first, None, lambda: keys) as writer:
        writer.copy(files.storage, first)
        writer.copy(files.storage, second)
    native = read_footer(files.storage, "new.parquet").native
    for at in range(3):
        chunks = {chunk.path_in_schema: chunk for chunk in map(native.row_group(at).column, range(native.num_columns))}
        for path in ("x", "of.x", "h"):
            assert not chunks[path].has_column_index
            assert chunks[path].has_offset_index
            assert not chunks[path].statistics.has_min_max
            assert chunks[path].statistics.has_null_count == (says_nulls or at < 2)
        assert chunks["f"].statistics.has_min_max
        assert chunks["f"].has_column_index
    assert read_columns(files.storage, "new.parquet").column("h").to_pylist() == [1.0, 2.0, 3.0, 4.0, 1.0, 2.0]


@pytest.mark.parametrize("ends", [(5, 6), (1, 2)], ids=["new", "old"])
@pytest.mark.parametrize(
    ("low", "high", "has_bounds"),
    [(7.0, 9.0, True), (7.0, math.nan, False), (math.nan, 9.0, False), (math.nan, math.nan, False), (7.0, b"", False)],
    ids=str,
)
def test_bounds_of_nan_are_none(ends: tuple[int, int], low: float, high: float | bytes, has_bounds: bool) -> None:
    """Hudi's own writer stores them beside NaN, and its readers take the chunk for one without."""
    files = Files()
    files.add(numbers(1.0, 2.0))
    files.add(numbers(7.0, 9.0))
    (first, second) = files.layouts()
    for chunk, code in zip(chunks_of(second.groups[0]), "dfd", strict=True):
        stored = [end if isinstance(end, bytes) else struct.pack(f"<{code}", end) for end in (high, low)]
        said = {end: Field(BINARY, bound) for end, bound in zip(ends, stored, strict=True)}
        chunk[3].value[12] = Field(STRUCT, {3: Field(I64, 0), **said})
    keys = joined_keys([first.footer, second.footer], avro_text(FLOATS, "t"), BaseFileOptions(bloom=None), None)
    with RowGroupCopy(files.storage, "new.parquet", first, None, lambda: keys) as writer:
        writer.copy(files.storage, first)
        writer.copy(files.storage, second)
    groups = parse_struct(footer_before_end(files.storage.read("new.parquet")))[4].value.values
    said = [chunk[3].value[12].value for group in groups for chunk in chunks_of(group)]
    assert all((5 in one or 1 in one) == has_bounds for one in said)
    assert all(one[3].value == 0 for one in said)


@pytest.mark.parametrize("column", SCHEMA.names)
def test_columns_of_all_types_lose_bounds_that_are_not_in_all_row_groups(files: Files, column: str) -> None:
    """Hudi takes numbers without bounds for zeros, and joins the bounds of all row groups."""
    layouts = files.layouts()
    for chunk in take_away(layouts[1], column, 1, 2, 5, 6):
        assert chunk[3].value[12].value.keys() <= {3, 7, 8}
    keys = joined_keys([one.footer for one in layouts], avro_text(SCHEMA, "t"), BaseFileOptions(bloom=None), None)
    with RowGroupCopy(files.storage, "new.parquet", layouts[0], None, lambda: keys) as writer:
        for layout in layouts:
            writer.copy(files.storage, layout)
    file = pq.ParquetFile(files.storage.open_input("new.parquet"))
    names = {path: path.partition(".")[0] for path in leaf_bounds(file)}
    assert all((set(said) == {None}) == (names[path] == column) for path, said in leaf_bounds(file).items())
    assert file.read().num_rows == 450


@pytest.mark.parametrize(
    ("column", "gone", "why"),
    [
        ("id", (12,), "does not say how many values of column 'id' are NULL"),
        ("id", (3,), "does not say how many values of column 'id' are NULL"),
        ("id", (1, 5), "does not say between which bounds column 'id' is"),
        ("tags", (5, 6), "does not say between which bounds column 'tags.list.element' is"),
        ("price", (5, 6), "does not say between which bounds column 'price' is"),
        ("of", (12,), "does not say how many values of column 'of.x' are NULL"),
    ],
    ids=str,
)
def test_files_that_say_less_than_ours_are_not_copied(
    files: Files, column: str, gone: tuple[int, ...], why: str
) -> None:
    layouts = files.layouts()
    assert why_not_joined(layouts, SCHEMA) is None
    take_away(layouts[1], column, *gone)
    assert why_not_joined(layouts, SCHEMA) == f"source-1.parquet {why}"
    assert why_not_joined(layouts[1:2], SCHEMA) == f"source-1.parquet {why}"


@pytest.mark.parametrize("kind", [4, 5, 3], ids=["float", "double", "INT96"])
def test_what_has_no_bounds_for_good_can_be_copied(files: Files, kind: int) -> None:
    """Floats may be NaN; INT96 has no order."""
    layouts = files.layouts()
    for layout in layouts:
        (element,) = (one for one in layout.elements if one[4].value == b"id")
        element[1] = Field(I32, kind)
    take_away(layouts[1], "id", 1, 2, 5, 6)
    assert why_not_joined(layouts, SCHEMA) is None
    take_away(layouts[1], "id", 12)
    assert "how many values of column 'id' are NULL" in (why_not_joined(layouts, SCHEMA) or "")


def take_away(layout: ParquetLayout, column: str, *numbers: int) -> list[Struct]:
    """The chunks of a column without statistics (12), or without fields of these."""
    chunks = [chunk for group in layout.groups for chunk in chunks_of(group)]
    chunks = [chunk for chunk in chunks if chunk[3].value[3].value.values[0] == column.encode()]
    for chunk in chunks:
        for number in numbers:
            fields = chunk[3].value if number == 12 else chunk[3].value[12].value
            fields.pop(number, None)
    return chunks
