"""The list of log files that a downgrade names anew: written before the first of them, deleted when commits say so too.

While it is there a log file lies under one of its two names (`hoodie.services.upgrading.logs`), whatever a commit says.
"""

from __future__ import annotations

import json

from hoodie.errors import Corrupt, Missing
from hoodie.spec import keys
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
