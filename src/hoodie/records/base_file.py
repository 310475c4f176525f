"""A base file as it lies there: its footer, whether it is whole, and open for reading, parquet or ORC.

1. A row group is skipped only when its statistics prove that the filter keeps none of its rows.
2. Streams hold one batch, and one row group's compressed columns: of local files with large row groups a few buffers
   of them, once the heads of their pages are seen to be right (`page_heads.py`).
3. Bytes that are not a base file raise `Corrupt` with the path; it is never mistaken for an empty file, nor are the
   rows that can be read of a damaged one for all of its rows.
4. A Lance file, which is told by its name, raises `Unsupported`: it is whole, and nothing here knows its bytes.

It knows columns as the file has them. Who wants others, or chosen rows, asks `base_file_reader`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.errors import Corrupt, Unsupported
from hoodie.records.align import align
from hoodie.records.condition import AllOf, Condition
from hoodie.records.failures import reading
from hoodie.records.file_indexes import indexes_of
from hoodie.records.footer import BaseFooter, file_schema, footer_facts
from hoodie.records.group_stats import ColumnStats, group_stats
from hoodie.records.page_heads import pages_fit, stored_chunks
from hoodie.records.page_index import MAX_COLUMNS, FileFooter, ranges_of, read_file_footer
from hoodie.records.page_rows import PagedFile, PageFilter, open_pages
from hoodie.records.schema import is_list

DEFAULT_BATCH_ROWS: Final = 32 * 1024
_LANCE: Final = ".lance"
_BATCH_BYTES: Final = 16 * 1024 * 1024
_LOCAL_BUFFER_BYTES: Final = 256 * 1024
_SMALL_GROUP_BYTES: Final = 16 * 1024 * 1024
"""Local row groups up to this are read whole: looking at the heads of pages costs about 3 % of reading them."""


class InputStorage(Protocol):
    """What the reader needs of a storage."""

    @property
    def scheme(self) -> str: ...

    def open_input(self, path: str) -> Any: ...


def read_footer(storage: InputStorage, path: str) -> BaseFooter:
    """The footer of a base file: one or two small reads at its end.

    Raises:
        Corrupt: not a parquet (or, by name, ORC) file, or cut short; `facts["path"]` names it.
        Unsupported: by its name a Lance file.
        Missing: no such file.
    """
    _ensure_known(path)
    if _is_orc(path):
        with _orc(storage, path) as (source, file):
            return _orc_footer(path, int(source.size()), file)
    with reading(path), storage.open_input(path) as source:
        _ensure_not_empty(source, path)
        file = _parquet_file(source, path, None, is_local=_is_local(storage))
        return _parquet_footer(path, int(source.size()), file)


def verify_base_file(storage: InputStorage, path: str) -> None:
    """Checks that every value of the file can be decoded and every page has its checksum, where it has one.

    Raises:
        Corrupt: the file is damaged. Missing: no such file. Unsupported: by its name a Lance file.
    """
    if _is_orc(path):
        with opened_base_file(storage, path, None) as rows:
            for batch in rows.stream(rows.names, list(range(rows.group_count)), DEFAULT_BATCH_ROWS):
                align(batch, rows.schema)
        return
    _ensure_known(path)
    with reading(path), storage.open_input(path) as source:
        _ensure_not_empty(source, path)
        file = _parquet_file(source, path, None, is_local=_is_local(storage), verified=True)
        rows = sum(batch.num_rows for batch in file.iter_batches(batch_size=DEFAULT_BATCH_ROWS))
        _ensure_all_rows(rows, file.metadata.num_rows, path)


class ParquetRows:
    """An open parquet file: columns, row groups, rows. Arrow opens it when it is first needed."""

    def __init__(self, source: Any, path: str, footer: BaseFooter | None, *, is_local: bool) -> None:
        self._source = source
        self._path = path
        self._footer = footer
        self._is_local = is_local

    @cached_property
    def _file(self) -> Any:
        native = None if self._footer is None else self._footer.native
        return _parquet_file(self._source, self._path, native, is_local=self._is_local)

    @cached_property
    def _buffered(self) -> Any:
        """The file once more, for row groups of which only a few buffers are to be in memory."""
        return _parquet_file(
            self._source, self._path, self._file.metadata, is_local=self._is_local, buffer_bytes=_LOCAL_BUFFER_BYTES
        )

    def _file_for(self, group: int, names: list[str]) -> Any:
        is_wide = len(self.names) > MAX_COLUMNS
        if not self._is_local or is_wide or self._source.size() <= _SMALL_GROUP_BYTES or self._stored_footer is None:
            return self._file
        chunks = stored_chunks(self._stored_footer, group, names)
        if chunks is None or sum(chunk.size_bytes for chunk in chunks) <= _SMALL_GROUP_BYTES:
            return self._file
        return self._buffered if all(pages_fit(self._source, chunk) for chunk in chunks) else self._file

    @cached_property
    def _stored_footer(self) -> FileFooter | None:
        """The footer as it stands in the file; Arrow's own metadata is not asked for column chunks (`group_stats`)."""
        known = indexes_of(self._source).known_footer
        return known or read_file_footer(ranges_of(self._source), self._source.size(), max_columns=None)

    @cached_property
    def schema(self) -> pa.Schema:
        return file_schema(self._file.schema_arrow, _int96_leaves(self._file))

    @property
    def names(self) -> list[str]:
        return list(self._file.schema_arrow.names)

    @property
    def group_count(self) -> int:
        return int(self._file.num_row_groups)

    def read(self, names: list[str]) -> pa.Table:
        rows = self._file.read(columns=names, use_threads=False)
        _ensure_all_rows(rows.num_rows, self._file.metadata.num_rows, self._path)
        return rows

    def stream(self, names: list[str], groups: list[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        # One row group per call: with pre_buffer Arrow keeps the compressed bytes of all groups of the call.
        for group in groups:
            file = self._file_for(group, names)
            meta = file.metadata.row_group(group)
            rows = max(1, min(batch_rows, meta.num_rows * _BATCH_BYTES // max(1, meta.total_byte_size)))
            seen = 0
            for batch in file.iter_batches(rows, row_groups=[group], columns=names, use_threads=False):
                seen += batch.num_rows
                yield batch
            _ensure_all_rows(seen, meta.num_rows, self._path)

    def paged(self, filter: pc.Expression | None, columns: Collection[str], condition: Condition) -> PagedFile | None:
        """The file as one that is read page by page for this question; None where that has no use."""
        is_open = isinstance(condition, AllOf) and not condition.parts
        if is_open or not columns or filter is None:
            return None
        page_filter = PageFilter(filter, frozenset(columns), condition)
        return open_pages(self._source, page_filter, is_local=self._is_local)

    def may_match(self, group: int, condition: pc.Expression, columns: Collection[str], schema: pa.Schema) -> bool:
        """False when the group's statistics rule the condition out. Only columns of the target's own type are asked;
        `columns`: those an expression looks at, where they are known.
        """
        if self._stored_footer is None:
            return True
        stored = self._file.schema_arrow
        alike = pa.schema(
            [field for field in schema if (not columns or field.name in columns) and _has_alike(stored, field)]
        )
        return _expression_may_match(condition, alike, group_stats(self._stored_footer, group, alike))

    def within_bounds(self, group: int, column: pa.Field, values: pa.Array) -> pa.Array:
        """Which of the values, which are of the column's type, may be in a row group by its statistics (boolean)."""
        bounds = self._bounds(group, column)
        if bounds is None:
            return pa.repeat(pa.scalar(True), len(values))
        return pc.and_(pc.greater_equal(values, bounds[0]), pc.less_equal(values, bounds[1]))

    def read_between(self, column: pa.Field, low: pa.Scalar, high: pa.Scalar) -> tuple[pa.ChunkedArray, list[int]]:
        """The values of a column in all row groups that may have one from `low` to `high` by their statistics; and
        which these are.
        """
        groups = []
        for group in range(self.group_count):
            bounds = self._bounds(group, column)
            if bounds is None or (pc.less_equal(bounds[0], high).as_py() and pc.less_equal(low, bounds[1]).as_py()):
                groups.append(group)
        if len(groups) == self.group_count:
            return self.read([column.name]).column(0), groups
        rows = self._file.read_row_groups(groups, columns=[column.name], use_threads=False)
        _ensure_all_rows(
            rows.num_rows, sum(self._file.metadata.row_group(group).num_rows for group in groups), self._path
        )
        return rows.column(0), groups

    def _bounds(self, group: int, column: pa.Field) -> tuple[pa.Scalar, pa.Scalar] | None:
        """Between which values all of a column of a row group are by its statistics."""
        known = None
        if self._stored_footer is not None and _has_alike(self._file.schema_arrow, column):
            known = group_stats(self._stored_footer, group, pa.schema([column])).get(column.name)
        if known is None or known.low is None:
            return None
        return pa.scalar(known.low, column.type), pa.scalar(known.high, column.type)


class OrcRows:
    """An open ORC file likewise. Its stripes take the place of row groups."""

    def __init__(self, file: Any, path: str) -> None:
        self._file = file
        self._path = path
        self._seen: dict[int, int] = {}
        self.schema: pa.Schema = file_schema(file.schema)
        self.names: list[str] = self.schema.names
        self.group_count: int = file.nstripes

    def read(self, names: list[str]) -> pa.Table:
        rows = self._file.read(columns=names)
        _ensure_all_rows(rows.num_rows, self._file.nrows, self._path)
        return rows

    def stream(self, names: list[str], groups: list[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        for group in groups:
            stripe = self._file.read_stripe(group, columns=names)
            self._seen[group] = stripe.num_rows  # the footer tells only how many all stripes have
            if len(self._seen) == self.group_count:
                _ensure_all_rows(sum(self._seen.values()), self._file.nrows, self._path)
            for at in range(0, stripe.num_rows, batch_rows):
                yield stripe.slice(at, batch_rows)

    def paged(self, filter: pc.Expression | None, columns: Collection[str], condition: Condition) -> None:
        del filter, columns, condition

    def may_match(self, group: int, condition: pc.Expression, columns: Collection[str], schema: pa.Schema) -> bool:
        del group, condition, columns, schema
        return True


@contextmanager
def opened_base_file(storage: InputStorage, path: str, footer: BaseFooter | None) -> Iterator[ParquetRows | OrcRows]:
    """The open file inside the block. `footer`: if it was read before.

    Raises:
        Corrupt: what is read of it is damaged. Unsupported: by its name a Lance file.
    """
    _ensure_known(path)
    if _is_orc(path):
        with _orc(storage, path) as (_, file):
            yield OrcRows(file, path)
        return
    with reading(path), storage.open_input(path) as source:
        _ensure_not_empty(source, path)
        yield ParquetRows(source, path, footer, is_local=_is_local(storage))


def _parquet_file(
    source: Any, path: str, metadata: Any, *, is_local: bool, buffer_bytes: int = 0, verified: bool = False
) -> Any:
    """The file as Arrow opens it, and only if its row groups have all rows. `metadata`: its footer, if it was read;
    `verified`: checksums of pages are compared.
    """
    file = pq.ParquetFile(
        source,
        metadata=metadata,
        coerce_int96_timestamp_unit="us",
        pre_buffer=not is_local,
        buffer_size=buffer_bytes,
        arrow_extensions_enabled=False,
        page_checksum_verification=verified,
    )
    meta = file.metadata
    _ensure_all_rows(sum(meta.row_group(at).num_rows for at in range(meta.num_row_groups)), meta.num_rows, path)
    return file


@contextmanager
def _orc(storage: InputStorage, path: str) -> Iterator[tuple[Any, Any]]:
    from hoodie.records.orc_file import open_orc  # noqa: PLC0415 - hardly any table has ORC files

    with reading(path), storage.open_input(path) as source:
        _ensure_not_empty(source, path)
        with open_orc(source) as file:
            if file.nstripes == 0:
                _ensure_all_rows(0, file.nrows, path)
            yield source, file


def _parquet_footer(path: str, size_bytes: int, file: Any) -> BaseFooter:
    meta = file.metadata
    groups = [meta.row_group(at) for at in range(meta.num_row_groups)]
    return BaseFooter(
        path=path,
        size_bytes=size_bytes,
        rows=meta.num_rows,
        schema=file_schema(file.schema_arrow, _int96_leaves(file)),
        rows_per_group=tuple(group.num_rows for group in groups),
        bytes_per_group=tuple(group.total_byte_size for group in groups),
        native=meta,
        **footer_facts(meta.metadata),
    )


def _orc_footer(path: str, size_bytes: int, file: Any) -> BaseFooter:
    return BaseFooter(
        path=path,
        size_bytes=size_bytes,
        rows=file.nrows,
        schema=file_schema(file.schema),
        rows_per_group=(file.nrows,),
        bytes_per_group=(file.content_length,),
        **footer_facts(file.metadata),
    )


def _ensure_all_rows(rows: int, expected: int, path: str) -> None:
    """Checks that there are as many rows as there should be. Arrow does not count them."""
    if rows != expected:
        raise Corrupt(
            f"Base file {path} is damaged: it has {rows} rows where its footer says {expected}",
            remedy="Restore it from a copy, or roll back the commit that wrote it",
            path=path,
        )


def _is_local(storage: InputStorage) -> bool:
    return storage.scheme in ("file", "memory")


def _is_orc(path: str) -> bool:
    return path.endswith(".orc")


def _ensure_known(path: str) -> None:
    """Checks that files of this name are read here. Their bytes would look like a damaged parquet file."""
    if path.endswith(_LANCE):
        raise Unsupported(
            f"Base file {path} is a Lance file, which hoodie does not read",
            remedy="Read the table with Apache Hudi 1.2 or later, or let that rewrite it with Parquet base files",
            path=path,
        )


def _ensure_not_empty(source: Any, path: str) -> None:
    if source.size() == 0:
        raise Corrupt(
            f"Base file {path} cannot be read: it is empty",
            remedy="Its writer died: roll back the commit that wrote it",
            path=path,
            offset=0,
        )


def _int96_leaves(file: Any) -> frozenset[int]:
    columns = (file.schema.column(at) for at in range(len(file.schema)))
    return frozenset(at for at, column in enumerate(columns) if column.physical_type == "INT96")


def _has_alike(schema: pa.Schema, field: pa.Field) -> bool:
    """Whether the file's own column has the target's type, so that its statistics speak of the target's values."""
    at = schema.get_field_index(field.name)
    return at >= 0 and not is_list(field.type) and schema.field(at).type.equals(field.type)


def _expression_may_match(expression: pc.Expression, columns: pa.Schema, stats: Mapping[str, ColumnStats]) -> bool:
    """Whether the expression may be true of rows with these statistics. `columns`: all of which anything is known."""
    from hoodie.records.stated_bounds import (  # noqa: PLC0415 - imports pandas, a second of CPU
        parts_that_may_match,
        stated_bounds,
    )

    if not binds(expression, columns):
        return True
    stated = []
    for field in columns:
        known = stats.get(field.name)
        if known is None or pa.types.is_floating(field.type):
            continue
        if known.nulls == known.rows:
            stated.append(pc.field(field.name).is_null())
        elif known.low is not None:
            with suppress(pa.ArrowException):  # no type that is compared
                low, high = pa.scalar(known.low, field.type), pa.scalar(known.high, field.type)
                stated.append(stated_bounds(field.name, low, high, has_nulls=known.nulls != 0))
    return bool(parts_that_may_match(expression, columns, [stated]))


def binds(expression: pc.Expression, schema: pa.Schema) -> bool:
    """Whether all columns of the expression are in `schema`: Arrow tells only by trying."""
    try:
        schema.empty_table().filter(expression)
    except (pa.ArrowException, KeyError, TypeError):
        return False
    return True
