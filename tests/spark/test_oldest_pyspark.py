"""The oldest PySpark that may be installed is the one that `make test-oldest` runs a part of these tests on."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pyspark
import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.spark, pytest.mark.first]


def test_the_version_asked_for_is_the_one_that_runs() -> None:
    """`HOODIE_PYSPARK` asks; else it is the one that is locked."""
    locked = re.search(r"^pyspark==(\S+)", (ROOT / "requirements/dev.lock").read_text(), re.MULTILINE)
    assert locked is not None
    assert pyspark.__version__ == os.environ.get("HOODIE_PYSPARK", locked[1])


def test_the_oldest_that_may_be_installed_is_tested_and_said() -> None:
    oldest = re.search(r"^pyspark==(\d+\.\d+)\.0$", (ROOT / "requirements/oldest.in").read_text(), re.MULTILINE)
    assert oldest is not None
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert f"pyspark>={oldest[1]}" in extras["spark"]
    assert f"PySpark {oldest[1]} or newer" in (ROOT / "README.md").read_text()
    assert "test-oldest" in (ROOT / ".ci/run").read_text()
