"""Clean plans and clean metadata: the golden ones there and back, odd ones, and archived states of version 6."""

from __future__ import annotations

import io
import json
import os
import re
from collections import defaultdict
from pathlib import Path

import fastavro
import pytest

from hoodie.errors import Corrupt, Unsupported
from hoodie.spec import (
    V6,
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    Instant,
    RetainedInstant,
    State,
    archived_schema,
    encode_archived_state,
    encode_clean_metadata,
    encode_clean_plan,
    encode_container,
    iter_records,
    parse_clean_metadata,
    parse_clean_plan,
    parse_container,
    parse_earliest_retained,
    parse_log_file,
)
from hoodie.storage import open_storage
from hoodie.testing.golden import golden_tables
from hoodie.testing.golden_timelines import full_names, small_names, unpack_full
from hoodie.timeline import list_archives

GOLDEN = Path(__file__).parents[2] / "golden"
SMALL = GOLDEN / "spec" / "timelines.tar.xz"
FULL = os.environ.get("HOODIE_GOLDEN_DIR")


@pytest.fixture(params=small_names(SMALL))
def small(request, small_timelines):
    return small_timelines[request.param]


@pytest.fixture(params=full_names(Path(FULL)) if FULL else [])
def full(request, tmp_path):
    return unpack_full(Path(FULL), request.param, tmp_path)


def check(table) -> None:
    generation = "0.15" if table.hudi == "0.15.0" else "1.x"
    for path in sorted(table.path.rglob("*.clean*")):
        data = path.read_bytes()
        if data and parse_container(data, path.name)[0] == "HoodieCleanerPlan":
            plan = parse_clean_plan(data, path.name)
            assert parse_container(encode_clean_plan(plan, generation), "ours")[1] == parse_container(data, "theirs")[1]
        elif data:
            metadata = parse_clean_metadata(data, path.name)
            ours = parse_container(encode_clean_metadata(metadata, generation), "ours")[1]
            assert ours == parse_container(data, "theirs")[1]
            assert (parse_earliest_retained(data, path.name) or "") == metadata.earliest


def test_golden_cleans_are_the_same_after_reading_and_writing(small) -> None:
    check(small)


def test_all_golden_cleans_are_the_same_after_reading_and_writing(full) -> None:
    check(full)


@pytest.mark.parametrize("generation", ["0.15", "1.x"])
def test_a_plan_and_its_metadata_come_back_as_they_were(generation) -> None:
    plan = CleanPlan(
        policy="KEEP_LATEST_BY_HOURS",
        earliest=RetainedInstant("20260101000000000", "deltacommit"),
        last_completed="20260102000000000",
        files={"p": ("/base/p/a.parquet",), "": ("s3://b/base/c.parquet",)},
        bootstrap_files={"p": ("/elsewhere/x.parquet",)},
        partitions=("gone",),
        extra_metadata={"savepointed_timestamps": "1,2"},
    )
    assert parse_clean_plan(encode_clean_plan(plan, generation), "p") == plan
    assert plan.savepoints == ("1", "2")
    done = CleanedPartition("p", "KEEP_LATEST_COMMITS", ("a", "b"), ("a",), ("b",), is_partition_deleted=True)
    metadata = CleanMetadata("1", 2, 3, "4", "5", {"p": done}, {"p": done}, {"k": "v"})
    assert parse_clean_metadata(encode_clean_metadata(metadata, generation), "p") == metadata


def test_plans_of_old_releases_name_files_without_folders() -> None:
    record = {"policy": "KEEP_LATEST_COMMITS", "filesToBeDeletedPerPartition": {"p": ["a.parquet"], "": ["b.parquet"]}}
    plan = parse_clean_plan(encode_container("HoodieCleanerPlan", record), "p")
    assert plan.files == {"p": ("/p/a.parquet",), "": ("/b.parquet",)}


@pytest.mark.parametrize("partition", ["../other", "/abs", "a//b"])
def test_a_partition_outside_the_table_is_refused(partition: str) -> None:
    for plan in (CleanPlan("P", files={partition: ()}), CleanPlan("P", partitions=(partition,))):
        with pytest.raises(Corrupt, match="below the table"):
            parse_clean_plan(encode_clean_plan(plan, "1.x"), "f.clean.requested")


def test_one_is_not_taken_for_the_other() -> None:
    plan, metadata = encode_clean_plan(CleanPlan("P"), "1.x"), encode_clean_metadata(CleanMetadata("1", 0, 0), "1.x")
    with pytest.raises(Corrupt, match="not a HoodieCleanerPlan"):
        parse_clean_plan(metadata, "f")
    with pytest.raises(Corrupt, match="not a HoodieCleanMetadata"):
        parse_clean_metadata(plan, "f")
    for parse in (parse_clean_plan, parse_clean_metadata):
        with pytest.raises(Corrupt):
            parse(b"", "f")


# --- archived states


def fields(entry: bytes, schema: str) -> dict[str, object]:
    values = fastavro.schemaless_reader(io.BytesIO(entry), fastavro.parse_schema(json.loads(schema)), None)
    return {name: value for name, value in values.items() if value is not None}


def test_states_fill_the_fields_that_hudi_fills(tmp_path: Path) -> None:
    """Each state of each action in the archive of Hudi, against the same state archived by us."""
    tables = golden_tables(Path(FULL)) if FULL else golden_tables(GOLDEN / "tables")
    theirs = defaultdict(set)
    for table in (one for one in tables if one.release == "0.15.0" and one.scenario.endswith("_archived")):
        storage = open_storage(str(table.unpack(tmp_path)))
        for file in list_archives(storage, V6.history_dir):
            data = storage.read(file.path)
            for block in parse_log_file(lambda at, n, data=data: data[at : at + n], len(data), file.path):
                content = data[block.content_start : block.content_start + block.content_bytes]
                for entry in iter_records(content, file.path, 0):
                    found = fields(entry, block.schema)
                    theirs[found["actionType"], found["actionState"]].add(frozenset(found))
    assert {("commit", "REQUESTED"), ("clean", "COMPLETED")} <= theirs.keys()
    for (action, state), expected in theirs.items():
        instant = Instant("20260101000000000", action, State[state])
        entry = encode_archived_state(instant, "20260101000001000", content_of(action, state), "p", "0.15")
        assert frozenset(fields(entry, archived_schema("0.15"))) | {"version"} in {
            one | {"version"} for one in expected
        }


def content_of(action: str, state: str) -> bytes:
    match action, state:
        case "clean", "COMPLETED":
            return encode_clean_metadata(CleanMetadata("1", 0, 0), "0.15")
        case "clean", _:
            return encode_clean_plan(CleanPlan("P"), "0.15")
        case "compaction", "REQUESTED":
            return encode_container("HoodieCompactionPlan", {"operations": []}, "0.15")
        case (("commit" | "deltacommit"), ("INFLIGHT" | "COMPLETED")):
            return V6.commit_codec.encode(parse_nothing(), action)
    return b""


def parse_nothing():
    return V6.commit_codec.parse(b"", "p")


def test_what_is_never_archived_is_refused() -> None:
    with pytest.raises(Unsupported, match="never archived"):
        encode_archived_state(Instant("1", "savepoint", State.COMPLETED), "2", b"", "p", "0.15")


# --- the worked examples of docs/format/clean.md

CLEAN_TIME, KEPT = "20261121055232326", "20261121055227922"
DOOMED = "a-0_0-1-2_20261121055221334.parquet"
ROW = re.compile(r"^\| (\d+) \| ((?:`[^`]*` ?)+)(?:…)? ?\|", re.MULTILINE)


def test_the_examples_on_the_page_are_true() -> None:
    page = (GOLDEN.parents[1] / "docs" / "format" / "clean.md").read_text(encoding="utf-8")
    first, second = page.split("## Worked examples")[1].split("The metadata of the clean")
    retained = RetainedInstant(KEPT, "commit")
    plan = CleanPlan("KEEP_LATEST_COMMITS", retained, KEPT, {"p0": (f"/t/p0/{DOOMED}",)})
    done = CleanedPartition("p0", "KEEP_LATEST_COMMITS", (DOOMED,), (DOOMED,))
    metadata = CleanMetadata(CLEAN_TIME, 239, 1, KEPT, KEPT, {"p0": done})
    for text, data in ((first, encode_clean_plan(plan, "1.x")), (second, encode_clean_metadata(metadata, "1.x"))):
        assert f"{len(data)} bytes" in text
        rows = [(int(offset), cells) for offset, cells in ROW.findall(text)]
        assert len(rows) > 10
        for offset, cells in rows:
            begin = bytes.fromhex(cells.split("`")[1].replace("…", ""))
            assert data[offset : offset + len(begin)] == begin, (offset, cells)
