"""Every kind of metadata index keeps the promises of the protocol, also one that is added by a module and a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pyarrow as pa
import pytest

from hoodie.metadata import FileOf, IndexDefinition
from hoodie.metadata.bloom_filters import BLOOM
from hoodie.metadata.keys import bloom_filter_key
from hoodie.metadata_writer import (
    IndexContext,
    IndexRequest,
    MetadataIndex,
    MetadataIndexKind,
    MetadataRecords,
    TableUpdate,
    bloom_filters_index,
    column_stats_index,
    expression_index,
    partition_stats_index,
    record_index,
    secondary_index,
)
from hoodie.metadata_writer.data_files import DataFile, committed_files, written_files
from hoodie.metadata_writer.index_check import CheckedTable, IndexCheck, SliceShown, Trouble, index_path
from hoodie.metadata_writer.indexes import bloom_filters, column_stats, files, partition_stats, registry
from hoodie.metadata_writer.indexes import expression_index as expressions
from hoodie.metadata_writer.indexes import record_index as records
from hoodie.metadata_writer.indexes import secondary_index as secondaries
from hoodie.metadata_writer.indexes.bloom_filters import StoredFilter, filter_rows
from hoodie.metadata_writer.metadata_index import group_file_ids
from hoodie.records import read_footer
from hoodie.testing.index_records import ensure_true, stored_records
from hoodie.testing.lake import Lake, row
from hoodie.testing.metadata_index_contract import MetadataIndexContract
from hoodie.view import BaseFile, FileSlice

pytestmark = pytest.mark.sampled(4)

NEW = (8, 9)


class TestFiles(MetadataIndexContract):
    kind = files.KIND


class TestColumnStats(MetadataIndexContract):
    kind = column_stats.KIND
    definition = column_stats_index("v")


class TestPartitionStats(MetadataIndexContract):
    kind = partition_stats.KIND
    definition = partition_stats_index()
    versions = NEW


class TestBloomFilters(MetadataIndexContract):
    kind = bloom_filters.KIND
    definition = bloom_filters_index()


class TestRecordIndex(MetadataIndexContract):
    kind = records.KIND
    definition = record_index()


class TestPartitionedRecordIndex(MetadataIndexContract):
    kind = records.KIND
    definition = record_index(partitioned=True)
    versions = NEW


class TestSecondaryIndex(MetadataIndexContract):
    kind = secondaries.KIND
    definition = secondary_index("v", "v")
    versions = NEW


class TestExpressionIndexOfRanges(MetadataIndexContract):
    kind = expressions.KIND
    definition = expression_index("up", "v", "upper")
    versions = NEW


class TestExpressionIndexOfFilters(MetadataIndexContract):
    kind = expressions.KIND
    definition = expression_index("len", "v", "length", using="bloom_filters")
    versions = NEW


ROW_COUNTS = "row_counts"


class RowCounts(MetadataIndex):
    """An index that Hudi does not have: how many rows a base file has, as the text of a record of `bloom_filters`."""

    partition = ROW_COUNTS

    def file_ids(self, context: IndexContext) -> tuple[str, ...]:
        return group_file_ids("row-counts-", 2)

    def initial(self, context: IndexContext) -> Iterator[MetadataRecords]:
        yield MetadataRecords(ROW_COUNTS, _counted(context, committed_files(context)))

    def updated(self, context: IndexContext, update: TableUpdate) -> Iterator[MetadataRecords]:
        gone = [
            bloom_filter_key(partition, name.rpartition("/")[2])
            for partition, names in update.deleted.items()
            for name in names
        ]
        yield MetadataRecords(ROW_COUNTS, _counted(context, written_files(update)), pa.array(gone, pa.string()))

    def check(self, table: CheckedTable) -> IndexCheck:
        return RowCountsCheck(table)


class RowCountsCheck(IndexCheck):
    def __init__(self, table: CheckedTable) -> None:
        found = table.metadata.records(ROW_COUNTS).to_pylist()
        self._counts = {record["key"]: int(record[BLOOM]["bloomFilter"]) for record in found}

    def columns(self, part: FileSlice) -> tuple[str, ...] | None:
        return None if part.logs else ()

    def compare(self, shown: SliceShown) -> Iterator[Trouble]:
        if shown.part.base is not None and not shown.part.logs:
            file = FileOf(shown.part.partition, shown.part.base.path.rpartition("/")[2])
            if self._counts.get(bloom_filter_key(file.partition, file.name)) != shown.rows.num_rows:
                yield index_path(ROW_COUNTS), f"does not know the rows of {file.name}"


class RowCountsKind(MetadataIndexKind):
    name = ROW_COUNTS

    def open(self, partition: str, context: IndexContext) -> RowCounts:
        return RowCounts()

    def described(self, request: IndexRequest) -> IndexDefinition | None:
        return IndexDefinition(ROW_COUNTS, ROW_COUNTS) if request.name == ROW_COUNTS else None


def _counted(context: IndexContext, written: list[DataFile]) -> pa.Table:
    storage = context.handle.storage
    return filter_rows(
        [
            StoredFilter(
                bloom_filter_key(file.partition, file.name),
                "ROWS",
                str(read_footer(storage, file.file.path).rows),
                file.file.name.instant,
            )
            for file in written
            if isinstance(file.file, BaseFile)
        ]
    )


IMAGINARY = RowCountsKind()


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line a new kind needs outside of its module."""
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, IMAGINARY))


@pytest.mark.usefixtures("registered")
class TestAKindThatIsAddedByOneModuleAndOneLine(MetadataIndexContract):
    kind: ClassVar[MetadataIndexKind] = IMAGINARY
    definition = IndexDefinition(ROW_COUNTS, ROW_COUNTS)
    versions = NEW


@pytest.mark.usefixtures("registered")
def test_users_name_such_an_index_and_validate_finds_what_it_says_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(9)
    lake.upsert(row("a"), row("b", part="q"))
    assert lake.table.indexes.create(ROW_COUNTS).records == 2
    lake.upsert(row("c"))
    ensure_true(lake)
    assert len(stored_records(lake, ROW_COUNTS)) == 3
    monkeypatch.setattr(RowCounts, "updated", lambda *_: ())
    lake.upsert(row("d"))
    assert [finding.kind for finding in lake.table.validate()] == ["index"]
    lake.table.indexes.rebuild(ROW_COUNTS)
    assert lake.table.validate() == []
    assert lake.table.indexes.drop(ROW_COUNTS) == (ROW_COUNTS,)


def test_a_table_loses_an_index_of_a_kind_that_is_not_registered_here(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(9)
    lake.upsert(row("a"))
    with monkeypatch.context() as patch:
        patch.setattr(registry, "KINDS", (*registry.KINDS, IMAGINARY))
        lake.table.indexes.create(ROW_COUNTS)
    lake.upsert(row("b"))
    assert ROW_COUNTS not in lake.table.indexes
    assert lake.values() == {"a": "a", "b": "a"}


def test_every_kind_is_held_to_the_contract() -> None:
    held = {id(part.kind) for part in MetadataIndexContract.__subclasses__()}
    assert {id(kind) for kind in registry.KINDS} <= held
