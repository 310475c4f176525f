"""Cleaning and archiving in turns with the real Hudi: what one left, the other reads, and cleans and archives on.

The peers run without a metadata table; see `test_turns`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from peers import (
    Model,
    Peer,
    Readers,
    continue_table,
    ensure_same_rows,
    slim_rows,
    table_options,
    without_meta,
    write_rows,
)

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.locks import held_lock
from hoodie.services.archiving.archive import archive
from hoodie.services.cleaning.clean import clean
from hoodie.spec import CLEAN, COMPLETED_WRITE_ACTIONS
from hoodie.state.handle import TableHandle, open_handle, timeline_of
from hoodie.timeline import load_history

ENGINE = LocalEngine(2)
WRITERS = [(6, "hudi_015"), (6, "hudi_12"), (8, "hudi_12"), (9, "hudi_12")]
LIMITS = {
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
}
INLINE = {**LIMITS, "hoodie.clean.automatic": "true", "hoodie.archive.automatic": "true"}
NEVER = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
SMALL_HISTORY = {"hoodie.timeline.compaction.batch.size": "3"}
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


def tidy(path: Path, **more: str) -> tuple[int, int]:
    """Files we cleaned and instants we archived."""
    handle = open_handle(str(path), {})
    config = resolve({**LIMITS, **SMALL_HISTORY, **more})
    with held_lock(handle.storage, "clean"):
        cleaned = clean(handle, config, ENGINE)
        archived = archive(handle, config, ENGINE)
    return cleaned.files if cleaned else 0, archived.instants if archived else 0


def writes_of(handle: TableHandle) -> list[str]:
    """Requested times of all writes, active and archived, each as often as it is there."""
    return sorted([*archived_writes(handle), *(one.requested for one in timeline_of(handle).completed_writes())])


def archived_writes(handle: TableHandle) -> list[str]:
    """Requested times of the writes in the history."""
    found = load_history(handle.storage, handle.profile)
    return [one.requested for one in found if one.action in COMPLETED_WRITE_ACTIONS]


def archived_by(peer: Peer, path: Path) -> list[str]:
    """Requested times of the writes in the history as the peer lists them."""
    ever = "start_ts => '20000101000000000', end_ts => '29991231000000000'"
    statement = f"CALL show_archived_commits(table => '{{t}}', limit => 1000, {ever})"
    answer = peer.ask("sql", path=str(path), statement=statement)
    return sorted(str(row["commit_time"]) for row in answer["rows"])


def upsert_by_us(path: Path, model: Model, first: int, count: int = 1) -> None:
    for turn in range(first, first + count):
        rows = slim_rows(range(0, 40, 2 + turn % 3), turn)
        continue_table(path, "upsert", rows, NEVER)
        model.upsert(rows)


def upsert_by(peer: Peer, path: Path, model: Model, first: int, count: int = 1) -> None:
    for turn in range(first, first + count):
        rows = slim_rows(range(1, 40, 2 + turn % 3), turn)
        peer.write(path, "upsert", rows, {**INLINE, **SMALL_HISTORY})
        model.upsert(rows)


def ensure_all_agree(readers: Readers, path: Path, version: int, model: Model, **query: Any) -> None:
    rows = readers.ensure_agree(path, version, **query)
    ensure_same_rows(without_meta(rows), model.rows, called=("all of us", "model"))


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_hudi_goes_on_after_our_clean_and_archive(version: int, writer: str, readers: Readers, tmp_path: Path) -> None:
    peer: Peer = getattr(readers, writer)
    path, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    start = slim_rows(range(40))
    write_rows(path, "insert", start, table_options(version, "id", "region") | NEVER)
    model.upsert(start)
    upsert_by_us(path, model, 1, 8)
    files, instants = tidy(path)
    assert files
    assert instants
    ensure_all_agree(readers, path, version, model)
    handle = open_handle(str(path), {})
    assert archived_by(peer, path) == archived_writes(handle)
    kept = timeline_of(handle).completed_writes()[-2].requested
    readers.ensure_agree(path, version, query="time_travel", as_of=kept)
    readers.ensure_agree(path, version, query="incremental", begin=kept)
    # They clean and archive from where we stopped, then we from where they stopped.
    before = writes_of(handle)
    upsert_by(peer, path, model, 20, 6)
    theirs = [one for one in timeline_of(handle).completed() if one.action == CLEAN]
    assert theirs, "they have cleaned"
    ensure_all_agree(readers, path, version, model)
    assert len(writes_of(handle)) == len(set(writes_of(handle))) == len(before) + 6
    upsert_by_us(path, model, 30, 4)
    files, instants = tidy(path)
    assert files
    assert instants
    ensure_all_agree(readers, path, version, model)
    assert len(writes_of(handle)) == len(set(writes_of(handle))) == len(before) + 10
    shown = archived_by(peer, path)
    active = {one.requested for one in timeline_of(handle).completed_writes()}
    assert sorted(set(shown) | active) == writes_of(handle)
    assert not set(shown) & active


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_we_go_on_after_their_clean_and_archive(
    version: int, writer: str, kind: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    path, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    start = slim_rows(range(40))
    options = table_options(version, "id", "region") | {"hoodie.datasource.write.table.type": kind}
    compacting = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    peer.write(path, "insert", start, options | INLINE, mode="overwrite")
    model.upsert(start)
    for turn in range(1, 11):
        rows = slim_rows(range(1, 40, 2 + turn % 3), turn)
        peer.write(path, "upsert", rows, {**INLINE, **SMALL_HISTORY, **(compacting if kind == KINDS[1] else {})})
        model.upsert(rows)
    handle = open_handle(str(path), {})
    before = writes_of(handle)
    assert load_history(handle.storage, handle.profile), "they have archived"
    for turn in range(20, 24):
        rows = slim_rows(range(1, 40, 2 + turn % 3), turn)
        peer.write(path, "upsert", rows, {**NEVER, **(compacting if kind == KINDS[1] else {})})
        model.upsert(rows)
    more = {"hoodie.compact.inline.max.delta.commits": "2"} if kind == KINDS[1] else {}
    files, instants = tidy(path, **more)
    assert files
    assert instants
    ensure_all_agree(readers, path, version, model)
    assert len(writes_of(handle)) == len(set(writes_of(handle))) >= len(before) + 4
    for turn in range(30, 33):
        rows = slim_rows(range(1, 40, 2 + turn % 3), turn)
        peer.write(path, "upsert", rows, {**INLINE, **SMALL_HISTORY, **(compacting if kind == KINDS[1] else {})})
        model.upsert(rows)
    ensure_all_agree(readers, path, version, model)
    assert len(writes_of(handle)) == len(set(writes_of(handle)))


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_replaced_groups_and_dropped_partitions_are_cleaned_by_either(
    version: int, writer: str, readers: Readers, tmp_path: Path
) -> None:
    peer: Peer = getattr(readers, writer)
    path, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    start = slim_rows(range(40))
    write_rows(path, "insert", start, table_options(version, "id", "region") | NEVER)
    model.upsert(start)
    regions = sorted(set(start["region"].to_pylist()))
    gone = start.filter(_is(start, regions[0]))
    continue_table(path, "delete_partition", gone, NEVER)
    model.delete(gone)
    for turn in (1, 2, 3):
        rows = slim_rows(range(40), turn)
        rows = rows.filter(_is_not(rows, regions[0]))
        continue_table(path, "upsert", rows, NEVER)
        model.upsert(rows)
    tidy(path)
    assert not (path / regions[0]).exists(), "we dropped the partition"
    ensure_all_agree(readers, path, version, model)
    rows = slim_rows(range(40), 9)
    peer.write(path, "insert_overwrite", rows.filter(_is(rows, regions[1])), {**INLINE, **SMALL_HISTORY})
    model.delete(start.filter(_is(start, regions[1])))
    model.upsert(rows.filter(_is(rows, regions[1])))
    for turn in (10, 11, 12):
        rows = slim_rows(range(40), turn)
        rows = rows.filter(_is_not(rows, regions[0]))
        continue_table(path, "upsert", rows, NEVER)
        model.upsert(rows)
        tidy(path)
    ensure_all_agree(readers, path, version, model)
    upsert_by(peer, path, model, 20, 3)
    ensure_all_agree(readers, path, version, model)


def _is(rows: Any, region: str) -> Any:
    return pc.equal(rows["region"], region)


def _is_not(rows: Any, region: str) -> Any:
    return pc.not_equal(rows["region"], region)
