"""Bootstrap skeletons: base files whose data columns stand in a file of another table.

Writers read base files as they are, without that file. So what they would have to know or carry over of a skeleton's
rows is not there, and they refuse instead of writing rows with nothing in them.
"""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.errors import Unsupported
from hoodie.read.bootstrap import is_skeleton
from hoodie.spec import TableConfig
from hoodie.view import FileSlice


def ensure_no_skeletons(slices: Iterable[FileSlice], config: TableConfig) -> None:
    """Does nothing if the base files of the slices hold all of their rows.

    Raises:
        Unsupported: one of them is a skeleton.
    """
    for one in slices:
        if is_skeleton(one, config):
            raise Unsupported(
                f"Rows of file group {one.file_id} in partition {one.partition!r} stand in the table that was "
                "bootstrapped, and writers cannot carry them over yet",
                remedy="Write the table anew from its own rows (read it and save it elsewhere), or upsert these rows "
                "once with Hudi, which writes whole base files",
                partition=one.partition,
                file_id=one.file_id,
            )
