"""Log files of version 6 that come when their write was taken back: nobody misses one that others have seen, and none
ever counts, to readers that only know the timeline of today either.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.errors import Conflict, Fenced
from hoodie.logs import read_blocks
from hoodie.spec import BlockKind, HeaderKey, parse_log_file_name
from hoodie.state.handle import load_handle
from hoodie.table import Table
from hoodie.testing.counting_storage import Call, CountingStorage, Crash
from hoodie.testing.lake import Lake, logged_lake, row, table_of
from hoodie.testing.unlocked_storage import LosingStorage

OPTIONS = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
}
ARCHIVING = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "2"}
GROUPS = 2
NOW = {"hoodie.compact.inline.max.delta.commits": "1"}


def lake_of(metadata: str) -> Lake:
    lake = logged_lake(6, **{**OPTIONS, "hoodie.metadata.enable": metadata})
    lake.upsert(row("a"), row("b"))
    lake.upsert(row("x", part="q"), row("y", part="q"))
    return lake


def is_log_file(call: Call) -> bool:
    return call.op == "open_output" and ".log." in call.path and ".hoodie" not in call.path


def is_completion(call: Call) -> bool:
    return call.op == "create" and call.path.endswith(".deltacommit") and "/metadata/" not in call.path


def rolled_back_at_first(lake: Lake, late: list[str], **options: str) -> Callable[[Call], bool]:
    """Whether a call begins a log file, which then is one of the `late` ones: before the first of them its write is
    rolled back.
    """
    one_task = threading.Lock()

    def begins(call: Call) -> bool:
        if not is_log_file(call):
            return False
        with one_task:
            if not late:
                lake.table.services.rollback(lake.table.timeline().pending()[-1].requested, **options)
            late.append(call.path)
        return True

    return begins


def written_late(
    lake: Lake, meanwhile: Callable[[], object], losses: list[str] | None = None, **rolling_back: str
) -> list[str]:
    """Paths of the log files that a writer made after its write had been rolled back. `meanwhile`: what others do when
    these files are there. `losses`: where the writer's locks learn that they are lost, as soon as its write was.
    """
    late: list[str] = []
    done: list[bool] = []
    begins = rolled_back_at_first(lake, late, **rolling_back)

    def others(call: Call) -> None:
        if begins(call):
            if losses is not None:
                losses.append("lost")
            return
        if len(late) == GROUPS and not done and call.op in {"create", "exclusive"} and ".temp" not in call.path:
            done.append(True)
            meanwhile()

    storage = CountingStorage(lake.storage, on_call=others)
    if losses is not None:
        storage = LosingStorage(lake.storage, losses, others)
    table = Table(load_handle(storage, SystemEnv()), lake.options, LocalEngine(1))
    with pytest.raises((Conflict, Fenced)):
        table.upsert(table_of([row("a", "late", 9), row("x", "late", 9, part="q")]))
    assert late
    assert done or losses
    return late


def is_covered(lake: Lake, path: str) -> bool:
    """Whether a command block behind the log file takes it back."""
    folder, _, file_name = path.rpartition("/")
    mine = parse_log_file_name(file_name)
    assert mine is not None
    writers = {block.instant for block in read_blocks(lake.storage, path, lake.storage.head(path).size_bytes)}
    for file in lake.storage.list_dir(folder).files:
        name = parse_log_file_name(file.path.rpartition("/")[2])
        if name is None or name.file_id != mine.file_id or name.order <= mine.order:
            continue
        for block in read_blocks(lake.storage, file.path, file.size_bytes):
            if block.kind is BlockKind.COMMAND and block.header.get(HeaderKey.TARGET_INSTANT_TIME) in writers:
                return True
    return False


def ensure_settled(lake: Lake, late: list[str]) -> None:
    """Rows are those that were committed, now and when the timeline begins later, and services go on."""
    expected = {"a": "a", "b": "new", "x": "a", "y": "new"}
    lake.upsert(row("b", "new", 2), row("y", "new", 2, part="q"))
    lake.table.services.clean()  # which rolls back what is pending, where several write
    there = [path for path in late if path in lake.files()]
    assert all(is_covered(lake, path) for path in there)
    assert lake.values() == expected
    assert lake.table.validate() == []
    for number in range(8):
        lake.upsert(row("b", "new", 3 + number), row("y", "new", 3 + number, part="q"))
    lake.table.services.archive(**ARCHIVING)
    assert lake.values() == expected
    lake.table.services.compact(**NOW)
    assert lake.values() == expected
    assert lake.table.validate() == []
    folders = Table.open(lake.uri, options={**lake.options, "hoodie.metadata.enable": "false"})
    found = folders.scan(["id", "v"]).read_all().to_pydict()
    assert dict(zip(found["id"], found["v"], strict=True)) == expected


@pytest.mark.parametrize("by_markers", ["true", "false"], ids=["by markers", "by names"])
@pytest.mark.parametrize("metadata", ["true", "false"], ids=["metadata", "folders"])
def test_a_file_that_comes_late_never_counts(metadata: str, by_markers: str) -> None:
    lake = lake_of(metadata)
    late = written_late(lake, lambda: None, **{"hoodie.rollback.using.markers": by_markers})
    lake.options = {**lake.options, "hoodie.rollback.using.markers": by_markers}
    ensure_settled(lake, late)


@pytest.mark.parametrize("concurrency", ["single_writer", "optimistic_concurrency_control"])
@pytest.mark.parametrize("metadata", ["true", "false"], ids=["metadata", "folders"])
def test_nor_does_one_of_a_writer_that_knows_that_its_lock_was_lost(metadata: str, concurrency: str) -> None:
    """Making its write pending again is no step that needs the lock: who comes rolls it back."""
    lake = lake_of(metadata)
    lake.options = {key: value for key, value in lake.options.items() if key not in OPTIONS or "clean." in key}
    if concurrency != "single_writer":
        lake.options |= OPTIONS
    ensure_settled(lake, written_late(lake, lambda: None, []))


@pytest.mark.parametrize("metadata", ["true", "false"], ids=["metadata", "folders"])
def test_a_compaction_that_was_planned_with_it_can_be_carried_out(metadata: str) -> None:
    lake = lake_of(metadata)
    planned: list[object] = []
    late = written_late(lake, lambda: planned.append(lake.table.services.schedule_compaction(**NOW)))
    assert planned[0]
    done = lake.table.services.compact()
    assert done is not None
    ensure_settled(lake, late)


def test_a_metadata_table_that_was_made_with_it_stays_right() -> None:
    lake = lake_of("false")
    with_metadata = {**lake.options, "hoodie.metadata.enable": "true"}

    def made() -> None:
        Table.open(lake.uri, options=with_metadata).upsert(table_of([row("z", part="r")]))

    late = written_late(lake, made)
    lake.options = with_metadata
    assert all(path in lake.files() for path in late)
    assert lake.values() == {"a": "a", "b": "a", "x": "a", "y": "a", "z": "a"}
    lake.write("delete", [row("z", part="r")])
    ensure_settled(lake, late)


def changed(storage: CountingStorage, lake: Lake) -> None:
    table = Table(load_handle(storage, SystemEnv()), lake.options, LocalEngine(1))
    table.upsert(table_of([row("b", "dead", 9), row("y", "dead", 9, part="q")]))


def completing() -> int:
    """The number of the call by which such a write completes."""
    lake = lake_of("true")
    storage = CountingStorage(lake.storage)
    changed(storage, lake)
    return next(call.n for call in storage.calls if is_completion(call))


def test_a_file_that_the_rollback_of_another_write_has_listed_is_taken_back_again() -> None:
    lake = lake_of("true")

    def dies_and_is_rolled_back() -> None:
        storage = CountingStorage(lake.storage, crash_at=completing())
        with pytest.raises(Crash):
            changed(storage, lake)
        lake.table.services.rollback(lake.table.timeline().pending()[-1].requested)

    late = written_late(lake, dies_and_is_rolled_back)
    ensure_settled(lake, late)


def test_a_file_of_a_dead_writer_is_not_listed_by_the_rollback_of_another_write() -> None:
    lake = lake_of("true")
    late: list[str] = []

    def others(call: Call) -> None:
        if rolled_back(call):
            return
        if len(late) == GROUPS and call.op in {"create", "exclusive"} and ".temp" not in call.path:
            dead.append(call.n)

    dead: list[int] = []
    rolled_back = rolled_back_at_first(lake, late)
    written = CountingStorage(lake.storage, on_call=others)
    with pytest.raises(Fenced):
        changed(written, lake)
    lake = lake_of("true")
    late.clear()
    rolled_back = rolled_back_at_first(lake, late)
    with pytest.raises(Crash):
        changed(CountingStorage(lake.storage, crash_at=dead[0], on_call=others), lake)
    assert all(path in lake.files() for path in late)
    with pytest.raises(Crash):
        changed(CountingStorage(lake.storage, crash_at=completing()), lake)
    lake.table.services.rollback(lake.table.timeline().pending()[-1].requested)
    listed = {file.path for partition in lake.metadata().files(["p", "q"]) for file in partition.everything}
    assert not listed.intersection(late)
    assert lake.values() == {"a": "a", "b": "a", "x": "a", "y": "a"}


@pytest.mark.parametrize("metadata", ["true", "false"], ids=["metadata", "folders"])
def test_a_table_that_was_upgraded_meanwhile_keeps_it(metadata: str) -> None:
    lake = lake_of(metadata)
    written_late(lake, lambda: lake.table.services.upgrade(8))
    lake.options = {**lake.options, "hoodie.write.table.version": 8}
    assert lake.table.validate() == []
    lake.upsert(row("b", "new", 2))
    assert lake.values() == {"a": "a", "b": "new", "x": "a", "y": "a"}
    lake.table.services.compact(**NOW)
    assert lake.values() == {"a": "a", "b": "new", "x": "a", "y": "a"}
    assert lake.table.validate() == []


@pytest.mark.parametrize("cause", [KeyboardInterrupt, ValueError], ids=["interrupt", "foreign"])
@pytest.mark.parametrize("replacing", ["delete_partition", "insert_overwrite"])
@pytest.mark.parametrize("version", [8, 9])
def test_a_file_that_is_begun_while_the_table_is_upgraded_does_not_outlive_its_slice(
    version: int, replacing: str, cause: type[BaseException]
) -> None:
    """Cleans go by the metadata table then, which does not list it. Its marker has gone with the rollback."""
    lake = lake_of("true")
    late: list[str] = []
    failed: list[bool] = []
    begins = rolled_back_at_first(lake, late)

    def others(call: Call) -> None:
        if begins(call):
            if len(late) == 1:
                lake.table.services.upgrade(version)
                lake.options = {**lake.options, "hoodie.write.table.version": str(version)}
        elif late and call.op == "exclusive" and not failed:
            failed.append(True)
            raise cause

    table = Table(load_handle(CountingStorage(lake.storage, on_call=others), SystemEnv()), lake.options, LocalEngine(1))
    with pytest.raises(cause):
        table.upsert(table_of([row("a", "late", 9)]))
    named = {"hoodie.datasource.write.partitions.to.delete": "p"} if replacing == "delete_partition" else {}
    lake.write(replacing, [] if named else [row("a", "new", 50)], named)
    expected = {"x": "c8", "y": "a"} | ({} if named else {"a": "new"})
    for number in range(9):
        lake.upsert(row("x", f"c{number}", 60 + number, part="q"))
    lake.table.services.compact(**NOW)
    lake.table.services.clean(**{"hoodie.clean.commits.retained": "1"})
    lake.table.services.archive(**ARCHIVING)
    assert late[0] not in lake.files()
    lake.table.indexes.rebuild()
    assert lake.values() == expected
    lake.upsert(row("a", "more", 99))
    assert lake.values() == {**expected, "a": "more"}
    assert lake.table.validate() == []


@pytest.mark.parametrize("replacing", ["cluster", "insert_overwrite"])
def test_a_file_whose_slice_was_cleaned_and_archived_meanwhile_is_no_file_group(replacing: str) -> None:
    """The write cannot be pending again, and writers refuse a group of log files only."""
    lake = logged_lake(6, **{**OPTIONS, "hoodie.metadata.enable": "false", "hoodie.archive.automatic": "false"})
    lake.upsert(row("a"), row("b"))
    late: list[str] = []
    begins = rolled_back_at_first(lake, late)

    def others(call: Call) -> None:
        if not begins(call) or len(late) > 1:
            return
        if replacing == "cluster":
            lake.table.services.cluster()
        else:
            lake.write(replacing, [row("a"), row("b")])
        for number in range(8):
            lake.upsert(row("c", f"c{number}", 2 + number, part="q"))
        lake.table.services.clean(**{"hoodie.clean.commits.retained": "1"})
        lake.table.services.archive(**ARCHIVING)

    table = Table(load_handle(CountingStorage(lake.storage, on_call=others), SystemEnv()), lake.options, LocalEngine(1))
    with pytest.raises((Conflict, Fenced)):
        table.upsert(table_of([row("a", "late", 9), row("b", "late", 9)]))
    assert late[0] not in lake.files()
    lake.upsert(row("b", "more", 20))
    assert lake.values() == {"a": "a", "b": "more", "c": "c7"}
    assert lake.table.validate() == []


@pytest.mark.parametrize("cause", [KeyboardInterrupt, ValueError], ids=["interrupt", "foreign"])
@pytest.mark.parametrize("metadata", ["true", "false"], ids=["metadata", "folders"])
@pytest.mark.parametrize("made", [Lake, logged_lake], ids=["cow", "mor"])
@pytest.mark.parametrize("version", [6, 9])
def test_who_was_rolled_back_and_fails_for_another_reason_leaves_nothing_that_counts(
    version: int, made: Any, metadata: str, cause: type[BaseException]
) -> None:
    given = {**OPTIONS, "hoodie.metadata.enable": metadata}
    lake: Lake = Lake(version, given) if made is Lake else made(version, **given)
    lake.upsert(row("a"), row("b"))
    before = set(lake.files())

    rolled_back: list[bool] = []

    def late(call: Call) -> None:
        if call.op == "open_output" and ".hoodie" not in call.path and not rolled_back:
            rolled_back.append(True)
            lake.table.services.rollback(lake.table.timeline().pending()[-1].requested)
        elif call.op == "exclusive" and rolled_back == [True]:
            rolled_back.append(False)
            raise cause

    storage = CountingStorage(lake.storage, on_call=late)
    table = Table(load_handle(storage, SystemEnv()), lake.options, LocalEngine(1))
    with pytest.raises(cause):
        table.upsert(table_of([row("a", "late", 9), row("c", "late", 9)]))
    lake.table.services.clean()
    new = {path for path in set(lake.files()) - before if not path.startswith(".hoodie")}
    assert all(is_covered(lake, path) or not has_rows(lake, path) for path in new)
    assert lake.values() == {"a": "a", "b": "a"}
    assert lake.table.validate() == []


@pytest.mark.parametrize("ending", ["told", "dies"])
@pytest.mark.parametrize("metadata", ["true", "false"], ids=["metadata", "folders"])
@pytest.mark.parametrize("meanwhile", ["cluster", "overwrite", "compact"])
def test_a_file_that_comes_late_goes_with_its_slice(meanwhile: str, metadata: str, ending: str) -> None:
    """Without what lies before it, it would be a file group, and count in later versions."""
    lake = logged_lake(6, **{**OPTIONS, "hoodie.metadata.enable": metadata, "hoodie.archive.automatic": "false"})
    lake.upsert(row("a"), row("b"))
    late: list[str] = []

    def others(call: Call) -> None:
        if is_log_file(call) and not late:
            late.append(call.path)
            lake.table.services.rollback(lake.table.timeline().pending()[-1].requested)
            if meanwhile == "cluster":
                lake.table.services.cluster()
            elif meanwhile == "overwrite":
                lake.write("insert_overwrite", [row("a"), row("b")])
            else:
                lake.upsert(row("a", "a", 2))
                lake.table.services.compact(**NOW)
        elif late and ending == "dies" and call.op == "exclusive":
            raise Crash

    table = Table(load_handle(CountingStorage(lake.storage, on_call=others), SystemEnv()), lake.options, LocalEngine(1))
    with pytest.raises((Conflict, Crash)):
        table.upsert(table_of([row("a", "late", 9), row("b", "late", 9)]))
    for number in range(8):
        lake.upsert(row("c", f"c{number}", 2 + number, part="q"))
    lake.table.services.clean(**{"hoodie.clean.commits.retained": "1"})
    lake.table.services.archive(**ARCHIVING)
    assert late[0] not in lake.files()
    lake.upsert(row("b", "more", 20))
    lake.table.services.upgrade(8)
    lake.options = {**lake.options, "hoodie.write.table.version": "8"}
    assert lake.values() == {"a": "a", "b": "more", "c": "c7"}
    assert lake.table.validate() == []


def test_an_old_file_of_a_writer_that_never_completed_is_not_upgraded() -> None:
    lake, late = lake_of("false"), []

    def dies(call: Call) -> None:
        if is_log_file(call) and not late:
            late.append(call.path)
            lake.table.services.rollback(lake.table.timeline().pending()[-1].requested)
        elif late and call.op == "exclusive":
            raise Crash

    table = Table(load_handle(CountingStorage(lake.storage, on_call=dies), SystemEnv()), lake.options, LocalEngine(1))
    with pytest.raises(Crash):
        table.upsert(table_of([row("a", "late", 9)]))
    for number in range(8):
        lake.upsert(row("y", f"y{number}", 2 + number, part="q"))
    lake.table.services.archive(**ARCHIVING)
    lake.table.services.upgrade(8)
    lake.options = {**lake.options, "hoodie.write.table.version": "8"}
    assert lake.values() == {"a": "a", "b": "a", "x": "a", "y": "y7"}


@pytest.mark.parametrize(
    "content", [b"", b"#HUDI#", bytes(40), b"no log file at all", b"#HUDI#" + bytes(8) + b"\0\0\0\x63"]
)
def test_a_torn_stray_does_not_hold_up_an_upgrade(content: bytes) -> None:
    lake = lake_of("true")
    (base,) = (path for path in lake.files() if path.startswith("p/") and path.endswith(".parquet"))
    file_id, _, rest = base.removeprefix("p/").partition("_")
    instant = rest.rpartition("_")[2].removesuffix(".parquet")
    lake.storage.create(f"p/.{file_id}_{instant}.log.1_0-9-9", content)
    lake.table.services.upgrade(8)
    lake.options = {**lake.options, "hoodie.write.table.version": "8"}
    assert lake.values() == {"a": "a", "b": "a", "x": "a", "y": "a"}


def has_rows(lake: Lake, path: str) -> bool:
    """Whether a file has rows: a log file of command blocks alone has none."""
    if ".log." not in path:
        return True
    blocks = read_blocks(lake.storage, path, lake.storage.head(path).size_bytes)
    return any(block.kind is not BlockKind.COMMAND for block in blocks)


def test_who_is_locked_out_leaves_its_log_files_to_a_rollback() -> None:
    lake = lake_of("true")

    late: list[str] = []
    begins = rolled_back_at_first(lake, late)

    def others(call: Call) -> None:
        if call.op == "exclusive" and late:
            raise Conflict("another writer holds the table", remedy="wait")
        begins(call)

    storage = CountingStorage(lake.storage, on_call=others)
    table = Table(load_handle(storage, SystemEnv()), lake.options, LocalEngine(1))
    with pytest.raises(Conflict):
        table.upsert(table_of([row("a", "late", 9), row("x", "late", 9, part="q")]))
    ensure_settled(lake, late)


def test_writes_of_one_slice_are_rolled_back_one_after_the_other() -> None:
    """The log files of a slice go with the write that began it, also from what other writes have listed."""
    lake = logged_lake(6, **{"hoodie.clean.automatic": "false", "hoodie.merge.small.file.group.candidates.limit": "0"})
    lake.upsert(row("a"), row("b"))
    lake.upsert(row("n", "new"))
    lake.upsert(row("n", "log", 2))
    for _ in range(2):
        lake.table.services.rollback(lake.table.timeline().completed_writes()[-1].requested)
    assert lake.values() == {"a": "a", "b": "a"}
    assert lake.table.validate() == []
    for number in range(8):
        lake.upsert(row("b", "new", 3 + number))
    lake.table.services.archive(**ARCHIVING)
    assert lake.values() == {"a": "a", "b": "new"}
    lake.table.services.compact(**NOW)
    assert lake.values() == {"a": "a", "b": "new"}
    assert lake.table.validate() == []
