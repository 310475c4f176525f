"""What a write asks of its index: where the keys of its rows are stored, and where its new rows go.

1. A `WriteIndex` is a value made from options before anything is read. Its `traits` steer the write: a write looks at
   them and never at which index it has.
2. `WriteIndex.begin` gives the index at work on one write, an `IndexedWrite`. It is asked in this order, each at most
   once, by one thread, which holds the table lock: `tag`, `assign`, `before_write`, `before_commit` (again where the
   commit is tried again), `after_commit`.
3. `tag` may be wrong in one direction only: it names more slices than have the keys. Key columns are read where it does
   not vouch for candidates (`Candidate.vouched`; in merge-on-read tables for all of a write, or for none). A slice that
   has a key and is not named makes the key stand twice.
4. Nothing in a table says for sure which index it is written with. Whatever an index stores is held against timeline
   and view when it is read again.

How files are made of the answers is the business of `hoodie.write`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from hoodie.engine import Engine
from hoodie.index.buckets import Buckets
from hoodie.index.keyed_rows import KeyedRows, KeySet, Positions
from hoodie.records import BloomFilter, KeyGenerator
from hoodie.spec import InstantTime
from hoodie.state.handle import TableHandle
from hoodie.storage import Storage
from hoodie.timeline import Timeline
from hoodie.view import FileSlice, View


@dataclass(frozen=True, slots=True)
class IndexTraits:
    """What a write has to know of its index before it asks it.

    `name`: what it is called in messages. `is_global`: a key is unique in the table, not only in its partition; with
    `moves_partitions` a key that comes with another partition path moves there. `inserts_to_logs`: new rows of a
    merge-on-read table may go to log files, since `tag` finds them there, whoever writes next. `tells_stored_keys`: it
    finds out whether a key is stored, not only where it would be. `assigns_groups`: it says where new rows go
    (`IndexedWrite.assign`). `follows_keys`: it wants to hear where the keys of a write went. `joins_commit`: it has to
    know that before the write completes (`IndexedWrite.before_commit`).
    """

    name: str
    is_global: bool = False
    moves_partitions: bool = False
    inserts_to_logs: bool = False
    tells_stored_keys: bool = True
    assigns_groups: bool = False
    follows_keys: bool = False
    joins_commit: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class IndexedTable:
    """A table as one write found it.

    `view` has the file groups the write knows of: all, if the index is global, else those of the partitions of its
    rows. `slices_of` has the live ones of each partition that has any. `replaced`: partitions whose file groups the
    write takes the place of. `is_new`: the table takes the place of one of another kind, whose files are still there.
    `generator` makes the keys of rows where files have no key column. `local` runs tasks in this process, `spread`
    where the work of the write is done.
    """

    handle: TableHandle
    timeline: Timeline
    instant: InstantTime
    view: View
    slices_of: Mapping[str, Sequence[FileSlice]]
    local: Engine
    spread: Engine
    replaced: frozenset[str] = frozenset()
    is_new: bool = False
    generator: KeyGenerator | None = None

    @property
    def slices(self) -> tuple[FileSlice, ...]:
        """The live slices of all partitions."""
        return tuple(itertools.chain.from_iterable(self.slices_of.values()))


def group_by_partition(slices: Iterable[FileSlice]) -> dict[str, list[FileSlice]]:
    """The slices of each partition, in their order."""
    found: dict[str, list[FileSlice]] = {}
    for piece in slices:
        found.setdefault(piece.partition, []).append(piece)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A slice and incoming keys that may be stored in it.

    `vouched`: positions of rows whose keys the slice is the one for (stored or to be stored), those of `keys`; None
    where the index does not know. `by_bloom` and `by_range`: whether the footer of the base file can rule keys out.
    `bloom` is its bloom filter, where somebody has it: a file without any of the keys is then not opened.
    """

    slice: FileSlice
    keys: KeySet
    vouched: Positions | None = None
    by_bloom: bool = False
    by_range: bool = False
    bloom: BloomFilter | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """New rows of one partition and the slice they go to, or the file id of the group that is made for them."""

    partition: str
    positions: Positions
    slice: FileSlice | None
    new_file_id: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class WrittenGroup:
    """What a write did to a file group: positions of the rows that were inserted into it, of those that changed rows
    stored there, and of those whose keys were taken away from it. A row that says it is a delete counts as a change.
    """

    partition: str
    file_id: str
    inserted: Positions
    updated: Positions
    dropped: Positions


class IndexedWrite(Protocol):
    """An index at work on one write. See the top of the module for the order in which it is asked."""

    def tag(self, asked: KeyedRows) -> Sequence[Candidate]:
        """Where the keys of the asked rows may be stored; `asked` has one row for each key, some of those of `begin`.

        Raises:
            Invalid: some of the table's keys are where this index does not look.
        """
        ...

    def assign(self, inserts: Mapping[str, Positions]) -> Sequence[Assignment] | None:
        """Where new rows go, each once; `inserts` has their positions by partition path. None leaves it to the sizes of
        files. Asked only if the index `assigns_groups`.
        """
        ...

    def before_write(self) -> None:
        """Stores what has to be there before the first file is. The instant is inflight. A crash after it leaves what
        was stored: it must not count until the instant has completed, or say only what was true before.
        """
        ...

    def before_commit(self, groups: Sequence[WrittenGroup]) -> None:
        """Stores what a completed write must not be without. Nothing counts before the instant has completed: whatever
        is stored says of which instant it is. Asked only if the index `joins_commit`.

        Raises:
            HudiError: it could not; the write does not complete.
        """
        ...

    def withdraw(self) -> None:
        """Takes back what `before_commit` has stored, if it has: the write failed. An error is logged."""
        ...

    def after_commit(self, groups: Sequence[WrittenGroup]) -> None:
        """Stores what follows from a write that has completed; `groups` is empty unless the index `follows_keys`.

        A crash before it leaves a completed write of which the index has not heard, and so does an error raised here:
        the write stands, and the error is logged.
        """
        ...


@runtime_checkable
class WriteIndex(Protocol):
    """How the file of an incoming key is found. Anybody may implement it: a class of a caller's own is named by
    `hoodie.index.class` and made with the options of the call and the table's config; `PlainIndex` and
    `PlainIndexedWrite` do what most need not think of. It is asked by one thread at a time.
    `hoodie.testing.write_index_contract` says what it must do.
    """

    @property
    def traits(self) -> IndexTraits:
        """What a write has to know before it asks."""
        ...

    def spool_order(self) -> Buckets | None:
        """How rows of a large input are laid apart, so that who wants those of a bucket reads no others; or None."""
        ...

    def begin(self, table: IndexedTable, rows: KeyedRows) -> IndexedWrite:
        """The index at work on the write of `rows` (all of them, also several of a key). May read, stores nothing.

        Raises:
            Invalid: the table was written with another index, in a way this one cannot go on from.
        """
        ...


@runtime_checkable
class RollsBack(Protocol):
    """A write index of a caller's own that wants to hear of rollbacks (those of other kinds say it in `IndexKind`)."""

    def roll_back(self, storage: Storage, instant: InstantTime) -> None:
        """Takes back what was stored for an instant of the table in `storage`, whose files are gone already.

        Asked by rollbacks and restores whose options name the class, perhaps twice, and about instants of writes with
        other indexes. One that is begun without the option does not ask: this is for giving back, and what is stored
        must be held against timeline and view all the same. An error is logged; the rollback goes on.
        """
        ...


@dataclass(frozen=True, slots=True)
class MovedFile:
    """A new base file with rows of other file groups."""

    path: str
    partition: str
    file_id: str


@runtime_checkable
class FollowsRewrites(Protocol):
    """A write index that must hear of keys that come into other file groups without a write, by a clustering."""

    def follow(
        self,
        storage: Storage,
        files: Sequence[MovedFile],
        instant: InstantTime,
        engine: Engine,
        generator: KeyGenerator | None,
    ) -> None:
        """Stores that the keys of new files are there, once `instant` has completed, which it has not yet.

        Raises:
            HudiError: it could not; the rewrite does not complete.
        """
        ...


class PlainIndex:
    """The parts of a `WriteIndex` that most do not need."""

    __slots__ = ()

    def spool_order(self) -> Buckets | None:
        return None


class PlainIndexedWrite:
    """The parts of an `IndexedWrite` that an index which stores nothing and assigns nothing does not need."""

    __slots__ = ()

    def assign(self, inserts: Mapping[str, Positions]) -> Sequence[Assignment] | None:
        del inserts
        return None

    def before_write(self) -> None: ...

    def before_commit(self, groups: Sequence[WrittenGroup]) -> None: ...

    def withdraw(self) -> None: ...

    def after_commit(self, groups: Sequence[WrittenGroup]) -> None: ...
