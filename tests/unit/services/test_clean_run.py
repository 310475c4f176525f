"""Cleaning for real: files go, readers see no difference, what died is finished, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from hoodie.config import Config, resolve
from hoodie.engine import LocalEngine
from hoodie.errors import Corrupt
from hoodie.present import as_json
from hoodie.query import ReadOptions, load_read_plan, run_read
from hoodie.services.cleaning.clean import CleanResult, clean, preview_clean
from hoodie.services.rollback.savepoint import create_savepoint, delete_savepoint
from hoodie.spec import (
    CLEAN,
    COMMIT,
    V6,
    V9,
    CleanPlan,
    FormatProfile,
    Instant,
    State,
    encode_clean_plan,
    parse_clean_metadata,
    parse_clean_plan,
)
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.storage import Storage
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.hand_table import HandTable, at
from hoodie.timeline import instant_path, load_instant, load_requested

ENGINE = LocalEngine(2)
KEEP_2 = resolve({"hoodie.clean.commits.retained": 2})


def row(key: str, qty: int, part: str) -> dict[str, object]:
    return {"id": key, "part": part, "qty": qty}


def write(table: HandTable, second: int, part: str, file_id: str, **options: object) -> None:
    before = table.timeline().completed_writes()
    prev = before[-1].requested if before else "null"
    files = {(part, file_id): [row(file_id, second, part)]}
    table.commit(at(second), files, stats={"prev_commit": prev}, completed=at(second, 500), **options)  # type: ignore[arg-type]


def two_partitions(profile: FormatProfile, commits: int = 6) -> HandTable:
    """Commits 1 to n, in turns to p (odd) and q (even). The clock of the files says when they were made, long after."""
    table = HandTable(profile)
    for second in range(1, commits + 1):
        write(table, second, "pq"[(second + 1) % 2], "fg"[(second + 1) % 2])
    return table


def rows_at(handle: TableHandle, as_of: str | None = None) -> list[tuple[object, object]]:
    options = ReadOptions(as_of=as_of) if as_of else ReadOptions()
    plan = load_read_plan(handle.storage, handle.config, timeline_of(handle), options)
    rows = run_read(plan, handle.storage).read_all()
    return sorted(zip(rows["id"].to_pylist(), rows["qty"].to_pylist(), strict=True))


def data_files(storage: Storage) -> list[str]:
    return [file.path for file in storage.list("") if file.path.endswith(".parquet") and file.path[0] != "."]


def cleaned(handle: TableHandle, config: Config = KEEP_2) -> CleanResult:
    done = clean(handle, config, ENGINE)
    assert done is not None
    return done


def on(table: HandTable, storage: Storage) -> TableHandle:
    return replace(table.handle, storage=storage)


def the_clean(handle: TableHandle) -> Instant:
    (found,) = [one for one in timeline_of(handle).instants if one.action == CLEAN]
    return found


def test_old_slices_go_and_retained_states_stay_readable(profile: FormatProfile) -> None:
    table = two_partitions(profile)
    before = {time: rows_at(table.handle, time) for time in (at(5), at(6))}
    done = cleaned(table.handle)
    assert (done.files, done.earliest, done.partitions) == (2, at(5), ("p", "q"))
    left = [("p", "f", 3), ("p", "f", 5), ("q", "g", 4), ("q", "g", 6)]
    assert data_files(table.storage) == [table.path_of(at(second), part, name) for part, name, second in left]
    assert {time: rows_at(table.handle, time) for time in (at(5), at(6))} == before
    assert rows_at(table.handle) == [("f", 5), ("g", 6)]


def test_what_is_stored_is_plan_and_metadata_of_the_version(profile: FormatProfile) -> None:
    table = two_partitions(profile)
    cleaned(table.handle)
    instant = the_clean(table.handle)
    plan = parse_clean_plan(load_requested(table.storage, profile, instant), "plan")
    inflight = load_instant(table.storage, profile, replace(instant, state=State.INFLIGHT, completed=None))
    metadata = parse_clean_metadata(load_instant(table.storage, profile, instant), "metadata")
    assert plan.earliest is not None
    assert (plan.earliest.requested, plan.earliest.action) == (at(5), COMMIT)
    assert all(name.startswith(f"{table.storage.uri}/") for names in plan.files.values() for name in names)
    assert bool(inflight) == (profile.table_version == 6)
    assert metadata.start_time == instant.requested
    assert metadata.earliest == at(5)
    assert metadata.last_completed == at(6)
    assert metadata.partitions["p"].deleted == metadata.partitions["p"].planned
    assert metadata.total_files_deleted == sum(len(names) for names in plan.files.values())


def test_a_second_clean_waits_for_a_write_and_force_does_not(profile: FormatProfile) -> None:
    table = two_partitions(profile)
    cleaned(table.handle)
    assert clean(table.handle, KEEP_2, ENGINE) is None
    keep_1 = resolve({"hoodie.clean.commits.retained": 1})
    assert clean(table.handle, keep_1, ENGINE) is None
    forced = clean(table.handle, keep_1, ENGINE, forced=True)
    assert forced is not None
    assert forced.earliest == at(6)


def test_a_clean_waits_for_as_many_commits_as_asked(profile: FormatProfile) -> None:
    table = two_partitions(profile)
    every_third = resolve({"hoodie.clean.commits.retained": 2, "hoodie.clean.trigger.max.commits": 3})
    cleaned(table.handle, every_third)
    for second in range(7, 10):
        assert clean(table.handle, every_third, ENGINE) is None
        assert "fewer than 3 commits" in " ".join(preview_clean(table.handle, every_third).notes)
        write(table, second, "p", "f")
    assert cleaned(table.handle, every_third).earliest == at(8)


def test_nothing_to_remove_leaves_no_instant() -> None:
    table = two_partitions(V9, 2)
    assert clean(table.handle, KEEP_2, ENGINE) is None
    assert all(one.action != CLEAN for one in table.timeline().instants)


def test_an_empty_clean_is_recorded_where_that_is_asked_for() -> None:
    table = HandTable(V9)
    for second in (1, 2, 3):
        write(table, second, "p", f"f{second}")
    config = resolve({"hoodie.clean.commits.retained": 2, "hoodie.write.empty.clean.interval.hours": 1})
    done = cleaned(table.handle, config)
    assert (done.files, done.earliest) == (0, at(2))
    write(table, 4, "p", "f4")
    assert clean(table.handle, config, ENGINE) is None, "the last one is fresh"


def test_later_cleans_list_only_partitions_that_were_touched(profile: FormatProfile) -> None:
    table = two_partitions(profile)
    cleaned(table.handle)
    for second in (7, 8, 9):
        write(table, second, "p", "f")
    counted = CountingStorage(table.storage)
    done = cleaned(on(table, counted))
    assert done.earliest == at(8)
    listed = {call.path for call in counted.calls if call.op == "list_dir"}
    assert "p" in listed
    assert "" not in listed
    read = [call.path for call in counted.calls if call.op == "read" and f"{at(1)[:-5]}" in call.path]
    commits = [path for path in read if path.endswith(".commit")]
    assert len(commits) == len(set(commits)) == 3, "those of the window, once each"


def test_a_removed_savepoint_makes_it_look_everywhere_again(profile: FormatProfile) -> None:
    table = two_partitions(profile, 8)
    create_savepoint(table.handle, Config(), at(2))
    saved = table.path_of(at(2), "q", "g")
    cleaned(table.handle)
    assert saved in data_files(table.storage)
    delete_savepoint(table.handle, at(2))
    write(table, 9, "p", "f")
    cleaned(table.handle)
    assert saved not in data_files(table.storage)


def test_an_emptied_partition_is_dropped_with_its_metafile(profile: FormatProfile) -> None:
    table = HandTable(profile)
    write(table, 1, "gone", "g")
    table.commit(at(2), {("p", "f"): [row("f", 2, "p")]}, replaces={"gone": ("g",)}, completed=at(2, 500))
    for second in (3, 4):
        write(table, second, "p", "f")
    done = cleaned(table.handle)
    assert done.dropped_partitions == ("gone",)
    assert not list(table.storage.list("gone"))
    metadata = parse_clean_metadata(load_instant(table.storage, profile, the_clean(table.handle)), "m")
    assert metadata.partitions["gone"].is_partition_deleted


def test_a_partition_that_got_data_meanwhile_is_not_dropped(profile: FormatProfile) -> None:
    table = two_partitions(profile)
    table.put_metafile(at(1), "r")
    plan = CleanPlan("KEEP_LATEST_COMMITS", partitions=("r",))
    pending(table, profile, plan)
    write(table, 7, "r", "h")
    done = cleaned(table.handle, resolve({}))
    assert done.dropped_partitions == ()
    assert ("h", 7) in rows_at(table.handle)


def pending(table: HandTable, profile: FormatProfile, plan: CleanPlan, second: int = 6) -> None:
    data = encode_clean_plan(plan, profile.avro_generation)
    table.instant(at(second, 900), CLEAN, state=State.INFLIGHT, content={State.REQUESTED: data})


def full_names(table: HandTable, files: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {part: tuple(map(table.storage.absolute, paths)) for part, paths in files.items()}


def test_a_pending_clean_is_finished_before_a_new_one(profile: FormatProfile) -> None:
    table = two_partitions(profile)
    doomed, gone = table.path_of(at(1), "p", "f"), f"p/f_0-1-2_{at(0)}.parquet"
    pending(table, profile, CleanPlan("KEEP_LATEST_COMMITS", files=full_names(table, {"p": (doomed, gone)})))
    done = cleaned(table.handle, resolve({"hoodie.clean.commits.retained": 2, "hoodie.clean.multiple.enabled": True}))
    assert done.finished == (at(6, 900),)
    assert all(one.is_completed for one in table.timeline().instants)
    assert doomed not in data_files(table.storage)
    assert done.files == 3, "two of the pending plan, one of them gone before, and one of the new one"


def test_a_pending_clean_leaves_what_is_newest_or_saved_by_now(profile: FormatProfile) -> None:
    table = two_partitions(profile)
    newest, saved = table.path_of(at(5), "p", "f"), table.path_of(at(2), "q", "g")
    create_savepoint(table.handle, Config(), at(2))
    files = full_names(table, {"p": (newest,), "q": (saved,)})
    pending(table, profile, CleanPlan("KEEP_LATEST_COMMITS", files=files))
    clean(table.handle, resolve({"hoodie.clean.commits.retained": 50}), ENGINE)
    assert {newest, saved} <= set(data_files(table.storage))
    metadata = parse_clean_metadata(load_instant(table.storage, profile, the_clean(table.handle)), "m")
    assert metadata.total_files_deleted == 0


@pytest.mark.parametrize(
    "name",
    ["/elsewhere/p/../secret.parquet", "p/notes.txt", "q/f_0-1-2_20260102000001000.parquet", "f_0-1-2_1.parquet"],
)
def test_a_plan_that_names_something_else_is_refused_before_any_delete(name: str) -> None:
    table = two_partitions(V9)
    good = table.path_of(at(1), "p", "f")
    files = {"p": (table.storage.absolute(good), f"{table.storage.uri}/{name}")}
    pending(table, V9, CleanPlan("KEEP_LATEST_COMMITS", files=files))
    with pytest.raises(Corrupt, match="no data file of partition"):
        clean(table.handle, KEEP_2, ENGINE)
    assert good in data_files(table.storage)


def test_an_empty_completed_clean_is_done_again(profile: FormatProfile) -> None:
    table = two_partitions(profile)
    cleaned(table.handle)
    first = the_clean(table.handle)
    table.storage.put(instant_path(profile, first), b"")
    done = cleaned(table.handle)
    assert done.instant == first.requested
    metadata = parse_clean_metadata(load_instant(table.storage, profile, the_clean(table.handle)), "m")
    assert (metadata.earliest, metadata.total_files_deleted) == (at(5), done.files)


def test_a_pending_clean_without_plan_is_forgotten(profile: FormatProfile) -> None:
    table = two_partitions(profile, 2)
    table.instant(at(6, 900), CLEAN, state=State.INFLIGHT)
    assert clean(table.handle, KEEP_2, ENGINE) is None
    assert all(one.action != CLEAN for one in table.timeline().instants)


def test_the_instant_of_a_clean_can_be_given() -> None:
    table = two_partitions(V6)
    done = clean(table.handle, KEEP_2, ENGINE, instant=f"{at(9)}002")
    assert done is not None
    assert done.instant == f"{at(9)}002"


def test_a_preview_tells_files_bytes_and_reasons_and_writes_nothing(profile: FormatProfile) -> None:
    table = two_partitions(profile)
    counted = CountingStorage(table.storage)
    preview = preview_clean(on(table, counted), KEEP_2)
    assert {call.op for call in counted.calls} <= {"list_dir", "list", "read", "head", "read_range", "open_input"}
    sizes = {file.path: file.size_bytes for file in table.storage.list("")}
    done = cleaned(table.handle)
    assert preview.files == done.files
    assert preview.size_bytes == sum(sizes[path] for step in preview.steps for path in step.paths)
    assert all(step.reason for step in preview.steps)
    assert as_json(done)["files"] == preview.files
    assert "clean" in done._repr_html_()


@pytest.mark.parametrize("with_partition", [False, True])
def test_dying_at_any_call_leaves_a_table_that_the_next_clean_finishes(
    profile: FormatProfile, *, with_partition: bool
) -> None:
    def make() -> HandTable:
        table = two_partitions(profile)
        if with_partition:
            write(table, 7, "gone", "h")
            table.commit(at(8), {("p", "f"): [row("f", 8, "p")]}, replaces={"gone": ("h",)}, completed=at(8, 500))
            for second in (9, 10):
                write(table, second, "p", "f")
        return table

    reference = make()
    counted = CountingStorage(reference.storage)
    clean(on(reference, counted), KEEP_2, ENGINE)
    expected, rows = data_files(reference.storage), rows_at(reference.handle)
    for call in range(1, counted.count + 1):
        table = make()
        with pytest.raises(Crash):
            clean(on(table, CountingStorage(table.storage, crash_at=call)), KEEP_2, LocalEngine(1))
        assert rows_at(table.handle) == rows, call
        clean(table.handle, KEEP_2, ENGINE)
        assert data_files(table.storage) == expected, call
        assert rows_at(table.handle) == rows, call
        assert all(one.is_completed for one in table.timeline().instants), call
        assert len([one for one in table.timeline().instants if one.action == CLEAN]) == 1, call
        table.storage.forget()
