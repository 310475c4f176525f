"""The format's versions as values: what differs between tables of version 6, 8 and 9, in small parts.

1. A profile is picked once, when a table is opened; nobody else looks at the version number.
2. A difference between versions is a part or a capability here, never an `if` elsewhere.

It does not know any particular table; `table_config.profile_of` joins it with a table's own folder names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from hoodie.errors import Unsupported
from hoodie.spec.avro_schemas import AvroGeneration
from hoodie.spec.commit_clock import COMPLETION_CLOCK, REQUEST_CLOCK, CommitClock
from hoodie.spec.commit_codec import AvroCommitCodec, CommitCodec, JsonCommitCodec
from hoodie.spec.index_rules import IndexRules, IndexVersion
from hoodie.spec.instant_names import InstantNames, LayoutOneNames, LayoutTwoNames
from hoodie.spec.keys import HOODIE_DIR
from hoodie.spec.log_naming import NAMED_BY_SLICE, NAMED_BY_WRITE, LogNaming
from hoodie.spec.metadata_instants import MetadataInstants, PlainInstants, SuffixedInstants

HistoryForm = Literal["log_files", "parquet_files"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the version's bytes can say or promise.

    `clustering_action`: pending clusterings have an action of their own.
    `rollback_command_blocks`: rolled-back log blocks stay and get a command block; otherwise log files are deleted.
    `plan_paths_with_scheme`: log file paths in rollback metadata keep `file:` (Hudi 0.15); otherwise it is stripped.
    `complex_single_key_named`: a COMPLEX key of one field is written `field:value`; otherwise the bare value.
    `complex_single_key_settled`: that spelling is certain; otherwise releases differ and stored keys must be asked.
    `typed_partition_fields`: partition fields of the CUSTOM generator keep `:simple` and `:timestamp`.
    `prev_base_file`: write stats name the previous base file.
    `clean_inflight_repeats_plan`: `clean.inflight` is a copy of the plan instead of empty.
    `late_log_headers`: readers know the header keys of log blocks past the first seven (record positions of a base
    file, partial rows), and deletes with values of several ordering fields.
    `stores_delete_markers`: the properties say which rows delete; otherwise every write and read says it again.
    `compactions_log_changes`: compactions of a table that logs changes write change files.
    """

    clustering_action: bool
    rollback_command_blocks: bool
    plan_paths_with_scheme: bool
    complex_single_key_named: bool
    complex_single_key_settled: bool
    typed_partition_fields: bool
    prev_base_file: bool
    clean_inflight_repeats_plan: bool
    late_log_headers: bool
    compactions_log_changes: bool
    stores_delete_markers: bool


@dataclass(frozen=True, slots=True)
class FormatProfile:
    """One version of the format.

    `timeline_dir` and `history_dir` are folders relative to the base path. `history_form` says in what archived
    instants are kept, `log_naming` what the instant in a log file's name is, `clock` which time of an instant readers
    and plans go by, `metadata_instants` how a metadata table's own actions are timed, `indexes` what it can have.
    """

    table_version: int
    layout_version: int
    timeline_dir: str
    history_dir: str
    history_form: HistoryForm
    instant_names: InstantNames
    commit_codec: CommitCodec
    avro_generation: AvroGeneration
    log_naming: LogNaming
    stores_completion_time: bool
    clock: CommitClock
    metadata_instants: MetadataInstants
    indexes: IndexRules
    capabilities: Capabilities

    def loads_like(self, other: FormatProfile) -> bool:
        """Whether what was loaded with the other one is as this one loads it: version and folders are the same."""
        return self == other


V6 = FormatProfile(
    table_version=6,
    layout_version=1,
    timeline_dir=HOODIE_DIR,
    history_dir=f"{HOODIE_DIR}/archived",
    history_form="log_files",
    instant_names=LayoutOneNames(),
    commit_codec=JsonCommitCodec(),
    avro_generation="0.15",
    log_naming=NAMED_BY_SLICE,
    stores_completion_time=False,
    clock=REQUEST_CLOCK,
    metadata_instants=SuffixedInstants(),
    indexes=IndexRules(
        version="V1",
        only=frozenset({"files", "column_stats", "bloom_filters", "record_index"}),
        has_partitioned_record_index=False,
        column_stats_by_default=False,
        covers_every_column=True,
        covers_bytes=True,
        is_built_beside_writes=False,
    ),
    capabilities=Capabilities(
        clustering_action=False,
        rollback_command_blocks=True,
        plan_paths_with_scheme=True,
        complex_single_key_named=False,
        complex_single_key_settled=False,
        typed_partition_fields=False,
        prev_base_file=False,
        clean_inflight_repeats_plan=True,
        late_log_headers=False,
        compactions_log_changes=False,
        stores_delete_markers=False,
    ),
)

_SINCE_8 = Capabilities(
    clustering_action=True,
    rollback_command_blocks=False,
    plan_paths_with_scheme=False,
    complex_single_key_named=True,
    complex_single_key_settled=False,
    typed_partition_fields=True,
    prev_base_file=True,
    clean_inflight_repeats_plan=False,
    late_log_headers=True,
    compactions_log_changes=True,
    stores_delete_markers=False,
)


def _since_8(table_version: int, capabilities: Capabilities, index_version: IndexVersion) -> FormatProfile:
    return FormatProfile(
        table_version=table_version,
        layout_version=2,
        timeline_dir=f"{HOODIE_DIR}/timeline",
        history_dir=f"{HOODIE_DIR}/timeline/history",
        history_form="parquet_files",
        instant_names=LayoutTwoNames(),
        commit_codec=AvroCommitCodec(),
        avro_generation="1.x",
        log_naming=NAMED_BY_WRITE,
        stores_completion_time=True,
        clock=COMPLETION_CLOCK,
        metadata_instants=PlainInstants(),
        indexes=IndexRules(
            version=index_version,
            only=None,
            has_partitioned_record_index=True,
            column_stats_by_default=True,
            covers_every_column=False,
            covers_bytes=False,
            is_built_beside_writes=True,
        ),
        capabilities=capabilities,
    )


V8 = _since_8(8, _SINCE_8, "V1")
V9 = _since_8(9, replace(_SINCE_8, complex_single_key_settled=True, stores_delete_markers=True), "V2")

PROFILES: dict[int, FormatProfile] = {profile.table_version: profile for profile in (V6, V8, V9)}
CURRENT = V9

_READ = "Table versions 6, 8 and 9 are read and written"


def profile_for(table_version: int) -> FormatProfile:
    """The profile of a table version.

    Raises:
        Unsupported: any other version than 6, 8 and 9.
    """
    profile = PROFILES.get(table_version)
    if profile is not None:
        return profile
    if table_version > CURRENT.table_version:
        remedy = f"{_READ}; use a newer release of hoodie for this table"
    elif table_version < V6.table_version:
        remedy = f"{_READ}; upgrade the table to version 6 with Apache Hudi 0.15 first"
    else:
        remedy = f"{_READ}; version {table_version} is an upgrade left half-way, finish it with Apache Hudi 1.x"
    raise Unsupported(f"The table has version {table_version}", remedy=remedy, table_version=table_version)
