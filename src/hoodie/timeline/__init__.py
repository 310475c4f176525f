"""What happened to a table, in order, and the table's own config: loading, and moving instants from state to state."""

from hoodie.timeline.archived_instant import ArchivedInstant
from hoodie.timeline.archived_writes import load_archived_writes
from hoodie.timeline.as_of import instant_text, parse_as_of
from hoodie.timeline.clock import new_instant_time
from hoodie.timeline.config_store import (
    is_table,
    load_held_config,
    load_held_snapshot,
    load_table_config,
    store_table_config,
)
from hoodie.timeline.history import (
    ArchivedFiles,
    History,
    HistoryOptions,
    Logical,
    StateContent,
    has_history,
    history_of,
    load_archived_cleans,
    load_archived_commits,
    load_archived_metadata,
    load_archived_paths,
    load_history,
)
from hoodie.timeline.load import (
    PLAN_ACTIONS,
    instant_path,
    is_clustering,
    list_instants,
    list_state_files,
    load_commit_metadata,
    load_instant,
    load_replace_request,
    load_requested,
    load_timeline,
)
from hoodie.timeline.log_archive import list_archives
from hoodie.timeline.log_archive_writer import MergeLimits, append_archive, merge_archives, settle_merge
from hoodie.timeline.lsm_writer import HistoryLimits, HistoryRow, append_history, compact_history
from hoodie.timeline.markers import DirectMarkers, Markers, markers_of
from hoodie.timeline.timeline import Timeline, furthest
from hoodie.timeline.transitions import (
    complete,
    complete_and_look,
    create_requested,
    delete_instant_files,
    ensure_alive,
    ensure_newest,
    load_begun_ms,
    to_inflight,
)

__all__ = [
    "PLAN_ACTIONS",
    "ArchivedFiles",
    "ArchivedInstant",
    "DirectMarkers",
    "History",
    "HistoryLimits",
    "HistoryOptions",
    "HistoryRow",
    "Logical",
    "Markers",
    "MergeLimits",
    "StateContent",
    "Timeline",
    "append_archive",
    "append_history",
    "compact_history",
    "complete",
    "complete_and_look",
    "create_requested",
    "delete_instant_files",
    "ensure_alive",
    "ensure_newest",
    "furthest",
    "has_history",
    "history_of",
    "instant_path",
    "instant_text",
    "is_clustering",
    "is_table",
    "list_archives",
    "list_instants",
    "list_state_files",
    "load_archived_cleans",
    "load_archived_commits",
    "load_archived_metadata",
    "load_archived_paths",
    "load_archived_writes",
    "load_begun_ms",
    "load_commit_metadata",
    "load_held_config",
    "load_held_snapshot",
    "load_history",
    "load_instant",
    "load_replace_request",
    "load_requested",
    "load_table_config",
    "load_timeline",
    "markers_of",
    "merge_archives",
    "new_instant_time",
    "parse_as_of",
    "settle_merge",
    "store_table_config",
    "to_inflight",
]
