"""Tables that Hudi wrote, for examples that are cut out of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from format_pages import GOLDEN

from hoodie.testing.golden import GoldenTable


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Base path of a table (`<release>/<scenario>`) in a copy that all tests share: do not write to it."""
    folder = tmp_path_factory.mktemp("golden")
    return cache(lambda name: GoldenTable(GOLDEN / "tables" / name).unpack(folder))
