"""What planning a query must know beyond the view: times understood, commits of a range, schema, sources of skeletons.

1. Everything that has to be read from storage to plan is read here and before (`asked_state`: what the timeline
   tells); `read_plan` is pure.
2. A snapshot reads one commit, an incremental query the commits of its range, a table with skeletons its bootstrap
   index. No data file is opened, unless nothing but a footer says the schema.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hoodie.query.asked_state import AskedState, load_asked_state
from hoodie.query.cleaned import load_being_taken, load_cleaned, load_retained_from
from hoodie.query.incremental import Window, needs_whole_state
from hoodie.query.read_options import ReadOptions
from hoodie.query.time_travel import KnownPast, ensure_known, load_known_past
from hoodie.records import ColumnIds
from hoodie.slices.bootstrap import BootstrapSource, load_slice_sources
from hoodie.spec import CommitMetadata, InstantTime, TableConfig
from hoodie.state.log_renames import load_renames
from hoodie.state.table_schema import load_schema
from hoodie.storage import Storage
from hoodie.view import GroupId, View

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """What planning must know beyond the view. `as_of` and `window` are the options' texts understood; `ids` is there
    where files cannot be read by column name; `sources` has the other halves of bootstrap skeletons; `base_path` is the
    full path of the table. `range_end` is the time whose state answers for a range whose files are not all there or
    known; None: the newest. `renamed_logs`: the other names of log files where a downgrade names them, or died;
    `being_taken`: files (partition, name) that pending cleans take; `cleaned`: instants of files that cleans took, by
    file group. These are for queries of changes.
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
    renamed_logs: Mapping[str, str] = field(default_factory=dict)
    being_taken: Mapping[tuple[str, str], InstantTime] = field(default_factory=dict)
    cleaned: Mapping[GroupId, tuple[InstantTime, ...]] = field(default_factory=dict)


def load_read_facts(
    storage: Storage, config: TableConfig, view: View, options: ReadOptions, state: AskedState | None = None
) -> ReadFacts:
    """What `plan_read` needs. `state`: what the timeline tells, where somebody knows it already.

    Raises:
        Invalid: a time is not understood, or a commit in the range follows a running write (version 6).
        Corrupt: metadata is damaged.
    """
    known = state or load_asked_state(storage, config, view.timeline, options)
    load = _ranged_facts if known.window is not None else _state_facts
    facts = load(storage, config, view, options, known)
    return replace(facts, sources=load_slice_sources(storage, config, view.all_slices()))


def _state_facts(
    storage: Storage, config: TableConfig, view: View, options: ReadOptions, state: AskedState
) -> ReadFacts:
    del options
    if state.as_of is None:
        schema = load_schema(storage, config, view, said=state.said)
        return ReadFacts(schema.arrow, ids=schema.ids)
    past = load_known_past(storage, view, state.as_of, state.choice)
    ensure_known(state.as_of, past)
    schema = load_schema(storage, config, view, state.as_of, state.said)
    return ReadFacts(schema.arrow, state.as_of, past, ids=schema.ids)


def _ranged_facts(
    storage: Storage, config: TableConfig, view: View, options: ReadOptions, state: AskedState
) -> ReadFacts:
    window = state.window
    assert window is not None
    until = window.instants[-1].requested if options.schema_at_end and window.instants else None
    schema = load_schema(storage, config, view, until, state.said)
    of_changes = options.query == "cdc"
    range_end = None if of_changes else _range_end(storage, view, window, state)
    renamed = load_renames(storage) if of_changes and config.is_merge_on_read else {}
    # Nothing else is told from a slice that no commit of the window names.
    asks_older = config.is_merge_on_read or any(said.partition_to_replace_file_ids for said in state.commits.values())
    root = storage.absolute("")
    return ReadFacts(
        schema.arrow,
        window=window,
        commits=state.commits,
        ids=schema.ids,
        base_path=root,
        range_end=range_end,
        renamed_logs=renamed,
        being_taken=load_being_taken(storage, view) if of_changes else {},
        cleaned=load_cleaned(storage, view, window.begin) if of_changes and asks_older else {},
    )


def _range_end(storage: Storage, view: View, window: Window, state: AskedState) -> InstantTime | None:
    """The time of the state that answers for a range whose files are not all there or known; None where that is the
    newest one, because nothing was written since or because that state was cleaned up.
    """
    until, last = window.last_requested, view.timeline.last_completed_write()
    if until is None or last is None or until >= last.requested:
        return None
    if not needs_whole_state(window, state.commits, view):
        return None
    retained = load_retained_from(storage, view, until, state.choice)
    if retained is None:
        return until
    log.warning(
        "the state of the table at %s, where the range of an incremental query ends, was cleaned up: the newest one "
        "is read instead, which lacks rows of the range that changed again since",
        until,
    )
    return None
