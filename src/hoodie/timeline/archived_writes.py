"""The archived writes of a table, all of them: what decides whether a file older than the active timeline counts.

1. Reading them costs a listing, and the files of the history once: they are kept until the listing changes.
2. Archives of version 6 hold everything that commits said, and are read as a whole. Large ones are left alone, and all
   that is older than the active timeline counts, as in Hudi.
3. The same goes for a history that is damaged, or has spans that a dead archiver may have left: rows that were
   committed must not be lost for it.

Bytes: `docs/format/history.md`; the rule: `docs/design/0009-rollback.md`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from hoodie.errors import Corrupt, Missing
from hoodie.spec import FormatProfile, InstantTime
from hoodie.storage import FileInfo, Storage
from hoodie.timeline.history import history_of, load_archived_commits

_MAX_KEPT = 16

Completions = Mapping[InstantTime, InstantTime]
"""Requested time of writes to the time they completed."""

log = logging.getLogger(__name__)

_kept: dict[str, tuple[tuple[FileInfo, ...], Completions]] = {}


def load_archived_writes(storage: Storage, profile: FormatProfile) -> Completions:
    """The writes that the history has; none where there is no history, or it cannot be read at a bearable price."""
    history = history_of(storage, profile)
    files = history.files()
    if not files:
        return {}
    folder = storage.absolute(profile.history_dir)
    known = _kept.get(folder)
    if known is not None and known[0] == files:
        return known[1]
    try:
        found = load_archived_commits(storage, profile) if history.tells_all(files) else {}
    except (Corrupt, Missing) as damage:
        log.warning("the archived history is damaged, so all that is older than the timeline counts: %s", damage)
        return {}
    if len(_kept) >= _MAX_KEPT:
        _kept.clear()
    _kept[folder] = (files, found)
    return found
