"""Turns of tables and roots: one that hangs, however its path is spelled, takes no more than its share."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from hoodie.server import Service, kept_view
from hoodie.server.marker_service import MarkerService
from hoodie.server.places import Lane, lane_of
from hoodie.server.turns import Turns
from hoodie.testing.lake import Lake, logged_lake, row
from hoodie.testing.view_law import ensure_view_is_kept


@pytest.mark.parametrize("spelled", ["/d/t", "file:///d/t/", "file:/d//t", "//d/./t", "FILE:/d/t/."])
def test_all_spellings_of_a_table_are_one_lane(spelled: str) -> None:
    assert lane_of(spelled, ["/e", "/d"]) == Lane("/d/t", "/d")


@pytest.mark.parametrize("spelled", ["s3a://b/t/", "s3n://b//t", "s3://b/t"])
def test_all_spellings_of_a_url_are_one_lane(spelled: str) -> None:
    assert lane_of(spelled, ["s3://b"]) == Lane("s3://b/t", "s3://b")


@pytest.mark.parametrize("spelled", ["", "t", "/d/../t", "\0"])
def test_what_is_no_place_has_one_lane(spelled: str) -> None:
    assert lane_of(spelled, ["/"]) == Lane("")


def test_a_link_that_was_followed_before_is_the_table(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "root")
    service = Service([str(tmp_path / "root")])
    asked = f"{tmp_path}/link/t"
    service.answer("GET", "/v1/hoodie/view/slices/all/", {"basepath": asked, "partition": ""})
    assert (
        service.lane_of(asked) == service.lane_of(f"{tmp_path}/root/t") == Lane(f"{tmp_path}/root/t", service.roots[0])
    )


def test_folders_of_markers_are_of_the_lane_of_their_table() -> None:
    markers = MarkerService(["s3://b"])
    assert markers.lane_of("s3a://b//t/.hoodie/.temp/2026") == Lane("s3://b/t", "s3://b")
    assert markers.lane_of("anything") == Lane("")


def test_tables_of_a_root_that_hangs_leave_turns_to_others() -> None:
    hangs = threading.Event()

    async def ask() -> str:
        turns = Turns(30.0, per_table=2, per_root=3)
        hanging = [asyncio.create_task(turns.run(Lane(str(n % 3), "slow"), hangs.wait)) for n in range(9)]
        await asyncio.sleep(0.1)
        assert turns.users() == 9
        found = await turns.run(Lane("t", "quick"), lambda: "answered")
        hangs.set()
        await asyncio.gather(*hanging)
        assert turns.users() == 0
        return found

    assert asyncio.run(ask()) == "answered"


def test_newer_options_of_a_table_replace_older_ones_in_the_view_that_is_kept() -> None:
    lake = Lake(9)
    lake.upsert(row("a"))
    service = Service([])
    service.admit(lake.uri, {"key": "old"})
    before = service.with_view(lake.uri, lambda view: view)
    service.admit(lake.uri, {"key": "old"})
    assert service.with_view(lake.uri, lambda view: view) is before
    service.admit(lake.uri, {"key": "new"})
    now = service.with_view(lake.uri, lambda view: view)
    assert now.handle.storage is not before.handle.storage
    assert now.loaded() == before.loaded()
    assert service.with_view(lake.uri, lambda view: view) is now


def test_archived_writes_that_no_log_file_needs_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_view, "_MANY", 2)
    lake = logged_lake(9, **{"hoodie.metadata.enable": "false"})
    lake.upsert(row("a", part="p"))
    lake.upsert(row("a", "log", ts=2, part="p"))
    view = kept_view.load_into(kept_view.open_view(lake.handle()), None)
    view = replace(view, many_archived=2)
    options = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    for number in range(12):
        lake.write("insert", [row(f"k{number}", part="q")])
        lake.table.services.archive(**options)
        view = ensure_view_is_kept(view, lake.storage)
    assert len(view.timeline.archived) <= 4
