"""A rollback takes log blocks back in slices that are there, and makes none: a slice of a command block alone would be
the newest of its group to Hudi 0.15, which gives no row of the group then, or a second group of a bucket (version 6).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.services.rollback.plan import newest_bases
from hoodie.spec import COMPACTION, marker_dir, parse_log_file_name
from hoodie.state.handle import load_handle
from hoodie.table import Table
from hoodie.testing.counting_storage import Call, CountingStorage, Crash
from hoodie.testing.lake import Lake, logged_lake, row, table_of

METADATA = ("true", "false")
NOW = {"hoodie.compact.inline.max.delta.commits": "1"}


def made(metadata: str, **options: str) -> Lake:
    given = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false", "hoodie.metadata.enable": metadata}
    lake = logged_lake(6, **given, **options)
    lake.upsert(row("a"), row("b"))
    lake.upsert(row("x", part="q"))
    return lake


def planned(metadata: str) -> Lake:
    """One with a log file that a compaction is planned for."""
    lake = made(metadata)
    lake.upsert(row("a", "log", 2))
    lake.table.services.schedule_compaction(**NOW)
    return lake


def killed(make: Callable[[], Lake], changed: dict[str, object], before: Callable[[Call], bool]) -> Lake:
    """A lake whose writer was killed just before the first such call."""

    def written(lake: Lake, crash_at: int | None) -> CountingStorage:
        storage = CountingStorage(lake.storage, crash_at=crash_at)
        table = Table(load_handle(storage, SystemEnv()), lake.options, LocalEngine(1))
        try:
            table.upsert(table_of([changed]))
        except Crash:
            assert crash_at is not None
        return storage

    at = next(call.n for call in written(make(), None).calls if before(call))
    lake = make()
    written(lake, at)
    return lake


def is_completion(call: Call) -> bool:
    return call.op == "create" and call.path.endswith(".deltacommit") and "/metadata/" not in call.path


def slices(lake: Lake) -> set[tuple[str, str]]:
    """File ids and instants that names of log files have."""
    found = (parse_log_file_name(file.path.rpartition("/")[2]) for p in "pq" for file in lake.storage.list_dir(p).files)
    return {(name.file_id, name.instant) for name in found if name is not None}


@pytest.mark.parametrize("metadata", METADATA)
@pytest.mark.parametrize("whose", ["a group without that slice", "no group"])
def test_a_marker_of_a_slice_that_is_not_there_makes_none(metadata: str, whose: str) -> None:
    lake = killed(lambda: made(metadata), row("x", "dead", 5, part="q"), is_completion)
    (pending,) = lake.table.timeline().pending()
    group, other = {
        "a group without that slice": next(
            (one.file_id, pending.requested[:-1] + "0") for one in lake.table.files() if one.partition == "p"
        ),
        "no group": ("00000000-1111-4222-8333-444444444444-0", "20000101000000000"),
    }[whose]
    lake.storage.put(f"{marker_dir(pending.requested)}/p/.{group}_{other}.log.1_0-7-7.marker.APPEND", b"")
    lake.upsert(row("x", "new", 6, part="q"))
    assert (group, other) not in slices(lake)
    assert lake.values() == {"a": "a", "b": "a", "x": "new"}
    lake.ensure_sound()


@pytest.mark.parametrize("metadata", METADATA)
def test_a_plan_that_was_taken_off_after_a_writer_died_gets_no_slice(metadata: str) -> None:
    """The writer died between its marker and its log file, which would have lain on top of the plan."""

    lake = killed(
        lambda: planned(metadata),
        row("a", "dead", 5),
        lambda call: call.op == "open_output" and call.path.startswith("p/."),
    )
    (plan,) = (one for one in lake.table.timeline().pending() if one.action == COMPACTION)
    lake.table.services.unschedule_compaction(plan.requested)
    lake.upsert(row("x", "new", 6, part="q"))
    assert plan.requested not in {instant for _, instant in slices(lake)}
    assert lake.values() == {"a": "log", "b": "a", "x": "new"}
    lake.ensure_sound()


@pytest.mark.parametrize("metadata", METADATA)
def test_blocks_on_top_of_a_plan_are_taken_back(metadata: str) -> None:
    """The slice is there by the plan alone until the writer's log file is."""

    lake = killed(lambda: planned(metadata), row("a", "dead", 5), is_completion)
    (plan,) = (one for one in lake.table.timeline().pending() if one.action == COMPACTION)
    lake.upsert(row("x", "new", 6, part="q"))
    assert plan.requested in {instant for _, instant in slices(lake)}
    assert lake.values() == {"a": "log", "b": "a", "x": "new"}
    lake.table.services.compact()
    assert lake.values() == {"a": "log", "b": "a", "x": "new"}
    lake.ensure_sound()


@pytest.mark.parametrize("how", ["by name", "no markers", "markers"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("metadata", METADATA)
def test_a_file_in_a_folder_that_is_no_partition_yet_goes_with_its_write(
    version: int, kind: str, how: str, metadata: str
) -> None:
    """It becomes visible where nobody can tell any more that its write did not complete: behind a savepoint."""
    options = {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.metadata.enable": metadata,
        "hoodie.rollback.using.markers": str(how != "by name").lower(),
    }

    def saved() -> Lake:
        lake = Lake(version, options)
        lake.upsert(row("a"))
        lake.table.savepoints.create(user="u")
        return lake

    lake = killed(
        saved, row("n", "dead", 5, part="new"), lambda call: call.path.startswith("new/.hoodie_partition_metadata")
    )
    (pending,) = lake.table.timeline().pending()
    assert [file.path for file in lake.storage.list_dir("new").files if file.path.endswith(".parquet")]
    if how == "no markers":
        lake.storage.delete_dir(marker_dir(pending.requested))
    lake.upsert(row("m", "ok", 6, part="new"))
    for seen in METADATA:
        read = Table.open(lake.uri, options={**lake.options, "hoodie.metadata.enable": seen})
        rows = read.scan(columns=["id", "v"]).read_all().to_pylist()
        assert sorted((one["id"], one["v"]) for one in rows) == [("a", "a"), ("m", "ok")]
    lake.ensure_sound()


def test_base_files_of_writes_that_did_not_complete_begin_no_slice() -> None:
    """They go with their own rollback, and a command block in their slice would stay alone."""
    group = "00000000-1111-4222-8333-444444444444-0"
    old, dead, own, late = ("20260101000000000", "20260102000000000", "20260103000000000", "20260104000000000")
    paths = [f"p/{group}_0-0-0_{instant}.parquet" for instant in (old, dead, late)]
    committed = {old, late}.__contains__
    assert newest_bases(paths, {}, own, committed) == {("p", group): old}
    assert newest_bases([*paths, f"p/{group}_0-0-0_{own}.parquet"], {}, own, committed) == {("p", group): own}
    assert newest_bases(paths, {("p", group): dead}, own, committed) == {("p", group): dead}  # a plan reserves it
