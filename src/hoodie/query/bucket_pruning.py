"""Which slices a filter leaves in a table that remembers its bucket index: those of the buckets of the keys it names.

1. A filter names buckets when every row it keeps has one of some record keys, or one of some values in each field that
   is hashed. Fields that are not hashed may have any value whose text cannot be taken for another field's.
2. A table that remembers nothing is not pruned: another writer may have had other buckets in mind.
3. Columns by name, and whose values come from the file, only: the path and a renamed column may spell a value otherwise
   than the key does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from hoodie.index import RememberedBuckets, parse_remembered_buckets
from hoodie.metadata.row_keys import asked_values, combined_keys, has_one_spelling
from hoodie.query.bucket_slices import BucketHint, slices_of_keys
from hoodie.query.read_plan import ReadPlan
from hoodie.records import KEY_FIELD
from hoodie.records.condition import Condition, conjuncts
from hoodie.slices import SliceRead
from hoodie.spec import TableConfig
from hoodie.spec.table_config import USER_PROVIDED
from hoodie.storage import Storage
from hoodie.timeline import Timeline

_MAX_RINGS: Final = 64
"""Rings of so many partitions are looked up, which takes a listing and a read each; of more, files are opened."""

_BARE: Final = frozenset({"SIMPLE", "TIMESTAMP", "CUSTOM", "NON_PARTITION"})
"""Generators that make a key of one field its value, in all releases; of others it may be `name:value`."""


def slices_of_named_buckets(
    plan: ReadPlan, storage: Storage, config: TableConfig, timeline: Timeline, slices: Sequence[SliceRead]
) -> Sequence[SliceRead]:
    """Those of `slices` that may hold a row of the plan's filter, as far as buckets tell."""
    known = parse_remembered_buckets(config.raw)
    row_filter = plan.rows.filter
    is_state = plan.query in ("snapshot", "read_optimized")
    if known is None or row_filter is None or not is_state or plan.rows.ids is not None or len(slices) < 2:
        return slices
    if known.count is None and len({part.partition for part in slices}) > _MAX_RINGS:
        return slices
    types = {field.name: field.type for field in plan.table_schema if field.name not in plan.path_columns}
    keys = _named_keys(conjuncts(row_filter.condition), config, known, types)
    return slices if keys is None else slices_of_keys(storage, config, timeline, slices, keys, BucketHint())


def _named_keys(
    conditions: Sequence[Condition], config: TableConfig, known: RememberedBuckets, types: dict[str, pa.DataType]
) -> pa.StringArray | None:
    """Keys of all buckets that rows meeting all conditions are in; None when the conditions do not say."""
    direct = asked_values(conditions, KEY_FIELD, pa.string())
    if direct is not None and config.populate_meta_fields:
        return pa.array(direct, pa.string())
    fields = config.record_key_fields
    if config.keygen_type == USER_PROVIDED:
        return None
    choices: list[list[str]] = []
    for name in fields:
        data_type = types.get(name)
        if data_type is None:
            return None
        values = asked_values(conditions, name, data_type)
        if values is None and name not in known.hash_fields and has_one_spelling(data_type, with_texts=False):
            values = ["0"]  # any value does: it is not hashed, and has no comma
        if values is None:
            return None
        choices.append(values)
    keys = combined_keys(fields, choices)
    if keys is None:
        return None
    if len(fields) == 1:
        keys = choices[0] if config.keygen_type in _BARE else [*choices[0], *keys]
    return pa.array(keys, pa.string())
