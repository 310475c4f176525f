"""The law of calls: whatever is passed to a public method, the answer is a result or a `HudiError` of one short message
with a remedy; the rows stay what they were, and the table is sound.

Every public method of a table and its parts is called with each of its parameters hostile in turn. One that comes new
has to be named here.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from hoodie.errors import HudiError
from hoodie.slices import MergeOptions
from hoodie.table import Table
from hoodie.testing.lake import Lake, row, table_of

HOSTILE: Final[tuple[Any, ...]] = (
    None,
    "",
    "x",
    "\ud800",
    "nul\0",
    "../x",
    "\u202e\x1b[31m",
    "9" * 5000,
    "'; drop",
    -1,
    0,
    2**70,
    1.5,
    math.nan,
    math.inf,
    True,
    b"x",
    [],
    [None],
    ["x", 1],
    (),
    {},
    {1: 2},
    {"x": object()},
    {"x"},
    range(3),
    object(),
    len,
    Table,
    datetime.max,
    datetime.max.replace(tzinfo=UTC),
    date.min,
    timedelta(1),
    Decimal("1.5"),
    pa.table({}),
    pa.table({"id": [None]}),
    pa.schema([]),
    pa.array([1]),
    iter(()),
    Ellipsis,
)


def hostile_values(every: int = 1) -> Iterator[Any]:
    """Every so many of them; an iterator, which a call uses up, is a new one each time."""
    return (iter(()) if isinstance(value, Iterator) else value for value in HOSTILE[::every])


ROWS: Final = table_of([row("a", "b", 5)])


@dataclass(frozen=True)
class Method:
    """A method, and arguments that are all right."""

    owner: str
    name: str
    good: Mapping[str, Any]

    def bound(self, table: Table) -> Callable[..., Any]:
        return getattr(table if self.owner == "table" else getattr(table, self.owner), self.name)  # type: ignore[no-any-return]


INSTANT: Final = "20200101000000000"
DATA: Final = {"data": ROWS}
METHODS: Final = (
    *(Method("table", name, DATA) for name in ("upsert", "insert", "append", "bulk_insert", "delete")),
    *(Method("table", name, DATA) for name in ("update", "insert_overwrite", "insert_overwrite_table")),
    Method("table", "write", {"operation": "upsert", **DATA, "options": {}}),
    Method("table", "delete_partition", {"partitions": "none"}),
    Method("table", "scan", {"columns": ["id"], "filter": "id = 'a'", "query": "snapshot", "as_of": None}),
    Method("table", "scan", {"begin": "0", "end": None, "query": "incremental"}),
    Method(
        "table",
        "scan",
        {
            "timezone": "UTC",
            "conditions": (),
            "path_glob": None,
            "full_scan_fallback": True,
            "hollow_commits": "FAIL",
            "schema_at_end": False,
            "skip_operations": (),
            "begin": "0",
        },
    ),
    Method(
        "table",
        "scan",
        {
            "filter": "v = 'a'",
            "timezone": "UTC",
            "batch_rows": 10,
            "use_metadata": True,
            "skip_data": True,
            "prune_buckets": True,
            "merge": MergeOptions(),
        },
    ),
    Method("table", "read_plan", {"columns": ["id"], "filter": None, "as_of": None}),
    Method("table", "lookup", {"keys": ["a"], "columns": ["id"], "as_of": None}),
    Method("table", "files", {"as_of": None}),
    Method("table", "physical", {"path": "p/x"}),
    Method("table", "validate", {"deep": False}),
    Method("table", "doctor", {}),
    Method("table", "report", {}),
    Method("table", "timeline", {}),
    Method("table", "writers", {}),
    Method("services", "run", {"name": "clean", "arguments": None}),
    Method("services", "preview", {"name": "clean"}),
    *(Method("services", name, {}) for name in ("clean", "archive", "compact_logs", "resize", "ttl", "metadata")),
    *(
        Method("services", name, {})
        for name in ("repair_compaction", "schedule_compaction", "schedule_base_file_compaction")
    ),
    *(Method("services", name, {"instant": None}) for name in ("compact", "compact_base_files", "validate_compaction")),
    *(Method("services", name, {"instant": INSTANT}) for name in ("unschedule_compaction", "rollback")),
    Method("services", "cluster", {"instant": None, "op": "list"}),
    Method("services", "restore", {"to": INSTANT}),
    Method("services", "upgrade", {"to": 9}),
    Method("services", "orphans", {"older_than_hours": 1.0}),
    Method("services", "relayout", {"to": "", "move": False, "grace_hours": None, "partition": "", "claim": False}),
    Method(
        "indexes", "create", {"name": "column_stats", "function": None, "using": "column_stats", "partitioned": False}
    ),
    Method("indexes", "advise", {"keys": 10}),
    Method("indexes", "drop", {"name": "none"}),
    Method("indexes", "rebuild", {"accept_missing": False}),
    Method("savepoints", "create", {"instant": None, "user": "u", "comments": "c"}),
    Method("savepoints", "delete", {"instant": INSTANT}),
    Method("history", "archived", {}),
)
KINDS: Final[Mapping[str, tuple[int, Mapping[str, Any]]]] = {
    "version 9": (9, {}),
    "merge-on-read of version 6": (6, {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}),
}
SAMPLES: Final = {"version 9": 1, "merge-on-read of version 6": 4}
FURTHER: Final = ("unknown_keyword", "hoodie.clean.commits.retained", "options")
CHANGING: Final = {method.name for method in METHODS if "data" in method.good}


def new_table(kind: str = "version 9") -> Table:
    lake = Lake(*KINDS[kind])
    lake.upsert(row("a"), row("b", part="q"))
    lake.upsert(row("a", "new", 2))
    return lake.table


@pytest.mark.deep
@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS, ids=lambda one: f"{one.owner}.{one.name}")
def test_every_answer_is_a_result_or_a_short_error_with_a_remedy(
    method: Method, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a report may be stored under any name
    table = new_table(kind)
    before = rows_of(table)
    for name in (*method.good, *FURTHER):
        made, commits = 0, len(table.timeline().completed_writes())
        for value in hostile_values(SAMPLES[kind]):
            try:
                result = method.bound(table)(**{**method.good, name: value})
                if hasattr(result, "read_all"):
                    result.read_all()
            except HudiError as error:
                ensure_helpful(error, f"{name}={value!r}")
                assert len(table.timeline().completed_writes()) == commits, f"{name}={value!r} failed and wrote"
            except TypeError as error:  # Python's own, of a name that the method does not have
                assert name in FURTHER, f"{name}={value!r}: {error}"
                assert "unexpected keyword argument" in str(error), f"{name}={value!r}: {error}"
            except Exception as error:
                raise AssertionError(f"{name}={value!r} gives {type(error).__name__}: {error}") from error
            else:
                made += 1
                commits = len(table.timeline().completed_writes())
        if made and method.name in CHANGING:
            table = new_table(kind)
        assert rows_of(table) == before, f"values of {name} changed rows"
    assert [finding for finding in table.validate() if finding.kind != "pending"] == []


def ensure_helpful(error: HudiError, what: str) -> None:
    text = str(error)
    assert error.remedy, f"{what}: {text}"
    assert len(text) <= 700, f"{what}: {len(text)} characters: {text[:900]}"
    assert text.count("\n") <= 3, f"{what}: {text}"
    assert "0x" not in text.replace("0x1b", ""), f"{what} shows an address: {text}"


def rows_of(table: Table) -> list[dict[str, Any]]:
    return sorted(table.scan(["id", "part", "ts", "v"]).read_all().to_pylist(), key=repr)


def test_every_public_method_is_among_them() -> None:
    table = new_table()
    known = {(method.owner, method.name) for method in METHODS}
    known |= {("table", name) for name in ("open", "create", "drop")}
    for owner, thing in {
        "table": table,
        **{name: getattr(table, name) for name in ("services", "indexes", "savepoints", "history")},
    }.items():
        for name, function in inspect.getmembers(type(thing), inspect.isfunction):
            if not name.startswith("_") and function.__module__.startswith("hoodie."):
                assert (owner, name) in known, f"{owner}.{name} is not called with hostile arguments"


@pytest.mark.deep
@pytest.mark.parametrize("name", ["uri", "options", "server", "wait", "spark", "engine", "schema"])
def test_opening_and_making_a_table_with_anything(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    uri = str(tmp_path / "table")
    Lake(9, uri=uri).upsert(row("a"))
    for at, value in enumerate(hostile_values()):
        made = {"uri": str(tmp_path / f"new-{at}"), "options": {"hoodie.table.name": "x"}}
        for act, good in ((Table.open, {"uri": uri}), (Table.create, made)):
            if name not in inspect.signature(act).parameters:
                continue
            try:
                act(**{**good, name: value})
            except HudiError as error:
                ensure_helpful(error, f"{name}={value!r}")
            except Exception as error:
                raise AssertionError(
                    f"{act.__name__} {name}={value!r} gives {type(error).__name__}: {error}"
                ) from error


@pytest.mark.deep
@pytest.mark.parametrize(
    "key",
    [
        "hoodie.table.name",
        "hoodie.datasource.write.recordkey.field",
        "hoodie.datasource.write.partitionpath.field",
        "hoodie.table.ordering.fields",
        "hoodie.datasource.write.table.type",
        "hoodie.write.table.version",
        "hoodie.table.timeline.timezone",
        "fs.s3a.access.key",
        "anything.else",
    ],
)
def test_making_and_filling_a_table_with_any_value_of_an_option(key: str) -> None:
    for at, value in enumerate(hostile_values()):
        name = f"hostile-option-{key}-{at}"
        try:
            Table.create(f"memory://{name}", options={"hoodie.table.name": "x", key: value}).insert(ROWS)
        except HudiError as error:
            ensure_helpful(error, f"{key}={value!r}")
        except Exception as error:
            raise AssertionError(f"{key}={value!r} gives {type(error).__name__}: {error}") from error
