"""The calls that docs/scale.md tells of its smallest table are those that operations make."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra `server`")

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("bench_scale", ROOT / "bench" / "scale.py")
assert SPEC is not None
assert SPEC.loader is not None
scale = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(scale)
TOLD = re.findall(
    r"^\| ([a-z][^|]*) \| ([0-9 ]+) \| [0-9 ]+ \| [0-9 ]+ \| [0-9 ]+ \| [a-z ]+ \|$",
    (ROOT / "docs" / "scale.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_every_operation_is_told() -> None:
    assert [name for name, _ in TOLD] == list(scale.OPERATIONS)


@pytest.mark.parametrize(("name", "calls"), TOLD)
def test_an_operation_makes_the_calls_that_are_told(name: str, calls: str) -> None:
    assert scale.measure(name, 1_000, 100, None)["calls"] == int(calls.replace(" ", ""))
