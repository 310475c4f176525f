"""Answers of the real timeline server about golden tables, and how ours are compared with them.

`tests/golden/timeline_server/<release>/<scenario>.json.gz` is a list of [path, parameters, status, answer], with
`{base}` for the base path. `tests/compat/record_timeline_server.py` writes them. What may differ:

1. `fileStatus` is null in ours, and the scheme of a path is that of the base path.
2. File groups are in no order, nor are slices of different groups; the order inside a group counts.
3. `slices/range/latest/` fails there as soon as one file group has no slice in the list; ours leaves it out.
4. A pending instant of version 6 has a completion time there: when its file was written. Ours has none.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hoodie.remote.json_values import Json

FAILS_THERE = "slices/range/latest/"


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request, and what the real server said."""

    path: str
    parameters: dict[str, str]
    status: int
    answer: Json

    @property
    def is_comparable(self) -> bool:
        return self.status == 200 or self.path != FAILS_THERE


def recorded_names(folder: Path) -> list[str]:
    """Names (`<release>/<scenario>`) of the tables there are answers about."""
    return sorted(str(path.relative_to(folder)).removesuffix(".json.gz") for path in folder.glob("*/*.json.gz"))


def load_recorded(folder: Path, name: str) -> Iterator[Recorded]:
    """The answers about one table."""
    for line in json.loads(gzip.decompress((folder / f"{name}.json.gz").read_bytes())):
        yield Recorded(*line)


def comparable(answer: Json) -> Json:
    """An answer without what may differ."""
    found = _plain(answer)
    if isinstance(found, list) and found and isinstance(found[0], dict) and "slices" in found[0]:
        # The timeline stands in the first group, whichever that is.
        groups = sorted(({**one, "timeline": None} for one in found), key=_text)
        return {
            "groups": groups,
            "timeline": found[0]["timeline"],
            "others": {_text(one["timeline"]) for one in found[1:]},
        }
    if isinstance(found, list):
        return sorted(found, key=_text) if not _is_of_one_group(found) else found
    if isinstance(found, dict) and "instants" not in found:
        return {name: sorted(some, key=_text) for name, some in found.items()}
    return found


def _is_of_one_group(found: list[Json]) -> bool:
    ids = {one.get("fileId") for one in found if isinstance(one, dict)}
    return len(ids) == 1 and None not in ids


def _plain(value: Json) -> Json:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    plain = {name: _plain(one) for name, one in value.items() if name != "fileStatus"}
    for name in ("fullPath", "path"):
        if isinstance(plain.get(name), str):
            plain[name] = plain[name].removeprefix("file:")
    if plain.get("state") in ("REQUESTED", "INFLIGHT"):
        plain["completionTime"] = None
    return plain


def _text(value: Json) -> str:
    return json.dumps(value, sort_keys=True)
