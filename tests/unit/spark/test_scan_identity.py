"""The identity of a scan, by which Spark finds cached rows again: equal rows, and no others."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from hoodie.filters.sql import parse_row_filter
from hoodie.merge import MergeRules, MergeStep
from hoodie.query import ReadPlan
from hoodie.slices import MergeOptions
from hoodie.spark.worker_frame import scan_identity
from hoodie.testing.lake import ROWS, Lake, logged_lake, row

MARKER = (("hoodie.payload.delete.field", "v"), ("hoodie.payload.delete.marker", "gone"))


class Merger:
    """A merger of the user's, with a setting."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        del older
        return newer


@pytest.fixture
def lake(version: int) -> Lake:
    made = logged_lake(version)
    made.upsert(row("a"), row("b"))
    made.upsert(row("a", "gone", ts=2))
    return made


def _identity(lake: Lake, plan: ReadPlan) -> str:
    return scan_identity(lake.storage, plan)


def test_reads_of_the_same_rows_are_one_scan(lake: Lake) -> None:
    plans = [lake.table.read_plan(conditions=()) for _ in range(2)]
    assert len({_identity(lake, plan) for plan in plans}) == 1


def test_reads_that_merge_by_other_rules_are_other_scans(lake: Lake) -> None:
    """Seen as a cached answer to the query before."""
    plain = lake.table.read_plan(conditions=())
    marked = lake.table.read_plan(conditions=(), merge=MergeOptions(MARKER))
    assert plain.files == marked.files
    assert _identity(lake, plain) != _identity(lake, marked)


def test_whatever_workers_are_told_of_rows_is_part_of_it(lake: Lake) -> None:
    plan = lake.table.read_plan(filter="v = 'a'")
    rules = MergeRules(MergeStep(ordered=True), MergeStep(ordered=False), custom=Merger(1))
    assert plan.rows.merge is not None
    plan = replace(plan, rows=replace(plan.rows, merge=replace(plan.rows.merge, rules=rules), images=plan.rows))
    known = _identity(lake, plan)
    changed = list(_changed(plan.rows))
    assert len(changed) > 20
    for what, rows in changed:
        assert _identity(lake, replace(plan, rows=rows)) != known, what


def _changed(value: Any, name: str = "rows") -> Any:
    """`value` with one thing in it changed, for each thing."""
    for field in fields(value):
        own, inner = f"{name}.{field.name}", getattr(value, field.name)
        if is_dataclass(inner):
            for what, other in _changed(inner, own):
                yield what, replace(value, **{field.name: other})
        else:
            yield own, replace(value, **{field.name: _other(inner)})


def _other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return f"{value}!"
        case tuple():
            return (*value, "more")
        case frozenset():
            return value | {"more"}
        case pa.Schema():
            return value.append(pa.field("more", pa.int8()))
        case Merger():
            return Merger(value.factor + 1)
    return parse_row_filter("id = 'x'", ROWS) if value is None else None
