"""How rows are ordered when files are written anew: by columns, one after the other or along a curve through them.

1. Hudi notes the columns in a clustering plan and leaves the curve to whoever carries it out. Here the curve stands
   beside them, under the key of its option: Hudi reads past entries it does not know.
2. A plan without a curve is linear: that is what every release makes of it.
3. How values are put on a curve has a name of ours beside Hudi's two: RANK. A plan that says nothing means that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from hoodie.errors import Unsupported

SORT_COLUMNS = "hoodie.clustering.plan.strategy.sort.columns"
CURVE = "hoodie.layout.optimize.strategy"
METHOD = "hoodie.layout.optimize.curve.build.method"
SAMPLE_SIZE = "hoodie.layout.optimize.build.curve.sample.size"


class Curve(StrEnum):
    """The way through the values of several columns."""

    LINEAR = "LINEAR"
    Z_ORDER = "ZORDER"
    HILBERT = "HILBERT"


class CurveMethod(StrEnum):
    """How values are put on a curve: by ranks among evenly spaced rows, or as Hudi does, by their bits or by bounds
    of a sample.
    """

    RANK = "RANK"
    DIRECT = "DIRECT"
    SAMPLE = "SAMPLE"


@dataclass(frozen=True, slots=True)
class SortOrder:
    """Columns in order, the curve that joins them, and how values are put on it: `sample_size` rows are looked at for
    the bounds of a sample.
    """

    columns: tuple[str, ...]
    curve: Curve = Curve.LINEAR
    method: CurveMethod = CurveMethod.RANK
    sample_size: int = 200_000

    def params(self) -> dict[str, str]:
        """Its entries in the strategy of a clustering plan."""
        found = {SORT_COLUMNS: ",".join(self.columns)}
        if self.curve is not Curve.LINEAR:
            found[CURVE] = self.curve.value
            if self.method is not CurveMethod.RANK:
                found[METHOD] = self.method.value
            if self.method is CurveMethod.SAMPLE:
                found[SAMPLE_SIZE] = str(self.sample_size)
        return found


def parse_sort_order(params: Mapping[str, str]) -> SortOrder | None:
    """The order that options, or the strategy of a plan, ask for; None when they name no columns.

    Raises:
        Unsupported: the curve, or how values are put on it, has a name nobody knows.
    """
    columns = tuple(name for part in params.get(SORT_COLUMNS, "").split(",") if (name := part.strip()))
    if not columns:
        return None
    curve = _named(Curve, CURVE, params.get(CURVE, Curve.LINEAR).replace("-", "").replace("_", ""))
    if curve is Curve.LINEAR:
        return SortOrder(columns)
    size = params.get(SAMPLE_SIZE, "200000").strip()
    if not size.isdecimal() or int(size) < 1:
        raise Unsupported(f"{SAMPLE_SIZE} is {size!r}", remedy="It is a number of rows", key=SAMPLE_SIZE)
    method = _named(CurveMethod, METHOD, params.get(METHOD, CurveMethod.RANK))
    return SortOrder(columns, curve, method, int(size))


_Name = TypeVar("_Name", Curve, CurveMethod)


def _named(kind: type[_Name], key: str, said: str) -> _Name:
    try:
        return kind(said.strip().upper())
    except ValueError:
        known = ", ".join(kind)
        raise Unsupported(f"{key} is {said!r}", remedy=f"Known are {known}", curve=said) from None
