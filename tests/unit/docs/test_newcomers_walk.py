"""The files that CONTRIBUTING.md leads a newcomer through are there, and run in the calls it tells of."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable
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


def made_lake() -> Lake:
    """A merge-on-read table whose rows have been updated."""
    options = {"hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "false"}
    made = Lake(9, {"hoodie.datasource.write.table.type": "MERGE_ON_READ", **options})
    made.upsert(row("a"), row("b"))
    made.upsert(row("a", "again", 2))
    return made


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


def files_of_walk(name: str) -> set[str]:
    """Files of ours in which a function was called by a walk, in a process of its own: no other test touches it."""
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_newcomers_walk as walk; "
        f"print(*walk.files_of(lambda: walk.WALKS[{name!r}](walk.made_lake())))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


WALKS = {"write": write, "read": read, "service": service}


@pytest.mark.parametrize("name", WALKS)
def test_the_files_of_a_walk_run_in_its_call(name: str) -> None:
    told = set(re.findall(r"`([\w/]+\.py)`", STEPS[name]))
    run = files_of_walk(name)
    asides = {name for name in told if name.startswith(ON_SPARK)} | NOT_ASKED
    assert len(told) > 8
    assert told - asides <= run
