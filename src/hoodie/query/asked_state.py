"""What a query is about, as the timeline alone tells it: its time or commits, its columns, partitions that can matter.

Nothing is listed and no file of the table's data opened: whoever loads the view afterwards needs no more of it than
this says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from hoodie.errors import Invalid
from hoodie.filters import RowFilter
from hoodie.query.incremental import Window, select, with_archived, without_hollow, without_operations
from hoodie.query.partition_choice import partition_choice
from hoodie.query.read_options import EARLIEST, ReadOptions
from hoodie.query.result_schema import result_schema
from hoodie.query.row_filters import row_filter_of
from hoodie.query.time_travel import first_incomplete_write
from hoodie.spec import COMPLETION_CLOCK, CommitMetadata, InstantTime, TableConfig
from hoodie.state.table_schema import SaidSchema, load_said
from hoodie.storage import Storage
from hoodie.timeline import Timeline, has_history, load_archived_commits, load_commit_metadata, parse_as_of
from hoodie.view import PartitionChoice


@dataclass(frozen=True, slots=True)
class AskedState:
    """`as_of` and `window` are the options' texts understood, `commits` those of the window, in the partitions that
    can matter; `said` is the commit that says the schema, None where none does. `row_filter`: the filter, understood,
    where there is one and the schema is said; `choice`: the partitions that can hold a row of it, None for all.
    """

    said: SaidSchema | None
    as_of: InstantTime | None = None
    window: Window | None = None
    commits: Mapping[InstantTime, CommitMetadata] = field(default_factory=dict)
    row_filter: RowFilter | None = None
    choice: PartitionChoice | None = None

    @property
    def touched(self) -> frozenset[str]:
        """The partitions that the commits of the window wrote to or replaced files of."""
        return frozenset(path for metadata in self.commits.values() for path in _partitions(metadata))


def load_asked_state(storage: Storage, config: TableConfig, timeline: Timeline, options: ReadOptions) -> AskedState:
    """What `options` ask of a table at `timeline`. Reads the newest commit with a schema, and the commits of a range.

    Raises:
        Invalid: a time is not understood, a filter does not fit, or a commit in the range follows a running write
            (version 6).
        Corrupt: metadata is damaged.
    """
    if options.is_ranged:
        return _ranged(storage, config, timeline, options)
    as_of = None if options.as_of is None else parse_as_of(options.as_of, config.timezone)
    said = load_said(storage, timeline, as_of)
    row_filter, choice = _rows(said, config, options)
    return AskedState(said, as_of, row_filter=row_filter, choice=choice)


def _ranged(storage: Storage, config: TableConfig, timeline: Timeline, options: ReadOptions) -> AskedState:
    if not config.populate_meta_fields:
        raise Invalid(
            "Incremental queries are not supported when meta fields are disabled: rows do not carry their commit time",
            remedy="Read a snapshot, or write the table with hoodie.populate.meta.fields=true",
        )
    clock = COMPLETION_CLOCK if options.hollow_commits == "USE_TRANSITION_TIME" else timeline.profile.clock
    end = None if options.end is None else _instant(options.end, config)
    window = select(timeline, _instant(options.begin or "", config), end, clock)
    if clock.has_hollow_commits:
        hollow = first_incomplete_write(storage, timeline)
        window = without_hollow(window, hollow, block=options.hollow_commits == "BLOCK")
    if window.reaches_back and clock.has_hollow_commits:
        window = replace(window, has_unknown_past=has_history(storage, timeline.profile))
    elif window.reaches_back:
        window = with_archived(window, load_archived_commits(storage, timeline.profile))
    commits = {
        instant.requested: load_commit_metadata(storage, timeline.profile, instant) for instant in window.instants
    }
    if options.skip_operations:
        window = without_operations(window, commits, options.skip_operations)
    until = window.instants[-1].requested if options.schema_at_end and window.instants else None
    said = load_said(storage, timeline, until)
    row_filter, choice = _rows(said, config, options)
    if choice is not None:
        commits = {requested: _within(metadata, choice) for requested, metadata in commits.items()}
    return AskedState(said, window=window, commits=commits, row_filter=row_filter, choice=choice)


def _rows(
    said: SaidSchema | None, config: TableConfig, options: ReadOptions
) -> tuple[RowFilter | None, PartitionChoice | None]:
    if said is None or options.query == "cdc" or (options.filter is None and not options.conditions):
        return None, None
    columns = result_schema(said.columns, config)
    row_filter = row_filter_of(options, columns.schema)
    return row_filter, partition_choice(row_filter, columns, config)


def _within(metadata: CommitMetadata, choice: PartitionChoice) -> CommitMetadata:
    """What a commit did to the partitions that are chosen."""
    chosen = choice.of(_partitions(metadata))
    stats = {path: found for path, found in metadata.partition_to_write_stats.items() if path in chosen}
    replaced = metadata.partition_to_replace_file_ids
    if replaced is not None:
        replaced = {path: found for path, found in replaced.items() if path in chosen}
    return replace(metadata, partition_to_write_stats=stats, partition_to_replace_file_ids=replaced)


def _partitions(metadata: CommitMetadata) -> Collection[str]:
    return {*metadata.partition_to_write_stats, *(metadata.partition_to_replace_file_ids or ())}


def _instant(text: str, config: TableConfig) -> InstantTime:
    """An end of a range: `earliest`, digits as they are (also few of them: `000`), or a date in any accepted format."""
    if text in EARLIEST:
        return EARLIEST[-1]
    return text if text.isascii() and text.isdigit() else parse_as_of(text, config.timezone)
