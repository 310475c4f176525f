"""The files that CONTRIBUTING.md leads a newcomer through are there, and run in the calls it tells of."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from hoodie.present import as_json
from hoodie.testing.lake import Lake, row, table_of

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src" / "hoodie"
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.(?:py|tsv))`", PAGE)))
STEPS = dict(re.findall(r"^### A (write|read|service): [^\n]*\n(.*?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE))
ON_SPARK = "spark/"
NOT_ASKED = {"cli/service.py", "services/preview.py"}
"""The command line, and a file of values without functions."""


def files_of(calls: Callable[[], object]) -> set[str]:
    """Files of ours in which a function was called."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        calls()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {str(Path(name).relative_to(PACKAGE)) for name in found if name.startswith(f"{PACKAGE}/")}


@pytest.fixture
def lake() -> Iterator[Lake]:
    """A merge-on-read table whose rows have been updated."""
    options = {"hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "false"}
    made = Lake(9, {"hoodie.datasource.write.table.type": "MERGE_ON_READ", **options})
    made.upsert(row("a"), row("b"))
    made.upsert(row("a", "again", 2))
    yield made
    made.table.drop()


def write(lake: Lake) -> object:
    return lake.table.upsert(table_of([row("a", "once more", 3), row("c")]))


def read(lake: Lake) -> object:
    return lake.table.scan(filter="id > 'A'").read_all()


def service(lake: Lake) -> object:
    services = lake.table.services
    compacted = services.compact()
    lake.upsert(row("b", "again", 4))
    return as_json([compacted, services.preview("clean"), services.clean()])


@pytest.mark.parametrize("name", NAMED)
def test_a_file_that_is_named_is_there(name: str) -> None:
    assert (PACKAGE / name).exists() or (ROOT / name).exists()


def test_the_walk_is_a_page_of_three_calls() -> None:
    assert sorted(STEPS) == ["read", "service", "write"]
    assert sum(len(steps.splitlines()) for steps in STEPS.values()) < 50


@pytest.mark.parametrize("call", [write, read, service], ids=lambda call: call.__name__)
def test_the_files_of_a_walk_run_in_its_call(lake: Lake, call: Callable[[Lake], object]) -> None:
    told = set(re.findall(r"`([\w/]+\.py)`", STEPS[call.__name__]))
    run = files_of(lambda: call(lake))
    asides = {name for name in told if name.startswith(ON_SPARK)} | NOT_ASKED
    assert len(told) > 8
    assert told - asides <= run
