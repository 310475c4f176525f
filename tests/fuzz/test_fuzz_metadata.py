"""Damaged definitions of indexes, keys of secondary indexes, records and names of the metadata table: an answer or a
typed error, in bounded time and memory.

HFiles and Avro have tests of their own. Here what they hold is well-formed and means nonsense.

`make test-deep` takes a sample. `HOODIE_FUZZ_SECONDS` makes each test run so long, `HOODIE_FUZZ_SEED` sets the first
seed.
"""

from __future__ import annotations

import json
from random import Random

import pyarrow as pa
import pytest

from hoodie.errors import Corrupt, HudiError, Invalid, Unsupported
from hoodie.metadata import open_metadata_table, parse_index_definitions
from hoodie.metadata.keys import parse_secondary_key
from hoodie.metadata.stat_values import ranges_of
from hoodie.records import from_avro
from hoodie.spec import V9, metadata_record_schema
from hoodie.testing.fuzzing import fuzz_chances
from hoodie.testing.hand_metadata import FIRST, HandMetadata, files_record, location_record, stats_record
from hoodie.testing.hand_table import HandTable, at
from hoodie.timeline import load_table_config

SAMPLE = 60
DEFINITIONS = {
    "indexDefinitions": {
        "secondary_index_a": {
            "indexName": "secondary_index_a",
            "indexType": "secondary_index",
            "indexFunction": "identity",
            "sourceFields": ["a"],
            "indexOptions": {"x": "y"},
            "version": "V2",
        }
    }
}
TEXTS = ["", "$", "\\", "\0", "..", "../x", "a/b", "\ue000", "😀", "x" * 10_000, "NaN", "10,2", "99,99", "-1,-1"]
NUMBERS = [0, -1, 1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 10, 99]


def test_definitions_of_indexes() -> None:
    for chance in fuzz_chances(SAMPLE):
        text = bytearray(json.dumps(DEFINITIONS).encode())
        for _ in range(chance.randrange(1, 6)):
            where = chance.randrange(len(text))
            text[where : where + chance.randrange(3)] = chance.choice(
                [b"", b"{", b"[", b'"', b"1", b"null", b"\xff", b"\\u0000"]
            )
        try:
            found = parse_index_definitions(bytes(text), "index.json")
        except Corrupt as error:
            assert error.facts["path"] == "index.json"
        else:
            assert all(isinstance(one.source_fields, tuple) for one in found.values())


def test_keys_of_secondary_indexes() -> None:
    for chance in fuzz_chances(SAMPLE):
        key = "".join(chance.choice(["\\", "$", "\0", "a", "é", "\n"]) for _ in range(chance.randrange(12)))
        try:
            value, record_key = parse_secondary_key(key, "path")
        except Corrupt as error:
            assert error.facts["path"] == "path"
        else:
            assert value is None or isinstance(value, str)
            assert isinstance(record_key, str)


def any_of(kind: pa.DataType, chance: Random) -> object:
    """A value of an Arrow type, often an odd one."""
    types = pa.types
    if types.is_struct(kind) and kind[0].name == "member0":  # a union: one of them has a value
        one = chance.choice(list(kind))
        return {one.name: any_of(one.type, chance)}
    if types.is_struct(kind):
        return {field.name: value(field, chance) for field in kind}
    if types.is_map(kind):
        return [(chance.choice(TEXTS), any_of(kind.item_type, chance)) for _ in range(chance.randrange(4))]
    if types.is_list(kind):
        return [any_of(kind.value_type, chance) for _ in range(chance.randrange(3))]
    if types.is_boolean(kind):
        return chance.random() < 0.5
    if types.is_integer(kind):
        number = chance.choice(NUMBERS)
        return number if kind.bit_width == 64 else max(-(2**31), min(2**31 - 1, number))
    if types.is_floating(kind):
        return chance.choice([0.0, -0.0, 1.5, float("nan"), float("inf")])
    if types.is_binary(kind):
        return chance.randbytes(chance.randrange(20))
    if types.is_decimal(kind):
        return chance.randrange(-(10**6), 10**6)
    return chance.choice(TEXTS)


def value(field: pa.Field, chance: Random) -> object:
    return None if field.nullable and chance.random() < 0.3 else any_of(field.type, chance)


PLAIN = (pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32())
TIMES = (pa.timestamp("us", tz="UTC"), pa.timestamp("us"), pa.timestamp("ms", tz="UTC"))
WANTED = (*PLAIN, *TIMES, pa.decimal128(10, 2), pa.decimal128(38, 10))


@pytest.mark.filterwarnings("ignore")
def test_values_of_statistics() -> None:
    kind = from_avro(metadata_record_schema()).field("ColumnStatsMetadata").type
    for chance in fuzz_chances(SAMPLE):
        records = [None if chance.random() < 0.1 else any_of(kind, chance) for _ in range(5)]
        for wanted in WANTED:
            found = ranges_of(pa.array(records, kind), wanted)
            assert found.low.type == found.high.type == wanted
            assert len(found) == len(records)


def test_records_that_mean_nonsense() -> None:
    for chance in fuzz_chances(SAMPLE):
        table = HandTable(V9)
        table.commit(at(1), {})
        metadata = HandMetadata(table.storage)
        schema = from_avro(metadata_record_schema())
        odd = [any_of(pa.struct(list(schema)), chance) for _ in range(3)]
        for number, record in enumerate(odd):
            record["key"] = f"{record['key'][:50]}{number}"
        names = [record["key"] for record in odd]
        metadata.base(
            "files", "files-0000-0", FIRST, [files_record("__all_partitions__", {"p": 0, chance.choice(TEXTS): 0})]
        )
        metadata.commit(FIRST, at(1))
        metadata.log("files", "files-0000-0", at(1), odd if chance.random() < 0.5 else [])
        metadata.base("record_index", "record-index-0000-0", FIRST, [location_record("k", "p")])
        metadata.log("record_index", "record-index-0000-0", at(1), odd)
        metadata.base("column_stats", "col-stats-0000-0", FIRST, [stats_record("k", "c", "f", (None, None))])
        metadata.log("column_stats", "col-stats-0000-0", at(1), odd)
        metadata.commit(at(1), at(2))
        opened = open_metadata_table(table.storage, load_table_config(table.storage), table.timeline())
        assert opened is not None
        for ask in (
            opened.files,
            lambda names=names, opened=opened: opened.locate(names),
            lambda opened=opened: opened.records("column_stats"),
            lambda opened=opened: opened.column_stats("c"),
        ):
            try:
                ask()
            except (Corrupt, Unsupported, Invalid) as error:
                assert isinstance(error, HudiError)
