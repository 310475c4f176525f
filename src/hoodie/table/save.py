"""A write by options, as `df.write` does it, and what may be written."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie.engine import ArrowSource, Engine, LocalEngine, Source
from hoodie.env import Env, SystemEnv
from hoodie.errors import Invalid
from hoodie.given_options import resolve_given
from hoodie.layout import open_table_storage
from hoodie.query import Rows
from hoodie.table.opened import checked_engine, option_texts

if TYPE_CHECKING:
    from hoodie.services.ingest import CommitNote
    from hoodie.services.save import SaveMode
    from hoodie.transaction import Committed

_LOCAL = LocalEngine()


def write(
    source: Source,
    uri: str,
    options: Mapping[str, object],
    mode: SaveMode = "error",
    *,
    engine: Engine | None = None,
    env: Env | None = None,
    note: CommitNote | None = None,
) -> Committed | None:
    """What `df.write.format("hudi").options(...).mode(mode).save(uri)` does; None when mode `ignore` found a table.

    Mode overwrite of an existing table replaces all its rows in one commit: its history stays readable and a failed
    write loses nothing. When the options ask for another kind of table (key, partitioning, version ...) the new one is
    written first, then takes the place of the old one, whose history is gone. `note` is for streams.
    """
    from hoodie.services.ingest import Request  # noqa: PLC0415 - loads what writes
    from hoodie.services.save import chosen_operation, save_rows  # noqa: PLC0415 - loads what writes

    given = option_texts(options)
    config = resolve_given(given)
    storage = open_table_storage(uri, given)
    world = env or SystemEnv()
    operation, is_there = chosen_operation(config, storage, mode, source.schema, world)
    request = Request(operation, source, config, _LOCAL if engine is None else checked_engine(engine), note=note)
    return save_rows(storage, request, mode, world, is_there=is_there)


def as_source(data: Any) -> Source:
    """`data` as the input of a write: Arrow table, batch or reader, pandas, polars or Spark DataFrame, or a `Source`.

    Raises:
        Invalid: anything else.
    """
    if isinstance(data, Rows):
        data = data.reader
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return ArrowSource(data)
    if isinstance(data, pa.RecordBatch):
        return ArrowSource(pa.Table.from_batches([data]))
    if all(hasattr(data, verb) for verb in ("consume", "in_sort_mode", "mapped", "small")):
        return data  # type: ignore[no-any-return]
    module = type(data).__module__
    if module.startswith("pyspark."):
        return importlib.import_module("hoodie.spark").FrameSource(data)  # type: ignore[no-any-return]
    if module.startswith("pandas.") and hasattr(data, "columns"):
        return ArrowSource(_of_pandas(data))
    if hasattr(data, "__arrow_c_stream__"):
        return ArrowSource(pa.table(data))
    raise Invalid(
        f"Cannot write a {module}.{type(data).__qualname__}",
        remedy="Pass an Arrow table or reader, or a pandas, polars or Spark DataFrame",
    )


def _of_pandas(frame: Any) -> pa.Table:
    """The frame's columns, those of its index that have names first. Raises: Invalid: a column has values of several
    types, or two have one name.
    """
    named = [name for name in frame.index.names if isinstance(name, str) and name not in frame.columns]
    try:
        if named:
            frame = frame.reset_index(level=named)
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError) as error:
        why = "; ".join(str(part) for part in error.args)
        raise Invalid(
            f"The pandas frame cannot be taken as it is: {why}",
            remedy="Give each column one type (astype) and a name of its own",
        ) from error
