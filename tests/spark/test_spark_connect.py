"""Spark Connect: reading works on a plain file list, by workers, in SQL and as a stream; writing refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hoodie.testing.golden import golden_tables

pytestmark = pytest.mark.spark

for needed in ("grpc", "grpc_status", "google.rpc"):
    pytest.importorskip(needed, reason="Spark Connect needs pyspark[connect]")

HERE = Path(__file__).parent
SCENARIOS = (
    "cow_all_types",
    "cow_drop_partition_columns",
    "cow_type_promotion",
    "cow_hive_style_date",
    "mor_all_types",
    "mor_part",
)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("connect")
    tables = [
        table
        for table in golden_tables(HERE.parent / "golden" / "tables")
        if table.release == "1.2.0" and table.scenario in SCENARIOS
    ]
    paths = [str(table.unpack(folder)) for table in tables]
    run = subprocess.run(
        [sys.executable, HERE / "programs" / "connect_reads.py", *paths],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    answer: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    assert answer["module"].startswith("pyspark.sql.connect")
    answer["tables"] = {path: answer[path] for path in paths}
    return answer


def test_rows_are_those_of_the_local_engine(said: dict[str, Any]) -> None:
    assert said["tables"]
    assert said["tables"] == {path: [None, None, None] for path in said["tables"]}


def test_the_server_reads_views_and_streams_through_the_data_source(said: dict[str, Any]) -> None:
    assert said["view"]
    assert said["stream"]


def test_no_view_of_a_table_can_be_written_to(said: dict[str, Any]) -> None:
    assert said["changed"] == []


def test_the_engine_runs_tasks(said: dict[str, Any]) -> None:
    assert said["engine"] == [2, 4, 6]


@pytest.mark.parametrize("what", ["save", "save_as_table", "write_to", "sql", "write_stream"])
def test_what_is_not_there_yet_says_so(said: dict[str, Any], what: str) -> None:
    assert said[what].startswith("Unsupported: ")


def test_a_missing_table_is_invalid(said: dict[str, Any]) -> None:
    assert said["missing"].startswith("Invalid: ")
