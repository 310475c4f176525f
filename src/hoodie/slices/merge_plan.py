"""How a table's log files are merged, as a value that travels: rules, blocks that count, columns, limits."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from hoodie.merge import MergeRules, columns_needed, merge_rules_of
from hoodie.records import KEY_FIELD, META_SCHEMA, with_meta
from hoodie.slices.row_keys import RowKeys, row_keys
from hoodie.slices.slice_read import BlockChoice
from hoodie.spec import InstantTime, TableConfig
from hoodie.timeline import Timeline

if TYPE_CHECKING:
    from hoodie.config import Config

_KEYS = (
    "hoodie.payload.delete.field",
    "hoodie.payload.delete.marker",
    "hoodie.write.partial.update.unavailable.value",
)


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """How log files are merged, as a caller asks for it.

    `properties`: the delete marker and the unavailable value of a table that does not store them (Hudi's keys).
    `memory_bytes` are what the rows of one slice's log files may take before they go to files in `spill_dir` (None: the
    system's folder for temporary files).
    """

    properties: tuple[tuple[str, str], ...] = ()
    memory_bytes: int = 1 << 30
    spill_dir: str | None = None


def parse_merge_options(config: Config) -> MergeOptions:
    """The options of merging that a configuration has."""
    folder = "hoodie.memory.spillable.map.path"
    return MergeOptions(
        properties=tuple((key, config.text(key)) for key in _KEYS if config.is_set(key)),
        memory_bytes=config.integer("hoodie.memory.merge.max.size"),
        spill_dir=config.text(folder) if config.is_set(folder) else None,
    )


@dataclass(frozen=True, slots=True, eq=False)
class MergePlan:
    """How slices with log files become rows. `columns` are those that merging looks at, in the table's own types;
    `keys` says how a row's key is known; of the rows of one slice's logs `memory_bytes` are kept in memory, others in
    files in `spill_dir` (None: the system's temporary folder).
    """

    rules: MergeRules
    blocks: BlockChoice
    keys: RowKeys
    columns: pa.Schema
    memory_bytes: int
    spill_dir: str | None


def plan_merge(
    schema: pa.Schema,
    wanted: Collection[str],
    config: TableConfig,
    timeline: Timeline,
    options: MergeOptions,
    *,
    until: InstantTime | None = None,
) -> MergePlan:
    """The plan for a table whose own columns are `schema`, of which a query wants some. `until`: see `BlockChoice`.

    Raises:
        Unsupported: nobody registered the merger of the table, or its rows have no keys that could be made again.
    """
    rules = merge_rules_of(config, dict(options.properties))
    keys = row_keys(config, timeline.profile)
    # Where rows do not carry their keys, these are made from other columns and stand in the same one.
    full = with_meta(schema) if config.populate_meta_fields else pa.schema([META_SCHEMA.field(KEY_FIELD), *schema])
    needed = columns_needed(rules, tuple(wanted) if rules.custom is not None else (), full)
    names = (name for name in dict.fromkeys((*needed, *keys.columns)) if full.get_field_index(name) >= 0)
    columns = pa.schema([full.field(name).with_nullable(True) for name in names])
    blocks = _blocks(timeline, until)
    return MergePlan(rules, blocks, keys, columns, options.memory_bytes, options.spill_dir)


def _blocks(timeline: Timeline, until: InstantTime | None) -> BlockChoice:
    if timeline.profile.log_naming.has_one_write_per_file:
        return BlockChoice(until=until)
    completed = frozenset(instant.requested for instant in timeline.completed_writes())
    if timeline.archived_from is not None:
        return BlockChoice(completed.union(timeline.archived), timeline.archived_from, until)
    first = timeline.first_write_instant
    return BlockChoice(completed, None if first is None else first.requested, until)
