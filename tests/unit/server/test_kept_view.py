"""A kept view becomes the fresh one from the metadata of new instants: folders of data are not listed again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hoodie.fileview import FileSystemView, open_file_view
from hoodie.server.file_changes import write_changes
from hoodie.server.kept_view import KeptView, load_into, open_view, synced
from hoodie.spec import (
    CLEAN,
    ROLLBACK,
    CommitMetadata,
    WriteStat,
    encode_clean_metadata,
    encode_rollback_metadata,
    parse_clean_metadata,
    parse_rollback_metadata,
)
from hoodie.state.handle import load_handle, timeline_of
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.lake import Awake, Lake, logged_lake, row
from hoodie.testing.view_law import ensure_view_is_kept
from hoodie.timeline import instant_path, load_commit_metadata, load_instant


@pytest.fixture(params=[False, True], ids=["folders", "metadata"])
def lake(request: pytest.FixtureRequest, version: int) -> Lake:
    made = logged_lake(version, **{"hoodie.metadata.enable": str(request.param).lower()})
    made.upsert(row("a", part="p"), row("b", part="q"))
    return made


def opened(lake: Lake) -> KeptView:
    return load_into(open_view(lake.handle()), None)


def listed_by_sync(view: KeptView, lake: Lake) -> list[str]:
    counted = CountingStorage(lake.storage)
    now = synced(view, load_handle(counted, Awake()))
    assert now.loaded()
    assert now.timeline == open_view(lake.handle()).timeline
    return [call.path for call in counted.calls if call.op in ("list_dir", "list")]


def test_commits_of_all_kinds_are_read_and_nothing_else_is_listed(lake: Lake) -> None:
    view = opened(lake)
    for step in (
        lambda: lake.upsert(row("a", "new", ts=2, part="p")),
        lambda: lake.upsert(row("c", part="new partition")),
        lake.table.services.compact,
        lambda: lake.upsert(row("a", "newer", ts=3, part="p")),
        lambda: lake.write("insert_overwrite", [row("d", part="q")]),
        lambda: lake.table.services.clean(options={"hoodie.clean.commits.retained": 1}),
    ):
        step()
        profile = lake.handle().profile
        assert listed_by_sync(view, lake) == [profile.timeline_dir]
        view = ensure_view_is_kept(view, lake.storage)


def test_many_commits_are_caught_up_with_at_once(lake: Lake) -> None:
    view = opened(lake)
    for turn in range(4):
        lake.upsert(row("a", f"v{turn}", ts=turn + 2, part="p"), row(f"n{turn}", part="q"))
    lake.table.services.compact()
    assert len(listed_by_sync(view, lake)) == 1
    ensure_view_is_kept(view, lake.storage)


def test_a_pending_compaction_reserves_a_slice_and_gives_it_back(lake: Lake) -> None:
    lake.upsert(row("a", "new", ts=2, part="p"))
    view = opened(lake)
    lake.table.services.schedule_compaction()
    view = ensure_view_is_kept(view, lake.storage)
    assert [group.pending_compaction is not None for group in view.groups("p").found] == [True]
    lake.upsert(row("a", "newer", ts=3, part="p"))
    view = ensure_view_is_kept(view, lake.storage)
    lake.table.services.compact()
    view = ensure_view_is_kept(view, lake.storage)
    assert [group.pending_compaction for group in view.groups("p").found] == [None]


def test_a_replacement_that_is_rolled_back_leaves_the_old_group(lake: Lake) -> None:
    view = opened(lake)
    old = view.groups("q").found
    made = lake.write("insert_overwrite", [row("d", part="q")])
    view = ensure_view_is_kept(view, lake.storage)
    assert [group.group_id for group in view.groups("q").live()] != [group.group_id for group in old]
    lake.table.services.rollback(made.instant)
    view = ensure_view_is_kept(view, lake.storage)
    assert [group.group_id for group in view.groups("q").live()] == [group.group_id for group in old]


def test_a_restore_is_loaded_anew(lake: Lake) -> None:
    saved = lake.table.savepoints.create()
    lake.upsert(row("a", "new", ts=2, part="p"))
    view = opened(lake)
    lake.table.services.restore(saved.instant)
    assert synced(view, lake.handle()).loaded() == ()
    ensure_view_is_kept(view, lake.storage)


def test_partitions_that_nobody_asked_for_are_not_loaded(lake: Lake) -> None:
    view = load_into(open_view(lake.handle()), ["p"])
    lake.upsert(row("a", "new", ts=2, part="p"), row("b", "new", ts=2, part="q"))
    view = synced(view, lake.handle())
    assert view.loaded() == ("p",)
    assert view.groups("q").found == ()


def test_names_that_are_no_partitions_are_not_kept(lake: Lake) -> None:
    view = load_into(open_view(lake.handle()), ["p", "ghost", "p/ghost"])
    assert view.loaded() == ("p",)
    assert load_into(view, None).loaded() == load_into(load_into(view, None), ["ghost"]).loaded() == ("p", "q")


def test_writes_that_were_archived_unseen_are_not_missed(lake: Lake) -> None:
    lake.table.savepoints.create()
    view = opened(lake)
    options = {
        "hoodie.clean.commits.retained": 1,
        "hoodie.keep.min.commits": 2,
        "hoodie.keep.max.commits": 3,
        "hoodie.commits.archival.batch": 1,
        "hoodie.archive.beyond.savepoint": "true",
        "hoodie.archive.automatic": "true",
    }
    for turn in range(8):
        lake.write("insert", [row(f"k{turn}", part=f"q{turn}")], options)
    assert len(ensure_view_is_kept(view, lake.storage).loaded()) == 10


def test_a_commit_that_is_taken_back_shows_no_files(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    made = lake.upsert(row("a", "new", ts=2, part="p"))
    view = opened(lake)
    with monkeypatch.context() as patch:
        patch.setattr("hoodie.services.rollback.rollback.roll_back_files", _die)
        with pytest.raises(KeyboardInterrupt):
            lake.table.services.rollback(made.instant)
    view = ensure_view_is_kept(view, lake.storage)
    lake.upsert(row("c", part="p"))
    ensure_view_is_kept(view, lake.storage)


def _die(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_write_that_ends_while_folders_are_listed_leaves_the_partition_unsettled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = logged_lake(6)
    lake.upsert(row("a", part="p"))
    view = open_view(lake.handle())
    running = ["a writer"]

    def listed(*arguments: Any, **named: Any) -> FileSystemView:
        running.clear()
        return open_file_view(*arguments, **named)

    monkeypatch.setattr("hoodie.server.kept_view._may_be_written", lambda _: bool(running))
    monkeypatch.setattr("hoodie.server.kept_view.open_file_view", listed)
    assert load_into(view, ["p"]).unsettled == {"p"}


def test_a_view_is_not_changed_by_what_comes_after_it(lake: Lake) -> None:
    view = opened(lake)
    before = view.groups(None).found
    lake.upsert(row("a", "new", ts=2, part="p"))
    synced(view, lake.handle())
    assert view.groups(None).found == before


def test_log_files_that_a_write_has_no_stats_of_make_the_partition_unclear() -> None:
    at = "20260101000000000"
    stat = WriteStat(
        file_id="f",
        path=f"p/.f_{at}.log.1_0-1-2",
        partition_path="p",
        log_version=1,
        log_files=(f".f_{at}.log.1_0-1-2",),
    )
    whole = write_changes(at, CommitMetadata(partition_to_write_stats={"p": (stat,)}))
    assert not whole.partitions["p"].is_unclear
    more = stat._replace(log_files=(*(stat.log_files or ()), f".f_{at}.log.2_0-1-2"))
    assert write_changes(at, CommitMetadata(partition_to_write_stats={"p": (more,)})).partitions["p"].is_unclear


def test_what_a_clean_says_it_could_not_delete_is_looked_at(lake: Lake) -> None:
    """Hudi says so of files that were gone already, when it carries a clean out again."""
    lake.write("insert_overwrite", [row("c", part="p")])
    for number in range(3):
        lake.upsert(row(f"x{number}", part="q"))
    view = opened(lake)
    lake.table.services.clean(options={"hoodie.clean.commits.retained": 1})
    handle = lake.handle()
    (at,) = (one for one in timeline_of(handle).completed() if one.action == CLEAN)
    path = instant_path(handle.profile, at)
    said = parse_clean_metadata(load_instant(lake.storage, handle.profile, at), path)
    assert any(done.deleted for done in said.partitions.values())
    again = {name: replace(done, deleted=(), failed=done.deleted) for name, done in said.partitions.items()}
    data = encode_clean_metadata(replace(said, partitions=again), handle.profile.avro_generation)
    lake.storage.put(path, data)
    ensure_view_is_kept(view, lake.storage)


def test_what_a_rollback_says_it_could_not_delete_is_looked_at(lake: Lake) -> None:
    lake.write("insert", [row("n", part="p")])
    target = lake.table.timeline().completed_writes()[-1].requested
    view = opened(lake)
    lake.table.services.rollback(target)
    handle = lake.handle()
    (at,) = (one for one in timeline_of(handle).completed() if one.action == ROLLBACK)
    path = instant_path(handle.profile, at)
    said = parse_rollback_metadata(load_instant(lake.storage, handle.profile, at), path)
    again = {
        name: replace(done, success_delete_files=(), failed_delete_files=done.success_delete_files)
        for name, done in said.partitions.items()
    }
    lake.storage.put(path, encode_rollback_metadata(replace(said, partitions=again)))
    assert not synced(view, handle).has("p")
    ensure_view_is_kept(view, lake.storage)


def test_a_partition_that_only_a_rollback_names_is_none(lake: Lake) -> None:
    view = opened(lake)
    lake.upsert(row("n", part="new"))
    target = lake.table.timeline().completed_writes()[-1].requested
    lake.table.services.rollback(target)
    assert load_into(synced(view, lake.handle()), None).loaded() == ("p", "q")


def test_a_write_that_was_taken_back_and_done_anew_between_two_looks_is_read_again() -> None:
    """Completed at another time, it has another file of the same group, and one in another partition than before."""
    lake = Lake(9, options={"hoodie.metadata.enable": "false"})
    lake.upsert(row("a", part="p"), row("c", part="r"), row("d", part="s"), row("e", part="untouched"))
    lake.upsert(row("a", "first", ts=2, part="p"), row("d", "first", ts=2, part="s"))
    view, handle = opened(lake), lake.handle()
    first = timeline_of(handle).completed_writes()[-1]
    known = load_commit_metadata(lake.storage, handle.profile, first)
    ((_, stat),) = (one for one in known.write_stats() if one[0] == "p")
    (gone,) = (other for name, other in known.write_stats() if name == "s")
    assert stat.path
    assert gone.path
    data = lake.storage.read(stat.path)
    again = [
        stat._replace(path=stat.path.replace("_0-", "_7-", 1)),
        stat._replace(path=f"r/{stat.path[2:]}", partition_path="r"),
    ]
    for old in (stat.path, gone.path, instant_path(handle.profile, first)):
        lake.storage.delete(old)
    for one in again:
        assert one.path
        lake.storage.put(one.path, data)
    done = replace(first, completed=str(int(first.completed or "0") + 5000))
    metadata = replace(known, partition_to_write_stats={str(one.partition_path): (one,) for one in again})
    lake.storage.put(instant_path(handle.profile, done), handle.profile.commit_codec.encode(metadata, done.action))
    assert synced(view, lake.handle()).loaded() == ("untouched",)
    ensure_view_is_kept(view, lake.storage)


def test_what_a_clean_took_stays_away_though_its_write_seems_to_be_completed_later() -> None:
    lake = Lake(9, {"hoodie.clean.automatic": "false", "hoodie.metadata.enable": "false"})
    lake.upsert(row("a", part="p"))
    view = opened(lake)
    for number in range(3):
        lake.upsert(row("a", f"v{number}", ts=number + 2, part="p"))
    lake.table.services.clean(options={"hoodie.clean.commits.retained": 1})
    timeline = timeline_of(lake.handle())
    (clean,) = (one for one in timeline.completed() if one.action == CLEAN)
    write = timeline.completed_writes()[1]
    later = replace(write, completed=f"{int(clean.completed or '') + 1000}")
    data = load_instant(lake.storage, timeline.profile, write)
    lake.storage.put(instant_path(timeline.profile, later), data)
    lake.storage.delete(instant_path(timeline.profile, write))
    ensure_view_is_kept(view, lake.storage)
