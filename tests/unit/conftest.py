"""Fixtures that unit tests of several packages share."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from hoodie.spec import V6, V8, V9, FormatProfile
from hoodie.storage import MemoryStorage


@pytest.fixture(params=[V6, V8, V9], ids=["v6", "v8", "v9"])
def profile(request: pytest.FixtureRequest) -> FormatProfile:
    """Every version of the format in turn."""
    found: FormatProfile = request.param
    return found


@pytest.fixture(params=[6, 8, 9], ids=["v6", "v8", "v9"])
def version(request: pytest.FixtureRequest) -> int:
    """The table version of every version of the format in turn."""
    return int(request.param)


@pytest.fixture
def storage() -> Iterator[MemoryStorage]:
    """An empty storage of its own."""
    memory = MemoryStorage(uuid.uuid4().hex)
    yield memory
    memory.forget()
