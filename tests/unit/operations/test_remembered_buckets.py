"""A table made with the bucket index remembers it: no later write puts a key where another one does not look."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from hoodie import Table
from hoodie.errors import Invalid, Unsupported
from hoodie.index import RememberedBuckets, parse_remembered_buckets
from hoodie.index.buckets import COUNT_RULES_DIR
from hoodie.testing.interleaved import WRITER_STEPS, orders, run_in_order, writer
from hoodie.testing.lake import Lake, row, table_of
from hoodie.timeline import store_table_config
from hoodie.transaction import WriteConflict

INDEX = "hoodie.index.type"
ENGINE = "hoodie.index.bucket.engine"
COUNT = "hoodie.bucket.index.num.buckets"
FIELDS = "hoodie.bucket.index.hash.field"
REMEMBERED = (INDEX, ENGINE, COUNT, FIELDS)
SIMPLE = {INDEX: "BUCKET", COUNT: "2"}
RINGS = {**SIMPLE, ENGINE: "CONSISTENT_HASHING", "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
TWO_FIELDS = {"hoodie.datasource.write.recordkey.field": "id,v"}
KEYS = [f"k{n}" for n in range(30)]


def rows(keys=KEYS, v="a", ts=1, part="p"):
    return [row(key, v, ts, part) for key in keys]


def remembered(lake: Lake) -> dict[str, str]:
    return {key: value for key, value in lake.table.config.raw.items() if key in REMEMBERED}


def forget(lake: Lake) -> None:
    """Makes the table one of Hudi, or of an older writer: its properties say nothing of the index."""
    handle = lake.handle()
    store_table_config(lake.storage, handle.config, handle.config.with_changes({}, drop=REMEMBERED), handle.env)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (SIMPLE, {INDEX: "BUCKET", ENGINE: "SIMPLE", COUNT: "2", FIELDS: "id"}),
        ({INDEX: "bucket"}, {INDEX: "BUCKET", ENGINE: "SIMPLE", COUNT: "256", FIELDS: "id"}),
        ({**SIMPLE, **TWO_FIELDS}, {INDEX: "BUCKET", ENGINE: "SIMPLE", COUNT: "2", FIELDS: "id,v"}),
        ({**SIMPLE, **TWO_FIELDS, FIELDS: "v"}, {INDEX: "BUCKET", ENGINE: "SIMPLE", COUNT: "2", FIELDS: "v"}),
        (RINGS, {INDEX: "BUCKET", ENGINE: "CONSISTENT_HASHING", FIELDS: "id"}),
        ({COUNT: "2"}, {}),
    ],
)
def test_a_table_made_with_buckets_has_them_among_its_properties(version, options, expected):
    lake = Lake(version, options)
    lake.upsert(*rows(KEYS[:1]))
    assert remembered(lake) == expected
    other = Lake(version, options)
    made = Table.create(other.uri, options=other.options)
    assert {key: value for key, value in made.config.raw.items() if key in REMEMBERED} == expected


@pytest.mark.parametrize("index", [SIMPLE, RINGS], ids=["simple", "rings"])
def test_writes_without_options_go_on_with_the_buckets(version, index):
    lake = Lake(version, index)
    lake.upsert(*rows())
    bare = Table.open(lake.uri)
    bare.upsert(table_of(rows(KEYS[10:], "b", 2)))
    bare.write("insert", table_of(rows(["new"], "c", 2)))
    assert lake.values() == {**dict.fromkeys(KEYS[:10], "a"), **dict.fromkeys(KEYS[10:], "b"), "new": "c"}
    assert len(lake.live()) == 2
    lake.ensure_sound()


@pytest.mark.parametrize(
    ("options", "other"),
    [
        (SIMPLE, {COUNT: "8"}),
        (SIMPLE, {COUNT: "1"}),
        (SIMPLE, {ENGINE: "CONSISTENT_HASHING"}),
        (SIMPLE, {INDEX: "SIMPLE"}),
        (SIMPLE, {INDEX: "RECORD_INDEX"}),
        ({**SIMPLE, **TWO_FIELDS}, {FIELDS: "v"}),
        (RINGS, {ENGINE: "SIMPLE"}),
        (RINGS, {INDEX: "BLOOM"}),
        ({**RINGS, **TWO_FIELDS, FIELDS: "v"}, {FIELDS: "id"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "delete", "insert_overwrite"])
def test_another_index_is_refused_and_nothing_is_written(operation, options, other):
    lake = Lake(9, options)
    lake.upsert(*rows())
    files = lake.files()
    (key,) = other
    with pytest.raises(Invalid, match=f"{key} is .* but the table has") as caught:
        lake.write(operation, rows(v="b", ts=2), other)
    assert "Leave them out" in str(caught.value)
    assert "save mode overwrite" in str(caught.value)
    assert lake.files() == files


def test_a_class_of_the_callers_own_is_refused(monkeypatch):
    lake = Lake(9, SIMPLE)
    lake.upsert(*rows())
    module = ModuleType("an_index_for_other_tables")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with pytest.raises(Invalid, match=r"hoodie\.index\.class"):
        lake.upsert(*rows(), hoodie__index__class=f"{module.__name__}:Index")


def test_the_same_said_in_other_words_is_no_contradiction(version):
    lake = Lake(version, {**SIMPLE, **TWO_FIELDS, FIELDS: "v,id"})
    lake.upsert(*rows())
    for same in ({INDEX: "bucket"}, {FIELDS: "id,v"}, {COUNT: "02"}, {ENGINE: "simple"}):
        lake.write("upsert", rows(ts=2), same)
    assert len(lake.rows()) == len(KEYS)


def test_rings_take_any_number_of_buckets(version):
    lake = Lake(version, RINGS)
    lake.upsert(*rows())
    lake.write("upsert", rows(v="b", ts=2), {COUNT: "9"})
    assert lake.values() == dict.fromkeys(KEYS, "b")
    assert len(lake.live()) == 2


def test_save_mode_overwrite_makes_a_table_with_another_number(version):
    lake = Lake(version, SIMPLE)
    lake.upsert(*rows())
    lake.save(rows(v="o"), "overwrite", **{COUNT.replace(".", "__"): "8"})
    assert remembered(lake)[COUNT] == "8"
    Table.open(lake.uri).upsert(table_of(rows(v="p", ts=2)))
    assert lake.values() == dict.fromkeys(KEYS, "p")
    assert len(lake.live()) == 8
    lake.save(rows(v="q"), "overwrite", **{INDEX.replace(".", "__"): "SIMPLE"})
    assert remembered(lake) == {}
    lake.options = {key: value for key, value in lake.options.items() if key not in REMEMBERED}
    lake.upsert(*rows(v="r", ts=2))
    assert lake.values() == dict.fromkeys(KEYS, "r")


def test_a_resize_keeps_what_the_table_remembers(version):
    lake = Lake(version, {**RINGS, "hoodie.compact.inline": "false"})
    lake.upsert(*rows())
    before = remembered(lake)
    sizes = {"hoodie.parquet.max.file.size": "1000", "hoodie.bucket.index.max.num.buckets": "4"}
    assert Table.open(lake.uri).services.resize(**sizes) is not None
    assert remembered(lake) == before
    Table.open(lake.uri).upsert(table_of(rows(v="b", ts=2)))
    assert lake.values() == dict.fromkeys(KEYS, "b")
    assert len(lake.live()) == 4


def test_a_table_that_remembers_nothing_is_held_to_its_file_names(version):
    lake = Lake(version, {**SIMPLE, COUNT: "4"})
    lake.upsert(*rows())
    forget(lake)
    with pytest.raises(Invalid, match="none of the 2 buckets"):
        lake.write("upsert", rows(v="b", ts=2), {COUNT: "2"})
    lake.upsert(*rows(v="b", ts=2))
    assert lake.values() == dict.fromkeys(KEYS, "b")
    assert remembered(lake) == {}


def test_clustering_is_refused_without_the_option():
    lake = Lake(9, SIMPLE)
    lake.upsert(*rows())
    with pytest.raises(Unsupported, match="buckets"):
        Table.open(lake.uri).services.cluster()


@pytest.mark.parametrize("order", orders({"A": WRITER_STEPS, "B": WRITER_STEPS})[:6], ids="".join)
def test_two_writers_without_options_give_one_bucket_one_file_group(order):
    lake = Lake(9, {**SIMPLE, COUNT: "1", "hoodie.metadata.enable": "false"})
    lake.upsert(row("a"))
    lake.options = {key: value for key, value in lake.options.items() if key not in REMEMBERED}
    ends = run_in_order(order, {name: writer(lake, [row(name, part="q")]) for name in "AB"})
    done = [name for name, end in ends.items() if not isinstance(end, WriteConflict)]
    lake.upsert(*(row(name, "later", 2, "q") for name in "AB"))
    assert lake.values() == {"a": "a", "A": "later", "B": "later"}
    assert len(lake.live()) == 2, done


def test_look_ups_take_the_remembered_number_whatever_they_are_told(version):
    lake = Lake(version, {**SIMPLE, COUNT: "4", "hoodie.metadata.enable": "false"})
    lake.upsert(*rows())
    for options in ({}, {COUNT: "3"}, {COUNT: "4"}, {FIELDS: "v"}):
        table = Table.open(lake.uri, options=options)
        for key in KEYS[:10]:
            assert table.lookup(key, columns=["id"]).read_all().to_pylist() == [{"id": key}], (options, key)
    forget(lake)
    for count in ("1", "3", "4", "5"):
        table = Table.open(lake.uri, options={COUNT: count})
        found = [key for key in KEYS if table.lookup(key, columns=["id"]).read_all().num_rows]
        assert found == KEYS or count == "5", "no file name tells that a number is too large"


def test_look_ups_read_all_where_partitions_have_numbers_of_their_own(version):
    lake = Lake(version, {**SIMPLE, "hoodie.metadata.enable": "false"})
    lake.upsert(*rows())
    lake.storage.put(f"{COUNT_RULES_DIR}/00000000000000.hashing_config", b"{}")
    assert Table.open(lake.uri).lookup("k1", columns=["id"]).read_all().num_rows == 1


def test_properties_that_say_half_of_it_are_passed_over():
    whole = RememberedBuckets("SIMPLE", ("id",), 4).properties
    assert parse_remembered_buckets(whole) == RememberedBuckets("SIMPLE", ("id",), 4)
    for key in whole:
        assert parse_remembered_buckets({one: value for one, value in whole.items() if one != key}) is None
    for wrong in ({ENGINE: "OTHER"}, {INDEX: "BLOOM"}, {FIELDS: " , "}):
        assert parse_remembered_buckets({**whole, **wrong}) is None
    for number in ("0", "many", "-1", str(10**8 + 1), "9" * 5000):
        assert parse_remembered_buckets({**whole, COUNT: number}) is None
