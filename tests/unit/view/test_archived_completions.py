"""Log files whose delta commit was archived still belong to the slice that their completion time names."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import Corrupt
from hoodie.fileview import FolderView
from hoodie.spec import V6, V9, BaseFileName, FormatProfile, LogFileName
from hoodie.storage import MemoryStorage
from hoodie.testing.hand_table import HandTable, at
from hoodie.timeline import load_timeline


def archive(storage: MemoryStorage, **times: tuple[str, str]) -> None:
    """Deltacommits (and whatever else) as the only file of the history: name → (requested, completed)."""
    rows = {
        "instantTime": [requested for requested, _ in times.values()],
        "completionTime": [completed for _, completed in times.values()],
        "action": [name.partition("_")[0] for name in times],
    }
    buffer = io.BytesIO()
    pq.write_table(pa.table(rows), buffer)
    storage.put(f"{V9.history_dir}/a.parquet", buffer.getvalue())
    names = {"files": [{"fileName": "a.parquet", "fileLen": 1}]}
    storage.put(f"{V9.history_dir}/manifest_1", json.dumps(names).encode())


def table(profile: FormatProfile = V9) -> HandTable:
    """A group with base files at 1 and 4, a log file of a delta commit requested at 2, and active commits from 8 on."""
    made = HandTable(profile)
    made.commit(at(8), {("p", "other"): []})
    for name in (
        BaseFileName("f", "0-1-2", at(1)),
        BaseFileName("f", "0-1-2", at(4)),
        LogFileName("f", at(2), 1, "1-1-1"),
    ):
        made.storage.put(f"p/{name.text}", b"x")
    return made


def logs_by_slice(made: HandTable) -> dict[str, int]:
    timeline = load_timeline(made.storage, made.profile, "UTC")
    view = FolderView(made.storage, timeline).load()
    return {part.base_instant: len(part.logs) for part in view.all_slices() if part.file_id == "f"}


@pytest.mark.parametrize(
    ("completed", "expected"), [(at(3), {at(4): 0, at(1): 1}), (at(5), {at(4): 1, at(1): 0})], ids=["before", "after"]
)
def test_the_completion_of_an_archived_delta_commit_decides(completed, expected):
    made = table()
    archive(made.storage, commit=(at(1), at(1, 500)), deltacommit=(at(2), completed), commit_2=(at(4), at(6)))
    assert logs_by_slice(made) == expected


def test_without_a_newer_base_file_the_history_is_not_read():
    made = table()
    made.storage.delete(f"p/{BaseFileName('f', '0-1-2', at(4)).text}")
    made.storage.put(f"{V9.history_dir}/manifest_1", b"damaged")
    assert logs_by_slice(made) == {at(1): 1}


def test_a_damaged_history_is_an_error_where_it_decides():
    made = table()
    made.storage.put(f"{V9.history_dir}/manifest_1", b"damaged")
    with pytest.raises(Corrupt, match="manifest_1"):
        logs_by_slice(made)


def test_without_any_history_the_request_stands_for_the_completion():
    assert logs_by_slice(table()) == {at(4): 0, at(1): 1}


def test_log_files_of_version_6_do_not_ask():
    made = table(V6)
    made.storage.put(f"{V6.history_dir}/.commits_.archive.1_1-0-1", b"damaged")
    assert sum(logs_by_slice(made).values()) == 1


def test_a_timeline_keeps_what_it_was_told_of_archived_writes():
    timeline = table().timeline().with_archived({at(1): at(3)})
    assert timeline.completion_of(at(1)) == at(3)
    assert timeline == table().timeline()
    (only,) = timeline.instants
    assert timeline.with_instant(only).without(only).completion_of(at(1)) == at(3)
    assert timeline.with_archived({at(2): at(4)}).archived == {at(1): at(3), at(2): at(4)}
