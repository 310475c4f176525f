"""Plans a query on a table as it is stored: what has to be known is loaded here, `read_plan` decides.

1. A metadata table lists the files and rules slices out. All of that may be left out: the rows are the same without it.
   A metadata table that should be there and is damaged is an error all the same, since what it lists may be wrong.
2. Slices that were listed by it get the real sizes of their log files, and only those that are left to read. In version
   6 it lists what dead writers left behind or in a log file with its size as well, so what was committed is asked of
   the commits.

It opens no data file.
"""

from __future__ import annotations

from dataclasses import replace

from hoodie.engine import Engine
from hoodie.query.changes import ensure_changes_are_kept
from hoodie.query.read_facts import load_read_facts
from hoodie.query.read_options import ReadOptions, ensure_consistent
from hoodie.query.read_plan import ReadPlan, plan_read
from hoodie.query.whole_logs import logs_of, with_whole_logs
from hoodie.slices.slice_read import with_log_files
from hoodie.spec import TableConfig
from hoodie.storage import Storage
from hoodie.timeline import Timeline
from hoodie.view import View, load_view


def load_read_plan(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    options: ReadOptions,
    *,
    view: View | None = None,
    engine: Engine | None = None,
) -> ReadPlan:
    """The plan of a query on the table as `timeline` has it. Lists the table's files unless a view is given: by its
    metadata table if it has one, which then also rules out slices the filter cannot match.

    Raises:
        Invalid, Unsupported: see `ensure_consistent`, `load_read_facts` and `plan_read`.
        Corrupt: a log file is shorter than was committed.
    """
    ensure_consistent(options)
    if options.query == "cdc":
        ensure_changes_are_kept(config)
    if config.metadata_partitions and options.use_metadata:
        return _load_plan_with_metadata(storage, config, timeline, options, view=view, engine=engine)
    view = view or load_view(storage, config, timeline, engine=engine)
    plan = plan_read(view, config, load_read_facts(storage, config, view, options), options)
    return replace(plan, files=with_whole_logs(storage, timeline, plan.files, engine))


def _load_plan_with_metadata(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    options: ReadOptions,
    *,
    view: View | None = None,
    engine: Engine | None = None,
) -> ReadPlan:
    """The plan of a query, with the help of the table's metadata table; `view` is used when there is one.

    Raises:
        Corrupt: the metadata table should be there and is not, or is damaged.
        Invalid, Unsupported: see `plan_read`.
    """
    # Loads the readers of the metadata table, which tables without one, and workers, do not need.
    from hoodie.metadata import open_metadata_table  # noqa: PLC0415
    from hoodie.query.data_skipping import without_ruled_out  # noqa: PLC0415

    metadata = open_metadata_table(storage, config, timeline)
    is_listed = metadata is not None and view is None
    if view is None:
        listing = None if metadata is None else metadata.files()
        view = load_view(storage, config, timeline, listing=listing, engine=engine)
    plan = plan_read(view, config, load_read_facts(storage, config, view, options), options)
    if metadata is not None:
        plan = without_ruled_out(plan, metadata, options)
    if is_listed and timeline.profile.slicing == "completion":
        return _with_committed_logs(plan)
    if is_listed:
        plan = _with_real_log_sizes(plan, storage)
    return replace(plan, files=with_whole_logs(storage, timeline, plan.files, engine))


def _with_committed_logs(plan: ReadPlan) -> ReadPlan:
    """`plan` with all bytes of its log files committed, as they are listed: where one write makes a log file and nobody
    appends to it, the size that write said is the file's. One that is shorter, or gone, is found when it is read.
    """
    sized = {path: replace(one, committed_bytes=one.size_bytes) for path, one in logs_of(plan.files).items()}
    return replace(plan, files=tuple(with_log_files(file, sized) for file in plan.files)) if sized else plan


def _with_real_log_sizes(plan: ReadPlan, storage: Storage) -> ReadPlan:
    """`plan` with the log files of its slices as large as they are on storage, and what the metadata table lists as
    what was committed: one call for each of them.

    Raises:
        Corrupt: one of them is gone, or shorter than the metadata table says.
    """
    # For the same reason as above.
    from hoodie.metadata import with_log_sizes  # noqa: PLC0415

    logs = logs_of(plan.files)
    if not logs:
        return plan
    sized = {
        path: replace(one, committed_bytes=logs[path].size_bytes)
        for path, one in with_log_sizes(storage, list(logs.values())).items()
    }
    return replace(plan, files=tuple(with_log_files(file, sized) for file in plan.files))
