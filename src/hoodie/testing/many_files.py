"""A table with storage paths and very many files, of which there are names and sizes only: for listings and plans.

1. One bulk insert wrote a base file for each file group, one delta commit a log file for each tenth.
2. `.hoodie` and the partition metafiles lie in memory. The root lists its files by pages (`paged_store`).
3. `expected` has the size of each file by logical path. All comes from one seed.
"""

from __future__ import annotations

import itertools
import random
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.layout import FederatedStorage
from hoodie.layout.access import Access
from hoodie.layout.places import places_of
from hoodie.records import to_avro
from hoodie.spec import (
    DELTA_COMMIT,
    BaseFileName,
    CommitMetadata,
    Instant,
    LogFileName,
    PartitionMetafile,
    State,
    WriteStat,
    encode_partition_metafile,
    keys,
)
from hoodie.state.handle import TableHandle, load_handle
from hoodie.storage import FileInfo, MemoryStorage
from hoodie.table import Table
from hoodie.testing.lake import Awake
from hoodie.testing.paged_store import PagedStore
from hoodie.timeline import store_table_config
from hoodie.write import create_table

ROOT: Final = "memory://many-files/root"
INSTANTS: Final = ("20240105000000000", "20240106000000000")
_TOKEN: Final = "0-1-2"
_SCHEMA: Final = pa.schema([("id", pa.int64()), ("p", pa.string())])
_names = itertools.count()


@dataclass
class ManyFiles:
    """The table with so many base files in so many partitions. Without a `strategy` they lie in its own folder, where
    nobody can list them.
    """

    files: int
    partitions: int
    strategy: str = "bits:8"
    page_s: float = 0.0
    expected: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = next(_names)
        self.home = MemoryStorage(f"many-files/table-{name}", Awake())
        self.root = PagedStore(MemoryStorage(f"many-files/root-{name}"), self.page_s)
        options = {
            "hoodie.table.name": "rides",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "p",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.metadata.index.column.stats.enable": "false",
        }
        if self.strategy:
            options |= {"hoodie.storage.path": ROOT, "hoodie.storage.strategy": self.strategy}
        create_table(self._laid(), resolve(options), _SCHEMA, Awake())
        self._write()

    def handle(self) -> TableHandle:
        """The table as it is now."""
        return load_handle(self._laid(), Awake())

    def table(self) -> Table:
        """The same behind the façade."""
        return Table(self.handle(), {}, LocalEngine(2))

    def forget(self) -> None:
        """Gives the memory back."""
        self.home.forget()
        self.root.inner.forget()

    def _laid(self) -> FederatedStorage:
        return FederatedStorage(self.home, Access((ROOT,), stores={ROOT: self.root}))

    def _write(self) -> None:
        chance = random.Random(5)
        partitions = [f"day={number:04d}" for number in range(self.partitions)]
        for partition in partitions:
            metafile = encode_partition_metafile(PartitionMetafile(INSTANTS[0], 1), Awake().now())
            self.home.put(f"{partition}/{keys.PARTITION_METAFILE_PREFIX}", metafile)
        bases: dict[str, list[WriteStat]] = defaultdict(list)
        logs: dict[str, list[WriteStat]] = defaultdict(list)
        for number in range(self.files):
            partition = partitions[number % self.partitions]
            file_id = f"{uuid.UUID(int=chance.getrandbits(128), version=4)}-0"
            size = chance.randrange(1000, 1_000_000)
            bases[partition].append(_stat(partition, file_id, BaseFileName(file_id, _TOKEN, INSTANTS[0]).text, size))
            if number % 10 == 0:
                name = LogFileName(file_id, INSTANTS[1], 1, _TOKEN).text
                logs[partition].append(_stat(partition, file_id, name, size // 7))
        profile = self.handle().profile
        for requested, stats, operation in zip(INSTANTS, (bases, logs), ("BULK_INSERT", "UPSERT"), strict=True):
            written = {name: tuple(many) for name, many in stats.items()}
            done = CommitMetadata(written, False, {"schema": to_avro(_SCHEMA, "rides")}, operation)
            data = profile.commit_codec.encode(done, DELTA_COMMIT)
            completed = Instant(requested, DELTA_COMMIT, State.COMPLETED, f"{int(requested) + 5000}")
            pending = [Instant(requested, DELTA_COMMIT, state) for state in (State.REQUESTED, State.INFLIGHT)]
            for instant, content in zip((*pending, completed), (b"", b"", data), strict=True):
                self.home.put(f"{profile.timeline_dir}/{profile.instant_names.file_name(instant)}", content)
            self.expected |= {str(one.path): one.file_size_bytes for many in stats.values() for one in many}
        layout = getattr(self.handle().storage, "layout", None)
        if layout is not None:
            paths = sorted(self.expected)
            for path, key in zip(paths, places_of(layout, paths).keys, strict=True):
                self.root.add(FileInfo(key, self.expected[path], 0))


def twins(files: int, partitions: int) -> tuple[ManyFiles, ManyFiles]:
    """The same table with prefixes, and with all files in its own folder, both with the same metadata table."""
    laid, plain = ManyFiles(files, partitions), ManyFiles(files, partitions, strategy="")
    laid.table().indexes.rebuild("files")
    for file in laid.home.list(".hoodie/metadata"):
        plain.home.put(file.path, laid.home.read(file.path))
    handle = plain.handle()
    changed = handle.config.with_changes({keys.METADATA_PARTITIONS: "files"})
    store_table_config(handle.storage, handle.config, changed, handle.env)
    return laid, plain


def _stat(partition: str, file_id: str, name: str, size: int) -> WriteStat:
    return WriteStat(
        file_id=file_id,
        path=f"{partition}/{name}",
        partition_path=partition,
        file_size_bytes=size,
        total_write_bytes=size,
        prev_commit=INSTANTS[0],
    )
