"""What the metadata table asks of its indexes, whichever they are: a `MetadataIndexKind` is registered once, a
`MetadataIndex` is one index of one table. The list of files is an index, too.

1. An index turns the table's files (initially) or what an action did to them (for every update) into records. It does
   not write: which file group a record goes to is the kind's to say, in which file is decided by who asks.
2. Records are rows in the Avro columns of `metadata_record_schema`, `key` first; columns that are absent are
   null. `type` must be there. Keys are distinct within one `MetadataRecords` and across all of one update.
3. Few records are made at once, by the driver. Many are described as `RecordTask`s, which run where the engine says;
   their records never pass through the driver.
4. After every action an index says what the same index made anew would say. What a commit that never completes has
   recorded counts for nobody; an action that is repeated is recorded again.

Kinds and indexes hold no state. They are asked by one thread, which holds the table lock (a first build and `validate`
do not), and store nothing: a crash between two calls leaves what the caller stored. Damage and refusals of storage are
raised as they come. Kinds are modules of `indexes`, listed in `indexes.registry`; they are not loaded from outside.
Contract: `hoodie.testing.metadata_index_contract.MetadataIndexContract`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.config import Config
from hoodie.errors import Invalid
from hoodie.metadata import IndexDefinition, group_of_keys
from hoodie.metadata_writer.file_facts import IndexNeeds
from hoodie.metadata_writer.index_check import CheckedTable, IndexCheck
from hoodie.metadata_writer.index_context import IndexContext
from hoodie.metadata_writer.indexed_columns import ensure_columns
from hoodie.metadata_writer.update import TableUpdate
from hoodie.spec import WriteStat
from hoodie.state.handle import TableHandle

NO_KEYS = pa.array([], pa.string())


@dataclass(frozen=True, slots=True, eq=False)
class MetadataRecords:
    """What one partition of the metadata table gets in one delta commit, or a part of it.

    `rows`: records to put, `key` (string) first. `deletes`: keys (string) to delete. `data_partition`: the partition of
    the table that all of them are about, said for partitioned record indexes only, whose file groups it chooses.
    """

    partition: str
    rows: pa.Table
    deletes: pa.Array = field(default_factory=lambda: NO_KEYS)
    data_partition: str = ""

    def __len__(self) -> int:
        return int(self.rows.num_rows) + len(self.deletes)


@dataclass(frozen=True, slots=True, eq=False)
class RecordTask:
    """Records that are still to be made: `make(argument)`, a module-level function with a picklable value."""

    make: Callable[[Any], MetadataRecords]
    argument: Any


Records: TypeAlias = MetadataRecords | RecordTask


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """An index as `Table.indexes.create` asks for it. `options`: those of its function."""

    name: str
    columns: tuple[str, ...] = ()
    function: str | None = None
    using: str = ""
    partitioned: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


class MetadataIndex(Protocol):
    """One index of a table: one partition of its metadata table."""

    @property
    def partition(self) -> str:
        """Name of the partition: `files`, `column_stats`, `secondary_index_x` ..."""
        ...

    def file_ids(self, context: IndexContext) -> tuple[str, ...]:
        """File ids of the groups to make when the partition is initialised; see `group_file_ids`."""
        ...

    def initial(self, context: IndexContext) -> Iterable[Records]:
        """Records of everything the table holds now (committed files only: `context.view()`)."""
        ...

    def updated(self, context: IndexContext, update: TableUpdate) -> Iterable[Records]:
        """Records of what an action changed; nothing when it concerns the index in no way."""
        ...

    def new_file_ids(self, context: IndexContext, update: TableUpdate) -> tuple[str, ...]:
        """File ids of groups to add before the records of an action are written; by default none, ever."""
        del context, update
        return ()

    def ensure_initialised(self, metadata: TableHandle, stats: Sequence[WriteStat], config: Config) -> None:
        """Checks the base files `stats` of the metadata table that the initial records went to, where options ask for
        that. Called before anybody may use the index.

        Raises:
            Invalid: the index would be wrong.
        """
        del metadata, stats, config

    def check(self, table: CheckedTable) -> IndexCheck | None:
        """What compares the index with the rows of the table for `validate`; None: nothing does."""
        ...


class MetadataIndexKind(Protocol):
    """What one kind of index says of itself; what most kinds say is said here. `name` is that of its partition, or
    (`is_named`) what those of its indexes begin with, whose names users give. `needs`: the kinds (by name) without
    which an index of this one is of no use; they are made before it and dropped with it. `adds_groups`: file groups
    come with actions (`MetadataIndex.new_file_ids`), and there may be none at first. `one_per_columns`: a second index
    of the same columns is the same index by another name. `option`: the one that makes and drops the index of a whole
    table; empty where there is none. `is_defined`: a definition of it is stored.
    """

    name: str
    is_named: bool = False
    needs: tuple[str, ...] = ()
    adds_groups: bool = False
    one_per_columns: bool = False
    option: str = ""
    is_defined: bool = True

    def open(self, partition: str, context: IndexContext) -> MetadataIndex | None:
        """The index of a partition. None: it cannot be maintained here, and has to go."""
        ...

    def owns(self, partition: str) -> bool:
        """Whether a partition is of this kind."""
        return partition.startswith(self.name) if self.is_named else partition == self.name

    # What options and users ask for

    def switch(self, context: IndexContext) -> str:
        """The option that makes and drops the index as it is now: `option`, unless there are several forms of it."""
        del context
        return self.option

    def is_wanted(self, context: IndexContext) -> bool:
        """Whether a write with these options makes the index where it is not there; never one with a name."""
        switch = self.switch(context)
        return bool(switch) and context.options.config.flag(switch)

    def is_outdated(self, context: IndexContext) -> bool:
        """Whether options ask for another index than the one there is, which is made anew then."""
        del context
        return False

    def requested(self, config: Config) -> IndexDefinition | None:
        """The index with a name that options ask for.

        Raises:
            Invalid, Unsupported: there can be none like it.
        """
        del config
        return None

    def described(self, request: IndexRequest) -> IndexDefinition | None:
        """The definition of an index that somebody describes; None: that is of another kind.

        Raises:
            Invalid, Unsupported: there can be none like it.
        """
        del request
        return None

    def satisfies(self, known: IndexDefinition, wanted: IndexDefinition) -> bool:
        """Whether an index there is, is the one that options ask for by the same name."""
        is_same = (known.kind, known.source_fields) == (wanted.kind, wanted.source_fields)
        return is_same and known.options.items() >= wanted.options.items()

    def ensure_possible(self, handle: TableHandle, definition: IndexDefinition | None) -> None:
        """Checks that the table can have the index, whatever its columns are. `definition`: as it shall be, if it has
        one.

        Raises:
            Invalid, Unsupported: it cannot.
        """
        del handle, definition

    def ensure_needs(self, context: IndexContext, wanted: Collection[str]) -> None:
        """Checks that an index with a name which options ask for will have what it needs. `wanted`: the partitions they
        ask for.

        Raises:
            Invalid: it will not.
        """
        del context, wanted

    def ensure_columns(self, schema: pa.Schema, definition: IndexDefinition) -> None:
        """Checks that the columns of the index are there and can be indexed.

        Raises:
            Invalid: one is not there. Unsupported: one cannot be indexed.
        """
        ensure_columns(schema, definition.source_fields)

    # Definitions in `.hoodie/.index_defs`

    def definition(self, context: IndexContext) -> IndexDefinition | None:
        """The definition of the index as options would make it, or as it was; None: it has none, or who names it says
        it.
        """
        del context
        return None

    def stored(self, described: IndexDefinition, made: IndexDefinition | None, version: str) -> IndexDefinition | None:
        """What is stored of a definition that somebody described; `made`: that of `definition`. None: nothing is."""
        del made
        return replace(described, version=version) if self.is_defined else None

    def definition_after(self, context: IndexContext, update: TableUpdate, known: IndexDefinition) -> IndexDefinition:
        """The definition the index has after an action."""
        del context, update
        return known

    def recovered(self, handle: TableHandle) -> IndexDefinition | None:
        """What the files of the index tell of its definition, when that is lost; None: nothing that has to be said."""
        del handle
        return None

    # Keys and file groups

    def groups_of(
        self, keys: pa.Array, file_ids: Sequence[str], definition: IndexDefinition | None, data_partition: str
    ) -> npt.NDArray[np.int64]:
        """For each key the place of its group in `file_ids`, all groups of the partition in order.

        Raises:
            Invalid: there is no group for such a key.
        """
        del definition, data_partition
        return group_of_keys(keys, len(file_ids))

    # What write tasks bring back

    def file_needs(self, context: IndexContext, update: TableUpdate) -> IndexNeeds:
        """What the index needs to know of files that are being written, so that nobody reads them again for it."""
        del context, update
        return IndexNeeds()


def group_file_ids(prefix: str, count: int) -> tuple[str, ...]:
    """File ids of `count` groups: `<prefix><%04d number>-0`."""
    return tuple(f"{prefix}{number:04d}-0" for number in range(count))


def prefixed(prefix: str, name: str) -> str:
    """The partition of an index that is called `name`, with or without the prefix of its kind.

    Raises:
        Invalid: there is no name.
    """
    if not name:
        raise Invalid("An index needs a name")
    return name if name.startswith(prefix) else prefix + name
