"""Columns that come again after they were dropped: files from before still hold their old values, which would be read
as the new column's, or could not be, where it has another type.

A commit that drops a column rewrites only what it touches. As long as a slice is older than that, a column of this name
is refused; which columns there were, commits of the active timeline say.
"""

from __future__ import annotations

import pyarrow as pa

from hoodie.errors import Corrupt, Invalid, Unsupported
from hoodie.fileview import open_file_view
from hoodie.records import from_avro
from hoodie.records.schema import is_list
from hoodie.spec import Instant, InstantTime
from hoodie.state.table_state import TableState
from hoodie.timeline import load_commit_metadata


def ensure_not_dropped(state: TableState, current: pa.Schema, wanted: pa.Schema) -> None:
    """Checks that columns of `wanted` which the `current` schema has not are in no file. Reads nothing when it has all.

    Raises:
        Invalid: a column was dropped, and files from before still count.
    """
    new = _paths(wanted) - _paths(current)
    if not new:
        return
    for instant in reversed(state.timeline.completed_writes()):
        again = sorted(new & _paths_at(state, instant))
        if again:
            _ensure_gone(state, again[0], instant.requested)
            return


def _ensure_gone(state: TableState, column: str, since: InstantTime) -> None:
    """Checks that no slice is as old as the last commit whose schema has the column."""
    handle, timeline = state.handle, state.timeline
    view = open_file_view(handle.storage, handle.config, timeline, plans=state.plans).load()
    old = [part for part in view.slices_at() if part.base_instant <= since]
    if old:
        raise Invalid(
            f"Column `{column}` was dropped from table {handle.config.name} after {since}, and {len(old)} file groups "
            "still hold its old values",
            remedy="Give the new column another name, or write all rows anew before (operation insert_overwrite_table)",
            column=column,
            file_groups=len(old),
        )


def _paths_at(state: TableState, instant: Instant) -> set[str]:
    """The columns of the schema that a commit says; none where it says none, or cannot be read any more."""
    said = load_commit_metadata(state.handle.storage, state.handle.profile, instant).schema
    if not said:
        return set()
    try:
        return _paths(from_avro(said))
    except (Corrupt, Unsupported):
        return set()


def _paths(schema: pa.Schema) -> set[str]:
    """Columns and the fields in them, dotted."""
    found: set[str] = set()
    for field in schema:
        _add_paths(field.name, field.type, found)
    return found


def _add_paths(path: str, data_type: pa.DataType, found: set[str]) -> None:
    found.add(path)
    if pa.types.is_struct(data_type):
        for child in data_type:
            _add_paths(f"{path}.{child.name}", child.type, found)
    elif is_list(data_type):
        _add_paths(f"{path}.element", data_type.value_type, found)
    elif pa.types.is_map(data_type):
        _add_paths(f"{path}.value", data_type.item_type, found)
