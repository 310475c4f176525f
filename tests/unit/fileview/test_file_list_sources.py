"""One place says where a table's file list comes from; what a query asks of it is counted."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hoodie.fileview import FolderView, WriterView
from hoodie.query import ReadOptions, load_read_plan, run_read
from hoodie.state.handle import timeline_of
from hoodie.testing.counting_file_view import CountingFileView
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.lake import Lake, logged_lake, row

SOURCE = Path(__file__).parents[3] / "src" / "hoodie"
LISTING = {"list_data_paths", "list_files", "list_partitions", "load_view"}
MAY_LIST = {
    "view": "makes the listing",
    "fileview": "decides between listing and metadata table",
    "remote": "makes slices of the files that a server lists",
    "server/embedded_view.py": "makes slices of the files that the service of this process keeps",
    "metadata": "the folders of the metadata table itself: nobody else lists them",
    "metadata_writer": "the folders of the metadata table itself: nobody else lists them",
    "state/table_schema.py": "a table whose commits say no schema is older than metadata tables",
    "services/save.py": "files of a first write that is aborted lie in the folders alone",
    "transaction/abort.py": "files of a write that is aborted lie in the folders alone",
    "services/rollback": "what a failed write left lies in the folders alone",
    "services/upgrading/late_logs.py": "files that came when their write was rolled back lie in the folders alone",
    "services/relayout": "a move takes along what lies in the folders, files of no commit among it",
    "services/cleaning/clean.py": "whether a file is there to be deleted, its folder says",
}


def listing_modules() -> list[str]:
    found = []
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        calls = (node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
        if not name.startswith("testing/") and any(isinstance(one, ast.Name) and one.id in LISTING for one in calls):
            found.append(name)
    return found


def test_folders_are_listed_where_only_folders_know() -> None:
    strangers = [name for name in listing_modules() if not any(name.startswith(home) for home in MAY_LIST)]
    assert strangers == [], "ask a hoodie.fileview for the files of a table"


def test_every_exception_is_used() -> None:
    names = listing_modules()
    assert [home for home in MAY_LIST if not any(name.startswith(home) for name in names)] == []


@pytest.fixture(params=[6, 8, 9], ids=lambda version: f"v{version}")
def lake(request: pytest.FixtureRequest) -> Lake:
    made = logged_lake(request.param)
    made.upsert(row("a", part="p"), row("b", part="q"))
    made.upsert(row("a", "new", ts=2, part="p"))
    return made


def test_a_query_asks_its_view_once_for_slices_and_once_for_log_files(lake: Lake) -> None:
    handle = lake.handle()
    timeline = timeline_of(handle)
    view = CountingFileView(FolderView(handle.storage, timeline))
    plan = load_read_plan(handle.storage, handle.config, timeline, ReadOptions(), file_view=view)
    assert view.asked == [("load", None), ("committed_logs", 1)]
    found = run_read(plan, handle.storage).read_all()
    assert sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == [("a", "new"), ("b", "a")]


def test_log_files_of_slices_that_a_filter_leaves_out_are_not_asked_about(lake: Lake) -> None:
    handle = lake.handle()
    timeline = timeline_of(handle)
    view = CountingFileView(FolderView(handle.storage, timeline))
    load_read_plan(handle.storage, handle.config, timeline, ReadOptions(filter="v = 'b'"), file_view=view)
    assert view.asked == [("load", None), ("committed_logs", 1)]
    view.asked.clear()
    load_read_plan(handle.storage, handle.config, timeline, ReadOptions(filter="part = 'q'"), file_view=view)
    assert [name for name, _ in view.asked] == ["load_chosen"]


def test_what_was_loaded_is_not_listed_again(lake: Lake) -> None:
    counted = CountingStorage(lake.storage)
    view = FolderView(counted, timeline_of(lake.handle()))
    assert view.load(["p"]) is view.load(["p"])
    assert [call.path for call in counted.calls if call.op == "list_dir"] == ["p"]


def test_writers_list_a_few_folders_rather_than_read_the_metadata_table(lake: Lake) -> None:
    counted = CountingStorage(lake.storage)
    handle = lake.handle()
    view = WriterView(type(handle)(counted, handle.config, handle.profile, handle.env), timeline_of(handle))
    view.load(["p", "q"])
    assert not any(call.path.startswith(".hoodie/metadata") for call in counted.calls)
