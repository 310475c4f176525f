"""Rows by their record keys: a snapshot that reads as little as it can.

1. Where a key can be is asked in this order: the record index (it knows), the hash ranges or buckets of a bucket index,
   column statistics, then key range and bloom filter in the footer of each base file that is left.
2. Everything but the record index may only rule files out. Rows are compared with the keys all the same.
3. A base file that cannot hold a key is not read, while the log files on top of it are: they may hold it.

In which forms keys may be given is said by `lookup_keys`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Engine, LocalEngine, TaskId
from hoodie.errors import Invalid, Unsupported
from hoodie.fileview import FileSystemView
from hoodie.filters import RowFilter
from hoodie.filters.row_filter import Conjunct
from hoodie.query.bucket_slices import BucketHint, slices_of_keys
from hoodie.query.load_plan import load_read_plan
from hoodie.query.lookup_keys import LookupKeys, key_texts, lookup_keys
from hoodie.query.read_options import ReadOptions
from hoodie.query.read_plan import ReadPlan
from hoodie.records import KEY_FIELD, KeyRange, read_footer
from hoodie.records.columns import type_at
from hoodie.records.condition import ANYTHING, Comparison, Condition
from hoodie.slices import SliceRead
from hoodie.slices.row_keys import row_keys
from hoodie.spec import TableConfig
from hoodie.state.table_schema import load_said_schema
from hoodie.storage import Storage
from hoodie.timeline import Timeline

RECORD_INDEX = "record_index"
FOOTER_THREADS = 16


def load_lookup_plan(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    keys: Any,
    options: ReadOptions,
    *,
    buckets: BucketHint | None = None,
    file_view: FileSystemView | None = None,
    engine: Engine | None = None,
) -> ReadPlan:
    """The plan that reads the rows with one of `keys` (see `lookup_keys`). `buckets`: what is known of the table's
    bucket index, where it does not remember it; `file_view`: who knows its files (`load_read_plan`).

    Raises:
        Invalid: there is no list of keys, or the options have a filter. Unsupported: rows do not carry their keys, and
            the key is made of several fields. Others as `load_read_plan`.
    """
    if options.filter is not None or options.query != "snapshot":
        raise Invalid("A look-up has no filter and reads a snapshot", remedy="Use scan for other queries")
    given = keys if isinstance(keys, LookupKeys) else lookup_keys(keys, config.record_key_fields)
    wanted = _key_texts(storage, config, timeline, given)
    # Buckets are asked below, with what the caller knows of them.
    filtered = replace(options, filter=_key_filter(config, timeline, wanted), prune_buckets=False)
    plan = load_read_plan(storage, config, timeline, filtered, file_view=file_view, engine=engine)
    is_indexed = RECORD_INDEX in config.metadata_partitions and options.use_metadata and options.as_of is None
    if is_indexed or not config.populate_meta_fields:
        return plan
    slices = [file for file in plan.files if isinstance(file, SliceRead)]
    possible = slices_of_keys(storage, config, timeline, slices, wanted, buckets or BucketHint())
    files = _by_footer(storage, possible, wanted, engine or LocalEngine(FOOTER_THREADS))
    return replace(plan, files=files, skipped_files=plan.skipped_files + len(plan.files) - len(files))


def _key_texts(storage: Storage, config: TableConfig, timeline: Timeline, keys: LookupKeys) -> pa.StringArray:
    types: dict[str, pa.DataType] = {}
    if not keys.has_texts_only:
        schema = load_said_schema(storage, config, timeline) or pa.schema([])
        types = {name: kind for name in config.record_key_fields if (kind := type_at(schema, name)) is not None}
    return key_texts(keys, config, types)


def _key_filter(config: TableConfig, timeline: Timeline, keys: pa.StringArray) -> RowFilter:
    known = row_keys(config, timeline.profile)
    column, expression = KEY_FIELD, pc.field(KEY_FIELD).isin(keys)
    condition: Condition = Comparison(KEY_FIELD, "in", keys)
    if known.fields:
        if known.named:
            raise Unsupported(
                "Rows do not carry their keys, and the key is made of several fields",
                remedy="Use scan with a filter on the key columns",
            )
        column = known.fields[0]
        expression, condition = pc.field(column).cast(pa.string()).isin(keys), ANYTHING
    return RowFilter((Conjunct(expression, frozenset({column}), condition),), f"{column} IN ({len(keys)} keys)")


def _by_footer(
    storage: Storage, slices: Sequence[SliceRead], keys: pa.StringArray, engine: Engine
) -> tuple[SliceRead, ...]:
    """The slices whose base file may hold a key; those it cannot are left with their log files."""
    tasks = [
        _FooterTask(storage, "" if part.base is None or part.base.path.endswith(".hfile") else part.base.path, keys)
        for part in slices
    ]
    held = engine.run(_may_hold, tasks, "ask footers")
    left = (part if is_held else replace(part, base=None) for part, is_held in zip(slices, held, strict=True))
    return tuple(part for part in left if part.base is not None or part.logs)


@dataclass(frozen=True, slots=True)
class _FooterTask:
    storage: Storage
    path: str
    keys: pa.StringArray


def _may_hold(_: TaskId, task: _FooterTask) -> bool:
    if not task.path:
        return True
    footer = read_footer(task.storage, task.path)
    keys = task.keys
    if footer.min_key is not None and footer.max_key is not None:
        keys = keys.filter(KeyRange(footer.min_key, footer.max_key).mask(keys))
    if not len(keys):
        return False
    bloom = footer.bloom()
    return bloom is None or bool(bloom.contains(keys).any())
