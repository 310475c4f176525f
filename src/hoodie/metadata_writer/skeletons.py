"""The other halves of bootstrap skeletons, for those who index columns: a skeleton has meta columns only, what else its
rows have stands in a file of another table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hoodie.slices.bootstrap import BOOTSTRAP_BASE_PATH, BootstrapSource, is_skeleton_file, load_sources, source_of
from hoodie.state.handle import TableHandle
from hoodie.view import BaseFile, GroupId, LogFile

Sources = Mapping[GroupId, BootstrapSource]
"""Source files by the file groups of their skeletons."""

File = BaseFile | LogFile


def skeleton_sources(handle: TableHandle, files: Iterable[tuple[str, File | None]]) -> Sources:
    """The source files of those files (with their partitions) that are skeletons.

    Raises:
        Corrupt: the bootstrap index is damaged or gone. Unsupported: the sources lie on a storage there is none for.
    """
    if not handle.config.raw.get(BOOTSTRAP_BASE_PATH):
        return {}
    groups = {(partition, file.name.file_id) for partition, file in files if is_skeleton_file(file)}
    return load_sources(handle.storage, handle.config, sorted(groups))


def skeletons_among(handle: TableHandle, files: Iterable[tuple[str, File | None]]) -> frozenset[str]:
    """The paths of those files (with their partitions) that are skeletons."""
    if not handle.config.raw.get(BOOTSTRAP_BASE_PATH):
        return frozenset()
    return frozenset(file.path for _, file in files if is_skeleton_file(file))


def source_of_base(sources: Sources, partition: str, file: File | None) -> BootstrapSource | None:
    """The source of a file; None: it has all its columns itself."""
    return source_of(sources, partition, file) if isinstance(file, BaseFile) else None
