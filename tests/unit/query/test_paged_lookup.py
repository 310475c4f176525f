"""Look-ups in base files that are large enough to be read page by page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.records import page_rows

ROWS = 90_000
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT",
    "hoodie.metadata.enable": "false",
}


def rows(numbers: list[int], ts: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{number:08d}" for number in numbers],
            "number": pa.array([number * ts for number in numbers], pa.int64()),
            "text": [None if number % 7 == 0 else f"t{number % 9}" for number in numbers],
            "ts": pa.array([ts] * len(numbers), pa.int64()),
        }
    )


@pytest.fixture
def table(tmp_path: Path) -> hoodie.Table:
    made = hoodie.Table.create(str(tmp_path / "t"), options=OPTIONS)
    made.bulk_insert(rows(list(range(ROWS)), 1), **OPTIONS)
    return made


def test_keys_and_conditions_find_their_rows_by_pages(table: hoodie.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    matching = page_rows.PagedFile.matching

    def noted(self: page_rows.PagedFile, *args: Any) -> pa.Table | None:
        found = matching(self, *args)
        asked.append(found)
        return found

    monkeypatch.setattr(page_rows.PagedFile, "matching", noted)
    keys = ["k00000000", "k00012345", f"k{ROWS - 1:08d}", "k99999999"]
    found = table.lookup(keys, columns=["number", "text", "id"]).read_all().sort_by("id").to_pylist()
    assert [row["number"] for row in found] == [0, 12345, ROWS - 1]
    assert found[1] == {"number": 12345, "text": "t6", "id": "k00012345"}
    assert sum(one.num_rows for one in asked if one is not None) == 3
    assert table.scan(["number"], "id = 'k00000077' AND number < 80").read_all().to_pydict() == {"number": [77]}
    assert table.scan(["number"], "id IN ('k00000077', 'k00020001') AND text IS NULL").read_all().num_rows == 1
    assert table.scan(["id"], "id = 'nobody'").read_all().num_rows == 0


def test_changed_rows_are_found_as_they_are_now(table: hoodie.Table) -> None:
    table.upsert(rows([5, 20_000, ROWS + 1], 2), **OPTIONS)
    table.delete(rows([6], 3).select(["id", "ts"]), **OPTIONS)
    keys = [f"k{number:08d}" for number in (5, 6, 7, 20_000, ROWS + 1)]
    found = table.lookup(keys, columns=["number"]).read_all().column(0).to_pylist()
    assert sorted(found) == [7, 10, 40_000, 2 * (ROWS + 1)]
