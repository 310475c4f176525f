"""A filter on partition columns decides which partitions are listed, or looked up: fewer calls and the same plan."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.engine import LocalEngine
from hoodie.errors import Invalid
from hoodie.fileview import FileSystemView, FolderView, open_file_view
from hoodie.query import ReadOptions, ReadPlan, load_read_plan, run_read
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.table import Table
from hoodie.testing.counting_file_view import CountingFileView
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.lake import Awake, Lake, logged_lake, row
from hoodie.view import PartitionChoice, View

FILTERS = int(os.environ.get("HOODIE_PARTITION_FILTERS", "10"))
STYLE = "hoodie.datasource.write.hive_style_partitioning"
ENCODED = "hoodie.datasource.write.partitionpath.urlencode"
FIELDS = "hoodie.datasource.write.partitionpath.field"
SLASHES = "hoodie.datasource.write.slash.separated.date.partitioning"


@dataclass(frozen=True)
class Layout:
    """A table's partition columns: their types, values rows have, and options of the table."""

    columns: dict[str, pa.DataType]
    values: dict[str, list[Any]]
    options: dict[str, str]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("id", pa.string()), ("ts", pa.int64()), *self.columns.items()])


TEXTS = ["a", "b", "a b", "x=y", "né", "100%", None, "b2", "B"]
SLASHED = ["a/b", "a/c", "a-b", "b", "a0", "c/a/c", None]
DAYS = [date(2023, 12, 31), date(2024, 1, 1), date(2024, 1, 31), date(2024, 2, 29), date(2025, 3, 1), None]
LAYOUTS = {
    "text": Layout({"p": pa.string()}, {"p": ["a", "b", "a b", "né", "B", None]}, {}),
    "text with slashes": Layout({"p": pa.string()}, {"p": SLASHED}, {}),
    "text with slashes in hive style": Layout({"p": pa.string()}, {"p": SLASHED}, {STYLE: "true"}),
    "encoded": Layout({"p": pa.string()}, {"p": [*TEXTS, *SLASHED]}, {ENCODED: "true"}),
    "numbers": Layout({"p": pa.int32()}, {"p": [-3, 0, 7, 11, None]}, {}),
    "days": Layout({"p": pa.date32()}, {"p": DAYS}, {STYLE: "true"}),
    "days with slashes": Layout({"p": pa.date32()}, {"p": DAYS[:-1]}, {SLASHES: "true"}),
    "two": Layout({"p": pa.string(), "q": pa.int64()}, {"p": ["a", "b", None], "q": [1, 2, 30]}, {}),
    "two texts": Layout({"p": pa.string(), "q": pa.string()}, {"p": ["a", "b", None], "q": ["a", "b", "c"]}, {}),
    "two in hive style": Layout(
        {"p": pa.string(), "q": pa.string()}, {"p": ["a", "c/b", None], "q": ["a", "b/c", None]}, {STYLE: "true"}
    ),
    "two, encoded": Layout(
        {"p": pa.string(), "q": pa.date32()}, {"p": ["a", "a/b", None], "q": DAYS[:3]}, {STYLE: "true", ENCODED: "true"}
    ),
    "three": Layout(
        {"p": pa.string(), "q": pa.int32(), "r": pa.string()},
        {"p": ["a", "b"], "q": [1, 2], "r": ["a", "b", "c"]},
        {STYLE: "true"},
    ),
    "times": Layout(
        {"p": pa.int64()},
        {"p": [0, 86_400 * 31, 86_400 * 400]},
        {
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
            "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
            "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
        },
    ),
    "text and times": Layout(
        {"p": pa.string(), "q": pa.int64()},
        {"p": ["a", "b"], "q": [0, 86_400 * 31, 86_400 * 400]},
        {
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
            "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
            "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
            FIELDS: "p:SIMPLE,q:TIMESTAMP",
        },
    ),
}


class Unpruned(CountingFileView):
    """A view that loads all partitions whatever is chosen."""

    def load_chosen(self, choice: PartitionChoice) -> View:
        del choice
        return self.inner.load()


def made(layout: Layout, version: int = 9, **options: str) -> Lake:
    """One row for each combination of values."""
    rows: list[dict[str, Any]] = [{}]
    for name, values in layout.values.items():
        rows = [{**one, name: value} for one in rows for value in values]
    rows = [{"id": f"k{number}", "ts": 1, **one} for number, one in enumerate(rows)]
    fields = {FIELDS: ",".join(layout.columns), **layout.options, **options}
    lake = Lake(version, fields, schema=layout.schema)
    lake.write("bulk_insert", rows)
    return lake


@cache
def shared(name: str) -> Lake:
    """The table of a layout, for tests that read."""
    return made(LAYOUTS[name])


def literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"DATE '{value}'" if isinstance(value, date) else str(value)


def condition(chance: random.Random, layout: Layout) -> str:
    """Random SQL on the columns of a layout."""
    if chance.random() < 0.35:
        parts = [condition(chance, layout) for _ in range(2)]
        return f"({parts[0]} {chance.choice(['AND', 'AND', 'OR'])} {parts[1]})"
    name = chance.choice([*layout.columns, *layout.columns, "id"])
    known = [value for value in layout.values.get(name, ["k0", "k1"]) if value is not None]
    if isinstance(known[0], date):
        known += [known[0] + timedelta(days=chance.randint(-40, 500))]
    one, two = chance.choice(known), chance.choice(known)
    match chance.randint(0, 7):
        case 0 | 1:
            return f"{name} = {literal(one)}"
        case 2:
            return f"{name} IN ({literal(one)}, {literal(two)})"
        case 3:
            return f"{name} {chance.choice(['<', '<=', '>', '>=', '<>'])} {literal(one)}"
        case 4:
            return f"{name} BETWEEN {literal(one)} AND {literal(two)}"
        case 5:
            return f"{name} IS {chance.choice(['', 'NOT '])}NULL"
        case 6 if isinstance(one, str):
            return f"{name} LIKE '{one[:1]}%'"
        case _:
            return f"NOT {name} = {literal(one)}"


def plan_by(view: FileSystemView, handle: TableHandle, **options: Any) -> ReadPlan:
    return load_read_plan(handle.storage, handle.config, timeline_of(handle), ReadOptions(**options), file_view=view)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_pruned_plan_is_the_plan(name: str) -> None:
    lake = shared(name)
    handle = lake.handle()
    timeline = timeline_of(handle)
    folders = FolderView(handle.storage, timeline)
    known = open_file_view(handle.storage, handle.config, timeline)
    assert not known.lists_uncommitted, "the metadata table is to answer"
    chance = random.Random(name)
    pruned = 0
    for _ in range(FILTERS):
        asked = condition(chance, LAYOUTS[name])
        whole = plan_by(Unpruned(folders), handle, filter=asked)
        for view in (folders, known):
            found = CountingFileView(view)
            files = plan_by(found, handle, filter=asked).files
            pruned += found.asked[0][0] == "load_chosen"
            left_out = tuple(file for file in whole.files if file not in files)
            assert [file for file in whole.files if file in files] == list(files), asked
            assert run_read(replace(whole, files=left_out), handle.storage).read_all().num_rows == 0, asked
            assert not (left_out and view is known), asked
    assert pruned or name == "times"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_pruned_read_gives_the_rows_of_a_read_of_all(name: str) -> None:
    layout = LAYOUTS[name]
    lake = shared(name)
    chance = random.Random(f"rows {name}")
    for use_metadata in (True, False):
        for _ in range(3):
            asked = condition(chance, layout)
            handle = lake.handle()
            whole = plan_by(
                Unpruned(FolderView(handle.storage, timeline_of(handle))), handle, filter=asked, skip_data=False
            )
            partitions = {file.partition for file in whole.files}
            ids = lake.rows(["id"], filter=asked, use_metadata=use_metadata)
            everything = lake.rows(["id", "_hoodie_partition_path"])
            assert set(ids) <= {(key,) for key, path in everything if path in partitions}
            assert ids == lake.rows(["id"], filter=f"({asked}) AND (id IS NOT NULL)", use_metadata=use_metadata)


def listed(lake: Lake, **query: Any) -> list[str]:
    """The data folders that planning a query lists."""
    counted, handle = CountingStorage(lake.storage), lake.handle()
    view = FolderView(counted, timeline_of(handle))
    plan_by(view, handle, **query)
    return sorted(call.path for call in counted.calls if call.op == "list_dir" and not call.path.startswith(".hoodie"))


LISTED = [
    ("text with slashes", "p = 'b'", ["", "b"]),
    ("text with slashes", "p = 'a/b'", ["", "a", "a/b"]),
    ("text with slashes", "p >= 'c'", ["", "c", "c/a", "c/a/c"]),
    ("text with slashes", "p IS NULL", ["", "__HIVE_DEFAULT_PARTITION__"]),
    ("encoded", "p IN ('a/b', '100%')", ["", "100%25", "a%2Fb"]),
    ("numbers", "p BETWEEN 0 AND 7", ["", "0", "7"]),
    ("days", "p >= DATE '2024-02-01'", ["", "p=2024-02-29", "p=2025-03-01"]),
    ("days with slashes", "p = '2024-01-31'", ["", "2024", "2024/01", "2024/01/31"]),
    ("two", "p = 'a' AND q = 30", ["", "a", "a/30"]),
    ("two", "q = 30 OR q IS NULL", None),
    ("two, encoded", "p = 'a/b' AND q = DATE '2024-01-01'", ["", "p=a%2Fb", "p=a%2Fb/q=2024-01-01"]),
    ("three", "p = 'b' AND r < 'b'", ["", "p=b", *[f"p=b/q={q}{r}" for q in (1, 2) for r in ("", "/r=a")]]),
    ("times", "p = 0", None),
]


@pytest.mark.parametrize(("name", "asked", "folders"), LISTED)
def test_only_folders_that_lead_to_a_partition_of_the_filter_are_listed(
    name: str, asked: str, folders: list[str] | None
) -> None:
    lake = shared(name)
    assert listed(lake, filter=asked) == (folders if folders is not None else listed(lake))


def test_an_arrow_expression_prunes_where_values_have_a_folder_each() -> None:
    lake = shared("numbers")
    assert listed(lake, filter=pc.field("p") == 7) == ["", "7"]


def test_folders_of_a_writers_own_class_say_nothing() -> None:
    lake = made(LAYOUTS["numbers"])
    handle = lake.handle()
    lake.storage.put(
        ".hoodie/hoodie.properties",
        b"\n".join(
            line
            for line in lake.storage.read(".hoodie/hoodie.properties").splitlines()
            if not line.startswith(b"hoodie.table.keygenerator")
        ),
    )
    assert not lake.handle().config.has_known_keygen
    assert listed(lake, filter="p = 7") == [
        "",
        *sorted(str(one) for one in (-3, 0, 7, 11)),
        "__HIVE_DEFAULT_PARTITION__",
    ]
    assert [
        file.partition
        for file in plan_by(FolderView(handle.storage, timeline_of(handle)), handle, filter="p = 7").files
    ] == ["7"]


@pytest.fixture(params=[6, 8, 9], ids=lambda version: f"v{version}")
def lake(request: pytest.FixtureRequest) -> Lake:
    """A merge-on-read table with five partitions; its last commit wrote to one."""
    lake = logged_lake(request.param, hoodie__metadata__enable="true")
    lake.upsert(*(row(f"k{name}", part=name) for name in "pqrst"))
    lake.upsert(row("kp", "new", ts=2, part="p"))
    return lake


def test_the_metadata_table_is_asked_for_names_and_then_for_the_files_of_one_partition(lake: Lake) -> None:
    handle = lake.handle()
    view = open_file_view(handle.storage, handle.config, timeline_of(handle))
    found = plan_by(view, handle, filter="part = 'q'")
    assert [file.partition for file in found.files] == ["q"]
    assert lake.values(filter="part IN ('p', 'q')") == {"kp": "new", "kq": "a"}


def test_an_incremental_query_lists_what_its_commits_wrote_to(lake: Lake) -> None:
    first, last = lake.table.timeline().completed_writes()
    clock = lake.handle().profile.clock
    asked = {"query": "incremental", "begin": clock.of(first)}
    assert listed(lake, **asked) == ["p"]
    assert listed(lake, **asked, filter="part = 'q'") == []
    assert lake.values(**asked) == {"kp": "new"}
    assert lake.values(**asked, filter="part = 'q'") == {}
    whole = {"query": "incremental", "begin": "earliest"}
    assert listed(lake, **whole, filter="part >= 's'") == ["s", "t"]
    assert listed(lake, query="incremental", begin=clock.of(last)) == []


def test_a_range_whose_files_are_gone_is_answered_by_the_partitions_of_the_filter() -> None:
    lake = Lake(options={"hoodie.clean.automatic": "false"})
    lake.upsert(*(row(f"k{name}", part=name) for name in "pqr"))
    lake.upsert(row("kp", "new", ts=2, part="p"))
    lake.table.services.clean(**{"hoodie.clean.commits.retained": 1})
    lake.upsert(row("kp", "newer", ts=3, part="p"))
    lake.table.services.clean(**{"hoodie.clean.commits.retained": 1})
    asked = {"query": "incremental", "begin": "earliest", "end": lake.table.timeline().completed_writes()[0].completed}
    assert lake.values(**asked, filter="part = 'q'", full_scan_fallback=False) == {"kq": "a"}
    with pytest.raises(Invalid, match="are gone"):
        lake.values(**asked, full_scan_fallback=False)


def test_a_query_of_changes_lists_what_its_commits_wrote_to() -> None:
    lake = Lake(options={"hoodie.table.cdc.enabled": "true"})
    lake.upsert(*(row(f"k{name}", part=name) for name in "pqrst"))
    lake.upsert(row("kp", "new", ts=2, part="p"))
    first, _ = lake.table.timeline().completed_writes()
    assert listed(lake, query="cdc", begin=first.completed) == ["p"]
    found = lake.table.scan(query="cdc", begin=first.completed).read_all()
    assert found["op"].to_pylist() == ["u"]


def test_time_travel_lists_the_partitions_of_its_filter(lake: Lake) -> None:
    first = lake.table.timeline().completed_writes()[0].requested
    assert listed(lake, as_of=first, filter="part = 'p'") == ["", "p"]
    assert lake.values(as_of=first, filter="part = 'p'") == {"kp": "a"}


def test_the_past_of_a_partition_is_known_where_cleans_took_files_of_others_only() -> None:
    lake = Lake(options={"hoodie.clean.automatic": "false"})
    lake.upsert(*(row(f"k{name}", part=name) for name in "pq"))
    lake.upsert(row("kp", "new", ts=2, part="p"))
    policy = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}
    lake.table.services.clean(**policy)
    first = lake.table.timeline().completed_writes()[0].requested
    for use_metadata in (True, False):
        assert lake.values(as_of=first, filter="part = 'q'", use_metadata=use_metadata) == {"kq": "a"}
        for asked in ({}, {"filter": "part = 'p'"}):
            with pytest.raises(Invalid, match="was cleaned up"):
                lake.values(as_of=first, use_metadata=use_metadata, **asked)


def test_calls_do_not_grow_with_partitions_that_the_filter_rules_out() -> None:
    counts = []
    for partitions in (5, 25):
        lake = Lake()
        lake.upsert(*(row(f"k{number}", part=f"p{number:02}") for number in range(partitions)))
        for use_metadata in (True, False):
            counted = CountingStorage(lake.storage)
            table = Table(load_handle(counted, Awake()), lake.options, LocalEngine(1))
            table.read_plan(filter="part = 'p03'", use_metadata=use_metadata)
            counts.append(counted.count)
    assert counts[:2] == counts[2:]
