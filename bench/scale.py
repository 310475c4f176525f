"""What operations cost as tables grow: calls of the storage, seconds, memory of the process that decides.

    python -m bench.scale [--files 1000 10000 ...] [--in-partition 100] [--real FOLDER] [--only NAME ...]
    python -m bench.scale --rows 1000000 10000000 ... [--real FOLDER]
    python -m bench.scale --key-rows 3000000 30000000 ... [--real FOLDER]

1. Tables are simulated: names and sizes of data files that nobody opens, made up when a folder is listed. A listing
   counts as often as an object store is asked for it, a thousand names at a time, as does a walk below a folder.
2. Each measurement is a process of its own and prints one line of JSON. `MiB` is how far its memory rose above where it
   was when the table was there; seconds are those of a storage that answers at once.
3. With `--real` the files are real ones on that disk, without bytes: the same calls, and the seconds of a disk.
4. With `--rows` real rows are inserted in bulk into ten partitions of a table on the disk, by two threads; then a
   thousand of them are updated, once spread over all files and once into one partition.
5. With `--key-rows` so many rows make a merge-on-read table of 70 files, keys in order and in no order; then a hundred
   of them, spread over all files, are updated by the default index, three times.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import LocalEngine
from hoodie.hfile import HFileOptions
from hoodie.records import from_avro
from hoodie.server.embedded import stop_embedded
from hoodie.server.kept_view import KeptView, load_into, open_view, synced
from hoodie.spec import V9, BaseFileName, keys, metadata_record_schema
from hoodie.state.handle import load_handle
from hoodie.storage import FileInfo, Listing, LocalStorage, Storage
from hoodie.table import Table
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.hand_metadata import FIRST, HandMetadata
from hoodie.testing.hand_table import HandTable, at
from hoodie.testing.lake import Awake

PAGE = 1000
TOUCHED = 10
SIZE = 120 << 20
SIZES = (1_000, 10_000, 100_000, 1_000_000)
OPTIONS = {
    "hoodie.table.name": "hand",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.parquet.small.file.limit": "1",  # none is small, which only their sizes tell
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.index.partition.stats.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}


class Files:
    """The made-up files of a table: `count` in all, `each` in a partition."""

    def __init__(self, count: int, each: int) -> None:
        self.each = each
        self.partitions = [f"p{number:07d}" for number in range(-(-count // each))]

    def names(self, partition: str) -> list[str]:
        first = int(partition[1:]) * self.each
        return [
            BaseFileName(f"f{number:07d}-0000-0000-0000-000000000000-0", "0-1-2", at(0)).text
            for number in range(first, first + self.each)
        ]


class ScaledStorage(CountingStorage):
    """`inner`, in whose folders lie `made_up` files, too. Each page of a listing is counted as a call."""

    def __init__(self, inner: Storage, made_up: Files | None) -> None:
        super().__init__(inner)
        self._made_up = made_up
        self._known = frozenset(made_up.partitions if made_up else ())
        self._pages = [0]

    @property
    def requests(self) -> int:
        return self.count + self._pages[0]

    def list_dir(self, path: str) -> Listing:
        found = super().list_dir(path)
        if self._made_up is not None and not path:
            found = Listing(found.files, tuple(sorted({*found.dirs, *self._known})))
        elif path in self._known:
            found = Listing(tuple(sorted([*found.files, *self._files(path)], key=lambda info: info.path)), found.dirs)
        self._pages[0] += max(0, -(-(len(found.files) + len(found.dirs)) // PAGE) - 1)
        return found

    def _files(self, partition: str) -> Iterator[FileInfo]:
        assert self._made_up is not None
        yield FileInfo(f"{partition}/{keys.PARTITION_METAFILE_PREFIX}", 96, 0)
        for name in self._made_up.names(partition):
            yield FileInfo(f"{partition}/{name}", SIZE, 0)


class World:
    """A table of `count` files, with a metadata table or without, simulated or on the disk at `real`."""

    def __init__(self, count: int, each: int, *, metadata: bool, real: Path | None = None) -> None:
        self.files = Files(count, each)
        hand = HandTable(V9)
        hand.commit(at(1), {})
        self.storage: Storage = hand.storage
        if real is not None:
            shutil.rmtree(real, ignore_errors=True)
            self.storage = LocalStorage(str(real))
            for info in hand.storage.list(""):
                self.storage.put(info.path, hand.storage.read(info.path))
            self._lay_out(real)
        self.made_up = self.files if real is None else None
        self.options = {**OPTIONS, "hoodie.metadata.enable": str(metadata).lower()}
        if metadata:
            self._note_files()

    def table(self, storage: Storage, **options: str) -> Table:
        given = {name.replace("__", "."): value for name, value in options.items()}
        return Table(load_handle(storage, Awake()), {**self.options, **given}, LocalEngine(2))

    def _lay_out(self, real: Path) -> None:
        for partition in self.files.partitions:
            (real / partition).mkdir()
            (real / partition / keys.PARTITION_METAFILE_PREFIX).write_bytes(b"commitTime=0\npartitionDepth=1\n")
            for name in self.files.names(partition):
                with open(real / partition / name, "wb") as file:
                    file.truncate(SIZE)

    def _note_files(self) -> None:
        """The partition `files` of the metadata table: a record for each partition, and one with their names."""
        kind = from_avro(metadata_record_schema()).field("filesystemMetadata").type
        names = [name for partition in self.files.partitions for name in self.files.names(partition)]
        lists = [self.files.partitions, names]
        sizes = np.concatenate([np.zeros(len(lists[0]), np.int64), np.full(len(names), SIZE, np.int64)])
        info = pa.StructArray.from_arrays(
            [pa.array(sizes), pa.array(np.zeros(len(sizes), np.bool_))], fields=list(kind.item_type)
        )
        parts = len(lists[0])
        offsets = np.concatenate([[0], parts + self.files.each * np.arange(parts + 1)]).astype(np.int32)
        entries = pa.MapArray.from_arrays(pa.array(offsets), pa.array([*lists[0], *names]), info).cast(kind)
        records = pa.table(
            {
                "key": ["__all_partitions__", *self.files.partitions],
                "type": pa.array([1] + [2] * parts, pa.int32()),
                "filesystemMetadata": entries,
            }
        )
        made = HandMetadata(self.storage)
        made.base("files", "files-0000-0", FIRST, records, HFileOptions(level=1))
        made.commit(FIRST, at(1))


def rows(turn: int) -> pa.Table:
    numbers = [f"p{number:07d}" for number in range(TOUCHED)]
    ids = [f"{turn}-{name}" for name in numbers]
    return pa.table({"id": ids, "part": numbers, "qty": pa.array([turn] * TOUCHED, pa.int64())})


def plan_all(world: World, storage: Storage) -> object:
    return world.table(storage).read_plan()


def plan_one(world: World, storage: Storage) -> object:
    return world.table(storage).read_plan(filter=f"part = '{world.files.partitions[-1]}'")


def plan_changes(world: World, storage: Storage) -> Callable[[], object]:
    """An incremental query of one commit."""
    table = world.table(storage)
    table.insert(rows(1))
    begin = table.timeline().completed_writes()[0].completed
    return lambda: world.table(storage).read_plan(query="incremental", begin=begin)


def insert(world: World, storage: Storage) -> object:
    return world.table(storage).insert(rows(1))


def warm_insert(world: World, storage: Storage) -> Callable[[], object]:
    """With a timeline service in the process, which knows the partitions already."""
    table = world.table(storage, hoodie__embed__timeline__server="true")
    table.insert(rows(1))
    return lambda: table.insert(rows(2))


def clean_all(world: World, storage: Storage) -> object:
    policy = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    return world.table(storage).services.preview("clean", **policy)


def clean_new(world: World, storage: Storage) -> object:
    return world.table(storage).services.preview("clean", **{"hoodie.clean.commits.retained": "1"})


def make_metadata(world: World, storage: Storage) -> object:
    return world.table(storage, hoodie__metadata__enable="true").insert(rows(1))


def doctor(world: World, storage: Storage) -> object:
    return world.table(storage).doctor()


def load_view(_: World, storage: Storage) -> object:
    return load_into(open_view(load_handle(storage, Awake())), None)


def sync_view(world: World, storage: Storage) -> Callable[[], KeptView]:
    """A view of all partitions follows one commit."""
    kept = load_into(open_view(load_handle(storage, Awake())), None)
    world.table(storage).insert(rows(1))
    return lambda: synced(kept, load_handle(storage, Awake()))


Measured = Callable[[World, Storage], Any]
OPERATIONS: dict[str, tuple[Measured, bool, bool]] = {
    # what is measured, with a metadata table, after a preparation that is not
    "plan a read of all, folders": (plan_all, False, False),
    "plan a read of all, metadata table": (plan_all, True, False),
    "plan a read of one partition, folders": (plan_one, False, False),
    "plan a read of one partition, metadata table": (plan_one, True, False),
    "plan an incremental query of a commit, folders": (plan_changes, False, True),
    "insert into 10 partitions, folders": (insert, False, False),
    "insert into 10 partitions, metadata table": (insert, True, False),
    "insert into 10 partitions, folders, warm service": (warm_insert, False, True),
    "first metadata table": (make_metadata, False, False),
    "clean, file versions, folders": (clean_all, False, False),
    "clean, file versions, metadata table": (clean_all, True, False),
    "clean, commits, metadata table": (clean_new, True, False),
    "service loads all, folders": (load_view, False, False),
    "service loads all, metadata table": (load_view, True, False),
    "service follows a commit": (sync_view, False, True),
    "doctor, metadata table": (doctor, True, False),
}


def measure(name: str, count: int, each: int, real: Path | None) -> dict[str, object]:
    run, has_metadata, is_prepared = OPERATIONS[name]
    world = World(count, each, metadata=has_metadata, real=real)
    counted = ScaledStorage(world.storage, world.made_up)
    act: Callable[[], object] = run(world, counted) if is_prepared else lambda: run(world, counted)
    before, requests = _peak(), counted.requests
    start = time.perf_counter()
    act()
    seconds = time.perf_counter() - start
    stop_embedded()
    return {
        "operation": name,
        "files": count,
        "partitions": len(world.files.partitions),
        "real": real is not None,
        "calls": counted.requests - requests,
        "seconds": round(seconds, 3),
        "MiB": round((_peak() - before) / 1024),
    }


def measure_rows(count: int, folder: Path) -> Iterator[dict[str, object]]:
    options = {
        "hoodie.table.name": "rows",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    schema = pa.schema([("id", pa.int64()), ("part", pa.string()), ("ts", pa.int64()), ("price", pa.float64())])

    def batch(ids: np.ndarray, ts: int) -> pa.RecordBatch:
        parts = pa.array([f"p{number}" for number in range(10)]).take(pa.array(ids * 10 // count))
        columns = [ids, parts, np.full(len(ids), ts), np.modf(ids * 0.618)[0]]
        return pa.record_batch([pa.array(column) for column in columns], schema=schema)

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, count, 1 << 18):
            yield batch(np.arange(start, min(start + (1 << 18), count)), 1)

    table = Table.create(str(folder), schema=schema, options=options, engine=LocalEngine(2))
    spread = np.arange(0, count, count // 1000)[:1000]
    for name, act in {
        "bulk insert": lambda: table.bulk_insert(pa.RecordBatchReader.from_batches(schema, batches())),
        "upsert of 1 000 rows in all partitions": lambda: table.upsert(pa.Table.from_batches([batch(spread, 2)])),
        "upsert of 1 000 rows in one": lambda: table.upsert(pa.Table.from_batches([batch(np.arange(1000), 3)])),
    }.items():
        start = time.perf_counter()
        act()
        seconds = time.perf_counter() - start
        files = len(table.files())
        yield {
            "operation": name,
            "rows": count,
            "files": files,
            "seconds": round(seconds, 2),
            "peak MiB": _peak() >> 10,
        }


KEY_FILES = 70
KEY_SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("price", pa.float64())])


def measure_keys(count: int, folder: Path, *, in_order: bool) -> Iterator[dict[str, object]]:
    options = {
        "hoodie.table.name": "keys",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }
    chance = np.random.default_rng(1)
    each = count // KEY_FILES

    def batch(ids: np.ndarray, ts: int) -> pa.RecordBatch:
        keys = pc.utf8_lpad(pa.array(ids).cast(pa.string()), 12, "0")
        parts = pa.array([f"p{number}" for number in range(10)]).take(pa.array(ids * 10 // count))
        return pa.record_batch([keys, parts, np.full(len(ids), ts), np.modf(ids * 0.618)[0]], schema=KEY_SCHEMA)

    def batches(turn: int) -> Iterator[pa.RecordBatch]:
        for partition in range(10):
            start = (partition * KEY_FILES // 10 + turn) * each
            ids = np.arange(start, start + each)
            yield batch(ids if in_order else chance.permutation(ids), 1)

    table = Table.create(str(folder), schema=KEY_SCHEMA, options=options, engine=LocalEngine(2))
    for turn in range(KEY_FILES // 10):
        table.bulk_insert(pa.RecordBatchReader.from_batches(KEY_SCHEMA, batches(turn)))
    for turn in range(3):
        rows = pa.Table.from_batches([batch(np.unique(chance.integers(0, KEY_FILES * each, 100)), turn + 2)])
        start, cpu = time.perf_counter(), time.process_time()
        table.upsert(rows)
        yield {
            "operation": f"upsert of 100 rows, keys in {'' if in_order else 'no '}order",
            "rows": count,
            "files": KEY_FILES,
            "seconds": round(time.perf_counter() - start, 2),
            "cpu": round(time.process_time() - cpu, 2),
        }


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _told(name: str, count: int, each: int, real: Path | None) -> None:
    print(json.dumps(measure(name, count, each, real)), flush=True)


def _rows_told(count: int, folder: Path) -> None:
    for found in measure_rows(count, folder):
        print(json.dumps(found), flush=True)


def _keys_told(count: int, folder: Path) -> None:
    for in_order in (True, False):
        for found in measure_keys(count, folder / str(in_order), in_order=in_order):
            print(json.dumps(found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, nargs="+", default=SIZES)
    parser.add_argument("--in-partition", type=int, default=100)
    parser.add_argument("--real", type=Path)
    parser.add_argument("--only", nargs="+", default=list(OPERATIONS), help="operations that begin like this")
    parser.add_argument("--rows", type=int, nargs="+", default=[])
    parser.add_argument("--key-rows", type=int, nargs="+", default=[])
    asked = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    real_rows = [(_rows_told, count) for count in asked.rows] + [(_keys_told, count) for count in asked.key_rows]
    for told, count in real_rows:
        folder = (asked.real or Path(tempfile.gettempdir())) / uuid.uuid4().hex
        child = spawn.Process(target=told, args=(count, folder))
        child.start()
        child.join()
        shutil.rmtree(folder, ignore_errors=True)
    if real_rows:
        return
    for name in [name for name in OPERATIONS if any(name.startswith(one) for one in asked.only)]:
        for count in asked.files:
            real = None if asked.real is None else asked.real / uuid.uuid4().hex
            child = spawn.Process(target=_told, args=(name, count, asked.in_partition, real))
            child.start()
            child.join()
            if real is not None:
                shutil.rmtree(real, ignore_errors=True)
            if child.exitcode:
                print(f"{name}, {count} files: ended with {child.exitcode}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
