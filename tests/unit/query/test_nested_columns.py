"""Nested columns in filters where indexes have statistics of all else."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.testing.lake import ROWS, Lake, row

NESTED = pa.schema(
    [
        *ROWS,
        ("st", pa.struct([("a", pa.int32())])),
        ("l", pa.list_(pa.string())),
        ("m", pa.map_(pa.string(), pa.int8())),
    ]
)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_nested_column_may_be_asked_whether_it_is_null(version: int) -> None:
    """It has no statistics; records of the keys come with what is asked of it."""
    lake = Lake(version, {}, schema=NESTED)
    lake.upsert(row("a", st={"a": 1}), row("b", part="q", l=["x"]), row("c", part="r", m={"k": 1}))
    for column, key in (("st", "a"), ("l", "b"), ("m", "c")):
        assert lake.rows(("id",), filter=f"{column} is not null") == [(key,)]
        assert len(lake.rows(("id",), filter=f"{column} is null")) == 2
