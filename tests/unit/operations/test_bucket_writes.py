"""Writes into tables with a bucket index: every key in its bucket's file group, once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.engine import ArrowSource
from hoodie.errors import Invalid, Unsupported
from hoodie.index import KeyParts, SimpleBuckets
from hoodie.index.buckets import COUNT_RULES_DIR
from hoodie.index.hash_ring import CONSISTENT_DIR
from hoodie.spec import V9
from hoodie.testing.lake import ROWS, Lake, row, table_of
from hoodie.write import parse_write_options, plan_table
from hoodie.write.keyed_input import KeyedForm, Spool, prepare_input

BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
MERGE = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
RINGS = {**BUCKETS, **MERGE, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
KEYS = [f"k{n}" for n in range(40)]


@pytest.fixture(params=[BUCKETS, BUCKETS | MERGE, RINGS], ids=["simple_cow", "simple_mor", "consistent"])
def index(request: pytest.FixtureRequest) -> dict[str, str]:
    found: dict[str, str] = request.param
    return found


def rows(keys, v="a", ts=1, part="p"):
    return [row(key, v, ts, part) for key in keys]


def ensure_in_buckets(lake: Lake, count: int = 4) -> None:
    """Every base file and log file holds keys of its bucket only, and no bucket has two file groups."""
    live = lake.live()
    numbers = [(partition, file_id[:8]) for partition, file_id in live]
    assert len(set(numbers)) == len(live)
    buckets = SimpleBuckets(count, KeyParts(("id",), ("id",)))
    table = lake.table.scan(columns=["_hoodie_record_key", "_hoodie_file_name"]).read_all()
    named = [int(name[:8]) for name in table[1].to_pylist()]
    assert named == buckets.numbers(table[0].combine_chunks()).tolist()


def test_upserts_keep_one_row_for_a_key_and_one_group_for_a_bucket(version, index):
    lake = Lake(version, index)
    lake.upsert(*rows(KEYS[:20]))
    first = lake.live()
    lake.upsert(*rows(KEYS[10:30], "b", 2))
    lake.upsert(*rows(KEYS[30:], "c", 3))
    expected = {key: "a" if n < 10 else "b" if n < 30 else "c" for n, key in enumerate(KEYS)}
    assert lake.values() == expected
    assert len(first) == len(lake.live()) == 4
    if index is not RINGS:
        ensure_in_buckets(lake)
    lake.ensure_sound()


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_inserts_add_rows_to_the_groups_of_their_buckets(version, index, operation):
    lake = Lake(version, index)
    lake.write(operation, rows(KEYS[:20]))
    lake.write(operation, rows(KEYS[20:]))
    assert sorted(lake.values()) == sorted(KEYS)
    assert len(lake.live()) == 4
    lake.upsert(*rows(KEYS, "z", 3))
    assert set(lake.values().values()) == {"z"}
    assert len(lake.live()) == 4


def test_deletes_and_rows_marked_as_deletes_take_stored_rows_away(version, index):
    lake = Lake(version, index)
    lake.upsert(*rows(KEYS))
    lake.write("delete", rows(KEYS[:10]))
    assert sorted(lake.values()) == sorted(KEYS[10:])
    lake.upsert(*rows(KEYS[:3], "back", 5))
    assert sorted(lake.values()) == sorted(KEYS[:3] + KEYS[10:])


def test_partitions_have_buckets_of_their_own(version, index):
    lake = Lake(version, index)
    lake.upsert(*rows(KEYS, part="p"), *rows(KEYS, "q", part="q"))
    assert len(lake.live()) == 8
    lake.upsert(*rows(KEYS, "r", 2, part="q"))
    assert len(lake.rows()) == 80
    assert len(lake.live()) == 8


def test_insert_overwrite_makes_new_groups_that_later_writes_find(version, index):
    lake = Lake(version, index)
    lake.upsert(*rows(KEYS))
    before = set(lake.live())
    lake.write("insert_overwrite", rows(KEYS[:15], "new", 2))
    assert not before & set(lake.live())
    lake.upsert(*rows(KEYS[:15], "newer", 3), *rows(["fresh"], "f", 3))
    assert lake.values() == {**dict.fromkeys(KEYS[:15], "newer"), "fresh": "f"}
    assert len(lake.live()) <= 4


def test_partition_that_was_deleted_takes_rows_again(version, index):
    lake = Lake(version, index)
    lake.upsert(*rows(KEYS))
    lake.write("delete_partition", rows(["any"]))
    assert lake.values() == {}
    lake.upsert(*rows(KEYS, "again", 1))
    lake.upsert(*rows(KEYS, "more", 2))
    assert lake.values() == dict.fromkeys(KEYS, "more")


def test_save_mode_overwrite_starts_anew(version, index):
    lake = Lake(version, index)
    lake.upsert(*rows(KEYS))
    lake.save(rows(KEYS[:5], "o"), "overwrite")
    lake.upsert(*rows(KEYS[:7], "p", 2))
    assert lake.values() == dict.fromkeys(KEYS[:7], "p")
    other = {"hoodie.write.table.version": str({6: 8, 8: 9, 9: 6}[version])}
    lake.save(rows(KEYS[:5], "v"), "overwrite", **{key.replace(".", "__"): text for key, text in other.items()})
    lake.options = {**lake.options, **other}
    lake.upsert(*rows(KEYS[:7], "w", 2))
    assert lake.values() == dict.fromkeys(KEYS[:7], "w")


def test_file_groups_that_are_no_buckets_are_refused(version):
    plain = Lake(version, MERGE)
    plain.upsert(*rows(KEYS))
    with pytest.raises(Invalid, match="none of the 4 buckets"):
        plain.upsert(*rows(KEYS), **{key.replace(".", "__"): text for key, text in RINGS.items()})


def test_bucket_counts_that_partitions_have_of_their_own_are_refused(version):
    lake = Lake(version, BUCKETS)
    lake.upsert(*rows(KEYS))
    lake.storage.put(f"{COUNT_RULES_DIR}/00000000000000.hashing_config", b"{}")
    for operation in ("upsert", "insert", "delete", "insert_overwrite"):
        with pytest.raises(Unsupported, match="bucket counts of their own"):
            lake.write(operation, rows(KEYS, "b", 2))
    assert lake.values() == dict.fromkeys(KEYS, "a")
    other = {"hoodie__write__table__version": str({6: 8, 8: 9, 9: 6}[version])}
    lake.save(rows(KEYS[:5], "b"), "overwrite", **other)  # another table in its place has no such rules
    assert lake.values() == dict.fromkeys(KEYS[:5], "b")


def test_ring_keeps_its_number_of_buckets_whatever_is_asked(version):
    lake = Lake(version, RINGS)
    lake.upsert(*rows(KEYS))
    lake.upsert(*rows(KEYS, "b", 2), hoodie__bucket__index__num__buckets=9)
    assert lake.values() == dict.fromkeys(KEYS, "b")
    assert len(lake.live()) == 4


def test_some_fields_of_the_key_may_be_hashed(version):
    options = {
        **BUCKETS,
        "hoodie.datasource.write.recordkey.field": "id,v",
        "hoodie.bucket.index.hash.field": "v",
        "hoodie.datasource.write.partitionpath.field": "part",
    }
    lake = Lake(version, options)
    lake.upsert(*rows(KEYS, "same"))
    assert len(lake.live()) == 1
    lake.upsert(*rows(KEYS, "same", 2))
    assert len(lake.rows()) == 40
    with pytest.raises(Invalid, match="which the record key does not have"):
        Lake(version, {**options, "hoodie.bucket.index.hash.field": "ts"}).upsert(*rows(KEYS))


def test_what_a_bucket_index_cannot_answer_is_refused():
    lake = Lake(9, {**BUCKETS, **MERGE})
    lake.upsert(*rows(KEYS))
    with pytest.raises(Unsupported, match="not whether log files have it"):
        lake.write("insert", rows(KEYS), {"hoodie.datasource.insert.dup.policy": "drop"})
    with pytest.raises(Invalid, match="is for merge-on-read"):
        Lake(9, {**RINGS, "hoodie.datasource.write.table.type": None}).upsert(*rows(KEYS))
    automatic = Lake(9, {**BUCKETS, "hoodie.datasource.write.recordkey.field": None})
    with pytest.raises(Invalid, match="keys automatically"):
        automatic.write("insert", rows(KEYS))


def test_duplicates_are_dropped_where_base_files_have_all_keys(version):
    lake = Lake(version, BUCKETS)
    lake.upsert(*rows(KEYS[:20]))
    lake.write("insert", rows(KEYS, "b", 2), {"hoodie.datasource.insert.dup.policy": "drop"})
    assert lake.values() == {key: "a" if n < 20 else "b" for n, key in enumerate(KEYS)}


def test_ring_that_never_completed_does_not_count(version):
    lake = Lake(version, RINGS)
    lake.upsert(*rows(KEYS))
    first = lake.storage.read(f"{CONSISTENT_DIR}/p/00000000000000.hashing_meta")
    torn = first.replace(b"00000000000000", b"29991231000000000").replace(b'"fileIdPrefix" : "', b'"fileIdPrefix" : "x')
    lake.storage.put(f"{CONSISTENT_DIR}/p/29991231000000000.hashing_meta", torn)
    lake.upsert(*rows(KEYS, "b", 2))
    assert lake.values() == dict.fromkeys(KEYS, "b")


def test_spooled_rows_of_a_partition_lie_apart_by_bucket():
    lake = Lake(9, BUCKETS)
    storage = lake.storage
    buckets = SimpleBuckets(4, KeyParts(("id",), ("id",)))
    generator = parse_write_options(
        "upsert", resolve(lake.options), plan_table(storage, resolve(lake.options), ROWS), V9
    )
    form = KeyedForm(generator.keys, ROWS, "20260101000000000")
    data = pa.Table.from_batches([batch for n in range(3) for batch in table_of(rows(KEYS, str(n))).to_batches()])
    reader = pa.RecordBatchReader.from_batches(ROWS, data.to_batches(max_chunksize=7))
    incoming = prepare_input(ArrowSource(reader), form, Spool(storage, ".hoodie/.temp/x.spool", 1, buckets))
    assert not incoming.in_memory
    for part in incoming.parts:
        keys = part.data.load(["_hoodie_record_key"]).column(0).combine_chunks()
        assert len(set(buckets.numbers(keys).tolist())) == 1
    numbers = buckets.numbers(incoming.column_table(["_hoodie_record_key"]).column(0).combine_chunks())
    wanted = incoming.positions()[numbers == 2]
    held = incoming.holding(wanted)
    assert held.rows == len(wanted)
    # Rows of one key keep the order of their arrival.
    arrived = held.column_table(["id", "v"]).to_pylist()
    assert all([row["v"] for row in arrived if row["id"] == key] in ([], ["0", "1", "2"]) for key in KEYS)


def test_buckets_of_spooled_input_are_the_same(version, index):
    lake = Lake(version, {**index, "hoodie.engine.local.max.bytes": "1"})
    lake.upsert(*rows(KEYS))
    lake.upsert(*rows(KEYS, "b", 2))
    assert lake.values() == dict.fromkeys(KEYS, "b")
    assert len(lake.live()) == 4
