"""The worked example of docs/format/merging.md is what the code does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.merge import LogEntry, LogRows, MergeRules, MergeStep, collect_log, merge_rows
from hoodie.records import KEY_FIELD

PAGE = (Path(__file__).parents[3] / "docs" / "format" / "merging.md").read_text(encoding="utf-8")
SCHEMA = pa.schema({KEY_FIELD: pa.string(), "ts": pa.int64(), "v": pa.string(), "w": pa.string()})
STEPS = {
    "EVENT_TIME": (MergeStep(True), MergeStep(True)),
    "COMMIT_TIME": (MergeStep(False), MergeStep(False)),
    "version 6, OverwriteWithLatest": (MergeStep(True), MergeStep(False)),
    "EVENT_TIME, IGNORE_DEFAULTS": (MergeStep(True, "IGNORE_DEFAULTS"), MergeStep(True, "IGNORE_DEFAULTS")),
    "COMMIT_TIME, IGNORE_DEFAULTS": (MergeStep(False, "IGNORE_DEFAULTS"), MergeStep(False, "IGNORE_DEFAULTS")),
}


@dataclass(frozen=True)
class ListedDeletes:
    keys: pa.StringArray
    ordering: tuple[pa.Array, ...]
    is_default: npt.NDArray[np.bool_]


def blocks() -> list[tuple[str, list[list[str]]]]:
    example = re.search(r"## Worked example.*?```\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    lines = (line.split(None, 1) for line in example[1].splitlines())
    return [(kind, [cell.split() for cell in rest.split("|")]) for kind, rest in lines]


def table(rows: list[list[str]]) -> pa.Table:
    values = [[None if cell == "-" else cell for cell in row] for row in rows]
    return pa.table([pa.array(side) for side in zip(*values, strict=True)], names=SCHEMA.names).cast(SCHEMA)


def deletes(rows: list[list[str]]) -> ListedDeletes:
    ordering = pa.array([int(row[1]) if len(row) > 1 else None for row in rows], pa.int64())
    return ListedDeletes(pa.array([row[0] for row in rows]), (ordering,), np.array([len(row) < 2 for row in rows]))


def test_the_table_of_outcomes_is_what_the_rules_give() -> None:
    (_, stored), *log = blocks()
    entries: list[LogEntry] = [LogRows(table(rows)) if kind == "rows" else deletes(rows) for kind, rows in log]
    lines = [line.strip("|").split("|") for line in PAGE.splitlines() if re.match(r"\| (key|[a-f]) \|", line)]
    header, *outcomes = [[cell.strip() for cell in line] for line in lines]
    assert header[1:] == list(STEPS)
    for at, name in enumerate(header[1:], start=1):
        told = {line[0]: line[at] for line in outcomes if line[at]}
        with collect_log(entries, MergeRules(*STEPS[name], ordering_fields=("ts",)), SCHEMA) as merged:
            batches = list(merge_rows(lambda: table(stored).to_batches(), merged))
        found = {row[KEY_FIELD]: row for batch in batches for row in batch.to_pylist()}
        texts = {
            key: " ".join("-" if row[name] is None else str(row[name]) for name in ("ts", "v", "w"))
            for key, row in found.items()
        }
        assert texts == told, name
