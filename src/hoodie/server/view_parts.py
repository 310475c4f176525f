"""What a kept view knows beside files, as bytes that outlive the service: its timeline, and what goes with it.

1. Parts are JSON. Those that are as before are not put down again.
2. Bytes that are none of these, or of another release's, are no view: the table is loaded anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from hoodie.spec import FormatProfile, Instant, InstantTime, State, TableConfig
from hoodie.state.log_renames import renamed_at
from hoodie.timeline import Timeline
from hoodie.view import GroupId

_TIMELINE, _REPLACED, _PATHS = "timeline", "replaced", "paths"
_RELEASE = 2


@dataclass(frozen=True, slots=True)
class Beside:
    """What a view of a table of version `table_version`, whose log files were last renamed at `renamed`, knows beside
    files; the other fields are those of `KeptView`.
    """

    table_version: int
    timeline: Timeline
    by_commit: Mapping[InstantTime, tuple[GroupId, ...]]
    paths: frozenset[str] | None
    unsettled: frozenset[str]
    renamed: str | None = None


def parts_of(now: Beside, before: Beside | None) -> dict[str, bytes]:
    """The parts that are not what they were. The timeline always is one."""
    timeline = now.timeline
    parts: dict[str, Any] = {
        _TIMELINE: {
            "release": _RELEASE,
            "table version": now.table_version,
            "instants": [astuple(one) for one in timeline.instants],
            "archived": dict(timeline.archived),
            "archived from": timeline.archived_from,
            "unsettled": sorted(now.unsettled),
            "renamed": now.renamed,
        }
    }
    if before is None or now.by_commit != before.by_commit:
        parts[_REPLACED] = now.by_commit
    if before is None or now.paths != before.paths:
        parts[_PATHS] = None if now.paths is None else sorted(now.paths)
    return {name: json.dumps(part).encode() for name, part in parts.items()}


def beside_of(parts: Mapping[str, bytes], config: TableConfig, profile: FormatProfile) -> Beside | None:
    """What the parts of a view of a table say; None where they say nothing, or of another version of it."""
    try:
        said, replaced, paths = (json.loads(parts[name]) for name in (_TIMELINE, _REPLACED, _PATHS))
        if said["release"] != _RELEASE or not config.has_version(said["table version"]):
            return None
        if said["renamed"] != renamed_at(config):
            return None
        instants = tuple(
            Instant(requested, action, State(state), completed, legacy)
            for requested, action, state, completed, legacy in said["instants"]
        )
        return Beside(
            config.table_version,
            Timeline(profile, instants, said["archived"], said["archived from"]),
            {at: tuple((partition, file_id) for partition, file_id in groups) for at, groups in replaced.items()},
            None if paths is None else frozenset(paths),
            frozenset(said["unsettled"]),
            said["renamed"],
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
