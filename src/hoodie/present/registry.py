"""Which module shows values of a class, by the name of the class: finding it loads no class and no other module.

`tests/unit/present/test_present_registry.py` holds that every name is a class of ours and that each has all its forms.
"""

from __future__ import annotations

from typing import Final

MODULES: Final = {
    "Committed": "results",
    "CleanResult": "results",
    "ArchiveResult": "results",
    "CompactionResult": "results",
    "ClusteringResult": "results",
    "PlannedClustering": "results",
    "PendingClusterings": "results",
    "ExpiredClusterings": "results",
    "ResizeResult": "results",
    "RollbackResult": "results",
    "RestoreResult": "results",
    "UpgradeResult": "results",
    "OrphansResult": "results",
    "MetadataResult": "results",
    "IndexBuildResult": "results",
    "ServicePreview": "previews",
    "Instant": "timelines",
    "Timeline": "timelines",
    "TableHistory": "timelines",
    "FileSlice": "file_slices",
    "Finding": "findings",
    "TableHealth": "health",
    "Writer": "writers",
    "Savepoint": "savepoints",
    "TableSavepoints": "savepoints",
    "TableIndexes": "indexes",
    "Table": "tables",
    "Rows": "rows",
    "ConfigKey": "config_keys",
}
