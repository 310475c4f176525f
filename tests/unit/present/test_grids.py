"""Timelines, files, commits and rows as tables and as plain values."""

from __future__ import annotations

import io
from dataclasses import replace

import pyarrow as pa
import pytest
from rich.console import Console, RenderableType

from hoodie.cli.printing import console
from hoodie.present import as_grid, as_json
from hoodie.present.plain import visible_text
from hoodie.present.row_grid import rows_grid
from hoodie.query import Finding
from hoodie.spec import BaseFileName, Instant, LogFileName, State
from hoodie.transaction import Committed
from hoodie.units import size_text
from hoodie.view import BaseFile, FileSlice, LogFile

FIRST = "20130101000000000"
DONE = "20130101000001000"
SECOND = "20130102000000000"
INSTANTS = (
    Instant(FIRST, "commit", State.COMPLETED, DONE),
    Instant(SECOND, "clustering", State.INFLIGHT),
)
BASE = BaseFileName("f-0", "0-1-2", FIRST)
LOG = LogFileName("f-0", SECOND, 1, "0-3-4")
SLICES = (
    FileSlice("a/b", "f-0", FIRST, BaseFile(f"a/b/{BASE.text}", BASE, 2048), (LogFile(f"a/b/{LOG.text}", LOG, 10),)),
    FileSlice("", "g-0", SECOND, None),
)
COMMITTED = Committed(
    instant=FIRST,
    completed=DONE,
    operation="upsert",
    files=2,
    size_bytes=5 * 1024**2,
    rows_written=1234,
    inserts=1200,
    updates=34,
    deletes=0,
    partitions=("a", "b"),
)


def _text(shown: RenderableType, width: int = 100) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(shown)
    return out.getvalue()


def test_timeline_as_values() -> None:
    assert as_json(INSTANTS) == [
        {"requested_time": FIRST, "completion_time": DONE, "action": "commit", "state": "COMPLETED"},
        {"requested_time": SECOND, "completion_time": None, "action": "clustering", "state": "INFLIGHT"},
    ]


def test_timeline_as_table() -> None:
    shown = _text(as_grid(INSTANTS))
    assert "Timeline: 2 instants" in shown
    assert FIRST in shown
    assert "INFLIGHT" in shown


def test_files_as_values() -> None:
    assert as_json(SLICES) == [
        {
            "partition": "a/b",
            "file_id": "f-0",
            "base_instant": FIRST,
            "base_file": f"f-0_0-1-2_{FIRST}.parquet",
            "log_files": [f".f-0_{SECOND}.log.1_0-3-4"],
        },
        {"partition": "", "file_id": "g-0", "base_instant": SECOND, "base_file": None, "log_files": []},
    ]


def test_files_as_table() -> None:
    shown = _text(as_grid(SLICES))
    assert "Files: 2 file slices, 2.0 KiB" in shown
    assert "a/b" in shown


def test_findings() -> None:
    findings = [Finding("missing_file", "a/f.parquet", "the commit names it")]
    assert as_json(findings) == [{"kind": "missing_file", "path": "a/f.parquet", "message": "the commit names it"}]
    assert "1 finding" in _text(as_grid(findings))


def test_commit_summary() -> None:
    assert as_json(COMMITTED)["partitions"] == ["a", "b"]
    shown = _text(as_grid(COMMITTED, "upsert: committed"))
    assert "upsert: committed" in shown
    assert "1,234" in shown
    assert "5.0 MiB" in shown


def test_rows_show_nulls_and_say_how_many_there_are() -> None:
    rows = pa.table({"id": [1, 2], "name": ["a", None]})
    shown = _text(rows_grid(rows, total=7, width=100))
    assert "NULL" in shown
    assert "first 2 of 7 rows" in shown
    assert "1 row" in _text(rows_grid(rows.slice(0, 1), total=1, width=100))


def test_columns_that_do_not_fit_are_left_out_and_counted() -> None:
    rows = pa.table({f"column_{number}": ["x" * 50] for number in range(9)})
    shown = _text(rows_grid(rows, total=1, width=100), width=100)
    assert "column_1" in shown
    assert "column_2" not in shown
    assert "7 more columns, choose with --columns" in shown


def test_text_of_rows_is_never_markup() -> None:
    assert "[red]x[/red]" in _text(rows_grid(pa.table({"a": ["[red]x[/red]"]}), total=1, width=100))


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x9b2J", "\u202egnp", "[/]", "[red]x", ":smile:"])
def test_names_of_partitions_files_and_tables_are_shown_as_they_are(
    hostile: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    slices = (SLICES[0]._replace(partition=f"a{hostile}", file_id=f"b{hostile}"),)
    instants = (replace(INSTANTS[0], action=f"c{hostile}"),)
    findings = (Finding(f"d{hostile}", f"e{hostile}", f"f{hostile}"),)
    for grid in (as_grid(slices), as_grid(instants), as_grid(findings)):
        console().print(grid)
    console().print(f"g{hostile}")
    shown = capsys.readouterr().out
    assert not {"\x1b", "\x9b", "\u202e"} & set(shown)
    for place in "abcdefg":
        assert f"{place}{visible_text(hostile)}" in shown


def test_sizes() -> None:
    assert [size_text(size) for size in (0, 1023, 1024, 120 * 1024**2, 3 * 1024**4)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "120.0 MiB",
        "3.0 TiB",
    ]
