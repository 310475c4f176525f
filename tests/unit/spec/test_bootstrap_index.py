"""Entries of the bootstrap index: which source file belongs to which file id."""

import io
from typing import Any

import fastavro
import pytest

from hoodie.errors import Corrupt
from hoodie.spec.bootstrap_index import parse_bootstrap_partition, partition_key

PATH = "index.hfile"
TEXT = ["null", "string"]
STATUS = {
    "type": "record",
    "name": "HoodieFileStatus",
    "fields": [{"name": "path", "type": ["null", {"type": "record", "name": "HoodiePath", "fields": [
        {"name": "version", "type": "int"}, {"name": "uri", "type": TEXT}]}]}],
}  # fmt: skip
ENTRY = {
    "type": "record",
    "name": "HoodieBootstrapPartitionMetadata",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        {"name": "bootstrapPartitionPath", "type": TEXT},
        {"name": "partitionPath", "type": TEXT},
        {"name": "fileIdToBootstrapFile", "type": ["null", {"type": "map", "values": ["null", STATUS]}]},
    ],
}


def container(record: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    fastavro.writer(buffer, ENTRY, [record])
    return buffer.getvalue()


def entry(folder: str | None, partition: str | None, **uris: str | None) -> bytes:
    files = {file_id: {"path": {"version": 1, "uri": uri}} for file_id, uri in uris.items()}
    return container({"bootstrapPartitionPath": folder, "partitionPath": partition, "fileIdToBootstrapFile": files})


def test_sources_are_named_below_the_base_path_wherever_they_were_then():
    one = parse_bootstrap_partition(entry("day=1", "2026/01", f="file:/old/day=1/a.parquet", g="s3a://b/day=1/b"), PATH)
    assert one.partition == "2026/01"
    assert one.sources == {"f": "day=1/a.parquet", "g": "day=1/b"}


@pytest.mark.parametrize("nothing", ["", None])
def test_a_table_without_partitions_has_one_entry(nothing):
    one = parse_bootstrap_partition(entry(nothing, nothing, f="/old/a.parquet"), PATH)
    assert (one.partition, one.sources) == ("", {"f": "a.parquet"})


def test_keys_name_the_partition():
    assert partition_key("part=ä") == "part=part=ä".encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no avro",
        entry("p", "p", f="/a/b")[:-9],
        entry("..", "p", f="/x/secret"),
        entry("/etc", "p", f="/etc/passwd"),
        entry("a/../../b", "p", f="/x/f"),
        entry("p", "p", f="/x/.."),
        entry("p", "p", f="/x/"),
        entry("p", "p", f="a\0b"),
        entry("p", "p", f=None),
        container({"bootstrapPartitionPath": "p", "partitionPath": "p", "fileIdToBootstrapFile": None}),
        container({"bootstrapPartitionPath": "p", "partitionPath": "p", "fileIdToBootstrapFile": {"f": None}}),
        container(
            {"bootstrapPartitionPath": "p", "partitionPath": "p", "fileIdToBootstrapFile": {"f": {"path": None}}}
        ),
    ],
)
def test_what_is_no_path_below_the_base_path_is_refused(data):
    with pytest.raises(Corrupt) as raised:
        parse_bootstrap_partition(data, PATH)
    assert raised.value.facts["path"] == PATH
