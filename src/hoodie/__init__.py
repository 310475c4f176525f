"""Apache Hudi tables in Python: PySpark and pyarrow, no jar, the same bytes on disk.

    import hoodie
    spark = hoodie.session("app")                 # or hoodie.enable(existing_session)
    df.write.format("hudi").options(...).save(path)
    table = hoodie.Table.open(path)               # works without Spark, too

Names are loaded when first used: workers and the command line pay only for what they touch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hoodie.errors import (
        CommitUnknown,
        Conflict,
        Corrupt,
        Fenced,
        HudiError,
        Invalid,
        Missing,
        Unavailable,
        Unsupported,
    )
    from hoodie.spark import enable, session
    from hoodie.table import Table
    from hoodie.transaction import Committed

__version__ = "0.1.0"

_HOMES = {
    "Table": "hoodie.table",
    "Committed": "hoodie.transaction",
    "enable": "hoodie.spark",
    "session": "hoodie.spark",
    "HudiError": "hoodie.errors",
    "Conflict": "hoodie.errors",
    "CommitUnknown": "hoodie.errors",
    "Unavailable": "hoodie.errors",
    "Missing": "hoodie.errors",
    "Invalid": "hoodie.errors",
    "Corrupt": "hoodie.errors",
    "Unsupported": "hoodie.errors",
    "Fenced": "hoodie.errors",
}

__all__ = [
    "CommitUnknown",
    "Committed",
    "Conflict",
    "Corrupt",
    "Fenced",
    "HudiError",
    "Invalid",
    "Missing",
    "Table",
    "Unavailable",
    "Unsupported",
    "__version__",
    "enable",
    "session",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hoodie' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
