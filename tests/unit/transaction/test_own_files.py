"""A marker that names a file of another write deletes nothing, whoever reads it: a commit, a write that fails, a plan
that is begun again. A list that is damaged holds up none of them, nor does a folder of markers that is gone.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie import Table
from hoodie.engine import LocalEngine
from hoodie.errors import Conflict, Corrupt, Fenced
from hoodie.spec import marker_dir, parse_log_file_name
from hoodie.transaction import Transaction

VERSIONS = (6, 8, 9)
QUIET = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
NOW = {"hoodie.compact.inline.max.delta.commits": "1"}


class GivenUpError(Exception):
    pass


def rows(ids, part, value):
    return pa.table({"id": list(ids), "part": [part] * len(ids), "v": [value] * len(ids)})


def rows_of(table):
    found = table.scan(columns=["id", "v"]).read_all().to_pylist()
    return sorted((row["id"], row["v"]) for row in found)


def shown(table):
    assert not table.validate(deep=True)
    return rows_of(table)


@pytest.fixture(params=[(version, metadata) for version in VERSIONS for metadata in ("true", "false")], ids=str)
def table(request, tmp_path):
    """A merge-on-read table of two partitions, each with a base file and a log file."""
    version, metadata = request.param
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.write.table.version": str(version),
        "hoodie.metadata.enable": metadata,
    }
    path = str(tmp_path / "t")
    Table.create(path, schema=rows("a", "p0", 1).schema, options=options)
    table = Table.open(path, options=QUIET | {"hoodie.metadata.enable": metadata})
    table.upsert(pa.concat_tables([rows("ab", "p0", 1), rows("xy", "p1", 1)]))
    table.upsert(pa.concat_tables([rows("a", "p0", 2), rows("x", "p1", 2)]))
    return table


BEFORE = [("a", 2), ("b", 1), ("x", 2), ("y", 1)]


def save_all(table):
    """Savepoints of all writes: what comes between them and later ones is nobody's as far as the timeline can tell."""
    for one in table.timeline().completed_writes():
        table.savepoints.create(one.requested, user="u")


def files(table):
    return [path for part in table.files() for path in (part.base.path, *(log.path for log in part.logs))]


def meet(monkeypatch, table, planted, *, fails):
    """From now on strange markers turn up in the folder of each write when it is about to commit."""
    commit = Transaction.commit

    def met(self, *given, **named):
        planted(table.storage, marker_dir(self.instant))
        if fails:
            raise GivenUpError
        return commit(self, *given, **named)

    monkeypatch.setattr(Transaction, "commit", met)
    return commit


def markers_of_all(table):
    """Markers of every file there is now."""
    named = [(path, "APPEND" if parse_log_file_name(path.rpartition("/")[2]) else "CREATE") for path in files(table)]

    def plant(storage, folder):
        for path, kind in named:
            storage.put(f"{folder}/{path}.marker.{kind}", b"")

    return plant


def damaged(storage, folder):
    storage.put(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.put(f"{folder}/MARKERS0", b"nonsense\n")


def gone(storage, folder):
    storage.delete_dir(folder)


@pytest.fixture(params=["strange", "damaged", "gone"])
def planted(request, table):
    return {"strange": markers_of_all(table), "damaged": damaged, "gone": gone}[request.param]


def test_a_commit_keeps_files_of_others(table, planted, monkeypatch):
    monkeypatch.setattr(LocalEngine, "runs_tasks_once", property(lambda self: False))
    before = files(table)
    commit = meet(monkeypatch, table, planted, fails=False)
    if planted is damaged and table.version == 6:  # nobody can tell which log files are losers'
        with pytest.raises(Corrupt, match="MARKERS0"):
            table.upsert(rows("b", "p0", 3))
        monkeypatch.setattr(Transaction, "commit", commit)
        assert rows_of(table) == BEFORE
    table.upsert(rows("b", "p0", 3))
    assert set(before) <= set(files(table))
    assert shown(table) == [("a", 2), ("b", 3), ("x", 2), ("y", 1)]


def test_a_write_that_fails_keeps_files_of_others(table, planted, monkeypatch):
    before = files(table)
    commit = meet(monkeypatch, table, planted, fails=True)
    with pytest.raises(GivenUpError):
        table.upsert(rows("b", "p0", 3))
    monkeypatch.setattr(Transaction, "commit", commit)
    assert set(before) <= set(files(table))
    assert rows_of(table) == BEFORE
    table.upsert(rows("b", "p0", 3))
    assert shown(table) == [("a", 2), ("b", 3), ("x", 2), ("y", 1)]


@pytest.mark.parametrize("fails", [False, True])
def test_a_compaction_keeps_files_of_others(table, planted, monkeypatch, fails):
    """One that is given up is carried out again, with the strange markers still there. Rows were changed meanwhile."""
    table.services.schedule_compaction(**NOW)
    table.upsert(rows("b", "p0", 4))
    commit = meet(monkeypatch, table, planted, fails=fails)
    if fails or (planted is damaged and table.version == 6):
        with pytest.raises(GivenUpError if fails else Corrupt):
            table.services.compact(**NOW)
        (pending,) = table.timeline().pending()
        planted(table.storage, marker_dir(pending.requested))
        monkeypatch.setattr(Transaction, "commit", commit)
    table.services.compact(**NOW)
    assert shown(table) == [("a", 2), ("b", 4), ("x", 2), ("y", 1)]
    table.services.schedule_compaction(**NOW)
    table.services.compact(**NOW)
    assert all(not part.logs for part in table.files())
    assert shown(table) == [("a", 2), ("b", 4), ("x", 2), ("y", 1)]


def test_a_retried_task_s_file_goes_though_its_marker_cannot_be_read(table, monkeypatch):
    if table.version == 6:
        pytest.skip("such a write is refused there")
    monkeypatch.setattr(LocalEngine, "runs_tasks_once", property(lambda self: False))
    left = []

    def plant(storage, folder):
        """As if a task had run twice: its file lies there a second time under another token."""
        instant = folder.rpartition("/")[2]
        (made,) = [one.path for one in storage.list("p2") if instant in one.path]
        again = made.replace("_0-", "_7-")
        storage.put(again, storage.read(made))
        left.append(again)
        damaged(storage, folder)

    meet(monkeypatch, table, plant, fails=False)
    table.bulk_insert(rows("cd", "p2", 3))
    (again,) = left
    assert again not in [one.path for one in table.storage.list_dir("p2").files]
    assert shown(table) == [*BEFORE[:2], ("c", 3), ("d", 3), *BEFORE[2:]]


def test_a_write_that_fails_without_its_markers_leaves_no_block_that_counts(table, monkeypatch):
    """Not behind a savepoint either, where the timeline does not say any more who was committed."""
    save_all(table)
    commit = meet(monkeypatch, table, gone, fails=True)
    with pytest.raises(GivenUpError):
        table.upsert(rows("b", "p0", 3))
    monkeypatch.setattr(Transaction, "commit", commit)
    for value in (5, 6):
        table.upsert(rows("x", "p1", value))
    assert not table.timeline().pending()
    assert shown(table) == [("a", 2), ("b", 1), ("x", 6), ("y", 1)]


LAZY = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
}


def test_a_write_whose_log_file_another_rollback_has_listed_leaves_no_block_that_counts(table, monkeypatch):
    """In version 6 a rollback tells the metadata table all log files of its slices, those of living writers, too."""
    metadata = str(table.config.has_metadata_table).lower()
    table = Table.open(table.storage.absolute(""), options={**QUIET, **LAZY, "hoodie.metadata.enable": metadata})
    save_all(table)
    commit = Transaction.commit

    def died(self, *given, **named):
        raise GivenUpError

    def met(self, *given, **named):
        with monkeypatch.context() as patched:
            patched.setattr(Transaction, "commit", died)
            patched.setattr(Transaction, "_abort", lambda *_: None)
            with pytest.raises(GivenUpError):
                table.upsert(rows("b", "p0", 8))
        table.services.rollback(table.timeline().pending()[-1].requested)
        raise GivenUpError

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "commit", met)
        with pytest.raises(GivenUpError):
            table.upsert(rows("b", "p0", 9))
    assert Transaction.commit is commit
    for left in table.timeline().pending():
        table.services.rollback(left.requested)
    for value in (5, 6):
        table.upsert(rows("x", "p1", value))
    assert shown(table) == [("a", 2), ("b", 1), ("x", 6), ("y", 1)]
    listed = Table.open(table.storage.absolute(""), options={"hoodie.metadata.enable": "false"})
    assert rows_of(listed) == [("a", 2), ("b", 1), ("x", 6), ("y", 1)]


def test_a_writer_that_was_rolled_back_takes_away_what_it_wrote_later(table, monkeypatch):
    """It wakes between two files, and gives way to another: behind savepoints nobody knows that they never counted."""
    metadata = str(table.config.has_metadata_table).lower()
    table = Table.open(table.storage.absolute(""), options={**QUIET, **LAZY, "hoodie.metadata.enable": metadata})
    save_all(table)
    before = {file.path for file in table.storage.list("") if not file.path.startswith(".hoodie")}
    commit = Transaction.commit

    def met(self, outcome, *given, **named):
        monkeypatch.setattr(Transaction, "commit", commit)
        (late,) = (path for path in outcome.files if path.startswith("p1/") and path not in before)
        data = table.storage.read(late)
        table.storage.delete(late)
        table.services.rollback(self.instant)
        table.upsert(pa.concat_tables([rows("a", "p0", 5), rows("y", "p1", 5)]))
        table.storage.put(late, data)
        return commit(self, outcome, *given, **named)

    monkeypatch.setattr(Transaction, "commit", met)
    with pytest.raises((Conflict, Fenced)):
        table.upsert(pa.concat_tables([rows("b", "p0", 9), rows("y", "p1", 9)]))
    assert rows_of(table) == [("a", 5), ("b", 1), ("x", 2), ("y", 5)]
    # In version 6 what others may have seen is left to another rollback, as cleans make it where several write.
    assert bool(table.timeline().pending()) == ((table.config.table_version, metadata) == (6, "false"))
    table.services.clean()
    assert shown(table) == [("a", 5), ("b", 1), ("x", 2), ("y", 5)]
    listed = Table.open(table.storage.absolute(""), options={"hoodie.metadata.enable": "false"})
    assert rows_of(listed) == [("a", 5), ("b", 1), ("x", 2), ("y", 5)]
