"""Writes one parquet base file the way Hudi's readers expect it, row group by row group.

1. Memory holds one row group of Arrow data plus the columns being encoded, however many rows the file gets.
2. The footer carries Hudi's keys: bloom filter and key range of the record keys, the Avro schema with meta columns,
   the model name. No Arrow schema is stored: the file says nothing Hudi's own files do not say.
3. Keys enter the filter in row order. With `inherit`, rows marked `inherited` are taken to be covered by the footer
   they come from: their keys are not looked at, and a rewrite without new keys copies that footer's filter text as it
   is.
4. Lists have three levels (`list.element`), decimals are fixed arrays of the fewest bytes, timestamps micros.
5. On an exception the file is aborted: storage keeps nothing of it.

It does not know where files go, what rows mean, or commits. Format page: docs/format/base-file.md.
"""

from __future__ import annotations

import math
from collections import deque
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, Protocol, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.errors import Invalid, Unsupported
from hoodie.records.avro import to_avro
from hoodie.records.bloom import SIMPLE, BloomFilter, BloomOptions
from hoodie.records.bounds import Ends, cut_bounds, mended_footer, nan_places
from hoodie.records.failures import writing
from hoodie.records.footer import (
    AVRO_SCHEMA_FOOTER_KEY,
    BLOOM_FOOTER_KEY,
    BLOOM_TYPE_FOOTER_KEY,
    MAX_KEY_FOOTER_KEY,
    MIN_KEY_FOOTER_KEY,
    MODEL_FOOTER_KEY,
    BaseFooter,
    footer_of_written,
)
from hoodie.records.key_range import KeyRange, key_range
from hoodie.records.page_index import MAGIC, ended, footer_before_end
from hoodie.records.parquet_leaves import leaves_of
from hoodie.records.schema import (
    CONSTANT_FIELDS,
    KEY_FIELD,
    SEQNO_FIELD,
    is_nested,
)
from hoodie.records.unfinished_file import BaseFileStats, UnfinishedFile

MIB: Final = 1024 * 1024

_SAMPLE_FROM_ROWS: Final = 20_000
_SAMPLE_ROWS: Final = 16_000
_BUFFER_BYTES: Final = 512 * 1024
_KEYS_BEHIND: Final = 8
"""Pieces of keys that may wait for the thread that looks at them."""

Codec = Literal["zstd", "gzip", "snappy", "lz4", "none"]

_DEFAULT_LEVELS: Final[dict[Codec, int | None]] = {"zstd": 1, "gzip": 1}
_HUDI_CODECS: Final[dict[str, Codec]] = {
    "": "none",
    "uncompressed": "none",
    "none": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "zstd": "zstd",
    "lz4": "lz4",
    "lz4_raw": "lz4",
}


@dataclass(frozen=True, slots=True)
class BaseFileOptions:
    """How base files are written.

    Behaviour. `bloom`: kind of filter in the footer, None for no filter and no key range
    (`hoodie.parquet.bloom.filter.enabled`, or tables without meta columns).

    Performance. `codec`, `level`: compression; level None is the level measured best for the codec.
    `row_group_bytes`: Arrow bytes of a row group, which bounds the writer's memory; larger groups compress little
    better. `page_bytes`: size of a data page. `dictionary`: use dictionary encoding on columns whose values repeat
    (`hoodie.parquet.dictionary.enabled`).
    """

    bloom: BloomOptions | None = field(default_factory=BloomOptions)
    codec: Codec = "zstd"
    level: int | None = None
    row_group_bytes: int = 32 * MIB
    page_bytes: int = MIB
    dictionary: bool = True

    def __post_init__(self) -> None:
        if self.codec not in get_args(Codec):
            raise Invalid(f"Codec {self.codec!r} is not known", remedy=f"Use one of {', '.join(get_args(Codec))}")
        if self.row_group_bytes < 1 or self.page_bytes < 1:
            raise Invalid(
                "Row groups and pages need a positive size",
                remedy="Set hoodie.parquet.block.size and page.size above 0",
            )


class OutputStorage(Protocol):
    """What the writer needs of a storage."""

    def open_output(self, path: str) -> Any: ...


def parse_codec(name: str) -> Codec:
    """The codec for a value of `hoodie.parquet.compression.codec`.

    Raises:
        Unsupported: LZO and BROTLI, which Spark cannot read without native libraries.
        Invalid: no such codec.
    """
    key = name.strip().lower()
    if key in ("lzo", "brotli"):
        raise Unsupported(f"Spark has no codec {name}", remedy="Use zstd, gzip, snappy, lz4 or uncompressed")
    if key not in _HUDI_CODECS:
        raise Invalid(f"Codec {name!r} is not known", remedy=f"Use one of {', '.join(filter(None, _HUDI_CODECS))}")
    return _HUDI_CODECS[key]


class BaseFileWriter(UnfinishedFile):
    """One base file being written. Use as a context manager: leaving it normally closes, an exception aborts."""

    def __init__(
        self,
        storage: OutputStorage,
        path: str,
        schema: pa.Schema,
        options: BaseFileOptions | None = None,
        *,
        table_name: str = "table",
        avro_schema: str | None = None,
        inherit: BaseFooter | None = None,
        keys_aside: Executor | None = None,
    ) -> None:
        """Open `path` for rows of `schema` (storable, with meta columns unless the table has none).

        `avro_schema` is the footer's schema text when the table has one; otherwise it is made from `schema` and
        `table_name`. `inherit` is the footer of the file being rewritten. `keys_aside`: the one thread that makes the
        filter of the keys meanwhile; without it that is done here.
        """
        options = options or BaseFileOptions()
        self._path = path
        self._schema = pa.schema([_stored_field(column) for column in schema])
        self._avro_schema = avro_text(schema, table_name) if avro_schema is None else avro_schema
        self._keys = KeyCollector(options.bloom, inherit) if options.bloom and KEY_FIELD in schema.names else None
        self._keys_aside = keys_aside
        self._keys_at_work: deque[Future[None]] = deque()
        self._options = options
        self._parquet: Any = None
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self._rows = 0
        self._written: list[Any] = []
        self._unbounded: frozenset[int] = frozenset()
        self._cut: list[tuple[int, dict[int, Ends]]] = []
        self._sink = _Sink(storage.open_output(path))
        # Arrow writes page by page; through Python each of them costs more than its bytes.
        self._buffered = pa.BufferedOutputStream(pa.PythonFile(self._sink, mode="w"), _BUFFER_BYTES)

    def write(self, rows: pa.Table | pa.RecordBatch, *, inherited: bool = False) -> None:
        """Append rows in the writer's schema; string columns may be dictionary-encoded, which is cheap for meta
        columns that hold one value (`_hoodie_file_name` ...). `inherited`: their keys are all in the file whose
        footer is inherited.

        Raises:
            Invalid: another schema, or nulls in a required column.
            Unavailable: the storage failed.
        """
        table = self._encoded(pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows)
        if table.num_rows == 0:
            return
        self._add_keys(table, inherited=inherited)
        self._rows += table.num_rows
        self._waiting.append(table)
        self._waiting_bytes += table.nbytes
        if self._waiting_bytes >= self._options.row_group_bytes:
            self._write_full_groups()

    @property
    def rows(self) -> int:
        """Rows taken so far."""
        return self._rows

    def size_estimate(self) -> int:
        """Bytes the file would have if it ended here, roughly: what is written plus a guess for what waits."""
        written = int(self._buffered.tell())
        done = self._rows - sum(table.num_rows for table in self._waiting)
        return written + (self._waiting_bytes // 3 if done == 0 else written * (self._rows - done) // done)

    def footer(self) -> BaseFooter:
        """The footer of the file, which is closed: what reading it would give."""
        stats = self.close()
        return footer_of_written(self._path, stats.size_bytes, self._written[0], self._footer())

    def _add_keys(self, table: pa.Table, *, inherited: bool) -> None:
        if self._keys is None:
            return
        if self._keys_aside is None:
            self._keys.add(table.column(KEY_FIELD), inherited=inherited)
            return
        work = self._keys_aside.submit(self._keys.add, table.column(KEY_FIELD), inherited=inherited)
        self._keys_at_work.append(work)
        if len(self._keys_at_work) > _KEYS_BEHIND:
            self._keys_at_work.popleft().result()

    def _drop(self) -> None:
        self._waiting.clear()
        while self._keys_at_work:
            self._keys_at_work.popleft().cancel()
        if self._parquet is not None:
            # The parquet writer must not try to finish the file when it is collected.
            self._parquet.is_open = False
        self._sink.abort()
        self._buffered.close()

    def _encoded(self, table: pa.Table) -> pa.Table:
        """`table` in the schema the file is written from: some meta columns as dictionaries, all others plain."""
        if table.schema.names != self._schema.names:
            raise self._unfit(table.schema)
        columns = []
        for column, stored in zip(table.columns, self._schema, strict=True):
            given = column
            if pa.types.is_dictionary(column.type) and not column.type.equals(stored.type):
                given = column.cast(column.type.value_type)
            if pa.types.is_dictionary(stored.type) and pa.types.is_string(given.type):
                given = given.dictionary_encode()
            if not given.type.equals(stored.type):
                raise self._unfit(table.schema)
            columns.append(given)
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _unfit(self, given: pa.Schema) -> Invalid:
        return Invalid(
            _schema_difference(self._schema, given),
            remedy="Align the rows to the table's schema first",
            path=self._path,
        )

    def _write_full_groups(self) -> None:
        """Write what waits in groups of about the wanted size; the rows of an unfinished group go on waiting."""
        table = pa.concat_tables(self._waiting)
        rows = max(1, table.num_rows * self._options.row_group_bytes // self._waiting_bytes)
        full = table.num_rows - table.num_rows % rows
        for at in range(0, full, rows):
            self._write_group(table.slice(at, rows))
        rest = table.slice(full)
        self._waiting = [rest] if rest.num_rows else []
        self._waiting_bytes = rest.nbytes

    def _write_group(self, table: pa.Table) -> None:
        """Write one row group. The encodings of the whole file are chosen at the first one."""
        with writing(self._path):
            if self._parquet is None:
                leaves = _repeating_leaves(table) if self._options.dictionary else []
                options = _parquet_options(self._options, leaves)
                self._parquet = pq.ParquetWriter(
                    self._buffered, self._schema, metadata_collector=self._written, **options
                )
            if table.num_rows:
                # One dictionary per column and group: the encoder gives a dictionary up when it changes.
                self._parquet.write_table(table.unify_dictionaries(), row_group_size=table.num_rows)
                self._unbounded |= nan_places(table)
                self._cut.append((table.num_rows, cut_bounds(table)))

    def _finish(self) -> BaseFileStats:
        if self._waiting or self._parquet is None:
            rest = pa.concat_tables(self._waiting) if self._waiting else self._schema.empty_table()
            self._write_group(rest)
        self._waiting.clear()
        while self._keys_at_work:
            self._keys_at_work.popleft().result()
        found = None if self._keys is None else self._keys.range
        with writing(self._path):
            self._parquet.add_key_value_metadata(self._footer())
            if self._unbounded or any(bounds for _, bounds in self._cut):
                self._end_with_other_bounds()
            else:
                self._parquet.close()
            self._buffered.close()
            size_bytes = self._sink.size_bytes
            self._sink.finish()
        low, high = (None, None) if found is None else (found.low, found.high)
        return BaseFileStats(self._path, size_bytes, self._rows, low, high)

    def _end_with_other_bounds(self) -> None:
        """Writes what stands behind the row groups, with other bounds in the footer than Arrow's."""
        self._buffered.flush()
        self._sink.hold()
        self._parquet.close()
        self._buffered.flush()
        held = self._sink.held()
        footer = footer_before_end(held)
        end = ended(mended_footer(footer, self._unbounded, self._cut))
        self._written = [pq.read_metadata(pa.BufferReader(MAGIC + end))]
        self._sink.write(held.removesuffix(ended(footer)) + end)

    def _footer(self) -> dict[str, str]:
        values = {AVRO_SCHEMA_FOOTER_KEY: self._avro_schema, MODEL_FOOTER_KEY: "avro"}
        return values if self._keys is None else values | self._keys.footer()


class _Sink:
    """The storage's file as Arrow's buffer sees it: once aborted it takes what the buffer still holds, and drops it.
    `size_bytes`: what the file has got.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._aborted = False
        self._held: bytearray | None = None
        self.size_bytes = 0

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self._held is not None:
            self._held += data
        elif not self._aborted:
            self._file.write(data)
            self.size_bytes += len(data)
        return len(data)

    def hold(self) -> None:
        """From now on nothing is written, until `held`."""
        self._held = bytearray()

    def held(self) -> bytes:
        """What was not written."""
        found, self._held = bytes(self._held or b""), None
        return found

    def flush(self) -> None:
        """Does nothing: closing is what counts."""

    def close(self) -> None:
        """Does nothing: the buffer also closes after an error; see `finish`."""

    def finish(self) -> None:
        self._file.close()

    def abort(self) -> None:
        self._aborted = True
        self._file.abort()


class KeyCollector:
    """Filter and range of the record keys seen, on top of those inherited. `inherits`: whether there are any. A footer
    that does not fit the options, or whose file has outgrown its filter, is not inherited: all keys have to be seen.
    """

    def __init__(self, options: BloomOptions, inherit: BaseFooter | None) -> None:
        self._options = options
        self._inherited = inherit if inherit is not None and _is_inheritable(inherit, options) else None
        self._filter: BloomFilter | None = None
        # Keys of a file that has few so far: how large its filter is depends on how many it will have.
        self._few: list[pa.ChunkedArray] = []
        self._few_keys = 0
        self.range: KeyRange | None = None
        if self._inherited is not None and self._inherited.min_key is not None and self._inherited.max_key is not None:
            self.range = KeyRange(self._inherited.min_key, self._inherited.max_key)

    @property
    def inherits(self) -> bool:
        return self._inherited is not None

    def add(self, keys: pa.ChunkedArray, *, inherited: bool) -> None:
        if inherited and self._inherited is not None:
            return
        if self._filter is None and self._inherited is not None:
            self._filter = self._inherited.bloom(self._options.max_entries)
        if self._filter is None:
            self._few.append(keys)
            self._few_keys += len(keys)
            if not self._options.fits(self._few_keys):
                self._filter = self._of_few()
        else:
            self._filter.add(keys)
        added = key_range(keys)
        if added is not None:
            self.range = added.union(self.range)

    def footer(self) -> dict[str, str]:
        values = {}
        if self._filter is None and self._inherited is not None and self._inherited.bloom_text is not None:
            values[BLOOM_FOOTER_KEY] = self._inherited.bloom_text
        else:
            self._filter = self._filter or self._of_few()
            values[BLOOM_FOOTER_KEY] = self._filter.to_text()
        if self._options.filter_type != SIMPLE:
            values[BLOOM_TYPE_FOOTER_KEY] = self._options.filter_type
        if self.range is not None:
            values |= {MIN_KEY_FOOTER_KEY: self.range.low, MAX_KEY_FOOTER_KEY: self.range.high}
        return values

    def _of_few(self) -> BloomFilter:
        """The filter of the keys that were kept."""
        made = self._options.new_filter(self._few_keys)
        for keys in self._few:
            made.add(keys)
        self._few.clear()
        return made


def _is_inheritable(footer: BaseFooter, options: BloomOptions) -> bool:
    """Whether the footer has all a rewrite needs: filter of the wanted kind and, if there are rows, a key range."""
    if footer.bloom_text is None or (footer.bloom_type or SIMPLE) != options.filter_type:
        return False
    if footer.rows > 0 and (footer.min_key is None or footer.max_key is None):
        return False
    return options.is_made_like(footer.bloom_text, footer.rows)


def _stored_field(column: pa.Field) -> pa.Field:
    """Meta columns with few values are written from dictionaries: no hashing of a long text per row."""
    kind = pa.dictionary(pa.int32(), pa.string()) if column.name in CONSTANT_FIELDS else column.type
    return pa.field(column.name, kind, nullable=column.nullable)


avro_text: Final = lru_cache(16)(to_avro)
"""The schema of a footer for a table of this name. The files of a write have one."""


def _parquet_options(options: BaseFileOptions, dictionary_leaves: list[str]) -> dict[str, Any]:
    return {
        "version": "2.6",
        "compression": options.codec,
        "compression_level": _DEFAULT_LEVELS.get(options.codec) if options.level is None else options.level,
        "use_dictionary": dictionary_leaves if dictionary_leaves else False,
        "data_page_size": options.page_bytes,
        "write_statistics": True,
        "write_page_index": True,
        "write_page_checksum": True,
        "store_schema": False,
    }


def _repeating_leaves(rows: pa.Table) -> list[str]:
    """Leaf columns worth a dictionary, judged by the first row group.

    Where nearly every value is new, a dictionary costs time to build, is given up half-way by the encoder, and leaves
    a larger file. Record keys and sequence numbers never repeat; other flat columns are sampled in groups large
    enough to care.
    """
    plain = {KEY_FIELD, SEQNO_FIELD}
    if rows.num_rows >= _SAMPLE_FROM_ROWS:
        sample = _sample(rows)
        # A column of D distinct values shows about D * (1 - exp(-n / D)) of them in n rows. The limit is D = rows / 3.
        ratio = sample.num_rows * 3 / rows.num_rows
        limit = -math.expm1(-ratio) / ratio * sample.num_rows
        flat = [name for name in rows.column_names if name not in CONSTANT_FIELDS]
        plain |= {name for name in flat if _distinct(sample.column(name)) > limit}
    return [path for column in rows.schema for path, _ in leaves_of(column) if path not in plain]


def _sample(rows: pa.Table) -> pa.Table:
    """Rows at even distances: neighbours of a sorted column repeat, which compression sees as well as a dictionary."""
    return rows.take(pa.array(np.linspace(0, rows.num_rows - 1, _SAMPLE_ROWS).astype(np.int64)))


def _distinct(values: pa.ChunkedArray) -> int:
    if is_nested(values.type) or pa.types.is_boolean(values.type):
        return 0
    return int(pc.count_distinct(values, mode="only_valid").as_py())


def _schema_difference(stored: pa.Schema, given: pa.Schema) -> str:
    for wanted in stored:
        kind = wanted.type.value_type if pa.types.is_dictionary(wanted.type) else wanted.type
        at = given.get_field_index(wanted.name)
        if at < 0:
            return f"Rows lack the column `{wanted.name}` ({kind})"
        if given.names == stored.names and not given.field(at).type.equals(kind):
            return f"Column `{wanted.name}` is {given.field(at).type}, the file has {kind}"
    extra = [name for name in given.names if name not in stored.names]
    if extra:
        return f"Rows have columns the file does not: {', '.join(extra)}"
    return "Columns are in another order than in the file"
