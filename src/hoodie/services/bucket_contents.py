"""Whether the rows of a table lie in the buckets that their keys say: what a writer with another number of buckets, or
with other hashed fields, has spoilt. Every write looks in the bucket of a key alone, and would store it again.

Only of tables that remember their bucket index: what another engine's writers have in mind is not stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hoodie.config import Config
from hoodie.engine import Engine, TaskId
from hoodie.index import Buckets, KeyParts, SimpleBuckets, load_count_rules, load_ring, parse_remembered_buckets
from hoodie.metadata_writer import IndexContext, MetadataOptions, SliceRows, skeleton_sources, slice_rows
from hoodie.state.handle import TableHandle
from hoodie.state.table_schema import load_newest_schema
from hoodie.timeline import Timeline
from hoodie.view import FileSlice

_SLICES_AT_ONCE = 64
_SHOWN_KEYS = 3


def strays_of_buckets(
    handle: TableHandle, timeline: Timeline, slices: Sequence[FileSlice], engine: Engine
) -> Iterator[tuple[str, str]]:
    """(Folder or file, what is wrong) of each of the live `slices` that is no bucket, or has rows of another one. Reads
    the keys of all slices.

    Raises:
        Corrupt: a file or a ring is damaged.
    """
    schema = load_newest_schema(handle.storage, handle.config, timeline)
    if schema is None or not handle.config.populate_meta_fields:
        return  # there are no rows, or they do not carry their keys
    context = IndexContext(handle, timeline, engine, MetadataOptions(config=Config()), {})
    sources = skeleton_sources(handle, ((part.partition, part.base) for part in slices))
    rows = slice_rows(context, schema).having(sources)
    buckets = _buckets(handle, timeline, slices)
    tasks = [_BucketTask(rows, part, buckets[part.partition]) for part in slices if part.partition in buckets]
    for at in range(0, len(tasks), _SLICES_AT_ONCE):
        found = engine.run(_check_bucket, tasks[at : at + _SLICES_AT_ONCE], "compare buckets")
        yield from (one for one in found if one is not None)


def _buckets(handle: TableHandle, timeline: Timeline, slices: Iterable[FileSlice]) -> Mapping[str, Buckets]:
    """The buckets of each partition of which they are known."""
    config, storage = handle.config, handle.storage
    known = parse_remembered_buckets(config.raw)
    if known is None or load_count_rules(storage):
        return {}
    parts = KeyParts(config.record_key_fields, known.hash_fields)
    live: dict[str, set[str]] = {}
    for part in slices:
        live.setdefault(part.partition, set()).add(part.file_id)
    if known.count is not None:
        return dict.fromkeys(live, SimpleBuckets(known.count, parts))
    completed = frozenset(one.requested for one in timeline.completed())
    rings = {name: load_ring(storage, name, completed, ids, parts) for name, ids in live.items()}
    return {name: ring for name, ring in rings.items() if ring is not None}


@dataclass(frozen=True, slots=True, eq=False)
class _BucketTask:
    rows: SliceRows
    part: FileSlice
    buckets: Buckets


def _check_bucket(_: TaskId, task: _BucketTask) -> tuple[str, str] | None:
    part, mine = task.part, task.buckets.number_of(task.part.file_id)
    path = part.paths[0]
    if mine is None:
        return path, f"belongs to none of the {task.buckets.count} buckets of its partition: no write finds its rows"
    keys = task.rows.keys(part)
    others = (task.buckets.numbers(keys) != mine).nonzero()[0]
    if not len(others):
        return None
    shown = ", ".join(repr(key) for key in keys.take(others[:_SHOWN_KEYS]).to_pylist())
    return path, (
        f"is bucket {mine} and has {len(others)} rows of other buckets ({shown}{', …' if len(others) > 3 else ''}): "
        "a write of these keys stores them a second time. Was it written with other bucket options?"
    )
