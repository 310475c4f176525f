"""Timelines of golden tables for tests: the `.hoodie` part of tables that Hudi wrote, and what it says about them.

1. `tests/golden/spec/timelines.tar.xz` holds a small choice: per table `hoodie.properties`, all timeline files, the
   partition metafiles and left markers with their modification times, and `expected.json`.
2. A folder of the full golden set gives the same for every table in it.
"""

from __future__ import annotations

import gzip
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class GoldenTimeline:
    """An unpacked table. `expected` has `active_timeline` and `timeline_metadata` as the real Hudi reports them."""

    name: str
    path: Path
    expected: dict[str, Any]

    @property
    def hudi(self) -> str:
        """The release that wrote the table."""
        return self.name.partition("/")[0]


def small_names(archive: Path) -> list[str]:
    """Names (`<release>/<scenario>`) of the tables in the small archive."""
    with tarfile.open(archive) as tar:
        return sorted(name.removesuffix("/expected.json") for name in tar.getnames() if name.endswith("/expected.json"))


def unpack_small(archive: Path, into: Path) -> dict[str, GoldenTimeline]:
    """All tables of the small archive, by name."""
    with tarfile.open(archive) as tar:
        tar.extractall(into, filter="data")
    return {
        name: GoldenTimeline(name, into / name, json.loads((into / name / "expected.json").read_bytes()))
        for name in small_names(archive)
    }


def full_names(golden_dir: Path) -> list[str]:
    """Names of all tables of the full set."""
    return sorted(str(path.parent.relative_to(golden_dir)) for path in golden_dir.glob("*/*/table.tar.gz"))


def unpack_full(golden_dir: Path, name: str, into: Path) -> GoldenTimeline:
    """One table of the full set, without its data files."""
    with tarfile.open(golden_dir / name / "table.tar.gz") as tar:
        wanted = [member for member in tar.getmembers() if _is_wanted(member)]
        tar.extractall(into / name, members=wanted, filter="data")
    top = next(path.parent for path in (into / name).rglob(".hoodie") if path.parent.name != "metadata")
    expected = golden_dir / name / "expected"
    return GoldenTimeline(
        name,
        top,
        {
            "active_timeline": json.loads(gzip.decompress((expected / "facts.json.gz").read_bytes()))[
                "active_timeline"
            ],
            "timeline_metadata": json.loads(gzip.decompress((expected / "timeline_metadata.json.gz").read_bytes())),
        },
    )


def _is_wanted(member: tarfile.TarInfo) -> bool:
    return "/.hoodie" in member.name and "/metadata/" not in member.name and "/history/" not in member.name
