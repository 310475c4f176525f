"""Lance base files are not damaged: they are told from their names, and refused with what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hoodie.errors import Unsupported
from hoodie.query.validate import validate_table
from hoodie.records import read_columns, read_footer
from hoodie.table import Table
from hoodie.testing.hand_table import HandTable, at
from hoodie.testing.lake import Awake, table_of

LANCE = b"\x00" * 64 + b"\x00\x00\x02\x00LANC"
"""What the end of such a file looks like: versions and the magic bytes."""
OF_THE_COMMIT = ("missing", "unlisted")
"""What is found because the commit names a parquet file."""
READS: list[dict[str, Any]] = [
    {},
    {"columns": ()},
    {"filter": "qty > 1"},
    {"as_of": at(1)},
    {"query": "incremental", "begin": "earliest"},
]


@pytest.fixture(name="table")
def _table(profile) -> HandTable:
    """A table of one commit; its base file is a Lance file, as its properties say."""
    table = HandTable(profile, choices={"base_file_format": "LANCE"})
    table.commit(at(1), {("p", "f"): [{"id": "a", "part": "p", "qty": 1}]})
    for file in [one for one in table.storage.list("") if one.path.endswith(".parquet")]:
        table.storage.put(file.path.replace(".parquet", ".lance"), LANCE)
        table.storage.delete(file.path)
    return table


def lance_path(table: HandTable) -> str:
    return next(file.path for file in table.storage.list("p") if file.path.endswith(".lance"))


def ensure_refused(read: Callable[[], object], path: str) -> None:
    with pytest.raises(Unsupported, match="is a Lance file") as caught:
        read()
    assert caught.value.facts["path"] == path
    assert "Apache Hudi" in (caught.value.remedy or "")


@pytest.mark.parametrize("read", READS, ids=str)
def test_rows_of_a_lance_file_are_refused_with_cause_and_remedy(table, rows, read) -> None:
    ensure_refused(lambda: rows(table, **read), lance_path(table))


def test_a_file_is_told_by_its_name_whatever_the_properties_say(profile, rows) -> None:
    table = HandTable(profile)
    table.commit(at(1), {("p", "f"): [{"id": "a", "part": "p", "qty": 1}]})
    path = table.path_of(at(1), "p", "f")
    table.storage.put(path.replace(".parquet", ".lance"), LANCE)
    table.storage.delete(path)
    ensure_refused(lambda: rows(table), lance_path(table))


def test_footers_and_columns_are_refused(table) -> None:
    path = lance_path(table)
    ensure_refused(lambda: read_footer(table.storage, path), path)
    ensure_refused(lambda: read_columns(table.storage, path, ["id"]), path)


def test_what_needs_no_base_file_works(table) -> None:
    opened = Table.open(table.storage.uri, env=Awake())
    assert [one.base.path for one in opened.files()] == [lance_path(table)]
    assert [one.requested for one in opened.timeline().completed_writes()] == [at(1)]


def test_validate_says_that_the_file_is_a_lance_file(table) -> None:
    (found,) = [one for one in validate_table(table.handle) if one.kind not in OF_THE_COMMIT]
    assert (found.kind, found.path) == ("unreadable", lance_path(table))
    assert "is a Lance file" in found.message


def test_writes_are_refused_before_anything_changes(table) -> None:
    before = {info.path for info in table.storage.list("")}
    opened = Table.open(table.storage.uri, env=Awake())
    with pytest.raises(Unsupported, match="has LANCE base files"):
        opened.upsert(table_of([{"id": "b", "part": "p", "ts": 1, "v": "b"}]))
    assert {info.path for info in table.storage.list("")} == before
