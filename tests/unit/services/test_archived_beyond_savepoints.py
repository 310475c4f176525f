"""A table whose history reaches beyond a savepoint keeps its rows when the savepoint goes, and is not half restored."""

from __future__ import annotations

import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import Invalid
from hoodie.services.archiving.archive import archive_writes
from hoodie.services.archiving.unsaved import drop_savepoint
from hoodie.services.rollback.restore import restore
from hoodie.spec import SAVEPOINT, V8, V9
from hoodie.state.handle import load_handle
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.hand_table import HandTable, at
from hoodie.testing.interleaved import SEVERAL, write_around
from hoodie.testing.lake import Lake, logged_lake, row, table_of

BEYOND = {
    "hoodie.archive.beyond.savepoint": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
}
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])
KINDS = pytest.mark.parametrize("is_logged", [False, True], ids=["copy-on-write", "merge-on-read"])
METADATA = pytest.mark.parametrize("metadata", ["false", "true"], ids=["listed", "metadata"])


def archived_beyond(version: int, metadata: str, *, is_logged: bool) -> tuple[Lake, str]:
    """A table with thirteen rows whose first commit is saved, and of which later ones are archived; and that commit."""
    options = {
        "hoodie.clean.automatic": "false",
        "hoodie.compact.inline": "false",
        "hoodie.archive.automatic": "false",
        "hoodie.metadata.enable": metadata,
        "hoodie.parquet.small.file.limit": "0",
    }
    lake = logged_lake(version, **options) if is_logged else Lake(version, options)
    lake.upsert(row("a"))
    saved = lake.table.savepoints.create().instant
    for number in range(12):
        lake.upsert(row(f"k{number}", part=f"q{number % 3}"))
    if is_logged:
        lake.table.services.compact()
    assert lake.table.services.archive(**BEYOND) is not None
    assert len(lake.values()) == 13
    return lake, saved


@VERSIONS
@KINDS
@METADATA
def test_rows_stay_when_the_savepoint_goes(version: int, metadata: str, is_logged: bool) -> None:
    lake, saved = archived_beyond(version, metadata, is_logged=is_logged)
    before = lake.values()
    lake.table.savepoints.delete(saved)
    assert lake.values() == before
    lake.ensure_sound()
    lake.upsert(*(row(f"k{number}", "new", 99, part=f"q{number}") for number in range(3)))
    wanted = before | {f"k{number}": "new" for number in range(3)}
    assert lake.values() == wanted
    for number in range(4):
        lake.table.services.archive(**BEYOND)
        lake.upsert(row("z", str(number), 100 + number))
    assert lake.values() == wanted | {"z": "3"}
    assert len(lake.table.scan(columns=["id"]).read_all()) == len(wanted) + 1
    lake.ensure_sound()


@VERSIONS
@KINDS
@METADATA
def test_a_restore_over_archived_writes_is_refused(version: int, metadata: str, is_logged: bool) -> None:
    lake, saved = archived_beyond(version, metadata, is_logged=is_logged)
    before = lake.values()
    with pytest.raises(Invalid, match="are archived"):
        lake.table.services.restore(saved)
    assert lake.values() == before
    lake.ensure_sound()
    assert not lake.table.timeline().pending()


@VERSIONS
def test_who_dies_while_a_savepoint_goes_loses_no_row(version: int) -> None:
    """At each call: the table shows all rows, and the savepoint can be deleted after it."""
    lake, saved = archived_beyond(version, "false", is_logged=False)
    before, files = lake.values(), lake.files()
    counted = CountingStorage(lake.storage)
    drop_savepoint(load_handle(counted, lake.handle().env), saved)
    assert counted.count > 5
    for call in range(1, counted.count + 1):
        copy = Lake(version, lake.options)
        for path, data in files.items():
            copy.storage.put(path, data)
        with pytest.raises(Crash):
            drop_savepoint(load_handle(CountingStorage(copy.storage, crash_at=call), copy.handle().env), saved)
        assert copy.values() == before, call
        if any(one.action == SAVEPOINT for one in copy.table.timeline().instants):
            copy.table.savepoints.delete(saved)
        assert copy.values() == before, call


@pytest.mark.parametrize("version", [8, 9])
def test_a_restore_is_refused_where_an_archived_write_completed_after_its_commit(version: int) -> None:
    """It was requested before that commit, so that it was archived before."""
    table = HandTable(V8 if version == 8 else V9)
    for second in range(1, 6):
        table.commit(at(second), {("p", f"f{second}"): [{"id": str(second), "part": "p", "qty": 1}]})
    late = {("p", "late"): [{"id": "late", "part": "p", "qty": 1}]}
    table.commit(at(6), late, completed=at(9))
    table.commit(at(7), {("p", "f7"): [{"id": "7", "part": "p", "qty": 1}]}, completed=at(8))
    for second in range(10, 13):
        table.commit(at(second), {("p", f"f{second}"): [{"id": str(second), "part": "p", "qty": 1}]})
    archive_writes(table.handle, {at(second) for second in range(1, 7)})
    engine = LocalEngine(1)
    with pytest.raises(Invalid, match=f"1 writes after {at(7)} are archived"):
        restore(table.handle, resolve({}), engine, at(7))
    assert restore(table.handle, resolve({}), engine, at(10)).undone == (at(12), at(11))


@pytest.mark.sampled(4)
@VERSIONS
@METADATA
@pytest.mark.parametrize("policy", ["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS"])
@pytest.mark.parametrize("beyond", ["false", "true"])
@pytest.mark.parametrize("replaced_by", ["a clustering that was pending", "a clustering", "an overwrite"])
def test_rows_that_were_replaced_stay_away_while_a_savepoint_keeps_their_files(
    version: int, metadata: str, policy: str, beyond: str, replaced_by: str
) -> None:
    options = {
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        "hoodie.metadata.enable": metadata,
        "hoodie.parquet.small.file.limit": "0",
    }
    lake = Lake(version, options)
    lake.upsert(row("a"), row("b"))
    lake.write("insert", [row("c")])
    if replaced_by == "a clustering that was pending":
        lake.table.services.cluster(op="schedule")
    lake.upsert(row("q", part="q"))
    saved = lake.table.savepoints.create().instant
    if replaced_by == "an overwrite":
        lake.write("insert_overwrite", [row("a"), row("b"), row("c")])
    else:
        assert lake.table.services.cluster() is not None
    keeping = {"hoodie.clean.policy": policy, "hoodie.clean.fileversions.retained": "1"}
    for number in range(8):
        lake.upsert(row("q", f"q{number}", 2 + number, part="q"), row("a", f"a{number}", 2 + number))
        lake.table.services.clean(**BEYOND, **keeping)
        lake.table.services.archive(**BEYOND | keeping | {"hoodie.archive.beyond.savepoint": beyond})
        assert lake.values() == {"a": f"a{number}", "b": "a", "c": "a", "q": f"q{number}"}
    lake.table.savepoints.delete(saved)
    for number in range(8, 14):
        lake.upsert(row("q", f"q{number}", 2 + number, part="q"), row("a", f"a{number}", 2 + number))
        lake.table.services.clean(**BEYOND, **keeping)
        lake.table.services.archive(**BEYOND | keeping)
        assert lake.values() == {"a": f"a{number}", "b": "a", "c": "a", "q": f"q{number}"}
    lake.ensure_sound()
    assert len(lake.table.timeline().completed_writes()) < 8, "it may go once the savepoint is gone"


@pytest.mark.parametrize("version", [8, 9])
@KINDS
def test_a_savepoint_can_be_restored_to_though_a_write_was_pending_when_it_was_made(
    version: int, is_logged: bool
) -> None:
    options = {
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        "hoodie.compact.inline": "false",
        **SEVERAL,
    }
    lake = logged_lake(version, **options) if is_logged else Lake(version, options)
    lake.upsert(row("a"), row("b"))
    saved: list[str] = []

    def between() -> None:
        lake.upsert(row("q", part="q"))
        saved.append(lake.table.savepoints.create().instant)

    write_around(lake, "upsert", table_of([row("a", "late", 5)]), between)
    for number in range(8):
        lake.upsert(row("q", f"q{number}", 2 + number, part="q"))
        lake.table.services.clean(**{"hoodie.clean.commits.retained": "1"})
        lake.table.services.archive(**{**BEYOND, "hoodie.archive.beyond.savepoint": "false"})
    assert lake.values() == {"a": "late", "b": "a", "q": "q7"}
    lake.table.services.restore(saved[0])
    assert lake.values() == {"a": "a", "b": "a", "q": "a"}
    lake.ensure_sound()
