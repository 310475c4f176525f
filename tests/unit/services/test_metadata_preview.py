"""What the preview of the metadata table's upkeep shows is what its compaction does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoodie.cli import main
from hoodie.metadata_writer import open_metadata_handle
from hoodie.spec import COMMIT
from hoodie.state.handle import timeline_of
from hoodie.testing.lake import Lake, row
from hoodie.timeline import create_requested, load_commit_metadata

LIMIT = "hoodie.metadata.compact.max.delta.commits"
NOT_DUE = {"hoodie.metadata.enable": "true", LIMIT: "50"}
EVERY_SERVICE_BY_HAND = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
DUE = {LIMIT: "3"}


def lake_of(version: int, uri: str = "") -> Lake:
    lake = Lake(version, NOT_DUE | EVERY_SERVICE_BY_HAND, uri)
    for n in range(4):
        lake.upsert(row(f"k{n}", part=f"p{n % 2}"))
    return lake


def test_the_steps_are_what_is_compacted(version: int) -> None:
    lake = lake_of(version)
    before = lake.files()
    plan = lake.table.services.preview("metadata", **DUE)
    assert lake.files() == before
    done = lake.table.services.metadata(**DUE)
    metadata = open_metadata_handle(lake.handle())
    instant = timeline_of(metadata).find(done.compaction, COMMIT)
    stats = load_commit_metadata(metadata.storage, metadata.profile, instant).write_stats()
    assert {(step.partition, step.file_id) for step in plan.steps} == {(name, stat.file_id) for name, stat in stats}
    assert plan.files > len(plan.steps)
    assert plan.size_bytes


@pytest.mark.parametrize(("options", "note"), [({}, "50 delta commits after"), ({"off": "yes"}, "no metadata table")])
def test_why_there_are_no_steps_is_said(options: dict[str, str], note: str) -> None:
    lake = Lake(9, {"hoodie.metadata.enable": "false"}) if options else lake_of(9)
    if options:
        lake.upsert(row("a"))
    plan = lake.table.services.preview("metadata")
    assert plan.is_empty
    assert note in plan.notes[0]


def test_a_pending_commit_of_the_table_is_waited_for_as_the_service_does() -> None:
    lake = lake_of(6)
    handle = lake.handle()
    first = timeline_of(handle).completed_writes()[0].requested
    create_requested(handle.storage, handle.profile, f"{int(first) - 1:017}", COMMIT, b"")
    assert lake.table.services.metadata(**DUE) is None
    assert "is pending" in lake.table.services.preview("metadata", **DUE).notes[0]


def test_the_command_has_a_dry_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = lake_of(9, str(tmp_path / "lake"))
    assert main(["metadata", lake.uri, "--dry-run", "-o", f"{LIMIT}=3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"]
