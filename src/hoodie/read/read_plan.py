"""What a query will read: a value that prints well, travels to workers and needs no second thought there.

1. `plan_read` is pure. What it must know beyond the view (schema, cleaned past, commits of a range) is gathered by
   `load_read_facts` before.
2. A plan lists files in order of partition and file id; its result has their rows in this order.
3. Files of partitions that cannot match the filter are not in the plan. Everything else the filter says is decided on
   rows.
4. Only base files are read. A slice that has log files stops a snapshot query: merging them is a feature to come.

It opens no data file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Engine
from hoodie.errors import Invalid, Unsupported
from hoodie.read.incremental import (
    CommitTimes,
    Window,
    commit_times,
    ensure_fallback_allowed,
    newest_files,
    select,
    with_archived,
    without_hollow,
)
from hoodie.read.path_glob import PathGlob
from hoodie.read.read_options import EARLIEST, Query, ReadOptions, ensure_consistent
from hoodie.read.result_schema import projected, result_schema
from hoodie.read.row_filter import RowFilter, filter_of, matching
from hoodie.read.table_schema import load_table_schema
from hoodie.read.time_travel import KnownPast, ensure_known, first_incomplete_write, load_known_past
from hoodie.records import COMMIT_TIME_FIELD, partition_values
from hoodie.spec import METADATA_BOOTSTRAP_INSTANT, CommitMetadata, InstantTime, TableConfig
from hoodie.storage import Storage
from hoodie.timeline import Timeline, has_history, load_archived_commits, load_commit_metadata, parse_as_of
from hoodie.view import BaseFile, FileSlice, View, load_view


@dataclass(frozen=True, slots=True)
class FileRead:
    """One base file to read, and the values of partition columns its path gives (column, Python value)."""

    path: str
    partition: str
    size_bytes: int
    instant: InstantTime
    partition_values: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class RowPlan:
    """What is done with the rows of every file. `schema` is the result's; `needed` has the columns that must be known
    for it, in the result's types: those of the result and those the conditions look at.
    """

    schema: pa.Schema
    needed: pa.Schema
    filter: RowFilter | None
    commit_times: CommitTimes | None
    batch_rows: int


@dataclass(frozen=True, slots=True, eq=False)
class ReadPlan:
    """Files and what is done with their rows.

    `table_schema` has all columns a read could give, `path_columns` those of them whose values a file's
    `partition_values` give where its path can. `as_of` and `window` say which state it is; `skipped_files` were left
    out by their partition.
    """

    query: Query
    files: tuple[FileRead, ...]
    rows: RowPlan
    table_schema: pa.Schema
    path_columns: frozenset[str]
    as_of: InstantTime | None = None
    window: Window | None = None
    skipped_files: int = 0

    @property
    def schema(self) -> pa.Schema:
        """Schema of the result."""
        return self.rows.schema

    @property
    def size_bytes(self) -> int:
        """Bytes of all files of the plan."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """What planning must know beyond the view. `as_of` and `window` are the options' texts understood; `base_path` is
    the full path of the table.
    """

    schema: pa.Schema | None
    as_of: InstantTime | None = None
    past: KnownPast = field(default_factory=KnownPast)
    window: Window | None = None
    commits: Mapping[InstantTime, CommitMetadata] = field(default_factory=dict)
    base_path: str = ""


def load_read_plan(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    options: ReadOptions,
    *,
    view: View | None = None,
    engine: Engine | None = None,
) -> ReadPlan:
    """The plan of a query on the table as `timeline` has it. Lists the table's files unless a view is given.

    Raises:
        Invalid, Unsupported: see `ensure_consistent`, `load_read_facts` and `plan_read`.
    """
    ensure_consistent(options)
    view = view or load_view(storage, config, timeline, engine=engine)
    return plan_read(view, config, load_read_facts(storage, config, view, options), options)


def load_read_facts(storage: Storage, config: TableConfig, view: View, options: ReadOptions) -> ReadFacts:
    """What `plan_read` needs. A snapshot reads one commit for it, an incremental query those of its range.

    Raises:
        Invalid: a time is not understood, or a commit in the range follows a running write (version 6).
    """
    timeline = view.timeline
    if options.query == "incremental":
        return _incremental_facts(storage, config, view, options)
    if options.as_of is None:
        return ReadFacts(load_table_schema(storage, config, view))
    as_of = parse_as_of(options.as_of, config.timezone)
    past = load_known_past(storage, timeline)
    ensure_known(as_of, past)
    return ReadFacts(load_table_schema(storage, config, view, as_of), as_of, past)


def plan_read(view: View, config: TableConfig, facts: ReadFacts, options: ReadOptions) -> ReadPlan:
    """The plan of a query.

    Raises:
        Invalid: a column of the options does not exist, the filter does not fit, or the asked state was cleaned up.
        Unsupported: a file slice has log files, or a base file is a bootstrap skeleton.
    """
    ensure_consistent(options)
    if facts.as_of is not None:
        ensure_known(facts.as_of, facts.past)
    columns = result_schema(facts.schema if facts.schema is not None else pa.schema([]), config)
    times: CommitTimes | None = None
    if facts.window is not None:
        slices, times = _incremental_slices(view, config, facts, facts.window, options)
    elif options.query == "read_optimized":
        slices = view.base_slices_at(facts.as_of)
    else:
        slices = view.slices_at(facts.as_of)
    row_filter = _row_filter(options, columns.schema)
    types = pa.schema([one for one in columns.schema if one.name in columns.path_columns])
    values = {path: partition_values(path, types, config) for path in {part.partition for part in slices}}
    kept = values.keys() if row_filter is None else _matching_partitions(values, types, row_filter)
    wanted = [part for part in slices if part.partition in kept]
    _ensure_readable(wanted, config)
    return ReadPlan(
        query=options.query,
        files=tuple(_file_read(part.partition, part.base, values) for part in wanted if part.base is not None),
        rows=_row_plan(columns.schema, row_filter, times, options),
        table_schema=columns.schema,
        path_columns=columns.path_columns,
        as_of=facts.as_of,
        window=facts.window,
        skipped_files=len(slices) - len(wanted),
    )


def _incremental_facts(storage: Storage, config: TableConfig, view: View, options: ReadOptions) -> ReadFacts:
    timeline = view.timeline
    if not config.populate_meta_fields:
        raise Invalid(
            "Incremental queries are not supported when meta fields are disabled: rows do not carry their commit time",
            remedy="Read a snapshot, or write the table with hoodie.populate.meta.fields=true",
        )
    by_completion = timeline.profile.incremental_by == "completed" or options.hollow_commits == "USE_TRANSITION_TIME"
    end = None if options.end is None else _instant(options.end, config)
    window = select(timeline, _instant(options.begin or "", config), end, by_completion=by_completion)
    if not by_completion:
        hollow = first_incomplete_write(storage, timeline)
        window = without_hollow(window, hollow, block=options.hollow_commits == "BLOCK")
    if window.reaches_back and by_completion:
        window = with_archived(window, load_archived_commits(storage, timeline.profile))
    elif window.reaches_back:
        window = replace(window, has_unknown_past=has_history(storage, timeline.profile))
    commits = {one.requested: load_commit_metadata(storage, timeline.profile, one) for one in window.instants}
    until = window.instants[-1].requested if options.schema_at_end and window.instants else None
    schema = load_table_schema(storage, config, view, until)
    return ReadFacts(schema, window=window, commits=commits, base_path=storage.absolute(""))


def _instant(text: str, config: TableConfig) -> InstantTime:
    """An end of a range: `earliest`, digits as they are (also few of them: `000`), or a date in any accepted format."""
    if text in EARLIEST:
        return EARLIEST[-1]
    return text if text.isascii() and text.isdigit() else parse_as_of(text, config.timezone)


def _incremental_slices(
    view: View, config: TableConfig, facts: ReadFacts, window: Window, options: ReadOptions
) -> tuple[tuple[FileSlice, ...], CommitTimes]:
    times = commit_times(window, view.timeline)
    if window.is_empty:
        return (), times
    glob = PathGlob(options.path_glob or "")
    newest, gone = newest_files(window, facts.commits, view)
    gone = tuple(path for path in gone if glob.matches(f"{facts.base_path}/{path}"))
    ensure_fallback_allowed(window, gone, allowed=options.full_scan_fallback)
    if gone or window.needs_snapshot:
        slices = view.slices_at()
    else:
        found = (FileSlice(*group, base.name.instant, base) for group, base in newest.items())
        slices = tuple(sorted(found, key=lambda part: part.group_id))
    return tuple(part for part in slices if _is_wanted(part, glob, facts.base_path)), times


def _is_wanted(part: FileSlice, glob: PathGlob, base_path: str) -> bool:
    """Whether the slice's base file, or else its newest log file, is one the pattern finds."""
    path = part.base.path if part.base is not None else part.logs[-1].path
    return glob.matches(f"{base_path}/{path}")


def _ensure_readable(slices: Iterable[FileSlice], config: TableConfig) -> None:
    for part in slices:
        if part.logs:
            raise Unsupported(
                f"File group {part.file_id} in partition {part.partition!r} has log files, "
                "and merging them on read is not there yet",
                remedy="Use query='read_optimized' to read base files only, or compact the table",
                path=part.logs[0].path,
            )
        if part.base is not None and part.base_instant == METADATA_BOOTSTRAP_INSTANT and is_bootstrapped(config):
            raise Unsupported(
                f"{part.base.path} is a bootstrap skeleton: its data is in the source table, "
                "and reading both is not there yet",
                remedy="Rewrite the table with Apache Hudi (an upsert or clustering of the bootstrapped files)",
                path=part.base.path,
            )


def is_bootstrapped(config: TableConfig) -> bool:
    """Whether the table was made over the files of another one."""
    return bool(config.raw.get("hoodie.bootstrap.base.path"))


def _row_filter(options: ReadOptions, schema: pa.Schema) -> RowFilter | None:
    """The filter, and in incremental queries the conditions, as one."""
    asked = [] if options.filter is None else [options.filter]
    if options.query == "incremental":
        asked += options.conditions
    filters = [_understood(one, schema, options.timezone) for one in asked]
    if len(filters) <= 1:
        return filters[0] if filters else None
    conjuncts = tuple(part for one in filters for part in one.conjuncts)
    return RowFilter(conjuncts, " AND ".join(f"({one.text})" for one in filters))


def _understood(asked: Any, schema: pa.Schema, timezone: str) -> RowFilter:
    if isinstance(asked, RowFilter):
        return asked
    if isinstance(asked, str):
        # Loads sqlglot, a quarter of the imports of a worker or a command, which mostly have no SQL to parse.
        from hoodie.read.filter_sql import parse_row_filter  # noqa: PLC0415

        return parse_row_filter(asked, schema, timezone=timezone)
    if isinstance(asked, pc.Expression):
        return filter_of(asked, schema)
    raise Invalid(f"A filter is SQL text or an Arrow expression, not {type(asked).__name__}")


def _row_plan(
    schema: pa.Schema, row_filter: RowFilter | None, times: CommitTimes | None, options: ReadOptions
) -> RowPlan:
    result = projected(schema, options.columns)
    looked_at = row_filter.columns if row_filter is not None else frozenset()
    if times is not None:
        looked_at |= {COMMIT_TIME_FIELD}
    extra = [one for one in schema if one.name in looked_at and one.name not in result.names]
    return RowPlan(result, pa.schema([*result, *extra]), row_filter, times, options.batch_rows)


def _file_read(partition: str, base: BaseFile, values: Mapping[str, Mapping[str, Any]]) -> FileRead:
    return FileRead(base.path, partition, base.size_bytes, base.name.instant, tuple(values[partition].items()))


def _matching_partitions(
    values: Mapping[str, Mapping[str, Any]], types: pa.Schema, row_filter: RowFilter
) -> frozenset[str]:
    """The partitions whose values do not rule the filter out. Decided at once for partitions that know the same
    columns.
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    for partition, known in values.items():
        alike.setdefault(tuple(known), []).append(partition)
    kept: set[str] = set()
    for columns, partitions in alike.items():
        condition = row_filter.decidable_with(columns)
        if condition is None:
            kept.update(partitions)
            continue
        schema = pa.schema([types.field(name) for name in columns])
        rows = pa.Table.from_pylist([dict(values[one]) for one in partitions], schema=schema)
        rows = rows.append_column(_ROW, pa.array(range(rows.num_rows), pa.int64()))
        kept.update(partitions[at] for at in matching(rows, condition).column(_ROW).to_pylist())
    return frozenset(kept)


_ROW = "__hoodie_row"
