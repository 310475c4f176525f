"""Columns by id: names of the query for rows that were written under older names."""

import ast
import pickle

import pyarrow as pa
import pytest

from hoodie.records import ColumnIds
from hoodie.spec.schema_history import IdArray, IdField, IdKind, IdMap, IdRecord, SchemaHistory, SchemaVersion

OLD, NEW = "20261121000000000", "20261122000000000"


def column(id: int, name: str, kind: IdKind = "string") -> IdField:
    return IdField(id, name, optional=True, kind=kind)


def version(number: int, *fields: IdField) -> SchemaVersion:
    return SchemaVersion(number, 99, fields)


def ids(new: tuple[IdField, ...], old: tuple[IdField, ...], as_of: str | None = None) -> ColumnIds:
    """Columns `new` since NEW, `old` before."""
    return ColumnIds(SchemaHistory((version(int(NEW), *new), version(0, *old))), as_of)


def read(known: ColumnIds, rows: pa.Table, **wanted: pa.DataType) -> list[dict[str, object]]:
    """The rows of a file written at OLD, as the columns wanted."""
    mapping = known.mapping(OLD, pa.schema(wanted))
    assert mapping is not None
    got = mapping.mapped(rows)
    assert got.schema == pa.schema(wanted)
    got.validate(full=True)
    return got.to_pylist()


def test_a_renamed_column_has_its_old_values():
    known = ids((column(1, "new"),), (column(1, "old"),))
    assert read(known, pa.table({"old": ["x"]}), new=pa.string()) == [{"new": "x"}]


def test_names_that_changed_places_do_not_mix_up_values():
    known = ids((column(1, "b"), column(2, "a")), (column(1, "a"), column(2, "b")))
    assert read(known, pa.table({"a": ["1"], "b": ["2"]}), a=pa.string(), b=pa.string()) == [{"a": "2", "b": "1"}]


def test_a_name_used_anew_is_null_in_files_with_the_dropped_column():
    known = ids((column(2, "a"),), (column(1, "a"),))
    assert read(known, pa.table({"a": ["gone"]}), a=pa.string()) == [{"a": None}]


def test_an_added_column_is_null():
    known = ids((column(1, "new"), column(2, "extra")), (column(1, "old"),))
    rows = pa.table({"old": ["x"]})
    assert read(known, rows, extra=pa.int64(), new=pa.string()) == [{"extra": None, "new": "x"}]


def test_types_are_promoted():
    known = ids((column(1, "new", "long"), column(2, "text")), (column(1, "old", "int"), column(2, "text", "int")))
    rows = pa.table({"old": pa.array([7], pa.int32()), "text": pa.array([8], pa.int32())})
    assert read(known, rows, new=pa.int64(), text=pa.string()) == [{"new": 7, "text": "8"}]


@pytest.mark.parametrize("rows", [slice(None), slice(1, 3), slice(2, 2)], ids=["all", "some", "none"])
def test_nested_names_are_mapped_inside_structs_lists_and_maps(rows):
    def shape(town: str, net: str, street: str) -> tuple[pa.Schema, tuple[IdField, ...]]:
        arrow = {
            "place": pa.struct({town: pa.string(), "zip": pa.int32()}),
            "bills": pa.list_(pa.field("element", pa.struct({net: pa.float64()}))),
            "ways": pa.map_(pa.string(), pa.struct({street: pa.string()})),
        }
        fields = (
            column(1, "place", IdRecord((column(2, town), column(3, "zip", "int")))),
            column(4, "bills", IdArray(column(5, "element", IdRecord((column(6, net, "double"),))))),
            column(7, "ways", IdMap(column(8, "key"), column(9, "value", IdRecord((column(10, street),))))),
        )
        return pa.schema(arrow), fields

    old, old_fields = shape("town", "net", "street")
    new, new_fields = shape("city", "amount", "road")
    values = [
        {"place": {"town": "x", "zip": 1}, "bills": [{"net": 1.5}, None], "ways": [("a", {"street": "s"})]},
        {"place": None, "bills": None, "ways": None},
        {"place": {"town": None, "zip": 2}, "bills": [], "ways": []},
        {"place": {"town": "z", "zip": None}, "bills": [{"net": None}], "ways": [("b", None)]},
    ]
    text = repr(values).replace("town", "city").replace("net", "amount").replace("street", "road")
    table = pa.Table.from_pylist(values, schema=old)[rows]
    found = read(ids(new_fields, old_fields), table, **dict(zip(new.names, new.types, strict=True)))
    assert found == ast.literal_eval(text)[rows]


def test_a_member_that_moved_in_under_a_known_name_is_null():
    known = ids(
        (column(1, "s", IdRecord((column(3, "a"), column(4, "b")))),),
        (column(1, "s", IdRecord((column(2, "a"), column(4, "c")))),),
    )
    rows = pa.table({"s": [{"a": "gone", "c": "kept"}]})
    assert read(known, rows, s=pa.struct({"a": pa.string(), "b": pa.string()})) == [{"s": {"a": None, "b": "kept"}}]


def test_columns_the_history_does_not_know_go_by_name():
    known = ids((column(1, "new"),), (column(1, "old"),))
    rows = pa.table({"part": ["p"], "old": ["x"]})
    assert read(known, rows, new=pa.string(), part=pa.string()) == [{"new": "x", "part": "p"}]


def test_a_partial_update_gives_only_the_columns_it_has():
    known = ids((column(1, "new"), column(2, "b"), column(3, "c")), (column(1, "old"), column(2, "b")))
    mapping = known.mapping(OLD, pa.schema({"c": pa.string(), "b": pa.string(), "new": pa.string()}))
    assert mapping is not None
    assert mapping.mapped(pa.table({"old": ["x"]}), fill=False).to_pylist() == [{"new": "x"}]
    assert mapping.mapped(pa.table({"old": ["x"]})).to_pylist() == [{"c": None, "b": None, "new": "x"}]


def test_names_to_read_are_those_of_the_file():
    known = ids((column(1, "new"), column(2, "b")), (column(1, "old"), column(2, "b")))
    mapping = known.mapping(OLD, pa.schema({"b": pa.string(), "new": pa.string()}))
    assert mapping is not None
    assert mapping.stored.names == ["b", "old"]


@pytest.mark.parametrize("wanted", [{"b": pa.string()}, {}], ids=["stable column", "none"])
def test_no_mapping_where_names_say_the_same(wanted):
    known = ids((column(1, "new"), column(2, "b")), (column(1, "old"), column(2, "b")))
    assert known.mapping(OLD, pa.schema(wanted)) is None


def test_no_mapping_within_one_version():
    known = ids((column(1, "new"),), (column(1, "old"),))
    assert known.mapping(NEW, pa.schema({"new": pa.string()})) is None
    assert ids((column(1, "new"),), (column(1, "old"),), OLD).mapping(OLD, pa.schema({"old": pa.string()})) is None


def test_the_past_has_the_names_of_the_past_also_in_newer_files():
    known = ids((column(1, "new"),), (column(1, "old"),), as_of=OLD)
    mapping = known.mapping(NEW, pa.schema({"old": pa.string()}))
    assert mapping is not None
    assert mapping.mapped(pa.table({"new": ["x"]})).to_pylist() == [{"old": "x"}]


def test_batches_are_mapped_as_tables_are():
    known = ids((column(1, "new"),), (column(1, "old"),))
    mapping = known.mapping(OLD, pa.schema({"new": pa.string()}))
    assert mapping is not None
    batch = pa.RecordBatch.from_pydict({"old": ["x"]})
    assert mapping.renamed(batch) == pa.RecordBatch.from_pydict({"new": ["x"]})


def test_ids_travel_to_workers():
    known = ids((column(1, "new"),), (column(1, "old"),), as_of=NEW)
    copy = pickle.loads(pickle.dumps(known))
    assert copy == known
    assert copy.mapping(OLD, pa.schema({"new": pa.string()})).stored.names == ["old"]
