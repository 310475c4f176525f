import numpy as np

from hoodie.spec import PartitionWork, parse_base_file_name
from hoodie.view import BaseFile, FileSlice
from hoodie.write.file_sizing import SizingOptions
from hoodie.write.plan import (
    PartitionMap,
    SliceHits,
    place_deletes,
    place_inserts,
    place_upserts,
    plan_files,
    plan_work,
)

SIZING = SizingOptions(max_file_bytes=1000, small_file_bytes=800, record_size_estimate=10)
PARTITIONS = PartitionMap(("p", "q"), np.array([0, 4]))


def slice_of(partition: str, file_id: str, size: int = 900) -> FileSlice:
    name = parse_base_file_name(f"{file_id}_0-1-0_20260101000000000.parquet")
    assert name is not None
    return FileSlice(partition, file_id, name.instant, BaseFile(f"{partition}/{name.text}", name, size), ())


def hits(one: FileSlice, rows: list[int], positions: list[int], wins: list[bool] | None = None) -> SliceHits:
    return SliceHits(one, np.array(rows), np.array(positions), np.array(wins or [True] * len(rows)))


def numbers(values: object) -> list[int]:
    return [int(value) for value in values]  # type: ignore[attr-defined]


def test_found_rows_update_their_file_and_the_rest_is_inserted() -> None:
    placed = place_upserts(
        np.arange(6), [hits(slice_of("p", "a-0"), [3, 9], [1, 2])], PARTITIONS, move_partitions=False
    )
    (file,) = placed.files
    assert numbers(file.update_rows) == [3, 9]
    assert numbers(file.update_positions) == [1, 2]
    assert {name: numbers(rows) for name, rows in placed.inserts.items()} == {"p": [0, 3], "q": [4, 5]}


def test_key_stored_twice_is_updated_in_both_files() -> None:
    found = [hits(slice_of("p", "a-0"), [3], [1]), hits(slice_of("p", "b-0"), [0], [1])]
    placed = place_upserts(np.array([1]), found, PARTITIONS, move_partitions=False)
    assert [numbers(file.update_positions) for file in placed.files] == [[1], [1]]
    assert placed.inserts == {}


def test_moving_row_is_dropped_from_its_old_partition_and_inserted_in_the_new() -> None:
    placed = place_upserts(np.array([0]), [hits(slice_of("q", "a-0"), [7], [0])], PARTITIONS, move_partitions=True)
    (file,) = placed.files
    assert (numbers(file.drop_rows), numbers(file.update_rows)) == ([7], [])
    assert {name: numbers(rows) for name, rows in placed.inserts.items()} == {"p": [0]}


def test_moving_row_older_than_the_stored_one_changes_nothing() -> None:
    found = [hits(slice_of("q", "a-0"), [7], [0], [False])]
    placed = place_upserts(np.array([0]), found, PARTITIONS, move_partitions=True)
    assert placed.files == ()
    assert placed.inserts == {}


def test_row_found_elsewhere_is_updated_there_when_partitions_do_not_move() -> None:
    placed = place_upserts(np.array([0]), [hits(slice_of("q", "a-0"), [7], [0])], PARTITIONS, move_partitions=False)
    assert [(file.partition, numbers(file.update_rows)) for file in placed.files] == [("q", [7])]
    assert placed.inserts == {}


def test_deletes_touch_only_files_that_hold_a_key() -> None:
    placed = place_deletes([hits(slice_of("p", "a-0"), [1, 5], [0, 1]), hits(slice_of("p", "b-0"), [], [])])
    assert [(file.slice.file_id, numbers(file.drop_rows)) for file in placed.files if file.slice] == [("a-0", [1, 5])]


def test_inserts_fill_a_changed_small_file_in_the_same_rewrite() -> None:
    small = slice_of("p", "a-0", 700)
    placed = place_upserts(np.arange(4), [hits(small, [2], [0])], PARTITIONS, move_partitions=False)
    files = plan_files(placed, {"p": [small]}, 10, SIZING)
    assert [(numbers(file.update_positions), numbers(file.insert_positions)) for file in files] == [([0], [1, 2, 3])]


def test_every_insert_is_placed_exactly_once() -> None:
    placed = place_inserts(np.arange(6), PARTITIONS)
    files = plan_files(placed, {"p": [slice_of("p", "a-0", 780)]}, 300, SIZING)
    placed_rows = sorted(row for file in files for row in numbers(file.insert_positions))
    assert placed_rows == list(range(6))


def test_workload_counts_inserts_and_updates_per_partition() -> None:
    one = slice_of("p", "a-0")
    placed = place_upserts(np.arange(6), [hits(one, [3, 9], [1, 2])], PARTITIONS, move_partitions=False)
    counted = plan_work(plan_files(placed, {}, 10, SIZING))
    assert counted == {"p": PartitionWork(2, {"a-0": (one.base_instant, 2)}), "q": PartitionWork(2)}


def test_rows_that_may_not_become_new_ones_still_update() -> None:
    found = [hits(slice_of("p", "a-0"), [3], [1])]
    placed = place_upserts(np.array([2]), found, PARTITIONS, move_partitions=False)
    assert [numbers(file.update_positions) for file in placed.files] == [[1]]
    assert {name: numbers(rows) for name, rows in placed.inserts.items()} == {"p": [2]}


def test_key_found_here_and_elsewhere_is_updated_here_and_dropped_there() -> None:
    found = [hits(slice_of("p", "a-0"), [3], [1]), hits(slice_of("q", "b-0"), [8], [1])]
    placed = place_upserts(np.array([1]), found, PARTITIONS, move_partitions=True)
    assert [(file.partition, numbers(file.update_rows), numbers(file.drop_rows)) for file in placed.files] == [
        ("p", [3], []),
        ("q", [], [8]),
    ]
    assert placed.inserts == {}


def test_row_that_beats_one_of_two_stored_ones_elsewhere_is_not_stored_a_third_time() -> None:
    found = [hits(slice_of("q", "a-0"), [3], [1], [True]), hits(slice_of("r", "b-0"), [8], [1], [False])]
    placed = place_upserts(np.array([1]), found, PARTITIONS, move_partitions=True)
    assert [(file.partition, numbers(file.drop_rows)) for file in placed.files] == [("q", [3])]
    assert placed.inserts == {}


def test_sorted_inserts_keep_their_order_over_files() -> None:
    placed = place_inserts(np.array([3, 0, 2, 1, 5, 4]), PARTITIONS)
    files = plan_files(placed, {}, 500, SIZING)
    assert [numbers(file.insert_positions) for file in files] == [[3, 0], [2, 1], [5, 4]]


def test_positions_elsewhere() -> None:
    assert PARTITIONS.elsewhere(np.array([0, 3, 4]), "p").tolist() == [False, False, True]
    assert PARTITIONS.elsewhere(np.array([0, 4]), "unknown").tolist() == [True, True]


def test_slice_with_changes_of_unknown_rows_is_not_filled_up() -> None:
    one = slice_of("p", "a-0", 100)
    placed = place_upserts(np.arange(3), [hits(one, [-1], [1])], PARTITIONS, move_partitions=False)
    files = plan_files(placed, {"p": [one]}, 10, SIZING)
    assert [(file.slice, numbers(file.insert_positions)) for file in files] == [(one, []), (None, [0, 2])]
    known = place_upserts(np.arange(3), [hits(one, [7], [1])], PARTITIONS, move_partitions=False)
    (file,) = plan_files(known, {"p": [one]}, 10, SIZING)
    assert numbers(file.insert_positions) == [0, 2]
