"""Where a log file stands, and which changes go to one: pure answers about slices."""

from __future__ import annotations

import numpy as np

from hoodie.spec import NAMED_BY_SLICE, NAMED_BY_WRITE, BaseFileName, LogFileName
from hoodie.view import BaseFile, FileSlice, LogFile
from hoodie.write.file_sizing import SizingOptions, fillable_beside_logs, slice_bytes
from hoodie.write.log_place import LogPlace, log_place, new_group_place
from hoodie.write.plan import PlannedFile, goes_to_log

ROWS = np.array([0])


def base(instant: str, size: int = 100, file_id: str = "f") -> BaseFile:
    name = BaseFileName(file_id, "0-0-0", instant)
    return BaseFile(f"p/{name.text}", name, size)


def log(instant: str, version: int, size: int = 10) -> LogFile:
    name = LogFileName("f", instant, version, "0-0-0")
    return LogFile(f"p/{name.text}", name, size)


def test_by_base_instant_the_next_version_follows_all_of_that_instant() -> None:
    one = FileSlice("p", "f", "1", base("1"), (log("1", 1), log("1", 10)))
    assert log_place(NAMED_BY_SLICE, one, "5", None) == LogPlace(
        "f",
        "1",
        11,
        "1",
        base_file="f_0-0-0_1.parquet",
        log_files=(".f_1.log.10_0-0-0", ".f_1.log.1_0-0-0"),
        base_instant="1",
    )


def test_by_base_instant_a_pending_compaction_gives_the_name() -> None:
    one = FileSlice("p", "f", "1", base("1"), (log("1", 1), log("4", 1)))
    found = log_place(NAMED_BY_SLICE, one, "5", "4")
    assert (found.instant, found.version, found.prev_commit, found.base_file) == ("4", 2, "4", "")
    assert found.log_files == (".f_4.log.1_0-0-0",)
    assert found.base_instant == "1"


def test_by_base_instant_a_slice_of_logs_only_goes_on_under_its_first_instant() -> None:
    found = log_place(NAMED_BY_SLICE, FileSlice("p", "f", "2", None, (log("2", 1),)), "5", None)
    assert (found.instant, found.version, found.base_file, found.base_instant) == ("2", 2, "", None)


def test_by_writer_each_write_begins_anew_and_says_nothing_of_the_slice() -> None:
    one = FileSlice("p", "f", "1", base("1"), (log("2", 1), log("3", 1)))
    for compaction in (None, "4"):
        assert log_place(NAMED_BY_WRITE, one, "5", compaction) == LogPlace("f", "5", 1, "5", base_instant="1")


def test_by_writer_a_table_that_logs_changes_says_what_the_file_was_written_on() -> None:
    one = FileSlice("p", "f", "1", base("1"), (log("2", 1), log("3", 1)))
    assert log_place(NAMED_BY_WRITE, one, "5", None, logs_changes=True) == LogPlace(
        "f",
        "5",
        1,
        "1",
        base_file="f_0-0-0_1.parquet",
        log_files=(".f_3.log.1_0-0-0", ".f_2.log.1_0-0-0"),
        base_instant="1",
    )


def test_a_log_that_starts_a_group_is_its_own_base() -> None:
    assert new_group_place("f", "5") == LogPlace("f", "5", 1, "5")


def test_changes_go_to_logs_and_new_rows_only_where_keys_are_found_there() -> None:
    one = FileSlice("p", "f", "1", base("1"))
    change = PlannedFile("p", one, update_rows=ROWS, update_positions=ROWS)
    filled = PlannedFile("p", one, update_rows=ROWS, update_positions=ROWS, insert_positions=ROWS)
    fresh = PlannedFile("p", None, insert_positions=ROWS)
    assert [goes_to_log(file, inserts_too=False) for file in (change, filled, fresh)] == [True, False, False]
    assert [goes_to_log(file, inserts_too=True) for file in (change, filled, fresh)] == [True, True, False]
    assert [goes_to_log(file, inserts_too=True, begins=True) for file in (change, filled, fresh)] == [True, True, True]


def test_smallest_slices_without_logs_are_filled() -> None:
    big, small, tiny = (
        FileSlice("p", name, "1", base("1", size, name)) for name, size in (("b", 9), ("s", 5), ("t", 1))
    )
    logged = FileSlice("p", "f", "1", base("1", 0), (log("1", 1),))
    slices = [big, logged, tiny, small]
    for most, expected in ((0, []), (1, [tiny]), (2, [tiny, small]), (9, [tiny, small, big])):
        assert fillable_beside_logs(slices, SizingOptions(fills_beside_logs=most)) == expected
    assert slice_bytes(logged, SizingOptions(log_ratio=0.5)) == 5
