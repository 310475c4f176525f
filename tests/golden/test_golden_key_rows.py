"""Keys looked for page by page in the base files that Hudi wrote are where reading all keys finds them.

Set `HOODIE_GOLDEN_DIR` to run the full set; without it the selection beside this file is read.
"""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hoodie.records import KEY_FIELD, page_rows, read_columns, read_footer, value_rows
from hoodie.records.value_rows import rows_with_values
from hoodie.storage import MemoryStorage

FULL = os.environ.get("HOODIE_GOLDEN_DIR")
TABLES = sorted(Path(FULL or Path(__file__).parent / "tables").glob("*/*/table.tar.gz"))


def files_of(archive: Path) -> MemoryStorage:
    storage = MemoryStorage(f"golden-key-rows-{'-'.join(archive.parts[-3:-1])}")
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.name.endswith(".parquet") and "/.hoodie" not in member.name and member.size:
                data = tar.extractfile(member)
                assert data is not None
                storage.put(member.name.removeprefix("./"), data.read())
    return storage


@pytest.mark.parametrize("version", sorted({archive.parts[-3] for archive in TABLES}))
def test_each_key_of_hudis_files_is_found_at_its_rows(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_rows, "_MIN_ROWS", 1)
    monkeypatch.setattr(value_rows, "_ROWS_PER_VALUE", 0)
    looked_for = 0
    for archive in (archive for archive in TABLES if archive.parts[-3] == version):
        storage = files_of(archive)
        for path in sorted(info.path for info in storage.list("")):
            footer = read_footer(storage, path)
            if KEY_FIELD not in footer.schema.names or footer.schema.field(KEY_FIELD).type != pa.string():
                continue
            stored = read_columns(storage, path, [KEY_FIELD], footer=footer).column(0)
            unique = stored.unique().drop_null()
            for values in (unique, unique[:1], unique[-2:], pa.array(["no such key"])):
                rows, places = rows_with_values(storage, path, KEY_FIELD, values, footer=footer)
                expected = [at for at, key in enumerate(stored.to_pylist()) if key in set(values.to_pylist())]
                assert rows.tolist() == expected
                assert values.take(pa.array(places)).equals(stored.take(pa.array(rows)).combine_chunks())
            looked_for += len(unique)
        storage.forget()
    assert looked_for > 20


def test_hudis_files_have_indexes_of_their_pages() -> None:
    """Else the test above would show nothing."""
    archive = next(archive for archive in TABLES if archive.parts[-3] == "1.2.0" and "all_types" in archive.parts[-2])
    storage = files_of(archive)
    assert np.all(
        [read_footer(storage, info.path).native.row_group(0).column(2).has_column_index for info in storage.list("")]
    )
