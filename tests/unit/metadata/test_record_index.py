"""Where keys are: encodings, newest place, cut by partitions, and how little is read."""

import uuid

import pyarrow as pa
import pytest

from hoodie.errors import Corrupt, Invalid
from hoodie.hfile import HFileOptions
from hoodie.metadata import group_of_keys
from hoodie.spec import V6, V9
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.hand_metadata import FIRST, location_record
from hoodie.testing.hand_table import at

UUID = "00000000-0000-0001-0000-000000000002"


def place(table, keys, **more):
    rows = table.locate(keys, **more).to_pylist()
    return {row["record_key"]: (row["partition"], row["file_id"]) for row in rows}


@pytest.fixture
def indexed(lake):
    made = lake()
    for group in range(3):
        made.metadata.log("record_index", f"record-index-{group:04d}-0", FIRST)
    return made


def put(made, second, records, deleted=()):
    """Records of one write, each in its group."""
    made.table.commit(at(second), {})
    by_group = {}
    for record in records:
        number = int(group_of_keys(pa.array([record["key"]]), 3)[0])
        by_group.setdefault(number, ([], []))[0].append(record)
    for key in deleted:
        by_group.setdefault(int(group_of_keys(pa.array([key]), 3)[0]), ([], []))[1].append(key)
    for number, (found, gone) in by_group.items():
        made.metadata.log("record_index", f"record-index-{number:04d}-0", at(second), found, deleted=gone)
    made.metadata.commit(at(second))


def test_both_encodings_of_file_ids_are_read(indexed):
    put(
        indexed,
        2,
        [
            location_record("a", "p"),
            location_record("b", "p", fileIndex=-1),
            location_record(
                "c", "q", fileIdHighBits=-1, fileIdLowBits=-1, fileIndex=-1, fileId="my-file-7", fileIdEncoding=1
            ),
            location_record("d", "q", fileIdHighBits=-(2**63), fileIdLowBits=-1, fileIndex=12),
        ],
    )
    assert place(indexed.opened(), ["a", "b", "c", "d", "e"]) == {
        "a": ("p", f"{UUID}-0"),
        "b": ("p", UUID),
        "c": ("q", "my-file-7"),
        "d": ("q", "80000000-0000-0000-ffff-ffffffffffff-12"),
    }


def test_newest_place_counts_and_deleted_keys_are_nowhere(indexed):
    put(indexed, 2, [location_record("a", "p"), location_record("b", "p")])
    put(indexed, 3, [location_record("a", "q")], deleted=["b"])
    assert place(indexed.opened(), ["a", "b"]) == {"a": ("q", f"{UUID}-0")}
    put(indexed, 4, [location_record("b", "r")])
    assert place(indexed.opened(), ["a", "b"])["b"] == ("r", f"{UUID}-0")


def test_instant_is_that_of_the_tables_clock(indexed):
    put(indexed, 2, [location_record("a", "p", instantTime=1_767_225_600_123)])
    (row,) = indexed.opened().locate(["a"]).to_pylist()
    assert row["instant"].endswith("123")
    assert len(row["instant"]) == 17


def test_keys_beyond_ascii_are_found(indexed):
    keys = ["é", "日本", "a😀b", "", "\0"]
    put(indexed, 2, [location_record(key, "p") for key in keys])
    assert set(place(indexed.opened(), keys)) == set(keys)


def test_nothing_asked_nothing_found(indexed):
    assert indexed.opened().locate([]).num_rows == 0


def test_index_cut_by_partitions_may_know_a_key_twice(lake):
    made = lake()
    made.table.commit(at(2), {})
    for partition in ("p1", "p/2"):
        file_id = f"record-index-{partition.replace('/', '%2F')}-0000-0"
        made.metadata.log("record_index", file_id, at(2), [location_record("a", partition)])
    made.metadata.commit(at(2))
    table = made.opened()
    assert sorted(table.locate(["a"]).column("partition").to_pylist()) == ["p/2", "p1"]
    assert place(table, ["a"], partitions=["p/2"]) == {"a": ("p/2", f"{UUID}-0")}
    assert place(table, ["a"], partitions=["other"]) == {}


def test_table_without_record_index_says_so(lake):
    with pytest.raises(Invalid, match="record_index"):
        lake().opened().locate(["a"])


@pytest.mark.parametrize("broken", [{"partitionName": None}, {"fileIdEncoding": 1, "fileId": None}])
def test_record_without_place_is_corrupt(indexed, broken):
    put(indexed, 2, [location_record("a", "p", **broken)])
    with pytest.raises(Corrupt):
        indexed.opened().locate(["a"])


@pytest.mark.parametrize("profile", [V6, V9], ids=["v6", "v9"])
def test_a_few_keys_of_many_read_a_few_blocks(lake, profile):
    made = lake(profile)
    keys = sorted(str(uuid.uuid5(uuid.NAMESPACE_OID, str(number))) for number in range(20_000))
    records = [location_record(key, "p") for key in keys]
    path = made.metadata.base(
        "record_index", "record-index-0000-0", FIRST, records, HFileOptions(block_bytes=16 * 1024)
    )
    size = made.metadata.storage.head(path).size_bytes
    table = made.opened()
    counted = CountingReads(made.table.storage)
    object.__setattr__(table.store, "storage", counted)
    assert len(place(table, keys[5_000:5_010])) == 10
    assert counted.bytes_read < 128 * 1024 + size // 4


class CountingReads(CountingStorage):
    """Counts bytes of ranged reads."""

    bytes_read = 0

    def read_range(self, path, start, length):
        data = super().read_range(path, start, length)
        self.bytes_read += len(data)
        return data
