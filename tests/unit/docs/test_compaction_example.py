"""The worked example of docs/format/compaction.md is what we write."""

from __future__ import annotations

import re
from pathlib import Path

from hoodie.spec import CompactionOperation, CompactionPlan, encode_compaction_plan, parse_compaction_plan

PAGE = (Path(__file__).parents[3] / "docs" / "format" / "compaction.md").read_text(encoding="utf-8")


def bytes_of(cell: str) -> bytes:
    """Bytes of `23 48 · `text` · 00`."""
    parts = (part.strip() for part in cell.split("·"))
    return b"".join(part.strip("`").encode() if part.startswith("`") else bytes.fromhex(part) for part in parts)


def test_plan_has_the_bytes_of_the_table() -> None:
    metrics = {
        "TOTAL_LOG_FILES": 1.0,
        "TOTAL_IO_READ_MB": 0.0,
        "TOTAL_LOG_FILES_SIZE": 1553.0,
        "TOTAL_IO_WRITE_MB": 0.0,
        "TOTAL_IO_MB": 0.0,
    }
    logs, base = (".a-0_20261121061253178.log.1_0-1-2",), "a-0_0-1-2_20261121061249505.parquet"
    operation = CompactionOperation("p0", "a-0", "20261121061249505", logs, base, metrics)
    plan = CompactionPlan((operation,), extra_metadata={}, missing_partitions=())
    data = encode_compaction_plan(plan)
    assert parse_compaction_plan(data, "x") == plan
    assert len(data) == 2107
    table = re.search(r"(?:^\|.*\n)+", PAGE[PAGE.index("## Worked example") :], re.MULTILINE)
    assert table is not None
    at = 1848
    for line in table[0].splitlines()[2:]:
        offset, cell, _ = (part.strip() for part in line.strip("|").split("|", 2))
        assert at == int(offset), line
        assert data[at : at + len(bytes_of(cell))] == bytes_of(cell), line
        at += len(bytes_of(cell))
    assert at == len(data) - 16
