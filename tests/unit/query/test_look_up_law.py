"""The law of look-ups: whatever the key fields, and in whatever form keys come, exactly their rows are found.

Keys are of one to three fields of random types, some of them NULL where there are several; tables are of every version
and both kinds, some rows in log files. Forms: tuples, mappings, Arrow tables, batches and structs, pandas and polars
frames, and what stands in `_hoodie_record_key`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hoodie.testing.lake import Lake

VALUES: Final[Mapping[str, tuple[pa.DataType, Callable[[random.Random], Any]]]] = {
    "text": (pa.string(), lambda chance: chance.choice(["a", "B b", "é", "01", "1.0", "null", "x-y_z", "'"])),
    "small": (pa.int32(), lambda chance: chance.choice([-(2**31), -1, 0, 1, 7, 2**31 - 1])),
    "large": (pa.int64(), lambda chance: chance.choice([-(2**63), -5, 0, 3, 2**53 + 1, 2**63 - 1])),
    "flag": (pa.bool_(), lambda chance: chance.random() < 0.5),
    "day": (pa.date32(), lambda chance: date(1960, 1, 1) + timedelta(chance.randint(0, 9) * 4000)),
    "price": (pa.decimal128(9, 2), lambda chance: Decimal(chance.randint(-300, 300)).scaleb(-2)),
}
Key = tuple[Any, ...]


def as_table(fields: Sequence[str], keys: Sequence[Key]) -> pa.Table:
    columns = zip(*keys, strict=True)
    return pa.table({name: pa.array(values, VALUES[name][0]) for name, values in zip(fields, columns, strict=True)})


FORMS: Final[Mapping[str, Callable[[Sequence[str], Sequence[Key]], Any]]] = {
    "tuples": lambda fields, keys: list(keys),
    "an iterator": lambda fields, keys: iter(keys),
    "mappings": lambda fields, keys: [dict(zip(fields, key, strict=True)) for key in keys],
    "an Arrow table": as_table,
    "a batch": lambda fields, keys: as_table(fields, keys).combine_chunks().to_batches()[0],
    "structs": lambda fields, keys: as_table(fields, keys).to_struct_array(),
    "a table with other columns": lambda fields, keys: as_table(fields, keys).append_column("v", pa.nulls(len(keys))),
    "a pandas frame": lambda fields, keys: pd.DataFrame(
        {name: pd.Series([key[at] for key in keys], dtype=object) for at, name in enumerate(fields)}
    ),
    "a polars frame": lambda fields, keys: pl.from_arrow(as_table(fields, keys)),
}


def random_key(chance: random.Random, fields: Sequence[str]) -> Key:
    while True:
        nulls = 0.15 if len(fields) > 1 else 0
        key = tuple(None if chance.random() < nulls else VALUES[name][1](chance) for name in fields)
        if any(value is not None for value in key):
            return key


@pytest.mark.parametrize("seed", range(24))
def test_the_rows_of_exactly_these_keys_are_given_whatever_form_the_keys_have(seed: int) -> None:
    chance = random.Random(seed)
    fields = chance.sample(sorted(VALUES), chance.randint(1, 3))
    schema = pa.schema(
        [*((name, VALUES[name][0]) for name in fields), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())]
    )
    options = {
        "hoodie.datasource.write.recordkey.field": ",".join(fields),
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.table.type": chance.choice(["COPY_ON_WRITE", "MERGE_ON_READ"]),
    }
    lake = Lake((6, 8, 9)[seed % 3], options, schema=schema)
    stored: dict[Key, str] = {}
    for turn in range(3):
        given = {random_key(chance, fields): f"{turn}-{number}" for number in range(12)}
        stored |= given
        rows = [{**dict(zip(fields, key, strict=True)), "part": "p", "ts": turn, "v": v} for key, v in given.items()]
        lake.upsert(*rows)
    assert sorted(v for (v,) in lake.rows(("v",))) == sorted(stored.values())
    for form, made in FORMS.items():
        asked = [
            *chance.sample(sorted(stored, key=repr), min(4, len(stored))),
            *(random_key(chance, fields) for _ in range(3)),
        ]
        expected = sorted(stored[key] for key in set(asked) if key in stored)
        found = lake.table.lookup(made(fields, asked), columns=["v"]).read_all()["v"].to_pylist()
        assert sorted(found) == expected, f"{form} of {fields}: {asked}"
    texts = lake.table.scan(["_hoodie_record_key", "v"]).read_all()
    some = texts.slice(0, 5)
    found = lake.table.lookup(some["_hoodie_record_key"], columns=["v"]).read_all()["v"].to_pylist()
    assert sorted(found) == sorted(some["v"].to_pylist())


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint32, np.int64, np.float32, np.float64, object])
def test_numbers_of_one_field_are_found_whatever_library_they_come_from(dtype: Any) -> None:
    schema = pa.schema([("small", pa.int32()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
    lake = Lake(9, {"hoodie.datasource.write.recordkey.field": "small"}, schema=schema)
    lake.upsert(*({"small": number, "part": "p", "ts": 1, "v": f"v{number}"} for number in range(5)))
    keys = np.array([1, 3], dtype)
    for asked in (
        keys,
        list(keys),
        tuple(keys),
        pd.Series(keys),
        pa.array(keys.tolist()),
        iter(keys),
        set(keys.tolist()),
    ):
        found = lake.table.lookup(asked, columns=["v"]).read_all()["v"].to_pylist()
        assert sorted(found) == ["v1", "v3"], type(asked)
