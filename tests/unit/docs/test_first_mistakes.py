"""What people get wrong in their first hour: each mistake is an error of ours with a remedy, in our words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from hoodie.cli import main
from hoodie.errors import Conflict, HudiError, Invalid, Unsupported
from hoodie.table import Table
from hoodie.testing.lake import Lake, row

KEY = {"hoodie.datasource.write.recordkey.field": "id"}
SCHEMA = pa.schema([pa.field("id", pa.string())])


@pytest.fixture
def lake() -> Lake:
    made = Lake()
    made.upsert(row("a"))
    return made


MISTAKES: dict[str, tuple[Callable[[Lake], Any], type[HudiError], str]] = {
    "a pandas series": (lambda lake: lake.table.upsert(pd.Series([1])), Invalid, "Cannot write a pandas.*Series"),
    "options as a text": (lambda lake: Table.open(lake.uri, options="a=b"), Invalid, "mapping of names"),  # type: ignore[arg-type]
    "a schema as a dict": (
        lambda lake: Table.create("memory://first-mistakes", schema={"id": "int"}, options=KEY),  # type: ignore[arg-type]
        Invalid,
        r"pyarrow\.schema",
    ),
    "a table made twice": (
        lambda lake: Table.create(lake.uri, schema=SCHEMA, options=KEY), Conflict, "There is a table at .* already"
    ),
    "a version that is none": (lambda lake: lake.table.services.upgrade(7), Unsupported, "Ask for 6, 8 or 9"),
    "the same to a preview": (lambda lake: lake.table.services.preview("upgrade", 7), Unsupported, "Ask for 6, 8 or 9"),
    "a report into nowhere": (
        lambda lake: lake.table.report("/nowhere/x.html"), Invalid, "Cannot write /nowhere/x.html: No such file"
    ),
    "an index without a column": (lambda lake: lake.table.indexes.create("x"), Invalid, "--column"),
    "changes that were not kept": (
        lambda lake: lake.table.scan(query="cdc", begin="2020-01-01"), Invalid, "made with hoodie.table.cdc.enabled"
    ),
    "a text without quotes": (lambda lake: lake.table.scan(filter="v = a"), Invalid, "single quotes"),
    "half a filter": (lambda lake: lake.table.scan(filter="ts >"), Invalid, "'ts >'"),
    "a filter with a stray bracket": (lambda lake: lake.table.scan(filter="(ts > 1"), Invalid, "character"),
}  # fmt: skip


@pytest.mark.parametrize("what", MISTAKES)
def test_a_first_mistake_is_told_with_its_remedy(lake: Lake, what: str) -> None:
    make, error, words = MISTAKES[what]
    before = lake.files()
    with pytest.raises(error, match=words) as caught:
        make(lake)
    assert caught.value.remedy
    assert "sqlglot" not in str(caught.value)
    assert lake.files() == before


def test_the_command_line_says_it_in_two_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "t")
    Table.create(path, schema=SCHEMA, options=KEY)
    assert main(["report", path, "--out", str(tmp_path / "nowhere" / "x.html")]) == 2
    said = capsys.readouterr().err
    assert "Cannot write" in said
    assert "Error" not in said
