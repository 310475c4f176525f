"""Schema evolution on write: what Hudi allows, and nothing that would lose or mistype data."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.records import COMMENT_KEY, EvolutionRules, reconcile, storable

GOLDEN = Path(__file__).parents[2] / "golden" / "records"
HUDI = json.loads((GOLDEN / "promotions_java.json").read_text())["types"]
TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "ts": pa.timestamp("us", "UTC"),
    "tsms": pa.timestamp("ms", "UTC"),
    "ntz": pa.timestamp("us"),
    "d10_2": pa.decimal128(10, 2),
    "d12_2": pa.decimal128(12, 2),
    "d12_4": pa.decimal128(12, 4),
    "d8_2": pa.decimal128(8, 2),
    "d10_4": pa.decimal128(10, 4),
    "d20_0": pa.decimal128(20, 0),
}
DEPARTURES = {
    ("long", "ts"): None,  # Hudi would read every stored number as micros
    ("long", "ntz"): None,
    ("tsms", "ts"): "tsms",  # rows of Spark are always micros: stored as the table's millis when nothing is lost
}
FILL = EvolutionRules(fill_missing=True)


def schema(*fields: tuple[str, pa.DataType] | pa.Field) -> pa.Schema:
    return pa.schema(list(fields))


def required(name: str, data_type: pa.DataType) -> pa.Field:
    return pa.field(name, data_type, nullable=False)


@pytest.mark.parametrize(
    ("table", "rows", "expected"),
    [
        ("int", "long", "long"),
        ("int", "double", "double"),
        ("float", "double", "double"),
        ("d10_2", "d12_2", "d12_2"),
        ("long", "double", "long"),  # whole numbers that pandas made floating ones: cast back, or an error
        ("long", "float", "long"),
        ("int", "float", "int"),
        ("string", "int", "string"),
        ("int", "string", None),
        ("long", "string", None),
        ("double", "string", None),
    ],
)
def test_types_change_by_themselves_only_where_every_value_stays(table: str, rows: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(Invalid, match="hoodie.write.schema.promotions=all"):
            reconcile(schema(("c", TYPES[table])), schema(("c", TYPES[rows])))
    else:
        found = reconcile(schema(("c", TYPES[table])), schema(("c", TYPES[rows]))).schema
        assert found.field("c").type == TYPES[expected]


@pytest.mark.parametrize("table", sorted(TYPES))
def test_type_changes_are_those_of_hudi(table: str) -> None:
    for rows, rows_type in TYPES.items():
        if rows == "tsms":  # becomes micros before it is compared
            continue
        expected = DEPARTURES.get((table, rows), HUDI[table][rows])
        try:
            given = schema(("c", rows_type))
            after = (
                reconcile(schema(("c", TYPES[table])), given, EvolutionRules(any_promotion=True)).schema.field("c").type
            )
        except Invalid:
            after = None
        assert after == (None if expected is None else TYPES[expected]), (table, rows)


def test_first_write_takes_the_rows_schema_without_meta_columns() -> None:
    evolution = reconcile(None, schema(("_hoodie_record_key", pa.string()), required("a", pa.int8())))
    assert evolution.schema == schema(required("a", pa.int32()))
    assert evolution.changes == ()


def test_order_of_the_rows_does_not_matter() -> None:
    table = schema(("a", pa.string()), ("b", pa.int32()))
    evolution = reconcile(table, schema(("b", pa.int32()), ("a", pa.large_string())))
    assert evolution.schema == table
    assert evolution.changes == ()


def test_new_columns_come_last_and_are_nullable_at_every_level() -> None:
    table = schema(
        ("a", pa.string()), ("s", pa.struct([("x", pa.int32())])), ("l", pa.list_(pa.struct([("x", pa.int32())])))
    )
    rows = schema(
        required("n", pa.float64()),
        ("s", pa.struct([required("z", pa.string()), ("x", pa.int64())])),
        ("l", pa.list_(pa.struct([("y", pa.bool_()), ("x", pa.int32())]))),
        ("a", pa.string()),
    )
    evolution = reconcile(table, rows)
    assert evolution.schema == schema(
        ("a", pa.string()),
        ("s", pa.struct([("x", pa.int64()), ("z", pa.string())])),
        ("l", pa.list_(pa.struct([("x", pa.int32()), ("y", pa.bool_())]))),
        ("n", pa.float64()),
    )
    assert evolution.changes == (
        "promoted s.x int32 to int64",
        "added s.z string",
        "added l.element.y bool",
        "added n double",
    )


def test_missing_column_is_an_error_that_names_it_and_the_option() -> None:
    with pytest.raises(Invalid, match=r"`b` \(int32\).*missing.*set\.null\.for\.missing\.columns"):
        reconcile(schema(("a", pa.string()), ("b", pa.int32())), schema(("a", pa.string())))
    with pytest.raises(Invalid, match=r"`s\.y`"):
        reconcile(
            schema(("s", pa.struct([("x", pa.int32()), ("y", pa.int32())]))),
            schema(("s", pa.struct([("x", pa.int32())]))),
        )


def test_missing_column_of_another_case_gets_a_hint() -> None:
    with pytest.raises(Invalid, match="`b`: case matters"):
        reconcile(schema(("B", pa.int32())), schema(("b", pa.int32())))


def test_missing_columns_are_filled_when_asked_and_become_nullable() -> None:
    table = schema(
        ("a", pa.string()), required("b", pa.int32()), ("s", pa.struct([("x", pa.int32()), ("y", pa.int32())]))
    )
    rows = schema(("z", pa.bool_()), ("a", pa.string()), ("s", pa.struct([("y", pa.int32())])))
    evolution = reconcile(table, rows, FILL)
    assert evolution.schema == schema(
        ("a", pa.string()), ("b", pa.int32()), ("s", table.field("s").type), ("z", pa.bool_())
    )
    assert evolution.changes == ("made b nullable", "added z bool")


def test_missing_columns_leave_the_table_only_when_that_is_asked() -> None:
    table = schema(("a", pa.string()), ("b", pa.int32()))
    dropped = reconcile(table, schema(("a", pa.string())), EvolutionRules(drop_missing=True))
    assert dropped.schema == schema(("a", pa.string()))
    assert dropped.changes == ("dropped b",)
    assert (
        reconcile(table, schema(("a", pa.string())), EvolutionRules(fill_missing=True, drop_missing=True)).schema
        == table
    )


def test_nullability_is_relaxed_never_tightened() -> None:
    both = reconcile(schema(required("a", pa.int32())), schema(required("a", pa.int32())))
    relaxed = reconcile(schema(required("a", pa.int32())), schema(("a", pa.int32())))
    kept = reconcile(schema(("a", pa.int32())), schema(required("a", pa.int32())))
    assert not both.schema.field("a").nullable
    assert relaxed.schema.field("a").nullable
    assert relaxed.changes == ("made a nullable",)
    assert kept.schema.field("a").nullable
    assert kept.changes == ()


def test_untyped_column_takes_the_type_of_the_table() -> None:
    table = schema(("a", pa.decimal128(9, 2)))
    assert reconcile(table, schema(("a", pa.null()))).schema == table
    with pytest.raises(Invalid, match="`new`"):
        reconcile(table, schema(("a", pa.null()), ("new", pa.null())))


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        (pa.struct([("x", pa.int32())]), pa.string()),
        (pa.int32(), pa.list_(pa.int32())),
        (pa.list_(pa.int32()), pa.struct([("x", pa.int32())])),
        (pa.map_(pa.string(), pa.int32()), pa.list_(pa.int32())),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
    ],
)
def test_incompatible_types_are_refused_with_both_types_and_a_remedy(table: pa.DataType, rows: pa.DataType) -> None:
    with pytest.raises(Invalid, match="`c`") as raised:
        reconcile(storable(schema(("c", table))), storable(schema(("c", rows))), FILL)
    table, rows = (storable(schema(("c", kind))).field("c").type for kind in (table, rows))
    assert raised.value.facts == {"column": "c", "table_type": str(table), "incoming_type": str(rows)}
    assert "Cast" in str(raised.value.remedy)


def test_map_values_and_elements_evolve_inside() -> None:
    table = schema(("m", pa.map_(pa.string(), pa.int32())), ("l", pa.list_(pa.float32())))
    rows = schema(("m", pa.map_(pa.string(), pa.int64())), ("l", pa.list_(pa.float64())))
    assert reconcile(table, rows).schema == schema(
        ("m", pa.map_(pa.string(), pa.int64())), ("l", pa.list_(pa.float64()))
    )


def test_comment_of_the_rows_wins_and_that_of_the_table_survives() -> None:
    def commented(text: str | None) -> pa.Schema:
        return schema(pa.field("a", pa.int32(), metadata=None if text is None else {COMMENT_KEY: text.encode()}))

    assert reconcile(commented("old"), commented("new")).schema.field("a").metadata == {COMMENT_KEY: b"new"}
    assert reconcile(commented("old"), commented(None)).schema.field("a").metadata == {COMMENT_KEY: b"old"}


def test_new_column_that_differs_from_one_of_the_table_in_case_only_is_refused() -> None:
    with pytest.raises(Invalid, match="case"):
        reconcile(schema(("A", pa.int32())), schema(("A", pa.int32()), ("a", pa.int32())))
