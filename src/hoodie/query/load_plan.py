"""Plans a query on a table as it is stored: what has to be known is loaded here, `read_plan` decides.

1. Only partitions that can matter are listed or looked up: those that can hold a row of the filter, in a range of
   commits those that were written to.
2. A metadata table lists the files and rules slices out, and so do buckets. All of that may be left out: the rows are
   the same without it. A metadata table that should be there and is damaged is an error all the same, since what it
   lists may be wrong.
3. How large log files are is asked only of the slices that are left to read.

It opens no data file.
"""

from __future__ import annotations

from dataclasses import replace

from hoodie.engine import Engine
from hoodie.fileview import FileSystemView, file_view_of
from hoodie.fileview.opening import ensure_listable
from hoodie.query.asked_state import AskedState, load_asked_state
from hoodie.query.changes import ensure_changes_are_kept
from hoodie.query.incremental import needs_whole_state
from hoodie.query.read_facts import load_read_facts
from hoodie.query.read_options import ReadOptions, ensure_consistent
from hoodie.query.read_plan import ReadPlan, plan_read
from hoodie.slices.slice_read import logs_of, with_log_files
from hoodie.spec import TableConfig
from hoodie.storage import Storage
from hoodie.timeline import Timeline
from hoodie.view import View


def load_read_plan(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    options: ReadOptions,
    *,
    file_view: FileSystemView | None = None,
    engine: Engine | None = None,
) -> ReadPlan:
    """The plan of a query on the table as `timeline` has it. `file_view` knows its files; None: its metadata table, if
    it has one, else its folders. A metadata table and buckets also rule out slices that the filter cannot match.

    Raises:
        Invalid, Unsupported: see `ensure_consistent`, `load_read_facts` and `plan_read`.
        Corrupt: a log file is shorter than was committed; the metadata table should be there and is not, or is damaged.
    """
    ensure_consistent(options)
    if options.query == "cdc":
        ensure_changes_are_kept(config)
    metadata = None
    if config.is_metadata_table_ready and options.use_metadata:
        # Loads the readers of the metadata table, which tables without one, and workers, do not need.
        from hoodie.metadata import open_metadata_table  # noqa: PLC0415

        metadata = open_metadata_table(storage, config, timeline)
    elif file_view is None:
        ensure_listable(storage, config, timeline, use_metadata=options.use_metadata)
    file_view = file_view or file_view_of(storage, timeline, metadata, engine)
    state = load_asked_state(storage, config, timeline, options)
    view = _load_view(file_view, state, options)
    if state.row_filter is not None:
        options = replace(options, filter=state.row_filter, conditions=())
    plan = plan_read(view, config, load_read_facts(storage, config, view, options, state), options)
    if plan.rows.filter is not None:
        # For the same reason as above.
        from hoodie.query.data_skipping import SkippingSources, without_ruled_out  # noqa: PLC0415

        plan = without_ruled_out(plan, SkippingSources(storage, config, timeline, metadata), options)
    logs = logs_of(plan.files)
    known = file_view.committed_logs(logs.values()) if logs else {}
    return replace(plan, files=tuple(with_log_files(file, known) for file in plan.files)) if known else plan


def _load_view(file_view: FileSystemView, state: AskedState, options: ReadOptions) -> View:
    """The files that the query may need."""
    if state.said is None:  # files may have to say the schema
        return file_view.load()
    if state.window is not None and not state.window.needs_snapshot:
        view = file_view.load(state.touched)
        if options.query == "cdc" or not needs_whole_state(state.window, state.commits, view):
            return view
    return file_view.load() if state.choice is None else file_view.load_chosen(state.choice)
