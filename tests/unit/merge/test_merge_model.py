"""Any log over any base gives what merging one record at a time gives, under every rule, in memory and spilled.

`HOODIE_MODEL_EXAMPLES` says how many examples each rule gets.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_merge import Reference, Step, Version

from hoodie.merge import Changes, LogEntry, LogRows, MergeRules, MergeStep, collect_log, merge_changes, merge_rows
from hoodie.records.deletion import DeleteMarker

EXAMPLES = int(os.environ.get("HOODIE_MODEL_EXAMPLES", "8"))
KEY = "_hoodie_record_key"
GONE = "<gone>"
SCHEMA = pa.schema(
    [
        pa.field(KEY, pa.string()),
        pa.field("_hoodie_operation", pa.string()),
        pa.field("t", pa.int64()),
        pa.field("u", pa.string()),
        pa.field("n", pa.int32()),
        pa.field("text", pa.string()),
        pa.field("tags", pa.list_(pa.field("element", pa.int32()))),
        pa.field("op", pa.string()),
        pa.field("_hoodie_is_deleted", pa.bool_()),
    ]
)
COLUMNS = tuple(SCHEMA.names)
ALWAYS = ("t", "u", "op", "_hoodie_is_deleted", KEY, "_hoodie_operation")
ORDERINGS: tuple[tuple[str, ...], ...] = ((), ("t",), ("t", "u"))
STEPS = {
    "commit time": (MergeStep(False), MergeStep(False)),
    "event time": (MergeStep(True), MergeStep(True)),
    "ordered in the log only": (MergeStep(True), MergeStep(False)),
    "event time, NULL gives way": (MergeStep(True, "IGNORE_DEFAULTS"), MergeStep(True, "IGNORE_DEFAULTS")),
    "commit time, NULL gives way": (MergeStep(False, "IGNORE_DEFAULTS"), MergeStep(False, "IGNORE_DEFAULTS")),
    "event time, unavailable gives way": (MergeStep(True, "FILL_UNAVAILABLE"), MergeStep(True, "FILL_UNAVAILABLE")),
    "NULL gives way against the base only": (MergeStep(True), MergeStep(False, "IGNORE_DEFAULTS")),
}


@dataclass(frozen=True)
class ListedDeletes:
    keys: pa.StringArray
    ordering: tuple[pa.Array, ...]
    is_default: npt.NDArray[np.bool_]


class Adding:
    """Adds up `n`; a sum of 0 deletes."""

    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        totals = [
            (old or 0) + (new or 0)
            for old, new in zip(older.column("n").to_pylist(), newer.column("n").to_pylist(), strict=True)
        ]
        rows = newer.set_column(newer.schema.get_field_index("n"), "n", pa.array(totals, pa.int32()))
        at = rows.schema.get_field_index("_hoodie_is_deleted")
        return rows.set_column(at, "_hoodie_is_deleted", pa.array([total == 0 for total in totals]))


Row = dict[str, object]
Block = tuple[str, list[Row]]  # "rows", "some" (partial) or "deletes"

keys = st.sampled_from(["a", "b", "c", "", "größe"])
rows = st.fixed_dictionaries(
    {
        KEY: keys,
        "_hoodie_operation": st.sampled_from([None, None, "I", "U", "-U", "D"]),
        "t": st.sampled_from([None, 0, 1, 2, 3]),
        "u": st.sampled_from([None, "x", "y"]),
        "n": st.sampled_from([None, 0, 1, -1, 7]),
        "text": st.sampled_from([None, GONE, "one", "two"]),
        "tags": st.sampled_from([None, [], [1], [2, None]]),
        "op": st.sampled_from([None, "u", "u", "u", "X"]),
        "_hoodie_is_deleted": st.sampled_from([None, False, False, True]),
    }
)
blocks = st.tuples(st.sampled_from(["rows", "rows", "some", "deletes"]), st.lists(rows, max_size=4))
logs = st.lists(blocks, max_size=7)
bases = st.lists(rows, max_size=6)


@pytest.mark.deep
@pytest.mark.parametrize("marker", [None, DeleteMarker("op", "X")], ids=["", "marker"])
@pytest.mark.parametrize("ordering", ORDERINGS, ids="+".join)
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS.keys())
def test_a_slice_is_what_merging_record_by_record_gives(
    steps: tuple[MergeStep, MergeStep], ordering: tuple[str, ...], marker: DeleteMarker | None
) -> None:
    rules = MergeRules(*steps, ordering_fields=ordering, marker=marker, unavailable_value=GONE)

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(base=bases, log=logs, limit=st.sampled_from([1 << 30, 2000, 1]))
    def check(base: list[Row], log: list[Block], limit: int) -> None:
        ensure_as_expected(rules, base, log, limit)

    check()


@pytest.mark.parametrize("ordering", ORDERINGS, ids="+".join)
def test_a_merger_of_the_user_sees_pairs_in_order(ordering: tuple[str, ...]) -> None:
    rules = MergeRules(MergeStep(True), MergeStep(True), ordering_fields=ordering, custom=Adding())

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(base=bases, log=logs, limit=st.sampled_from([1 << 30, 2000]))
    def check(base: list[Row], log: list[Block], limit: int) -> None:
        ensure_as_expected(rules, base, [block for block in log if block[0] != "some"], limit)

    check()


def ensure_as_expected(rules: MergeRules, base: list[Row], log: list[Block], limit: int) -> None:
    reference = Reference(
        Step(rules.in_log.ordered, rules.in_log.fill),
        Step(rules.against_base.ordered, rules.against_base.fill),
        COLUMNS,
        GONE,
        rules.custom is not None,
    )
    versions = told(log, rules)
    partial = any(kind == "some" for kind, _ in log)
    expected = reference.slice([stored(row, rules) for row in base], versions, partial=partial)
    with collect_log(entries(log, rules), rules, SCHEMA, limit_bytes=limit) as merged:
        found = [row for batch in merge_rows(lambda: batches(base), merged) for row in batch.to_pylist()]
        if merged.is_spilled:
            assert sorted(map(text, found)) == sorted(map(text, expected))
        else:
            assert list(map(text, found)) == list(map(text, expected))
        assert sorted(merged.keys().to_pylist()) == sorted({version.key for version in versions})
        assert replayed(base, merge_changes(lambda: batches(base), merged)) == sorted(map(text, expected))


def replayed(base: list[Row], changes: Iterable[Changes]) -> list[str]:
    """Rows of the base after the changes."""
    rows = [text(row) for row in base]
    for change in changes:
        for row in change.before.to_pylist() if change.before is not None else ():
            rows.remove(text(row))
        for row in change.after.to_pylist() if change.after is not None else ():
            rows.append(text(row))
    return sorted(rows)


def text(row: Mapping[str, object]) -> str:
    return repr([row[name] for name in COLUMNS])


def batches(base: list[Row]) -> list[pa.RecordBatch]:
    """The base in batches of two rows."""
    return pa.Table.from_pylist(base, schema=SCHEMA).to_batches(max_chunksize=2)


def entries(log: list[Block], rules: MergeRules) -> list[LogEntry]:
    return [entry(kind, rows, number, rules) for number, (kind, rows) in enumerate(log)]


def entry(kind: str, rows: list[Row], number: int, rules: MergeRules) -> LogEntry:
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    if kind == "rows":
        return LogRows(table)
    if kind == "some":
        names = partial_columns(number)
        return LogRows(table.select(names), frozenset(names))
    ordering = tuple(table.column(name).combine_chunks() for name in rules.ordering_fields)
    return ListedDeletes(
        table.column(KEY).combine_chunks(), ordering, np.array([is_default(row, rules) for row in rows], dtype=bool)
    )


def partial_columns(number: int) -> list[str]:
    return [*ALWAYS, *(("n",), ("text",), ("tags", "n"))[number % 3]]


def told(log: list[Block], rules: MergeRules) -> list[Version]:
    """The log as the reference takes it."""
    found: list[Version] = []
    partial = False
    for number, (kind, rows) in enumerate(log):
        partial = partial or kind == "some"
        for row in rows:
            version = replace(stored(row, rules), after_partial=partial)
            if kind == "deletes":
                default = is_default(row, rules)
                version = replace(version, row=nothing(), delete=True, by_time=default, listed=True)
            elif deletes(row, rules):
                version = replace(version, delete=True, by_time=all(value is None for value in version.ordering))
            if kind == "some":
                names = partial_columns(number)
                version = replace(version, row={**nothing(), **{name: row[name] for name in names}})
                version = replace(version, has=frozenset(names))
            found.append(version)
    return found


def stored(row: Row, rules: MergeRules) -> Version:
    return Version(str(row[KEY]), row, tuple(row[name] for name in rules.ordering_fields))


def nothing() -> Row:
    return dict.fromkeys(COLUMNS)


def is_default(row: Row, rules: MergeRules) -> bool:
    """Which entries of a delete block have no ordering value: those with an `n` of 0, or without any value."""
    return row["n"] == 0 or all(row[name] is None for name in rules.ordering_fields)


def deletes(row: Mapping[str, object], rules: MergeRules) -> bool:
    marked = rules.marker is not None and row[rules.marker.field] == rules.marker.marker
    return bool(row["_hoodie_is_deleted"]) or row["_hoodie_operation"] in ("D", "-U") or marked
