"""Filters that name buckets: fewer files are read, and the rows are those of a table that reads them all."""

from __future__ import annotations

import datetime as dt
import os
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from hoodie import Table
from hoodie.index.buckets import COUNT_RULES_DIR
from hoodie.spec.file_names import bucket_file_id
from hoodie.testing.lake import Lake
from hoodie.timeline import store_table_config

INDEX, ENGINE = "hoodie.index.type", "hoodie.index.bucket.engine"
COUNT, FIELDS = "hoodie.bucket.index.num.buckets", "hoodie.bucket.index.hash.field"
MERGE = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
SIMPLE = {INDEX: "BUCKET", COUNT: "8"}
RINGS = {**SIMPLE, **MERGE, ENGINE: "CONSISTENT_HASHING"}
PLAIN = {"hoodie.metadata.enable": "false"}
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("part", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.string()),
        ("n", pa.int32()),
        ("day", pa.date32()),
        ("x", pa.float64()),
    ]
)
ODD = ["__null__", "__empty__", "x,n:1", "nowhere"]
"""Texts that no row has."""
TEXTS = ["a", "b", "", "a,b", "id:1", "x,id:1", "n:1,v:2", "v:a,v:b", "ä", "it's", None]
DAYS = [dt.date(2024, 1, 1), dt.date(1969, 12, 31), None]
KEYS = {
    "text": {"hoodie.datasource.write.recordkey.field": "id"},
    "number": {"hoodie.datasource.write.recordkey.field": "n"},
    "complex": {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.keygenerator.type": "COMPLEX",
    },
    "several": {"hoodie.datasource.write.recordkey.field": "id,n,day"},
    "one of several": {"hoodie.datasource.write.recordkey.field": "n,v,day", FIELDS: "v"},
    "number of several": {"hoodie.datasource.write.recordkey.field": "v,n", FIELDS: "n"},
    "last of three": {"hoodie.datasource.write.recordkey.field": "id,v,n", FIELDS: "n"},
    "float": {"hoodie.datasource.write.recordkey.field": "x,n"},
    "partition": {"hoodie.datasource.write.recordkey.field": "part,n"},
}
ROUNDS = int(os.environ.get("HOODIE_FILTERS", "25"))


def rows(count: int = 40) -> list[dict[str, Any]]:
    return [
        {"id": f"k{n}", "part": f"p{n % 2}", "ts": 1, "v": f"v{n % 7}", "n": n, "day": dt.date(2024, 1, 1), "x": 0.5}
        for n in range(count)
    ]


def made(version: int = 9, **options: str) -> Lake:
    lake = Lake(version, {**SIMPLE, **PLAIN, **options}, schema=SCHEMA)
    lake.upsert(*rows())
    return lake


def counts(lake: Lake, condition: str, **query: Any) -> tuple[int, int]:
    """How many slices are read, and left out."""
    plan = lake.table.read_plan(filter=condition, **query)
    return len(plan.files), plan.skipped_files


@pytest.mark.parametrize("more", [{}, MERGE, RINGS], ids=["cow", "mor", "rings"])
@pytest.mark.parametrize("metadata", ["true", "false"])
def test_a_filter_on_the_key_reads_the_files_of_its_bucket(version, more, metadata):
    lake = made(version, **more, **{"hoodie.metadata.enable": metadata})
    lake.upsert({**rows()[7], "v": "newer"})
    everything = len(lake.live())
    for condition, most in (
        ("id = 'k7'", 1),
        ("id IN ('k7', 'k9') AND n < 100", 2),
        ("_hoodie_record_key = 'k7'", 1),
        ("id = 'nowhere'", 1),
    ):
        found, skipped = counts(lake, condition)
        assert found <= 2 * most < 8, condition  # of two partitions
        assert found + skipped == everything
        assert lake.rows(filter=condition) == lake.rows(filter=condition, skip_data=False)
    assert lake.rows(("id", "v"), filter="id = 'k7'") == [("k7", "newer")]
    assert lake.rows(("id",), filter="id = 'k7'", query="read_optimized") == [("k7",)]
    assert counts(lake, "id = 'k7'", query="read_optimized")[0] <= 2
    assert counts(lake, "id = 'k7' AND part = 'p1'")[0] == 1


def test_options_leave_pruning_out():
    lake = made()
    everything = len(lake.live())
    assert counts(lake, "id = 'k7'")[0] == 2
    assert counts(lake, "id = 'k7'", prune_buckets=False) == (everything, 0)
    assert counts(lake, "id = 'k7'", skip_data=False) == (everything, 0)
    for off in ("hoodie.bucket.index.query.pruning", "hoodie.enable.data.skipping"):
        plan = Table.open(lake.uri, options={off: "false"}).read_plan(filter="id = 'k7'")
        assert len(plan.files) == everything


@pytest.mark.parametrize(
    "condition",
    ["id > 'k7'", "n = 7", "id = 'k7' OR n = 3", "NOT id = 'k7'", "upper(id) = 'K7'", "id IS NULL", "id = v"],
)
def test_a_filter_that_names_no_bucket_reads_all(condition):
    lake = made()
    assert counts(lake, condition) == (len(lake.live()), 0)


def test_hash_fields_have_to_be_fixed_and_no_other():
    lake = made(**KEYS["one of several"])
    assert counts(lake, "v = 'v3'")[0] == 2
    assert counts(lake, "n = 3")[1] == 0
    several = made(**KEYS["several"])
    assert counts(several, "id = 'k3' AND n = 3")[1] == 0
    assert counts(several, "id = 'k3' AND n IN (3, 4) AND day = DATE '2024-01-01'")[0] <= 4
    texts = made(**KEYS["number of several"])  # v, which is not named, may have a text like another field's
    assert counts(texts, "n = 3")[1] == 0
    assert counts(texts, "n = 3 AND v = 'v3'")[0] == 2


def test_values_that_are_equal_and_spelled_otherwise_are_all_found():
    lake = Lake(9, {**SIMPLE, **PLAIN, **KEYS["float"]}, schema=SCHEMA)
    lake.upsert(*({**one, "x": zero} for one in rows(12) for zero in (0.0, -0.0)))
    for n in range(12):
        assert lake.rows(("n",), filter=f"x = 0.0D AND n = {n}") == [(n,), (n,)]


def test_a_table_that_does_not_say_its_buckets_for_certain_is_read_whole(version):
    lake = made(version)
    everything = len(lake.live())
    lake.storage.put(f"{COUNT_RULES_DIR}/00000000000000.hashing_config", b"{}")
    assert counts(lake, "id = 'k7'") == (everything, 0)
    lake.storage.delete(f"{COUNT_RULES_DIR}/00000000000000.hashing_config")
    assert counts(lake, "id = 'k7'")[0] == 2
    handle = lake.handle()
    fewer = handle.config.with_changes({COUNT: "3"})  # file names show that there are more
    store_table_config(lake.storage, handle.config, fewer, handle.env)
    assert counts(lake, "id = 'k7'") == (everything, 0)
    store_table_config(lake.storage, fewer, fewer.with_changes({}, drop=(INDEX, ENGINE, COUNT, FIELDS)), handle.env)
    assert counts(lake, "id = 'k7'") == (everything, 0)
    assert Table.open(lake.uri, options=SIMPLE).read_plan(filter="id = 'k7'").skipped_files == 0


def test_states_of_the_past_and_replaced_files_are_pruned_alike(version):
    lake = made(version, **MERGE)
    first = lake.table.timeline().completed()[-1].requested
    lake.write("insert_overwrite", [{**one, "v": "new"} for one in rows() if one["part"] == "p1"])
    assert lake.rows(filter="id = 'k7'", as_of=first) == [("k7", "v0")]
    assert counts(lake, "id = 'k7'", as_of=first)[0] == 2
    assert lake.rows(filter="id = 'k7'") == [("k7", "new")]
    assert counts(lake, "id = 'k7'")[0] == 2


def test_rings_that_split_name_the_files_of_a_key():
    lake = made(**{**RINGS, COUNT: "2"})
    before = lake.table.timeline().completed()[-1].requested
    sizes = {"hoodie.parquet.max.file.size": "1000", "hoodie.bucket.index.max.num.buckets": "4"}
    assert lake.table.services.resize(**sizes) is not None
    for one in rows():
        condition = f"id = '{one['id']}'"
        assert counts(lake, condition)[0] <= 2 < len(lake.live())
        assert lake.rows(("n",), filter=condition) == [(one["n"],)]
        assert lake.rows(("n",), filter=condition, as_of=before) == [(one["n"],)]


def literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, dt.date):
        return f"DATE '{value}'"
    return f"'{value}'".replace("it's", "it''s") if isinstance(value, str) else str(value)


def condition(random: Random, depth: int = 2) -> str:
    if depth and random.random() < 0.7:
        parts = [condition(random, depth - 1) for _ in range(random.randint(2, 3))]
        return f"({random.choice([' AND ', ' AND ', ' OR ']).join(parts)})"
    name = random.choice(["id", "v", "n", "day", "x", "part", "_hoodie_record_key"])
    values: dict[str, list[Any]] = {
        "n": [0, 1, 2, 3, -1, None],
        "day": DAYS,
        "x": [0.0, -0.0, 1.5],
        "part": ["p", "q", "nowhere"],
    }
    texts = [literal(random.choice(values.get(name, [*TEXTS, *ODD]))) for _ in range(random.randint(1, 3))]
    form = random.choice(["{} = {}", "{} = {}", "{} IN ({})", "{} IN ({})", "NOT {} = {}", "{} >= {}", "{} IS NULL"])
    return form.format(name, ", ".join(texts) if "IN (" in form else texts[0])


@pytest.mark.parametrize("engine", [SIMPLE, RINGS], ids=["simple", "rings"])
@pytest.mark.parametrize("kind", KEYS)
def test_random_filters_keep_the_same_rows(kind, engine):
    random = Random(f"{kind} {len(engine)} {os.environ.get('HOODIE_FILTER_SEED', '')}")
    lake = Lake(9, {**engine, **PLAIN, **KEYS[kind]}, schema=SCHEMA)
    fields = KEYS[kind]["hoodie.datasource.write.recordkey.field"].split(",")

    def some() -> dict[str, Any]:
        found = {
            "id": random.choice(["a", "b", "x,n:1", "x,n:2"] if kind == "last of three" else TEXTS),
            "part": random.choice("pq"),
            "ts": random.randint(1, 5),
            "v": random.choice(TEXTS),
            "n": random.choice([0, 1, 2, 3, -1, None]),
            "day": random.choice(DAYS),
            "x": random.choice([0.0, -0.0, 1.5]),
        }
        if len(fields) == 1 and found[fields[0]] in ("", None):
            found[fields[0]] = 7 if fields[0] == "n" else "set"
        elif all(found[name] in ("", None) for name in fields):
            found["n"] = 3
        return found

    for _ in range(3):
        lake.upsert(*(some() for _ in range(60)))
    columns, table, fell = ["_hoodie_record_key", "id", "part", "v", "n", "day"], lake.table, 0
    for _ in range(ROUNDS):
        asked = condition(random)
        for query in ("snapshot", "read_optimized"):
            pruned = table.scan(columns, filter=asked, query=query).read_all().to_pylist()
            whole = table.scan(columns, filter=asked, query=query, skip_data=False).read_all().to_pylist()
            assert sorted(map(repr, pruned)) == sorted(map(repr, whole)), asked
        fewer, all_of_it = (len(table.read_plan(filter=asked, skip_data=skip).files) for skip in (True, False))
        fell += fewer < all_of_it
    assert fell or kind not in ("text", "number", "complex", "one of several"), "no filter has pruned anything"


def test_a_file_name_that_says_no_bucket_ends_pruning():
    lake = made()
    assert bucket_file_id(7, "x" * 36).startswith("00000007")
    handle = lake.handle()
    store_table_config(lake.storage, handle.config, handle.config.with_changes({}, drop=(INDEX,)), handle.env)
    plain = Table.open(lake.uri, options={INDEX: "SIMPLE"})
    plain.write("insert", pa.Table.from_pylist([{**rows()[0], "id": "loose", "part": "p9"}], schema=SCHEMA))
    handle = lake.handle()
    store_table_config(lake.storage, handle.config, handle.config.with_changes({INDEX: "BUCKET"}), handle.env)
    assert counts(lake, "id = 'k7'")[1] == 0
    assert lake.rows(("id",), filter="id = 'loose'") == [("loose",)]
