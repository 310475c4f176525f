"""Damaged archives, manifests, schema histories and bootstrap indexes: a right answer, or a typed error that names the
file, in bounded time.

Files that Hudi wrote get bytes changed, put in, taken out and cut off; and so does what stands behind a frame, which
damage of a whole file seldom reaches: archived entries, their schemas, values of an index.

`make test-deep` takes a sample. `HOODIE_FUZZ_SECONDS` makes each test run so long, `HOODIE_FUZZ_SEED` sets the first
seed.
"""

from __future__ import annotations

import json
import tarfile
import time
import uuid
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from hoodie.errors import Corrupt, HudiError, Unsupported
from hoodie.hfile import open_hfile
from hoodie.records import ColumnIds
from hoodie.spec import (
    COMPLETED_WRITE_ACTIONS,
    V6,
    V9,
    FormatProfile,
    State,
    parse_archived_commit,
    parse_archived_entry,
    parse_log_file,
    parse_manifest,
    parse_record_marks,
)
from hoodie.spec.bootstrap_index import parse_bootstrap_partition
from hoodie.spec.schema_history import encode_schema_history, named_fields, parse_schema_history
from hoodie.storage import MemoryStorage
from hoodie.testing.fuzzing import fuzz_chances, spliced_bytes
from hoodie.timeline import load_archived_metadata, load_history

SAMPLE = 150
LONGEST_SECONDS = 20.0
TABLES = Path(__file__).parents[1] / "golden" / "tables"
TELLING = [
    b"\0",
    b"\1",
    b"\2",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff" * 9,
    b"\0" * 4,
    b'"',
    b"[",
    b"{",
    b"null",
    b"..",
    b"/",
]

Answer = TypeVar("Answer")


def files_of(table: str, part: str) -> dict[str, bytes]:
    """Files of a golden table whose path has a certain part, by their name."""
    with tarfile.open(TABLES / table / "table.tar.gz") as tar:
        found = [one for one in tar.getmembers() if one.isfile() and part in one.name]
        return {one.name.rpartition("/")[2]: tar.extractfile(one).read() for one in found}  # type: ignore[union-attr]


ARCHIVES = files_of("0.15.0/cow_archived", "cow_archived/.hoodie/archived/.commits_")
HISTORY = files_of("1.2.0/cow_archived", "cow_archived/.hoodie/timeline/history/")
SCHEMAS = [data for data in files_of("1.2.0/cow_alter_table", "/.schema/").values() if data]
INDEX = files_of("1.2.0/cow_bootstrap_metadata_only", ".bootstrap/.partitions/")


def damaged(content: bytes, chance: Random) -> bytes:
    return spliced_bytes(content, chance, TELLING)


def part_of(data: bytes, start: int, length: int) -> bytes:
    return data[start : start + length]


def answer_of(work: Callable[..., Answer], *arguments: Any) -> Answer | None:
    """What `work` gives; None when it raised an error that names a file."""
    start = time.monotonic()
    try:
        return work(*arguments)
    except (Corrupt, Unsupported) as error:
        assert error.facts.get("path"), error
        return None
    finally:
        assert time.monotonic() - start < LONGEST_SECONDS


def history(profile: FormatProfile, files: dict[str, bytes]) -> None:
    """The history in these files is sound as far as it can be read."""
    storage = MemoryStorage(uuid.uuid4().hex)
    for name, data in files.items():
        storage.put(f"{profile.history_dir}/{name}", data)
    try:
        answer_of(load_history, storage, profile, "2000", "2100")  # asks for statistics of the files
        found = answer_of(load_history, storage, profile)
        for one in found or ():
            assert one.requested
            assert one.instant.state is State.COMPLETED
            if one.action in COMPLETED_WRITE_ACTIONS:
                answer_of(load_archived_metadata, storage, [one])
    finally:
        storage.forget()


def test_damaged_archives() -> None:
    for chance in fuzz_chances(SAMPLE):
        name = chance.choice(sorted(ARCHIVES))
        history(V6, ARCHIVES | {name: damaged(ARCHIVES[name], chance)})


def entries() -> list[tuple[bytes, str]]:
    """Bare entries of all archives, each with its schema."""
    found = []
    for name, data in sorted(ARCHIVES.items()):
        blocks = parse_log_file(partial(part_of, data), len(data), name)
        for block in blocks:
            content = data[block.content_start : block.content_start + block.content_bytes]
            marks = parse_record_marks(content, name, block.content_start)
            found += [(content[mark + 4 : end], block.schema) for mark, end in pairwise(marks)]
    return found


def test_damaged_entries_and_their_schemas() -> None:
    known = entries()
    assert len(known) > 20
    for chance in fuzz_chances(SAMPLE):
        data, schema = chance.choice(known)
        if chance.random() < 0.5:
            schema = damaged(schema.encode(), chance).decode(errors="replace")
        else:
            data = damaged(data, chance)
        for parse in (parse_archived_entry, parse_archived_commit):
            answer_of(parse, data, schema, "archive", 0)


def test_damaged_history_files() -> None:
    for chance in fuzz_chances(SAMPLE):
        name = chance.choice(sorted(HISTORY))
        history(V9, HISTORY | {name: damaged(HISTORY[name], chance)})


def test_damaged_manifests_name_no_file_outside_their_folder() -> None:
    data = HISTORY[max(name for name in HISTORY if name.startswith("manifest_"))]
    for chance in fuzz_chances(SAMPLE):
        found = answer_of(parse_manifest, damaged(data, chance), "manifest_1")
        assert all("/" not in one.name and one.name not in ("", ".", "..") for one in found or ())


def test_damaged_schema_histories_are_refused_or_map_columns() -> None:
    for chance in fuzz_chances(SAMPLE):
        data = damaged(chance.choice(SCHEMAS), chance)
        known = answer_of(parse_schema_history, data, "h.schemacommit")
        if known is None:
            continue
        assert parse_schema_history(encode_schema_history(known), "again") == known
        wanted = pa.schema([(one.name, pa.string()) for one in known.newest.fields])
        for version in known.versions:
            assert known.at(str(max(0, version.number))) is not None
            mapping = ColumnIds(known).mapping(str(max(0, version.number)), wanted)
            if mapping is not None:
                assert len(mapping.stored) == len(wanted)
            assert len({one.id for _, one in named_fields(version.fields)}) > 0 or not version.fields


def test_damaged_bootstrap_entries_name_no_file_outside_the_source() -> None:
    (data,) = INDEX.values()
    index = open_hfile(partial(part_of, data), len(data), "index")
    values = [bytes(one.data[s:e]) for one in index.scan() for s, e in zip(one.starts, one.ends, strict=True)]
    assert len(values) == 3
    for chance in fuzz_chances(SAMPLE):
        value = damaged(chance.choice(values), chance)
        found = answer_of(parse_bootstrap_partition, value, "index")
        if found is not None:
            parts = [part for path in found.sources.values() for part in path.split("/")]
            assert not {"", ".", ".."} & set(parts)


@pytest.mark.parametrize("opening", ["[", "{", '{"schemas":['])
def test_deep_nesting_is_refused(opening: str) -> None:
    for parse in (parse_manifest, parse_schema_history):
        with pytest.raises(HudiError):
            parse((opening * 200_000).encode(), "deep")
    closed = json.dumps({"schemas": []}).encode()
    with pytest.raises(Corrupt):
        parse_schema_history(closed, "empty")
