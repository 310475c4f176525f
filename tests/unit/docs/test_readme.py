"""The example of README.md runs as it stands and prints what stands below it. (The Spark one: tests/spark.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie.testing.readme import load_examples

README = Path(__file__).parents[3] / "README.md"


def test_the_example_without_spark_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = (example for example in load_examples(README) if not example.needs_spark)
    monkeypatch.chdir(tmp_path)
    exec(compile(example.code, str(README), "exec"), {})
    assert capsys.readouterr().out == example.output
