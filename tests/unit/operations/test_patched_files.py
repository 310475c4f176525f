"""Copy-on-write rewrites that copy row groups without a touched row: the same table as by decoding all rows."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie import Table
from hoodie.records import read_footer, verify_base_file
from hoodie.records.row_group_copy import RowGroupCopy
from hoodie.storage import MemoryStorage
from hoodie.testing.bounds import leaf_bounds, write_without_statistics
from hoodie.testing.index_records import ensure_true
from hoodie.testing.lake import ROWS as COLUMNS
from hoodie.testing.lake import Lake, row, table_of

ROWS = 400
COPY = "hoodie.row.group.copy.min.bytes"
NEVER = str(1 << 40)
SEEN = ("_hoodie_record_key", "_hoodie_partition_path", "_hoodie_commit_seqno", "v", "ts")
Change = Callable[[Lake], object]


def made(version: int, copy: str, **options: str) -> Lake:
    """One base file of many row groups."""
    given = {COPY: copy, "hoodie.parquet.block.size": "4000", "hoodie.clean.automatic": "false"}
    lake = Lake(version, {**given, **{name.replace("__", "."): value for name, value in options.items()}})
    lake.upsert(*(row(f"k{n:04d}", f"v{n}") for n in range(ROWS)))
    return lake


def keys(*numbers: int) -> list[dict[str, object]]:
    return [row(f"k{n:04d}", "new", 2) for n in numbers]


CHANGES: dict[str, Change] = {
    "an update of one row": lambda lake: lake.upsert(*keys(ROWS - 3)),
    "updates in two row groups and new rows": lambda lake: lake.upsert(*keys(5, 200, 201, ROWS + 1, ROWS + 7)),
    "new rows alone": lambda lake: lake.write("insert", keys(ROWS + 2)),
    "a delete": lambda lake: lake.write("delete", keys(0, 123)),
    "a row that loses against the stored one": lambda lake: lake.upsert(row("k0123", "late", 0)),
    "an update of every row": lambda lake: lake.upsert(*keys(*range(ROWS))),
}


def newest(lake: Lake) -> str:
    (found,) = (one.base.path for one in lake.table.files() if one.base is not None)
    return found


def rows_of(lake: Lake) -> list[tuple[object, ...]]:
    """The rows, with the places of their commits in the history instead of instants, which differ."""
    order = {one.requested: at for at, one in enumerate(lake.table.timeline().completed_writes())}
    found = lake.rows((*SEEN, "_hoodie_commit_time"))
    return [
        (*(text.partition("_")[2] if at == 2 else text for at, text in enumerate(some)), order[time])
        for *some, time in found
    ]


@pytest.mark.deep
@pytest.mark.sampled(3)
@pytest.mark.parametrize("change", CHANGES)
def test_the_table_is_as_if_all_rows_had_been_decoded(version: int, change: str) -> None:
    options = {"hoodie__metadata__record__index__enable": "true"}
    lakes = [made(version, copy, **options) for copy in ("0", NEVER)]
    for lake in lakes:
        CHANGES[change](lake)
        lake.upsert(*keys(77, 78))
    copied, decoded = lakes
    assert rows_of(copied) == rows_of(decoded)
    footers = [read_footer(lake.storage, newest(lake)) for lake in lakes]
    assert footers[0].schema == footers[1].schema
    for said in ("rows", "min_key", "max_key", "bloom_text", "bloom_type", "avro_schema"):
        assert getattr(footers[0], said) == getattr(footers[1], said), said
    stats = [[stat.num_update_writes for _, stat in lake.commits()[-1].write_stats()] for lake in lakes]
    assert stats[0] == stats[1]
    verify_base_file(copied.storage, newest(copied))
    names = pq.read_table(copied.storage.open_input(newest(copied))).column("_hoodie_file_name").unique().to_pylist()
    assert names == [newest(copied).rpartition("/")[2]]
    copied.ensure_sound()


def test_only_touched_row_groups_are_decoded_and_only_changed_columns_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = made(9, "0")
    sizes = read_footer(lake.storage, newest(lake)).rows_per_group
    seen = steps_of(monkeypatch)
    lake.upsert(*keys(1, sizes[0] + sizes[1]))
    columns = ["_hoodie_commit_time", "_hoodie_commit_seqno", "ts", "v"]
    assert seen == [(0, columns), (1,), (2, columns), tuple(range(3, len(sizes)))]
    seen.clear()
    lake.upsert({**row("k0002", "v2", 2)}, {**row("k0003", "v3", 2)})
    assert seen[0] == (0, columns[:3])  # `v` says what it said
    seen.clear()
    lake.upsert(row("k0002", "late", 0))
    assert seen == [(0,), tuple(range(1, len(sizes)))]
    seen.clear()
    made(9, NEVER).upsert(*keys(ROWS - 1))
    assert seen == []


def steps_of(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is copied from now on: the numbers of row groups, or that of one and the columns that others replace."""
    seen: list[object] = []
    copy, copy_with = RowGroupCopy.copy, RowGroupCopy.copy_with

    def copied(self, storage, layout, groups=None):  # type: ignore[no-untyped-def]
        seen.append(groups if groups is None else tuple(groups))
        copy(self, storage, layout, groups)

    def copied_with(self, storage, layout, group, other, columns):  # type: ignore[no-untyped-def]
        seen.append((group, columns.footer.schema.names))
        copy_with(self, storage, layout, group, other, columns)

    monkeypatch.setattr(RowGroupCopy, "copy", copied)
    monkeypatch.setattr(RowGroupCopy, "copy_with", copied_with)
    return seen


def test_rows_of_many_commits_lie_in_one_row_group() -> None:
    """The dictionary of their commit times is larger than these."""
    lake = Lake(9, {COPY: "0", "hoodie.parquet.block.size": "20000", "hoodie.clean.automatic": "false"})
    for n in range(8):
        lake.upsert(row(f"k{n}", "x" * 2000))
    lake.upsert(row("k3", "x" * 2000, 2))
    assert lake.rows(("id", "ts")) == [(f"k{n}", 2 if n == 3 else 1) for n in range(8)]
    verify_base_file(lake.storage, newest(lake))


def test_small_row_groups_do_not_pile_up() -> None:
    lake = made(9, "0")
    before = len(read_footer(lake.storage, newest(lake)).rows_per_group)
    for n in range(12):
        lake.upsert(*keys(ROWS + n, 3 * n))
    assert len(read_footer(lake.storage, newest(lake)).rows_per_group) <= before + 1
    assert len(lake.values()) == ROWS + 12


def test_an_evolved_schema_and_changes_that_are_logged_are_written_rightly() -> None:
    lake = made(9, "0", hoodie__table__cdc__enabled="true")
    lake.upsert(*keys(8))
    changes = lake.rows(("before", "after"), query="cdc", begin=lake.table.timeline().completed_writes()[0].completed)
    assert len(changes) == 1
    wider = table_of(keys(9)).append_column("more", table_of(keys(9)).column("v"))
    lake.table.upsert(wider, **{"hoodie.datasource.write.reconcile.schema": "true"})
    assert lake.rows(("id", "more"), filter="id = 'k0009'") == [("k0009", "new")]
    assert lake.values()["k0008"] == "new"


@pytest.mark.parametrize(("digits", "wider", "copied"), [(15, 16, True), (9, 10, False), (16, 15, True)])
def test_row_groups_are_copied_where_a_decimal_has_more_digits_in_as_many_bytes(
    monkeypatch: pytest.MonkeyPatch, digits: int, wider: int, copied: bool
) -> None:
    """The first change with such a decimal makes the column wider; later ones find it so."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.write.record.positions": "false",
        "hoodie.parquet.block.size": "4000",
        COPY: "1",
    }

    def prices(numbers: Sequence[int], precision: int, more: int) -> pa.Table:
        kind = pa.decimal128(precision, 2)
        found = [None if n % 7 == 3 else Decimal(n * (-1) ** n) / 4 + more for n in numbers]
        return pa.table({"id": [f"k{n:04d}" for n in numbers], "price": pa.array(found, kind)})

    name = str(uuid.uuid4())
    storage, table = MemoryStorage(name), Table.create(f"memory://{name}", options=options)
    table.upsert(prices(range(ROWS), digits, 0))
    whole, taken = RowGroupCopy.copy, []

    def copy(self, stored, layout, groups=None):  # type: ignore[no-untyped-def]
        taken.append(groups)
        whole(self, stored, layout, groups)

    monkeypatch.setattr(RowGroupCopy, "copy", copy)
    table.upsert(prices([ROWS - 2], wider, 1000))
    assert bool(taken) is copied
    precision = max(digits, wider)
    known = prices(range(ROWS), precision, 0).to_pylist()
    known[ROWS - 2] = prices([ROWS - 2], precision, 1000).to_pylist()[0]
    assert sorted(table.scan(columns=["id", "price"]).read_all().to_pylist(), key=lambda one: one["id"]) == known
    (path,) = (one.base.path for one in table.files() if one.base is not None)
    assert read_footer(storage, path).schema.field("price").type == pa.decimal128(precision, 2)
    assert not table.validate(deep=True)
    verify_base_file(storage, path)
    bounds = f"price > {ROWS // 4 + 1}"
    expected = [one["id"] for one in known if one["price"] is not None and one["price"] > ROWS // 4 + 1]
    assert sorted(table.scan(columns=["id"], filter=bounds).read_all().column(0).to_pylist()) == sorted(expected)


@pytest.mark.parametrize("value", [ROWS + 0.5, math.nan], ids=["number", "NaN"])
def test_an_update_of_one_row_leaves_floats_bounds_in_all_row_groups_or_in_none(version: int, value: float) -> None:
    options = {COPY: "1", "hoodie.parquet.block.size": "4000", "hoodie.metadata.index.column.stats.enable": "true"}
    lake = Lake(version, options, schema=pa.schema([*COLUMNS, ("x", pa.float64())]))
    lake.upsert(*(row(f"k{n:04d}", "v" * 30, x=float(n)) for n in range(ROWS)))
    lake.upsert(row("k0020", "v" * 30, 2, x=value))
    found = leaf_bounds(pq.ParquetFile(lake.storage.open_input(newest(lake))))
    assert len(found["x"]) > 2
    assert (None in found["x"]) == math.isnan(value)
    assert lake.rows(("id",), filter="x > 10") == [(f"k{n:04d}",) for n in range(11, ROWS)]
    assert lake.rows(("id",), filter=f"x > {ROWS}") == [("k0020",)]
    ensure_true(lake)
    lake.ensure_sound()


def test_a_file_without_statistics_is_encoded_anew(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(version, {COPY: "1", "hoodie.parquet.block.size": "4000", "hoodie.metadata.enable": "false"})
    with monkeypatch.context() as patched:
        write_without_statistics(patched)
        lake.upsert(*(row(f"k{n:04d}", "v" * 30) for n in range(ROWS)))
    lake.upsert(row("k0020", "w", 2))
    found = leaf_bounds(pq.ParquetFile(lake.storage.open_input(newest(lake))))
    assert len(found["v"]) > 2
    assert None not in found["v"]
    assert lake.rows(("id",), filter="v = 'w'") == [("k0020",)]
    assert len(lake.rows(("id",), filter="ts = 1")) == ROWS - 1
    lake.ensure_sound()
