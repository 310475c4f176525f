"""Log files that came when their write had been rolled back, in a table that leaves version 6.

1. Names of version 6 tell the slice of a log file, and not who wrote it; later versions take it for a part of the write
   that made the slice. So rows of a write that never completed would count.
2. Compactions have taken in all log files that the table knows. One that lies in the newest slice of its group all the
   same, and that no completed write began, is such a file; so is one that nobody can read and the metadata table does
   not list.
"""

from __future__ import annotations

from hoodie.engine import Engine
from hoodie.errors import Corrupt, Unsupported
from hoodie.fileview.listed import unlisted
from hoodie.spec import BaseFileName, LogFileName, parse_data_file_name
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.timeline import Timeline, load_archived_writes
from hoodie.transaction.deletion import delete_files
from hoodie.transaction.own_files import first_writer
from hoodie.view import list_data_paths


def remove_late_logs(handle: TableHandle, engine: Engine) -> int:
    """How many such files there were; they are gone."""
    newest: dict[tuple[str, str], str] = {}
    logs: list[tuple[str, str, LogFileName]] = []
    for path in list_data_paths(handle.storage):
        partition, _, file_name = path.rpartition("/")
        name = parse_data_file_name(file_name)
        if isinstance(name, BaseFileName):
            newest[partition, name.file_id] = max(name.instant, newest.get((partition, name.file_id), ""))
        elif isinstance(name, LogFileName) and not name.is_cdc:
            logs.append((path, partition, name))
    last = [path for path, partition, name in logs if name.instant >= newest.get((partition, name.file_id), "")]
    timeline = timeline_of(handle).with_archived(load_archived_writes(handle.storage, handle.profile), whole=True)
    late = [path for path in last if _never_completed(handle, timeline, path)]
    delete_files(handle.storage, engine, late, "upgrade")
    return len(late)


def _never_completed(handle: TableHandle, timeline: Timeline, path: str) -> bool:
    try:
        writer = first_writer(handle.storage, path)
    except (Corrupt, Unsupported):
        # What a dead writer left of a file, where the table can tell that it is not its own. Else readers will say.
        return handle.config.is_metadata_table_ready and bool(unlisted(handle, [path]))
    return writer is not None and not timeline.is_committed(writer)
