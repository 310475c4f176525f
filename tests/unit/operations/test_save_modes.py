"""Save modes: append, ignore, errorifexists, and the two ways to overwrite."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress

import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import CommitUnknown, Corrupt, HudiError, Invalid, Unavailable
from hoodie.locks import Held
from hoodie.locks.in_process import InProcessLocks
from hoodie.locks.waiting import AT_ONCE, Patience
from hoodie.services.ingest import Request
from hoodie.services.save import chosen_operation, save_rows
from hoodie.spec import V6, V8, V9
from hoodie.storage import Storage
from hoodie.table import Table, as_source
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.hand_table import HandTable, at
from hoodie.testing.lake import ROWS, Awake, Lake, row, table_of
from hoodie.write.overwrite import Switch, encode_switch

pytestmark = pytest.mark.sampled(4)

OPERATION = "hoodie.datasource.write.operation"
PARTITIONS = "hoodie.datasource.write.partitionpath.field"
KEY = "hoodie.datasource.write.recordkey.field"


@pytest.mark.parametrize("mode", ["append", "overwrite", "ignore", "error", "errorifexists"])
def test_every_mode_makes_a_table_that_is_not_there(version: int, mode: str) -> None:
    lake = Lake(version)
    lake.save([row("a")], mode)
    assert lake.values() == {"a": "a"}
    assert lake.table.version == version
    lake.ensure_sound()


def test_an_append_asks_once_whether_there_is_a_table() -> None:
    lake = Lake()
    lake.save([row("a")])
    counting, rows = CountingStorage(lake.storage), table_of([row("b", "b")])
    config = resolve({name: value for name, value in lake.options.items() if name != OPERATION})
    operation, is_there = chosen_operation(config, counting, "append", rows.schema, Awake())
    save_rows(
        counting, Request(operation, as_source(rows), config, LocalEngine(1)), "append", Awake(), is_there=is_there
    )
    assert lake.values() == {"a": "a", "b": "b"}
    assert [call.path for call in counting.calls if call.op == "head"] == [".hoodie/hoodie.properties"]


@pytest.mark.parametrize("mode", ["error", "errorifexists"])
def test_error_mode_refuses_a_table(mode: str) -> None:
    lake = Lake()
    lake.save([row("a")])
    before = lake.files()
    with pytest.raises(Invalid, match='A Hudi table exists.*"append"'):
        lake.save([row("b")], mode)
    assert lake.files() == before


@pytest.fixture
def race(monkeypatch: pytest.MonkeyPatch, version: int) -> Lake:
    """A lake without a table; the first to ask for the table lock gets it when another writer has made one."""
    lake, acquire, waiting = Lake(version), InProcessLocks.acquire, [True]

    def after_another(
        self: InProcessLocks, what: str, scope: str = "", patience: Patience = AT_ONCE
    ) -> AbstractContextManager[Held]:
        if waiting:
            waiting.clear()
            lake.save([row("a"), row("b", "first")], "error")
        return acquire(self, what, scope, patience)

    monkeypatch.setattr(InProcessLocks, "acquire", after_another)
    return lake


@pytest.mark.parametrize("mode", ["error", "errorifexists"])
def test_error_mode_refuses_a_table_that_was_made_while_it_waited(race: Lake, mode: str) -> None:
    with pytest.raises(Invalid, match="A Hudi table exists"):
        race.save([row("b", "late")], mode)
    assert race.values() == {"a": "a", "b": "first"}


def test_modes_mean_what_they_say_of_a_table_that_was_made_while_they_waited(race: Lake) -> None:
    assert race.save([row("b", "late")], "ignore") is None
    assert race.values() == {"a": "a", "b": "first"}


def test_overwrite_replaces_a_table_that_was_made_while_it_waited(race: Lake) -> None:
    race.save([row("b", "late")], "overwrite")
    assert race.values() == {"b": "late"}
    race.ensure_sound()


@pytest.mark.parametrize("options", [{}, {KEY: None}], ids=["same options", "no key named"])
def test_append_updates_a_table_that_was_made_while_it_waited(race: Lake, options: dict[str, None]) -> None:
    race.save([row("b", "late")], "append", **options)
    assert race.values() == {"a": "a", "b": "late"}


def test_ignore_mode_leaves_a_table_alone() -> None:
    lake = Lake()
    lake.save([row("a")])
    before = lake.files()
    assert lake.save([row("b")], "ignore") is None
    assert lake.files() == before


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite_table"])
def test_overwrite_of_the_same_kind_is_one_commit(version: int, operation: str) -> None:
    lake = Lake(version)
    lake.upsert(row("a"), row("b", part="q"))
    first = lake.table.timeline().last_time()
    lake.save([row("x"), row("y", part="r")], "overwrite", **{OPERATION: operation})
    assert lake.values() == {"x": "a", "y": "a"}
    assert lake.values(as_of=first) == {"a": "a", "b": "a"}
    last = lake.commits()[-1]
    assert last.operation_type == "INSERT_OVERWRITE_TABLE"
    assert set(last.partition_to_replace_file_ids or {}) == {"p", "q"}
    assert not lake.table.timeline().pending()
    lake.ensure_sound()
    lake.upsert(row("x", "x2", 2))
    assert lake.values() == {"x": "x2", "y": "a"}


@pytest.mark.parametrize(
    ("operation", "left"), [("upsert", ["high"]), ("insert", ["high", "low"]), ("bulk_insert", ["high", "low"])]
)
def test_overwrite_combines_as_its_operation_does(version: int, operation: str, left: list[str]) -> None:
    lake = Lake(version)
    lake.save([row("a")])
    lake.save([row("x", "high", 5), row("x", "low", 1)], "overwrite", **{OPERATION: operation})
    assert [v for _, v in lake.rows()] == left


def test_overwrite_brings_its_own_schema(version: int) -> None:
    lake = Lake(version)
    lake.save([row("a")])
    fewer = pa.table({"id": [7], "part": ["p"], "ts": [1]})
    lake.save(fewer, "overwrite")
    assert lake.table.scan(columns=["id", "part", "ts"]).read_all().to_pylist() == fewer.to_pylist()
    assert "v" not in lake.table.schema.names
    assert lake.values(as_of=lake.table.timeline().completed()[0].requested) == {"a": "a"}


def test_insert_overwrite_table_as_an_operation_keeps_the_schema_rules() -> None:
    # As Hudi 1.2.0 does, in every save mode.
    lake = Lake()
    lake.save([row("a")])
    before = lake.files()
    for mode in ("append", "overwrite"):
        with pytest.raises(Invalid, match="Column `v`.*missing"):
            lake.save(table_of([row("b")]).select(["id", "part", "ts"]), mode, **{OPERATION: "insert_overwrite_table"})
    assert lake.files() == before


def test_failed_overwrite_leaves_the_table_as_it_was(version: int) -> None:
    lake = Lake(version)
    lake.save([row("a")])
    before = lake.files()
    for operation in ("upsert", "bulk_insert"):
        with pytest.raises(Invalid, match="null or empty"):
            lake.save([row("b"), row(None)], "overwrite", **{OPERATION: operation})  # type: ignore[arg-type]
    assert lake.files() == before


def test_table_can_be_overwritten_by_its_own_rows(version: int) -> None:
    lake = Lake(version)
    lake.upsert(*(row(f"k{n}") for n in range(10)))
    lake.save(lake.table.scan(filter="id <> 'k3'"), "overwrite")
    assert len(lake.values()) == 9
    lake.save(lake.table.scan(), "overwrite", **{PARTITIONS: "v"})
    assert len(lake.values()) == 9
    lake.ensure_sound()


def test_delete_is_not_a_way_to_overwrite() -> None:
    lake = Lake()
    lake.save([row("a")])
    before = lake.files()
    with pytest.raises(Invalid, match="append"):
        lake.save([row("a")], "overwrite", **{OPERATION: "delete"})
    assert lake.files() == before


@pytest.mark.parametrize("operation", ["delete", "delete_partition"])
def test_nothing_can_be_deleted_from_no_table(operation: str) -> None:
    lake = Lake()
    with pytest.raises(Invalid, match="no table at"):
        lake.save([row("a")], **{OPERATION: operation})
    assert lake.files() == {}


# --- overwriting by a table of another kind


ANOTHER_KIND = {
    "partitions": {PARTITIONS: "v"},
    "no partitions": {PARTITIONS: ""},
    "keys": {KEY: "id,v"},
    "version 6": {"hoodie.write.table.version": "6"},
    "version 8": {"hoodie.write.table.version": "8"},
    "ordering": {"hoodie.table.ordering.fields": "v"},
    "name": {"hoodie.table.name": "other"},
    "mode": {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"},
    "meta fields": {"hoodie.populate.meta.fields": "false"},
}


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
@pytest.mark.parametrize("other", ANOTHER_KIND.values(), ids=ANOTHER_KIND)
def test_overwrite_by_another_kind_is_a_new_table(other: dict[str, str], operation: str) -> None:
    lake = Lake(9)
    lake.upsert(row("a"), row("b", part="q"), row("c", part="2024"))
    lake.upsert(row("a", "a2", 2))
    lake.options = {**lake.options, **other}
    done = lake.save(
        [row("x", "vx"), row("y", "vy", part="r"), row("z", "vz", part="2024/01")],
        "overwrite",
        **{OPERATION: operation},
    )
    assert done is not None
    assert lake.rows() == [("x", "vx"), ("y", "vy"), ("z", "vz")]
    timeline = lake.table.timeline()
    assert [one.requested for one in timeline.instants] == [done.instant]
    assert {path.rpartition("_")[2] for path in lake.base_files()} == {f"{done.instant}.parquet"}
    assert lake.table.version == int(other.get("hoodie.write.table.version", 9))
    lake.ensure_sound()
    if operation == "upsert":
        lake.upsert(row("x", "vx", 2))
        assert lake.rows() == [("x", "vx"), ("y", "vy"), ("z", "vz")]


def test_merge_on_read_table_is_replaced_by_the_default_kind() -> None:
    hand = HandTable(V9, choices={"table_type": "MERGE_ON_READ"})
    hand.commit(at(1), {("p0", "a"): [{"id": "k1", "part": "p0", "qty": 1}]})
    lake = Lake(9, uri=hand.storage.uri)
    lake.save([row("x")], "overwrite")
    assert lake.values() == {"x": "a"}
    assert lake.table.config.table_type == "COPY_ON_WRITE"
    lake.ensure_sound()


@pytest.mark.parametrize(
    "other", [{PARTITIONS: "v"}, {"hoodie.write.table.version": "6"}], ids=["partitions", "version"]
)
def test_bad_rows_do_not_cost_the_old_table(other: dict[str, str]) -> None:
    lake = Lake(9)
    lake.upsert(row("a"))
    before = lake.files()
    for operation in ("upsert", "bulk_insert"):
        with pytest.raises(Invalid, match="null or empty"):
            lake.save([row("b"), row(None)], "overwrite", **{OPERATION: operation, **other})  # type: ignore[arg-type]
        with pytest.raises(Invalid, match="which leaves the folder|\\.\\."):
            lake.save([row("b", "../x")], "overwrite", **{OPERATION: operation, PARTITIONS: "v"})
    assert lake.files() == before


def overwrite(storage: Storage, options: dict[str, object]) -> object:
    config = resolve(options)
    request = Request("upsert", as_source(table_of([row("x", "vx"), row("y", "vy", part="q")])), config, LocalEngine(1))
    return save_rows(storage, request, "overwrite", Awake())


@pytest.mark.deep
@pytest.mark.parametrize(
    "other",
    [{PARTITIONS: "v"}, {"hoodie.write.table.version": "6"}, {PARTITIONS: ""}],
    ids=["partitions", "version", "none"],
)
@pytest.mark.parametrize("how", ["stopped", "interrupted", "interrupted after"])
def test_crash_at_any_call_loses_neither_table(other: dict[str, str], how: str) -> None:
    """The old table until the switch; then an error that says so, until any write finishes it; then the new one."""
    faults = {"stopped": "crash_at", "interrupted": "fail_at", "interrupted after": "fail_after"}
    options = {**Lake(9).options, **other}

    def prepared() -> Lake:
        lake = Lake(9)
        lake.upsert(row("a"), row("b", part="q"))
        return lake

    counted = CountingStorage(prepared().storage)
    overwrite(counted, options)
    seen = []
    firsts = {(call.op, call.path if call.op == "write" else call.n): call.n for call in reversed(counted.calls)}
    for n in sorted(firsts.values()):
        lake = prepared()
        with suppress(Crash, KeyboardInterrupt, CommitUnknown):  # an interrupt after the end of something is nobody's
            overwrite(CountingStorage(lake.storage, failure=KeyboardInterrupt(), **{faults[how]: n}), options)
        try:
            found = [v for _, v in lake.rows()]
        except Unavailable as error:
            assert "overwritten by one of another kind" in str(error)
            seen.append("switching")
        else:
            assert found in (["a", "a"], ["vx", "vy"]), f"call {n}"
            seen.append("old" if found == ["a", "a"] else "new")
        state = seen[-1]
        mine = lake.options if state == "old" else options
        lake.options = mine
        lake.save([row("c", "vc")])
        assert [v for _, v in lake.rows()] == (["a", "a", "vc"] if state == "old" else ["vc", "vx", "vy"]), f"call {n}"
        lake.ensure_sound()
    assert set(seen) == {"old", "switching", "new"}
    if how == "stopped":
        assert list(dict.fromkeys(seen)) == ["old", "switching", "new"]


def test_failure_in_the_switch_says_that_rows_are_safe_and_is_continued() -> None:
    options = {**Lake(9).options, PARTITIONS: "v"}
    lake = Lake(9)
    lake.upsert(row("a"))
    probe = CountingStorage(lake.storage)
    overwrite(probe, options)
    at_delete = next(call.n for call in probe.calls if call.op == "delete" and call.path.endswith("hoodie.properties"))
    for n in (at_delete, at_delete + 1, at_delete + 3):
        lake = Lake(9)
        lake.upsert(row("a"))
        with pytest.raises(CommitUnknown, match="stopped half-way.*All new rows are stored"):
            overwrite(CountingStorage(lake.storage, fail_at=n), options)
        if n == at_delete:
            assert lake.values() == {"a": "a"}
            continue
        with pytest.raises(Unavailable, match="write to it with hoodie"):
            Table.open(lake.uri, env=Awake())
        lake.options = options
        lake.save([row("c", "vc")])
        assert [v for _, v in lake.rows()] == ["vc", "vx", "vy"]


def test_damaged_note_of_an_overwrite_is_named() -> None:
    lake = Lake(9)
    lake.storage.put(".hoodie/.temp/20260101000000000.overwrite", b"{}")
    with pytest.raises(Corrupt, match=r"20260101000000000\.overwrite"):
        lake.save([row("a")])


NOTE = ".hoodie/.temp/20260101000000000.overwrite"
HERS = {"photo.jpg": b"1", "letters/a.txt": b"2", ".hoodie-not/b": b"3", "p=1/notes.csv": b"4"}


@pytest.mark.own_folder("plants what another table says, whose storage paths are refused first")
@pytest.mark.parametrize("named", [(), ("p=1/3ca348f2-c4ae-48de-a64c-d6015d3432d0-0_0-5-0_20260101000000000.parquet",)])
def test_a_note_of_an_overwrite_that_somebody_planted_deletes_no_file_of_others(named: tuple[str, ...]) -> None:
    lake = Lake(9)
    made = Lake(9)
    made.save([row("a")])
    for path, data in HERS.items():
        lake.storage.put(path, data)
    partitions = ("p=1",) if named else ()
    planted = Switch(NOTE, "20260101000000000", dict(made.handle().config.raw), named, partitions, b"{}")
    lake.storage.put(NOTE, encode_switch(planted))
    if named:
        with pytest.raises(Corrupt, match=r"overwrite.*names .*not there"):
            lake.save([row("a")])
    else:
        with suppress(HudiError):
            lake.save([row("a")])
    assert {path: data for path, data in lake.files().items() if path in HERS} == HERS


def test_files_that_no_table_has_survive_an_overwrite_by_another_kind() -> None:
    lake = Lake(9)
    lake.upsert(row("a"), row("b", part="q"))
    for path, data in {**HERS, "q/.mine.crc": b"5", "p/x/y.parquet": b"6"}.items():
        lake.storage.put(path, data)
    lake.options = {**lake.options, PARTITIONS: "v"}
    lake.save([row("x", "vx")], "overwrite")
    assert [v for _, v in lake.rows()] == ["vx"]
    left = {path for path in lake.files() if not path.startswith((".hoodie/", "vx/"))}
    assert left == {*HERS, "q/.mine.crc", "p/x/y.parquet"}


@pytest.mark.parametrize("profile", [V6, V8, V9], ids=["v6", "v8", "v9"])
def test_pending_write_of_the_old_table_goes_with_it(profile: object) -> None:
    hand = HandTable(profile)  # type: ignore[arg-type]
    hand.commit(at(1), {("p0", "a"): [{"id": "k1", "part": "p0", "qty": 1}]})
    from hoodie.spec import State  # noqa: PLC0415

    hand.commit(at(2), {("p0", "b"): [{"id": "k2", "part": "p0", "qty": 1}]}, state=State.INFLIGHT)
    lake = Lake(9, uri=hand.storage.uri)
    lake.save([row("x")], "overwrite")
    assert lake.values() == {"x": "a"}
    lake.ensure_sound()


def test_empty_overwrite_empties_the_table(version: int) -> None:
    lake = Lake(version)
    lake.save([row("a")])
    lake.save(ROWS.empty_table(), "overwrite")
    assert lake.rows() == []
    lake.save(ROWS.empty_table(), "overwrite", **{PARTITIONS: "v"})
    assert lake.rows() == []
    lake.ensure_sound()
