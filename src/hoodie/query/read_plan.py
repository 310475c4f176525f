"""What a query will read: a value that prints well, travels to workers and needs no second thought there.

1. `plan_read` is pure. What it must know beyond the view is gathered by `load_read_facts` before.
2. A plan lists slices in order of partition and file id (changes in order of their commits); its result has their rows
   in this order.
3. Slices of partitions that cannot match the filter are not in the plan. Everything else the filter says is decided on
   rows.
4. How log files are merged is the same for all slices and stands in `RowPlan.merge`: rules, which blocks count, and the
   columns that have to be read for it.

It opens no data file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from hoodie.errors import Invalid
from hoodie.filters import RowFilter
from hoodie.query.changes import change_reads
from hoodie.query.incremental import Window, commit_times, ensure_fallback_allowed, touched_slices
from hoodie.query.partition_choice import matching_partitions
from hoodie.query.path_glob import PathGlob
from hoodie.query.read_facts import ReadFacts
from hoodie.query.read_options import Query, ReadOptions, ensure_consistent
from hoodie.query.result_schema import projected, result_schema
from hoodie.query.row_filters import row_filter_of
from hoodie.query.time_travel import ensure_known
from hoodie.records import COMMIT_TIME_FIELD, KEY_FIELD, partition_values, with_meta
from hoodie.slices import CommitTimes, FileRead, RowPlan, SliceRead, plan_merge
from hoodie.slices.bootstrap import source_of
from hoodie.slices.change_rows import CHANGE_SCHEMA
from hoodie.spec import InstantTime, TableConfig
from hoodie.view import FileSlice, GroupId, View


@dataclass(frozen=True, slots=True, eq=False)
class ReadPlan:
    """Pieces of work and what is done with their rows.

    `table_schema` has all columns a read could give, `path_columns` those of them whose values a slice's
    `partition_values` give where its path can. `as_of` and `window` say which state it is; `skipped_files` slices were
    looked at and left out. Those of partitions that a filter rules out by name are not even counted.
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


def plan_read(view: View, config: TableConfig, facts: ReadFacts, options: ReadOptions) -> ReadPlan:
    """The plan of a query.

    Raises:
        Invalid: a column of the options does not exist, the filter does not fit, or the asked state was cleaned up.
        Unsupported: a slice has log files, and the table merges them by a rule nobody registered.
    """
    ensure_consistent(options)
    if options.query == "cdc":
        return _plan_changes(view, config, facts, options)
    if facts.as_of is not None:
        ensure_known(facts.as_of, facts.past)
    schema = facts.schema if facts.schema is not None else pa.schema([])
    columns = result_schema(schema, config)
    chosen = _chosen(view, facts, options)
    row_filter = row_filter_of(options, columns.schema)
    types = pa.schema([field for field in columns.schema if field.name in columns.path_columns])
    values = {path: partition_values(path, types, config) for path in {part.partition for part in chosen.slices}}
    partitions = values.keys() if row_filter is None else matching_partitions(values, types, row_filter)
    wanted = [part for part in chosen.slices if part.partition in partitions]
    rows = _row_plan(columns.schema, row_filter, chosen.times, options)
    keys = frozenset({KEY_FIELD, *(name for name in config.record_key_fields if "." not in name)})
    merge = None
    if any(part.logs for part in wanted):
        merge = plan_merge(schema, rows.needed.names, config, view.timeline, options.merge, until=chosen.until)
    return ReadPlan(
        query=options.query,
        files=tuple(_slice_read(part, values, facts, chosen) for part in wanted),
        rows=replace(rows, key_columns=keys, ids=facts.ids, merge=merge),
        table_schema=columns.schema,
        path_columns=columns.path_columns,
        as_of=facts.as_of,
        window=facts.window,
        skipped_files=len(chosen.slices) - len(wanted),
    )


def _plan_changes(view: View, config: TableConfig, facts: ReadFacts, options: ReadOptions) -> ReadPlan:
    if facts.window is None:
        raise Invalid("A query of changes needs a range of commits")
    schema = facts.schema if facts.schema is not None else pa.schema([])
    full = pa.schema([field.with_nullable(True) for field in with_meta(schema)])
    merge = plan_merge(schema, full.names, config, view.timeline, options.merge)
    images = RowPlan(full, full, None, None, options.batch_rows, ids=facts.ids, merge=merge)
    rows = _row_plan(CHANGE_SCHEMA, row_filter_of(options, CHANGE_SCHEMA), None, options)
    return ReadPlan(
        query=options.query,
        files=change_reads(
            facts.window,
            facts.commits,
            view,
            config.cdc_logging_mode,
            facts.sources,
            renamed_logs=facts.renamed_logs,
            being_taken=facts.being_taken,
            cleaned=facts.cleaned,
        ),
        rows=replace(rows, images=images),
        table_schema=CHANGE_SCHEMA,
        path_columns=frozenset(),
        window=facts.window,
    )


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The slices of a query, before its filter. `until`: log blocks of later writes do not count. `times`: those of an
    incremental query, and `wholes` the slices at its end, where `slices` have less.
    """

    slices: tuple[FileSlice, ...]
    until: InstantTime | None = None
    times: CommitTimes | None = None
    wholes: Mapping[GroupId, FileSlice] = field(default_factory=dict)


def _chosen(view: View, facts: ReadFacts, options: ReadOptions) -> _Chosen:
    if facts.window is not None:
        return _chosen_incremental(view, facts, facts.window, options)
    if options.query == "read_optimized":
        return _Chosen(view.base_slices_at(facts.as_of))
    return _Chosen(view.slices_at(facts.as_of), facts.as_of)


def _chosen_incremental(view: View, facts: ReadFacts, window: Window, options: ReadOptions) -> _Chosen:
    times = commit_times(window, view.timeline)
    if window.is_empty:
        return _Chosen((), times=times)
    glob = PathGlob(options.path_glob or "")
    slices, gone = touched_slices(window, facts.commits, view)
    gone = tuple(path for path in gone if glob.matches(f"{facts.base_path}/{path}"))
    ensure_fallback_allowed(window, gone, allowed=options.full_scan_fallback)
    if gone or window.needs_snapshot:
        state = view.slices_at(facts.range_end)
        wanted = tuple(part for part in state if _is_wanted(part, glob, facts.base_path))
        return _Chosen(wanted, facts.range_end, times)
    until = max(window.requested)
    touched = tuple(part for part in slices if _is_wanted(part, glob, facts.base_path))
    wholes: dict[GroupId, FileSlice] = {}
    if any(part.logs for part in touched):
        partitions = {part.partition for part in touched}
        wholes = {part.group_id: part for part in replace(view, replaced={}).slices_at(until, partitions)}
    return _Chosen(touched, until, times, wholes)


def _is_wanted(part: FileSlice, glob: PathGlob, base_path: str) -> bool:
    """Whether the slice's base file, or else its newest log file, is one the pattern finds."""
    path = part.base.path if part.base is not None else part.logs[-1].path
    return glob.matches(f"{base_path}/{path}")


def _row_plan(
    schema: pa.Schema, row_filter: RowFilter | None, times: CommitTimes | None, options: ReadOptions
) -> RowPlan:
    result = projected(schema, options.columns)
    looked_at = row_filter.columns if row_filter is not None else frozenset()
    if times is not None:
        looked_at |= {COMMIT_TIME_FIELD}
    extra = [field for field in schema if field.name in looked_at and field.name not in result.names]
    return RowPlan(result, pa.schema([*result, *extra]), row_filter, times, options.batch_rows)


def _slice_read(
    part: FileSlice, values: Mapping[str, Mapping[str, Any]], facts: ReadFacts, chosen: _Chosen
) -> SliceRead:
    known = tuple(values[part.partition].items())
    read = SliceRead(part.partition, part.base, part.logs, known, source_of(facts.sources, part.partition, part.base))
    whole = chosen.wholes.get(part.group_id) if part.logs else None
    if whole is None or whole.paths == part.paths:
        return read
    source = source_of(facts.sources, whole.partition, whole.base)
    return replace(read, whole=SliceRead(whole.partition, whole.base, whole.logs, known, source))
