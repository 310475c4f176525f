"""What writers that died left in the folder for temporary files."""

from __future__ import annotations

import logging
from typing import Final

from hoodie.config import Config
from hoodie.errors import HudiError
from hoodie.spec import InstantTime, keys
from hoodie.state.handle import TableHandle
from hoodie.storage import Listable, Listing
from hoodie.timeline import Timeline
from hoodie.transaction.heartbeat import heartbeat_rule, is_expired

log = logging.getLogger(__name__)

_SPOOL: Final = ".spool"
_SUFFIXES: Final = (_SPOOL, keys.OVERWRITE_SUFFIX)


def list_leftovers(storage: Listable) -> Listing:
    """The folder for temporary files."""
    return storage.list_dir(keys.TEMP_DIR)


def remove_leftovers(handle: TableHandle, timeline: Timeline, config: Config, found: Listing | None = None) -> None:
    """Removes what dead writers left in the folder for temporary files: all but the markers of pending writes, and of
    those that may have begun since `timeline` was loaded, and the spooled input of pending writes and of those that
    still give a sign of life: they spool before their instant is there. `found`: the folder, where the caller has
    listed it under the table lock already. One call more for each spool folder.
    """
    storage = handle.storage
    found = list_leftovers(storage) if found is None else found
    pending = {instant.requested for instant in timeline.pending()}
    newest = timeline.last_time() or ""
    try:
        for folder in found.dirs:
            name = folder.rpartition("/")[2]
            instant = name.removesuffix(_SPOOL)
            if instant in pending or (instant != name and _is_alive(handle, instant, config)):
                continue
            if name.endswith(_SUFFIXES) or (name.isdigit() and name <= newest):
                storage.delete_dir(folder)
        for file in found.files:
            if file.path.endswith(_SUFFIXES):
                storage.delete(file.path)
    except HudiError as error:
        log.warning("could not remove left-over temporary files: %s", error)


def _is_alive(handle: TableHandle, instant: InstantTime, config: Config) -> bool:
    return not is_expired(handle.storage, instant, heartbeat_rule(config), handle.env)
