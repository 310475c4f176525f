"""The example of README.md runs as it stands and prints what stands below it. (The Spark one: tests/spark.)"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[3] / "README.md"


def test_the_example_without_spark_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = re.findall(r"```python\n(.*?)```\n```\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    example, output = examples[1]
    monkeypatch.chdir(tmp_path)
    exec(compile(example, str(README), "exec"), {})
    assert capsys.readouterr().out == output
