"""Every HFile in the golden tables is read whole: base files of metadata tables, and bootstrap indexes.

What merging base files with logs gives is tested where merging is. Here: keys ascend and are distinct, entries are as
many as the file says, each is found by its key, values are Avro records under the file's schema to the last byte, and
those that the real Hudi lists in the metadata table under the same key are of the same kind and about the same thing.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pytest

from hoodie.hfile import HFile, KeyValues, open_hfile
from hoodie.testing.golden import GoldenTable, golden_tables

HERE = Path(__file__).parent
FULL = os.environ.get("HOODIE_GOLDEN_DIR")
TABLES = golden_tables((HERE.parents[1] / FULL).resolve() if FULL else HERE / "tables")
NAMES_IN_STATS = ("fileName", "columnName")


@pytest.mark.parametrize("release", sorted({table.release for table in TABLES}))
def test_every_hfile_of_a_release_is_read_whole(release: str) -> None:
    read = 0
    for table in (table for table in TABLES if table.release == release):
        listed: dict[str, Any] | None = None
        for name, data in hfiles(table):
            file = open_hfile(partial(piece, data), len(data), name)
            parts = list(file.scan())
            keys = [key for part in parts for key in part.keys.to_pylist()]
            assert keys == sorted(set(keys)), name
            assert (file.first_key, file.last_key) == ((keys[0], keys[-1]) if keys else (None, None)), name
            found = file.lookup(keys[::-1])
            assert found.keys.to_pylist() == keys, name
            if file.schema is None:
                assert "/.aux/.bootstrap/" in name
                continue
            listed = metadata_records(table) if listed is None else listed
            for key, record in zip(keys, records(file, [found]), strict=True):
                ensure_alike(record, listed.get(key.decode()), f"{name} {key!r}")
            assert list(records(file, parts)) == list(records(file, [found])), name
            read += len(keys)
    assert read


def hfiles(table: GoldenTable) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of the HFiles of a table."""
    with tarfile.open(table.folder / "table.tar.gz") as tar:
        for member in tar:
            if member.name.endswith(".hfile"):
                content = tar.extractfile(member)
                assert content is not None
                yield f"{table.release}/{member.name}", content.read()


def piece(data: bytes, start: int, length: int) -> bytes:
    return data[start : start + length]


def records(file: HFile, parts: list[KeyValues]) -> Iterator[dict[str, Any]]:
    """The values as Avro records."""
    schema = fastavro.parse_schema(json.loads(file.schema or ""))
    for part in parts:
        for value in part.values.to_pylist():
            content = io.BytesIO(value)
            record = fastavro.schemaless_reader(content, schema, None)
            assert content.tell() == len(value)
            assert isinstance(record, dict)
            yield record


def metadata_records(table: GoldenTable) -> dict[str, Any]:
    """The records of the metadata table by key, as the real Hudi read them."""
    path = table.folder / "expected" / "metadata_table.jsonl.gz"
    if not path.exists():
        return {}
    return {record["key"]: record for record in map(json.loads, gzip.decompress(path.read_bytes()).splitlines())}


def ensure_alike(record: dict[str, Any], listed: dict[str, Any] | None, where: str) -> None:
    assert record["key"] == "", where
    if listed is None:
        return
    assert record["type"] == listed["type"], where
    mine, theirs = record["ColumnStatsMetadata"], listed.get("ColumnStatsMetadata")
    if mine is not None and theirs is not None:
        assert [mine[name] for name in NAMES_IN_STATS] == [theirs.get(name) for name in NAMES_IN_STATS], where
