"""What a peer cannot read even when Hudi itself wrote it: data, each entry proven by a test (see docs/compat.md).

`shown_by` names a golden table of the real Hudi, or one that the test has it write (`written/...`), and the query on
which the peer fails or gives other rows than Hudi recorded. `test_peer_limits.py` shows each entry; the tests of our
own tables leave out what an entry covers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class PeerLimit:
    """One thing a peer cannot do."""

    name: str
    peer: Literal["hudi_12", "hudi_015", "hudi_rs"]
    what: str
    shown_by: str
    query: str = "snapshot"


LIMITS = (
    PeerLimit(
        "rs_zoneless_timestamps",
        "hudi_rs",
        "timestamps without a zone: a panic as soon as the schema is asked for",
        "1.2.0/cow_all_types",
    ),
    PeerLimit(
        "rs_dropped_partition_columns",
        "hudi_rs",
        "tables whose files leave the partition columns out",
        "1.2.0/cow_drop_partition_columns",
    ),
    PeerLimit("rs_nested_partition_field", "hudi_rs", "a partition column inside a struct", "1.2.0/cow_nested_key"),
    PeerLimit("rs_custom_keys", "hudi_rs", "partition fields of the custom key generator", "1.2.0/mor_custom_keygen"),
    PeerLimit(
        "rs_path_values",
        "hudi_rs",
        "partition values come from the files and not from the path (timestamp key generator)",
        "1.2.0/cow_timestamp_keygen",
    ),
    PeerLimit(
        "rs_null_partition",
        "hudi_rs",
        "the partition of NULL gives the value of the file, not NULL",
        "1.2.0/cow_null_empty_partition",
    ),
    PeerLimit("rs_several_ordering_fields", "hudi_rs", "more than one ordering field", "1.2.0/mor_multi_ordering"),
    PeerLimit(
        "rs_schema_at_time_travel",
        "hudi_rs",
        "time travel gives the newest schema instead of that of the time",
        "1.2.0/cow_add_column",
        "time_travel_0",
    ),
    PeerLimit(
        "rs_empty_incremental",
        "hudi_rs",
        "an incremental query without rows has no schema",
        "1.2.0/cow_delete_partition",
        "incremental_2",
    ),
    PeerLimit(
        "rs_encoded_incremental",
        "hudi_rs",
        "an incremental query gives the decoded partition value where Hudi gives the encoded one",
        "1.2.0/cow_urlencoded_partitions",
        "incremental_0",
    ),
    PeerLimit(
        "015_zoneless_timestamps",
        "hudi_015",
        "timestamps without a zone, which it cannot write either",
        "written/zoneless_timestamps",
    ),
    PeerLimit(
        "12_old_epoch_partitions",
        "hudi_12",
        "a timestamp key generator over numbers in a table that Hudi 0.15 made, where the path has no slashes: "
        "`hoodie.keygen.timebased.timestamp.type` is not in its properties",
        "written/epoch_partitions",
    ),
    PeerLimit(
        "12_ancient_dates",
        "hudi_12",
        "dates before 1582-10-15 and timestamps before 1900 in files of an upsert or insert, unless "
        "`spark.sql.parquet.datetimeRebaseModeInRead` is `CORRECTED`",
        "written/ancient_dates",
    ),
    PeerLimit(
        "015_ancient_dates",
        "hudi_015",
        "the same",
        "written/ancient_dates",
    ),
    PeerLimit(
        "rs_nested_decimals_in_avro_logs",
        "hudi_rs",
        "Avro log blocks with a decimal inside a struct",
        "written/nested_decimals_in_avro_logs",
    ),
    PeerLimit(
        "015_late_deletes",
        "hudi_015",
        "deletes in log files that are older than the row in the base file: it deletes all the same",
        "written/late_deletes",
    ),
    PeerLimit(
        "12_hfile_log_blocks",
        "hudi_12",
        "HFile data blocks in log files, on Spark: Avro records where it expects its own rows",
        "written/hfile_log_blocks",
    ),
    PeerLimit(
        "12_filters_of_functions_in_logs",
        "hudi_12",
        "a merge-on-read table with an expression index of bloom filters after its first log write, which fails: log "
        "files cannot have such a filter",
        "written/filters_of_functions_in_logs",
    ),
    PeerLimit("015_newer_tables", "hudi_015", "table versions 8 and 9", "1.2.0/cow_part"),
    PeerLimit(
        "015_timestamp_keys",
        "hudi_015",
        "the column of the timestamp key generator: the text of the path instead of what 1.2.0 gives",
        "0.15.0/cow_timestamp_keygen",
        "snapshot_read_by_1.2.0",
    ),
)
BY_NAME = {limit.name: limit for limit in LIMITS}


def limits_page() -> str:
    """The entries as the Markdown table of docs/compat.md: `python tests/compat/peer_limits.py`."""
    titles = {"hudi_12": "Hudi 1.2.0", "hudi_015": "Hudi 0.15.0", "hudi_rs": "hudi-rs 0.5.0"}
    lines = ["| peer | cannot read | shown on |", "|---|---|---|"]
    lines += [f"| {titles[limit.peer]} | {limit.what} | `{limit.shown_by}` |" for limit in LIMITS]
    return "\n".join(lines)


if __name__ == "__main__":
    print(limits_page())
