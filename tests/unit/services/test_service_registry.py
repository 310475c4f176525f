"""What is registered as a table service is one: it loads, previews without writing, has its command and its docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hoodie.cli.app import main
from hoodie.engine import LocalEngine
from hoodie.errors import Invalid
from hoodie.services.registry import REGISTERED, load_service
from hoodie.state.handle import load_handle
from hoodie.table import Table
from hoodie.testing.counting_storage import CHANGING, CountingStorage
from hoodie.testing.lake import Awake, Lake, logged_lake, row

SERVICES = sorted(REGISTERED)
DOCS = Path(__file__).parents[3] / "docs" / "services.md"
TARGETS = {"rollback": 1, "restore": 0}
"""Services about an instant, and which of a table's writes it is."""


def arguments(lake: Lake, name: str) -> tuple[str, ...]:
    writes = lake.table.timeline().completed_writes()
    return (writes[TARGETS[name]].requested,) if name in TARGETS else ()


@pytest.fixture
def lake(version: int, name: str) -> Lake:
    """A table in buckets, which resizes need, and which services that join file groups leave to them."""
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
    made = logged_lake(version, **({} if name in {"cluster", "compact_base_files"} else buckets))
    made.upsert(row("a"), row("b"))
    made.upsert(row("a", "again", 2))
    return made


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_the_name_it_is_registered_by_and_says_what_it_does(name: str) -> None:
    service = load_service(name)
    assert service.name == name
    assert service.nothing
    required = [one.is_required for one in service.arguments]
    assert required == sorted(required, reverse=True)


@pytest.mark.parametrize("name", SERVICES)
def test_a_preview_writes_nothing_and_takes_no_lock(lake: Lake, name: str) -> None:
    if load_service(name).preview is None:
        with pytest.raises(Invalid, match=f"no preview of {name}"):
            lake.table.services.preview(name)
        return
    counting = CountingStorage(lake.storage)
    table = Table(load_handle(counting, Awake()), lake.options, LocalEngine(1))
    assert table.services.preview(name, *arguments(lake, name)).service.startswith(name[:4])
    assert not [call for call in counting.calls if call.op in {*CHANGING, "exclusive"}]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_runs_by_its_name_under_the_table_lock_and_leaves_a_sound_table(lake: Lake, name: str) -> None:
    values = lake.values()
    given = dict(zip((one.name for one in load_service(name).arguments), arguments(lake, name), strict=False))
    counting = CountingStorage(lake.storage)
    Table(load_handle(counting, Awake()), lake.options, LocalEngine(1)).services.run(name, given)
    ops = [call.op for call in counting.calls]
    changed = [n for n, op in enumerate(ops) if op in CHANGING]
    assert all("exclusive" in ops[:n] for n in changed)
    assert lake.table.validate() == []
    assert lake.values() == ({"a": "a", "b": "a"} if name in TARGETS else values)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_a_method_a_command_and_a_line_in_the_docs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = REGISTERED[name].command
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert "PATH" in capsys.readouterr().out
    line = next(one for one in DOCS.read_text(encoding="utf-8").splitlines() if one.startswith(f"| {name} |"))
    assert re.search(rf"`hoodie {command} PATH[^`]*`, `table\.services\.{name}\([^`]*\)`", line)


def test_the_names_of_services_are_shown_and_others_refused() -> None:
    lake = Lake()
    lake.upsert(row("a"))
    services = lake.table.services
    assert {*REGISTERED} <= {*dir(services)}
    assert all(one.summary in repr(services) for one in REGISTERED.values())
    with pytest.raises(Invalid, match="no service 'cleen'") as caught:
        services.run("cleen")
    assert "clean" in str(caught.value.remedy)
    with pytest.raises(AttributeError, match="no service 'vacuum'"):
        services.vacuum()
    with pytest.raises(Invalid, match="rollback needs its argument instant"):
        services.preview("rollback")
    with pytest.raises(Invalid, match="compact has no argument instnat") as caught:
        services.run("compact", {"instnat": "1"})
    assert "instant" in str(caught.value.remedy)
    with pytest.raises(Invalid, match="clean has 0 arguments, and 1 are given"):
        services.preview("clean", "20260101000000000")
    with pytest.raises(Invalid, match="to of upgrade is a whole number, not 'nine'"):
        services.run("upgrade", {"to": "nine"})
