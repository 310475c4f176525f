"""Relayout: where new files go, moves that die at each call and are gone on with, and what is never deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pyarrow as pa
import pytest
from relayout_world import ENGINE, EXPECTED, ROOTS, World, content, rows

from hoodie.config import resolve
from hoodie.errors import Conflict, Corrupt, HudiError, Invalid, Unsupported
from hoodie.layout.move import MOVE_FILE, Move, encode_move, parse_move
from hoodie.layout.properties import MAX_VERSIONS
from hoodie.services.ingest import Request
from hoodie.services.save import save_rows
from hoodie.spec import keys
from hoodie.state.handle import load_handle
from hoodie.table import Table, as_source
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.env import FakeEnv
from hoodie.testing.two_stores import RIDES
from hoodie.timeline.config_store import store_table_config

NEWEST = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}


@pytest.fixture
def world():
    made = World()
    yield made
    made.memory.forget()


def test_new_files_go_to_the_new_place_and_old_ones_stay(world):
    table = world.made()
    before = world.data("table")
    done = table.services.relayout("bits:4", **{"hoodie.storage.path": world.root("one")})
    assert (done.files, done.deleted, done.waits) == (0, 0, False)
    assert world.data("table") == before
    assert content(world.table()) == EXPECTED
    world.table().upsert(rows(*range(12), v=5))
    assert world.data("table") == before
    assert world.data("one")
    assert content(world.table()) == dict.fromkeys(range(12), 5)
    assert world.table().config.raw[keys.TYPE] == "MERGE_ON_READ_FEDERATED"
    assert table.services.relayout("bits:4", **{"hoodie.storage.path": world.root("one")}) is None
    assert not world.table().doctor().concerns


def test_prefixes_and_roots_grow_without_rewriting(world):
    world.made(**{"hoodie.storage.path": world.root("one"), "hoodie.storage.strategy": "bits:1"})
    old = world.data("one")
    world.table().services.relayout("bits:4", **{"hoodie.storage.path": f"{world.root('one')},{world.root('two')}"})
    for v in range(4):
        world.table().upsert(rows(*range(12), v=v))
        world.table().services.compact()
    assert set(old) <= set(world.data("one"))
    assert world.data("two") or len(world.data("one")) > len(old)
    assert content(world.table()) == dict.fromkeys(range(12), 3)


def test_whose_a_root_is_is_not_asked_for_each_file_of_a_move(world):
    """Each file is looked for in its new place first, where it is missing."""
    many = range(100, 140)
    world.made().upsert(pa.table({"id": many, "p": [f"q{n}" for n in many], "v": [0 for _ in many]}))
    counted = CountingStorage(world.memory)
    done = world.table(counted).services.relayout("bits:4", move=True, **{"hoodie.storage.path": world.root("one")})
    asked = [call for call in counted.calls if call.path == "one/.hoodie_owners/rides"]
    assert done.files > 2 * len(asked)


def test_move_brings_all_files_and_deletes_old_copies_after_the_grace(world):
    table = world.made()
    before = world.data("table")
    where = {"hoodie.storage.path": world.root("one")}
    preview = table.services.preview("relayout", "bits:4", True, **where)
    assert preview.files == len(before)
    assert world.data("one") == []
    done = table.services.relayout("bits:4", move=True, **where)
    assert (done.files, done.deleted, done.waits) == (len(before), 0, True)
    assert len(world.data("one")) == len(before)
    assert content(world.table()) == EXPECTED
    assert world.data("table") == before
    assert world.table().services.relayout(move=True) is None
    world.env.advance(timedelta(hours=25))
    done = world.table().services.relayout(move=True)
    assert (done.deleted, done.waits) == (len(before), False)
    assert world.data("table") == []
    assert content(world.table()) == EXPECTED
    assert not world.table().doctor().concerns
    assert world.table().services.relayout(move=True) is None


@pytest.mark.parametrize(
    ("has_root", "strategy", "root"), [(False, "bits:4", "one"), (True, "bits:2", "two"), (True, "hive", "")]
)
def test_rows_planned_before_a_move_are_read_from_the_new_places(world, has_root, strategy, root):
    """Nobody gave them grace: the plan is made anew, and read by where files lie now (live races)."""
    made = {"hoodie.storage.path": world.root("one"), "hoodie.storage.strategy": "bits:4"} if has_root else {}
    table = world.made(**made)
    found = table.scan(columns=["id", "v"])
    where = {"hoodie.storage.path": world.root(root)} if root else {}
    world.table().services.relayout(strategy, move=True, grace_hours=0, **where)
    read = found.read_all().to_pydict()
    assert dict(zip(read["id"], read["v"], strict=True)) == EXPECTED
    assert content(table) == EXPECTED


def test_a_read_waits_for_a_metadata_table_that_is_made_anew(world):
    """Files under storage paths are never listed instead."""
    world.made(**{"hoodie.storage.path": world.root("one")})

    def die(call):
        if call.op == "create" and call.path.startswith("table/.hoodie/metadata/"):
            raise Crash("while it is made anew")

    with pytest.raises(Crash):
        world.table(CountingStorage(world.memory, on_call=die)).indexes.rebuild()
    kept = world.table()
    with pytest.raises(Corrupt, match="the metadata table is not there"):
        content(kept)
    assert sum(world.env.sleeps) > 5
    sleeps = []

    def sleep(seconds):
        sleeps.append(seconds)
        if len(sleeps) == 4:
            world.table().indexes.rebuild()

    world.env.sleep = sleep
    assert content(kept) == EXPECTED
    assert len(sleeps) == 4


def test_moved_table_can_be_moved_back_to_its_own_folder(world):
    table = world.made(**{"hoodie.storage.path": world.root("one")})
    table.services.relayout("hive", move=True, grace_hours=0)
    assert world.data("one") == []
    assert content(world.table()) == EXPECTED
    world.table().upsert(rows(1, v=7))
    assert world.data("one") == []


def moved(world: World, storage: object = None) -> None:
    where = {"hoodie.storage.path": world.root("one")}
    world.table(storage).services.relayout("bits:2", move=True, grace_hours=0, **where)


@pytest.mark.deep
def test_move_that_dies_at_any_call_is_gone_on_with_and_no_row_is_ever_missing():
    start = World()
    start.made()
    files = start.files()
    counted = CountingStorage(start.memory)
    moved(start, counted)
    assert start.data("table") == []
    calls = len(counted.calls)
    for at in range(1, calls + 1, 3):
        world = World(files)
        with pytest.raises(Crash):
            moved(world, CountingStorage(world.memory, crash_at=at, torn=True))
        assert content(world.table()) == EXPECTED, at
        if at % 2:
            world.table().upsert(rows(5, v=5))  # a writer comes between
            world.table().upsert(rows(5, v=EXPECTED[5]))
        moved(world)
        moved(world)
        assert content(world.table()) == EXPECTED, at
        assert not world.table().doctor().concerns, at
        left = {path for path in world.files() if path.startswith(("table/p0/", "table/p1/"))}
        assert left == {f"table/p{n}/.hoodie_partition_metadata" for n in range(2)}, at
        assert MOVE_FILE not in {path.removeprefix("table/") for path in world.files()}
        world.memory.forget()


def test_clean_between_a_dead_move_and_its_end_brings_no_file_back():
    world = World()
    table = world.made()
    table.services.compact()
    table.upsert(rows(*range(12), v=2))
    table.services.compact()
    where = {"hoodie.storage.path": world.root("one")}
    counted = CountingStorage(world.memory)
    copied = [0]

    def stop(call):
        copied[0] += call.op == "close"
        if copied[0] == 4:
            raise Crash

    counted = CountingStorage(world.memory, on_call=stop)
    with pytest.raises(Crash):
        world.table(counted).services.relayout("bits:2", move=True, **where)
    cleaned = world.table().services.clean(**NEWEST)
    assert cleaned is not None
    world.table().services.relayout(move=True, grace_hours=0)
    assert content(world.table()) == dict.fromkeys(range(12), 2)
    assert not world.table().doctor().concerns
    listed = {f.path for found in world.table().files() for f in (found.base, *found.logs) if f is not None}
    assert {path.split("/", 3)[3] for path in world.data("one") if "_owners" not in path} == listed
    world.memory.forget()


def test_move_can_be_given_up_until_its_flip(world):
    table = world.made()
    where = {"hoodie.storage.path": world.root("one")}
    counted = CountingStorage(world.memory)
    world2 = World(world.files())
    world2.table(counted := CountingStorage(world2.memory)).services.relayout("bits:2", move=True, **where)
    flip = max(call.n for call in counted.calls if call.op == "put" and call.path.endswith(keys.PROPERTIES_FILE))
    with pytest.raises(Crash):
        world.table(CountingStorage(world.memory, crash_at=flip)).services.relayout("bits:2", move=True, **where)
    assert world.data("one")
    with pytest.raises(Invalid, match="under way"):
        world.table().services.relayout("bits:8", **where)
    done = world.table().services.run("relayout", {"undo": True})
    assert done.deleted > 0
    assert world.data("one") == []
    assert content(world.table()) == EXPECTED
    with pytest.raises(Invalid, match="count in their new places"):
        world2.table().services.run("relayout", {"undo": True})
    assert table is not None


def with_dead_move(*, is_flipped: bool) -> World:
    """A table whose move from one storage path to another died before or after its flip: its files lie in both."""
    world = World()
    world.made(**{"hoodie.storage.path": world.root("one")})
    where = {"hoodie.storage.path": world.root("two")}
    other = World(world.files())
    other.table(counted := CountingStorage(other.memory)).services.relayout("bits:2", move=True, **where)
    flip = max(call.n for call in counted.calls if call.op == "put" and call.path.endswith(keys.PROPERTIES_FILE))
    other.memory.forget()
    storage = CountingStorage(world.memory, crash_at=flip + is_flipped)
    with pytest.raises(Crash):
        world.table(storage).services.relayout("bits:2", move=True, **where)
    assert all(data_files(world, root) for root in ROOTS)
    return world


def data_files(world: World, top: str) -> list[str]:
    return [path for path in world.data(top) if path.endswith(".parquet") or ".log." in path]


@pytest.mark.parametrize("is_flipped", [False, True])
def test_table_dropped_in_the_middle_of_a_move_leaves_no_copy_to_the_next(is_flipped):
    world = with_dead_move(is_flipped=is_flipped)
    world.table().drop()
    assert [path for root in ROOTS for path in data_files(world, root)] == []
    next_one = {"hoodie.storage.path": ",".join(map(world.root, ROOTS)), "hoodie.storage.strategy": "bits:2"}
    table = world.made(**next_one)
    table.indexes.rebuild()
    assert content(world.table()) == EXPECTED
    assert len(table.scan().read_all()) == len(EXPECTED)
    world.memory.forget()


@pytest.mark.parametrize("is_flipped", [False, True])
def test_table_overwritten_by_another_kind_in_the_middle_of_a_move_keeps_no_copy(is_flipped):
    world = with_dead_move(is_flipped=is_flipped)
    other = resolve(RIDES | {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"})
    save_rows(world.laid(), Request("bulk_insert", as_source(rows(50)), other, ENGINE), "overwrite", world.env)
    assert {root: len(data_files(world, root)) for root in ROOTS} == {"one": 0, "two": 1}
    assert content(world.table()) == {50: 0}
    world.memory.forget()


@pytest.mark.parametrize(("first", "to", "folder"), [("hive", "map", "one/rides"), ("map", "hive", "table")])
def test_what_lies_in_the_new_places_and_is_no_file_of_the_table_goes_before_they_count(world, first, to, folder):
    """As of a table that was there before, or of a move whose file was damaged and deleted."""
    table = world.made()
    where = {"hoodie.storage.path": world.root("one")}
    table.services.relayout(first, move=True, grace_hours=0, **where)
    found = next(path for path in data_files(world, "") if "/p0/" in path and path.endswith(".parquet"))
    file_id = found.rpartition("/")[2].partition("_")[0]
    stale = f"{folder}/p0/{found.rpartition('/')[2].replace(file_id, f'{uuid4()}-0')}"
    canary = f"{folder}/p0/notes.parquet"
    table.services.relayout(to, **where)
    for path in (stale, canary):
        world.memory.put(path, world.memory.read(found))
    table.services.relayout(to, move=True, grace_hours=0, **where)
    assert {stale, canary} & set(world.files()) == {canary}
    table.indexes.rebuild()
    assert content(world.table()) == EXPECTED
    assert len(table.scan().read_all()) == len(EXPECTED)


def test_stray_file_of_a_writer_that_was_rolled_back_is_not_moved(world):
    table = world.made()
    table.services.relayout("map", **{"hoodie.storage.path": world.root("one")})
    found = next(path for path in data_files(world, "") if "/p0/" in path and path.endswith(".parquet"))
    file_id = found.rpartition("/")[2].partition("_")[0]
    stray = found.replace(file_id, f"{uuid4()}-0")
    world.memory.put(stray, world.memory.read(found))
    table.services.relayout("map", move=True, grace_hours=0)
    assert [path for path in world.files() if path.endswith(stray.rpartition("/")[2])] == [stray]
    assert content(world.table()) == EXPECTED
    assert world.table().validate() == []


def test_move_of_a_table_without_storage_paths_does_nothing(world):
    table = world.made()
    before = world.files()
    assert table.services.relayout(move=True) is None
    assert table.services.relayout("hive", move=True) is None
    assert world.files() == before


def test_old_copy_that_differs_from_the_new_one_is_not_deleted(world):
    world.made().services.relayout("bits:2", move=True, **{"hoodie.storage.path": world.root("one")})
    damaged = next(path for path in world.data("one") if path.endswith(".parquet"))
    data = world.memory.read(damaged)
    world.memory.put(damaged, data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(Corrupt, match="not the same"):
        world.table().services.relayout(move=True, grace_hours=0)
    assert any(path.endswith(damaged.rpartition("/")[2]) for path in world.data("table"))


@pytest.mark.parametrize(
    ("to", "where", "error"),
    [
        ("bits:8", None, Invalid),
        ("bits:99", "one", Unsupported),
        ("own:mine", "one", Unsupported),
        ("bits:8", "/", Invalid),
    ],
)
def test_wrong_relayout_changes_nothing(world, to, where, error):
    table = world.made()
    before = world.files()
    options = {} if where is None else {"hoodie.storage.path": world.root(where) if where in ROOTS else where}
    with pytest.raises(error):
        table.services.relayout(to, **options)
    with pytest.raises(error):
        table.services.preview("relayout", to, **options)
    assert world.files() == before


def test_root_that_cannot_be_written_is_told_before_anything_counts_on_it(world):
    table = world.made()
    denied = CountingStorage(world.memory, on_call=_denying_root)
    with pytest.raises(HudiError, match="denied"):
        world.table(denied).services.relayout("bits:8", **{"hoodie.storage.path": world.root("one")})
    assert table.config.table_type == "MERGE_ON_READ"
    assert not table.config.is_federated


def _denying_root(call):
    if call.path.startswith("one/") and call.op in ("put", "create"):
        raise Invalid("denied", path=call.path)


def test_folder_of_another_table_is_refused(world):
    table = world.made()
    world.memory.put("one/.hoodie_owners/rides", b'{"uuid": "other", "table": "memory://theirs"}')
    with pytest.raises(Conflict, match="memory://theirs"):
        table.services.relayout("bits:8", **{"hoodie.storage.path": world.root("one")})
    assert not table.config.is_federated


def test_move_file_gives_its_move_back_and_damage_is_told(world):
    table = world.made(**{"hoodie.storage.path": world.root("one")})
    layout = load_handle(world.laid(), world.env).storage.layout
    move = Move(layout.versions, layout.versions, {"p/x": 3}, 7)
    assert parse_move(encode_move(move), 1, {}) == move
    for data in (b"", b"{}", b"[]", encode_move(Move(layout.versions, layout.versions, {"../x": 3})), b"\xff"):
        with pytest.raises(Corrupt, match="move"):
            parse_move(data, 1, {})
    assert table is not None


def test_move_waits_for_plans_and_writers_that_began_before_it(world):
    table = world.made()
    planned = table.services.schedule_compaction().requested
    where = {"hoodie.storage.path": world.root("one")}
    with pytest.raises(Conflict, match=planned):
        table.services.relayout("bits:2", move=True, **where)
    assert MOVE_FILE not in {path.removeprefix("table/") for path in world.files()}
    assert content(world.table()) == EXPECTED  # new files go there already
    world.table().services.compact()
    assert not [path for path in world.data("one") if "_owners" not in path]  # its instant is older than the switch
    world.table().services.relayout(move=True, grace_hours=0)
    assert world.data("table") == []
    assert content(world.table()) == EXPECTED


def test_a_clock_behind_that_of_the_last_switch_holds_up_no_other(world):
    where = {"hoodie.storage.path": world.root("one")}
    world.made()
    ahead = World(world.files(), FakeEnv(datetime(2021, 1, 1, tzinfo=UTC)))
    ahead.table().services.relayout("bits:2", **where)
    behind = World(ahead.files(), FakeEnv(datetime(2020, 1, 2, tzinfo=UTC)))
    behind.table().services.relayout("bits:3", **where)
    times = [version.since for version in behind.table().storage.layout.versions]
    assert times == sorted(set(times))
    behind.table().upsert(rows(5, v=7))
    assert content(behind.table()) == EXPECTED | {5: 7}
    behind.table().services.relayout("hive", move=True, grace_hours=0)
    assert content(behind.table()) == EXPECTED | {5: 7}


@pytest.mark.parametrize("move", [False, True])
def test_a_table_of_which_only_partitions_lie_elsewhere_comes_home_whole(world, move):
    world.made().services.relayout(
        "map", partition="p0", move=True, grace_hours=0, **{"hoodie.storage.path": world.root("one")}
    )
    assert [path for path in world.data("one") if path.endswith(".parquet")]
    table = world.table()
    table.services.relayout("hive", move=move, grace_hours=0)
    assert table.services.relayout("hive", move=move, grace_hours=0) is None
    before = world.data("one")
    world.table().upsert(rows(*range(12, 20), v=2))
    assert world.data("one") == ([] if move else before)
    assert content(world.table()) == EXPECTED | dict.fromkeys(range(12, 20), 2)


def test_old_copies_stay_while_nobody_can_say_which_files_are_the_table_s(world):
    world.made().services.relayout("bits:2", move=True, **{"hoodie.storage.path": world.root("one")})
    handle = load_handle(world.laid(), world.env)
    withdrawn = handle.config.with_changes({keys.METADATA_PARTITIONS: ""})
    store_table_config(handle.storage, handle.config, withdrawn, world.env)
    old = world.data("table")
    with pytest.raises(Corrupt, match="metadata table is not there"):
        world.table().services.relayout(move=True, grace_hours=0)
    assert world.data("table") == old
    world.table().indexes.rebuild()
    world.table().services.relayout(move=True, grace_hours=0)
    assert world.data("table") != old
    assert content(world.table()) == EXPECTED


def test_a_table_that_was_never_written_to_can_be_laid_out_anew(tmp_path):
    uri, root = str(tmp_path / "t"), str(tmp_path / "root")
    schema = rows(1).schema
    Table.create(uri, schema=schema, options=RIDES | {"hoodie.storage.path": root, "hoodie.storage.strategy": "bits:2"})
    options = {"hoodie.storage.allowed.roots": str(tmp_path)}
    Table.open(uri, options=options).services.relayout("bits:3")
    table = Table.open(uri, options=options)
    table.upsert(rows(*range(12)))
    assert content(table) == dict.fromkeys(range(12), 0)
    assert not table.doctor().concerns


def test_strategies_of_many_partitions_are_no_dead_end(world):
    where = {"hoodie.storage.path": world.root("one")}
    world.made()
    for number in range(MAX_VERSIONS - 2):
        world.table().services.relayout("map", partition=f"{number}{'é' * 900}", **where)
    with pytest.raises(Invalid, match="as many as it can use"):
        world.table().services.relayout("map", partition="p0", **where)
    world.table().services.relayout("map", partition=f"0{'é' * 900}", move=True, grace_hours=0)
    world.table().services.relayout("bits:2", move=True, grace_hours=0, **where)
    assert len(world.table().storage.layout.versions) == 1
    assert content(world.table()) == EXPECTED
    world.table().services.relayout("map", partition="p0", **where)


def test_a_partition_whose_name_another_begins_with_is_moved_by_itself(world):
    one, two = ({"hoodie.storage.path": world.root(name)} for name in ROOTS)
    world.made(**one)
    world.table().upsert(pa.table({"id": [100, 101], "p": ["p10", "p1/x"], "v": [5, 5]}))
    world.table().services.relayout("bits:2", partition="p1", **one)
    world.table().services.relayout("map", partition="p10", **two)
    world.table().services.relayout(move=True, partition="p1", grace_hours=0)
    world.table().services.relayout("map", partition="p1/x", **two)
    with pytest.raises(Invalid, match="strategy of their own"):
        world.table().services.relayout(move=True, partition="p1")
    assert content(world.table()) == EXPECTED | {100: 5, 101: 5}


@pytest.mark.deep
@pytest.mark.parametrize("partition", ["p", ""], ids=["partitioned", "not partitioned"])
def test_a_drop_that_dies_at_any_call_can_be_done_again_and_leaves_room_for_a_new_table(partition):
    paths = ",".join(f"memory://lake/{name}" for name in ROOTS)
    roots = {
        "hoodie.storage.path": paths,
        "hoodie.storage.strategy": "bits:1",
        "hoodie.datasource.write.partitionpath.field": partition,
    }
    first = World()
    first.made(**roots)
    files = first.files()
    counted = CountingStorage(first.memory)
    first.table(counted).drop()
    for call in range(1, counted.count + 1):
        world = World(files)
        with pytest.raises(Crash):
            world.table(CountingStorage(world.memory, crash_at=call)).drop()
        if "table/.hoodie/hoodie.properties" in world.files():
            world.table().drop()
        world.made(**roots)
        assert content(world.table()) == EXPECTED, call
        world.table().drop()
        assert not world.files(), call
        world.memory.forget()


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_switch_waits_where_the_metadata_table_cannot_be_made_yet(tmp_path, version):
    """In version 6 it waits for what is pending."""
    uri = str(tmp_path / "t")
    options = RIDES | {"hoodie.metadata.enable": "false", "hoodie.write.table.version": version}
    Table.create(uri, schema=rows(1).schema, options=options)
    table = Table.open(uri, options=options)
    for v in range(2):
        table.upsert(rows(*range(12), v=v))
    table.services.schedule_compaction(**{"hoodie.compact.inline.max.delta.commits": "1"})
    where = {"hoodie.storage.path": str(tmp_path / "root"), "hoodie.storage.allowed.roots": str(tmp_path)}
    opened = options | where | {"hoodie.metadata.enable": "true"}
    if version == "6":
        with pytest.raises(Conflict, match="while something is pending"):
            table.services.relayout("bits:2", **where)
        assert content(Table.open(uri, options=options)) == dict.fromkeys(range(12), 1)
        table.services.compact()
    table.services.relayout("bits:2", **where)
    del opened["hoodie.storage.path"]
    assert content(Table.open(uri, options=opened)) == dict.fromkeys(range(12), 1)
