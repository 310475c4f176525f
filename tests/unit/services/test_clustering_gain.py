"""What a preview says a clustering is worth: files a look-up reads before and afterwards, and bytes."""

from __future__ import annotations

import numpy as np
import pytest

from hoodie.errors import Invalid
from hoodie.services.clustering.gain import look_up_gain
from hoodie.services.clustering.overlap import ValueRange
from hoodie.services.clustering.plan_strategy import GroupOfSlices
from hoodie.spec import BaseFileName, Curve, InstantTime, SortOrder
from hoodie.testing.lake import Lake, row
from hoodie.view import BaseFile, FileSlice

PLAN = "hoodie.clustering.plan.strategy"


def parts(count):
    names = [BaseFileName(f"f{n}-0", "0-0-0", InstantTime(f"202601010000000{n:02}")) for n in range(count)]
    return [FileSlice("p", name.file_id, name.instant, BaseFile(f"p/{name.text}", name, 10)) for name in names]


def gain(slices, bounds, outputs, order, taken=None, column="c"):
    ranges = {
        part.group_id: {"c": ValueRange(*one)} for part, one in zip(slices, bounds, strict=True) if one is not None
    }
    groups = [GroupOfSlices("p", tuple(slices[:taken]), outputs, order)]
    found = look_up_gain(column, slices, groups, ranges)
    return found.files, found.reads, found.files_after, found.reads_after


BY_C = SortOrder(("c",))


def test_files_that_overlap_are_read_all_and_sorted_ones_one_by_one():
    slices = parts(8)
    assert gain(slices, [(0, 100)] * 8, 4, BY_C) == (8, 8.0, 4, 1.0)
    assert gain(slices, [(0, 100)] * 8, 4, None) == (8, 8.0, 4, 4.0)
    assert gain(slices, [(0, 100)] * 8, 4, SortOrder(("a", "c"))) == (8, 8.0, 4, 4.0)
    curve = SortOrder(("a", "c"), Curve.Z_ORDER)
    assert gain(slices, [(0, 100)] * 8, 4, curve) == (8, 8.0, 4, 2.0)


def test_what_stays_and_what_nobody_knows_is_read_as_before():
    slices = parts(4)
    bounds = [(0, 100), (0, 100), (0, 100), (200, 300)]
    assert gain(slices, bounds, 1, BY_C, taken=2) == (4, 10 / 4, 3, (3 * 2 + 1) / 4)
    assert gain(slices, [(0, 9), (0, 9), None, None], 2, BY_C, taken=3) == (4, 4.0, 3, 2.0)
    assert gain(slices, [None] * 4, 2, BY_C) == (4, 4.0, 2, 1.0)


def clustered(lake, **more):
    return lake.table.services.preview("cluster", **{f"{PLAN}.sort.columns": "v", **more})


def test_a_preview_says_files_bytes_and_what_look_ups_gain_before_and_that_comes_true():
    lake = Lake(9, {"hoodie.parquet.small.file.limit": "0"})
    chance = np.random.default_rng(5)
    for n in range(4):
        lake.write("insert", [row(f"k{n}{m:03}", f"{chance.integers(1000):03}", n) for m in range(50)])
    files = lake.files()
    size = sum(len(data) for path, data in files.items() if path.endswith(".parquet") and ".hoodie" not in path)
    target = {f"{PLAN}.target.file.max.bytes": str(size // 2 + 1)}
    sizes, by_v = clustered(lake, **target).notes
    assert "4 file groups" in sizes
    assert "become 2" in sizes
    assert "looked up in about 3.8 of 4 file groups now, in 1.0 of 2 afterwards" in by_v
    asked = lake.table.services.preview("cluster", None, None, "ts", **{f"{PLAN}.sort.columns": "v", **target})
    assert "value of ts is looked up in about 1.0 of 4 file groups now, in 2.0 of 2 afterwards" in asked.notes[1]
    assert lake.files() == files
    lake.table.services.cluster(**{f"{PLAN}.sort.columns": "v", **target})
    plan = lake.table.read_plan(filter="v = '500'")
    assert len(plan.files) + plan.skipped_files == 2


def test_a_column_that_is_not_there_is_told():
    lake = Lake(9, {"hoodie.parquet.small.file.limit": "0"})
    for name in "ab":
        lake.write("insert", [row(name)])
    with pytest.raises(Invalid, match="no column nope"):
        lake.table.services.preview("cluster", None, None, "nope")
