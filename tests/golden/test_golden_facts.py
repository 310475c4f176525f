"""What the command line says about the golden tables is what Hudi's own classes say about them.

The facts were taken from Hudi's timeline and file system view. The full set is read when `HOODIE_GOLDEN_DIR` names it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hoodie.cli.app import main
from hoodie.spec import parse_instant_time
from hoodie.testing.golden import GoldenTable, golden_tables

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FULL = os.environ.get("HOODIE_GOLDEN_DIR")
TABLES = golden_tables((ROOT / FULL).resolve() if FULL else HERE / "tables")

Unpack = Callable[[GoldenTable], Path]
Says = Callable[..., list[dict[str, Any]]]


@pytest.fixture(name="says")
def _says(capsys: pytest.CaptureFixture[str]) -> Says:
    """The rows a command prints with `--json`."""

    def run(*arguments: object) -> list[dict[str, Any]]:
        assert main([*map(str, arguments), "--json"]) == 0
        return list(json.loads(capsys.readouterr().out))

    return run


def states(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(one["requested_time"], one["action"], one["state"]) for one in rows]


def completions(rows: list[dict[str, Any]]) -> list[datetime]:
    """When completed instants completed. Hudi 0.15 gives pending ones a time, too: that of their file."""
    return [parse_instant_time(one["completion_time"]) for one in rows if one["state"] == "COMPLETED"]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_active_timeline_is_that_of_the_real_hudi(table: GoldenTable, unpacked: Unpack, says: Says) -> None:
    facts, said = table.facts["active_timeline"], says("timeline", unpacked(table))
    assert states(said) == states(facts)
    # Times of files lose a fraction of a millisecond in an archive, which has them as floating point numbers.
    pairs = zip(completions(said), completions(facts), strict=True)
    assert all(abs(ours - theirs) <= timedelta(milliseconds=1) for ours, theirs in pairs)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_archived_timeline_is_that_of_the_real_hudi(table: GoldenTable, unpacked: Unpack, says: Says) -> None:
    facts = [
        {key: one[key] for key in ("requested_time", "completion_time", "action", "state")}
        for one in table.facts["archived_timeline"]
        if one["state"] == "COMPLETED"  # Hudi 0.15 lists the earlier states of an instant as well
    ]
    archived = says("timeline", unpacked(table), "--archived")
    assert archived == facts
    everything = says("timeline", unpacked(table), "--all")
    assert everything == sorted(archived + says("timeline", unpacked(table)), key=lambda one: one["requested_time"])


def slices_of(table: GoldenTable) -> list[dict[str, Any]]:
    """File slices as Hudi found them by listing storage."""
    return [
        {
            "partition": partition,
            "file_id": one["file_id"],
            "base_instant": one["base_instant"],
            "base_file": one["base_file"],
            # Hudi lists the newest first, and change-data files among them.
            "log_files": [name for name in reversed(one["log_files"]) if not name.endswith(".cdc")],
        }
        for partition, found in table.facts["partitions"].items()
        if isinstance(found, dict)
        for one in found["latest_merged_slices_as_of_last_commit"]
    ]


def by_group(slices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(slices, key=lambda one: (one["partition"], one["file_id"]))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_file_slices_are_those_of_the_real_hudi(table: GoldenTable, unpacked: Unpack, says: Says) -> None:
    listed = says("files", unpacked(table), "-o", "hoodie.metadata.enable=false")
    assert by_group(listed) == by_group(slices_of(table))


# In version 6 the log file of a write that died stays, under a name that fits its slice. A listing shows it, and its
# blocks are passed by; the metadata table never heard of it.
LEFT_LOGS = ("0.15.0/mor_failed_left",)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_metadata_table_knows_the_same_file_slices(table: GoldenTable, unpacked: Unpack, says: Says) -> None:
    expected, got = by_group(slices_of(table)), by_group(says("files", unpacked(table)))
    if table.name in LEFT_LOGS:
        assert got != expected
        for ours, theirs in zip(got, expected, strict=True):
            assert set(ours["log_files"]) <= set(theirs["log_files"])
            ours["log_files"] = theirs["log_files"]
    assert got == expected
