import pickle

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.records import KeyGenerator, KeyKind, KeyOptions, RowOrigin, stored_text_form


def batch(**columns: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def keys(rows: pa.RecordBatch, kind: KeyKind, *fields: str, **options: object) -> list[str]:
    partitions = ("p",) if kind in (KeyKind.SIMPLE, KeyKind.COMPLEX) else ()
    return KeyGenerator(KeyOptions(kind, fields, partitions, **options)).record_keys(rows).to_pylist()


def test_a_simple_key_is_the_bare_value() -> None:
    assert keys(batch(id=[1, -2]), KeyKind.SIMPLE, "id") == ["1", "-2"]


def test_several_fields_are_named_in_configured_order_without_escapes() -> None:
    rows = batch(id=[1, 2], s=["a:b,c", "x"])
    assert keys(rows, KeyKind.COMPLEX, "s", "id") == ["s:a:b,c,id:1", "s:x,id:2"]
    assert keys(rows, KeyKind.NON_PARTITION, "id", "s") == ["id:1,s:a:b,c", "id:2,s:x"]


def test_null_and_empty_parts_of_a_composite_key_are_spelled_out() -> None:
    rows = batch(id=[1, 2, None], s=[None, "", "z"])
    assert keys(rows, KeyKind.COMPLEX, "id", "s") == ["id:1,s:__null__", "id:2,s:__empty__", "id:__null__,s:z"]


def test_one_complex_field_has_its_name_unless_the_table_says_otherwise() -> None:
    rows = batch(id=["k"])
    assert keys(rows, KeyKind.COMPLEX, "id") == ["id:k"]
    assert keys(rows, KeyKind.COMPLEX, "id", single_key_with_name=False) == ["k"]
    assert keys(rows, KeyKind.GLOBAL_DELETE, "id") == ["id:k"]
    assert keys(rows, KeyKind.NON_PARTITION, "id") == ["k"]


@pytest.mark.parametrize("values", [["a", None, ""], ["a", "", None]])
def test_a_null_or_empty_simple_key_is_refused_with_column_and_count(values: list[str | None]) -> None:
    with pytest.raises(
        Invalid, match=r"field id: 2 of 3 rows have a key that is null or empty \(first: row 1\)"
    ) as error:
        keys(batch(id=values), KeyKind.SIMPLE, "id")
    assert error.value.facts == {"columns": ("id",), "count": 2}


def test_a_composite_key_that_is_blank_everywhere_is_refused() -> None:
    with pytest.raises(Invalid, match="fields id, s: 1 of 2 rows has a key"):
        keys(batch(id=[None, None], s=["", "x"]), KeyKind.COMPLEX, "id", "s")


def test_a_missing_key_column_is_refused_with_the_near_miss() -> None:
    with pytest.raises(Invalid, match=r"record key field 'ID' is not in the input. Did you mean 'id'"):
        keys(batch(id=[1]), KeyKind.SIMPLE, "ID")


def test_a_field_inside_a_struct_is_reached_and_a_null_struct_is_null() -> None:
    struct = pa.array([{"a": {"b": 1}}, {"a": None}, None])
    rows = pa.RecordBatch.from_arrays([struct, pa.array([1, 2, 3])], ["st", "id"])
    assert keys(rows, KeyKind.COMPLEX, "id", "st.a.b") == [
        "id:1,st.a.b:1",
        "id:2,st.a.b:__null__",
        "id:3,st.a.b:__null__",
    ]
    with pytest.raises(Invalid, match="looks for 'c' inside a int64"):
        keys(rows, KeyKind.SIMPLE, "id.c")
    with pytest.raises(Invalid, match=r"'st.x' is not in the input"):
        keys(rows, KeyKind.SIMPLE, "st.x")


def test_a_repeated_column_name_is_ambiguous() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], ["id", "id"])
    with pytest.raises(Invalid, match="ambiguous"):
        keys(rows, KeyKind.SIMPLE, "id")


def test_dictionary_columns_are_read_as_their_values() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array(["a", "b", "a"]).dictionary_encode()], ["id"])
    assert keys(rows, KeyKind.SIMPLE, "id") == ["a", "b", "a"]


def test_automatic_keys_number_the_rows_of_a_task() -> None:
    generator = KeyGenerator(KeyOptions(KeyKind.SIMPLE, (), ("p",)))
    origin = RowOrigin("20240102030405678", 3, first_row=10)
    assert generator.record_keys(batch(x=[1, 2]), origin).to_pylist() == [
        "20240102030405678_3_10",
        "20240102030405678_3_11",
    ]
    with pytest.raises(Invalid, match="Automatic record keys"):
        generator.record_keys(batch(x=[1]))


def test_no_rows_give_no_keys() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array([], pa.string())], ["id"])
    assert keys(rows, KeyKind.SIMPLE, "id") == []
    assert keys(rows, KeyKind.COMPLEX, "id") == []


def test_a_generator_is_a_value() -> None:
    generator = KeyGenerator(KeyOptions(KeyKind.COMPLEX, ("id",), ("p",)))
    assert pickle.loads(pickle.dumps(generator)) == generator


def test_a_stored_key_tells_how_its_timestamps_are_written() -> None:
    assert stored_text_form("id:1,t:2024-01-02 03:04:05.0").timestamps == "sql"
    assert stored_text_form("1704164645123456").timestamps == "avro"
