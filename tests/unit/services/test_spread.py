"""How files are spread over prefixes and roots: counted, drawn, and a word of the doctor's where they gather."""

from __future__ import annotations

import itertools
import uuid

import pyarrow as pa
import pytest

import hoodie
from hoodie.layout import FederatedStorage, Layout, LayoutVersion
from hoodie.layout.access import Access
from hoodie.layout.strategy import parse_strategy
from hoodie.present import as_json
from hoodie.present.page.spread import MAX_COLUMNS, spread_drawings
from hoodie.services.spread import PlaceSizes, Spread, spread_of
from hoodie.spec import parse_base_file_name
from hoodie.storage import MemoryStorage
from hoodie.testing.page_reader import read_page
from hoodie.view import BaseFile, PartitionFiles

_names = itertools.count()
OPTIONS = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "p"}


def laid(*texts: str, since: str = "0") -> FederatedStorage:
    roots = ("s3://one", "s3://two")
    versions = tuple(
        LayoutVersion(number + 1, since, text, (0, 1), "rides", "", parse_strategy(text, {}))
        for number, text in enumerate(texts)
    )
    outer = MemoryStorage(f"spread-{next(_names)}")
    return FederatedStorage(outer, Access(), Layout(roots, versions, ""), (outer, outer))


def files(count: int, file_ids: int, instant: str = "2024") -> list[PartitionFiles]:
    found = []
    for number in range(count):
        name = f"{uuid.UUID(int=number % file_ids)}_0-0-0_{instant}.parquet"
        parsed = parse_base_file_name(name)
        assert parsed is not None
        partition = f"p{number // file_ids}"
        found.append(PartitionFiles(partition, (BaseFile(f"{partition}/{name}", parsed, 10),), ()))
    return found


def test_every_prefix_of_every_root_is_counted_also_an_empty_one() -> None:
    found = spread_of(laid("bits:4"), files(1000, 1000))
    assert found is not None
    assert [(one.root, one.prefix) for one in found.places] == [
        (root, f"{number:04b}") for root in ("s3://one", "s3://two") for number in range(16)
    ]
    assert (found.prefixes, found.file_groups, sum(one.size_bytes for one in found.places)) == (32, 1000, 10_000)
    assert sum(one.files for one in found.places) == 1000
    assert 10 <= found.crowded <= 16
    assert not found.is_gathered


def test_files_before_the_strategy_are_at_the_table_path() -> None:
    found = spread_of(laid("bits:4", since="2025"), [*files(300, 300), *files(10, 10, "2026")])
    assert found is not None
    home = [one for one in found.places if not one.root]
    assert [(one.prefix, one.files) for one in home] == [("", 300)]
    assert (found.left_at_home, found.is_gathered) == (300, True)


@pytest.mark.parametrize(
    ("text", "count", "file_ids", "is_gathered"),
    [
        ("bits:8:file", 4000, 4, True),  # the same ids in each partition
        ("bits:8", 4000, 4, False),
        ("bits:8", 50, 50, False),  # too few to say
        ("bits:8", 120, 120, False),
        ("map", 4000, 4, False),  # no prefixes to gather in
        ("rfc60", 4000, 4000, False),
    ],
)
def test_gathered_files_are_told_from_few_and_from_even_ones(
    text: str, count: int, file_ids: int, is_gathered: bool
) -> None:
    found = spread_of(laid(text), files(count, file_ids))
    assert found is not None
    assert found.is_gathered is is_gathered


def test_drawing_has_a_row_for_each_root_and_a_bounded_number_of_bars() -> None:
    places = [PlaceSizes("s3://<b>", f"{number:012b}", 1, number % 7, 5) for number in range(4096)]
    page = read_page(spread_drawings(Spread((*places, PlaceSizes("", "", 3, 3, 9)), 4096)))
    assert "s3://<b>" in page.text()
    assert "(the table path)" in page.text()
    assert page.count("tr") == 3
    assert MAX_COLUMNS / 2 < page.count("rect") <= MAX_COLUMNS + 1
    assert spread_drawings(None) == ""


@pytest.fixture
def table() -> hoodie.Table:
    name = f"memory://spread-{next(_names)}"
    ids = list(range(120))
    rows = pa.table({"id": ids, "p": [f"p{one}" for one in ids]})
    options = OPTIONS | {"hoodie.storage.path": f"{name}/root", "hoodie.storage.strategy": "bits:6"}
    made = hoodie.Table.create(f"{name}/table", schema=rows.schema, options=options)
    made.upsert(rows)
    return made


def test_doctor_report_and_json_have_the_spread_of_such_a_table_alone(table: hoodie.Table, tmp_path) -> None:
    health = table.doctor()
    assert [one for one in health.concerns if one.kind == "spread"] == []
    assert len(as_json(health)["places"]) == 64
    table.report(str(tmp_path / "report.html"))
    said = read_page((tmp_path / "report.html").read_text()).text()
    assert "Spread over prefixes" in said
    assert "64" in said
    plain = hoodie.Table.create(
        f"memory://spread-{next(_names)}", schema=pa.schema([("id", pa.int64()), ("p", pa.string())]), options=OPTIONS
    )
    assert "places" not in as_json(plain.doctor())


def test_doctor_says_that_files_gather_and_what_helps(table: hoodie.Table) -> None:
    table.services.relayout("fileid:0:1")
    table.services.relayout("hive", move=True, grace_hours=0)
    table.services.relayout("bits:8")
    (said,) = (one for one in table.doctor().concerns if one.kind == "spread")
    assert said.severity == "note"
    assert "under 1 of 256 prefixes (120 have files at the table path)" in said.message
    assert [one.startswith("hoodie relayout memory://") for one in said.commands] == [True]
    assert "--move" in said.remedy
    table.services.relayout(move=True, grace_hours=0)
    assert not table.doctor().concerns


def test_doctor_names_a_root_that_is_not_reached_and_looks_at_the_rest(table: hoodie.Table) -> None:
    root = MemoryStorage(table.storage.uri.removeprefix("memory://").replace("/table", "/root"))
    owner = root.read(".hoodie_owners/table")
    root.delete(".hoodie_owners/table")
    health = table.doctor()
    assert [(one.severity, one.kind, one.subject) for one in health.concerns] == [("error", "unreachable", root.uri)]
    assert "does not say whose" in health.concerns[0].message
    assert sum(one.file_groups for one in health.partitions) == 120
    root.put(".hoodie_owners/table", owner)
    assert not table.doctor().concerns
