"""The metadata table as files: opened, its partitions found, its records read.

1. It is a merge-on-read table below `.hoodie/metadata`, with a version and timeline of its own. What of it counts also
   depends on the timeline of the table it describes (`valid_instants`).
2. A partition may be read when the table's properties list it. One that is still being built, or is gone, is not there:
   callers do without it.
3. A listed partition without files, or with damaged ones, is `Corrupt` and names the file: silence would lose rows.
4. A partition's folder is listed once, its file groups are in the order of their file ids; a key's group is a number in
   this order.

Paths are those of the table around. What records mean is known one level up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Engine, LocalEngine, TaskId
from hoodie.errors import Corrupt, Invalid, Missing, Unsupported
from hoodie.metadata.commit_order import in_commit_order
from hoodie.metadata.damage import REBUILD, naming_metadata_table
from hoodie.metadata.index_definitions import IndexDefinition, load_index_definitions
from hoodie.metadata.partitions import ensure_numbered
from hoodie.metadata.records import EVERYTHING, Part, Wanted, read_group
from hoodie.metadata.valid_instants import is_later, unfinished_though_settled, valid_instants
from hoodie.metadata.whole_groups import SeenGroup, Written, ensure_whole
from hoodie.spec import InstantTime, TableConfig, keys, profile_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import NestedStorage, Storage
from hoodie.timeline import Timeline, instant_path, load_table_config, load_timeline
from hoodie.view import (
    BaseFile,
    FileSlice,
    GroupId,
    LogFile,
    PartitionFiles,
    list_files,
    view_of,
)

READING_THREADS = 16

_SMALL_BYTES = 16 * 1024 * 1024
"""Up to so many bytes, threads of this process have read what is asked for before a Spark job has begun."""


@dataclass(frozen=True, slots=True)
class Group:
    """One file group of a partition: its newest slice with paths from the table's root; None when it has no records."""

    file_id: str
    newest: FileSlice | None


@dataclass(frozen=True, slots=True, eq=False)
class MetadataStore:
    """An opened metadata table. `storage` and `config` are those of the table around it, `own` and `timeline` its own.

    `table_timeline` is the one it was opened against. `available` are the partitions that may be read, `definitions`
    what is said about indexes, `valid` the instants whose log blocks count.
    """

    storage: Storage
    config: TableConfig
    table_timeline: Timeline
    own: Storage
    timeline: Timeline
    available: frozenset[str]
    definitions: Mapping[str, IndexDefinition]
    valid: frozenset[InstantTime]
    engine: Engine
    _compactions: Mapping[GroupId, InstantTime]
    _listed: Mapping[str, PartitionFiles]
    _groups: dict[str, tuple[Group, ...]] = field(default_factory=dict)
    _written: Written = field(default_factory=dict)

    def groups(self, partition: str) -> tuple[Group, ...]:
        """File groups of a partition in order of file ids; at least one, but for a record index of partitions in a
        table that has none yet.

        Raises:
            Corrupt: the partition is listed as available and has no file groups.
            Invalid: it is not available.
        """
        if partition not in self.available:
            raise Invalid(
                f"The metadata table has no partition {partition!r} that is ready",
                remedy=f"Available are: {', '.join(sorted(self.available))}",
            )
        if partition not in self._groups:
            self._groups[partition] = self._load_groups(partition)
        return self._groups[partition]

    def is_ahead(self, partition: str) -> bool:
        """Whether a partition was compacted after the table's timeline was loaded: what it says then may be true of a
        newer state only.
        """
        parts = [group.newest for group in self.groups(partition)]
        return any(part is not None and is_later(part.base_instant, self.table_timeline) for part in parts)

    def read(
        self,
        partition: str,
        wanted: Mapping[str, Wanted] | Wanted = EVERYTHING,
        columns: tuple[str, ...] | None = None,
        outlived: Callable[[Sequence[Part]], pa.Array] | None = None,
    ) -> list[list[Part]]:
        """What file groups say, oldest first, one list per group in order; nothing of a group that only says what was
        deleted. `wanted` is for all of them, or says by file id what is asked of which. `outlived` gives the keys whose
        newest record in the parts counts whatever was there before: where these are all keys that are asked for, it
        does not matter whether the first file of a group is there.

        Raises:
            Corrupt: a file is damaged or gone.
        """
        tasks = [
            _ReadTask(self.storage, group.newest, self.valid, asked, columns, outlived)
            for group in self.groups(partition)
            if group.newest is not None
            and (asked := wanted if isinstance(wanted, Wanted) else wanted.get(group.file_id)) is not None
        ]
        few = LocalEngine(READING_THREADS)
        is_small = sum(task.part.size_bytes for task in tasks) <= _SMALL_BYTES
        found = (few if is_small else self.engine).run(_read_group, tasks, "read metadata")
        seen = [one for _, one in found]
        with naming_metadata_table():
            ensure_whole(self.own, self.timeline, self.valid.__contains__, seen, self._written, few)
        return [parts for parts, _ in found]

    def _load_groups(self, partition: str) -> tuple[Group, ...]:
        with naming_metadata_table():
            known = self._listed.get(partition)
            files = list_files(self.own, [partition], engine=self.engine) if known is None else (known,)
        newest = {
            part.file_id: _from_table_root(in_commit_order(part, self.timeline))
            for part in view_of(self.timeline, files, {}, self._compactions).slices_at()
        }
        file_ids = sorted({one.name.file_id for found in files for one in found.everything})
        if not file_ids and not self._may_be_empty(partition):
            path = f"{keys.METADATA_TABLE_DIR}/{partition}"
            raise Corrupt(
                f"{path} has no files, though the table says the partition is ready", remedy=REBUILD, path=path
            )
        ensure_numbered(partition, newest)
        self._ensure_begun(one for found in files for one in found.everything if one.name.file_id not in newest)
        return tuple(Group(file_id, newest.get(file_id)) for file_id in file_ids)

    def _may_be_empty(self, partition: str) -> bool:
        """Whether a partition may be without file groups: a record index of partitions, while the table has none."""
        known = self.definitions.get(partition)
        if known is None or not known.is_partitioned:
            return False
        if not self.table_timeline.completed_writes():
            return True
        try:
            self.own.head(f"{partition}/{keys.PARTITION_METAFILE_PREFIX}")
        except Missing:
            return False
        return True

    def _ensure_begun(self, unseen: Iterable[BaseFile | LogFile]) -> None:
        """Checks that groups that no slice is seen of are those that a pending write of the table is making.

        Raises:
            Corrupt: their initialisation is said to be under way, and the partition to be ready.
        """
        making = {one.requested for one in self.table_timeline.pending()}
        began = {one.requested for one in self.timeline.pending()} - making
        for one in unseen:
            if one.name.instant in began and not is_later(one.name.instant, self.table_timeline):
                path = f"{keys.METADATA_TABLE_DIR}/{one.path}"
                raise Corrupt(
                    f"{path} does not count: the completed instant of {one.name.instant} is gone",
                    remedy=REBUILD,
                    path=path,
                )


@dataclass(frozen=True, slots=True)
class MetadataState:
    """One look at a metadata table: its folder as a storage, its timeline, and what is said about indexes. `listed`:
    what lies in those partitions that were listed, too, uncommitted files among it.
    """

    own: Storage
    timeline: Timeline
    definitions: Mapping[str, IndexDefinition]
    listed: Mapping[str, PartitionFiles] = field(default_factory=dict)


def load_metadata_state(storage: Storage, config: TableConfig) -> MetadataState:
    """The metadata table of a table as it is now: three calls.

    Raises:
        Corrupt: it should be there and is not, or its properties or timeline, or the definitions of indexes are
            damaged.
    """
    own = NestedStorage(storage, keys.METADATA_TABLE_DIR)
    with naming_metadata_table():
        try:
            own_config = load_table_config(own)
            profile = profile_of(own_config)
        except (Invalid, Unsupported) as error:
            raise Corrupt(f"it is not there: {error.cause}", remedy=REBUILD) from error
        timeline = load_timeline(own, profile, own_config.timezone)
    return MetadataState(own, timeline, load_index_definitions(storage, config))


def open_metadata_store(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    engine: Engine | None = None,
    state: MetadataState | None = None,
) -> MetadataStore | None:
    """The metadata table of a table as `timeline`, that of the table, sees it; None when it is not kept or not ready.
    `state`: how it is, where somebody knows that already.

    Raises:
        Corrupt: as `load_metadata_state`, or it has not completed what the table has.
    """
    if not config.is_metadata_table_ready:
        return None
    known = state or load_metadata_state(storage, config)
    with naming_metadata_table():
        compactions = PendingPlans(known.own, known.timeline).compactions()
    ensure_finished(timeline, known.timeline)
    return MetadataStore(
        storage=storage,
        config=config,
        table_timeline=timeline,
        own=known.own,
        timeline=known.timeline,
        available=frozenset(config.metadata_partitions),
        definitions=known.definitions,
        valid=valid_instants(timeline, known.timeline),
        engine=engine or LocalEngine(READING_THREADS),
        _compactions=compactions,
        _listed=known.listed,
    )


def ensure_finished(table: Timeline, own: Timeline) -> None:
    """Checks that the metadata table's timeline `own` has completed what is completed on that of the table.

    Raises:
        Corrupt: it says of a write that it is under way, so nothing of it would count, or has nothing: it is gone, or
            looked for where the damaged properties say.
    """
    if not own.completed():
        path = f"{keys.METADATA_TABLE_DIR}/{own.profile.timeline_dir}"
        raise Corrupt(
            f"{path} has no completed instants, though the metadata table is ready", remedy=REBUILD, path=path
        )
    lost = unfinished_though_settled(table, own)
    if lost is not None:
        path = f"{keys.METADATA_TABLE_DIR}/{instant_path(own.profile, lost)}"
        raise Corrupt(f"{path} has no completed instant beside it: it is gone", remedy=REBUILD, path=path)


@dataclass(frozen=True, slots=True)
class _ReadTask:
    storage: Storage
    part: FileSlice
    valid: frozenset[InstantTime]
    wanted: Wanted
    columns: tuple[str, ...] | None
    outlived: Callable[[Sequence[Part]], pa.Array] | None


def _read_group(_: TaskId, task: _ReadTask) -> tuple[list[Part], SeenGroup]:
    try:
        parts, seen = read_group(task.storage, task.part, task.valid.__contains__, task.wanted, task.columns)
    except Corrupt as error:
        raise Corrupt(f"Metadata table: {error.cause}", remedy=REBUILD, **error.facts) from error
    except Missing as error:
        path = str(error.facts.get("path", ""))
        raise Corrupt(
            f"A file of the metadata table is gone: {error.cause}",
            remedy=f"It may have been cleaned while it was read: read again. {REBUILD}",
            path=path,
        ) from error
    if task.outlived is not None and task.wanted.keys is not None and parts:
        known = task.outlived(parts)
        is_known = pc.is_in(pa.array(task.wanted.keys, pa.string()), value_set=known)
        seen = replace(seen, outlived=bool(pc.all(is_known, min_count=0).as_py()))
    # Deletes without a record before them, of keys that never were, come without the columns of records.
    return (parts if any(part.rows is not None for part in parts) else []), seen


def _from_table_root(part: FileSlice) -> FileSlice:
    def full(path: str) -> str:
        return f"{keys.METADATA_TABLE_DIR}/{path}"

    base = None if part.base is None else part.base._replace(path=full(part.base.path))
    return part._replace(base=base, logs=tuple(replace(log, path=full(log.path)) for log in part.logs))
