"""The worked examples of docs/format/stream-offsets.md are the offsets of streams over Hudi's tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from format_pages import block, page, rows
from pyspark.sql.types import StructType

from hoodie.errors import Invalid
from hoodie.spark.source_partitions import START
from hoodie.spark.stream_source import TableStream, _time
from hoodie.table import Table

PAGE = page("stream-offsets")
TABLES = {1: "1.2.0/cow_nonpart", 2: "0.15.0/cow_nonpart"}
Golden = Callable[[str], Path]


@pytest.mark.parametrize("column", TABLES)
def test_commits_are_those_of_the_tables(golden: Golden, column: int) -> None:
    shown = [line.split()[column - 1] for line in block(PAGE, "## Worked example").splitlines()]
    files = {path.name for path in golden(TABLES[column]).glob(".hoodie/**/*.commit") if "metadata" not in path.parts}
    assert files == set(shown)


@pytest.mark.parametrize("column", TABLES)
def test_offsets_of_the_table(golden: Golden, column: int) -> None:
    first, behind, latest = (cells[column].strip("`") for cells in rows(PAGE, "| | version 9 | version 6 |"))
    options = {"path": str(golden(TABLES[column]))}
    stream = TableStream(options, StructType())
    assert stream.initialOffset() == json.loads(first)
    assert stream.latestOffset(json.loads(first)) == json.loads(behind)
    assert latest == "the same"
    assert TableStream({**options, START: "latest"}, StructType()).initialOffset() == json.loads(behind)


def test_offset_from_before_an_upgrade(golden: Golden) -> None:
    timeline = Table.open(str(golden(TABLES[1]))).timeline()
    offset, time = re.findall(r"here `(\{.*?\})` is (\d+)\.", PAGE)[0]
    assert _time(json.loads(offset), timeline) == time
    older = Table.open(str(golden(TABLES[2]))).timeline()
    assert _time({"offsetCommitTime": "9", "unknown": 1}, older) == "20261121062138551"
    with pytest.raises(Invalid):
        _time({"unknown": 1}, timeline)
