"""The ten lines of README.md run as they stand and show what stands below them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

README = Path(__file__).parents[2] / "README.md"


def test_the_ten_lines_show_what_the_page_says(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(r"```python\n(.*?)```\n```\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    monkeypatch.chdir(tmp_path)
    exec(compile(found[1], str(README), "exec"), {})
    assert capsys.readouterr().out.strip() == found[2].strip()
