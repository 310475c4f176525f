"""Orders of rows that some partitions have for themselves: what options say, and what commits note of it. Pure.

A plan says it in the extra metadata of its groups, under the keys that the strategy of a plan has. Hudi reads past
them: where it carries such a plan out, all groups are sorted as the strategy says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hoodie.errors import Invalid
from hoodie.services.clustering.row_order import ORDER, ByColumns, OwnOrder, order_text, sorted_by
from hoodie.spec import ClusteringPlan, SortOrder, parse_sort_order
from hoodie.spec.sort_order import SORT_COLUMNS

BY_PARTITION: Final = "hoodie.clustering.plan.partition.sort.columns"
_NOTED: Final = "hoodie.clustering.order.partitions"
ORDER_NOTES: Final = (ORDER, _NOTED)
"""Extra metadata of commits that says in which order rows were put."""


@dataclass(frozen=True, slots=True)
class PartitionOrder:
    """The order of rows in partitions whose whole path matches `pattern`; None: they are not sorted."""

    pattern: str
    order: SortOrder | None


def parse_partition_orders(text: str, curve: Mapping[str, str]) -> tuple[PartitionOrder, ...]:
    """The orders that `text` names, as `pattern:column,column;pattern:column`; `curve` is what options say of it.

    Raises:
        Invalid: a part is no such pair, or its pattern is none. Unsupported: there is no such curve.
    """
    found = []
    for part in (part.strip() for part in text.split(";") if part.strip()):
        pattern, colon, columns = part.rpartition(":")
        try:
            re.compile(pattern)
        except re.error as error:
            raise _unreadable(part, f"{pattern!r} is no pattern: {error}") from None
        if not colon or not pattern:
            raise _unreadable(part, "a pattern of partitions, a colon and columns are expected")
        found.append(PartitionOrder(pattern, parse_sort_order({**curve, SORT_COLUMNS: columns})))
    return tuple(found)


def own_order_of(orders: tuple[PartitionOrder, ...], partition: str) -> PartitionOrder | None:
    """The first of the orders whose pattern matches the whole path of the partition."""
    return next((one for one in orders if re.fullmatch(one.pattern, partition)), None)


def group_params(own: PartitionOrder | None) -> dict[str, str]:
    """What a group of a plan says of the order its partition has for itself."""
    if own is None:
        return {}
    return {SORT_COLUMNS: ""} if own.order is None else own.order.params()


def order_notes(plan: ClusteringPlan, own: OwnOrder | None) -> dict[str, str]:
    """What the commit of a plan says of the orders that were asked for; `own`: a class of the caller's gave them."""
    if own is not None:
        return {ORDER: order_text(own)}
    notes = {} if plan.sort_order is None else {ORDER: _text(plan.sort_order)}
    by_partition = {
        group.slices[0].partition: _text(plan.sort_order_of(group))
        for group in plan.groups
        if group.slices and SORT_COLUMNS in (group.extra_metadata or {})
    }
    return notes | ({_NOTED: json.dumps(by_partition, sort_keys=True)} if by_partition else {})


def noted_order(notes: Mapping[str, str], partition: str) -> str:
    """The order in which a commit with these notes sorted a partition; empty: in none."""
    return _by_partition(notes).get(partition, notes.get(ORDER, ""))


def noted_columns(notes: Mapping[str, str]) -> tuple[str, ...]:
    """The columns that a commit with these notes sorted by, in any partition, and the curve if there is one."""
    texts = [text for text in (notes.get(ORDER, ""), *_by_partition(notes).values()) if text]
    return tuple(dict.fromkeys(name for text in texts for name in sorted_by(text)))


def _by_partition(notes: Mapping[str, str]) -> dict[str, str]:
    """Somebody else's words that cannot be read are as if there were none."""
    try:
        said = json.loads(notes.get(_NOTED, "{}"))
    except ValueError:
        return {}
    return {str(name): str(text) for name, text in said.items()} if isinstance(said, dict) else {}


def _text(order: SortOrder | None) -> str:
    return "" if order is None else order_text(ByColumns(order))


def _unreadable(part: str, why: str) -> Invalid:
    return Invalid(
        f"{BY_PARTITION} has {part!r}: {why}",
        remedy="Say pattern:column,column and separate such pairs by semicolons; the first whose pattern matches the "
        "whole path of a partition counts; no columns: its rows are not sorted",
        key=BY_PARTITION,
    )
