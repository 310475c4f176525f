"""Bootstrap skeletons: base files whose data columns stand in a file of another table.

1. Keys are in the skeleton, with its bloom filter and key range: they are looked up there as in any base file.
2. Whatever else a write has to know or to carry over of stored rows is read from skeleton and source side by side. What
   is written is a whole base file, the next version of the skeleton's file group.
3. A skeleton is as large as both files are: so large is the file that would be made of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from hoodie.errors import Unsupported
from hoodie.index import StitchedRows
from hoodie.slices.bootstrap import BootstrapSource, is_skeleton, iter_stitched, load_slice_sources, source_of
from hoodie.state.handle import TableHandle
from hoodie.view import FileSlice, GroupId
from hoodie.write.job import Write


def load_skeleton_sources(handle: TableHandle, slices: Sequence[FileSlice]) -> Mapping[GroupId, BootstrapSource]:
    """The source files of those of the slices whose base files are skeletons, by file group.

    Raises:
        Corrupt: the bootstrap index is damaged or gone.
        Unsupported: the sources lie on a storage there is none for, or the skeletons hold no keys.
    """
    config = handle.config
    if not config.populate_meta_fields and any(is_skeleton(one, config) for one in slices):
        raise Unsupported(
            f"Table {config.name} was bootstrapped, and its files have no keys (hoodie.populate.meta.fields=false)",
            remedy="Write the table anew from its own rows (read it and save it elsewhere)",
            table=config.name,
        )
    return load_slice_sources(handle.storage, config, slices)


def stitched_rows(write: Write, one: FileSlice | None) -> StitchedRows | None:
    """How the rows of the slice's base file are read, if it is a skeleton; None: it has them all itself."""
    if one is None or one.base is None or not is_skeleton(one, write.handle.config):
        return None
    return partial(iter_stitched, write.handle.storage, one.base.path, write.sources[one.group_id])


def with_source_bytes(write: Write, one: FileSlice) -> FileSlice:
    """The slice with a base file as large as skeleton and source together, if it is a skeleton."""
    source = source_of(write.sources, one.partition, one.base)
    if source is None or one.base is None:
        return one
    return one._replace(base=one.base._replace(size_bytes=one.base.size_bytes + source.size_bytes))
