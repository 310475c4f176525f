"""How versions of one record become one: what a table's properties mean for the merge.

1. The versions of a key are folded in the order of the log, pair by pair, and the outcome meets the row of the base
   file. `MergeStep` says what happens to a pair; the two places have a step of their own, since old payload classes
   treat them differently.
2. Of a pair one version is *higher*: the newer one, or with `ordered` the one with the larger ordering value (the newer
   one on a tie). The higher version wins as a whole, or with a `fill` gets some columns from the lower one.
3. A table of version 9 (or 8) says mode and fill itself. A payload class of older tables is read as Hudi 1.2 reads it;
   classes are names here, and never loaded.

Which rows count as deletes, and all combinations: `docs/format/merging.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from hoodie.errors import Unsupported
from hoodie.merge.mergers import Merger, registered_merger
from hoodie.records import KEY_FIELD, OPERATION_FIELD
from hoodie.records.columns import has_column
from hoodie.records.deletion import DeleteMarker, delete_marker, deletion_columns
from hoodie.spec import COMMIT_TIME, CUSTOM, EVENT_TIME, MergeMode, TableConfig, keys
from hoodie.spec.merge_rules import (
    AWS_DMS,
    COMMIT_TIME_STRATEGY,
    EVENT_TIME_STRATEGY,
    OVERWRITE_NON_DEFAULTS,
    OVERWRITE_WITH_LATEST,
    built_in_payload,
)

Fill = Literal["IGNORE_DEFAULTS", "FILL_UNAVAILABLE"]

FILLS: tuple[Fill, ...] = ("IGNORE_DEFAULTS", "FILL_UNAVAILABLE")


@dataclass(frozen=True, slots=True)
class MergeStep:
    """How an older and a newer version become one.

    `ordered`: the larger ordering value is higher; else the newer version is. `fill`: columns of the higher version
    that are NULL (IGNORE_DEFAULTS), or text equal to the table's unavailable value (FILL_UNAVAILABLE), come from the
    lower one.
    """

    ordered: bool
    fill: Fill | None = None


@dataclass(frozen=True, slots=True)
class MergeRules:
    """All that merging depends on. `ordering_fields` may be dotted. With `custom`, a merger decides between rows, and
    the steps only where a side is a delete.
    """

    in_log: MergeStep
    against_base: MergeStep
    ordering_fields: tuple[str, ...] = ()
    marker: DeleteMarker | None = None
    unavailable_value: str | None = None
    custom: Merger | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether ordering values are looked at."""
        return self.in_log.ordered or self.against_base.ordered


def merge_rules_of(config: TableConfig, options: Mapping[str, str] | None = None) -> MergeRules:
    """The rules of a table. `options` may name a delete marker or unavailable value the table does not store.

    Raises:
        Unsupported: the table merges by a class of its own and nobody registered a merger for it, or has a partial
            update mode nobody knows.
        Invalid: one of delete field and delete marker is missing.
    """
    mode = _mode(config)
    payload = built_in_payload(config.payload_class) if mode == CUSTOM else None
    properties = {
        **({} if payload is None else payload.properties),
        **(options or {}),
        **config.merge_properties,
    }
    in_log, against_base = _steps(config, mode)
    return MergeRules(
        in_log=in_log,
        against_base=against_base,
        ordering_fields=(payload.ordering_fields if payload is not None else None) or config.ordering_fields,
        marker=delete_marker(properties),
        unavailable_value=properties.get(keys.UNAVAILABLE_VALUE),
        custom=registered_merger(config.merge_strategy_id, config.raw.get(keys.PAYLOAD_CLASS))
        if mode == CUSTOM and payload is None
        else None,
    )


def columns_needed(
    rules: MergeRules, wanted: tuple[str, ...], schema: pa.Schema, key: str = KEY_FIELD
) -> tuple[str, ...]:
    """Top-level columns of `schema` that rows must have to be merged: `wanted`, then what the rules look at.

    Base rows and log rows are read with the same columns; who asked for fewer drops the rest after merging. A merger
    of the user gets all columns.
    """
    if rules.custom is not None:
        return (*wanted, *(name for name in schema.names if name not in wanted))
    ordering = [name for name in rules.ordering_fields if rules.is_ordered and has_column(schema, name)]
    operation = [name for name in (OPERATION_FIELD,) if name in schema.names]
    needed = (key, *(name.partition(".")[0] for name in ordering), *deletion_columns(schema, rules.marker), *operation)
    return tuple(dict.fromkeys((*wanted, *needed)))


def _mode(config: TableConfig) -> MergeMode:
    """The stored mode; else what the payload class means, else the strategy id, else by having ordering fields."""
    if config.stored_merge_mode or config.payload_class or not config.merge_strategy_id:
        return config.merge_mode
    of_strategy: dict[str, MergeMode] = {EVENT_TIME_STRATEGY: EVENT_TIME, COMMIT_TIME_STRATEGY: COMMIT_TIME}
    return of_strategy.get(config.merge_strategy_id, CUSTOM)


def _steps(config: TableConfig, mode: MergeMode) -> tuple[MergeStep, MergeStep]:
    """What happens in the log, and against the base row."""
    # Payload classes combine log rows by one method and a log row with the base row by another. These three compare
    # ordering values in the first only. Hudi 1.x marks version 6 tables for which it does not by a strategy id.
    if config.payload_class == OVERWRITE_WITH_LATEST and config.stored_merge_mode is None:
        return MergeStep(ordered=config.merge_strategy_id != COMMIT_TIME_STRATEGY), MergeStep(ordered=False)
    if mode != CUSTOM:
        step = MergeStep(mode == EVENT_TIME, _fill(config.partial_update_mode))
        return step, step
    if config.payload_class == OVERWRITE_NON_DEFAULTS:
        return MergeStep(ordered=True), MergeStep(ordered=False, fill="IGNORE_DEFAULTS")
    if config.payload_class == AWS_DMS:
        return MergeStep(ordered=True), MergeStep(ordered=False)
    payload = built_in_payload(config.payload_class)
    step = MergeStep(ordered=True, fill=_fill(None if payload is None else payload.partial_update))
    return step, step


def _fill(partial_update: str | None) -> Fill | None:
    if partial_update is None or partial_update in FILLS:
        return partial_update
    raise Unsupported(
        f"The table has the partial update mode {partial_update}", remedy="Read it with a newer release of hoodie"
    )
