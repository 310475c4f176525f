"""Orders of rows on curves are those that Hudi 1.2.0 computes, and classes of a caller's own lose no row."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.errors import Invalid, Unsupported
from hoodie.services.clustering.hudi_curves import in_hudis_order
from hoodie.services.clustering.options import parse_cluster_options
from hoodie.services.clustering.row_order import ByColumns, OwnOrder, order_text, possible_order, sorted_by
from hoodie.spec import Curve, CurveMethod, SortOrder, TableConfig

RECORDED = json.loads((Path(__file__).parent / "curve_orders.json").read_text())
TYPES = {
    "i": pa.int32(),
    "l": pa.int64(),
    "d": pa.float64(),
    "f": pa.float32(),
    "s": pa.string(),
    "h": pa.int16(),
    "b": pa.int8(),
    "o": pa.bool_(),
    "t": pa.timestamp("us", "UTC"),
    "y": pa.date32(),
    "c": pa.decimal128(12, 2),
    "x": pa.binary(),
    "u": pa.int32(),
    "w": pa.int32(),
}
PARSED = {
    "t": lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC),
    "y": date.fromisoformat,
    "c": Decimal,
    "x": bytes.fromhex,
}


@pytest.fixture(scope="module")
def rows():
    """The rows of `tests/compat/record_curve_orders.py`."""
    columns = {}
    for name, kind in TYPES.items():
        parsed = PARSED.get(name, lambda value: value)
        values = [None if value is None else parsed(value) for value in RECORDED["columns"][name]]
        columns[name] = pa.array(values, kind)
    return pa.table({"n": pa.array(range(len(columns["i"]))), **columns})


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: "-".join((case["curve"], *case["columns"])))
def test_order_is_the_one_of_hudi(case, rows):
    asked = SortOrder(tuple(case["columns"]), Curve(case["curve"]), CurveMethod(case["method"]))
    order = possible_order(asked, rows.schema)
    assert order.order.method == case["method"]
    assert order.positions([rows.column(name) for name in order.columns]).tolist() == case["order"]


def test_columns_come_in_the_order_of_a_hash_map_of_their_places():
    schema = [f"c{n}" for n in range(40)]
    assert in_hudis_order(["c9", "c2"], schema) == ("c2", "c9")
    assert in_hudis_order(["c3", "c17"], schema) == ("c17", "c3")  # 17 is 1 in a map of 16
    assert in_hudis_order([f"c{n}" for n in (*range(12), 17)], schema)[-1] == "c17"  # and 17 in one of 32


@pytest.mark.parametrize("method", [CurveMethod.DIRECT, CurveMethod.SAMPLE])
def test_a_column_that_hudi_puts_on_no_curve_is_sorted_by_rows_in_turn(method):
    schema = pa.schema([("a", pa.time64("us")), ("b", pa.int32())])
    found = possible_order(SortOrder(("a", "b"), Curve.Z_ORDER, method), schema)
    assert found == ByColumns(SortOrder(("a", "b")))
    with pytest.raises(Unsupported, match="on a curve"):
        ByColumns(SortOrder(("a", "b"), Curve.Z_ORDER, method)).positions(
            [pa.chunked_array([], field.type) for field in schema]
        )


def test_a_sample_of_few_rows_still_gives_every_place_once(rows):
    order = ByColumns(SortOrder(("l", "s"), Curve.HILBERT, CurveMethod.SAMPLE, sample_size=5))
    found = order.positions([rows.column("l"), rows.column("s")])
    assert sorted(found.tolist()) == list(range(rows.num_rows))
    assert order.positions([rows.column("l"), rows.column("s")]).tolist() == found.tolist()


def test_ranks_are_what_is_meant_where_nothing_is_said():
    said = {"hoodie.clustering.plan.strategy.sort.columns": "a,b", "hoodie.layout.optimize.strategy": "ZORDER"}
    table = TableConfig({"hoodie.table.name": "t"})
    assert parse_cluster_options(resolve(said), table).order.method is CurveMethod.RANK
    direct = parse_cluster_options(
        resolve({**said, "hoodie.layout.optimize.curve.build.method": "DIRECT"}), table
    ).order
    assert direct.method is CurveMethod.DIRECT
    assert sorted_by(order_text(ByColumns(direct))) == ("a", "b", "(ZORDER/DIRECT)")
    assert sorted_by(order_text(ByColumns(SortOrder(("a",))))) == ("a",)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda columns: np.zeros(3, np.int64), "each of 3 places once"),
        (lambda columns: np.arange(4), "each of 3 places once"),
        (lambda columns: np.array([0.5, 1, 2]), "gave no places"),
        (lambda columns: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_class_that_would_lose_rows_is_found_out(answer, said):
    own = OwnOrder("my.module:Own", SimpleNamespace(columns=("a",), positions=answer))
    with pytest.raises(Invalid, match=said):
        own.positions([pa.chunked_array([[1, 2, 3]])])


@pytest.mark.parametrize("method", [CurveMethod.DIRECT, CurveMethod.SAMPLE])
@pytest.mark.parametrize(
    "kind",
    [pa.decimal128(30, 2), pa.decimal128(38, 0), pa.decimal256(76, 40), pa.decimal128(4, 4), pa.decimal128(12, -3)],
    ids=str,
)
def test_decimals_of_any_size_go_by_the_lowest_64_bits_of_their_whole_part(kind, method):
    def placed(digits):
        return Decimal(digits).scaleb(-kind.scale, Context(prec=76))

    most = 10**kind.precision - 1
    values = [
        placed(one) for one in (most, -most, most // 7, -most // 3, 0, 1, -1, most // 10 ** (kind.precision // 2))
    ]
    column = pa.chunked_array([pa.array([None, *values], kind).slice(1), pa.array([None, *values[:3]], kind)])
    low = [None if one is None else _long_value(one) for one in column.to_pylist()]
    order = ByColumns(SortOrder(("d", "n"), Curve.Z_ORDER, method))
    numbers = pa.chunked_array([pa.array(range(len(low)))])
    found = order.positions([column, numbers]).tolist()
    assert found == order.positions([pa.chunked_array([pa.array(low, pa.int64())]), numbers]).tolist()


def _long_value(value):
    """Java's `BigDecimal.longValue`."""
    low = int(value) & ((1 << 64) - 1)
    return low - (1 << 64) if low >> 63 else low
