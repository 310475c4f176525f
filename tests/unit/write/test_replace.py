import pyarrow as pa
import pytest

from hoodie.errors import Conflict, Corrupt, Invalid
from hoodie.records.deletion import DeleteMarker, deletion_columns, ensure_boolean, is_deleted, without_deleted
from hoodie.view import FileSlice
from hoodie.write.overwrite import Switch, encode_switch, parse_switch
from hoodie.write.replace import match_partitions, plan_replaced
from hoodie.write.reserved import ensure_free


def test_replaced_groups_are_those_of_the_partitions() -> None:
    slices = [FileSlice(partition, name, "1", None, ()) for partition, name in (("p", "a"), ("q", "b"), ("p", "c"))]
    assert plan_replaced(slices, ["p", "nowhere"]) == {"p": ("a", "c")}


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        (["a"], ("a",)),
        (["*"], ("a", "a.b", "ab", "x/1", "x/2")),
        (["x/*"], ("x/1", "x/2")),
        (["a*b"], ("a.b", "ab")),
        (["a.b"], ("a.b",)),
        (["/x/1/"], ("x/1",)),
        (["x"], ()),
        (["[ab]", "a?b"], ()),
    ],
)
def test_patterns_name_whole_paths(patterns: list[str], chosen: tuple[str, ...]) -> None:
    assert match_partitions(patterns, ("a", "a.b", "ab", "x/1", "x/2")) == chosen


def test_pattern_without_match_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert match_partitions(["gone"], ("a",)) == ()
    assert "no partition is called 'gone'" in caplog.text


def test_reserved_groups_are_refused_by_name() -> None:
    ensure_free([("p", "a")], frozenset({("q", "a")}))
    with pytest.raises(Conflict, match="a in partition 'p'.*Let the clustering finish"):
        ensure_free([("p", "b"), ("p", "a")], frozenset({("p", "a")}))


def test_deletes_are_marked_by_column_or_text() -> None:
    rows = pa.table({"_hoodie_is_deleted": [True, None, False, None], "op": ["u", "D", None, "d"], "n": [1, 2, 3, 4]})
    assert is_deleted(rows).tolist() == [True, False, False, False]
    assert is_deleted(rows, DeleteMarker("op", "D")).tolist() == [True, True, False, False]
    assert is_deleted(rows, DeleteMarker("n", "3")).tolist() == [True, False, True, False]
    assert is_deleted(rows.slice(0, 0), DeleteMarker("op", "D")).tolist() == []
    assert without_deleted(rows)["n"].to_pylist() == [2, 3, 4]
    assert deletion_columns(rows.schema, DeleteMarker("op", "D")) == ("_hoodie_is_deleted", "op")
    assert deletion_columns(pa.schema([("n", pa.int64())]), DeleteMarker("op", "D")) == ()


def test_mark_column_must_be_boolean() -> None:
    ensure_boolean(pa.schema([("_hoodie_is_deleted", pa.bool_())]))
    ensure_boolean(pa.schema([("_hoodie_is_deleted", pa.null())]))
    ensure_boolean(pa.schema([("n", pa.int32())]))
    with pytest.raises(Invalid, match="boolean"):
        ensure_boolean(pa.schema([("_hoodie_is_deleted", pa.int32())]))


def test_switch_is_written_and_read_back() -> None:
    switch = Switch("t/1.overwrite", "1", {"hoodie.table.name": "x"}, ("p/a.parquet",), ("p",), b"\x00\xff{")
    assert parse_switch(encode_switch(switch), "t/1.overwrite") == switch


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"instant": 1}', b"\xff"])
def test_damaged_switch_is_named(data: bytes) -> None:
    with pytest.raises(Corrupt, match=r"t/1\.overwrite"):
        parse_switch(data, "t/1.overwrite")
