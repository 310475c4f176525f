"""Bounds of texts that are too long to be one, as base files of ours have them."""

from __future__ import annotations

import io
import random
import uuid
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie.records import BaseFileOptions, BaseFileWriter, iter_batches, read_columns, read_footer
from hoodie.records.bounds import CUT_FROM_BYTES, Ends, cut_bounds, mended_footer
from hoodie.records.page_index import ended, footer_before_end
from hoodie.records.parquet_layout import load_layout, why_not_joined
from hoodie.records.patched_file import PatchedFileWriter
from hoodie.records.thrift import parse_struct
from hoodie.storage import MemoryStorage
from hoodie.testing.bounds import leaf_bounds

Text = str | None
LONG = 5000
LAST = "\U0010ffff"
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("t", pa.string()),
        ("b", pa.binary()),
        ("s", pa.struct([("x", pa.int32()), ("t", pa.string())])),
        ("l", pa.list_(pa.string())),
        ("m", pa.map_(pa.string(), pa.binary())),
    ]
)
TEXTS = ("t", "b", "s.t", "l.list.element", "m.key_value.value")


def texts(*values: Text) -> pa.Table:
    """Each of the values in each of the columns of texts and bytes."""
    stored = [None if value is None else value.encode() for value in values]
    columns = {
        "n": range(len(values)),
        "t": values,
        "b": stored,
        "s": [{"x": 1, "t": value} for value in values],
        "l": [[value] for value in values],
        "m": [[("k", value)] for value in stored],
    }
    return pa.table([pa.array(columns[field.name], field.type) for field in SCHEMA], schema=SCHEMA)


def storage_with(*groups: pa.Table) -> MemoryStorage:
    """A storage with a base file `f` of these row groups."""
    storage = MemoryStorage(str(uuid.uuid4()))
    with BaseFileWriter(storage, "f", groups[0].schema, BaseFileOptions(bloom=None, row_group_bytes=1)) as writer:
        for rows in groups:
            writer._waiting.append(writer._encoded(rows))
            writer._rows += rows.num_rows
            writer._write_group(writer._waiting.pop())
    assert writer.close().size_bytes == storage.head("f").size_bytes
    assert writer.footer().native.equals(read_footer(storage, "f").native)
    return storage


def bounds_in(storage: MemoryStorage, path: str = "f") -> dict[str, list]:
    return leaf_bounds(pq.ParquetFile(storage.open_input(path)))


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (["a", "b" * 4096], "a", "b" * 4096),
        (["a", "b" * LONG], "a", "b" * 255 + "c"),
        (["b" * LONG, "c"], "b" * 256, "c"),
        (["b" * LONG], "b" * 256, "b" * 255 + "c"),
        (["b" * LONG, None, "a", "c"], "a", "c"),
        (["ü" * LONG], "ü" * 128, "ü" * 127 + "ý"),
        (["aü" * LONG], "aü" * 85 + "a", "aü" * 85 + "b"),
        (["a" + "ü" * LONG], "a" + "ü" * 127, "a" + "ü" * 126 + "ý"),
        (["😀" * LONG], "😀" * 64, "😀" * 63 + "😁"),
        (["\ud7ff" * LONG], "\ud7ff" * 85, "\ud7ff" * 84 + "\ue000"),
        (["\x7f" * LONG], "\x7f" * 256, "\x7f" * 255 + "\x80"),
        (["b" * 200 + LAST * LONG], "b" * 200 + LAST * 14, "b" * 199 + "c"),
    ],
    ids=range(12),
)
def test_long_texts_have_bounds_that_are_cut(values: Sequence[Text], low: str, high: str) -> None:
    """Those of bytes are cut, too, but at any of them."""
    found = bounds_in(storage_with(texts(*values)))
    for path in ("t", "s.t", "l.list.element"):
        assert found[path] == [(low, high)]
    for path in ("b", "m.key_value.value"):
        ((least, greatest),) = found[path]
        assert all(least <= value.encode() <= greatest for value in values if value is not None)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_bounds_are_said_to_be_values_only_where_they_are(at: int) -> None:
    groups = [texts("a", "b"), texts("c", "d"), texts(None, "e")]
    groups[at] = texts("x" * LONG, "b", None)
    storage = storage_with(*groups)
    footer = parse_struct(footer_before_end(storage.read("f")))
    for number, group in enumerate(footer[4].value.values):
        for place in (1, 2, 4, 5, 7):
            said = group[1].value.values[place][3].value[12].value
            assert {3, 5, 6} <= said.keys()
            assert (7 in said and not said[7].value) == (number == at)
            assert 8 not in said or said[8].value
    found = bounds_in(storage)
    assert not any(None in found[path] for path in TEXTS)


@pytest.mark.parametrize("hopeless", [LAST * LONG, "d" * 100 + LAST * LONG], ids=["all", "most"])
def test_texts_that_nothing_is_greater_than_leave_no_bounds_in_the_file(hopeless: str) -> None:
    storage = storage_with(texts("a", "b"), texts("c", hopeless), texts(None))
    found = bounds_in(storage)
    assert found["n"] == [(0, 1), (0, 1), (0, 0)]
    assert [found[path] for path in ("t", "s.t", "l.list.element")] == [[None, None, None]] * 3
    (byte_bounds,) = {str(found[path]) for path in ("b", "m.key_value.value")}
    assert byte_bounds.count("None") == 1
    full = pa.table({"b": pa.array([b"\xff" * LONG, b"a"]), "n": [1.0, float("nan")]})
    assert bounds_in(storage_with(full, full.slice(1))) == {"b": [None, None], "n": [None, None]}


def test_bytes_that_are_no_text_leave_no_bounds() -> None:
    odd = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff" * LONG, b"a"]).buffers())
    storage = storage_with(pa.table({"t": odd}), pa.table({"t": ["a", "b"]}))
    said = read_footer(storage, "f").native
    assert not any(said.row_group(at).column(0).statistics.has_min_max for at in range(2))


def test_long_dictionary_values_have_bounds() -> None:
    schema = pa.schema([("_hoodie_commit_time", pa.string()), ("_hoodie_record_key", pa.string())])
    rows = pa.table([["a", "p" * LONG, None], ["k", "k", "k"]], schema=schema)
    assert bounds_in(storage_with(rows))["_hoodie_commit_time"] == [("a", "p" * 255 + "q")]


def test_long_texts_are_found_wherever_they_are() -> None:
    """Short ones are told from few of the offsets."""
    random.seed(7)
    for _ in range(300):
        count = random.choice([1, 2, 3, 10, 1000])
        values: list[Text] = [None if random.random() < 0.1 else "v" * random.randrange(1, 40) for _ in range(count)]
        for _ in range(random.randrange(3)):
            values[random.randrange(count)] = "w" * random.choice([4000, 4095, 4096, 4097, 9000])
        first, size = sorted(random.randrange(count + 1) for _ in range(2))
        part = pa.chunked_array([pa.array(values, pa.string()).slice(first, size - first)])
        is_long = any(len(value or "") > 4096 for value in values[first:size])
        assert bool(cut_bounds(pa.table({"a": [0] * len(part), "t": part}))) == is_long
    assert cut_bounds(pa.table({"t": pa.array([], pa.string())})) == {}


def test_rows_that_make_several_row_groups_have_the_bounds_of_all() -> None:
    """Arrow splits what has more than a million rows."""
    out = io.BytesIO()
    pq.write_table(pa.table({"t": ["a", "x" * LONG, "b", "y" * LONG, "c", "d"]}), out, row_group_size=2)
    footer = footer_before_end(out.getvalue())
    cut = [(4, {0: Ends(b"a", b"z")}), (2, {0: Ends(b"", b"zz")})]
    mended = out.getvalue().removesuffix(ended(footer)) + ended(mended_footer(footer, (), cut))
    stats = pq.read_metadata(io.BytesIO(mended))
    said = [stats.row_group(at).column(0).statistics for at in range(3)]
    assert [(one.min, one.max) for one in said] == [("a", "z"), ("b", "z"), ("c", "d")]


def test_copies_keep_cut_bounds() -> None:
    storage = storage_with(texts("a", "x" * LONG), texts("c", "d"), texts("e", LAST + "x" * LONG))
    layout = load_layout(storage, read_footer(storage, "f"))
    assert layout is not None
    assert why_not_joined([layout], SCHEMA) is None
    options = BaseFileOptions(bloom=None)
    with PatchedFileWriter(storage, "g", SCHEMA, options, layout, None, table_name="t", inherit=None) as writer:
        writer.copy(storage, layout, [0])
        writer.change(storage, layout, 1, texts("q" * LONG, "d").select(["t", "l"]))
        writer.write(texts("w" * LONG))
        writer.copy(storage, layout, [2])
    found = bounds_in(storage, "g")
    assert found["t"] == [
        ("a", "x" * 255 + "y"),
        ("d", "q" * 255 + "r"),
        ("w" * 256, "w" * 255 + "x"),
        ("e", LAST + "x" * 251 + "y"),
    ]
    assert found["s.t"] == [found["t"][0], ("c", "d"), *found["t"][2:]]
    groups = [parse_struct(footer_before_end(storage.read(path)))[4].value.values for path in ("f", "g")]
    first, same = (group[0][1].value.values[1][3].value[12].value for group in groups)
    assert first == same
    assert first[7].value is False


def test_a_copy_beside_texts_without_bounds_loses_them() -> None:
    storage = storage_with(texts("a", "x" * LONG), texts("c"))
    layout = load_layout(storage, read_footer(storage, "f"))
    assert layout is not None
    options = BaseFileOptions(bloom=None)
    with PatchedFileWriter(storage, "g", SCHEMA, options, layout, None, table_name="t", inherit=None) as writer:
        writer.write(texts(LAST * LONG))
        writer.copy(storage, layout, [0, 1])
    found = bounds_in(storage, "g")
    assert found["t"] == [None, None, None]
    assert None not in found["n"]


@pytest.mark.parametrize("seed", range(6))
def test_filters_find_what_is_there(seed: int) -> None:
    """By all bounds there are; compared with Arrow over all rows."""
    chance = random.Random(seed)
    letters = ["a", "b", "~", "ü", "\ud7ff", "\ue000", "😀", LAST]

    def text() -> Text:
        if chance.random() < 0.1:
            return None
        word = "".join(chance.choices(letters, k=chance.randrange(1, 4)))
        return word * chance.choice([1, 1, 3, 100, 4000])

    groups = [texts(*(text() for _ in range(chance.choice([1, 3, 8])))) for _ in range(6)]
    storage, rows = storage_with(*groups), pa.concat_tables(groups)
    assert read_columns(storage, "f").equals(rows)
    bounds_in(storage)
    asked = [text() or "a" for _ in range(12)]
    asked += [value for bounds in bounds_in(storage)["t"] if bounds for value in bounds]
    t = pc.field("t")
    for value in asked:
        for condition in (
            t == value,
            t > value,
            t >= value,
            t < value,
            t <= value,
            t.isin([value, "b"]),
            pc.starts_with(t, value[:2]),
            pc.match_like(t, f"{value[:2]}%{value[-1:]}"),
            t != value,
        ):
            found = iter_batches(storage, "f", ["n"], filter=condition, filter_columns=["t"])
            wanted = rows.filter(condition).column("n").to_pylist()
            assert pa.Table.from_batches(found, pa.schema([SCHEMA.field("n")])).column("n").to_pylist() == wanted


def test_short_bounds_are_values() -> None:
    """`validate` asks the values only where a bound may be none."""
    for value in ("b" * 4097, "b" * 200 + LAST * LONG, "ü" * LONG, "b" * 4095 + "ü"):
        ((low, high),) = bounds_in(storage_with(texts(value)))["t"]
        assert min(len(low.encode()), len(high.encode())) >= CUT_FROM_BYTES
