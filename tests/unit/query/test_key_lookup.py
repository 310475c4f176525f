"""Rows by record key: the right ones, and files that cannot hold them left alone."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import Invalid, Unsupported
from hoodie.index.buckets import COUNT_RULES_DIR
from hoodie.query import BucketHint, ReadOptions, load_lookup_plan, run_read
from hoodie.spec import V9
from hoodie.testing.hand_logs import HandLogTable, at
from hoodie.testing.lake import Lake


def row(key: str, qty: int) -> dict[str, object]:
    return {"id": key, "part": "p0", "qty": qty}


def planned(table: HandLogTable, keys, **options):
    return load_lookup_plan(table.storage, table.config, table.timeline(), keys, ReadOptions(), **options)


def looked_up(table: HandLogTable, keys, **options) -> list[tuple[str, int]]:
    found = run_read(planned(table, keys, **options), table.storage).read_all()
    return sorted(zip(found["id"].to_pylist(), found["qty"].to_pylist(), strict=True))


@pytest.fixture
def table(profile) -> HandLogTable:
    """Buckets by name: k1 in the first group's base, k2 in the second's, k3 in a log of the first."""
    made = HandLogTable(profile)
    made.commit(at(1), {("p0", "a"): [row("k1", 1)], ("p0", "b"): [row("k2", 1)]})
    made.delta(at(2), {("p0", "a"): {"rows": [row("k3", 2)]}})
    return made


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("k1", [("k1", 1)]),
        (["k1", "k3", "none", "k1"], [("k1", 1), ("k3", 2)]),
        (pa.array(["k2", None]), [("k2", 1)]),
        ([], []),
    ],
)
def test_rows_with_the_keys_are_found_wherever_they_are(table, keys, expected):
    assert looked_up(table, keys) == expected


def test_what_is_no_list_of_keys_is_refused(table):
    for wrong in (object(), [["k1"]], [{"a": 1}]):
        with pytest.raises(Invalid, match="record keys"):
            planned(table, wrong)
    with pytest.raises(Invalid, match="no filter"):
        load_lookup_plan(table.storage, table.config, table.timeline(), "k1", ReadOptions(filter="qty = 1"))


@pytest.mark.parametrize("generator", [None, "COMPLEX"])
@pytest.mark.parametrize("nothing", [None, "", [None, ""], float("nan"), pa.array([None], pa.string()), np.nan])
def test_a_look_up_of_what_can_be_no_key_is_refused(nothing, generator):
    lake = Lake(9, {"hoodie.datasource.write.keygenerator.type": generator} if generator else {})
    lake.upsert({"id": "a", "part": "p", "v": "1", "ts": 1})
    with pytest.raises(Invalid, match="no record keys: no row has one in id") as caught:
        lake.table.lookup(nothing)
    assert "values of the key field" in str(caught.value)
    stored = "id:a" if generator else "a"
    assert lake.table.lookup([None, "", stored], columns=["v"]).read_all().to_pylist() == [{"v": "1"}]


def test_nan_is_a_key_where_the_field_has_numbers_that_may_be_none():
    schema = SEVERAL.set(0, pa.field("id", pa.float64()))
    lake = Lake(9, schema=schema)
    lake.upsert({"id": float("nan"), "day": DAY, "part": "p", "v": "nan", "ts": 1})
    assert lake.table.lookup(float("nan"), columns=["v"]).read_all().to_pylist() == [{"v": "nan"}]
    with pytest.raises(Invalid, match="no record keys"):
        lake.table.lookup([None])


def test_buckets_leave_other_file_groups_alone(profile):
    made = HandLogTable(profile)
    groups = {("p0", f"{bucket:08d}-0daf-438b-9a72-0f7a6e5b1f10-0"): [] for bucket in range(4)}
    made.commit(at(1), {group: [row(f"x{n}", n)] for n, group in enumerate(groups)})
    plan = planned(made, "nowhere", buckets=BucketHint(4))
    assert len(planned(made, "nowhere").files) == 4  # these files have neither key range nor bloom filter
    assert len(plan.files) == 1
    assert plan.skipped_files == 3
    made.storage.put(f"{COUNT_RULES_DIR}/00000000000000.hashing_config", b"{}")
    with pytest.raises(Unsupported, match="bucket counts of their own"):
        planned(made, "nowhere", buckets=BucketHint(4))
    assert len(planned(made, "nowhere").files) == 4


def test_footers_rule_base_files_out_and_keep_their_logs() -> None:
    lake = Lake()
    lake.upsert({"id": "a", "part": "p0", "v": "1", "ts": 1}, {"id": "b", "part": "p1", "v": "2", "ts": 1})
    table = lake.table
    handle_plan = table.lookup("a", columns=["id", "v"]).read_all()
    assert handle_plan.to_pylist() == [{"id": "a", "v": "1"}]
    assert table.lookup("zzz").read_all().num_rows == 0
    assert table.lookup("a", as_of="1999-01-01", columns=["id"]).read_all().num_rows in (0, 1)


def test_keys_of_tables_without_meta_columns_are_the_key_column() -> None:
    made = HandLogTable(V9, choices={"populate_meta_fields": False})
    made.commit(at(1), {("p0", "a"): [row("k1", 1), row("k2", 1)]})
    made.delta(at(2), {("p0", "a"): {"rows": [row("k2", 2)]}})
    assert looked_up(made, ["k2"]) == [("k2", 2)]
    several = HandLogTable(V9, choices={"populate_meta_fields": False})
    several.config = several.config.with_changes({"hoodie.table.recordkey.fields": "id,qty"})
    with pytest.raises(Unsupported, match="several fields"):
        planned(several, ["id:k1,qty:1"])


def test_rings_and_chosen_hash_fields_leave_other_buckets_alone() -> None:
    ring = {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "8",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }
    lake = Lake(options=ring)
    lake.upsert(*({"id": f"k{n}", "part": "p", "v": str(n), "ts": 1} for n in range(40)))
    lake.upsert({"id": "k7", "part": "p", "v": "newer", "ts": 2})
    handle = lake.table._opened.handle
    plan = load_lookup_plan(lake.storage, handle.config, lake.table.timeline(), ["k7"], ReadOptions())
    assert len(plan.files) == 1
    assert lake.table.lookup("k7", columns=["v"]).read_all().to_pylist() == [{"v": "newer"}]

    fields = {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "8",
        "hoodie.bucket.index.hash.field": "v",
        "hoodie.datasource.write.recordkey.field": "id,v",
    }
    lake = Lake(options=fields)
    lake.upsert(*({"id": f"k{n}", "part": "p", "v": str(n), "ts": 1} for n in range(40)))
    found = lake.table.lookup("id:k7,v:7", columns=["id"]).read_all()
    assert found.to_pylist() == [{"id": "k7"}]
    handle = lake.table._opened.handle
    hint = BucketHint(8, ("v",))
    options = ReadOptions(use_metadata=False)
    plan = load_lookup_plan(lake.storage, handle.config, lake.table.timeline(), ["id:k7,v:7"], options, buckets=hint)
    assert len(plan.files) == 1


SEVERAL = pa.schema(
    [("id", pa.int32()), ("day", pa.date32()), ("part", pa.string()), ("v", pa.string()), ("ts", pa.int64())]
)
DAY = datetime.date(2024, 5, 6)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_keys_of_several_fields_are_found_by_tuples_mappings_and_frames(version):
    lake = Lake(version, {"hoodie.datasource.write.recordkey.field": "id,day"}, schema=SEVERAL)
    lake.upsert(*({"id": n, "day": DAY, "part": f"p{n % 2}", "v": f"v{n}", "ts": 1} for n in range(4)))
    frame = pa.table({"id": pa.array([1, 2], pa.int64()), "day": [DAY, DAY], "v": ["other", "columns"]})
    for keys, expected in (
        ("id:1,day:2024-05-06", ["v1"]),
        ((1, DAY), ["v1"]),
        ((np.int64(2), "2024-05-06"), ["v2"]),
        ({"id": 3, "day": DAY}, ["v3"]),
        ([(1, DAY), (2, DAY)], ["v1", "v2"]),
        ([{"id": 1.0, "day": DAY, "v": "x"}, {"id": 9, "day": DAY}], ["v1"]),
        (("id:1,day:2024-05-06", "id:2,day:2024-05-06"), ["v1", "v2"]),
        (frame, ["v1", "v2"]),
        (frame.to_batches()[0], ["v1", "v2"]),
        (frame.to_pandas(), ["v1", "v2"]),
        (pa.StructArray.from_arrays([pa.array([3]), pa.array([DAY])], ["id", "day"]), ["v3"]),
    ):
        found = lake.table.lookup(keys, columns=["v"]).read_all()["v"].to_pylist()
        assert sorted(found) == expected, keys


def test_keys_that_do_not_fit_the_key_fields_are_refused_with_the_reason():
    lake = Lake(9, {"hoodie.datasource.write.recordkey.field": "id,day"}, schema=SEVERAL)
    lake.upsert({"id": 1, "day": DAY, "part": "p", "v": "v", "ts": 1})
    for keys, reason in (
        (1, "the key is made of id, day"),
        ([(1,)], "has not one value for each of the key fields id, day"),
        ({"id": 1}, "has no 'day'"),
        (pa.table({"id": [1]}), "no column 'day'"),
        ((1.5, DAY), "the key field id, a int32"),
    ):
        with pytest.raises(Invalid, match=reason):
            lake.table.lookup(keys)


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("generator", [None, "COMPLEX"])
def test_values_of_a_single_key_field_are_found_whatever_number_they_come_as(version, generator):
    named = {"hoodie.datasource.write.keygenerator.type": generator} if generator else {}
    schema = SEVERAL.set(0, pa.field("id", pa.int64()))
    lake = Lake(version, named, schema=schema)
    lake.upsert(*({"id": n, "day": DAY, "part": "p", "v": f"v{n}", "ts": 1} for n in range(4)))
    for keys, expected in (
        (1, ["v1"]),
        (2.0, ["v2"]),
        (np.int32(3), ["v3"]),
        (np.array([1, 2], "int16"), ["v1", "v2"]),
        (np.array(3.0), ["v3"]),
        ([np.float64(1), 7], ["v1"]),
        (Decimal(2), ["v2"]),
        (pa.scalar(1), ["v1"]),
        ({"id": 3}, ["v3"]),
        (pa.table({"id": [1.0, 3.0]}).to_pandas(), ["v1", "v3"]),
        (pa.table({"id": [1.0, 3.0]}).to_pandas()["id"], ["v1", "v3"]),
        ((1, 2), ["v1", "v2"]),
        ([(1,), (2,)], ["v1", "v2"]),
    ):
        found = lake.table.lookup(keys, columns=["v"]).read_all()["v"].to_pylist()
        assert sorted(found) == expected, keys
    with pytest.raises(Invalid, match="the key field id, a int64"):
        lake.table.lookup(1.5)


@pytest.mark.parametrize("consistent", [False, True])
def test_times_as_keys_are_found_in_both_spellings(consistent):
    schema = SEVERAL.set(0, pa.field("id", pa.timestamp("us", "UTC")))
    spelling = {"hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": str(consistent).lower()}
    lake = Lake(9, spelling, schema=schema)
    time = datetime.datetime(2024, 5, 6, 7, 8, tzinfo=datetime.UTC)
    lake.upsert({"id": time, "day": DAY, "part": "p", "v": "v", "ts": 1})
    assert lake.table.lookup(time, columns=["v"]).read_all()["v"].to_pylist() == ["v"]
