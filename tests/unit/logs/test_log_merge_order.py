"""Which blocks of a slice are merged, and in what order."""

from __future__ import annotations

import pytest

from hoodie.errors import Corrupt, Unsupported
from hoodie.logs import BlockKind, HeaderKey, LogBlock, blocks_to_merge


def data(instant: str, *, compacts: str | None = None, kind: BlockKind = BlockKind.AVRO_DATA, at: int = 0) -> LogBlock:
    header = {HeaderKey.INSTANT_TIME: instant}
    if compacts is not None:
        header[HeaderKey.COMPACTED_BLOCK_TIMES] = compacts
    return LogBlock("f", at, 100, kind, header)


def rollback(target: str, *, instant: str = "999", command: str = "0") -> LogBlock:
    header = {
        HeaderKey.INSTANT_TIME: instant,
        HeaderKey.TARGET_INSTANT_TIME: target,
        HeaderKey.COMMAND_BLOCK_TYPE: command,
    }
    return LogBlock("f", 0, 105, BlockKind.COMMAND, header)


def instants(*blocks: LogBlock, **rules: object) -> list[str]:
    return [block.instant for block in blocks_to_merge(blocks, **rules)]  # type: ignore[arg-type]


def test_blocks_come_by_instant_in_order_of_first_appearance() -> None:
    blocks = [data("2", at=0), data("1", at=1), data("2", at=2, kind=BlockKind.DELETE), data("3", at=3)]
    assert [block.start for block in blocks_to_merge(blocks)] == [0, 2, 1, 3]


def test_damaged_spans_and_change_data_are_left_out() -> None:
    damaged = LogBlock("f", 0, 10, BlockKind.CORRUPT)
    assert instants(damaged, data("1"), data("2", kind=BlockKind.CDC_DATA)) == ["1"]


@pytest.mark.parametrize("kind", [BlockKind.AVRO_DATA, BlockKind.PARQUET_DATA, BlockKind.HFILE_DATA, BlockKind.DELETE])
def test_data_and_deletes_of_all_kinds_count(kind: BlockKind) -> None:
    assert instants(data("1", kind=kind)) == ["1"]


def test_writes_that_do_not_count_are_left_out() -> None:
    assert instants(data("1"), data("2"), data("3"), counts=lambda instant: instant != "2") == ["1", "3"]


def test_later_instants_are_skipped_and_what_follows_them_is_not() -> None:
    assert instants(data("1"), data("5"), data("2"), until="2") == ["1", "2"]


def test_instants_outside_the_range_are_left_out() -> None:
    assert instants(data("1"), data("2"), data("3"), within={"2", "3"}) == ["2", "3"]


def test_rollback_drops_what_its_target_wrote_before_it() -> None:
    assert instants(data("1"), data("2"), rollback("2"), data("3")) == ["1", "3"]


def test_rollback_leaves_what_its_target_wrote_after_it_at_its_new_place() -> None:
    assert instants(data("2"), rollback("2"), data("3"), data("2")) == ["3", "2"]


def test_rollback_newer_than_the_time_asked_for_is_heeded() -> None:
    assert instants(data("1"), data("2"), rollback("2", instant="9"), until="2") == ["1"]


def test_rollback_of_nothing_does_nothing() -> None:
    assert instants(data("1"), rollback("7")) == ["1"]


def test_other_commands_are_refused() -> None:
    with pytest.raises(Unsupported, match="Command '1'"):
        instants(rollback("1", command="1"))


def test_compacted_block_comes_at_the_place_of_the_latest_it_replaces() -> None:
    assert instants(data("1"), data("2"), data("3"), data("4", compacts="1,2"), data("5")) == ["4", "3", "5"]


def test_order_of_the_instants_in_a_compacted_block_means_nothing() -> None:
    assert instants(data("1"), data("2"), data("3"), data("4", compacts="2,1"), data("5")) == ["4", "3", "5"]


def test_compacted_block_of_compacted_blocks_replaces_all_of_them() -> None:
    blocks = [data("1"), data("2"), data("3", compacts="1,2"), data("4"), data("5", compacts="3,4"), data("6")]
    assert instants(*blocks) == ["5", "6"]


def test_compacted_block_without_originals_does_not_count() -> None:
    assert instants(data("3"), data("4", compacts="1,2")) == ["3"]


def test_originals_come_back_when_their_compacted_block_is_rolled_back() -> None:
    assert instants(data("1"), data("2"), data("3", compacts="1,2"), rollback("3")) == ["1", "2"]


def test_all_blocks_of_a_compacted_instant_come_in_their_order() -> None:
    blocks = [data("1"), data("2", compacts="1", at=10), data("2", kind=BlockKind.DELETE, at=20)]
    assert [block.start for block in blocks_to_merge(blocks)] == [10, 20]


def test_compacted_block_that_names_itself_does_not_hang() -> None:
    assert instants(data("1"), data("2", compacts="2,1")) == ["2"]


def test_block_without_instant_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="INSTANT_TIME"):
        instants(LogBlock("f", 0, 100, BlockKind.AVRO_DATA))
