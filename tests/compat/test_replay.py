"""Scenarios of the real Hudi, replayed by our writer: rows must be those Hudi recorded, and every peer reads them.

A golden table keeps the input and the options of each of its steps. We write them again, in the scenario's own table
version and, for those of Hudi 1.2.0, in version 8 as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from peers import Readers, ensure_same_rows, read_rows, write_rows

from hoodie.errors import Invalid

# Scenario → entries of peer_limits.py that excuse a peer from reading it.
SCENARIOS: dict[str, tuple[str, ...]] = {
    "cow_add_column": (),
    "cow_all_types": ("rs_zoneless_timestamps",),
    "cow_bloom_default_size": (),
    "cow_bloom_simple_filter": (),
    "cow_bulk_row_writer_types": ("rs_zoneless_timestamps",),
    "cow_codecs": (),
    "cow_commit_time": (),
    "cow_complex_keygen_one_key": (),
    "cow_delete_marker": (),
    "cow_delete_partition": (),
    "cow_drop_partition_columns": ("rs_dropped_partition_columns",),
    "cow_event_time": (),
    "cow_extra_metadata": (),
    "cow_global_bloom": (),
    "cow_hive_style_date": (),
    "cow_index_simple": (),
    "cow_insert_drop_dups": (),
    "cow_insert_overwrite": (),
    "cow_insert_overwrite_table": (),
    "cow_int_key": (),
    "cow_int_partition": (),
    "cow_many_file_groups": (),
    "cow_multi_part": (),
    "cow_nested_key": ("rs_nested_partition_field",),
    "cow_no_meta_fields": (),
    "cow_no_metadata": (),
    "cow_nonpart": (),
    "cow_null_empty_partition": ("rs_null_partition",),
    "cow_part": (),
    "cow_soft_and_hard_delete": (),
    "cow_timeline_utc": (),
    "cow_timestamp_keygen": ("rs_path_values", "015_timestamp_keys"),
    "cow_type_promotion": (),
    "cow_upsert_dedup_input": (),
    "cow_urlencoded_partitions": (),
}
IN_015 = [
    "cow_add_column",
    "cow_all_types",
    "cow_bulk_row_writer_types",
    "cow_complex_keygen_one_key",
    "cow_delete_partition",
    "cow_event_time",
    "cow_insert_overwrite",
    "cow_insert_overwrite_table",
    "cow_multi_part",
    "cow_no_meta_fields",
    "cow_nonpart",
    "cow_null_empty_partition",
    "cow_part",
    "cow_timestamp_keygen",
    "cow_type_promotion",
    "cow_urlencoded_partitions",
]
CASES = [(f"1.2.0/{name}", version) for name in SCENARIOS for version in (9, 8)] + [
    (f"0.15.0/{name}", 6) for name in IN_015
]
# What names instants and files, or steers services that are not ours yet.
OF_THE_WRITE = {"_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"}
NOT_REPLAYED = re.compile(r"parallelism$|^hoodie\.(metadata|embed|clean|cleaner|keep|write\.table\.version)\b")
EMPTY_PARTITION = "cow_null_empty_partition"
WITH_HISTORY = {"cow_part", "cow_nonpart", "cow_insert_overwrite", "cow_delete_partition", "cow_event_time"}


@pytest.mark.parametrize(("name", "version"), CASES, ids=lambda value: str(value).replace("/", "-"))
def test_a_replayed_scenario_has_hudis_rows_and_every_peer_reads_them(
    name: str, version: int, readers: Readers, golden: Callable[..., tuple[Path, Path]], tmp_path: Path
) -> None:
    _, expected = golden(name, replay=True)
    scenario = name.split("/")[1]
    table = tmp_path / "replayed"
    for step in json.loads((expected / "ops.json").read_text()):
        options = {**_options(step, version), "hoodie.write.schema.promotions": "all"}
        rows = pq.read_table(expected / step["input"])
        if scenario == EMPTY_PARTITION and step["mode"] == "overwrite":
            with pytest.raises(Invalid, match="would be read as NULL"):
                write_rows(table, step["op"], rows, options, step["mode"])
            rows = _with_null_for_empty_text(rows, options["hoodie.datasource.write.partitionpath.field"])
        write_rows(table, step["op"], rows, options, step["mode"])

    rows = readers.ensure_agree(table, version, SCENARIOS[scenario])

    recorded = expected / "snapshot_read_by_1.2.0.parquet"
    recorded = recorded if recorded.exists() else expected / "snapshot.parquet"
    ensure_same_rows(rows, pq.read_table(recorded), OF_THE_WRITE, called=("replayed", "recorded"))


@pytest.mark.parametrize(
    ("name", "version"), [case for case in CASES if case[0].split("/")[1] in WITH_HISTORY], ids=str
)
def test_every_peer_gives_our_rows_of_the_past_and_of_the_changes(
    name: str, version: int, readers: Readers, golden: Callable[..., tuple[Path, Path]], tmp_path: Path
) -> None:
    from hoodie import Table  # noqa: PLC0415

    _, expected = golden(name, replay=True)
    table = tmp_path / "replayed"
    for step in json.loads((expected / "ops.json").read_text()):
        write_rows(table, step["op"], pq.read_table(expected / step["input"]), _options(step, version), step["mode"])
    commits = Table.open(str(table)).timeline().completed()
    for commit in commits:
        readers.ensure_agree(table, version, query="time_travel", as_of=commit.requested)
    for commit in commits[:-1]:
        begin = commit.requested if version == 6 else commit.completed
        rows = read_rows(table, query="incremental", begin=begin)
        limits = () if rows.num_rows else ("rs_empty_incremental",)
        readers.ensure_agree(table, version, limits, query="incremental", begin=begin)


def _with_null_for_empty_text(rows: pa.Table, name: str) -> pa.Table:
    """What readers of Hudi's table see in the column, and what we ask for."""
    at = rows.schema.get_field_index(name)
    filled = pc.if_else(pc.equal(rows[name], ""), pa.scalar(None, rows.schema.field(at).type), rows[name])
    return rows.set_column(at, rows.schema.field(at), filled)


def _options(step: dict[str, Any], version: int) -> dict[str, str]:
    kept = {key: value for key, value in step["options"].items() if not NOT_REPLAYED.search(key)}
    return {**kept, "hoodie.write.table.version": str(version)}
