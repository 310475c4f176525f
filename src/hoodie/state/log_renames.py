"""The list of log files that a downgrade names anew: written before the first of them, deleted when commits say so too.

1. While it is there a log file lies under one of its two names (`hoodie.services.upgrading.logs`), whatever a commit
   says.
2. Once it is written the properties say when names began to change, and say so from then on: whoever remembers names
   of files compares that with what it was, and need not look for the list.
"""

from __future__ import annotations

import json

from hoodie.errors import Corrupt, Missing
from hoodie.spec import TableConfig, keys
from hoodie.state.handle import TableHandle
from hoodie.storage import Storage


def load_renames(storage: Storage) -> dict[str, str]:
    """Old to new path of each log file; empty where no downgrade is under way, or died.

    Raises:
        Corrupt: the list is damaged.
    """
    try:
        found = json.loads(storage.read(keys.LOG_RENAMES_FILE))
        return {str(old): str(new) for old, new in found.items()}
    except Missing:
        return {}
    except (ValueError, AttributeError) as error:
        raise Corrupt(
            f"{keys.LOG_RENAMES_FILE} is damaged: {error}",
            remedy="Delete it; commits may name log files by names they have no more",
            path=keys.LOG_RENAMES_FILE,
        ) from error


def renamed_at(config: TableConfig) -> str | None:
    """When a downgrade last began to give log files other names; None if none ever did."""
    return config.raw.get(keys.LOG_RENAMES)


def is_named_alike(one: TableConfig, other: TableConfig) -> bool:
    """Whether log files have the same names in two states of a table."""
    return one.has_version(other.table_version) and renamed_at(one) == renamed_at(other)


def may_be_named_back(handle: TableHandle) -> bool:
    """Whether log files have, or may get, names that they will not keep: a downgrade is under way, or died. Asks the
    storage where one ever began.
    """
    if renamed_at(handle.config) is None or not handle.profile.log_naming.finds_slice_by_completion:
        return False
    try:
        handle.storage.head(keys.LOG_RENAMES_FILE)
    except Missing:
        return False
    return True
