"""Whether the roots of a service can be reached: probes and the list of tables are told the same."""

from __future__ import annotations

import os
from collections.abc import Callable

from hoodie.errors import HudiError
from hoodie.storage import Storage


def trouble_of(root: str, storage_at: Callable[[str], Storage]) -> str:
    """Why a root cannot be listed; empty where it can. One look into a folder, or the first page of a listing."""
    try:
        if root.startswith("/"):
            with os.scandir(root) as inside:
                next(inside, None)
        else:
            next(storage_at(root).list(""), None)
    except OSError as error:
        return error.strerror or type(error).__name__
    except HudiError as error:
        return error.cause
    return ""
