"""Which slices are ruled out, and by what."""

import json
import uuid
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from hoodie.errors import Corrupt
from hoodie.filters.sql import parse_row_filter
from hoodie.metadata import COLUMN_STATS, RECORD_INDEX, Question
from hoodie.metadata.keys import bloom_filter_key, column_stats_key, partition_stats_key, secondary_key
from hoodie.records import BloomFilter
from hoodie.spec import encode_table_config, keys, parse_base_file_name, parse_log_file_name
from hoodie.testing.hand_metadata import FIRST, location_record, stats_record
from hoodie.testing.hand_table import at
from hoodie.timeline import load_table_config
from hoodie.view import BaseFile, FileSlice, LogFile

SCHEMA = pa.schema(
    [
        ("_hoodie_record_key", pa.string()),
        ("id", pa.string()),
        ("part", pa.string()),
        ("qty", pa.int64()),
        ("other", pa.int64()),
        ("s", pa.struct([("n", pa.int64())])),
    ]
)


def file_slice(partition, number, logs=0):
    file_id = f"{number:08d}-0000-0001-0000-000000000002-0"
    base = f"{file_id}_0-1-2_{at(1)}.parquet"
    names = [f".{file_id}_{at(2)}.log.{n + 1}_0-1-2" for n in range(logs)]
    return FileSlice(
        partition,
        file_id,
        at(1),
        BaseFile(f"{partition}/{base}", parse_base_file_name(base), 1),
        tuple(LogFile(f"{partition}/{name}", parse_log_file_name(name), 1) for name in names),
    )


def ints(column, part, name, low, high, **more):
    bounds = tuple(None if one is None else {"member2": {"value": one}} for one in (low, high))
    return stats_record(
        column_stats_key(column, part.partition, name), column, name, bounds, valueType={"typeOrdinal": 4}, **more
    )


def of_base(column, part, low, high, **more):
    return ints(column, part, part.base.name.text, low, high, **more)


def of_log(column, part, n, low, high, **more):
    return ints(column, part, part.logs[n].name.text, low, high, **more)


@pytest.fixture
def made(lake):
    return lake()


def kept(made, slices, sql, *, of_newest=True, by_name=True, path_columns=("part",)):
    condition = parse_row_filter(sql, SCHEMA).condition
    question = Question(condition, SCHEMA, of_newest, by_name, frozenset(path_columns))
    found = made.opened().may_match(slices, question)
    return [slices.index(one) for one in found]


A, B, C = file_slice("p", 1), file_slice("p", 2), file_slice("q", 3)


def stats(made, *records):
    made.metadata.base(COLUMN_STATS, "col-stats-0000-0", FIRST, list(records))


def test_ranges_of_base_files_decide(made):
    stats(made, of_base("qty", A, 1, 5), of_base("qty", B, 6, 9), of_base("qty", C, 3, 7))
    assert kept(made, [A, B, C], "qty = 6") == [1, 2]
    assert kept(made, [A, B, C], "qty > 100") == []
    assert kept(made, [A, B, C], "qty < 3 OR qty >= 8") == [0, 1]
    assert kept(made, [A, B, C], "NOT (qty BETWEEN 1 AND 5)") == [1, 2]
    assert kept(made, [A, B, C], "qty IN (2, 8) AND qty != 2") == [0, 1]
    assert kept(made, [A, B, C], "qty IS NULL") == []
    assert kept(made, [A, B, C], "qty = 100 OR other = 1") == [0, 1, 2]


def test_file_without_statistics_is_kept(made):
    stats(made, of_base("qty", A, 1, 5), of_base("qty", C, 1, 5, isDeleted=True))
    assert kept(made, [A, B, C], "qty = 6") == [1, 2]


def test_nested_columns_have_statistics_under_their_path(made):
    stats(made, of_base("s.n", A, 1, 5), of_base("s.n", B, 6, 9))
    assert kept(made, [A, B], "s.n = 7") == [1]


def test_slice_is_kept_when_any_of_its_files_may_match(made):
    one, two = file_slice("p", 4, logs=2), file_slice("p", 5, logs=1)
    stats(
        made,
        *(of_base("qty", one, 1, 1), of_log("qty", one, 0, 5, 5), of_log("qty", one, 1, None, None, valueCount=0)),
        *(of_base("qty", two, 1, 1), of_log("qty", two, 0, 2, 2)),
    )
    assert kept(made, [one, two], "qty = 5") == [0]
    assert kept(made, [one, two], "qty = 3") == []


def test_columns_of_a_row_may_come_from_different_files_of_a_slice(made):
    mixed, other = file_slice("p", 4, logs=1), file_slice("p", 5)
    stats(
        made,
        *(of_base("qty", mixed, 1, 1), of_base("other", mixed, 1, 1)),
        *(of_log("qty", mixed, 0, 2, 2), of_log("other", mixed, 0, 2, 2)),
        *(of_base("qty", other, 7, 7), of_base("other", other, 7, 7)),
    )
    assert kept(made, [mixed, other], "(qty = 1 AND other = 2) OR qty = 100") == [0]


def test_merger_of_the_users_own_keeps_slices_with_logs(lake):
    made = lake()
    config = load_table_config(made.table.storage)
    made.table.storage.put(
        keys.PROPERTIES_FILE,
        encoded(config.with_changes({keys.MERGE_MODE: "CUSTOM", keys.MERGE_STRATEGY_ID: str(uuid.UUID(int=1))})),
    )
    logged = file_slice("p", 4, logs=1)
    stats(made, of_base("qty", A, 1, 5), of_base("qty", logged, 1, 5), of_log("qty", logged, 0, 1, 5))
    assert kept(made, [A, logged], "qty = 6") == [1]


def encoded(config):
    return encode_table_config(config, datetime(2026, 1, 1, tzinfo=UTC))


def test_partition_columns_are_not_asked_of_files(made):
    texts = ({"member6": {"value": ""}},) * 2
    records = [
        stats_record(column_stats_key("part", one.partition, one.base.name.text), "part", "f", texts) for one in (A, B)
    ]
    stats(made, *records)
    assert kept(made, [A, B], "part = 'p'") == [0, 1]
    assert kept(made, [A, B], "part = 'p'", path_columns=()) == []


def test_columns_by_id_are_not_asked_by_name(made):
    stats(made, of_base("qty", A, 1, 5), of_base("qty", B, 6, 9))
    assert kept(made, [A, B], "qty = 6", by_name=False) == [0, 1]


def test_one_slice_is_not_worth_a_question(made):
    stats(made, of_base("qty", A, 1, 5))
    assert kept(made, [A], "qty = 6") == [0]


def of_partition(column, name, bounds, **more):
    record = stats_record(partition_stats_key(column, name), column, name, bounds, **more)
    return {**record, "type": 6}


def whole(low, high):
    return {"member2": {"value": low}}, {"member2": {"value": high}}


def test_statistics_of_partitions_decide_for_the_newest_state_only(made):
    texts = ({"member6": {"value": "k"}},) * 2
    records = [of_partition("_hoodie_record_key", name, texts) for name in ("p", "q")]
    records += [of_partition("qty", "p", whole(1, 5)), of_partition("qty", "q", whole(6, 9))]
    made.metadata.base("partition_stats", "partition-stats-0000-0", FIRST, records)
    assert kept(made, [A, B, C], "qty = 6") == [2]
    assert kept(made, [A, B, C], "qty = 6", of_newest=False) == [0, 1, 2]
    assert kept(made, [A, B, C], "qty IS NULL") == []


def test_statistics_of_a_partition_that_cover_some_of_its_rows_are_not_believed(made):
    texts = ({"member6": {"value": "k"}},) * 2
    records = [of_partition("_hoodie_record_key", "p", texts, valueCount=11), of_partition("qty", "p", whole(1, 5))]
    records += [of_partition("qty", "q", whole(1, 5))]
    made.metadata.base("partition_stats", "partition-stats-0000-0", FIRST, records)
    assert kept(made, [A, B, C], "qty = 6") == [0, 1, 2]


def test_record_index_names_the_groups_of_keys(made):
    place = {"fileIdHighBits": (1 << 32) + 1, "fileIdLowBits": 2}
    made.metadata.base(RECORD_INDEX, "record-index-0000-0", FIRST, [location_record("k1", "p", **place)])
    here = FileSlice("p", "00000001-0000-0001-0000-000000000002-0", at(1), A.base)
    assert kept(made, [here, B, C], "_hoodie_record_key = 'k1'") == [0]
    assert kept(made, [here, B, C], "id = 'k1' AND qty > 3") == [0]
    assert kept(made, [here, B, C], "id IN ('k1', 'k2')") == [0]
    assert kept(made, [here, B, C], "id = 'nobody'") == []
    assert kept(made, [here, B, C], "id > 'k1'") == [0, 1, 2]
    assert kept(made, [here, B, C], "id = 'k1' OR qty = 1") == [0, 1, 2]
    assert kept(made, [here, B, C], "id = 'k1'", of_newest=False) == [0, 1, 2]


def test_record_index_is_not_read_where_ranges_of_keys_lie_apart(made):
    column = "_hoodie_record_key"

    def range_of(part, low, high):
        bounds = tuple({"member6": {"value": one}} for one in (low, high))
        name = part.base.name.text
        return stats_record(column_stats_key(column, part.partition, name), column, name, bounds)

    made.metadata.base(RECORD_INDEX, "record-index-0000-0", FIRST, [])
    stats(made, range_of(A, "a", "c"), range_of(B, "d", "f"), range_of(C, "g", "k"))
    for file in list(made.table.storage.list(".hoodie/metadata/record_index")):
        made.table.storage.put(file.path, b"no HFile")
    assert kept(made, [A, B, C], "_hoodie_record_key IN ('b', 'h', 'z')") == [0, 2]
    assert kept(made, [A, B, C], "_hoodie_record_key = 'cc'") == []
    with pytest.raises(Corrupt):
        kept(made, [A, B, C], "_hoodie_record_key = '\ue001'")


def test_secondary_index_leads_to_keys_and_they_to_groups(made):
    place = {"fileIdHighBits": (1 << 32) + 1, "fileIdLowBits": 2}
    made.metadata.base(RECORD_INDEX, "record-index-0000-0", FIRST, [location_record("k1", "p", **place)])
    name = "secondary_index_of_qty"
    record = {"key": secondary_key("42", "k1"), "type": 7, "SecondaryIndexMetadata": {"isDeleted": False}}
    made.metadata.base(name, "secondary-index-of-qty-0000-0", FIRST, [record])
    definition = {"indexType": "secondary_index", "sourceFields": ["qty"], "version": "V2"}
    document = json.dumps({"indexDefinitions": {name: definition}})
    made.table.storage.put(".hoodie/.index_defs/index.json", document.encode())
    assert kept(made, [A, B, C], "qty = 42") == [0]
    assert kept(made, [A, B, C], "qty = 43") == []
    assert made.opened().secondary(name, ["42", None]).to_pylist() == [{"value": "42", "record_key": "k1"}]


def test_bloom_filters_decide_about_keys_of_plain_slices(made):
    logged = file_slice("p", 4, logs=1)
    filters = {A: ["k1", "k2"], B: ["k3"], logged: ["k3"]}
    records = []
    for part, held in filters.items():
        bloom = BloomFilter.dynamic(100)
        bloom.add(pa.array(held))
        content = {
            "type": "DYNAMIC_V0",
            "timestamp": at(1),
            "bloomFilter": bloom.to_text().encode(),
            "isDeleted": False,
        }
        key = bloom_filter_key(part.partition, part.base.name.text)
        records.append({"key": key, "type": 4, "BloomFilterMetadata": content})
    made.metadata.base("bloom_filters", "bloom-filters-0000-0", FIRST, records)
    assert kept(made, [A, B, C, logged], "id = 'k1'") == [0, 2, 3]
