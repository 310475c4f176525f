"""Definitions of indexes as Hudi writes them, and damaged ones."""

import json
import uuid

import pytest

from hoodie.errors import Corrupt
from hoodie.metadata import load_index_definitions, parse_index_definitions
from hoodie.spec import TableConfig, keys
from hoodie.storage import MemoryStorage

DEFINITIONS = {
    "indexDefinitions": {
        "record_index": {
            "indexName": "record_index",
            "indexType": "record_index",
            "indexFunction": "",
            "sourceFields": [],
            "indexOptions": {"isPartitioned": "true"},
            "version": "V1",
        },
        "secondary_index_idx_name": {
            "indexName": "secondary_index_idx_name",
            "indexType": "secondary_index",
            "indexFunction": "identity",
            "sourceFields": ["name"],
            "indexOptions": {},
            "version": "V2",
            "somethingNew": [1],
        },
    }
}


def test_kinds_are_told_alike_in_capitals_and_small_letters():
    one = {"indexType": "COLUMN_STATS", "sourceFields": ["a"], "indexFunction": "upper"}
    data = json.dumps({"indexDefinitions": {"expr_index_a": one}}).encode()
    assert parse_index_definitions(data, "index.json")["expr_index_a"].kind == "column_stats"


def test_definitions_are_read_by_name():
    found = parse_index_definitions(json.dumps(DEFINITIONS).encode(), "index.json")
    assert found["record_index"].is_partitioned
    index = found["secondary_index_idx_name"]
    assert (index.kind, index.source_fields, index.version) == ("secondary_index", ("name",), "V2")
    assert not index.is_partitioned


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"indexDefinitions": []}',
        b'{"indexDefinitions": {"a": 1}}',
        b'{"indexDefinitions": {"a": {"indexType": 7}}}',
        b'{"indexDefinitions": {"a": {"indexType": "x", "sourceFields": "abc"}}}',
        b'{"indexDefinitions": {"a": {"indexType": "x", "indexOptions": {"b": 1}}}}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_anything_else_is_corrupt_and_names_the_file(data):
    with pytest.raises(Corrupt) as error:
        parse_index_definitions(data, "index.json")
    assert error.value.facts["path"] == "index.json"


def config(path: str | None) -> TableConfig:
    return TableConfig({keys.NAME: "t"} | ({} if path is None else {keys.INDEX_DEFS_PATH: path}))


@pytest.mark.parametrize("path", [None, ".hoodie/.index_defs/index.json", "/gone/t/.hoodie/.index_defs/index.json"])
def test_file_is_found_where_the_table_says_or_in_the_usual_place(path):
    storage = MemoryStorage(uuid.uuid4().hex)
    storage.put(".hoodie/.index_defs/index.json", json.dumps(DEFINITIONS).encode())
    assert set(load_index_definitions(storage, config(path))) == set(DEFINITIONS["indexDefinitions"])


def test_table_without_the_file_has_no_definitions():
    assert load_index_definitions(MemoryStorage(uuid.uuid4().hex), config(None)) == {}


@pytest.mark.parametrize("path", ["../other/index.json", "/etc/passwd"])
def test_path_that_leaves_the_table_is_refused(path):
    with pytest.raises(Corrupt):
        load_index_definitions(MemoryStorage(uuid.uuid4().hex), config(path))
