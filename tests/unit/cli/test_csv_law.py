"""The law of CSV files: rows that `hoodie query --out` writes into one come back the same by `hoodie write`, whatever
their values, since the types of the table rule."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.cli import main
from hoodie.table import Table

TEXTS: Final = (
    "01234",
    "1e3",
    "NULL",
    "null",
    "NaN",
    "nan",
    "N/A",
    "true",
    "1,5",
    'say "a"',
    "'",
    " x ",
    "ä\U0001f40d",
    "2024-01-01",
    "a\nb",
    "a\r\nb",
    "\r",
    "\n",
    '""',
    "\ufeff",
    "\u00a0",
    "NA",
    "\\N",
    "-",
    "#",
    "",
)
OF: Final[dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]]] = {
    "text": (pa.string(), lambda chance: chance.choice(TEXTS)),
    "small": (pa.int32(), lambda chance: chance.randint(-(2**31), 2**31 - 1)),
    "large": (pa.int64(), lambda chance: chance.randint(-(2**63), 2**63 - 1)),
    "single": (pa.float32(), lambda chance: chance.choice([0.1, -0.0, 1e30, math.inf, -math.inf, math.nan])),
    "double": (
        pa.float64(),
        lambda chance: chance.choice([0.1, -0.0, 5e-324, 1e308, math.inf, math.nan, chance.random()]),
    ),
    "decimal": (pa.decimal128(12, 3), lambda chance: Decimal(chance.randint(-(10**11), 10**11)).scaleb(-3)),
    "flag": (pa.bool_(), lambda chance: chance.random() < 0.5),
    "day": (pa.date32(), lambda chance: date(1, 1, 1) + timedelta(chance.randint(0, 3_000_000))),
    "moment": (
        pa.timestamp("us", "UTC"),
        lambda chance: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=chance.randint(-(2**50), 2**52)),
    ),
    "local": (
        pa.timestamp("us"),
        lambda chance: datetime(1970, 1, 1) + timedelta(microseconds=chance.randint(-(2**50), 2**52)),
    ),
    "millis": (
        pa.timestamp("ms", "UTC"),
        lambda chance: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=chance.randint(-(2**40), 2**42)),
    ),
}
SCHEMA: Final = pa.schema(
    [("id", pa.string()), ("part", pa.string()), *((name, kind) for name, (kind, _) in OF.items())]
)
OPTIONS: Final = (
    *("-o", "hoodie.table.name=rows"),
    *("-o", "hoodie.datasource.write.recordkey.field=id"),
    *("-o", "hoodie.datasource.write.partitionpath.field=part"),
)


def random_rows(chance: random.Random, *, nulls: bool) -> pa.Table:
    def value(make: Callable[[random.Random], Any]) -> Any:
        return None if nulls and chance.random() < 0.2 else make(chance)

    rows = [
        {
            "id": f"{number:04}",
            "part": chance.choice(["007", "1.0", "x"]),
            **{name: value(make) for name, (_, make) in OF.items()},
        }
        for number in range(60)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def rows_of(path: str) -> list[str]:
    found = Table.open(path).scan(columns=list(SCHEMA.names)).read_all()
    return sorted(map(repr, found.to_pylist()))


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_rows_come_back_from_a_csv_file_as_they_were(
    seed: int, nulls: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(seed)
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    stored, text = str(tmp_path / "rows.parquet"), str(tmp_path / "rows.csv")
    rows = random_rows(chance, nulls=nulls)
    pq.write_table(rows, stored)
    assert main(["write", first, "--input", stored, *OPTIONS]) == 0
    assert rows_of(first) == sorted(map(repr, rows.to_pylist()))
    pq.write_table(rows.slice(0, 1), stored)
    assert main(["write", second, "--input", stored, *OPTIONS]) == 0
    columns = ",".join(SCHEMA.names)
    assert main(["query", first, "--columns", columns, "--out", text]) == 0
    assert main(["write", second, "--input", text]) == 0, capsys.readouterr().err
    assert rows_of(second) == rows_of(first)
