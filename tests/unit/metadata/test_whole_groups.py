"""Which files a group of the metadata table must have."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from hoodie.engine import LocalEngine
from hoodie.errors import Corrupt
from hoodie.metadata.whole_groups import SeenGroup, SeenLog, Written, WrittenFile, ensure_whole, seen_group
from hoodie.spec import DELTA_COMMIT, INIT_INSTANT, V9, BaseFileName, Instant, InstantTime, LogFileName, State
from hoodie.storage import Storage, open_storage
from hoodie.testing.hand_table import at, new_name
from hoodie.timeline import Timeline
from hoodie.view import BaseFile, FileSlice, LogFile

GROUP = "col-stats-0000-0"


def ensure(storage: Storage, base_instant: InstantTime, commit: Instant) -> None:
    """Looks at a slice that is a base file alone, where `commit` wrote a log file to its group."""
    name = BaseFileName(GROUP, "0-1-1", base_instant, "hfile")
    part = FileSlice("column_stats", GROUP, base_instant, BaseFile(f"column_stats/{name.text}", name, 9))
    log = WrittenFile("column_stats", GROUP, f".{GROUP}_{commit.requested}.log.1_0-1-1", 9)
    compaction = Instant(base_instant, "commit", State.COMPLETED, at(9))
    timeline = Timeline(V9, (commit, compaction))
    written: Written = {commit.requested: {part.group_id: (log,)}, base_instant: {}}
    ensure_whole(storage, timeline, lambda _: True, [seen_group(part, {})], written, LocalEngine(1))


def test_a_log_file_that_a_commit_wrote_after_the_base_file_must_be_there() -> None:
    commit = Instant(at(3), DELTA_COMMIT, State.COMPLETED, at(4))
    with pytest.raises(Corrupt, match=r"is gone, though .* committed it.*doctor"):
        ensure(open_storage(f"memory://{new_name()}"), at(2), commit)


@pytest.mark.parametrize("outlived", [False, True])
def test_the_first_file_of_a_group_must_be_there_unless_later_records_stand_for_all_it_said(*, outlived: bool) -> None:
    storage = open_storage(f"memory://{new_name()}")
    first = Instant(f"{INIT_INSTANT}1", DELTA_COMMIT, State.COMPLETED, at(2))
    later = LogFileName(GROUP, at(3), 1, "0-1-1")
    log = LogFile(f"column_stats/{later.text}", later, 9)
    part = FileSlice("column_stats", GROUP, first.requested, None, (log,))
    base = WrittenFile("column_stats", GROUP, BaseFileName(GROUP, "0-1-1", first.requested, "hfile").text, 9)
    written: Written = {first.requested: {part.group_id: (base,)}}
    timeline = Timeline(V9, (first, Instant(at(3), DELTA_COMMIT, State.COMPLETED, at(4))))
    seen = SeenGroup(part, {later.text: SeenLog(9, 9, frozenset({at(3)}))}, outlived)
    with nullcontext() if outlived else pytest.raises(Corrupt, match="is gone, though"):
        ensure_whole(storage, timeline, lambda _: True, [seen], written, LocalEngine(1))


def test_a_log_file_of_the_slice_before_may_be_gone_or_there() -> None:
    storage = open_storage(f"memory://{new_name()}")
    ensure(storage, at(5), Instant(at(3), DELTA_COMMIT, State.COMPLETED, at(4)))
    over = Instant(at(3), DELTA_COMMIT, State.COMPLETED, at(6))  # compactions of Hudi have more digits
    ensure(storage, f"{at(3)}001", over)
    storage.put(f"column_stats/.{GROUP}_{at(3)}.log.1_0-1-1", b"whatever")
    ensure(storage, at(5), over)
