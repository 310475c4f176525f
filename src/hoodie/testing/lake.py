"""A small table written by the real writer: for tests of what operations do to rows, files and timeline.

1. Rows are dicts; the columns `id`, `part`, `ts`, `v` and their types are given, others come along by `schema`.
2. The table lives in memory unless a `uri` says otherwise, and has small bloom filters: tests stay quick.
3. `files()` is everything on storage, so "nothing was written" is an equality.
4. `HOODIE_TEST_STRATEGY` names a storage strategy: lakes in memory keep their files under a storage path then, but for
   those whose options turn the metadata table off. Paths are logical ones there as well. `make test-prefixes` has it,
   `make test-buckets` with storage paths in buckets (`PLACES`).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from hoodie.env import SystemEnv
from hoodie.errors import HudiError
from hoodie.layout import laid_out, open_table_storage
from hoodie.metadata import MetadataTable, open_metadata_table
from hoodie.services.save import SaveMode
from hoodie.spec import CommitMetadata
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.storage import Storage, open_storage
from hoodie.table import Table, as_source, write
from hoodie.timeline import is_table, load_commit_metadata, load_table_config
from hoodie.transaction import Committed

ROWS = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path")
STRATEGY: Final = os.environ.get("HOODIE_TEST_STRATEGY", "")
PLACES: Final[dict[str, str]] = {"hoodie.storage.path": "memory://{lake}/root"}
"""Options that say where files of a lake `{lake}` lie by a strategy, and open these places."""
_NAMES = itertools.count()

Row = Mapping[str, Any]


def row(id: str, v: str | None = "a", ts: int | None = 1, part: str | None = "p", **more: Any) -> dict[str, Any]:
    """One row of `ROWS`, maybe with more columns."""
    return {"id": id, "part": part, "ts": ts, "v": v, **more}


def table_of(rows: Iterable[Row], schema: pa.Schema = ROWS) -> pa.Table:
    return pa.Table.from_pylist([dict(one) for one in rows], schema=schema)


class Awake(SystemEnv):
    """The real world, but for sleep: tests do not wait for what will not come."""

    def sleep(self, seconds: float) -> None:
        del seconds


@dataclass
class Lake:
    """A table named `lake`: record key `id`, partitioned by `part`, ordered by `ts`, unless `options` say otherwise.

    An option of value None is left out.
    """

    version: int = 9
    options: Mapping[str, Any] = field(default_factory=dict)
    uri: str = ""
    schema: pa.Schema = ROWS
    _laid: Storage | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given = {**_OPTIONS, "hoodie.write.table.version": self.version, **self.options}
        if not self.uri:
            name = f"lake-{next(_NAMES)}"
            is_laid = STRATEGY and str(given.get("hoodie.metadata.enable", "true")).lower() == "true"
            self.uri = f"memory://{name}/table" if is_laid else f"memory://{name}"
            if is_laid:
                places = {key: value.replace("{lake}", name) for key, value in PLACES.items()}
                given = {**places, "hoodie.storage.strategy": STRATEGY, **given}
        self.options = {key: value for key, value in given.items() if value is not None}

    @property
    def storage(self) -> Storage:
        """Where the table lies; with a storage path, as soon as its properties say so, that of all its files."""
        if "hoodie.storage.path" not in self.options:
            return open_storage(self.uri)
        storage = open_table_storage(self.uri, self.options)
        with suppress(HudiError):  # tests damage properties
            self._laid = laid_out(storage, load_table_config(storage, Awake())) if is_table(storage) else None
        return self._laid or storage

    @property
    def table(self) -> Table:
        return Table.open(self.uri, options=self.options, env=Awake())

    def handle(self) -> TableHandle:
        """The table as it is now."""
        return load_handle(self.storage, SystemEnv())

    def metadata(self) -> MetadataTable:
        """Its metadata table; it has one."""
        handle = self.handle()
        found = open_metadata_table(handle.storage, handle.config, timeline_of(handle))
        assert found is not None
        return found

    def save(self, rows: Any, mode: SaveMode = "append", **options: Any) -> Committed | None:
        """A write in a save mode, as a DataFrame's; makes the table if need be."""
        return write(as_source(self._data(rows)), self.uri, {**self.options, **_dotted(options)}, mode, env=Awake())

    def write(self, operation: str, rows: Any, options: Mapping[str, Any] | None = None) -> Committed:
        """An operation in save mode append."""
        asked = {"hoodie.datasource.write.operation": operation, **(options or {})}
        done = write(as_source(self._data(rows)), self.uri, {**self.options, **asked}, "append", env=Awake())
        assert done is not None
        return done

    def upsert(self, *rows: Row, **options: Any) -> Committed:
        return self.write("upsert", rows, _dotted(options))

    def rows(self, columns: Sequence[str] = ("id", "v"), **query: Any) -> list[tuple[Any, ...]]:
        """Rows of a query as sorted tuples."""
        found = self.table.scan(columns=list(columns), **query).read_all()
        return sorted(zip(*(found[name].to_pylist() for name in columns), strict=True), key=repr)

    def values(self, **query: Any) -> dict[str, Any]:
        """`v` by `id`; a key that occurs twice fails."""
        pairs = self.rows(**query)
        assert len({key for key, _ in pairs}) == len(pairs), f"a key occurs twice: {pairs}"
        return dict(pairs)

    def files(self) -> dict[str, bytes]:
        """Everything on storage."""
        return {info.path: self.storage.read(info.path) for info in self.storage.list("")}

    def base_files(self) -> list[str]:
        """Paths of all base files, also of old versions."""
        return [path for path in self.files() if path.endswith(".parquet")]

    def live(self) -> list[tuple[str, str]]:
        """(partition, file id) of every live file group."""
        return [(one.partition, one.file_id) for one in self.table.files()]

    def commits(self) -> list[CommitMetadata]:
        """Metadata of the completed writes, oldest first."""
        timeline = self.table.timeline()
        return [load_commit_metadata(self.storage, timeline.profile, one) for one in timeline.completed_writes()]

    def ensure_sound(self) -> None:
        """Checks that `validate` finds nothing and no temporary file is left."""
        assert self.table.validate() == []
        assert [path for path in self.files() if path.startswith(".hoodie/.temp/")] == []

    def _data(self, rows: Any) -> Any:
        if isinstance(rows, list | tuple):
            return table_of(rows, self.schema)
        return rows


def logged_lake(version: int, schema: pa.Schema = ROWS, **options: Any) -> Lake:
    """A merge-on-read lake that orders rows by `ts` in every version and fills no small files, so that new rows make
    new files.
    """
    payload = {} if version > 6 else {"hoodie.datasource.write.payload.class": _EVENT_TIME}
    return Lake(version, {**_LOGGED, **payload, **options}, schema=schema)


def _dotted(options: Mapping[str, Any]) -> dict[str, Any]:
    """`hoodie__index__type` as `hoodie.index.type`."""
    return {name.replace("__", "."): value for name, value in options.items()}


_OPTIONS: dict[str, Any] = {
    "hoodie.table.name": "lake",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.index.bloom.num_entries": "50",
    "hoodie.write.lock.wait_time_ms": "0",
    "hoodie.write.lock.client.num_retries": "0",
}
_LOGGED = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.merge.small.file.group.candidates.limit": 0,
}
_EVENT_TIME = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
