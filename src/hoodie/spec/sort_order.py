"""How rows are ordered when files are written anew: by columns, one after the other or along a curve through them.

1. Hudi notes the columns in a clustering plan and leaves the curve to whoever carries it out. Here the curve stands
   beside them, under the key of its option: Hudi reads past entries it does not know.
2. A plan without a curve is linear: that is what every release makes of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hoodie.errors import Unsupported

SORT_COLUMNS = "hoodie.clustering.plan.strategy.sort.columns"
CURVE = "hoodie.layout.optimize.strategy"


class Curve(StrEnum):
    """The way through the values of several columns."""

    LINEAR = "LINEAR"
    Z_ORDER = "ZORDER"
    HILBERT = "HILBERT"


@dataclass(frozen=True, slots=True)
class SortOrder:
    """Columns in order, and the curve that joins them."""

    columns: tuple[str, ...]
    curve: Curve = Curve.LINEAR

    def params(self) -> dict[str, str]:
        """Its entries in the strategy of a clustering plan."""
        columns = {SORT_COLUMNS: ",".join(self.columns)}
        return columns if self.curve is Curve.LINEAR else {**columns, CURVE: self.curve.value}


def parse_sort_order(params: Mapping[str, str]) -> SortOrder | None:
    """The order that options, or the strategy of a plan, ask for; None when they name no columns.

    Raises:
        Unsupported: the curve has a name nobody knows.
    """
    columns = tuple(name for part in params.get(SORT_COLUMNS, "").split(",") if (name := part.strip()))
    if not columns:
        return None
    said = params.get(CURVE, Curve.LINEAR)
    try:
        return SortOrder(columns, Curve(said.strip().upper().replace("-", "").replace("_", "")))
    except ValueError:
        known = ", ".join(Curve)
        raise Unsupported(f"{CURVE} is {said!r}", remedy=f"Known are {known}", curve=said) from None
