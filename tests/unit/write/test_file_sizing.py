from hoodie.spec import CommitMetadata, WriteStat
from hoodie.write.file_sizing import Fill, SizingOptions, SmallFile, average_record_bytes, plan_fills

SMALL = SizingOptions(max_file_bytes=1000, small_file_bytes=800, record_size_estimate=10)


def commit(size: int, rows: int) -> CommitMetadata:
    stat = WriteStat(file_id="f", path="f.parquet", num_writes=rows, total_write_bytes=size, file_size_bytes=size)
    return CommitMetadata({"": (stat,)}, False, {}, "INSERT", None)


def test_rows_of_an_empty_partition_open_new_files_of_the_size_limit() -> None:
    assert plan_fills(250, [], 10, SMALL) == (Fill(None, 100), Fill(None, 100), Fill(None, 50))


def test_small_files_are_filled_smallest_first_before_new_files_open() -> None:
    small = [SmallFile("b", 700), SmallFile("a", 500)]
    assert plan_fills(120, small, 10, SMALL) == (Fill("a", 50), Fill("b", 30), Fill(None, 40))


def test_file_at_the_small_file_limit_takes_no_rows() -> None:
    assert plan_fills(5, [SmallFile("a", 800)], 10, SMALL) == (Fill(None, 5),)


def test_limit_zero_turns_filling_off() -> None:
    options = SizingOptions(max_file_bytes=1000, small_file_bytes=0)
    assert plan_fills(5, [SmallFile("a", 10)], 10, options) == (Fill(None, 5),)


def test_without_auto_split_new_files_hold_split_rows() -> None:
    options = SizingOptions(max_file_bytes=1000, small_file_bytes=0, split_rows=4, auto_split=False)
    assert [fill.rows for fill in plan_fills(10, [], 10, options)] == [4, 4, 2]


def test_no_rows_need_no_file() -> None:
    assert plan_fills(0, [SmallFile("a", 1)], 10, SMALL) == ()


def test_record_size_comes_from_the_newest_commit_that_wrote_enough() -> None:
    assert average_record_bytes([commit(100, 1), commit(9000, 300), commit(9000, 90)], SMALL) == 30


def test_record_size_falls_back_to_the_estimate() -> None:
    assert average_record_bytes([commit(100, 1)], SMALL) == 10
