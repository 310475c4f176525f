"""The commands with `--engine spark` do what they do without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.cli import main

pytestmark = pytest.mark.spark

OPTIONS = (
    "hoodie.table.name=trips",
    "hoodie.datasource.write.recordkey.field=id",
    "hoodie.datasource.write.partitionpath.field=city",
    "hoodie.datasource.write.precombine.field=ts",
)
ROWS = pa.table({"id": ["a", "b", "c"], "city": ["oslo", "oslo", "rome"], "ts": [1, 1, 1], "fare": [1.5, 2.5, None]})


def _write(path: str, rows: pa.Table, folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    file = folder / "rows.parquet"
    pq.write_table(rows, file)
    options = [part for pair in OPTIONS for part in ("-o", pair)]
    assert main(["write", path, "--engine", "spark", "--input", str(file), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def _query(path: str, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["query", path, "--json", *arguments]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return sorted(rows, key=lambda row: str(row["id"]))


def test_write_and_query_with_spark_agree_with_the_local_engine(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "trips")
    assert _write(path, ROWS, tmp_path, capsys)["inserts"] == 3
    changed = pa.table({"id": ["b"], "city": ["oslo"], "ts": [2], "fare": [9.0]})
    first = _write(path, changed, tmp_path, capsys)
    assert (first["inserts"], first["updates"]) == (0, 1)
    for arguments in (
        [],
        ["--columns", "id,fare", "--where", "fare > 2"],
        ["--type", "incremental", "--begin", "000"],
        ["--as-of", first["instant"]],
    ):
        by_spark = _query(path, capsys, "--engine", "spark", *arguments)
        assert by_spark == _query(path, capsys, *arguments)
        assert by_spark


def test_a_missing_table_is_one_clear_message(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", str(tmp_path / "none"), "--engine", "spark"]) == 2
    assert capsys.readouterr().err.startswith("Invalid: ")
