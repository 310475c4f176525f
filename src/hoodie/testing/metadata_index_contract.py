"""What every kind of metadata index must do. Test modules subclass it with the kind and an index of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import Invalid
from hoodie.metadata import IndexDefinition
from hoodie.metadata.partitions import data_partition_groups
from hoodie.metadata_writer import MetadataIndexKind, RecordTask, TableUpdate, build_index, drop_index
from hoodie.metadata_writer.delta_commit import split
from hoodie.metadata_writer.indexes import registry
from hoodie.metadata_writer.indexes.registry import index_of, kind_of
from hoodie.testing.index_records import ensure_true, index_context, initial_records, stored_records
from hoodie.testing.lake import Lake, row

ENGINE = LocalEngine(1)
SERVICES = {
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.compact.max.delta.commits": "50",  # what it has merged no rollback takes back
}


class MetadataIndexContract:
    """Subclass it with `kind` and `definition`, an index of that kind on the column `v` (None: tables have it anyway);
    `versions` are those of tables that can have it.
    """

    kind: ClassVar[MetadataIndexKind]
    definition: ClassVar[IndexDefinition | None] = None
    versions: ClassVar[tuple[int, ...]] = (6, 8, 9)

    @pytest.fixture(
        params=[(version, table_type) for version in (6, 8, 9) for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ")],
        ids=str,
    )
    def lake(self, request: pytest.FixtureRequest) -> Iterator[Lake]:
        """A table with the index, and rows written before and after it was made."""
        version, table_type = request.param
        if version not in self.versions:
            pytest.skip("tables of the version cannot have the index")
        made = Lake(version, {**SERVICES, "hoodie.datasource.write.table.type": table_type})
        made.upsert(row("a"), row("b", None), row("c", "c", part="q"))
        if self.definition is not None:
            if self.partition in made.table.indexes:  # as every table of the version has it, of its first columns
                drop_index(made.handle(), self.partition)
            build_index(made.handle(), self.definition, ENGINE, resolve(made.options))
        made.upsert(row("a", "z", 2), row("d", "0"), row("e", "e", part="r"))
        yield made
        made.table.drop()

    @property
    def partition(self) -> str:
        return self.kind.name if self.definition is None else self.definition.name

    def test_one_kind_owns_the_partition(self) -> None:
        assert [kind for kind in registry.KINDS if kind.owns(self.partition)] == [self.kind]
        assert kind_of(self.partition) is self.kind

    def test_a_kind_comes_behind_those_it_needs(self) -> None:
        names = [kind.name for kind in registry.KINDS]
        assert all(names.index(needed) < names.index(self.kind.name) for needed in self.kind.needs)

    def test_it_says_after_every_action_what_it_would_say_made_anew(self, lake: Lake) -> None:
        ensure_true(lake)
        lake.write("delete", [row("a"), row("c", part="q")])
        ensure_true(lake)
        lake.write("insert_overwrite", [row("n", "n", part="r")])
        ensure_true(lake)
        if lake.options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ":
            lake.table.services.compact()
            ensure_true(lake)
        lake.upsert(row("b", "far", 9), row("new", "x", part="new"))
        newest = lake.table.timeline().last_completed_write()
        assert newest is not None
        lake.table.services.rollback(newest.requested)
        ensure_true(lake)
        lake.table.services.clean(**{"hoodie.clean.commits.retained": "1"})
        lake.upsert(row("b", "again", 10))
        ensure_true(lake)

    def test_every_record_has_a_file_group(self, lake: Lake) -> None:
        context = index_context(lake)
        index = index_of(self.partition, context)
        assert index is not None
        file_ids = index.file_ids(context)
        assert len(set(file_ids)) == len(file_ids)
        assert sum(len(groups) for groups in data_partition_groups(file_ids).values()) == len(file_ids)
        generation, found = context.handle.profile.avro_generation, 0
        for records in index.initial(context):
            made = records.make(records.argument) if isinstance(records, RecordTask) else records
            parts = split(made, {self.partition: tuple(sorted(file_ids))}, context.definitions, generation)
            assert all(0 <= place < len(file_ids) for place, _ in parts)
            found += sum(part.num_rows for _, part in parts)
        assert found == len(stored_records(lake, self.partition)) == len(initial_records(lake, self.partition)) > 0

    def test_its_definition_is_that_of_the_file(self, lake: Lake) -> None:
        known = lake.metadata().definitions.get(self.partition)
        made = self.kind.definition(index_context(lake))
        version = lake.handle().profile.indexes.version
        if self.definition is not None:
            made = self.kind.stored(self.definition, made, version)
        assert known == made
        if known is not None:
            after = self.kind.definition_after(index_context(lake), TableUpdate("1", "commit"), known)
            assert after == known

    def test_being_asked_stores_nothing(self, lake: Lake) -> None:
        before, context = lake.files(), index_context(lake)
        index = index_of(self.partition, context)
        assert index is not None
        update = TableUpdate(lake.table.timeline().last_time() or "", "clean", deleted={"p": ("x.parquet",)})
        list(index.initial(context))
        list(index.updated(context, update))
        self.kind.file_needs(context, update)
        self.kind.recovered(context.handle)
        assert lake.files() == before

    def test_validate_has_nothing_against_it(self, lake: Lake) -> None:
        assert lake.table.validate() == []

    def test_it_can_be_described_built_once_and_dropped_with_what_it_needs(self, lake: Lake) -> None:
        if self.definition is None:
            with pytest.raises(Invalid):
                drop_index(lake.handle(), self.partition)
            return
        with pytest.raises(Invalid, match="already"):
            build_index(lake.handle(), self.definition, ENGINE)
        dropped = drop_index(lake.handle(), (*self.kind.needs, self.partition)[0])
        assert self.partition in dropped
        assert self.partition not in lake.table.indexes
        lake.upsert(row("a", "later", 11))
        assert lake.table.validate() == []

    def test_an_index_of_the_same_definition_is_the_one_that_is_wanted(self) -> None:
        if self.definition is not None:
            other = replace(self.definition, source_fields=("another",))
            assert self.kind.satisfies(self.definition, self.definition)
            assert not self.kind.satisfies(self.definition, other)
