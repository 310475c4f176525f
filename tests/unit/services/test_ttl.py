"""Partitions past their time to live."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.config import resolve
from hoodie.errors import Invalid, Unsupported
from hoodie.services.ttl import TtlOptions, parse_ttl_options, plan_ttl
from hoodie.testing.env import FakeEnv

NOW = datetime(2026, 3, 10, tzinfo=UTC)
STARTS = {"a": "20260301000000000", "b": "20260308000000000", "c": "20260228000000000"}
DAYS = "hoodie.partition.ttl.strategy.days.retain"
RULE = "hoodie.partition.ttl.management.strategy.type"


def plan(days: int, selected: tuple[str, ...] = (), most: int = 1000) -> list[str]:
    options = TtlOptions("KEEP_BY_TIME", days, selected, most)
    return [partition for partition, _ in plan_ttl(STARTS, options, NOW, "UTC")]


def test_partitions_older_than_the_days_expire_oldest_first() -> None:
    assert plan(5) == ["c", "a"]
    assert plan(1) == ["c", "a", "b"]
    assert plan(30) == []


def test_nothing_expires_while_no_days_are_set() -> None:
    assert plan(-1) == []
    assert plan(0) == []


def test_only_selected_partitions_expire_and_never_more_than_allowed_at_once() -> None:
    assert plan(1, selected=("b", "nowhere")) == ["b"]
    assert plan(1, most=1) == ["c"]


def test_another_rule_or_a_java_class_is_refused() -> None:
    with pytest.raises(Invalid, match="KEEP_FOREVER"):
        parse_ttl_options(resolve({RULE: "KEEP_FOREVER"}))
    with pytest.raises(Unsupported, match=r"com\.acme\.Rule"):
        parse_ttl_options(resolve({"hoodie.partition.ttl.strategy.class": "com.acme.Rule"}))


@pytest.mark.parametrize("rule", ["KEEP_BY_TIME", "KEEP_BY_CREATION_TIME"])
def test_expired_partitions_are_deleted_by_one_commit_and_the_plan_says_so_before(
    tmp_path: Path, version: int, rule: str
) -> None:
    env = FakeEnv()
    path = str(tmp_path / "table")
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "day",
        "hoodie.write.table.version": version,
    }
    table = hoodie.Table.create(path, options=options, env=env)
    table.upsert(pa.table({"id": [1, 2], "day": ["old", "kept"]}))
    env.advance(timedelta(days=9))
    table.upsert(pa.table({"id": [2], "day": ["kept"]}))
    wanted = {DAYS: 5, RULE: rule}
    if rule == "KEEP_BY_CREATION_TIME":
        wanted["hoodie.partition.ttl.strategy.partition.selected"] = "old"
    preview = table.services.preview("ttl", **wanted)
    assert [step.partition for step in preview.steps] == ["old"]
    assert preview.size_bytes > 0
    committed = table.services.ttl(**wanted)
    assert committed is not None
    assert committed.partitions == ("old",)
    assert table.scan(columns=["id"]).read_all().column("id").to_pylist() == [2]
    assert table.services.ttl(**wanted) is None
