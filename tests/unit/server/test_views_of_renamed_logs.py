"""Log files that a downgrade names anew and back while a service looks or does not: the view equals a fresh one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.server import Service
from hoodie.server.kept_view import KeptView, load_into, open_view
from hoodie.server.service import Kept
from hoodie.services.upgrading.upgrade import upgrade
from hoodie.spec.keys import LOG_RENAMES, LOG_RENAMES_FILE
from hoodie.state.handle import load_handle, timeline_of
from hoodie.storage import Storage
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import Awake, Lake, row
from hoodie.testing.view_law import ensure_view_is_kept
from hoodie.testing.view_stores import KINDS, Restarted

QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
FEW = {"hoodie.clean.commits.retained": "1"}


def _lake(metadata: str = "false") -> Lake:
    """Log files in older slices, and in the newest one."""
    options = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.metadata.enable": metadata, **QUIET}
    lake = Lake(9, options)
    for number in range(3):
        lake.upsert(row("a", str(number), number + 1), row("b", str(number), number + 1, "q"))
    lake.table.services.compact()
    lake.upsert(row("a", "new", 9))
    return lake


def _change(storage: Storage, to: int) -> None:
    upgrade(load_handle(storage, Awake()), resolve({}), LocalEngine(1), to)


def _die_at(lake: Lake, crash_at: int) -> None:
    with suppress(Crash):
        _change(CountingStorage(lake.storage, crash_at=crash_at), 6)


def _points() -> tuple[int, int]:
    """Calls of a downgrade: the one after the list of names is written, and the one before the properties say so."""
    lake = _lake()
    counted = CountingStorage(lake.storage)
    _change(counted, 6)
    calls = counted.calls
    first = next(call.n for call in calls if call.op == "put" and call.path == LOG_RENAMES_FILE)
    last = next(call.n for call in calls if call.op == "delete" and call.path == LOG_RENAMES_FILE)
    return first, last


FIRST, LAST = _points()


def _opened(lake: Lake) -> KeptView:
    return load_into(open_view(lake.handle()), None)


@pytest.mark.parametrize("crash_at", range(FIRST, LAST, 3))
@pytest.mark.parametrize("to", [9, 6])
def test_a_view_of_any_moment_equals_a_fresh_one_afterwards(crash_at: int, to: int) -> None:
    lake = _lake()
    before = _opened(lake)
    _die_at(lake, crash_at)
    meanwhile = _opened(lake)
    before_and_meanwhile = ensure_view_is_kept(before, lake.storage)
    _change(lake.storage, to)
    for view in (before, meanwhile, before_and_meanwhile):
        ensure_view_is_kept(view, lake.storage)


def test_a_clean_beside_names_of_a_downgrade_is_followed_by_a_view_that_did_not_look() -> None:
    lake = _lake()
    view = _opened(lake)
    _die_at(lake, LAST - 20)
    lake.write("insert_overwrite_table", [row("c", "only", 20)])
    for number in range(2):
        lake.upsert(row("c", f"only {number}", 21 + number))
    lake.table.services.clean(options=FEW)
    _change(lake.storage, 9)
    ensure_view_is_kept(view, lake.storage)


@pytest.mark.parametrize("kind", KINDS)
def test_a_service_keeps_no_names_that_may_be_given_back(kind: str, tmp_path: Path) -> None:
    lake = _lake()
    _die_at(lake, LAST - 20)
    stores = KINDS[kind](tmp_path)
    service = Service([lake.uri], stores=stores)
    handle = lake.handle()
    service.with_view(lake.uri, _same)
    service.known_at(handle, timeline_of(handle), None, 1.0)
    assert service.kept() == Kept(0, 0, ())
    _change(lake.storage, 9)
    assert _names(service.with_view(lake.uri, _same)) == _names(_opened(lake))
    assert service.kept() == Kept(1, 2, ())
    service.close()


def test_a_store_that_outlives_the_service_is_not_taken_for_other_names(tmp_path: Path) -> None:
    lake = _lake()
    service = Restarted("rocksdb", str(tmp_path))
    load_into(service.opened(lake.handle()), None)
    service.stop()
    _die_at(lake, LAST - 20)
    _change(lake.storage, 9)
    view = service.opened(lake.handle())
    assert service.resumed == 0
    ensure_view_is_kept(view, lake.storage)
    service.close()


def test_a_warm_look_asks_for_no_list_of_names() -> None:
    lake = _lake()
    _die_at(lake, LAST - 20)
    _change(lake.storage, 9)
    assert LOG_RENAMES in lake.handle().config.raw
    service = Service([lake.uri])
    service.with_view(lake.uri, _same)
    counted = CountingStorage(lake.storage)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hoodie.server.service.load_handle", lambda storage, env: load_handle(counted, env))
        service.with_view(lake.uri, _same)
    assert [call.op for call in counted.calls] == ["read_range", "list_dir"]


def _names(view: KeptView) -> list[str]:
    return sorted(log.path for group in view.groups(None).found for part in group.slices for log in part.logs)


def _same(view: KeptView) -> KeptView:
    return view
