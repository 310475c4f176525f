"""Who is at work on a table, and what is said of them."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from hoodie.cli import main
from hoodie.config import resolve
from hoodie.env import SystemEnv
from hoodie.locks import NO_WAIT, held_lock
from hoodie.services.overview.writers import load_writers
from hoodie.storage import open_storage
from hoodie.testing.env import FakeEnv
from hoodie.testing.interleaved import Gate, run_in_order, writer
from hoodie.testing.lake import Lake, row
from hoodie.transaction import executor_lock

MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}


def test_a_lock_names_operation_process_and_machine() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    assert lake.table.writers() == ()
    with held_lock(lake.storage, "upsert"):
        (one,) = lake.table.writers()
    assert (one.sign, one.operation, one.host, one.process) == (
        "holds the table lock",
        "upsert",
        platform.node(),
        os.getpid(),
    )
    assert one.since.startswith("20")
    assert (one.verdict, one.instant, one.silent_s) == ("running", None, None)


def test_a_write_beside_others_is_told_by_its_heartbeat_dead_or_alive(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"))
    seen = {}

    def look(gate: Gate) -> None:
        del gate
        seen["now"] = lake.table.writers()
        later = FakeEnv(start=SystemEnv().now() + timedelta(minutes=10))
        handle = lake.handle()
        object.__setattr__(handle, "env", later)
        seen["later"] = load_writers(handle, resolve({}), NO_WAIT)

    run_in_order(tuple("AALA"), {"A": writer(lake, [row("a", "A", 2)]), "L": look})
    (one,) = seen["now"]
    assert (one.sign, one.operation, one.process, one.verdict) == ("writes", "upsert", os.getpid(), "running")
    assert one.silent_s is not None
    assert one.silent_s < 60
    assert one.action == "commit"
    assert [late.verdict for late in seen["later"]] == ["dead"]
    assert lake.table.writers() == ()


def test_a_plan_is_told_while_somebody_carries_it_out() -> None:
    lake = Lake(options=MOR)
    lake.upsert(row("a"))
    lake.upsert(row("a", "b", 2))
    plan = lake.table.services.schedule_compaction()
    assert plan is not None
    assert lake.table.writers() == ()
    with executor_lock(lake.handle(), plan.requested):
        (one,) = lake.table.writers()
    assert (one.sign, one.instant, one.process) == ("carries out a plan", plan.requested, os.getpid())


def test_what_a_killed_process_left_in_its_lock_is_nobody(tmp_path: Path) -> None:
    lake = Lake(uri=str(tmp_path / "lake"))
    lake.upsert(row("a"))
    program = (
        "import os; from hoodie.locks import held_lock; from hoodie.storage import open_storage\n"
        f"with held_lock(open_storage({lake.uri!r}), 'upsert'): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program], check=False)
    assert list((tmp_path / "lake" / ".hoodie" / ".locks").glob("writer.flock"))
    assert lake.table.writers() == ()


def test_the_command_shows_them_as_lines_and_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake(uri=str(tmp_path / "lake"))
    lake.upsert(row("a"))
    assert main(["writers", lake.uri]) == 0
    assert capsys.readouterr().out == "nobody is at work\n"
    with held_lock(open_storage(lake.uri), "backfill"):
        assert main(["writers", lake.uri, "--json"]) == 0
        (one,) = json.loads(capsys.readouterr().out)
        assert main(["writers", lake.uri]) == 0
    assert one["operation"] == "backfill"
    assert one["process"] == os.getpid()
    shown = capsys.readouterr().out
    assert "backfill" in shown
    assert str(os.getpid()) in shown
