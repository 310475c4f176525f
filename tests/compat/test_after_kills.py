"""Tables whose service was killed by SIGKILL: the real Hudi reads them before anybody heals them, and goes on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from peers import (
    WRITE,
    Model,
    Peer,
    continue_table,
    difference,
    ensure_same_rows,
    read_rows,
    slim_rows,
    table_options,
    without_meta,
    write_rows,
)

from hoodie import Table
from hoodie.testing.killed import AFTER_ALL, Action, Killer

METADATA = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "false"}
ALONE = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.compaction.async.enable": "true",
}
EVENT_TIME_PAYLOAD = {WRITE + "payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"


def opened(path: str) -> Table:
    return Table.open(path, options={**ALONE, "hoodie.metadata.enable": "false"})


def upsert(path: str) -> None:
    opened(path).upsert(slim_rows(range(5, 30), turn=4))


def make_metadata(path: str) -> None:
    Table.open(path, options={**ALONE, **METADATA}).upsert(slim_rows(range(20, 50), turn=4))


def compact(path: str) -> None:
    opened(path).services.compact()


def clean(path: str) -> None:
    opened(path).services.clean(**{"hoodie.clean.commits.retained": "1"})


def archive(path: str) -> None:
    clean(path)
    limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    opened(path).services.archive(**limits)


def roll_back_newest(path: str) -> None:
    table = opened(path)
    table.services.rollback(table.timeline().completed_writes()[-1].requested)


def upgrade(version: int, path: str) -> None:
    opened(path).services.upgrade(version)


@dataclass(frozen=True)
class Killed:
    """A service that is killed at the first change of the disk in which `at` is found (see `hoodie.testing.killed`)."""

    name: str
    version: int
    table_type: str
    run: Action
    at: str


CASES = [
    Killed("upsert in a log file", 6, MOR, upsert, r"write .*\.log\."),
    Killed("compaction in a base file", 6, MOR, compact, r"write .*\.parquet$"),
    Killed("compaction before its commit", 9, MOR, compact, r"link \.hoodie/timeline/[0-9_]+\.commit$"),
    Killed("clean after its deletes", 9, COW, clean, r"link \.hoodie/timeline/[0-9_]+\.clean$"),
    Killed("archive before its deletes", 9, COW, archive, r"remove \.hoodie/timeline/[0-9]"),
    Killed("rollback after its deletes", 6, COW, roll_back_newest, r"remove \.hoodie/[0-9]+\.inflight$"),
    Killed("metadata before it counts", 9, COW, make_metadata, r"rename \.hoodie/hoodie\.properties$"),
    Killed("upgrade before its switch", 6, MOR, partial(upgrade, 9), r"rename \.hoodie/hoodie\.properties$"),
    Killed("upgrade after its switch", 6, COW, partial(upgrade, 9), r"remove \.hoodie/[0-9]+\."),
]


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as one:
        yield one


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}, v{case.version}")
def test_hudi_reads_and_continues_what_a_kill_left(case: Killed, hudi_12: Peer, killer: Killer, tmp_path: Path) -> None:
    table = tmp_path / "table"
    _make(table, case)
    before = _values(table)
    done = tmp_path / "done"
    shutil.copytree(table, done)
    killer.changes(case.run, str(done))
    after = _values(done)
    killed_at = killer.kill(case.run, str(table), case.at)
    assert killed_at != AFTER_ALL
    found = read_rows(table)
    ensure_same_rows(found, hudi_12.read(table), called=("ours", "Hudi"))
    assert any(_are_same(without_meta(found), rows) for rows in (before, after)), f"killed at {killed_at}"

    more = slim_rows(range(28, 33), turn=5)
    payload = EVENT_TIME_PAYLOAD if case.version == 6 and case.table_type == MOR else {}
    hudi_12.write(table, "upsert", more, {**payload, **ALONE})

    found = read_rows(table)
    ensure_same_rows(found, hudi_12.read(table), called=("ours", "Hudi, continued"))
    continued = [_with(rows, more) for rows in (before, after)]
    assert any(_are_same(without_meta(found), rows) for rows in continued), f"killed at {killed_at}"
    last_rows = slim_rows(range(3), turn=6)
    continue_table(table, "upsert", last_rows, ALONE)
    found = read_rows(table)
    ensure_same_rows(found, hudi_12.read(table), called=("ours", "Hudi, continued by us"))
    assert any(_are_same(without_meta(found), _with(rows, last_rows)) for rows in continued)


def _make(table: Path, case: Killed) -> None:
    payload = EVENT_TIME_PAYLOAD if case.version == 6 and case.table_type == MOR else {}
    options = {**table_options(case.version, "id", "region"), WRITE + "table.type": case.table_type, **payload}
    write_rows(table, "insert", slim_rows(range(30)), {**options, **ALONE})
    for turn in (1, 2, 3):
        continue_table(table, "upsert", slim_rows(range(turn, 10 * turn), turn=turn), ALONE)


def _values(table: Path) -> pa.Table:
    return without_meta(read_rows(table))


def _with(rows: pa.Table, more: pa.Table) -> pa.Table:
    """The rows after an upsert of others."""
    model = Model(slim_rows(range(0)).schema)
    model.upsert(rows)
    model.upsert(more)
    return model.rows


def _are_same(one: pa.Table, other: pa.Table) -> bool:
    return difference(one, other) is None
