from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import Conflict, Corrupt, Invalid
from hoodie.records.deletion import DeleteMarker, deletion_columns, ensure_boolean, is_deleted, without_deleted
from hoodie.view import FileSlice
from hoodie.write.overwrite import Switch, encode_switch, parse_switch
from hoodie.write.replace import match_partitions, plan_replaced
from hoodie.write.update_strategy import Reject, taken_groups


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
    assert taken_groups([("p", "a")], {("q", "a"): "1"}) == {}
    taken = taken_groups([("p", "b"), ("p", "a")], {("p", "a"): "1"})
    assert taken == {("p", "a"): "1"}
    with pytest.raises(Conflict, match="a in partition 'p'.*Carry it out"):
        Reject().plans_to_give_up(taken)


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


INSTANT = "20260101000000000"
NOTE = f".hoodie/.temp/{INSTANT}.overwrite"
FILE = f"p/3ca348f2-c4ae-48de-a64c-d6015d3432d0-0_0-5-0_{INSTANT}.parquet"
SWITCH = Switch(NOTE, INSTANT, {"hoodie.table.name": "x", "hoodie.table.version": "9"}, (FILE,), ("p",), b"\x00\xff{")


def test_switch_is_written_and_read_back() -> None:
    assert parse_switch(encode_switch(SWITCH), NOTE) == SWITCH


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"instant": 1}', b"\xff", b"7", b"null"])
def test_damaged_switch_is_named(data: bytes) -> None:
    with pytest.raises(Corrupt, match=r"000\.overwrite"):
        parse_switch(data, NOTE)


@pytest.mark.parametrize(
    "change",
    [
        {"instant": "20260101000000001"},
        {"files": (FILE.replace(INSTANT, "20250101000000000"),)},
        {"files": ("p/passwords.txt",)},
        {"files": (f"q/{FILE[2:]}",)},
        {"files": (f"../{FILE}",), "partitions": ("../p",)},
        {"files": (7,)},
        {"partitions": ("p", "../q")},
        {"partitions": ("p", "/q")},
        {"partitions": ("p", ".hoodie/metadata")},
        {"properties": {}},
        {"properties": {"hoodie.table.version": "99"}},
        {"properties": ["x"]},
    ],
    ids=str,
)
def test_a_switch_that_no_writer_of_switches_wrote_is_damaged(change: dict[str, Any]) -> None:
    with pytest.raises(Corrupt, match=r"000\.overwrite"):
        parse_switch(encode_switch(replace(SWITCH, **change)), NOTE)
