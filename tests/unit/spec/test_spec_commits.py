"""Commit metadata in JSON and Avro."""

import pytest

from hoodie.errors import Corrupt, Invalid
from hoodie.spec import (
    EMPTY_REPLACE,
    V6,
    V8,
    V9,
    ClusteringPlan,
    CommitMetadata,
    PartitionWork,
    RequestedReplace,
    RuntimeStats,
    WriteStat,
    delete_partition_request,
    encode_container,
    encode_requested_replace,
    parse_container,
    parse_requested_replace,
    workload_profile,
)
from hoodie.spec.commit_json import encode_commit_json, pretty_json

BASE = WriteStat(
    file_id="f-0",
    path="p/f-0_0-1-2_20261121053901683.parquet",
    prev_commit="20261121053900000",
    num_writes=5,
    num_deletes=1,
    num_update_writes=2,
    num_inserts=3,
    total_write_bytes=100,
    partition_path="p",
    file_size_bytes=100,
    runtime=RuntimeStats(total_upsert_time_ms=7),
)
LOG = WriteStat(file_id="g-0", path="p/.g-0_1.log.1_0-1-2", log_version=1, log_offset=0, base_file="", log_files=("x",))
CDC = WriteStat(file_id="h-0", path="p/h", cdc_stats={"p/.h.cdc": 12}, min_event_time=1, max_event_time=2**40)
METADATA = CommitMetadata(
    partition_to_write_stats={"p": (BASE, LOG), "": (CDC,)},
    compacted=True,
    extra_metadata={"schema": '{"type":"record"}', 'quote"\\': "line\nbell\u0007é😀"},
    operation_type="UPSERT",
)
REPLACING = CommitMetadata(operation_type="INSERT_OVERWRITE", partition_to_replace_file_ids={"p": ("a-0",), "q": ()})


@pytest.mark.parametrize("profile", [V6, V8, V9])
@pytest.mark.parametrize(
    ("metadata", "action"),
    [
        (CommitMetadata(), "commit"),
        (METADATA, "deltacommit"),
        (REPLACING, "replacecommit"),
        (REPLACING, "clustering"),
        (workload_profile("UPSERT", {"p": PartitionWork(3, {"f-0": ("20261121053900000", 2)})}), "replacecommit"),
    ],
)
def test_encode_then_parse_is_equal(profile, metadata, action):
    data = profile.commit_codec.encode(metadata, action)
    assert profile.commit_codec.parse(data, "x") == metadata


@pytest.mark.parametrize("profile", [V6, V9])
def test_previous_base_files_are_for_version_8_and_later(profile):
    stat = WriteStat(file_id="f-0", prev_base_file="old.parquet")
    metadata = CommitMetadata({"p": (stat,)})
    found = profile.commit_codec.parse(profile.commit_codec.encode(metadata, "commit"), "x")
    expected = "old.parquet" if profile.capabilities.prev_base_file else None
    assert next(found.write_stats())[1].prev_base_file == expected


@pytest.mark.parametrize("profile", [V6, V9])
def test_either_form_is_read_whatever_the_version(profile):
    for writer in (V6, V9):
        assert profile.commit_codec.parse(writer.commit_codec.encode(REPLACING, "replacecommit"), "x") == REPLACING


@pytest.mark.parametrize("profile", [V6, V9])
def test_zero_bytes_are_empty_metadata(profile):
    assert profile.commit_codec.parse(b"", "x") == CommitMetadata()


@pytest.mark.parametrize("profile", [V6, V9])
def test_a_plain_commit_cannot_replace(profile):
    with pytest.raises(Invalid):
        profile.commit_codec.encode(REPLACING, "commit")


def test_inflight_of_a_replacing_write_is_plain_commit_metadata():
    name, record = parse_container(
        V9.commit_codec.encode(workload_profile("INSERT_OVERWRITE", {}), "replacecommit"), "x"
    )
    assert name == "HoodieCommitMetadata"
    assert record["version"] is None


def test_workload_profile_has_inserts_first_even_if_none():
    profile = workload_profile("UPSERT", {"p": PartitionWork(0, {"f-0": ("1", 2), "g-0": ("1", 3)})})
    stats = profile.partition_to_write_stats["p"]
    assert [(s.file_id, s.prev_commit, s.num_inserts, s.num_update_writes) for s in stats] == [
        ("", "null", 0, 0),
        ("f-0", "1", 0, 2),
        ("g-0", "1", 0, 3),
    ]


def test_json_is_laid_out_as_jackson_does():
    assert pretty_json({"a": {}, "b": [], "c": [{"d": None}, {"e": 1}], "f": ["x", True]}) == (
        '{\n  "a" : { },\n  "b" : [ ],\n  "c" : [ {\n    "d" : null\n  }, {\n    "e" : 1\n  } ],\n'
        '  "f" : [ "x", true ]\n}'
    )
    assert pretty_json("\x1f\\u001f\t") == '"\\u001F\\\\u001f\\t"'
    assert pretty_json(["é", "a-0"]) == '[ "é", "a-0" ]'
    assert pretty_json(["a-0", '"', "\\", "\x1f", ""]) == '[ "a-0", "\\"", "\\\\", "\\u001F", "" ]'


def test_unknown_and_missing_json_keys_are_fine():
    data = b'{"x":1,"partitionToWriteStats":{"p":[{"fileId":"f","nope":{}}]},"operationType":null}'
    assert V6.commit_codec.parse(data, "x") == CommitMetadata({"p": (WriteStat(file_id="f", prev_commit=None),)})


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"\x00",
        b"Obj\x01",
        b'{"partitionToWriteStats":[]}',
        b'{"partitionToWriteStats":{"p":[1]}}',
        b'{"partitionToWriteStats":{"p":[{"numWrites":"x"}]}}',
        encode_commit_json(METADATA)[:-1],
        V9.commit_codec.encode(METADATA, "commit")[:-20],
        encode_requested_replace(EMPTY_REPLACE),
    ],
)
def test_damaged_metadata_is_corrupt_and_names_the_file(data):
    with pytest.raises(Corrupt, match="some/file") as caught:
        V9.commit_codec.parse(data, "some/file")
    assert caught.value.facts["path"] == "some/file"


def test_replaced_groups_and_schema_are_at_hand():
    assert REPLACING.replaced_file_groups() == {("p", "a-0")}
    assert METADATA.schema == '{"type":"record"}'
    assert CommitMetadata().schema is None


@pytest.mark.parametrize(
    "request_",
    [EMPTY_REPLACE, delete_partition_request("1.x"), RequestedReplace("CLUSTER", ClusteringPlan(()), {"a": "b"}, 1)],
)
def test_replace_requests_round_trip(request_):
    found = parse_requested_replace(encode_requested_replace(request_), "x")
    assert found == request_
    assert found.is_clustering == (request_.operation_type == "CLUSTER")


def test_hudi_0_15_says_nothing_about_partition_deletes():
    assert delete_partition_request("0.15") == EMPTY_REPLACE
    assert parse_requested_replace(b"", "x") == EMPTY_REPLACE


def test_container_has_one_header_entry_and_equal_values_give_equal_bytes():
    data = encode_container("HoodieInstantInfo", {"commitTime": "1", "action": "commit"})
    assert data[:18] == b"Obj\x01" + b"\x02" + b"\x16avro.schema" + data[17:18]
    assert b"avro.codec" not in data
    assert data.endswith(b"\x02\x12" + b"\x021\x0ccommit" + data[-16:]) or data[-35:-16].endswith(b"\x021\x0ccommit")
    assert data == encode_container("HoodieInstantInfo", {"commitTime": "1", "action": "commit"})


def test_a_record_that_does_not_fit_is_invalid():
    with pytest.raises(Invalid, match="HoodieInstantInfo"):
        encode_container("HoodieInstantInfo", {"commitTime": 1})


@pytest.mark.parametrize(
    ("stat", "begins"),
    [
        (WriteStat("f", prev_commit="null"), True),
        (WriteStat("f", prev_commit=""), True),
        (WriteStat("f", prev_commit=None), True),
        (BASE, False),
        (LOG, True),
        (LOG._replace(base_file="g-0_0-0-0_1.parquet"), False),
        (LOG._replace(prev_commit="20261121053900000", base_file=None), True),
    ],
)
def test_the_first_file_of_a_group_is_known_as_such(stat: WriteStat, begins: bool) -> None:
    assert stat.begins_group == begins
