"""Our side of the compat tests: the writes and reads a user of the package makes, on the local engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from hoodie import Table
from hoodie.table import as_source, write

WRITE = "hoodie.datasource.write."


def write_rows(path: Path, operation: str, rows: pa.Table, options: Mapping[str, str], mode: str = "append") -> None:
    """One write as `df.write.format("hudi").options(...).mode(mode).save(path)` does it; no metadata table."""
    settings = {"hoodie.metadata.enable": "false", **options, WRITE + "operation": operation}
    write(as_source(rows), str(path), settings, mode)  # type: ignore[arg-type]


def continue_table(path: Path, operation: str, rows: pa.Table, options: Mapping[str, str] | None = None) -> None:
    """A write into an existing table that takes everything from its properties."""
    Table.open(str(path)).write(operation, rows, {"hoodie.metadata.enable": "false", **(options or {})})


def read_rows(path: Path, **query: Any) -> pa.Table:
    """All rows of a query."""
    return Table.open(str(path)).scan(**query).read_all()


def table_options(version: int, keys: str | None, partition: str = "", ordering: str = "ts") -> dict[str, str]:
    """Options that make a table; empty texts are left out."""
    options = {
        "hoodie.table.name": "compat_table",
        "hoodie.write.table.version": str(version),
        WRITE + "recordkey.field": keys or "",
        WRITE + "partitionpath.field": partition,
        WRITE + "precombine.field": ordering,
    }
    return {key: value for key, value in options.items() if value}
