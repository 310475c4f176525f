"""Tables that Apache Hudi wrote, with the rows it read back: finding, unpacking and comparing them.

1. A golden folder has `<release>/<scenario>/table.tar.gz` and `expected/` beside it. The project carries a selection;
   `HOODIE_GOLDEN_DIR` names the full set, of the same layout.
2. Modification times survive unpacking: tables of version 6 have their completion times there.
   A table that was bootstrapped over another one gets that one's new place written into its properties.
3. Rows are compared as a multiset over all columns, meta columns included; types are compared exactly, save for the
   names of list and map children.
"""

from __future__ import annotations

import fnmatch
import gzip
import json
import tarfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

# Hudi 0.15 reads some of its own tables otherwise than Hudi 1.2; where somebody noted 1.2's rows, those are the truth.
READ_BY_NEWER = "_read_by_1.2.0"


@dataclass(frozen=True)
class GoldenTable:
    """One table in a golden folder."""

    folder: Path

    @property
    def release(self) -> str:
        """The release of Hudi that wrote it."""
        return self.folder.parent.name

    @property
    def scenario(self) -> str:
        return self.folder.name

    @property
    def name(self) -> str:
        return f"{self.release}/{self.scenario}"

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Properties, timeline and file slices as Hudi's own classes reported them."""
        return dict(json.loads(gzip.decompress((self.folder / "expected" / "facts.json.gz").read_bytes())))

    @property
    def is_merge_on_read(self) -> bool:
        return bool(self.facts["table_type"] == "MERGE_ON_READ")

    def reads(self) -> tuple[GoldenRead, ...]:
        """What Hudi read of it: the snapshot (and the read-optimized rows), then numbered queries."""
        expected = self.folder / "expected"
        plain = [name for name in ("snapshot", "read_optimized") if (expected / f"{name}.parquet").exists()]
        numbered = [path.stem for path in expected.glob("*_[0-9].json")]
        return tuple(GoldenRead(self, name) for name in (*plain, *sorted(numbered)))

    def unpack(self, into: Path) -> Path:
        """The table's base path in a fresh copy below `into`."""
        base = _extracted(self.folder / "table.tar.gz", into / self.name)
        source = self.folder / "bootstrap_source.tar.gz"
        if source.exists():
            _point_to_source(base, _extracted(source, into / "bootstrap_sources" / self.name))
        return base


@dataclass(frozen=True)
class GoldenRead:
    """One query of the real Hudi on a golden table."""

    table: GoldenTable
    name: str

    @property
    def id(self) -> str:
        return f"{self.table.name}/{self.name}"

    @property
    def kind(self) -> str:
        """`snapshot`, `read_optimized`, `time_travel`, `incremental` or `cdc`."""
        return self.name.rstrip("0123456789").rstrip("_")

    @cached_property
    def said(self) -> Mapping[str, Any]:
        """The query as it was asked: `as_of`, `begin`, `end`, and `error` where it failed."""
        path = self.table.folder / "expected" / f"{self.name}.json"
        return dict(json.loads(path.read_text())) if path.exists() else {"query": self.name}

    @property
    def options(self) -> dict[str, str]:
        """Arguments of `Table.scan` for the same query."""
        asked = {key: self.said[key] for key in ("as_of", "begin", "end") if self.said.get(key)}
        return {"query": "snapshot" if self.kind == "time_travel" else self.kind, **asked}

    @property
    def error(self) -> str | None:
        """The error with which the real Hudi refused or failed, if it did."""
        return self.said.get("error")

    def rows(self) -> pa.Table:
        """The rows Hudi gave."""
        expected = self.table.folder / "expected"
        newer = expected / f"{self.name}{READ_BY_NEWER}.parquet"
        return pq.read_table(newer if newer.exists() else expected / f"{self.name}.parquet")


@dataclass(frozen=True)
class Rule:
    """Something to know about some reads. `tables` and `reads` are patterns; `reason` says why, in words."""

    tables: tuple[str, ...]
    reads: tuple[str, ...]
    reason: str
    columns: tuple[str, ...] = ()

    def covers(self, read: GoldenRead) -> bool:
        return _fits(read.table.name, self.tables) and _fits(read.name, self.reads)


def load_rules(path: Path, kind: str) -> tuple[Rule, ...]:
    """The rules of a kind (a table array) in a TOML file."""
    return tuple(
        Rule(
            tuple(one["tables"]),
            tuple(one["reads"]),
            one["reason"],
            tuple(one.get("columns", ())),
        )
        for one in tomllib.loads(path.read_text()).get(kind, ())
    )


def golden_tables(folder: Path) -> tuple[GoldenTable, ...]:
    """All tables of a golden folder, ordered by name."""
    return tuple(GoldenTable(path.parent) for path in sorted(folder.glob("*/*/table.tar.gz")))


def difference(got: pa.Table, expected: pa.Table, *, ordered_columns: bool = True) -> str | None:
    """What is different about `got`, in words; None when nothing is. `ordered_columns`: their order counts too."""
    if sorted(got.column_names) != sorted(expected.column_names):
        return f"columns {got.column_names}, expected {expected.column_names}"
    if ordered_columns and got.column_names != expected.column_names:
        return f"order of columns {got.column_names}, expected {expected.column_names}"
    for field in expected.schema:
        found = got.schema.field(field.name).type
        if not found.equals(field.type):
            return f"column {field.name} has type {found}, expected {field.type}"
    mine, theirs = Counter(_texts(got)), Counter(_texts(expected))
    if mine == theirs:
        return None
    extra, missing = list((mine - theirs).elements()), list((theirs - mine).elements())
    return f"{len(extra)} rows too many, {len(missing)} too few; for instance {extra[:1]} instead of {missing[:1]}"


def _extracted(archive: Path, into: Path) -> Path:
    """The one folder an archive has, unpacked."""
    with tarfile.open(archive) as tar:
        tar.extractall(into, filter="data")
        return into / tar.getnames()[0].partition("/")[0]


def _point_to_source(base: Path, source: Path) -> None:
    properties = base / ".hoodie" / "hoodie.properties"
    lines = properties.read_text().splitlines(keepends=True)
    key = "hoodie.bootstrap.base.path="
    properties.write_text("".join(f"{key}{source}\n" if line.startswith(key) else line for line in lines))


def _texts(rows: pa.Table) -> Iterator[tuple[str, ...]]:
    names = sorted(rows.column_names)
    if not names:
        return iter([()] * rows.num_rows)
    return zip(*([repr(value) for value in rows.column(name).to_pylist()] for name in names), strict=True)


def _fits(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)
