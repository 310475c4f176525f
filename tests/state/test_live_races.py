"""Writers and readers on one table at the same time, stopped and killed at random moments, on a disk and on S3.

`HOODIE_RACE_SECONDS` (default 6) is the length of each race, `HOODIE_RACE_SEED` the seed. `make races` runs long ones.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hoodie.testing.live_race import Race
from hoodie.testing.race_journal import account_of
from hoodie.testing.s3_server import S3Server, s3_bucket, s3_server

__all__ = ["s3_bucket", "s3_server"]

SECONDS = float(os.environ.get("HOODIE_RACE_SECONDS", "6"))
SEED = int(os.environ.get("HOODIE_RACE_SEED", "20261123"))
ON_DISK = [(6, "MERGE_ON_READ", 2), (8, "COPY_ON_WRITE", 4), (9, "MERGE_ON_READ", 6)]
SHARED = [(9, "MERGE_ON_READ", 4), (8, "COPY_ON_WRITE", 3), (6, "COPY_ON_WRITE", 2)]
OPTIMISTIC = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.num.retries.on.conflict.failures": "5",
    # Dead within three seconds, so that what they left is taken away before the table is looked at.
    "hoodie.client.heartbeat.interval_in_ms": "1000",
}
ON_PATHS = [(6, "MERGE_ON_READ", 2), (9, "COPY_ON_WRITE", 3), (9, "MERGE_ON_READ", 3)]
ON_S3 = [(6, "COPY_ON_WRITE", 2), (9, "MERGE_ON_READ", 3)]


def ensure_right(race: Race) -> None:
    result = race.run()
    print(f"\n{race.uri} version {race.version} {race.table_type}: {result.counts}")
    assert result.faults == ()
    assert result.counts["writes: done"] > 0
    assert result.counts["read"] > 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("version", "table_type", "writers"), ON_DISK)
def test_nothing_is_lost_or_seen_too_early_on_a_disk(
    version: int, table_type: str, writers: int, tmp_path: Path
) -> None:
    ensure_right(Race(str(tmp_path / "table"), tmp_path, version, table_type, writers, SECONDS, SEED, {}))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("version", "table_type", "writers"), ON_S3)
def test_nothing_is_lost_or_seen_too_early_on_s3(
    version: int, table_type: str, writers: int, tmp_path: Path, s3_server: S3Server, s3_bucket: str
) -> None:
    access = s3_server.options
    ensure_right(Race(f"s3://{s3_bucket}/table", tmp_path, version, table_type, writers, SECONDS, SEED, access))


@pytest.mark.skipif("HOODIE_RACE_SECONDS" not in os.environ, reason="make races: some seconds say little here")
@pytest.mark.parametrize(("version", "table_type", "writers"), SHARED)
def test_what_optimistic_writers_of_the_same_rows_do_and_see_has_an_order(
    version: int, table_type: str, writers: int, tmp_path: Path
) -> None:
    uri = str(tmp_path / "table")
    ensure_right(Race(uri, tmp_path, version, table_type, writers, SECONDS, SEED, OPTIMISTIC, shares=True))


@pytest.mark.skipif("HOODIE_RACE_SECONDS" not in os.environ, reason="make races: some seconds say little here")
@pytest.mark.parametrize(("version", "table_type", "writers"), ON_PATHS)
def test_nothing_is_lost_or_seen_too_early_while_files_move(
    version: int, table_type: str, writers: int, tmp_path: Path
) -> None:
    paths = f"{tmp_path}/one,{tmp_path}/two"
    layout = {
        "hoodie.storage.path": paths,
        "hoodie.storage.strategy": "bits:4",
        "hoodie.storage.allowed.roots": str(tmp_path),
        "hoodie.metadata.enable": "true",
    }
    uri = str(tmp_path / "table")
    ensure_right(Race(uri, tmp_path, version, table_type, writers, SECONDS, SEED, layout, longest_pause=4.0))


def begun(group: int, text: str | None) -> dict[str, object]:
    return {"what": "begin", "writer": "w", "group": group, "text": text}


def test_a_journal_knows_what_may_be() -> None:
    written = dict.fromkeys(("w-0-0", "w-0-1", "w-0-2"), "1")
    done, refused, unknown = ({"what": "end", "how": how} for how in ("done", "Conflict", "CommitUnknown"))
    assert account_of([begun(0, "1"), done]).possible == (written,)
    assert account_of([begun(0, "1"), refused]).possible == ({},)
    assert account_of([begun(0, "1"), unknown]).possible == ({}, written)
    assert account_of([begun(0, "1"), {"what": "look", "rows": written}]).possible == (written,)
    assert account_of([begun(0, "1"), done, {"what": "look", "rows": {}}]).faults != ()
    assert account_of([begun(0, "1"), done, begun(0, None), done]).possible == ({},)
