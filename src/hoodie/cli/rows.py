"""Rows into and out of files: what `hoodie write` reads and `hoodie query` writes, by the ending of the file name.

1. Rows stay Arrow batches. A result file appears only when it is complete.
2. What is written to a file is read from it: in CSV, nothing between two commas is NULL and `""` the empty text, and
   `nan` in a column of floating numbers is no NULL. Columns that CSV cannot hold are refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from hoodie.errors import Invalid
from hoodie.records import META_SCHEMA

F = TypeVar("F")

_BATCH_ROWS = 131_072


def open_rows(paths: Sequence[str], types: pa.Schema | None = None) -> pa.RecordBatchReader:
    """The rows of all files, one after the other, in the schema of the first. A folder stands for its files.

    Columns of CSV files have the types that `types` gives them; those of others are taken from the text.

    Raises:
        Invalid: no such file, an unknown ending, damaged content, or files whose columns differ.
    """
    files = [file for path in paths for file in _files_of(path)]
    parts = [_open_file(file, types) for file in files]
    schema = parts[0][0]
    for file, (other, _) in zip(files, parts, strict=True):
        if not other.equals(schema):
            raise Invalid(
                f"{file} has other columns than {files[0]}", remedy="Give files of one schema", path=str(file)
            )
    return pa.RecordBatchReader.from_batches(schema, (batch for _, batches in parts for batch in batches))


def store_rows(reader: pa.RecordBatchReader, path: str) -> int:
    """How many rows of `reader` were written to the file `path`.

    Raises:
        Invalid: an unknown ending, a URL, or no such folder.
    """
    _ensure_local(path, "--out")
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise Invalid(f"There is no folder for {path}", remedy="Make it first, or check --out", path=path)
    open_writer = _format_of(_WRITERS, target)
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    rows = 0
    try:
        with open_writer(str(partial), reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
                rows += batch.num_rows
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return rows


def _files_of(path: str) -> list[Path]:
    _ensure_local(path, "--input")
    given = Path(path)
    if given.is_dir():
        files = sorted(file for file in given.iterdir() if file.is_file() and file.name[0] not in "._")
        if not files:
            raise Invalid(f"The folder {path} holds no files", remedy="Give a folder with data files", path=path)
        return files
    if not given.exists():
        raise Invalid(f"There is no file {path}", remedy="Check --input", path=path)
    return [given]


def _ensure_local(path: str, argument: str) -> None:
    scheme, mark, _ = path.partition("://")  # the rest may hold a password
    if mark:
        other = "from there first" if argument == "--input" else "there afterwards"
        raise Invalid(
            f"{argument} is a file of this machine, not a {scheme}:// URL",
            remedy=f"Name a local file, and copy it {other}",
        )


_Part = tuple[pa.Schema, Iterator[pa.RecordBatch]]


def _open_file(file: Path, types: pa.Schema | None) -> _Part:
    reader = _format_of(_READERS, file)
    remedy = "Write one JSON object a line, no list around them" if reader is _open_json else "Check the file"
    try:
        return _open_csv(str(file), types) if reader is _open_csv else reader(str(file))
    except (pa.ArrowException, OSError) as error:
        raise Invalid(f"{file} cannot be read: {error}", remedy=remedy, path=str(file)) from error


def _open_parquet(path: str) -> _Part:
    file = pq.ParquetFile(path)
    return file.schema_arrow, file.iter_batches(batch_size=_BATCH_ROWS)


def _open_csv(path: str, types: pa.Schema | None = None) -> _Part:
    _ensure_text(path)
    given = {field.name: field.type for field in (*META_SCHEMA, *(types or ()))}
    table = _read_csv(path, column_types=given)
    if len(set(table.column_names)) < table.num_columns:
        return _from_table(table)
    for is_kind, spelling in _NULLS_OF:
        kinds = {field.name: field.type for field in table.schema if is_kind(field.type)}
        if kinds:
            again = _read_csv(path, column_types=kinds, include_columns=list(kinds), **spelling)
            for name in kinds:
                table = table.set_column(table.schema.get_field_index(name), name, again.column(name))
    return _from_table(table)


def _read_csv(path: str, **options: Any) -> pa.Table:
    return pyarrow.csv.read_csv(
        path,
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(**options),
    )


_NANS: Final = ("NaN", "nan", "-NaN", "-nan")
_NULLS_OF: Final[tuple[tuple[Callable[[pa.DataType], bool], dict[str, Any]], ...]] = (
    (pa.types.is_string, {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}),
    (
        pa.types.is_floating,
        {"null_values": [text for text in pyarrow.csv.ConvertOptions().null_values if text not in _NANS]},
    ),
)
"""How columns of a kind say NULL, where they have to be told apart from a text or a number: NA is a country's code."""


def _ensure_text(path: str) -> None:
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                raise Invalid(
                    f"{path} is no UTF-8 text: line {number} holds {line[error.start : error.end]!r}",
                    remedy="Convert the file first, for instance with iconv -f LATIN1 -t UTF-8",
                    path=path,
                    line=number,
                ) from error


def _open_json(path: str) -> _Part:
    return _from_table(pyarrow.json.read_json(path))


def _open_arrow(path: str) -> _Part:
    with pa.memory_map(path) as source:
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        table = pa.ipc.open_file(source).read_all() if is_file else pa.ipc.open_stream(source).read_all()
    return _from_table(table)


def _from_table(table: pa.Table) -> _Part:
    return table.schema, iter(table.to_batches(max_chunksize=_BATCH_ROWS))


@contextmanager
def _parquet_writer(path: str, schema: pa.Schema) -> Iterator[Any]:
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        yield writer


@contextmanager
def _csv_writer(path: str, schema: pa.Schema) -> Iterator[Any]:
    try:
        with pyarrow.csv.CSVWriter(path, schema) as writer:
            yield writer
    except pa.ArrowException as error:
        raise Invalid(
            f"These rows cannot be CSV: {error}",
            remedy="Write a .parquet or .arrow file, or choose columns with --columns",
        ) from error


@contextmanager
def _arrow_writer(path: str, schema: pa.Schema) -> Iterator[Any]:
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        yield writer


_READERS: Mapping[str, Callable[[str], _Part]] = {
    ".parquet": _open_parquet,
    ".csv": _open_csv,
    ".json": _open_json,
    ".jsonl": _open_json,
    ".ndjson": _open_json,
    ".arrow": _open_arrow,
    ".arrows": _open_arrow,
    ".feather": _open_arrow,
}

_WRITERS: Mapping[str, Callable[[str, pa.Schema], AbstractContextManager[Any]]] = {
    ".parquet": _parquet_writer,
    ".csv": _csv_writer,
    ".arrow": _arrow_writer,
    ".feather": _arrow_writer,
}


def _format_of(known: Mapping[str, F], path: Path) -> F:
    found = known.get(path.suffix.lower())
    if found is None:
        raise Invalid(
            f"No known file format ends in {path.suffix or path.name!r}",
            remedy="Use a file that ends in " + ", ".join(known),
            path=str(path),
        )
    return found
