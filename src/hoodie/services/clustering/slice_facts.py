"""What plan strategies and estimates want to know of file slices: ranges of columns, and which commit wrote them.

Column statistics of the metadata table are asked first, then footers of the base files of which they say nothing. Of a
slice that has log files without statistics the range is that of its base file: plans are a guess at what is worth
rewriting, and no row is left out because of one. Bounds are those of the values that rows show: of files from before a
column got a wider type too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hoodie.engine import Engine, TaskId
from hoodie.metadata import COLUMN_STATS, FileOf, MetadataTable, open_metadata_table
from hoodie.metadata_writer.column_range import Bound, ColumnRange, as_type
from hoodie.metadata_writer.file_ranges import said_ranges
from hoodie.records import KEY_FIELD, read_footer
from hoodie.records.columns import type_at
from hoodie.services.clustering.overlap import ValueRange
from hoodie.services.clustering.plan_strategy import CommitFiles, RangesOf
from hoodie.spec import CommitMetadata, InstantTime
from hoodie.state.handle import TableHandle
from hoodie.storage import Storage
from hoodie.timeline import Timeline, load_commit_metadata
from hoodie.view import FileSlice, GroupId

_FILES_PER_TASK: Final = 32


@dataclass(frozen=True, slots=True)
class FootersTask:
    """Base files, and the columns of which their footers are asked for ranges; `schema`: the table's columns."""

    storage: Storage
    paths: tuple[str, ...]
    columns: tuple[str, ...]
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class RangeSource:
    """Where ranges of columns of `schema` are asked for: the table as `timeline` shows it."""

    handle: TableHandle
    timeline: Timeline
    schema: pa.Schema
    engine: Engine

    def load(self, slices: Sequence[FileSlice], columns: Sequence[str]) -> RangesOf:
        """Ranges of columns in each slice, where they are known: by column statistics, else by footers.

        Raises:
            Corrupt: the metadata table or a file is damaged. Missing: a file is gone.
        """
        found: dict[GroupId, dict[str, ValueRange]] = {part.group_id: {} for part in slices}
        if not columns or not slices:
            return found
        handle = self.handle
        metadata = open_metadata_table(handle.storage, handle.config, self.timeline, self.engine)
        if metadata is not None and metadata.has(COLUMN_STATS):
            for name in columns:
                if name in self.schema.names and name != KEY_FIELD:
                    _ask_statistics(metadata, slices, name, self.schema.field(name).type, found)
        unknown = [part for part in slices if part.base is not None and found[part.group_id].keys() < set(columns)]
        paths = [part.base.path for part in unknown if part.base is not None]
        tasks = [
            FootersTask(handle.storage, tuple(paths[at : at + _FILES_PER_TASK]), tuple(columns), self.schema)
            for at in range(0, len(paths), _FILES_PER_TASK)
        ]
        told = [one for group in self.engine.run(ranges_of_footers, tasks, "ranges") for one in group]
        for part, ranges in zip(unknown, told, strict=True):
            found[part.group_id] = {**ranges, **found[part.group_id]}
        return found


def ranges_of_footers(_: TaskId, task: FootersTask) -> list[dict[str, ValueRange]]:
    """What the footer of each file says of the columns. Runs on a worker.

    Raises:
        Corrupt: a file is damaged. Missing: it is gone.
    """
    found = []
    for path in task.paths:
        footer = read_footer(task.storage, path)
        ranges: dict[str, ValueRange] = {}
        for name in task.columns:
            if name == KEY_FIELD and footer.min_key is not None and footer.max_key is not None:
                ranges[name] = ValueRange(footer.min_key, footer.max_key)
                continue
            said = None if footer.native is None else said_ranges(footer, (name,))
            known = said and _shown(said[0], task.schema)
            if known and known.low is not None and known.high is not None:
                ranges[name] = ValueRange(known.low, known.high)
        found.append(ranges)
    return found


def load_commits(handle: TableHandle, timeline: Timeline, after: InstantTime) -> tuple[CommitFiles, ...]:
    """The completed writes requested after an instant, in their order, with the groups of their files. Reads the
    commits.

    Raises:
        Corrupt: a commit is damaged.
    """
    found = []
    for one in sorted(timeline.completed_writes(), key=lambda instant: instant.requested):
        if one.requested > after:
            stats = list(load_commit_metadata(handle.storage, handle.profile, one).write_stats())
            stats.sort(key=lambda named: -named[1].file_size_bytes)
            found.append(CommitFiles(one.requested, tuple((name, stat.file_id) for name, stat in stats)))
    return tuple(found)


def newest_notes(
    handle: TableHandle, timeline: Timeline, keys: Collection[str], actions: Collection[str]
) -> Mapping[str, str]:
    """Extra metadata of the newest of the completed writes of these actions that has one of the keys there."""
    found = newest_write(handle, timeline, keys, actions)
    return {} if found is None else found.extra_metadata


def newest_write(
    handle: TableHandle, timeline: Timeline, keys: Collection[str], actions: Collection[str]
) -> CommitMetadata | None:
    """The newest of the completed writes of these actions with one of the keys in its extra metadata."""
    for one in reversed(timeline.completed_writes()):
        if one.action in actions:
            found = load_commit_metadata(handle.storage, handle.profile, one)
            if not found.extra_metadata.keys().isdisjoint(keys):
                return found
    return None


def _shown(said: ColumnRange, schema: pa.Schema) -> ColumnRange:
    """What a footer says of a column as the values that rows show."""
    data_type = type_at(schema, said.column)
    return said if data_type is None else as_type(said, data_type)


def _ask_statistics(
    metadata: MetadataTable,
    slices: Sequence[FileSlice],
    name: str,
    data_type: pa.DataType,
    found: dict[GroupId, dict[str, ValueRange]],
) -> None:
    files, owners = [], []
    for part in slices:
        names = [] if part.base is None else [part.base.name.text]
        for file in (*names, *(log.name.text for log in part.logs)):
            files.append(FileOf(part.partition, file))
            owners.append(part.group_id)
    ranges = metadata.ranges(name, files, data_type)
    for owner, low, high in zip(owners, _stored(ranges.low), _stored(ranges.high), strict=True):
        if low is not None and high is not None:
            one, before = ValueRange(low, high), found[owner].get(name)
            found[owner][name] = one if before is None else before.union(one)


def _stored(bounds: pa.Array) -> list[Bound | None]:
    """Bounds as files store them: days, units of a time, decimals without their point. One for each file."""
    kind = bounds.type
    if pa.types.is_temporal(kind):
        bounds = bounds.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    values: list[Bound | None] = bounds.to_pylist()
    if pa.types.is_decimal(kind):
        return [None if one is None else int(one.scaleb(kind.scale)) for one in values]  # type: ignore[union-attr]
    return values
