"""The worked example of docs/format/compaction.md is what we write."""

from __future__ import annotations

from format_pages import ensure_lines, page, rows

from hoodie.spec import CompactionOperation, CompactionPlan, encode_compaction_plan, parse_compaction_plan


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
    assert ensure_lines(data, rows(page("compaction"), "## Worked example")) == (1848, len(data) - 16)
