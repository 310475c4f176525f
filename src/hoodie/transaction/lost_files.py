"""Whether a data file that is missing is one the table still needs: then it is lost, and no write can do without it."""

from __future__ import annotations

from hoodie.errors import HudiError
from hoodie.fileview import open_file_view
from hoodie.state.handle import TableHandle, load_handle, timeline_of


def is_lost(handle: TableHandle, path: str) -> bool:
    """Whether the newest state of the table names the missing file `path`, which may be a full name. Folders list no
    missing files, so only a metadata table tells; without one, or where it cannot be read, nobody knows.
    """
    try:
        now = load_handle(handle.storage, handle.env)
        if not now.config.is_metadata_table_ready:
            return False
        slices = open_file_view(now.storage, now.config, timeline_of(now)).load().slices_at()
    except HudiError:
        return False
    return any(f"/{path}".endswith(f"/{one}") for piece in slices for one in piece.paths)
