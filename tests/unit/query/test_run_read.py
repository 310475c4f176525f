"""Streaming the rows of a plan: order, bounded read-ahead, early end, errors, and pruning that changes nothing."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import threading

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie import Table
from hoodie.engine import LocalEngine
from hoodie.errors import Corrupt
from hoodie.query import ReadOptions, load_read_plan, run_read
from hoodie.slices import read_rows
from hoodie.spec import V9
from hoodie.testing.hand_table import HandTable, at


def many_files(files: int = 12, rows: int = 250) -> HandTable:
    """Files of three row groups each, with ascending quantities; partition p0 to p2 in turn."""
    table = HandTable(V9)
    written = {
        (f"p{n % 3}", f"f{n:02d}"): [{"id": f"{n}-{m}", "part": f"p{n % 3}", "qty": n * rows + m} for m in range(rows)]
        for n in range(files)
    }
    table.commit(at(1), written)
    return table


@pytest.fixture(scope="module")
def table() -> HandTable:
    return many_files()


def planned(table: HandTable, **options):
    return load_read_plan(table.storage, table.config, table.timeline(), ReadOptions(**options))


@pytest.mark.parametrize("parallelism", [1, 2, 7])
def test_rows_come_in_plan_order_however_many_threads_read(table, parallelism):
    plan = planned(table, columns=("id",), batch_rows=60)
    found = run_read(plan, table.storage, LocalEngine(parallelism)).read_all()
    expected = [f"{int(file.path[4:6])}-{m}" for file in plan.files for m in range(250)]
    assert found["id"].to_pylist() == expected


def test_batches_are_no_larger_than_asked(table):
    batches = list(run_read(planned(table, batch_rows=64), table.storage))
    assert max(batch.num_rows for batch in batches) <= 64


def test_stopping_early_leaves_no_thread_behind(table):
    before = threading.active_count()
    reader = run_read(planned(table, batch_rows=10), table.storage, LocalEngine(4))
    reader.read_next_batch()
    reader.close()
    del reader
    assert threading.active_count() <= before


def test_error_in_a_file_comes_after_the_rows_before_it():
    table = many_files(6)
    plan = planned(table, columns=("id",))
    bad = plan.files[3].path
    table.storage.put(bad, table.storage.read(bad)[:100])
    seen: list[int] = []
    reader = run_read(plan, table.storage, LocalEngine(3))
    with pytest.raises(Corrupt) as caught:
        seen.extend(batch.num_rows for batch in reader)
    assert sum(seen) == 3 * 250
    assert caught.value.facts["path"] == bad


def test_row_plan_and_files_travel(table):
    plan = planned(table, filter="qty > 5 and part = 'p0'", columns=("id", "part"))
    rows, files = pickle.loads(pickle.dumps((plan.rows, plan.files)))
    got = [batch for file in files for batch in read_rows(table.storage, rows, file)]
    assert pa.Table.from_batches(got, rows.schema) == run_read(plan, table.storage).read_all()


def test_row_groups_that_cannot_match_are_not_read(table):
    plan = planned(table, filter="qty between 110 and 120", batch_rows=1000)
    reads = []
    storage = _Spy(table.storage, reads)
    (batch,) = read_rows(storage, plan.rows, plan.files[0])
    assert batch.num_rows == 11
    whole = planned(table, batch_rows=1000)
    pruned_bytes = sum(reads)
    reads.clear()
    list(read_rows(storage, whole.rows, whole.files[0]))
    assert pruned_bytes < sum(reads)


def test_other_columns_are_read_of_row_groups_with_a_match_only(table):
    """No statistics tell where such ids are; of the three row groups of each file the second one has one."""
    reads = []
    storage = _Spy(table.storage, reads)
    found = planned(table, filter="id like '%-150'")
    (batch,) = read_rows(storage, found.rows, found.files[0])
    assert batch.num_rows == 1
    selective = sum(reads)
    reads.clear()
    assert list(read_rows(storage, planned(table, filter="id like '%-999'").rows, found.files[0])) == []
    nothing = sum(reads)
    reads.clear()
    list(read_rows(storage, planned(table).rows, found.files[0]))
    assert nothing < selective < sum(reads)


class _Spy:
    """A storage whose open files count the bytes read of pages."""

    def __init__(self, storage, reads: list[int]) -> None:
        self._storage = storage
        self._reads = reads

    def __getattr__(self, name):
        return getattr(self._storage, name)

    def open_input(self, path):
        return pa.PythonFile(_SpyFile(self._storage.open_input(path), self._reads), mode="r")


class _SpyFile:
    def __init__(self, file, reads: list[int]) -> None:
        self._file = file
        self._reads = reads
        footer_size = int.from_bytes(file.read_at(4, file.size() - 8), "little")
        self._pages_end = file.size() - 8 - footer_size

    def read(self, size=-1):
        at = self._file.tell()
        data = self._file.read(size)
        if at + len(data) <= self._pages_end:
            self._reads.append(len(data))
        return data

    read_buffer = read

    def __getattr__(self, name):
        return getattr(self._file, name)


CONDITIONS = st.recursive(
    st.sampled_from(
        [
            "part = 'p0'",
            "part <> 'p1'",
            "part is null",
            "qty > 700",
            "qty between 100 and 900",
            "qty in (3, 999)",
            "id like '1-%'",
        ]
    ),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda it: f"({it[0]} {it[1]} {it[2]})")
        | inner.map(lambda it: f"not {it}")
    ),
    max_leaves=5,
)


@settings(max_examples=40, deadline=None)
@given(sql=CONDITIONS)
def test_pruning_never_changes_the_rows(sql):
    table = _shared()
    everything = run_read(planned(table), table.storage).read_all()
    plan = planned(table, filter=sql)
    got = run_read(plan, table.storage).read_all()
    assert got.equals(everything.filter(plan.rows.filter.expression))


_SHARED: list[HandTable] = []


def _shared() -> HandTable:
    if not _SHARED:
        random.seed(1)
        _SHARED.append(many_files(6))
    return _SHARED[0]


LEFT = """
import sys, threading
from hoodie import Table

batches = iter(Table.open(sys.argv[1]).scan(columns=["id"], batch_rows=10))
next(batches)
print("read", any("ahead" in one.name for one in threading.enumerate()), flush=True)
if len(sys.argv) > 2:
    raise ValueError("a bug of the script")
"""


@pytest.mark.parametrize("more", [(), ("fails",)])
def test_a_script_that_leaves_a_scan_where_it_is_ends(tmp_path, more):
    rows = pa.table({"id": range(9_000), "part": [str(number % 9) for number in range(9_000)]})
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "part"}
    path = str(tmp_path / "t")
    Table.create(path, schema=rows.schema, options=options).bulk_insert(rows)
    run = [sys.executable, "-c", LEFT, path, *more]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "read True\n"
    assert (done.returncode, "a bug of the script" in done.stderr) == ((1, True) if more else (0, False))
