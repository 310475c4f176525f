"""Who only reads does not wait for what writes to be loaded: it would be a third of the time of opening a table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import hoodie

WRITING = ("hoodie.metadata_writer", "hoodie.services", "hoodie.write", "pyspark")


def test_reading_a_table_loads_nothing_that_writes(tmp_path: Path) -> None:
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    table = hoodie.Table.create(str(tmp_path / "t"), schema=pa.schema([("id", pa.string())]), options=options)
    table.insert(pa.table({"id": ["a", "b"]}))
    program = f"""
import sys
import hoodie
table = hoodie.Table.open({table.uri!r})
assert len(table.files()) == 1
assert table.scan().read_all().num_rows == 2
print(*(name for name in {WRITING} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
