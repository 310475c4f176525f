"""Services that follow a commit by themselves: done by default, left out when told so, never at the commit's cost."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from hoodie.engine import LocalEngine
from hoodie.errors import HudiError, Unavailable
from hoodie.services import metadata_upkeep
from hoodie.services.archiving import archive
from hoodie.services.cleaning import clean
from hoodie.services.service import Service
from hoodie.state.handle import load_handle
from hoodie.table import Table
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.lake import Awake, Lake, row, table_of

OFTEN = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.metadata.enable": "false",  # whose compaction archiving would wait for
}


def acting(service: Service, run: Callable[..., object]) -> Service:
    """The service doing something else after each commit, whether or not it is due."""
    following = tuple(replace(one, may_act=lambda state, config: True) for one in service.after_commit)
    return replace(service, run=run, after_commit=following)


def written(lake: Lake, commits: int = 6) -> list[str]:
    """The actions that stand on the active timeline after so many upserts of one row."""
    for number in range(commits):
        lake.upsert(row("a", str(number), number))
    assert lake.values() == {"a": str(commits - 1)}
    return [one.action for one in lake.table.timeline().completed()]


def test_cleaning_and_archiving_follow_commits(version: int) -> None:
    lake = Lake(version, OFTEN)
    actions = written(lake)
    assert "clean" in actions
    assert actions.count("commit") < 6
    assert len(lake.base_files()) < 6


def test_no_service_runs_where_all_are_switched_off(version: int) -> None:
    lake = Lake(version, {**OFTEN, "hoodie.table.services.enabled": "false"})
    assert written(lake) == ["commit"] * 6
    assert len(lake.base_files()) == 6


def test_a_service_that_fails_is_a_warning_and_the_next_commit_tries_again(
    version: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: object) -> None:
        raise Unavailable("The disk is full", remedy="Free some space")

    lake = Lake(version, OFTEN)
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING, logger="hoodie"):
        patched.setattr(clean, "SERVICE", acting(clean.SERVICE, failing))
        assert "clean" not in written(lake)
    assert "the commit stands, but cleaning after it failed: The disk is full. Free some space" in caplog.text
    lake.upsert(row("a", "last", 9))
    assert "clean" in [one.action for one in lake.table.timeline().completed()]
    lake.ensure_sound()


@pytest.mark.parametrize("raises", [False, True])
def test_a_failure_that_is_no_error_of_ours_leaves_the_commit_as_it_is_too(
    version: int, raises: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: object) -> None:
        raise pa.ArrowInvalid("Decimal value does not fit")

    lake = Lake(version, {"hoodie.fail.writes.on.inline.table.service.exception": str(raises).lower()})
    monkeypatch.setattr(clean, "SERVICE", acting(clean.SERVICE, failing))
    expected = "cleaning after it failed: ArrowInvalid: Decimal value does not fit"
    with caplog.at_level(logging.WARNING, logger="hoodie"):
        if raises:
            with pytest.raises(HudiError, match=expected):
                lake.upsert(row("a"))
        else:
            assert lake.upsert(row("a")).instant
    assert expected in caplog.text
    assert lake.values() == {"a": "a"}


@pytest.mark.parametrize(
    ("key", "module"),
    [
        ("hoodie.fail.writes.on.inline.table.service.exception", clean),
        ("hoodie.fail.on.timeline.archiving", archive),
        ("hoodie.metadata.write.fail.on.table.service.failures", metadata_upkeep),
    ],
)
def test_a_service_that_fails_is_raised_where_options_ask_for_it_and_its_commit_stands(
    version: int, key: str, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise Unavailable("The disk is full")

    lake = Lake(version, {key: "true"})
    monkeypatch.setattr(module, "SERVICE", acting(module.SERVICE, failing))
    with pytest.raises(HudiError, match="The commit stands, but .*The disk is full") as caught:
        lake.upsert(row("a"))
    assert type(caught.value) is HudiError  # no kind that says to try again
    assert lake.values() == {"a": "a"}


def test_services_that_are_not_due_read_nothing(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"))
    counting = CountingStorage(lake.storage)
    Table(load_handle(counting, Awake()), lake.options, LocalEngine(1)).upsert(table_of([row("a", "again", 2)]))
    released = max(call.n for call in counting.calls if call.op == "release")
    assert [f"{call.op} {call.path}" for call in counting.calls[released:]] == []
