"""Records of one key in several places become one."""

import pyarrow as pa

from hoodie.metadata.merge import merge_newest, merge_stats, outlived_keys
from hoodie.metadata.records import Part
from hoodie.records import from_avro
from hoodie.spec import metadata_record_schema
from hoodie.testing.hand_metadata import stats_record

SCHEMA = from_avro(metadata_record_schema())
OLD = from_avro(metadata_record_schema("0.15"))


def part(*records, schema=SCHEMA):
    rows = pa.Table.from_pylist(
        list(records), schema=pa.schema([schema.field("key"), schema.field("ColumnStatsMetadata")])
    )
    return Part("f", rows.column("key").combine_chunks(), rows)


def gone(*keys):
    return Part("f", pa.array(keys, pa.string()), None)


def ints(low, high, **more):
    return stats_record("k", "c", "f", ({"member1": {"value": low}}, {"member1": {"value": high}}), **more)


def merged(*parts):
    rows = merge_stats(parts).to_pylist()
    assert len(rows) == 1
    found = rows[0]["ColumnStatsMetadata"]
    return found["minValue"]["member1"]["value"], found["maxValue"]["member1"]["value"], found["valueCount"]


def test_statistics_of_two_writes_cover_both():
    assert merged(part(ints(1, 5)), part(ints(3, 9))) == (1, 9, 20)
    assert merged(part(ints(1, 5)), part(ints(3, 4)), part(ints(0, 2))) == (0, 5, 30)


def test_tight_statistics_replace_older_ones():
    assert merged(part(ints(1, 5)), part(ints(3, 4, isTightBound=True))) == (3, 4, 10)
    assert merged(part(ints(1, 5)), part(ints(3, 4, isTightBound=True)), part(ints(9, 9))) == (3, 9, 20)


def test_after_a_tombstone_statistics_begin_anew():
    assert merged(part(ints(1, 5)), part(ints(0, 0, isDeleted=True)), part(ints(3, 4))) == (3, 4, 10)
    assert merged(part(ints(1, 5)), gone("k"), part(ints(3, 4)), part(ints(6, 6))) == (3, 6, 20)


def test_a_key_is_outlived_when_its_newest_record_counts_alone():
    other = {**ints(1, 5), "key": "other"}
    for alone in (part(ints(3, 4, isTightBound=True)), part(ints(0, 0, isDeleted=True)), gone("k")):
        assert outlived_keys([part(ints(1, 5), other), alone]).to_pylist() == ["k"]
        assert outlived_keys([alone]).to_pylist() == ["k"]
        assert outlived_keys([alone, part(ints(1, 5))]).to_pylist() == []


def test_deleted_key_is_gone():
    assert merge_stats([part(ints(1, 5)), gone("k")]).num_rows == 0
    assert merge_newest([gone("k")]).num_rows == 0


def test_bound_of_another_type_is_unknown_after_adding_up():
    text = stats_record("k", "c", "f", ({"member6": {"value": "a"}},) * 2)
    (row,) = merge_stats([part(ints(1, 5)), part(text)]).to_pylist()
    assert row["ColumnStatsMetadata"]["minValue"] is None


def test_records_of_an_older_release_meet_newer_ones():
    old = ints(1, 5)
    old["ColumnStatsMetadata"].pop("isTightBound")
    assert merged(part(old, schema=OLD), part(ints(3, 9))) == (1, 9, 20)


def test_newest_of_many_keys_in_any_order():
    parts = [part(*({**ints(n, n), "key": f"k{n % 7}"} for n in range(start, start + 7))) for start in (0, 7, 14)]
    found = {
        row["key"]: row["ColumnStatsMetadata"]["minValue"]["member1"]["value"]
        for row in merge_newest(parts).to_pylist()
    }
    assert found == {f"k{n % 7}": n for n in range(14, 21)}
