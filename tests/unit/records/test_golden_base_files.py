"""Every base file of every golden table: schema text, bloom filter and rows, against what the real Hudi wrote and read.

Runs when HOODIE_GOLDEN_DIR names the folder of golden tables (`<version>/<scenario>/table.tar.gz` with `expected/`
beside).
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie.records import (
    BloomFilter,
    BloomOptions,
    align,
    from_avro,
    iter_batches,
    read_columns,
    read_footer,
    storable,
    to_avro,
)
from hoodie.storage import MemoryStorage
from hoodie.testing.golden import difference

FOLDER = os.environ.get("HOODIE_GOLDEN_DIR")
TABLES = sorted(Path(FOLDER).glob("*/*/table.tar.gz")) if FOLDER else []
HALF_WRITTEN = "cow_null_in_list_fails"  # rows that failed in mid-write are in the file but not in its filter
FROM_PATH = {  # columns Hudi takes from the partition path instead of the file
    "cow_null_empty_partition": "part",
    "cow_timestamp_keygen": "ev_ms",
    "cow_drop_partition_columns": "part",
}

pytestmark = pytest.mark.skipif(not TABLES, reason="HOODIE_GOLDEN_DIR is not set")


def name_of(archive: Path) -> str:
    return "/".join(archive.parts[-3:-1])


@pytest.fixture(params=TABLES, ids=name_of)
def archive(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture
def storage(archive: Path) -> MemoryStorage:
    store = MemoryStorage(f"golden-{name_of(archive)}".replace("/", "-"))
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.name.endswith(".parquet") and "/.hoodie" not in member.name:
                data = tar.extractfile(member)
                assert data is not None
                store.put(member.name.removeprefix("./"), data.read())
    return store


def base_files(storage: MemoryStorage) -> Iterator[str]:
    for info in storage.list(""):
        if info.size_bytes:
            yield info.path


def test_schema_text_and_filter_are_rebuilt_letter_for_letter(archive: Path, storage: MemoryStorage) -> None:
    for path in base_files(storage):
        footer = read_footer(storage, path)
        if footer.avro_schema is not None:
            name = json.loads(footer.avro_schema)["name"]
            if name != "HoodieRecordKey":
                assert to_avro(from_avro(footer.avro_schema), name.removesuffix("_record")) == footer.avro_schema
        stored = footer.bloom()
        if stored is None or HALF_WRITTEN in archive.parts:
            continue
        sizes = (BloomOptions(stored.type_code, entries) for entries in (500, 60_000))
        options = next(one for one in sizes if footer.bloom_text and one.is_made_like(footer.bloom_text, footer.rows))
        rebuilt = options.new_filter()
        rebuilt.add(read_columns(storage, path, ["_hoodie_record_key"])[0])
        assert rebuilt.to_text() == footer.bloom_text
        assert BloomFilter.from_text(rebuilt.to_text(), footer.bloom_type).to_text() == footer.bloom_text


def test_rows_are_those_hudi_reads(archive: Path, storage: MemoryStorage) -> None:
    expected_dir = archive.parent / "expected"
    optimized = expected_dir / "read_optimized.parquet"
    expected = pq.read_table(optimized if optimized.exists() else expected_dir / "snapshot.parquet")
    files = {path.rpartition("/")[2]: path for path in base_files(storage)}
    if "_hoodie_file_name" not in expected.column_names:
        pytest.skip("no meta columns")
    names = pc.unique(expected["_hoodie_file_name"]).to_pylist()
    if any(name not in files for name in names):
        pytest.skip("rows come from elsewhere: log files or a bootstrap source")
    expected = expected.drop_columns([name for name in (FROM_PATH.get(archive.parts[-2]),) if name])
    schema = storable(expected.schema)
    found = [batch for name in names for batch in iter_batches(storage, files[name], schema=schema)]
    assert difference(pa.Table.from_batches(found, schema), align(expected, schema)) is None
