"""Every command in the examples of docs/services.md runs on a table it is for."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli import main
from hoodie.testing.lake import ROWS, Lake, row

PAGE = (Path(__file__).parents[3] / "docs" / "services.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
    if line.startswith("hoodie ")
]
RINGS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "8",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}


def _table(words: list[str]) -> str:
    """Makes the table `trips` of the current folder as the command wants it; gives what stands for INSTANT."""
    if words[0] == "cluster":
        lake = Lake(9, {"hoodie.parquet.small.file.limit": "0"}, uri="trips")
        lake.write("insert", [row("a")])
        lake.write("insert", [row("b")])
        planned = lake.table.services.cluster(op="schedule") if "INSTANT" in words else None
        return "" if planned is None else planned.instant
    if words[0] == "resize":
        Lake(9, RINGS, uri="trips").upsert(row("a"))
        return ""
    schema = ROWS.append(pa.field("rider", pa.string()))
    lake = Lake(9, {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}, uri="trips", schema=schema)
    lake.upsert(row("a", rider="x"), row("b", rider="y"))
    if words[0] != "doctor":  # to whom logs as large as base files are a concern
        lake.upsert(row("a", "b", 2, rider="z"))
    if words[0] == "index" and "record_index" not in words:
        lake.table.indexes.create("record_index")
    if "--drop" in words:
        lake.table.indexes.create("by_rider", "rider")
    if "INSTANT" not in words:
        return ""
    planned = lake.table.services.schedule_compaction()
    assert planned is not None
    return planned.requested


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line.partition("#")[0].strip())
def test_the_command_of_an_example_runs(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line, comments=True)[1:]
    instant = _table(words)
    assert main([instant if one == "INSTANT" else one for one in words]) == 0


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _table(["compact"])
    (example,) = re.findall(r"^```py\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    known: dict[str, object] = {"hoodie": hoodie}
    exec(compile(example, "services.md", "exec"), known)
    assert hoodie.Table.open("trips").savepoints == (known["point"],)
