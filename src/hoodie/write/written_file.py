"""One file that a task of a write has made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hoodie.metadata_writer import FileFacts
from hoodie.spec import WriteStat


@dataclass(frozen=True, slots=True, eq=False)
class WrittenFile:
    """`stat` is what the commit says of it, `facts` what indexes need beside that; None: they read the file."""

    stat: WriteStat
    facts: FileFacts | None = None


def facts_by_path(files: Iterable[WrittenFile]) -> dict[str, FileFacts]:
    """What is known of files, by their paths."""
    return {file.stat.path: file.facts for file in files if file.stat.path is not None and file.facts is not None}
