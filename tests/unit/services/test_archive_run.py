"""Archiving for real: what leaves the timeline is in the history, once, as it was; also after dying at any call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import Corrupt, Unavailable
from hoodie.present import as_json
from hoodie.services.archiving.archive import ArchiveResult, archive, preview_archive
from hoodie.spec import (
    CLEAN,
    COMPACTION,
    COMPLETED_WRITE_ACTIONS,
    REPLACE_COMMIT,
    RESTORE,
    ROLLBACK,
    V6,
    V8,
    V9,
    CleanMetadata,
    CleanPlan,
    CommitMetadata,
    FormatProfile,
    Instant,
    InstantInfo,
    RollbackMetadata,
    RollbackPlan,
    State,
    WriteStat,
    encode_clean_metadata,
    encode_clean_plan,
    encode_container,
    encode_requested_replace,
    encode_rollback_metadata,
    encode_rollback_plan,
    marker_dir,
    parse_container,
    schema,
)
from hoodie.spec.commit_fields import COUNT_FIELDS
from hoodie.spec.replace_plan import EMPTY_REPLACE
from hoodie.state.handle import TableHandle, open_handle, timeline_of
from hoodie.storage import MemoryStorage, NestedStorage, Storage
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.env import FakeEnv
from hoodie.testing.golden import GoldenTable, golden_tables
from hoodie.testing.hand_table import HandTable, at, new_name
from hoodie.timeline import (
    list_state_files,
    load_archived_metadata,
    load_commit_metadata,
    load_history,
    load_instant,
)

pytestmark = pytest.mark.sampled(4)

ENGINE = LocalEngine(2)
ROOT = Path(__file__).parents[3]
FULL = os.environ.get("HOODIE_GOLDEN_DIR")
LATER_COUNTS = ("num_updates", "_compacted", "_read_time_ms")
TABLES = golden_tables((ROOT / FULL).resolve() if FULL else ROOT / "tests" / "golden" / "tables")
LIMITS = {"hoodie.keep.min.commits": 3, "hoodie.keep.max.commits": 4, "hoodie.clean.commits.retained": 1}
CONFIG = resolve(LIMITS)
BY_VERSIONS = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}


def commit(table: HandTable, second: int, **options: Any) -> None:
    """A commit that wrote a file nobody looks at: what is archived are instants."""
    stat = WriteStat(file_id="f", path=f"p/f_0-1-2_{at(second)}.parquet", partition_path="p", num_writes=second)
    metadata = CommitMetadata({"p": (stat,)}, extra_metadata={"n": str(second)}, operation_type="UPSERT", **options)
    action = REPLACE_COMMIT if options else "commit"
    inflight = CommitMetadata({"p": (WriteStat(num_inserts=second),)}, operation_type="UPSERT")
    content = {
        State.INFLIGHT: table.profile.commit_codec.encode(inflight, "commit"),
        State.COMPLETED: table.profile.commit_codec.encode(metadata, action),
    }
    if options:
        content[State.REQUESTED] = encode_requested_replace(EMPTY_REPLACE, table.profile.avro_generation)
    table.instant(at(second), action, content=content)


def clean_at(table: HandTable, second: int, earliest: int) -> None:
    generation = table.profile.avro_generation
    plan = encode_clean_plan(
        CleanPlan("KEEP_LATEST_COMMITS", files={"p": (f"/x/p/f_0-1-2_{at(1)}.parquet",)}), generation
    )
    inflight = plan if table.profile.capabilities.clean_inflight_repeats_plan else b""
    metadata = encode_clean_metadata(CleanMetadata(at(second), 5, 1, at(earliest)), generation)
    content = {State.REQUESTED: plan, State.INFLIGHT: inflight, State.COMPLETED: metadata}
    table.instant(at(second), CLEAN, content=content)


def rollback_at(table: HandTable, second: int) -> None:
    info = InstantInfo(at(second - 1, 1), "commit")
    metadata = RollbackMetadata(at(second), 1, 0, (info.commit_time,), {}, (info,))
    content = {
        State.REQUESTED: encode_rollback_plan(RollbackPlan(info)),
        State.COMPLETED: encode_rollback_metadata(metadata),
    }
    table.instant(at(second), ROLLBACK, content=content)


def mixed(profile: FormatProfile) -> HandTable:
    """Commits, a clean, a rollback, a replacing commit (cleaned) and a compaction, and commits again."""
    # A clock that starts anew with every table: in version 6 it says when instants completed.
    table = HandTable(profile, storage=MemoryStorage(new_name(), FakeEnv()))
    for second in (1, 2):
        commit(table, second)
    clean_at(table, 3, 1)
    rollback_at(table, 4)
    commit(table, 5, partition_to_replace_file_ids={"p": ("old",)})
    plan = encode_container("HoodieCompactionPlan", {"operations": []}, profile.avro_generation)
    compacted = CommitMetadata({}, compacted=True, operation_type="COMPACT")
    content = {State.REQUESTED: plan, State.COMPLETED: profile.commit_codec.encode(compacted, "commit")}
    table.instant(at(6), COMPACTION, content=content)
    for second in range(7, 12):
        commit(table, second)
    clean_at(table, 12, 8)
    return table


def on(table: HandTable, storage: Storage) -> TableHandle:
    return replace(table.handle, storage=storage)


def run(handle: TableHandle, options: Mapping[str, Any] = LIMITS) -> ArchiveResult | None:
    return archive(handle, resolve(dict(options)), ENGINE)


def everything(handle: TableHandle) -> dict[tuple[str, str], Instant]:
    """Completed instants, active and archived. An archived one knows when it completed."""
    found = {one.instant.logical: one.instant for one in load_history(handle.storage, handle.profile)}
    active = {one.logical: one for one in timeline_of(handle).completed()}
    assert not found.keys() & active.keys(), "an instant is in both"
    return found | active


def metadata_of(handle: TableHandle) -> dict[str, CommitMetadata]:
    """What every write did, active or archived."""
    archived = load_history(handle.storage, handle.profile)
    found = dict(
        load_archived_metadata(handle.storage, [one for one in archived if one.action in COMPLETED_WRITE_ACTIONS])
    )
    for one in timeline_of(handle).completed_writes():
        found[one.requested] = load_commit_metadata(handle.storage, handle.profile, one)
    return found


ARCHIVED_FIELDS = {attribute for attribute in COUNT_FIELDS.values() if not attribute.endswith(LATER_COUNTS)} | {
    "total_updated_records_compacted"
}
ARCHIVED_FIELDS |= {"file_id", "path", "prev_commit", "partition_path"}


def plainly(metadata: Mapping[str, CommitMetadata]) -> dict[str, CommitMetadata]:
    """What an archive of version 6 has fields for, without the empty text it adds."""
    return {
        time: replace(
            one,
            partition_to_write_stats={
                partition: tuple(_plain_stat(stat) for stat in stats)
                for partition, stats in one.partition_to_write_stats.items()
            },
            extra_metadata={name: text for name, text in one.extra_metadata.items() if name != "ROLLING_STAT"},
            compacted=False,
        )
        for time, one in metadata.items()
    }


def _plain_stat(stat: WriteStat) -> WriteStat:
    return WriteStat(**{name: getattr(stat, name) for name in ARCHIVED_FIELDS})


def test_the_oldest_leave_and_are_in_the_history_as_they_were(profile: FormatProfile) -> None:
    table = mixed(profile)
    before, said = everything(table.handle), plainly(metadata_of(table.handle))
    result = run(table.handle)
    assert result is not None
    left = [one.requested for one in timeline_of(table.handle).completed_writes()]
    assert left == [at(9), at(10), at(11)]
    gone = 8 if profile.history_form == "parquet_files" else 6  # version 6 keeps few cleans and rollbacks
    assert result.instants == gone
    assert everything(table.handle) == before
    assert plainly(metadata_of(table.handle)) == said
    assert run(table.handle) is None


@pytest.mark.parametrize("later", [V8, V9], ids=["v8", "v9"])
def test_later_versions_keep_the_very_bytes(later: FormatProfile) -> None:
    table = mixed(later)
    said = metadata_of(table.handle)
    run(table.handle)
    assert metadata_of(table.handle) == said


def test_history_rows_are_those_hudi_writes() -> None:
    table = mixed(V9)
    contents = {
        instant.action: load_instant(table.storage, V9, instant)
        for instant, _ in list_state_files(table.storage, V9)
        if instant.requested in (at(3), at(6)) and instant.state is State.REQUESTED
    }
    result = run(table.handle)
    assert result is not None
    assert result.history_file == f".hoodie/timeline/history/{at(1)}_{at(8)}_0.parquet"
    file = pq.ParquetFile(table.storage.open_input(result.history_file))
    assert file.metadata.metadata == {
        b"parquet.avro.schema": schema("HoodieLSMTimelineInstant").text.encode(),
        b"writer.model.name": b"avro",
    }
    kinds = [(column.name, column.physical_type, column.max_definition_level) for column in file.schema]
    assert kinds == [
        ("instantTime", "BYTE_ARRAY", 1),
        ("completionTime", "BYTE_ARRAY", 1),
        ("action", "BYTE_ARRAY", 1),
        ("metadata", "BYTE_ARRAY", 1),
        ("plan", "BYTE_ARRAY", 1),
        ("version", "INT32", 0),
    ]
    assert {file.metadata.row_group(0).column(n).compression for n in range(6)} == {"GZIP"}
    rows = {row["instantTime"]: row for row in file.read().to_pylist()}
    assert list(rows) == sorted(rows)
    assert rows[at(1)]["plan"] is None
    assert rows[at(3)]["plan"] == contents[CLEAN]
    assert rows[at(6)]["plan"] == contents[COMPACTION]
    assert (rows[at(6)]["action"], rows[at(6)]["completionTime"]) == ("commit", at(6, 500))
    inflight = parse_container(rows[at(5)]["plan"], "plan")
    assert inflight[0] == "HoodieCommitMetadata", "the inflight content of a replacing commit stands for its plan"
    assert {row["version"] for row in rows.values()} == {1}


def test_files_of_a_level_become_one_of_the_next_and_old_manifests_go() -> None:
    table = HandTable(V9)
    options = LIMITS | {"hoodie.timeline.compaction.batch.size": 3}
    for second in range(1, 60):
        commit(table, second)
        run(table.handle, options)
    names = sorted(file.path.rpartition("/")[2] for file in table.storage.list(V9.history_dir))
    levels = {name.split("_")[2][0] for name in names if name.endswith(".parquet")}
    assert max(levels) >= "2"
    assert len([name for name in names if name.startswith("manifest_")]) <= 6
    assert len([name for name in names if name.endswith(".parquet")]) <= 12
    assert len(everything(table.handle)) == 59
    assert len(load_history(table.storage, V9)) >= 55


def test_small_archives_become_one_where_that_is_asked_for() -> None:
    table = HandTable(V6)
    options = LIMITS | {"hoodie.archive.merge.enable": True, "hoodie.archive.merge.files.batch.size": 3}
    before = 0
    for second in range(1, 20):
        commit(table, second)
        before = max(before, len(list(table.storage.list(V6.history_dir))))
        run(table.handle, options)
    names = [file.path.rpartition("/")[2] for file in table.storage.list(V6.history_dir)]
    assert len(names) <= 3
    assert "mergeArchivePlan" not in names
    assert len(everything(table.handle)) == 19


def test_markers_of_archived_writes_go_and_others_stay(profile: FormatProfile) -> None:
    table = mixed(profile)
    for second in (1, 11):
        table.storage.put(f"{marker_dir(at(second))}/p/x.marker.CREATE", b"")
    run(table.handle)
    assert not list(table.storage.list(marker_dir(at(1))))
    assert list(table.storage.list(marker_dir(at(11))))


def test_most_calls_cost_one_listing(profile: FormatProfile) -> None:
    table = HandTable(profile)
    for second in (1, 2, 3):
        commit(table, second)
    counted = CountingStorage(table.storage)
    assert run(on(table, counted)) is None
    assert [call.op for call in counted.calls] == ["list_dir"]


def test_no_file_is_read_twice_and_empty_ones_never(profile: FormatProfile) -> None:
    table = mixed(profile)
    empty = {file.path for _, file in list_state_files(table.storage, profile) if not file.size_bytes}
    counted = CountingStorage(table.storage)
    run(on(table, counted))
    read = [call.path for call in counted.calls if call.op == "read" and call.path.startswith(profile.timeline_dir)]
    read = [path for path in read if "history" not in path]
    assert len(read) == len(set(read))
    assert not empty & set(read)


def test_a_preview_lists_the_instants_and_writes_nothing(profile: FormatProfile) -> None:
    table = mixed(profile)
    counted = CountingStorage(table.storage)
    preview = preview_archive(on(table, counted), CONFIG)
    assert {call.op for call in counted.calls} <= {"list_dir", "read"}
    result = run(table.handle)
    assert result is not None
    assert (len(preview.steps), preview.files, preview.size_bytes) == (
        result.instants,
        result.files,
        result.size_bytes,
    )
    assert as_json(result)["instants"] == result.instants
    assert "archived" in result._repr_html_()


def test_a_damaged_instant_is_told_and_nothing_leaves() -> None:
    table = mixed(V6)
    path = f"{V6.timeline_dir}/{at(2)}.commit"
    table.storage.put(path, b"{ not json")
    before = [file.path for file in table.storage.list("")]
    with pytest.raises(Corrupt):
        run(table.handle)
    assert [file.path for file in table.storage.list("")] == before


def test_nothing_is_archived_while_a_restore_is_pending() -> None:
    table = mixed(V9)
    table.instant(at(20), RESTORE, state=State.INFLIGHT)
    with pytest.raises(Unavailable, match="restore"):
        run(table.handle)


def test_a_metadata_table_is_archived_up_to_what_its_table_has(profile: FormatProfile) -> None:
    outer = MemoryStorage(f"around-{profile.table_version}")
    inner = mixed(profile)
    for file in inner.storage.list(""):
        outer.put(f".hoodie/metadata/{file.path}", inner.storage.read(file.path))
    handle = on(inner, NestedStorage(outer, ".hoodie/metadata"))
    around = HandTable(profile)
    for second in (3, 4, 5, 6):
        commit(around, second)
    result = archive(handle, CONFIG, ENGINE, data_timeline=around.timeline())
    assert result is not None
    assert timeline_of(handle).completed_writes()[0].requested == at(5)
    outer.forget()


@pytest.mark.deep
@pytest.mark.parametrize("options", [LIMITS, LIMITS | {"hoodie.timeline.compaction.batch.size": 2}])
def test_dying_at_any_call_loses_nothing_and_the_next_run_finishes(
    profile: FormatProfile, options: dict[str, Any]
) -> None:
    if profile is V6:
        options = options | {"hoodie.archive.merge.enable": True, "hoodie.archive.merge.files.batch.size": 2}

    def make() -> HandTable:
        table = mixed(profile)
        run(table.handle, options)
        for second in range(13, 18):
            commit(table, second)
        return table

    reference = make()
    before, said = everything(reference.handle), plainly(metadata_of(reference.handle))
    counted = CountingStorage(reference.storage)
    run(on(reference, counted), options)
    active = timeline_of(reference.handle).instants
    for call in range(1, counted.count + 1):
        table = make()
        with pytest.raises(Crash):
            run(on(table, CountingStorage(table.storage, crash_at=call)), options)
        known = {one.instant.logical for one in load_history(table.storage, profile)}
        known |= {one.logical for one in timeline_of(table.handle).completed()}
        assert known == before.keys(), f"lost by dying at {call}"
        first = timeline_of(table.handle).first_write_instant
        assert first is not None
        run(table.handle, options)
        assert everything(table.handle) == before, f"after dying at {call}"
        assert timeline_of(table.handle).instants == active, f"left over after dying at {call}"
        assert plainly(metadata_of(table.handle)) == said
        for second in range(18, 23):  # a merge of archives is settled by the next run that has something to do
            commit(table, second)
        run(table.handle, options)
        assert len(load_history(table.storage, profile)) == len(_rows(table)), f"twice after dying at {call}"
        assert everything(table.handle).keys() > before.keys()
        assert not [one for one in table.storage.list(profile.history_dir) if one.path.endswith("Plan")]
        table.storage.forget()


def _rows(table: HandTable) -> list[object]:
    """Completed entries of the history, without putting together those of one instant."""
    if table.profile.history_form == "parquet_files":
        from hoodie.timeline.lsm_manifest import load_manifest  # noqa: PLC0415

        folder = table.profile.history_dir
        files = load_manifest(table.storage, folder).files
        return [
            time
            for file in files
            for time in pq.read_table(table.storage.open_input(f"{folder}/{file.name}"))["instantTime"].to_pylist()
        ]
    from hoodie.timeline.log_archive import _instants, list_archives  # noqa: PLC0415

    return [
        one
        for file in list_archives(table.storage, table.profile.history_dir)
        for one in _instants(table.storage, file)
    ]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_archiving_a_table_of_hudi_keeps_what_it_says(table: GoldenTable, tmp_path: Path) -> None:
    handle = open_handle(str(table.unpack(tmp_path)), {})
    before, said = everything(handle), plainly(metadata_of(handle))
    handle = replace(handle, config=handle.config.with_changes({}, drop=["hoodie.table.metadata.partitions"]))
    limits = {"hoodie.keep.min.commits": 1, "hoodie.keep.max.commits": 1} | BY_VERSIONS
    result = run(handle, limits | {"hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED"})
    assert everything(handle) == before
    assert plainly(metadata_of(handle)) == said
    if result is not None and result.history_file is not None:
        assert handle.storage.head(result.history_file).size_bytes
    assert run(handle, limits) is None
