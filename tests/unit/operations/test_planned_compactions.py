"""Rows that are written while a compaction is planned for their file group."""

from __future__ import annotations

import pytest

from hoodie.testing.lake import Lake, row


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("revive", ["upsert", "insert"])
def test_a_key_that_comes_back_while_a_compaction_without_it_is_planned_stands_once(version: int, revive: str) -> None:
    options = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
    lake = Lake(version, {**options, "hoodie.table.ordering.fields": None})
    lake.upsert(row("a"), row("b"))
    lake.write("delete", [row("a")])
    plan = lake.table.services.schedule_compaction()
    assert plan is not None
    lake.write(revive, [row("a", "8", 2)])
    assert sorted(key for key, _ in lake.rows()) == ["a", "b"]
    lake.upsert(row("a", "again", 2))
    lake.table.services.compact(plan.requested)
    lake.upsert(row("a", "9", 3))
    assert sorted(key for key, _ in lake.rows()) == ["a", "b"]
    lake.write("delete", [row("a")])
    assert [key for key, _ in lake.rows()] == ["b"]
