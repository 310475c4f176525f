"""Every kind of plans keeps its promises, in every format version."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.locks import held_lock
from hoodie.services.clustering.base_files import BASE_FILE_COMPACTIONS, BASE_FILE_COMPACTOR
from hoodie.services.clustering.cluster import CLUSTERER, CLUSTERINGS
from hoodie.services.compaction.compact import COMPACTIONS, schedule_compaction
from hoodie.services.compaction.log_compact import LOG_COMPACTIONS, schedule_log_compaction
from hoodie.services.resizing.resize import RESIZES, schedule_resize
from hoodie.services.rewrite.kinds import KINDS
from hoodie.services.rewrite.plan_kind import PlanKind
from hoodie.spec import Instant
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.testing.lake import Lake, logged_lake, row, table_of
from hoodie.testing.plan_kind_contract import Pending, PlanKindContract

KEYS = [f"k{n}" for n in range(12)]
LOGGED = {"hoodie.metadata.enable": "false", "hoodie.compact.inline": "false"}
BY_V = {"hoodie.clustering.plan.strategy.sort.columns": "v"}
RINGS = {
    **LOGGED,
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.parquet.max.file.size": "1000",
    "hoodie.bucket.index.max.num.buckets": "4",
}


@pytest.fixture(params=[6, 8, 9], ids=lambda version: f"v{version}")
def version(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


def pending_of(kind: PlanKind, lake: Lake, schedule: Callable[[TableHandle], Instant | None]) -> Pending:
    """A lake with updates in its log files, and what `schedule` plans on it."""
    lake.upsert(*(row(key) for key in KEYS))
    lake.upsert(*(row(key, "b", 2) for key in KEYS[:5]))
    lake.upsert(*(row(key, "c", 3) for key in KEYS[3:7]))
    with held_lock(lake.storage, "plan"):
        assert schedule(lake.handle()) is not None
    return Pending(lake, kind)


class TestCompaction(PlanKindContract):
    @pytest.fixture
    def pending(self, version: int) -> Pending:
        def schedule(handle: TableHandle) -> Instant | None:
            return schedule_compaction(handle, resolve(LOGGED), LocalEngine(1), when_due=False)

        return pending_of(COMPACTIONS, logged_lake(version, **LOGGED), schedule)


class TestLogCompaction(PlanKindContract):
    @pytest.fixture
    def pending(self, version: int) -> Pending:
        def schedule(handle: TableHandle) -> Instant | None:
            config = resolve({**LOGGED, "hoodie.log.compaction.blocks.threshold": "2"})
            return schedule_log_compaction(handle, config, LocalEngine(1), when_enabled=False)

        return pending_of(LOG_COMPACTIONS, logged_lake(version, **LOGGED), schedule)


class TestClustering(PlanKindContract):
    @pytest.fixture(params=["MERGE_ON_READ", "COPY_ON_WRITE"])
    def pending(self, version: int, request: pytest.FixtureRequest) -> Pending:
        def schedule(handle: TableHandle) -> Instant | None:
            return CLUSTERER.schedule(handle, resolve(BY_V), LocalEngine(1))

        if request.param == "MERGE_ON_READ":
            return pending_of(CLUSTERINGS, logged_lake(version, **LOGGED), schedule)
        unfilled = {"hoodie.parquet.small.file.limit": "0", "hoodie.metadata.enable": "false"}
        return pending_of(CLUSTERINGS, Lake(version, unfilled), schedule)


class TestBaseFileCompaction(PlanKindContract):
    @pytest.fixture
    def pending(self, version: int) -> Pending:
        def schedule(handle: TableHandle) -> Instant | None:
            return BASE_FILE_COMPACTOR.schedule(handle, resolve({}), LocalEngine(1))

        copied = {"hoodie.metadata.enable": "false", "hoodie.row.group.copy.min.bytes": "0"}
        lake = Lake(version, copied)
        lake.upsert(*(row(key) for key in KEYS[:5]))
        lake.table.append(table_of([row(key) for key in KEYS[5:]]))
        with held_lock(lake.storage, "plan"):
            assert schedule(lake.handle()) is not None
        return Pending(lake, BASE_FILE_COMPACTIONS)


class TestResize(PlanKindContract):
    @pytest.fixture
    def pending(self, version: int) -> Pending:
        def schedule(handle: TableHandle) -> Instant | None:
            return schedule_resize(handle, resolve(RINGS), timeline_of(handle))

        return pending_of(RESIZES, logged_lake(version, **RINGS), schedule)


def test_every_kind_is_held_to_the_contract() -> None:
    assert set(map(id, KINDS)) == set(
        map(id, (COMPACTIONS, LOG_COMPACTIONS, CLUSTERINGS, BASE_FILE_COMPACTIONS, RESIZES))
    )
    assert len({kind.name for kind in KINDS}) == len(KINDS)
