"""Every write index keeps the promises of the protocol, each with tables of the kinds it is for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import ClassVar

import pytest

from hoodie.index import IndexTraits, PlainIndex, hbase_index
from hoodie.index.index_kinds import INDEX_KINDS
from hoodie.index.simple_index import SimpleIndexedWrite
from hoodie.testing.hbase_table import HBaseTable
from hoodie.testing.write_index_contract import MERGE, WriteIndexContract

pytestmark = pytest.mark.sampled(3)

METADATA = {"hoodie.metadata.enable": "true"}
GLOBAL_RECORDS = {**METADATA, "hoodie.metadata.global.record.level.index.enable": "true"}
PARTITIONED_RECORDS = {**METADATA, "hoodie.metadata.record.level.index.enable": "true"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}


class TestSimpleIndex(WriteIndexContract):
    options: ClassVar = {"hoodie.index.type": "SIMPLE"}


class TestGlobalSimpleIndex(WriteIndexContract):
    options: ClassVar = {"hoodie.index.type": "GLOBAL_SIMPLE"}


class TestBloomIndex(WriteIndexContract):
    options: ClassVar = {"hoodie.index.type": "BLOOM"}


class TestBloomIndexByMetadata(WriteIndexContract):
    options: ClassVar = {
        **METADATA,
        "hoodie.index.type": "BLOOM",
        "hoodie.bloom.index.use.metadata": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
    }


class TestGlobalBloomIndex(WriteIndexContract):
    options: ClassVar = {"hoodie.index.type": "GLOBAL_BLOOM"}


class TestRecordIndex(WriteIndexContract):
    options: ClassVar = {**GLOBAL_RECORDS, "hoodie.index.type": "RECORD_INDEX"}


class TestRecordIndexThatIsNotThere(WriteIndexContract):
    options: ClassVar = {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.enable": "false"}


class TestRecordIndexByPartition(WriteIndexContract):
    options: ClassVar = {**PARTITIONED_RECORDS, "hoodie.index.type": "RECORD_LEVEL_INDEX"}
    versions = (8, 9)


class TestSimpleBucketIndex(WriteIndexContract):
    options: ClassVar = BUCKETS


class TestConsistentBucketIndex(WriteIndexContract):
    options: ClassVar = {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
    table_types = (MERGE,)


class TestInMemoryIndex(WriteIndexContract):
    options: ClassVar = {"hoodie.index.type": "INMEMORY"}


class TestHBaseIndex(WriteIndexContract):
    options: ClassVar = {
        "hoodie.index.type": "HBASE",
        "hoodie.index.hbase.table": "places",
        "hoodie.index.hbase.zkquorum": "anywhere",
    }

    @pytest.fixture(autouse=True)
    def in_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        table = HBaseTable()
        monkeypatch.setattr(hbase_index, "Gateway", lambda host, port, name: table)


class ReadsFiles(PlainIndex):
    """An index of a caller's own."""

    traits = IndexTraits("READS_FILES")

    def __init__(self, config: object, table: object) -> None:
        del config, table

    def begin(self, table: object, rows: object) -> SimpleIndexedWrite:
        del rows
        return SimpleIndexedWrite(self.traits, table)  # type: ignore[arg-type]


class TestIndexOfTheCallersOwn(WriteIndexContract):
    options: ClassVar = {"hoodie.index.class": "an_index_of_ones_own:ReadsFiles"}

    @pytest.fixture(autouse=True)
    def module(self) -> Iterator[None]:
        module = ModuleType("an_index_of_ones_own")
        module.ReadsFiles = ReadsFiles  # type: ignore[attr-defined]
        sys.modules[module.__name__] = module
        yield
        del sys.modules[module.__name__]


def test_every_kind_is_held_to_the_contract() -> None:
    chosen = {part.options.get("hoodie.index.type") for part in WriteIndexContract.__subclasses__()}
    assert set(INDEX_KINDS) <= chosen
