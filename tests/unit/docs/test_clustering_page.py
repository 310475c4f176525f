"""docs/format/clustering.md: the members it names are those of the records."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hoodie.config import resolve
from hoodie.services.clustering.options import parse_cluster_options
from hoodie.services.clustering.plan import clustering_plan, plan_groups
from hoodie.services.clustering.result import COPIED, DECODED
from hoodie.services.clustering.row_order import ORDER
from hoodie.spec import BaseFileName, TableConfig
from hoodie.spec.base_file_plan import BASE_FILE_PLAN, BaseFileOperation, BaseFilePlan, encode_base_file_plan
from hoodie.spec.clustering_plan import clustering_values
from hoodie.spec.sort_order import CURVE
from hoodie.view import BaseFile, FileSlice

PAGE = (Path(__file__).parents[3] / "docs" / "format" / "clustering.md").read_text(encoding="utf-8")


def members(record: str) -> list[str]:
    """The members that the grammar gives a record."""
    found = re.search(rf"^{record} *= (.*)$", PAGE, re.MULTILINE)
    assert found is not None
    return [re.split(r"[\[{ =]", one.strip())[0] for one in found[1].split(";")[0].split(",")]


def test_the_grammar_has_the_members_of_each_record() -> None:
    options = parse_cluster_options(resolve({}), TableConfig({"hoodie.table.name": "t"}))
    names = [BaseFileName(f"{n}-0", "0-0-0", f"2026010100000000{n}") for n in range(2)]
    slices = [FileSlice("p", name.file_id, name.instant, BaseFile(f"p/{name.text}", name, 9)) for name in names]
    found = plan_groups(slices, options)
    plan = clustering_values(
        clustering_plan(found.groups, found.missing, options, lambda path: f"/t/{path}", {}), "1.x"
    )
    group = plan["inputGroups"][0]
    assert set(members("clusteringPlan")) == set(plan)
    assert set(members("group")) == set(group)
    assert set(members("slice")) == set(group["slices"][0])
    assert set(members("strategy")) == set(plan["strategy"])
    assert all(f"`{name}`" in PAGE for name in group["metrics"])


def test_the_grammar_has_the_members_of_a_base_file_compaction() -> None:
    plan = json.loads(encode_base_file_plan(BaseFilePlan((BaseFileOperation("p", ("p/a.parquet",), {}),))))
    assert set(members("baseFilePlan")) == set(plan)
    assert set(members("operation")) == set(plan["operations"][0])
    assert f"`{BASE_FILE_PLAN}`" in PAGE


def test_the_keys_of_our_own_are_named() -> None:
    assert f"`{COPIED}`" in PAGE
    assert f"`{DECODED}`" in PAGE
    assert PAGE.count(f"`{ORDER}`") == 1
    assert f"`{CURVE}`" in PAGE
