"""Timelines, file layouts, findings and commits as plain values: what `--json` prints. Needs no other package."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hoodie.query import Finding
    from hoodie.spec import Instant
    from hoodie.view import FileSlice


def timeline_rows(instants: Iterable[Instant]) -> list[dict[str, str | None]]:
    """One row per instant, in the given order."""
    return [
        {
            "requested_time": instant.requested,
            "completion_time": instant.completed,
            "action": instant.action,
            "state": instant.state.name,
        }
        for instant in instants
    ]


def files_rows(slices: Iterable[FileSlice]) -> list[dict[str, Any]]:
    """One row per file slice; files by their names inside the partition."""
    return [
        {
            "partition": part.partition,
            "file_id": part.file_id,
            "base_instant": part.base_instant,
            "base_file": _file_name(part.base.path) if part.base else None,
            "log_files": [_file_name(log.path) for log in part.logs],
        }
        for part in slices
    ]


def finding_rows(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """One row per finding with the fields it has."""
    return [dataclasses.asdict(finding) for finding in findings]


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]
