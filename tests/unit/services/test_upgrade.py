"""Tables in another version: rows of every query, names, history; dying in the middle; what stands in the way."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.errors import Invalid, Unavailable, Unsupported
from hoodie.layout import open_table_storage
from hoodie.present import as_json
from hoodie.services.resizing.resize import resize_buckets
from hoodie.services.upgrading.timeline import plan_completions
from hoodie.services.upgrading.upgrade import UpgradeResult, preview_upgrade, upgrade
from hoodie.spec import CLEAN, COMMIT, INDEXING, Instant, State, keys, parse_log_file_name
from hoodie.state.handle import load_handle
from hoodie.storage import Storage
from hoodie.table import Table
from hoodie.testing.counting_storage import Call, CountingStorage, Crash
from hoodie.testing.hand_table import at
from hoodie.testing.lake import Lake, row, table_of
from hoodie.timeline import has_history, instant_path, load_history, store_table_config

pytestmark = pytest.mark.sampled(4)

PAIRS = list(itertools.permutations((6, 8, 9), 2))
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
CONFIG = resolve({})
ENGINE = LocalEngine(1)


def lake_of(version: int, kind: str, **options: Any) -> Lake:
    """Three commits, a savepoint of the second; on merge-on-read tables log files in several slices."""
    lake = Lake(version, {"hoodie.datasource.write.table.type": kind, "hoodie.metadata.enable": "false", **options})
    lake.upsert(row("a"), row("b"), row("c", part="q"))
    lake.upsert(row("a", "a2", 2), row("d"))
    lake.table.savepoints.create(user="u")
    if kind == "MERGE_ON_READ":
        lake.table.services.compact()
    lake.upsert(row("b", "b3", 3), row("a", "a3", 3))
    lake.write("delete", [row("c", part="q")])
    return lake


ROWS = {"a": "a3", "b": "b3", "d": "a"}


def change(lake: Lake, to: int, storage: Storage | None = None, **options: Any) -> UpgradeResult | None:
    handle = load_handle(storage or lake.storage, SystemEnv())
    return upgrade(handle, resolve(options), ENGINE, to)


def reopened(lake: Lake, to: int) -> Lake:
    again = Lake(to, {**lake.options, "hoodie.write.table.version": to}, lake.uri)
    assert again.table.config.table_version == to
    return again


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_every_query_gives_the_same_rows_in_the_new_version(before: int, after: int, kind: str) -> None:
    lake = lake_of(before, kind)
    times = [one.requested for one in lake.table.timeline().completed_writes()]
    seen = {time: lake.values(as_of=time) for time in times}
    assert lake.values() == ROWS
    (savepoint,) = lake.table.savepoints
    done = change(lake, after)
    assert done is not None
    assert (done.before, done.after) == (before, after)
    assert as_json(done)["steps"]
    assert str(after) in done._repr_html_()
    lake = reopened(lake, after)
    assert lake.values() == ROWS
    assert {time: lake.values(as_of=time) for time in times} == seen
    lake.ensure_sound()
    (again,) = lake.table.savepoints
    assert again.instant == savepoint.instant
    assert again.paths <= set(lake.files())
    timeline = lake.table.timeline()
    assert timeline.pending() == ()
    requested = [one.requested for one in timeline.completed_writes()]
    assert requested[: len(times)] == times
    lake.upsert(row("a", "a9", 9), row("z"))
    assert lake.values() == {**ROWS, "a": "a9", "z": "a"}
    assert lake.table.services.restore(savepoint.instant).to == savepoint.instant
    assert lake.values() == seen[savepoint.instant]
    lake.ensure_sound()
    assert change(lake, after) is None


@pytest.mark.parametrize("mode", ["op_key_only", "data_before", "data_before_after"])
@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_changes_told_before_are_told_in_the_new_version(before: int, after: int, mode: str) -> None:
    options = {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": mode}
    lake = lake_of(before, "MERGE_ON_READ", **options)
    lake.upsert(row("b", "b4", 4))  # on log files that were written since the compaction
    seen = changes_of(lake)
    assert len(seen) == 9
    change(lake, after)
    assert changes_of(reopened(lake, after)) == seen


def changes_of(lake: Lake) -> list[tuple[Any, ...]]:
    """All changes, without the times of their commits, which versions tell differently."""
    events = lake.table.scan(query="cdc", begin="0").read_all().to_pylist()
    return sorted((event["op"], str(event["before"]), str(event["after"])) for event in events)


@pytest.mark.parametrize("kind", TYPES)
def test_old_timeline_is_gone_and_there_is_one_name_for_each_file(kind: str) -> None:
    lake = lake_of(9, kind)
    change(lake, 6)
    assert not [path for path in lake.files() if path.startswith(".hoodie/timeline/")]
    for path in lake.files():
        log = parse_log_file_name(path.rpartition("/")[2])
        if log is not None:  # of the slice it belongs to
            assert any(base.endswith(f"_{log.instant}.parquet") and log.file_id in base for base in lake.base_files())
    change(lake, 9)
    stays = (".hoodie/hoodie.properties", ".hoodie/archived", ".hoodie/.", ".hoodie/timeline/", ".hoodie/history")
    assert [path for path in lake.files() if path.startswith(".hoodie/") and not path.startswith(stays)] == []


def test_there_and_back_changes_no_property_that_matters() -> None:
    lake = lake_of(9, "MERGE_ON_READ")
    before = dict(lake.table.config.raw)
    change(lake, 6)
    change(lake, 9)
    after = dict(lake.table.config.raw)
    kept = {key: value for key, value in after.items() if key in before and key != keys.CHECKSUM}
    assert kept == {key: before[key] for key in kept}
    assert set(before) - set(after) == set()
    assert set(after) - set(before) <= {keys.KEYGEN_CLASS, keys.LEGACY_PAYLOAD_CLASS, keys.LOG_RENAMES}


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_ordering_and_merging_stay_what_they_were(before: int, after: int) -> None:
    for fields, rule in ((None, "latest"), ("ts", "event")):
        lake = Lake(before, {"hoodie.table.ordering.fields": fields})
        lake.upsert(row("a", "first", 5))
        change(lake, after)
        lake = Lake(after, {**lake.options, "hoodie.write.table.version": after}, lake.uri)
        lake.upsert(row("a", "older", 1))
        assert lake.values() == {"a": "older" if rule == "latest" else "first"}


@pytest.mark.parametrize(("before", "after"), [(6, 9), (9, 6), (6, 8), (8, 6)])
def test_archived_writes_are_carried_over(before: int, after: int) -> None:
    few = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}
    lake = Lake(before, {"hoodie.metadata.enable": "false", **few})
    for turn in range(6):
        lake.upsert(row("a", f"a{turn}", turn))
    lake.table.services.clean()
    lake.table.services.archive()
    profile = lake.table.timeline().profile
    assert has_history(lake.storage, profile)
    old = [(one.requested, one.action) for one in load_history(lake.storage, profile) if one.action == COMMIT]
    assert old
    change(lake, after)
    lake = reopened(lake, after)
    profile = lake.table.timeline().profile
    assert [(one.requested, one.action) for one in load_history(lake.storage, profile) if one.action == COMMIT] == old
    assert lake.values() == {"a": "a5"}
    assert len(lake.table.scan(query="incremental", begin="000", columns=["v"]).read_all()) == 1


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_states_of_the_past_that_archived_cleans_took_are_still_refused(before: int, after: int) -> None:
    few = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3}
    by_hand = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    lake = Lake(before, {"hoodie.metadata.enable": "false", **few, **by_hand})
    lake.upsert(row("a"), row("b", part="q"))
    (first,) = lake.table.timeline().completed_writes()
    by_versions = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}
    for turn in range(2, 9):
        lake.upsert(row("a", f"a{turn}", turn))
        lake.table.services.clean(**by_versions)
    cleans = [one.requested for one in lake.table.timeline().instants if one.action == CLEAN]
    lake.table.services.archive(**{"hoodie.clean.commits.retained": 1})
    assert cleans[0] not in [one.requested for one in lake.table.timeline().instants]
    for version in (before, after):
        change(lake, version)
        lake = reopened(lake, version)
        with pytest.raises(Invalid, match="was cleaned up"):
            lake.rows(as_of=first.requested)
        assert lake.values() == {"a": "a8", "b": "a"}


@pytest.mark.deep
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("before", "after"), [(6, 9), (9, 6), (9, 8), (8, 9)])
def test_upgrade_that_dies_at_any_call_leaves_one_of_the_two_versions(before: int, after: int, kind: str) -> None:
    lake = lake_of(before, kind)
    counted = CountingStorage(lake.storage)
    change(lake, after, counted)
    firsts = {(call.op, call.path if call.op in ("write", "read_range") else call.n): call.n for call in counted.calls}
    seen = set()
    for n in sorted(firsts.values())[:: 3 if kind == "MERGE_ON_READ" else 2]:
        lake = lake_of(before, kind)
        with pytest.raises(Crash):
            change(lake, after, CountingStorage(lake.storage, crash_at=n))
        version = Table.open(lake.uri).config.table_version
        seen.add(version)
        assert version in (before, after), f"call {n}"
        assert reopened(lake, version).values() == ROWS, f"call {n}"
        change(lake, after)
        again = reopened(lake, after)
        assert again.values() == ROWS, f"call {n}"
        again.upsert(row("z"))
        assert again.values() == {**ROWS, "z": "a"}, f"call {n}"
        again.ensure_sound()
    assert seen == {before, after}


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_metadata_table_is_made_anew(before: int, after: int) -> None:
    lake = lake_of(before, "COPY_ON_WRITE", **{"hoodie.metadata.enable": "true"})
    assert "files" in lake.table.config.metadata_partitions
    change(lake, after)
    lake = reopened(lake, after)
    lake.upsert(row("z"))
    assert "files" in lake.table.config.metadata_partitions
    assert lake.values() == {**ROWS, "z": "a"}
    lake.ensure_sound()


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_preview_says_what_will_change_and_writes_nothing(before: int, after: int) -> None:
    lake = lake_of(before, "MERGE_ON_READ")
    files = lake.files()
    shown = preview_upgrade(load_handle(lake.storage, SystemEnv()), CONFIG, to=after)
    assert lake.files() == files
    assert any(note.startswith(f"hoodie.table.version: {before} → {after}") for note in shown.notes)
    assert "merge" in {step.action for step in shown.steps}
    assert ("move" in {step.action for step in shown.steps}) is (6 in (before, after))
    same = preview_upgrade(load_handle(lake.storage, SystemEnv()), CONFIG, to=before)
    assert same.is_empty
    with pytest.raises(Unsupported):
        preview_upgrade(load_handle(lake.storage, SystemEnv()), CONFIG, to=7)


def test_failed_writes_and_pending_plans_are_dealt_with_first() -> None:
    lake = lake_of(9, "MERGE_ON_READ")
    lake.upsert(row("a", "a5", 5))
    lake.table.services.schedule_compaction() if hasattr(lake.table, "schedule_compaction") else None
    dead = Instant("29990101000000000", "deltacommit", State.REQUESTED)
    profile = lake.table.timeline().profile
    lake.storage.create(instant_path(profile, dead), b"")
    change(lake, 6)
    timeline = reopened(lake, 6).table.timeline()
    assert timeline.pending() == ()
    assert dead.requested not in [one.requested for one in timeline.instants]


@pytest.mark.parametrize(
    ("before", "after", "changes", "reason"),
    [
        (8, 6, {keys.ORDERING_FIELDS: "ts,v"}, "one ordering field only"),
        (6, 8, {keys.KEYGEN_CLASS: "org.apache.hudi.keygen.CustomKeyGenerator"}, "types of the partition fields"),
        (8, 9, {keys.KEYGEN_TYPE: "COMPLEX"}, "spells them 'id:"),
    ],
)
def test_what_stands_in_the_way_is_said_before_anything_changes(
    before: int, after: int, changes: dict[str, str], reason: str
) -> None:
    lake = Lake(before)
    lake.upsert(row("a"))
    handle = load_handle(lake.storage, SystemEnv())
    store_table_config(lake.storage, handle.config, handle.config.with_changes(changes), handle.env)
    files = lake.files()
    with pytest.raises(Invalid, match=reason):
        change(lake, after)
    assert lake.files() == files
    shown = preview_upgrade(load_handle(lake.storage, SystemEnv()), CONFIG, to=after)
    assert any(note.startswith("blocked: ") and reason in note for note in shown.notes)


def test_types_of_partition_fields_may_be_said_with_the_upgrade() -> None:
    lake = Lake(6)
    lake.upsert(row("a"))
    handle = load_handle(lake.storage, SystemEnv())
    custom = {keys.KEYGEN_CLASS: "org.apache.hudi.keygen.CustomKeyGenerator"}
    store_table_config(lake.storage, handle.config, handle.config.with_changes(custom), handle.env)
    change(lake, 9, **{"hoodie.datasource.write.partitionpath.field": "part:simple"})
    assert Table.open(lake.uri).config.raw[keys.PARTITION_FIELDS] == "part:SIMPLE"


def done_at(requested: int, completed: int, action: str = COMMIT) -> Instant:
    return Instant(at(requested), action, State.COMPLETED, at(completed))


def test_completion_times_of_a_copied_table_are_those_of_the_order_of_its_writes() -> None:
    """Every file was changed when the table was copied, long after the last write."""
    found = plan_completions([done_at(1, 900), done_at(2, 900, CLEAN), done_at(3, 900), done_at(4, 5)])
    times = {requested: time for ((requested, _), _), time in found.items()}
    assert at(1) <= times[at(1)] < at(3) <= times[at(3)] < at(4)
    assert times[at(2)] == at(900)
    assert times[at(4)] == at(5)


@pytest.mark.parametrize(("before", "asked", "after"), [(6, None, 9), (6, 8, 8), (8, None, 9), (9, 6, 9)])
def test_write_may_upgrade_a_table_when_it_is_allowed_to_and_never_downgrades(
    before: int, asked: int | None, after: int
) -> None:
    lake = lake_of(before, "MERGE_ON_READ")
    options = {"hoodie.write.auto.upgrade": "true", "hoodie.write.table.version": asked}
    table = Table.open(lake.uri, options={key: value for key, value in options.items() if value is not None})
    if asked == 6:
        with pytest.raises(Unsupported, match="hoodie upgrade"):
            table.upsert(table_of([row("z")]))
    else:
        table.upsert(table_of([row("z")]))
        assert reopened(lake, after).values() == {**ROWS, "z": "a"}
    assert Table.open(lake.uri).config.table_version == after


def test_write_leaves_the_version_alone_by_default() -> None:
    lake = lake_of(6, "COPY_ON_WRITE")
    Table.open(lake.uri).upsert(table_of([row("z")]))
    assert Table.open(lake.uri).config.table_version == 6


@pytest.mark.parametrize("instead", [9, 8])
def test_downgrade_that_died_can_be_given_up(instead: int) -> None:
    lake = lake_of(9, "MERGE_ON_READ")
    counted = CountingStorage(lake.storage)
    change(lake, 6, counted)
    renamed = [call.n for call in counted.calls if call.op == "delete" and ".log." in call.path]
    lake = lake_of(9, "MERGE_ON_READ")
    logs = {path for path in lake.files() if ".log." in path}
    with pytest.raises(Crash):
        change(lake, 6, CountingStorage(lake.storage, crash_at=renamed[-1]))
    assert {path for path in lake.files() if ".log." in path} != logs
    assert (change(lake, instead) is None) is (instead == 9)
    assert {path for path in lake.files() if ".log." in path} == logs
    assert lake.values() == ROWS
    lake.ensure_sound()


@pytest.mark.parametrize("instead", [9, 8])
def test_metadata_table_follows_when_log_files_get_their_names_back(instead: int) -> None:
    kept = {"hoodie.metadata.enable": "true"}
    lake = lake_of(9, "MERGE_ON_READ", **kept)
    counted = CountingStorage(lake.storage)
    change(lake, 6, counted)
    renamed = [call.n for call in counted.calls if call.op == "delete" and ".log." in call.path and "/" in call.path]
    lake = lake_of(9, "MERGE_ON_READ", **kept)
    with pytest.raises(Crash):
        change(lake, 6, CountingStorage(lake.storage, crash_at=renamed[-1]))
    lake.upsert(row("e"))
    times = [one.requested for one in lake.table.timeline().completed_writes()]
    seen = {time: lake.values(as_of=time) for time in times}
    change(lake, instead)
    lake = reopened(lake, instead)
    assert lake.table.config.has_metadata_table
    assert {time: lake.values(as_of=time) for time in times} == seen
    lake.ensure_sound()


@pytest.mark.parametrize(("before", "after"), [(9, 6), (6, 9), (9, 8)])
def test_resize_that_died_is_dropped_on_the_way(before: int, after: int) -> None:
    ring = {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.bucket.index.max.num.buckets": "2",
        "hoodie.parquet.max.file.size": "1000",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }
    lake = Lake(before, ring)
    lake.upsert(row("a"), row("b"), row("c"))
    calls = resize_calls(lake)
    begun = next(call for call in calls if call.op == "open_output" and ".hoodie" not in call.path)
    with pytest.raises(Crash):
        resize(lake, CountingStorage(lake.storage, crash_at=begun.n + 2))
    assert lake.table.timeline().pending()
    change(lake, after)
    lake = reopened(lake, after)
    assert not lake.table.timeline().pending()
    assert lake.values() == {"a": "a", "b": "a", "c": "a"}
    done = lake.table.services.resize()
    assert done is not None
    assert done.splits == 1
    assert lake.values() == {"a": "a", "b": "a", "c": "a"}
    lake.ensure_sound()


def resize(lake: Lake, storage: Storage) -> None:
    resize_buckets(load_handle(storage, SystemEnv()), resolve(lake.options), ENGINE)


def resize_calls(lake: Lake) -> list[Call]:
    """The storage calls of a resize, on a copy of the table."""
    copy = Lake(lake.version, lake.options)
    for path, data in lake.files().items():
        copy.storage.put(path, data)
    counted = CountingStorage(copy.storage)
    resize(copy, counted)
    return counted.calls


def test_files_of_version_6_were_changed_when_their_instants_completed(tmp_path: Path) -> None:
    """Hudi 1.x takes that time to place log files."""
    lake = Lake(9, {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}, str(tmp_path / "table"))
    lake.upsert(row("a"), row("b"))
    lake.upsert(row("a", "a2", 2))
    before = {one.requested: one.completed for one in lake.table.timeline().completed()}
    lake.table.services.upgrade(6)
    after = {one.requested: one.completed for one in lake.table.timeline().completed()}
    assert {time: after[time] for time in before} == before
    assert lake.values() == {"a": "a2", "b": "a"}


@pytest.mark.parametrize("unseen", [".compaction.requested", ".commit"])
def test_an_upgrade_that_does_not_see_its_own_compaction_stops_and_undoes_nothing(unseen: str) -> None:
    """A storage whose listings lag: to go on would take the completed compaction for one that died."""
    whole = lake_of(9, "MERGE_ON_READ")
    counted = CountingStorage(whole.storage)
    change(whole, 6, counted)
    from_call = next(call.n for call in counted.calls if call.op == "create" and call.path.endswith(unseen))
    lake = lake_of(9, "MERGE_ON_READ")
    with pytest.raises(Unavailable, match="does not list what the compaction .* has just written"):
        change(lake, 6, CountingStorage(lake.storage, stale_from=from_call))
    assert lake.table.config.table_version == 9
    assert lake.values() == ROWS
    lake.ensure_sound()
    change(lake, 6)
    again = reopened(lake, 6)
    assert again.values() == ROWS
    again.ensure_sound()


def test_a_build_of_an_index_that_died_does_not_keep_the_metadata_table_from_version_6() -> None:
    """Nobody would ever end it there, and what is pending keeps a metadata table of version 6 from being made."""
    lake = Lake(9, {"hoodie.metadata.enable": "true"})
    lake.upsert(row("a"))
    counted = CountingStorage(lake.storage)
    _opened(counted).indexes.create("by_value", "v")
    announced = max(call.n for call in counted.calls if call.path.endswith(".indexing.inflight"))
    lake = Lake(9, {"hoodie.metadata.enable": "true"})
    lake.upsert(row("a"))
    with pytest.raises(Crash):
        _opened(CountingStorage(lake.storage, crash_at=announced + 1)).indexes.create("by_value", "v")
    assert [one.action for one in lake.table.timeline().pending()] == [INDEXING]
    change(lake, 6)
    again = reopened(lake, 6)
    assert not again.table.timeline().pending()
    assert again.table.config.is_metadata_table_ready
    assert again.values() == {"a": "a"}
    again.ensure_sound()


def _opened(storage: Storage) -> Table:
    return Table(load_handle(storage, SystemEnv()), {}, ENGINE)


@pytest.mark.parametrize("strategy", ["", "bits:2"])
def test_a_store_that_keeps_no_times_refuses_before_anything_is_dropped(
    strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metadata table went first once, and a table with storage paths cannot be read without it."""
    monkeypatch.setattr("hoodie.services.upgrading.upgrade.keeps_times", lambda _: False)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.metadata.enable": "true",
        "hoodie.storage.allowed.roots": str(tmp_path),
    }
    options |= {"hoodie.storage.strategy": strategy, "hoodie.storage.path": str(tmp_path / "far")} if strategy else {}
    path = str(tmp_path / "t")
    Table.create(path, options=options)

    def opened() -> Table:
        return Table.open(path, options=options)

    for value in (1, 2):
        opened().upsert(pa.table({"id": ["a", "b"], "v": [value, value]}))
    opened().services.compact()
    notes = preview_upgrade(load_handle(open_table_storage(path, options), SystemEnv()), CONFIG, to=6).notes
    (blocked,) = (note for note in notes if note.startswith("blocked: "))
    assert "1 log files belong to older file slices" in blocked
    with pytest.raises(Invalid, match="cannot keep the times.*delete savepoints that keep such slices"):
        opened().services.upgrade(6)
    assert opened().config.table_version == 9
    assert opened().config.is_metadata_table_ready
    assert opened().scan(columns=["v"]).read_all().column(0).to_pylist() == [2, 2]
    assert not opened().validate(deep=True)
    once = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    opened().services.clean(**once)
    assert opened().services.upgrade(6) is not None
    assert opened().scan(columns=["v"]).read_all().column(0).to_pylist() == [2, 2]
    assert not opened().validate(deep=True)
