"""Writes keep out of buckets that nobody named to them: Hudi does not store which index a table is written with.

1. New rows outside of their buckets are lost to who writes by them: Hudi fails, or stores their keys a second time.
   Changes of stored rows stay in their file groups, and are let through.
2. Replacing the file groups of a ring is left to its index, too: it gives the ring new names, since a replaced file id
   never comes back.
3. A write of which no stored row tells looks at the whole table, but only where the newest commit or a ring says that
   there may be buckets: it is a bulk insert, or goes to a new partition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hoodie.errors import Invalid
from hoodie.index import NAME_THE_INDEX, find_ring, find_simple_buckets, group_by_partition
from hoodie.index.remembered_buckets import INDEX_TYPE
from hoodie.view import FileSlice
from hoodie.write.job import Write


def may_meet_buckets(write: Write) -> bool:
    """Whether the whole table has to be looked at before rows go where there are none."""
    return not write.options.knows_buckets and (write.has_rings or write.looks_bucketed)


def ensure_outside_buckets(
    write: Write, slices: Iterable[FileSlice], filled: Collection[str], emptied: Collection[str] = ()
) -> None:
    """Checks that the partitions `filled`, which get new rows, have no buckets that nobody named, and those `emptied`
    of all file groups no ring. `slices`: the live ones that the write knows.

    Raises:
        Invalid: they have.
    """
    if write.options.knows_buckets or write.overwritten is not None or not (filled or emptied):
        return
    groups = {name: [one.file_id for one in some] for name, some in group_by_partition(slices).items()}
    found = find_simple_buckets(groups, sorted(filled))
    if found is None and write.has_rings:
        found = find_ring(write.handle.storage, sorted({*filled, *emptied}))
    if found is not None:
        raise Invalid(
            f"Rows of partition {found!r} of table {write.handle.config.name} lie in the buckets of an index that "
            "neither options nor properties name, and other writers would not find the new ones",
            remedy=f"To go on with its buckets, or if its file ids look like buckets by chance, {NAME_THE_INDEX}",
            key=INDEX_TYPE,
        )
