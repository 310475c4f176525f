"""Small blocks of the metadata table that are read again and again: what their bytes say is kept, by the bytes."""

from __future__ import annotations

import pytest

from hoodie.metadata import records
from hoodie.testing.lake import Lake, row


@pytest.mark.parametrize("version", [6, 8, 9])
def test_blocks_are_decoded_once_and_new_ones_are_seen(version):
    lake = Lake(version, {"hoodie.parquet.small.file.limit": "0"})
    for name in "ab":
        lake.write("insert", [row(name)])
    first = lake.metadata().files()
    before = records._known_rows.cache_info()
    assert lake.metadata().files() == first
    after = records._known_rows.cache_info()
    assert after.misses == before.misses
    assert after.hits > before.hits
    lake.write("insert", [row("c")])
    assert lake.metadata().files() != first
    assert len(lake.live()) == 3
    lake.ensure_sound()
