import pickle

import numpy as np
import pyarrow as pa
import pytest

from hoodie.engine import LocalEngine
from hoodie.index import HeldKeys
from hoodie.records.deletion import DeleteMarker
from hoodie.storage import MemoryStorage
from hoodie.write.combine import plan_combine, run_combine, same_keys, sorted_by_key
from hoodie.write.incoming import ARRIVAL, KEY, PARTITION, Incoming, MemoryRows, Part, SpooledRows, in_memory
from hoodie.write.incoming_keys import SpooledKeys, keys_of

ENGINE = LocalEngine(1)


def keyed(*rows: tuple[str, str, int], arrival: bool = False) -> pa.Table:
    table = pa.table(
        {KEY: [key for key, _, _ in rows], PARTITION: [part for _, part, _ in rows], "ts": [ts for _, _, ts in rows]}
    )
    if arrival:
        table = table.append_column(ARRIVAL, pa.array(range(len(rows)), pa.int64()))
    return table.append_column("wide", pa.array(["x" * 1000] * len(rows)))


def kept(incoming: Incoming, ordering: tuple[str, ...] = (), *, whole: bool = False) -> list[int]:
    return run_combine(plan_combine(incoming, ordering, None, whole_input=whole), ENGINE).tolist()


def test_last_row_of_a_key_stays_in_each_partition() -> None:
    rows = in_memory(keyed(("a", "p", 1), ("a", "q", 1), ("a", "p", 0), ("b", "p", 0)))
    assert kept(rows) == [1, 2, 3]  # positions: p holds 0, 1, 2 and q holds 3


def test_largest_ordering_value_stays() -> None:
    assert kept(in_memory(keyed(("a", "p", 5), ("a", "p", 7), ("a", "p", 6))), ("ts",)) == [1]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_whole_input_goes_by_arrival_not_by_partition(order: tuple[int, ...]) -> None:
    rows = [("a", "r", 1), ("a", "p", 1), ("a", "q", 1)]
    incoming = in_memory(keyed(*(rows[n] for n in order), arrival=True))
    (winner,) = kept(incoming, ("ts",), whole=True)
    assert incoming.select(np.array([winner])).load().column(PARTITION).to_pylist() == [rows[order[-1]][1]]


def test_no_rows_keep_nothing() -> None:
    assert kept(in_memory(keyed().cast(keyed(("a", "p", 1)).schema))) == []
    assert kept(in_memory(keyed().cast(keyed(("a", "p", 1)).schema)), whole=True) == []


def test_delete_without_ordering_value_goes_by_its_place() -> None:
    table = keyed(("a", "p", 5), ("a", "p", 1), ("b", "p", 1), ("b", "p", 5))
    ts = pa.array([5, None, None, 5], pa.int64())
    table = table.set_column(2, "ts", ts).append_column("op", pa.array(["u", "D", "D", "u"]))
    tasks = plan_combine(in_memory(table), ("ts",), DeleteMarker("op", "D"), whole_input=False)
    assert run_combine(tasks, ENGINE).tolist() == [1, 3]


def test_tasks_carry_no_more_than_they_look_at() -> None:
    rows = in_memory(keyed(*((f"k{n}", f"p{n % 7}", n) for n in range(700))))
    tasks = plan_combine(rows, ("ts",), None, whole_input=False)
    assert len(tasks) == 7
    assert max(len(pickle.dumps(task)) for task in tasks) < 20_000  # a slice would bring all 700 KB along
    held = keys_of(rows.of("p3"), rows.of("p3").positions()[:5])
    assert isinstance(held, HeldKeys)
    assert len(pickle.dumps(held)) < 2_000
    assert held.load()[0].to_pylist() == ["k3", "k10", "k17", "k24", "k31"]


def spooled(*rows: tuple[str, str, int]) -> Incoming:
    storage = MemoryStorage(f"combine-{len(rows)}")
    table = keyed(*rows).sort_by(PARTITION)
    parts, offset = [], 0
    with storage.open_output("s.arrow") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        for n, batch in enumerate(table.to_batches(max_chunksize=2)):
            writer.write_batch(batch)
            parts.append(Part("p", offset, batch.num_rows, SpooledRows(storage, "s.arrow", ((n, batch.num_rows),))))
            offset += batch.num_rows
    return Incoming(tuple(parts), table.schema)


def test_keys_of_spooled_rows_are_read_where_they_are_needed() -> None:
    rows = spooled(*((f"k{n}", "p", n) for n in range(5)))
    some = keys_of(rows, np.array([1, 4]))
    assert isinstance(some, SpooledKeys)
    keys, positions = some.load()
    assert (keys.to_pylist(), positions.tolist()) == (["k1", "k4"], [1, 4])
    assert keys_of(rows, rows.positions()).load()[0].to_pylist() == [f"k{n}" for n in range(5)]
    assert kept(spooled(("a", "p", 1), ("b", "p", 1), ("a", "p", 2)), ("ts",)) == [1, 2]


def test_rows_of_the_same_keys_are_found_in_their_partition_or_everywhere() -> None:
    rows = in_memory(keyed(("a", "p", 1), ("b", "p", 1), ("a", "p", 2), ("a", "q", 1)))
    of, among = np.array([2]), np.array([0, 1, 3])
    assert same_keys(rows, of, among, whole_input=False).tolist() == [0]
    assert same_keys(rows, of, among, whole_input=True).tolist() == [0, 3]
    assert same_keys(rows, of[:0], among, whole_input=True).tolist() == []


def test_some_of_many_rows_are_told_to_their_partitions_and_selected_whatever_their_order() -> None:
    rows = in_memory(keyed(*((f"k{n}", f"p{n % 7}", n) for n in range(50))))
    some = np.arange(3, 50, 4)
    own = {name: scope.own(some) for name, scope in rows.by_partition().items()}
    assert sorted(np.concatenate(list(own.values())).tolist()) == some.tolist()
    for name, scope in rows.by_partition().items():
        assert own[name].tolist() == np.intersect1d(scope.positions(), some).tolist()
    mixed = np.random.default_rng(1).permutation(50)
    assert rows.select(mixed).load().equals(rows.load().take(pa.array(mixed)))


def test_rows_are_sorted_by_key_within_their_partition() -> None:
    rows = in_memory(keyed(("c", "q", 1), ("b", "p", 1), ("a", "q", 1), ("a", "p", 1), ("z", "p", 1)))
    order = sorted_by_key(rows, np.array([0, 1, 3, 4]))
    found = rows.select(order).load()
    assert list(zip(found[PARTITION].to_pylist(), found[KEY].to_pylist(), strict=True)) == [
        ("p", "a"),
        ("p", "b"),
        ("q", "a"),
        ("q", "c"),
    ]


def test_memory_and_spooled_rows_are_selected_in_any_order() -> None:
    memory = in_memory(keyed(("a", "p", 1), ("b", "q", 2), ("c", "p", 3)))
    assert memory.select(np.array([2, 0, 1])).load()["ts"].to_pylist() == [2, 1, 3]
    rows = spooled(*((f"k{n}", "p", n) for n in range(5)))
    mixed = Incoming(
        (*rows.parts, Part("z", 5, 1, MemoryRows(keyed(("m", "z", 9)).select(rows.schema.names)))), rows.schema
    )
    assert mixed.select(np.array([5, 4, 0])).load()["ts"].to_pylist() == [9, 4, 0]
    assert not mixed.in_memory
