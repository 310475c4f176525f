"""The frame around every write: open an instant, finalise its files, complete it.

1. Nothing is visible before `finish` creates the completed instant, and everything is visible after it.
2. A file of this write that is not in its statistics (a retried or speculative task wrote it) is deleted before the
   instant completes; the markers tell.
3. Partition metafiles exist before the instant completes, and the metadata table has the write at its instant: readers
   count it once the instant is completed.
4. A write that another writer overtook does not complete: it was planned on an older table.
"""

from __future__ import annotations

import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hoodie.engine import Engine, LocalEngine
from hoodie.errors import CommitUnknown, Conflict, Fenced, HudiError, Unavailable
from hoodie.fileview.listed import unlisted
from hoodie.metadata_writer import FileFacts, KnownMetadata, MetadataOptions, TableUpdate, record_update, undo_update
from hoodie.notebook import Displayed
from hoodie.records import from_avro
from hoodie.spec import (
    COMPACTION,
    LOG_COMPACTION,
    NULL_COMMIT,
    CommitMetadata,
    Instant,
    WriteStat,
    keys,
)
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.timeline import Timeline, complete, markers_of
from hoodie.write.partition_metafiles import create_partition_metafiles

log = logging.getLogger(__name__)

_COMPACTIONS = frozenset({COMPACTION, LOG_COMPACTION})
_LOCAL = LocalEngine()


@dataclass(frozen=True, slots=True)
class Committed(Displayed):
    """What a finished write did. Counts are rows, `size_bytes` is the size of all files written."""

    instant: str
    completed: str | None
    operation: str
    files: int
    size_bytes: int
    rows_written: int
    inserts: int
    updates: int
    deletes: int
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a write has done to files, ready to be made visible: what its completed instant will say. `compacted`: it
    says nothing new, only in other files. `knows_inserts`: new rows in log files are counted as such. `facts`: what is
    known of some of the files beside their statistics, by path.
    """

    operation: str
    stats: tuple[WriteStat, ...]
    extra_metadata: Mapping[str, str]
    replaced: Mapping[str, tuple[str, ...]] | None = None
    compacted: bool = False
    knows_inserts: bool = False
    facts: Mapping[str, FileFacts] = field(default_factory=dict)

    @property
    def metadata(self) -> CommitMetadata:
        return CommitMetadata(
            partition_to_write_stats=_by_partition(self.stats),
            compacted=self.compacted,
            extra_metadata=dict(self.extra_metadata),
            operation_type=self.operation,
            partition_to_replace_file_ids=self.replaced,
        )

    def update(self, inflight: Instant) -> TableUpdate:
        """What the metadata table has to know of it."""
        schema = self.extra_metadata.get(keys.SCHEMA_EXTRA)
        return TableUpdate(
            instant=inflight.requested,
            action=inflight.comparable_action,
            stats=self.stats,
            facts=self.facts,
            schema=from_avro(schema) if schema else None,
            replaced=self.replaced or {},
            keeps_rows=self.compacted,
            knows_inserts=self.knows_inserts,
        )

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the files written."""
        return tuple(stat.path for stat in self.stats if stat.path is not None)

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partitions that get files, then those that only lose some."""
        return tuple(dict.fromkeys([*(stat.partition_path for stat in self.stats), *(self.replaced or ())]))

    def committed(self, done: Instant, operation: str) -> Committed:
        return Committed(
            instant=done.requested,
            completed=done.completed,
            operation=operation,
            files=len(self.stats),
            size_bytes=sum(stat.file_size_bytes for stat in self.stats),
            rows_written=sum(stat.num_writes for stat in self.stats),
            inserts=sum(stat.num_inserts for stat in self.stats),
            updates=sum(stat.num_update_writes for stat in self.stats),
            deletes=sum(stat.num_deletes for stat in self.stats),
            partitions=self.partitions,
        )


def finish(  # noqa: PLR0917
    handle: TableHandle,
    known: Timeline,
    inflight: Instant,
    outcome: Outcome,
    known_partitions: Iterable[str],
    engine: Engine = _LOCAL,
    guard: Callable[[], None] | None = None,
    metadata: MetadataOptions | None = None,
    known_metadata: KnownMetadata | None = None,
) -> Instant:
    """The completed instant: the write is visible now. `known` is the timeline the write was planned on.

    The metadata table (`known_metadata`) says so first, as the options `metadata` want it; `engine` does what is much
    work there. `guard` has the last word before the write completes: it raises `Fenced` when this writer may have been
    taken for dead.

    Raises:
        Fenced: another writer rolled this write back meanwhile; nothing became visible.
        Conflict: another write completed or began meanwhile; nothing became visible, this one is still pending.
    """
    remove_losers(handle, inflight.requested, outcome.stats)
    ensure_alone(handle, known, inflight, outcome.stats)
    written = {stat.partition_path for stat in outcome.stats}
    create_partition_metafiles(handle, written.difference(known_partitions), inflight.requested)
    payload = handle.profile.commit_codec.encode(outcome.metadata, inflight.action)
    try:
        if handle.config.has_metadata_table:
            _tell_metadata(handle, known, outcome.update(inflight), engine, metadata, known_metadata)
        if guard is not None:
            guard()
        done = complete(handle.storage, handle.profile, inflight, payload, handle.env, handle.config.timezone)
    except Fenced:
        with contextlib.suppress(HudiError):  # nothing may hide that this write was fenced
            _remove_own(undo_update(handle, inflight, None, engine), outcome.files)
        drop_leftovers(handle, inflight.requested)
        raise
    drop_leftovers(handle, inflight.requested)
    return done


def _tell_metadata(  # noqa: PLR0917
    handle: TableHandle,
    known: Timeline,
    update: TableUpdate,
    engine: Engine,
    metadata: MetadataOptions | None,
    known_metadata: KnownMetadata | None,
) -> None:
    try:
        record_update(handle, update, engine, metadata, known, known_metadata)
    except CommitUnknown as unknown:
        # Whatever the metadata table says of it, the write itself is not completed, and can be taken back.
        raise Unavailable(
            f"The metadata table could not be told of {update.instant}: {unknown.cause}",
            remedy="Nothing became visible; repeat the write",
            instant=update.instant,
        ) from unknown


@contextlib.contextmanager
def fenced_when_gone(handle: TableHandle, inflight: Instant) -> Iterator[None]:
    """Say that a write is fenced, when the block fails because another writer has taken its instant and files away.

    Raises:
        Fenced: so it is. Else what the block raises.
    """
    try:
        yield
    except (Conflict, CommitUnknown, Fenced):
        raise
    except HudiError as error:
        if timeline_of(handle).find(inflight.requested) is not None:
            raise
        raise Fenced(
            f"The {inflight.action} {inflight.requested} was taken from this writer ({error.cause})",
            remedy="Nothing of it became visible; read the table again and repeat the write",
            instant=inflight.requested,
        ) from error


def ensure_alone(handle: TableHandle, known: Timeline, inflight: Instant, stats: Sequence[WriteStat] = ()) -> None:
    """Checks that no other write has moved since `known` was loaded. `stats`: the files this one has written.

    A look, not a lock: writers that honour the table lock never get here together. It catches the others.

    Compactions and log compactions are apart: they work on files that a plan has set aside, so whatever else completes
    is nothing to them, and their progress is nothing to a write that knew of the plan. A plan that was made meanwhile
    does not matter either where log files find their slice by completion, to a write that has only written log files:
    they come after the compaction. In every other case the compaction would leave out what the write has done.

    Raises:
        Conflict: one has.
    """
    if inflight.action in _COMPACTIONS:
        return
    before = {(one.logical, one.is_completed) for one in known.writes()}
    planned = {one.logical for one in known.pending() if one.action in _COMPACTIONS}
    only_logs = all(stat.is_log or stat.prev_commit == NULL_COMMIT for stat in stats)
    passes_plans = only_logs and known.profile.log_naming.finds_slice_by_completion
    for one in timeline_of(handle).writes():
        if one.logical in planned or (passes_plans and one.action in _COMPACTIONS):
            continue
        if one.logical != inflight.logical and (one.logical, one.is_completed) not in before:
            raise Conflict(
                f"Another writer's {one.action} {one.requested} appeared while {inflight.requested} was being written",
                remedy="Nothing became visible; read the table again and repeat the write. Use one writer at a time",
                instant=inflight.requested,
                other=one.requested,
            )


def drop_leftovers(handle: TableHandle, instant: str) -> None:
    """Delete the markers of a write that is over. A failure costs disk space only, so it is logged."""
    try:
        markers_of(handle.storage, instant).drop()
    except HudiError as error:
        log.warning("could not delete the markers of %s: %s", instant, error)


def remove_losers(handle: TableHandle, instant: str, stats: Sequence[WriteStat]) -> None:
    """Delete the files of this write that are not in its statistics: retried or speculative tasks left them."""
    kept = {path for stat in stats for path in (stat.path, *(stat.cdc_stats or ()))}
    for marker in markers_of(handle.storage, instant).load() or ():
        if marker.data_path not in kept and handle.storage.delete(marker.data_path):
            log.info("deleted %s, left by a retried task", marker.data_path)


def _remove_own(handle: TableHandle, files: Iterable[str]) -> None:
    """Delete the files of a fenced write: whoever rolled it back may have looked before the last of them was there."""
    with contextlib.suppress(HudiError):
        for path in unlisted(handle, files):
            with contextlib.suppress(HudiError):
                handle.storage.delete(path)


def _by_partition(stats: Sequence[WriteStat]) -> dict[str, tuple[WriteStat, ...]]:
    grouped: dict[str, list[WriteStat]] = defaultdict(list)
    for stat in stats:
        grouped[stat.partition_path].append(stat)
    return {name: tuple(group) for name, group in grouped.items()}
