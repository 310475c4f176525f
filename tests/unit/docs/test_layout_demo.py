"""The demonstration of laying data out: look-ups read fewer files afterwards, and the picture is one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa

ROOT = Path(__file__).parents[3]


def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("layout_demo", ROOT / "examples" / "layout_demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


def flights(rows: int) -> pa.Table:
    """Made-up ones: each month has every destination."""
    chance = np.random.default_rng(2)
    places = np.array(["ATL", "HNL", "LAX", "ORD", "SFO"])
    dest = chance.integers(0, 5, rows)
    number = np.arange(rows)
    return pa.table(
        {
            "year": np.full(rows, 2013),
            "month": number * 12 // rows + 1,
            "day": number % 28 + 1,
            "carrier": np.array(["AA", "UA"])[number % 2],
            "flight": number,
            "origin": np.array(["JFK", "LGA"])[number % 2],
            "dest": places[dest],
            "distance": np.array([760, 4983, 2475, 740, 2586])[dest],
            "dep_delay": chance.integers(-10, 90, rows),
            "air_time": chance.integers(60, 600, rows),
        }
    )


def test_look_ups_read_fewer_files_after_the_clustering(tmp_path: Path) -> None:
    shown = demo()
    before, after = shown.lay_out(flights(2_000), str(tmp_path / "departures"), batches=6)
    assert (before.files, before.look_ups["dest = 'HNL'"]) == (6, 6)
    assert after.look_ups["dest = 'HNL'"] < after.files / 2
    assert after.look_ups["distance > 4000"] < after.files / 2
    assert before.reads["dest"] == 6
    assert after.reads["dest"] < after.files / 2
    drawing = ElementTree.fromstring(shown.plot(before, after))
    assert len(drawing.findall("{http://www.w3.org/2000/svg}rect")) == 2 + 2 * len(before.reads)


def test_the_picture_of_the_page_is_there() -> None:
    page = (ROOT / "docs" / "laying-data-out.md").read_text(encoding="utf-8")
    assert "(laying-data-out.svg)" in page
    ElementTree.parse(ROOT / "docs" / "laying-data-out.svg")
