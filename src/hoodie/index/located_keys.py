"""From locations of keys, as an index stores them, to the slices that have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.index.keyed_rows import HeldKeys
from hoodie.index.write_index import Candidate
from hoodie.view import FileSlice

LOCATIONS = pa.schema(
    [pa.field("record_key", pa.string()), pa.field("partition", pa.string()), pa.field("file_id", pa.string())]
)
"""Columns of a table of locations: a key, and the file group that has it."""


def located(held: HeldKeys, locations: pa.Table, slices: Sequence[FileSlice], *, vouched: bool) -> list[Candidate]:
    """A candidate for each of the `slices` that some of the keys are in. `locations` has columns `record_key`,
    `partition` and `file_id`, for no other keys. A place that is no live slice is none: an index may know file groups
    that were replaced.
    """
    groups = {"/".join(piece.group_id): piece for piece in slices}
    places = pc.binary_join_element_wise(locations.column("partition"), locations.column("file_id"), "/")
    coded = places.combine_chunks().dictionary_encode()
    codes = coded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(coded.dictionary)))
    found_keys = locations.column("record_key").combine_chunks()
    rows = pc.index_in(found_keys, value_set=held.keys).to_numpy(zero_copy_only=False)
    found: list[Candidate] = []
    for place, chosen in zip(coded.dictionary.to_pylist(), np.split(rows[order], starts[1:]), strict=False):
        if place in groups:
            at = np.unique(chosen)  # a key may be there twice
            positions = held.positions[at]
            keys = HeldKeys(held.keys.take(pa.array(at)), positions)
            found.append(Candidate(groups[place], keys, positions if vouched else None))
    return found
