"""Tables with one damaged file, read as a whole: an error of ours that tells what to look at, or a result.

The parsers have tests of their own. Here is what lies between them: what one file says goes into the next question.

`HOODIE_FUZZ_SECONDS=n` makes each test run that long.
"""

from __future__ import annotations

import tarfile
import time
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from hoodie import Table
from hoodie.errors import Corrupt, Invalid, Unsupported
from hoodie.storage import MemoryStorage
from hoodie.testing.env import FakeEnv
from hoodie.testing.fuzzing import damaged_bytes, fuzz_seeds

TABLES = Path(__file__).parents[1] / "golden" / "tables"
SAMPLE = 16
LONGEST_SECONDS = 20.0
NAMES = (
    "0.15.0/cow_clustering_pending",
    "0.15.0/mor_compaction_pending",
    "0.15.0/cow_cleaned",
    "1.2.0/cow_cdc_data_before_after",
    "1.2.0/cow_alter_table",
    "1.2.0/cow_secondary_index",
    "1.2.0/mor_part",
    "1.2.0/cow_bootstrap_metadata_only",
)
_SOURCE_KEY = b"hoodie.bootstrap.base.path="


@cache
def files_of(name: str) -> dict[str, bytes]:
    """A table's files by their path below it. One that was made over another one finds that in memory."""
    files = unpacked(TABLES / name / "table.tar.gz")
    if (TABLES / name / "bootstrap_source.tar.gz").exists():
        source = MemoryStorage(uuid.uuid4().hex)
        for path, data in unpacked(TABLES / name / "bootstrap_source.tar.gz").items():
            source.put(path, data)
        properties = ".hoodie/hoodie.properties"
        lines = files[properties].splitlines()
        moved = [_SOURCE_KEY + source.uri.encode() if line.startswith(_SOURCE_KEY) else line for line in lines]
        files[properties] = b"\n".join(moved)
    return files


def unpacked(archive: Path) -> dict[str, bytes]:
    """Files by their path below the one folder of an archive, without checksums of Hadoop's local file system."""
    found: dict[str, bytes] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            path = member.name.removeprefix("./").partition("/")[2]
            file = tar.extractfile(member) if member.isfile() and not path.endswith(".crc") else None
            if file is not None:
                found[path] = file.read()
    return found


def questions(table: Table) -> list[Callable[[], object]]:
    """What one asks a table."""
    return [
        table.timeline,
        lambda: table.schema,
        table.files,
        lambda: table.scan().read_all(),
        lambda: table.scan(use_metadata=False, skip_data=False).read_all(),
        lambda: table.scan(query="incremental", begin="000").read_all(),
        lambda: table.scan(query="cdc", begin="000").read_all(),
        lambda: table.lookup(["k1", "1", "k00001"]).read_all(),
        table.validate,
    ]


def ask(files: dict[str, bytes], *, undamaged: bool = False) -> None:
    storage = MemoryStorage(uuid.uuid4().hex)
    try:
        for path, data in files.items():
            storage.put(path, data)
        try:
            table = Table.open(storage.uri, env=FakeEnv())
        except (Corrupt, Unsupported, Invalid) as error:
            assert not undamaged, error
            return
        for question in questions(table):
            start = time.monotonic()
            try:
                question()
            except (Corrupt, Unsupported, Invalid) as error:
                assert not undamaged or not isinstance(error, Corrupt), error
                assert not isinstance(error, Corrupt) or error.facts.get("path"), error
            assert time.monotonic() - start < LONGEST_SECONDS
    finally:
        storage.forget()


@pytest.mark.parametrize("name", NAMES)
def test_undamaged_tables_are_read(name: str) -> None:
    ask(files_of(name), undamaged=True)


def test_tables_with_one_damaged_file() -> None:
    for seed in fuzz_seeds(SAMPLE):
        ask(one_damaged(seed))


def one_damaged(seed: int) -> dict[str, bytes]:
    files = files_of(NAMES[seed % len(NAMES)])
    paths = sorted(path for path, data in files.items() if data)
    # Every other time a file about the table itself; there are many more of data and of the metadata table.
    own = [path for path in paths if path.startswith(".hoodie") and not path.startswith(".hoodie/metadata/")]
    path = (own if seed % 2 else paths)[seed // 2 % len(own if seed % 2 else paths)]
    return files | {path: damaged_bytes(files[path], seed)}
