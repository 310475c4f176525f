"""The worked examples of savepoint-restore.md, rollback.md (copies) and heartbeats.md are what the code does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from format_pages import block, page

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.services.rollback.rollback import roll_back_instant
from hoodie.spec import V6, V9, FormatProfile, InstantInfo, encode_container, parse_container
from hoodie.spec.restore_plan import RestorePlan, encode_restore_metadata, encode_restore_plan, parse_restore_metadata
from hoodie.spec.savepoint_metadata import SavepointMetadata, encode_savepoint_metadata
from hoodie.storage import MemoryStorage
from hoodie.testing.env import FakeEnv
from hoodie.testing.hand_table import HandTable
from hoodie.timeline import load_timeline
from hoodie.transaction.heartbeat import HeartbeatRule, heartbeat_path, is_expired

UNDONE = tuple(InstantInfo(time, "deltacommit") for time in ("20261121062634925", "20261121062633873"))


def examples() -> list[dict[str, Any]]:
    blocks = re.findall(r"```\n(\{.*?)```", page("savepoint-restore"), re.DOTALL)
    return [json.loads(one) for one in blocks]


def test_savepoint_and_plan_are_the_records_of_the_files() -> None:
    savepoint, plan, _ = examples()
    files = {"p0": ("a-0_0-1-2_20261121062631396.parquet", ".a-0_20261121062631396.log.1_0-2-3")}
    data = encode_savepoint_metadata(SavepointMetadata("u", 1795242393805, "sp", files))
    assert parse_container(data, "x") == ("HoodieSavepointMetadata", savepoint)
    assert parse_container(encode_restore_plan(RestorePlan(UNDONE, "20261121062632511")), "x") == (
        "HoodieRestorePlan",
        plan,
    )


def test_metadata_of_the_restore_is_read_and_written() -> None:
    *_, shown = examples()
    done = parse_restore_metadata(encode_container("HoodieRestoreMetadata", shown), "page")
    assert (done.start_time, done.instants) == ("20261121062636074", UNDONE)
    (rollback,) = done.rollbacks["20261121062634925"]
    assert list((rollback.partitions["p0"].rollback_log_files or {}).values()) == [105]
    assert parse_container(encode_restore_metadata(done), "x") == ("HoodieRestoreMetadata", shown)


@pytest.mark.parametrize("profile", [V6, V9], ids=["v6", "v9"])
def test_copies_of_a_rolled_back_instant_have_the_names_shown(profile: FormatProfile) -> None:
    text = page("rollback")
    shown = block(text, "A completed commit of a table of version 9").split()
    if profile is V6:
        shown[-1] = shown[-1].rpartition("/")[0] + "/" + re.findall(r"In version 6 the last one is `(.*?)`", text)[0]
    target, completed = re.findall(r"(\d+)_(\d+)\.commit", text[text.index("## Copies of the instant") :])[0]
    table = HandTable(profile)
    table.commit("20261121053800000", {("p0", "a"): [{"id": "k1"}]})
    table.commit(target, {("p0", "b"): [{"id": "k2"}]}, completed=completed)
    before = {path.rpartition("/")[2]: table.storage.read(path) for path in paths(table)}
    config = resolve({"hoodie.rollback.instant.backup.enabled": "true"})
    roll_back_instant(table.handle, config, LocalEngine(1), target)
    copies = {path: table.storage.read(path) for path in paths(table) if path.startswith(".hoodie/.rollback_backup/")}
    assert sorted(copies) == sorted(shown)
    assert copies == {path: before[path.rpartition("/")[2]] for path in copies}


def paths(table: HandTable) -> Iterable[str]:
    return [file.path for file in table.storage.list("")]


def test_write_is_alive_until_the_time_shown() -> None:
    text = page("heartbeats")
    (beat, *_), *instants = (line.split() for line in block(text, "## Worked example").splitlines())
    clock = r"\d\d:\d\d:\d\d\.\d{3}"
    last, until = re.findall(f"last written ({clock})", text)[0], re.findall(f"alive until ({clock})", text)[0]
    env = FakeEnv(moment(last), tick_ms=0)
    storage = MemoryStorage("docs-heartbeats", env)
    for (name,) in instants:
        storage.put(name, b"")
    (running,) = load_timeline(storage, V9).instants
    assert heartbeat_path(running.requested) == beat
    assert is_expired(storage, running.requested, HeartbeatRule(), env)
    storage.put(beat, b"")
    env.advance(moment(until) - moment(last))
    assert not is_expired(storage, running.requested, HeartbeatRule(), env)
    env.advance(timedelta(milliseconds=1))
    assert is_expired(storage, running.requested, HeartbeatRule(), env)
    assert f"({HeartbeatRule().interval_ms // 1000} s between beats, two of which may be missed)" in text
    assert HeartbeatRule().tolerable_misses == 2


def moment(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-21T{clock}").replace(tzinfo=UTC)
