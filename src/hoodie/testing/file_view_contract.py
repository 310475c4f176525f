"""What every file-system view must answer. Test modules subclass it with `open_view`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pytest

from hoodie.errors import Corrupt
from hoodie.fileview import FileSystemView, FolderView
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.testing.lake import Lake, logged_lake, row
from hoodie.timeline import Timeline

DEAD = "29990101000000000"
"""The instant of a write that never completed."""


@dataclass(frozen=True)
class _Named:
    """A `PartitionChoice` by names."""

    names: frozenset[str]

    def of(self, partitions: Collection[str]) -> frozenset[str]:
        return self.names & frozenset(partitions)

    def worth_listing(self, folders: Collection[str]) -> frozenset[str]:
        return self.names & frozenset(folders)


class FileViewContract:
    """Subclass it with `open_view`; `lake` has log files, two partitions, an older slice and a file of a dead write."""

    def open_view(self, handle: TableHandle, timeline: Timeline) -> FileSystemView:
        raise NotImplementedError

    @pytest.fixture(params=[6, 8, 9], ids=lambda version: f"v{version}")
    def lake(self, request: pytest.FixtureRequest) -> Lake:
        made = logged_lake(request.param, hoodie__metadata__enable="true")
        made.upsert(row("a", part="p"), row("b", part="q"))
        made.upsert(row("a", "new", ts=2, part="p"))
        made.table.services.compact()
        made.upsert(row("a", "newer", ts=3, part="p"))
        base = next(path for path in made.base_files() if path.startswith("p/"))
        stray = base.rpartition("_")[0] + f"_{DEAD}.parquet"
        made.storage.put(stray, made.storage.read(base))
        return made

    @pytest.fixture
    def view(self, lake: Lake) -> FileSystemView:
        handle = lake.handle()
        return self.open_view(handle, timeline_of(handle))

    def test_slices_are_those_that_lie_in_the_folders(self, lake: Lake, view: FileSystemView) -> None:
        there = FolderView(lake.storage, view.timeline).load()
        for as_of in (None, *(one.requested for one in view.timeline.completed_writes())):
            expected = [(part.group_id, part.base_instant, part.base) for part in there.slices_at(as_of)]
            assert [(part.group_id, part.base_instant, part.base) for part in view.load().slices_at(as_of)] == expected
            logs = [[log.path for log in part.logs] for part in there.slices_at(as_of)]
            assert [[log.path for log in part.logs] for part in view.load().slices_at(as_of)] == logs

    def test_some_partitions_are_a_part_of_all(self, view: FileSystemView) -> None:
        whole = view.load()
        for partition in ("p", "q"):
            part = view.load([partition])
            assert part.partitions == (partition,)
            assert part.all_slices() == tuple(one for one in whole.all_slices() if one.partition == partition)
            assert [one.partition for one in view.files([partition])] == [partition]

    def test_chosen_partitions_are_a_part_of_all(self, view: FileSystemView) -> None:
        whole = view.load()
        for chosen in ({"p"}, {"q"}, {"p", "q"}, {"nowhere"}):
            part = view.load_chosen(_Named(frozenset(chosen)))
            assert set(part.partitions) == chosen & {"p", "q"}
            assert part.all_slices() == tuple(one for one in whole.all_slices() if one.partition in chosen)

    def test_a_partition_that_does_not_exist_has_no_files(self, view: FileSystemView) -> None:
        (found,) = view.files(["nowhere"])
        assert (found.partition, found.everything) == ("nowhere", ())
        assert view.load(["nowhere"]).all_slices() == ()

    def test_files_of_uncommitted_writes_are_in_no_slice(self, view: FileSystemView) -> None:
        names = {path for part in view.load().all_slices() for path in part.paths}
        assert names
        assert not any(DEAD in path for path in names)
        listed = any(DEAD in one.path for files in view.files() for one in files.bases)
        assert view.lists_uncommitted or not listed

    def test_it_answers_for_the_timeline_it_was_opened_with(self, lake: Lake, view: FileSystemView) -> None:
        before = view.load().slices_at()
        lake.upsert(row("z", part="p"))
        assert view.load().slices_at() == before

    def test_log_files_are_known_with_what_is_committed(self, view: FileSystemView) -> None:
        logs = [log for part in view.load().slices_at() for log in part.logs]
        known = view.committed_logs(logs)
        assert logs
        assert set(known) == {log.path for log in logs}
        assert all(0 < one.committed_bytes <= one.size_bytes for one in known.values())
        assert view.committed_logs([]) == {}

    def test_a_log_file_that_lost_bytes_is_damage_when_it_is_listed_or_read(self, lake: Lake) -> None:
        (path,) = [log.path for part in lake.table.files() for log in part.logs]
        lake.storage.put(path, lake.storage.read(path)[:-7])
        handle = lake.handle()
        view = self.open_view(handle, timeline_of(handle))
        try:
            logs = [log for part in view.load().slices_at() for log in part.logs]
            known = view.committed_logs(logs)
        except Corrupt:
            return
        assert lake.storage.head(path).size_bytes < known[path].committed_bytes
