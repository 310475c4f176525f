import gc
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from hoodie.errors import Unavailable
from hoodie.merge import (
    LogEntry,
    LogMap,
    LogRows,
    MergeRules,
    MergeStep,
    collect_log,
    merge_changes,
    merge_rows,
)
from hoodie.merge.spill import BUCKETS, buckets
from hoodie.records import KEY_FIELD

EVENT_TIME = MergeRules(MergeStep(True), MergeStep(True), ("ts",))
LATEST = MergeRules(MergeStep(False), MergeStep(False))
SCHEMA = pa.schema({KEY_FIELD: pa.string(), "ts": pa.int64(), "v": pa.string()})


@dataclass(frozen=True)
class ListedDeletes:
    keys: pa.StringArray
    ordering: tuple[pa.Array, ...]
    is_default: npt.NDArray[np.bool_]


def table(*rows: tuple[str, object, str], ts: pa.DataType | None = None) -> pa.Table:
    names, kinds = SCHEMA.names, [pa.string(), ts or pa.int64(), pa.string()]
    columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
    return pa.table(columns, pa.schema(zip(names, kinds, strict=True)))


def base(*rows: tuple[str, object, str], ts: pa.DataType | None = None) -> list[pa.RecordBatch]:
    return table(*rows, ts=ts).to_batches()


def deletes(*keys: str, at: pa.Array | None = None) -> ListedDeletes:
    array = pa.array(keys, pa.string())
    default = np.full(len(keys), at is None) if at is None else at.is_null().to_numpy(zero_copy_only=False)
    return ListedDeletes(array, () if at is None else (at,), default)


def merged(batches: list[pa.RecordBatch], entries: list[LogEntry], rules: MergeRules) -> list[tuple[object, ...]]:
    schema = batches[0].schema if batches else SCHEMA
    with collect_log(entries, rules, schema) as log:
        rows = [row for batch in merge_rows(lambda: batches, log) for row in batch.to_pylist()]
    return [tuple(row.values()) for row in rows]


def test_rows_come_in_base_order_then_in_the_order_keys_appeared_in_the_log() -> None:
    log = [LogRows(table(("z", 2, "new"), ("b", 2, "B"))), deletes("a"), LogRows(table(("y", 2, "new"), ("z", 3, "Z")))]
    rows = merged(base(("a", 1, "a"), ("b", 1, "b"), ("c", 1, "c")), log, LATEST)
    assert rows == [("b", 2, "B"), ("c", 1, "c"), ("z", 3, "Z"), ("y", 2, "new")]


def test_a_key_stored_twice_is_updated_twice_and_deleted_twice() -> None:
    batches = base(("a", 1, "one"), ("a", 1, "two"), ("b", 1, "one"), ("b", 5, "two"))
    assert merged(batches, [LogRows(table(("a", 2, "new"))), deletes("b")], LATEST) == [("a", 2, "new")] * 2
    log = [deletes("b", at=pa.array([3])), LogRows(table(("a", 2, "new")))]
    assert merged(batches, log, EVENT_TIME) == [("a", 2, "new")] * 2 + [("b", 5, "two")]


def test_batches_without_a_key_of_the_log_pass_untouched() -> None:
    batches = [*base(("a", 1, "a")), *base(("b", 1, "b")), *base(("c", 9, "c"))]
    with collect_log([LogRows(table(("b", 2, "B"), ("c", 2, "late")))], EVENT_TIME, SCHEMA) as log:
        rows = list(merge_rows(lambda: batches, log))
    assert rows[0] is batches[0]
    assert rows[1].to_pylist() == [{KEY_FIELD: "b", "ts": 2, "v": "B"}]
    assert rows[2] is batches[2]
    with collect_log([], EVENT_TIME, SCHEMA) as log:
        assert all(one is other for one, other in zip(merge_rows(lambda: batches, log), batches, strict=True))


def test_a_row_without_ordering_value_loses_against_any_and_a_tie_goes_to_the_newer() -> None:
    batches = base(("a", 0, "a"), ("b", None, "b"), ("c", 5, "c"))
    log: list[LogEntry] = [LogRows(table(("a", None, "A"), ("b", None, "B"), ("c", 5, "C")))]
    assert merged(batches, log, EVENT_TIME) == [("a", 0, "a"), ("b", None, "B"), ("c", 5, "C")]


def test_a_delete_by_time_is_beaten_by_what_follows_and_not_displaced_by_a_listed_delete() -> None:
    again = LogRows(table(("a", 1, "again")))
    assert merged(base(("a", 0, "a")), [deletes("a"), deletes("a", at=pa.array([9])), again], EVENT_TIME) == [
        ("a", 1, "again")
    ]
    assert merged(base(("a", 0, "a")), [deletes("a", at=pa.array([9])), again], EVENT_TIME) == []


def test_a_row_that_marks_itself_deleted_competes_with_its_ordering_value() -> None:
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    stored = [("a", 5, "a", None), ("b", 5, "b", None), ("c", 5, "c", True)]
    log = [("a", 4, "gone", True), ("b", 6, "gone", True), ("d", 6, "gone", True)]
    rows = [
        pa.table([pa.array(side) for side in zip(*part, strict=True)], names=schema.names).cast(schema)
        for part in (stored, log)
    ]
    found = merged(rows[0].to_batches(), [LogRows(rows[1])], EVENT_TIME)
    assert [row[:3] for row in found] == [("a", 5, "a"), ("c", 5, "c")]


@pytest.mark.parametrize(
    ("kind", "values", "listed"),
    [
        (pa.int64(), (1, 2, 3), pa.int32()),
        (pa.float64(), (1.0, 2.0, 3.0), pa.float32()),
        (pa.timestamp("us", "UTC"), tuple(datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3)), pa.int64()),
        (pa.date32(), (date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3)), pa.int32()),
        (pa.decimal128(10, 2), (Decimal("9.50"), Decimal("10.00"), Decimal("11.25")), pa.decimal128(30, 15)),
        (pa.string(), ("a", "b", "c"), pa.string()),
    ],
    ids=str,
)
def test_a_listed_delete_compares_in_the_type_of_the_column(
    kind: pa.DataType, values: tuple[object, object, object], listed: pa.DataType
) -> None:
    low, middle, high = values
    batches = base(("a", middle, "a"), ("b", middle, "b"), ts=kind)
    entry = deletes("a", "b", at=pa.array([low, high], kind).cast(listed))
    assert [row[0] for row in merged(batches, [entry], EVENT_TIME)] == ["a"]


def test_a_listed_delete_whose_value_cannot_be_compared_deletes() -> None:
    assert merged(base(("a", 5, "a")), [deletes("a", at=pa.array(["x"]))], EVENT_TIME) == []
    several = MergeRules(MergeStep(True), MergeStep(True), ("ts", "v"))
    assert merged(base(("a", 5, "a")), [deletes("a", at=pa.array([1]))], several) == []


def test_an_ordering_field_that_rows_do_not_have_leaves_the_newest_version() -> None:
    rules = MergeRules(MergeStep(True), MergeStep(True), ("gone",))
    log: list[LogEntry] = [LogRows(table(("a", 9, "one"))), LogRows(table(("a", 1, "two")))]
    assert merged(base(("a", 5, "a"), ("b", 5, "b")), [*log, deletes("b", at=pa.array([1]))], rules) == [
        ("a", 1, "two")
    ]


def test_an_ordering_field_inside_a_struct_decides() -> None:
    schema = pa.schema({KEY_FIELD: pa.string(), "src": pa.struct([pa.field("ts", pa.int64())])})
    old, new = (pa.table([["a", "b"], [{"ts": 5}, one]], schema=schema) for one in ({"ts": 5}, None))
    rules = MergeRules(MergeStep(True), MergeStep(True), ("src.ts",))
    assert merged(old.to_batches(), [LogRows(new)], rules) == [("a", {"ts": 5}), ("b", {"ts": 5})]


def test_partial_rows_bring_the_columns_they_have() -> None:
    partial = LogRows(table(("a", 6, "-"), ("n", 6, "-")).select([KEY_FIELD, "ts"]), frozenset({KEY_FIELD, "ts"}))
    old = LogRows(table(("a", 3, "kept"), ("b", 3, "late")).select([KEY_FIELD, "v"]), frozenset({KEY_FIELD, "v"}))
    batches = base(("a", 5, "a"), ("b", 5, "b"))
    assert merged(batches, [partial], EVENT_TIME) == [("a", 6, "a"), ("b", 5, "b"), ("n", 6, None)]
    assert merged(batches, [old, partial], LATEST) == [("a", 6, "kept"), ("b", 5, "late"), ("n", 6, None)]


def test_changes_say_what_a_log_does_to_rows() -> None:
    batches = base(("a", 1, "a"), ("b", 1, "b"), ("c", 9, "c"), ("d", 1, "d"))
    log_rows = LogRows(table(("x", 1, "x"), ("a", 2, "A"), ("c", 2, "late")))
    with collect_log([log_rows, deletes("b", "gone"), deletes("d", at=pa.array([0]))], EVENT_TIME, SCHEMA) as log:
        found = [
            (
                change.kind,
                *(None if side is None else side.column("v").to_pylist() for side in (change.before, change.after)),
            )
            for change in merge_changes(lambda: batches, log)
        ]
        (part,) = log.parts()
        assert part.keys.filter(pa.array(part.is_deleted)).to_pylist() == ["b", "gone", "d"]
    assert found == [("update", ["a"], ["A"]), ("delete", ["b"], None), ("insert", None, ["x"])]


def test_a_block_may_repeat_one_key_any_number_of_times() -> None:
    count = 200_000
    values = np.arange(count, dtype=np.int64)
    rows = pa.table([pa.array(["a"] * count), (values * 7919) % count, values.astype(str)], schema=SCHEMA)
    (found,) = merged(base(("a", 1, "a")), [LogRows(rows)], EVENT_TIME)
    assert found[1] == count - 1


# Rows on disk


def spilling(folder: Path, entries: Iterator[LogEntry], limit: int = 1) -> LogMap:
    return collect_log(entries, EVENT_TIME, SCHEMA, limit_bytes=limit, spill_dir=str(folder))


def many(count: int, ts: int) -> LogRows:
    return LogRows(table(*((f"k{at}", ts, f"{ts}") for at in range(count))))


def test_a_log_beyond_the_limit_goes_to_disk_and_its_files_go_with_the_map(tmp_path: Path) -> None:
    batches = base(*((f"k{at}", 2, "base") for at in range(0, 2000, 2)))
    with spilling(tmp_path, iter([many(1000, 1), many(500, 3)]), limit=20_000) as log:
        assert log.is_spilled
        assert list(tmp_path.iterdir())
        parts = [len(part.keys) for part in log.parts()]
        assert len(parts) > 1
        assert sum(parts) == 1000
        rows = [row for batch in merge_rows(lambda: batches, log) for row in batch.to_pylist()]
        again = [row for batch in merge_rows(lambda: batches, log) for row in batch.to_pylist()]
    assert list(tmp_path.iterdir()) == []
    expected = {f"k{at}": "base" for at in range(0, 2000, 2)} | {f"k{at}": "1" for at in range(501, 1000, 2)}
    expected |= {f"k{at}": "3" for at in range(500)}
    assert {row[KEY_FIELD]: row["v"] for row in rows} == expected
    assert len(rows) == len(expected)
    assert rows == again


def test_updates_of_few_keys_fold_instead_of_going_to_disk(tmp_path: Path) -> None:
    with spilling(tmp_path, (many(50, ts) for ts in range(100)), limit=20_000) as log:
        assert not log.is_spilled
        assert list(tmp_path.iterdir()) == []
        (part,) = log.parts()
    assert set(part.rows.column("ts").to_pylist()) == {99}


def test_an_error_while_collecting_leaves_no_files(tmp_path: Path) -> None:
    def broken() -> Iterator[LogEntry]:
        yield many(100, 1)
        yield many(100, 2)
        raise RuntimeError("block gone")

    with pytest.raises(RuntimeError, match="block gone"):
        spilling(tmp_path, broken())
    assert list(tmp_path.iterdir()) == []


def test_a_stream_that_is_given_up_leaves_no_files(tmp_path: Path) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        with spilling(tmp_path, iter([many(1000, 1)])) as log:
            yield from merge_rows(lambda: base(("a", 1, "a")), log)

    stream = rows()
    next(stream)
    assert list(tmp_path.iterdir())
    stream.close()
    assert list(tmp_path.iterdir()) == []


def test_a_map_nobody_closes_loses_its_files_in_the_end(tmp_path: Path) -> None:
    spilling(tmp_path, iter([many(1000, 1)]))
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="hoodie.memory.spillable.map.path"):
        spilling(tmp_path / "not there", iter([many(10, 1)]))


def test_a_key_has_one_bucket_however_its_array_was_cut() -> None:
    keys = pa.array([*(f"key-{at}" for at in range(40_000)), "", "größe", "k" * 1000])
    found = buckets(keys)
    assert (buckets(keys.slice(777)) == found[777:]).all()
    assert (buckets(pa.chunked_array([keys.slice(0, 5), keys.slice(5, 0), keys.slice(5)])) == found).all()
    counts = np.bincount(found, minlength=BUCKETS)
    assert len(counts) == BUCKETS
    assert counts.max() < 2 * counts.mean()
