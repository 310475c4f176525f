"""What planning a query must know beyond the view: times understood, commits of a range, schema, sources of skeletons.

1. Everything that has to be read from storage to plan is read here; `read_plan` is pure.
2. A snapshot reads one commit, an incremental query the commits of its range, a table with skeletons its bootstrap
   index. No data file is opened, unless nothing but a footer says the schema.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hoodie.errors import Invalid
from hoodie.query.cleaned import load_retained_from
from hoodie.query.incremental import (
    Window,
    select,
    touched_slices,
    with_archived,
    without_hollow,
    without_operations,
)
from hoodie.query.read_options import EARLIEST, ReadOptions
from hoodie.query.time_travel import KnownPast, ensure_known, first_incomplete_write, load_known_past
from hoodie.records import ColumnIds
from hoodie.slices.bootstrap import BootstrapSource, load_slice_sources
from hoodie.spec import COMPLETION_CLOCK, CommitMetadata, InstantTime, TableConfig
from hoodie.state.table_schema import load_schema
from hoodie.storage import Storage
from hoodie.timeline import has_history, load_archived_commits, load_commit_metadata, parse_as_of
from hoodie.view import GroupId, View

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """What planning must know beyond the view. `as_of` and `window` are the options' texts understood; `ids` is there
    where files cannot be read by column name; `sources` has the other halves of bootstrap skeletons; `base_path` is the
    full path of the table. `range_end` is the time whose state answers for a range whose files are not all there or
    known; None: the newest.
    """

    schema: pa.Schema | None
    as_of: InstantTime | None = None
    past: KnownPast = field(default_factory=KnownPast)
    window: Window | None = None
    commits: Mapping[InstantTime, CommitMetadata] = field(default_factory=dict)
    ids: ColumnIds | None = None
    sources: Mapping[GroupId, BootstrapSource] = field(default_factory=dict)
    base_path: str = ""
    range_end: InstantTime | None = None


def load_read_facts(storage: Storage, config: TableConfig, view: View, options: ReadOptions) -> ReadFacts:
    """What `plan_read` needs.

    Raises:
        Invalid: a time is not understood, or a commit in the range follows a running write (version 6).
        Corrupt: metadata is damaged.
    """
    load = _ranged_facts if options.is_ranged else _state_facts
    facts = load(storage, config, view, options)
    return replace(facts, sources=load_slice_sources(storage, config, view.all_slices()))


def _state_facts(storage: Storage, config: TableConfig, view: View, options: ReadOptions) -> ReadFacts:
    if options.as_of is None:
        schema = load_schema(storage, config, view)
        return ReadFacts(schema.arrow, ids=schema.ids)
    as_of = parse_as_of(options.as_of, config.timezone)
    past = load_known_past(storage, view, as_of)
    ensure_known(as_of, past)
    schema = load_schema(storage, config, view, as_of)
    return ReadFacts(schema.arrow, as_of, past, ids=schema.ids)


def _ranged_facts(storage: Storage, config: TableConfig, view: View, options: ReadOptions) -> ReadFacts:
    timeline = view.timeline
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
    schema = load_schema(storage, config, view, until)
    range_end = None if options.query == "cdc" else _range_end(storage, view, window, commits)
    root = storage.absolute("")
    return ReadFacts(schema.arrow, window=window, commits=commits, ids=schema.ids, base_path=root, range_end=range_end)


def _range_end(
    storage: Storage, view: View, window: Window, commits: Mapping[InstantTime, CommitMetadata]
) -> InstantTime | None:
    """The time of the state that answers for a range whose files are not all there or known; None where that is the
    newest one, because nothing was written since or because that state was cleaned up.
    """
    until, last = window.last_requested, view.timeline.last_completed_write()
    if until is None or last is None or until >= last.requested:
        return None
    if not window.needs_snapshot and not touched_slices(window, commits, view)[1]:
        return None
    retained = load_retained_from(storage, view, until)
    if retained is None:
        return until
    log.warning(
        "the state of the table at %s, where the range of an incremental query ends, was cleaned up: the newest one "
        "is read instead, which lacks rows of the range that changed again since",
        until,
    )
    return None


def _instant(text: str, config: TableConfig) -> InstantTime:
    """An end of a range: `earliest`, digits as they are (also few of them: `000`), or a date in any accepted format."""
    if text in EARLIEST:
        return EARLIEST[-1]
    return text if text.isascii() and text.isdigit() else parse_as_of(text, config.timezone)
