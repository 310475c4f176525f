"""Seconds of what a metadata table answers: all files of a large table, and a few keys of a large record index.

Run: `python bench/metadata.py [folder]`. The tables are made on the spot with the HFile encoder and have no data files.
Listing runs in a new process each time, imports included; the best of three runs is printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa

from hoodie.hfile import HFileOptions
from hoodie.metadata import group_of_keys, open_metadata_table
from hoodie.metadata.partitions import RecordType
from hoodie.records import from_avro
from hoodie.spec import V9, keys, metadata_record_schema
from hoodie.storage import LocalStorage, Storage
from hoodie.testing.hand_metadata import HandMetadata
from hoodie.testing.hand_table import HandTable
from hoodie.timeline import load_table_config, load_timeline

PARTITIONS = 1_000
FILES = 100_000
KEYS = 10_000_000
GROUPS = 10
DATA_FILES = 1_000
ASKED = 100
FIRST, SECOND = "20260101000000000", "20260102000000000"

LISTING = """
import time
start = time.perf_counter()
import sys
from hoodie.arrow_start import start_without_pandas
start_without_pandas()
import hoodie
files = hoodie.Table.open(sys.argv[1]).files()
print(len(files), time.perf_counter() - start)
"""


def main(folder: Path) -> None:
    """Print one line per figure."""
    listed = make_listing(LocalStorage(str(folder / "listing")))
    seconds = min(float(run(LISTING, listed.uri).split()[1]) for _ in range(3))
    print(f"open a table of {FILES} files in {PARTITIONS} partitions and list its latest base files: {seconds:.2f} s")
    storage = make_record_index(LocalStorage(str(folder / "keys")))
    rng = np.random.default_rng(1)
    for what in ("first", "again", "again"):
        asked = [key_of(number) for number in rng.integers(0, KEYS, ASKED).tolist()]
        start = time.perf_counter()
        config = load_table_config(storage)
        table = open_metadata_table(storage, config, load_timeline(storage, V9))
        assert table is not None
        found = table.locate(asked).num_rows
        print(
            f"{ASKED} keys of {KEYS} in the record index ({what}): {time.perf_counter() - start:.3f} s, {found} found"
        )


def make_listing(storage: Storage) -> Storage:
    """A table whose files are known to its metadata table only."""
    metadata = new_table(storage)
    partitions = [f"day={number:04d}" for number in range(PARTITIONS)]
    each = FILES // PARTITIONS
    rows = [{"key": "__all_partitions__", "type": 1, "filesystemMetadata": [(name, info(0)) for name in partitions]}]
    for partition in partitions:
        names = [f"{uuid.uuid4()}-0_{number}-12-345_{SECOND}.parquet" for number in range(each)]
        rows.append({"key": partition, "type": 2, "filesystemMetadata": [(name, info(123_456_789)) for name in names]})
    metadata.base("files", "files-0000-0", "00000000000000000", rows)
    metadata.commit("00000000000000000", FIRST)
    return storage


def make_record_index(storage: Storage) -> Storage:
    """A table whose record index has `KEYS` keys."""
    metadata = new_table(storage)
    rows = [{"key": "__all_partitions__", "type": 1, "filesystemMetadata": []}]
    metadata.base("files", "files-0000-0", "00000000000000000", rows)
    location_type = from_avro(metadata_record_schema()).field("recordIndexMetadata").type
    names = pa.array([key_of(number) for number in range(KEYS)], pa.string())
    numbers = group_of_keys(names, GROUPS)
    for group in range(GROUPS):
        mine = names.filter(pa.array(numbers == group))
        columns = {
            "key": mine,
            "type": pa.array(np.full(len(mine), RecordType.RECORD_INDEX, np.int32)),
            "recordIndexMetadata": locations(len(mine), location_type),
        }
        file_id, rows = f"record-index-{group:04d}-0", pa.table(columns)
        metadata.base("record_index", file_id, "00000000000000001", rows, HFileOptions(level=1))
    metadata.commit("00000000000000000", FIRST)
    metadata.commit("00000000000000001", FIRST)
    return storage


def locations(count: int, kind: pa.StructType) -> pa.StructArray:
    """Places of keys in `DATA_FILES` files, in no order."""
    rng = np.random.default_rng(2)
    uuids = rng.integers(-(2**63), 2**63 - 1, (2, DATA_FILES))[:, rng.integers(0, DATA_FILES, count)]
    values = {
        "partitionName": pa.repeat(pa.scalar("day=0001"), count),
        "fileIdHighBits": pa.array(uuids[0]),
        "fileIdLowBits": pa.array(uuids[1]),
        "fileIndex": pa.array(np.zeros(count, np.int32)),
        "fileId": pa.repeat(pa.scalar(""), count),
        "instantTime": pa.array(np.full(count, 1_767_225_600_000)),
        "fileIdEncoding": pa.array(np.zeros(count, np.int32)),
        "position": pa.nulls(count, pa.int64()),
    }
    return pa.StructArray.from_arrays([values[field.name] for field in kind], fields=list(kind))


def new_table(storage: Storage) -> HandMetadata:
    """An empty table of version 9 with one commit."""
    hand = HandTable(V9)
    storage.put(keys.PROPERTIES_FILE, hand.storage.read(keys.PROPERTIES_FILE))
    hand.commit(SECOND, {})
    for file in hand.storage.list(V9.timeline_dir):
        storage.put(file.path, hand.storage.read(file.path))
    return HandMetadata(storage)


def info(size_bytes: int) -> dict[str, object]:
    """What the partition `files` says about a file."""
    return {"size": size_bytes, "isDeleted": False}


def key_of(number: int) -> str:
    """A record key; neighbours lie far from each other in the order of keys."""
    return f"{number * 2_654_435_761 % 2**32:08x}-{number:012d}"


def run(program: str, *arguments: str) -> str:
    """What a new process prints. It finds its modules compiled from the second time on, as installed ones are."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True, env=env
    ).stdout


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(made))
