from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest

from hoodie.query import ReadOptions, ReadPlan, load_read_plan, run_read
from hoodie.testing.hand_table import HandTable


def _plan(table: HandTable, options: Mapping[str, Any]) -> ReadPlan:
    return load_read_plan(table.storage, table.config, table.timeline(), ReadOptions(**options))


@pytest.fixture
def plan() -> Callable[..., ReadPlan]:
    """`plan(table, query=..., filter=...)`"""
    return lambda table, **options: _plan(table, options)


@pytest.fixture
def rows() -> Callable[..., pa.Table]:
    """`rows(table, query=..., filter=...)`: all rows of the query."""
    return lambda table, **options: run_read(_plan(table, options), table.storage).read_all()
