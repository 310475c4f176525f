"""Every golden table gives the rows the real Hudi gave, for every query it was asked.

Set `HOODIE_GOLDEN_DIR` to run the full set; without it the selection beside this file is read. What is not equal on
purpose is listed in `rules.toml` with the reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.errors import HudiError, Invalid
from hoodie.fileview import FolderView
from hoodie.query import ReadOptions, load_read_plan, validate_table
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.testing.golden import GoldenRead, GoldenTable, Rule, difference, golden_tables, load_rules

pytestmark = pytest.mark.sampled(4)

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FULL = os.environ.get("HOODIE_GOLDEN_DIR")
TABLES = golden_tables((ROOT / FULL).resolve() if FULL else HERE / "tables")
READS = tuple(read for table in TABLES for read in table.reads())

OTHER_ROWS = load_rules(HERE / "rules.toml", "other_rows")
REFUSED = load_rules(HERE / "rules.toml", "refused")
PARTITION_COLUMNS = load_rules(HERE / "rules.toml", "partition_columns")

# Words of Hudi's error → words of ours, which is Invalid.
REFUSALS = {"Cleaner cleaned up the timestamp": "cleaned up", "meta fields are disabled": "meta fields are disabled"}

Reader = Callable[[Path, GoldenRead], pa.Table]
Unpack = Callable[[GoldenTable], Path]
Opened = Callable[[Path], TableHandle]


@pytest.mark.parametrize("read", READS, ids=lambda read: read.id)
def test_rows_are_those_of_the_real_hudi(read: GoldenRead, engine: Reader, unpacked: Unpack) -> None:
    match outcome(engine, unpacked(read.table), read):
        case HudiError() as error:
            expected_words = [ours for theirs, ours in REFUSALS.items() if theirs in (read.error or "")]
            if rule_for(REFUSED, read) is not None:
                expected_words.append("cleaned up")
            assert expected_words, f"Hudi read this: {error}"
            assert isinstance(error, Invalid)
            assert expected_words[0] in str(error)
        case got if read.error is not None:
            assert not any(words in read.error for words in REFUSALS), f"{got.num_rows} rows where Hudi refuses"
        case got:
            assert rule_for(REFUSED, read) is None, f"{got.num_rows} rows where we refuse"
            if rule_for(OTHER_ROWS, read) is None:
                compare(got, read)


def outcome(engine: Reader, path: Path, read: GoldenRead) -> pa.Table | HudiError:
    """The rows, or the error that came instead."""
    try:
        return engine(path, read)
    except HudiError as error:
        return error


def compare(got: pa.Table, read: GoldenRead) -> None:
    """Fails unless the rows are those expected. Hudi 0.15 moves partition columns to the end: its order is not ours."""
    expected = read.rows()
    rule = rule_for(PARTITION_COLUMNS, read)
    if rule is not None:
        snapshot = GoldenRead(read.table, "snapshot").rows()
        for column in rule.columns:
            assert got.schema.field(column).type.equals(snapshot.schema.field(column).type)
            assert values_by_path(got, column) <= values_by_path(snapshot, column)
        got, expected = got.drop_columns(list(rule.columns)), expected.drop_columns(list(rule.columns))
    if read.kind == "cdc" and read.table.release == "0.15.0":
        # Hudi 0.15 writes the members of an image in the order of a hash map, and those that are NULL in deletes only;
        # ours are Hudi 1.2's: in the table's order, without NULL ones.
        got, expected = with_sorted_images(got), with_sorted_images(expected)
    assert difference(got, expected, ordered_columns=read.table.release != "0.15.0") is None


def with_sorted_images(changes: pa.Table) -> pa.Table:
    """The changes with the members of their JSON images in the order of their names, without those that are NULL."""
    for name in ("before", "after"):
        texts = [None if text is None else sorted_image(text) for text in changes.column(name).to_pylist()]
        changes = changes.set_column(changes.schema.get_field_index(name), name, pa.array(texts, pa.string()))
    return changes


def sorted_image(text: str) -> str:
    image = json.loads(text)
    return json.dumps(image and {key: value for key, value in image.items() if value is not None}, sort_keys=True)


def values_by_path(rows: pa.Table, column: str) -> set[tuple[str, object]]:
    """Values of a partition column, each with the partition path it stands in."""
    return set(zip(rows.column("_hoodie_partition_path").to_pylist(), rows.column(column).to_pylist(), strict=True))


def without_cdc(log_files: list[str]) -> tuple[str, ...]:
    """Log files that hold rows: Hudi lists change-data files among them."""
    return tuple(sorted(name for name in log_files if not name.endswith(".cdc")))


def rule_for(rules: tuple[Rule, ...], read: GoldenRead) -> Rule | None:
    return next((rule for rule in rules if rule.covers(read)), None)


@pytest.mark.skipif(not FULL, reason="needs the full golden set")
@pytest.mark.parametrize("rule", OTHER_ROWS + REFUSED + PARTITION_COLUMNS, ids=lambda rule: rule.reason[:40])
def test_every_rule_is_needed_by_some_read(rule: Rule) -> None:
    assert any(rule.covers(read) for read in READS)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_file_slices_are_those_of_the_real_hudi(table: GoldenTable, unpacked: Unpack, opened: Opened) -> None:
    handle = opened(unpacked(table))
    timeline = timeline_of(handle)
    partitions = table.facts["partitions"]
    expected = {
        (partition, one["file_id"]): (one["base_instant"], one["base_file"], without_cdc(one["log_files"]))
        for partition, found in partitions.items()
        if isinstance(found, dict)
        for one in found["latest_merged_slices_as_of_last_commit"]
    }
    got = {
        part.group_id: (
            part.base_instant,
            part.base.name.text if part.base else None,
            tuple(sorted(log.name.text for log in part.logs)),
        )
        for part in FolderView(handle.storage, timeline).load().slices_at()
    }
    assert got == expected


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_validate_finds_only_what_failed_writes_left(table: GoldenTable, unpacked: Unpack, opened: Opened) -> None:
    findings = validate_table(opened(unpacked(table)))
    left = {
        "cow_failed_left",
        "cow_failed_bulk_left",
        "cow_failed_validator",
        "cow_null_in_list_fails",
        "mor_failed_left",
    }
    kinds = {finding.kind for finding in findings}
    assert kinds <= ({"pending", "uncommitted"} if table.scenario in left else set())
    assert bool(findings) == (table.scenario in left)


@pytest.mark.parametrize(
    "table", [table for table in TABLES if table.name == "0.15.0/cow_cleaned"], ids=lambda table: table.name
)
def test_incremental_query_over_cleaned_files_fails_without_the_fallback(
    table: GoldenTable, unpacked: Unpack, opened: Opened
) -> None:
    handle = opened(unpacked(table))
    timeline = timeline_of(handle)
    read = next(read for read in table.reads() if read.kind == "incremental" and read.error)
    with pytest.raises(Invalid, match="cleaned since"):
        load_read_plan(handle.storage, handle.config, timeline, ReadOptions(**read.options, full_scan_fallback=False))
