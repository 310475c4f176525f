"""The plan of a base-file compaction as RFC-19 has it (`HoodieBaseFileCompactionPlan`), in JSON.

It stands in the extra metadata of a clustering's plan, whose groups say the same: timelines have no place for a plan
that other readers do not know. Grammar: `docs/format/clustering.md`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

BASE_FILE_PLAN: Final = "hoodie.base.file.compaction.plan"
"""The key it stands under."""

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class BaseFileOperation:
    """Base files of one partition that become one; paths below the table."""

    partition: str
    base_files: tuple[str, ...]
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class BaseFilePlan:
    """All operations of a plan."""

    operations: tuple[BaseFileOperation, ...]


def encode_base_file_plan(plan: BaseFilePlan) -> str:
    """The plan with the members of its Avro schema."""
    operations = [
        {"baseFilePaths": list(one.base_files), "partitionPath": one.partition, "metrics": dict(one.metrics)}
        for one in plan.operations
    ]
    return json.dumps({"operations": operations, "extraMetadata": None, "version": _VERSION}, separators=(",", ":"))
