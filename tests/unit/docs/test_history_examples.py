"""The worked examples of docs/format/history.md and schema-history.md are what Hudi wrote and the code reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from format_pages import block, bytes_of, ensure_lines, page, rows

from hoodie.records.schema_mapping import ColumnIds
from hoodie.spec import V6, V9, BlockKind, encode_container, parse_base_file_name, parse_log_file, parse_manifest
from hoodie.spec.log_records import iter_records
from hoodie.spec.schema_history import SchemaVersion, encode_schema_history, parse_schema_history
from hoodie.storage import MemoryStorage, open_storage
from hoodie.timeline import MergeLimits, load_history, merge_archives, settle_merge

PAGE, SCHEMAS = page("history"), page("schema-history")
NEWEST = "20261121062010663"
ARCHIVED = ".hoodie/archived"
PLAN = f"{ARCHIVED}/mergeArchivePlan"
Golden = Callable[[str], Path]


def archive(number: int) -> str:
    return f"{ARCHIVED}/.commits_.archive.{number}_1-0-1"


# Version 6


def test_first_block_of_an_archive(golden: Golden) -> None:
    base = golden("0.15.0/cow_archived")
    data = (base / archive(1)).read_bytes()
    assert f"`{Path(archive(1)).name}`, {len(data)} bytes" in PAGE
    table = rows(PAGE, "The first block of an archive of Hudi 0.15.0")
    assert ensure_lines(data, table) == (0, 15059)
    first, *_ = parse_log_file(lambda start, size: data[start : start + size], len(data), "page")
    assert first.kind is BlockKind.AVRO_DATA
    content = data[first.content_start : first.content_start + first.content_bytes]
    assert [len(entry) for entry in iter_records(content, "page", 0)] == [98, 135]


def test_instant_of_the_archive(golden: Golden) -> None:
    requested, action, completed = re.findall(r"the reader has \((\d+), (\w+), completed (\d+)\)", PAGE)[0]
    found = load_history(open_storage(str(golden("0.15.0/cow_archived"))), V6)
    assert (requested, action, completed) in [(one.requested, one.action, one.completed) for one in found]


class Noting(MemoryStorage):
    """Remembers what was created, whatever becomes of it."""

    created: ClassVar[dict[str, bytes]] = {}

    def create(self, path: str, data: bytes) -> None:
        self.created[path] = data
        super().create(path, data)


def test_plan_of_a_merge_has_the_bytes_of_the_table() -> None:
    storage = Noting("docs-merged-archives")
    for number in (1, 2):
        storage.put(archive(number), b"")
    merge_archives(storage, ARCHIVED, MergeLimits(batch_files=2))
    plan = storage.created[PLAN]
    assert ensure_lines(plan, rows(PAGE, "`mergeArchivePlan` for archives 1 and 2")) == (430, len(plan) - 16)
    assert f"{len(plan)} bytes; the schema text ends at 410" in PAGE
    assert plan[:411].endswith(b"}\0")
    assert plan[427:430] == bytes_of("02 a8 01")


@pytest.mark.parametrize(("there", "left"), [([1, 2, 3], [1, 2]), ([2, 3], [3])], ids=["before", "after"])
def test_plan_of_a_merge_is_taken_back_or_finished(storage: MemoryStorage, there: list[int], left: list[int]) -> None:
    names = {"candidate": [Path(archive(n)).name for n in (1, 2)], "mergedArchiveFileName": Path(archive(3)).name}
    storage.put(PLAN, encode_container("HoodieMergeArchiveFilePlan", names, "0.15"))
    for number in there:
        storage.put(archive(number), b"")
    settle_merge(storage, ARCHIVED)
    assert [file.path for file in storage.list("")] == [archive(number) for number in left]


# Versions 8 and 9


def test_manifest_names_the_first_file(golden: Golden) -> None:
    folder = golden("1.2.0/cow_archived") / V9.history_dir
    version, name, size = re.findall(r"`_version_` is `(\d)`, `(\w+)` \((\d+) bytes\) begins", PAGE)[0]
    assert (folder / "_version_").read_bytes() == version.encode()
    data = (folder / name).read_bytes()
    assert len(data) == int(size)
    shown = block(PAGE, "`_version_` is `6`").rstrip("\n").encode()
    assert data.startswith(shown)
    files = parse_manifest(data, "page")
    assert files[0] == parse_manifest(shown.removesuffix(b", {") + b"]}", "page")[0]
    assert len(files) == 3


def test_rows_of_the_first_file(golden: Golden) -> None:
    base = golden("1.2.0/cow_archived")
    name = re.findall(r'"fileName" : "(\S+)"', PAGE)[0]
    found = pq.read_table(base / V9.history_dir / name)
    assert (found.num_rows, "its nine rows begin with" in PAGE) == (9, True)
    for row, cells in zip(found.to_pylist(), rows(PAGE, "and names two more files of level 0"), strict=False):
        sizes = ["NULL" if one is None else f"{len(one)} bytes" for one in (row["metadata"], row["plan"])]
        assert [row["instantTime"], row["completionTime"], row["action"], *sizes] == cells
    known = {(one.requested, one.completed, one.action) for one in load_history(open_storage(str(base)), V9)}
    assert {tuple(cells[:3]) for cells in rows(PAGE, "and names two more files of level 0")} <= known


def test_name_of_a_history_file_that_ends_before_it_begins(golden: Golden) -> None:
    name = re.findall(r"had `(\S+)`, whose name ends before it begins", PAGE)[0]
    assert (golden("1.2.0/cow_upgraded_6_8_9") / V9.history_dir / name).exists()
    begin, end, _ = name.split("_")
    assert end < begin


# Columns with ids


def history_of(base: Path, version: str) -> bytes:
    (file,) = (base / ".hoodie/.schema").glob(f"{version}_*.schemacommit")
    return file.read_bytes()


def test_versions_have_the_columns_of_the_table(golden: Golden) -> None:
    data = history_of(golden("1.2.0/cow_alter_table"), NEWEST)
    history = parse_schema_history(data, "page")
    assert encode_schema_history(history) == data
    told = {}
    for number, _, columns in rows(SCHEMAS, "## Worked example"):
        told[int(number)] = [name.strip(" `") for name in columns.split(",")]
    found = {one.number: [name_in(one, id) for id in (5, 8, 11, 13)] for one in history.versions}
    assert found == told


def name_in(version: SchemaVersion, id: int) -> str:
    column = version.find(id)
    return "–" if column is None else column.name


def test_text_of_the_history_begins_as_shown(golden: Golden) -> None:
    text = history_of(golden("1.2.0/cow_alter_table"), NEWEST).decode()
    shown = block(SCHEMAS, "| 20261121062010663 |").replace("\n", "")
    at = 0
    for part in re.split(r" … ?", shown):
        assert part in text[at:]
        at = text.index(part, at) + len(part)
    assert text.startswith(shown.partition(" …")[0])


@pytest.mark.parametrize("as_of", [None, "20261121062010208"], ids=["now", "then"])
def test_file_of_the_first_version_is_read_by_ids(golden: Golden, as_of: str | None) -> None:
    base = golden("1.2.0/cow_alter_table")
    history = parse_schema_history(history_of(base, NEWEST), "page")
    written = re.findall(r"A file of (\d+) is read now", SCHEMAS)[0]
    names = [parse_base_file_name(path.name) for path in base.rglob("*.parquet")]
    assert written in {name.instant for name in names if name is not None}
    assert history.at(written).number == 0
    told = {name.strip("`"): column.strip("`") for name, _, column in rows(SCHEMAS, "It was written under version 0")}
    if as_of is not None:
        later = SCHEMAS[SCHEMAS.index(f"As of {as_of}") :]
        told = dict(re.findall(r"`(\w+)` from `(\w+)`", later))
    mapping = ColumnIds(history, as_of).mapping(written, pa.schema([(name, pa.string()) for name in told]))
    assert mapping is not None
    (read,) = mapping.mapped(pa.table({name: [name] for name in ("id", "name", "active")})).to_pylist()
    assert read == {name: None if column == "none: NULL" else column for name, column in told.items()}


def test_next_column_gets_the_id_that_is_told(golden: Golden) -> None:
    history = parse_schema_history(history_of(golden("1.2.0/cow_alter_table"), NEWEST), "page")
    assert f"adds a column `active`, it gets id {history.newest.max_column_id + 1}:" in SCHEMAS
