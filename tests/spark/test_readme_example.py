"""The ten lines of README.md run as they stand and show what stands below them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hoodie.testing.readme import load_examples

pytestmark = [pytest.mark.spark, pytest.mark.first]

README = Path(__file__).parents[2] / "README.md"


def test_the_ten_lines_show_what_the_page_says(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = (example for example in load_examples(README) if example.needs_spark)
    monkeypatch.chdir(tmp_path)
    exec(compile(example.code, str(README), "exec"), {})
    assert capsys.readouterr().out.strip() == example.output.strip()
