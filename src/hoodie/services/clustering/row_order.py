"""The order that a group's rows are put in, as a value that travels to workers: by columns, or by a caller's class.

1. An order names the columns it looks at, and gives the places of rows by them. Rows themselves it never sees: it can
   neither change nor lose one.
2. What a class of the caller's own answers is checked: every place once. Nobody else would find out that rows are lost.
3. A class is named by the option `hoodie.clustering.execution.strategy.class` of a call as `package.module:Class`, and
   made with the options of the call and the table's config. It is never named by a table or a plan.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from hoodie.config import Config
from hoodie.config.own_class import answer_of_own_class, made_by_own_class
from hoodie.errors import Invalid, Unsupported
from hoodie.services.clustering.curve_words import curve_bits, curve_positions
from hoodie.services.clustering.hudi_curves import direct_positions, in_hudis_order
from hoodie.services.clustering.positions import Places, dense_ranks, sorted_positions
from hoodie.spec import Curve, CurveMethod, SortOrder, TableConfig

log = logging.getLogger(__name__)

EXECUTION_STRATEGY: Final = "hoodie.clustering.execution.strategy.class"
ORDER: Final = "hoodie.clustering.order"
"""Extra metadata of our commits: the order that was asked for, so that what is in order is not sorted again."""

GIVEN: Final = "the options of the call (Config) and the table's config (TableConfig)"


@runtime_checkable
class ExecutionStrategy(Protocol):
    """The order of the rows of a group. Frozen, and sent to workers: it has to be picklable."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it looks at."""
        ...

    def positions(self, columns: Sequence[pa.ChunkedArray]) -> Places:
        """The places of the rows in their new order. `columns`: those it named, of all rows of the group."""
        ...


@dataclass(frozen=True, slots=True)
class ByColumns:
    """An order by columns, one after the other or along a curve."""

    order: SortOrder

    @property
    def columns(self) -> tuple[str, ...]:
        """See `ExecutionStrategy`."""
        return self.order.columns

    @property
    def is_linear(self) -> bool:
        """Whether rows are in the order of the first column, then in that of the next."""
        return self.order.curve is Curve.LINEAR or len(self.order.columns) == 1

    @property
    def is_of_values(self) -> bool:
        """Whether two rows compare by their own values, whatever rows there are beside them, as by a sample."""
        return self.is_linear or self.order.method is CurveMethod.DIRECT

    def positions(self, columns: Sequence[pa.ChunkedArray]) -> Places:
        """See `ExecutionStrategy`.

        Raises:
            Unsupported: values of a column have no order, or a curve of too many columns.
        """
        order = self.order
        if self.is_linear:
            return sorted_positions(columns, order.columns)
        if order.method is CurveMethod.DIRECT:
            return direct_positions(columns, order.columns, hilbert=order.curve is Curve.HILBERT)
        return curve_positions(columns, order)


@dataclass(frozen=True, slots=True)
class OwnOrder:
    """An order of a class of the caller's own, whose name is `path`, with its answers checked."""

    path: str
    own: ExecutionStrategy

    @property
    def columns(self) -> tuple[str, ...]:
        """See `ExecutionStrategy`."""
        return tuple(self.own.columns)

    def positions(self, columns: Sequence[pa.ChunkedArray]) -> Places:
        """See `ExecutionStrategy`.

        Raises:
            Invalid: the class fails, or its answer is not every place once.
        """
        rows = len(columns[0])

        def wrong(said: str) -> Invalid:
            return Invalid(
                f"{EXECUTION_STRATEGY}={self.path} gave no places: {said}",
                remedy="Nothing was changed; mend `positions` of the class",
                key=EXECUTION_STRATEGY,
            )

        found: Places = answer_of_own_class(
            lambda: np.asarray(self.own.positions(columns)).astype(np.int64, casting="safe", copy=False), wrong
        )
        if found.shape != (rows,) or not np.array_equal(np.sort(found), np.arange(rows)):
            raise Invalid(
                f"{EXECUTION_STRATEGY}={self.path} does not give each of {rows} places once",
                remedy="Nothing was changed; `positions` has to give a permutation of the rows, as numpy.argsort does",
                key=EXECUTION_STRATEGY,
            )
        return found


def own_order(path: str, config: Config, table: TableConfig) -> OwnOrder:
    """The order that the class at `path` makes.

    Raises:
        Invalid: there is no such class, it cannot be made, or what it makes is no order.
    """
    made = made_by_own_class(EXECUTION_STRATEGY, path, config, table, given=GIVEN)
    if not isinstance(made, ExecutionStrategy) or not made.columns:
        raise Invalid(
            f"{EXECUTION_STRATEGY}={path} makes no execution strategy but a {type(made).__name__}",
            remedy="Give it `columns`, the names of at least one, and `positions(columns)`",
            key=EXECUTION_STRATEGY,
        )
    return OwnOrder(path, made)


def ensure_sortable(schema: pa.Schema, order: SortOrder) -> None:
    """Checks that rows of `schema` can be sorted so: what is found out here is not found out by an executor.

    Raises:
        Invalid: there is no such column. Unsupported: its values have no order, or a curve of too many columns.
    """
    for name in order.columns:
        if name not in schema.names:
            raise Invalid(
                f"There is no column {name} to sort by",
                remedy=f"The table has {', '.join(one for one in schema.names if not one.startswith('_hoodie_'))}",
                column=name,
            )
        dense_ranks(pa.chunked_array([], type=schema.field(name).type), name)
    if not ByColumns(order).is_linear:
        curve_bits(len(order.columns))


def order_text(order: ByColumns | OwnOrder) -> str:
    """The order as commits name it."""
    return " ".join((_name_of(order), ",".join(order.columns)))


def sorted_by(text: str) -> tuple[str, ...]:
    """The columns of an order that `order_text` named, and its curve or class if it has one, as people read them."""
    name, _, said = text.partition(" ")
    columns = tuple(said.split(","))
    return columns if name == Curve.LINEAR else (*columns, f"({name})")


def _name_of(order: ByColumns | OwnOrder) -> str:
    if isinstance(order, OwnOrder):
        return order.path
    said = order.order
    return said.curve.value if said.method is CurveMethod.RANK else f"{said.curve.value}/{said.method.value}"


def possible_order(order: SortOrder, stored: pa.Schema) -> ByColumns | None:
    """What of an order rows of the `stored` columns can be sorted by. A plan may be older than the schema, or somebody
    else's; a partition column that is not stored has one value in a group.
    """
    columns = []
    for name in order.columns:
        try:
            ensure_sortable(stored, SortOrder((name,)))
        except (Invalid, Unsupported) as error:
            log.info("rows are not sorted by column %s: %s", name, error.cause)
        else:
            columns.append(name)
    if not columns:
        return None
    is_hudis = order.curve is not Curve.LINEAR and order.method is not CurveMethod.RANK
    names = in_hudis_order(columns, stored.names) if is_hudis else tuple(columns)
    found = ByColumns(SortOrder(names, order.curve, order.method, order.sample_size))
    try:
        found.positions([pa.chunked_array([], stored.field(name).type) for name in names])
    except Unsupported as error:
        log.warning("rows are sorted by their columns in turn: %s", error.cause)
        found = ByColumns(SortOrder(tuple(columns)))
    return found
