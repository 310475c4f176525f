"""Rows by record key: the right ones, and files that cannot hold them left alone."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.errors import Invalid, Unsupported
from hoodie.index.buckets import COUNT_RULES_DIR
from hoodie.read import BucketHint, ReadOptions, load_lookup_plan, run_read
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
    handle = lake.table._handle
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
    handle = lake.table._handle
    hint = BucketHint(8, ("v",))
    options = ReadOptions(use_metadata=False)
    plan = load_lookup_plan(lake.storage, handle.config, lake.table.timeline(), ["id:k7,v:7"], options, buckets=hint)
    assert len(plan.files) == 1
