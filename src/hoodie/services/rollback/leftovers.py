"""What writers that died left in the folder for temporary files."""

from __future__ import annotations

import logging
from typing import Final

from hoodie.errors import HudiError
from hoodie.spec import keys
from hoodie.storage import Listable, Listing, Storage
from hoodie.timeline import Timeline

log = logging.getLogger(__name__)

_SUFFIXES: Final = (".spool", keys.OVERWRITE_SUFFIX)


def list_leftovers(storage: Listable) -> Listing:
    """The folder for temporary files."""
    return storage.list_dir(keys.TEMP_DIR)


def remove_leftovers(storage: Storage, timeline: Timeline, found: Listing | None = None) -> None:
    """Removes what dead writers left in the folder for temporary files: all but the markers of pending writes, and of
    those that may have begun since `timeline` was loaded. `found`: the folder, where the caller has listed it under the
    table lock already.
    """
    found = list_leftovers(storage) if found is None else found
    pending = {one.requested for one in timeline.pending()}
    newest = timeline.last_time() or ""
    try:
        for folder in found.dirs:
            name = folder.rpartition("/")[2]
            if name.endswith(_SUFFIXES) or (name.isdigit() and name <= newest and name not in pending):
                storage.delete_dir(folder)
        for file in found.files:
            if file.path.endswith(_SUFFIXES):
                storage.delete(file.path)
    except HudiError as error:
        log.warning("could not remove left-over temporary files: %s", error)
